"""Out of core: which rows of an array every step of a sweep touches, and the slabs that are read and written for it.

A row is an index of an array's first axis, which the mapping loop runs along; a slab is the rows that one step is the first to
touch. So P3's blocks are generalised: step k has slab k, and the rows of the next slab that it reads ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Faces, Part
from lapwing.tiling.needed import touched_box
from lapwing.tiling.partition import Range, in_direction


def streams_along(bound: BoundNest, name: str, mapping: int) -> bool:
    """Whether an array's first axis, and no other, is indexed by the mapping loop plus a constant in every access.

    Axes that every rank has whole are indexed in any way.
    """
    loop = bound.nest.space_loops[mapping].name
    local = [k for k, its_loop in enumerate(bound.nest.axis_loops.get(name, ())) if its_loop is None]
    accesses = [access for access in bound.accesses if access.array == name]
    for access in accesses:
        axes = [bound.axis(access, axis) for axis in range(len(access.affine))]
        first = axes[0]
        if first is None or dict(first.terms) != {loop: bound.nest.space_loops[mapping].step}:
            return False
        others = [affine for k, affine in enumerate(axes) if k > 0 and k not in local]
        if any(loop in dict(affine.terms) for affine in others if affine is not None):
            return False
    return bool(accesses)


@dataclass(frozen=True)
class ArrayRows:
    """An array of which slabs are in memory. ``step`` is the direction of the mapping loop, 1 or -1, and so that of the slabs.

    ``touched``: for every step the rows it touches, messages included. ``cuts``: where slabs begin, in the direction of the
    loop (normalised), and where the last one ends.
    """

    name: str
    step: int
    touched: tuple[Range, ...]
    cuts: tuple[int, ...]

    def slab(self, number: int) -> Range:
        """The rows of a slab."""
        return in_direction((self.cuts[number], self.cuts[number + 1]), self.step)

    def most_rows(self, slots: int) -> int:
        """How many rows so many slabs behind each other have at most, from one pass to the next as well."""
        sizes = [high - low for low, high in zip(self.cuts, self.cuts[1:], strict=False)]
        slots = min(slots, len(sizes))
        total = most = sum(sizes[:slots])
        for k in range(len(sizes)):
            total += sizes[(k + slots) % len(sizes)] - sizes[k]
            most = max(most, total)
        return most


@dataclass(frozen=True)
class Slabs:
    """What of some arrays one rank has in memory at every step of a sweep. There is a slab of each array for every step.

    ``before``: how many slabs each step needs to have been read; after step k the first k + 1 are not touched any more.
    """

    arrays: tuple[ArrayRows, ...]
    before: tuple[int, ...]

    def least_slots(self, pass_sweeps: int, skew: int) -> int:
        """How many slabs a pass of so many sweeps needs at once, each sweep ``skew`` steps behind the one before."""
        behind = skew * (pass_sweeps - 1)
        return max(needed - max(0, step - behind) for step, needed in enumerate(self.before))


def slabs_of(faces: Faces, rank: int, names: Sequence[str]) -> Slabs:
    """The slabs of a rank. names: of arrays that stream along the mapping loop (``streams_along``)."""
    return _Slicing(faces, rank).slabs(names)


class _Slicing:
    def __init__(self, faces: Faces, rank: int) -> None:
        assert faces.mapping is not None
        self._faces, self._rank, self._mapping = faces, rank, faces.mapping
        self._bound, self._steps = faces.bound, faces.steps(rank)
        self._direction = self._bound.nest.space_loops[faces.mapping].step

    def slabs(self, names: Sequence[str]) -> Slabs:
        arrays = tuple(self._rows(name) for name in names)
        before = [0] * len(self._steps)
        for array in arrays:
            slab = 0
            for step, rows in enumerate(array.touched):
                _, high = in_direction(rows, self._direction)
                while slab < len(self._steps) - 1 and array.cuts[slab + 1] < high:
                    slab += 1
                before[step] = max(before[step], slab + 1)
        return Slabs(arrays, tuple(before))

    def _rows(self, name: str) -> ArrayRows:
        extent = self._bound.array(name).shape[0]
        first, end = in_direction((0, extent), self._direction)
        touched = [self._touched(name, k) for k in range(len(self._steps))]
        cuts = [end]
        for rows in reversed(touched):
            low, _ = in_direction(rows, self._direction)
            cuts.append(min(cuts[-1], low) if rows[0] < rows[1] else cuts[-1])
        cuts[-1] = first
        return ArrayRows(name, self._direction, tuple(touched), tuple(reversed(cuts)))

    def _touched(self, name: str, step: int) -> Range:
        depth = self._bound.nest.sweep_depth
        ranges = (*self._bound.domain.box[:depth], *self._steps[step])
        box = touched_box(self._bound, name, dict(zip(self._bound.nest.loop_names, ranges, strict=True)))
        rows = [box[0], *self._carried.get((name, step), [])]
        rows = [(low, high) for low, high in rows if low < high]
        return (min(low for low, _ in rows), max(high for _, high in rows)) if rows else (0, 0)

    @cached_property
    def _carried(self) -> dict[tuple[str, int], list[Range]]:
        """The rows that messages bring for a step, or take from it, by array and step."""
        found: dict[tuple[str, int], list[Range]] = {}
        for step, part in self._parts():
            face = self._faces.faces[part.face]
            offset = face.offsets[self._bound.nest.sweep_depth + self._mapping]
            assert offset is not None
            low, high = part.box[self._mapping]
            rows = in_direction((low + offset, high + offset), self._direction)
            found.setdefault((face.array, step), []).append(rows)
        return found

    def _parts(self) -> Iterator[tuple[int, Part]]:
        for channel in self._faces.incoming(self._rank):
            yield from ((message.needed, part) for message in channel.messages for part in message.parts)
        for channel in self._faces.outgoing(self._rank):
            yield from ((message.made, part) for message in channel.messages for part in message.parts)
