"""Exact numbers rounded once to a float type."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def nearest(exact: Fraction, dtype: str) -> float:
    """The float64 or float32 nearest to an exact value, ties to even, infinite beyond the range."""
    return nearest_ratio(exact.numerator, exact.denominator, dtype)


def nearest_ratio(numerator: int, denominator: int, dtype: str) -> float:
    """The same of a ratio, which need not be in lowest terms."""
    double = _nearest_double(numerator, denominator)
    if dtype == "float64":
        return double
    if 2.0**-126 <= abs(double) < 2.0**127 and not _is_between_floats(double):
        return float(np.float32(double))
    # Rounding through float64 could round twice; the neighbours decide.
    exact = Fraction(numerator, denominator)
    with np.errstate(over="ignore"):
        near = np.float32(double)
        if not np.isfinite(near):
            return float(near)
        candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    return float(min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.int32)) & 1)))


def _is_between_floats(double: float) -> bool:
    """Whether a float64 lies halfway between two float32 of normal size."""
    return int(math.frexp(double)[0] * 2.0**53) % 2**29 == 2**28


def _nearest_double(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
