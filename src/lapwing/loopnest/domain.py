"""The iteration space of one call, in normalised coordinates: every loop ascends, a descending index i becomes -i."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from lapwing.loopnest.affine import Affine


@dataclass(frozen=True)
class NormalLoop:
    """``lower <= x < upper`` with bounds over outer normalised coordinates; the user's index is ``step * x``."""

    name: str
    step: int
    lower: Affine
    upper: Affine


@dataclass(frozen=True)
class Domain:
    """The points a nest visits. ``box`` is its bounding box, one half-open range a loop."""

    loops: tuple[NormalLoop, ...]

    @cached_property
    def box(self) -> tuple[tuple[int, int], ...]:
        """The least box that holds all points: rows on which inner loops are empty lie outside it."""
        if self.is_box:
            ranges = tuple((loop.lower.constant, loop.upper.constant) for loop in self.loops)
            empty = any(high <= low for low, high in ranges)
        else:
            empty = self._isl_set.is_empty()
            ranges = () if empty else tuple(self._isl_range(Affine.of(loop.name)) for loop in self.loops)
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
        return all(not loop.lower.terms and not loop.upper.terms for loop in self.loops)

    def index_ranges(self) -> dict[str, tuple[int, int]]:
        """The inclusive range of every index as the user sees it."""
        ranges = {}
        for loop, (low, high) in zip(self.loops, self.box, strict=True):
            first, last = loop.step * low, loop.step * max(high - 1, low)
            ranges[loop.name] = (min(first, last), max(first, last))
        return ranges

    def normalised(self, affine: Affine) -> Affine:
        """An affine expression over the user's indices as one over normalised coordinates."""
        steps = {loop.name: loop.step for loop in self.loops}
        return Affine(affine.constant, tuple((n, c * steps.get(n, 1)) for n, c in affine.terms))

    def range_of(self, affine: Affine, guards: Sequence[Affine] = ()) -> tuple[int, int] | None:
        """Least and greatest value over the points where every guard is >= 0; None where there is no such point."""
        if self.is_box and not guards:
            inclusive = {loop.name: (low, high - 1) for loop, (low, high) in zip(self.loops, self.box, strict=True)}
            return affine.interval(inclusive)
        points = self._isl_set
        for guard in guards:
            points = points.add_constraint(isl.Constraint.inequality_from_aff(self._isl_aff(guard)))
        if points.is_empty():
            return None
        return self._isl_range(affine, points)

    def _isl_range(self, affine: Affine, points: isl.Set | None = None) -> tuple[int, int]:
        points = self._isl_set if points is None else points
        aff = self._isl_aff(affine)
        return points.min_val(aff).to_python(), points.max_val(aff).to_python()

    def points(self, depth: int) -> Iterator[tuple[int, ...]]:
        """The normalised coordinates of the outermost ``depth`` loops, in order, inside the box."""
        if depth == 0:
            yield ()
            return
        low, high = self.box[depth - 1]
        for outer in self.points(depth - 1):
            values = self._values(outer)
            loop = self.loops[depth - 1]
            for x in range(max(low, loop.lower.evaluate(values)), min(high, loop.upper.evaluate(values))):
                yield (*outer, x)

    def _values(self, outer: Sequence[int]) -> Mapping[str, int]:
        return dict(zip((loop.name for loop in self.loops), outer, strict=False))

    @cached_property
    def _space(self) -> isl.Space:
        return isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=[loop.name for loop in self.loops])

    def _isl_aff(self, affine: Affine) -> isl.Aff:
        result = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(self._space)).add_constant_val(_val(affine.constant))
        position = {loop.name: k for k, loop in enumerate(self.loops)}
        for name, coefficient in affine.terms:
            result = result.add_coefficient_val(isl.dim_type.in_, position[name], _val(coefficient))
        return result

    @cached_property
    def _isl_set(self) -> isl.Set:
        points = isl.Set.universe(self._space)
        for loop in self.loops:
            index = Affine.of(loop.name)
            for bound in (index - loop.lower, loop.upper - index - Affine(1)):
                points = points.add_constraint(isl.Constraint.inequality_from_aff(self._isl_aff(bound)))
        return points


def _val(value: int) -> isl.Val:
    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(value))  # of any size
