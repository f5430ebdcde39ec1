"""The loops of a tile in C that copies what a step needs of many rows into buffers (``tiling.transposed``)."""

from __future__ import annotations

from functools import cached_property

from lapwing.codegen.body.names import PairNames
from lapwing.codegen.body.statements import IN_ORDER
from lapwing.codegen.body.text import Lines, plus
from lapwing.codegen.lanes.blocks import Indices, times
from lapwing.codegen.lanes.lane_rows import When
from lapwing.codegen.lanes.points import PointWriter
from lapwing.codegen.lanes.vector_bodies import is_constant, loads_of
from lapwing.codegen.lanes.vectors import Mask, VectorSteps
from lapwing.tiling.transposed import COPIED_STEPS, MARGIN, Plane


class TransposedTileWriter(PointWriter):
    """Writes a tile with buffers of transposed elements."""

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

    def add_step(self, lines: Lines, step: Lines) -> None:
        """The lines of a step, and before them pointers to what they use."""
        lines.add(*self.buffers.at_step(step))
        lines.include(step)
        lines.add(IN_ORDER)

    # -- steps in vectors ------------------------------------------------------------------------------------------------

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
        lines.add(f"const {lane} {c.low} = ({lane})({starts} - {first} - 1), {c.high} = ({lane})({stops} - {first});")
        some = "" if vectors.takes_halves else f"{c.low} + 1 < {{1}} && {{0}} < {c.high}"
        mask = Mask(f"({c.low} < {{0}}) & ({{0}} < {c.high})", some)
        self.vector_step(lines, c, vectors, indices, dict.fromkeys(numbers, mask), numbers)
        if self._masks_ends and numbers.stop == vectors.count:
            self._more_lanes(lines, c, starts, stops, indices)
        return lines

    def _more_lanes(self, lines: Lines, c: PairNames, starts: str, stops: str, indices: Indices) -> None:
        """The lanes of a block at an end of the rows that are not in its vectors."""
        beyond = f"{c.starts_at} + {self.lanes}"
        lines.open(f"if ({stops} > {beyond}) {{")
        starts = beyond if starts == c.starts_at else f"lw_max_i64({starts}, {beyond})"
        self.some_lanes(lines, c, starts, stops, "#pragma GCC ivdep", indices)
        lines.close()

    @property
    def _masks_ends(self) -> bool:
        """Whether a sweep has its vectors at the first rows and the last ones, too, where its lanes are a few less or more."""
        return self.joins_sweeps and self._may_mask

    @cached_property
    def _may_mask(self) -> bool:
        """Whether lanes that are not at work may compute along, with whatever is in the buffers, because it is thrown away."""
        if self.vectors is None:
            return False
        places = self.vectors.elements()
        loads = loads_of(self.bound, self.vectors.profiles.elements)
        only_buffers = all(load in places or is_constant(load) for load in loads)
        return only_buffers and not self._exact_sums and not self.raises
