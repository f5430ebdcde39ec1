"""Time stepping of diffusion and of systems of ordinary equations: explicit, implicit, alternating directions."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


@lw.nest
def heat_1d(u, nt, nu, dx, dt):
    """Forward in time, centred in space, the old values copied each step.

    Source: L. A. Barba, G. F. Forsyth, "CFD Python: the 12 steps to Navier-Stokes", JOSE 2(16) (2018), step 3.
    Uses: a copy of the array in every step, dx**2.
    """
    nx = len(u)
    for n in range(nt):
        un = u.copy()
        for i in range(1, nx - 1):
            u[i] = un[i] + nu * dt / dx**2 * (un[i + 1] - 2 * un[i] + un[i - 1])


@heat_1d.problem
def heat_1d_problem(nx: int = 101, nt: int = 60) -> dict[str, Any]:
    u = np.ones(nx)
    u[20:45] = 2.0
    dx = 2 / (nx - 1)
    return {"u": u, "nt": nt, "nu": 0.3, "dx": dx, "dt": 0.2 * dx**2 / 0.3}


@lw.nest
def heat_periodic(u, v, alpha, steps):
    """Explicit diffusion on a torus, indices wrapped with %, two arrays swapped.

    Source: J. C. Strikwerda, "Finite Difference Schemes and Partial Differential Equations" (SIAM, 2004), section 6.3.
    Uses: (i + 1) % n and (i - 1) % n along both axes, swap, the newest array returned.
    """
    nx, ny = u.shape
    for step in range(steps):
        for i in range(nx):
            for j in range(ny):
                laplacian = (
                    u[(i - 1) % nx, j] + u[(i + 1) % nx, j] + u[i, (j - 1) % ny] + u[i, (j + 1) % ny] - 4.0 * u[i, j]
                )
                v[i, j] = u[i, j] + alpha * laplacian
        u, v = v, u
    return u


@heat_periodic.problem
def heat_periodic_problem(n: int = 20, steps: int = 15) -> dict[str, Any]:
    u = np.random.default_rng(3).random((n, n + 3))
    return {"u": u, "v": np.zeros_like(u), "alpha": 0.2, "steps": steps}


@lw.nest
def heat_3d(A, B, tsteps):
    """The heat equation in three dimensions, from A to B and back in every step.

    Source: L.-N. Pouchet, PolyBench/C 4.2, stencils/heat-3d; in Python: github.com/UDC-GAC/polybench-python.
    Uses: two nests of three loops in sequence under a time loop.
    """
    n = A.shape[0]
    for t in range(1, tsteps + 1):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * A[i, j, k] + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * A[i, j, k] + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * A[i, j, k] + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * B[i, j, k] + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * B[i, j, k] + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * B[i, j, k] + B[i, j, k - 1])
                        + B[i, j, k]
                    )


@heat_3d.problem
def heat_3d_problem(n: int = 11, tsteps: int = 5) -> dict[str, Any]:
    A = np.fromfunction(lambda i, j, k: (i + j + (n - k)) * 10 / n, (n, n, n))
    return {"A": A, "B": A.copy(), "tsteps": tsteps}


@lw.nest
def seidel_2d(A, tsteps):
    """Nine-point Gauss-Seidel.

    Source: L.-N. Pouchet, PolyBench/C 4.2, stencils/seidel-2d; in Python: github.com/UDC-GAC/polybench-python.
    Uses: one nest, in place.
    """
    n = A.shape[0]
    for t in range(0, tsteps - 1 + 1):
        for i in range(1, n - 2 + 1):
            for j in range(1, n - 2 + 1):
                A[i, j] = (
                    A[i - 1, j - 1]
                    + A[i - 1, j]
                    + A[i - 1, j + 1]
                    + A[i, j - 1]
                    + A[i, j]
                    + A[i, j + 1]
                    + A[i + 1, j - 1]
                    + A[i + 1, j]
                    + A[i + 1, j + 1]
                ) / 9.0


@seidel_2d.problem
def seidel_2d_problem(n: int = 24, tsteps: int = 8) -> dict[str, Any]:
    return {"A": np.fromfunction(lambda i, j: (i * (j + 2) + 2) / n, (n, n)), "tsteps": tsteps}


@lw.nest
def heat_time_levels(u, alpha, steps):
    """The heat equation with two time levels in one array, the level chosen by t % 2.

    Source: U. Bondhugula et al., "A practical automatic polyhedral parallelizer and locality optimizer", PLDI 2008:
      heat-2d.
    Uses: an index t % 2 and (t + 1) % 2 along the first axis.
    """
    for t in range(steps):
        for i in range(1, u.shape[1] - 1):
            for j in range(1, u.shape[2] - 1):
                u[(t + 1) % 2, i, j] = u[t % 2, i, j] + alpha * (
                    u[t % 2, i + 1, j]
                    + u[t % 2, i - 1, j]
                    + u[t % 2, i, j + 1]
                    + u[t % 2, i, j - 1]
                    - 4.0 * u[t % 2, i, j]
                )


@heat_time_levels.problem
def heat_time_levels_problem(n: int = 24, steps: int = 15) -> dict[str, Any]:
    first = np.random.default_rng(8).random((n, n))
    return {"u": np.stack([first, first]), "alpha": 0.2, "steps": steps}


@lw.nest
def crank_nicolson(u, r, steps):
    """Crank-Nicolson in one dimension: a tridiagonal system solved by Thomas's algorithm in every step.

    Source: W. H. Press et al., "Numerical Recipes" (Cambridge, 2007), sections 20.2 and 2.4.
    Uses: forward elimination and back substitution inside a time loop, work arrays, scalars between nests, a
      boundary row.
    """
    n = u.shape[0]
    c = np.zeros(n)
    d = np.zeros(n)
    for step in range(steps):
        c[1] = -0.5 * r / (1 + r)
        d[1] = (0.5 * r * u[0] + (1 - r) * u[1] + 0.5 * r * u[2] + 0.5 * r * u[0]) / (1 + r)
        for i in range(2, n - 1):
            rhs = 0.5 * r * u[i - 1] + (1 - r) * u[i] + 0.5 * r * u[i + 1]
            if i == n - 2:
                rhs += 0.5 * r * u[n - 1]
            denominator = 1 + r + 0.5 * r * c[i - 1]
            c[i] = -0.5 * r / denominator
            d[i] = (rhs + 0.5 * r * d[i - 1]) / denominator
        u[n - 2] = d[n - 2]
        for i in range(n - 3, 0, -1):
            u[i] = d[i] - c[i] * u[i + 1]


@crank_nicolson.problem
def crank_nicolson_problem(n: int = 80, steps: int = 25) -> dict[str, Any]:
    u = np.sin(np.linspace(0.0, 3 * np.pi, n)) + 1.0
    return {"u": u, "r": 0.9, "steps": steps}


@lw.nest
def adi(u, r, steps):
    """Peaceman and Rachford's alternating directions: rows implicitly in the first half step, columns in the second.

    Source: D. W. Peaceman, H. H. Rachford, "The numerical solution of parabolic and elliptic equations", J. SIAM 3
      (1955).
    Uses: Thomas's algorithm along rows, then along columns, recurrences both ways, four nests under a time loop.
    """
    n, m = u.shape
    v = u.copy()
    c = np.zeros((n, m))
    d = np.zeros((n, m))
    for step in range(steps):
        for i in range(1, n - 1):
            d[i, 0] = u[i, 0]
            for j in range(1, m - 1):
                rhs = r * u[i - 1, j] + (1 - 2 * r) * u[i, j] + r * u[i + 1, j]
                denominator = 1 + 2 * r - r * c[i, j - 1]
                c[i, j] = r / denominator
                d[i, j] = (rhs + r * d[i, j - 1]) / denominator
            for j in range(m - 2, 0, -1):
                v[i, j] = d[i, j] + c[i, j] * v[i, j + 1]
        for j in range(1, m - 1):
            c[0, j] = 0.0
            d[0, j] = v[0, j]
            for i in range(1, n - 1):
                rhs = r * v[i, j - 1] + (1 - 2 * r) * v[i, j] + r * v[i, j + 1]
                denominator = 1 + 2 * r - r * c[i - 1, j]
                c[i, j] = r / denominator
                d[i, j] = (rhs + r * d[i - 1, j]) / denominator
            for i in range(n - 2, 0, -1):
                u[i, j] = d[i, j] + c[i, j] * u[i + 1, j]


@adi.problem
def adi_problem(n: int = 22, steps: int = 6) -> dict[str, Any]:
    u = np.random.default_rng(4).random((n, n + 2))
    return {"u": u, "r": 0.7, "steps": steps}


@lw.nest
def variable_coefficient(u, un, k, dt, dx, steps):
    """Diffusion with a conductivity that varies: harmonic means on the faces, u[i][j], insulated edges.

    Source: S. V. Patankar, "Numerical Heat Transfer and Fluid Flow" (1980), section 4.2-3.
    Uses: a helper function, conditional expressions at the edges, u[i][j], swap.
    """
    nx = len(u)
    ny = len(u[0])
    for step in range(steps):
        for i in range(nx):
            for j in range(ny):
                west = harmonic(k[i][j], k[i - 1][j]) * (u[i - 1][j] - u[i][j]) if i > 0 else 0.0
                east = harmonic(k[i][j], k[i + 1][j]) * (u[i + 1][j] - u[i][j]) if i < nx - 1 else 0.0
                south = harmonic(k[i][j], k[i][j - 1]) * (u[i][j - 1] - u[i][j]) if j > 0 else 0.0
                north = harmonic(k[i][j], k[i][j + 1]) * (u[i][j + 1] - u[i][j]) if j < ny - 1 else 0.0
                un[i][j] = u[i][j] + dt / dx**2 * (west + east + south + north)
        u, un = un, u


def harmonic(a, b):
    return 2 * a * b / (a + b)


@variable_coefficient.problem
def variable_coefficient_problem(n: int = 18, steps: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(6)
    u = rng.random((n, n))
    return {"u": u, "un": u.copy(), "k": 0.1 + rng.random((n, n)), "dt": 0.15, "dx": 1.0, "steps": steps}


@lw.nest
def dufort_frankel(before, now, after, r, steps):
    """The three-level scheme of Du Fort and Frankel, its arrays rotated.

    Source: E. C. Du Fort, S. P. Frankel, "Stability conditions in the numerical treatment of parabolic equations",
      MTAC 7 (1953).
    Uses: three arrays rotated by a tuple assignment, the newest returned.
    """
    n = now.size
    for step in range(steps):
        for i in range(1, n - 1):
            after[i] = ((1 - 2 * r) * before[i] + 2 * r * (now[i - 1] + now[i + 1])) / (1 + 2 * r)
        before, now, after = now, after, before
    return now


@dufort_frankel.problem
def dufort_frankel_problem(n: int = 120, steps: int = 30) -> dict[str, Any]:
    u = np.where(np.arange(n) < n // 3, 1.0, 0.0)
    return {"before": u, "now": u.copy(), "after": u.copy(), "r": 0.8, "steps": steps}


@lw.nest
def backward_euler(u, alpha, tol, steps):
    """Implicit Euler in two dimensions: Gauss-Seidel until converged inside every step.

    Source: J. D. Hoffman, "Numerical Methods for Engineers and Scientists" (2001), chapter 10.
    Uses: while inside a time loop, a copy of the array each step, counts of sweeps in an array.
    """
    n, m = u.shape
    sweeps = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        old = u.copy()
        change = 1.0
        while change > tol:
            change = 0.0
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    new = (old[i, j] + alpha * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])) / (
                        1 + 4 * alpha
                    )
                    change = max(change, abs(new - u[i, j]))
                    u[i, j] = new
            sweeps[step] += 1
    return sweeps


@backward_euler.problem
def backward_euler_problem(n: int = 16, steps: int = 4) -> dict[str, Any]:
    return {"u": np.random.default_rng(9).random((n, n)), "alpha": 1.5, "tol": 1e-4, "steps": steps}


@lw.nest
def lorenz_96(x, forcing, dt, steps):
    """Lorenz's model of 1996 on a ring, by the classical Runge-Kutta method; a trajectory is kept.

    Source: E. N. Lorenz, "Predictability: a problem partly solved", ECMWF seminar (1996).
    Uses: (i - 2) % n and (i + 1) % n, four stages by calls of a helper with arrays, a trajectory written row by row.
    """
    n = x.shape[0]
    trajectory = np.zeros((steps + 1, n))
    trajectory[0] = x
    for t in range(steps):
        k1 = tendency(x, forcing)
        k2 = tendency(x + 0.5 * dt * k1, forcing)
        k3 = tendency(x + 0.5 * dt * k2, forcing)
        k4 = tendency(x + dt * k3, forcing)
        for i in range(n):
            x[i] += dt / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
        trajectory[t + 1] = x
    return trajectory


def tendency(x, forcing):
    n = len(x)
    d = np.zeros(n)
    for i in range(n):
        d[i] = (x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + forcing
    return d


@lorenz_96.problem
def lorenz_96_problem(n: int = 36, steps: int = 20) -> dict[str, Any]:
    x = np.full(n, 8.0)
    x[n // 2] += 0.01
    return {"x": x, "forcing": 8.0, "dt": 0.05, "steps": steps}


@lw.nest
def heat_space_time(u, r):
    """The explicit scheme with all of its history: row n + 1 of the table from row n.

    Source: G. D. Smith, "Numerical Solution of Partial Differential Equations" (Oxford, 1985), chapter 2.
    Uses: one nest over a table of time by space, three neighbours in the row before.
    """
    for n in range(u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[n + 1, j] = u[n, j] + r * (u[n, j - 1] - 2 * u[n, j] + u[n, j + 1])


@heat_space_time.problem
def heat_space_time_problem(steps: int = 50, n: int = 60) -> dict[str, Any]:
    u = np.zeros((steps, n))
    u[0] = np.minimum(np.arange(n), np.arange(n)[::-1])
    return {"u": u, "r": 0.45}
