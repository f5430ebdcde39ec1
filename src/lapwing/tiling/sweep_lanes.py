"""Sweeps as the lanes of vectors (temporal vectorization: Yuan, Cao, Zhang, Li, Lu and Yue, SC 2021).

A nest of one sweep loop is skewed, and its sweeps are strip-mined into lanes:

    for t:                       for t in blocks of lanes:
        for x in domain:    →        for y:
            body(t, x)                   for lane: body(t + lane, y - lane * skew)

In the order of y, lexicographic, what an iteration reads of its own sweep was written by its own lane, and what it reads of the
sweep before by the lane before. The skew is the least one for which both lie in the past, and the latter far enough for a
vector's elements to have moved on by a lane (Lamport 1974: the hyperplane of least delay).

A vector of lanes waits for what it has just written. So that others are computed meanwhile, rows that follow one another along
the loop before the innermost may take turns: that loop is strip-mined into groups of rows, whose rows advance together, each a
constant number of positions behind the one before it,

    for i:                       for group of rows:
        for x:              →        for position:
            body(i, x)                   for row: body(group + row, position - row * lag)

Each row of a group is then like an array of its own, with offsets of groups and positions.

Offsets are those of coordinates: of loops that count down they have the other sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.machine import caches
from lapwing.machine.vectors import vector_bytes
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.transposed import ITEMSIZES

Vector = tuple[int, ...]

# Steps from what one lane writes to its use by the next one: no fewer, or the core waits for elements to move.
_GAP = 2
_FEWEST_LANES = 8
_FEWEST_POSITIONS = 8  # of a row, without a mask
_FEWEST_GROUPS = 8  # of rows that take turns
_LARGEST_OFFSET = 4
_LARGEST_BODY = 80  # operations: vectors of more do not fit registers
_MOST_IN_FOUR_VECTORS = 24  # operations: for more, registers are too few, and compiling takes seconds


@dataclass(frozen=True)
class SweepLanes:
    """``skew``: by how much a lane is behind the one before it, along every space loop, of which the last but one is gone along
    by groups of ``rows`` rows, and the last by positions. ``lag``: how many of these a row is behind the one before it. ``halo``:
    how far, before and after the domain, iterations look along every loop. ``size``: bytes of what is written, and the most of
    what is read."""

    skew: Vector
    halo: tuple[tuple[int, int], ...]
    size: int
    rows: int = 1
    lag: int = 0

    @property
    def lagging(self) -> int:
        """How many positions the last row of a group is behind the first one."""
        return self.lag * (self.rows - 1)

    def shortest_row(self, lanes: int) -> int:
        """How many iterations the innermost loop is to have for so many lanes: steps have masks while some are outside of it."""
        ends = self.skew[-1] * (lanes - 1) + 2 * (self.skew[-1] + sum(self.halo[-1]) + self.lagging + 1)
        return ends + _FEWEST_POSITIONS

    def share_at_work(self, loop: int, iterations: int, lanes: int, moves: int = 0) -> float:
        """Of so many iterations of a space loop, with all of those inside of it, the share of steps times lanes that do any.
        moves: by how much the ends of boxes lie lower in each sweep than in the one before."""
        at_once = self.rows if loop == len(self.skew) - 2 else 1
        lagging = self.skew[loop] * (lanes - 1) if not any(self.skew[:loop]) else 0
        lagging += moves * (lanes - 1)
        steps = -(-(iterations + sum(self.halo[loop])) // at_once) + lagging
        return iterations / (steps * at_once)

    def is_old(self, offset: Vector) -> bool:
        """Whether an element at an offset is what the sweep before has left there; it may be the iteration's own."""
        return offset >= (0,) * len(offset)

    def in_groups(self, offset: Vector, row: int) -> tuple[int, Vector]:
        """Where an element at an offset from a row of a group is: in which row, and how many groups and positions further on."""
        *outer, along, innermost = offset
        group, found = divmod(row + along, self.rows)
        return found, (*outer, group, innermost + self.lag * (found - row))

    def behind(self, offset: Vector, row: int) -> tuple[int, Vector]:
        """Which row of a group has an element at an offset from a row, and how far behind an iteration, in the skewed loops, the
        one is that wrote it."""
        base = self.skew if self.is_old(offset) else (0,) * len(offset)
        found, moved = self.in_groups(offset, row)
        return found, tuple(b - o for b, o in zip(base, moved, strict=True))


@lru_cache(maxsize=64)
def sweep_lanes(bound: BoundNest, rows: int) -> SweepLanes | None:
    """How the sweeps of a nest are lanes, where so many rows take turns; None where they are not, or nothing is known to be
    gained."""
    nest, depth = bound.nest, bound.nest.sweep_depth
    if depth != 1 or nest.is_sequential or len(nest.space_loops) < 2:
        return None
    names = {loop.name for loop in nest.loops}
    if any(loop.bound_names & names for loop in nest.loops):
        return None
    if bound.body.traps and not raises_alike(bound.body):
        return None  # what raises in some iterations only is noted by them
    if bound.skew is not None and any(m < depth for k in range(len(nest.loops)) for m, _ in bound.skew.factors(k)):
        return None
    sizes = {ITEMSIZES.get(array.dtype, 0) for array in bound.arrays if array.name in nest.written}
    if bound.dead or len(sizes) > 1 or not sizes & {4, 8} or any(a.dtype.startswith("complex") for a in bound.arrays):
        return None
    size = sizes.pop()
    if not all(_is_of_lanes(accumulator, size) for accumulator in bound.body.accumulators):
        return None
    if any(not 0 < ITEMSIZES.get(array.dtype, 0) <= size for array in bound.arrays):
        return None
    if size < 8 and any(isinstance(node, t.Index) for node in _nodes(bound)):
        return None
    zero = (0,) * len(nest.space_loops)
    offsets, halo = {zero}, [(0, 0)] * len(zero)
    stored = {s.target for s in t.all_statements(bound.body.statements) if isinstance(s, t.TypedStore)}
    for load in stored | {node for node in _nodes(bound) if isinstance(node, t.Load)}:
        if load.array not in nest.written:
            if not _is_affine(load):
                return None
            continue
        offset = offset_of(bound, load)
        if offset is None or max(map(abs, offset)) > _LARGEST_OFFSET or (load in stored and offset != zero):
            return None
        halo = [(max(b, -o), max(a, o)) for (b, a), o in zip(halo, offset, strict=True)]
        offsets.add(offset)
    if operations_of(bound) > _LARGEST_BODY:
        return None
    lag = max(_lag(offset, rows) for offset in offsets)
    plain = SweepLanes(zero, tuple(halo), size, rows, lag)
    moved = {plain.in_groups(offset, row)[1] for offset in offsets if offset >= zero for row in range(rows)}
    return replace(plain, skew=_by_a_row(_least_skew(moved)))


def _lag(offset: Vector, rows: int) -> int:
    """How many positions a row of a group has to be behind the one before it at least: what it reads of rows before it was
    written in an earlier step, and what it reads of rows after it is written in no earlier one."""
    *outer, along, innermost = offset
    if any(outer) or not 0 < abs(along) < rows:
        return 0
    return -(-(innermost + 1) // -along) if along < 0 else -(innermost // along)


def lanes_of_sweeps(bound: BoundNest, sweeps: int) -> tuple[tuple[int, int], ...]:
    """How many sweeps may be worth being lanes, of so many, and how many rows taking turns, first what is best by rule. Several
    vectors wait less for each other than one does, until registers are too few; one of a row takes the least room in the
    cache."""
    found = sweep_lanes(bound, 1)
    if found is None:
        return ()
    width = max(vector_bytes() // found.size, _FEWEST_LANES // 2)
    several = [count * width for count in (2, 4) if sweeps >= count * width]
    several = [lanes for lanes in several if rows_are_long(bound, lanes)]
    if several and _near_bytes(bound, found, several[0]) <= caches.second_bytes():
        forms = [(several[0], 1), (width, 2), (several[0], 2), *((lanes, 1) for lanes in several[1:])]
    elif sweeps >= max(width // 2 + 1, 3):
        forms = [(width, 2), (width, 4), (width, 1), *((lanes, 1) for lanes in several)]
    else:
        return ()
    if operations_of(bound) > _MOST_IN_FOUR_VECTORS:
        forms = [(lanes, rows) for lanes, rows in forms if lanes * rows < 4 * width]
    return tuple((lanes, rows) for lanes, rows in forms if _has_rows(bound, lanes, rows))


def _has_rows(bound: BoundNest, lanes: int, rows: int) -> bool:
    """Whether there are enough for so many to take turns: groups that lanes are apart, and some in which all are at work."""
    found = sweep_lanes(bound, rows)
    assert found is not None, "its sweeps are no lanes"
    groups = _extents(bound)[-2] // rows
    return rows == 1 or (groups >= found.skew[-2] * lanes + _FEWEST_GROUPS and rows_are_long(bound, lanes, rows))


def _near_bytes(bound: BoundNest, found: SweepLanes, lanes: int) -> int:
    """What so many lanes go through before they find again what was written: a ring of vectors, and of what has as many axes and
    is only read a part for each lane."""
    rows = [high - low for low, high in bound.domain.box[bound.nest.sweep_depth :]]
    lagging = max(1, found.skew[0]) * math.prod(rows[1:])
    arrays = sum(len(array.shape) == len(rows) for array in bound.arrays)
    return lagging * lanes * found.size * arrays


def rows_are_long(bound: BoundNest, lanes: int, rows: int = 1, iterations: int | None = None) -> bool:
    """Whether the innermost loop of a nest whose sweeps are lanes, or a rank's part of it, has enough iterations for so many,
    where so many rows take turns."""
    found = sweep_lanes(bound, rows)
    assert found is not None, "its sweeps are no lanes"
    own = _extents(bound)[-1]
    return (own if iterations is None else min(own, iterations)) + sum(found.halo[-1]) >= found.shortest_row(lanes)


def _extents(bound: BoundNest) -> list[int]:
    """Of all loops, as the user wrote them."""
    extents = [high - low for low, high in bound.domain.box]
    if bound.skew is not None:
        for k in range(len(extents)):
            extents[k] -= sum(abs(a) * (extents[m] - 1) for m, a in bound.skew.factors(k))
    return extents


def _least_skew(old: set[Vector]) -> Vector:
    """The lexicographically least one that leaves all of these offsets behind, by a gap where the innermost loop alone does."""
    skew: list[int] = []
    nearest = old
    loops = len(next(iter(old)))
    for k in range(loops):
        furthest = max((offset[k] for offset in nearest), default=0)
        skew.append(max(furthest + _GAP, 0) if k == loops - 1 and nearest else max(furthest, 0))
        nearest = {offset for offset in nearest if offset[k] == skew[-1]}
    return tuple(skew)


def _by_a_row(skew: Vector) -> Vector:
    """The skew with a row, or a group of them, more in place of positions, where there are planes: these have many rows, so that
    it costs less than that each lane is at another place of its row."""
    *outer, along, innermost = skew
    return (*outer, along + 1, 0) if innermost and outer else skew


def offset_of(bound: BoundNest, load: t.Load) -> Vector | None:
    """The place of an element beside the iteration's own, where every axis of the array is gone along by one space loop, in their
    order; None elsewhere."""
    loops = bound.nest.space_loops
    if len(load.subscripts) != len(loops):
        return None
    found = []
    for subscript, loop in zip(load.subscripts, loops, strict=True):
        if not isinstance(subscript, t.AffineSubscript) or subscript.wrap:
            return None
        if subscript.affine.terms != ((loop.name, 1),):
            return None
        found.append(loop.step * subscript.affine.constant)
    return tuple(found)


def _is_of_lanes(accumulator: t.Accumulator, size: int) -> bool:
    """Whether each lane can have one of its own: extrema are in an element of a vector, as the terms of sums are."""
    is_plain = accumulator.leader is None and accumulator.part is None and accumulator.of is None
    is_sum = accumulator.operator == "+" and accumulator.dtype == "float64"
    return is_plain and (is_sum or accumulator.operator in ("max", "min")) and ITEMSIZES.get(accumulator.dtype) == size


def _is_affine(load: t.Load) -> bool:
    return all(isinstance(s, t.AffineSubscript) and not s.wrap for s in load.subscripts)


def operations_of(bound: BoundNest) -> int:
    """How many there are in the loop body."""
    return sum(isinstance(node, t.Operation) for node in _nodes(bound))


def _nodes(bound: BoundNest) -> Iterator[t.Typed]:
    for statement in t.all_statements(bound.body.statements):
        for value in t.own_values(statement):
            yield from t.walk(value)
