"""The iteration space of one call, in normalised coordinates: every loop ascends, a descending index i becomes -i."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import numpy.typing as npt

from lapwing.affine.affine import Affine
from lapwing.affine.integer_sets import Set, Space, without_axes

_PASSES = 2  # over all bounds: what an inner loop says of an outer one is known after the first
_MOST_WALKED = 1 << 21  # points of outer loops; counting them takes a tenth of a second


@dataclass(frozen=True)
class NormalLoop:
    """``lower <= x < upper`` for all bounds, over outer normalised coordinates; the user's index is ``step * x``."""

    name: str
    step: int
    lowers: tuple[Affine, ...]
    uppers: tuple[Affine, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether the bounds depend on no other loop."""
        return not any(bound.terms for bound in (*self.lowers, *self.uppers))

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """The loops that the bounds depend on."""
        return frozenset().union(*(bound.names for bound in (*self.lowers, *self.uppers)))

    def span(self, outer: Mapping[str, int]) -> range:
        """The coordinates at given ones of outer loops."""
        low = max(bound.evaluate(outer) for bound in self.lowers)
        return range(low, min(bound.evaluate(outer) for bound in self.uppers))


@dataclass(frozen=True)
class Domain:
    """The points a nest visits. ``box`` is its bounding box, one half-open range a loop."""

    loops: tuple[NormalLoop, ...]

    @cached_property
    def box(self) -> tuple[tuple[int, int], ...]:
        """The least box that holds all points: rows on which inner loops are empty lie outside it."""
        if self.is_box:
            spans = [loop.span({}) for loop in self.loops]
            ranges = tuple((span.start, span.stop) for span in spans)
            empty = any(high <= low for low, high in ranges)
        else:
            empty = self._points.is_empty()
            ranges = (
                () if empty else tuple(self._space.range_of(Affine.of(loop.name), self._points) for loop in self.loops)
            )
            ranges = tuple((low, high + 1) for low, high in ranges)
        return tuple((0, 0) for _ in self.loops) if empty else ranges

    @property
    def is_empty(self) -> bool:
        return any(high <= low for low, high in self.box)

    @property
    def box_volume(self) -> int:
        return math.prod(high - low for low, high in self.box)

    @cached_property
    def is_box(self) -> bool:
        return all(loop.is_fixed for loop in self.loops)

    def index_ranges(self) -> dict[str, tuple[int, int]]:
        """The inclusive range of every index as the user sees it."""
        ranges = {}
        for loop, (low, high) in zip(self.loops, self.box, strict=True):
            first, last = loop.step * low, loop.step * max(high - 1, low)
            ranges[loop.name] = (min(first, last), max(first, last))
        return ranges

    def normalised(self, affine: Affine) -> Affine:
        """An affine expression over the user's indices as one over normalised coordinates."""
        return affine.substitute(self._mirrored)

    @cached_property
    def _mirrored(self) -> dict[str, Affine]:
        return {loop.name: -Affine.of(loop.name) for loop in self.loops if loop.step < 0}

    def range_of(self, affine: Affine, guards: Sequence[Affine] = ()) -> tuple[int, int] | None:
        """Least and greatest value over the points where every guard is >= 0; None where there is no such point."""
        if self.is_box and not guards:
            inclusive = {loop.name: (low, high - 1) for loop, (low, high) in zip(self.loops, self.box, strict=True)}
            return affine.interval(inclusive)
        points = self._where(guards) if guards else self._points
        return None if points.is_empty() else self._space.range_of(affine, points)

    def _where(self, guards: Sequence[Affine]) -> Set:
        """The points where guards are >= 0, for some values of the names in them that are no loops."""
        names = [loop.name for loop in self.loops]
        bound = sorted(frozenset[str]().union(*(guard.names for guard in guards)).difference(names))
        points = Space((), [*names, *bound]).where_nonnegative([*self._affine_sides, *guards])
        return without_axes(points, len(names))

    def points(self, depth: int) -> Iterator[tuple[int, ...]]:
        """The normalised coordinates of the outermost ``depth`` loops, in order, inside the box."""
        if depth == 0:
            yield ()
            return
        low, high = self.box[depth - 1]
        for outer in self.points(depth - 1):
            inside = self.loops[depth - 1].span(self._values(outer))
            for x in range(max(low, inside.start), min(high, inside.stop)):
                yield (*outer, x)

    def clipped(self, box: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...] | None:
        """A smaller box that holds the points of the domain in a box; None where bounds show that there are none.

        Of each bound in turn the range of every loop in it is made as small as the ranges of the others allow.
        """
        ranges = [(low, high - 1) for low, high in box]
        for _ in range(_PASSES):
            for constant, terms in self._sides:
                most = constant + sum(c * ranges[k][c > 0] for k, c in terms)
                for k, c in terms:
                    low, high = ranges[k]
                    rest = most - c * ranges[k][c > 0]  # c * x >= -rest
                    ranges[k] = (max(low, -(rest // c)), high) if c > 0 else (low, min(high, rest // -c))
                    if ranges[k][0] > ranges[k][1]:
                        return None
                    most = rest + c * ranges[k][c > 0]
        return tuple((low, high + 1) for low, high in ranges)

    @cached_property
    def _sides(self) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
        """What is >= 0 at every point: a constant, and loops by position with their factors."""
        position = {loop.name: k for k, loop in enumerate(self.loops)}
        return [(side.constant, tuple((position[name], c) for name, c in side.terms)) for side in self._affine_sides]

    @cached_property
    def _affine_sides(self) -> list[Affine]:
        found = []
        for loop in self.loops:
            x = Affine.of(loop.name)
            found += [x - lower for lower in loop.lowers] + [upper - x - 1 for upper in loop.uppers]
        return found

    def counts(self, axis: int) -> npt.NDArray[np.int64] | None:
        """How many points there are at every coordinate of a loop, over its range in the box; exact.

        None where the domain is so intricate that counting would take long.
        """
        names = [loop.name for loop in self.loops]
        bounds = [loop.bound_names for loop in self.loops]
        walked = [k for k, name in enumerate(names) if any(name in used for used in bounds)]
        sides = [high - low for low, high in self.box]
        if math.prod(sides[k] for k in walked) > _MOST_WALKED:
            return None
        # All values of the loops that others depend on, a column each; of the others only their lengths count.
        values: dict[str, npt.NDArray[np.int64]] = {}
        weight = np.ones(1, np.int64)
        for k in walked:
            low, high = self._limits(k, values)
            low, high = np.maximum(low, self.box[k][0]), np.minimum(high, self.box[k][1])
            length = np.broadcast_to(np.maximum(high - low, 0), weight.shape)
            begin = np.repeat(np.broadcast_to(low, weight.shape), length)
            ends = np.repeat(np.cumsum(length) - length, length)
            values = {name: np.repeat(column, length) for name, column in values.items()}
            weight = np.repeat(weight, length)
            values[names[k]] = begin + np.arange(len(begin)) - ends
        for k in range(len(self.loops)):
            if k not in walked and k != axis:
                low, high = self._limits(k, values)
                weight = weight * np.maximum(high - low, 0)
        first, side = self.box[axis][0], sides[axis]
        if axis in walked:
            return np.bincount(values[names[axis]] - first, weight, side).astype(np.int64)
        low, high = (np.broadcast_to(end, weight.shape) for end in self._limits(axis, values))
        some = low < high
        begins = np.bincount(low[some] - first, weight[some], side + 1)
        ends = np.bincount(high[some] - first, weight[some], side + 1)
        return np.cumsum(begins - ends)[:-1].astype(np.int64)

    def _limits(
        self, k: int, values: Mapping[str, npt.NDArray[np.int64]]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The bounds of a loop at many values of outer ones."""
        return limits(self.loops[k], values)

    def _values(self, outer: Sequence[int]) -> Mapping[str, int]:
        return dict(zip((loop.name for loop in self.loops), outer, strict=False))

    @cached_property
    def _space(self) -> Space:
        return Space((), [loop.name for loop in self.loops])

    @cached_property
    def _points(self) -> Set:
        return self._space.where_nonnegative(self._affine_sides)


def limits(
    loop: NormalLoop, values: Mapping[str, npt.NDArray[np.int64] | int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The least coordinate of a loop, and the one beyond the last, at many values of other loops."""
    lowers, uppers = (
        [np.asarray(sum((values[name] * c for name, c in bound.terms), np.int64(bound.constant))) for bound in bounds]
        for bounds in (loop.lowers, loop.uppers)
    )
    return reduce(np.maximum, lowers), reduce(np.minimum, uppers)
