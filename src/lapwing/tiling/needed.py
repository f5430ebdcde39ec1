"""Which elements of an array iterations can touch."""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.partition import Range


def touched_box(bound: BoundNest, name: str, ranges: Mapping[str, Range]) -> tuple[Range, ...]:
    """The smallest box of elements around what accesses touch while loops have the given values (normalised, half-open); of
    local axes it has all."""
    array = bound.array(name)
    inside = {loop: (low, high - 1) for loop, (low, high) in ranges.items()}
    loops = bound.nest.axis_loops.get(name, ())
    local = {axis for axis, loop in enumerate(loops) if loop is None}
    hull: list[Range | None] = [None] * len(array.shape)
    for access in bound.accesses:
        if access.array != name:
            continue
        for axis, extent in enumerate(array.shape):
            affine = None if axis in local else bound.axis(access, axis)
            low, high = (0, extent - 1) if affine is None else affine.interval(inside)
            known = hull[axis]
            hull[axis] = (low, high + 1) if known is None else (min(low, known[0]), max(high + 1, known[1]))
    # Guarded accesses may reach outside on paper; they never do in a run.
    return tuple(
        (0, 0) if r is None else (max(0, min(r[0], extent)), max(0, min(r[1], extent)))
        for r, extent in zip(hull, array.shape, strict=True)
    )
