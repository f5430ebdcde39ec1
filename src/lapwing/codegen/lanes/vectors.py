"""The steps of a block of rows in vector registers, in C: what the last steps wrote stays there for the next ones.

A lane reads what the lane above it wrote a step ago. In memory that is a vector which two stores have written together, and the
core has to wait until both have left its store buffer. So the vectors that were written are kept in variables, and the elements
of the lanes above are shifted in from the neighbouring vector; those of the first lane come from memory, where they have been for
long.

Vectors are those of the compiler (``vector_size``). The loop body stays the scalar function that it is: a loop over the lanes of
a vector calls it, and the compiler makes vector operations of it. Compilers take the size of vectors from the smallest elements
in a loop, so elements are widened when they are loaded (those that lie in no buffer by ``codegen.lanes.lane_rows``) and narrowed
when they are stored, and a body whose values cannot have one size (``codegen.body.widening``) is left alone
(``codegen.lanes.vector_bodies``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.codegen.body.expression import C_TYPES
from lapwing.codegen.body.names import Names, PairNames
from lapwing.codegen.body.text import Lines, plus, signed
from lapwing.codegen.body.widening import WIDE
from lapwing.codegen.lanes.buffers import Buffers
from lapwing.codegen.lanes.images import ImageRegisters, Value
from lapwing.codegen.lanes.lane_rows import PROFILE, LaneProfiles, LaneRows
from lapwing.codegen.lanes.vector_bodies import Accumulator, Move, Profile, Reciprocals, loads_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.transposed import ITEMSIZES, KEPT_STEPS, MARGIN, Distance, Offset, distance

# Of the lanes that the last rows have more than a block so many are in vectors.
_MORE_LANES = 8
# Of so many vectors those are skipped one by one in which no lane is at work, and not by halves.
_FEW_VECTORS = 4
# Gives the statements at the lanes from one on that lie in a vector: that first lane, and what stands for elements.
Point = Callable[[str, Mapping[str, str]], Iterator[str]]


@dataclass(frozen=True)
class Mask:
    """Which lanes of a vector are at work. C texts: ``test`` of one lane, whose place from the first one on is inserted;
    ``some``, if it may be none of them, of the first lane and of that after the last one."""

    test: str
    some: str = ""


class VectorSteps(ImageRegisters):
    """The lanes of a block from the first one at work on, as vectors of ``width`` lanes."""

    def __init__(
        self,
        bound: BoundNest,
        buffers: Buffers,
        names: Names,
        c: PairNames,
        size: int,
        width: int,
        move: Move,
        accumulators: Sequence[Accumulator],
        value: Value,
        is_same: Callable[[t.Load], bool],
        profiles: Sequence[Profile] = (),
        kind: str = "",
    ) -> None:
        """size: bytes of every value; is_same: of elements that lie in no buffer, whether all blocks of rows go through the
        same; kind: what the names of types begin with, where a module has other vectors, too."""
        super().__init__(bound, buffers, names, c, size, width, value, kind)
        self._accumulators = accumulators
        self.profiles = LaneProfiles(profiles, move, buffers, names, c)
        loads = [load for load in loads_of(bound, self.profiles.elements) if load not in buffers.places]
        self.rows = LaneRows(loads, move, is_same, self._size, buffers.lanes, names, c)
        self.reciprocals = Reciprocals(bound, names, c.lane)
        self._bare = loads_of(bound, {**self._imaged, **self._rooted})
        # Nothing but what was written goes from step to step, so that some of the vectors may be computed without the others.
        self.is_simple = not (self.reciprocals or self._imaged or self._rooted)
        # Of few vectors each has a branch of its own.
        self.takes_halves = self.is_simple and self.count > _FEW_VECTORS
        keeps_lanes = accumulators or next(iter(self.rows), None) is not None
        self.extra = 0 if keeps_lanes or not self.is_simple else self._extra_vectors()

    def _extra_vectors(self) -> int:
        """How many more vectors there are for the last rows, where each sweep has ``shift`` lanes more than the one before; none
        where buffers have no room for what all their lanes would load."""
        shift = self.buffers.shift
        extra = -(-min(shift * (self.buffers.sweeps - 1), _MORE_LANES) // self.width)
        below = max(plane.lanes[1] for plane in self.buffers.planes)
        beyond = self.buffers.lanes + extra * self.width - shift + below
        return extra if beyond <= self.buffers.width - MARGIN else 0

    # -- what the loop body sees -----------------------------------------------------------------------------------------

    def elements(self) -> dict[t.Load, str]:
        """What stands for the elements in the loop body."""
        lane = self.c.lane
        found = {load: f"{self.rows.name(load)}[{lane}]" for load in self.rows}
        found |= {p.element: f"{self.profiles.name(p)}[{lane}]" for p in self.profiles}
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
        for load in self.rows:
            found[self.rows.name(load)] = f"const {C_TYPES[self.rows.dtype(load)]} *restrict {self.rows.name(load)}"
        for image, offset in self._imaged.values():
            name = self._image(image, offset)
            found[name] = f"const {C_TYPES[image.value.dtype]} *restrict {name}"
        for load in self._rooted.values():
            found[self._root(load)] = f"const float *restrict {self._root(load)}"
        found |= {name: declared for declared, name in self.reciprocals.parameters()}
        for name in map(self.profiles.name, self.profiles):
            found[name] = f"const {self._c_type(PROFILE)} *restrict {name}"
        return [*((declared, name) for name, declared in found.items()), (f"int64_t {self.c.lane}", self.c.lane)]

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
        for load in self.rows:
            places[self.rows.name(load)] = plus(self.rows.name(load), k * self.width)
        for image, offset in self._imaged.values():
            name = self._image(image, offset)
            places[name] = f"(const {C_TYPES[image.value.dtype]} *)&{self._variable(name, k)}"
        places |= {
            name: f"(const float *)&{self._variable(name, k)}" for name in map(self._root, self._rooted.values())
        }
        for name in map(self.profiles.name, self.profiles):
            places[name] = f"(const {self._c_type(PROFILE)} *)&{self._variable(name, k)}"
        places |= {a.argument: self._lane_of(a, a.lanes, k) for a in self._accumulators}
        if self.reciprocals:
            places[self.reciprocals.doubt] = f"({self.reciprocals.c_type} *)&{self.reciprocals.doubt}"
        return places

    def _lane_of(self, accumulator: Accumulator, vectors: str, k: int) -> str:
        return f"({C_TYPES[accumulator.dtype]} *)&{self._variable(vectors, k)} + {self.c.lane}"

    # -- before the loops ------------------------------------------------------------------------------------------------

    def types(self) -> Iterator[str]:
        """The types of vectors, and of the same anywhere in memory."""
        dtypes = [*(plane.dtype for plane in self.buffers.planes), *(a.dtype for a in self._accumulators)]
        dtypes += [image.value.dtype for image in self._images]
        dtypes += [PROFILE] if self.profiles.elements else []
        c_types = {
            C_TYPES[other]: ITEMSIZES[other] for dtype in dtypes for other in self._between(self._memory_type(dtype))
        }
        c_types |= {self._memory_c_type(dtype): ITEMSIZES[dtype] for dtype in dtypes}
        c_types |= {self._c_type(dtype): self._size for dtype in dtypes}
        for c_type, size in c_types.items():
            bytes_ = self.width * size
            yield f"typedef {c_type} {self._type(c_type)} __attribute__((vector_size({bytes_})));"
            anywhere = f"vector_size({bytes_}), aligned({size}), may_alias"
            yield f"typedef {c_type} {self._type(c_type, '_anywhere')} __attribute__(({anywhere}));"

        if self.reciprocals:
            c_type, bytes_ = self.reciprocals.c_type, self.width * self._size
            yield f"typedef {c_type} {self._type(c_type)} __attribute__((vector_size({bytes_})));"
        if self._shifts or any(offset[0] for _, offset in self._imaged.values()):
            places = C_TYPES[WIDE[self._size]]
            yield f"typedef {places} {self._order} __attribute__((vector_size({self.width * self._size})));"

    @property
    def is_correctly_rounding(self) -> bool:
        """Whether the loops take what ``correctly_rounded.h`` has."""
        return bool(self.reciprocals or self._rooted)

    def prepared(self, text: Callable[[t.Typed], str]) -> Iterator[str]:
        """What is found out before the loops. text: the C text of an expression."""
        yield from self.reciprocals.declarations(text)
        if self._rooted:
            yield f"const bool {self._fits} = lw_roots_fit();"

    # -- a step ----------------------------------------------------------------------------------------------------------

    @property
    def more(self) -> range:
        """The numbers of all vectors, those of the lanes that there are more at the last rows among them."""
        return range(self.count + self.extra)

    def last_steps(self, vectors: range | None = None) -> Iterator[str]:
        """Before the first step: what is kept of the steps before it."""
        vectors = vectors or range(self.count)
        yield f"/* {len(vectors)} vectors of {self.width} lanes; those of the last steps are kept. */"
        for number in self._written:
            for ago in self._kept(number):
                here = self.buffers.lane_0_at(number, (0, -ago))
                yield from self._loaded(number, self.buffers.at(number, (0, -ago)), here, vectors)
        for number, offset in self._kept_shifts:
            (shifted, _), here = self._source(number, offset), self.buffers.lane_0_at(number, distance(offset))
            yield from self._loaded(number, shifted, here, vectors, across=offset[0])
        for image in self._images:
            for ago in self._imaged_steps(image):
                yield from self._computed(image, ago, some=True, declares=True)
        for a in self._accumulators:
            for k in vectors:
                load = self._load(a.dtype, a.lanes, k, MARGIN)
                yield f"{self._vector(a.dtype)} {self._variable(a.lanes, k)} = {load};"

    def brought_back(self) -> Iterator[str]:
        """After the last step: what the lanes have brought together."""
        for a in self._accumulators:
            for k in range(self.count):
                at = plus(self.c.starts_at, k * self.width + MARGIN)
                anywhere = self._type(C_TYPES[a.dtype], "_anywhere")
                yield f"*({anywhere} *)({a.lanes} + {at}) = {self._variable(a.lanes, k)};"

    def step(
        self,
        lines: Lines,
        point: Point,
        masks: Mapping[int, Mask],
        by_divider: Point,
        vectors: range | None = None,
    ) -> None:
        """One step. masks: of a vector by its number, which lanes are at work; none where all are. by_divider: the loop body
        with the core's divider, for the steps in which a quotient is in doubt. vectors: the numbers of those with lanes at
        work, if they may be others (``is_simple``); all of a block's, where they are not given."""
        vectors = vectors or range(self.count)
        lines.add(*self._beginning(vectors))
        found = self.reciprocals
        if found:
            lines.add(*(f"const {self._vector(a.dtype)} {self._old(a, k)} = {own};" for a, k, own in self._brought()))
            lines.add(f"{self._type(found.c_type)} {found.doubt} = {{0}};")
            lines.add("/* Quotients are products; where one is in doubt the step is computed once more. */")
            lines.open(f"if ({found.quick}) {{")
        for k in vectors:
            self._lanes(lines, point, k, masks.get(k))
        if found:
            lines.close()
            lines.open(f"if ({found.in_doubt(self.width)}) {{")
            self._once_more(lines, by_divider, masks)
            lines.close()
        lines.add(*self._end(any(mask.some for mask in masks.values()), vectors))

    def _beginning(self, vectors: range) -> Iterator[str]:
        """The vectors that a step begins with."""
        for number in self._written:
            now = self._now(number)
            yield from self._loaded(number, now, now, vectors)
            for ago in self._wanted(number):
                then = self.buffers.at(number, (0, -ago))
                if ago not in self._kept(number):
                    yield from self._loaded(number, then, then, vectors, "const ")
                yield from self._edge(number, (0, -ago), vectors.start)
        for number, offset in self._new_shifts:
            yield from self._shifted(number, offset, vectors)
        for image, offset in dict.fromkeys(self._imaged.values()):
            if offset[0]:
                yield from self._shifted_image(image, offset)
        for number, offset in dict.fromkeys(self.buffers.places.values()):
            is_there = self._is_now(number, offset) or self._is_held(number, distance(offset))
            if self._is_widened(number) and not is_there:
                name, _ = self._source(number, offset)
                dtype, pointer = self.buffers.planes[number].dtype, self.buffers.at(number, distance(offset))
                for k in vectors:
                    load = self._load(dtype, pointer, k, offset[0])
                    yield f"const {self._vector(dtype)} {self._variable(name, k)} = {load};"
        for profile in self.profiles:
            name, pointer = self.profiles.name(profile), self.profiles.at_step(profile)
            for k in range(self.count):
                yield f"const {self._vector(PROFILE)} {self._variable(name, k)} = {self._load(PROFILE, pointer, k)};"
        yield from self.rows.at_step()

    def _lanes(self, lines: Lines, point: Point, k: int, mask: Mask | None) -> None:
        """The loop body in the lanes of a vector."""
        lane, at, places = self.c.lane, k * self.width, self._places(k)
        if mask:
            if mask.some:
                lines.open(f"if ({mask.some.format(at, at + self.width)}) {{")
            lines.add(*self._copies(k))
            places |= {self._now(n): self._pointer(n, self._new(n), k, const=False) for n in self._written}
            places |= {a.argument: self._lane_of(a, self._new_of(a), k) for a in self._accumulators}
        lines.add(*self._roots(k))
        lines.add("#pragma omp simd")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
        lines.add(*point(plus(self.c.starts_at, at), places))
        lines.close()
        if mask:
            self._select(lines, k, mask)
            if mask.some:
                lines.close()

    def _end(self, some: bool, vectors: range) -> Iterator[str]:
        """At the end of a step: everything into the buffers, and each step kept is one further back. some: whether some of the
        vectors may be beyond all lanes of the block."""
        for number, offset in self._kept_shifts:
            older, newer = (self._source(number, place)[0] for place in (offset, _a_step_later(offset)))
            for k in vectors:
                yield f"{self._variable(older, k)} = {self._variable(newer, k)};"
        for number in self._written:
            now, dtype = self._now(number), self.buffers.planes[number].dtype
            for k in vectors:
                at = plus(self.c.starts_at, k * self.width)
                yield self._store(dtype, f"{now} + {at}", self._variable(now, k))
            for ago in reversed(self._kept(number)):
                older, newer = (self.buffers.at(number, (0, -steps)) for steps in (ago, ago - 1))
                for k in vectors:
                    yield f"{self._variable(older, k)} = {self._variable(newer, k)};"
        for image in self._images:
            for ago in reversed(self._imaged_steps(image)):
                if ago == 1:
                    yield from self._computed(image, ago, some)
                    continue
                older, newer = (self._image(image, (0, -steps, 0)) for steps in (ago, ago - 1))
                for k in range(self.count):
                    yield f"{self._variable(older, k)} = {self._variable(newer, k)};"

    # -- lanes that are at work ------------------------------------------------------------------------------------------

    def _copies(self, k: int) -> Iterator[str]:
        for number in self._written:
            vector = self._vector(self.buffers.planes[number].dtype)
            yield f"{vector} {self._variable(self._new(number), k)} = {self._variable(self._now(number), k)};"
        for a in self._accumulators:
            yield f"{self._vector(a.dtype)} {self._variable(self._new_of(a), k)} = {self._variable(a.lanes, k)};"

    def _select(self, lines: Lines, k: int, mask: Mask) -> None:
        """Takes what was computed where a lane is at work."""
        lane = self.c.lane
        test = mask.test.format(f"({self.lane_type})({plus(lane, k * self.width)})")
        lines.add("#pragma omp simd")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
        pairs = [
            *((self._now(n), self._new(n)) for n in self._written),
            *((a.lanes, self._new_of(a)) for a in self._accumulators),
        ]
        for now, new in ((self._variable(name, k) for name in pair) for pair in pairs):
            lines.add(f"{now}[{lane}] = ({test}) ? {new}[{lane}] : {now}[{lane}];")
        lines.close()

    def _new(self, number: int) -> str:
        return self._names.get(("new", number), f"{self.buffers.planes[number].array}_new")

    def _new_of(self, accumulator: Accumulator) -> str:
        return self._names.get(("new", accumulator), f"{accumulator.lanes}_new")

    # -- with the divider ------------------------------------------------------------------------------------------------

    def _once_more(self, lines: Lines, by_divider: Point, masks: Mapping[int, Mask]) -> None:
        """The step in the buffers, from what is there: nothing of it has been stored yet, and registers keep nothing for it."""
        lane, block = self.c.lane, self._names.get("block of lanes", "at")
        for number in self._written:
            now = self._now(number)
            for k in masks:
                lines.add(f"{self._variable(now, k)} = {self._load(self.buffers.planes[number].dtype, now, k)};")
        for a, k, own in self._brought():
            there = plus(self.c.starts_at, k * self.width + MARGIN)
            lines.add(f"{own} = {self._old(a, k)};")
            lines.add(f"*({self._type(C_TYPES[a.dtype], '_anywhere')} *)({a.lanes} + {there}) = {own};")
        beyond = f"{self.c.starts_at} + {self.buffers.lanes}"
        lines.open(f"for (int64_t {block} = {self.c.starts_at}; {block} < {beyond}; {block} += {self.width}) {{")
        places, narrowed = {}, []
        for number, offset in dict.fromkeys(self.buffers.places.values()):
            (name, across), dtype = self._source(number, offset), self.buffers.planes[number].dtype
            there = f"{self.buffers.at(number, distance(offset))} + {plus(block, offset[0] - across)}"
            if self._is_widened(number):
                wide = self._names.get(("wide", name), f"{name}_wide")
                const = "" if self._is_now(number, offset) else "const "
                lines.add(f"{const}{self._vector(dtype)} {wide} = {self._loaded_from(dtype, there)};")
                if not const:
                    narrowed.append(self._store(dtype, there, wide))
                there = f"({const}{self._c_type(dtype)} *)&{wide}"
            places[name] = there
        for load in self.rows:
            places[self.rows.name(load)] = f"{self.rows.name(load)} + {block} - {self.c.starts_at}"
        for a in self._accumulators:
            places[a.argument] = f"{a.lanes} + {plus(block, MARGIN)} + {lane}"
        lines.add("#pragma omp simd")
        lines.open(f"for (int64_t {lane} = 0; {lane} < {self.width}; ++{lane}) {{")
        lines.add(*by_divider(block, places))
        lines.close()
        lines.add(*narrowed)
        lines.close()
        for k in range(self.count):
            mask = masks.get(k)
            for number in self._written:
                dtype, now = self.buffers.planes[number].dtype, self._now(number)
                to = (
                    f"const {self._vector(dtype)} {self._variable(self._new(number), k)}"
                    if mask
                    else self._variable(now, k)
                )
                lines.add(f"{to} = {self._load(dtype, now, k)};")
            for a in self._accumulators:
                own = self._variable(a.lanes, k)
                to = f"const {self._vector(a.dtype)} {self._variable(self._new_of(a), k)}" if mask else own
                lines.add(f"{to} = {self._load(a.dtype, a.lanes, k, MARGIN)};")
            if mask:
                self._select(lines, k, mask)

    def _brought(self) -> Iterator[tuple[Accumulator, int, str]]:
        """What the lanes bring together, vector by vector, with its C name."""
        return ((a, k, self._variable(a.lanes, k)) for a in self._accumulators for k in range(self.count))

    def _old(self, accumulator: Accumulator, k: int) -> str:
        """What the lanes of a vector had brought together before the step."""
        return self._variable(self._names.get(("old", accumulator), f"{accumulator.lanes}_old"), k)

    # -- elements of lanes further up ------------------------------------------------------------------------------------

    @cached_property
    def _shifts(self) -> list[tuple[int, Offset]]:
        """The elements of other lanes in registers."""
        places = dict.fromkeys(self.buffers.places[load] for load in self._bare if load in self.buffers.places)
        return [(n, o) for n, o in places if o[0] and self._is_held(n, distance(o))]

    @cached_property
    def _kept_shifts(self) -> list[tuple[int, Offset]]:
        """Those that the step before has shifted already, the earliest first."""
        imaged = {image.number for image in self._images}
        kept = [(n, o) for n, o in self._shifts if (n, _a_step_later(o)) in self._shifts and n not in imaged]
        return sorted(kept, key=lambda place: distance(place[1]))

    @property
    def _new_shifts(self) -> list[tuple[int, Offset]]:
        return [place for place in self._shifts if place not in self._kept_shifts]

    def _wanted(self, number: int) -> list[int]:
        """How many steps ago that was what is wanted of a plane's vectors, but for what has been shifted since."""
        own = [o for n, o in self.buffers.places.values() if n == number and (n, o) not in self._kept_shifts]
        return sorted({-distance(offset)[1] for offset in own if self._is_held(number, distance(offset))})

    def _kept(self, number: int) -> range:
        """So many steps ago vectors were written that are kept."""
        return range(1, 1 + min(KEPT_STEPS, max(self._wanted(number), default=0)))

    def _shifted(self, number: int, offset: Offset, vectors: range) -> Iterator[str]:
        """What lanes further up wrote: the last elements of one vector, and the first ones of the next."""
        then = self.buffers.at(number, distance(offset))
        vector, (shifted, _) = self._vector(self.buffers.planes[number].dtype), self._source(number, offset)
        order = ", ".join(str(self.width + offset[0] + lane) for lane in range(self.width))
        for k in vectors:
            above = self._edge_name(then) if k == vectors.start else self._variable(then, k - 1)
            both = f"{above}, {self._variable(then, k)}"
            yield f"const {vector} {self._variable(shifted, k)} = LW_SHUFFLE({self._order}, {both}, {order});"

    def _edge(self, number: int, when: Distance, first: int) -> Iterator[str]:
        """The lanes above those of the vector ``first``, at the end of a vector."""
        across = [-offset[0] for n, offset in self._new_shifts if n == number and distance(offset) == when]
        if not across:
            return
        then = self.buffers.at(number, when)
        edge, dtype = self._edge_name(then), self.buffers.planes[number].dtype
        yield f"{self._vector(dtype)} {edge} = {{0}};"
        if dtype == "bool":  # lanes beside those at work may find anything
            then = f"((const {self._memory_c_type(dtype)} *){then})"
        for lane in range(1, max(across) + 1):
            yield f"{edge}[{self.width - lane}] = {then}[{plus(self.c.starts_at, first * self.width - lane)}];"


def _a_step_later(offset: Offset) -> Offset:
    """Of the same lane."""
    return offset[0], offset[1] + 1, offset[2]
