"""Which of two zeros NumPy takes for the greater one: its extrema are as the processor's instructions, which differ."""

from __future__ import annotations

from functools import cache

import numpy as np


@cache
def zero_taken(function: str, dtype: str) -> str:
    """Which zero numpy.maximum, minimum, fmax or fmin of a 0.0 and a -0.0 gives on this machine: the "first" or "second"
    operand, or the one in "order", -0.0 below 0.0."""
    kind = np.dtype(dtype).type
    plus, minus = kind(0.0), kind(-0.0)
    call = getattr(np, function)
    is_negative = bool(np.signbit(call(plus, minus))), bool(np.signbit(call(minus, plus)))
    return {(False, True): "first", (True, False): "second"}.get(is_negative, "order")
