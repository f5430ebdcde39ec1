"""Nests whose plain loop raises: an error that names the line, and arrays as they were."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_c_compiler, find_cxx_compiler
from lapwing.errors import BuildError


@pytest.fixture(autouse=True)
def compilers() -> None:
    try:
        find_c_compiler(), find_cxx_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@lw.nest
def narrow(u, r):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + r[i]


@lw.nest
def divide(u, n):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + n / (i - 3)


@lw.nest
def remainder(u, n):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + n % (i - 3)


@lw.nest
def root(u):
    for i in range(1, u.shape[0]):
        u[i] = math.sqrt(3 - i) + u[i - 1]


@lw.nest
def look_up(u, table, r):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + table[r[i]]


@lw.nest
def divide_by_either(u, divisor):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + 2.0 / (divisor if i >= 3 else 1)


@lw.nest
def not_a_number(u, r):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + r[i]


NINE = np.arange(9)
CASES = {
    "int32 into int8": (narrow, (NINE.astype(np.int8), np.full(9, 100, np.int32)), OverflowError),
    "int64 into int16": (narrow, (NINE.astype(np.int16), np.full(9, 2**14, np.int64)), OverflowError),
    "int64 into int32": (narrow, (NINE.astype(np.int32), np.full(9, 2**40, np.int64)), OverflowError),
    "zero divisor": (divide, (NINE.astype(np.float64), 3), ZeroDivisionError),
    "a float that is zero, or an integer that is not": (
        divide_by_either,
        (NINE.astype(np.float64), 0.0),
        ZeroDivisionError,
    ),
    "root of a negative number": (root, (NINE.astype(np.float64),), ValueError),
    "zero modulus": (remainder, (NINE.astype(np.int64), 3), ZeroDivisionError),
    "index past the end": (look_up, (NINE.astype(np.int64), NINE[:5], NINE), IndexError),
    "index before the start": (look_up, (NINE.astype(np.int64), NINE[:5], -NINE), IndexError),
    "NaN into integers": (not_a_number, (NINE.astype(np.int32), np.where(NINE == 4, np.nan, 1.0)), ValueError),
    "infinity into integers": (not_a_number, (NINE.astype(np.int64), np.where(NINE == 4, np.inf, 1.0)), OverflowError),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_of_the_plain_loop_leaves_arrays_alone(case: str) -> None:
    nest, arguments, kind = CASES[case]
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    with pytest.raises(kind):
        nest.python(*copies)
    again = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    with pytest.raises(lw.LapwingError, match=rf"{Path(__file__).name}:\d+: "):
        nest(*again)
    for before, after in zip(arguments, again, strict=True):
        np.testing.assert_array_equal(after, before)


def test_uint8_elements_wrap_as_in_numpy() -> None:
    arguments = NINE.astype(np.uint8), np.full(9, 100, np.int32)
    right, found = arguments[0].copy(), arguments[0].copy()
    narrow.python(right, arguments[1])
    narrow(found, arguments[1])
    np.testing.assert_array_equal(found, right)


@lw.nest
def both_ends(u, r):
    for i in range(u.shape[0]):
        u[i] = r[i - 3] if i >= 3 else 2.0 * r[i - 3]


def test_one_index_from_both_ends() -> None:
    right, found = np.ones(9), np.ones(9)
    both_ends.python(right, NINE.astype(float))
    both_ends(found, NINE.astype(float))
    np.testing.assert_array_equal(found, right)
    with pytest.raises(lw.RunError, match=r"an index of r\[i - 3\] is outside axis 0 of r, which has 5 elements"):
        both_ends(found, NINE[:5].astype(float))


@lw.nest
def narrow_or_wide(u, v):
    for i in range(u.shape[0]):
        v[i] = (v[i] if i >= 1 else 0) + (v[i] if i >= 1 else 0) + (u[i] if i >= 1 else 0)


def test_a_sum_that_may_be_narrow_or_wide_is_refused() -> None:
    """0 + 0 + an int32 is an int32, an int64 + an int64 + an int32 is not."""
    with pytest.raises(lw.RefusedError, match="depends on the values"):
        narrow_or_wide(NINE.astype(np.int32), NINE.astype(np.int64) << 40)


@lw.nest
def greatest(u, r):
    best = 0.0
    for i in range(u.shape[0]):
        best = max(best, r[i], u[i])
    return best


def test_a_nan_before_a_number_hides_it_from_no_maximum() -> None:
    """max(0, nan, 0.25) is 0.25: the nan is not greater than 0."""
    numbers, nans = np.full(NINE.shape, 0.25), np.full(NINE.shape, np.nan)
    assert greatest(numbers, nans) == greatest.python(numbers, nans) == 0.25


@lw.nest
def remainder_by_either(u, divisors):
    for i in range(u.shape[0]):
        u[i] = 1 % (divisors[i] if i >= 3 else 1)


def test_a_divisor_that_is_a_number_or_an_element() -> None:
    """What is known of the number says nothing of the element."""
    right, found = np.zeros(9, np.int64), np.zeros(9, np.int64)
    divisors = np.where(NINE % 2 == 0, np.iinfo(np.int64).min + 1, -NINE)
    remainder_by_either.python(right, divisors)
    remainder_by_either(found, divisors)
    np.testing.assert_array_equal(found, right)
