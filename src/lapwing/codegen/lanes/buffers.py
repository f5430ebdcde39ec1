"""Buffers of transposed elements in generated C (``tiling.transposed``): declared, filled, used and brought back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import Lines, mentions, plus, signed
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.transposed import (
    COPIED_STEPS,
    ITEMSIZES,
    MARGIN,
    Distance,
    Plane,
    Planes,
    distance,
    groups,
)


def include(sizes: tuple[int, int], called: bool = False) -> str:
    """The include of the functions that copy elements of a size, of another in arrays. called: they are not inlined."""
    size, stored = sizes
    wider = f"#define LW_STORED_BYTES {stored}\n" if stored > size else ""
    calls = "#define LW_CALLED\n" if called else ""
    return f'#define LW_BYTES {size}\n{wider}{calls}#include "transposed.h"'


class Buffers:
    """The buffers of one tile. stored: of every array the type of its elements, which may be wider than those of the buffer."""

    def __init__(self, planes: Planes, stored: Mapping[str, str], names: Names, c: PairNames) -> None:
        self._stored = stored
        self.planes, self.c, self._names = planes.planes, c, names
        self.all_planes, self.places = planes, planes.places
        self.sweeps, self.delay, self.shift = planes.sweeps, planes.delay, planes.shift
        self.lanes, self.width = planes.lanes, planes.width
        self._buffers = [self._name(k, "steps") for k in range(len(self.planes))]

    def _name(self, number: int, suffix: str) -> str:
        return self._names.get(("plane", number, suffix), f"{self.planes[number].array}_{suffix}")

    def headers(self) -> Iterator[str]:
        """Includes of the functions that copy, one for every size of elements."""
        yield self.definition_of_lanes
        yield from map(include, self.sizes())

    @property
    def definition_of_lanes(self) -> str:
        """What those functions have to know before."""
        return f"#define LW_LANES {self.lanes}"

    def sizes(self) -> list[tuple[int, int]]:
        """Those of elements, in buffers and in arrays."""
        sizes = ((ITEMSIZES[plane.dtype], ITEMSIZES[self._stored[plane.array]]) for plane in self.planes)
        return list(dict.fromkeys(sizes))

    def size(self, plane: Plane) -> str:
        """What names of functions that copy a plane end in."""
        size, stored = ITEMSIZES[plane.dtype], ITEMSIZES[self._stored[plane.array]]
        return str(size) if stored == size else f"{size}_of_{stored}"

    def elements(self) -> dict[t.Load, str]:
        """What stands for the elements in the loop body."""
        lane = self.c.lane
        return {
            load: f"{self.at(number, distance(offset))}[{lane if not offset[0] else f'{lane} {signed(offset[0])}'}]"
            for load, (number, offset) in self.places.items()
        }

    def at(self, number: int, when: Distance) -> str:
        """The elements of a step, so far from the one at hand."""
        planes, steps = when
        words = [f"{abs(steps)}_{'later' if steps > 0 else 'ago'}"] if steps else []
        if planes:
            words += [f"{abs(planes)}_plane{'s' if abs(planes) > 1 else ''}_{'later' if planes > 0 else 'ago'}"]
        return self._name(number, "_".join(words) or "now")

    def times(self, number: int) -> list[Distance]:
        """The steps, from the one at hand, that the body uses."""
        return sorted({distance(offset) for n, offset in self.places.values() if n == number})

    def parameters(self) -> list[tuple[str, str]]:
        """Of the loop body's function: a pointer to lane 0 of every step used, and the lane."""
        found = []
        for number, plane in enumerate(self.planes):
            for when in self.times(number):
                name = self.at(number, when)
                const = "" if plane.written and when == (0, 0) else "const "
                found.append((f"{const}{C_TYPES[plane.dtype]} *restrict {name}", name))
        return [*found, (f"int64_t {self.c.lane}", self.c.lane)]

    def declarations(self) -> Iterator[str]:
        """The buffers: rows of lanes, one for every step that is kept."""
        yield "/* Of every step kept the lanes side by side: lane l is at position step - l of row block + l. */"
        for number, plane in enumerate(self.planes):
            size = f"{self.all_planes.kept_steps(number)} * {self.width}"
            yield f"{C_TYPES[plane.dtype]} {self._buffers[number]}[{size}] __attribute__((aligned(64)));"
            rows = [self._name(number, "rows"), *([self._name(number, "own_rows")] if plane.written else [])]
            yield f"lw_rows {', '.join(rows)};"
            if plane.readers is not None:
                yield f"lw_unread {self._name(number, 'unread')};"
            if self.sweeps > 1:
                yield f"const int64_t {self._name(number, 'mask')} = {self._mask(number)}; /* of steps in the buffer */"
            if plane.written and self.sweeps > 1:
                delay = "" if self.delay[1] == 1 else f"{self.delay[1]} * "
                lag = plus(f"{delay}({self.c.sweeps} - 1)", plane.steps[1])
                behind = f"const int64_t {self._name(number, 'behind')} = lw_whole_groups({lag});"
                yield f"{behind} /* steps until all sweeps have done one */"

    def first_elements(self, element: Callable[[t.Load], str]) -> Iterator[str]:
        """Of every plane the element of lane 0 at the first position; element: the C text of one at the loops' indices."""
        for number, plane in enumerate(self.planes):
            yield f"{self._name(number, 'first')} = ({self._stored_type(plane)} *)&{element(plane.reference)};"

    def first_declarations(self) -> Iterator[str]:
        for number, plane in enumerate(self.planes):
            yield f"{self._stored_type(plane)} *{self._name(number, 'first')};"

    def _stored_type(self, plane: Plane) -> str:
        return C_TYPES[self._stored[plane.array]]

    def rows(self, inside: Callable[[Plane], Sequence[str]]) -> Iterator[str]:
        """What is copied of the rows of a block. inside: lanes and positions from and until which elements are in the array, and
        by how much positions move from lane to lane; C texts at the indices of lane 0 at the first position."""
        c, first_lane = self.c, self.first_lane
        first_begin, begin, end = c.row_from, c.row_from, c.row_until
        if self.sweeps > 1:  # rows begin first in the last sweep, and end last in the first
            first_begin, begin, end = f"{begin}[0]", f"{begin}[{c.sweeps} - 1]", f"{end}[0]"
        for number, plane in enumerate(self.planes):
            rows, squares = self._name(number, "rows"), f"lw_make_squares_{self.size(plane)}"
            yield f"lw_no_rows(&{rows});"
            for across, along in dict.fromkeys(offset[:2] for offset in plane.offsets):
                yield f"lw_add_rows(&{rows}, {begin}, {end}, {first_lane}, {c.lanes}, {across}, {along});"
            if plane.clipped:
                yield f"lw_clip_rows(&{rows}, {', '.join(inside(plane))});"
            inner = self.rows_inside(number)
            if inner != rows:
                yield f"{inner} = {rows};"
                yield f"{squares}(&{rows});"
            if not plane.reads_old:
                yield f"lw_rows_before(&{inner}, {first_begin}, 0, {c.lanes});"
            yield f"{squares}(&{inner});"
            if plane.written:
                own = self._name(number, "own_rows")
                yield f"lw_no_rows(&{own});"
                yield f"lw_add_rows(&{own}, {begin}, {end}, {first_lane}, {c.lanes}, 0, 0);"
                yield f"{squares}(&{own});"
            if plane.readers is not None:
                unread = self._name(number, "unread")
                yield f"lw_none_read(&{unread});"
                for across, along in plane.readers:
                    yield f"lw_read_at(&{unread}, {c.row_from}, {c.row_until}, {c.lanes}, {across}, {along});"
                yield f"lw_group_unread(&{unread}, &{own}, {c.lanes});"

    def names_of_rows(self) -> Iterator[str]:
        """The C variables that ``rows`` sets."""
        for number, plane in enumerate(self.planes):
            yield from dict.fromkeys((self._name(number, "rows"), self.rows_inside(number)))
            if plane.written:
                yield self._name(number, "own_rows")
            if plane.readers is not None:
                yield self._name(number, "unread")

    def rows_inside(self, number: int) -> str:
        """What is copied of the rows of planes that lanes go through."""
        return self._name(number, "rows")

    @property
    def first_lane(self) -> str:
        """Of the lanes at work in a block."""
        return self.c.above if self.sweeps > 1 else "0"

    def copied_before(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """Before the first group: the elements of earlier steps, and of later ones that the group does not copy itself."""
        for number, plane in enumerate(self.planes):
            first, last = plane.steps
            before = COPIED_STEPS * groups(last - first + self.all_planes.sooner * (self.sweeps - 1))
            for step in range(last - before, last, COPIED_STEPS):
                group = self.c.group if self.sweeps > 1 else ""
                yield self._copy(number, plane, group, step, row(plane), along, out=False)

    def copied_in(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """At the beginning of a group: the elements of its steps, as far ahead as they are wanted."""
        for number, plane in enumerate(self.planes):
            yield self._copy(number, plane, self.c.group, plane.steps[1], row(plane), along, out=False)

    def copied_out(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        """At the end of a group: what the last sweep has left behind."""
        for number, plane in enumerate(self.planes):
            if plane.written:
                yield self._copy(number, plane, *self._left_behind(number, self.c.group), row(plane), along, out=True)

    def copied_last(self, row: Callable[[Plane], str], along: int, beyond: str) -> Iterator[str]:
        """After the last group: what is left of the steps before ``beyond``."""
        c = self.c
        for number, plane in enumerate(self.planes):
            if plane.written:
                group, more = self._left_behind(number, c.left)
                yield f"for (int64_t {c.left} = {c.group}; {plus(group, more)} < {beyond}; {c.left} += {COPIED_STEPS})"
                yield "    " + self._copy(number, plane, group, more, row(plane), along, out=True)

    def _left_behind(self, number: int, group: str) -> tuple[str, int]:
        """The first of the steps that are copied out at the end of a group: a C text, and by how many it is more."""
        last = self.planes[number].steps[1]
        if self.sweeps > 1:
            return f"{group} - {self._name(number, 'behind')}", last
        return group, last - COPIED_STEPS * groups(last)

    def _copy(self, number: int, plane: Plane, group: str, more: int, row: str, along: int, out: bool) -> str:
        """The copy of a group's steps, from the one that is ``more`` after ``group`` on."""
        c, first = self.c, self._name(number, "first")
        kept, step = self._lane_0(number, plane, group, more), plus(group, more)
        if out and plane.readers is not None:
            own, unread = self._name(number, "own_rows"), self._name(number, "unread")
            function = f"lw_store_read_{self.size(plane)}"
            return f"{function}({kept}, {first}, {row}, {along}, {step}, {c.lanes}, &{own}, &{unread});"
        (above, below), rows = plane.lanes, self._name(number, "own_rows" if out else "rows")
        lanes = (self.first_lane, c.lanes) if out else (plus(self.first_lane, above), plus(c.lanes, below))
        # Rows that are copied in have been fetched when they are copied out.
        flags = f"true, {'false' if plane.reads_old else 'true'}" if out else "false, true"
        function = f"lw_copy_steps_{self.size(plane)}"
        return f"{function}({kept}, {first}, {row}, {along}, {step}, {lanes[0]}, {lanes[1]}, &{rows}, {flags});"

    def _lane_0(self, number: int, plane: Plane, step: str, more: int = 0) -> str:
        """Where lane 0 of a step is kept. Those of steps that are copied at once follow one another."""
        index = plus(step, more - plane.steps[1])
        index = f"({index})" if " " in index else index
        mask = self._name(number, "mask") if self.sweeps > 1 else self.all_planes.kept_steps(number) - 1
        return f"{self._buffers[number]} + ({index} & {mask}) * {self.width} + {MARGIN}"

    def _mask(self, number: int) -> str:
        """The C text of what is taken of a step's number to find it in the buffer, of which fewer sweeps use less: that leaves
        more of the first-level cache to the rows."""
        kept = [self.all_planes.kept_steps(number, sweeps) for sweeps in range(1, self.sweeps + 1)]
        text = str(kept[-1] - 1)
        for sweeps in range(self.sweeps - 1, 0, -1):
            if kept[sweeps] != kept[sweeps - 1]:
                text = f"{self.c.sweeps} <= {sweeps} ? {kept[sweeps - 1] - 1} : {text}"
        return text

    def at_step(self, used_in: Lines) -> Iterator[str]:
        """Pointers to lane 0 of the steps that some lines use."""
        text = "\n".join(used_in.texts)
        for number, plane in enumerate(self.planes):
            for when in self.times(number):
                const = "" if plane.written and when == (0, 0) else "const "
                here, name = self.lane_0_at(number, when), self.at(number, when)
                if mentions(text, name):
                    yield f"{const}{C_TYPES[plane.dtype]} *const {name} = {here};"

    def lane_0_at(self, number: int, when: Distance) -> str:
        """Where lane 0 of a step is kept that is so far from the one at hand."""
        return self._lane_0(number, self.planes[number], self.c.step, when[1])
