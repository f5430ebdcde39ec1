"""The tile in C: compute over a box; faces packed, unpacked, and put into a neighbour's memory.

Where the innermost loop is a chain of dependent operations, as in Gauss-Seidel, the core would wait out the latency of
every link. The two innermost loops are skewed instead: a few rows advance together, each one step behind the row above,
so that every step holds as many independent points for the core to overlap or the compiler to vectorise:

    for v:                          for v in blocks of lanes:
        for w:              →           for step:
            body(v, w)                      for lane: body(v + lane, step - lane)

Two points of one step differ by (d, -d), and no dependence does where rectangular tiles are legal (none has a negative
component inside a sweep), so the lanes of a step are independent and each step sees what the steps before it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.codegen.expression import C_TYPES
from lapwing.codegen.module import ModuleWriter, indented, mentions
from lapwing.loopnest import typed as t
from lapwing.loopnest.binding import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.faces import Face
from lapwing.tiling.legality import carried_by

# Rows in flight. More hide more latency, but each touches a cache line of its own in every plane it reads, and beyond
# about 32 such streams the core's prefetchers lose track and loads go to the outer caches (docs/performance.md).
MANY_LANES, FEW_LANES = 16, 4
MOST_STREAMS = 32


def tile_source(bound: BoundNest, faces: Sequence[Face], dependences: Sequence[Dependence]) -> str:
    """C text of a tile module, with the functions of ``lw_module`` in lapwing.h."""
    return _TileWriter(bound, faces, dependences).source()


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
    def __init__(self, bound: BoundNest, faces: Sequence[Face], dependences: Sequence[Dependence]) -> None:
        super().__init__(bound)
        self.faces = faces
        self.chained = carried_by(dependences, self.nest.sweep_depth, len(self.nest.loops) - 1)
        self.lanes = MANY_LANES if MANY_LANES * self._planes() <= MOST_STREAMS else FEW_LANES

    def source(self) -> str:
        lines = [
            *self.heading("One tile."),
            "",
            *self.point_function(),
            "",
            *self._compute(),
            "",
            *self._copies(),
            *self._elements_function(),
            "",
            *self._face_function("pack", "const lw_tile *tile", "void *out", "{here}", "&dense"),
            "",
            *self._face_function("unpack", "lw_tile *tile", "const void *in", "&dense", "{here}"),
            "",
            *self._face_function("put", "const lw_tile *tile", "const lw_array *there", "{here}", "&there[{position}]"),
        ]
        return "\n".join(lines) + "\n"

    # -- compute -----------------------------------------------------------------------------------------------------

    def _compute(self) -> Iterator[str]:
        lines = _Lines()
        call = self.point_call()
        self._loops(lines, call)
        yield "void lw_tile_compute(lw_tile *tile, const lw_box *box) {"
        yield from indented([*self.declarations(call + "\n".join(lines.texts)), *lines.texts, *self.write_back()])
        yield "}"

    def _loops(self, lines: _Lines, call: str) -> None:
        nest = self.nest
        innermost = len(nest.loops) - 1
        bounds = " ".join(b for loop in nest.loops for b in self.bounds(loop))
        for k in range(nest.sweep_depth):
            name = self.index(nest.loops[k].name)
            sign = "" if nest.loops[k].step == 1 else "-"
            if mentions(call, name) or mentions(bounds, name):
                lines.add(f"const int64_t {name} = {sign}box->lo[{k}];")
        skewed = self.chained and innermost > nest.sweep_depth
        for k in range(nest.sweep_depth, innermost - 1 if skewed else innermost):
            self._open_loop(lines, k)
        if skewed:
            self._skewed_pair(lines, innermost - 1, innermost, call)
        else:
            if not self.chained:
                lines.add("#pragma GCC ivdep")  # no dependence is carried by this loop
            self._open_loop(lines, innermost)
            lines.add(call)
            lines.close()
            if not self.chained and innermost > nest.sweep_depth:
                lines.add(_IN_ORDER)
        lines.close_all()

    def _open_loop(self, lines: _Lines, k: int) -> None:
        low, high = self._clamped(k, f"box->lo[{k}]", f"box->hi[{k}]")
        name = self.nest.loops[k].name
        x = self.coordinate(name)
        lines.open(f"for (int64_t {x} = {low}; {x} < {high}; ++{x}) {{")
        if self.nest.loops[k].step == -1:
            lines.add(f"const int64_t {self.index(name)} = -{x};")

    def _skewed_pair(self, lines: _Lines, v: int, w: int, call: str) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above.

        While the rows of a block come in and run out, only some lanes work; in between all do, and that loop is the one
        that counts.
        """
        words = ("block", "lanes", "begin", "end", "all_from", "all_until", "step", "lane")
        block, lanes, begin, end, all_from, all_until, step, lane = (self.names.get(("skew", n), n) for n in words)
        low, high = self._clamped(v, f"box->lo[{v}]", f"box->hi[{v}]")
        # Bounds of the inner loop that vary from row to row are tested point by point.
        ragged = self.nest.loops[v].name in self.nest.loops[w].start.names | self.nest.loops[w].stop.names
        whole = (f"box->lo[{w}]", f"box->hi[{w}]")
        w_low, w_high = whole if ragged else self._clamped(w, *whole)
        lines.add(f"const int64_t {begin} = {w_low}, {end} = {w_high};")
        lines.add(f"if ({begin} >= {end}) {'continue' if v > self.nest.sweep_depth else 'return'};")
        lines.open(f"for (int64_t {block} = {low}; {block} < {high}; {block} += {self.lanes}) {{")
        lines.add(f"const int64_t {lanes} = lw_min_i64({self.lanes}, {high} - {block});")
        lines.add(f"const bool full = {lanes} == {self.lanes} && {end} - {begin} >= {self.lanes};")
        lines.add(f"const int64_t {all_from} = full ? {begin} + {self.lanes - 1} : {end} + {lanes} - 1;")
        lines.add(f"const int64_t {all_until} = full ? {end} : {all_from};")
        private = self._private_accumulators()
        for name, (c_type, start, _) in private.items():
            lines.add(f"{c_type} {name}[{self.lanes}];")
            lines.add(f"for (int {lane} = 0; {lane} < {self.lanes}; ++{lane}) {name}[{lane}] = {start};")

        def point(statement: str) -> None:
            for k, value in ((v, f"{block} + {lane}"), (w, f"{step} - {lane}")):
                x = self.coordinate(self.nest.loops[k].name)
                lines.add(f"const int64_t {x} = {value};")
                if self.nest.loops[k].step == -1:
                    lines.add(f"const int64_t {self.index(self.nest.loops[k].name)} = -{x};")
            if ragged:
                x = self.coordinate(self.nest.loops[w].name)
                own_low, own_high = self.bounds(self.nest.loops[w])
                lines.add(f"if ({x} >= {own_low} && {x} < {own_high}) {statement}")
            else:
                lines.add(statement)
            lines.close()
            lines.add(_IN_ORDER)
            lines.close()

        def some_lanes(first: str, last: str) -> None:
            lines.open(f"for (int64_t {step} = {first}; {step} < {last}; ++{step}) {{")
            lines.open(
                f"for (int64_t {lane} = lw_max_i64(0, {step} - {end} + 1); "
                f"{lane} < lw_min_i64({lanes}, {step} - {begin} + 1); ++{lane}) {{"
            )
            point(call)

        some_lanes(begin, all_from)
        lines.open(f"for (int64_t {step} = {all_from}; {step} < {all_until}; ++{step}) {{")
        lines.add(self._vector_pragma())
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.lanes}; ++{lane}) {{")
        names = [accumulator.name for accumulator in self._plain_accumulators()]
        point(self.point_call({name: f"{kept}[{lane}]" for name, kept in zip(names, private, strict=True)}))
        some_lanes(all_until, f"{end} + {lanes} - 1")
        for name, (_, _, fold) in private.items():
            lines.add(f"for (int {lane} = 0; {lane} < {self.lanes}; ++{lane}) {fold.format(f'{name}[{lane}]')}")
        lines.close()

    def _plain_accumulators(self) -> list[t.Accumulator]:
        return [a for a in self.bound.body.accumulators if not a.exact_sum]

    def _private_accumulators(self) -> dict[str, tuple[str, str, str]]:
        """Per reduction, one accumulator a lane: its name, with its C type, first value and how it is folded."""
        private = {}
        for accumulator in self._plain_accumulators():
            name = self.accumulator(accumulator.name)
            lane_name = self.names.get(("lanes of", accumulator.name), f"{name}_lanes")
            start = "0" if accumulator.operator == "+" else name
            private[lane_name] = (C_TYPES[accumulator.dtype], start, self.accumulate(accumulator, name, "{}"))
        return private

    def _planes(self) -> int:
        """How many separate runs of memory one row of the innermost loop reads and writes, rows next to it aside."""
        inner = self.nest.loop_names[-2:]
        planes = set()
        for access in self.bound.accesses:
            affines = [a for a in access.affine if a is not None]
            if any(inner[0] in a.names for a in affines):
                planes.add((access.array, tuple(a for a in affines if not set(inner) & a.names)))
        return len(planes)

    def _vector_pragma(self) -> str:
        """Roots, divisions and small integers are worth vectorising whatever gcc's cost model says of strided rows."""
        body = self.bound.body
        plain = not body.traps and not any(a.exact_sum for a in body.accumulators)
        stores = [s for s in body.statements if isinstance(s, t.TypedStore)]
        small = all(s.target.dtype in ("int32", "int16", "int8", "uint8") for s in stores)
        expensive = any(_is_expensive(statement.value) for statement in body.statements)
        return "#pragma omp simd" if plain and (expensive or small) else "#pragma GCC ivdep"

    def _clamped(self, k: int, low: str, high: str) -> tuple[str, str]:
        """The box's range of a loop, cut by the loop's own bounds where those depend on outer indices."""
        loop = self.nest.loops[k]
        own_low, own_high = self.bounds(loop)
        if loop.start.names & set(self.nest.loop_names):
            low = f"lw_max_i64({low}, {own_low})"
        if loop.stop.names & set(self.nest.loop_names):
            high = f"lw_min_i64({high}, {own_high})"
        return low, high

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
        yield "static lw_box elements_of(int32_t face, const lw_box *box) {"
        yield "    lw_box elements = *box;"
        yield "    switch (face) {"
        for number, face in enumerate(self.faces):
            yield f"        case {number}: /* {face.text} */"
            for axis, (low, high) in enumerate(self._element_ranges(face)):
                yield f"            elements.lo[{axis}] = {low};"
                yield f"            elements.hi[{axis}] = {high};"
            yield "            break;"
        yield "    }"
        yield "    return elements;"
        yield "}"

    def _face_function(self, verb: str, tile: str, other: str, source: str, target: str) -> Iterator[str]:
        """A function that copies a face from one place to another: this tile's array, a message, or another's array."""
        yield f"void lw_tile_{verb}({tile}, int32_t face, const lw_box *box, {other}) {{"
        yield "    const lw_box elements = elements_of(face, box);"
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

    def _element_ranges(self, face: Face) -> Iterator[tuple[str, str]]:
        """Per axis, the elements a box of iterations writes."""
        target = next(s.target for s in self.nest.stores if (s.target.array, s.target.text) == (face.array, face.text))
        for affine in target.affine:
            assert affine is not None
            (name, _), *_ = affine.terms
            k = self.nest.loop_names.index(name)
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


def _plus(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"
