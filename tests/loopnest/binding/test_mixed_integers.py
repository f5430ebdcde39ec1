"""Values that are Python ints or NumPy integers depending on the values: what both give where it fits, or an error."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lapwing as lw
from lapwing.errors import RunError


@lw.nest
def combined(road, limit, k, out):
    for line in range(road.shape[0]):
        for x in range(road.shape[1]):
            gap = 0
            while gap < limit and road[line, (x + gap + 1) % road.shape[1]] < 3:
                gap += 1
            v = min(road[line, x], gap)
            out[0, line, x] = v + k
            w = v - k
            if w > 0:
                w -= 1
            out[1, line, x] = w
            out[2, line, x] = v * k
            out[3, line, (x + v) % road.shape[1]] = v
            out[4, line, x] = v % k
            out[5, line, x] = v // k


NUMBERS = st.one_of(st.integers(-5, 9), st.sampled_from([-(2**31), 1 - 2**31, 2**31 - 1, 2**30, -(2**30)]))


def result(function: Any, road: list[int], limit: int, k: int) -> Any:
    """What is stored, or what is raised."""
    roads = np.array(road, np.int32).reshape(2, 4)
    out = np.zeros((6, 2, 4), np.int32)
    try:
        with np.errstate(over="raise", divide="raise"):  # of NumPy's integers
            function(roads, limit, k, out)
    except (lw.RefusedError, RunError, OverflowError, ZeroDivisionError, FloatingPointError) as error:
        return type(error)
    return out.tobytes()


@settings(deadline=None, max_examples=60)
@given(road=st.lists(NUMBERS, min_size=8, max_size=8), limit=st.integers(0, 3), k=NUMBERS)
@example(road=[1, 5, 2, 7, 0, 4, 1, 3], limit=2, k=3)
@example(road=[2**31 - 1] * 8, limit=3, k=2**31 - 1)
@example(road=[-(2**31)] * 8, limit=0, k=-1)
def test_results_are_those_of_python_or_nothing(road: list[int], limit: int, k: int) -> None:
    expected, found = result(combined.python, road, limit, k), result(combined, road, limit, k)
    if isinstance(found, type):
        assert isinstance(expected, type) or max(map(abs, [*road, k])) >= 2**30, "everything fits"
    else:
        assert found == expected


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_python_goes_on_where_a_number_is_too_large_and_it_is_said_why(caplog: pytest.LogCaptureFixture) -> None:
    road, out, expected = np.full((1, 4), 2**30, np.int32), *np.zeros((2, 6, 1, 4), np.int32)
    road[0, 1] = -(2**30)
    combined.python(road, 0, 3, expected)
    with caplog.at_level("INFO", "lapwing"):
        lw.nest(combined.python)(road, 0, 3, out)
    assert np.array_equal(out, expected)
    assert re.search(r"_integers\.py:\d+: \* of Python int or int32 and Python int does not fit int32", caplog.text)


@lw.nest
def integer_or_float(a, b, h, n, x):
    if n >= 0:
        k = 0
        a[0], a[n % a.shape[0]] = a[n % a.shape[0]], a[0]
        for i in range(n, n):
            for j in range(5):
                if k < i:
                    k = 1 / h[-2, (4 * k) % h.shape[1]]
                    k += n
                    x += 0 / b[(i // j) % 5]
                k = x * i
    return x, k


def test_floats_are_none_of_them() -> None:
    with pytest.raises(lw.RefusedError, match="the type of a value depends on the values: it is Python int or float64"):
        integer_or_float(np.ones(4), np.ones(5), np.ones((2, 5)), 0, 3)


@lw.nest
def remainders(road, limit, out):
    for line in range(road.shape[0]):
        for x in range(road.shape[1]):
            gap = 0
            while gap < limit and road[line, (x + gap) % road.shape[1]] < 3:
                gap += 1
            out[line, x] = max(road[line, x], gap * 300) % 7


def test_operands_that_the_smaller_integer_cannot_hold_are_refused_although_the_result_fits() -> None:
    road = np.ones((2, 40), np.uint8)
    with pytest.raises(lw.RefusedError, match="the type of a value depends on the values: it is Python int or uint8"):
        remainders(road, 3, np.zeros_like(road))
