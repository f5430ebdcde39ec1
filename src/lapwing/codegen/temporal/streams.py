"""What the lanes of a step read of arrays that are written: vectors as they were written one after the other, each step one,
which are so many steps old (``tiling.sweep_lanes``).

Along a stream elements only move on: what lies further back is what was in front some steps before, and stays in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.codegen.lanes.vector_bodies import loads_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.sweep_lanes import SweepLanes, Vector, offset_of


@dataclass(frozen=True)
class Stream:
    """``row``: which one of a group has written its vectors. ``is_old``: whether they are moved by a lane, so that each lane has
    what the one before it wrote. ``rows``: how far behind they were written along the outer loops; ``nearest``, ``furthest``:
    along the innermost one."""

    array: str
    row: int
    is_old: bool
    rows: Vector
    nearest: int
    furthest: int

    @property
    def is_in_row(self) -> bool:
        """Whether they were written just now: then they are still in registers."""
        return not any(self.rows)

    @property
    def steps(self) -> range:
        return range(self.nearest, self.furthest + 1)


class Streams:
    """The streams of a loop body, and which element of them stands for which load."""

    def __init__(self, bound: BoundNest, lanes: SweepLanes) -> None:
        self._bound, self._lanes = bound, lanes
        loads = loads_of(bound)
        self.written = [array.name for array in bound.arrays if array.name in bound.nest.written]
        self.given = [load for load in loads if load.array not in bound.nest.written]
        self.offsets = {load: self._offset(load) for load in loads if load.array in bound.nest.written}
        # Those at the iteration's own place are in what it writes.
        self.changing = {load.array for load, offset in self.offsets.items() if not any(offset)}
        elements = ((load.array, row, offset) for row in range(lanes.rows) for load, offset in self.offsets.items())
        self.all = tuple(self._joined(elements))
        # What the elements at the iterations' own places were before.
        self._befores = [
            s for a in self.written for row in range(lanes.rows) for s in self._joined([(a, row, self._own)])
        ]
        self._all_or_before = (*self.all, *self._befores)

    def _offset(self, load: t.Load) -> Vector:
        offset = offset_of(self._bound, load)
        assert offset is not None
        return offset

    @property
    def _own(self) -> Vector:
        return (0,) * len(self._lanes.skew)

    def offset(self, stream: Stream, steps: int) -> Vector:
        """The place of the element that lies so many steps back, seen from the first row of a group."""
        base = self._lanes.skew if stream.is_old else self._own
        *outer, group, position = (b - far for b, far in zip(base, (*stream.rows, steps), strict=True))
        return (*outer, group * self._lanes.rows + stream.row, position - self._lanes.lag * stream.row)

    def place(self, offset: Vector, row: int) -> Vector:
        """An offset from a row of a group, seen from the first one."""
        *outer, along, innermost = offset
        return (*outer, along + row, innermost - self._lanes.lag * row)

    def _joined(self, elements: Iterable[tuple[str, int, Vector]]) -> Iterator[Stream]:
        found: dict[tuple[str, int, bool, Vector], list[int]] = {}
        for array, reader, offset in elements:
            row, (*rows, steps) = self._lanes.behind(offset, reader)
            found.setdefault((array, row, self._lanes.is_old(offset), tuple(rows)), []).append(steps)
        for key, back in found.items():
            yield Stream(*key, min(back), max(back))

    @cached_property
    def in_masked_steps(self) -> tuple[Stream, ...]:
        """All, and the elements' own places, which lanes outside of the domain hand on, as far as nothing else brings them."""

        def has(one: Stream, other: Stream) -> bool:
            place = (other.array, other.row, other.is_old, other.rows)
            return (one.array, one.row, one.is_old, one.rows) == place and other.nearest in one.steps

        return (*self.all, *(own for own in self._befores if not any(has(stream, own) for stream in self.all)))

    @cached_property
    def results(self) -> dict[tuple[str, int], int]:
        """For how many steps what was written is kept in registers, by array and row of a group."""
        streams = self._all_or_before
        return {
            (name, row): max(
                (s.furthest for s in streams if (s.array, s.row) == (name, row) and s.is_in_row), default=0
            )
            for name in self.written
            for row in range(self._lanes.rows)
        }

    @property
    def reach(self) -> int:
        """How many steps more or less than whole rows vectors from memory are back."""
        streams = self._all_or_before
        return 1 + max((max(abs(s.nearest), abs(s.furthest)) for s in streams if not s.is_in_row), default=0)

    def rows_of(self, array: str) -> list[Vector]:
        """How far behind the rows are that are read of an array. Which are the furthest hangs on how many there are along each
        loop, but those are not that others exceed along every loop."""
        rows = sorted({s.rows for s in self._all_or_before if s.array == array})

        def exceeds(one: Vector, other: Vector) -> bool:
            return one != other and all(a >= b for a, b in zip(one, other, strict=True))

        return [one for one in rows if not any(exceeds(other, one) for other in rows)]

    def is_read_before(self, array: str, furthest: Sequence[Vector]) -> bool:
        """Whether a step, which reads before it writes, is the last one to read what lies as far behind as is kept. furthest: the
        rows of which one is (``rows_of``)."""
        streams = [s for s in self._all_or_before if s.array == array and s.rows in furthest]
        return len(furthest) == 1 and any(furthest[0]) and all(s.nearest <= 0 for s in streams)


def flattened(rows: Sequence[int], sizes: Sequence[str]) -> str:
    """The C text of a number of rows one after the other, from those along every outer loop. sizes: of these, but the first."""
    text = str(rows[0])
    for number, size in zip(rows[1:], sizes, strict=True):
        text = (
            "0"
            if text == "0"
            else size
            if text == "1"
            else f"{text} * {size}"
            if " " not in text
            else f"({text}) * {size}"
        )
        if number:
            text = f"{text} {'+' if number > 0 else '-'} {abs(number)}" if text != "0" else str(number)
    return text
