"""Boxes of elements: half-open ranges of indices along every axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from lapwing.errors import RefusedError

Range = tuple[int, int]
Box = tuple[Range, ...]


def whole(shape: Sequence[int]) -> Box:
    """The box of all elements of an array."""
    return tuple((0, n) for n in shape)


def sides(box: Box) -> tuple[int, ...]:
    """The shape of the elements in a box."""
    return tuple(high - low for low, high in box)


def is_empty(box: Box) -> bool:
    """Whether there are no elements in it."""
    return any(low >= high for low, high in box)


def intersection(one: Box, other: Box) -> Box:
    """The elements that are in both; where there are none, an empty box."""
    common = ((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return tuple((low, max(low, high)) for low, high in common)


def slices(box: Box, origin: Sequence[int] | None = None) -> tuple[slice, ...]:
    """A box as an index of a NumPy array whose first element is the one at ``origin`` (None: zeros)."""
    starts = (0,) * len(box) if origin is None else origin
    return tuple(slice(low - start, high - start) for (low, high), start in zip(box, starts, strict=True))


def text(box: Box) -> str:
    """As messages have it: "[0:10, 5:8]"."""
    return f"[{', '.join(f'{low}:{high}' for low, high in box)}]"


def checked(box: Any, shape: tuple[int, ...], where: str) -> Box:
    """A box as a caller gave it. where: of which array, for messages. Raises RefusedError where it is none of this array's."""
    try:
        found = tuple((operator.index(low), operator.index(high)) for low, high in box)
    except (TypeError, ValueError):
        found = None
    if found is None or len(found) != len(shape):
        raise RefusedError(
            f"{where}: the box {box!r} is none: expected (low, high) for each of the {len(shape)} axes, such as "
            f"{whole(shape)}."
        )
    if any(not 0 <= low <= high <= n for (low, high), n in zip(found, shape, strict=True)):
        raise RefusedError(
            f"{where}: the box {text(found)} is not inside the array: expected 0 ≤ low ≤ high ≤ the axis' length, of "
            f"shape {shape}."
        )
    return found
