"""Nests that compilers have translated wrongly, kept so that they never do again."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def three_statements(u, v, w):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            w[i, j] = 0.25 * w[i, j] + 0.25 * w[i, j]
            u[i, j] = 0.25 * u[i - 1, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1] + 0.25 * u[i - 1, j]
            v[i, j] = 0.25 * v[i - 1, j]


def test_statements_are_not_distributed_over_skewed_loops():
    """gcc 12.2 at -O3 ran all lanes and steps of one statement before those of the next."""
    for shape in ((5, 31), (17, 40), (40, 40)):
        expected = [np.random.default_rng(seed).random(shape) for seed in range(3)]
        found = [array.copy() for array in expected]
        three_statements.python(*expected)
        three_statements(*found)
        for a, b in zip(expected, found, strict=True):
            assert a.tobytes() == b.tobytes()


@lw.nest
def looked_up(u, h, table):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i - 1, j] + table[int(max(0, h[i, j]))]


def test_int_of_a_mixed_value_keeps_its_range():
    """int(max(0, x)) once counted as 0, so that an index beyond the table was read unchecked."""
    u, h = np.zeros((4, 5)), np.full((4, 5), 3, np.int32)
    looked_up(u, h, np.arange(4.0))
    assert u[3, 4] == 9.0
    h[2, 2] = 50_000
    with pytest.raises(lw.RunError, match="IndexError"):
        looked_up(np.zeros((4, 5)), h, np.arange(4.0))
