"""Which rank owns which block of the iteration space: a process grid and the cuts along every space loop."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from lapwing.loopnest.domain import Domain

Range = tuple[int, int]  # half-open


def in_direction(indices: Range, step: int) -> Range:
    """A range of indices as normalised coordinates of a loop with that step, or the other way round."""
    low, high = indices
    return (low, high) if step == 1 else (1 - high, 1 - low)


def coordinates_in(grid: Sequence[int], rank: int) -> tuple[int, ...]:
    """Where a rank stands in a process grid, of which ranks are numbered row by row."""
    found = []
    for extent in reversed(grid):
        rank, coordinate = divmod(rank, extent)
        found.append(coordinate)
    return tuple(reversed(found))


def balanced_cuts(low: int, high: int, parts: int) -> tuple[int, ...]:
    """Cut points of ``[low, high)`` into parts that differ by at most one.

    Raises ValueError when there are more parts than points.
    """
    extent = high - low
    if not 1 <= parts <= max(extent, 1):
        raise ValueError(f"{parts} parts of {extent} points")
    return tuple(low + extent * k // parts for k in range(parts + 1))


def weighted_cuts(low: int, weights: Sequence[int] | npt.NDArray[np.int64], parts: int) -> tuple[int, ...]:
    """Cut points from ``low`` on into parts of about equal weight, of at least one row each.

    weights: of the rows, from ``low`` on. Raises ValueError when there are more parts than rows.
    """
    rows = len(weights)
    if not 1 <= parts <= max(rows, 1):
        raise ValueError(f"{parts} parts of {rows} rows")
    before = np.concatenate([[0], np.cumsum(weights, dtype=np.float64)])
    wanted = before[-1] * np.arange(parts + 1) / parts
    beyond = np.clip(np.searchsorted(before, wanted), 1, rows)
    nearest = beyond - (wanted - before[beyond - 1] < before[beyond] - wanted)
    cuts = [0]
    for k in range(1, parts):
        cuts.append(min(max(int(nearest[k]), cuts[-1] + 1), rows - parts + k))
    return tuple(low + cut for cut in (*cuts, rows))


@lru_cache(maxsize=1024)
def even_cuts(domain: Domain, axis: int, parts: int) -> tuple[int, ...]:
    """Cut points of a loop, in values of the user's index, into parts of about equal numbers of points.

    Raises ValueError when there are more parts than rows.
    """
    step = domain.loops[axis].step
    first, last = in_direction(domain.box[axis], step)
    counts = None if domain.is_box or parts == 1 else domain.counts(axis)
    if counts is None:
        return balanced_cuts(first, last, parts)
    return weighted_cuts(first, counts[::step], parts)


def factorisations(number: int, factors: int) -> Iterator[tuple[int, ...]]:
    """All ordered ways to write a number as a product of the given count of factors."""
    if factors == 0:
        if number == 1:
            yield ()
        return
    for first in _divisors(number):
        for rest in factorisations(number // first, factors - 1):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def _divisors(number: int) -> tuple[int, ...]:
    """All divisors, in order."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(dict.fromkeys([*small, *(number // k for k in reversed(small))]))


@dataclass(frozen=True)
class Partition:
    """Blocks of the space loops.

    ``cuts`` holds, per space loop, the cut points in values of the user's index, so that rank 0 always owns the lowest
    indices; ``steps`` the loops' directions. Ranks are numbered row by row over the process grid.
    """

    cuts: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]

    @cached_property
    def grid(self) -> tuple[int, ...]:
        return tuple(len(c) - 1 for c in self.cuts)

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)

    @cached_property
    def edges(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Per normalised loop, in its direction, where blocks begin, and where the last one ends."""
        arrays = (np.array(cuts, np.int64) for cuts in self.cuts)
        return tuple(a if step == 1 else 1 - a[::-1] for a, step in zip(arrays, self.steps, strict=True))

    @cached_property
    def widest(self) -> tuple[int, ...]:
        """The extent of the widest of the blocks, along every loop."""
        return tuple(int(np.diff(edges).max()) for edges in self.edges)

    def later(self, rows: Sequence[int]) -> Partition:
        """The same with all cuts so many rows further on in the loops' directions; as it is where a block would have none."""
        cuts = tuple(
            (first, *(cut + step * by for cut in inner), last)
            for (first, *inner, last), step, by in zip(self.cuts, self.steps, rows, strict=True)
        )
        in_order = all(a < b for along in cuts for a, b in itertools.pairwise(along))
        return replace(self, cuts=cuts) if in_order else self

    def coordinates(self, rank: int) -> tuple[int, ...]:
        return coordinates_in(self.grid, rank)

    def rank(self, coordinates: Sequence[int]) -> int:
        rank = 0
        for coordinate, extent in zip(coordinates, self.grid, strict=True):
            rank = rank * extent + coordinate
        return rank

    def order(self, rank: int) -> tuple[int, ...]:
        """Where the rank's block stands along each normalised loop: dependences lead from lower to higher."""
        return tuple(c * s for c, s in zip(self.coordinates(rank), self.steps, strict=True))

    def block(self, rank: int) -> tuple[Range, ...]:
        """The rank's block in normalised coordinates."""
        known = self._blocks.get(rank)
        if known is None:
            known = self._blocks[rank] = self._block(rank)
        return known

    @cached_property
    def _blocks(self) -> dict[int, tuple[Range, ...]]:
        """Those asked for so far: every message asks for its ranks' again."""
        return {}

    def _block(self, rank: int) -> tuple[Range, ...]:
        ranges = []
        for coordinate, cuts, step in zip(self.coordinates(rank), self.cuts, self.steps, strict=True):
            low, high = cuts[coordinate], cuts[coordinate + 1]
            ranges.append(in_direction((low, high), step))
        return tuple(ranges)

    def ranks_near(self, rank: int, reach: Sequence[Range]) -> Iterator[int]:
        """Ranks, itself excepted, whose block meets the rank's block widened by ``reach`` (low <= 0 <= high)."""
        block = self.block(rank)
        candidates = []
        for axis, ((low, high), (before, after)) in enumerate(zip(block, reach, strict=True)):
            cuts, step = self.cuts[axis], self.steps[axis]
            wide = in_direction((low + before, high + after), step)
            candidates.append([c for c in range(len(cuts) - 1) if cuts[c] < wide[1] and wide[0] < cuts[c + 1]])
        for coordinates in itertools.product(*candidates):
            if (other := self.rank(coordinates)) != rank:
                yield other
