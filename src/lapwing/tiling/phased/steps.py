"""The steps in which a rank does its block of a phase: tiles one after the other, or boundary and interior apart.

A phase in which no dependence crosses a cut may do its iterations in any order along the loops that are cut. Those that
neighbours wait for, or that wait for neighbours, are its *boundary*: with the boundary first its faces leave as early as they
can, with the interior first the neighbours' have the longest time to come. Either way messages travel while an interior is
computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lapwing.tiling.boxes import Box
from lapwing.tiling.partition import Range

Split = Literal["boundary first", "interior first"]


@dataclass(frozen=True)
class PhaseTiling:
    """How a phase is cut into steps: tiles of height ``tile`` along the space loop ``mapping``, of the whole block or, where it
    is ``split``, of its interior alone."""

    mapping: int
    tile: int
    split: Split | None = None


@dataclass(frozen=True)
class Step:
    """A box of iterations (space loops, normalised), empty where a rank has nothing to do in a phase. ``boundary``: whether
    others follow it that belong to the same messages."""

    box: Box
    boundary: bool = False


def steps_of(block: Box | None, loops: int, tiling: PhaseTiling, widths: Sequence[tuple[int, int, int]]) -> list[Step]:
    """The steps of a block of so many space loops, at least one. widths: of a split phase, cut loops with the widths of the
    boundary at their beginning and end."""
    if block is None:
        return [Step(((0, 0),) * loops)]
    if tiling.split is None:
        return [Step(box) for box in _tiles(block, tiling)]
    interior, shells = block, []
    for loop, first, last in widths:
        low, high = interior[loop]
        begin = min(low + first, high)
        end = max(high - last, begin)
        shells += [_along(interior, loop, (low, begin)), _along(interior, loop, (end, high))]
        interior = _along(interior, loop, (begin, end))
    boundary = [Step(box, boundary=True) for box in shells if _has_points(box)]
    inner = [Step(box) for box in _tiles(interior, tiling)] if _has_points(interior) else []
    return [*boundary, *inner] if tiling.split == "boundary first" else [*inner, *boundary]


def _tiles(box: Box, tiling: PhaseTiling) -> list[Box]:
    low, high = box[tiling.mapping]
    return [
        _along(box, tiling.mapping, (begin, min(begin + tiling.tile, high))) for begin in range(low, high, tiling.tile)
    ]


def _along(box: Box, loop: int, ends: Range) -> Box:
    return (*box[:loop], ends, *box[loop + 1 :])


def _has_points(box: Box) -> bool:
    return all(low < high for low, high in box)
