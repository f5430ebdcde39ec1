"""Global tuples and lists of numbers of which loops take elements."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw

OFFSETS = (0, 1, 0, -1)
WEIGHTS = [0.5, 0.25, 0.125, 0.0625]
STEPS = ((0, 1), (1, 0), (-1, 1))
NAMES = ("a", "b")


@lw.nest
def around(u, v):
    """Goes round."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            s = 0.0
            for k in range(9):
                q = (k + j) % 4
                s += u[i, j + OFFSETS[q]] * WEIGHTS[q]
            v[i, j] = s


@lw.nest
def in_rows(u, v):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            q = (i * j) % 3
            v[i, j] = u[i + STEPS[q][0], j + STEPS[q][1]]


@lw.nest
def of_small_floats(u, v):
    """Python's floats are no wider than what they meet."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[i, j] * WEIGHTS[(i + j) % 4]


@pytest.mark.parametrize("nest", [around, in_rows, of_small_floats], ids=lambda nest: nest.name)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bits_of_plain_python(nest: lw.Nest, dtype: str) -> None:
    u = np.random.default_rng(0).random((12, 30)).astype(dtype)
    found, expected = np.zeros((12, 30), dtype), np.zeros((12, 30), dtype)
    nest(u, found)
    nest.python(u, expected)
    assert np.array_equal(found, expected)


def test_they_are_looked_up_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    u, found, expected = np.ones((12, 30)), np.zeros((12, 30)), np.zeros((12, 30))
    around(u, found)
    monkeypatch.setitem(around.python.__globals__, "WEIGHTS", [2.0, 3.0, 4.0, 5.0])
    around(u, found)
    around.python(u, expected)
    assert np.array_equal(found, expected)


@lw.nest
def beyond(u, v):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[i, j] * WEIGHTS[i]


def test_an_index_that_is_outside_raises() -> None:
    u, v = np.ones((5, 3)), np.zeros((5, 3))
    with pytest.raises((lw.LapwingError, IndexError)):
        beyond(u, v)
