"""In which order the steps of a sweep can be worked out: planes of equal time of a linear schedule.

Step k of rank r is worked out in plane ``stretch * k + weights . r``. P0's schedules are such: Pi = [1 … 1] with
stretch 1; where a sender also waits for its receiver, be it for a synchronous send or for a buffer, the step axis has to be
stretched (Pi = [1 … 1 2]).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.errors import RefusedError
from lapwing.schedule.dataflow import ChannelTables, Indices
from lapwing.schedule.pipeline import Pipeline

_STRETCHES = (1, 2, 3, 4, 5, 6)
_WEIGHTS = range(-3, 4)  # tried for every axis


@dataclass(frozen=True)
class Order:
    stretch: int
    weights: tuple[int, ...]

    def levels(self, grid: tuple[int, ...]) -> Indices:
        """The plane of every rank's first step, from 0: (ranks,)."""
        planes = np.zeros(grid, np.intp)
        for axis, (ranks, weight) in enumerate(zip(grid, self.weights, strict=True)):
            shape = [1] * len(grid)
            shape[axis] = ranks
            planes += (weight * np.arange(ranks)).reshape(shape)
        first: Indices = planes - planes.min()
        return first.ravel()


@dataclass(frozen=True)
class _Bound:
    """low + low_steps * stretch <= weights . offset <= high + high_steps * stretch; None: no such bound."""

    offset: tuple[int, ...]
    low_steps: int | None
    high_steps: int | None
    high: int

    def range(self, stretch: int) -> tuple[float, float]:
        low = -np.inf if self.low_steps is None else 1 + self.low_steps * stretch
        high = np.inf if self.high_steps is None else self.high + self.high_steps * stretch
        return low, high


def order_of(pipeline: Pipeline, tables: Sequence[ChannelTables]) -> Order:
    """An order in which everything a step of a sweep needs of the same sweep comes before it.

    Raises RefusedError where there is none of the kind that is tried.
    """
    bounds = [_bound(pipeline, table) for table in tables if table.sends.any()]
    for stretch in _STRETCHES:
        for weights in itertools.product(
            *(_candidates(bounds, axis, pipeline, stretch) for axis in range(len(pipeline.grid)))
        ):
            if all(_holds(bound, stretch, weights) for bound in bounds):
                return Order(stretch, weights)
    raise RefusedError(
        f"no linear schedule orders the steps of a {'x'.join(map(str, pipeline.grid))} grid with channels by "
        f"{', '.join(str(c.offset) for c in pipeline.channels)}. More buffers (depth) may help."
    )


def _bound(pipeline: Pipeline, table: ChannelTables) -> _Bound:
    steps, channel = np.arange(pipeline.steps), table.channel
    # A message is made in an earlier plane than it is needed in.
    low = int(np.max(steps - table.posted)) if channel.lag == 0 else None
    if pipeline.engine == "blocking":
        # The receiver has ended the step before the one that takes the message in an earlier plane.
        ahead = (steps - table.posted + 1)[table.posted > 0]
        return _Bound(channel.offset, low, int(ahead.min()) if channel.lag == 0 and ahead.size else None, -1)
    # Room is made in an earlier plane, or earlier in the same one.
    ahead = (steps - table.room)[table.room >= 0]
    strictly = pipeline.engine == "helper" and not pipeline.apart
    return _Bound(channel.offset, low, int(ahead.min()) if ahead.size else None, -1 if strictly else 0)


def _candidates(bounds: Sequence[_Bound], axis: int, pipeline: Pipeline, stretch: int) -> Sequence[int]:
    if pipeline.grid[axis] == 1:
        return (0,)
    low, high = -np.inf, np.inf
    wanted = set(_WEIGHTS)
    for bound in bounds:
        along = bound.offset[axis]
        if not along:
            continue
        ends = bound.range(stretch)
        if any(o for k, o in enumerate(bound.offset) if k != axis):
            wanted.update(int(end) for end in ends if np.isfinite(end))  # this axis may have to keep it alone
        else:
            least, most = sorted(end / along for end in ends)
            low, high = max(low, np.ceil(least)), min(high, np.floor(most))
    if low > high:
        return ()
    nearest = int(min(max(0, low), high))
    wanted.update((nearest, nearest + 1, nearest + 2))
    return sorted((w for w in wanted if low <= w <= high), key=abs)


def _holds(bound: _Bound, stretch: int, weights: tuple[int, ...]) -> bool:
    low, high = bound.range(stretch)
    return low <= sum(w * o for w, o in zip(weights, bound.offset, strict=True)) <= high
