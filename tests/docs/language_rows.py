"""The rows of the table in docs/language.md: a construct each, and a small function that uses it.

What becomes of a function (tiled, one rank, driver, refused) is not said here: it is found by trying. ``instead`` is what to
write where it is refused, the advice of the message followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import lapwing as lw


@dataclass(frozen=True)
class Row:
    """``snippet``: of the function's text, what the page shows. ``instead``: None where it is not refused."""

    group: str
    construct: str
    snippet: str
    nest: lw.Nest
    instead: lw.Nest | None = None


ROWS: list[Row] = []


def row(
    group: str, construct: str, snippet: str, instead: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        ROWS.append(Row(group, construct, snippet, lw.nest(function), instead and lw.nest(instead)))
        return function

    return add


def arguments(nest: lw.Nest) -> dict[str, Any]:
    """By the names of parameters."""
    rng = np.random.default_rng(5)
    grid, line = (12, 14), (12,)
    every: dict[str, Any] = {
        **{name: rng.random(grid) for name in "uvwf"},
        **{name: rng.random(line) for name in "ab"},
        "codes": rng.integers(0, 4, 12),
        "score": rng.random((4, 4)),
        "cells": rng.integers(0, 2, grid).astype(np.int8),
        "count": np.zeros(grid, np.int64),
        "hist": np.zeros(4, np.int64),
        "z": rng.random(grid) + 1j * rng.random(grid),
        "x": rng.random((12, 14, 5)),
        "matrix": rng.random((5, 5)),
        "levels": rng.random((2, *grid)),
        "single": rng.random(grid).astype(np.float32),
        "starts": np.array([0, 1, 3, 3, 6, 6, 7, 9, 10, 11, 11, 12, 12]),
        "steps": 3,
        "tol": 0.05,
        "omega": 1.2,
    }
    names = nest.python.__code__.co_varnames[: nest.python.__code__.co_argcount]
    return {name: every[name] for name in names}


# -- loops ---------------------------------------------------------------------------------------------------------------

LOOPS = "Loops"


@row(LOOPS, "a perfect nest, with sweeps around it", "for i in range(1, n - 1):")
def sweeps(u, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@row(LOOPS, "what a row needs, before the loop along it", "weight = 0.5 * a[i]")
def hoisted(u, a, b):
    for i, x in enumerate(a):
        weight = 0.5 * a[i]
        for j, y in enumerate(b):
            u[i, j] = weight * (u[i - 1, j] if i > 0 else x) + (u[i, j - 1] if j > 0 else y)


@row(LOOPS, "its first and last elements, beside that loop", "u[i, 0] = a[i]")
def ends_of_rows(u, a):
    n, m = u.shape
    for i in range(1, n):
        u[i, 0] = a[i]
        for j in range(1, m - 1):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])
        u[i, m - 1] = u[i, m - 2]


@row(LOOPS, "rows left out", "continue")
def rows_left_out(u, a, tol):
    for i in range(1, u.shape[0]):
        if a[i] < tol:
            continue
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])


@row(LOOPS, "rows by their names", "row, above = u[i], u[i - 1]")
def rows_by_name(u):
    for i in range(1, u.shape[0]):
        row, above = u[i], u[i - 1]
        for j in range(1, u.shape[1]):
            row[j] = 0.5 * (above[j] + row[j - 1])


@row(LOOPS, "downwards", "range(n - 2, -1, -1)")
def downwards(u):
    n, m = u.shape
    for i in range(n - 2, -1, -1):
        for j in range(m):
            u[i, j] += 0.5 * u[i + 1, j]


@row(LOOPS, "steps of 2 to 4, and of -2 to -4", "range(1, n - 1, 2)")
def step(u):
    n, m = u.shape
    for i in range(1, n - 1, 2):
        for j in range(1, m - 1):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i + 1, j])


@row(LOOPS, "larger steps, and steps that are arguments", "range(1, n - 1, 8)")
def large_step(u):
    n, m = u.shape
    for i in range(1, n - 1, 8):
        for j in range(1, m - 1):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i + 1, j])


@row(LOOPS, "a direction that a condition chooses", "range(1, n) if steps > 0 else range(n - 2, -1, -1)")
def either_direction(u, steps):
    n, m = u.shape
    for i in range(1, n) if steps > 0 else range(n - 2, -1, -1):
        for j in range(m):
            u[i, j] += 0.5 * u[i - 1 if steps > 0 else i + 1, j]


@row(LOOPS, "a direction from a row of numbers", "for sign in (1, -1):")
def both_directions(u):
    n, m = u.shape
    for sign in (1, -1):
        for i in range(1, n - 1) if sign > 0 else range(n - 2, 0, -1):
            for j in range(m):
                u[i, j] = min(u[i, j], u[i - sign, j] + 1.0)


@row(LOOPS, "backwards", "reversed(range(n - 1))")
def backwards(u):
    n, m = u.shape
    for i in reversed(range(n - 1)):
        for j in range(m):
            u[i, j] += 0.5 * u[i + 1, j]


@row(LOOPS, "elements with their numbers, and several arrays at a time", "for i, (x, y) in enumerate(zip(a, b)):")
def elements(u, a, b):
    for i, (x, y) in enumerate(zip(a, b)):  # noqa: B905
        for j in range(u.shape[1]):
            u[i, j] += x * y


@row(LOOPS, "rows of a matrix", "for row in u:")
def rows(u):
    for row in u:
        for j in range(1, len(row)):
            row[j] += row[j - 1]


@row(LOOPS, "all places of an array", "for i, j in np.ndindex(u.shape):")
def places(u, v):
    for i, j in np.ndindex(u.shape):
        v[i, j] = 2.0 * u[i, j]


NEIGHBOURS = ((-1, 0), (0, -1), (0, 1), (1, 0))


@row(LOOPS, "a row of numbers by its name", "for di, dj in NEIGHBOURS:")
def neighbours(u, v):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            for di, dj in NEIGHBOURS:
                v[i, j] += 0.25 * u[i + di, j + dj]


@row(LOOPS, "a range by its name", "rows = range(1, n)")
def named_range(u):
    n, m = u.shape
    rows = range(1, n)
    for i in rows:
        for j in range(m):
            u[i, j] += u[i - 1, j]


@row(LOOPS, "red and black: a start that is near an affine one", "range(1 + (i + color) % 2, m - 1, 2)")
def red_black(u):
    n, m = u.shape
    for color in range(2):
        for i in range(1, n - 1):
            for j in range(1 + (i + color) % 2, m - 1, 2):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@row(LOOPS, "bounds affine in outer loops", "range(1, i + 1)")
def triangle(u):
    for i in range(1, u.shape[0]):
        for j in range(1, i + 1):
            u[i, j] = max(u[i - 1, j], u[i, j - 1])


@row(LOOPS, "`max` and `min` in bounds", "range(max(1, i - 3), min(m, i + 4))")
def band(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(max(1, i - 3), min(m, i + 4)):
            u[i, j] = 0.5 * (u[i - 1, j - 1] + u[i, j])


@row(LOOPS, "inner loops in the body, with a scalar accumulator", "for k in range(x.shape[2]):")
def accumulator(u, x, matrix):
    n, m = u.shape
    for i in range(1, n):
        for j in range(1, m):
            s = 0.0
            for k in range(x.shape[2]):
                s += matrix[0, k] * x[i, j, k]
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1]) + s


@row(LOOPS, "over numbers that are written out", "for di in (-1, 0, 1):")
def offsets(u, v):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            s = 0.0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    s += u[i + di, j + dj]
            v[i, j] = s / 9.0


@row(LOOPS, "bounds that an array holds", "range(starts[i], starts[i + 1])")
def compressed_rows(a, b, starts):
    for i in range(len(b)):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += a[k]
        b[i] = s


@row(LOOPS, "`while`, `break` and `continue` in the body", "while k < 20:")
def escape(u, v, count):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            if u[i, j] < 0.1:
                continue
            k = 0
            x = 0.0
            while k < 20:
                x = x * x + u[i, j]
                if x > v[i, j] + 2.0:
                    break
                k += 1
            count[i, j] = k


def _by_index(u):
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] += u[i, j - 1]


@row(LOOPS, "over arrays, `enumerate`, `zip`", "for i, line in enumerate(u):", instead=_by_index)
def enumerated(u):
    for i, line in enumerate(u):
        for j in range(1, u.shape[1]):
            line[j] += line[j - 1]


@row(LOOPS, "over points that NumPy makes", "for i, y in enumerate(np.linspace(0.0, 1.0, n)):")
def over_points(u):
    n, m = u.shape
    for i, y in enumerate(np.linspace(0.0, 1.0, n)):
        for j in range(m):
            u[i, j] = u[i, j] * y


@row(LOOPS, "`else` of loops in the body", "else:")
def with_an_else(u, count):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            for k in range(m):
                if u[i, j] < u[i, k]:
                    break
            else:
                count[i, j] = 1


@row(LOOPS, "`return` in the loops", "return i, j")
def first_above(u):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            if u[i, j] > 0.9:
                return i, j
            u[i, j] = 0.5
    return -1, -1


# -- statements ----------------------------------------------------------------------------------------------------------

STATEMENTS = "Statements"


@row(STATEMENTS, "several assignments, scalar temporaries", "new = 0.5 * (u[i - 1, j] + u[i, j - 1])")
def temporaries(u, v):
    n, m = u.shape
    for i in range(1, n):
        for j in range(1, m):
            new = 0.5 * (u[i - 1, j] + u[i, j - 1])
            v[i, j] = new - u[i, j]
            u[i, j] = new


@row(STATEMENTS, "small lists and tuples of scalars", "ring = [u[i - 1, j], v[i, j], u[i + 1, j]]")
def small_list(u, v, w):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(m):
            ring = [u[i - 1, j], v[i, j], u[i + 1, j]]
            s = max(ring)
            for p, q in zip(ring, ring[1:]):  # noqa: B905, RUF007
                if p < q:
                    s = s * 0.5 + q
            w[i, j] = s + ring[0]


@row(STATEMENTS, "`sum`, `any`, `all`, `min`, `max` of comprehensions", "sum(u[i + k, j] for k in (-1, 0, 1))")
def comprehension(u, v, count):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(m):
            v[i, j] = sum(u[i + k, j] for k in (-1, 0, 1))
            if any(u[i + k, j] > 0.9 for k in (-1, 1)):
                count[i, j] = 1


@row(STATEMENTS, "NumPy's extrema and truths of small windows", "np.max(u[i - 1:i + 2, j - 1:j + 2])")
def window(u, v):
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            v[i, j] = np.max(u[i - 1:i + 2, j - 1:j + 2])  # fmt: skip


@row(STATEMENTS, "rows of an array as tuples", "p, q, r, s, t = x[i, j]")
def rows_as_tuples(u, v, x):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            p, q, r, s, t = x[i, j]
            u[i, j] = u[i - 1, j] * p + v[i, j] * q + r * s * t


@row(STATEMENTS, "augmented and tuple assignments, swaps", "lo, hi = hi, lo")
def swapped(u, v):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            lo, hi = u[i - 1, j], v[i, j]
            if lo > hi:
                lo, hi = hi, lo
            u[i, j] += lo
            v[i, j] = hi


@row(STATEMENTS, "`if`, `elif`, `else`; a guarded write keeps the old value", "if u[i - 1, j] > u[i, j]:")
def guarded(u, count):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            if u[i - 1, j] > u[i, j]:
                u[i, j] = u[i - 1, j]
                count[i, j] = 1
            elif u[i, j] < 0.1:
                u[i, j] = 0.1


@row(STATEMENTS, "chained comparisons, `and`, `or`, `a if c else b`", "if 0 < i - 2 < n - 4 and u[i, j] > 0.2")
def conditions(u, v):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            v[i, j] = u[i, j] if 0 < i - 2 < n - 4 and u[i, j] > 0.2 else 0.0


def _indexed_once(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] * 0.5 + u[i, j]


@row(STATEMENTS, "`u[i][j]`", "u[i][j] = u[i - 1][j]", instead=_indexed_once)
def twice_indexed(u):
    for i in range(1, len(u)):
        for j in range(len(u[0])):
            u[i][j] = u[i - 1][j] * 0.5 + u[i][j]


def _columns(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = 0.5 * (u[i, j] + u[i - 1, j])


@row(STATEMENTS, "slices inside loops that are compiled", "u[i, :] = 0.5 * (u[i, :] + u[i - 1, :])", instead=_columns)
def sliced(u):
    for i in range(1, u.shape[0]):
        for j in range(1):
            u[i, :] = 0.5 * (u[i, :] + u[i - 1, :])


def _counted(u):
    bad = 0
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] += u[i - 1, j]
            if u[i, j] > 100.0:
                bad += 1
    return bad


@row(STATEMENTS, "`print`, files, exceptions in the loops", 'print("large", i, j)', instead=_counted)
def printed(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] += u[i - 1, j]
            if u[i, j] > 100.0:
                print("large", i, j)
    return 0


# -- indices -------------------------------------------------------------------------------------------------------------

INDICES = "Indices"


@row(INDICES, "loop index plus constant, in arrays that are written", "u[i + 1, j - 2]")
def uniform(u, v):
    n, m = u.shape
    for i in range(n - 1):
        for j in range(2, m):
            v[i, j] = u[i + 1, j - 2]


@row(INDICES, "any affine index, in arrays that are only read", "a[2 * (i - j) + 3]")
def affine(u, a):
    for i in range(2, 6):
        for j in range(1, i):
            u[i, j] = u[i - 1, j] + a[2 * (i - j) + 3]


@row(INDICES, "look-ups in arrays that are only read", "score[codes[i - 1], codes[j - 1]]")
def looked_up(u, score, codes):
    for i in range(1, u.shape[0]):
        for j in range(1, 12):
            u[i, j] = max(0.0, u[i - 1, j - 1] + score[codes[i - 1], codes[j - 1]])


@row(INDICES, "periodic", "u[(i + 1) % n, j]")
def periodic(u, v):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            v[i, j] = 0.25 * (u[(i + 1) % n, j] + u[(i - 1) % n, j] + u[i, (j + 1) % m] + u[i, (j - 1) % m])


@row(INDICES, "time levels", "levels[(t + 1) % 2, i, j]")
def time_levels(levels, steps):
    _, n, m = levels.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                levels[(t + 1) % 2, i, j] = 0.25 * (levels[t % 2, i - 1, j] + levels[t % 2, i + 1, j])


@row(INDICES, "an axis of components, which no rank cuts", "x[i, j, 0] = x[i - 1, j, 4]")
def components(x):
    n, m, _ = x.shape
    for i in range(1, n):
        for j in range(m):
            x[i, j, 0] = x[i - 1, j, 4]
            for k in range(1, 5):
                x[i, j, k] += 0.5 * x[i - 1, j, k - 1]


@row(INDICES, "a whole row of the step before", "u[i - 1, k] + score[k, j]")
def whole_row(u, score):
    for i in range(1, u.shape[0]):
        for j in range(4):
            best = -1.0
            for k in range(4):
                best = max(best, u[i - 1, k] + score[k, j])
            u[i, j] = best


@row(INDICES, "loops in another order than the axes of what is written", "u[j, i] = u[j, i - 1]")
def transposed(u):
    n, m = u.shape
    for i in range(1, m):
        for j in range(n):
            u[j, i] = u[j, i - 1] * 0.5


@row(INDICES, "written where the data says", "hist[codes[i]] += 1")
def histogram(hist, codes):
    for i in range(len(codes)):
        hist[codes[i]] += 1


# -- reductions ----------------------------------------------------------------------------------------------------------

REDUCTIONS = "Reductions, returned"


@row(REDUCTIONS, "`max`, `min`, `+`", "best = max(best, u[i, j])")
def largest(u):
    best = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            best = max(best, u[i, j])
    return best


@row(REDUCTIONS, "arrays of which nobody reads elements afterwards: they need not be stored", "del u")
def largest_alone(u, v):
    best = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * u[i - 1, j] + 0.5 * u[i, j - 1] + v[i, j]
            best = max(best, u[i, j])
    del u
    return best


@row(REDUCTIONS, "the same by `if`, with its place: the first in the loops' order", "best, row = u[i, j], i")
def place_of_largest(u):
    best = 0.0
    row = -1
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if u[i, j] > best:
                best, row = u[i, j], i
    return best, row


@row(REDUCTIONS, "other scalars carried from one iteration to the next", "p = p * u[i, j]")
def product(u):
    p = 1.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            p = p * u[i, j]
    return p


@row(REDUCTIONS, "scalars that not every way sets, or that keep what they were", "where = j")
def last_above(u):
    where = -1
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += u[i - 1, j]
            if u[i, j] > 0.5:
                where = j
    return where


@row(REDUCTIONS, "an element", "return u[n - 1, m - 1]")
def corner(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(1, m):
            u[i, j] += min(u[i - 1, j], u[i, j - 1])
    return u[n - 1, m - 1]


# -- programs ------------------------------------------------------------------------------------------------------------

PROGRAMS = "Around nests"


@row(PROGRAMS, "several nests, in sequence or in a time loop", "for t in range(steps):")
def two_nests(u, v, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = v[i, j]


@row(PROGRAMS, "`while` on a value that a nest leaves", "while change > tol:")
def until_converged(u, tol):
    n, m = u.shape
    change = 1.0
    while change > tol:
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new


@row(PROGRAMS, "arrays that swap their names, that are copied or made", "u, v = v, u")
def swapping(u, steps):
    n, m = u.shape
    v = u.copy()
    w = np.zeros_like(u)
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) + w[i, j]
        u, v = v, u
    return u


@row(PROGRAMS, "`if` around nests, scalars between them", "if t % 2 == 0:")
def alternating(u, omega, steps):
    n, m = u.shape
    for t in range(steps):
        if t % 2 == 0:
            for i in range(1, n - 1):
                for j in range(1, m - 1):
                    u[i, j] = omega * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        else:
            for i in range(n - 2, 0, -1):
                for j in range(m - 2, 0, -1):
                    u[i, j] = omega * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        omega = 1.0 / (1.0 - 0.1 * omega)


ROWS_AHEAD = (1, 0, -1, 2)


@row(PROGRAMS, "global tuples and lists of numbers", "u[i + ROWS_AHEAD[(i + j) % 4], j]")
def global_numbers(u, v):
    for i in range(1, u.shape[0] - 2):
        for j in range(u.shape[1]):
            v[i, j] = u[i + ROWS_AHEAD[(i + j) % 4], j]


@row(PROGRAMS, "lists of numbers that the driver makes", "weights = [0.5 ** abs(k) for k in range(-steps, steps + 1)]")
def from_a_list(u, v, steps):
    n, m = u.shape
    weights = [0.5 ** abs(k) for k in range(-steps, steps + 1)]
    for i in range(n):
        for j in range(m):
            s = 0.0
            for k, w in enumerate(weights):
                s += w * u[i, (j + k) % m]
            v[i, j] = s


@row(PROGRAMS, "NumPy on whole arrays, rows and slices", "u[0, :] = u[1, :]")
def boundary(u, steps):
    n, m = u.shape
    for t in range(steps):
        u[0, :] = u[1, :]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


# -- functions and types -------------------------------------------------------------------------------------------------

FUNCTIONS = "Functions and types"


def _flux(left, right):
    return 0.5 * (left * left + right * right)


def _inlined(u, v):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            left, right = u[i - 1, j], u[i, j]
            v[i, j] = 0.5 * (left * left + right * right)


@row(FUNCTIONS, "small helper functions", "_flux(u[i - 1, j], u[i, j])", instead=_inlined)
def helped(u, v):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            v[i, j] = _flux(u[i - 1, j], u[i, j])


def _first(u, i, limit):
    for k in range(u.shape[1]):
        if u[i, k] > limit:
            return k
    return -1


@row(FUNCTIONS, "helpers that return from their loops", "_first(u, i, v[i, j])")
def searched(u, v, count):
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            count[i, j] = _first(u, i, v[i, j])


@row(FUNCTIONS, "`abs`, `min`, `max`, `math.exp`, `math.sqrt` and others", "math.exp(-u[i, j])")
def from_math(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = math.exp(-u[i, j]) + math.sqrt(abs(u[i - 1, j]))


@row(FUNCTIONS, "`np.sqrt`, `np.abs`, `np.float32` and other types", "np.sqrt(u[i, j])")
def from_numpy(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = np.sqrt(u[i, j]) + np.abs(u[i - 1, j])


def _numpy_by_hand(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = u[i - 1, j] if u[i - 1, j] > 0.5 else max(u[i, j], 0.1)


@row(FUNCTIONS, "`np.where`, `np.maximum`, `np.minimum` of scalars", "np.where(", instead=_numpy_by_hand)
def choosing(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = np.where(u[i - 1, j] > 0.5, u[i - 1, j], np.maximum(u[i, j], 0.1))


@row(FUNCTIONS, "powers", "u[i - 1, j] ** 2")
def powers(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = 0.5 * (u[i - 1, j] ** 2 + u[i, j])


@row(
    FUNCTIONS,
    "float32 and integers from int8 to int64, from uint8 to uint32, bool, as NumPy 2 promotes them",
    "single[i, j] * cells[i, j]",
)
def mixed(single, cells):
    n, m = single.shape
    for i in range(1, n):
        for j in range(m):
            single[i, j] = single[i - 1, j] + single[i, j] * cells[i, j]


@row(FUNCTIONS, "`//` and `%` of integers", "(count[i - 1, j] + i) % 7 // 2")
def divided(count):
    n, m = count.shape
    for i in range(1, n):
        for j in range(m):
            count[i, j] = (count[i - 1, j] + i) % 7 // 2


def _arithmetic(cells):
    n, m = cells.shape
    for i in range(1, n):
        for j in range(m):
            cells[i, j] = (cells[i - 1, j] + cells[i, j]) % 2


@row(FUNCTIONS, "bits of integers", "cells[i - 1, j] ^ cells[i, j]", instead=_arithmetic)
def bits(cells):
    n, m = cells.shape
    for i in range(1, n):
        for j in range(m):
            cells[i, j] = cells[i - 1, j] ^ cells[i, j]


@row(FUNCTIONS, "complex64, complex128", "0.5j * z[i - 1, j]")
def complex_numbers(z):
    n, m = z.shape
    for i in range(1, n):
        for j in range(m):
            z[i, j] = 0.5j * z[i - 1, j] + z[i, j]


@row(FUNCTIONS, "parts and functions of complex numbers", "z[i, j].imag")
def parts(u, z):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = u[i - 1, j] * z[i, j].imag + abs(z[i, j]) ** 2 + np.exp(z[i, j].conjugate()).real


def _by_modulus(z):
    n, m = z.shape
    for i in range(1, n):
        for j in range(m):
            z[i, j] = z[i, j] if abs(z[i, j]) > abs(z[i - 1, j]) else z[i - 1, j]


@row(FUNCTIONS, "the larger of complex numbers", "max(z[i, j], z[i - 1, j])", instead=_by_modulus)
def larger(z):
    n, m = z.shape
    for i in range(1, n):
        for j in range(m):
            z[i, j] = max(z[i, j], z[i - 1, j])


def _drawn_before(u, f):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = 0.5 * u[i - 1, j] + f[i, j]


@row(FUNCTIONS, "other functions, random numbers", "np.random.random()", instead=_drawn_before)
def drawing(u):
    n, m = u.shape
    for i in range(1, n):
        for j in range(m):
            u[i, j] = 0.5 * u[i - 1, j] + np.random.random()
