"""What is known of signs: what cannot raise is not tested, and the rest is."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lapwing as lw

VALUES = np.array([1.5, -3.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e308, 1e-200])


@lw.nest
def never_raising(x, y, out):
    for i in range(x.shape[0]):
        a = x[i] - y[i]
        b = 0.5 if y[i] > 0 else abs(y[i])
        far = math.sqrt(a * a + y[i] ** 2 + b)
        near = math.sqrt(max(x[i], 0.0)) + math.sqrt(min(far, math.fabs(y[i])))
        out[i] = 1.0 / (1 + far) + near / (2.0 + math.sqrt(abs(x[i]))) + math.log(1.0 + math.sqrt(a * a))


@lw.nest
def of_a_difference(x, y, out):
    for i in range(x.shape[0]):
        out[i] = math.sqrt(x[i] * x[i] - y[i])


@lw.nest
def of_a_product(x, y, out):
    for i in range(x.shape[0]):
        out[i] = 1.0 / math.sqrt(x[i] * x[i])


@lw.nest
def after_a_nan(x, y, out):
    """The second of two is taken where the first is a NaN."""
    for i in range(x.shape[0]):
        out[i] = math.sqrt(max(x[i], abs(y[i])))


@lw.nest
def by_minus_zero(x, y, out):
    """-0.0 is not negative, and what is divided by it is."""
    for i in range(x.shape[0]):
        out[i] = math.sqrt(np.float64(1.0) / math.sqrt(max(x[i], -0.0)))


def arrays() -> tuple[np.ndarray, np.ndarray]:
    x, y = (grid.ravel().copy() for grid in np.meshgrid(VALUES, VALUES))
    return x, y


def test_nothing_is_tested_that_does_not_raise() -> None:
    x, y = arrays()
    found, expected = np.zeros(x.size), np.zeros(x.size)
    assert not never_raising.bind({"x": x, "y": y, "out": found}).body.traps
    with np.errstate(all="ignore"):
        never_raising.python(x, y, expected)
    never_raising(x, y, found)
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("nest", [of_a_difference, of_a_product, after_a_nan, by_minus_zero])
def test_what_may_raise_does(nest: lw.Nest) -> None:
    for x, y in np.column_stack(arrays()):
        out, expected = np.zeros(1), np.zeros(1)
        arguments = (np.array([x]), np.array([y]))
        try:
            with np.errstate(all="ignore"):
                nest.python(*arguments, expected)
        except (ValueError, ZeroDivisionError):
            with pytest.raises(lw.RunError):
                nest(*arguments, out)
        else:
            nest(*arguments, out)
            assert np.array_equal(out, expected, equal_nan=True), (x, y)


@lw.nest
def of_large_floats(x, out):
    for i in range(x.shape[0]):
        out[i] = (int(x[i]) * 4) / 3.0


def test_integers_of_floats_do_not_wrap() -> None:
    x, expected, found = np.array([1.5, -7.9, 2.0**53, -(2.0**53)]), np.zeros(4), np.zeros(4)
    of_large_floats.python(x, expected)
    of_large_floats(x, found)
    assert found.tobytes() == expected.tobytes()
    for large in (5e18, -5e18, 2.0**53 + 2, np.nan, np.inf):
        with pytest.raises(lw.RunError, match=r"beyond 2\*\*53"):
            of_large_floats(np.array([large]), np.zeros(1))
