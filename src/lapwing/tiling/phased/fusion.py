"""The phases of a program on one rank, fused: blocks of all phases and of several sweeps, one after the other.

Blocks are those of one dimension, along which all phases run. Those of a phase lie a few coordinates behind those of the phase
before, so that it finds what that one has written, and overwrites nothing that it still reads (loop shifting and fusion:
Manjikian and Abdelrahman, IEEE Transactions on Parallel and Distributed Systems 8, 1997); a sweep begins a few blocks behind
the one before (time skewing of imperfect nests: Song and Li, PLDI 1999). What a block has brought into the cache, the next
phases and sweeps find there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.dependences import inside_sweep
from lapwing.tiling.boxes import Box, volume
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.phased.distribution import Dimension, Distribution, dimensions, reach_of

CACHED_BYTES = 2 << 20  # a second-level cache: so many bytes of arrays stay in it from one phase to the next
ROOM_BYTES = 1 << 20  # of it for blocks of phases and sweeps that are fused
BLOCK_POINTS = 4096  # of the largest phase: what a step costs besides is not felt then

_Lags = dict[tuple[int, int], int]


@dataclass(frozen=True)
class Fusion:
    """Blocks of ``height`` coordinates along a dimension; those of a phase lie ``shifts`` coordinates behind those of the first.

    ``sweeps`` are done in one pass over all blocks, each ``skew`` blocks behind the one before.
    """

    phased: PhasedNest
    dimension: Dimension
    height: int
    shifts: tuple[int, ...]
    skew: int
    sweeps: int

    def __str__(self) -> str:
        loop, _ = next(iter(self.dimension.loops.items()))
        name = self.phased.phases[loop].nest.space_loops[self.dimension.loops[loop][0]].name
        together = f"{self.sweeps} sweeps" if self.sweeps > 1 else "all phases"
        return (
            f"{together} together, in blocks of {self.height} along {name}: more than that does not stay in the cache"
        )

    def steps(self, phase: int) -> list[Box]:
        """The iterations of a phase, a box for every block, empty where it has none there. As many for every phase."""
        low, high = self.dimension.span
        blocks = -(-(high - low + max(self.shifts)) // self.height)
        ends = (low + k * self.height - self.shifts[phase] for k in range(blocks + 1))
        cuts = tuple(min(max(end, low), high) for end in ends)
        blocked = Distribution(self.phased, (self.dimension,), (cuts,))
        nothing = ((0, 0),) * len(self.phased.phases[phase].nest.space_loops)
        return [blocked.block(phase, k) or nothing for k in range(blocks)]


@dataclass(frozen=True)
class Shifts:
    """By how many coordinates along a dimension every phase lies behind the first, and a sweep ``apart`` behind the one before:
    the least that keep the order of what touches an element."""

    phased: PhasedNest
    dimension: Dimension
    of_phases: tuple[int, ...]
    apart: int

    def fused(self, height: int, sweeps: int) -> Fusion:
        """In blocks of so many coordinates, so many sweeps in a pass."""
        skew = max(1, -(-self.apart // height))
        return Fusion(self.phased, self.dimension, height, self.of_phases, skew, sweeps)


def shifts_of(phased: PhasedNest) -> Shifts | None:
    """Along the first dimension that allows it; None where dependences forbid it along all of them."""
    for dimension in dimensions(phased):
        if not _goes_forward(phased, dimension) or (lags := _lags(phased, dimension)) is None:
            continue
        shifts: list[int] = []
        for later in range(len(phased.phases)):
            shifts.append(max([0, *(shifts[k] + lags[k, later] for k in range(later) if (k, later) in lags)]))
        apart = max(shifts[sooner] + lag - shifts[later] for (sooner, later), lag in lags.items())
        return Shifts(phased, dimension, tuple(shifts), apart)
    return None


def fusion_of(phased: PhasedNest, forms: Sequence[InnerForm]) -> Fusion | None:
    """How phases are fused on one rank; None where dependences forbid it, and where it would not pay: all arrays stay in the
    cache from one phase to the next, or not even a few rows of them do.

    Not where a phase has lanes, which want many rows at once, or where its iterations may raise one by one: what the plain loop
    raises is what the first sweep does.
    """
    total = sum(math.prod(array.shape) * array.itemsize for array in phased.arrays)
    if total <= CACHED_BYTES or any(form.lanes > 1 for form in forms):
        return None
    if any(not raises_alike(bound.body) for bound in phased.phases):
        return None
    if (shifts := shifts_of(phased)) is None or any(
        loop and loop == len(phased.phases[p].nest.space_loops) - 1 for p, (loop, _) in shifts.dimension.loops.items()
    ):
        return None  # it would cut rows
    extent = shifts.dimension.extent
    points = max(volume(bound.domain.box[phased.sweep_depth :]) for bound in phased.phases)
    height = max(1, math.ceil(BLOCK_POINTS * extent / points))
    room = ROOM_BYTES * extent // total - max(shifts.of_phases)  # coordinates
    most = min(phased.sweeps, room // (height * shifts.fused(height, 1).skew))
    if most * len(phased.phases) < 2:
        return None
    passes = -(-phased.sweeps // most)
    return shifts.fused(height, -(-phased.sweeps // passes))


def _goes_forward(phased: PhasedNest, dimension: Dimension) -> bool:
    """Whether every phase may be done block by block in the order of coordinates, and its reductions in theirs."""
    for phase, bound in enumerate(phased.phases):
        if phase not in dimension.loops:
            continue
        loop = dimension.loops[phase][0]
        found = inside_sweep(phased.dependences[phase], phased.sweep_depth)
        along = [dependence.vector[phased.sweep_depth + loop] for dependence in found]
        is_reversed = bound.nest.space_loops[loop].step < 0
        if any(distance < 0 for distance in along) or (is_reversed and any(along)):
            return False
        if bound.nest.accumulators and (loop or is_reversed):
            return False
    return True


def _lags(phased: PhasedNest, dimension: Dimension) -> _Lags | None:
    """By how many coordinates the second phase has to come behind the first, wherever that is done sooner, because both touch
    elements that one of them writes; None where that is not known of two phases."""
    lags: _Lags = {}
    for name in phased.written:
        touched = {
            (phase, written): accesses
            for phase, bound in enumerate(phased.phases)
            for written, accesses in ((True, _writes(bound, name)), (False, _all(bound, name)))
            if accesses
        }
        for (sooner, one_writes), (later, other_writes) in itertools.product(touched, touched):
            if one_writes == other_writes:
                continue  # all that a phase touches are its writes, too
            before = reach_of(phased, dimension, sooner, touched[sooner, one_writes])
            behind = reach_of(phased, dimension, later, touched[later, other_writes])
            if before is None or behind is None or before.around or behind.around:
                return None
            lags[sooner, later] = max(lags.get((sooner, later), 0), behind.forth + before.back)
    return lags


def _writes(bound: BoundNest, name: str) -> list[ir.Access]:
    return [store.target for store in bound.nest.stores if store.target.array == name]


def _all(bound: BoundNest, name: str) -> list[ir.Access]:
    return [access for access in bound.accesses if access.array == name]
