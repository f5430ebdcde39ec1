"""The inner form of a tile: in which order the points of its box are computed. All forms give the same bits.

Every form is a unimodular transformation of the space loops (Banerjee; Wolf and Lam): their interchange, and with lanes
the skewing of the two innermost by one and the strip-mining of the outer of them,

    for v:                          for v in blocks of lanes:
        for w:              →           for step:
            body(v, w)                      for lane: body(v + lane, step - lane)

It is legal where every dependence inside a sweep still points forwards. Then either the innermost loop carries none, and
its iterations are independent, or it is a chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence, Vector, inside_sweep
from lapwing.tiling.chains import waits_for_integers
from lapwing.tiling.transposed import (
    MOST_COALESCED_SWEEPS,
    TRANSPOSED_LANES,
    Planes,
    lanes_of_buffers,
    planes_of,
)

# Rows in flight. More hide more latency, but each touches a cache line of its own in every plane it reads. Beyond about
# so many such streams the core's prefetchers lose track and loads go to the outer caches (docs/performance/kernels.md).
MOST_LANES, FEW_LANES = 16, 4
MOST_SWEEPS_IN_VECTORS = 64  # done at once: many vectors of them, and calls in which little time goes by
_STREAMS = {MOST_LANES: 32, FEW_LANES: 16}
_LANES_OF_MANY_SWEEPS = (TRANSPOSED_LANES, TRANSPOSED_LANES // 2)


@dataclass(frozen=True)
class InnerForm:
    """``order``: the space loops by position, the innermost last. ``lanes``: rows that advance together, each one step
    behind the row above; 1 is the plain loop. ``independent``: whether no dependence joins iterations of the innermost
    loop, which with lanes are those of one step. ``transposed``: whether what a step needs of many rows is copied into buffers
    in which it lies side by side (``tiling.transposed``); ``sweeps``: how many in a row then share what is copied, where one rank
    does all of the nest. ``coalesced``: whether the rows of a lane in all planes of the third loop from the inside are one.
    ``in_place``: whether one rank works on arrays where they lie although their rows are crowded (``runtime.arrays.storage``);
    else it copies those into padded memory first. ``scanned``: whether what joins iterations of the innermost loop are
    recurrences of integers, computed as scans (``codegen.inner_loops.scans``). ``skewed``: whether rows advance together
    as vectors in registers, as many as these have elements, or sweeps over the same row where there is one loop inside of them
    (``codegen.outer_loops.skewing``). ``rows``: how many rows take turns, step by step, where sweeps are the lanes of vectors."""

    order: tuple[int, ...]
    lanes: int
    independent: bool
    transposed: bool = False
    sweeps: int = 1
    coalesced: bool = False
    in_place: bool = False
    scanned: bool = False
    skewed: bool = False
    rows: int = 1

    @property
    def lanes_are_sweeps(self) -> bool:
        """Whether sweeps over several loops are the lanes of vectors (``tiling.sweep_lanes``)."""
        return self.skewed and self.sweeps > 1 and len(self.order) > 1

    @property
    def pads(self) -> bool:
        """Whether one rank copies arrays whose rows are crowded into padded memory."""
        return self.lanes > 1 and not self.in_place

    def describe(self, loops: Sequence[str]) -> str:
        """In words; ``loops`` are the names of the space loops."""
        name = (
            "scan"
            if self.scanned
            else f"{'rows' if self.sweeps == 1 else 'sweeps'} in vectors"
            if self.skewed
            else "plain"
            if self.lanes == 1
            else f"lanes of {self.lanes}{', transposed' if self.transposed else ''}"
        )
        if self.lanes_are_sweeps:
            name = f"{self.sweeps} {name}" + (f", {self.rows} rows in turns" if self.rows > 1 else "")
        if self.coalesced:
            name += f", {loops[self.order[-3]]} coalesced"
            name += f", {self.sweeps} sweeps" if self.sweeps > 1 else ""
        if self.in_place:
            name += ", rows where they lie"
        return name if self.order == tuple(range(len(self.order))) else f"{name} along {loops[self.order[-1]]}"


def legal_forms(bound: BoundNest, dependences: Sequence[Dependence]) -> tuple[InnerForm, ...]:
    """The forms worth comparing, the plain loops in their own order first.

    bound, dependences: in the coordinates that are cut into tiles, so that no dependence has a negative component.
    """
    depth = bound.nest.sweep_depth
    vectors = [d.vector[depth:] for d in inside_sweep(dependences, depth)]
    found = []
    for order in _orders(bound):
        chained = not _is_independent(order, vectors)
        takes_lanes = chained and len(order) > 1
        for lanes in (1, FEW_LANES, MOST_LANES) if takes_lanes else (1,):
            if is_legal(order, lanes, vectors):
                found.append(InnerForm(order, lanes, independent=lanes > 1 or not chained))
        if chained and is_legal(order, 1, vectors) and _may_be_scanned(bound, order[-1]):
            found.append(InnerForm(order, 1, independent=False, scanned=True))
        if takes_lanes and is_legal(order, TRANSPOSED_LANES, vectors):
            found += _in_buffers(bound, order, _may_coalesce(order, vectors))
    return tuple(found)


def _in_buffers(bound: BoundNest, order: tuple[int, ...], may_coalesce: bool) -> list[InnerForm]:
    """The forms with buffers. Planes that can be coalesced are seldom better off by themselves: that is tried with the usual
    number of lanes alone. Where more sweeps could be done at once than rings in a near cache hold, that is tried, too, with the
    usual number of lanes and with half of it."""

    def form(coalesced: bool, lanes: int, sweeps: int | None = None) -> InnerForm | None:
        planes = planes_of(bound, order, coalesced, lanes, sweeps)
        return None if planes is None else InnerForm(order, lanes, True, True, planes.sweeps, coalesced)

    in_all_planes = _known(form(True, lanes) for lanes in lanes_of_buffers(True)) if may_coalesce else []
    most = min(MOST_COALESCED_SWEEPS, sweeps_to_join(bound))
    if in_all_planes and 1 < in_all_planes[0].sweeps < most:
        in_all_planes += _known(form(True, lanes, MOST_COALESCED_SWEEPS) for lanes in _LANES_OF_MANY_SWEEPS)
    lanes_of_two = lanes_of_buffers(False)[: 1 if in_all_planes else None]
    return [*_known(form(False, lanes) for lanes in lanes_of_two), *dict.fromkeys(in_all_planes)]


def _known(forms: Iterable[InnerForm | None]) -> list[InnerForm]:
    return [form for form in forms if form is not None]


def planes_in(bound: BoundNest, form: InnerForm) -> Planes | None:
    """What a tile of a form copies into buffers; None where it has none."""
    return planes_of(bound, form.order, form.coalesced, form.lanes, form.sweeps) if form.transposed else None


def sweeps_to_join(bound: BoundNest) -> int:
    """How many sweeps follow one another in a nest with one sweep loop; 1 for others."""
    if bound.nest.sweep_depth != 1:
        return 1
    low, high = bound.domain.box[0]
    return max(1, high - low)


def usual_lanes(bound: BoundNest) -> int:
    """How many rows the core's prefetchers can follow; 1 where only one."""
    planes = _planes(bound)
    return next((lanes for lanes, streams in _STREAMS.items() if lanes * planes <= streams), 1)


def is_legal(order: Sequence[int], lanes: int, vectors: Sequence[Vector]) -> bool:
    """Whether all dependences point forwards in the order of a form, and with lanes none joins points of one step."""
    for vector in vectors:
        moved = [vector[k] for k in order]
        if lanes > 1 and not any(moved[:-2]):
            v, w = moved[-2:]
            if v < 0 or v + w <= 0:
                return False
        if next((c for c in moved if c), 0) <= 0:
            return False
    return True


def _may_coalesce(order: Sequence[int], vectors: Sequence[Vector]) -> bool:
    """Whether blocks of rows may be gone through in all planes of the third loop from the inside, one after the other."""
    return len(order) > 2 and all(
        vector[order[-2]] >= 0 for vector in vectors if not any(vector[k] for k in order[:-3])
    )


def _may_be_scanned(bound: BoundNest, innermost: int) -> bool:
    """Whether iterations of a loop wait for integers of the one before them alone, whose place in the domain is one before
    theirs."""
    loop = bound.nest.space_loops[innermost]
    skew, place = bound.skew, bound.nest.sweep_depth + innermost
    if skew is not None and any(row[place] != (k == place) for k, row in enumerate(skew.inverse)):
        return False
    return waits_for_integers(bound.body, loop.name, loop.step)


def _is_independent(order: Sequence[int], vectors: Sequence[Vector]) -> bool:
    """Whether no dependence joins iterations that differ along the innermost loop alone."""
    return not any(vector[order[-1]] and not any(vector[k] for k in order[:-1]) for vector in vectors)


def _orders(bound: BoundNest) -> Iterator[tuple[int, ...]]:
    """The loops' own order; and where most arrays are contiguous along another loop, that one innermost.

    Bounds that depend on outer indices keep those indices outside.
    """
    names = [loop.name for loop in bound.nest.space_loops]
    own = tuple(range(len(names)))
    yield own
    contiguous: Counter[str] = Counter()
    for access in bound.accesses:
        last = access.affine[-1]
        if last is not None:
            contiguous.update(last.names & set(names))
    depends = bound.skew is not None or any(
        loop.bound_names & set(bound.nest.loop_names) for loop in bound.nest.space_loops
    )
    if contiguous and not depends:
        inner = names.index(max(names, key=lambda name: (contiguous[name], names.index(name))))
        if inner != own[-1]:
            yield (*(k for k in own if k != inner), inner)


def _planes(bound: BoundNest) -> int:
    """How many separate runs of memory one row of the innermost loop reads and writes, rows next to it aside."""
    inner = bound.nest.loop_names[-2:]
    planes = set()
    for access in bound.accesses:
        affines = [a for a in access.affine if a is not None]
        if any(inner[0] in a.names for a in affines):
            planes.add((access.array, tuple(a for a in affines if not set(inner) & a.names)))
    return len(planes)
