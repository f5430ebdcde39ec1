"""Relaxation methods for elliptic equations: Jacobi, Gauss-Seidel, SOR, SSOR, red-black, by lines and by blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


def plate(n: int) -> np.ndarray:
    u = np.zeros((n, n))
    u[0] = 100.0
    u[:, -1] = 25.0
    return u


@lw.nest
def jacobi(u, f, h, tol, max_iterations):
    """Jacobi's method for Poisson's equation, two arrays swapped until nothing moves by more than a tolerance.

    Source: Y. Saad, "Iterative Methods for Sparse Linear Systems" (2003), section 4.1.
    Uses: while on a residual and a count, swap, copy, max reduction, an array and a scalar returned.
    """
    n, m = u.shape
    v = u.copy()
    residual = 2.0 * tol
    iterations = 0
    while residual > tol and iterations < max_iterations:
        residual = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h * h * f[i, j])
                residual = max(residual, abs(v[i, j] - u[i, j]))
        u, v = v, u
        iterations += 1
    return u, iterations


@jacobi.problem
def jacobi_problem(n: int = 20) -> dict[str, Any]:
    x = np.linspace(0.0, 1.0, n)
    return {"u": plate(n), "f": np.outer(x, 1.0 - x), "h": 1.0 / (n - 1), "tol": 0.2, "max_iterations": 200}


@lw.nest
def jacobi_2d(A, B, tsteps):
    """Five-point smoothing from A to B and back, two nests a step.

    Source: L.-N. Pouchet, PolyBench/C 4.2, stencils/jacobi-2d; in Python: github.com/UDC-GAC/polybench-python.
    Uses: two nests in sequence under a time loop.
    """
    n = A.shape[0]
    for t in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


@jacobi_2d.problem
def jacobi_2d_problem(n: int = 24, tsteps: int = 12) -> dict[str, Any]:
    A = np.fromfunction(lambda i, j: (i * (j + 2) + 2) / n, (n, n))
    return {"A": A, "B": A.copy(), "tsteps": tsteps}


@lw.nest
def gauss_seidel(u, tol, max_iterations):
    """Gauss-Seidel for Laplace's equation, left as soon as a sweep changes nothing by more than a tolerance.

    Source: R. Barrett et al., "Templates for the Solution of Linear Systems" (SIAM, 1994), section 2.2.2.
    Uses: break out of the sweep loop, a maximum kept by if, the old value in a temporary.
    """
    for iteration in range(max_iterations):
        delta = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                old = u[i, j]
                u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4
                if abs(u[i, j] - old) > delta:
                    delta = abs(u[i, j] - old)
        if delta < tol:
            break
    return delta


@gauss_seidel.problem
def gauss_seidel_problem(n: int = 20) -> dict[str, Any]:
    return {"u": plate(n), "tol": 0.5, "max_iterations": 100}


@lw.nest
def red_black(u, f, h, omega, sweeps):
    """Red-black SOR: all red points, then all black ones, chosen by a test.

    Source: W. L. Briggs, V. E. Henson, S. F. McCormick, "A Multigrid Tutorial" (SIAM, 2000), chapter 2.
    Uses: a loop over colours, a guard with %, a guarded update in place.
    """
    for sweep in range(sweeps):
        for colour in range(2):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    if (i + j) % 2 == colour:
                        gs = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h**2 * f[i, j])
                        u[i, j] += omega * (gs - u[i, j])


@red_black.problem
def red_black_problem(n: int = 24, sweeps: int = 12) -> dict[str, Any]:
    return {"u": plate(n), "f": np.ones((n, n)), "h": 1.0 / (n - 1), "omega": 1.6, "sweeps": sweeps}


@lw.nest
def sor_chebyshev(u, a, b, c, d, e, f, rjac, eps, maxits):
    """SOR with Chebyshev acceleration: every other point a half sweep, omega changed after each.

    Source: W. H. Press et al., "Numerical Recipes" (Cambridge, 1992), section 19.5, routine sor.
    Uses: loops of step 2 that begin at an offset by parity, scalars computed between nests, a float sum that ends
      the loop,
    two float sums, return from inside a loop.
    """
    n = u.shape[0]
    anormf = 0.0
    for j in range(1, n - 1):
        for l in range(1, n - 1):  # noqa: E741
            anormf += abs(f[j, l])
    omega = 1.0
    for it in range(maxits):
        anorm = 0.0
        jsw = 1
        for half in range(2):
            lsw = jsw
            for j in range(1, n - 1):
                for l in range(lsw, n - 1, 2):  # noqa: E741
                    resid = (
                        a[j, l] * u[j + 1, l]
                        + b[j, l] * u[j - 1, l]
                        + c[j, l] * u[j, l + 1]
                        + d[j, l] * u[j, l - 1]
                        + e[j, l] * u[j, l]
                        - f[j, l]
                    )
                    anorm += abs(resid)
                    u[j, l] -= omega * resid / e[j, l]
                lsw = 3 - lsw
            jsw = 3 - jsw
            if it == 0 and half == 0:
                omega = 1.0 / (1.0 - 0.5 * rjac * rjac)
            else:
                omega = 1.0 / (1.0 - 0.25 * rjac * rjac * omega)
        if anorm < eps * anormf:
            return it
    return maxits


@sor_chebyshev.problem
def sor_chebyshev_problem(n: int = 17) -> dict[str, Any]:
    one = np.ones((n, n))
    f = np.zeros((n, n))
    f[n // 2, n // 2] = 2.0
    rest = {"e": -4.0 * one, "f": f, "rjac": float(np.cos(np.pi / n)), "eps": 1e-5, "maxits": 100}
    return {"u": np.zeros((n, n)), "a": one, "b": one.copy(), "c": one.copy(), "d": one.copy(), **rest}


@lw.nest
def ssor(u, f, h, omega, iterations):
    """Symmetric SOR: a forward sweep over the grid, then a backward one.

    Source: Y. Saad, "Iterative Methods for Sparse Linear Systems" (2003), section 4.1.
    Uses: two nests of opposite directions under an iteration loop, h**2.
    """
    n, m = u.shape
    for k in range(iterations):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h**2 * f[i, j])
                u[i, j] = (1 - omega) * u[i, j] + omega * new
        for i in range(n - 2, 0, -1):
            for j in range(m - 2, 0, -1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + h**2 * f[i, j])
                u[i, j] = (1 - omega) * u[i, j] + omega * new


@ssor.problem
def ssor_problem(n: int = 24, iterations: int = 12) -> dict[str, Any]:
    return {"u": plate(n), "f": np.ones((n, n)), "h": 1.0 / (n - 1), "omega": 1.5, "iterations": iterations}


@lw.nest
def zebra_line_relaxation(u, f, h, eps, sweeps):
    """Zebra line relaxation of an anisotropic Poisson equation: each odd line by Thomas's algorithm, then each even
    one.

    Source: U. Trottenberg, C. W. Oosterlee, A. Schüller, "Multigrid" (Academic Press, 2001), section 5.1.
    Uses: work arrays made inside, a recurrence forward and back inside each line, lines of step 2.
    """
    n, m = u.shape
    c = np.zeros(m)
    d = np.zeros(m)
    diagonal = 2.0 + 2.0 * eps
    for sweep in range(sweeps):
        for first in (1, 2):
            for i in range(first, n - 1, 2):
                c[0] = 0.0
                d[0] = u[i, 0]
                for j in range(1, m - 1):
                    rhs = eps * (u[i - 1, j] + u[i + 1, j]) + h * h * f[i, j]
                    pivot = diagonal - c[j - 1]
                    c[j] = 1.0 / pivot
                    d[j] = (rhs + d[j - 1]) / pivot
                for j in range(m - 2, 0, -1):
                    u[i, j] = d[j] + c[j] * u[i, j + 1]


@zebra_line_relaxation.problem
def zebra_problem(n: int = 24, sweeps: int = 10) -> dict[str, Any]:
    return {"u": plate(n), "f": np.ones((n, n)), "h": 1.0 / (n - 1), "eps": 0.1, "sweeps": sweeps}


@lw.nest
def mehrstellen(u, f, h, sweeps):
    """The compact nine-point scheme of fourth order for Poisson's equation, relaxed by Gauss-Seidel.

    Source: L. Collatz, "The Numerical Treatment of Differential Equations" (Springer, 1960), chapter V.
    Uses: a right-hand side computed in a nest of its own, then sweeps; neighbours in rows of their own names.
    """
    n, m = u.shape
    rhs = np.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            rhs[i, j] = h**2 / 2 * (8 * f[i, j] + f[i - 1, j] + f[i + 1, j] + f[i, j - 1] + f[i, j + 1])
    for sweep in range(sweeps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                edges = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                corners = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
                u[i, j] = (4 * edges + corners + rhs[i, j]) / 20


@mehrstellen.problem
def mehrstellen_problem(n: int = 24, sweeps: int = 12) -> dict[str, Any]:
    x = np.linspace(0.0, np.pi, n)
    return {"u": np.zeros((n, n)), "f": 2 * np.outer(np.sin(x), np.sin(x)), "h": x[1] - x[0], "sweeps": sweeps}


@lw.nest
def obstacle(u, psi, h, load, omega, tol):
    """An elastic membrane above an obstacle: projected SOR until the largest change is small; counts the contact
    points.

    Source: R. Glowinski, "Numerical Methods for Nonlinear Variational Problems" (Springer, 1984), chapter V.
    Uses: while True with break, np.maximum of two scalars, a count by if, u[i][j].
    """
    n = len(u)
    iterations = 0
    while True:
        error = 0.0
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                gs = (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] - h * h * load) / 4.0
                new = np.maximum(psi[i][j], u[i][j] + omega * (gs - u[i][j]))
                error = max(error, abs(new - u[i][j]))
                u[i][j] = new
        iterations += 1
        if error < tol or iterations >= 200:
            break
    contact = 0
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            if u[i][j] == psi[i][j]:
                contact += 1
    return iterations, contact


@obstacle.problem
def obstacle_problem(n: int = 20) -> dict[str, Any]:
    x = np.linspace(-1.0, 1.0, n)
    psi = 0.5 - 2.0 * (x[:, None] ** 2 + x**2)
    u = np.maximum(psi, 0.0)
    return {"u": u, "psi": psi, "h": 2.0 / (n - 1), "load": 1.0, "omega": 1.6, "tol": 1e-3}


@lw.nest
def gauss_seidel_27(u, f, w, sweeps):
    """Gauss-Seidel with a 27-point stencil whose weights depend on how many indices differ.

    Source: J. Dongarra, M. A. Heroux, P. Luszczek, "High-performance conjugate-gradient benchmark", IJHPCA 30 (2016).
    Uses: three inner loops over offsets, continue, an accumulator, a table of weights looked up.
    """
    nx, ny, nz = u.shape
    for sweep in range(sweeps):
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(1, nz - 1):
                    total = f[i, j, k]
                    for di in range(-1, 2):
                        for dj in range(-1, 2):
                            for dk in range(-1, 2):
                                if di == 0 and dj == 0 and dk == 0:
                                    continue
                                total += w[abs(di) + abs(dj) + abs(dk)] * u[i + di, j + dj, k + dk]
                    u[i, j, k] = total / w[0]


@gauss_seidel_27.problem
def gauss_seidel_27_problem(n: int = 9, sweeps: int = 3) -> dict[str, Any]:
    f = np.random.default_rng(2).random((n, n, n))
    return {"u": np.zeros((n, n, n)), "f": f, "w": np.array([26.0, 1.5, 1.0, 0.5]), "sweeps": sweeps}


@lw.nest
def block_ssor(v, ld, d, ud):
    """Five coupled unknowns in each cell: a block lower triangular solve forward, an upper one backward.

    Source: D. Bailey et al., "The NAS Parallel Benchmarks" (NASA RNR-94-007), LU: routines blts and buts, in two
      dimensions.
    Uses: 5 x 5 matrix-vector products in each cell by inner loops, a fourth axis of components, opposite directions.
    """
    nx, ny, components = v.shape
    for i in range(1, nx):
        for j in range(1, ny):
            for m in range(components):
                s = 0.0
                for n in range(components):
                    s += ld[m, n] * (v[i - 1, j, n] + v[i, j - 1, n])
                v[i, j, m] -= s
            for m in range(components):
                v[i, j, m] /= d[i, j]
    for i in range(nx - 2, -1, -1):
        for j in range(ny - 2, -1, -1):
            for m in range(components):
                s = 0.0
                for n in range(components):
                    s += ud[m, n] * (v[i + 1, j, n] + v[i, j + 1, n])
                v[i, j, m] -= s / d[i, j]


@block_ssor.problem
def block_ssor_problem(n: int = 14, components: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    ld, ud = 0.1 * rng.random((2, components, components))
    return {"v": rng.random((n, n + 2, components)), "ld": ld, "d": 1.0 + rng.random((n, n + 2)), "ud": ud}


@lw.nest
def sor_3d(u, f, h, omega, sweeps):
    """SOR for Poisson's equation in a box, one nest.

    Source: D. M. Young, "Iterative Solution of Large Linear Systems" (1971), chapter 4.
    Uses: one nest of four loops, h**2, an augmented assignment.
    """
    nx, ny, nz = u.shape
    for sweep in range(sweeps):
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(1, nz - 1):
                    r = (
                        u[i - 1, j, k]
                        + u[i + 1, j, k]
                        + u[i, j - 1, k]
                        + u[i, j + 1, k]
                        + u[i, j, k - 1]
                        + u[i, j, k + 1]
                    )
                    u[i, j, k] += omega * ((r - h**2 * f[i, j, k]) / 6 - u[i, j, k])


@sor_3d.problem
def sor_3d_problem(n: int = 11, sweeps: int = 4) -> dict[str, Any]:
    f = np.random.default_rng(7).random((n, n, n))
    return {"u": np.zeros_like(f), "f": f, "h": 1 / (n - 1), "omega": 1.5, "sweeps": sweeps}
