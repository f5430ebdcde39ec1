"""Floats that become integers and floats again lose the sign of a zero; gcc keeps it with -fno-trapping-math."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def fraction(x, y, c):
    for i in range(x.shape[0]):
        y[i] = x[i] - math.floor(x[i])


@lw.nest
def rounded(x, y, c):
    for i in range(x.shape[0]):
        y[i] = round(x[i])


@lw.nest
def signed(x, y, c):
    for i in range(x.shape[0]):
        k = int(x[i])
        y[i] = 1.0 if math.copysign(1.0, float(k)) > 0 else 2.0


@lw.nest
def of_numpy(x, y, c):
    for i in range(x.shape[0]):
        y[i] = np.int64(np.floor(x[i])) * 0.25


@lw.nest
def stored(x, y, c):
    for i in range(x.shape[0]):
        c[i] = np.floor(x[i])
        y[i] = c[i] + int(float(c[i]) * -1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("nest", [fraction, rounded, signed, of_numpy, stored])
def test_zeros_have_no_sign(nest: lw.Nest, dtype: type) -> None:
    for n in (4, 97):  # few, and vectors of them
        x = np.resize(np.array([-0.4, -0.0, 0.3, -1.5, 2.5, 0.0]), n).astype(dtype)
        expected, found = (np.ones(n), np.zeros(n, np.int64)), (np.ones(n), np.zeros(n, np.int64))
        nest.python(x, *expected)
        nest(x, *found)
        assert found[0].tobytes() == expected[0].tobytes()


@lw.nest
def truncated(x, y):
    for i in range(x.shape[0]):
        y[i] = math.trunc(x[i])


def test_what_python_does_not_truncate_is_refused() -> None:
    x, y = np.array([-0.4, 1.5, -2.5]), np.ones(3)
    truncated(x, y)
    assert y.tolist() == [0.0, 1.0, -2.0]
    with pytest.raises(TypeError, match="__trunc__"):
        truncated.python(x.astype(np.float32), y)
    with pytest.raises(lw.RefusedError, match=r"math\.trunc of float32, which Python has not"):
        truncated(x.astype(np.float32), y)


@lw.nest
def of_numpy_beyond(x, y):
    for i in range(x.shape[0]):
        y[i] = np.int64(math.exp(x[i]))


def test_integers_of_numpy_have_all_their_bits() -> None:
    """Python's ints have no more than 53 here."""
    x, expected, found = np.array([0.0, 38.0, 43.0]), np.zeros(3, np.int64), np.zeros(3, np.int64)
    of_numpy_beyond.python(x, expected)
    of_numpy_beyond(x, found)
    assert found.tolist() == expected.tolist()
    with pytest.raises(lw.RunError):
        of_numpy_beyond(np.array([44.0]), found)
