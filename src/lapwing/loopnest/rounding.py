"""Exact numbers rounded once to a float type."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def nearest(exact: Fraction, dtype: str) -> float:
    """The float64 or float32 nearest to an exact value, ties to even, infinite beyond the range."""
    if dtype == "float64":
        return _nearest_double(exact)
    # Rounding through float64 alone could round twice; the neighbours decide.
    with np.errstate(over="ignore"):
        near = np.float32(_nearest_double(exact))
        if not np.isfinite(near):
            return float(near)
        candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    return float(min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.int32)) & 1)))


def _nearest_double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
