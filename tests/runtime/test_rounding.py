"""Exact numbers rounded once."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from lapwing.runtime.rounding import nearest


def test_beyond_the_range_is_infinite():
    assert nearest(Fraction(10**400), "float64") == math.inf
    assert nearest(Fraction(-(10**400)), "float32") == -math.inf
    assert nearest(Fraction(10**39), "float32") == math.inf


def test_no_double_rounding():
    """1 + 2**-24 + 2**-60 is above the middle of two float32s; as a float64 it falls on the middle."""
    exact = 1 + Fraction(1, 2**24) + Fraction(1, 2**60)
    assert nearest(exact, "float32") == float(np.nextafter(np.float32(1), np.float32(2)))
