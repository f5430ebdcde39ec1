"""Linear algebra: factorisations, triangular solves, conjugate gradients, scans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


def dominant(n: int, seed: int) -> np.ndarray:
    a = np.random.default_rng(seed).random((n, n))
    return a + n * np.eye(n)


@lw.nest
def lu(A):
    """LU factorisation in place without pivoting, the order of loops as in Gaussian elimination.

    Source: G. H. Golub, C. F. Van Loan, "Matrix Computations" (2013), algorithm 3.2.1.
    Uses: triangular bounds, two nests in each step of an elimination, a row read that the step before wrote.
    """
    n = A.shape[0]
    for k in range(n - 1):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


@lu.problem
def lu_problem(n: int = 24) -> dict[str, Any]:
    return {"A": dominant(n, 31)}


@lw.nest
def lu_pivoting(A, pivot):
    """LU factorisation with partial pivoting: the largest element of a column by a loop, rows swapped by a loop.

    Source: G. H. Golub, C. F. Van Loan, "Matrix Computations" (2013), algorithm 3.4.1.
    Uses: argmax by if with two variables, a guarded swap of rows at an index found at run time, a sign returned.
    """
    n = A.shape[0]
    sign = 1
    for k in range(n - 1):
        p = k
        largest = abs(A[k, k])
        for i in range(k + 1, n):
            if abs(A[i, k]) > largest:
                largest = abs(A[i, k])
                p = i
        pivot[k] = p
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            sign = -sign
        for i in range(k + 1, n):
            A[i, k] = A[i, k] / A[k, k]
            for j in range(k + 1, n):
                A[i, j] = A[i, j] - A[i, k] * A[k, j]
    return sign


@lu_pivoting.problem
def lu_pivoting_problem(n: int = 22) -> dict[str, Any]:
    return {"A": np.random.default_rng(32).random((n, n)), "pivot": np.zeros(n - 1, dtype=int)}


@lw.nest
def cholesky(A):
    """Cholesky factorisation in place, row by row.

    Source: L.-N. Pouchet, PolyBench/C 4.2, linear-algebra/solvers/cholesky; in Python:
      github.com/UDC-GAC/polybench-python.
    Uses: inner loops of triangular bounds, statements of different depth, np.sqrt of a diagonal element.
    """
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])


@cholesky.problem
def cholesky_problem(n: int = 24) -> dict[str, Any]:
    B = np.random.default_rng(33).random((n, n))
    return {"A": B @ B.T + n * np.eye(n)}


@lw.nest
def solve_triangular(L, U, b, x, y):
    """Forward substitution with a unit lower triangle, back substitution with an upper one.

    Source: W. H. Press et al., "Numerical Recipes" (Cambridge, 2007), section 2.3.
    Uses: an accumulator inside each row, opposite directions, whole prefixes of an array read.
    """
    n = len(b)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * y[j]
        y[i] = s
    for i in range(n - 1, -1, -1):
        s = y[i]
        for j in range(i + 1, n):
            s -= U[i, j] * x[j]
        x[i] = s / U[i, i]
    return x


@solve_triangular.problem
def solve_triangular_problem(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(34)
    L, U = np.tril(rng.random((n, n)), -1) / n, np.triu(dominant(n, 35))
    return {"L": L, "U": U, "b": rng.random(n), "x": np.zeros(n), "y": np.zeros(n)}


@lw.nest
def ilu0(a, s, w, c, e, n):
    """Incomplete LU of the five-point matrix: only the diagonal changes; then one preconditioner solve, forward and
    backward.

    Source: Y. Saad, "Iterative Methods for Sparse Linear Systems" (2003), section 10.3.
    Uses: guards at the first row and column instead of bounds, a factorisation and two opposite solves in sequence.
    """
    m = a.shape[1]
    z = c.copy()
    for i in range(n):
        for j in range(m):
            if i > 0:
                a[i, j] -= s[i, j] * s[i - 1, j] / a[i - 1, j]
            if j > 0:
                a[i, j] -= w[i, j] * w[i, j - 1] / a[i, j - 1]
    for i in range(n):
        for j in range(m):
            if i > 0:
                z[i, j] -= s[i, j] / a[i - 1, j] * z[i - 1, j]
            if j > 0:
                z[i, j] -= w[i, j] / a[i, j - 1] * z[i, j - 1]
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            if i < n - 1:
                z[i, j] -= s[i, j] * z[i + 1, j]
            if j < m - 1:
                z[i, j] -= w[i, j] * z[i, j + 1]
            z[i, j] /= a[i, j]
            e = max(e, abs(z[i, j]))
    return z, e


@ilu0.problem
def ilu0_problem(n: int = 20) -> dict[str, Any]:
    rng = np.random.default_rng(36)
    shape = (n, n + 2)
    off = {"s": -1 - 0.1 * rng.random(shape), "w": -1 - 0.1 * rng.random(shape)}
    return {"a": np.full(shape, 4.5), **off, "c": rng.random(shape), "e": 0.0, "n": n}


@lw.nest
def conjugate_gradient(x, b, tol, max_iterations):
    """Conjugate gradients for the five-point Laplacian, without a matrix.

    Source: J. R. Shewchuk, "An introduction to the conjugate gradient method without the agonizing pain" (1994),
      appendix B2.
    Uses: float sums that steer all that follows, scalars between nests, while on a residual, four nests an iteration.
    """
    n, m = x.shape
    r = np.zeros_like(x)
    p = np.zeros_like(x)
    q = np.zeros_like(x)
    rho = 0.0
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            r[i, j] = b[i, j] - (4 * x[i, j] - x[i - 1, j] - x[i + 1, j] - x[i, j - 1] - x[i, j + 1])
            p[i, j] = r[i, j]
            rho += r[i, j] * r[i, j]
    k = 0
    while rho > tol * tol and k < max_iterations:
        pq = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                q[i, j] = 4 * p[i, j] - p[i - 1, j] - p[i + 1, j] - p[i, j - 1] - p[i, j + 1]
                pq += p[i, j] * q[i, j]
        alpha = rho / pq
        rho_new = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                x[i, j] += alpha * p[i, j]
                r[i, j] -= alpha * q[i, j]
                rho_new += r[i, j] ** 2
        beta = rho_new / rho
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                p[i, j] = r[i, j] + beta * p[i, j]
        rho = rho_new
        k += 1
    return k


@conjugate_gradient.problem
def conjugate_gradient_problem(n: int = 18) -> dict[str, Any]:
    return {"x": np.zeros((n, n)), "b": np.random.default_rng(37).random((n, n)), "tol": 1e-3, "max_iterations": 60}


@lw.nest
def thomas_batch(a, b, c, d, x):
    """Many tridiagonal systems at once, one a column.

    Source: S. D. Conte, C. de Boor, "Elementary Numerical Analysis" (1980), algorithm 4.3, for many right-hand sides.
    Uses: elimination forward in place, back substitution descending, a last row apart.
    """
    n, systems = d.shape
    for i in range(1, n):
        for s in range(systems):
            m = a[i, s] / b[i - 1, s]
            b[i, s] -= m * c[i - 1, s]
            d[i, s] -= m * d[i - 1, s]
    for s in range(systems):
        x[n - 1, s] = d[n - 1, s] / b[n - 1, s]
    for i in range(n - 2, -1, -1):
        for s in range(systems):
            x[i, s] = (d[i, s] - c[i, s] * x[i + 1, s]) / b[i, s]


@thomas_batch.problem
def thomas_batch_problem(n: int = 40, systems: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(38)
    shape = (n, systems)
    bands = {"a": -rng.random(shape), "b": 2.5 + rng.random(shape), "c": -rng.random(shape)}
    return {**bands, "d": rng.random(shape), "x": np.zeros(shape)}


@lw.nest
def gram_schmidt(A, R, Q):
    """QR by modified Gram-Schmidt, column by column.

    Source: L.-N. Pouchet, PolyBench/C 4.2, linear-algebra/solvers/gramschmidt; in Python:
      github.com/UDC-GAC/polybench-python.
    Uses: columns as the outer loop, inner sums of floats, loops of triangular bounds, np.sqrt.
    """
    m, n = A.shape
    for k in range(n):
        nrm = 0.0
        for i in range(m):
            nrm += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(nrm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0.0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] -= Q[i, k] * R[k, j]


@gram_schmidt.problem
def gram_schmidt_problem(m: int = 24, n: int = 16) -> dict[str, Any]:
    return {"A": np.random.default_rng(39).random((m, n)), "R": np.zeros((n, n)), "Q": np.zeros((m, n))}


@lw.nest
def doitgen(A, C4, total):
    """A tensor times a matrix along its last axis, each result gathered before it replaces its row.

    Source: L.-N. Pouchet, PolyBench/C 4.2, linear-algebra/kernels/doitgen; in Python:
      github.com/UDC-GAC/polybench-python.
    Uses: a matrix-vector product in each cell, a work row that is overwritten, two inner loops in sequence.
    """
    nr, nq, np_ = A.shape
    for r in range(nr):
        for q in range(nq):
            for p in range(np_):
                total[p] = 0.0
                for s in range(np_):
                    total[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = total[p]


@doitgen.problem
def doitgen_problem(n: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(40)
    return {"A": rng.random((n, n - 2, n)), "C4": rng.random((n, n)), "total": np.zeros(n)}


@lw.nest
def power_iteration(A, x, tol):
    """The largest eigenvalue in modulus by the power method, scaled by the element of largest modulus.

    Source: R. L. Burden, J. D. Faires, "Numerical Analysis" (2011), algorithm 9.1.
    Uses: while on an error, a dense matrix-vector product, argmax by if, an element at an index found at run time.
    """
    n = len(x)
    y = np.zeros(n)
    p = 0
    for i in range(n):
        if abs(x[i]) > abs(x[p]):
            p = i
    error = 1.0
    mu = 0.0
    while error > tol:
        for i in range(n):
            y[i] = 0.0
            for j in range(n):
                y[i] += A[i, j] * x[j]
        p = 0
        for i in range(1, n):
            if abs(y[i]) > abs(y[p]):
                p = i
        mu = y[p]
        error = 0.0
        for i in range(n):
            new = y[i] / mu
            error = max(error, abs(x[i] - new))
            x[i] = new
    return mu


@power_iteration.problem
def power_iteration_problem(n: int = 24) -> dict[str, Any]:
    return {"A": np.random.default_rng(41).random((n, n)), "x": np.linspace(0.1, 1.0, n), "tol": 1e-8}


@lw.nest
def compact(values, flags, offsets, packed):
    """An exclusive prefix sum of flags, then the flagged values packed to the front.

    Source: G. E. Blelloch, "Prefix sums and their applications" (CMU-CS-90-190, 1990), section 1.2.
    Uses: a running count stored before it is increased, writes at an index read from an array, a guard, a chained
      comparison.
    """
    n = len(values)
    count = 0
    for i in range(n):
        flags[i] = 1 if 0.25 < values[i] <= 0.75 else 0
        offsets[i] = count
        count += flags[i]
    for i in range(n):
        if flags[i]:
            packed[offsets[i]] = values[i]
    return count


@compact.problem
def compact_problem(n: int = 300) -> dict[str, Any]:
    values = np.random.default_rng(42).random(n)
    return {"values": values, "flags": np.zeros(n, int), "offsets": np.zeros(n, int), "packed": np.zeros(n)}


@lw.nest
def csr_gauss_seidel(data, indices, indptr, b, x, sweeps):
    """Gauss-Seidel with a sparse matrix by rows, the diagonal found while the row is summed.

    Source: R. Barrett et al., "Templates for the Solution of Linear Systems" (SIAM, 1994), section 4.3.1;
      github.com/pyamg/pyamg.
    Uses: bounds read from an array, indirect reads, if/else in an inner accumulation, symmetric sweeps by a loop
      over directions.
    """
    n = len(x)
    for sweep in range(sweeps):
        for step in (1, -1):
            rows = range(n) if step == 1 else range(n - 1, -1, -1)
            for i in rows:
                total = 0.0
                diagonal = 1.0
                for jj in range(indptr[i], indptr[i + 1]):
                    j = indices[jj]
                    if i == j:
                        diagonal = data[jj]
                    else:
                        total += data[jj] * x[j]
                x[i] = (b[i] - total) / diagonal


@csr_gauss_seidel.problem
def csr_gauss_seidel_problem(n: int = 60, sweeps: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(43)
    A = np.where(rng.random((n, n)) < 0.1, rng.random((n, n)), 0.0) + 8.0 * np.eye(n)
    rows, columns = np.nonzero(A)
    indptr = np.searchsorted(rows, np.arange(n + 1))
    rest = {"b": rng.random(n), "x": np.zeros(n), "sweeps": sweeps}
    return {"data": A[rows, columns], "indices": columns, "indptr": indptr, **rest}


@lw.nest
def jacobi_svd_sweep(U, V, tol):
    """One-sided Jacobi: columns rotated pair by pair until they are orthogonal.

    Source: G. H. Golub, C. F. Van Loan, "Matrix Computations" (2013), section 8.6.3.
    Uses: loops over pairs, three sums at once, a branch without rotation, math functions, tuple assignment of
      elements, while.
    """
    m, n = U.shape
    worst = 1.0
    sweeps = 0
    while worst > tol and sweeps < 10:
        worst = 0.0
        for p in range(n - 1):
            for q in range(p + 1, n):
                alpha, beta, gamma = 0.0, 0.0, 0.0
                for i in range(m):
                    alpha += U[i, p] ** 2
                    beta += U[i, q] ** 2
                    gamma += U[i, p] * U[i, q]
                worst = max(worst, abs(gamma) / math.sqrt(alpha * beta))
                if abs(gamma) < 1e-14:
                    continue
                zeta = (beta - alpha) / (2 * gamma)
                t = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1 + zeta * zeta))
                c = 1 / math.sqrt(1 + t * t)
                s = c * t
                for i in range(m):
                    U[i, p], U[i, q] = c * U[i, p] - s * U[i, q], s * U[i, p] + c * U[i, q]
                for i in range(n):
                    V[i, p], V[i, q] = c * V[i, p] - s * V[i, q], s * V[i, p] + c * V[i, q]
        sweeps += 1
    return sweeps


@jacobi_svd_sweep.problem
def jacobi_svd_problem(m: int = 12, n: int = 8) -> dict[str, Any]:
    return {"U": np.random.default_rng(44).random((m, n)), "V": np.eye(n), "tol": 1e-10}


@lw.nest
def matrix_product(A, B, C):
    """C += A B with the sum along the innermost loop.

    Source: G. H. Golub, C. F. Van Loan, "Matrix Computations" (2013), algorithm 1.1.5.
    Uses: one nest of three loops that accumulates in an array.
    """
    n, r = A.shape
    m = B.shape[1]
    for i in range(n):
        for j in range(m):
            for k in range(r):
                C[i, j] += A[i, k] * B[k, j]


@matrix_product.problem
def matrix_product_problem(n: int = 20) -> dict[str, Any]:
    rng = np.random.default_rng(45)
    return {"A": rng.random((n, n + 2)), "B": rng.random((n + 2, n - 3)), "C": np.zeros((n, n - 3))}


@lw.nest
def atax(A, x, y, tmp):
    """The transpose of A times A x.

    Source: L.-N. Pouchet, PolyBench/C 4.2, linear-algebra/kernels/atax; in Python: github.com/UDC-GAC/polybench-python.
    Uses: two inner loops in each row, the second adding to a whole vector.
    """
    m, n = A.shape
    for i in range(n):
        y[i] = 0
    for i in range(m):
        tmp[i] = 0.0
        for j in range(n):
            tmp[i] = tmp[i] + A[i, j] * x[j]
        for j in range(n):
            y[j] = y[j] + A[i, j] * tmp[i]


@atax.problem
def atax_problem(m: int = 40, n: int = 36) -> dict[str, Any]:
    A = np.random.default_rng(46).random((m, n))
    return {"A": A, "x": 1 + np.arange(n) / n, "y": np.ones(n), "tmp": np.zeros(m)}
