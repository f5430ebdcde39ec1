"""Blocks of rows that are computed side by side, a lane a row, each one step behind the row above (``tiling.transposed``): which
rows these are, where they begin and end, and which lanes are at work in a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.body.conditional_calls import calls_by_strips, for_strips
from lapwing.codegen.body.if_conversion import for_lanes
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.text import Lines, mentions, plus
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm, planes_in
from lapwing.tiling.transposed import MARGIN, Plane, Planes

# From the C text of a lane, none for the first: loops, and the coordinates of its point.
Indices = Callable[[str], Sequence[tuple[int, str]]]


class BlockWriter(TileWriter):
    """Writes the loop over blocks of rows, of which buffers hold what the lanes need."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        planes = planes_in(bound, form)
        assert planes is not None, "the form is not legal"
        # What lies in a buffer exists whatever conditions say.
        exists = planes.places.__contains__
        body, _ = for_lanes(bound, exists)
        if calls_by_strips(body.statements):
            body = for_strips(bound, body, "", True, exists)
        super().__init__(replace(bound, body=body), faces, form)
        planes = planes_in(self.bound, form)
        assert planes is not None
        self.buffers = self.make_buffers(planes)
        self.printer.placed = self.buffers.elements()

    def make_buffers(self, planes: Planes) -> Buffers:
        return Buffers(planes, self.stored_types(), self.names, self.pair_names())

    def stored_types(self) -> dict[str, str]:
        return {array.name: array.dtype for array in self.bound.arrays}

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

    # -- the rows of a block ---------------------------------------------------------------------------------------------

    def open_block_of_rows(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """Opens the loop over blocks of rows, and says what is known of a block before its first step."""
        kept, width = f"[{self.buffers.sweeps}]" if self.joins_sweeps else "", self.buffers.width
        lines.add(f"int64_t {c.row_from}{kept}[{width}], {c.row_until}{kept}[{width}];")
        if self._rows_are_alike(v, w):
            above = f", {c.known_above} = 1" if self.joins_sweeps else ""
            lines.add(f"int64_t {c.known} = 0{above}; /* of the block whose rows are known */")
            named = (c.row_from, c.row_until, *self.buffers.names_of_rows())
            lines.add(*(f"LW_SET_LATER({name});" for name in named))
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

    def _rows_of_block(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """Where the rows of a block begin and end, from the first position of its first row on, and what is copied of them."""
        buffers, row = self.buffers, self.loop_bounds(w)
        row_from, row_until, first, beyond = c.row_from, c.row_until, row.low, row.high
        if self.joins_sweeps:
            row_from, row_until = (f"{name}[{c.sweep}]" for name in (row_from, row_until))
            first, beyond = (end.replace("box->", f"{c.moved}.") for end in (first, beyond))
        lines.add(f"int64_t {c.begin};", *buffers.first_declarations())
        lines.open("{")
        self.indices_of(lines, (*self.first_plane(), (v, c.block)))
        lines.add(f"{c.begin} = {row.low};")
        self.indices_of(lines, ((w, c.begin),))
        lines.add(*buffers.first_elements(self.printer.in_array))
        is_alike = self._rows_are_alike(v, w)
        if is_alike:
            known = f"{c.lanes} != {c.known}"
            known += f" || {c.above} != {c.known_above}" if self.joins_sweeps else ""
            lines.open(f"if ({known}) {{")
            lines.add(f"{c.known} = {c.lanes};", *([f"{c.known_above} = {c.above};"] if self.joins_sweeps else []))
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
        if is_alike:
            lines.close()
        lines.close()

    def _rows_are_alike(self, v: int, w: int) -> bool:
        """Whether blocks with as many lanes have the same rows, from the first position of the first one on."""
        row = self.loop_bounds(w)
        moves = mentions(f"{row.low} {row.high}", self.coordinate(self.nest.loops[v].name))
        return not moves and not any(plane.clipped for plane in self.buffers.planes)

    def _ends_early(self, v: int) -> bool:
        """Whether the last rows of a box may be empty, so that blocks end sooner than the box."""
        return self.block_bounds(v).high != f"box->hi[{v}]"

    def first_plane(self) -> tuple[tuple[int, str], ...]:
        """Coordinates at which blocks begin, of loops that are not open around them."""
        return ()

    def indices_at(self, c: PairNames, v: int, w: int) -> Indices:
        """The coordinates of a lane's point."""

        def indices(lane: str) -> tuple[tuple[int, str], ...]:
            down, back = (f" + {lane}", f" - {lane}") if lane else ("", "")
            return (v, f"{c.block}{down}"), (w, f"{c.begin} + {c.step}{back}")

        return indices

    # -- lanes at work ---------------------------------------------------------------------------------------------------

    def _rows_of_sweep(self, c: PairNames) -> tuple[str, str]:
        """Where the rows of all lanes begin and end."""
        return (
            (f"{c.row_from}[{c.sweep}]", f"{c.row_until}[{c.sweep}]")
            if self.joins_sweeps
            else (c.row_from, c.row_until)
        )

    def _declare_lanes_at_work(self, lines: Lines, c: PairNames) -> tuple[str, str, str]:
        """Declares the first lane at work and the one that is no more, of each sweep: their C texts, and by how much later the
        last sweep ends than the first."""
        if not self.joins_sweeps:
            lines.add(f"int64_t {c.starts} = 0, {c.stops} = 0; /* lanes at work */")
            return c.starts, c.stops, ""
        sweeps = self.buffers.sweeps
        starts, stops = f"{c.starts}[{c.sweep}]", f"{c.stops}[{c.sweep}]"
        lines.add(f"int64_t {c.starts}[{sweeps}], {c.stops}[{sweeps}]; /* lanes at work in each sweep */")
        lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
        lines.add(f"{starts} = {stops} = {self.first_of_sweep(c)};")
        lines.close()
        return starts, stops, f" + {times(self._delay, f'({c.sweeps} - 1)')}"

    def _find_lanes_at_work(self, lines: Lines, c: PairNames, starts: str, stops: str) -> None:
        row_from, row_until = self._rows_of_sweep(c)
        at_work = f"{row_from}[{stops} + {MARGIN}] + {stops} <= {c.step}"
        lines.add(f"while ({stops} < {c.beyond} && {at_work}) ++{stops};")
        done = f"{row_until}[{starts} + {MARGIN}] + {starts} <= {c.step}"
        lines.add(f"while ({starts} < {stops} && {done}) ++{starts};")

    def first_of_sweep(self, c: PairNames) -> str:
        """The first lane of a sweep."""
        return f"lw_max_i64({c.above}, -{times(self.buffers.shift, c.sweep)})"

    def beyond(self, c: PairNames, v: int) -> str:
        """The C text of the lane beyond the last one of a sweep."""
        below = f"{c.below} * {c.sweep}"
        return f"lw_min_i64({c.lanes}, {c.rows} - {below})" if self._ends_early(v) else f"{c.lanes} - {below}"

    @property
    def _delay(self) -> int:
        """By how many steps each sweep is behind the one before."""
        return self.buffers.delay[1]

    # -- where the elements of a plane are -------------------------------------------------------------------------------

    def row_stride(self, plane: Plane, v: int, w: int) -> str:
        """The C text of what leads from a lane's element to that of the next at the same position."""
        loop = self.nest.loops[v]
        axis, _ = self.axis_along(plane, v)
        stride = f"{'-' if loop.step < 0 else ''}{self.stride(plane.array, axis)}"
        return plus(stride, -self._skew_of_pair(v, w) * self.nest.loops[w].step)

    def _inside(self, plane: Plane, v: int, w: int) -> list[str]:
        """How many lanes and positions from the reference at the loops' indices on the elements of a plane lie inside their
        array, and where they do no more; by how much positions move from lane to lane."""
        found = [end for k in (v, w) for end in self.ends_inside(plane, k)]
        return [*found, str(self._skew_of_pair(v, w))]

    def ends_inside(self, plane: Plane, k: int) -> tuple[str, str]:
        """From and until where elements are inside their array along a loop, from the reference on."""
        loop = self.nest.loops[k]
        axis, affine = self.axis_along(plane, k)
        index, extent = self.affine(affine), self.extent(plane.array, axis)
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

    def _skew_of_pair(self, v: int, w: int) -> int:
        """By how much a step along loop v moves the coordinate of loop w."""
        return 0 if self.bound.skew is None else self.bound.skew.rows[w][v]


def times(factor: str | int, text: str) -> str:
    return text if str(factor) == "1" else f"{factor} * {text}"
