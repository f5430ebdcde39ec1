"""Numbers that random bodies are tried with."""

from __future__ import annotations

import math

import numpy as np


def numbers(random: np.random.Generator, count: int) -> np.ndarray:
    """Of usual sizes, some of others, and some that are special."""
    usual = random.uniform(-3, 3, count)
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 5e-324, 1e-30, 1e200, 2.0**0.5]
    picked = random.random(count)
    usual = np.where(picked < 0.05, random.choice(special, count), usual)
    with np.errstate(over="ignore"):
        return np.where(picked > 0.97, usual * 10.0 ** random.integers(-300, 300, count), usual)
