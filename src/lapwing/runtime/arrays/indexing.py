"""Indices and slices of an array as boxes of its elements."""

from __future__ import annotations

import operator
from typing import Any

from lapwing.runtime.arrays.shear import Box

Index = tuple[int | slice, ...]


def box_index(index: Any, shape: tuple[int, ...]) -> tuple[Box, Index] | None:
    """The box around what an index of integers and slices takes, and the index of the same in it; None for others, and those that
    take nothing or leave the array."""
    given = index if isinstance(index, tuple) else (index,)
    if sum(one is Ellipsis for one in given) > 1 or any(one is None or isinstance(one, bool) for one in given):
        return None
    if any(one is Ellipsis for one in given):
        at = next(k for k, one in enumerate(given) if one is Ellipsis)
        given = (*given[:at], *[slice(None)] * (len(shape) - len(given) + 1), *given[at + 1 :])
    if len(given) > len(shape):
        return None
    box, inside = [], []
    for one, extent in zip((*given, *[slice(None)] * (len(shape) - len(given))), shape, strict=True):
        found = _along(one, extent)
        if found is None:
            return None
        box.append(found[0])
        inside.append(found[1])
    return tuple(box), tuple(inside)


def _along(one: Any, extent: int) -> tuple[tuple[int, int], int | slice] | None:
    if isinstance(one, slice):
        try:
            taken = range(*one.indices(extent))
        except TypeError:
            return None
        if not taken:
            return None
        low, high = min(taken[0], taken[-1]), max(taken[0], taken[-1]) + 1
        return (low, high), slice(None, None, taken.step)
    try:
        at = operator.index(one)
    except TypeError:
        return None
    at = at + extent if at < 0 else at
    return ((at, at + 1), 0) if 0 <= at < extent else None


def takes_all(inside: Index, sides: tuple[int, ...]) -> bool:
    """Whether such an index takes all of its box."""
    return all(
        one == 0 or (isinstance(one, slice) and (one.step == 1 or n == 1)) for one, n in zip(inside, sides, strict=True)
    )
