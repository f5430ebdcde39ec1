"""Tiles in C that compute with narrow integers where ranges prove that no value is larger (``codegen.body.narrowing``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapwing.codegen.body.expression import SUFFIXES
from lapwing.codegen.body.narrowing import RangePrinter, narrowed
from lapwing.codegen.body.text import Lines, indented, plus, wrapped
from lapwing.codegen.lanes.buffers import include
from lapwing.codegen.lanes.transposed import TransposedTileWriter
from lapwing.codegen.rows.inspector import InspectorWriter
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.transposed import Plane


class NarrowTileWriter(TransposedTileWriter):
    """Writes a tile with two functions, one of which computes with narrow integers (``codegen.body.narrowing``): blocks of rows
    for which ranges prove that no value is larger go there, others to that of the tile as it is without."""

    kind = "narrow_"

    def __init__(self, wide: TransposedTileWriter, body: t.TypedBody, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(replace(wide.bound, body=body), faces, form)
        self._wide = wide
        self._written = [plane for plane in self.buffers.planes if plane.written]

    @classmethod
    def of(cls, wide: TransposedTileWriter, faces: Sequence[Face], form: InnerForm) -> NarrowTileWriter | None:
        """The writer of a tile of which there is a narrow version in vectors."""
        bound, planes = wide.bound, wide.buffers.planes
        written = [plane for plane in planes if plane.written]
        fits = (
            bound.domain.is_box
            and bound.skew is None
            and not wide.joins_sweeps
            # Nothing is read that the tile stores to later, so that what it begins with is around its rows.
            and not any(plane.reads_old or plane.clipped for plane in written)
            and not wide.extrema.statements
        )
        body = narrowed(bound.body, wide.buffers.places) if fits else None
        if body is None:
            return None
        narrow = cls(wide, body, faces, form)
        return narrow if narrow.vectors is not None else None

    def point_name(self) -> str:
        return f"{super().point_name()}_narrow"

    def _function(self, invariant: str) -> str:
        return f"{super()._function(invariant)}_narrow"

    def source(self) -> str:
        own = self.buffers.sizes()
        headers = ['#include "ranges.h"', self.buffers.definition_of_lanes, *map(include, own)]
        headers += [include(sizes, called=True) for sizes in self._wide.buffers.sizes() if sizes not in own]
        headers += [*self.types_of_vectors(), *self._wide.types_of_vectors()]
        lines = [""]
        inspector = InspectorWriter.of(self._wide.given)
        if inspector is not None:
            lines += [*inspector.source(), ""]
        lines += [*self.functions(self._wide, self, self.lanes, "LW_NARROW"), "", *self._wide.face_functions()]
        return "\n".join([*self.heading("One tile."), *headers, *lines]) + "\n"

    def functions(self, wide: TileWriter, narrow: TileWriter, block: int, most: str) -> Iterator[str]:
        """Those of both versions, and the tile's. block: rows that are not to be parted; most: how large values of the narrow
        version may be, a C constant."""
        names = {wide: self.names.get("wide", "compute_wide"), narrow: self.names.get("narrow", "compute_narrow")}
        for writer, name in names.items():
            yield from (*writer.invariant_functions(), *writer.point_functions())
            yield from (*writer.compute(f"static void {name}"), "")
        yield from (*self._point_on_ranges(), "")
        yield from self._compute_either(names[wide], names[narrow], block, most)

    # -- how large values get ------------------------------------------------------------------------------------------

    @property
    def _tables(self) -> list[t.Load]:
        assert self.vectors is not None
        return [profile.element for profile in self.vectors.profiles]

    @property
    def _ranges_name(self) -> str:
        return self.names.get("ranges", f"{self.nest.name}_ranges")

    def _point_on_ranges(self) -> Iterator[str]:
        """The loop body on ranges, ``lw_ranges_of_point`` of ranges.h."""
        numbers = {plane.array: k for k, plane in enumerate(self._written)}
        ranges = {}
        for load, (number, offset) in self.buffers.places.items():
            array = self.buffers.planes[number].array
            if array in numbers:
                of = "above" if offset[0] else "row" if any(offset) else "now"
                ranges[load] = f"{of}[{numbers[array]}]"
        ranges |= {element: f"tables[{k}]" for k, element in enumerate(self._tables)}
        printer = RangePrinter(self.printer, ranges, lambda array: f"now[{numbers[array]}]")
        statements = list(printer.statements(self.bound.body))
        text = "\n".join(statements)
        comments = [f"/* {', '.join(f'{k}: {array}' for array, k in numbers.items())} */"]
        unused = [f"(void){name};" for name in ("tile", "tables", "above", "row") if name not in text]
        yield "/* The loop body on ranges. */"
        rows = "const lw_range *above, const lw_range *row, lw_range *now, lw_range *all"
        head = f"const lw_tile *tile, const lw_range *tables, {rows}"
        yield from wrapped(f"static void {self._ranges_name}({head}) {{")
        constants = [*self.scalar_declarations(text + "\n".join(self.invariants(text))), *self.invariants(text)]
        for line in indented([*comments, *constants, *unused, *statements]):
            yield from wrapped(line)
        yield "}"

    def _compute_either(self, wide: str, narrow: str, unparted: int, most: str) -> Iterator[str]:
        """The function that a tile is computed with."""
        v, w = (self.nest.sweep_depth + k for k in self.form.order[-2:])
        reach, rows, part, limit, fits = (
            self.names.get(("either", name), name) for name in ("reach", "rows", "part", "limit", "fits")
        )
        lines, tests = Lines(), Lines()
        self._tests(tests, v, w, part, limit, fits)
        text = "\n".join(tests.texts)
        length = f"box->hi[{w}] - box->lo[{w}]"
        tables, small = "NULL", ""
        if self._tables:
            tables = self.names.get(("either", "tables"), "tables")
            small = "".join(f" || !lw_is_in_8_bits({tables}[{k}])" for k in range(len(self._tables)))
            lines.add(f"const lw_range {tables}[] = {{{', '.join(map(self._range_of_table, self._tables))}}};")
        arguments = f"tile, {self._ranges_name}, {tables}, {len(self._written)}, {length}"
        lines.add(
            f"const lw_reach {reach} = lw_reach_of({arguments});",
            f"const int64_t {rows} = lw_narrow_rows({reach}, {unparted}, {most});",
        )
        lines.open(f"if ({rows} == 0 || {length} <= 0{small}) {{")
        lines.add(f"{wide}(tile, box);", "return;")
        lines.close()
        self.sweep_indices(lines, text)
        outer = self.outer_loops()
        for k in outer:
            self.open_loop(lines, k)
        end = self.loop_end(lines, v)
        block = self.pair_names().block
        lines.open(f"for (int64_t {block} = box->lo[{v}]; {block} < {end}; {block} += {rows}) {{")
        lines.add(f"lw_box {part} = *box;")
        for k in outer:
            around = self.coordinate(self.nest.loops[k].name)
            lines.add(f"{part}.lo[{k}] = {around}, {part}.hi[{k}] = {around} + 1;")
        lines.add(
            f"{part}.lo[{v}] = {block}, {part}.hi[{v}] = lw_min_i64({block} + {rows}, {end});",
            f"const int64_t {limit} = lw_largest_before({reach}, {part}.hi[{v}] - {part}.lo[{v}], {most});",
        )
        lines.include(tests)
        lines.open(f"if ({fits}) {{")
        lines.add(f"{narrow}(tile, &{part});")
        lines.close()
        lines.open("else {")
        lines.add(f"{wide}(tile, &{part});")
        lines.close_all()
        yield "void lw_tile_compute(lw_tile *tile, const lw_box *box) {"
        for line in indented([*self.array_declarations("\n".join(lines.texts)), *lines.texts]):
            yield from wrapped(line)
        yield "}"

    def _tests(self, lines: Lines, v: int, w: int, part: str, limit: str, fits: str) -> None:
        """Declares whether what a block of rows begins with is small enough."""
        offsets = self.accumulator_offsets()
        noted = [f"lw_is_narrow(tile->accumulators[{offset}].i)" for offset in offsets.values()]
        lines.add(f"bool {fits} = {' && '.join(noted) or 'true'};")
        lines.open("{")
        body = Lines()
        of_planes = (test for plane in self._written for test in self._before(plane, v, w, part, limit))
        for test in (*of_planes, *self._letters(v, w, part)):
            body.add(f"{fits} = {fits} && {test};")
        self.indices_of(lines, ((v, f"{part}.lo[{v}]"), (w, f"{part}.lo[{w}]")), "\n".join(body.texts))
        lines.include(body)
        lines.close()

    def _before(self, plane: Plane, v: int, w: int, part: str, limit: str) -> Iterator[str]:
        """Tests of the elements of a plane that lie before the rows, and before their first iterations."""
        suffix = SUFFIXES[self.bound.array(plane.array).dtype]
        first, row = self.printer.in_array(plane.reference), self.row_stride(plane, v, w)
        rows, length = (f"{part}.hi[{k}] - {part}.lo[{k}]" for k in (v, w))
        above = [offset for offset in plane.offsets if offset[0] < 0]
        left = [offset for offset in plane.offsets if offset[1] < 0]
        ends = []
        if above:
            along = [offset[1] for offset in above]
            ends.append((str(min(o[0] for o in above)), "0", str(min(along)), plus(length, max(along))))
        if left:
            ends.append(("0", rows, str(min(o[1] for o in left)), "0"))
        for lanes_positions in ends:
            where = ", ".join(lanes_positions)
            yield f"lw_within_{suffix}(&{first}, {row}, {self.nest.loops[w].step}, {where}, {limit})"

    def _range_of_table(self, element: t.Load) -> str:
        name = element.array
        suffix, extents = SUFFIXES[self.bound.array(name).dtype], [self.extent(name, axis) for axis in (0, 1)]
        return f"lw_table_range_{suffix}({self.array(name)}, {self.stride(name, 0)}, {extents[0]}, {extents[1]})"

    def _letters(self, v: int, w: int, part: str) -> Iterator[str]:
        """Tests of what is compared alone, without which it would have no vectors, and of indices of tables."""
        assert self.vectors is not None
        for load in filter(self.vectors.rows.is_narrowed, self.vectors.rows):
            array, along, count = self._along(load, v, w, part)
            yield f"lw_within_{SUFFIXES[load.dtype]}({array}, 0, {along}, 0, 1, 0, {count}, INT16_MAX)"
        for profile in self.vectors.profiles:
            # Rows of a profile that fewer lanes would read than there are are not worth making.
            rows = f"{part}.hi[{v}] - {part}.lo[{v}]"
            yield f"{self.extent(profile.element.array, profile.axis)} <= {rows}"
            for load, axis in ((profile.stays, profile.axis), (profile.moves, 1 - profile.axis)):
                extent = self.extent(profile.element.array, axis)
                yield f"lw_are_indices_{SUFFIXES[load.dtype]}({', '.join(self._along(load, v, w, part))}, {extent})"

    def _along(self, load: t.Load, v: int, w: int, part: str) -> tuple[str, str, str]:
        """C texts: the first element of a row that a block goes through, what leads to the next one, and how many there are."""
        last = load.subscripts[-1]
        assert isinstance(last, t.AffineSubscript)
        k = v if self.nest.loops[v].name in last.affine.names else w
        along = self.nest.loops[k].step * last.affine.coefficient(self.nest.loops[k].name)
        return f"&{self.printer.in_array(load)}", str(along), f"{part}.hi[{k}] - {part}.lo[{k}]"
