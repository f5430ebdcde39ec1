"""Elements of arrays that a skewed nest writes: sheared indices, in which a rank's block of iterations touches a box.

What x' = U x does to iterations, e' = A e does to the elements they touch, so that a block in skewed coordinates needs a
box of sheared elements: a parallelogram of the user's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.skew import Matrix
from lapwing.tiling.boxes import hull
from lapwing.tiling.faces import loop_offsets
from lapwing.tiling.partition import Range, in_direction

Box = tuple[Range, ...]


@dataclass(frozen=True)
class Shear:
    """``e' = A e``: ``rows`` is A, a row and a column for every axis of an array, with ones on the diagonal.

    ``order`` lists the axes so that each is moved only along with those before it.
    """

    rows: Matrix
    order: tuple[int, ...]

    @property
    def none(self) -> Shear:
        """The shear that leaves all elements where they are."""
        axes = range(len(self.rows))
        return Shear(tuple(tuple(int(k == m) for m in axes) for k in axes), self.order)

    def moves_with(self, axis: int) -> bool:
        """Whether other axes are moved along with this one."""
        return any(row[axis] for k, row in enumerate(self.rows) if k != axis)

    def strides(self, sheared: Sequence[int]) -> tuple[int, ...]:
        """The strides of indices e in memory that has these strides in indices e'."""
        axes = range(len(self.rows))
        return tuple(sum(sheared[k] * self.rows[k][axis] for k in axes) for axis in axes)

    def around(self, box: Box, limits: Box) -> Box:
        """A box of elements inside ``limits`` that holds all those of a sheared box."""
        found: dict[int, Range] = {}
        for axis in self.order:
            low, high = box[axis]
            for m, (first, end) in found.items():
                shifts = (self.rows[axis][m] * first, self.rows[axis][m] * (end - 1))
                low, high = low - max(shifts), high - min(shifts)
            low, high = max(low, limits[axis][0]), min(high, limits[axis][1])
            found[axis] = (low, max(low, high))
        return tuple(found[axis] for axis in range(len(box)))

    def pieces(self, box: Box, limits: Box) -> Iterator[tuple[Box, Box]]:
        """The elements of ``limits`` that lie in a sheared box, in boxes of elements that are boxes of sheared ones too.

        Yields both, elements first: one for every position along the axes that others are moved with.
        """
        position = [0] * len(box)  # along axes that others are moved with

        def shift(axis: int) -> int:
            return sum(factor * position[m] for m, factor in self._factors[axis])

        def inside(axis: int) -> Range:
            moved = shift(axis)
            return max(limits[axis][0], box[axis][0] - moved), min(limits[axis][1], box[axis][1] - moved)

        def walk(depth: int) -> Iterator[tuple[Box, Box]]:
            if depth < len(self._moving):
                axis = self._moving[depth]
                for value in range(*inside(axis)):
                    position[axis] = value
                    yield from walk(depth + 1)
                return
            plain, sheared = [], []
            for axis, moving in enumerate(self._moves):
                low, high = (position[axis], position[axis] + 1) if moving else inside(axis)
                if low >= high:
                    return
                moved = shift(axis)
                plain.append((low, high))
                sheared.append((low + moved, high + moved))
            yield tuple(plain), tuple(sheared)

        yield from walk(0)

    @cached_property
    def _moves(self) -> tuple[bool, ...]:
        return tuple(self.moves_with(axis) for axis in range(len(self.rows)))

    @cached_property
    def _moving(self) -> tuple[int, ...]:
        return tuple(axis for axis in self.order if self._moves[axis])

    @cached_property
    def _factors(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per axis, the axes it is moved with and by how much."""
        return tuple(tuple((m, a) for m, a in enumerate(row) if a and m != k) for k, row in enumerate(self.rows))


def shear_of(bound: BoundNest, name: str) -> Shear:
    """The shear of an array that a skewed nest writes."""
    assert bound.skew is not None
    positions = [k for k in bound.loops_of_axes(name) if k is not None]  # nests with local axes are not skewed
    steps = [bound.nest.loops[k].step for k in positions]
    rows = tuple(
        tuple(bound.skew.rows[k][m] * own * other for m, other in zip(positions, steps, strict=True))
        for k, own in zip(positions, steps, strict=True)
    )
    return Shear(rows, tuple(sorted(range(len(positions)), key=lambda axis: positions[axis])))


def skewed_box(bound: BoundNest, name: str, block: Sequence[Range]) -> Box:
    """The sheared elements that iterations of a block (space loops, skewed) can touch."""
    touched = [element_box(bound, a, block) for a in bound.accesses if a.array == name]
    return hull(touched)


def element_box(bound: BoundNest, access: ir.Access, block: Sequence[Range]) -> Box:
    """The elements that an access of a written array touches in a block, all along local axes.

    Sheared where the nest is skewed.
    """
    ranges = (*bound.domain.box[: bound.nest.sweep_depth], *block)
    offsets = loop_offsets(bound, access)
    box = []
    for k, extent in zip(bound.loops_of_axes(access.array), bound.array(access.array).shape, strict=True):
        if k is None:
            box.append((0, extent))
            continue
        step, offset = bound.nest.loops[k].step, offsets[k]
        assert offset is not None
        first, last = in_direction(ranges[k], step)
        box.append((first + step * offset, last + step * offset))
    return tuple(box)
