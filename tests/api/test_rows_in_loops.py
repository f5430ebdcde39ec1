"""Loops around rows that are looked up, compiled as a whole: rows by name, copied and made, and two that may be the same one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")
LENGTH = 40  # of rows: long enough for vectors


@lw.nest
def shifted(w, p, q):
    for k in range(p.shape[0]):
        x, y = int(p[k]), int(q[k])
        for j in range(1, LENGTH):
            w[x, j] = w[y, j - 1] + 1.0


@lw.nest
def one_before(w, p, q):
    for k in range(p.shape[0]):
        x = int(p[k])
        for j in range(1, LENGTH):
            w[x, j] = w[x - 1, j - 1] + w[x, j]


@lw.nest
def smallest_neighbours(w, p, q):
    for k in range(p.shape[0]):
        x, y = int(p[k]), int(q[k])
        if 0 <= x < w.shape[0] and 0 <= y < w.shape[0]:
            for j in range(LENGTH):
                best = w[y, j]
                if j > 0:
                    best = min(best, w[y, j - 1] + 0.5)
                if j < LENGTH - 1:
                    best = min(best, w[y, j + 1] + 0.5)
                w[x, j] = best + 0.25


@lw.nest
def by_a_new_row(w, p, q):
    for k in range(p.shape[0]):
        x, y = int(p[k]), int(q[k])
        row = np.zeros(LENGTH)
        for j in range(LENGTH):
            row[j] += w[y, j]
        for j in range(1, LENGTH):
            w[x, j] = row[j - 1] + 1.0


@lw.nest
def by_name(w, p, q):
    for k in range(p.shape[0]):
        to, row = w[int(p[k])], w[int(q[k]), :]
        for j in range(1, LENGTH):
            to[j] = row[j - 1] + len(row)


@lw.nest
def by_a_copy(w, p, q):
    for k in range(p.shape[0]):
        x = int(p[k])
        row = w[int(q[k])].copy()
        for j in range(1, LENGTH):
            i = j
            while i > 0 and row[i - 1] > row[i]:
                row[i - 1], row[i] = row[i], row[i - 1]
                i -= 1
        w[x, 0] = row[LENGTH // 2]
        w[x, 1] += row[0]


NESTS = [shifted, one_before, smallest_neighbours, by_a_new_row, by_name, by_a_copy]


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("nest", NESTS, ids=lambda nest: nest.name)
def test_rows_of_one_array_that_are_the_same_or_not(nest: Any, rows: int) -> None:
    rng = np.random.default_rng(rows)
    w, (p, q) = rng.random((rows, LENGTH)), rng.integers(0, rows, (2, 60))
    expected, found = w.copy(), w.copy()
    nest.python(expected, p, q)
    nest(found, p, q)
    assert nest.program is not None
    assert nest.program.wholes
    np.testing.assert_array_equal(found, expected)


@lw.nest
def made_and_copied(w, u, p):
    for k in range(p.shape[0]):
        row = np.zeros(LENGTH)
        for j in range(LENGTH):
            row[j] = w[int(p[k]), j] + u[j]
        w[int(p[k]), 0] = row[3]
        row = u.copy()
        for j in range(LENGTH):
            w[int(p[k]), j] += row[j]


def test_an_array_that_is_made_and_then_copied_under_one_name() -> None:
    rng = np.random.default_rng(5)
    w, u, p = rng.random((5, LENGTH)), rng.random(LENGTH), rng.integers(0, 5, 20)
    expected, found = w.copy(), w.copy()
    made_and_copied.python(expected, u, p)
    made_and_copied(found, u, p)
    np.testing.assert_array_equal(found, expected)


@lw.nest
def taken_alone(w, p, q):
    total = 0.0
    for k in range(p.shape[0]):
        row = w[int(p[k])]
        for j in range(int(q[k])):
            total = max(total, row[j])
    return total


@pytest.mark.parametrize("place", [3, -4])
def test_a_row_that_is_not_there_raises_though_no_element_is_looked_at(place: int) -> None:
    w, p, q = np.ones((3, LENGTH)), np.array([0, place]), np.array([2, 0])
    with pytest.raises(IndexError):
        taken_alone.python(w, p, q)
    with pytest.raises((IndexError, lw.RunError)):
        taken_alone(w, p, q)
    p[1] = -3
    assert taken_alone(w, p, q) == taken_alone.python(w, p, q) == 1.0
