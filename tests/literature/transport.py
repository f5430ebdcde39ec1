"""Sweeps: eikonal equations, discrete ordinates, level sets, hydrology."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def fast_sweeping(T, slowness, h, tol):
    """Zhao's fast sweeping for the eikonal equation: four orders in turn until no value changes by more than a
    tolerance.

    Source: H. Zhao, "A fast sweeping method for Eikonal equations", Math. Comp. 74 (2005).
    Uses: while around four nests with both loops in either direction, a helper function, math.sqrt, edges by
      conditions.
    """
    n, m = T.shape
    change = 2 * tol
    rounds = 0
    while change > tol:
        change = 0.0
        for i in range(n):
            for j in range(m):
                new = arrival(T, slowness, i, j, n, m, h)
                change = max(change, T[i, j] - new)
                T[i, j] = new
        for i in range(n - 1, -1, -1):
            for j in range(m):
                new = arrival(T, slowness, i, j, n, m, h)
                change = max(change, T[i, j] - new)
                T[i, j] = new
        for i in range(n - 1, -1, -1):
            for j in range(m - 1, -1, -1):
                new = arrival(T, slowness, i, j, n, m, h)
                change = max(change, T[i, j] - new)
                T[i, j] = new
        for i in range(n):
            for j in range(m - 1, -1, -1):
                new = arrival(T, slowness, i, j, n, m, h)
                change = max(change, T[i, j] - new)
                T[i, j] = new
        rounds += 1
    return rounds


def arrival(T, slowness, i, j, n, m, h):
    if i == 0:
        a = T[i + 1, j]
    elif i == n - 1:
        a = T[i - 1, j]
    else:
        a = min(T[i - 1, j], T[i + 1, j])
    if j == 0:
        b = T[i, j + 1]
    elif j == m - 1:
        b = T[i, j - 1]
    else:
        b = min(T[i, j - 1], T[i, j + 1])
    s = slowness[i, j] * h
    if abs(a - b) >= s:
        new = min(a, b) + s
    else:
        new = 0.5 * (a + b + math.sqrt(2 * s * s - (a - b) ** 2))
    return min(T[i, j], new)


@fast_sweeping.problem
def fast_sweeping_problem(n: int = 20) -> dict[str, Any]:
    T = np.full((n, n + 3), 1000.0)
    T[n // 3, n // 4] = 0.0
    slowness = 1.0 + np.random.default_rng(21).random(T.shape)
    return {"T": T, "slowness": slowness, "h": 1.0, "tol": 1e-9}


@lw.nest
def signed_sweeps(d, frozen, h, rounds):
    """A distance function by sweeps whose directions come from a loop over signs.

    Source: Y.-H. R. Tsai, L.-T. Cheng, S. Osher, H.-K. Zhao, SIAM J. Numer. Anal. 41 (2003), section 2.
    Uses: loops over (1, -1), ranges whose ends and step are computed, continue where a value is frozen, padded edges.
    """
    n, m = d.shape
    for r in range(rounds):
        for di in (1, -1):
            for dj in (1, -1):
                i0, i1 = (1, n - 1) if di > 0 else (n - 2, 0)
                j0, j1 = (1, m - 1) if dj > 0 else (m - 2, 0)
                for i in range(i0, i1, di):
                    for j in range(j0, j1, dj):
                        if frozen[i, j]:
                            continue
                        a = min(d[i - 1, j], d[i + 1, j])
                        b = min(d[i, j - 1], d[i, j + 1])
                        if abs(a - b) > h:
                            new = min(a, b) + h
                        else:
                            new = (a + b + np.sqrt(2 * h * h - (a - b) ** 2)) / 2
                        d[i, j] = min(d[i, j], new)


@signed_sweeps.problem
def signed_sweeps_problem(n: int = 20, rounds: int = 2) -> dict[str, Any]:
    d, frozen = np.full((n, n), 99.0), np.zeros((n, n), bool)
    frozen[5, 7], frozen[12, 14] = True, True
    d[frozen] = 0.0
    return {"d": d, "frozen": frozen, "h": 1.0, "rounds": rounds}


@lw.nest
def sn_slab(phi, sigma_t, sigma_s, q, mu, weight, dx, tol, max_iterations):
    """One-dimensional discrete ordinates: sweeps right and left along each angle, repeated until the scattering
    source stands.

    Source: E. E. Lewis, W. F. Miller, "Computational Methods of Neutron Transport" (ANS, 1993), chapter 3.
    Uses: while on an error, if on the sign of an angle around nests of opposite directions, a running scalar flux,
      accumulation.
    """
    n = len(phi)
    error = 1.0
    iteration = 0
    while error > tol and iteration < max_iterations:
        new_phi = np.zeros(n)
        for a in range(len(mu)):
            psi = 0.0
            if mu[a] > 0:
                for i in range(n):
                    source = 0.5 * (sigma_s[i] * phi[i] + q[i])
                    centre = (source + 2 * mu[a] / dx * psi) / (sigma_t[i] + 2 * mu[a] / dx)
                    psi = 2 * centre - psi
                    new_phi[i] += weight[a] * centre
            else:
                for i in reversed(range(n)):
                    source = 0.5 * (sigma_s[i] * phi[i] + q[i])
                    centre = (source - 2 * mu[a] / dx * psi) / (sigma_t[i] - 2 * mu[a] / dx)
                    psi = 2 * centre - psi
                    new_phi[i] += weight[a] * centre
        error = 0.0
        for i in range(n):
            error = max(error, abs(new_phi[i] - phi[i]) / new_phi[i])
            phi[i] = new_phi[i]
        iteration += 1
    return iteration


@sn_slab.problem
def sn_slab_problem(n: int = 40, angles: int = 4) -> dict[str, Any]:
    mu, weight = np.polynomial.legendre.leggauss(angles)
    q = np.where(np.arange(n) < n // 4, 1.0, 0.0)
    sigma = {"sigma_t": np.ones(n), "sigma_s": np.full(n, 0.5), "q": q}
    return {"phi": np.ones(n), **sigma, "mu": mu, "weight": weight, "dx": 0.1, "tol": 1e-5, "max_iterations": 100}


@lw.nest
def sn_sweep_2d(phi, sigma, source, mu, eta, weight, dx, dy):
    """Discrete ordinates in the plane: four quadrants, diamond differences, negative fluxes set to zero.

    Source: R. S. Baker, K. R. Koch, "An Sn algorithm for the massively parallel CM-200 computer", Nucl. Sci. Eng.
      128 (1998).
    Uses: directions from the signs of cosines, index reversed by arithmetic, edge fluxes carried in a scalar and a
      row, an if with fixup.
    """
    nx, ny = phi.shape
    for a in range(len(mu)):
        psi_y = np.zeros(nx)
        for jj in range(ny):
            j = jj if eta[a] > 0 else ny - 1 - jj
            psi_x = 0.0
            for ii in range(nx):
                i = ii if mu[a] > 0 else nx - 1 - ii
                cx = 2 * abs(mu[a]) / dx
                cy = 2 * abs(eta[a]) / dy
                psi = (source[i, j] + cx * psi_x + cy * psi_y[i]) / (sigma[i, j] + cx + cy)
                out_x = 2 * psi - psi_x
                out_y = 2 * psi - psi_y[i]
                if out_x < 0 or out_y < 0:
                    out_x = max(out_x, 0.0)
                    out_y = max(out_y, 0.0)
                phi[i, j] += weight[a] * psi
                psi_x = out_x
                psi_y[i] = out_y


@sn_sweep_2d.problem
def sn_sweep_2d_problem(n: int = 20) -> dict[str, Any]:
    mu, eta = np.array([0.35, -0.35, 0.35, -0.35, 0.87, -0.87]), np.array([0.87, 0.87, -0.87, -0.87, 0.35, 0.35])
    source = np.zeros((n, n + 2))
    source[: n // 3, : n // 3] = 1.0
    sigma = 0.1 + 5 * np.random.default_rng(23).random(source.shape)
    rest = {"weight": np.full(len(mu), 1 / 6), "dx": 0.2, "dy": 0.2}
    return {"phi": np.zeros_like(source), "sigma": sigma, "source": source, "mu": mu, "eta": eta, **rest}


@lw.nest
def sweep3d(phi, face_i, face_j, face_k, sigt, src, ci, cj, ck, w):
    """One octant of a three-dimensional sweep over several angles, the faces carried in arrays.

    Source: K. R. Koch, R. S. Baker, R. E. Alcouffe, Trans. ANS 65 (1992): the kernel of Sweep3D and of SNAP.
    Uses: an innermost loop over angles with an accumulator, three face arrays that lack one index each, guarded fixup.
    """
    nx, ny, nz = phi.shape
    for k in range(nz):
        for j in range(ny):
            for i in range(nx):
                total = 0.0
                for a in range(len(w)):
                    psi = src[i, j, k] + ci[a] * face_i[j, k, a] + cj[a] * face_j[i, k, a] + ck[a] * face_k[i, j, a]
                    psi = psi / (sigt[i, j, k] + ci[a] + cj[a] + ck[a])
                    face_i[j, k, a] = 2 * psi - face_i[j, k, a]
                    face_j[i, k, a] = 2 * psi - face_j[i, k, a]
                    face_k[i, j, a] = 2 * psi - face_k[i, j, a]
                    if face_i[j, k, a] < 0:
                        face_i[j, k, a] = 0.0
                    if face_j[i, k, a] < 0:
                        face_j[i, k, a] = 0.0
                    if face_k[i, j, a] < 0:
                        face_k[i, j, a] = 0.0
                    total += w[a] * psi
                phi[i, j, k] += total


@sweep3d.problem
def sweep3d_problem(n: int = 8, angles: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(24)
    faces = {name: rng.random((n, n, angles)) for name in ("face_i", "face_j", "face_k")}
    cosines = {name: 0.2 + rng.random(angles) for name in ("ci", "cj", "ck")}
    data = {"sigt": 0.5 + rng.random((n, n, n)), "src": rng.random((n, n, n)), "w": np.full(angles, 1 / angles)}
    return {"phi": np.zeros((n, n, n)), **faces, **cosines, **data}


@lw.nest
def reinitialise(phi, phi0, h, dt, steps):
    """A level set made a distance function again: Godunov's upwind gradient, chosen by the sign at the start.

    Source: M. Sussman, P. Smereka, S. Osher, "A level set approach for computing solutions to incompressible
      two-phase flow" (1994).
    Uses: max and min of one-sided differences, squares by **2, if/elif/else, a copy each step, np.sqrt.
    """
    n, m = phi.shape
    for step in range(steps):
        old = phi.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a = (old[i, j] - old[i - 1, j]) / h
                b = (old[i + 1, j] - old[i, j]) / h
                c = (old[i, j] - old[i, j - 1]) / h
                d = (old[i, j + 1] - old[i, j]) / h
                if phi0[i, j] > 0:
                    gradient = np.sqrt(
                        max(max(a, 0.0) ** 2, min(b, 0.0) ** 2) + max(max(c, 0.0) ** 2, min(d, 0.0) ** 2)
                    )
                elif phi0[i, j] < 0:
                    gradient = np.sqrt(
                        max(min(a, 0.0) ** 2, max(b, 0.0) ** 2) + max(min(c, 0.0) ** 2, max(d, 0.0) ** 2)
                    )
                else:
                    gradient = 1.0
                sign = phi0[i, j] / np.sqrt(phi0[i, j] ** 2 + h**2)
                phi[i, j] = old[i, j] - dt * sign * (gradient - 1.0)


@reinitialise.problem
def reinitialise_problem(n: int = 20, steps: int = 5) -> dict[str, Any]:
    x, y = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
    phi = (x**2 + y**2 - 0.3) * (1 + x)
    return {"phi": phi, "phi0": phi.copy(), "h": 2 / (n - 1), "dt": 1 / (n - 1), "steps": steps}


@lw.nest
def fill_depressions(water, ground, eps):
    """Terrain filled so that every cell drains: scans in alternating directions until nothing changes.

    Source: O. Planchon, F. Darboux, "A fast, simple and versatile algorithm to fill the depressions of DEMs",
      Catena 46 (2002).
    Uses: while on a flag set inside the nest, eight neighbours by two inner loops, nested ifs, two scan directions.
    """
    n, m = ground.shape
    changed = True
    while changed:
        changed = False
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if water[i, j] > ground[i, j]:
                    for di in (-1, 0, 1):
                        for dj in (-1, 0, 1):
                            level = water[i + di, j + dj] + eps
                            if ground[i, j] >= level:
                                water[i, j] = ground[i, j]
                                changed = True
                            elif water[i, j] > level:
                                water[i, j] = level
                                changed = True
        for i in range(n - 2, 0, -1):
            for j in range(m - 2, 0, -1):
                if water[i, j] > ground[i, j]:
                    for di in (-1, 0, 1):
                        for dj in (-1, 0, 1):
                            level = water[i + di, j + dj] + eps
                            if ground[i, j] >= level:
                                water[i, j] = ground[i, j]
                                changed = True
                            elif water[i, j] > level:
                                water[i, j] = level
                                changed = True


@fill_depressions.problem
def fill_depressions_problem(n: int = 18) -> dict[str, Any]:
    ground = np.random.default_rng(25).random((n, n))
    water = np.full_like(ground, 10.0)
    water[0], water[-1], water[:, 0], water[:, -1] = ground[0], ground[-1], ground[:, 0], ground[:, -1]
    return {"water": water, "ground": ground, "eps": 1e-4}
