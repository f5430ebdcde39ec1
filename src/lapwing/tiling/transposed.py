"""Which elements a tile with many lanes copies into buffers, transposed, so that those of one step lie side by side.

With the two innermost loops skewed by one (``tiling.inner``) lane l of a block of rows is, at a step, at position step - l of
its row: what the lanes of a step need lies in as many rows. Of every plane - the elements of an array over the two innermost
loops, all else fixed - a buffer holds the steps at hand, and the element (o_v, o_w) away from a lane's own is that of lane
l + o_v at step + o_v + o_w: contiguous along the lanes, whatever the offset. This is the data layout transformation of
dimension-lifted transposition (Henretty et al., CC 2011) along a wavefront, for the steps of one block at a time.

With three loops the outermost of them may be coalesced with the innermost (Polychronopoulos, ICPP 1987): a lane goes through its
rows of all planes without a pause, and what the next plane asks for is in the buffer still. Then o_u planes away is o_u times
the pitch of a plane's rows in steps.

Of an array that is dead after the nest, the buffers are to what it is contracted (Lefebvre and Feautrier 1998; Darte, Schreiber
and Villard 2005): an element is stored only where one of the iterations that read it is no iteration of the same block.

Roots and quotients that are functions of one element are computed once for all iterations that want them (``Image``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from weakref import WeakKeyDictionary

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import is_inexact
from lapwing.loopnest.skew import in_skewed
from lapwing.machine import caches
from lapwing.machine.vectors import vector_bytes
from lapwing.tiling.invariants import invariant_divisor, is_invariant, is_power_of_two

# Rows that advance together: steps wait for the ones before, and so many lanes fill the wait.
TRANSPOSED_LANES = 64
COPIED_STEPS = 8  # LW_STEPS of transposed.h
MARGIN = 16  # lanes beside those of a block that a buffer has room for
_BESIDE = 2 * MARGIN + 8  # LW_WIDTH less LW_LANES: no power of two, by which steps would share cache sets
_MOST_BYTES = 1 << 18  # of all buffers, which lie on the stack
KEPT_STEPS = 2  # before the one at hand that stay in vector registers, if they are wanted; earlier ones are loaded
# Together, in buffers that leave room in the first-level cache; of planes that follow one another, in the second-level one.
MOST_SWEEPS, MOST_COALESCED_SWEEPS, _FEWEST_SWEEPS = 16, 8, 2
_MOST_JOINED_BYTES = 1 << 15
_MOST_COALESCED_BYTES = 1 << 20  # in the second-level cache, or half of what is as near
ITEMSIZES = {
    "float64": 8, "int64": 8, "complex64": 8, "float32": 4, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "uint16": 2, "uint32": 4,
}  # fmt: skip

Offset = tuple[int, int, int]  # along the lanes, along a row, and from plane to plane of those that are coalesced
Distance = tuple[int, int]  # in time: so many planes of those that are coalesced, and so many steps more
_Key = tuple[Affine, ...]  # of a plane: the index along every axis, without offset along those of the plane


@dataclass(frozen=True)
class Plane:
    """The elements of an array over the two innermost loops. ``reference``: the access whose elements lanes are at; ``offsets``:
    those of all accesses from there, in coordinates of the domain. ``written``: whether lanes store to their elements, and
    ``reads_old`` whether anything asks for what those held before. ``clipped``: whether some are outside the array where
    conditions do not hold, so that only those inside may be copied. ``readers``: where nobody reads the array after the nest, the
    iterations that read an element, along the lanes and along a row from the one that writes it; None where all are stored."""

    reference: t.Load
    offsets: tuple[Offset, ...]
    written: bool
    reads_old: bool
    clipped: bool = False
    readers: tuple[tuple[int, int], ...] | None = None

    @property
    def array(self) -> str:
        return self.reference.array

    @property
    def dtype(self) -> str:
        return self.reference.dtype

    @property
    def distances(self) -> tuple[Distance, Distance]:
        """The earliest and the latest step, from the one at hand, whose elements are wanted."""
        distances = [distance(offset) for offset in (*self.offsets, (0, 0, 0))]
        return min(distances), max(distances)

    @property
    def steps(self) -> tuple[int, int]:
        """The same where no planes are coalesced."""
        (_, first), (_, last) = self.distances
        return first, last

    @property
    def lanes(self) -> tuple[int, int]:
        """How far before the first lane and beyond the last one elements are wanted."""
        return _ends(self.offsets, 0)

    @property
    def along(self) -> tuple[int, int]:
        """How far before a row's first position and beyond its last one elements are wanted."""
        return _ends(self.offsets, 1)

    @property
    def around(self) -> tuple[int, int]:
        """How far before the first plane and beyond the last one elements are wanted."""
        return _ends(self.offsets, 2)

    def kept_steps(self, sweeps: int, delay: Distance, sooner: int, pitch: int) -> int:
        """How many steps a buffer holds: those wanted while as many as are copied at once are computed in so many sweeps, those
        that were written and are not yet copied out, and those before a block's first group."""
        first, last = (planes * pitch + steps for planes, steps in self.distances)
        lag = (delay[0] * pitch + delay[1]) * (sweeps - 1)
        wanted = COPIED_STEPS + last - first + lag
        behind = COPIED_STEPS * (1 + groups(last + lag)) if self.written else 0
        before = COPIED_STEPS * (1 + groups(last - first + sooner * (sweeps - 1)))
        return max(wanted, behind, before)


def distance(offset: Offset) -> Distance:
    """In time, of an element that is so far from a lane's own."""
    return offset[2], offset[0] + offset[1]


def _ends(offsets: Sequence[Offset], k: int) -> tuple[int, int]:
    along = [offset[k] for offset in (*offsets, (0, 0, 0))]
    return min(along), max(along)


def groups(steps: int) -> int:
    """The groups of steps copied at once that so many steps take."""
    return -(-steps // COPIED_STEPS)


@dataclass(frozen=True)
class Planes:
    """All that a nest copies: of every access the plane it is of, by position, and how far from the lane's own element.

    ``sweeps``: how many may be computed together, each ``delay`` steps behind the one before and on rows ``shift`` further up,
    which begin ``sooner`` by so many steps: elements are copied once for all of them (time skewing). ``lanes``: rows that advance
    together.
    """

    planes: tuple[Plane, ...]
    places: dict[t.Load, tuple[int, Offset]] = field(hash=False)
    delay: Distance
    shift: int
    sooner: int
    sweeps: int
    lanes: int

    @property
    def width(self) -> int:
        """The lanes of a step in a buffer, those beside a block's among them."""
        return self.lanes + _BESIDE

    def kept_steps(self, number: int, sweeps: int = 0) -> int:
        """How many steps the buffer of a plane holds where none are coalesced, for so many sweeps or all that may be computed
        together: a power of two."""
        return _power_of_two(self.planes[number].kept_steps(sweeps or self.sweeps, self.delay, self.sooner, 0))

    @property
    def margins(self) -> tuple[int, int]:
        """How many positions before and after a row of its plane a lane leaves free, where planes are coalesced."""
        ends = [plane.along for plane in self.planes]
        return -min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def least_pitch(self) -> int:
        """The fewest positions from plane to plane, so that what is in an earlier plane is earlier in time."""
        steps = [step for plane in self.planes for o in plane.offsets for _, step in [distance(o)]]
        return 1 + max(*steps, 0) - min(*steps, 0)


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def lanes_of_buffers(coalesced: bool) -> tuple[int, ...]:
    """How many rows may advance together, the usual number first.

    Where vectors are short, 64 lanes are more of them than there are registers; as many lanes as a vector has bytes are as few
    vectors as where they are long. But lanes come in and run out for every block of rows, of which there are more then: that
    costs most where blocks are those of all planes.
    """
    lanes = tuple(dict.fromkeys((vector_bytes(), TRANSPOSED_LANES)))
    return lanes[::-1] if coalesced else lanes


def planes_of(
    bound: BoundNest,
    order: Sequence[int],
    coalesced: bool = False,
    lanes: int = TRANSPOSED_LANES,
    sweeps: int | None = None,
) -> Planes | None:
    """What a tile copies that goes through the space loops in this order, by position; None where the nest does not fit.

    coalesced: whether the third loop from the inside is coalesced with the innermost. lanes: rows that advance together.
    sweeps: so many that may be computed together; where it is not given, as many as caches of this machine allow.

    That takes rows that begin and end no sooner than a step after those above them; straight statements, or conditions; of
    arrays that are written elements at constant offsets from a lane's own, all contiguous along the innermost loop.
    """
    found = _planes_or_reason(bound, tuple(order), coalesced, lanes, sweeps)
    return None if isinstance(found, str) else found


def reason_against(bound: BoundNest, order: Sequence[int], coalesced: bool = False) -> str | None:
    """Why there is nothing that such a tile could copy; None where there is."""
    found = _planes_or_reason(bound, tuple(order), coalesced, TRANSPOSED_LANES, None)
    return found if isinstance(found, str) else None


_Form = tuple[tuple[int, ...], bool, int, int | None]  # the order of loops, whether planes are coalesced, lanes, sweeps
_FOUND: WeakKeyDictionary[BoundNest, dict[_Form, Planes | str]] = WeakKeyDictionary()


def _planes_or_reason(
    bound: BoundNest, order: tuple[int, ...], coalesced: bool, lanes: int, sweeps: int | None
) -> Planes | str:
    """Worked out once: planning asks for it, and then the generator."""
    found = _FOUND.setdefault(bound, {})
    form = order, coalesced, lanes, sweeps
    if form not in found:
        try:
            planes = found[form] = _planes(bound, order, coalesced, lanes, sweeps)
            found[order, coalesced, lanes, planes.sweeps] = planes
        except _Unfit as unfit:
            found[form] = str(unfit)
    return found[form]


class _Unfit(Exception):
    """The nest takes no buffers; the text says why."""


def _planes(bound: BoundNest, order: Sequence[int], coalesced: bool, lanes: int, sweeps: int | None) -> Planes:
    if len(order) < 2 or bound.nest.is_sequential:
        raise _Unfit("there is one loop")
    _check_body(bound.body)
    if coalesced and (len(order) < 3 or not bound.domain.is_box or bound.skew is not None):
        raise _Unfit("planes are not alike")
    if coalesced and arguments_of_extrema(bound.body):
        raise _Unfit("the argument of an extremum is found plane by plane")
    return _Reader(bound, order, coalesced, lanes).planes(sweeps)


def _check_body(body: t.TypedBody) -> None:
    """Raise _Unfit where vectors cannot do what the loops do."""
    inner = [s for s in t.all_statements(body.statements) if isinstance(s, t.TypedFor | t.TypedWhile | t.TypedJump)]
    if inner:
        raise _Unfit("there are loops inside, or iterations that end early")
    if not all(_is_private(body, accumulator) for accumulator in body.accumulators):
        raise _Unfit("a reduction is not that of each row by itself, as sums of some iterations are not")


def _is_private(body: t.TypedBody, accumulator: t.Accumulator) -> bool:
    """Whether every lane can bring together its own iterations by itself."""
    if accumulator.leader is not None:
        return sum(s.name == accumulator.leader for s in arguments_of_extrema(body)) == 1
    return not accumulator.is_shared or (accumulator.exact_sum and _is_summed_once(body, accumulator))


def arguments_of_extrema(body: t.TypedBody) -> list[t.TypedAccumulate]:
    """Of extrema whose arguments are wanted, the statements that bring them up to date."""
    return [s for s in body.simple if isinstance(s, t.TypedAccumulate) and s.position]


def _is_summed_once(body: t.TypedBody, accumulator: t.Accumulator) -> bool:
    """Whether every iteration adds one term."""
    added = [
        s for s in t.all_statements(body.statements) if isinstance(s, t.TypedAccumulate) and s.name == accumulator.name
    ]
    return len(added) == 1 and any(s is added[0] for s in body.statements)


class _Reader:
    def __init__(self, bound: BoundNest, order: Sequence[int], coalesced: bool, lanes: int) -> None:
        self.bound, self.depth, self.lanes = bound, 3 if coalesced else 2, lanes
        loops, depth = bound.nest.space_loops, bound.nest.sweep_depth
        self.across, self.along = (loops[k] for k in order[-2:])
        self.around = loops[order[-3]] if coalesced else None
        self._length = bound.domain.box[depth + order[-1]]
        v, w = (depth + k for k in order[-2:])
        rows = bound.domain.loops[w]
        self._slopes = {end.coefficient(self.across.name) for end in (*rows.lowers, *rows.uppers)}
        self._skew = 0 if bound.skew is None else bound.skew.rows[w][v]

    def planes(self, sweeps: int | None) -> Planes:
        if min(self._slopes) < -1:
            raise _Unfit("rows begin or end sooner than the step after those above them")
        stores = self._stores
        written: dict[str, tuple[_Key, Offset]] = {}
        for store, _ in stores:
            place = self._place(store.target)
            if place is None:
                raise _Unfit(f"{store.target.array} is not stored to along rows of {self.along.name}")
            if written.setdefault(store.target.array, place) != place:
                raise _Unfit(f"{store.target.array} is stored to at several offsets")
            if self.around is not None and Affine.of(self.around.name) not in place[0]:
                raise _Unfit(f"{store.target.array} has no axis along {self.around.name}")
        found: dict[tuple[str, _Key], list[tuple[t.Load, Offset]]] = {}
        for load in self._loads:
            place = self._place(load)
            if place is None:
                if load.array in written:
                    raise _Unfit(f"{load.array} is not read at constant offsets along rows of {self.along.name}")
                continue
            found.setdefault((load.array, place[0]), []).append((load, place[1]))
        planes: list[Plane] = []
        places: dict[t.Load, tuple[int, Offset]] = {}
        for (array, key), accesses in found.items():
            is_written = array in written and written[array][0] == key
            if array in written and not is_written and not _are_apart(written[array][0], key):
                raise _Unfit(f"{array} is read where it may be stored to by the same rows")
            origin = written[array][1] if is_written else accesses[0][1]
            reference = next(load for load, offset in accesses if offset == origin)
            offsets = [(v - origin[0], w - origin[1], u - origin[2]) for _, (v, w, u) in accesses]
            if is_written and not all(map(_is_kept_apart, offsets)):
                raise _Unfit(f"{array} is read in the step that stores to it")
            places.update({load: (len(planes), o) for (load, _), o in zip(accesses, offsets, strict=True)})
            clipped = not all(
                self._is_inside(load, axis) for load, _ in accesses for axis in range(len(load.subscripts))
            )
            old = not is_written or self._keeps_old(array)
            # Rows of other lengths, and what is further along its own than the lane that reads it, reach beyond those of lanes.
            old = old or self._slopes != {self._skew}
            read = list(self._read_before(array, places))
            old = old or any((u, v, w) >= (0, 0, 0) or w > self._skew * v for v, w, u in read)
            readers = self._readers(array, places) if is_written else None
            planes.append(Plane(reference, tuple(dict.fromkeys(offsets)), is_written, old, clipped, readers))
        if not written:
            raise _Unfit("nothing is stored")
        shift = max(abs(end) for plane in planes if plane.written for end in plane.lanes)
        # Rows further up begin sooner, and each sweep with them.
        sooner = shift * (1 + max(self._slopes))
        ends = (end for plane in planes if plane.written for end in plane.distances)
        delay = max((0, sooner), *(max(end, (-end[0], -end[1])) for end in ends), (0, 1))
        most = MOST_SWEEPS if self.around is None else MOST_COALESCED_SWEEPS
        together = most if self._may_join_sweeps(planes) else 1
        for number in (*range(together, _FEWEST_SWEEPS, -1), 1) if sweeps is None else (sweeps,):
            found_planes = Planes(tuple(planes), places, delay, shift, sooner, number, self.lanes)
            reach = max(abs(end) for plane in planes for end in plane.lanes) + shift * (number - 1)
            near = reach <= MARGIN and all(plane.steps[1] <= COPIED_STEPS for plane in planes)
            if near and (sweeps is not None or self._is_small(found_planes)):
                # Of several sweeps the next one may begin with what the one before has left.
                return found_planes if number == 1 else replace(found_planes, planes=tuple(map(_all_stored, planes)))
        raise _Unfit("offsets are too large, or arrays too many, for buffers in the cache")

    def _is_small(self, planes: Planes) -> bool:
        """Whether the buffers fit the cache that they are meant for."""
        low, high = self._length
        before, after = planes.margins
        pitch = max(high - low + before + after, planes.least_pitch)
        kept = [plane.kept_steps(planes.sweeps, planes.delay, planes.sooner, pitch) for plane in planes.planes]
        if self.around is None:
            kept = list(map(_power_of_two, kept))
        size = planes.width * sum(k * ITEMSIZES[p.dtype] for k, p in zip(kept, planes.planes, strict=True))
        if self.around is None:
            return size <= (_MOST_BYTES if planes.sweeps == 1 else _MOST_JOINED_BYTES)
        # What is near is timed, once: not for rings that fit any second-level cache.
        return size <= _MOST_COALESCED_BYTES or size <= caches.near_bytes() // 2

    def _may_join_sweeps(self, planes: Sequence[Plane]) -> bool:
        """Whether a sweep is the two innermost loops alone, the same rows every time, and no plane another one in every sweep."""
        nest = self.bound.nest
        if (
            arguments_of_extrema(self.bound.body)  # a lane would come by iterations in another order
            or nest.sweep_depth != 1
            or len(nest.space_loops) != self.depth
            or len(self._slopes) > 1
            or min(self._slopes) < 0
        ):
            return False
        index = nest.sweep_loops[0].name
        if any(index in loop.bound_names for loop in self.bound.domain.loops):
            return False
        subscripts = (s for plane in planes for s in plane.reference.subscripts)
        return not any(isinstance(s, t.AffineSubscript) and index in s.affine.names for s in subscripts)

    @cached_property
    def _stores(self) -> list[tuple[t.TypedStore, bool]]:
        """All stores, and whether each is done in every iteration."""
        always = {id(s) for s in self.bound.body.statements}
        return [(s, id(s) in always) for s in self.bound.body.simple if isinstance(s, t.TypedStore)]

    @cached_property
    def _loads(self) -> list[t.Load]:
        """All elements that are read or written."""
        nodes = (n for s in t.all_statements(self.bound.body.statements) for v in t.own_values(s) for n in t.walk(v))
        read = [node for node in nodes if isinstance(node, t.Load)]
        return list(dict.fromkeys([*read, *(store.target for store, _ in self._stores)]))

    def _keeps_old(self, array: str) -> bool:
        """Whether an iteration may leave an element as it was."""
        return not all(always for store, always in self._stores if store.target.array == array)

    def _read(
        self,
        array: str,
        places: dict[t.Load, tuple[int, Offset]],
        statements: Sequence[t.TypedStatement] | None = None,
    ) -> Iterator[Offset]:
        """The offsets at which the elements of a written plane are read, by the whole body or by some statements."""
        for statement in t.all_statements(self.bound.body.statements if statements is None else statements):
            values = (statement.value,) if isinstance(statement, t.TypedStore) else t.own_values(statement)
            for value in values:
                for node in t.walk(value):
                    if isinstance(node, t.Load) and node.array == array and node in places:
                        yield places[node][1]

    def _read_before(self, array: str, places: dict[t.Load, tuple[int, Offset]]) -> Iterator[Offset]:
        """The same without an iteration's own element where that has been stored."""
        stored = False
        for statement in self.bound.body.statements:
            yield from (o for o in self._read(array, places, (statement,)) if o != (0, 0, 0) or not stored)
            stored = stored or (isinstance(statement, t.TypedStore) and statement.target.array == array)

    def _readers(self, array: str, places: dict[t.Load, tuple[int, Offset]]) -> tuple[tuple[int, int], ...] | None:
        """The iterations that read a plane's elements, where nobody reads the array after the nest and only iterations that
        differ along the two innermost loops read in it what others wrote."""
        nest = self.bound.nest
        if array not in self.bound.dead or None in nest.axis_loops[array] or self.around is not None:
            return None
        pair = {nest.loop_names.index(loop.name) for loop in (self.across, self.along)}
        flow = [d.vector for d in self.bound.analysis.dependences if d.kind == "flow" and d.array == array]
        if any(distance and k not in pair for vector in flow for k, distance in enumerate(vector)):
            return None
        offsets = dict.fromkeys(self._read(array, places))
        return tuple((-v, -w) for v, w, _ in offsets if (v, w) < (0, 0))

    def _place(self, load: t.Load) -> tuple[_Key, Offset] | None:
        """The plane of an access, and where in it; None where it is not along rows of the innermost loop, or where conditions
        have to hold for there to be such a plane."""
        if load.dtype not in ITEMSIZES or not load.subscripts:
            return None
        others: list[Affine] = []
        offset = {}
        for axis, subscript in enumerate(load.subscripts):
            if not isinstance(subscript, t.AffineSubscript) or subscript.wrap:
                return None
            index = subscript.affine.substitute(self.bound.symbols)
            own = (self.across, self.along) if self.around is None else (self.across, self.along, self.around)
            loops = [loop for loop in own if loop.name in index.names]
            if not loops:
                if not self._is_inside(load, axis):
                    return None
                others.append(index)
                continue
            loop = loops[0]
            rest = index - Affine.of(loop.name)
            if rest.terms or loop.name in offset or (loop is self.along) != (axis == len(load.subscripts) - 1):
                return None
            offset[loop.name] = loop.step * rest.constant
            others.append(Affine.of(loop.name))
        if not {self.across.name, self.along.name} <= set(offset):
            return None
        across = offset[self.across.name]
        around = 0 if self.around is None else offset.get(self.around.name, 0)
        return tuple(others), (across, offset[self.along.name] + self._skew * across, around)

    def _is_inside(self, load: t.Load, axis: int) -> bool:
        subscript, domain = load.subscripts[axis], self.bound.domain
        assert isinstance(subscript, t.AffineSubscript)
        index = subscript.affine.substitute(self.bound.symbols)
        if not index.names <= {loop.name for loop in domain.loops}:
            return False
        index = domain.normalised(index)
        if self.bound.skew is not None:
            index = in_skewed(index, self.bound.nest.loop_names, self.bound.skew)
        reached = domain.range_of(index)
        return reached is not None and reached[0] >= 0 and reached[1] < self.bound.array(load.array).shape[axis]


def _all_stored(plane: Plane) -> Plane:
    return replace(plane, readers=None)


def _are_apart(one: _Key, other: _Key) -> bool:
    """Whether two planes of an array have no element in common."""
    differences = (a - b for a, b in zip(one, other, strict=True))
    return any(d.constant and not d.terms for d in differences)


def _is_kept_apart(offset: Offset) -> bool:
    """Whether an element of a plane that is written has, at a step, what the plain loop would find there: one that comes before
    the lane's own was written in an earlier step, one that comes after it is in a later one."""
    v, w, u = offset
    time = distance(offset)
    return time < (0, 0) if (u, v, w) < (0, 0, 0) else time > (0, 0) or offset == (0, 0, 0)


@dataclass(frozen=True)
class Image:
    """What a function has for the elements that lanes write of a plane: ``value``, in which the plane's reference is the
    element."""

    number: int
    value: t.Typed


def images_of(bound: BoundNest, planes: Planes) -> dict[t.Typed, tuple[Image, Offset]]:
    """Functions with a root or a quotient, of one element that one of the last steps wrote, which several iterations want: of
    every such expression the image, and where the element is. Images are computed once, when the element is written, and move
    from lane to lane as it does (predictive commoning: O'Brien, IBM 1990)."""
    found: dict[t.Typed, tuple[Image, Offset]] = {}
    values = (value for s in t.all_statements(bound.body.statements) for value in t.own_values(s))
    for node in (n for value in values for n in _functions(value, planes)):
        load = next(part for part in t.walk(node) if isinstance(part, t.Load))
        number, offset = planes.places[load]
        found[node] = Image(number, _with(node, load, planes.planes[number].reference)), offset
    times = Counter(image for image, _ in found.values())
    return {node: (image, offset) for node, (image, offset) in found.items() if times[image] > 1}


def separate_roots(bound: BoundNest, planes: Planes) -> dict[t.Typed, t.Load]:
    """Roots of single elements that none of the last steps wrote, as floats of four bytes, and those elements: no step waits for
    them, so that they may be computed before all else, and another way takes longer from the element to the root but leaves the
    core's divider to those that steps wait for."""
    images = images_of(bound, planes)

    def find(node: t.Typed) -> Iterator[tuple[t.Typed, t.Load]]:
        if images and node in images:
            return
        match node:
            case t.Operation(operator="sqrt" | "numpy.sqrt", operands=(t.Load(dtype="float32") as load,), trap=None):
                number, offset = planes.places.get(load, (0, (0, 0, 0)))
                further, steps = distance(offset)
                kept = planes.planes[number].written and further == 0 and steps < 0
                if load in planes.places and not kept:
                    yield node, load
        for child in t.children(node):
            yield from find(child)

    values = (value for s in t.all_statements(bound.body.statements) for value in t.own_values(s))
    return dict(found for value in values for found in find(value))


def _functions(node: t.Typed, planes: Planes) -> Iterator[t.Typed]:
    if not is_invariant(node) and _is_costly(node) and _is_image(node, planes):
        yield node
        return
    for child in t.children(node):
        yield from _functions(child, planes)


def _is_costly(node: t.Typed) -> bool:
    if not isinstance(node, t.Operation) or not is_inexact(node.operands[0].dtype):
        return False
    if node.operator == "/":
        return invariant_divisor(node) is None and not is_power_of_two(node.operands[1])
    return node.operator in ("sqrt", "numpy.sqrt")


def _is_image(node: t.Typed, planes: Planes) -> bool:
    """Whether it is a function of one element that a step in registers wrote."""
    parts = list(t.walk(node))
    elements = {part for part in parts if isinstance(part, t.Load)}
    if len(elements) != 1 or any(map(t.may_raise, parts)):
        return False
    if any(isinstance(part, t.Local | t.Index | t.AffineValue) for part in parts):
        return False
    (load,) = elements
    if load not in planes.places or ITEMSIZES.get(node.dtype) != ITEMSIZES[load.dtype]:
        return False
    number, offset = planes.places[load]
    further, steps = distance(offset)
    return planes.planes[number].written and further == 0 and -KEPT_STEPS <= steps < 0


def _with(node: t.Typed, element: t.Load, other: t.Load) -> t.Typed:
    """The expression with another element."""
    return other if node == element else t.mapped(node, lambda part: _with(part, element, other))
