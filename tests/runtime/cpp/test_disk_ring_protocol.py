"""The protocol of the disk ring (disk_ring.hpp), gone through in all orders in which its threads may come to act.

One thread computes steps in their order, others move slabs; what they wait for are counters of slabs. The tables come from real
nests, small ones. What the arrays' elements are is left out: rows and slabs are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import pytest
from everyday import everyday

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.planner.choose import Wishes
from lapwing.planner.streaming import DiskRates, StreamingWishes, streaming_plan
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import in_direction
from lapwing.tiling.slabs import Slabs, slabs_of

MOVERS = 4  # slabs that are on their way at the same time


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def advance(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = u[i - 1, j] + u[i, j - 1] + u[i, j]


@lw.nest
def downwards(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * (u[i + 1, j] + u[i - 1, j])


@lw.nest
def two_reaches(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 3):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i - 1, j - 1] + v[i + 1, j]
                v[i, j] = 0.5 * v[i + 3, j + 1] + u[i, j]


NESTS = (smooth, advance, downwards, two_reaches)


class Wrong(Exception):
    """What the protocol must not let happen."""


class Flow(NamedTuple):
    """Slabs that go one way: so many were opened, and those of ``moving``, a bit each, are still on their way."""

    opened: int = 0
    moving: int = 0

    def open(self) -> Flow:
        return Flow(self.opened + 1, self.moving | 1 << self.opened)

    def after_one_more(self) -> Iterator[Flow]:
        """Any of those on their way arrives."""
        for slab in range(self.opened):
            if self.moving >> slab & 1:
                yield Flow(self.opened, self.moving & ~(1 << slab))

    def has_moved(self, slab: int) -> bool:
        return slab < self.opened and not self.moving >> slab & 1

    @property
    def first(self) -> int:
        """The first slab that has not moved."""
        return (self.moving & -self.moving).bit_length() - 1 if self.moving else self.opened


class State(NamedTuple):
    """``step`` counts over the whole run; of ``writable`` passes slabs may be written."""

    step: int = 0
    computes: bool = False
    reading: Flow = Flow()
    writing: Flow = Flow()
    writable: int = 0


@dataclass(frozen=True)
class Ring:
    """The tables of one rank, and the protocol. Fields with defaults are what a broken protocol has otherwise.

    ``shapes``: how many rows every array has; ``ring_rows``: how many of them have room in memory; ``opening``: sweeps that come
    before the first one, in the first pass.
    """

    slabs: Slabs
    shapes: tuple[int, ...]
    slots: int
    ring_rows: tuple[int, ...]
    skew: int
    sweeps: int
    together: int
    opening: int = 0
    more_room: int = 0
    released_early: int = 0
    needed_less: int = 0
    releases_every_sweep: bool = False
    counts_out_of_turn: bool = False
    writes_at_once: bool = False

    @property
    def count(self) -> int:
        return len(self.slabs.before)

    @property
    def passes(self) -> int:
        return -(-self.sweeps // self.together)

    @property
    def total(self) -> int:
        return self.passes * self.count

    @cached_property
    def order(self) -> list[tuple[int, int, bool]]:
        """Pass and step of all that is computed, and whether it is the last sweep of the pass: as Order in order.hpp."""
        found = []
        for number in range(self.passes):
            sweeps = min(self.together, self.sweeps - number * self.together) + (self.opening if number == 0 else 0)
            for wave in range(self.count + self.skew * (sweeps - 1)):
                for sweep in range(sweeps):
                    step = wave - self.skew * sweep
                    if 0 <= step < self.count:
                        found.append((number, step, sweep == sweeps - 1))
        return found

    @cached_property
    def released(self) -> list[int]:
        """After so many steps."""
        found = [0]
        for number, step, last in self.order:
            done = number * self.count + step + 1
            if self.releases_every_sweep or last:
                found.append(max(found[-1], min(self.total, done + self.released_early)))
            else:
                found.append(found[-1])
        return found

    def touched(self, step: int) -> Iterator[tuple[int, int, int]]:
        """Array and rows, counted over all passes in the direction of the loop, that a step of the run touches."""
        number, at, _ = self.order[step]
        for k, array in enumerate(self.slabs.arrays):
            low, high = in_direction(array.touched[at], array.step)
            if array.touched[at][0] < array.touched[at][1]:
                yield k, self.place(k, number, low), self.place(k, number, high)

    def place(self, array: int, number: int, row: int) -> int:
        return number * self.shapes[array] + row - self.slabs.arrays[array].cuts[0]

    def rows(self, array: int, slab: int) -> tuple[int, int]:
        """Of a slab, counted over all passes."""
        number, at = divmod(slab, self.count)
        cuts = self.slabs.arrays[array].cuts
        return self.place(array, number, cuts[at]), self.place(array, number, cuts[at + 1])

    def end(self, array: int, slabs: int) -> int:
        """Where so many slabs end."""
        return self.rows(array, slabs - 1)[1] if slabs else 0

    @cached_property
    def last_use(self) -> dict[int, int]:
        """The last step of the run that touches a slab."""
        found = {}
        for step in range(len(self.order)):
            number = self.order[step][0]
            for array, low, high in self.touched(step):
                for slab in range(number * self.count, (number + 1) * self.count):
                    first, end = self.rows(array, slab)
                    if max(first, low) < min(end, high):
                        found[slab] = step
        return found

    # -- the protocol ------------------------------------------------------------------------------------------------

    def done(self, flow: Flow) -> int:
        """What is told of slabs that have moved: how many have with all before them."""
        return flow.opened - flow.moving.bit_count() if self.counts_out_of_turn else flow.first

    def following(self, state: State) -> Iterator[State]:
        """All that may come next."""
        reading, writing, released = state.reading, state.writing, self.released[state.step]
        if state.computes:
            yield state._replace(step=state.step + 1, computes=False)
        elif state.step < len(self.order):
            number, at, _ = self.order[state.step]
            if self.done(reading) >= number * self.count + self.slabs.before[at] - self.needed_less:
                yield state._replace(computes=True)
        if reading.moving.bit_count() + writing.moving.bit_count() < MOVERS:
            room = self.done(writing) + min(self.slots, self.count) + self.more_room
            if reading.opened < min(self.total, room):
                yield state._replace(reading=reading.open())
            allowed = self.total if self.writes_at_once else state.writable * self.count
            if writing.opened < min(released, allowed):
                yield state._replace(writing=writing.open())
        if state.writable < self.passes and released > state.writable * self.count:
            yield state._replace(writable=state.writable + 1)
        for flow in reading.after_one_more():
            yield state._replace(reading=flow)
        for flow in writing.after_one_more():
            yield state._replace(writing=flow)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def check(self, before: State, after: State) -> None:
        """Raise Wrong where the step from one state to another must not be."""
        if after.reading.opened > before.reading.opened:
            self.check_reading(before.reading.opened, after)
        if after.writing.opened > before.writing.opened:
            self.check_writing(before.writing.opened, after)
        if after.computes:
            self.check_computing(after)

    def check_reading(self, slab: int, state: State) -> None:
        if slab >= self.count and not state.writing.has_moved(slab - self.count):
            raise Wrong("a slab is read that the pass before has not written")
        for array, ring_rows in enumerate(self.ring_rows):
            _, end = self.rows(array, slab)
            for other in range(state.writing.first, slab):
                first, last = self.rows(array, other)
                if first < last and first + ring_rows < end and not state.writing.has_moved(other):
                    raise Wrong("a slab is read to where another one is that is not written")

    def check_writing(self, slab: int, state: State) -> None:
        if slab in self.last_use and self.last_use[slab] >= state.step:
            raise Wrong("a slab is written that is computed on later")
        if not state.reading.has_moved(slab):
            raise Wrong("a slab is written before it is read")
        if slab >= self.count and not state.reading.has_moved(slab - self.count):
            raise Wrong("a generation is replaced that is being read")
        if slab // self.count >= state.writable:
            raise Wrong("a pass is written that may not be")

    def check_computing(self, state: State) -> None:
        number = self.order[state.step][0]
        for array, low, high in self.touched(state.step):
            if low + self.ring_rows[array] < self.end(array, state.reading.opened):
                raise Wrong("rows are computed on that have made way for others")
            for slab in range(number * self.count, (number + 1) * self.count):
                first, end = self.rows(array, slab)
                if max(first, low) >= min(end, high):
                    continue
                if not state.reading.has_moved(slab):
                    raise Wrong("a slab is computed on that is not loaded")
                if slab < state.writing.opened:
                    raise Wrong("a slab is computed on that is being written")

    def explore(self) -> int:
        """Go through all states; how many there are. Raises Wrong."""
        seen, left = {State()}, [State()]
        while left:
            state = left.pop()
            stuck = True
            for after in self.following(state):
                stuck = False
                self.check(state, after)
                if after not in seen:
                    seen.add(after)
                    left.append(after)
            if stuck and (state.step < len(self.order) or state.writing.first < self.total):
                raise Wrong(f"nothing goes on: {state}")
        return len(seen)


def ring_of(
    nest: lw.Nest, rows: int, tile: int, sweeps: int, together: int, ranks: int, ring: int, fewer_slots: int = 0
) -> Ring:
    """The tables of the last rank, as WorkOnDisk makes them."""
    names = [name for name in nest.loops.parameters if name != "sweeps"]
    bound = nest.bind({**{name: ArrayShape("float64", (rows, 9)) for name in names}, "sweeps": sweeps})
    wishes, how = Wishes("overlap", tile), StreamingWishes(None, together, ring)
    chunks = dict.fromkeys(names, (rows, 9))
    plan = streaming_plan(bound, nest.dependences, ranks, ranks, wishes, how, chunks, DiskRates.of(None), 1e-9)
    assert plan.ranks == ranks
    assert plan.streaming is not None
    faces = Faces(bound, plan.partition, plan.mapping, plan.tile, plan.buffers)
    slabs = slabs_of(faces, ranks - 1, plan.streaming.arrays)
    together = plan.streaming.pass_sweeps
    opening = plan.streaming.opening_sweeps
    slots = slabs.least_slots(opening + together, faces.sweep_skew) + ring - 1 - fewer_slots
    ring_rows = tuple(max(array.most_rows(slots), 1) for array in slabs.arrays)
    return Ring(slabs, (rows,) * len(slabs.arrays), slots, ring_rows, faces.sweep_skew, sweeps, together, opening)


CASES = {
    f"{nest.name}, {rows} rows, tile {tile}, {sweeps} sweeps, {together} a pass, {ranks} ranks": (
        nest, rows, tile, sweeps, together, ranks,
    )
    for nest in NESTS
    for rows, tile, sweeps, together, ranks in [
        (8, 1, 2, 1, 1), (9, 2, 3, 2, 1), (9, 2, 3, 3, 2), (8, 1, 2, 2, 2), (11, 3, 4, 2, 1), (7, 2, 3, 1, 2),
        (17, 2, 4, 3, 2), (20, 3, 3, 2, 1),
    ]
}  # fmt: skip


@pytest.mark.parametrize("ring", everyday([1, 2, 3], [2]))
@pytest.mark.parametrize("name", CASES)
def test_all_goes_well_in_any_order(name: str, ring: int) -> None:
    assert ring_of(*CASES[name], ring).explore() > 10


@pytest.mark.parametrize("name", CASES)
def test_slots_are_the_least(name: str) -> None:
    """With one less nothing would go on."""
    with pytest.raises(Wrong, match="nothing goes on"):
        ring_of(*CASES[name], 1, fewer_slots=1).explore()


BROKEN = {
    "room for a slab more": (dict(more_room=1), "where another one is that is not written"),
    "released a slab early": (dict(released_early=1), "is written that is computed on later|written before it is read"),
    "one slab less is needed": (dict(needed_less=1), "computed on that is not loaded"),
    "released after every sweep": (dict(releases_every_sweep=True), "is written that is computed on later"),
    "slabs counted out of turn": (dict(counts_out_of_turn=True), "not loaded|before it is read|not written"),
    "written without leave": (dict(writes_at_once=True), "a pass is written that may not be"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_found(name: str) -> None:
    changes, said = BROKEN[name]
    ring = ring_of(smooth, 18, 2, 4, 2, 1, 2)
    ring.explore()
    with pytest.raises(Wrong, match=said):
        replace(ring, **changes).explore()


@pytest.mark.parametrize("nest", NESTS)
def test_rows_are_the_least(nest: lw.Nest) -> None:
    ring = ring_of(nest, 9, 2, 3, 2, 1, 2)
    with pytest.raises(Wrong, match=r"where another one is that is not written|made way for others"):
        replace(ring, ring_rows=tuple(rows - 1 for rows in ring.ring_rows)).explore()
