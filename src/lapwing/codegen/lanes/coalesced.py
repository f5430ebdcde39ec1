"""Tiles in C on buffers in which the planes of a third loop follow one another: that loop is coalesced with the innermost
(``tiling.transposed``).

A lane's rows of all planes are one row. From plane to plane its position moves by ``pitch``, which leaves room for what is
asked for before and after a row. A buffer is a ring of steps that holds what the planes next to the one at hand need, so each
element is copied in once, and out once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import Lines, mentions, plus
from lapwing.codegen.lanes.blocks import Indices, times
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.codegen.lanes.lane_rows import When
from lapwing.codegen.lanes.transposed import TransposedTileWriter
from lapwing.codegen.lanes.vectors import Mask, VectorSteps
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.transposed import (
    COPIED_STEPS,
    ITEMSIZES,
    MARGIN,
    MOST_COALESCED_SWEEPS,
    Distance,
    Plane,
    Planes,
)


class CoalescedBuffers(Buffers):
    """The buffers of one tile: rings of ``kept`` steps."""

    def __init__(
        self,
        planes: Planes,
        stored: Mapping[str, str],
        names: Names,
        c: PairNames,
        stride: Callable[[Plane], str],
        ends: Callable[[Plane], Sequence[str]],
    ) -> None:
        """stride: the C text of that from a plane of an array to the next; ends: from and until which planes there are some in
        the array, at the indices of the first element."""
        super().__init__(planes, stored, names, c)
        self.stride, self.ends = stride, ends
        if self.sweeps > 1:
            # How many fit depends on the length of rows, of which the C text knows nothing.
            self.sweeps = MOST_COALESCED_SWEEPS

    def time(self, when: Distance) -> str:
        """The C text of a distance in steps."""
        planes, steps = when
        if planes == 0:
            return str(steps)
        return plus({1: self.c.pitch, -1: f"-{self.c.pitch}"}.get(planes, f"{planes} * {self.c.pitch}"), steps)

    def rings(self) -> Iterator[str]:
        """How many steps the rings hold: what is asked for while a group is computed in all sweeps, what was written and is not
        yet copied out, and what is copied before the first group."""
        first = min(plane.distances[0] for plane in self.planes)
        last = max(plane.distances[1] for plane in self.planes)
        span = self.time((last[0] - first[0], last[1] - first[1]))
        more = ""
        if self.sweeps > 1:
            sooner = f" + {self.all_planes.sooner}" if self.all_planes.sooner else ""
            more = f" + ({self.c.delay}{sooner}) * ({self.c.sweeps} - 1)"
        yield f"const int64_t {self.c.kept} = lw_whole_groups({span}{more}) + 2 * {COPIED_STEPS};"

    def declarations(self) -> Iterator[str]:
        yield "/* Of every step kept the lanes side by side: lane l is at position step - l of all rows of block + l. */"
        for number, plane in enumerate(self.planes):
            c_type = C_TYPES[plane.dtype]
            yield f"{c_type} *const {self._buffers[number]} = lw_new_steps({self.c.kept}, sizeof({c_type}));"
            if plane.dtype == "bool":
                # Lanes between rows compute with what they find, and of a bool only 0 and 1 are values.
                yield f"memset({self._buffers[number]}, 0, (size_t)({self.c.kept} * {self.width}));"
            rows = [self._name(number, "rows"), self.rows_inside(number)]
            if plane.written:
                rows.append(self._name(number, "own_rows"))
            yield f"lw_rows {', '.join(dict.fromkeys(rows))};"
            if plane.written:
                yield f"{c_type} {self._name(number, 'idle')}[{self.width}];"

    def first_declarations(self) -> Iterator[str]:
        yield from super().first_declarations()
        for number, plane in enumerate(self.planes):
            if plane.clipped:
                yield f"int64_t {self._name(number, 'from_plane')}, {self._name(number, 'until_plane')};"

    def first_elements(self, element: Callable[[t.Load], str]) -> Iterator[str]:
        yield from super().first_elements(element)
        for number, plane in enumerate(self.planes):
            if plane.clipped:
                first, last = self._planes_wanted(plane)
                begin, end = self.ends(plane)
                yield f"{self._name(number, 'from_plane')} = lw_max_i64({first}, {begin});"
                yield f"{self._name(number, 'until_plane')} = lw_min_i64({last}, {end});"

    def _planes_wanted(self, plane: Plane) -> tuple[str, str]:
        """From and until which plane elements are asked for."""
        low, high = plane.around
        first = str(low) if self.sweeps == 1 else plus(f"-{self.c.earlier}", low)
        return first, plus(self.c.planes, high)

    def rows_inside(self, number: int) -> str:
        # Before the first plane nothing was written.
        return self._name(number, "rows" if self.planes[number].reads_old else "inner_rows")

    def freed(self) -> Iterator[str]:
        for buffer in self._buffers:
            yield f"free({buffer});"

    def copied_before(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        for number, plane in enumerate(self.planes):
            (u, s), (v, w) = plane.distances
            span, group, first = self.time((v - u, w - s)), self.c.group, "0"
            if self.sweeps > 1:
                group, first = self.c.left, self.c.group
                span += f" + {self.c.earlier} * {self.c.pitch}"
                if self.all_planes.sooner:
                    span += f" + {times(self.all_planes.sooner, f'({self.c.sweeps} - 1)')}"
            yield f"for (int64_t {group} = -lw_whole_groups({span}); {group} < {first}; {group} += {COPIED_STEPS})"
            yield "    " + self._copy_group(number, plane, row(plane), along, out=False, group=group)

    def copied_in(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        for number, plane in enumerate(self.planes):
            yield self._copy_group(number, plane, row(plane), along, out=False)

    def copied_out(self, row: Callable[[Plane], str], along: int) -> Iterator[str]:
        for number, plane in enumerate(self.planes):
            if plane.written:
                yield self._copy_group(number, plane, row(plane), along, out=True)

    def copied_last(self, row: Callable[[Plane], str], along: int, beyond: str) -> Iterator[str]:
        c = self.c
        for number, plane in enumerate(self.planes):
            if plane.written:
                behind = self._sum(c.left, plane, self._behind_steps(plane))
                yield f"for (int64_t {c.left} = {c.group}; {behind} < {beyond}; {c.left} += {COPIED_STEPS})"
                yield "    " + self._copy_group(number, plane, row(plane), along, out=True, group=c.left)

    def _behind_steps(self, plane: Plane) -> str:
        """How many steps, whole groups of them, pass between copying in and out."""
        last = self.time(plane.distances[1])
        return f"lw_whole_groups({last}{f' + {self.c.delay} * ({self.c.sweeps} - 1)' if self.sweeps > 1 else ''})"

    def _sum(self, group: str, plane: Plane, behind: str) -> str:
        """The first of the steps that are copied at once, so many behind those that are copied in."""
        last = self.time(plane.distances[1])
        text = group if last == "0" else f"{group} - {last[1:]}" if last.startswith("-") else f"{group} + {last}"
        return text if not behind else f"{text} - {behind}"

    def _copy_group(self, number: int, plane: Plane, row: str, along: int, out: bool, group: str = "") -> str:
        c, size = self.c, ITEMSIZES[plane.dtype]
        group = group or c.group
        behind = self._behind_steps(plane) if out else ""
        place = f"({group} - {behind}) % {c.kept}" if behind else f"{group} % {c.kept}"
        kept = f"{self._buffers[number]} + lw_around({place}, {c.kept}) * {self.width} + {MARGIN}"
        first, last = self._planes_wanted(plane)
        if out:
            first, last = "0" if self.sweeps == 1 else f"-{c.earlier}", c.planes
        elif plane.clipped:
            first, last = self._name(number, "from_plane"), self._name(number, "until_plane")
        (above, below), outer, inner = plane.lanes, self._name(number, "rows"), self.rows_inside(number)
        if out:
            outer = inner = self._name(number, "own_rows")
        lanes = (self.first_lane, c.lanes) if out else (plus(self.first_lane, above), plus(c.lanes, below))
        planes = f"{self.stride(plane)}, {c.pitch}, {self.all_planes.margins[0]}, {first}, {last}"
        step = self._sum(group, plane, behind)
        return (
            f"lw_copy_planes_{size}({kept}, {self._name(number, 'first')}, {planes}, {row}, {along}, {step}, {lanes[0]}, "
            f"{lanes[1]}, &{outer}, &{inner}, {'true, false' if out else 'false, true'});"
        )

    def lane_0_at(self, number: int, when: Distance) -> str:
        u, s = self.planes[number].distances[1]
        back = self.time((when[0] - u, when[1] - s))
        here = self.c.here if back == "0" else f"{self.c.here} {back[0]} {back[1:]}"
        return f"{self._buffers[number]} + lw_around({here}, {self.c.kept}) * {self.width} + {MARGIN}"

    def idle_lanes(self, keep: bool) -> Iterator[str]:
        """Keeps what is between rows, where lanes compute nonsense meanwhile, or brings it back."""
        c = self.c
        for number, plane in enumerate(self.planes):
            if plane.written:
                places = (f"{self._name(number, 'idle')} + {MARGIN}", self.at(number, (0, 0)))
                to, source = places if keep else places[::-1]
                gap = f"{c.idle}, {c.pitch}, {c.pitch} - {c.length}"
                yield f"lw_copy_idle_{ITEMSIZES[plane.dtype]}({to}, {source}, {gap}, {c.starts}, {c.stops});"


class CoalescedTileWriter(TransposedTileWriter):
    """Writes a tile with buffers of transposed elements, one ring for all planes."""

    buffers: CoalescedBuffers

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        self.around = bound.nest.sweep_depth + form.order[-3]
        super().__init__(bound, faces, form)
        # Places of lanes between rows are counted in integers of the size of elements.
        if self.vectors and (self.vectors.lane_type == "int16_t" or not self._lanes_compute_along(self.pair_names())):
            self.vectors = None
            self.reason_against_vectors = (
                self.reason_against_vectors or "rows end where others go on, and lanes there touch memory"
            )

    def is_same_in_blocks(self, load: t.Load) -> bool:
        return False  # the rows of a lane begin again in every plane

    def make_buffers(self, planes: Planes) -> CoalescedBuffers:
        stored, c = self.stored_types(), self.pair_names()
        return CoalescedBuffers(planes, stored, self.names, c, self._plane_stride, self._plane_ends)

    def outer_loops(self) -> Sequence[int]:
        return super().outer_loops()[:-1]

    def pair(self, lines: Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The three innermost loops as blocks of rows. All steps of a group are computed in a sweep before the next one does its
        own, which lie a plane further back."""
        buffers, joins = self.buffers, self.joins_sweeps
        c, along = self.pair_names(), self.nest.loops[w].step
        if joins:
            lines.add(f"const int64_t {c.sweeps} = box->hi[0] - box->lo[0];")
        self._common(lines, c, w, is_inside)
        lines.add(*buffers.declarations())
        self.open_block_of_rows(lines, c, v, w)
        self.declare_point(lines, c)
        if self.vectors:
            self.copy_rows(lines, (*self.first_plane(), (v, c.block), (w, c.begin)), When.BLOCK)

        def row_of(plane: Plane) -> str:
            return self.row_stride(plane, v, w)

        after = ""
        if joins:
            ahead = f"tile->moves.lo[{self.around}] * {c.pitch} + {buffers.all_planes.sooner} - {c.delay}"
            after = f" + {c.delay} * ({c.sweeps} - 1)"
            lines.add(f"int64_t {c.group} = -lw_whole_groups(lw_max_i64(0, {ahead}) * ({c.sweeps} - 1));")
        lines.add(*buffers.copied_before(row_of, along))
        lines.add(f"const int64_t {c.whole} = ({c.planes} - 1) * {c.pitch} + {c.length}; /* of a lane's row */")
        lines.add(f"const int64_t {c.last} = {c.whole} + {c.lanes} - 1;")
        if not joins:
            lines.add(f"int64_t {c.group} = 0;")
        lines.open(f"for (; {c.group} < {c.last}{after}; {c.group} += {COPIED_STEPS}) {{")
        lines.add(*buffers.copied_in(row_of, along))
        lag, here, opens, closes = "", f"{c.group} % {c.kept}", "", c.whole
        if joins:
            lag, opens, closes = f" - {c.lag}", f" - {c.opens}", c.closes
            here = f"({c.group} - {c.lag}) % {c.kept}"
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"const int64_t {c.lag} = {c.delay} * {c.sweep};")
            self.indices_of(lines, ((0, f"box->lo[0] + {c.sweep}"),), self.statement(c))
            moves = f"{c.pitch} * {c.sweep}"
            lines.add(f"const int64_t {c.opens} = -tile->moves.lo[{self.around}] * {moves};")
            lines.add(f"const int64_t {c.closes} = {c.whole} - tile->moves.hi[{self.around}] * {moves};")
        lines.add(f"const int64_t {c.starts_at} = {self.first_of_sweep(c) if joins else 0};")
        lines.add(f"const int64_t {c.beyond} = {self.beyond(c, v) if joins else c.lanes};")
        lines.add("/* Where lane 0 is, and its step in the rings. */")
        lines.add(f"int64_t {c.plane} = lw_floordiv_i64({c.group}{lag}, {c.pitch});")
        lines.add(f"int64_t {c.position} = {c.group}{lag} - {c.plane} * {c.pitch};")
        lines.add(f"int64_t {c.here} = lw_around({here}, {c.kept});")
        lines.add(f"int64_t {c.step} = {c.group}{lag};")
        lines.add(f"const int64_t {c.end} = {c.step} + {COPIED_STEPS};")
        if self.vectors:
            self._vector_steps(lines, c, self.vectors, v, w, opens, closes)
        lines.open(f"for (; {c.step} < {c.end}; ++{c.step}) {{")
        stops = f"lw_max_i64({c.starts_at}, {c.step}{opens} + 1)"
        lines.add(f"const int64_t {c.stops} = lw_min_i64({c.beyond}, {stops});")
        starts = f"lw_max_i64({c.starts_at}, {c.step} - {closes} + 1)"
        lines.add(f"const int64_t {c.starts} = lw_min_i64({c.stops}, {starts});")
        step = Lines()
        self._lanes_of_planes(step, c, v, w)
        self.add_step(lines, step)
        self._move_on(lines, c)
        lines.close()
        if joins:
            lines.close()
        lines.add(*buffers.copied_out(row_of, along))
        lines.close()
        lines.add(*buffers.copied_last(row_of, along, c.last))
        self.fold_point(lines, c, self.indices_at(c, v, w))
        lines.close()
        lines.add(*buffers.freed())

    def _common(self, lines: Lines, c: PairNames, w: int, is_inside: bool) -> None:
        """What all blocks have in common."""
        buffers, (planes, rows) = self.buffers, (self.loop_bounds(k) for k in (self.around, w))
        lines.add(
            f"/* The rows of a lane follow one another: a plane further its position is by `{c.pitch}` further. */"
        )
        lines.add(f"const int64_t {c.planes} = {planes.high} - {planes.low}, {c.length} = {rows.high} - {rows.low};")
        lines.add(f"if ({c.planes} <= 0 || {c.length} <= 0) {'continue' if is_inside else 'return'};")
        pitch = plus(c.length, sum(buffers.all_planes.margins))
        lines.add(f"const int64_t {c.pitch} = lw_max_i64({pitch}, {buffers.all_planes.least_pitch});")
        if self.joins_sweeps:
            lines.add(f"const int64_t {c.delay} = {buffers.time(buffers.delay)};")
            lines.add("/* Planes by which the last sweep begins sooner than the first. */")
            lines.add(f"const int64_t {c.earlier} = tile->moves.lo[{self.around}] * ({c.sweeps} - 1);")
            # Lanes before lane 0 may be further on by as many planes.
            lines.add(f"const int64_t {c.further} = 1 + {MARGIN} / {c.length};")
        lines.add(*buffers.rings())

    def first_plane(self) -> tuple[tuple[int, str], ...]:
        return ((self.around, self.loop_bounds(self.around).low),)

    def _move_on(self, lines: Lines, c: PairNames) -> None:
        """To the next step."""
        lines.add(f"{c.here} = lw_around({c.here} + 1, {c.kept});")
        lines.open(f"if (++{c.position} == {c.pitch}) {{")
        lines.add(f"{c.position} = 0;", f"++{c.plane};")
        lines.close()

    def _lanes_compute_along(self, c: PairNames) -> bool:
        """Whether lanes between two rows compute along, and what they overwrite is brought back: where only buffers are read and
        written."""
        along = self.nest.sweep_depth + self.form.order[-1]
        named = (self.index(self.nest.loops[k].name) for k in (self.around, along))
        notes = self.raises or self.bound.body.accumulators
        return not notes and not any(mentions(self.statement(c), name) for name in named)

    def _vector_steps(
        self, lines: Lines, c: PairNames, vectors: VectorSteps, v: int, w: int, opens: str, closes: str
    ) -> None:
        """The steps of a group at which no lane has its first row before it or its last one behind it, where no more than one
        lane after another is between two rows."""
        size, gap = f"{c.beyond} - {c.starts_at}", f"{c.pitch} - {c.length}"
        most, last = self.lanes, vectors.count - 1
        fits = f"{size} > {most - vectors.width} && {size} <= {most}" if self.joins_sweeps else f"{size} == {most}"
        begun = f"{c.beyond} <= {c.step}{opens} + 1 && {c.end} - {closes} <= {c.starts_at}"
        small = self.copy_rows(lines, self.indices_at(c, v, w)(""), When.GROUP)
        small = f" && {small}" if vectors.rows.narrows else ""
        lines.open(f"if ({fits} && {begun} && {c.pitch} >= {most} + {gap}{small}) {{")
        lines.add(*vectors.last_steps())
        lines.open(f"for (; {c.step} < {c.end}; ++{c.step}) {{")
        lines.add("/* The first lane between two rows. */")
        lines.add(f"const int64_t {c.next} = {c.position} + 1 - {c.starts_at};")
        lane = vectors.lane_type
        lines.add(f"const {lane} {c.idle} = ({lane})({c.next} < {most} ? {c.next} : {c.next} - {c.pitch});")
        lines.add(f"const u{lane} {c.gap} = (u{lane})({gap});")
        indices, step = self.indices_at(c, v, w), Lines()
        end = f" & ({{0}} < {size})" if self.joins_sweeps else ""
        step.open(f"if ({c.idle} >= {most} || {c.idle} + ({gap}) <= 0) {{")
        self.vector_step(step, c, vectors, indices, {last: Mask(f"{{0}} < {size}")} if self.joins_sweeps else {})
        step.close()
        step.open("else {")
        test = f"((u{lane})({{0}} - {c.idle}) >= {c.gap})"
        masks = {k: Mask(test + (end if k == last else "")) for k in range(vectors.count)}
        self.vector_step(step, c, vectors, indices, masks)
        step.close()
        self.add_step(lines, step)
        self._move_on(lines, c)
        lines.close()
        lines.close()

    def _lanes_of_planes(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """The lanes of a step, those of each plane by themselves where they cannot compute along between two rows."""
        buffers = self.buffers
        before = f" - {c.further} * {c.pitch}" if self.joins_sweeps else f" - {c.pitch}"
        if self._lanes_compute_along(c):
            lines.add(f"const int64_t {c.idle} = {c.position} + 1{before}; /* the first lanes between rows */")
            lines.add(*buffers.idle_lanes(keep=True))
            self._lanes_at_work(lines, c, c.starts, c.stops, self.indices_at(c, v, w))
            lines.add(*buffers.idle_lanes(keep=False))
            return
        further = f" + {c.further}" if self.joins_sweeps else ""
        lines.add(f"int64_t {c.current} = {c.plane}{further};")
        first = f"{c.position} + 1{before}" if self.joins_sweeps else f"{c.position} + 1"
        lines.open(
            f"for (int64_t {c.idle} = {first}; {c.idle} - {c.length} < {c.stops}; {c.idle} += {c.pitch}, --{c.current}) {{"
        )
        lines.add(f"const int64_t {c.first} = lw_max_i64({c.starts}, {c.idle} - {c.length});")
        lines.add(f"const int64_t {c.until} = lw_min_i64({c.stops}, {c.idle});")
        lines.add(f"if ({c.first} >= {c.until}) continue;")
        around = (self.around, f"{self.loop_bounds(self.around).low} + {c.current}")

        def indices(lane: str) -> tuple[tuple[int, str], ...]:
            along = (w, f"{c.begin} + {c.step} - {c.current} * {c.pitch} - {lane}")
            return around, (v, f"{c.block} + {lane}"), along

        self._lanes_at_work(lines, c, c.first, c.until, indices)
        lines.close()

    def _lanes_at_work(self, lines: Lines, c: PairNames, starts: str, stops: str, indices: Indices) -> None:
        """The lanes of a step, of which mostly all are at work."""
        lines.open(f"if ({stops} - {starts} == {self.lanes}) {{")
        self.some_lanes(lines, c, starts, f"{starts} + {self.lanes}", self.vector_pragma(), indices)
        lines.close()
        lines.open("else {")
        self.some_lanes(lines, c, starts, stops, "#pragma GCC ivdep", indices)
        lines.close()

    def _plane_stride(self, plane: Plane) -> str:
        found = self.axis_if_any(plane, self.around)
        if found is None:
            return "0"
        return f"{'-' if self.nest.loops[self.around].step < 0 else ''}{self.stride(plane.array, found[0])}"

    def _plane_ends(self, plane: Plane) -> tuple[str, str]:
        if self.axis_if_any(plane, self.around) is None:
            return "0", self.pair_names().planes
        return self.ends_inside(plane, self.around)
