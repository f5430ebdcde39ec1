"""Numbers as JSON has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def json_number(value: Any) -> bool | int | float | str:
    """A number as JSON has it; NaN, infinities and complex numbers, which it has not, as texts that ``complex`` reads."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, complex) or (isinstance(plain, float) and not math.isfinite(plain)):
        return str(plain)
    result: bool | int | float = plain
    return result
