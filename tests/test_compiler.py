"""Nests that compilers have translated wrongly, kept so that they never do again."""

from __future__ import annotations

import numpy as np

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
