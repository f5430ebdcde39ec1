"""The loops of a tile in C: over the points of a box, in one of the orders of ``tiling.inner``.

Where the innermost loop is a chain of dependent operations, as in Gauss-Seidel, the core would wait out the latency of every
link. With lanes the two innermost loops are skewed: a few rows advance together, each one step behind the row above, so that
every step holds as many independent points for the core to overlap or the compiler to vectorise. Two points of one step
differ by (d, -d), and no dependence does where rectangular tiles are legal (none has a negative component inside a sweep), so
the lanes of a step are independent and each step sees what the steps before it wrote.

Where the whole nest is skewed, loops run over skewed coordinates and the user's indices are computed from them: the body and
the layout of arrays are as ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.body.conditional_calls import for_strips
from lapwing.codegen.body.distribution import Part
from lapwing.codegen.body.expression import C_TYPES, stripped
from lapwing.codegen.body.if_conversion import is_called, without_branches
from lapwing.codegen.body.inspection import without_traps
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.statements import IGNORED, IGNORED_TRAP, IN_ORDER, INDEPENDENT
from lapwing.codegen.body.text import Lines, indented, mentions, wrapped
from lapwing.codegen.body.widening import in_rows
from lapwing.codegen.body.wrapping import Wrapping, middle, wrapping
from lapwing.codegen.inner_loops.alignment import in_two, row_stored_to
from lapwing.codegen.inner_loops.index_sets import Bounds, Interior, interior
from lapwing.codegen.inner_loops.pi_blocks import around_the_cycle
from lapwing.codegen.inner_loops.scans import SCANNED_TYPES, with_scans
from lapwing.codegen.inner_loops.several import several_loops
from lapwing.codegen.inner_loops.strides import Stride, with_stride
from lapwing.codegen.inner_loops.weak_zero import with_split_loops
from lapwing.codegen.rows.faces import FaceWriter
from lapwing.codegen.rows.inspector import InspectorWriter
from lapwing.codegen.rows.outer_loops import OuterLoopWriter
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.vectors import has_slow_line_splits, vector_bytes
from lapwing.tiling.chains import shortened
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import is_invariant, is_row_invariant, raises_alike, row_invariants

_OF_SCANS = re.compile(r"LW_SCAN|lw_strip_(?:scan|later)_")


class TileWriter(OuterLoopWriter, FaceWriter):
    """Writes a tile whose rows stay where they are. ``scanned_types``: of recurrences that are scans."""

    scanned_types: Sequence[str] = SCANNED_TYPES

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        self.given = bound
        self._stride: Stride | None = None  # of the innermost loop, where it leaves out iterations that do nothing
        innermost = bound.nest.space_loops[form.order[-1]]
        around: tuple[Part, ...] = ()
        body = shortened(bound.body, innermost.name, innermost.step)
        scanned = None
        if form.scanned:
            scanned = with_scans(bound, body, innermost.name, innermost.step, self.exists, self.scanned_types)
        if scanned is not None:
            body, form = in_rows(scanned), replace(form, independent=True)
        elif form.lanes == 1:
            if form.independent and innermost.step == 1 and bound.skew is None:
                body = self._with_stride(body, innermost.name)
            body = replace(body, statements=with_split_loops(replace(bound, body=body)))
            index = innermost.name if innermost.step == 1 else ""
            if index and not (form.independent or form.skewed or interior_of(bound, form)):
                straight = without_branches(bound, body, self.exists)
                around = around_the_cycle(straight.statements, index)
                body = straight if around else body
            if not around:
                body = for_strips(bound, body, index, form.independent, self.exists)
            body = in_rows(body) if form.independent else body
        super().__init__(replace(bound, body=body), faces)
        self.form, self.lanes = form, form.lanes
        self.has_scans = scanned is not None  # of all that iterations wait for
        self._row_names = self._name_row_invariants() if form.lanes == 1 and bound.skew is None else []
        self.in_strips = form.lanes == 1
        self._parts: tuple[Part, ...] = ()
        if self.in_strips:
            self._parts = around or self.parts_of(body.statements, self._counting_up(innermost.name), form.independent)
        counts_up = bool(self._counting_up(innermost.name))
        self._fetched = _in_rows_along(scanned, innermost.name) if scanned is not None and counts_up else []
        self._part: Part | None = None  # that is written, where it is not the whole body
        self._proved = _proved_subscripts(bound.body)
        self._several: dict[int, tuple[t.TypedFor, Sequence[t.TypedStatement]]] = {}  # by the identities of inner loops
        self._bounds = 0  # how many locals hold where parts of inner loops begin and end
        self._interior = None if scanned is not None else self._interior_of(bound, faces, form)

    def _interior_of(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> InteriorTileWriter | None:
        """The writer of what the innermost loop does inside of where conditions on indices are known, if that is worth it."""
        if form.lanes > 1 or self.joins_sweeps or any(a.exact_sum for a in bound.body.accumulators):
            return None
        if self._stride is not None:
            return None
        found = interior_of(bound, form)
        if found is None or not (form.scanned or _has_branches(self.bound.body)):
            return None
        inside = InteriorTileWriter(bound, faces, form, found, self.suffix)
        return inside if inside.is_better else None

    def _with_stride(self, body: t.TypedBody, index: str) -> t.TypedBody:
        """The body without a condition that holds in one of so many iterations, where the loop goes from one to the next.
        Functions that are called are so for all iterations of a strip."""
        found = with_stride(body, index, frozenset(loop.name for loop in self.given.nest.loops) - {index})
        if found is None or any(a.exact_sum for a in body.accumulators):
            return body
        if found[1].by == 2 and vector_bytes() == 64:
            return body  # half of the lanes of vectors that have masks are as fast
        nodes = (n for s in t.all_statements(body.statements) for v in t.own_values(s) for n in t.walk(v))
        if any(is_called(node) and not is_invariant(node) for node in nodes):
            return body
        body, self._stride = found
        return body

    def _stride_texts(self) -> list[str]:
        """The C texts of what is added to the index, and of what that leaves."""
        stride = self._stride
        return [] if stride is None else [stripped(self.printer.print(node)) for node in (stride.offset, stride.rest)]

    def peeled(
        self, body: Sequence[t.TypedStatement], index: str, bounds: tuple[str, str], place: tuple[int, ...]
    ) -> tuple[str, tuple[str, str]]:
        row = row_stored_to(body, index) if self.in_strips and has_slow_line_splits() else None
        if row is None:
            return "", bounds
        begin, end = (self.names.get((part, *place), part) for part in ("from", "until"))
        return in_two((begin, end), *bounds, self.printer.in_array(row)), (begin, end)

    def several(self, loop: t.TypedFor) -> Sequence[t.TypedStatement]:
        if not self.in_strips:
            return (loop,)
        if id(loop) not in self._several:
            made = tuple(several_loops(loop, self._proved.__contains__, self._new_bound))
            self._several[id(loop)] = loop, made
            if made != (loop,):
                self._inner |= {s.index.name for s in t.all_statements(made) if isinstance(s, t.TypedFor)}
                given = {id(s) for s in t.all_statements(loop.body)}
                new = [s for s in t.all_statements(made) if isinstance(s, t.TypedFor) and id(s) not in given]
                self._settled |= {id(s): s for s in new}
        return self._several[id(loop)][1]

    def parts_of_inner(
        self, loop: t.TypedFor, body: Sequence[t.TypedStatement], place: tuple[int, ...]
    ) -> tuple[Part, ...]:
        parts, by = super().parts_of_inner(loop, body, place), loop.step
        if parts or not self.in_strips or loop.independent or not (isinstance(by, t.Literal) and by.value == 1):
            return parts
        return around_the_cycle(body, loop.index.name)

    def with_scans(self, loop: t.TypedFor) -> Sequence[t.TypedStatement] | None:
        body = replace(self.bound.body, statements=loop.body)
        found = with_scans(self.bound, body, loop.index.name, 1, loop.exist.__contains__)
        return None if found is None else in_rows(found).statements

    def _new_bound(self) -> t.Local:
        self._bounds += 1
        return t.Local("int64", " bound", self._bounds)

    def _counting_up(self, loop: str) -> str:
        """The name of a loop's index, if that is the loop's coordinate."""
        return loop if self.coordinate(loop) == self.index(loop) else ""

    @property
    def is_in_part(self) -> bool:
        return self._part is not None

    def exists(self, load: t.Load) -> bool:
        """Whether an element is known to exist in every iteration although conditions on indices stand around it."""
        return False

    @property
    def suffix(self) -> str:
        """What names of functions end with, of a tile that has several versions of them."""
        return ""

    @property
    def joins_sweeps(self) -> bool:
        """Whether a box may hold several sweeps."""
        return False

    @property
    def _may_leave(self) -> bool:
        """Whether something may raise before the loops, and nothing in them."""
        return bool(self.bound.body.traps) and raises_alike(self.given.body)

    def headers(self) -> Iterator[str]:
        """Includes of what this tile takes besides."""
        yield from ()

    def prepared(self) -> Iterator[str]:
        """Declarations of what is known before the loops, besides invariants."""
        yield from ()

    def source(self) -> str:
        inspector = InspectorWriter.of(self.given)
        unchecked = (
            None if inspector is None or self.lanes > 1 else UncheckedTileWriter(self.given, self.faces, self.form)
        )
        lines = [*self.invariant_functions(), *self.point_functions()]
        if inspector is not None:
            lines += [*inspector.source(), ""]
        for version in (self._interior, unchecked):
            lines += [*version.functions(), ""] if version is not None else []
        lines += [*self.compute("void lw_tile_compute", unchecked), "", *self.face_functions()]
        strips = ['#include "strips.h"'] if any("LW_STRIP" in line for line in lines) else []
        strips += ['#include "scans.h"'] if any(_OF_SCANS.search(line) for line in lines) else []
        lanes = self.lanes_headers() or (unchecked.lanes_headers() if unchecked is not None else [])
        return "\n".join([*self.heading("One tile."), *self.headers(), *strips, *lanes, "", *lines]) + "\n"

    def point_functions(self) -> Iterator[str]:
        """The loop body, in every form that the loops call."""
        index = self._counting_up(self.nest.space_loops[self.form.order[-1]].name)
        if self.in_strips and index and not (self.form.scanned or self._parts or self._wraps):
            self.make_innermost(index, is_chain=not self.form.independent)
        functions = list(self._point_functions())
        yield from (*self.lane_functions(), *functions)

    def _point_functions(self) -> Iterator[str]:
        if self._wraps or self._interior is not None or not self._parts:
            yield from (*self.point_function(), "")
        with self._where_nothing_wraps():
            for part in self._parts or ((None,) if self._wraps else ()):
                with self._only(part):
                    yield from (*self.point_function(), "") if part is None or part.statements else ()

    def compute(self, head: str, unchecked: UncheckedTileWriter | None = None) -> Iterator[str]:
        """The function with the tile's loops. unchecked: of what is called where nothing raises."""
        lines = Lines()
        call = self.point_call()
        self._loops(lines, call)
        yield f"{head}(lw_tile *tile, const lw_box *box) {{"
        if unchecked is not None:
            yield from indented(
                ["if (tile->raises_nothing) {", f"    {unchecked.name}(tile, box);", "    return;", "}"]
            )
        prepared = list(self.prepared())
        text = call + "\n".join([*prepared, *lines.texts])
        invariants = list(self.invariants(text))
        declared = self.declarations(text + "\n".join(invariants))
        # Where nothing else raises, arrays are worked on where they lie, and an error must find them as they were.
        leave = ["if (trap != 0) {", "    tile->trap = trap;", "    return;", "}"]
        early = leave if self._may_leave else []
        strips = [*([IGNORED_TRAP] if mentions(text, IGNORED) else []), *self.strips(self._parts)]
        for line in indented([*declared, *invariants, *early, *prepared, *strips, *lines.texts, *self.write_back()]):
            yield from wrapped(line)
        yield "}"

    def _loops(self, lines: Lines, call: str) -> None:
        if not self.joins_sweeps:
            self.sweep_indices(
                lines, " ".join([call, *(text for _, _, text in self._row_names), *self._stride_texts()])
            )
        *_, innermost = order = [self.nest.sweep_depth + k for k in self.form.order]
        outer = self.outer_loops()
        for k in outer:
            self.open_loop(lines, k)
        lines.add(*(f"const {c_type} {name} = {text};" for c_type, name, text in self._row_names))
        if self.lanes > 1:
            self.pair(lines, order[-2], innermost, call, is_inside=bool(outer))
        else:
            pragma = INDEPENDENT if self.form.independent and not self.nest.is_sequential else ""
            if self._interior is not None:
                self._loop_with_interior(lines, innermost, self._interior)
            elif self._wraps:
                self._split_loop(lines, innermost, call, pragma)
            else:
                self._innermost_loop(lines, innermost, pragma)
            if self.form.independent and outer:
                lines.add(IN_ORDER)
        lines.close_all()

    def outer_loops(self) -> Sequence[int]:
        """The loops around the innermost one, or around the pair of lanes."""
        order = [self.nest.sweep_depth + k for k in self.form.order]
        return order[: -2 if self.lanes > 1 else -1]

    def _innermost_loop(self, lines: Lines, k: int, pragma: str) -> None:
        bounds = self.loop_bounds(k)
        self._plain_loop(lines, k, bounds.low, self.loop_end(lines, k), pragma)

    def _plain_loop(self, lines: Lines, k: int, start: str, stop: str, pragma: str) -> None:
        """The innermost loop over a range, in strips where it is distributed over several."""
        if not self._parts:
            several, at_each = (
                ([], []) if self._stride else self.innermost_in_lanes(self.nest.loops[k].name, start, stop)
            )
            if several:
                lines.open("{")
                lines.add(*several)
                self._loop_over(lines, k, "", stop, self.point_call(), "" if at_each else pragma, at_each)
                lines.close()
                return
            self._loop_over(lines, k, start, stop, self.point_call(), pragma)
            return
        strip, strip_end = (self.names.get(name, name) for name in ("strip", "strip_end"))
        lines.open(f"for (int64_t {strip} = {start}; {strip} < {stop}; {strip} += LW_STRIP) {{")
        lines.add(f"const int64_t {strip_end} = lw_min_i64({strip} + LW_STRIP, {stop});")
        if self._fetched:
            x = self.coordinate(self.nest.loops[k].name)
            fetches = [f"LW_FETCH_AHEAD({self.printer.in_array(target)});" for target in self._fetched]
            lines.add("{", f"    const int64_t {x} = {strip};", *indented(fetches), "}")
        own = next(part for part in self._parts if part.is_last)
        for part in self._parts:
            if part.statements:
                sums = [a for a in self.bound.body.accumulators if a.name in part.sums]
                for accumulator in sums:
                    lines.add(*self.room_for_terms(accumulator, f"{strip_end} - {strip}"))
                with self._only(part):
                    frees = pragma if part is own else INDEPENDENT
                    call = self.point_call(trap="trap" if part.is_last else IGNORED)
                    self._loop_over(lines, k, strip, strip_end, call, frees)
                for accumulator in sums:
                    lines.add(*self.terms_added(accumulator, f"{strip_end} - {strip}"))
            lines.add(*self.strip_calls(part, self.coordinate(self.nest.loops[k].name), (strip, strip_end)))
        lines.close()

    def _loop_over(
        self, lines: Lines, k: int, start: str, stop: str, call: str, pragma: str, at_each: Sequence[str] = ()
    ) -> None:
        """at_each: what comes before every iteration."""
        name = self.nest.loops[k].name
        x, opening = self.coordinate(name), ""
        moves = f"++{x}"
        if self._stride is not None:
            offset, rest = self._stride_texts()
            start = f"lw_first_congruent({start}, {stop}, {offset}, {self._stride.by}, {rest})"
            moves = f"{x} += {self._stride.by}"
        elif pragma == INDEPENDENT and start and self._part is None and self._counting_up(name):
            opening, (start, stop) = self.peeled(self.body_statements(), name, (start, stop), ())
        if opening:
            lines.open(opening)
        lines.add(*([pragma] if pragma else []))
        lines.open(f"for ({f'int64_t {x} = {start}' if start else ''}; {x} < {stop}; {moves}) {{")
        lines.add(*at_each, *self.index_from_coordinates(name), call)
        lines.close()
        if opening:
            lines.close()

    # -- one of the loops that the innermost one is distributed over ---------------------------------------------------

    @contextmanager
    def _only(self, part: Part | None) -> Iterator[None]:
        """What is written is one part of the loop body."""
        self._part = part
        self._term_places = {a.name: f"*{self._term_of(a)}" for a in self._sums_of_part()}
        try:
            yield
        finally:
            self._part = None
            self._term_places = {}

    def _sums_of_part(self) -> list[t.Accumulator]:
        """The sums to which every iteration of the part that is written adds one term."""
        part = self._part
        return [] if part is None else [a for a in self.bound.body.accumulators if a.name in part.sums]

    def _term_of(self, accumulator: t.Accumulator) -> str:
        return self.names.get(("term of", accumulator.name), f"{self.accumulator(accumulator.name)}_term")

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return super().body_statements() if self._part is None else self._part.statements

    def statements(self) -> Iterator[str]:
        yield from super().statements()
        if self._part is not None:
            for local in self._part.outgoing:
                name = self.printer.name(local)
                yield f"*{self._set_elsewhere(local)} = {name};"

    def _set_elsewhere(self, local: t.Local) -> str:
        return self.names.get(("set", local), f"{self.printer.name(local)}_out")

    def _part_parameters(self) -> list[tuple[str, str]]:
        """Of locals that are set before, or read after, the part that is written."""
        if self._part is None:
            return []
        place = self._place_in_strip()
        return [
            *(
                (f"double *restrict {self._term_of(a)}", f"&{self.place_of_term(a, place)}")
                for a in self._sums_of_part()
            ),
            *(
                (f"{C_TYPES[v.dtype]} {self.printer.name(v)}", self.value_in_strip(v, place))
                for v in self._part.incoming
            ),
            *(
                (f"{self.strip_type(v)} *restrict {self._set_elsewhere(v)}", f"&{self.in_strip(v, place)}")
                for v in self._part.outgoing
            ),
        ]

    def _place_in_strip(self) -> str:
        """The C text of how many iterations of a strip come before the one at hand."""
        x = self.coordinate(self.nest.space_loops[self.form.order[-1]].name)
        return f"{x} - {self.names.get('strip', 'strip')}"

    # -- what is the same in all iterations of the innermost loop ------------------------------------------------------

    def _name_row_invariants(self) -> list[tuple[str, str, str]]:
        """Gives them names, by which they are printed from here on; their C types, names and texts."""
        innermost = self.nest.space_loops[self.form.order[-1]].name
        outer = frozenset(loop.name for loop in self.nest.loops) - {innermost}
        named: list[tuple[str, str, str]] = []
        indices = dict.fromkeys(
            (node.array, subscript)
            for node in self._nodes()
            if isinstance(node, t.Load)
            for subscript in node.subscripts
            if isinstance(subscript, t.LookupSubscript) and subscript.counts_from_end and subscript.trap is None
            if is_row_invariant(subscript.index, outer)
        )
        for number, (array, subscript) in enumerate(indices, 1):
            name = self.names.get(("row index", array, subscript), f"row_{number}")
            named.append(("int64_t", name, self.printer.index(array, subscript)))
            self.printer.indices[array, subscript] = name
        for number, node in enumerate(row_invariants(self.bound.body, outer), len(indices) + 1):
            name = self.names.get(("row invariant", node), f"row_{number}")
            named.append((C_TYPES[node.dtype], name, stripped(self.printer.print(node))))
            self.printer.named = {**self.printer.named, node: name}
        return named

    def local_parameters(self) -> list[tuple[str, str]]:
        return [*((f"{c_type} {name}", name) for c_type, name, _ in self._row_names), *self._part_parameters()]

    # -- indices that wrap -------------------------------------------------------------------------------------------

    @cached_property
    def _wraps(self) -> Wrapping:
        """What wraps along the innermost loop."""
        loop = self.nest.space_loops[self.form.order[-1]]
        if self.lanes > 1 or loop.step != 1 or self.bound.skew is not None:
            return {}
        return wrapping(self.bound.body.statements, loop.name)

    @contextmanager
    def _where_nothing_wraps(self) -> Iterator[None]:
        """What is written is for iterations in which nothing wraps."""
        with self.where_inside(self._wraps):
            yield

    def point_name(self) -> str:
        inside = "_inside" if self.printer.inside else ""
        if self._part is not None:
            if len(self._parts) == 1 and not self._wraps:
                return super().point_name()
            number = self._parts.index(self._part) + 1
            return self.names.get(("part", number), f"{self.nest.name}_part_{number}{inside}")
        name = super().point_name()
        return self.names.get("point inside", f"{name}_inside") if inside else name

    def _loop_with_interior(self, lines: Lines, k: int, inside: InteriorTileWriter) -> None:
        """The innermost loop in three parts: in the middle one conditions on indices are known."""
        x, low, found = self.coordinate(self.nest.loops[k].name), self.loop_bounds(k).low, inside.interior
        end = self.loop_end(lines, k)
        first, last, row = (
            self.names.get((part, k), name)
            for part, name in (("first", f"{x}_first"), ("last", f"{x}_last"), ("row", "row"))
        )
        lines.add(f"int64_t {first} = {low}, {last} = {end};")
        for bounds in filter(None, (found.first, found.then)):
            lines.open(f"if ({first} < {last}) {{")
            self._narrow(lines, bounds, first, last)
            lines.close()
        lines.add(f"if ({first} >= {last}) {first} = {last} = {end};")
        self._loop_over(lines, k, low, first, self.point_call(), "")
        lines.open(f"if ({first} < {last}) {{")
        lines.add(f"lw_box {row} = *box;")
        for outer in self.outer_loops():
            name = self.coordinate(self.nest.loops[outer].name)
            lines.add(f"{row}.lo[{outer}] = {name};", f"{row}.hi[{outer}] = {name} + 1;")
        lines.add(f"{row}.lo[{k}] = {first};", f"{row}.hi[{k}] = {last};")
        lines.add(*self.write_back(), f"{inside.name}(tile, &{row});", *self.read_again())
        lines.close()
        self._loop_over(lines, k, last, end, self.point_call(), "")

    def _narrow(self, lines: Lines, bounds: Bounds, first: str, last: str) -> None:
        """Brings the ends of what is inside together; it is empty where a condition does not hold."""

        def text(node: t.Typed) -> str:
            return stripped(self.printer.print(node))

        def at(node: t.Typed) -> str:
            """The coordinate at which the index has a value."""
            return f"{text(node)} + {ahead}" if ahead else text(node)

        ahead = self._ahead(self.nest.space_loops[self.form.order[-1]].name)
        holds = [*map(text, bounds.holds), *(f"lw_near({text(n)}) == {self.printer.print(n)}" for n in bounds.near)]
        lines.add(*(f"if (!({each})) {last} = {first};" for each in holds))
        lines.add(*(f"{first} = lw_max_i64({first}, {at(node)});" for node in bounds.begins))
        lines.add(*(f"{last} = lw_min_i64({last}, {at(node)});" for node in bounds.ends))
        for number, node in enumerate(bounds.apart, 1):
            value = self.names.get(("apart", node), f"apart_{number}")
            lines.add(
                f"const int64_t {value} = {at(node)};",
                f"if ({value} >= {first} && {value} < {last}) {{",
                f"    if ({value} - {first} < {last} - {value}) {first} = {value} + 1;",
                f"    else {last} = {value};",
                "}",
            )

    def _ahead(self, loop: str) -> str:
        """How far the coordinate of a loop that counts up is ahead of its index, where it is skewed."""
        skew, names = self.bound.skew, self.nest.loop_names
        if skew is None or not self.is_skewed(loop):
            return ""
        row = zip(names, skew.inverse[names.index(loop)], strict=True)
        terms = tuple((self.coordinate(name), -factor) for name, factor in row if factor and name != loop)
        return f"({Affine(0, terms)})"

    def _split_loop(self, lines: Lines, k: int, call: str, pragma: str) -> None:
        """The innermost loop in three parts (index set splitting): in the middle one nothing wraps, and vectors can be
        loaded."""
        x, low = self.coordinate(self.nest.loops[k].name), self.loop_bounds(k).low
        end = self.loop_end(lines, k)
        first, last = (self.names.get((part, k), f"{x}_{part}") for part in ("first", "last"))
        begin, high = middle(self._wraps, end, self.printer.print)
        lines.add(f"const int64_t {first} = lw_min_i64({end}, lw_max_i64({low}, {begin}));")
        lines.add(f"const int64_t {last} = lw_max_i64({first}, {high});")
        self._loop_over(lines, k, low, first, call, "")
        with self._where_nothing_wraps():
            self._plain_loop(lines, k, first, last, pragma)
        self._loop_over(lines, k, last, end, call, "")

    def pair(self, lines: Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above.

        While the rows of a block come in and run out, only some lanes work; in between all do, and that loop is the one
        that counts.
        """
        c, row = self.pair_names(), self.loop_bounds(w)
        ragged = mentions(f"{row.low} {row.high}", self.coordinate(self.nest.loops[v].name))
        if not ragged:
            lines.add(f"const int64_t {c.begin} = {row.low}, {c.end} = {row.high};")
            lines.add(f"if ({c.begin} >= {c.end}) {'continue' if is_inside else 'return'};")
        self.open_block(lines, c, v)
        lines.add(*(self._ragged_steps(c, v, row) if ragged else self._even_steps(c)))
        self.declare_private(lines, c)

        def steps(first: str, last: str, lanes: tuple[str, str], statement: str, *pragma: str) -> None:
            lines.open(f"for (int64_t {c.step} = {first}; {c.step} < {last}; ++{c.step}) {{")
            lines.add(*pragma)
            lines.open(f"for (int64_t {c.lane} = {lanes[0]}; {c.lane} < {lanes[1]}; ++{c.lane}) {{")
            self.indices_of(lines, ((v, f"{c.block} + {c.lane}"), (w, f"{c.step} - {c.lane}")))
            lines.add(statement)
            lines.close()
            lines.add(IN_ORDER)
            lines.close()

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
        steps(
            c.all_from,
            c.all_until,
            ("0", str(self.lanes)),
            self.point_call(self.private_of(c.lane)),
            self.vector_pragma(),
        )
        steps(c.all_until, last, some, guarded)
        self.fold_private(lines, c)
        lines.close()

    def open_block(self, lines: Lines, c: PairNames, v: int) -> str:
        """Opens the loop over blocks of rows; the C text of where it ends."""
        bounds = self.block_bounds(v)
        low, high = bounds.low, self.loop_end(lines, v, bounds)
        lines.open(f"for (int64_t {c.block} = {low}; {c.block} < {high}; {c.block} += {self.lanes}) {{")
        lines.add(f"const int64_t {c.lanes} = lw_min_i64({self.lanes}, {high} - {c.block});")
        return high

    def block_bounds(self, v: int) -> LoopBounds:
        """Of the loop over blocks of rows."""
        return self.loop_bounds(v)

    def declare_private(self, lines: Lines, c: PairNames, margin: int = 0) -> None:
        """Declares an accumulator a lane for every reduction, for so many lanes before lane 0 as well."""
        private, lanes = self._private_accumulators(), self.lanes + margin
        for name, (c_type, start, _) in private.items():
            self.declare_lanes(lines, c, c_type, name, lanes, start)

    @staticmethod
    def declare_lanes(lines: Lines, c: PairNames, c_type: str, name: str, lanes: int, start: str) -> None:
        """Declares a C array with an element a lane, that all begin alike."""
        lines.add(f"{c_type} {name}[{lanes}];")
        lines.add(f"for (int {c.lane} = 0; {c.lane} < {lanes}; ++{c.lane}) {name}[{c.lane}] = {start};")

    def private_of(self, lane: str) -> dict[str, str]:
        """Where the accumulators of a lane are kept."""
        names = [accumulator.name for accumulator in self._plain_accumulators()]
        return {name: f"{own}[{lane}]" for name, own in zip(names, self._private_accumulators(), strict=True)}

    def fold_private(self, lines: Lines, c: PairNames, margin: int = 0) -> None:
        """Brings the accumulators of all lanes together."""
        for name, (_, _, fold) in self._private_accumulators().items():
            folded = fold.format(f"{name}[{c.lane}]")
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {self.lanes + margin}; ++{c.lane}) {folded}")

    def pair_names(self) -> PairNames:
        return PairNames(**{f.name: self.names.get(("pair", f.name), str(f.default)) for f in fields(PairNames)})

    def _even_steps(self, c: PairNames) -> Iterator[str]:
        """The steps in which all lanes work, where all rows are alike."""
        yield f"const bool {c.full} = {c.lanes} == {self.lanes} && {c.end} - {c.begin} >= {self.lanes};"
        yield f"const int64_t {c.all_from} = {c.full} ? {c.begin} + {self.lanes - 1} : {c.end} + {c.lanes} - 1;"
        yield f"const int64_t {c.all_until} = {c.full} ? {c.end} : {c.all_from};"

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

    def vector_pragma(self) -> str:
        """Roots, divisions and small integers are worth vectorising whatever gcc's cost model says of strided rows."""
        body = self.bound.body
        apart = raises_alike(body) and not any(a.is_shared for a in body.accumulators)
        plain = body.is_straight and (self.form.transposed or apart)
        stores = [s for s in body.simple if isinstance(s, t.TypedStore)]
        small = all("int" in s.target.dtype for s in stores)
        expensive = any(_is_expensive(statement.value) for statement in body.simple)
        return "#pragma omp simd" if plain and (expensive or small) else INDEPENDENT


def _proved_subscripts(body: t.TypedBody) -> frozenset[t.LookupSubscript]:
    """The computed indices that are inside of their arrays by what their parts may be."""
    values = (value for s in t.all_statements(body.statements) for value in t.own_values(s))
    loads = (node for value in values for node in t.walk(value) if isinstance(node, t.Load))
    subscripts = (subscript for load in loads for subscript in load.subscripts)
    return frozenset(s for s in subscripts if isinstance(s, t.LookupSubscript) and s.trap is None)


def _is_expensive(node: t.Typed) -> bool:
    """Whether the expression takes a root of, or divides by, something that varies from point to point."""
    return any(
        isinstance(part, t.Operation) and part.operator in ("sqrt", "/") and _varies(part.operands[-1])
        for part in t.walk(node)
    )


def _varies(node: t.Typed) -> bool:
    return any(isinstance(part, t.Load | t.Local | t.Index) for part in t.walk(node))


def interior_of(bound: BoundNest, form: InnerForm) -> Interior | None:
    """What the innermost loop of a form does inside of where conditions on indices are known."""
    loops, innermost = bound.nest.loops, bound.nest.space_loops[form.order[-1]]
    if innermost.step != 1:
        return None
    return interior(bound.body, innermost.name, {loop.name for loop in loops} - {innermost.name})


def _in_rows_along(body: t.TypedBody, index: str) -> list[t.Load]:
    """What a loop stores to, where that of the next iteration is the next element."""
    targets = dict.fromkeys(s.target for s in body.statements if isinstance(s, t.TypedStore))
    return [target for target in targets if t.is_contiguous(target, index)]


def _has_branches(body: t.TypedBody) -> bool:
    """Whether there are conditions that compilers make no masks of."""
    values = (value for s in body.statements if isinstance(s, t.SimpleStatement) for value in t.own_values(s))
    choices = (node for value in values for node in t.walk(value) if isinstance(node, t.Select))
    return not body.is_straight or any(
        isinstance(part, t.Load) for node in choices if not node.speculable for part in t.walk(node)
    )


def is_scanned(bound: BoundNest, form: InnerForm) -> bool:
    """Whether there is code for a form with scans; where something may raise, for boxes that have been inspected."""
    loop, body = bound.nest.space_loops[form.order[-1]], bound.body
    if body.traps:
        if InspectorWriter.of(bound) is None:
            return False
        body = without_traps(body)
    if with_scans(bound, body, loop.name, loop.step) is not None:
        return True
    inside = interior_of(replace(bound, body=body), form)
    return (
        inside is not None
        and with_scans(bound, inside.body, loop.name, loop.step, lambda _: inside.all_exist) is not None
    )


class InteriorTileWriter(TileWriter):
    """Writes the loops of a plain tile for iterations inside of where conditions on indices are known. suffix: of the version of
    the tile that it is part of."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm, found: Interior, suffix: str) -> None:
        self.interior, self._suffix = found, f"_interior{suffix}"
        super().__init__(replace(bound, body=found.body), faces, form)
        self.name = self.names.get("interior tile", f"compute{self._suffix}")

    @property
    def suffix(self) -> str:
        return self._suffix

    def exists(self, load: t.Load) -> bool:
        return self.interior.all_exist

    @property
    def is_better(self) -> bool:
        """Whether there is a scan, or no branch is left."""
        return self.form.independent and (self.form.scanned or not _has_branches(self.bound.body))

    def _interior_of(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        return None

    def point_name(self) -> str:
        return f"{super().point_name()}{self._suffix}"

    def _function(self, invariant: str) -> str:
        return f"{super()._function(invariant)}{self._suffix}"

    def functions(self) -> Iterator[str]:
        """The loop body's functions, and the one with the loops."""
        yield from (*self.invariant_functions(), *self.point_functions(), *self.compute(f"static void {self.name}"))


class UncheckedTileWriter(TileWriter):
    """Writes the loops of a plain tile for iterations that have been inspected: nothing in them raises, and no index that is
    looked up is outside its axis or counts from the end."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(replace(bound, body=without_traps(bound.body)), faces, form)
        self._proved = _proved_subscripts(bound.body)  # others are inside where conditions hold that they stand under
        self.name = self.names.get("unchecked tile", "compute_unchecked")

    @property
    def _may_leave(self) -> bool:
        return False

    @property
    def suffix(self) -> str:
        return "_unchecked"

    def functions(self) -> Iterator[str]:
        """The loop body's functions, and the one with the loops."""
        yield from (*self.invariant_functions(), *self.point_functions())
        yield from () if self._interior is None else (*self._interior.functions(), "")
        yield from self.compute(f"static void {self.name}")

    def point_name(self) -> str:
        return f"{super().point_name()}_unchecked"

    def _function(self, invariant: str) -> str:
        return f"{super()._function(invariant)}_unchecked"
