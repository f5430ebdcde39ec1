"""The steps of a block of rows in vector registers, in C: what the last steps wrote stays there for the next ones.

A lane reads what the lane above it wrote a step ago. In memory that is a vector which two stores have written together, and the
core has to wait until both have left its store buffer. So the vectors that were written are kept in variables, and the elements
of the lanes above are shifted in from the neighbouring vector; those of the first lane come from memory, where they have been for
long.

Vectors are those of the compiler (``vector_size``). The loop body stays the scalar function that it is: a loop over the lanes of
a vector calls it, and the compiler makes vector operations of it. Compilers take the size of vectors from the smallest elements
in a loop, so elements are widened when they are loaded, and a body that computes with elements of several sizes is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import Lines, plus, signed
from lapwing.codegen.transposed import Buffers
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import is_invariant
from lapwing.tiling.transposed import COPIED_STEPS, ITEMSIZES, MARGIN, TRANSPOSED_LANES, Distance, Offset, distance

# Of the steps before the one at hand so many stay in registers, if they are wanted; earlier ones are loaded.
_KEPT = 2
_MOST_VECTORS = 16  # whose operations are written out
_WIDE = {4: "int32", 8: "int64"}
_OPERATORS = frozenset(
    """
    + - * / & | ^ < <= > >= == != && || not truth min max abs sqrt numpy.maximum numpy.minimum numpy.fmax numpy.fmin numpy.where
    numpy.sqrt numpy.fabs numpy.absolute
    """.split()
) | {"unary -", "unary ~"}

# Gives the statements at the lanes from one on that lie in a vector: that first lane, and what stands for elements.
Point = Callable[[str, Mapping[str, str]], Iterator[str]]
# Of an access that is in no plane, by how much its place along the last axis moves from lane to lane and from step to step; None
# where that is not all that is known of it, or it is not known.
Move = Callable[[t.Load], tuple[int, int] | None]


@dataclass(frozen=True)
class Accumulator:
    """What every lane brings together by itself: as an argument of the loop body, and the C array in which lane 0 is the one at
    ``MARGIN``."""

    argument: str
    lanes: str
    dtype: str


def vector_lanes(
    bound: BoundNest, buffers: Buffers, vector_bytes: int, move: Move, accumulators: Sequence[Accumulator]
) -> int:
    """How many lanes a vector has; 0 where the loop body is not one for vectors."""
    written = [plane.dtype for plane in buffers.planes if plane.written]
    size, body = ITEMSIZES[written[0]], bound.body
    if size not in _WIDE or TRANSPOSED_LANES * size > _MOST_VECTORS * vector_bytes:
        return 0
    narrowed = frozenset(
        load for load in _loads(bound) if load not in buffers.places and _is_narrowed(load, size, move)
    )
    sums = [a.dtype for a in body.accumulators if a.exact_sum]
    fits = (
        body.is_straight
        and all(ITEMSIZES[dtype] == size and not _is_odd(dtype) for dtype in written)
        # Compilers widen by more than twice element by element.
        and all(2 * ITEMSIZES[plane.dtype] >= size for plane in buffers.planes)
        and all(_is_uniform(value, size, narrowed) for value in _values(bound))
        and all(_size(dtype) == size for dtype in (*sums, *(a.dtype for a in accumulators)))
        and (size == 8 or not body.traps)
        and all(
            load in buffers.places or _size(load.dtype) == size or is_constant(load) or _is_row(move(load))
            for load in _loads(bound)
        )
    )
    return vector_bytes // size if fits else 0


def _values(bound: BoundNest) -> Iterator[t.Typed]:
    """All that is computed; where an extremum was found is known from the step."""
    for statement in t.all_statements(bound.body.statements):
        if isinstance(statement, t.TypedAccumulate):
            yield statement.value
            yield from (value for _, value in statement.payload if not isinstance(value, t.Index))
        else:
            yield from t.own_values(statement)


def _is_narrowed(load: t.Load, size: int, move: Move) -> bool:
    """Whether it is one of integers in a row that are wider than all else, as those of sequences mostly are."""
    return load.dtype == "int64" and size == 4 and _is_row(move(load)) and not is_constant(load)


def is_constant(load: t.Load) -> bool:
    """Whether it is the same element in every iteration, which cannot raise."""
    return all(
        s.trap is None and is_invariant(s.index) if isinstance(s, t.LookupSubscript) else not s.affine.names
        for s in load.subscripts
    )


def _is_row(move: tuple[int, int] | None) -> bool:
    """Whether elements follow one another from lane to lane, forwards or backwards, and stay near from step to step."""
    return move is not None and abs(move[0]) == 1 and abs(move[1]) <= 1


def _is_odd(dtype: str) -> bool:
    return dtype.startswith("complex") or dtype == "bool"


def _size(dtype: str) -> int:
    return ITEMSIZES.get(dtype, 0)


def _loads(bound: BoundNest) -> list[t.Load]:
    return list(dict.fromkeys(n for value in _values(bound) for n in t.walk(value) if isinstance(n, t.Load)))


def _is_uniform(node: t.Typed, size: int, narrowed: frozenset[t.Load]) -> bool:
    """Whether all that is computed has elements of one size. Narrower ones are widened when they are loaded, and of wider
    ones some may be ``narrowed``, which are compared and nothing else."""

    def is_wide(operand: t.Typed) -> bool:
        return isinstance(operand, t.Load) or operand.dtype == "bool" or _size(operand.dtype) == size

    match node:
        case _ if is_invariant(node):
            return True
        case t.Load(dtype=dtype, subscripts=subscripts):
            indices = [s.index for s in subscripts if isinstance(s, t.LookupSubscript)]
            # There is one size of indices, too.
            known = all(map(is_invariant, indices)) or (
                size == 8 and all(_is_uniform(i, size, narrowed) for i in indices)
            )
            return known and 0 < _size(dtype) <= size and not dtype.startswith("complex")
        case t.Local(dtype=dtype) | t.Index(dtype=dtype):
            return dtype == "bool" or _size(dtype) == size
        case t.Operation(operator="==" | "!=" | "<" | "<=" | ">" | ">=", operands=operands) if all(
            o in narrowed for o in operands
        ):
            return True
        case t.Convert(dtype=dtype, operand=operand, trap=None):
            return is_wide(operand) and _size(dtype) == size and _is_uniform(operand, size, narrowed)
        case t.Operation(dtype=dtype, operator=operator, operands=operands):
            known = operator in _OPERATORS and not t.is_numpy_loop(node)
            fits = known and all(map(is_wide, operands)) and (dtype == "bool" or _size(dtype) == size)
        case t.Select(dtype=dtype):
            fits = _size(dtype) == size
        case _:
            return False
    return fits and all(_is_uniform(child, size, narrowed) for child in t.children(node))


@dataclass(frozen=True)
class Mask:
    """Which lanes of a vector are at work. C texts: ``test`` of one lane, whose place from the first one on is inserted;
    ``some``, if it may be none of them, of the first lane and of that after the last one."""

    test: str
    some: str = ""


class VectorSteps:
    """The lanes of a block from the first one at work on, as vectors of ``width`` lanes."""

    def __init__(
        self,
        bound: BoundNest,
        buffers: Buffers,
        names: Names,
        c: PairNames,
        width: int,
        move: Move,
        accumulators: Sequence[Accumulator],
    ) -> None:
        self.buffers, self.c, self._names, self.width = buffers, c, names, width
        self._accumulators = accumulators
        self.count = TRANSPOSED_LANES // width
        self._written = [k for k, plane in enumerate(buffers.planes) if plane.written]
        self._size = ITEMSIZES[buffers.planes[self._written[0]].dtype]
        # Elements of arrays that are no planes: the direction from lane to lane, and how many lanes they move on in a step.
        self._rows: dict[t.Load, tuple[int, int]] = {}
        for load in _loads(bound):
            moves = move(load)
            if load not in buffers.places and moves is not None and _is_row(moves):
                self._rows[load] = moves[0], moves[0] * moves[1]

    # -- what the loop body sees ---------------------------------------------------------------------------------------

    def elements(self) -> dict[t.Load, str]:
        """What stands for the elements in the loop body."""
        lane = self.c.lane
        found = {load: f"{self._row(load)}[{lane}]" for load in self._rows}
        for load, (number, offset) in self.buffers.places.items():
            pointer, across = self._source(number, offset)
            found[load] = f"{pointer}[{lane if not across else f'{lane} {signed(across)}'}]"
        return found

    def parameters(self) -> list[tuple[str, str]]:
        """Of the loop body's function: pointers to lane 0 of a vector's, and the lane in the vector."""
        found = {}
        for number, offset in self.buffers.places.values():
            name, _ = self._source(number, offset)
            const = "" if self._is_now(number, offset) else "const "
            found[name] = f"{const}{self._c_type(self.buffers.planes[number].dtype)} *restrict {name}"
        for load in self._rows:
            found[self._row(load)] = f"const {self._c_type(load.dtype)} *restrict {self._row(load)}"
        return [*((declared, name) for name, declared in found.items()), (f"int64_t {self.c.lane}", self.c.lane)]

    def _source(self, number: int, offset: Offset) -> tuple[str, int]:
        """What an element is taken from, and how many lanes further down."""
        when, across = distance(offset), offset[0]
        at = self.buffers.at(number, when)
        if across and (self._is_held(number, when) or self._is_widened(number)):
            return self._names.get(
                ("shifted", at, across), f"{at}_{abs(across)}_{'above' if across < 0 else 'below'}"
            ), 0
        return at, across

    def _row(self, load: t.Load) -> str:
        return self._names.get(("row of", load), f"{load.array}_here")

    def _is_held(self, number: int, when: Distance) -> bool:
        """Whether what was written at a step is in a register."""
        return self.buffers.planes[number].written and when[0] == 0 and when[1] < 0

    def _is_now(self, number: int, offset: Offset) -> bool:
        return self.buffers.planes[number].written and offset == (0, 0, 0)

    def _is_widened(self, number: int) -> bool:
        return ITEMSIZES[self.buffers.planes[number].dtype] < self._size

    def _c_type(self, dtype: str) -> str:
        """The type that elements are widened to."""
        if ITEMSIZES[dtype] == self._size:
            return C_TYPES[dtype]
        return "double" if dtype == "float32" else C_TYPES[_WIDE[self._size]]

    # -- types -----------------------------------------------------------------------------------------------------------

    def types(self) -> Iterator[str]:
        """The types of vectors, and of the same anywhere in memory."""
        dtypes = [*(plane.dtype for plane in self.buffers.planes), *(a.dtype for a in self._accumulators)]
        c_types = {self._memory_type(dtype): ITEMSIZES[dtype] for dtype in dtypes}
        c_types |= {self._c_type(dtype): self._size for dtype in dtypes}
        for c_type, size in c_types.items():
            bytes_ = self.width * size
            yield f"typedef {c_type} {self._type(c_type)} __attribute__((vector_size({bytes_})));"
            anywhere = f"vector_size({bytes_}), aligned({size}), may_alias"
            yield f"typedef {c_type} {self._type(c_type, '_anywhere')} __attribute__(({anywhere}));"

        if self._shifts:
            places = C_TYPES[_WIDE[self._size]]
            yield f"typedef {places} {self._order} __attribute__((vector_size({self.width * self._size})));"

    @property
    def _order(self) -> str:
        """The type of places in vectors."""
        return self._names.get("vector of places", "vector_of_places")

    def _memory_type(self, dtype: str) -> str:
        """The type of elements in memory; there are no vectors of bools."""
        return "uint8_t" if dtype == "bool" else C_TYPES[dtype]

    def _type(self, c_type: str, suffix: str = "") -> str:
        return self._names.get(("vector of", c_type, suffix), f"vector_of_{c_type.removesuffix('_t')}{suffix}")

    def _vector(self, dtype: str) -> str:
        return self._type(self._c_type(dtype))

    def _variable(self, name: str, k: int) -> str:
        return self._names.get(("vector", name, k), f"{name}_{k}")

    # -- a step ------------------------------------------------------------------------------------------------------------

    def last_steps(self) -> Iterator[str]:
        """Before the first step: what is kept of the steps before it."""
        yield f"/* {self.count} vectors of {self.width} lanes; those of the last steps are kept. */"
        for number in self._written:
            for ago in self._kept(number):
                here = self.buffers.lane_0_at(number, (0, -ago))
                yield from self._loaded(number, self.buffers.at(number, (0, -ago)), here)
        for a in self._accumulators:
            for k in range(self.count):
                load = self._load(a.dtype, a.lanes, k, MARGIN)
                yield f"{self._vector(a.dtype)} {self._variable(a.lanes, k)} = {load};"

    def brought_back(self) -> Iterator[str]:
        """After the last step: what the lanes have brought together."""
        for a in self._accumulators:
            for k in range(self.count):
                at = plus(self.c.starts_at, k * self.width + MARGIN)
                anywhere = self._type(C_TYPES[a.dtype], "_anywhere")
                yield f"*({anywhere} *)({a.lanes} + {at}) = {self._variable(a.lanes, k)};"

    def step(self, lines: Lines, point: Point, masks: Mapping[int, Mask]) -> None:
        """One step. masks: of a vector by its number, which lanes are at work; none where all are."""
        lane = self.c.lane
        lines.add(*self._beginning())
        for k in range(self.count):
            at, places = k * self.width, self._places(k)
            mask = masks.get(k)
            if mask:
                if mask.some:
                    lines.open(f"if ({mask.some.format(at, at + self.width)}) {{")
                lines.add(*self._copies(k))
                places |= {self._now(n): self._pointer(n, self._new(n), k, const=False) for n in self._written}
                places |= {a.argument: self._lane_of(a, self._new_of(a), k) for a in self._accumulators}
            lines.add("#pragma omp simd")
            lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
            lines.add(*point(plus(self.c.starts_at, at), places))
            lines.close()
            if mask:
                self._select(lines, k, mask.test.format(f"({self.lane_type})({plus(lane, at)})"))
                if mask.some:
                    lines.close()
        lines.add(*self._end())

    def row_declarations(self, moving: bool) -> Iterator[str]:
        """moving: of rows whose elements go from lane to lane, or of those that stay."""
        for load, (_, shift) in self._some_rows(moving):
            low, high = self._row_range(shift)
            yield f"{self._c_type(load.dtype)} {self._kept_row(load)}[{high - low}];"

    def copied_rows(self, moving: bool, element: Callable[[t.Load], tuple[str, str, str]], fits: str) -> Iterator[str]:
        """The elements of rows that lanes want in the steps of a group, or in all steps, as far as there are such. element: at
        the indices of lane 0, the C texts of one, of its place along the last axis and of that axis' length. fits: the C variable
        that becomes false where an element is too large for its vector."""
        lane = self.c.lane
        for load, (direction, shift) in self._some_rows(moving):
            here, index, extent = element(load)
            low, high = self._row_range(shift)
            first, beyond = (plus(self.c.starts_at if moving else "", end) for end in (low, high))
            ends = (f"-({index})", f"{extent} - ({index})")
            if direction < 0:
                ends = (f"({index}) - {extent} + 1", f"({index}) + 1")
            row, kept = self._row(load), self._kept_row(load)
            element_here = f"{row}[{'-' if direction < 0 else ''}{lane}]"
            copy = f"{kept}[{lane}] = {element_here};"
            if self._is_narrowed(load):
                kept_type = self._c_type(load.dtype)
                copy = f"{{ {copy} {fits} &= {element_here} == ({kept_type}){element_here}; }}"
            yield f"const {C_TYPES[load.dtype]} *const {row} = &{here} {'-' if direction < 0 else '+'} ({first});"
            yield f"if ({ends[0]} <= {first} && {beyond} <= {ends[1]})"
            yield f"    for (int64_t {lane} = 0; {lane} < {high - low}; ++{lane}) {copy}"
            yield "else"
            some = f"lw_max_i64({first}, {ends[0]})", f"lw_min_i64({beyond}, {ends[1]})"
            yield f"    for (int64_t {lane} = {some[0]} - ({first}); {lane} < {some[1]} - ({first}); ++{lane})"
            yield f"        {copy}"

    @property
    def narrows(self) -> bool:
        """Whether there are rows whose elements may be too large for their vectors."""
        return any(map(self._is_narrowed, self._rows))

    def _is_narrowed(self, load: t.Load) -> bool:
        return ITEMSIZES[load.dtype] > self._size

    def has_rows(self, moving: bool) -> bool:
        return bool(self._some_rows(moving))

    def _some_rows(self, moving: bool) -> list[tuple[t.Load, tuple[int, int]]]:
        return [(load, moves) for load, moves in self._rows.items() if moving == bool(moves[1])]

    def _row_range(self, shift: int) -> tuple[int, int]:
        """From and until which lane the elements of a row are wanted: in the steps of a group, from the first lane at work on;
        where they stay with the lanes, in all of a block."""
        if not shift:
            return -MARGIN, TRANSPOSED_LANES + MARGIN
        moved = shift * (COPIED_STEPS - 1)
        return min(0, moved), TRANSPOSED_LANES + max(0, moved)

    def _kept_row(self, load: t.Load) -> str:
        return self._names.get(("kept row", load), f"{load.array}_lanes")

    def _rows_at_step(self) -> Iterator[str]:
        """Pointers to the first lane's elements."""
        for load, (_, shift) in self._rows.items():
            low, _ = self._row_range(shift)
            since = f"({self.c.step} - {self.c.first})"
            here = plus(self._kept_row(load), -low)
            if shift == 0:
                here = f"{here} + {self.c.starts_at}"
            else:
                here = f"{here} - {since}" if shift < 0 else f"{here} + {since}"
            yield f"const {self._c_type(load.dtype)} *const {self._row(load)} = {here};"

    @property
    def lane_type(self) -> str:
        """The type in which lanes are compared: of the size of elements, for which there are as many in a vector."""
        return C_TYPES[_WIDE[self._size]]

    def _now(self, number: int) -> str:
        return self.buffers.at(number, (0, 0))

    def _new(self, number: int) -> str:
        return self._names.get(("new", number), f"{self.buffers.planes[number].array}_new")

    def _ago(self, number: int) -> list[int]:
        """How many steps ago that was what is wanted of a plane's vectors."""
        return sorted(-when[1] for when in self.buffers.times(number) if self._is_held(number, when))

    def _kept(self, number: int) -> range:
        """So many steps ago vectors were written that are kept."""
        return range(1, 1 + min(_KEPT, max(self._ago(number), default=0)))

    @cached_property
    def _shifts(self) -> list[tuple[int, Offset]]:
        """The elements of other lanes in registers."""
        places = dict.fromkeys(self.buffers.places.values())
        return [(n, o) for n, o in places if o[0] and self._is_held(n, distance(o))]

    def _loaded(self, number: int, name: str, pointer: str, const: str = "") -> Iterator[str]:
        dtype = self.buffers.planes[number].dtype
        for k in range(self.count):
            yield f"{const}{self._vector(dtype)} {self._variable(name, k)} = {self._load(dtype, pointer, k)};"

    def _load(self, dtype: str, pointer: str, k: int, across: int = 0) -> str:
        at = plus(self.c.starts_at, k * self.width + across)
        anywhere = self._type(self._memory_type(dtype), "_anywhere")
        text = f"*(const {anywhere} *)({pointer} + {at})"
        return text if ITEMSIZES[dtype] == self._size else f"__builtin_convertvector({text}, {self._vector(dtype)})"

    def _beginning(self) -> Iterator[str]:
        """The vectors that a step begins with."""
        for number in self._written:
            now = self._now(number)
            yield from self._loaded(number, now, now)
            for ago in self._ago(number):
                then = self.buffers.at(number, (0, -ago))
                if ago not in self._kept(number):
                    yield from self._loaded(number, then, then, "const ")
                yield from self._edge(number, (0, -ago))
        for number, offset in self._shifts:
            yield from self._shifted(number, offset)
        for number, offset in dict.fromkeys(self.buffers.places.values()):
            if self._is_widened(number):
                name, _ = self._source(number, offset)
                dtype, pointer = self.buffers.planes[number].dtype, self.buffers.at(number, distance(offset))
                for k in range(self.count):
                    load = self._load(dtype, pointer, k, offset[0])
                    yield f"const {self._vector(dtype)} {self._variable(name, k)} = {load};"
        yield from self._rows_at_step()

    def _shifted(self, number: int, offset: Offset) -> Iterator[str]:
        """What lanes further up wrote: the last elements of one vector, and the first ones of the next."""
        then = self.buffers.at(number, distance(offset))
        vector, (shifted, _) = self._vector(self.buffers.planes[number].dtype), self._source(number, offset)
        order = ", ".join(str(self.width + offset[0] + lane) for lane in range(self.width))
        for k in range(self.count):
            above = self._variable(then, k - 1) if k else self._edge_name(then)
            vectors = f"{above}, {self._variable(then, k)}"
            yield f"const {vector} {self._variable(shifted, k)} = LW_SHUFFLE({self._order}, {vectors}, {order});"

    def _edge(self, number: int, when: Distance) -> Iterator[str]:
        """The lanes above the first one, at the end of a vector."""
        across = [-offset[0] for n, offset in self._shifts if n == number and distance(offset) == when]
        if not across:
            return
        then = self.buffers.at(number, when)
        edge = self._edge_name(then)
        yield f"{self._vector(self.buffers.planes[number].dtype)} {edge} = {{0}};"
        for lane in range(1, max(across) + 1):
            yield f"{edge}[{self.width - lane}] = {then}[{self.c.starts_at} - {lane}];"

    def _edge_name(self, then: str) -> str:
        return self._names.get(("edge", then), f"{then}_above")

    def _places(self, k: int) -> dict[str, str]:
        """Where the elements of a vector are, by the loop body's names for them."""
        buffers, places = self.buffers, {}
        for number, offset in buffers.places.values():
            name, _ = self._source(number, offset)
            if self._is_now(number, offset):
                places[name] = self._pointer(number, name, k, const=False)
            elif self._is_held(number, distance(offset)) or self._is_widened(number):
                places[name] = self._pointer(number, name, k)
            else:
                places[name] = f"{name} + {plus(self.c.starts_at, k * self.width)}"
        for load in self._rows:
            places[self._row(load)] = plus(self._row(load), k * self.width)
        places |= {a.argument: self._lane_of(a, a.lanes, k) for a in self._accumulators}
        return places

    def _pointer(self, number: int, vectors: str, k: int, const: bool = True) -> str:
        c_type = self._c_type(self.buffers.planes[number].dtype)
        return f"({'const ' if const else ''}{c_type} *)&{self._variable(vectors, k)}"

    def _lane_of(self, accumulator: Accumulator, vectors: str, k: int) -> str:
        return f"({C_TYPES[accumulator.dtype]} *)&{self._variable(vectors, k)} + {self.c.lane}"

    def _new_of(self, accumulator: Accumulator) -> str:
        return self._names.get(("new", accumulator), f"{accumulator.lanes}_new")

    def _copies(self, k: int) -> Iterator[str]:
        for number in self._written:
            vector = self._vector(self.buffers.planes[number].dtype)
            yield f"{vector} {self._variable(self._new(number), k)} = {self._variable(self._now(number), k)};"
        for a in self._accumulators:
            yield f"{self._vector(a.dtype)} {self._variable(self._new_of(a), k)} = {self._variable(a.lanes, k)};"

    def _select(self, lines: Lines, k: int, test: str) -> None:
        """Takes what was computed where a lane is at work."""
        lane = self.c.lane
        lines.add("#pragma omp simd")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
        pairs = [
            *((self._now(n), self._new(n)) for n in self._written),
            *((a.lanes, self._new_of(a)) for a in self._accumulators),
        ]
        for now, new in ((self._variable(name, k) for name in pair) for pair in pairs):
            lines.add(f"{now}[{lane}] = {test} ? {new}[{lane}] : {now}[{lane}];")
        lines.close()

    def _end(self) -> Iterator[str]:
        """At the end of a step: everything into the buffers, and each step kept is one further back."""
        for number in self._written:
            now = self._now(number)
            anywhere = self._type(C_TYPES[self.buffers.planes[number].dtype], "_anywhere")
            for k in range(self.count):
                at = plus(self.c.starts_at, k * self.width)
                yield f"*({anywhere} *)({now} + {at}) = {self._variable(now, k)};"
            for ago in reversed(self._kept(number)):
                older, newer = (self.buffers.at(number, (0, -steps)) for steps in (ago, ago - 1))
                for k in range(self.count):
                    yield f"{self._variable(older, k)} = {self._variable(newer, k)};"
