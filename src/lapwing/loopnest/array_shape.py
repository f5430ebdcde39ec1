"""What stands for an array before there is one."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayShape:
    """Stands for an array of which only dtype and shape are known here. ``is_scratch``: whether nobody wants what a call
    leaves in it."""

    dtype: str
    shape: tuple[int, ...]
    is_scratch: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)
