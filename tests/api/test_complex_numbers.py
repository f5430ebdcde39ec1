"""Nests and programs of complex numbers: what they return, and what calls that are alike share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.api.check import array_difference, same_number

pytestmark = pytest.mark.usefixtures("little_optimised")


@lw.nest
def summed(u, c):
    total = 0j
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = c * u[i - 1, j] + u[i, j]
            total += u[i, j]
    return total


@lw.nest
def shifted(u, a, c, b):
    for i in range(u.shape[0]):
        u[i] = a * u[i] + c - b


@lw.nest
def rotated(u, angle):
    turn = 1j * angle
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] * turn + u[i, j] / turn


@lw.nest
def largest(u):
    best, where, number = 0.0, -1, 0j
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if abs(u[i, j]) > best:
                best = abs(u[i, j])
                where = i
                number = u[i, j]
    return best, where, number


@lw.nest
def horner(u, z):
    """A recurrence that carries a scalar, and runs in its own order."""
    value = 0j
    for i in range(u.shape[0]):
        value = value * z + u[i]
    return value


@lw.nest
def divided(u, c):
    for i in range(u.shape[0]):
        u[i] = 1 / (c - 1.0 * i) + u[i]


def numbers(*shape: int, dtype: Any = complex) -> np.ndarray:
    rng = np.random.default_rng(3)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def check(nest: lw.Nest, *arguments: Any) -> Any:
    """The bits of the plain loop in arrays, and what is returned: (found, expected)."""
    right, found = ([np.copy(a) if isinstance(a, np.ndarray) else a for a in arguments] for _ in range(2))
    expected = nest.python(*right)
    result = nest(*found)
    for one, other in zip(found, right, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes()
    return result, expected


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_sums_are_those_of_the_parts(dtype: Any) -> None:
    u = numbers(30, 40, dtype=dtype)
    result, expected = check(summed, u, dtype(0.3 - 0.2j))
    assert type(result) is type(expected) is dtype
    summed.python(u, dtype(0.3 - 0.2j))
    assert result.real == dtype(math.fsum(u[1:].real.ravel())).real
    assert result.imag == dtype(math.fsum(u[1:].imag.ravel())).real


def test_a_sum_of_nothing_is_what_it_starts_as() -> None:
    result, expected = check(summed, numbers(1, 4), 0.5)
    assert result == expected == 0
    assert type(result) is complex


def test_a_scalar_is_kept_where_a_modulus_is_largest() -> None:
    result, expected = check(largest, numbers(9, 7))
    assert result == expected
    assert [type(x) for x in result] == [type(x) for x in expected]


@pytest.mark.parametrize(
    ("dtype", "z"), [(np.complex64, 0.3 + 0.4j), (np.complex128, np.complex64(0.3 + 0.4j)), (np.complex64, 0.5)]
)
def test_scalars_are_carried(dtype: Any, z: Any) -> None:
    result, expected = check(horner, numbers(20, dtype=dtype), z)
    assert result == expected
    assert type(result) is type(expected)


def test_calls_with_other_complex_scalars_are_alike() -> None:
    """Floats beside complex ones, which take two of the native scalars."""
    u = numbers(8)
    for c in (1j, 2 - 0.5j, complex(-0.0, math.inf), complex(0.0, -0.0)):
        for a, b in ((0.5, 3.0), (-2.5, 0.25)):
            with np.errstate(invalid="ignore"):
                check(shifted, u, a, c, b)
                check(shifted, u, np.float32(a), np.complex64(c), b)
    for angle in (0.5, 2.0, -0.3):
        check(rotated, numbers(5, 6), angle)


def test_python_raises_where_numpy_warns() -> None:
    with pytest.raises(ZeroDivisionError):
        divided.python(numbers(5), 2 + 0j)
    u = numbers(5)
    with pytest.raises(lw.RunError, match="ZeroDivisionError"):
        divided(u, 2 + 0j)
    assert u.tobytes() == numbers(5).tobytes()
    with np.errstate(all="ignore"):
        check(divided, numbers(5), np.complex128(2))


def test_a_difference_in_one_part_is_seen() -> None:
    """Parts are compared by themselves: a NaN in one says nothing of the other."""
    one = np.array([1 + 2j, complex(math.nan, 1.0), complex(0.0, -0.0)])
    assert array_difference("u", one, one.copy()) is None
    for position, other in ((0, 1 + 3j), (1, complex(math.nan, 2.0)), (1, complex(1.0, 1.0)), (2, 0j)):
        found = one.copy()
        found[position] = other
        assert f"u differs in 1 of 3 elements, first in u[{position}]" in (array_difference("u", one, found) or "")
    assert same_number(complex(math.nan, 1.0), np.complex128(complex(math.nan, 1.0)))
    assert not same_number(complex(math.nan, 1.0), np.complex128(complex(math.nan, 2.0)))


@lw.nest
def told_apart(out, z):
    for i in range(out.shape[0]):
        out[i] = 1 if z[i] else 2.5


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_what_is_true_of_complex_numbers_beside_other_sizes(dtype: Any) -> None:
    z = np.array([0.1 - 2.5j, 0j, 0.5j, 0.0, 0.25, complex(math.nan, 0.0)] * 9, dtype)
    found, expected = np.zeros(54, np.float32), np.zeros(54, np.float32)
    told_apart(found, z)
    told_apart.python(expected, z)
    assert np.array_equal(found, expected)
