"""What stands for an array before there is one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayShape:
    """Stands for an array of which only dtype and shape are known here."""

    dtype: str
    shape: tuple[int, ...]
