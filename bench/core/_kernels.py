"""Kernels of the literature as a user writes them, each with its arrays: a name, a nest, and arguments for a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import gauss_seidel

import lapwing as lw

RNG = np.random.default_rng(7)


@lw.nest
def levenshtein(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            c = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + c)


@lw.nest
def common_subsequence(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i - 1, j - 1] + 1 if a[i - 1] == b[j - 1] else max(d[i - 1, j], d[i, j - 1])


@lw.nest
def life(new, old):
    for i in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            n = (
                old[i - 1, j - 1] + old[i - 1, j] + old[i - 1, j + 1] + old[i, j - 1]
                + old[i, j + 1] + old[i + 1, j - 1] + old[i + 1, j] + old[i + 1, j + 1]
            )  # fmt: skip
            new[i, j] = 1 if n == 3 or (old[i, j] == 1 and n == 2) else 0


@lw.nest
def triangular_solve(x, b, west, south, below, diagonal):
    for i in range(1, x.shape[0]):
        for j in range(1, x.shape[1]):
            for k in range(1, x.shape[2]):
                rest = (
                    west[i, j, k] * x[i - 1, j, k] + south[i, j, k] * x[i, j - 1, k] + below[i, j, k] * x[i, j, k - 1]
                )
                x[i, j, k] = (b[i, j, k] - rest) * diagonal[i, j, k]


@lw.nest
def jacobi(v, u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def leap_frog(u, c):
    for t in range(1, u.shape[0] - 1):
        for i in range(1, u.shape[1] - 1):
            for j in range(1, u.shape[2] - 1):
                around = u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1] - 4.0 * u[t, i, j]
                u[t + 1, i, j] = 2.0 * u[t, i, j] - u[t - 1, i, j] + c * around


@lw.nest
def time_warping(d, a, b):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])


@lw.nest
def needleman_wunsch(h, a, b, score, gap):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i - 1, j - 1] + score[a[i - 1], b[j - 1]], h[i - 1, j] - gap, h[i, j - 1] - gap)


@lw.nest
def transpositions(d, a, b):
    for i in range(2, d.shape[0]):
        for j in range(2, d.shape[1]):
            c = 0 if a[i] == b[j] else 1
            swapped = d[i - 2, j - 2] + 1 if a[i] == b[j - 1] and a[i - 1] == b[j] else d[i - 1, j - 1] + c
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + c, swapped)


@lw.nest
def forest_fire(new, old, growth):
    for i in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            burns = old[i - 1, j] == 2 or old[i + 1, j] == 2 or old[i, j - 1] == 2 or old[i, j + 1] == 2
            grown = 1 if old[i, j] == 0 and growth[i, j] < 0.1 else 0
            new[i, j] = (2 if burns else 1) if old[i, j] == 1 else grown


@lw.nest
def high_life(new, old):
    for i in range(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            n = (
                old[i - 1, j - 1] + old[i - 1, j] + old[i - 1, j + 1] + old[i, j - 1]
                + old[i, j + 1] + old[i + 1, j - 1] + old[i + 1, j] + old[i + 1, j + 1]
            )  # fmt: skip
            new[i, j] = (2 <= n <= 3) if old[i, j] else (n == 3 or n == 6)


@lw.nest
def thirteen_points(v, u):
    for i in range(2, u.shape[0] - 2):
        for j in range(2, u.shape[1] - 2):
            near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            corners = u[i - 1, j - 1] + u[i - 1, j + 1] + u[i + 1, j - 1] + u[i + 1, j + 1]
            far = u[i - 2, j] + u[i + 2, j] + u[i, j - 2] + u[i, j + 2]
            v[i, j] = 20.0 * u[i, j] - 8.0 * near + 2.0 * corners + far


@lw.nest
def columns_eliminated(d, c):
    for i in range(1, d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = d[i, j] - c[i, j] * d[i - 1, j]


@lw.nest
def rows_eliminated(d, c):
    for i in range(d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = d[i, j] - c[i, j] * d[i, j - 1]


@lw.nest
def filtered(y, x, a, b):
    for channel in range(y.shape[0]):
        for n in range(2, y.shape[1]):
            y[channel, n] = x[channel, n] + a * y[channel, n - 1] - b * y[channel, n - 2]


@lw.nest
def transposed(a, b):
    for i in range(1, a.shape[1]):
        for j in range(a.shape[0]):
            a[j, i] = 0.5 * b[j, i] + a[j, i]


@lw.nest
def running_sums(s, x):
    for i in range(1, s.shape[0]):
        for j in range(1, s.shape[1]):
            s[i, j] = x[i, j] + s[i - 1, j] + s[i, j - 1] - s[i - 1, j - 1]


@lw.nest
def recurrence(y, x, a):
    for i in range(1, y.shape[0]):
        y[i] = a * y[i - 1] + x[i]


@lw.nest
def nine_point_sweep(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.125 * (
                u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1]
                + u[i, j + 1] + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
            )  # fmt: skip


@lw.nest
def cheapest_path(cost, step):
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1] - 1):
            cost[i, j] = step[i, j] + min(cost[i - 1, j - 1], cost[i - 1, j], cost[i - 1, j + 1])


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(1, 2, shape)


def letters(n: int, alphabet: int = 4) -> np.ndarray:
    return RNG.integers(0, alphabet, n).astype(np.uint8)


def distances(n: int, dtype: Any = np.int32) -> np.ndarray:
    d = np.zeros((n + 1, n + 1), dtype)
    d[0], d[:, 0] = np.arange(n + 1), np.arange(n + 1)
    return d


def cells(n: int, states: int = 2) -> np.ndarray:
    return RNG.integers(0, states, (n, n)).astype(np.uint8)


# The kernels that were slow, then others that nothing was written for. Sizes are chosen to take some ten milliseconds.
@lw.nest
def poisson(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])


@lw.nest
def poisson_of_spacing(u, f, h, omega, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h**2 * f[i, j])
                u[i, j] = (1 - omega) * u[i, j] + omega * new


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                u[i, j] = (above + u[i, j - 1] + u[i, j] + u[i, j + 1] + below) / 9.0


@lw.nest
def smith_waterman(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def gotoh(h, e, f, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])


@lw.nest
def eikonal(u, h):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            a = min(u[i - 1, j], u[i + 1, j])
            b = min(u[i, j - 1], u[i, j + 1])
            d = abs(a - b)
            x = min(a, b) + h if d >= h else 0.5 * (a + b + np.sqrt(2.0 * h * h - d * d))
            u[i, j] = min(u[i, j], x)


KERNELS: dict[str, tuple[lw.Nest, int, Callable[[int], dict[str, Any]]]] = {
    "Levenshtein": (levenshtein, 3000, lambda n: dict(d=distances(n), a=letters(n), b=letters(n))),
    "Levenshtein, int64": (levenshtein, 3000, lambda n: dict(d=distances(n, np.int64), a=letters(n), b=letters(n))),
    "LCS": (common_subsequence, 3000, lambda n: dict(d=distances(n) * 0, a=letters(n), b=letters(n))),
    "LCS, int64": (common_subsequence, 3000, lambda n: dict(d=distances(n, np.int64) * 0, a=letters(n), b=letters(n))),
    "Game of Life": (life, 3000, lambda n: dict(new=cells(n), old=cells(n))),
    "Game of Life, int64": (life, 1500, lambda n: dict(new=cells(n).astype(int), old=cells(n).astype(int))),
    "7-point solve, 64": (triangular_solve, 64, lambda n: {k: 0.1 * floats(n, n, n) for k in SOLVE}),
    "7-point solve, 128": (triangular_solve, 128, lambda n: {k: 0.1 * floats(n, n, n) for k in SOLVE}),
    "7-point solve, 160": (triangular_solve, 160, lambda n: {k: 0.1 * floats(n, n, n) for k in SOLVE}),
    "Jacobi, 300": (jacobi, 300, lambda n: dict(v=floats(n, n), u=floats(n, n))),
    "Jacobi, 3000": (jacobi, 3000, lambda n: dict(v=floats(n, n), u=floats(n, n))),
    "leap-frog": (leap_frog, 400, lambda n: dict(u=floats(20, n, n), c=0.1)),
    "DTW, **2": (time_warping, 3000, lambda n: dict(d=floats(n + 1, n + 1), a=floats(n), b=floats(n))),
    "Needleman–Wunsch": (
        needleman_wunsch, 3000,
        lambda n: dict(h=-distances(n), a=letters(n), b=letters(n), score=4 * np.eye(4, dtype=np.int32) - 2, gap=3),
    ),
    "transpositions": (transpositions, 3000, lambda n: dict(d=distances(n), a=letters(n + 1), b=letters(n + 1))),
    "forest fire": (forest_fire, 2000, lambda n: dict(new=cells(n), old=cells(n, 3), growth=RNG.random((n, n)))),
    "HighLife": (high_life, 3000, lambda n: dict(new=cells(n), old=cells(n))),
    "13 points": (thirteen_points, 1500, lambda n: dict(v=floats(n, n), u=floats(n, n))),
    "ADI, columns": (columns_eliminated, 1500, lambda n: dict(d=floats(n, n), c=0.1 * floats(n, n))),
    "ADI, rows": (rows_eliminated, 1500, lambda n: dict(d=floats(n, n), c=0.1 * floats(n, n))),
    "IIR filters": (filtered, 1000, lambda n: dict(y=floats(n, 2 * n), x=floats(n, 2 * n), a=0.5, b=0.25)),
    "transposed": (transposed, 1500, lambda n: dict(a=floats(n, n), b=floats(n, n))),
    "running sums": (running_sums, 1500, lambda n: dict(s=floats(n, n), x=floats(n, n))),
    "recurrence": (recurrence, 3000000, lambda n: dict(y=floats(n), x=floats(n), a=0.5)),
    "9-point sweep": (nine_point_sweep, 1500, lambda n: dict(u=floats(n, n))),
    "cheapest path": (cheapest_path, 2000, lambda n: dict(cost=floats(n, n), step=floats(n, n))),
    "Gauss–Seidel, 450": (gauss_seidel, 450, lambda n: dict(u=floats(n, n), sweeps=64)),
    "Gauss–Seidel, 4096": (gauss_seidel, 4096, lambda n: dict(u=floats(n, n), sweeps=8)),
    "Poisson, 320": (poisson, 320, lambda n: dict(u=floats(n, n), f=floats(n, n), sweeps=64)),
    "Poisson, 4096": (poisson, 4096, lambda n: dict(u=floats(n, n), f=floats(n, n), sweeps=8)),
    "Poisson, h**2, 320": (
        poisson_of_spacing, 320, lambda n: dict(u=floats(n, n), f=floats(n, n), h=0.1, omega=1.5, sweeps=64),
    ),
    "nine points, 450": (nine_points, 450, lambda n: dict(u=floats(n, n), sweeps=32)),
    "nine points, 4096": (nine_points, 4096, lambda n: dict(u=floats(n, n), sweeps=8)),
    "Smith–Waterman, 700": (smith_waterman, 700, lambda n: dict(h=distances(n) * 0, a=letters(n), b=letters(n))),
    "Smith–Waterman": (smith_waterman, 3000, lambda n: dict(h=distances(n) * 0, a=letters(n), b=letters(n))),
    "affine gaps": (gotoh, 1500, lambda n: {k: distances(n) * 0 for k in "hef"} | dict(a=letters(n), b=letters(n))),
    "eikonal": (eikonal, 1500, lambda n: dict(u=floats(n, n), h=0.01)),
}  # fmt: skip
SOLVE = ("x", "b", "west", "south", "below", "diagonal")
