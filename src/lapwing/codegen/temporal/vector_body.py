"""The loop body of tiles whose sweeps are the lanes of vectors (``codegen.temporal.sweeps``), for the lanes of a vector at once:
what it reads is in vectors, and what it writes.

Powers whose rounding is certain take a few operations (``support.h``). All lanes try that, and where one of them is not certain,
they are computed again one by one, with the powers of C's library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import filterfalse

from lapwing.codegen.body.expression import C_TYPES, is_quick_power
from lapwing.codegen.body.if_conversion import elements_that_exist, for_lanes, is_called
from lapwing.codegen.body.text import plus
from lapwing.codegen.body.widening import WIDE, of_one_size
from lapwing.codegen.lanes.vector_bodies import is_uniform, loads_of
from lapwing.codegen.rows.tile_loops import TileWriter
from lapwing.codegen.temporal.outside import without
from lapwing.codegen.temporal.streams import Streams
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine.vectors import vector_bytes
from lapwing.tiling.faces import Face
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import is_invariant
from lapwing.tiling.sweep_lanes import SweepLanes, Vector, sweep_lanes
from lapwing.tiling.transposed import ITEMSIZES

TERM_STEPS = 128  # whose terms are added at once: those of thirty-two lanes take 32 KiB


@dataclass(frozen=True)
class _Variable:
    """A vector that the loop body reads or writes, and what it is at first."""

    name: str
    dtype: str
    start: str
    is_written: bool = False

    @property
    def declared(self) -> str:
        return f"{self.name} = {self.start}" if self.start else self.name


class VectorBodyWriter(TileWriter):
    """Writes the loop body for vectors of ``form.sweeps`` lanes, each a sweep, and what they are called."""

    def __init__(self, bound: BoundNest, faces: Sequence[Face], form: InnerForm) -> None:
        super().__init__(bound, faces, form)
        found = sweep_lanes(bound, form.rows)
        assert found is not None, "the form is not legal"
        self.sweeps: SweepLanes = found
        self._in_vectors = False
        body, self._reason = for_lanes(bound, lambda load: without(bound, load) is not None)
        self._straight = of_one_size(body, found.size)
        self._without = {
            load: without(bound, load) for load in self._may_not_exist(loads_of(replace(bound, body=body)))
        }
        self.count = form.sweeps
        self.width = min(vector_bytes() // found.size, self.count)
        self.at_once = found.rows * self.count  # elements of an array that a step writes
        nodes = [n for s in self._straight.statements for value in t.own_values(s) for n in t.walk(value)]
        called = [n for n in nodes if isinstance(n, t.Operation) and is_called(n) and not is_invariant(n)]
        self._tries = bool(called) and all(map(is_quick_power, called))
        if self._tries or not any(part.calls for part in self._parts):
            self._parts = ()  # made for powers, or for sums, whose terms are kept step by step here
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
            and None not in self._without.values()
            and TERM_STEPS % len(self._rows) == 0
            and not (self._parts or self._wraps or self._stride is not None)
            and self._straight.is_straight
            and all(map(_is_for_lanes, self._straight.statements))
            and all(self._terms_of(total) == 1 for total in self.sums)
            and all(is_uniform(_with_products(value), self.sweeps.size, frozenset(), frozenset()) for value in values)
        )

    def _may_not_exist(self, loads: Iterable[t.Load]) -> Iterator[t.Load]:
        """Those of which some iterations may have none, under conditions."""
        return filterfalse(elements_that_exist(self.bound, self.bound.body), loads)

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

    def _before(self, array: str, row: int) -> str:
        return self._element(array, self.streams.place((0,) * len(self.sweeps.skew), row))

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
    def _one_vector(self, tries: bool) -> Iterator[None]:
        """What is written is for the lanes of a vector. tries: whether powers are tried, and not those of C's library."""
        lane, streams = self._own("lane"), self.streams
        placed = {load: f"{self._given(load)}[{lane}]" for load in streams.given}
        for load, offset in streams.offsets.items():
            placed[load] = f"{self._read(load, offset)}[{lane}]"
        for statement in self._straight.statements:
            if isinstance(statement, t.TypedStore):
                placed[statement.target] = f"{self._now(statement.target.array)}[{lane}]"
        before, self.printer.placed, self._in_vectors = self.printer.placed, placed, True
        self.printer.uncertain = f"&{self._own('uncertain')}[{lane}]" if tries else None
        try:
            yield
        finally:
            self.printer.placed, self.printer.uncertain, self._in_vectors = before, None, False

    def _read(self, load: t.Load, offset: Vector) -> str:
        return self._element(load.array, offset) if any(offset) else self._now(load.array)

    def body_statements(self) -> Sequence[t.TypedStatement]:
        return self._straight.statements if self._in_vectors else super().body_statements()

    def point_name(self) -> str:
        name = super().point_name()
        if not self._in_vectors:
            return name
        if self._tries and self.printer.uncertain is None:
            return self.names.get("point of a lane", f"{name}_in_lane")
        return self.names.get("point of a vector", f"{name}_in_vector")

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
        uncertain = self._own("uncertain")
        found[uncertain] = f"{C_TYPES[self._lane_dtype]} *restrict {uncertain}"
        return [
            *((declared, name) for name, declared in found.items()),
            (f"int64_t {self._own('lane')}", self._own("lane")),
        ]

    def point_functions(self) -> Iterator[str]:
        yield from self._point_functions()
        for tries in (True, False) if self._tries else (False,):
            with self._one_vector(tries):
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

    def _keeps_extrema_apart(self, is_masked: bool) -> bool:
        """Whether a step's extrema may be left out, or computed again."""
        return is_masked or self._tries

    def _variables(self, v: int, is_masked: bool) -> dict[str, _Variable]:
        """Those of a vector, by the names of the loop body's parameters, or by what is given for them elsewhere."""
        found = {}
        for extremum in self.extrema:
            each, here = self._of_each(extremum), self._here(extremum)
            name = here if self._keeps_extrema_apart(is_masked) else each
            found[f"&{self.accumulator(extremum.name)}"] = _Variable(f"{name}_{v}", extremum.dtype, f"{each}_{v}", True)
        for total in self.sums:
            found[self._here(total)] = _Variable(f"{self._here(total)}_{v}", total.dtype, "", True)
        for load, offset in self.streams.offsets.items():
            if any(offset):
                name = self._variable(load.array, offset, v)
                found[self._read(load, offset)] = _Variable(name, load.dtype, name)
        for load in self.streams.given:
            name = f"{self._given(load)}_{v}"
            found[self._given(load)] = _Variable(name, self._widened(load), name)
        for array in self.streams.written:
            row, of_row = divmod(v, len(self._vectors))
            is_kept = array in self.streams.changing or is_masked
            start = f"{self._before(array, row)}_{of_row}" if is_kept else ""
            found[self._now(array)] = _Variable(f"{self._now(array)}_{v}", self._dtypes[array], start, True)
        if self._tries:
            found[self._own("uncertain")] = _Variable(f"{self._own('uncertain')}_{v}", self._lane_dtype, "", True)
        return found

    def _pointers_to(self, variables: Mapping[str, _Variable], v: int) -> dict[str, str]:
        """The pointers to the lanes of a vector, by the names of the loop body's parameters."""
        found = {}
        for parameter, one in variables.items():
            found[parameter] = f"({'' if one.is_written else 'const '}{C_TYPES[one.dtype]} *)&{one.name}"
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


def _is_for_lanes(statement: t.TypedStatement) -> bool:
    """Whether it is one that lanes do each by itself."""
    if isinstance(statement, t.TypedAccumulate):
        return not (statement.position or statement.payload)
    return isinstance(statement, t.TypedStore | t.TypedLocal)


def _with_products(node: t.Typed) -> t.Typed:
    """An expression in which products stand for powers, which vectors can have as well."""
    node = t.mapped(node, _with_products)
    if isinstance(node, t.Operation) and is_quick_power(node):
        return t.Operation(node.dtype, "*", (node.operands[0], node.operands[0]))
    return node
