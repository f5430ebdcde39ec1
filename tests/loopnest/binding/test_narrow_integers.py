"""NumPy's small integers wrap in Python; in bounds and indices here they would not."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def beside(u, v, k):
    for t in range(2):
        for i in range(2):
            u[i] = u[i] + v[k + i]


def test_those_that_may_wrap_are_refused() -> None:
    with pytest.raises(lw.RefusedError, match=r"k is np.uint8\(255\) in bounds or indices.*pass int\(k\)"):
        beside(np.ones(300), np.ones(300), np.uint8(255))


def test_those_that_do_not_are_numbers() -> None:
    found, expected, given = np.ones(300), np.ones(300), np.arange(300.0)
    beside(found, given, np.uint8(100))
    beside.python(expected, given, np.uint8(100))
    assert np.array_equal(found, expected)


@lw.nest
def apart(u, k):
    for t in range(2):
        for i in range(2):
            u[i, 0] = u[i, 0] + u[k, 1] * i


def test_an_element_that_loops_leave_alone_is_taken_as_in_python() -> None:
    found = np.arange(600.0).reshape(300, 2)
    expected = found.copy()
    apart(found, np.uint8(255))
    apart.python(expected, np.uint8(255))
    assert np.array_equal(found, expected)
