"""A step of tiles whose sweeps are the lanes of vectors (``codegen.temporal.sweeps``): what it brings to the loop body of all
lanes, and where what they write goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from lapwing.codegen.body.expression import C_TYPES, SUFFIXES
from lapwing.codegen.body.statements import IN_ORDER
from lapwing.codegen.body.text import Lines, plus, times
from lapwing.codegen.rows.module import accumulator_words
from lapwing.codegen.temporal.outside import Ends
from lapwing.codegen.temporal.streams import Stream
from lapwing.codegen.temporal.vector_body import TERM_STEPS, VectorBodyWriter
from lapwing.loopnest.binding import typed as t
from lapwing.machine.vectors import has_fast_gathers
from lapwing.tiling.sweep_lanes import Vector

# How many elements may be lacking at an end of a box, and the C name of whether they are.
Lacking = tuple[int, str]
_NONE: tuple[Lacking, Lacking] = ((0, ""), (0, ""))

# Where a step is: where all lanes are inside of the domain, where some rows may be outside, and at the ends of rows.
FULL, ROWS, ENDS = "full", "rows", "ends"


class StepWriter(VectorBodyWriter):
    """Writes what every step does."""

    def _rows_at(self, array: str, behind: Vector) -> str:
        parts = "_".join(
            f"{x}_{b}" if b >= 0 else f"{x}_ahead_{-b}" for x, b in zip(self._coordinates(), behind, strict=False) if b
        )
        return self._of(array, f"behind_{parts}")

    @property
    def _head(self) -> int:
        """How many positions of a row are gone through with a mask, at its beginning: until all lanes are in it, where all
        elements exist."""
        lagging = self.sweeps.skew[-1] * (self.count - 1) + self.sweeps.lagging
        return max(lagging + max(self.sweeps.halo[-1][0], 1) + self._most_without[-1][0], self.streams.reach)

    @property
    def _tail(self) -> int:
        """The same at its end."""
        return max(self.sweeps.halo[-1][1] + self.sweeps.lagging + self._most_without[-1][1], self.streams.reach)

    # -- elements that do not exist -----------------------------------------------------------------------------------------

    def _ends_without(self, load: t.Load) -> Ends:
        """How many iterations at the ends of every loop have no such element."""
        return self._without.get(load) or ((0, 0),) * len(self.sweeps.skew)

    @cached_property
    def _most_without(self) -> Ends:
        """How many lack one of these elements."""
        found = [self._ends_without(load) for load in self._without]
        return tuple((max(b for b, _ in ends), max(a for _, a in ends)) for ends in zip(*found, strict=True)) or (
            ((0, 0),) * len(self.sweeps.skew)
        )

    def _lacks_rows(self, load: t.Load) -> bool:
        return any(map(any, self._ends_without(load)[:-1]))

    # -- a step ----------------------------------------------------------------------------------------------------------

    def _moves_on(self, stream: Stream) -> bool:
        """Whether it has vectors of its own that are kept from step to step."""
        return stream.furthest > stream.nearest and (stream.is_old or not stream.is_in_row)

    def _step(self, lines: Lines, where: str) -> None:
        own, streams, k = self._own, self.streams, self._own("position")
        is_masked, is_stored = where != FULL, self._find_masks(lines, where)
        for array in streams.written:
            first = f"{self._of(array, 'row')}[0]" if where == ENDS else self._of(array, "first")
            lines.add(f"const int64_t {self._of(array, 'here')} = {first} + {self._along_row(array)} * {k};")
        for stream in streams.in_masked_steps if is_masked else streams.all:
            if stream.is_in_row and not stream.is_old:
                continue
            for v in self._vectors:
                self._lead(lines, stream, v, where)
        for load in streams.given:
            self._gather(lines, load, where)
        self._find_innermost_index(lines)
        variables = [self._variables(v, is_masked) for v in self._all_vectors]
        apart = self.extrema if self._keeps_extrema_apart(is_masked) else ()
        for parameter in (*map(self._now, streams.written), *(f"&{self.accumulator(a.name)}" for a in apart)):
            of_all = [one[parameter] for one in variables]
            lines.add(f"{self._type(of_all[0].dtype)} {', '.join(one.declared for one in of_all)};")
        for total in self.sums:
            lines.add(f"{self._type(total.dtype)} {', '.join(f'{self._here(total)}_{v}' for v in self._all_vectors)};")
        lane, uncertain = own("lane"), own("uncertain")
        if self._tries:
            none = ", ".join(f"{uncertain}_{v} = {{0}}" for v in self._all_vectors)
            lines.add(f"{self._type(self._lane_dtype)} {none};")
        with self._one_vector(self._tries):
            for v in self._all_vectors:
                lines.add("#pragma omp simd")
                lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
                lines.add(self.point_call(places=self._pointers_to(variables[v], v)))
                lines.close()
        if self._tries:
            self._compute_again(lines, is_masked)
        self._bring_together(lines, is_masked)
        for array in streams.written:
            self._put(lines, array, where)
            out = f"{self._of(array, 'row')}[{own('last')}]" if where == ENDS else self._of(array, "out")
            for row in self._rows:
                last = self._element_of(row, own("last"))
                element = f"{self.array(array)}[{out} + {self._along_row(array)} * {k}{self._from_first(array, row)}]"
                store = f"{element} = {self._of(array, 'at')}[{k} * {self.at_once} + {last}];"
                lines.add(f"if ({is_stored(last)}) {store}" if is_masked else store)
        self._move_on(lines)
        lines.add(IN_ORDER)

    def _from_first(self, name: str, row: int) -> str:
        """How far elements of a row of a group lie from those of the first one, at the same step."""
        if row == 0:
            return ""
        k, behind = len(self.sweeps.skew) - 1, self.sweeps.lag * row
        return f" + {times(row, self._along(name, k - 1))}" + (
            f" - {times(behind, self._along(name, k))}" if behind else ""
        )

    def _bring_together(self, lines: Lines, is_masked: bool) -> None:
        """Takes what the step gives to reductions, of lanes inside of the domain."""
        for extremum in self.extrema if self._keeps_extrema_apart(is_masked) else ():
            for v in self._all_vectors:
                name, here = f"{self._of_each(extremum)}_{v}", f"{self._here(extremum)}_{v}"
                chosen = self._chosen(self._type(extremum.dtype), v, here, name) if is_masked else here
                lines.add(f"{name} = {chosen};")
        for total in self.sums:
            of_type, steps = self._type(total.dtype), self._steps_of(total)
            for v in self._all_vectors:
                here = f"{self._here(total)}_{v}"
                if is_masked:
                    here = f"({of_type})({self._own('mask')}_{v} & ({self._type(self._lane_dtype)}){here})"
                place = f"{self._of_each(total)} + {plus(f'{steps} * {self.count}', v * self.width)}"
                lines.add(f"*({self._anywhere(total.dtype)} *)({place}) = {here};")
            more = f"++{steps}" if len(self._rows) == 1 else f"({steps} += {len(self._rows)})"
            lines.open(f"if ({more} == {TERM_STEPS}) {{")
            self._add_terms(lines, total)
            lines.close()

    def _add_terms(self, lines: Lines, total: t.Accumulator) -> None:
        """Adds the terms of the steps so far to the sums of the lanes that are sweeps, or to the sum of all."""
        own, steps, words = self._own, self._steps_of(total), accumulator_words(self.bound.body.accumulators)
        sums, apart = self.accumulator(total.name), "0"
        if self.nest.by_sweep:
            sums, apart = f"&{self.word(total, own('sweep'))}", str(words)
        given = f"{sums}, {apart}, {self._of_each(total)}, {steps}, {own('last')} + 1, {self.count}"
        lines.add(f"lw_exact_add_lanes({given});", f"{steps} = 0;")

    def _find_innermost_index(self, lines: Lines) -> None:
        """That of all lanes, if the loop body uses it."""
        loop, k = self.nest.space_loops[-1], len(self.sweeps.skew) - 1
        if loop.name not in self.indices:
            return
        first = plus(f"{self._low(k)} + {self._own('position')}", -self.sweeps.halo[k][0])
        for v in self._all_vectors:
            behind = f"*(const {self._anywhere('int64')} *)({self._own('behind')} + {v * self.width})"
            sign = "" if loop.step == 1 else "-"
            lines.add(f"const {self._type('int64')} {self._of_lanes(loop.name)}_{v} = {sign}({first} - {behind});")

    def _put(self, lines: Lines, array: str, where: str) -> None:
        """What was written goes into the ring; lanes outside of the domain hand on what was there."""
        dtype, now, k = self._dtypes[array], self._now(array), self._own("position")
        for v in self._all_vectors:
            if where != FULL:
                row, of_row = divmod(v, len(self._vectors))
                before = f"{self._before(array, row)}_{of_row}"
                lines.add(f"{now}_{v} = {self._chosen(self._type(dtype), v, f'{now}_{v}', before)};")
            place = f"{self._of(array, 'at')} + {plus(f'{k} * {self.at_once}', v * self.width)}"
            lines.add(f"*({self._anywhere(dtype)} *)({place}) = {now}_{v};")
        if where == ENDS:
            self._mirror(lines, array)

    def _chosen(self, of_type: str, v: int, inside: str, outside: str) -> str:
        """One vector for lanes inside of the domain, and another for those outside."""
        mask, places = f"{self._own('mask')}_{v}", self._type(self._lane_dtype)
        return f"({of_type})(({mask} & ({places}){inside}) | (~{mask} & ({places}){outside}))"

    def _along_row(self, array: str) -> str:
        return self._along(array, len(self.sweeps.skew) - 1)

    def _find_masks(self, lines: Lines, where: str) -> Callable[[str], str]:
        """Declares which lanes are inside of the domain, as vectors; whether one of them stores what has come to it."""
        own, k = self._own, self._own("position")
        arrays = [own("active")] if where != FULL else []
        if where == ENDS:
            end = own("end")
            lines.add(f"const int64_t {end} = {k} < {self._head} ? {k} : {k} - {own('tail')} + {self._head};")
            arrays.append(f"{own('inside')}[{end}]")
        for v in self._all_vectors if arrays else ():
            vectors = (f"*(const {self._anywhere(self._lane_dtype)} *)({array} + {v * self.width})" for array in arrays)
            lines.add(f"const {self._type(self._lane_dtype)} {own('mask')}_{v} = {' & '.join(vectors)};")
        stored = [own("stored")] if where != FULL else []
        stored += [f"{own('around')}[{own('end')}]"] if where == ENDS else []
        return lambda lane: " && ".join(f"{array}[{lane}]" for array in stored)

    def _lead(self, lines: Lines, stream: Stream, v: int, where: str) -> None:
        """The nearest vector of a stream."""
        k, array, dtype = self._own("position"), stream.array, self._dtypes[stream.array]
        offset, declared = self.streams.offset(stream, stream.nearest), f"{self._type(dtype)} "
        name = f"{'' if self._moves_on(stream) else declared}{self._element(array, offset)}_{v}"
        if stream.is_in_row:
            kept, number = self._kept(array, stream.nearest), self._vector(stream.row, v)
            moved = ", ".join(str(self.width - 1 + place) for place in range(self.width))
            vectors = f"{kept}_{number - (v > 0)}, {kept}_{number}"
            lines.add(f"{name} = LW_SHUFFLE({self._type(self._lane_dtype)}, {vectors}, {moved});")
        else:
            place = f"{self._rows_at(array, stream.rows)} + ({plus(k, -stream.nearest)}) * {self.at_once}"
            element = self._vector(stream.row, v) * self.width - stream.is_old
            lines.add(f"{name} = *(const {self._anywhere(dtype)} *)({plus(place, element)});")
        if stream.is_old and v == 0:
            # Those that were moved on from the end of one row to the beginning of the next are of the former.
            for steps in stream.steps if where == ENDS and self._moves_on(stream) else (stream.nearest,):
                self._insert_first(lines, array, self.streams.offset(stream, steps), where)

    def _insert_first(self, lines: Lines, array: str, offset: Vector, where: str) -> None:
        """The first lane reads what was there before all of these sweeps."""
        here, k, size = self._of(array, "here"), self._own("position"), self._sizes()[-1]
        terms = [
            f" {'+' if o > 0 else '-'} {times(abs(o), self._along(array, axis))}" for axis, o in enumerate(offset) if o
        ]
        tests = []
        if where != FULL:
            tests.append(self._rows_there[self._row_is_there(array, offset)])
        if where == ENDS:
            innermost = len(self.sweeps.skew) - 1
            (before, after), (its_before, its_after) = self.sweeps.halo[-1], self._halo_of(array)[-1]
            end = its_after - after - offset[-1] - self.sweeps.lagging
            lacking = self._lacking_ends(array, innermost)
            tests += self._within(k, size, before - its_before - offset[-1], end, lacking=lacking)
        test = f"if ({' && '.join(tests)}) " if tests else ""
        lines.add(f"{test}{self._element(array, offset)}_0[0] = {self.array(array)}[{here}{''.join(terms)}];")

    @cached_property
    def _rows_there(self) -> dict[str, str]:
        """The C names of whether there are elements in rows beside the first lane's, by the tests."""
        streams = [s for s in self.streams.in_masked_steps if s.is_old]
        tests = dict.fromkeys(self._row_is_there(s.array, self.streams.offset(s, s.nearest)) for s in streams)
        return {test: self._own(f"there_{number}") for number, test in enumerate(tests, 1)}

    def _row_is_there(self, array: str, offset: Vector) -> str:
        """A test of whether the array has the row at an offset from the first lane's, which is beyond the last one at the end."""
        outer, sizes, halos = (
            self._coordinates()[:-1],
            self._sizes(),
            zip(self.sweeps.halo, self._halo_of(array), strict=True),
        )
        tests: list[str] = []
        for k, (o, ((before, after), (its_before, its_after))) in enumerate(zip(offset[:-1], halos, strict=False)):
            of, size, is_before_end = f"{self._of(outer[k], 'of')}[0]", sizes[k], k > 0
            if k == len(outer) - 1 and len(self._rows) > 1:
                # The last group may have rows that do not exist.
                of, size, is_before_end = f"{of} * {len(self._rows)}", self._size_of_rows(), False
            lacking = self._lacking_ends(array, k)
            low, high = before - its_before - o, its_after - after - o
            tests += self._within(of, size, low, high, is_before_end, lacking)
        return " && ".join(tests)

    def _size_of_rows(self) -> str:
        """Of the rows along the last loop but one, with what lies around the domain."""
        k = len(self.sweeps.skew) - 2
        return plus(f"{self._high(k)} - {self._low(k)}", sum(self.sweeps.halo[k]))

    @staticmethod
    def _within(
        place: str, size: str, low: int, high: int, is_before_end: bool = True, lacking: tuple[Lacking, Lacking] = _NONE
    ) -> list[str]:
        """Tests of whether a place lies from one on to before another, which is counted from the end. is_before_end: whether all
        places lie before the end itself. lacking: how many of those may be lacking at either end."""
        (before, at_first), (after, at_last) = lacking
        found = [f"{place} >= {low}{some(before, at_first)}"] if low + before > 0 else []
        ends = high - after < 0 or not is_before_end
        return [*found, f"{place} < {plus(size, high)}{some(-after, at_last)}"] if ends else found

    def _halo_of(self, array: str, is_within: bool = True) -> list[tuple[int, int]]:
        """How many elements of an array lie before and after a box along every loop, as far as any are read. is_within: of one
        within the domain, where no iteration lacks any."""
        halo = [(0, 0)] * len(self.sweeps.skew)
        for load, offset in self.streams.offsets.items():
            if load.array == array:
                without = ((0, 0),) * len(offset) if is_within else self._ends_without(load)
                around = zip(halo, offset, without, strict=True)
                halo = [(max(b, -o - lacks), max(a, o - lacks_after)) for (b, a), o, (lacks, lacks_after) in around]
        return halo

    def _lacking_ends(self, array: str, k: int) -> tuple[Lacking, Lacking]:
        """How many of the elements around a box along a loop do not exist at either end of the domain."""
        (before, after), (left_before, left_after) = self._halo_of(array)[k], self._halo_of(array, is_within=False)[k]
        return (before - left_before, self._is_first(k)), (after - left_after, self._is_last(k))

    def _is_first(self, k: int) -> str:
        """The C name of whether a box begins where loop k does."""
        return self._of(self._coordinates()[k], "is_first")

    def _is_last(self, k: int) -> str:
        """The same of its end."""
        return self._of(self._coordinates()[k], "is_last")

    def _gather(self, lines: Lines, load: t.Load, where: str) -> None:
        """Elements of an array that is only read, of every lane its own. Of lanes outside of the domain it is one inside."""
        own, name, array = self._own, self._given(load), self.array(load.array)
        along, apart = self._along_row(name), self._apart(name)
        k = f"{self._column_of(load)}[{own('end')}][{{}}]" if where == ENDS else own("position")

        def place(number: int) -> str:
            """Where the element of a lane of all rows lies."""
            if where != FULL or apart is None or self._lacks_rows(load):
                return f"{self._of(name, 'row')}[{number}] + {along} * {k.format(number)}"
            row, lane = divmod(number, self.count)
            behind = (f" - {times(lane, f'({apart})')}" if lane else "") + self._from_first(name, row)
            return f"{self._of(name, 'first')} + {along} * {k}{behind}"

        gathers = where == FULL and apart is not None and self._gathers(load)
        for v in self._all_vectors:
            numbers, of_type = range(v * self.width, (v + 1) * self.width), self._type(self._widened(load))
            if gathers:
                given = f"{array} + {place(numbers[0])}, {self._of(name, 'behind')}"
                elements = f"({of_type})LW_GATHER_{SUFFIXES[load.dtype]}({given})"
            else:
                elements = f"{{{', '.join(f'{array}[{place(number)}]' for number in numbers)}}}"
            lines.add(f"const {of_type} {name}_{v} = {elements};")

    def _column_of(self, load: t.Load) -> str:
        """The C name of where lanes read an element in their rows, at the ends of these: at their position, or at one that has
        it."""
        before, after = self._ends_without(load)[-1]
        return self._own(f"column_{before}_{after}" if before or after else "column")

    def _gathers(self, load: t.Load) -> bool:
        """Whether one instruction brings the elements of a vector's lanes."""
        return (
            not self._lacks_rows(load) and load.dtype in ("float64", "int64") and self.width == 8 and has_fast_gathers()
        )

    @property
    def _skew_of_rows(self) -> Vector:
        """How far behind a lane is, in rows and not in groups of them."""
        *outer, groups, innermost = self.sweeps.skew
        return (*outer, groups * len(self._rows), innermost)

    def _apart(self, name: str) -> str | None:
        """How far elements of neighbouring lanes lie from one another, where all are where their skew says."""
        if self._moves_with_sweeps(name):
            return None
        terms = [times(by, self._along(name, k)) for k, by in enumerate(self._skew_of_rows) if by]
        return " + ".join(terms) or "0"

    def _compute_again(self, lines: Lines, is_masked: bool) -> None:
        """Where a power of a lane is not certain, those of C's library. Vectors whose elements are taken one by one are others,
        for they lie in memory."""
        own, lane = self._own, self._own("lane")
        of_all = " | ".join(f"{own('uncertain')}_{v}" for v in self._all_vectors)
        lines.add(f"const {self._type(self._lane_dtype)} {own('any')} = {of_all};")
        any_of = " | ".join(f"{own('any')}[{place}]" for place in range(self.width))
        lines.open(f"if (__builtin_expect(({any_of}) != 0, 0)) {{")
        for v in self._all_vectors:
            variables = {p: one for p, one in self._variables(v, is_masked).items() if p != own("uncertain")}
            apart = {p: replace(one, name=self._of(one.name, "apart")) for p, one in variables.items()}
            lines.open("{")
            lines.add(*(f"{self._type(one.dtype)} {one.declared};" for one in apart.values()))
            with self._one_vector(False):
                lines.add(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane})")
                lines.add(f"    {self.point_call(places=self._pointers_to(apart, v))}")
            lines.add(*(f"{one.name} = {apart[p].name};" for p, one in variables.items() if one.is_written))
            lines.close()
        lines.close()

    def _mirror(self, lines: Lines, array: str) -> None:
        """What lies at an end of the ring lies at the other one, too, for those who read beyond it."""
        k, size, reach = self._own("position"), self._sizes()[-1], self.streams.reach
        slot, kept, at, count = (
            self._of(array, "slot"),
            self._of(array, "rows_kept"),
            self._of(array, "at"),
            self.at_once,
        )
        c_type = C_TYPES[self._dtypes[array]]
        copied = f"{at} + {k} * {count}, {count} * sizeof({c_type}));"
        ring = self._of(array, "ring")
        end = f"{ring} + ({kept} * {size} + {k}) * {count}"
        lines.add(f"if ({slot} == 0 && {k} < {reach}) memcpy({end}, {copied}")
        start = f"{ring} + ({k} - {size}) * {count}"
        lines.add(f"if ({slot} == {kept} - 1 && {k} >= {size} - {reach}) memcpy({start}, {copied}")

    def _move_on(self, lines: Lines) -> None:
        for stream in self.streams.all:
            if self._moves_on(stream):
                for steps in reversed(stream.steps[1:]):
                    to, source = (
                        self._element(stream.array, self.streams.offset(stream, s)) for s in (steps, steps - 1)
                    )
                    lines.add(*(f"{to}_{v} = {source}_{v};" for v in self._vectors))
        for (array, row), kept in self.streams.results.items():
            vectors = [self._vector(row, v) for v in self._vectors]
            for steps in range(kept, 0, -1):
                source = self._now(array) if steps == 1 else self._kept(array, steps - 1)
                lines.add(*(f"{self._kept(array, steps)}_{v} = {source}_{v};" for v in vectors))


def some(number: int, test: str) -> str:
    """So many more where a test holds, in C."""
    return f" {'+' if number > 0 else '-'} {times(abs(number), test)}" if number else ""
