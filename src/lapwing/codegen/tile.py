"""The tile in C: compute over a box; faces packed, unpacked, and put into a neighbour's memory.

The points of a box are computed in one of the orders of ``tiling.inner``. Where the innermost loop is a chain of dependent
operations, as in Gauss-Seidel, the core would wait out the latency of every link. With lanes the two innermost loops are
skewed: a few rows advance together, each one step behind the row above, so that every step holds as many independent
points for the core to overlap or the compiler to vectorise. Two points of one step differ by (d, -d), and no dependence
does where rectangular tiles are legal (none has a negative component inside a sweep), so the lanes of a step are
independent and each step sees what the steps before it wrote.

Where the whole nest is skewed, loops run over skewed coordinates and the user's indices are computed from them: the body and
the layout of arrays are as ever.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.bounds import tile_bounds
from lapwing.codegen.expression import C_TYPES
from lapwing.codegen.module import ModuleWriter
from lapwing.codegen.names import PairNames
from lapwing.codegen.text import element, indented, mentions, wrapped
from lapwing.codegen.transposed import Buffers
from lapwing.loopnest import ir
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.chains import shortened
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.transposed import BUFFER_LANES, COPIED_STEPS, MARGIN, Plane, planes_of


def tile_source(bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> str:
    """C text of a tile module, with the functions of ``lw_module`` in lapwing.h."""
    return _TileWriter(bound, faces, form).source()


# "ivdep" and "omp simd" free the iterations of one loop from each other, not those of the loop around it. Compilers have
# got that wrong; nothing moves across this line.
_IN_ORDER = '__asm__ volatile("" ::: "memory");'


class _Lines:
    """Lines of C with the indentation of the blocks they stand in."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._depth = 0

    def add(self, *texts: str) -> None:
        self.texts.extend("    " * self._depth + text for text in texts)

    def open(self, text: str) -> None:
        self.add(text)
        self._depth += 1

    def close(self) -> None:
        self._depth -= 1
        self.add("}")

    def close_all(self) -> None:
        while self._depth:
            self.close()


class _TileWriter(ModuleWriter):
    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        innermost = bound.nest.space_loops[form.order[-1]]
        super().__init__(replace(bound, body=shortened(bound.body, innermost.name, innermost.step)))
        self.faces, self.form, self.lanes = faces, form, form.lanes
        self._buffers: Buffers | None = None
        if form.transposed:
            planes = planes_of(self.bound, form.order)
            assert planes is not None, "the form is not legal"
            self._buffers = Buffers(planes, self.names, self._pair_names())
            self.printer.placed = self._buffers.elements()

    def buffer_parameters(self) -> list[tuple[str, str]]:
        return [] if self._buffers is None else self._buffers.parameters()

    def source(self) -> str:
        headers = [] if self._buffers is None else [*self._buffers.headers()]
        lines = [
            *self.heading("One tile."),
            *headers,
            "",
            *self.invariant_functions(),
            *self.point_function(),
            "",
            *self._compute(),
            "",
        ]
        if self.bound.skew is None:
            lines += [
                *self._copies(),
                *self._elements_function(),
                "",
                *self._face_function("pack", "const lw_tile *tile", "void *out", "{here}", "&dense"),
                "",
                *self._face_function("unpack", "lw_tile *tile", "const void *in", "&dense", "{here}"),
                "",
                *self._face_function(
                    "put", "const lw_tile *tile", "const lw_array *there", "{here}", "&there[{position}]"
                ),
            ]
        else:
            lines += [
                *self._walked_faces("pack", "const lw_tile *tile", "void *out", "*{to}++ = {here};"),
                "",
                *self._walked_faces("unpack", "lw_tile *tile", "const void *in", "{here} = *{source}++;"),
                "",
                *self._walked_faces("put", "const lw_tile *tile", "const lw_array *there", "{there} = {here};"),
            ]
        return "\n".join(lines) + "\n"

    # -- compute -----------------------------------------------------------------------------------------------------

    def _compute(self) -> Iterator[str]:
        lines = _Lines()
        call = self.point_call()
        self._loops(lines, call)
        yield "void lw_tile_compute(lw_tile *tile, const lw_box *box) {"
        text = call + "\n".join(lines.texts)
        invariants = list(self.invariants(text))
        declared = self.declarations(text + "\n".join(invariants))
        for line in indented([*declared, *invariants, *lines.texts, *self.write_back()]):
            yield from wrapped(line)
        yield "}"

    def _loops(self, lines: _Lines, call: str) -> None:
        if self._buffers is None or self._buffers.sweeps == 1:
            self._sweep_indices(lines, call)
        *outer, innermost = (self.nest.sweep_depth + k for k in self.form.order)
        if self.lanes > 1:
            *outer, v = outer
            for k in outer:
                self._open_loop(lines, k)
            pair = self._skewed_pair if self._buffers is None else self._transposed_pair
            pair(lines, v, innermost, call, is_inside=bool(outer))
        else:
            for k in outer:
                self._open_loop(lines, k)
            self._open_loop(lines, innermost, "#pragma GCC ivdep" if self.form.independent else "")
            lines.add(call)
            lines.close()
            if self.form.independent and outer:
                lines.add(_IN_ORDER)
        lines.close_all()

    def _sweep_indices(self, lines: _Lines, body: str) -> None:
        for k, loop in enumerate(self.nest.sweep_loops):
            if mentions(body, self.index(loop.name)):
                lines.add(f"const int64_t {self.index(loop.name)} = {'' if loop.step == 1 else '-'}box->lo[{k}];")

    def _open_loop(self, lines: _Lines, k: int, pragma: str = "") -> None:
        bounds, name = self._bounds(k), self.nest.loops[k].name
        x = self.coordinate(name)
        end = self._end(lines, k)
        lines.add(*([pragma] if pragma else []))
        lines.open(f"for (int64_t {x} = {bounds.low}; {x} < {end}; ++{x}) {{")
        lines.add(*self.index_from_coordinates(name))

    def _end(self, lines: _Lines, k: int) -> str:
        """The end of a loop's range, under a name of its own: C would look it up again after every store of bytes."""
        high = self._bounds(k).high
        x = self.coordinate(self.nest.loops[k].name)
        end = self.names.get(("end", k), f"{x}_end")
        lines.add(f"const int64_t {end} = {high};")
        return end

    @cached_property
    def _ragged_bounds(self) -> list[LoopBounds]:
        """The bounds of space loops where some depend on outer loops; else nothing."""
        loops = self.nest.space_loops
        depends = any(loop.bound_names & set(self.nest.loop_names) for loop in loops)
        if not depends and self.bound.skew is None:
            return []
        coordinates = {loop.name: self.coordinate(loop.name) for loop in loops}
        return tile_bounds(self.bound, coordinates, {name: self.scalar(name) for name, _ in self.nest.symbols})

    def _bounds(self, k: int) -> LoopBounds:
        """The range of a loop inside the box."""
        if self._ragged_bounds:
            return self._ragged_bounds[k - self.nest.sweep_depth]
        return LoopBounds(f"box->lo[{k}]", f"box->hi[{k}]")

    def _skewed_pair(self, lines: _Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above.

        While the rows of a block come in and run out, only some lanes work; in between all do, and that loop is the one
        that counts.
        """
        c, row = self._pair_names(), self._bounds(w)
        ragged = mentions(f"{row.low} {row.high}", self.coordinate(self.nest.loops[v].name))
        if not ragged:
            lines.add(f"const int64_t {c.begin} = {row.low}, {c.end} = {row.high};")
            lines.add(f"if ({c.begin} >= {c.end}) {'continue' if is_inside else 'return'};")
        high = self._end(lines, v)
        lines.open(f"for (int64_t {c.block} = {self._bounds(v).low}; {c.block} < {high}; {c.block} += {self.lanes}) {{")
        lines.add(f"const int64_t {c.lanes} = lw_min_i64({self.lanes}, {high} - {c.block});")
        lines.add(*(self._ragged_steps(c, v, row) if ragged else self._even_steps(c)))
        private = self._private_accumulators()
        for name, (c_type, start, _) in private.items():
            lines.add(f"{c_type} {name}[{self.lanes}];")
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {self.lanes}; ++{c.lane}) {name}[{c.lane}] = {start};")

        def steps(first: str, last: str, lanes: tuple[str, str], statement: str, *pragma: str) -> None:
            lines.open(f"for (int64_t {c.step} = {first}; {c.step} < {last}; ++{c.step}) {{")
            lines.add(*pragma)
            lines.open(f"for (int64_t {c.lane} = {lanes[0]}; {c.lane} < {lanes[1]}; ++{c.lane}) {{")
            for k, value in ((v, f"{c.block} + {c.lane}"), (w, f"{c.step} - {c.lane}")):
                name = self.nest.loops[k].name
                lines.add(f"const int64_t {self.coordinate(name)} = {value};", *self.index_from_coordinates(name))
            lines.add(statement)
            lines.close()
            lines.add(_IN_ORDER)
            lines.close()

        names = [accumulator.name for accumulator in self._plain_accumulators()]
        kept = {name: f"{lane_name}[{c.lane}]" for name, lane_name in zip(names, private, strict=True)}
        if ragged:
            first, last, some = c.first, c.last, ("0", c.lanes)
            guarded = f"if ({c.step} >= {c.starts}[{c.lane}] && {c.step} < {c.stops}[{c.lane}]) {call}"
        else:
            first, last, guarded = c.begin, f"{c.end} + {c.lanes} - 1", call
            some = (
                f"lw_max_i64(0, {c.step} - {c.end} + 1)",
                f"lw_min_i64({c.lanes}, {c.step} - {c.begin} + 1)",
            )
        steps(first, c.all_from, some, guarded)
        steps(c.all_from, c.all_until, ("0", str(self.lanes)), self.point_call(kept), self._vector_pragma())
        steps(c.all_until, last, some, guarded)
        for name, (_, _, fold) in private.items():
            folded = fold.format(f"{name}[{c.lane}]")
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {self.lanes}; ++{c.lane}) {folded}")
        lines.close()

    def _transposed_pair(self, lines: _Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above, on buffers of what the steps need."""
        buffers = self._buffers
        assert buffers is not None
        c, along, joins = self._pair_names(), self.nest.loops[w].step, buffers.sweeps > 1
        if joins:
            lines.add(f"const int64_t {c.sweeps} = box->hi[0] - box->lo[0];")
        lines.add(*buffers.declarations())
        high = self._end(lines, v)
        lines.open(f"for (int64_t {c.block} = {self._bounds(v).low}; {c.block} < {high}; {c.block} += {self.lanes}) {{")
        lines.add(f"const int64_t {c.lanes} = lw_min_i64({self.lanes}, {high} - {c.block});")
        if joins:
            rest = _times(buffers.shift, f"({c.sweeps} - 1)")
            lines.add(
                "/* The lanes that each sweep leaves to the block below, and those that the block above has left. */"
            )
            lines.add(f"const int64_t {c.below} = {c.block} + {self.lanes} < {high} ? {buffers.shift} : 0;")
            lines.add(f"const int64_t {c.above} = {c.block} == {self._bounds(v).low} ? 0 : -{rest};")
        self._rows_of_block(lines, buffers, c, v, w)
        private, lanes_kept = self._private_accumulators(), self.lanes + MARGIN
        for name, (c_type, start, _) in private.items():
            lines.add(f"{c_type} {name}[{lanes_kept}];")
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {lanes_kept}; ++{c.lane}) {name}[{c.lane}] = {start};")
        names = [accumulator.name for accumulator in self._plain_accumulators()]
        kept = {name: f"{own}[{c.lane} + {MARGIN}]" for name, own in zip(names, private, strict=True)}
        statement = self.point_call(kept)

        def row_of(plane: Plane) -> str:
            sign = "-" if self.nest.loops[v].step < 0 else ""
            return _plus(f"{sign}{self._row_stride(plane, self.nest.loops[v].name)}", -self._skew_of_pair(v, w) * along)

        lines.add(*buffers.copied_before(row_of, along))
        starts, stops, clock, after = c.starts, c.stops, c.step, ""
        if joins:
            starts, stops, clock = f"{starts}[{c.sweep}]", f"{stops}[{c.sweep}]", c.clock
            after = f" + {_times(buffers.delay, f'({c.sweeps} - 1)')}"
            lines.add(
                f"int64_t {c.starts}[{buffers.sweeps}], {c.stops}[{buffers.sweeps}]; /* lanes at work in each sweep */"
            )
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"{starts} = {stops} = lw_max_i64({c.above}, -{_times(buffers.shift, c.sweep)});")
            lines.close()
        else:
            lines.add(f"int64_t {starts} = 0, {stops} = 0; /* lanes at work */")
        lines.add(f"const int64_t {c.last} = {c.row_until}[{c.lanes} - 1 + {MARGIN}] + {c.lanes} - 1;")
        lines.add(f"int64_t {c.group} = 0;")
        lines.open(f"for (; {c.group} < {c.last}{after}; {c.group} += {COPIED_STEPS}) {{")
        lines.add(*buffers.copied_in(row_of, along))
        lines.add(f"const int64_t {c.end} = lw_min_i64({c.group} + {COPIED_STEPS}, {c.last}{after});")
        lines.open(f"for (int64_t {clock} = {c.group}; {clock} < {c.end}; ++{clock}) {{")
        beyond = c.lanes
        if joins:
            beyond = c.beyond
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            lines.add(f"const int64_t {c.step} = {clock} - {_times(buffers.delay, c.sweep)};")
            lines.add(f"const int64_t {c.beyond} = {c.lanes} - {c.below} * {c.sweep};")
            self._indices_of(lines, ((0, f"box->lo[0] + {c.sweep}"),), statement)
        lines.add(*buffers.at_step())
        lines.add(f"while ({stops} < {beyond} && {c.row_from}[{stops} + {MARGIN}] + {stops} <= {c.step}) ++{stops};")
        lines.add(
            f"while ({starts} < {stops} && {c.row_until}[{starts} + {MARGIN}] + {starts} <= {c.step}) ++{starts};"
        )

        def lanes(beyond: str, pragma: str) -> None:
            lines.add(pragma)
            lines.open(f"for (int64_t {c.lane} = {starts}; {c.lane} < {beyond}; ++{c.lane}) {{")
            self._indices_of(lines, ((v, f"{c.block} + {c.lane}"), (w, f"{c.begin} + {c.step} - {c.lane}")), statement)
            lines.add(statement)
            lines.close()

        lines.open(f"if ({stops} - {starts} == {self.lanes}) {{")
        lanes(f"{starts} + {self.lanes}", self._vector_pragma())
        lines.close()
        lines.open("else {")
        lanes(stops, "#pragma GCC ivdep")
        lines.close()
        lines.add(_IN_ORDER)
        if joins:
            lines.close()
        lines.close()
        lines.add(*buffers.copied_out(row_of, along))
        lines.close()
        lines.add(*buffers.copied_last(row_of, along, c.last))
        for name, (_, _, fold) in private.items():
            folded = fold.format(f"{name}[{c.lane}]")
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {lanes_kept}; ++{c.lane}) {folded}")
        lines.close()

    def _rows_of_block(self, lines: _Lines, buffers: Buffers, c: PairNames, v: int, w: int) -> None:
        """Where the rows of a block begin and end, from the first position of its first row on, and what is copied of them."""
        row, first_lane = self._bounds(w), c.above if buffers.sweeps > 1 else "0"
        lines.add(f"int64_t {c.begin}, {c.row_from}[{BUFFER_LANES}], {c.row_until}[{BUFFER_LANES}];")
        lines.add(*buffers.first_declarations())
        lines.open("{")
        self._indices_of(lines, ((v, c.block),))
        lines.add(f"{c.begin} = {row.low};")
        self._indices_of(lines, ((w, c.begin),))
        lines.add(*buffers.first_elements(self._element_in_array))
        lines.open(f"for (int64_t {c.lane} = {first_lane}; {c.lane} < {c.lanes}; ++{c.lane}) {{")
        if mentions(f"{row.low} {row.high}", self.coordinate(self.nest.loops[v].name)):
            lines.add(f"const int64_t {self.coordinate(self.nest.loops[v].name)} = {c.block} + {c.lane};")
        lines.add(f"{c.row_from}[{c.lane} + {MARGIN}] = {row.low} - {c.begin};")
        lines.add(f"{c.row_until}[{c.lane} + {MARGIN}] = {row.high} - {c.begin};")
        lines.close()
        lines.add(*buffers.rows(lambda plane: self._inside(plane, v, w)))
        lines.close()

    def _skew_of_pair(self, v: int, w: int) -> int:
        """By how much a step along loop v moves the coordinate of loop w."""
        return 0 if self.bound.skew is None else self.bound.skew.rows[w][v]

    def _indices_of(self, lines: _Lines, values: Sequence[tuple[int, str]], used_in: str | None = None) -> None:
        """Declares loops' coordinates and the user's indices; used_in: only those that a statement mentions."""
        names = [self.nest.loops[k].name for k, _ in values]
        # The index of a loop that is skewed takes the coordinates of all.
        all_of_them = any(self.is_skewed(n) and mentions(used_in or "", self.index(n)) for n in names)
        for name, (_, value) in zip(names, values, strict=True):
            if used_in is None or all_of_them or mentions(used_in, self.index(name)):
                lines.add(f"const int64_t {self.coordinate(name)} = {value};", *self.index_from_coordinates(name))

    def _element_in_array(self, load: t.Load) -> str:
        placed, self.printer.placed = self.printer.placed, {}
        text = self.printer.load(load)
        self.printer.placed = placed
        return text

    def _row_stride(self, plane: Plane, loop: str) -> str:
        """The C name of the stride between the rows of a plane."""
        return self.stride(plane.array, _axis_along(plane, loop)[0])

    def _inside(self, plane: Plane, v: int, w: int) -> list[str]:
        """How many lanes and positions from the reference at the loops' indices on the elements of a plane lie inside their
        array, and where they do no more; by how much positions move from lane to lane."""
        found = []
        for loop in (self.nest.loops[k] for k in (v, w)):
            axis, affine = _axis_along(plane, loop.name)
            index, extent = self.affine(affine), self._extent(plane.array, axis)
            found += (
                [f"-({index})", f"{extent} - ({index})"]
                if loop.step == 1
                else [f"{index} - {extent} + 1", f"{index} + 1"]
            )
        return [*found, str(self._skew_of_pair(v, w))]

    def _pair_names(self) -> PairNames:
        return PairNames(**{f.name: self.names.get(("pair", f.name), str(f.default)) for f in fields(PairNames)})

    def _even_steps(self, c: PairNames) -> Iterator[str]:
        """The steps in which all lanes work, where all rows are alike."""
        yield f"const bool full = {c.lanes} == {self.lanes} && {c.end} - {c.begin} >= {self.lanes};"
        yield f"const int64_t {c.all_from} = full ? {c.begin} + {self.lanes - 1} : {c.end} + {c.lanes} - 1;"
        yield f"const int64_t {c.all_until} = full ? {c.end} : {c.all_from};"

    def _ragged_steps(self, c: PairNames, v: int, row: LoopBounds) -> Iterator[str]:
        """The steps in which each lane works, some do, and all do, where rows begin and end where they like."""
        yield f"int64_t {c.starts}[{self.lanes}], {c.stops}[{self.lanes}];"
        yield f"int64_t {c.first} = INT64_MAX, {c.last} = INT64_MIN;"
        yield f"int64_t {c.all_from} = INT64_MIN, {c.all_until} = INT64_MAX;"
        yield f"for (int64_t {c.lane} = 0; {c.lane} < {c.lanes}; ++{c.lane}) {{"
        yield f"    const int64_t {self.coordinate(self.nest.loops[v].name)} = {c.block} + {c.lane};"
        yield f"    {c.starts}[{c.lane}] = {row.low} + {c.lane};"
        yield f"    {c.stops}[{c.lane}] = {row.high} + {c.lane};"
        for kept, extremum, of in (
            (c.first, "min", c.starts), (c.last, "max", c.stops), (c.all_from, "max", c.starts), (c.all_until, "min", c.stops)
        ):  # fmt: skip
            yield f"    {kept} = lw_{extremum}_i64({kept}, {of}[{c.lane}]);"
        yield "}"
        never = f"{c.lanes} < {self.lanes} || {c.all_from} >= {c.all_until}"
        yield f"if ({never}) {c.all_from} = {c.all_until} = {c.last};"

    def _plain_accumulators(self) -> list[t.Accumulator]:
        return [a for a in self.bound.body.accumulators if not a.is_shared]

    def _private_accumulators(self) -> dict[str, tuple[str, str, str]]:
        """Per reduction, one accumulator a lane: its name, with its C type, first value and how it is folded."""
        private = {}
        for accumulator in self._plain_accumulators():
            name = self.accumulator(accumulator.name)
            lane_name = self.names.get(("lanes of", accumulator.name), f"{name}_lanes")
            start = "0" if accumulator.operator == "+" else name
            private[lane_name] = (C_TYPES[accumulator.dtype], start, self.accumulate(accumulator, name, "{}"))
        return private

    def _vector_pragma(self) -> str:
        """Roots, divisions and small integers are worth vectorising whatever gcc's cost model says of strided rows."""
        body = self.bound.body
        plain = body.is_straight and raises_alike(body) and not any(a.is_shared for a in body.accumulators)
        stores = [s for s in body.simple if isinstance(s, t.TypedStore)]
        small = all(s.target.dtype in ("int64", "int32", "int16", "int8", "uint8") for s in stores)
        expensive = any(_is_expensive(statement.value) for statement in body.simple)
        return "#pragma omp simd" if plain and (expensive or small) else "#pragma GCC ivdep"

    # -- copies ------------------------------------------------------------------------------------------------------

    def _copies(self) -> Iterator[str]:
        """Per written array, a copy of a box of elements from one place in memory to another, row by row."""
        for array in (a for a in self.bound.arrays if a.name in self.nest.written):
            c_type, last = C_TYPES[array.dtype], len(array.shape) - 1
            lines = _Lines()
            lines.open(
                f"static void copy_{self.array(array.name)}(const lw_array *source, const lw_array *target, "
                "const lw_box *box) {"
            )
            lines.add(f"const {c_type} *restrict const from = source->base;")
            lines.add(f"{c_type} *restrict const to = target->base;")
            lines.add(f"const int64_t begin = box->lo[{last}], end = box->hi[{last}];")
            rows = {"from": "", "to": ""}
            for k in range(last):
                lines.add(f"const int64_t from_s{k} = source->stride[{k}], to_s{k} = target->stride[{k}];")
                rows = {side: f"{text} + x{k} * {side}_s{k}" for side, text in rows.items()}
            for k in range(last):
                lines.open(f"for (int64_t x{k} = box->lo[{k}]; x{k} < box->hi[{k}]; ++x{k}) {{")
            lines.add(f"const {c_type} *restrict const old = from{rows['from']};")
            lines.add(f"{c_type} *restrict const new = to{rows['to']};")
            lines.add(f"for (int64_t x{last} = begin; x{last} < end; ++x{last}) new[x{last}] = old[x{last}];")
            lines.close_all()
            yield from lines.texts
            yield ""

    def _elements_function(self) -> Iterator[str]:
        """The elements a face wrote in a box of iterations."""
        tile = "const lw_tile *tile, " if self._has_local_axes else ""
        yield f"static lw_box elements_of({tile}int32_t face, const lw_box *box) {{"
        yield "    lw_box elements = *box;"
        ranges = [list(self._element_ranges(face)) for face in self.faces]
        for text in self.scalar_declarations(" ".join(itertools.chain(*itertools.chain(*ranges)))):
            yield f"    {text}"
        yield "    switch (face) {"
        for number, (face, of_axes) in enumerate(zip(self.faces, ranges, strict=True)):
            yield f"        case {number}: /* {face.text} */"
            for axis, (low, high) in enumerate(of_axes):
                yield f"            elements.lo[{axis}] = {low};"
                yield f"            elements.hi[{axis}] = {high};"
            yield "            break;"
        yield "    }"
        yield "    return elements;"
        yield "}"

    @property
    def _has_local_axes(self) -> bool:
        return any(None in loops for loops in self.nest.axis_loops.values())

    def _face_function(self, verb: str, tile: str, other: str, source: str, target: str) -> Iterator[str]:
        """A function that copies a face from one place to another: this tile's array, a message, or another's array."""
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {other}) {{"
        yield f"    const lw_box elements = elements_of({'tile, ' if self._has_local_axes else ''}face, box);"
        dense = "&dense" in (source, target)
        if dense:
            yield "    lw_array dense;"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            position = [a.name for a in self.bound.arrays].index(face.array)
            array = self.bound.arrays[position]
            yield f"        case {number}: /* {face.text} */"
            if dense:
                pointer = other.split("*")[-1]
                size = f"sizeof({C_TYPES[array.dtype]})"
                yield f"            dense = lw_dense({pointer}, {size}, {len(array.shape)}, &elements);"
            places = {"here": f"&tile->arrays[{position}]", "position": position}
            source_text, target_text = source.format(**places), target.format(**places)
            yield f"            copy_{self.array(face.array)}({source_text}, {target_text}, &elements);"
            yield "            break;"
        yield "    }"
        yield "}"

    def _walked_faces(self, verb: str, tile: str, other: str, copy: str) -> Iterator[str]:
        """A function that copies what a face wrote, point by point in the order of the loops.

        Of a box in skewed coordinates only the points of the domain have elements. ``copy`` is the statement for one, with
        ``{here}`` and ``{there}`` for the element in this rank's array and in another's.
        """
        there = self.names.get("there", "there")
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {other.replace('there', there)}) {{"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            yield f"        case {number}: {{ /* {face.text} */"
            for line in indented(self._walked_face(face, copy), 3):
                yield from wrapped(line)
            yield "            break;"
            yield "        }"
        yield "    }"
        yield "}"

    def _walked_face(self, face: Face, copy: str) -> list[str]:
        position = [a.name for a in self.bound.arrays].index(face.array)
        array = self.bound.arrays[position]
        c_type, axes = C_TYPES[array.dtype], range(len(array.shape) - 1)
        base = self.names.get(("there", array.name), f"{array.name}_there")
        strides = [self.names.get(("there", array.name, axis), f"{array.name}_there_s{axis}") for axis in axes]
        subscripts = [self.affine(affine) for affine in self._target(face).affine if affine is not None]
        to, source = self.names.get("to", "to"), self.names.get("from", "from")
        statement = copy.format(
            here=self.element(array.name, subscripts), there=element(base, strides, subscripts), to=to, source=source
        )
        lines = _Lines()
        self._sweep_indices(lines, statement)
        for k in range(self.nest.sweep_depth, len(self.nest.loops)):
            self._open_loop(lines, k)
        lines.add(statement)
        lines.close_all()
        body = "\n".join(lines.texts)
        others = {
            to: f"{c_type} *restrict {to} = out;",
            source: f"const {c_type} *restrict {source} = in;",
            base: f"{c_type} *restrict const {base} = {self.names.get('there', 'there')}[{position}].base;",
        }
        for axis, stride in zip(axes, strides, strict=True):
            others[stride] = f"const int64_t {stride} = {self.names.get('there', 'there')}[{position}].stride[{axis}];"
        declared = [*self.array_declarations(body), *self.scalar_declarations(body)]
        return [*declared, *(text for name, text in others.items() if mentions(body, name)), *lines.texts]

    def _target(self, face: Face) -> ir.Access:
        return next(s.target for s in self.nest.stores if (s.target.array, s.target.text) == (face.array, face.text))

    def _element_ranges(self, face: Face) -> Iterator[tuple[str, str]]:
        """Per axis, the elements a box of iterations writes; all along local axes where the face has no place there."""
        position, places = [a.name for a in self.bound.arrays].index(face.array), dict(face.places)
        for axis, k in enumerate(self.bound.loops_of_axes(face.array)):
            if axis in places:
                yield self.affine(places[axis]), self.affine(places[axis] + 1)
                continue
            if k is None:
                yield "0", f"tile->arrays[{position}].shape[{axis}]"
                continue
            affine = self._target(face).affine[axis]
            assert affine is not None
            c = affine.constant
            if self.nest.loops[k].step == 1:
                yield _plus(f"box->lo[{k}]", c), _plus(f"box->hi[{k}]", c)
            else:
                yield _plus(f"1 - box->hi[{k}]", c), _plus(f"1 - box->lo[{k}]", c)


def _is_expensive(node: t.Typed) -> bool:
    """Whether the expression takes a root of, or divides by, something that varies from point to point."""
    return any(
        isinstance(part, t.Operation) and part.operator in ("sqrt", "/") and _varies(part.operands[-1])
        for part in t.walk(node)
    )


def _varies(node: t.Typed) -> bool:
    return any(isinstance(part, t.Load | t.Local | t.Index) for part in t.walk(node))


def _axis_along(plane: Plane, loop: str) -> tuple[int, Affine]:
    """The axis of an array that a loop runs along in a plane, and its index there."""
    for axis, subscript in enumerate(plane.reference.subscripts):
        if isinstance(subscript, t.AffineSubscript) and loop in subscript.affine.names:
            return axis, subscript.affine
    raise AssertionError(f"no axis of {plane.array} along {loop}")


def _times(factor: int, text: str) -> str:
    return text if factor == 1 else f"{factor} * {text}"


def _plus(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"
