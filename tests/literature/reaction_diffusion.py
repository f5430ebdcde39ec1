"""Reaction and diffusion, and phase fields."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def gray_scott(U, V, Du, Dv, F, k, steps):
    """Gray and Scott's two reagents on a torus, new values in arrays of their own.

    Source: J. E. Pearson, "Complex patterns in a simple system", Science 261 (1993);
      github.com/rougier/from-python-to-numpy.
    Uses: neighbours by % as index variables, two arrays written in a nest, two swaps, float32.
    """
    n, m = U.shape
    Un = np.zeros_like(U)
    Vn = np.zeros_like(V)
    for t in range(steps):
        for i in range(n):
            ip = (i + 1) % n
            im = (i - 1) % n
            for j in range(m):
                jp = (j + 1) % m
                jm = (j - 1) % m
                lu = U[im, j] + U[ip, j] + U[i, jm] + U[i, jp] - 4 * U[i, j]
                lv = V[im, j] + V[ip, j] + V[i, jm] + V[i, jp] - 4 * V[i, j]
                uvv = U[i, j] * V[i, j] * V[i, j]
                Un[i, j] = U[i, j] + Du * lu - uvv + F * (1 - U[i, j])
                Vn[i, j] = V[i, j] + Dv * lv + uvv - (F + k) * V[i, j]
        U, Un = Un, U
        V, Vn = Vn, V
    return U, V


@gray_scott.problem
def gray_scott_problem(n: int = 18, steps: int = 10) -> dict[str, Any]:
    U, V = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    U[n // 3 : n // 2, n // 3 : n // 2], V[n // 3 : n // 2, n // 3 : n // 2] = 0.5, 0.25
    return {"U": U, "V": V, "Du": 0.16, "Dv": 0.08, "F": 0.035, "k": 0.065, "steps": steps}


@lw.nest
def fitzhugh_nagumo(v, w, dt, dx, steps):
    """Excitable medium with no flux through the edges: the outermost points are copied from their neighbours.

    Source: R. FitzHugh, Biophys. J. 1 (1961); the two-dimensional program of C. Rossant, "IPython Cookbook" (2018),
      recipe 12.4.
    Uses: helper functions, boundary loops in sequence after the nest, **3, copies of arrays each step.
    """
    n, m = v.shape
    for step in range(steps):
        vc = v.copy()
        wc = w.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                lap = laplacian(vc, i, j, dx)
                v[i, j] = vc[i, j] + dt * (2.8e-4 * lap + excite(vc[i, j], wc[i, j]))
                w[i, j] = wc[i, j] + dt * (5e-3 * laplacian(wc, i, j, dx) + vc[i, j] - wc[i, j]) / 0.1
        for i in range(n):
            v[i, 0] = v[i, 1]
            v[i, m - 1] = v[i, m - 2]
        for j in range(m):
            v[0, j] = v[1, j]
            v[n - 1, j] = v[n - 2, j]


def laplacian(z, i, j, dx):
    return (z[i - 1, j] + z[i + 1, j] + z[i, j - 1] + z[i, j + 1] - 4 * z[i, j]) / dx**2


def excite(v, w):
    return v - v**3 - w - 0.005


@fitzhugh_nagumo.problem
def fitzhugh_nagumo_problem(n: int = 20, steps: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    return {"v": rng.random((n, n)), "w": rng.random((n, n)), "dt": 0.001, "dx": 2.0 / n, "steps": steps}


@lw.nest
def cahn_hilliard(c, mu, gamma, dt, steps):
    """Phase separation: the chemical potential from the concentration, then the concentration from its Laplacian.

    Source: J. W. Cahn, J. E. Hilliard, J. Chem. Phys. 28 (1958); S. B. Biner, "Programming Phase-Field Modeling"
      (2017).
    Uses: periodic indices with negative subscripts and %, two nests a step, **3, a total returned.
    """
    n, m = c.shape
    for step in range(steps):
        for i in range(n):
            for j in range(m):
                lap = c[i - 1, j] + c[(i + 1) % n, j] + c[i, j - 1] + c[i, (j + 1) % m] - 4 * c[i, j]
                mu[i, j] = c[i, j] ** 3 - c[i, j] - gamma * lap
        for i in range(n):
            for j in range(m):
                lap = mu[i - 1, j] + mu[(i + 1) % n, j] + mu[i, j - 1] + mu[i, (j + 1) % m] - 4 * mu[i, j]
                c[i, j] += dt * lap
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += c[i, j]
    return total / (n * m)


@cahn_hilliard.problem
def cahn_hilliard_problem(n: int = 20, steps: int = 8) -> dict[str, Any]:
    c = 0.1 * np.random.default_rng(12).standard_normal((n, n))
    return {"c": c, "mu": np.zeros_like(c), "gamma": 0.5, "dt": 0.01, "steps": steps}


@lw.nest
def barkley(u, v, a, b, eps, dt, d, steps):
    """Spiral waves: the local reaction takes a branch below a threshold, diffusion is explicit.

    Source: D. Barkley, "A model for fast computer simulation of waves in excitable media", Physica D 49 (1991).
    Uses: if/elif/else with guarded writes, time levels by an index that is swapped, reflection at the edges by max
      and min.
    """
    n = u.shape[1]
    old, new = 0, 1
    for step in range(steps):
        for i in range(n):
            for j in range(n):
                threshold = (v[i, j] + b) / a
                if u[old, i, j] < 1e-4:
                    v[i, j] -= dt * v[i, j]
                    reacted = 0.0
                elif u[old, i, j] < threshold:
                    reacted = u[old, i, j] / (1 - dt / eps * (1 - u[old, i, j]) * (u[old, i, j] - threshold))
                    v[i, j] += dt * (u[old, i, j] - v[i, j])
                else:
                    r = dt / eps * u[old, i, j] * (u[old, i, j] - threshold)
                    reacted = (u[old, i, j] + r) / (1 + r)
                    v[i, j] += dt * (u[old, i, j] - v[i, j])
                up = u[old, max(i - 1, 0), j]
                down = u[old, min(i + 1, n - 1), j]
                left = u[old, i, max(j - 1, 0)]
                right = u[old, i, min(j + 1, n - 1)]
                u[new, i, j] = reacted + d * (up + down + left + right - 4 * u[old, i, j])
        old, new = new, old
    return old


@barkley.problem
def barkley_problem(n: int = 20, steps: int = 12) -> dict[str, Any]:
    u, v = np.zeros((2, n, n)), np.zeros((n, n))
    u[0, : n // 2] = 1.0
    v[:, : n // 2] = 0.3
    return {"u": u, "v": v, "a": 0.75, "b": 0.06, "eps": 0.02, "dt": 0.01, "d": 0.1, "steps": steps}
