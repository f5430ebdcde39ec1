"""NumPy's small integers wrap in Python; in bounds and indices here they would not."""

from __future__ import annotations

import numpy as np
import pytest

import lapwing as lw


@lw.nest
def beside(u, k):
    for t in range(2):
        for i in range(2):
            u[i, 0] = u[i, 0] + u[k + 1, 1] * i


def test_those_that_may_wrap_are_refused() -> None:
    with pytest.raises(lw.RefusedError, match=r"k is np.uint8\(255\) in bounds or indices.*pass int\(k\)"):
        beside(np.ones((300, 2)), np.uint8(255))


def test_those_that_do_not_are_numbers() -> None:
    u, v = np.ones((300, 2)), np.ones((300, 2))
    beside(u, np.uint8(100))
    beside.python(v, np.uint8(100))
    assert np.array_equal(u, v)
