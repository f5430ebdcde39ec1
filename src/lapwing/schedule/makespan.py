"""The makespan of long runs: a max-plus system with constant costs soon repeats itself, and then one can count on.

A pipeline's times obey X[n + 1] = F(X[n - d], …, X[n]) where F adds and takes maxima, so F(X + c) = F(X) + c. Where the last d
rows of times are those before plus a constant, all following ones are too, and the steps (or sweeps) between may be left
out: what they take is the constant times their number. Where that is not seen soon, all steps are worked out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.planes import Planes

_STEPS = (16, 48, 144, 432)  # tried, one after the other
_SWEEPS = (4, 8, 16, 32)
_TOLERANCE = 1e-12  # of the makespan: what sums in another order may differ by


def completion_seconds(pipeline: Pipeline) -> float:
    """Seconds until all ranks have done all steps and all messages have left: the makespan of ``timeline``.

    Equal to it but for rounding (about 1e-12, times the number of steps left out).
    """
    if pipeline.sweeps > 1:
        return _by_sweeps(pipeline)
    return _by_steps(pipeline)


def _by_steps(pipeline: Pipeline) -> float:
    buffers = max((c.depth for c in pipeline.channels if c.depth < pipeline.steps), default=0)
    rows = buffers + 3
    if _repeats_steps(pipeline):
        for steps in _STEPS:
            if steps >= pipeline.steps:
                break
            short = Planes(_with_steps(pipeline, steps)).run()
            period = _constant(short, 1, rows, last=steps - 2)
            if period is not None:
                return _end(short) + period * (pipeline.steps - steps)
    return _end(Planes(pipeline).run())


def _repeats_steps(pipeline: Pipeline) -> bool:
    """Whether all steps but the last cost the same, and messages are needed at the step that made them."""
    compute = np.atleast_1d(pipeline.compute)
    alike = compute.shape[-1] == 1 or bool(np.all(compute[..., :-1] == compute[..., :1]))
    return alike and all(c.lag == 0 and c.shift == 0 for c in pipeline.channels)


def _with_steps(pipeline: Pipeline, steps: int) -> Pipeline:
    compute = np.atleast_1d(pipeline.compute)
    return replace(pipeline, steps=steps, compute=compute if compute.shape[-1] == 1 else compute[..., -steps:])


def _by_sweeps(pipeline: Pipeline) -> float:
    behind = 2 + max((-(-c.depth // pipeline.steps) for c in pipeline.channels), default=0)  # sweeps looked back
    for sweeps in _SWEEPS:
        if sweeps >= pipeline.sweeps:
            break
        if sweeps < behind + 3:
            continue
        short = Planes(replace(pipeline, sweeps=sweeps)).run()
        steps = pipeline.steps
        period = _constant(short, steps, behind * steps, last=(sweeps - 1) * steps - 1)
        if period is not None:
            return _end(short) + period * (pipeline.sweeps - sweeps)
    return _end(Planes(pipeline).run())


def _end(planes: Planes) -> float:
    return float(max(planes.passed[-1, :-1].max(), planes.link[:-1].max()))


def _constant(planes: Planes, period: int, rows: int, last: int) -> float | None:
    """By how much the rows up to node ``last`` are later than those ``period`` nodes before, if all by the same."""
    if last + 1 < rows + period:
        return None
    stop = last + 3  # past the padding
    kinds = [planes.begin, planes.computed, planes.taken, planes.end, planes.passed, planes.prepared]
    growth = float(planes.end[stop - 1, 0] - planes.end[stop - 1 - period, 0])
    tolerance = _TOLERANCE * max(_end(planes), 0.0)
    for times in kinds:
        if not _grows(times[:, :-1], growth, period, stop, rows, tolerance):
            return None
    for table, arrival in zip(planes.tables, planes.arrival, strict=True):
        sent = np.flatnonzero(table.sends)
        if not _grows(arrival[:, sent], growth, period, stop, rows, tolerance):
            return None
    return growth


def _grows(times: np.ndarray, growth: float, period: int, stop: int, rows: int, tolerance: float) -> bool:
    later, earlier = times[stop - rows : stop], times[stop - rows - period : stop - period]
    return bool(np.all(np.abs(later - earlier - growth) <= tolerance))
