"""Which elements of an array iterations can touch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.pieces import Piece
from lapwing.tiling.boxes import Box
from lapwing.tiling.partition import Range, in_direction


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
            low, high = (0, extent - 1) if axis in local else _reached(bound, access, axis, inside)
            known = hull[axis]
            hull[axis] = (low, high + 1) if known is None else (min(low, known[0]), max(high + 1, known[1]))
    # Guarded accesses may reach outside on paper; they never do in a run.
    return tuple(
        (0, 0) if r is None else (max(0, min(r[0], extent)), max(0, min(r[1], extent)))
        for r, extent in zip(hull, array.shape, strict=True)
    )


def _reached(bound: BoundNest, access: ir.Access, axis: int, inside: Mapping[str, Range]) -> Range:
    """Least and greatest index of an access in a box of iterations (normalised, inclusive)."""
    if (affine := bound.axis(access, axis)) is not None:
        return affine.interval(inside)
    if bound.skew is None and (pieces := bound.pieces.get((access, axis))):
        ranges = {loop.name: _in_direction(inside[loop.name], loop.step) for loop in bound.nest.loops}
        found = [piece.index.interval(part) for piece in pieces if (part := piece.within(ranges)) is not None]
        return min((low for low, _ in found), default=0), max((high for _, high in found), default=-1)
    return 0, bound.array(access.array).shape[axis] - 1


def _in_direction(inclusive: Range, step: int) -> Range:
    low, high = in_direction((inclusive[0], inclusive[1] + 1), step)
    return low, high - 1


def images(bound: BoundNest, access: ir.Access, box: Sequence[Range]) -> list[Box]:
    """Boxes around the elements that an access touches in a box of iterations (space loops, normalised): one, or some where its
    indices are affine piece by piece. The nest is not skewed."""
    found = []
    for indices, ranges in _pieces_in(bound, access, box):
        elements = []
        for axis, extent in enumerate(bound.array(access.array).shape):
            index = indices[axis]
            low, high = (0, extent - 1) if index is None else index.interval(ranges)
            elements.append((max(0, low), min(extent, high + 1)))  # guarded accesses may reach outside on paper
        found.append(tuple(elements))
    return found


def touching(bound: BoundNest, access: ir.Access, elements: Box, box: Sequence[Range]) -> list[Box]:
    """Boxes around those iterations of a box (space loops, normalised) in which an access may touch some elements. The nest is
    not skewed."""
    found = []
    for indices, ranges in _pieces_in(bound, access, box):
        for index, (low, high) in zip(indices, elements, strict=True):
            if index is None or len(index.terms) > 1:
                continue
            for name, factor in index.terms:
                if factor == 1:
                    known = ranges[name]
                    ranges[name] = (max(known[0], low - index.constant), min(known[1], high - 1 - index.constant))
            if not index.terms and not low <= index.constant < high:
                break
        else:
            loops = bound.nest.space_loops
            iterations = [in_direction((ranges[x.name][0], ranges[x.name][1] + 1), x.step) for x in loops]
            if all(low < high for low, high in iterations):
                found.append(tuple(iterations))
    return found


def _pieces_in(
    bound: BoundNest, access: ir.Access, box: Sequence[Range]
) -> Iterator[tuple[list[Affine | None], dict[str, Range]]]:
    """The indices of an access in parts of a box of iterations, over the user's indices, with these indices' ranges (inclusive);
    None for one that may be anywhere."""
    assert bound.skew is None
    space = zip(bound.nest.loops, (*bound.domain.box[: bound.nest.sweep_depth], *box), strict=True)
    ranges = {loop.name: _in_direction((low, high - 1), loop.step) for loop, (low, high) in space}
    choices: list[tuple[Piece | None, ...]] = [
        bound.pieces.get((access, axis), (None,)) for axis in range(len(access.affine))
    ]
    plain = [bound.index(access, axis) for axis in range(len(access.affine))]
    for pieces in itertools.product(*choices):
        part: dict[str, Range] | None = dict(ranges)
        for piece in pieces:
            part = part if part is None or piece is None else piece.within(part)
        if part is not None:
            yield [p if piece is None else piece.index for p, piece in zip(plain, pieces, strict=True)], part
