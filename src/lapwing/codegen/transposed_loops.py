"""The loops of a tile in C that copies what a step needs of many rows into buffers (``tiling.transposed``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.affine.affine import Affine
from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.text import Lines, mentions, plus
from lapwing.codegen.tile_loops import IN_ORDER, TileWriter
from lapwing.codegen.transposed import Buffers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.transposed import BUFFER_LANES, COPIED_STEPS, MARGIN, Plane, Planes, planes_of


class TransposedTileWriter(TileWriter):
    """Writes a tile with buffers of transposed elements."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(bound, faces, form)
        planes = planes_of(self.bound, form.order, form.coalesced)
        assert planes is not None, "the form is not legal"
        self.buffers = self.make_buffers(planes)
        self.printer.placed = self.buffers.elements()

    def make_buffers(self, planes: Planes) -> Buffers:
        return Buffers(planes, self.names, self.pair_names())

    @property
    def joins_sweeps(self) -> bool:
        return self.buffers.sweeps > 1

    def block_bounds(self, v: int) -> LoopBounds:
        bounds = super().block_bounds(v)
        if not self.joins_sweeps:
            return bounds
        # Rows that begin sooner in later sweeps may be empty in the first.
        w = self.nest.sweep_depth + self.form.order[-1]
        soonest = f"(box->lo[{w}] - tile->moves.lo[{w}] * ({self.pair_names().sweeps} - 1))"
        return LoopBounds(*(end.replace(f"box->lo[{w}]", soonest) for end in (bounds.low, bounds.high)))

    def headers(self) -> Iterator[str]:
        yield from self.buffers.headers()

    def sweep_indices(self, lines: Lines, body: str) -> None:
        # What is copied may lie in another place in every sweep, though the body's text no longer says so.
        super().sweep_indices(lines, "\n".join([body, *self.buffers.first_elements(self.printer.in_array)]))

    def buffer_parameters(self) -> list[tuple[str, str]]:
        return self.buffers.parameters()

    def pair(self, lines: Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above, on buffers of what the steps need."""
        buffers, (_, delay) = self.buffers, self.buffers.delay
        c, along, joins = self.pair_names(), self.nest.loops[w].step, buffers.sweeps > 1
        if joins:
            lines.add(f"const int64_t {c.sweeps} = box->hi[0] - box->lo[0];")
        lines.add(*buffers.declarations())
        self.open_block_of_rows(lines, c, v, w)
        statement = self.declare_point(lines, c)

        def row_of(plane: Plane) -> str:
            return self.row_stride(plane, v, w)

        starts, stops, clock, after = c.starts, c.stops, c.step, ""
        row_from, row_until, last_until = c.row_from, c.row_until, c.row_until
        if joins:
            lines.add("/* Rows whose ends move begin sooner in the last sweep than in the first. */")
            lines.add(f"int64_t {c.group} = -lw_whole_groups(tile->moves.lo[{w}] * ({c.sweeps} - 1));")
        lines.add(*buffers.copied_before(row_of, along))
        if joins:
            row_from, row_until, last_until = f"{row_from}[{c.sweep}]", f"{row_until}[{c.sweep}]", f"{row_until}[0]"
            starts, stops, clock = f"{starts}[{c.sweep}]", f"{stops}[{c.sweep}]", c.clock
            after = f" + {times(delay, f'({c.sweeps} - 1)')}"
            lines.add(
                f"int64_t {c.starts}[{buffers.sweeps}], {c.stops}[{buffers.sweeps}]; /* lanes at work in each sweep */"
            )
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"{starts} = {stops} = lw_max_i64({c.above}, -{times(buffers.shift, c.sweep)});")
            lines.close()
        else:
            lines.add(f"int64_t {starts} = 0, {stops} = 0; /* lanes at work */")
            lines.add("/* The steps at which all lanes of a whole block are at work. */")
            all_from = f"{c.row_from}[{self.lanes - 1 + MARGIN}] + {self.lanes - 1}"
            lines.add(f"const int64_t {c.all_from} = {c.lanes} == {self.lanes} ? {all_from} : INT64_MAX;")
            lines.add(f"const int64_t {c.all_until} = {c.row_until}[{MARGIN}];")
        lines.add(f"const int64_t {c.last} = {last_until}[{c.lanes} - 1 + {MARGIN}] + {c.lanes} - 1;")
        if not joins:
            lines.add(f"int64_t {c.group} = 0;")
        lines.open(f"for (; {c.group} < {c.last}{after}; {c.group} += {COPIED_STEPS}) {{")
        lines.add(*buffers.copied_in(row_of, along))

        indices = self.indices_at(c, v, w)
        if not joins:
            beyond = f"{c.group} + {COPIED_STEPS}"
            lines.open(f"if ({c.group} >= {c.all_from} && {beyond} <= {c.all_until}) {{")
            lines.open(f"for (int64_t {c.step} = {c.group}; {c.step} < {beyond}; ++{c.step}) {{")
            lines.add(*buffers.at_step())
            self.some_lanes(lines, c, "0", str(self.lanes), self.vector_pragma(), indices, statement)
            lines.add(IN_ORDER)
            lines.close()
            lines.add(f"{stops} = {self.lanes};")
            lines.close()
            lines.open("else {")
        lines.add(f"const int64_t {c.end} = lw_min_i64({c.group} + {COPIED_STEPS}, {c.last}{after});")
        lines.open(f"for (int64_t {clock} = {c.group}; {clock} < {c.end}; ++{clock}) {{")
        beyond = c.lanes
        if joins:
            beyond = c.beyond
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"const int64_t {c.step} = {clock} - {times(delay, c.sweep)};")
            lines.add(f"const int64_t {c.beyond} = {self.beyond(c, v)};")
            self.indices_of(lines, ((0, f"box->lo[0] + {c.sweep}"),), statement)
        lines.add(*buffers.at_step())
        lines.add(f"while ({stops} < {beyond} && {row_from}[{stops} + {MARGIN}] + {stops} <= {c.step}) ++{stops};")
        lines.add(f"while ({starts} < {stops} && {row_until}[{starts} + {MARGIN}] + {starts} <= {c.step}) ++{starts};")

        if joins:
            self.lanes_at_work(lines, c, starts, stops, indices, statement)
        else:
            self.some_lanes(lines, c, starts, stops, "#pragma GCC ivdep", indices, statement)
        lines.add(IN_ORDER)
        lines.close()
        lines.close()
        lines.add(*buffers.copied_out(row_of, along))
        lines.close()
        lines.add(*buffers.copied_last(row_of, along, c.last))
        self.fold_point(lines, c)
        lines.close()

    def open_block_of_rows(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """Opens the loop over blocks of rows, and says what is known of a block before its first step."""
        high = self.open_block(lines, c, v)
        if self.joins_sweeps:
            shift = self.buffers.shift
            lines.add(
                "/* The lanes that each sweep leaves to the block below, and those that the block above has left. */"
            )
            is_last = f"{c.block} + {self.lanes} >= {high}"
            lines.add(f"const int64_t {c.below} = {is_last} ? tile->moves.hi[{v}] : {shift};")
            if self._ends_early(v):
                lines.add(f"const int64_t {c.rows} = {is_last} ? box->hi[{v}] - {c.block} : {self.lanes};")
            above = f"{c.block} == {self.block_bounds(v).low} ? tile->moves.lo[{v}] : {shift}"
            lines.add(f"const int64_t {c.above} = -({above}) * ({c.sweeps} - 1);")
        self._rows_of_block(lines, c, v, w)

    def _ends_early(self, v: int) -> bool:
        """Whether the last rows of a box may be empty, so that blocks end sooner than the box."""
        return self.block_bounds(v).high != f"box->hi[{v}]"

    def beyond(self, c: PairNames, v: int) -> str:
        """The C text of the lane beyond the last one of a sweep."""
        below = f"{c.below} * {c.sweep}"
        return f"lw_min_i64({c.lanes}, {c.rows} - {below})" if self._ends_early(v) else f"{c.lanes} - {below}"

    def declare_point(self, lines: Lines, c: PairNames) -> str:
        """A call of the loop body. Every lane notes by itself what it sums up, and where the plain loop would raise, so that the
        lanes of a step do not wait for each other."""
        private = self.declare_private(lines, c, MARGIN)
        if not self.raises:
            return self.point_call(private)
        lines.add(f"int64_t {c.traps}[{self.lanes + MARGIN}] = {{0}};")
        return self.point_call(private, f"{c.traps}[{plus(c.lane, MARGIN)}]")

    def _first_term(self, accumulator: t.Accumulator) -> str:
        """The C name of where a step's terms of an exact sum are kept, from lane 0 on."""
        return self.names.get(("first term", accumulator.name), f"{self.accumulator(accumulator.name)}_first")

    def sum_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        first, (terms, _) = self._first_term(accumulator), self.terms_names(accumulator)
        return [(f"double *restrict {terms}", terms), (f"int64_t {first}", first)]

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        terms, _ = self.terms_names(accumulator)
        return f"{terms}[{self._first_term(accumulator)} + {self.pair_names().lane}] = {value};"

    def fold_point(self, lines: Lines, c: PairNames) -> None:
        """Brings together what the lanes have noted."""
        self.fold_private(lines, c, MARGIN)
        if self.raises:
            folded = f"lw_note({c.traps}[{c.lane}] != 0, {c.traps}[{c.lane}], &trap);"
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {self.lanes + MARGIN}; ++{c.lane}) {folded}")

    @property
    def raises(self) -> bool:
        """Whether some iterations may raise, and others not."""
        return not raises_alike(self.bound.body)

    def row_stride(self, plane: Plane, v: int, w: int) -> str:
        """The C text of what leads from a lane's element to that of the next at the same position."""
        loop = self.nest.loops[v]
        axis, _ = self.axis_along(plane, v)
        stride = f"{'-' if loop.step < 0 else ''}{self.stride(plane.array, axis)}"
        return plus(stride, -self._skew_of_pair(v, w) * self.nest.loops[w].step)

    def lanes_at_work(
        self, lines: Lines, c: PairNames, starts: str, stops: str, indices: Sequence[tuple[int, str]], statement: str
    ) -> None:
        """The lanes of a step, of which mostly all are at work."""
        lines.open(f"if ({stops} - {starts} == {self.lanes}) {{")
        self.some_lanes(lines, c, starts, f"{starts} + {self.lanes}", self.vector_pragma(), indices, statement)
        lines.close()
        lines.open("else {")
        self.some_lanes(lines, c, starts, stops, "#pragma GCC ivdep", indices, statement)
        lines.close()

    def some_lanes(
        self,
        lines: Lines,
        c: PairNames,
        first: str,
        beyond: str,
        pragma: str,
        indices: Sequence[tuple[int, str]],
        statement: str,
    ) -> None:
        """The points of a step in some of its lanes."""
        sums = [a for a in self.bound.body.accumulators if a.exact_sum]
        for accumulator in sums:
            _, count = self.terms_names(accumulator)
            lines.add(f"const int64_t {self._first_term(accumulator)} = {_difference(count, first)};")
        lines.add(pragma)
        lines.open(f"for (int64_t {c.lane} = {first}; {c.lane} < {beyond}; ++{c.lane}) {{")
        self.indices_of(lines, indices, statement)
        lines.add(statement)
        lines.close()
        for accumulator in sums:
            terms, count = self.terms_names(accumulator)
            kept = f"{self.accumulator(accumulator.name)}, {terms}, {count}"
            added = _difference(beyond, first)
            added = f"({added})" if " " in added else added
            lines.add(f"{count} = lw_exact_keep({kept} + {added}, {self.lanes + MARGIN});")

    def indices_at(self, c: PairNames, v: int, w: int) -> tuple[tuple[int, str], ...]:
        """The coordinates of a lane's point."""
        return (v, f"{c.block} + {c.lane}"), (w, f"{c.begin} + {c.step} - {c.lane}")

    def _rows_of_block(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """Where the rows of a block begin and end, from the first position of its first row on, and what is copied of them."""
        buffers, row = self.buffers, self.loop_bounds(w)
        row_from, row_until, first, beyond = c.row_from, c.row_until, row.low, row.high
        if self.joins_sweeps:
            row_from, row_until = (f"{name}[{c.sweep}]" for name in (row_from, row_until))
            first, beyond = (end.replace("box->", f"{c.moved}.") for end in (first, beyond))
        kept = f"[{buffers.sweeps}]" if self.joins_sweeps else ""
        lines.add(f"int64_t {c.begin}, {c.row_from}{kept}[{BUFFER_LANES}], {c.row_until}{kept}[{BUFFER_LANES}];")
        lines.add(*buffers.first_declarations())
        lines.open("{")
        self.indices_of(lines, (*self.first_plane(), (v, c.block)))
        lines.add(f"{c.begin} = {row.low};")
        self.indices_of(lines, ((w, c.begin),))
        lines.add(*buffers.first_elements(self.printer.in_array))
        if self.joins_sweeps:
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"const lw_box {c.moved} = lw_moved(box, &tile->moves, {c.sweep});")
        lines.open(f"for (int64_t {c.lane} = {buffers.first_lane}; {c.lane} < {c.lanes}; ++{c.lane}) {{")
        if mentions(f"{row.low} {row.high}", self.coordinate(self.nest.loops[v].name)):
            lines.add(f"const int64_t {self.coordinate(self.nest.loops[v].name)} = {c.block} + {c.lane};")
        lines.add(f"{row_from}[{c.lane} + {MARGIN}] = {first} - {c.begin};")
        lines.add(f"{row_until}[{c.lane} + {MARGIN}] = {beyond} - {c.begin};")
        lines.close()
        if self.joins_sweeps:
            lines.close()
        lines.add(*buffers.rows(lambda plane: self._inside(plane, v, w)))
        lines.close()

    def _skew_of_pair(self, v: int, w: int) -> int:
        """By how much a step along loop v moves the coordinate of loop w."""
        return 0 if self.bound.skew is None else self.bound.skew.rows[w][v]

    def first_plane(self) -> tuple[tuple[int, str], ...]:
        """Coordinates at which blocks begin, of loops that are not open around them."""
        return ()

    def _inside(self, plane: Plane, v: int, w: int) -> list[str]:
        """How many lanes and positions from the reference at the loops' indices on the elements of a plane lie inside their
        array, and where they do no more; by how much positions move from lane to lane."""
        found = [end for k in (v, w) for end in self.ends_inside(plane, k)]
        return [*found, str(self._skew_of_pair(v, w))]

    def ends_inside(self, plane: Plane, k: int) -> tuple[str, str]:
        """From and until where elements are inside their array along a loop, from the reference on."""
        loop = self.nest.loops[k]
        axis, affine = self.axis_along(plane, k)
        index, extent = self.affine(affine), self._extent(plane.array, axis)
        if loop.step == 1:
            return f"-({index})", f"{extent} - ({index})"
        return f"{index} - {extent} + 1", f"{index} + 1"

    def axis_along(self, plane: Plane, k: int) -> tuple[int, Affine]:
        """The axis of an array that a loop runs along in a plane, and its index there."""
        found = self.axis_if_any(plane, k)
        assert found is not None, f"no axis of {plane.array} along {self.nest.loops[k].name}"
        return found

    def axis_if_any(self, plane: Plane, k: int) -> tuple[int, Affine] | None:
        name = self.nest.loops[k].name
        for axis, subscript in enumerate(plane.reference.subscripts):
            if isinstance(subscript, t.AffineSubscript) and name in subscript.affine.names:
                return axis, subscript.affine
        return None


def _difference(end: str, start: str) -> str:
    """The C text of what lies between two places, as short as can be."""
    if start == "0":
        return end
    return end.removeprefix(f"{start} + ") if end.startswith(f"{start} + ") else f"{end} - {start}"


def times(factor: str | int, text: str) -> str:
    return text if str(factor) == "1" else f"{factor} * {text}"
