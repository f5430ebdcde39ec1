"""Tiles whose sweeps are the lanes of vectors (``tiling.sweep_lanes``).

The positions of a sweep, with what iterations look at around the domain, are gone through row by row as one long row. Each lane
is so many positions behind the one before it, and goes on into the next row while others are still in this one. What lanes wrote
goes into a ring, a vector a position, which holds as much as is read again; the first lane also reads the array as it was before
all of these sweeps, and what the last lane writes is stored there. Where some lanes are outside of the domain a step has a mask:
they hand on what was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from weakref import WeakKeyDictionary

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.text import Lines, mentions, plus, times
from lapwing.codegen.temporal.steps import ENDS, FULL, ROWS, StepWriter, some
from lapwing.codegen.temporal.streams import flattened
from lapwing.codegen.temporal.vector_body import TERM_STEPS
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.sweep_lanes import sweep_lanes


class SweepTileWriter(StepWriter):
    """Writes a tile whose lanes are sweeps."""

    def _loops(self, lines: Lines, call: str) -> None:
        own = self._own
        sweep, end, moved = own("sweep"), own("sweep_end"), own("moved")
        lines.add(f"const int64_t {end} = box->hi[0];", f"int64_t {sweep} = box->lo[0];")
        lines.open(f"while ({end} - {sweep} >= {self.count // 2}) {{")
        lines.add(f"const int64_t {own('last')} = lw_min_i64({self.count}, {end} - {sweep}) - 1;")
        self._find_sizes(lines)
        shortest = self.sweeps.shortest_row(self.count) + self.sweeps.lagging
        fits = [f"{self._sizes()[-1]} >= {shortest}", *self._covers(), *self._moves_no_further()]
        lines.add(f"const bool {own('fits')} = {' && '.join(fits)};", f"if (!{own('fits')}) break;")
        self._some_sweeps(lines)
        lines.add(f"{sweep} += {own('last')} + 1;")
        lines.close()
        lines.open(f"for (; {sweep} < {end}; ++{sweep}) {{")
        lines.add(f"const lw_box {moved} = lw_moved(box, &tile->moves, {sweep} - box->lo[0]);")
        lines.open("{")
        lines.add(f"const lw_box *const box = &{moved};")
        index = self.index(self.nest.loop_names[0])
        if mentions(call, index):
            lines.add(f"const int64_t {index} = {'' if self.nest.loops[0].step == 1 else '-'}{sweep};")
        extrema, sums = (self.extrema, self.sums) if self.nest.by_sweep else ((), ())
        words = {self.accumulator(a.name): self.word(a, sweep) for a in extrema}
        lines.add(*(f"{name} = {word};" for name, word in words.items()))
        lines.add(*(f"{self.accumulator(a.name)} = &{self.word(a, sweep)};" for a in sums))
        for k in range(1, len(self.nest.loops)):
            self.open_loop(lines, k)
        lines.add(call)
        for _ in range(1, len(self.nest.loops)):
            lines.close()
        lines.add(*(f"{word} = {name};" for name, word in words.items()))
        for total in sums:
            name, (terms, count) = self.accumulator(total.name), self.terms_names(total)
            lines.add(f"lw_exact_add_all({name}, {terms}, {count});", f"{count} = 0;")
        lines.close_all()

    def _find_sizes(self, lines: Lines) -> None:
        """Of the box around what these sweeps do, and of the positions along every loop."""
        own, sizes = self._own, self._sizes()
        sweep, last = own("sweep"), own("last")
        for k, (loop, size) in enumerate(zip(self.nest.space_loops, sizes, strict=True)):
            k_box = k + self.nest.sweep_depth
            if self._has_moves(k):
                down, up = self._moves(k)
                lines.add(f"const int64_t {down} = tile->moves.lo[{k_box}], {up} = tile->moves.hi[{k_box}];")
                low = f"box->lo[{k_box}] - {down} * ({sweep} - box->lo[0] + {last})"
                high = f"box->hi[{k_box}] - {up} * ({sweep} - box->lo[0])"
            else:
                low, high = self.bounds(loop)
            before, after = self.sweeps.halo[k]
            lines.add(f"const int64_t {self._low(k)} = {low}, {self._high(k)} = {high};")
            if any(self._most_without[k]):
                first, end = self.bounds(loop)
                tests = (
                    f"{self._is_first(k)} = {self._low(k)} == {first}, {self._is_last(k)} = {self._high(k)} == {end}"
                )
                lines.add(f"const bool {tests};")
            more, at_once = before + after, 1
            if k == len(sizes) - 2:
                at_once = len(self._rows)
            elif k == len(sizes) - 1:
                more += self.sweeps.lagging
            number = plus(f"{self._high(k)} - {self._low(k)}", more + at_once - 1)
            lines.add(f"const int64_t {size} = {f'({number}) / {at_once}' if at_once > 1 else number};")

    def _has_moves(self, k: int) -> bool:
        """Whether the ends of boxes along a loop may move from sweep to sweep. Those along the outermost loop are in the
        coordinates of elements in any nest."""
        return k == 0 or may_move_ends(self.bound)

    def _moves(self, k: int) -> tuple[str, str]:
        """The C names of by how much the ends along a loop lie lower in each sweep than in the one before."""
        of = self._coordinates()[k]
        return self._of(of, "low_moves"), self._of(of, "high_moves")

    def _moves_no_further(self) -> Iterator[str]:
        """Tests of whether lanes are as far behind one another in their rows as the ends of these move."""
        k = len(self.sweeps.skew) - 1
        if self._has_moves(k):
            yield from (f"{moves} <= {self.sweeps.skew[k]}" for moves in self._moves(k))

    def _ends_of_lane(self, k: int, lane: str) -> tuple[str, str]:
        """How much later a lane begins than the box around all of them, and how much sooner it ends."""
        if not self._has_moves(k):
            return "", ""
        (down, up), last = self._moves(k), self._own("last")
        later = f" + {down} * " + (last if lane == "0" else f"lw_max_i64({last} - {lane}, 0)")
        return later, "" if lane == "0" else f" - {up} * {lane}"

    @property
    def pointer_to_sum(self) -> str:
        return "int64_t *" if self.nest.by_sweep else super().pointer_to_sum

    def word(self, accumulator: t.Accumulator, row: str = "") -> str:
        # Those of the first sweep are as they were until it is done.
        return super().word(accumulator, row or ("box->lo[0]" if self.nest.by_sweep else ""))

    def write_back(self) -> Iterator[str]:
        if not self.nest.by_sweep:
            yield from super().write_back()

    def _found_by_lanes(self, lines: Lines) -> None:
        """What lanes have found, each sweep's by itself, or that of all in their order."""
        lane, sweep = self._own("lane"), self._own("sweep")
        each = f"for (int64_t {lane} = 0; {lane} <= {self._own('last')}; ++{lane})"
        for total in self.sums:
            self._add_terms(lines, total)
        for extremum in self.extrema:
            name, dtype = self.accumulator(extremum.name), extremum.dtype
            found = self._of(name, "found")
            lines.add(f"{C_TYPES[dtype]} {found}[{self.at_once}];")
            for v in self._all_vectors:
                place = plus(found, v * self.width)
                lines.add(f"*({self._anywhere(dtype)} *)({place}) = {self._of_each(extremum)}_{v};")
            for row in self._rows:
                element = f"{found}[{self._element_of(row, lane)}]"
                if not self.nest.by_sweep:
                    lines.add(f"{each} {self.accumulate(extremum, name, element)}")
                    continue
                word = self.word(extremum, f"({sweep} + {lane})")
                lines.add(f"{each} {self.accumulate(extremum, word, element) if row else f'{word} = {element};'}")

    def _covers(self) -> Iterator[str]:
        """Tests of whether the box is all of the domain but along the outermost loop, where it is in other coordinates."""
        skew, depth = self.bound.skew, self.nest.sweep_depth
        if skew is None:
            return
        for k in range(depth + 1, len(self.nest.loops)):
            factors = [(k, 1), *skew.factors(k)]
            ends = []
            for ahead in (False, True):
                terms = []
                for m, a in factors:
                    text = f"({self._high(m - depth)} - 1)" if (a > 0) == ahead else self._low(m - depth)
                    terms.append(times(a, text))
                ends.append(" + ".join(terms))
            yield f"box->lo[{k}] <= {ends[0]} && {ends[1]} < box->hi[{k}]"

    def _some_sweeps(self, lines: Lines) -> None:
        own, count, sizes, lane = self._own, self.count, self._sizes(), self._own("lane")
        *outer, _ = self._coordinates()
        last, lag, rows = own("last"), own("lag"), own("rows")
        lines.add(f"const int64_t {lag} = {flattened(self.sweeps.skew[:-1], sizes[1:-1])}; /* from lane to lane */")
        self._declare_memory(lines)
        # The number of the row after the last one of the domain, and a row in which lanes come to its end.
        text = ""
        for k, size in enumerate(sizes[:-1]):
            at = plus(f"{self._high(k)} - {self._low(k)}", self.sweeps.halo[k][0] - 1)
            if k == len(sizes) - 2 and len(self._rows) > 1:
                at = f"({at}) / {len(self._rows)}"
            text = f"({text}) * {size} + {at}" if text else at
        lines.add(f"const int64_t {rows} = {plus(f'{text} + {lag} * {last}', 2)};")
        lines.add(*(f"int64_t {self._of(x, 'of')}[{count}];" for x in outer))
        lane_type = C_TYPES[self._lane_dtype]
        lines.add(f"{lane_type} {own('active')}[{self.at_once}] = {{0}}; /* in this row */")
        lines.add(f"bool {own('stored')}[{self.at_once}] = {{0}}; /* the same of any sweep */")
        at_ends = f"[{self._head + self._tail}][{self.at_once}]"
        lines.add(f"{lane_type} {own('inside')}{at_ends}; /* at the ends of rows */")
        lines.add(f"bool {own('around')}{at_ends}; /* the same of any sweep */")
        for column in self._columns:
            lines.add(f"int64_t {column}{at_ends}; /* the position, or one inside */")
        self._find_insides(lines)
        for array in self._row_arrays():
            start = " = {0}" if array in self.streams.written else ""
            elements = count if array in self.streams.written else self.at_once
            lines.add(f"int64_t {self._of(array, 'row')}[{elements}]{start}; /* the element of a lane at position 0 */")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {count}; ++{lane}) {{")
        lines.add(f"int64_t {own('before')} = -1 - {lag} * {lane};")
        for x, size in reversed(list(zip(outer[1:], sizes[1:-1], strict=True))):
            whole = self._of(x, "whole")
            lines.add(f"const int64_t {whole} = lw_floordiv_i64({own('before')}, {size});")
            lines.add(f"{self._of(x, 'of')}[{lane}] = {own('before')} - {whole} * {size};")
            lines.add(f"{own('before')} = {whole};")
        lines.add(f"{self._of(outer[0], 'of')}[{lane}] = {own('before')};")
        for load in self.streams.given:
            name = self._given(load)
            for row in self._rows:
                place = f"{self._of(name, 'row')}[{self._element_of(row, lane)}]"
                lines.add(f"{place} = {self._first_row(name, lane, row)};")
        lines.close()
        self._declare_indices(lines)
        self._declare_vectors(lines)
        self._rows_of_sweeps(lines)
        self._found_by_lanes(lines)
        for array in self.streams.written:
            lines.add(f"free({self._of(array, 'room')});")

    def _declare_indices(self, lines: Lines) -> None:
        """Those that the loop body uses, of all lanes."""
        own, count, lane = self._own, self.count, self._own("lane")
        (sweep,), (*outer, innermost) = self.nest.sweep_loops, self.nest.space_loops
        all_lanes = self.at_once
        lines.add(
            *(f"int64_t {self._of_lanes(x.name)}[{all_lanes}];" for x in (sweep, *outer) if x.name in self.indices)
        )
        if innermost.name in self.indices:
            lines.add(f"int64_t {own('behind')}[{all_lanes}] = {{0}};")
        if sweep.name in self.indices:
            each = f"for (int64_t {lane} = 0; {lane} < {all_lanes}; ++{lane})"
            of_row = lane if all_lanes == count else f"{lane} % {count}"
            sign = "" if sweep.step == 1 else "-"
            lines.add(f"{each} {self._of_lanes(sweep.name)}[{lane}] = {sign}({own('sweep')} + {of_row});")

    def _find_insides(self, lines: Lines) -> None:
        """Which lanes are inside of the domain along the innermost loop, at positions at the ends of rows."""
        own, lane, size, k = self._own, self._own("lane"), self._sizes()[-1], self._own("position")
        ends, end, at, (before, after) = self._head + self._tail, own("end"), own("at"), self.sweeps.halo[-1]
        lines.open(f"for (int64_t {end} = 0; {end} < {ends}; ++{end}) {{")
        lines.add(f"const int64_t {k} = {end} < {self._head} ? {end} : {size} - {ends} + {end};")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.count}; ++{lane}) {{")
        behind, by = f"{self.sweeps.skew[-1]} * {lane}", own("by")
        lag, inner = self.sweeps.lag, len(self.sweeps.skew) - 1
        lines.add(f"const int64_t {by} = {behind} - ({k} < {behind} ? {size} : 0), {at} = {k} - {by};")
        for row in self._rows:
            low, high = before + lag * row, -after - self.sweeps.lagging + lag * row
            element, (later, sooner) = self._element_of(row, lane), self._ends_of_lane(inner, lane)
            around = f"{own('around')}[{end}][{element}]"
            lines.add(f"{around} = {at} >= {low} && {at} < {plus(size, high)};")
            within = [f"{at} >= {low}{later}" if later else "", f"{at} < {plus(size, high)}{sooner}" if sooner else ""]
            lines.add(f"{own('inside')}[{end}][{element}] = -({' && '.join(filter(None, [around, *within]))});")
            for column, (none_before, none_after) in self._columns.items():
                from_here = f"{low}{some(none_before, self._is_first(inner))}"
                until_here = f"{plus(size, high - 1)}{some(-none_after, self._is_last(inner))}"
                inside = f"lw_min_i64(lw_max_i64({at}, {from_here}), {until_here})"
                lines.add(f"{column}[{end}][{element}] = {inside} + {by};")
        lines.close()
        lines.close()

    @property
    def _columns(self) -> dict[str, tuple[int, int]]:
        """The C names of where lanes read what is only read, and of how many iterations at the ends of a row have none of it."""
        return {self._column_of(load): self._ends_without(load)[-1] for load in self.streams.given}

    def _row_arrays(self) -> list[str]:
        return [*self.streams.written, *(self._given(load) for load in self.streams.given)]

    def _elements(self) -> dict[str, t.Load]:
        """Those of which the place is known at all times: what is written, and what is only read."""
        stores = [s.target for s in self._straight.statements if isinstance(s, t.TypedStore)]
        return {
            **{self._given(load): load for load in self.streams.given},
            **{target.array: target for target in stores},
        }

    def _declare_memory(self, lines: Lines) -> None:
        """Where elements lie, and the rings."""
        own, sizes = self._own, self._sizes()
        for name, load in self._elements().items():
            strides = [*(self.stride(load.array, axis) for axis in range(len(load.subscripts) - 1)), "1"]
            affines = [s.affine for s in load.subscripts if isinstance(s, t.AffineSubscript)]
            for k, loop in enumerate(self.nest.space_loops):
                by = [
                    (loop.step * affine.coefficient(loop.name), stride)
                    for affine, stride in zip(affines, strides, strict=True)
                ]
                moves = " + ".join(times(b, stride) for b, stride in by if b)
                lines.add(f"const int64_t {self._along(name, k)} = {moves or '0'};")
            (sweep,) = self.nest.sweep_loops
            by = [
                (sweep.step * affine.coefficient(sweep.name), st) for affine, st in zip(affines, strides, strict=True)
            ]
            if self._moves_with_sweeps(name):
                moves = " + ".join(times(b, stride) for b, stride in by if b)
                lines.add(f"const int64_t {self._of(name, f'along_{sweep.name}')} = {moves};")
            lines.add(f"int64_t {self._of(name, 'origin')}; /* the element at the first position */")
        lines.open("{")
        (sweep,) = self.nest.sweep_loops
        if any(map(self._moves_with_sweeps, map(self._given, self.streams.given))):
            lines.add(f"const int64_t {self.index(sweep.name)} = {'' if sweep.step == 1 else '-'}{own('sweep')};")
        for k, loop in enumerate(self.nest.space_loops):
            low = plus(self._low(k), -self.sweeps.halo[k][0])
            lines.add(f"const int64_t {self.index(loop.name)} = {low if loop.step == 1 else f'-({low})'};")
        for name, load in self._elements().items():
            strides = [*(f" * {self.stride(load.array, axis)}" for axis in range(len(load.subscripts) - 1)), ""]
            affines = [s.affine for s in load.subscripts if isinstance(s, t.AffineSubscript)]
            terms = [f"({self.affine(affine)}){stride}" for affine, stride in zip(affines, strides, strict=True)]
            lines.add(f"{self._of(name, 'origin')} = {' + '.join(terms)};")
        lines.close()
        reach, count = self.streams.reach, self.at_once
        for array in self.streams.written:
            c_type = C_TYPES[self._dtypes[array]]
            kept, room, ring = self._of(array, "rows_kept"), self._of(array, "room"), self._of(array, "ring")
            furthest = self.streams.rows_of(array)
            rows = reduce("lw_max_i64({}, {})".format, (flattened(behind, sizes[1:-1]) for behind in furthest))
            # What is read for the last time in a step makes room for what is written, and is in the nearest cache.
            lines.add(f"const int64_t {kept} = {plus(rows, int(not self.streams.is_read_before(array, furthest)))};")
            size = f"({kept} * {sizes[-1]} + {2 * reach}) * {count}"
            lines.add(f"{c_type} *const {room} = lw_new_row({size}, sizeof({c_type}));")
            lines.add(f"{c_type} *const {ring} = {room} + {reach * count};")
            lines.add(f"int64_t {self._of(array, 'slot')} = 0;")

    def _declare_vectors(self, lines: Lines) -> None:
        """Those that are kept from step to step."""

        def declare(array: str, name: str, row: int = 0) -> None:
            names = ", ".join(f"{name}_{self._vector(row, v)} = {{0}}" for v in self._vectors)
            lines.add(f"{self._type(self._dtypes[array])} {names};")

        for extremum in self.extrema:
            start = ", ".join([self.accumulator(extremum.name)] * self.width)
            names = (f"{self._of_each(extremum)}_{v} = {{{start}}}" for v in self._all_vectors)
            lines.add(f"{self._type(extremum.dtype)} {', '.join(names)};")
        for total in self.sums:
            lines.add(f"double {self._of_each(total)}[{TERM_STEPS * self.count}]; /* terms, step by step */")
            lines.add(f"int64_t {self._steps_of(total)} = 0;")
        for (array, row), kept in self.streams.results.items():
            for steps in range(1, kept + 1):
                declare(array, self._kept(array, steps), row)
        for stream in filter(self._moves_on, self.streams.all):
            for steps in stream.steps:
                declare(stream.array, self._element(stream.array, self.streams.offset(stream, steps)))

    def _rows_of_sweeps(self, lines: Lines) -> None:
        own, count, sizes = self._own, self.count, self._sizes()
        row, rows, k, size, lane = own("row"), own("rows"), own("position"), sizes[-1], own("lane")
        skew, row_end, tail = self.sweeps.skew[-1], own("row_end"), own("tail")
        lines.open(f"for (int64_t {row} = 0; {row} < {rows}; ++{row}) {{")
        for array in self.streams.written:
            c_type, ring, slot = C_TYPES[self._dtypes[array]], self._of(array, "ring"), self._of(array, "slot")
            lines.add(f"{c_type} *const {self._of(array, 'at')} = {ring} + {slot} * {size} * {self.at_once};")
            streams = self.streams.in_masked_steps
            for behind in sorted({s.rows for s in streams if s.array == array and not s.is_in_row}):
                place = f"lw_around({slot} - ({flattened(behind, sizes[1:-1])}), {self._of(array, 'rows_kept')})"
                lines.add(
                    f"const {c_type} *const {self._rows_at(array, behind)} = {ring} + {place} * {size} * {self.at_once};"
                )
        # Lanes that are still in the row before.
        lines.open(f"for (int64_t {lane} = 0; {lane} < {count}; ++{lane}) {{")
        for element in (self._element_of(number, lane) for number in self._rows):
            for name in self._row_arrays():
                if element == lane or name not in self.streams.written:
                    lines.add(f"{self._of(name, 'row')}[{element}] += {self._along(name, len(sizes) - 1)} * {size};")
            if self.nest.loop_names[-1] in self.indices:
                lines.add(f"{own('behind')}[{element}] -= {size};")
        if not skew:
            self._cross(lines, lane)
        lines.close()
        if skew:
            self._cross(lines, "0")
        for test, name in self._rows_there.items():
            lines.add(f"const bool {name} = {test};")
        lagging = f"lw_min_i64({size}, {skew} * {own('last')})"
        lines.add(
            f"const int64_t {row_end} = {row} == {rows} - 1 ? {lagging} : {size}, {tail} = {size} - {self._tail};"
        )
        lines.add(f"int64_t {k} = 0;")
        lines.open(f"while ({k} < {row_end}) {{")
        if skew:
            lines.open(f"if ({k} > 0 && {k} % {skew} == 0 && {k} < {skew * count}) {{")
            lines.add(f"const int64_t {lane} = {k} / {skew};")
            self._cross(lines, lane)
            lines.close()
        lines.open(f"if ({k} == {self._head}) {{")
        lines.add(f"bool {own('all')} = true;")
        lines.add(
            f"for (int64_t {lane} = 0; {lane} < {self.at_once}; ++{lane}) {own('all')} = {own('all')} && {own('active')}[{lane}];"
        )
        # Lanes that are in one plane and others that are in the next one are not as far apart as they are usually.
        middle = [
            f"{self._of(x, 'of')}[{lane}] == {self._of(x, 'of')}[0] - {times(by, lane)}"
            for x, by in list(zip(self._coordinates(), self.sweeps.skew, strict=True))[1:-1]
            if by
        ]
        if middle:
            lines.add(
                f"for (int64_t {lane} = 1; {lane} < {count}; ++{lane}) {own('all')} = {' && '.join([own('all'), *middle])};"
            )
        if any(self._lacks_rows(load) for load in self._without if load not in self.streams.given):
            lines.add(f"{own('all')} = {' && '.join([own('all'), *self._rows_there.values()])};")
        for name in self._row_arrays():
            lines.add(f"const int64_t {self._of(name, 'first')} = {self._of(name, 'row')}[0];")
        for load in self.streams.given:
            name = self._given(load)
            apart = self._apart(name)
            if apart is not None and self._gathers(load):
                lanes = f"{{{', '.join(str(-number) for number in range(self.width))}}}"
                of_type = self._type("int64")
                lines.add(f"const {of_type} {self._of(name, 'behind')} = ({of_type}){lanes} * ({apart});")
        for array in self.streams.written:
            lines.add(f"const int64_t {self._of(array, 'out')} = {self._of(array, 'row')}[{own('last')}];")
        for where, test in ((FULL, own("all")), (ROWS, f"!{own('all')}")):
            lines.open(f"for (; {test} && {k} < {tail}; ++{k}) {{")
            self._step(lines, where)
            lines.close()
        lines.close()
        self._step(lines, ENDS)
        lines.add(f"++{k};")
        lines.close()
        for array in self.streams.written:
            slot = self._of(array, "slot")
            lines.add(f"{slot} = {slot} + 1 == {self._of(array, 'rows_kept')} ? 0 : {slot} + 1;")
        lines.close()

    def _cross(self, lines: Lines, lane: str) -> None:
        """A lane comes to its next row."""
        sizes = self._sizes()
        *outer, _ = self._coordinates()
        chain = list(zip(outer, sizes[:-1], strict=True))
        lines.add(f"++{self._of(outer[-1], 'of')}[{lane}];")
        for (outside, _), (x, size) in reversed(list(pairwise(chain))):
            lines.open(f"if ({self._of(x, 'of')}[{lane}] == {size}) {{")
            lines.add(f"{self._of(x, 'of')}[{lane}] = 0;", f"++{self._of(outside, 'of')}[{lane}];")
            lines.close()
        for row in self._rows:
            self._begin_row(lines, lane, row)

    def _begin_row(self, lines: Lines, lane: str, row: int) -> None:
        """A lane is at a row of a group."""
        own, sizes, element, rows = self._own, self._sizes(), self._element_of(row, lane), len(self._rows)
        *outer, _ = self._coordinates()
        # Where it is along every loop but the innermost, and how many places there are.
        places = [f"{self._of(x, 'of')}[{lane}]" for x in outer]
        ends = [*sizes[:-1]]
        if rows > 1:
            places[-1] = plus(f"{places[-1]} * {rows}", row)
            ends[-1] = self._size_of_rows()
        of_any, of_lane = [], []
        for k, (place, size, (before, after)) in enumerate(zip(places, ends, self.sweeps.halo, strict=False)):
            later, sooner = self._ends_of_lane(k, lane)
            of_any += [f"{place} >= {before}", f"{place} < {plus(size, -after)}"]
            of_lane += [f"{place} >= {before}{later}"] if later else []
            of_lane += [f"{place} < {plus(size, -after)}{sooner}"] if sooner else []
        active, stored = f"{own('active')}[{element}]", f"{own('stored')}[{element}]"
        lines.add(f"{stored} = {' && '.join(of_any)};", f"{active} = -({' && '.join([stored, *of_lane])});")
        *around, innermost = self.nest.space_loops
        if innermost.name in self.indices:
            behind = plus(f"{self.sweeps.skew[-1]} * {lane}", self.sweeps.lag * row)
            lines.add(f"{own('behind')}[{element}] = {behind};")
        for k, loop in enumerate(around):
            if loop.name in self.indices:
                place = plus(f"{self._low(k)} + {places[k]}", -self.sweeps.halo[k][0])
                sign = place if loop.step == 1 else f"-({place})"
                lines.add(f"{self._of_lanes(loop.name)}[{element}] = {sign};")
        for name in self._row_arrays():
            is_given = name not in self.streams.written
            if row and not is_given:
                continue
            terms = [
                f"{place if ' + ' not in place else f'({place})'} * {self._along(name, k)}"
                for k, place in enumerate(places)
            ]
            place = f"{self._of(name, 'origin')} + {' + '.join(terms)}{self._behind(name, lane, row)}"
            if is_given:  # it may have no elements around the domain
                there = self._has_row(name, places, ends)
                test = f"{active} && {' && '.join(there)}" if there else active
                place = f"{test} ? {place} : {self._first_row(name, lane, row)}"
            lines.add(f"{self._of(name, 'row')}[{element}] = {place};")

    def _behind(self, name: str, lane: str, row: int) -> str:
        """How far a lane of a row is behind the first one, in memory, along the innermost loop."""
        skew, lag = self.sweeps.skew[-1], self.sweeps.lag * row
        behind = f" - {times(lag, self._along_row(name))}" if lag else ""
        behind += f" - {times(skew, self._along_row(name))} * {lane}" if skew and lane != "0" else ""
        if lane == "0" or not self._moves_with_sweeps(name):
            return behind
        # Lanes that are no sweeps any more compute as the last one.
        own, (sweep,) = self._own, self.nest.sweep_loops
        return f"{behind} + {self._of(name, f'along_{sweep.name}')} * lw_min_i64({lane}, {own('last')})"

    def _has_row(self, name: str, places: Sequence[str], ends: Sequence[str]) -> list[str]:
        """Tests of whether an iteration at a place has an element, which those at the ends of loops may not have."""
        tests = []
        for k, (before, after) in enumerate(self._ends_without(self._elements()[name])[:-1]):
            around_before, around_after = self.sweeps.halo[k]
            if before:
                tests.append(f"{places[k]} >= {around_before}{some(before, self._is_first(k))}")
            if after:
                tests.append(f"{places[k]} < {plus(ends[k], -around_after)}{some(-after, self._is_last(k))}")
        return tests

    def _first_row(self, name: str, lane: str, row: int) -> str:
        """The place of an element at position 0 of the first row of the domain that has one."""
        ends = zip(self.sweeps.halo, self._ends_without(self._elements()[name])[:-1], strict=False)
        terms = []
        for k, ((before, _), (lacking, _)) in enumerate(ends):
            terms += [f" + {times(before, self._along(name, k))}"] if before else []
            terms += [f" + {times(lacking, self._is_first(k))} * {self._along(name, k)}"] if lacking else []
        return f"{self._of(name, 'origin')}{''.join(terms)}{self._behind(name, lane, row)}"


_KNOWN: WeakKeyDictionary[BoundNest, dict[InnerForm, bool]] = WeakKeyDictionary()


def has_sweep_lanes(bound: BoundNest, form: InnerForm) -> bool:
    """Whether there is code for a form whose lanes are sweeps. Planning asks again and again."""
    known = _KNOWN.setdefault(bound, {})
    if form not in known:
        known[form] = sweep_lanes(bound, form.rows) is not None and SweepTileWriter(bound, (), form).is_written
    return known[form]


def may_move_ends(bound: BoundNest) -> bool:
    """Whether the ends of boxes may move from sweep to sweep where sweeps are lanes, as those of steps and ranks do, along all
    loops: of a skewed nest boxes are in other coordinates than elements."""
    return bound.skew is None
