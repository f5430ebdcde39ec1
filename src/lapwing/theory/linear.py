"""Linear schedules of the tile space: which step every tile is done in (P0, sections 2.5, 3 and 4).

Tiles and bounds are those of the tile space; dependences are tile dependences (D^S, without the zero vector).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import RefusedError
from lapwing.loopnest.dependences import Vector
from lapwing.tiling.partition import Range


def blocking_vector(dimensions: int) -> Vector:
    """Pi = [1 ... 1], best for unit dependences where a step receives, computes and sends (P0, section 3)."""
    return (1,) * dimensions


def overlapped_vector(dimensions: int, mapping: int) -> Vector:
    """Pi = [2 ... 2 1 2 ... 2], 1 at the mapping dimension, for a step that sends what the last one made (P0, section 4).

    Raises RefusedError for a mapping that is no dimension.
    """
    _check_mapping(dimensions, mapping)
    return tuple(1 if k == mapping else 2 for k in range(dimensions))


@dataclass(frozen=True)
class LinearSchedule:
    """t = floor((Pi j + t0) / disp Pi), steps counted from 0 (P0, section 2.5)."""

    vector: Vector
    start: int  # t0 = -min Pi j over the tile space
    displacement: int  # disp Pi = min Pi d over the dependences

    def step(self, tile: Sequence[int]) -> int:
        """The step a tile is done in."""
        return (_product(self.vector, tile) + self.start) // self.displacement

    def steps(self, bounds: Sequence[Range]) -> int:
        """The number of steps for a tile space with these bounds, one half-open range a dimension.

        P(g) = Pi j_final - Pi j_init + 1 where disp Pi = 1 (P0, section 3).
        """
        return self.step(_greatest(self.vector, bounds)) + 1


def linear_schedule(
    vector: Sequence[int], bounds: Sequence[Range], dependences: Sequence[Sequence[int]], mapping: int | None = None
) -> LinearSchedule:
    """The schedule of a tile space with these bounds, one half-open range a dimension.

    mapping: tiles along this dimension share a processor, so that each waits for the one before as if it depended on it; P0
    takes it for granted that one does. Raises RefusedError where Pi d < 1 for one of them.
    """
    _check_bounds(vector, bounds)
    waited_for = _with_processor_order(len(vector), dependences, mapping)
    _check_forwards(vector, waited_for)
    start = -_product(vector, _least(vector, bounds))
    displacement = min((_product(vector, d) for d in waited_for), default=1)
    return LinearSchedule(tuple(vector), start, displacement)


def check_blocking(schedule: LinearSchedule, dependences: Sequence[Sequence[int]], mapping: int | None = None) -> None:
    """Raise RefusedError unless every tile is done at least one step after each it depends on.

    mapping: the dimension along which tiles share a processor, which does one tile a step.
    """
    for dependence in _with_processor_order(len(schedule.vector), dependences, mapping):
        _check_advance(schedule, dependence, 1, "one step: Pi d >= disp Pi")


def check_overlapped(schedule: LinearSchedule, dependences: Sequence[Sequence[int]], mapping: int) -> None:
    """Raise RefusedError unless what crosses processors has a step of its own to travel in (P0, section 4).

    A dependence that is zero but for the mapping dimension stays on its processor and needs one step; any other needs two:
    the value is computed in step k - 1, sent in step k and used in step k + 1.
    """
    _check_mapping(len(schedule.vector), mapping)
    for dependence in _with_processor_order(len(schedule.vector), dependences, mapping):
        if any(x for k, x in enumerate(dependence) if k != mapping):
            _check_advance(schedule, dependence, 2, "two steps, for it crosses processors: Pi d >= 2 disp Pi")
        else:
            _check_advance(schedule, dependence, 1, "one step: Pi d >= disp Pi")


def _check_advance(schedule: LinearSchedule, dependence: Sequence[int], steps: int, expected: str) -> None:
    # floor((x + Pi d) / disp) - floor(x / disp) is at least floor(Pi d / disp), and is that for some tile.
    advance = _product(schedule.vector, dependence) // schedule.displacement
    if advance < steps:
        raise RefusedError(
            f"schedule Pi = {list(schedule.vector)} with displacement {schedule.displacement}: tile dependence "
            f"{list(dependence)} leads {advance} steps on, expected at least {expected}. Take a larger component of Pi where the "
            "dependence is not 0."
        )


def _with_processor_order(
    dimensions: int, dependences: Sequence[Sequence[int]], mapping: int | None
) -> list[tuple[int, ...]]:
    waited_for = [tuple(d) for d in dependences]
    if mapping is not None:
        _check_mapping(dimensions, mapping)
        waited_for.append(tuple(int(k == mapping) for k in range(dimensions)))
    return waited_for


def _check_forwards(vector: Sequence[int], dependences: Sequence[Sequence[int]]) -> None:
    for dependence in dependences:
        if len(dependence) != len(vector):
            raise RefusedError(
                f"tile dependence {list(dependence)} has {len(dependence)} components, Pi = {list(vector)} has {len(vector)}: "
                "expected as many of one as of the other, one for every dimension of the tile space."
            )
        if (product := _product(vector, dependence)) < 1:
            raise RefusedError(
                f"schedule Pi = {list(vector)}: its product with tile dependence {list(dependence)} is {product}, expected >= 1, "
                "or a tile would be done before what it depends on. Take a Pi that points along all dependences."
            )


def _check_bounds(vector: Sequence[int], bounds: Sequence[Range]) -> None:
    if len(bounds) != len(vector):
        raise RefusedError(
            f"the tile space has {len(bounds)} dimensions, Pi = {list(vector)} has {len(vector)} components: expected as many "
            "of one as of the other."
        )
    for k, (low, high) in enumerate(bounds):
        if high <= low:
            raise RefusedError(
                f"dimension {k} of the tile space is the range [{low}, {high}): expected at least one tile."
            )


def _check_mapping(dimensions: int, mapping: int) -> None:
    if not 0 <= mapping < dimensions:
        raise RefusedError(
            f"mapping dimension {mapping}: expected 0 to {dimensions - 1}, a dimension of the tile space."
        )


def _product(vector: Sequence[int], tile: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(vector, tile, strict=True))


def _least(vector: Sequence[int], bounds: Sequence[Range]) -> Vector:
    return tuple(low if a >= 0 else high - 1 for a, (low, high) in zip(vector, bounds, strict=True))


def _greatest(vector: Sequence[int], bounds: Sequence[Range]) -> Vector:
    return tuple(high - 1 if a >= 0 else low for a, (low, high) in zip(vector, bounds, strict=True))
