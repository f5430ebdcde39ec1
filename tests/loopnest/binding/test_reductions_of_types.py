"""Reductions of what has one of several types: NumPy compares a float32 in single precision, Python two floats in double."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def changes(u, tol):
    for sweep in range(20):
        change = 0.0
        for i in range(u.shape[0]):
            of_row = 0.0
            for j in range(u.shape[1]):
                old = u[i, j]
                u[i, j] = old * 0.5
                of_row = max(of_row, abs(u[i, j] - old))
            change = max(change, of_row)
        if change < tol:
            return sweep, change
    return -1, change


@lw.nest
def first_above(x):
    best, at = 0.1, -1
    for i in range(x.shape[0]):
        value = max(x[i], 0.0)
        if value > best:
            best, at = value, i
    return best, at


def test_float32_is_refused() -> None:
    with pytest.raises(lw.RefusedError, match="Python float or float32"):
        changes(np.full((6, 9), 1.4, np.float32), 0.7)
    with pytest.raises(lw.RefusedError, match="Python float or float32"):
        first_above(np.array([0.1], np.float32))


def test_doubles_are_alike() -> None:
    for tol in (0.7, 0.35, 1e-3):
        u, v = np.full((6, 9), 1.4), np.full((6, 9), 1.4)
        assert changes(u, tol) == changes.python(v, tol)
        assert u.tobytes() == v.tobytes()
    x = np.array([-1.0, 0.1, 0.3, 0.2])
    assert first_above(x) == first_above.python(x)
