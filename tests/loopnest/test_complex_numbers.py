"""What is found by asking Python and NumPy about their complex numbers."""

from __future__ import annotations

import operator
import sys
from fractions import Fraction

import numpy as np
import pytest

from lapwing.loopnest import complex_numbers as asked

KINDS = ("Python float", "Python complex", "float32", "float64", "complex64", "complex128")
PAIRS = [(a, b) for a in KINDS for b in KINDS if "complex" in a + b]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_every_pair_is_known(left: str, right: str) -> None:
    """Numbers that no other way of computing is known for would be refused: on this machine there are none."""
    assert asked.product(left, right) in ("plain", "loop")
    assert asked.quotient(left, right) in ("plain", "loop")
    assert asked.adds_plainly(left, right)


def test_powers_are_known() -> None:
    assert asked.raises_plainly()
    assert all(asked.has_plain_powers(d) for d in ("complex64", "complex128"))


def way(multiply, ufunc=np.multiply) -> str | None:
    return asked._way(multiply, ufunc, asked._plain_product, "complex128", "complex128")


def fused(x: np.complex128, y: np.complex128) -> np.complex128:
    """The product with the second of two products rounded, and then the rest once."""
    parts = [float(part) for z in (x, y) for part in (z.real, z.imag)]
    if not np.all(np.isfinite(parts)):
        return x * y
    a, b, c, d = parts
    real, imag = Fraction(a) * Fraction(c) - Fraction(b * d), Fraction(a) * Fraction(d) + Fraction(b * c)
    return np.complex128(complex(float(real), float(imag)))


def with_infinities(x: np.complex128, y: np.complex128) -> np.complex128:
    """As C99's annex G has it: what is infinite times what is not zero is infinite."""
    product = x * y
    recovered = np.isnan(product) and (np.isinf(x) or np.isinf(y))
    return np.complex128(complex(np.inf, np.inf)) if recovered else product


def test_products_that_are_rounded_once_are_told_from_plain_ones() -> None:
    assert way(operator.mul) == "plain"
    assert way(fused) is None
    assert way(with_infinities) is None
    assert way(fused, np.frompyfunc(fused, 2, 1)) == "loop"


def test_real_operands_without_an_imaginary_part_are_told_from_those_with_one() -> None:
    """Python 3.14 leaves the imaginary part of a sum as it is, where before 0.0 was added to it."""
    pair = ("Python complex", "Python float")
    ways = (operator.add, lambda z, x: complex(z.real + x, z.imag))
    found = [asked._way(add, np.subtract, lambda x, y: (x[0] + y[0], x[1] + y[1]), *pair) for add in ways]
    assert found[1] is None
    assert found[0] == ("plain" if sys.version_info < (3, 14) else None)


def test_quotients_of_python_are_told_from_those_of_numpy() -> None:
    pair = ("complex128", "complex128")
    assert asked._way(operator.truediv, np.divide, asked._numpy_quotient, *pair) == "plain"
    assert asked._way(operator.truediv, np.add, asked._python_quotient, *pair) is None
    pair = ("Python complex", "Python complex")
    assert asked._way(operator.truediv, np.divide, asked._python_quotient, *pair) == "plain"
    assert asked._way(operator.truediv, np.divide, asked._numpy_quotient, *pair) != "plain"


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_squares_are_plain_only_where_every_call_of_numpy_agrees(dtype: str) -> None:
    """One by one, where NumPy works on copies side by side; into an array; and all together."""
    random = np.random.default_rng(3)
    z = (random.standard_normal(300) + 1j * random.standard_normal(300)).astype(dtype)
    plain, into = np.array([x * x for x in z]), np.empty((300, 512), dtype)
    ways = [
        np.array([np.square(x) for x in z]),
        np.array([np.square(x, out=y[256, ...])[()] for x, y in zip(z, into, strict=True)]),
    ]
    assert asked.has_plain_square(dtype) == all(np.array_equal(plain, way) for way in ways)
