"""The loops of a tile in C that copies what a step needs of many rows into buffers (``tiling.transposed``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.affine.scanning import LoopBounds
from lapwing.codegen.body.expression import C_TYPES, stripped
from lapwing.codegen.body.if_conversion import for_lanes
from lapwing.codegen.body.if_conversion import reason_against as reason_against_branches
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.statements import IN_ORDER
from lapwing.codegen.body.text import Lines, mentions, plus
from lapwing.codegen.extrema import Extrema
from lapwing.codegen.lane_rows import When
from lapwing.codegen.tile_loops import TileWriter
from lapwing.codegen.transposed import Buffers
from lapwing.codegen.vector_bodies import (
    Accumulator,
    computed_size,
    is_constant,
    is_row,
    loads_of,
    of_one_size,
    profiles_of,
    reason_against_vectors,
)
from lapwing.codegen.vectors import Mask, Point, VectorSteps
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.vectors import vector_bytes
from lapwing.tiling.chains import shortened
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.transposed import BUFFER_LANES, COPIED_STEPS, MARGIN, Plane, Planes, planes_of

# From the C text of a lane, none for the first: loops, and the coordinates of its point.
Indices = Callable[[str], Sequence[tuple[int, str]]]


class TransposedTileWriter(TileWriter):
    """Writes a tile with buffers of transposed elements."""

    kind = ""  # what the names of types of vectors begin with

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        planes = planes_of(bound, form.order, form.coalesced)
        assert planes is not None, "the form is not legal"
        # What lies in a buffer exists whatever conditions say.
        super().__init__(replace(bound, body=for_lanes(bound, planes.places.__contains__)), faces, form)
        planes = planes_of(self.bound, form.order, form.coalesced)
        assert planes is not None
        self.extrema = Extrema(self, self.pair_names())
        self.buffers = self.make_buffers(planes)
        self.printer.placed = self.buffers.elements()
        kept, in_vectors = self._kept_by_lanes(), self._bound_in_vectors()
        c, same = self.pair_names(), self.is_same_in_blocks
        profiles = profiles_of(in_vectors, self._move, same) if self.kind else ()
        self.reason_against_vectors = reason_against_branches(self.bound, self._exists) or reason_against_vectors(
            in_vectors, self.buffers, vector_bytes(), self._move, kept, profiles
        )
        self.vectors: VectorSteps | None = None
        if self.reason_against_vectors is None:
            width = vector_bytes() // computed_size(self.buffers)
            self.vectors = VectorSteps(
                in_vectors, self.buffers, self.names, c, width, self._move, kept, self._value, same, profiles, self.kind
            )
        self._body_in_vectors = in_vectors.body
        self._in_vectors = self._by_divider = False

    def _exists(self, load: t.Load) -> bool:
        """Whether vectors find an element whatever conditions say. Rows that are in no buffer are laid side by side for them."""
        return load in self.buffers.places or is_row(self._move(load))

    def _bound_in_vectors(self) -> BoundNest:
        """The nest with the loop body of vectors."""
        innermost = self.nest.space_loops[self.form.order[-1]]
        body = of_one_size(for_lanes(self.bound, self._exists), computed_size(self.buffers))
        return replace(self.bound, body=shortened(body, innermost.name, innermost.step))

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return self._body_in_vectors.statements if self._in_vectors else super().body_statements()

    def make_buffers(self, planes: Planes) -> Buffers:
        return Buffers(planes, self.stored_types(), self.names, self.pair_names())

    def stored_types(self) -> dict[str, str]:
        return {array.name: array.dtype for array in self.bound.arrays}

    def _kept_by_lanes(self) -> list[Accumulator]:
        """What every lane brings together by itself."""
        plain = zip(self._plain_accumulators(), self._private_accumulators(), strict=True)
        found = [Accumulator(f"&{self.accumulator(a.name)}", own, a.dtype) for a, own in plain]
        return found + [Accumulator(f"&{own.name}", own.lanes, own.dtype) for own in self.extrema.private()]

    def _move(self, load: t.Load) -> tuple[int, int] | None:
        """By how much the place of an element moves along the last axis of its array from lane to lane, and from step to step;
        None where that is not known, or it moves along others or from one joined sweep to the next as well."""
        sweeps = {loop.name for loop in self.nest.sweep_loops} if self.joins_sweeps else set()
        v, w = (self.nest.space_loops[k] for k in self.form.order[-2:])
        # From lane to lane a step further back, and in skewed rows as many as those are further on.
        back = 1 + self._skew_of_pair(*(self.nest.loop_names.index(loop.name) for loop in (v, w)))
        moves = []
        for subscript in load.subscripts:
            if not isinstance(subscript, t.AffineSubscript) or subscript.wrap or sweeps & subscript.affine.names:
                return None
            down, along = (loop.step * subscript.affine.coefficient(loop.name) for loop in (v, w))
            moves.append((down - back * along, along))
        *outer, inner = moves
        return None if any(any(move) for move in outer) else inner

    def is_same_in_blocks(self, load: t.Load) -> bool:
        """Whether all blocks of rows go through the same elements of an array that is in no buffer."""
        across = self.nest.space_loops[self.form.order[-2]].name
        subscripts = (s for s in load.subscripts if isinstance(s, t.AffineSubscript))
        same = self.bound.domain.is_box and self.bound.skew is None and not self.joins_sweeps
        return same and not any(across in s.affine.names for s in subscripts)

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
        if self.vectors and self.vectors.is_correctly_rounding:
            yield '#include "correctly_rounded.h"'
        yield from self.types_of_vectors()

    def types_of_vectors(self) -> Iterator[str]:
        if self.vectors:
            yield from ("", *self.vectors.types())

    def prepared(self) -> Iterator[str]:
        if self.vectors:
            yield from self.vectors.prepared(self.printer.print)

    def sweep_indices(self, lines: Lines, body: str) -> None:
        # What is copied may lie in another place in every sweep, and an extremum in one: the body's text does not say so.
        folds = (line for statement in self.extrema.statements for line in self.extrema.fold(statement))
        super().sweep_indices(lines, "\n".join([body, *self.buffers.first_elements(self.printer.in_array), *folds]))

    def buffer_parameters(self) -> list[tuple[str, str]]:
        return self.vectors.parameters() if self._in_vectors and self.vectors else self.buffers.parameters()

    def point_functions(self) -> Iterator[str]:
        yield from super().point_functions()
        if self.vectors:
            for by_divider in (False, True) if self.vectors.reciprocals else (False,):
                with self._one_vector(by_divider):
                    yield from (*self.point_function(), "")

    @contextmanager
    def _one_vector(self, by_divider: bool = False) -> Iterator[None]:
        """What is written is for the lanes of a vector. by_divider: with the core's, also where another way is quicker."""
        assert self.vectors is not None
        of_buffers, named = self.printer.placed, self.printer.named
        self.printer.placed, self._in_vectors, self._by_divider = self.vectors.elements(), True, by_divider
        if not by_divider:
            self.printer.named = {**named, **self.vectors.images()}
            self.printer.reciprocals = self.vectors.reciprocals.arguments()
        try:
            yield
        finally:
            self.printer.placed, self._in_vectors, self._by_divider = of_buffers, False, False
            self.printer.named, self.printer.reciprocals = named, {}

    def _value(self, value: t.Typed, element: t.Load, text: str) -> str:
        """The C text of an expression, given that of an element."""
        of_buffers = self.printer.placed
        self.printer.placed = {element: text}
        try:
            return stripped(self.printer.print(value))
        finally:
            self.printer.placed = of_buffers

    def point_name(self) -> str:
        name = super().point_name()
        if not self._in_vectors:
            return name
        if self._by_divider:
            return self.names.get("point of a vector by the divider", f"{name}_in_vector_by_divider")
        return self.names.get("point of a vector", f"{name}_in_vector")

    def pair(self, lines: Lines, v: int, w: int, call: str, is_inside: bool) -> None:
        """The two innermost loops as a block of rows, each one step behind the row above, on buffers of what the steps need. All
        steps of a group are computed in a sweep before the next one does its own."""
        buffers, joins = self.buffers, self.joins_sweeps
        c, along = self.pair_names(), self.nest.loops[w].step
        if joins:
            lines.add(f"const int64_t {c.sweeps} = box->hi[0] - box->lo[0];")
        lines.add(*buffers.declarations())
        profiles = self.vectors.profiles if self.vectors else None
        if self.vectors and (self.vectors.rows.has(When.ONCE) or self.vectors.profiles.elements):
            row = self.loop_bounds(w)
            lines.add(f"const int64_t {c.length} = lw_max_i64(0, {row.high} - {row.low}) + {self.lanes}; /* steps */")
            self.copy_rows(lines, ((w, row.low),), When.ONCE)
            self._make_profiles(lines, w)
        self.open_block_of_rows(lines, c, v, w)
        self.declare_point(lines, c)
        if self.vectors:
            self.copy_rows(lines, ((v, c.block), (w, c.begin)), When.BLOCK)
            self._profiles_of_block(lines, c, v)

        def row_of(plane: Plane) -> str:
            return self.row_stride(plane, v, w)

        if joins:
            lines.add("/* Rows whose ends move begin sooner in the last sweep than in the first. */")
            lines.add(f"int64_t {c.group} = -lw_whole_groups(tile->moves.lo[{w}] * ({c.sweeps} - 1));")
        lines.add(*buffers.copied_before(row_of, along))
        starts, stops, after = self._declare_lanes_at_work(lines, c)
        last_until = f"{c.row_until}[0]" if joins else c.row_until
        lines.add(f"const int64_t {c.last} = {last_until}[{c.lanes} - 1 + {MARGIN}] + {c.lanes} - 1;")
        if not joins:
            lines.add(f"int64_t {c.group} = 0;")
        lines.open(f"for (; {c.group} < {c.last}{after}; {c.group} += {COPIED_STEPS}) {{")
        lines.add(*buffers.copied_in(row_of, along))
        lines.add(*(profiles.copied(f"{c.group} + {COPIED_STEPS}") if profiles else ()))
        if joins:
            lines.open(f"for (int64_t {c.sweep} = 0; {c.sweep} < {c.sweeps}; ++{c.sweep}) {{")
            self.indices_of(lines, ((0, f"box->lo[0] + {c.sweep}"),), self.statement(c))
        self._steps_of_group(lines, c, v, starts, stops, self.indices_at(c, v, w))
        if joins:
            lines.close()
        lines.add(*buffers.copied_out(row_of, along))
        lines.close()
        lines.add(*buffers.copied_last(row_of, along, c.last))
        self.fold_point(lines, c, self.indices_at(c, v, w))
        lines.close()
        if self.vectors:
            lines.add(*self.vectors.rows.freed(), *self.vectors.profiles.freed())

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

    @property
    def _delay(self) -> int:
        """By how many steps each sweep is behind the one before."""
        return self.buffers.delay[1]

    def first_of_sweep(self, c: PairNames) -> str:
        """The first lane of a sweep."""
        return f"lw_max_i64({c.above}, -{times(self.buffers.shift, c.sweep)})"

    def _steps_of_group(self, lines: Lines, c: PairNames, v: int, starts: str, stops: str, indices: Indices) -> None:
        """The steps of a group in one sweep: in those at which all lanes are at work nothing is asked lane by lane."""
        joins, vectors = self.joins_sweeps, self.vectors
        lag = f" - {times(self._delay, c.sweep)}" if joins else ""
        lines.add(f"int64_t {c.step} = {c.group}{lag};")
        lines.add(f"const int64_t {c.end} = lw_min_i64({c.step} + {COPIED_STEPS}, {c.last});")
        lines.add(f"const int64_t {c.starts_at} = {self.first_of_sweep(c) if joins else 0};")
        lines.add(f"const int64_t {c.beyond} = {self.beyond(c, v) if joins else c.lanes};")
        row_from, row_until = self._rows_of_sweep(c)
        first, last, size = c.starts_at, f"{c.beyond} - 1", f"{c.beyond} - {c.starts_at}"
        # At the first rows and the last ones the lanes of a sweep may be a few less, or more.
        enough = f"{size} == {self.lanes}"
        if vectors and self._masks_ends:
            enough = f"{size} > {self.lanes - vectors.width}"
            enough += f" && {size} <= {vectors.more.stop * vectors.width}" if vectors.extra else ""
        lines.add("/* Whether all lanes are at work in all of these steps. */")
        lines.add(
            f"const bool {c.full} = {enough} && {row_from}[{last} + {MARGIN}] + {last} <= {c.step} && {c.end} <= "
            f"{row_until}[{first} + {MARGIN}] + {first};"
        )
        if vectors:
            self._steps_in_vectors(lines, c, vectors, starts, stops, indices)
        else:
            lines.open(f"if ({c.full}) {{")
            self._full_steps(lines, c, stops, indices)
            lines.close()
        lines.open(f"for (; {c.step} < {c.end}; ++{c.step}) {{")
        self._find_lanes_at_work(lines, c, starts, stops)
        step = Lines()
        self.some_lanes(step, c, starts, stops, "#pragma GCC ivdep", indices)
        self.add_step(lines, step)
        lines.close()

    def _steps_in_vectors(
        self, lines: Lines, c: PairNames, vectors: VectorSteps, starts: str, stops: str, indices: Indices
    ) -> None:
        """Those steps of a group that have vectors: where lanes may compute along that are not at work, all of them."""
        fits = self.copy_rows(lines, indices(""), When.GROUP)
        conditions = [*([] if self._may_mask else [c.full]), *([fits] if vectors.rows.narrows else [])]
        lines.open(f"if ({' && '.join(conditions)}) {{" if conditions else "{")
        lines.add(*vectors.last_steps())
        if vectors.extra and self._masks_ends:
            lines.open(f"if ({c.full} && {c.beyond} > {c.starts_at} + {self.lanes}) {{")
            lines.add(*vectors.last_steps(vectors.more))
            self._full_steps(lines, c, stops, indices, vectors.more.stop)
            lines.close()
        if self._may_mask:
            lines.open(f"if ({c.full}) {{")
        self._full_steps(lines, c, stops, indices)
        if self._may_mask:
            lines.close()
            self._steps_of_some_lanes(lines, c, vectors, starts, stops, indices)
        lines.add(*vectors.brought_back())
        lines.close()

    def _steps_of_some_lanes(
        self, lines: Lines, c: PairNames, vectors: VectorSteps, starts: str, stops: str, indices: Indices
    ) -> None:
        """The steps of a group in which lanes come in or run out: mostly half of them, in order, and so half of the vectors."""
        row_from, row_until = self._rows_of_sweep(c)
        half = vectors.count // 2 if vectors.takes_halves else 0
        middle = plus(c.starts_at, half * vectors.width)
        none_below = f"{c.beyond} <= {middle} || {row_from}[{plus(middle, MARGIN)}] + {middle} >= {c.end}"
        none_above = (
            f"{c.beyond} > {middle} && {row_until}[{plus(middle, MARGIN - 1)}] + {plus(middle, -1)} <= {c.step}"
        )
        halves = ((range(half), none_below), (range(half, vectors.count), none_above)) if half else ()
        for numbers, test in (*halves, (range(vectors.count), "")):
            if test:
                lines.open(f"if ({test}) {{")
            lines.open(f"for (; {c.step} < {c.end}; ++{c.step}) {{")
            self._find_lanes_at_work(lines, c, starts, stops)
            self.add_step(lines, self._lanes_between(c, vectors, starts, stops, indices, numbers))
            lines.close()
            if test:
                lines.close()

    def _rows_of_sweep(self, c: PairNames) -> tuple[str, str]:
        """Where the rows of all lanes begin and end."""
        return (
            (f"{c.row_from}[{c.sweep}]", f"{c.row_until}[{c.sweep}]")
            if self.joins_sweeps
            else (c.row_from, c.row_until)
        )

    def _find_lanes_at_work(self, lines: Lines, c: PairNames, starts: str, stops: str) -> None:
        row_from, row_until = self._rows_of_sweep(c)
        at_work = f"{row_from}[{stops} + {MARGIN}] + {stops} <= {c.step}"
        lines.add(f"while ({stops} < {c.beyond} && {at_work}) ++{stops};")
        done = f"{row_until}[{starts} + {MARGIN}] + {starts} <= {c.step}"
        lines.add(f"while ({starts} < {stops} && {done}) ++{starts};")

    def _full_steps(self, lines: Lines, c: PairNames, stops: str, indices: Indices, count: int = 0) -> None:
        """The steps of a group at all of which all lanes are at work. count: of vectors, where the lanes may be more."""
        lines.open(f"for (; {c.step} < {c.end}; ++{c.step}) {{")
        self.add_step(lines, self._all_lanes(c, indices, count))
        lines.close()
        lines.add(f"{stops} = {c.beyond};")

    def _all_lanes(self, c: PairNames, indices: Indices, count: int) -> Lines:
        """A step at which all lanes of a sweep are at work."""
        lines, first, vectors = Lines(), c.starts_at, self.vectors
        if vectors is None:
            self.some_lanes(lines, c, first, f"{first} + {self.lanes}", self.vector_pragma(), indices)
            return lines
        self._declare_terms(lines, first)
        numbers = range(count or vectors.count)
        masked = numbers[min(vectors.count, numbers.stop - 1) :] if self._masks_ends else ()
        ends = dict.fromkeys(masked, Mask(f"{{}} < {c.beyond} - {first}"))
        self.vector_step(lines, c, vectors, indices, ends, numbers)
        self._keep_terms(lines, first, c.beyond)
        if self._masks_ends and not vectors.extra:
            self._more_lanes(lines, c, first, c.beyond, indices)
        return lines

    def _lanes_between(
        self,
        c: PairNames,
        vectors: VectorSteps,
        starts: str,
        stops: str,
        indices: Indices,
        numbers: range,
    ) -> Lines:
        """A step at which some lanes of a sweep are at work, all of them in the vectors of those numbers."""
        lines, first = Lines(), c.starts_at
        lane = vectors.lane_type
        lines.add(f"const {lane} {c.low} = ({lane})({starts} - {first}), {c.high} = ({lane})({stops} - {first});")
        some = "" if vectors.takes_halves else f"{c.low} < {{1}} && {{0}} < {c.high}"
        mask = Mask(f"({c.low} <= {{0}}) & ({{0}} < {c.high})", some)
        self.vector_step(lines, c, vectors, indices, dict.fromkeys(numbers, mask), numbers)
        if self._masks_ends and numbers.stop == vectors.count:
            self._more_lanes(lines, c, starts, stops, indices)
        return lines

    def add_step(self, lines: Lines, step: Lines) -> None:
        """The lines of a step, and before them pointers to what they use."""
        lines.add(*self.buffers.at_step(step))
        lines.include(step)
        lines.add(IN_ORDER)

    @property
    def _masks_ends(self) -> bool:
        """Whether a sweep has its vectors at the first rows and the last ones, too, where its lanes are a few less or more."""
        return self.joins_sweeps and self._may_mask

    def _more_lanes(self, lines: Lines, c: PairNames, starts: str, stops: str, indices: Indices) -> None:
        """The lanes of a block at an end of the rows that are not in its vectors."""
        beyond = f"{c.starts_at} + {self.lanes}"
        lines.open(f"if ({stops} > {beyond}) {{")
        starts = beyond if starts == c.starts_at else f"lw_max_i64({starts}, {beyond})"
        self.some_lanes(lines, c, starts, stops, "#pragma GCC ivdep", indices)
        lines.close()

    def _make_profiles(self, lines: Lines, w: int) -> None:
        """Makes the query profiles of the tile."""
        assert self.vectors is not None
        profiles = self.vectors.profiles
        made = [
            line
            for profile in profiles
            for line in profiles.made(profile, self.printer.in_array, self.element, self._extent)
        ]
        body = "\n".join(made)
        place = Lines()
        self.indices_of(place, ((w, self.loop_bounds(w).low),), body)
        for line in made:
            lines.add(line)
            if line == "{":
                lines.add(*(f"    {text}" for text in place.texts))

    def _profiles_of_block(self, lines: Lines, c: PairNames, v: int) -> None:
        """Gives every lane its row of every query profile, and lays the elements of the first steps side by side."""
        assert self.vectors is not None
        profiles = self.vectors.profiles
        texts = list(profiles.of_block(self.printer.in_array))
        place = Lines()
        self.indices_of(place, ((v, c.block),), "\n".join(texts))
        lines.add(*profiles.declared_of_block())
        for line in texts:
            lines.add(line)
            if line == "{":
                lines.add(*(f"    {text}" for text in place.texts))
        lines.add(*profiles.copied("0"))

    def copy_rows(self, lines: Lines, indices: Sequence[tuple[int, str]], when: When) -> str:
        """What the lanes of vectors want of rows that are in no plane. Returns the C variable that says whether all of them are
        small enough."""
        c, vectors = self.pair_names(), self.vectors
        assert vectors is not None
        rows = vectors.rows
        names = {When.ONCE: c.same_fit, When.BLOCK: c.all_fit, When.GROUP: c.fits}
        fits = names[when]
        if rows.narrows:
            before = {
                When.ONCE: "true",
                When.BLOCK: c.same_fit if rows.has(When.ONCE) else "true",
                When.GROUP: c.all_fit,
            }
            lines.add(f"bool {fits} = {before[when]};")
        if not rows.has(when):
            return fits

        def place(load: t.Load) -> tuple[str, str, str]:
            last = load.subscripts[-1]
            assert isinstance(last, t.AffineSubscript)
            extent = self._extent(load.array, len(load.subscripts) - 1)
            return self.printer.in_array(load), self.affine(last.affine), extent

        if when is When.GROUP:
            lines.add(f"const int64_t {c.first} = {c.step};")
        lines.add(*rows.declarations(when))
        lines.open("{")
        copies = list(rows.copied(when, place, fits))
        self.indices_of(lines, indices, "\n".join(copies))
        lines.add(*copies)
        lines.close()
        return fits

    def vector_step(
        self,
        lines: Lines,
        c: PairNames,
        vectors: VectorSteps,
        indices: Indices,
        masks: Mapping[int, Mask],
        numbers: range | None = None,
    ) -> None:
        """A step of all lanes in vectors, or in those of some numbers; of vectors with masks those that are at work."""
        points = (self._point_in_vector(c, indices, by_divider) for by_divider in (False, True))
        vectors.step(lines, next(points), masks, next(points), numbers)

    def _point_in_vector(self, c: PairNames, indices: Indices, by_divider: bool) -> Point:
        """The loop body at a lane of a vector."""

        def statements(at: str, places: Mapping[str, str]) -> Iterator[str]:
            firsts = map(self._first_term, self._exact_sums)
            with self._one_vector(by_divider):
                statement = self.statement(
                    c, f"{at} + {c.lane}", {**places, **{name: f"{name} + {at}" for name in firsts}}
                )
            lines = Lines()
            self.indices_of(lines, indices(f"({at} + {c.lane})"), statement)
            yield from (*lines.texts, statement)

        return statements

    def open_block_of_rows(self, lines: Lines, c: PairNames, v: int, w: int) -> None:
        """Opens the loop over blocks of rows, and says what is known of a block before its first step."""
        kept = f"[{self.buffers.sweeps}]" if self.joins_sweeps else ""
        lines.add(f"int64_t {c.row_from}{kept}[{BUFFER_LANES}], {c.row_until}{kept}[{BUFFER_LANES}];")
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

    def _ends_early(self, v: int) -> bool:
        """Whether the last rows of a box may be empty, so that blocks end sooner than the box."""
        return self.block_bounds(v).high != f"box->hi[{v}]"

    def beyond(self, c: PairNames, v: int) -> str:
        """The C text of the lane beyond the last one of a sweep."""
        below = f"{c.below} * {c.sweep}"
        return f"lw_min_i64({c.lanes}, {c.rows} - {below})" if self._ends_early(v) else f"{c.lanes} - {below}"

    def declare_point(self, lines: Lines, c: PairNames) -> None:
        """Declares what every lane notes by itself: what it sums up, and where the plain loop would raise, so that the lanes of a
        step do not wait for each other."""
        self.declare_private(lines, c, MARGIN)
        for own in self.extrema.private():
            self.declare_lanes(lines, c, C_TYPES[own.dtype], own.lanes, self.lanes + MARGIN, own.start)
        if self.raises:
            lines.add(f"int64_t {c.traps}[{self.lanes + MARGIN}] = {{0}};")

    def statement(self, c: PairNames, lane: str = "", places: Mapping[str, str] | None = None) -> str:
        """A call of the loop body. lane: the C text of the lane, where it is not the loop's index."""
        own = plus(lane or c.lane, MARGIN)
        kept = {f"&{private.name}": f"&{private.lanes}[{own}]" for private in self.extrema.private()}
        trap = f"{c.traps}[{own}]" if self.raises else "trap"
        return self.point_call(self.private_of(own), trap, {**kept, **(places or {})})

    def _first_term(self, accumulator: t.Accumulator) -> str:
        """The C name of where a step's terms of an exact sum are kept, from lane 0 on."""
        return self.names.get(("first term", accumulator.name), f"{self.accumulator(accumulator.name)}_first")

    def extremum(self, statement: t.TypedAccumulate) -> Iterator[str]:
        return self.extrema.update(statement)

    def accumulator_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        if accumulator.leader is not None:
            return self.extrema.parameters(accumulator)
        return super().accumulator_parameters(accumulator)

    def sum_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        first, (terms, _) = self._first_term(accumulator), self.terms_names(accumulator)
        return [(f"double *restrict {terms}", terms), (f"int64_t {first}", first)]

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        terms, _ = self.terms_names(accumulator)
        return f"{terms}[{self._first_term(accumulator)} + {self.pair_names().lane}] = {value};"

    def fold_point(self, lines: Lines, c: PairNames, indices: Indices) -> None:
        """Brings together what the lanes have noted."""
        self.fold_private(lines, c, MARGIN)
        for statement in self.extrema.statements:
            lines.open(f"for (int64_t {c.lane} = 0; {c.lane} < {c.lanes}; ++{c.lane}) {{")
            found, step = self.extrema.found_step(statement)
            lines.add(f"if (!({found})) continue;")
            lines.add(f"const int64_t {c.step} = {step};")
            text = list(self.extrema.fold(statement))
            self.indices_of(lines, indices(c.lane), "\n".join(text))
            lines.add(*text)
            lines.close()
        if self.raises:
            folded = f"lw_note({c.traps}[{c.lane}] != 0, {c.traps}[{c.lane}], &trap);"
            lines.add(f"for (int {c.lane} = 0; {c.lane} < {self.lanes + MARGIN}; ++{c.lane}) {folded}")

    @property
    def raises(self) -> bool:
        """Whether some iterations may raise, and others not."""
        return not raises_alike(self.bound.body)

    @cached_property
    def _may_mask(self) -> bool:
        """Whether lanes that are not at work may compute along, with whatever is in the buffers, because it is thrown away."""
        if self.vectors is None:
            return False
        places = self.vectors.elements()
        loads = loads_of(self.bound, self.vectors.profiles.elements)
        only_buffers = all(load in places or is_constant(load) for load in loads)
        bools = any(plane.dtype == "bool" for plane in self.buffers.planes)
        return only_buffers and not bools and not self._exact_sums and not self.raises

    def row_stride(self, plane: Plane, v: int, w: int) -> str:
        """The C text of what leads from a lane's element to that of the next at the same position."""
        loop = self.nest.loops[v]
        axis, _ = self.axis_along(plane, v)
        stride = f"{'-' if loop.step < 0 else ''}{self.stride(plane.array, axis)}"
        return plus(stride, -self._skew_of_pair(v, w) * self.nest.loops[w].step)

    def some_lanes(self, lines: Lines, c: PairNames, first: str, beyond: str, pragma: str, indices: Indices) -> None:
        """The points of a step in some of its lanes."""
        statement = self.statement(c)
        self._declare_terms(lines, first)
        lines.add(pragma)
        lines.open(f"for (int64_t {c.lane} = {first}; {c.lane} < {beyond}; ++{c.lane}) {{")
        self.indices_of(lines, indices(c.lane), statement)
        lines.add(statement)
        lines.close()
        self._keep_terms(lines, first, beyond)

    def _declare_terms(self, lines: Lines, first: str) -> None:
        """Where a step's terms of exact sums are kept, the first of which is that of the first lane at work."""
        for accumulator in self._exact_sums:
            _, count = self.terms_names(accumulator)
            lines.add(f"const int64_t {self._first_term(accumulator)} = {_difference(count, first)};")

    def _keep_terms(self, lines: Lines, first: str, beyond: str) -> None:
        for accumulator in self._exact_sums:
            terms, count = self.terms_names(accumulator)
            kept = f"{self.accumulator(accumulator.name)}, {terms}, {count}"
            added = _difference(beyond, first)
            added = f"({added})" if " " in added else added
            lines.add(f"{count} = lw_exact_keep({kept} + {added}, {self.lanes + MARGIN});")

    @property
    def _exact_sums(self) -> list[t.Accumulator]:
        return [a for a in self.bound.body.accumulators if a.exact_sum]

    def indices_at(self, c: PairNames, v: int, w: int) -> Indices:
        """The coordinates of a lane's point."""

        def indices(lane: str) -> tuple[tuple[int, str], ...]:
            down, back = (f" + {lane}", f" - {lane}") if lane else ("", "")
            return (v, f"{c.block}{down}"), (w, f"{c.begin} + {c.step}{back}")

        return indices

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
