"""The loop body at the points of a step, one in every lane: lane by lane, or in vectors where the body can be computed in them.

Every lane notes by itself what it sums up, what it finds, and where the plain loop would raise; all of it is brought together
after a block's last step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lapwing.codegen.body.conditional_calls import calls_by_strips
from lapwing.codegen.body.expression import C_TYPES, stripped
from lapwing.codegen.body.if_conversion import for_lanes
from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.statements import IGNORED
from lapwing.codegen.body.text import Lines, plus
from lapwing.codegen.body.widening import of_one_size
from lapwing.codegen.lanes.blocks import BlockWriter, Indices
from lapwing.codegen.lanes.extrema import Extrema
from lapwing.codegen.lanes.lane_rows import When
from lapwing.codegen.lanes.vector_bodies import (
    Accumulator,
    computes_with_floats,
    is_row,
    profiles_of,
    reason_against_vectors,
    sizes_of_lanes,
)
from lapwing.codegen.lanes.vectors import Mask, Point, VectorSteps
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.vectors import vector_bytes
from lapwing.tiling.chains import shortened
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.transposed import MARGIN


class PointWriter(BlockWriter):
    """Writes the loop body as a function, and its calls in the lanes of a step."""

    kind = ""  # what the names of types of vectors begin with
    _first_of_strip = "0"  # the C text of the first lane of a step, where lanes are a strip

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(bound, faces, form)
        self.extrema = Extrema(self, self.pair_names())
        self.vectors: VectorSteps | None = None
        self._body_in_vectors = self.bound.body
        self.reason_against_vectors = self._find_vectors()
        if self.vectors is None and calls_by_strips(self.bound.body.statements):
            self._parts = self.parts_of(self.bound.body.statements, "", True)
        self._in_vectors = self._by_divider = False

    def _exists(self, load: t.Load) -> bool:
        """Whether vectors find an element whatever conditions say. Rows that are in no buffer are laid side by side for them."""
        return load in self.buffers.places or is_row(self._move(load))

    def _find_vectors(self) -> str | None:
        """Finds vectors of the shortest values that will do, or returns why there are none."""
        reasons = []
        for size in sizes_of_lanes(self.buffers)[: 1 if self.kind else None]:
            bound, reason = self._bound_in_vectors(size)
            found = reason or self._vectors_of(bound, size)
            if isinstance(found, VectorSteps):
                self.vectors, self._body_in_vectors = found, bound.body
                return None
            reasons.append(found)
        return reasons[0]

    def _vectors_of(self, bound: BoundNest, size: int) -> VectorSteps | str:
        """The vectors of a loop body whose values have so many bytes, or why there are none."""
        kept, c, same = self._kept_by_lanes(), self.pair_names(), self.is_same_in_blocks
        profiles = profiles_of(bound, self._move, same) if self.kind else ()
        reason = reason_against_vectors(bound, self.buffers, size, vector_bytes(), self._move, kept, profiles)
        if reason is not None:
            return reason
        return VectorSteps(
            bound, self.buffers, self.names, c, size, vector_bytes() // size, self._move, kept, self._value, same, profiles,
            self.kind,
        )  # fmt: skip

    def _bound_in_vectors(self, size: int) -> tuple[BoundNest, str | None]:
        """The nest with the loop body of vectors of values of so many bytes, and why that has branches, if it has."""
        innermost = self.nest.space_loops[self.form.order[-1]]
        without_branches, reason = for_lanes(self.bound, self._exists)
        body = of_one_size(without_branches, size)
        return replace(self.bound, body=shortened(body, innermost.name, innermost.step)), reason

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

    # -- the function of the loop body -----------------------------------------------------------------------------------

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

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return self._body_in_vectors.statements if self._in_vectors else super().body_statements()

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
        # Where floats and integers are chosen by one test, compilers would rather have a branch.
        self.printer.by_masks = computes_with_floats(self._body_in_vectors)
        if not by_divider:
            self.printer.named = {**named, **self.vectors.images()}
            self.printer.reciprocals = self.vectors.reciprocals.arguments()
        try:
            yield
        finally:
            self.printer.placed, self._in_vectors, self._by_divider = of_buffers, False, False
            self.printer.by_masks = False
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

    # -- what lanes note -------------------------------------------------------------------------------------------------

    def declare_point(self, lines: Lines, c: PairNames) -> None:
        """Declares what every lane notes by itself: what it sums up, and where the plain loop would raise, so that the lanes of a
        step do not wait for each other."""
        self.declare_private(lines, c, MARGIN)
        for own in self.extrema.private():
            self.declare_lanes(lines, c, C_TYPES[own.dtype], own.lanes, self.lanes + MARGIN, own.start)
        if self.raises:
            lines.add(f"int64_t {c.traps}[{self.lanes + MARGIN}] = {{0}};")

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

    def _first_term(self, accumulator: t.Accumulator) -> str:
        """The C name of where a step's terms of an exact sum are kept, from lane 0 on."""
        return self.names.get(("first term", accumulator.name), f"{self.accumulator(accumulator.name)}_first")

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

    # -- calls -----------------------------------------------------------------------------------------------------------

    def statement(
        self, c: PairNames, lane: str = "", places: Mapping[str, str] | None = None, trap: str | None = None
    ) -> str:
        """A call of the loop body. lane: the C text of the lane, where it is not the loop's index; trap: that of what is noted
        where something raises, if not the lane's own."""
        own = plus(lane or c.lane, MARGIN)
        kept = {f"&{private.name}": f"&{private.lanes}[{own}]" for private in self.extrema.private()}
        trap = trap or (f"{c.traps}[{own}]" if self.raises else "trap")
        return self.point_call(self.private_of(own), trap, {**kept, **(places or {})})

    def some_lanes(self, lines: Lines, c: PairNames, first: str, beyond: str, pragma: str, indices: Indices) -> None:
        """The points of a step in some of its lanes, which are a strip where functions are called for all of them."""
        self._declare_terms(lines, first)
        if not self._parts:
            self._over_lanes(lines, c, first, beyond, pragma, indices, self.statement(c))
        self._first_of_strip = first
        for part in self._parts:
            with self._only(part):
                trap = None if part.is_last else IGNORED
                statement = self.statement(c, trap=trap)
                self._over_lanes(lines, c, first, beyond, pragma, indices, statement)
            lines.add(*self.strip_calls(part, c.lane, (first, beyond)))
        self._keep_terms(lines, first, beyond)

    def _over_lanes(
        self, lines: Lines, c: PairNames, first: str, beyond: str, pragma: str, indices: Indices, statement: str
    ) -> None:
        lines.add(pragma)
        lines.open(f"for (int64_t {c.lane} = {first}; {c.lane} < {beyond}; ++{c.lane}) {{")
        self.indices_of(lines, indices(c.lane), statement)
        lines.add(statement)
        lines.close()

    def _place_in_strip(self) -> str:
        return _difference(self.pair_names().lane, self._first_of_strip)

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

    # -- what is in no buffer --------------------------------------------------------------------------------------------

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
            extent = self.extent(load.array, len(load.subscripts) - 1)
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

    def _make_profiles(self, lines: Lines, w: int) -> None:
        """Makes the query profiles of the tile."""
        assert self.vectors is not None
        profiles = self.vectors.profiles
        made = [
            line
            for profile in profiles
            for line in profiles.made(profile, self.printer.in_array, self.element, self.extent)
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


def _difference(end: str, start: str) -> str:
    """The C text of what lies between two places, as short as can be."""
    if start == "0":
        return end
    return end.removeprefix(f"{start} + ") if end.startswith(f"{start} + ") else f"{end} - {start}"
