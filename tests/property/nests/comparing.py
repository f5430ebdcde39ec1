"""What "the same" means: bit-identical elements, and float sums that are the exact sum rounded once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np


def differing(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Where two arrays of one dtype differ in their bits; any NaN is as good as another, in each part of complex numbers."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return np.ones(expected.shape, bool)
    if expected.dtype.kind == "c":
        both = (np.ascontiguousarray(values) for values in (found, expected))
        part = f"f{expected.itemsize // 2}"
        return differing(*(values.view(part).reshape(*values.shape, 2) for values in both)).any(-1)
    bits = f"u{expected.itemsize}"
    apart = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(expected).view(bits)
    if expected.dtype.kind == "f":
        apart &= ~(np.isnan(found) & np.isnan(expected))
    return apart


def check_arrays(found: Mapping[str, object], expected: Mapping[str, object]) -> None:
    """Raise AssertionError, naming array and index, where arrays of the same name differ."""
    for name, right in expected.items():
        if not isinstance(right, np.ndarray):
            continue
        here = found[name]
        assert isinstance(here, np.ndarray)
        apart = differing(here, right)
        if apart.any():
            index = tuple(int(k) for k in np.argwhere(apart)[0])
            raise AssertionError(
                f"{name}{list(index)} is {here[index]!r}, expected {right[index]!r} "
                f"({int(apart.sum())} of {right.size} elements differ)"
            )


def check_value(name: str, found: object, expected: object) -> None:
    """Raise AssertionError where a max, a min or an exact sum differs from the plain loop's."""
    if isinstance(expected, complex | np.complexfloating):
        check_value(f"{name}.real", found.real, expected.real)  # type: ignore[attr-defined]
        check_value(f"{name}.imag", found.imag, expected.imag)  # type: ignore[attr-defined]
        return
    if isinstance(expected, float | np.floating) and math.isnan(expected):
        assert math.isnan(found), f"{name} is {found!r}, expected {expected!r}"  # type: ignore[arg-type]
        return
    # An extremum of zeros of both signs has the sign of whichever came first: that alone may differ.
    assert found == expected, f"{name} is {found!r}, expected {expected!r}"


def exact_sum(terms: Sequence[float], dtype: type) -> float | np.floating:
    """The exact sum of the terms, rounded once to the dtype: IEEE rules for NaN and infinities."""
    values = [float(x) for x in terms]
    special = [x for x in values if not math.isfinite(x)]
    if special:
        return dtype(sum(special))
    total = sum(map(Fraction, values), Fraction(0))
    return rounded(total, dtype)


def rounded(value: Fraction, dtype: type) -> float | np.floating:
    """The nearest number of a float type, ties to even."""
    digits, least = (24, -149) if dtype is np.float32 else (53, -1074)
    if value == 0:
        return dtype(0.0)
    exponent = math.floor(math.log2(abs(value.numerator)) - math.log2(value.denominator))
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    nearest = round(value / unit) * unit  # Python rounds halves to even
    try:
        as_double = nearest.numerator / nearest.denominator
    except OverflowError:
        as_double = math.inf if nearest > 0 else -math.inf
    with np.errstate(over="ignore"):
        return dtype(as_double)
