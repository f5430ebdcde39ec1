"""Buffers of transposed elements in generated C (``tiling.transposed``): declared, filled, used and brought back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from lapwing.codegen.expression import C_TYPES
from lapwing.codegen.names import Names, PairNames
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import BUFFER_LANES, COPIED_STEPS, ITEMSIZES, MARGIN, Plane, Planes, groups

_Range = tuple[str, str]


class Buffers:
    """The buffers of one tile."""

    def __init__(self, planes: Planes, names: Names, c: PairNames) -> None:
        self.planes, self.c, self._names = planes.planes, c, names
        self._all, self._places = planes, planes.places
        self.sweeps, self.delay, self.shift = planes.sweeps, planes.delay, planes.shift
        self._buffers = [self._name(k, "steps") for k in range(len(self.planes))]

    def _name(self, number: int, suffix: str) -> str:
        return self._names.get(("plane", number, suffix), f"{self.planes[number].array}_{suffix}")

    def headers(self) -> Iterator[str]:
        """Includes of the functions that copy, one for every size of elements."""
        for size in dict.fromkeys(ITEMSIZES[plane.dtype] for plane in self.planes):
            yield f"#define LW_BYTES {size}"
            yield '#include "transposed.h"'

    def elements(self) -> dict[t.Load, str]:
        """What stands for the elements in the loop body."""
        lane = self.c.lane
        return {
            load: f"{self._at(number, sum(offset))}[{lane if not offset[0] else f'{lane} {_signed(offset[0])}'}]"
            for load, (number, offset) in self._places.items()
        }

    def _at(self, number: int, step: int) -> str:
        """The elements of a step, so many from the one at hand."""
        when = "now" if step == 0 else f"{abs(step)}_{'later' if step > 0 else 'ago'}"
        return self._name(number, when)

    def _steps(self, number: int) -> list[int]:
        """The steps from the one at hand that the body uses."""
        return sorted({sum(offset) for n, offset in self._places.values() if n == number})

    def parameters(self) -> list[tuple[str, str]]:
        """Of the loop body's function: a pointer to lane 0 of every step used, and the lane."""
        found = []
        for number, plane in enumerate(self.planes):
            for step in self._steps(number):
                name = self._at(number, step)
                const = "" if plane.written and step == 0 else "const "
                found.append((f"{const}{C_TYPES[plane.dtype]} *restrict {name}", name))
        return [*found, (f"int64_t {self.c.lane}", self.c.lane)]

    def declarations(self) -> Iterator[str]:
        """The buffers: rows of lanes, one for every step that is kept."""
        yield "/* Of every step kept the lanes side by side: lane l is at position step - l of row block + l. */"
        for number, plane in enumerate(self.planes):
            size = f"{self._all.kept_steps(number)} * {BUFFER_LANES}"
            yield f"{C_TYPES[plane.dtype]} {self._buffers[number]}[{size}] __attribute__((aligned(64)));"

    def first_elements(
        self, element: Callable[[t.Load], str], inside: Callable[[Plane], Sequence[_Range]]
    ) -> Iterator[str]:
        """Of every plane the element of lane 0 at the first position, and where it may be outside the array, which lanes and
        positions are inside; C texts at the loops' indices."""
        for number, plane in enumerate(self.planes):
            yield f"{self._name(number, 'first')} = ({C_TYPES[plane.dtype]} *)&{element(plane.reference)};"
            if plane.clipped:
                ends = itertools.chain(*inside(plane))
                yield from (f"{name} = {end};" for name, end in zip(self._ends(number), ends, strict=True))

    def first_declarations(self) -> Iterator[str]:
        for number, plane in enumerate(self.planes):
            yield f"{C_TYPES[plane.dtype]} *{self._name(number, 'first')};"
            if plane.clipped:
                yield f"int64_t {', '.join(self._ends(number))};"

    def _ends(self, number: int) -> list[str]:
        """The first lane inside the array and the first beyond, and the same of positions."""
        return [self._name(number, suffix) for suffix in ("lanes_from", "lanes_until", "from", "until")]

    def copied_before(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """Before the first group: the elements of earlier steps, and of later ones that the group does not copy itself."""
        for number, plane in enumerate(self.planes):
            first, last = plane.steps
            before = COPIED_STEPS * groups(last - first + self.shift * (self.sweeps - 1))
            for step in range(last - before, last, COPIED_STEPS):
                yield from self._copy(number, plane, "", step, row(plane), along, out=False)

    def copied_in(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """At the beginning of a group: the elements of its steps, as far ahead as they are wanted."""
        for number, plane in enumerate(self.planes):
            yield from self._copy(number, plane, self.c.group, plane.steps[1], row(plane), along, out=False)

    def copied_out(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """At the end of a group: what the last sweep has left behind."""
        for number, plane in enumerate(self.planes):
            if plane.written:
                yield from self._copy(number, plane, self.c.group, self._behind(plane), row(plane), along, out=True)

    def copied_last(self, row: Callable[[Plane], str], along: int, beyond: str) -> Iterator[str]:
        """After the last group: what is left of the steps before ``beyond``."""
        c = self.c
        for number, plane in enumerate(self.planes):
            if plane.written:
                step = _plus(c.left, self._behind(plane))
                yield f"for (int64_t {c.left} = {c.group}; {step} < {beyond}; {c.left} += {COPIED_STEPS})"
                for line in self._copy(number, plane, c.left, self._behind(plane), row(plane), along, out=True):
                    yield f"    {line}"

    def _behind(self, plane: Plane) -> int:
        """The first of the steps that are copied out at the end of a group, from the group's own first one."""
        last = plane.steps[1]
        return last - COPIED_STEPS * groups(last + self.delay * (self.sweeps - 1))

    def _copy(self, number: int, plane: Plane, group: str, more: int, row: str, along: int, out: bool) -> Iterator[str]:
        """The copy of a group's steps, from the one that is ``more`` after ``group`` on."""
        c, first = self.c, self._name(number, "first")
        kept, step = self._lane_0(number, plane, group, more), _plus(group, more)

        def call(lanes: _Range, positions: _Range) -> str:
            ends = ", ".join(self._clipped(number, (*lanes, *positions)))
            # Rows that are copied in have been fetched when they are copied out.
            flags = f"true, {'false' if plane.reads_old else 'true'}" if out else "false, true"
            return f"lw_copy_steps_{ITEMSIZES[plane.dtype]}({kept}, {first}, {row}, {along}, {step}, {ends}, {flags});"

        first_lane = c.above if self.sweeps > 1 else "0"
        if out:
            yield call((first_lane, c.lanes), ("0", c.width))
            return
        (above, below), (before, beyond) = plane.lanes, plane.positions
        everything = (str(before), _plus(c.width, beyond))
        if plane.reads_old:
            yield call((_plus(first_lane, above), _plus(c.lanes, below)), everything)
            return
        # Of the block's own rows only what lies before the first position and beyond the last.
        if above or self.sweeps > 1:
            yield call((_plus(first_lane, above), "0"), everything)
        if before:
            yield call(("0", c.lanes), (str(before), "0"))
        if beyond:
            yield call(("0", c.lanes), (c.width, everything[1]))

    def _clipped(self, number: int, ends: Sequence[str]) -> Iterator[str]:
        """Lanes and positions from and until which there is something to copy."""
        if not self.planes[number].clipped:
            yield from ends
            return
        for end, inside, function in zip(ends, self._ends(number), ("max", "min", "max", "min"), strict=True):
            yield f"lw_{function}_i64({end}, {inside})"

    def _lane_0(self, number: int, plane: Plane, step: str, more: int = 0) -> str:
        """Where lane 0 of a step is kept. Those of steps that are copied at once follow one another."""
        index = _plus(step, more - plane.steps[1])
        index = f"({index})" if " " in index else index
        return f"{self._buffers[number]} + ({index} & {self._all.kept_steps(number) - 1}) * {BUFFER_LANES} + {MARGIN}"

    def at_step(self) -> Iterator[str]:
        """Pointers to lane 0 of the steps that the loop body uses."""
        for number, plane in enumerate(self.planes):
            for step in self._steps(number):
                const = "" if plane.written and step == 0 else "const "
                here = self._lane_0(number, plane, self.c.step, step)
                yield f"{const}{C_TYPES[plane.dtype]} *const {self._at(number, step)} = {here};"


def _signed(number: int) -> str:
    return f"{'+' if number > 0 else '-'} {abs(number)}"


def _plus(text: str, number: int) -> str:
    """The C text of a sum, as short as can be; no text stands for zero."""
    if text.lstrip("-").isdigit():
        text, number = "", int(text) + number
    if not text:
        return str(number)
    return text if number == 0 else f"{text} {_signed(number)}"
