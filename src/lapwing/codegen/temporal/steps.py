"""A step of tiles whose sweeps are the lanes of vectors (``codegen.temporal.sweeps``): the loop body where each lane is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from lapwing.codegen.body.expression import C_TYPES, SUFFIXES
from lapwing.codegen.body.if_conversion import elements_that_exist, for_lanes
from lapwing.codegen.body.statements import IN_ORDER
from lapwing.codegen.body.text import Lines, plus, times
from lapwing.codegen.body.widening import WIDE, of_one_size
from lapwing.codegen.lanes.vector_bodies import is_uniform, loads_of
from lapwing.codegen.rows.module import accumulator_words
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.codegen.temporal.streams import Stream, Streams
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.vectors import has_fast_gathers, vector_bytes
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.sweep_lanes import SweepLanes, Vector, sweep_lanes
from lapwing.tiling.transposed import ITEMSIZES

# Where a step is: where all lanes are inside of the domain, where some rows may be outside, and at the ends of rows.
FULL, ROWS, ENDS = "full", "rows", "ends"
TERM_STEPS = 128  # whose terms are added at once: those of thirty-two lanes take 32 KiB


class StepWriter(TileWriter):
    """Writes the steps of ``form.sweeps`` lanes, each a sweep, and what they are called."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(bound, faces, form)
        found = sweep_lanes(bound, form.rows)
        assert found is not None, "the form is not legal"
        self.sweeps: SweepLanes = found
        if len(self._parts) == 1 and not self._parts[0].calls:
            self._parts = ()  # made for sums, whose terms are kept step by step here
        self._in_vectors = False
        exists = elements_that_exist(bound, bound.body)
        body, self._reason = for_lanes(bound, lambda _: False)
        self._straight = of_one_size(body, found.size)
        self._all_exist = all(map(exists, loads_of(replace(bound, body=body))))
        self.count = form.sweeps
        self.width = min(vector_bytes() // found.size, self.count)
        self.at_once = found.rows * self.count  # elements of an array that a step writes
        nodes = (n for s in self._straight.statements for value in t.own_values(s) for n in t.walk(value))
        used = {node.name for node in nodes if isinstance(node, t.Index)}
        self.indices = [name for name in bound.nest.loop_names if name in used]
        self.streams = Streams(replace(bound, body=self._straight), found)

    @property
    def joins_sweeps(self) -> bool:
        return True

    @property
    def is_written(self) -> bool:
        """Whether there is code for the loop body."""
        values = [v for s in self._straight.statements for v in t.own_values(s)]
        return (
            self._reason is None
            and self._all_exist
            and TERM_STEPS % len(self._rows) == 0
            and not (self._parts or self._wraps or self._stride is not None)
            and self._straight.is_straight
            and all(map(_is_for_lanes, self._straight.statements))
            and all(self._terms_of(total) == 1 for total in self.sums)
            and all(is_uniform(value, self.sweeps.size, frozenset(), frozenset()) for value in values)
        )

    def _terms_of(self, total: t.Accumulator) -> int:
        """How many terms every iteration gives to a sum. Under a condition there may be none, which a sum may show."""
        return sum(isinstance(s, t.TypedAccumulate) and s.name == total.name for s in self.given.body.statements)

    # -- names -----------------------------------------------------------------------------------------------------------

    def _own(self, name: str) -> str:
        return self.names.get(("sweeps", name), name)

    def _of(self, of: str, name: str) -> str:
        """What an array, a loop or an element has."""
        return self.names.get(("sweeps", of, name), f"{of}_{name}")

    def _type(self, dtype: str) -> str:
        return self.names.get(("vector", dtype), f"vector_of_{dtype}")

    def _anywhere(self, dtype: str) -> str:
        return f"{self._type(dtype)}_anywhere"

    @cached_property
    def _lane_dtype(self) -> str:
        return WIDE[self.sweeps.size]

    @cached_property
    def _dtypes(self) -> dict[str, str]:
        return {array.name: array.dtype for array in self.bound.arrays}

    @property
    def _vectors(self) -> range:
        """Those of a row."""
        return range(self.count // self.width)

    @property
    def _rows(self) -> range:
        """Those of a group."""
        return range(self.sweeps.rows)

    @property
    def _all_vectors(self) -> range:
        return range(self.at_once // self.width)

    def _vector(self, row: int, v: int) -> int:
        """The number of a row's vector among those of all rows of a group."""
        return row * len(self._vectors) + v

    def _element_of(self, row: int, lane: str) -> str:
        """The number of a lane of a row among all of a step."""
        return f"{row * self.count} + {lane}" if row else lane

    def _coordinates(self) -> list[str]:
        return [self.index(loop.name) for loop in self.nest.space_loops]

    def _low(self, k: int) -> str:
        return self._of(self._coordinates()[k], "low")

    def _high(self, k: int) -> str:
        return self._of(self._coordinates()[k], "high")

    def _moves_with_sweeps(self, name: str) -> bool:
        """Whether each sweep has elements of its own, of those that are only read."""
        sweeps = {loop.name for loop in self.nest.sweep_loops}
        subscripts = (s for load in self.streams.given if self._given(load) == name for s in load.subscripts)
        return any(isinstance(s, t.AffineSubscript) and sweeps & s.affine.names for s in subscripts)

    def _sizes(self) -> list[str]:
        """Of the positions along every loop, with what lies around the domain; of the groups of rows along the last but one."""
        return [self._of(x, "size") for x in self._coordinates()]

    def _along(self, array: str, k: int) -> str:
        """The C name of the distance in memory from one place along loop k to the next."""
        return self._of(array, f"along_{self._coordinates()[k]}")

    def _element(self, array: str, offset: Vector) -> str:
        """What stands for the element of an array at an offset from the first row of a group, in vectors: it is named as it is
        seen from the row of a group that it is in."""
        row = offset[-2] % len(self._rows)
        seen = (a - b for a, b in zip(offset, self.streams.place((0,) * len(offset), row), strict=True))
        parts = [
            f"{x}_{'plus' if o > 0 else 'minus'}_{abs(o)}" for x, o in zip(self._coordinates(), seen, strict=True) if o
        ]
        return self._of(array, "_".join([*([str(row)] if row else []), *(parts or ["before"])]))

    def _kept(self, array: str, steps: int) -> str:
        return self._of(array, f"{steps}_ago")

    def _now(self, array: str) -> str:
        return self._of(array, "now")

    def _widened(self, load: t.Load) -> str:
        """The type of an element in vectors."""
        if ITEMSIZES[load.dtype] == self.sweeps.size:
            return load.dtype
        return "float64" if load.dtype == "float32" else self._lane_dtype

    def _of_lanes(self, loop: str) -> str:
        """The C name of the indices of all lanes."""
        return self.names.get(("index of lanes", loop), f"{self.index(loop)}_here")

    @property
    def extrema(self) -> list[t.Accumulator]:
        return [a for a in self.bound.body.accumulators if not a.exact_sum]

    @property
    def sums(self) -> list[t.Accumulator]:
        return [a for a in self.bound.body.accumulators if a.exact_sum]

    def _of_each(self, accumulator: t.Accumulator) -> str:
        """The C name of the extremum that each lane has found, or of the terms of the steps so far."""
        return self._of(self.accumulator(accumulator.name), "of_lanes")

    def _here(self, accumulator: t.Accumulator) -> str:
        """The C name of the extremum with this step, where not all lanes may be in the domain, or of the step's term."""
        return self._of(self.accumulator(accumulator.name), "here")

    def _steps_of(self, accumulator: t.Accumulator) -> str:
        """The C name of how many steps' terms there are."""
        return self._of(self.accumulator(accumulator.name), "steps")

    def _given(self, load: t.Load) -> str:
        return self.names.get(("given", load), f"{load.array}_here")

    # -- the loop body ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _one_vector(self) -> Iterator[None]:
        """What is written is for the lanes of a vector."""
        lane, streams = self._own("lane"), self.streams
        placed = {load: f"{self._given(load)}[{lane}]" for load in streams.given}
        for load, offset in streams.offsets.items():
            placed[load] = f"{self._read(load, offset)}[{lane}]"
        for statement in self._straight.statements:
            if isinstance(statement, t.TypedStore):
                placed[statement.target] = f"{self._now(statement.target.array)}[{lane}]"
        before, self.printer.placed, self._in_vectors = self.printer.placed, placed, True
        try:
            yield
        finally:
            self.printer.placed, self._in_vectors = before, False

    def _read(self, load: t.Load, offset: Vector) -> str:
        return self._element(load.array, offset) if any(offset) else self._now(load.array)

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return self._straight.statements if self._in_vectors else super().body_statements()

    def point_name(self) -> str:
        name = super().point_name()
        return self.names.get("point of a vector", f"{name}_in_vector") if self._in_vectors else name

    def accumulator_parameters(self, accumulator: t.Accumulator) -> list[tuple[str, str]]:
        found = super().accumulator_parameters(accumulator)
        if not self._in_vectors:
            return found
        if accumulator.exact_sum:
            return [(f"double *restrict {self._here(accumulator)}", self._here(accumulator))]
        return [(declared.replace("*", "*restrict "), argument) for declared, argument in found]

    def accumulate(self, accumulator: t.Accumulator, target: str, value: str) -> str:
        if self._in_vectors:
            target = f"{self.accumulator(accumulator.name)}[{self._own('lane')}]"
        return super().accumulate(accumulator, target, value)

    def add_exactly(self, accumulator: t.Accumulator, value: str) -> str:
        if self._in_vectors:
            return f"{self._here(accumulator)}[{self._own('lane')}] = {value};"
        return super().add_exactly(accumulator, value)

    def buffer_parameters(self) -> list[tuple[str, str]]:
        if not self._in_vectors:
            return super().buffer_parameters()
        found = {}
        for load, offset in self.streams.offsets.items():
            if any(offset):
                found[self._read(load, offset)] = f"const {C_TYPES[load.dtype]} *restrict {self._read(load, offset)}"
        for load in self.streams.given:
            found[self._given(load)] = f"const {C_TYPES[self._widened(load)]} *restrict {self._given(load)}"
        for array in self.streams.written:
            found[self._now(array)] = f"{C_TYPES[self._dtypes[array]]} *restrict {self._now(array)}"
        return [
            *((declared, name) for name, declared in found.items()),
            (f"int64_t {self._own('lane')}", self._own("lane")),
        ]

    def point_functions(self) -> Iterator[str]:
        yield from self._point_functions()
        with self._one_vector():
            yield from (*self.point_function(), "")

    def headers(self) -> Iterator[str]:
        size = self.width * self.sweeps.size
        yield ""
        given = map(self._widened, self.streams.given)
        written = (self._dtypes[array] for array in self.streams.written)
        found = (accumulator.dtype for accumulator in self.bound.body.accumulators)
        for dtype in sorted({*given, *written, *found, self._lane_dtype}):
            c_type, name = C_TYPES[dtype], self._type(dtype)
            yield f"typedef {c_type} {name} __attribute__((vector_size({size})));"
            aligned = f"aligned({self.sweeps.size}), may_alias"
            yield f"typedef {c_type} {self._anywhere(dtype)} __attribute__((vector_size({size}), {aligned}));"

    def _rows_at(self, array: str, behind: Vector) -> str:
        parts = "_".join(
            f"{x}_{b}" if b >= 0 else f"{x}_ahead_{-b}" for x, b in zip(self._coordinates(), behind, strict=False) if b
        )
        return self._of(array, f"behind_{parts}")

    @property
    def _head(self) -> int:
        """How many positions of a row are gone through with a mask, at its beginning: until all lanes are in it."""
        lagging = self.sweeps.skew[-1] * (self.count - 1) + self.sweeps.lagging
        return max(lagging + max(self.sweeps.halo[-1][0], 1), self.streams.reach)

    @property
    def _tail(self) -> int:
        """The same at its end."""
        return max(self.sweeps.halo[-1][1] + self.sweeps.lagging, self.streams.reach)

    # -- a step ----------------------------------------------------------------------------------------------------------

    def _moves_on(self, stream: Stream) -> bool:
        """Whether it has vectors of its own that are kept from step to step."""
        return stream.furthest > stream.nearest and (stream.is_old or not stream.is_in_row)

    def _step(self, lines: Lines, where: str) -> None:
        own, streams, k = self._own, self.streams, self._own("position")
        is_masked, is_inside = where != FULL, self._find_masks(lines, where)
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
        for array in streams.written:
            names = []
            for row in self._rows:
                start = f" = {self._before(array, row)}_{{}}" if array in streams.changing or is_masked else ""
                names += [f"{self._now(array)}_{self._vector(row, v)}{start.format(v)}" for v in self._vectors]
            lines.add(f"{self._type(self._dtypes[array])} {', '.join(names)};")
        for extremum in self.extrema if is_masked else ():
            kept = (f"{self._here(extremum)}_{v} = {self._of_each(extremum)}_{v}" for v in self._all_vectors)
            lines.add(f"{self._type(extremum.dtype)} {', '.join(kept)};")
        for total in self.sums:
            lines.add(f"{self._type(total.dtype)} {', '.join(f'{self._here(total)}_{v}' for v in self._all_vectors)};")
        lane = own("lane")
        with self._one_vector():
            for v in self._all_vectors:
                lines.add("#pragma omp simd")
                lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
                lines.add(self.point_call(places=self._pointers(v, is_masked)))
                lines.close()
        self._bring_together(lines, is_masked)
        for array in streams.written:
            self._put(lines, array, where)
            out = f"{self._of(array, 'row')}[{own('last')}]" if where == ENDS else self._of(array, "out")
            for row in self._rows:
                last = self._element_of(row, own("last"))
                element = f"{self.array(array)}[{out} + {self._along_row(array)} * {k}{self._from_first(array, row)}]"
                store = f"{element} = {self._of(array, 'at')}[{k} * {self.at_once} + {last}];"
                lines.add(f"if ({is_inside(last)}) {store}" if is_masked else store)
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
        for extremum in self.extrema if is_masked else ():
            for v in self._all_vectors:
                name, here = f"{self._of_each(extremum)}_{v}", f"{self._here(extremum)}_{v}"
                lines.add(f"{name} = {self._chosen(self._type(extremum.dtype), v, here, name)};")
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
        given = f"{sums}, {apart}, {self._of_each(total)}, {steps}, {own('at_work')}, {self.count}"
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

    def _before(self, array: str, row: int) -> str:
        return self._element(array, self.streams.place((0,) * len(self.sweeps.skew), row))

    def _find_masks(self, lines: Lines, where: str) -> Callable[[str], str]:
        """Declares which lanes are inside of the domain, as vectors; whether one of them is."""
        own, k = self._own, self._own("position")
        arrays = [own("active")] if where != FULL else []
        if where == ENDS:
            end = own("end")
            lines.add(f"const int64_t {end} = {k} < {self._head} ? {k} : {k} - {own('tail')} + {self._head};")
            arrays.append(f"{own('inside')}[{end}]")
        for v in self._all_vectors if arrays else ():
            vectors = (f"*(const {self._anywhere(self._lane_dtype)} *)({array} + {v * self.width})" for array in arrays)
            lines.add(f"const {self._type(self._lane_dtype)} {own('mask')}_{v} = {' & '.join(vectors)};")
        return lambda lane: " & ".join(f"{array}[{lane}]" for array in arrays)

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
            (before, after), (its_before, its_after) = self.sweeps.halo[-1], self._halo_of(array)[-1]
            end = its_after - after - offset[-1] - self.sweeps.lagging
            tests += self._within(k, size, before - its_before - offset[-1], end)
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
            tests += self._within(of, size, before - its_before - o, its_after - after - o, is_before_end)
        return " && ".join(tests)

    def _size_of_rows(self) -> str:
        """Of the rows along the last loop but one, with what lies around the domain."""
        k = len(self.sweeps.skew) - 2
        return plus(f"{self._high(k)} - {self._low(k)}", sum(self.sweeps.halo[k]))

    @staticmethod
    def _within(place: str, size: str, low: int, high: int, is_before_end: bool = True) -> list[str]:
        """Tests of whether a place lies from one on to before another, which is counted from the end. is_before_end: whether all
        places lie before the end itself."""
        found = [f"{place} >= {low}"] if low > 0 else []
        return [*found, f"{place} < {plus(size, high)}"] if high < 0 or not is_before_end else found

    def _halo_of(self, array: str) -> list[tuple[int, int]]:
        halo = [(0, 0)] * len(self.sweeps.skew)
        for load, offset in self.streams.offsets.items():
            if load.array == array:
                halo = [(max(b, -o), max(a, o)) for (b, a), o in zip(halo, offset, strict=True)]
        return halo

    def _gather(self, lines: Lines, load: t.Load, where: str) -> None:
        """Elements of an array that is only read, of every lane its own. Of lanes outside of the domain it is one inside."""
        own, name, array = self._own, self._given(load), self.array(load.array)
        along, apart = self._along_row(name), self._apart(name)
        k = f"{own('column')}[{own('end')}][{{}}]" if where == ENDS else own("position")

        def place(number: int) -> str:
            """Where the element of a lane of all rows lies."""
            if where != FULL or apart is None:
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

    def _gathers(self, load: t.Load) -> bool:
        """Whether one instruction brings the elements of a vector's lanes."""
        return load.dtype in ("float64", "int64") and self.width == 8 and has_fast_gathers()

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

    def _pointers(self, v: int, is_masked: bool) -> dict[str, str]:
        """The pointers to the lanes of a vector, by the names of the loop body's parameters."""
        found = {}
        for extremum in self.extrema:
            kept = self._here(extremum) if is_masked else self._of_each(extremum)
            found[f"&{self.accumulator(extremum.name)}"] = f"({C_TYPES[extremum.dtype]} *)&{kept}_{v}"
        for total in self.sums:
            found[self._here(total)] = f"({C_TYPES[total.dtype]} *)&{self._here(total)}_{v}"
        for load, offset in self.streams.offsets.items():
            if any(offset):
                found[self._read(load, offset)] = (
                    f"(const {C_TYPES[load.dtype]} *)&{self._variable(load.array, offset, v)}"
                )
        for load in self.streams.given:
            found[self._given(load)] = f"(const {C_TYPES[self._widened(load)]} *)&{self._given(load)}_{v}"
        for array in self.streams.written:
            found[self._now(array)] = f"({C_TYPES[self._dtypes[array]]} *)&{self._now(array)}_{v}"
        innermost, lane = self.nest.loop_names[-1], self._own("lane")
        for loop in self.indices:
            of_lanes = self._of_lanes(loop)
            here = f"((const int64_t *)&{of_lanes}_{v})[{lane}]"
            found[self.index(loop)] = here if loop == innermost else f"{of_lanes}[{plus(lane, v * self.width)}]"
        return found

    def _variable(self, array: str, offset: Vector, v: int) -> str:
        """The vector of elements at an offset from those of vector v."""
        row, of_row = divmod(v, len(self._vectors))
        if not self.sweeps.is_old(offset):
            written_by, (*rows, steps) = self.sweeps.behind(offset, row)
            if not any(rows):
                return f"{self._kept(array, steps)}_{self._vector(written_by, of_row)}"
        return f"{self._element(array, self.streams.place(offset, row))}_{of_row}"

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


def _is_for_lanes(statement: t.TypedStatement) -> bool:
    """Whether it is one that lanes do each by itself."""
    if isinstance(statement, t.TypedAccumulate):
        return not (statement.position or statement.payload)
    return isinstance(statement, t.TypedStore | t.TypedLocal)
