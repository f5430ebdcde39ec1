"""The exact timeline of a run out of core: when every step, and every slab that is read or written, begins and ends.

Ranks compute their steps in order, each needing slabs in memory and its neighbours' steps; a node's disk moves one slab after the
other. This is what the runtime's disk ring does (disk_ring.hpp), with P3's three blocks as a special case (P3, section 2).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

_FREE_PASSES = 2  # what the first passes write takes no earlier generation's place


@dataclass(frozen=True)
class DiskPipeline:
    """A run out of core, as far as its time goes.

    grid: ranks along the loops; ``slabs`` of every rank, one a step of a sweep. ``pass_sweeps`` of the ``sweeps`` share a pass,
    each ``skew`` steps behind the one before, with ``opening`` sweeps that compute nothing before those of the first pass.
    ``ahead``: a step needs so many slabs beyond its own. At most ``slots`` are in memory. Seconds: ``compute`` of a step,
    ``read`` and ``write`` of a slab. ``ranks_a_node`` share a disk.
    """

    grid: tuple[int, ...]
    slabs: int
    sweeps: int
    pass_sweeps: int
    opening: int
    skew: int
    ahead: int
    slots: int
    compute: float
    read: float
    write: float
    ranks_a_node: int

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)

    @property
    def passes(self) -> int:
        return -(-self.sweeps // self.pass_sweeps)

    @property
    def total_steps(self) -> int:
        """Of one rank, opening sweeps included."""
        return (self.sweeps + self.opening) * self.slabs

    def order(self) -> Iterator[Step]:
        """The steps of a rank, as in order.hpp."""
        for number in range(self.passes):
            first = 0 if number == 0 else self.opening + number * self.pass_sweeps
            end = min(self.opening + (number + 1) * self.pass_sweeps, self.opening + self.sweeps)
            for wave in range(self.slabs + self.skew * (end - first - 1)):
                for sweep in range(first, end):
                    step = wave - self.skew * (sweep - first)
                    if 0 <= step < self.slabs:
                        yield Step(number, sweep, step, sweep == end - 1)


class Step(NamedTuple):
    """``is_last``: of the pass's sweeps, so that its slab can be written."""

    number: int
    sweep: int
    step: int
    is_last: bool


class Span(NamedTuple):
    """Of a step (sweep, step) or of a slab (pass, slab), in seconds since the run began."""

    at: tuple[int, int]
    begin: float
    end: float


@dataclass
class RankTimeline:
    """``disk``: of the time before each step, what was spent waiting for slabs; the rest is waiting for other ranks."""

    steps: list[Span] = field(default_factory=list)
    disk: list[float] = field(default_factory=list)
    reads: list[Span] = field(default_factory=list)
    writes: list[Span] = field(default_factory=list)

    @property
    def end(self) -> float:
        return max([0.0, *(spans[-1].end for spans in (self.steps, self.writes) if spans)])


@dataclass(frozen=True)
class DiskTimeline:
    pipeline: DiskPipeline
    ranks: tuple[RankTimeline, ...]

    @property
    def makespan(self) -> float:
        return max(rank.end for rank in self.ranks)


def disk_timeline(pipeline: DiskPipeline) -> DiskTimeline:
    """When everything happens, by going from event to event."""
    return _Run(pipeline).timeline()


@dataclass
class _Rank:
    number: int
    earlier: Sequence[int]  # ranks whose step of this sweep comes first
    later: Sequence[int]  # ranks whose step of the sweep before comes first
    timeline: RankTimeline = field(default_factory=RankTimeline)
    at: int = 0  # steps that are done
    computes: bool = False
    ready: float = 0.0  # since when no step is being computed
    loaded_at: float = 0.0  # when the last slab it waited for was there
    opened: int = 0  # slabs whose reading has begun
    read: int = 0
    released: int = 0
    writing: int = 0  # slabs whose writing has begun
    written: int = 0


class _Run:
    def __init__(self, pipeline: DiskPipeline) -> None:
        self._pipeline = pipeline
        self._order = list(pipeline.order())
        self._total = pipeline.passes * pipeline.slabs
        self._ranks = [_Rank(n, self._beside(n, -1), self._beside(n, 1)) for n in range(pipeline.ranks)]
        self._nodes = [
            self._ranks[first : first + pipeline.ranks_a_node]
            for first in range(0, pipeline.ranks, pipeline.ranks_a_node)
        ]
        self._busy = [False] * len(self._nodes)
        self._done: set[tuple[int, int, int]] = set()  # rank, sweep, step
        self._events: list[tuple[float, int, Callable[[_Rank], None], _Rank]] = []
        self._counter = itertools.count()
        self._now = 0.0

    def _beside(self, number: int, direction: int) -> list[int]:
        """The ranks before this one along each axis of the grid, or after it."""
        place = np.unravel_index(number, self._pipeline.grid)
        found = []
        for axis, parts in enumerate(self._pipeline.grid):
            moved = [int(p) for p in place]
            moved[axis] += direction
            if 0 <= moved[axis] < parts:
                found.append(int(np.ravel_multi_index(moved, self._pipeline.grid)))
        return found

    def timeline(self) -> DiskTimeline:
        self._start_all()
        while self._events:
            self._now, _, happen, rank = heapq.heappop(self._events)
            happen(rank)
            self._start_all()
        return DiskTimeline(self._pipeline, tuple(rank.timeline for rank in self._ranks))

    def _after(self, seconds: float, happen: Callable[[_Rank], None], rank: _Rank) -> None:
        heapq.heappush(self._events, (self._now + seconds, next(self._counter), happen, rank))

    def _start_all(self) -> None:
        for rank in self._ranks:
            self._start_step(rank)
        for node, ranks in enumerate(self._nodes):
            if not self._busy[node]:
                self._start_slab(node, ranks)

    def _start_step(self, rank: _Rank) -> None:
        if rank.computes or rank.at == len(self._order):
            return
        number, sweep, step, _ = self._order[rank.at]
        needed = number * self._pipeline.slabs + min(self._pipeline.slabs, step + 1 + self._pipeline.ahead)
        if rank.read < needed:
            return
        same = all((other, sweep, step) in self._done for other in rank.earlier)
        before = sweep == 0 or all((other, sweep - 1, step) in self._done for other in rank.later)
        if not (same and before):
            return
        rank.timeline.disk.append(min(max(0.0, rank.loaded_at - rank.ready), self._now - rank.ready))
        rank.computes = True
        rank.ready = self._now
        self._after(self._pipeline.compute if sweep >= self._pipeline.opening else 0.0, self._computed, rank)

    def _computed(self, rank: _Rank) -> None:
        at = self._order[rank.at]
        rank.timeline.steps.append(Span((at.sweep, at.step), rank.ready, self._now))
        rank.computes, rank.ready = False, self._now
        self._done.add((rank.number, at.sweep, at.step))
        rank.at += 1
        if at.is_last:
            rank.released = at.number * self._pipeline.slabs + at.step + 1

    def _start_slab(self, node: int, ranks: Sequence[_Rank]) -> None:
        """Reading comes first, and first of the rank that has read least."""
        room = min(self._pipeline.slots, self._pipeline.slabs)
        wanted = [rank for rank in ranks if rank.opened < min(self._total, rank.written + room)]
        if wanted:
            rank = min(wanted, key=lambda one: one.opened)
            rank.timeline.reads.append(Span(self._slab(rank.opened), self._now, self._now + self._pipeline.read))
            rank.opened += 1
            self._after(self._pipeline.read, self._loaded, rank)
        else:
            finished = min(rank.written for rank in self._ranks) // self._pipeline.slabs
            allowed = max(_FREE_PASSES, finished + 1) * self._pipeline.slabs
            wanted = [rank for rank in ranks if rank.writing < min(rank.released, allowed)]
            if not wanted:
                return
            rank = min(wanted, key=lambda one: one.writing)
            rank.timeline.writes.append(Span(self._slab(rank.writing), self._now, self._now + self._pipeline.write))
            rank.writing += 1
            self._after(self._pipeline.write, self._stored, rank)
        self._busy[node] = True

    def _slab(self, number: int) -> tuple[int, int]:
        return divmod(number, self._pipeline.slabs)

    def _loaded(self, rank: _Rank) -> None:
        rank.read += 1
        rank.loaded_at = self._now
        self._busy[rank.number // self._pipeline.ranks_a_node] = False

    def _stored(self, rank: _Rank) -> None:
        rank.written += 1
        self._busy[rank.number // self._pipeline.ranks_a_node] = False
