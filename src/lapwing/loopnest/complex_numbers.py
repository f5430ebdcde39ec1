"""How Python and NumPy compute with complex numbers here: found by asking them, for builds and versions differ.

A product may be rounded once or twice in each of its parts (fused multiplication and addition), a quotient be one of several
that are in use, and a real operand count as one with an imaginary part of 0 or as none.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

# Parts whose products show how often they are rounded, and what becomes of those that vanish.
_PARTS = (
    (1.1, -0.3), (-0.7, 1.9), (1 / 3, 3 / 7), (0.0, 1.5), (-2.3, 0.0), (-1e-23, -1.0), (1e-23, 0.1), (-1e-200, -1.0),
    (1e-200, 0.1), (1e-310, 0.2), (np.inf, 0.5), (np.inf, -np.inf), (-1.0, np.nan),
    (0.7, -0.0),
)  # fmt: skip
_KINDS: dict[str, Callable[..., Any]] = {"Python float": float, "Python complex": complex}


@cache
def product(left: str, right: str) -> str | None:
    """How a product is computed of numbers of two types, each a NumPy dtype, ``Python float`` or ``Python complex``.

    ``plain``: part by part, each operation rounded; ``loop``: by NumPy's own loop, which may do otherwise; None: in another way.
    """
    return _way(operator.mul, np.multiply, _plain_product, left, right)


@cache
def quotient(left: str, right: str) -> str | None:
    """The same of a quotient: ``plain`` is ``lw_quotient`` of support.h, or ``lw_python_quotient`` of Python's own numbers."""
    plain = _python_quotient if left.startswith("Python") and _is_pythons(right) else _numpy_quotient
    return _way(operator.truediv, np.divide, plain, left, right)


@cache
def adds_plainly(left: str, right: str) -> bool:
    """Whether sums and differences are those of the parts, where a real number has an imaginary part of 0."""
    return all(
        _way(scalar, ufunc, lambda x, y, f=scalar: (f(x[0], y[0]), f(x[1], y[1])), left, right) == "plain"
        for scalar, ufunc in ((operator.add, np.add), (operator.sub, np.subtract))
    )


@cache
def raises_plainly() -> bool:
    """Whether Python raises its complex numbers to small integers by repeated squaring, as ``lw_python_power`` does."""
    numbers = [complex(*parts) for parts in _PARTS[:3]]
    return all(_same(z**n, _squaring(z, n)) for z in numbers for n in (1, 2, 3, 7))


@cache
def has_plain_powers(dtype: str) -> bool:
    """Whether NumPy's numbers of a complex dtype to the powers of 2 and 3 are z * z and z * (z * z), plain products, and 0 for
    zeros."""
    zeros = [np.dtype(dtype).type(complex(re, im)) for re in (0.0, -0.0) for im in (0.0, -0.0)]
    with np.errstate(all="ignore"):
        for z in (z for z in _numbers(dtype) if z != 0):
            parts = z.real, z.imag
            square = _plain_product(parts, parts)
            if not (_same(z**2, square) and _same(z**3, _plain_product(parts, square))):
                return False
        return all(_same(z**exponent, 0j) for z in zeros for exponent in (2, 3))


@cache
def has_plain_square(dtype: str) -> bool:
    """Whether numpy.square of a number of a complex dtype is the plain product, wherever its result lies in memory.

    NumPy has a loop for results close to the operand and another for all others, and one call may take this, the next that one.
    """
    kind = np.dtype(dtype).type
    numbers = [*_numbers(dtype), *(kind(complex(math.sin(k), math.cos(3 * k))) for k in range(1, 25))]
    rows = np.empty((len(numbers), 512), dtype)  # so wide that an element of its middle is close to no operand
    with np.errstate(all="ignore"):
        return all(
            _same(np.square(z), square) and _same(np.square(z, out=row[256, ...])[()], square)
            for z, row in zip(numbers, rows, strict=True)
            for square in (_plain_product((z.real, z.imag), (z.real, z.imag)),)
        )


def _way(
    scalar: Callable[[Any, Any], Any], ufunc: np.ufunc, plain: Callable[..., Any], left: str, right: str
) -> str | None:
    results = []
    with np.errstate(all="ignore"):
        for x in _numbers(left):
            for y in _numbers(right):
                if isinstance(y, float | complex) and y == 0 and not isinstance(x, np.generic):
                    continue  # Python raises
                found = scalar(x, y)
                kind = np.dtype(type(found)).type
                part = kind(0).real.dtype.type
                parts = [tuple(part(p) for p in (z.real, z.imag)) for z in (x, y)]
                results.append((found, plain(*parts), ufunc(kind(x), kind(y))))
    if all(_same(found, expected) for found, expected, _ in results):
        return "plain"
    return "loop" if all(_same(found, expected) for found, _, expected in results) else None


def _numbers(name: str) -> Sequence[Any]:
    kind = _KINDS.get(name) or np.dtype(name).type
    if "complex" in name:
        return [kind(complex(*parts)) for parts in _PARTS]
    return [kind(re) for re, _ in _PARTS if re]


def _is_pythons(name: str) -> bool:
    """Whether a Python complex number takes it for one of Python's: NumPy's float64 is a Python float."""
    return name.startswith("Python") or name == "float64"


def _same(found: Any, expected: Any) -> bool:
    real, imag = expected if isinstance(expected, tuple) else (expected.real, expected.imag)
    pairs = ((found.real, real), (found.imag, imag))
    return all((f != f and e != e) or (f == e and np.signbit(f) == np.signbit(e)) for f, e in pairs)


def _plain_product(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any]:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _numpy_quotient(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any]:
    """Smith's algorithm, with one division by the scale."""
    one = type(a[0])(1)
    if b[0] == b[1] == 0:
        return a[0] / abs(b[0]), a[1] / abs(b[0])
    if abs(b[0]) >= abs(b[1]):
        ratio = b[1] / b[0]
        scale = one / (b[0] + b[1] * ratio)
        return (a[0] + a[1] * ratio) * scale, (a[1] - a[0] * ratio) * scale
    ratio = b[0] / b[1]
    scale = one / (b[1] + b[0] * ratio)
    return (a[0] * ratio + a[1]) * scale, (a[1] * ratio - a[0]) * scale


def _python_quotient(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any]:
    """Smith's algorithm, with a division for each part."""
    if abs(b[0]) >= abs(b[1]):
        ratio = b[1] / b[0]
        divisor = b[0] + b[1] * ratio
        return (a[0] + a[1] * ratio) / divisor, (a[1] - a[0] * ratio) / divisor
    if abs(b[1]) >= abs(b[0]):
        ratio = b[0] / b[1]
        divisor = b[0] * ratio + b[1]
        return (a[0] * ratio + a[1]) / divisor, (a[1] * ratio - a[0]) / divisor
    return np.nan, np.nan


def _squaring(z: complex, exponent: int) -> complex:
    power, square = (1.0, 0.0), (z.real, z.imag)
    while exponent:
        if exponent & 1:
            power = _plain_product(power, square)
        square = _plain_product(square, square)
        exponent >>= 1
    return complex(*power)
