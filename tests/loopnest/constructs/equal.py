"""Whether values are the same, with their types and bits."""

from __future__ import annotations

from typing import Any

import numpy as np


def equal(a: Any, b: Any) -> bool:
    if isinstance(b, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(b, np.ndarray | np.generic):
        same = type(a) is type(b) and (a.dtype, a.shape) == (b.dtype, b.shape)
        return same and bool(a.tobytes() == b.tobytes())
    return type(a) is type(b) and repr(a) == repr(b)
