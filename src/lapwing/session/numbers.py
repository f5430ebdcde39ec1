"""Numbers as JSON has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def json_number(value: Any) -> bool | int | float | str:
    """A number as JSON has it; NaN and infinities, which it has not, as texts."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    result: bool | int | float = plain
    return result
