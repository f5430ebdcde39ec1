"""The phases of a program on one rank, fused: blocks of all phases and of several sweeps, one after the other.

Blocks are those of one dimension, along which all phases run. Those of a phase lie a few coordinates behind those of the phase
before, so that it finds what that one has written, and overwrites nothing that it still reads (loop shifting and fusion:
Manjikian and Abdelrahman, IEEE Transactions on Parallel and Distributed Systems 8, 1997); a sweep begins a few blocks behind
the one before (time skewing of imperfect nests: Song and Li, PLDI 1999). What a block has brought into the cache, the next
phases and sweeps find there.

Where not even a few rows of blocks stay in the cache, as of planes, blocks are cut into strips along another dimension: all
blocks of a strip are done before those of the next; its ends, too, lie a little further back in every phase and sweep.

On a ring the first elements wait for the last ones. There each phase leaves out some blocks at either end, more than the one
before it, so that what it reads is there; those follow when all others are done, phase by phase.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.dependences import inside_sweep
from lapwing.machine import caches
from lapwing.tiling.boxes import Box
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.partition import Range
from lapwing.tiling.phased.distribution import Dimension, Distribution, dimensions, touches

BLOCK_BYTES = 1 << 15  # of the largest array: what a step costs besides is not felt then
SHORTEST_STRIP = 8  # coordinates: what lies around a strip is brought into the cache twice
MOST_STRIP_SWEEPS = 16
MOST_STEPS = 100_000  # of a sweep: each has its place in a table

_Lags = dict[tuple[int, int], int]


def cached_bytes() -> int:
    """So many bytes of arrays stay in a cache that is near from one phase to the next."""
    return caches.near_bytes()


def room_bytes() -> int:
    """Of that cache for blocks of phases and sweeps that are fused."""
    return caches.near_bytes() // 2


@dataclass(frozen=True)
class Strips:
    """Strips of ``width`` coordinates along a dimension; those of a phase lie ``shifts`` coordinates behind those of the first,
    and those of a sweep ``apart`` behind those of the one before."""

    dimension: Dimension
    width: int
    shifts: tuple[int, ...]
    apart: int

    def count(self, sweeps: int) -> int:
        farthest = max(self.shifts) + self.apart * (sweeps - 1)
        return -(-(self.dimension.extent + farthest) // self.width)

    def cuts(self, sweep: int, phase: int, sweeps: int) -> tuple[int, ...]:
        """The coordinates between strips, ends included."""
        return _cuts(self.dimension, self.width, self.count(sweeps), self.shifts[phase] + self.apart * sweep)


@dataclass(frozen=True)
class Fusion:
    """Blocks of ``height`` coordinates along a dimension; those of a phase lie ``shifts`` coordinates behind those of the first.

    ``sweeps`` are done in one pass over all blocks, each ``skew`` blocks behind the one before. windows: by sweep of a pass and
    phase, the blocks that are done so, first and beyond; the others follow. strips: what blocks are cut into; None where they are
    whole.
    """

    phased: PhasedNest
    dimension: Dimension
    height: int
    shifts: tuple[int, ...]
    skew: int
    sweeps: int
    windows: dict[tuple[int, int], Range]
    strips: Strips | None = None

    def __str__(self) -> str:
        loop, _ = next(iter(self.dimension.loops.items()))
        name = self.phased.phases[loop].nest.space_loops[self.dimension.loops[loop][0]].name
        together = f"{self.sweeps} sweeps" if self.sweeps > 1 else "all phases"
        in_strips = f" in strips {self.strips.width} wide" if self.strips is not None else ""
        what = f"in blocks of {self.height} along {name}{in_strips}"
        return f"{together} together, {what}: more than that does not stay in the cache"

    @property
    def blocks(self) -> int:
        """Of every phase."""
        return -(-(self.dimension.extent + max(self.shifts)) // self.height)

    def order(self) -> Iterator[tuple[int, int, int]]:
        """Sweep, phase and step of the phase, one after the other, of a pass."""
        blocks, strips = self.blocks, 1 if self.strips is None else self.strips.count(self.sweeps)
        for strip in range(strips):
            for wave in range(blocks + self.skew * (self.sweeps - 1)):
                for (sweep, phase), (first, beyond) in self.windows.items():
                    if first <= (block := wave - self.skew * sweep) < beyond:
                        of_sweep = 0 if self.strips is None else sweep * strips + strip
                        yield sweep, phase, of_sweep * blocks + block
        for (sweep, phase), (first, beyond) in self.windows.items():
            yield from ((sweep, phase, block) for block in (*range(first), *range(beyond, blocks)))

    def steps(self, phase: int) -> list[Box]:
        """The iterations of a phase, a box for every block, empty where it has none there; with strips for every block of every
        strip of every sweep. As many for every phase."""
        dimensions, cuts = (self.dimension,), _cuts(self.dimension, self.height, self.blocks, self.shifts[phase])
        nothing = ((0, 0),) * len(self.phased.phases[phase].nest.space_loops)
        if self.strips is None:
            blocked = Distribution(self.phased, dimensions, (cuts,))
            return [blocked.block(phase, k) or nothing for k in range(self.blocks)]
        found = []
        for sweep in range(self.sweeps):
            strips = self.strips.cuts(sweep, phase, self.sweeps)
            blocked = Distribution(self.phased, (self.strips.dimension, *dimensions), (strips, cuts))
            found += [blocked.block(phase, k) or nothing for k in range(blocked.ranks)]
        return found


def _cuts(dimension: Dimension, height: int, count: int, shift: int) -> tuple[int, ...]:
    """The coordinates between so many blocks that lie so far back, ends included."""
    low, high = dimension.span
    return tuple(min(max(low + k * height - shift, low), high) for k in range(count + 1))


@dataclass(frozen=True)
class Shifts:
    """By how many coordinates along a dimension every phase lies behind the first, and a sweep ``apart`` behind the one before:
    the least that keep the order of what touches an element.

    forward, backward: by how many a phase (the second) has to come behind another that is done sooner, where blocks are done in
    the order of coordinates, and in the other order. ring: how many coordinates at either end touch elements at the other; 0 on
    none.
    """

    phased: PhasedNest
    dimension: Dimension
    of_phases: tuple[int, ...]
    apart: int
    forward: _Lags
    backward: _Lags
    ring: int

    def fused(self, height: int, sweeps: int) -> Fusion | None:
        """In blocks of so many coordinates, so many sweeps in a pass; None where that is more than a ring allows."""
        skew = max(1, -(-self.apart // height))
        blocks = -(-(self.dimension.extent + max(self.of_phases)) // height)
        units = [*itertools.product(range(sweeps), range(len(self.phased.phases)))]
        windows = dict.fromkeys(units, (0, blocks))
        if self.ring:
            windows = self._on_ring(height, blocks, units)
        if any(first >= beyond for first, beyond in windows.values()):
            return None
        return Fusion(self.phased, self.dimension, height, self.of_phases, skew, sweeps, windows)

    def _on_ring(self, height: int, blocks: int, units: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Range]:
        """The blocks of every phase that touch nothing which an earlier one has yet to touch, at either end."""
        low, high = self.dimension.span
        farthest = self.ring + max([0, *self.forward.values(), *self.backward.values()])
        begins, ends, found = dict[tuple[int, int], int](), dict[tuple[int, int], int](), dict[tuple[int, int], Range]()
        for number, (sweep, phase) in enumerate(units):
            begin, end = (low, high) if number == 0 else (low + farthest, high - farthest)
            for earlier in units[:number]:
                begin = max(begin, begins[earlier] + self.backward.get((earlier[1], phase), 0))
                end = min(end, ends[earlier] - self.forward.get((earlier[1], phase), 0))
            shift = self.of_phases[phase]
            first = -(-(begin - low + shift) // height) if number else 0
            beyond = (end - low + shift) // height if number else blocks
            begins[sweep, phase] = low + first * height - shift if number else low
            ends[sweep, phase] = low + beyond * height - shift if number else high
            found[sweep, phase] = first, beyond
        return found


def shifts_of(phased: PhasedNest) -> Iterator[Shifts]:
    """Along every dimension whose dependences allow it."""
    for dimension in dimensions(phased):
        if (found := _lags(phased, dimension)) is None:
            continue
        forward, backward, ring = found
        if not _goes_forward(phased, dimension, ring > 0):
            continue
        shifts: list[int] = []
        for later in range(len(phased.phases)):
            shifts.append(max([0, *(shifts[k] + forward[k, later] for k in range(later) if (k, later) in forward)]))
        apart = max(shifts[sooner] + lag - shifts[later] for (sooner, later), lag in forward.items())
        yield Shifts(phased, dimension, tuple(shifts), apart, forward, backward, ring)


def fusion_of(phased: PhasedNest, forms: Sequence[InnerForm]) -> Fusion | None:
    """How phases are fused on one rank; None where dependences forbid it, and where it would not pay: all arrays stay in the
    cache from one phase to the next, or not even a few rows of them do.

    Not where a phase has lanes, which want many rows at once, or where its iterations may raise one by one: what the plain loop
    raises is what the first sweep does.
    """
    sizes = [_bytes_of_a_sweep(phased, array) for array in phased.arrays]
    total = sum(sizes)
    if total <= cached_bytes() or any(form.lanes > 1 for form in forms):
        return None
    if any(not raises_alike(bound.body) for bound in phased.phases):
        return None
    allowed = [shifts for shifts in shifts_of(phased) if not _cuts_rows(shifts)]
    if not allowed:
        return None
    along, *others = allowed
    fusion = _in_blocks(along, sizes)
    if not others or along.ring or others[0].ring or (fusion is not None and fusion.sweeps > 1):
        return fusion
    return _in_strips(along, others[0], total) or fusion


def _bytes_of_a_sweep(phased: PhasedNest, array: ArrayType) -> int:
    """How much of an array a sweep touches: where each has a slice of its own, as of a record of all sweeps, it stays in no cache
    for the next one."""
    axes = set(range(len(array.shape)))
    for bound in phased.phases:
        sweeps = {loop.name for loop in bound.nest.sweep_loops}
        for access in bound.accesses:
            if access.array == array.name:
                axes = {
                    k for k in axes if (index := access.affine[k]) is not None and not sweeps.isdisjoint(index.names)
                }
    return array.itemsize * math.prod(extent for k, extent in enumerate(array.shape) if k not in axes)


def _cuts_rows(shifts: Shifts) -> bool:
    """Whether blocks would be parts of rows, of phases that have several."""
    phases = shifts.phased.phases
    return any(loop and loop == len(phases[p].nest.space_loops) - 1 for p, (loop, _) in shifts.dimension.loops.items())


def _in_blocks(shifts: Shifts, sizes: Sequence[int]) -> Fusion | None:
    """Whole blocks, of as many sweeps as the cache has room for. sizes: of all arrays, in bytes."""
    phased, extent = shifts.phased, shifts.dimension.extent
    height = max(1, math.ceil(BLOCK_BYTES * extent / max(sizes)), extent * len(phased.phases) // MOST_STEPS)
    room = room_bytes() * extent // sum(sizes) - max(shifts.of_phases)  # coordinates
    most = min(phased.sweeps, room // (height * max(1, -(-shifts.apart // height))))
    if shifts.ring:  # what is left out at one end is as much as what is done there
        most //= 2
    while most * len(phased.phases) > 1:
        passes = -(-phased.sweeps // most)
        if (fusion := shifts.fused(height, -(-phased.sweeps // passes))) is not None:
            return fusion
        most //= 2
    return None


def _in_strips(along: Shifts, across: Shifts, total: int) -> Fusion | None:
    """Blocks of one coordinate in strips, of as many sweeps as bring the fewest bytes into the cache. total: of all arrays, in
    bytes."""
    phased = along.phased
    room = room_bytes() * along.dimension.extent * across.dimension.extent // total  # coordinates of both dimensions
    skew = max(1, along.apart)
    best: tuple[float, int, int] | None = None
    for sweeps in range(2, min(phased.sweeps, MOST_STRIP_SWEEPS) + 1):
        halo = max(across.of_phases) + across.apart * (sweeps - 1)
        width = room // (max(along.of_phases) + skew * (sweeps - 1) + 1) - halo
        if width >= max(SHORTEST_STRIP, halo):
            share = (width + halo) / width / sweeps  # of what is brought otherwise
            best = min(best or (math.inf, 0, 0), (share, sweeps, width))
    if best is None:
        return None
    _, sweeps, width = best
    fusion = along.fused(1, -(-phased.sweeps // -(-phased.sweeps // sweeps)))
    assert fusion is not None
    strips = Strips(across.dimension, width, across.of_phases, across.apart)
    steps = fusion.blocks * strips.count(fusion.sweeps) * fusion.sweeps * len(phased.phases)
    return replace(fusion, strips=strips) if steps <= MOST_STEPS else None


def _goes_forward(phased: PhasedNest, dimension: Dimension, is_ring: bool) -> bool:
    """Whether every phase may be done block by block in the order of coordinates, and its reductions in theirs; on a ring in
    any."""
    for phase, bound in enumerate(phased.phases):
        if phase not in dimension.loops:
            continue
        loop = dimension.loops[phase][0]
        found = inside_sweep(phased.dependences[phase], phased.sweep_depth)
        along = [dependence.vector[phased.sweep_depth + loop] for dependence in found]
        is_reversed = bound.nest.space_loops[loop].step < 0
        if any(distance < 0 for distance in along) or ((is_reversed or is_ring) and any(along)):
            return False
        if bound.nest.accumulators and (loop or is_reversed or is_ring):
            return False
    return True


def _lags(phased: PhasedNest, dimension: Dimension) -> tuple[_Lags, _Lags, int] | None:
    """``forward``, ``backward`` and ``ring`` of Shifts, of pairs of phases that both touch elements which one of them writes;
    None where that is not known of two phases."""
    forward: _Lags = {}
    backward: _Lags = {}
    ring = 0
    for name in phased.written:
        touched = {
            (phase, written): _touched(phased, dimension, phase, accesses)
            for phase, bound in enumerate(phased.phases)
            for written, accesses in ((True, _writes(bound, name)), (False, _all(bound, name)))
            if accesses
        }
        for ((sooner, one), before), ((later, other), behind) in itertools.product(touched.items(), touched.items()):
            if one == other:
                continue  # all that a phase touches are its writes, too
            if before is None or behind is None:
                return None
            pair, ring = (sooner, later), max(ring, before.ring, behind.ring)
            forward[pair] = max(forward.get(pair, 0), behind.forth + before.back)
            backward[pair] = max(backward.get(pair, 0), behind.back + before.forth)
    return forward, backward, ring


@dataclass(frozen=True)
class _Touched:
    """How far ``back`` and ``forth`` from an iteration the elements lie that it touches, but those beyond an end of a ring;
    ``ring`` as in Shifts."""

    back: int
    forth: int
    ring: int


def _touched(phased: PhasedNest, dimension: Dimension, phase: int, accesses: Sequence[ir.Access]) -> _Touched | None:
    low, high = dimension.span
    back = forth = ring = 0
    for touch in (touch for access in accesses for touch in touches(phased, dimension, phase, access)):
        if touch is None:
            return None
        (begin, end), (least, most) = touch.coordinates, touch.apart
        if not touch.is_far:
            back, forth = max(back, -least), max(forth, most)
        elif least > 0:  # from the low end to the high one
            ring = max(ring, end - low, high - (begin + least))
        else:
            ring = max(ring, high - begin, end + most - low)
    return _Touched(back, forth, ring)


def _writes(bound: BoundNest, name: str) -> list[ir.Access]:
    return [store.target for store in bound.nest.stores if store.target.array == name]


def _all(bound: BoundNest, name: str) -> list[ir.Access]:
    return [access for access in bound.accesses if access.array == name]
