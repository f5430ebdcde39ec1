"""The makespan of long pipelines, nearly: for planners, which look at many and need three digits.

Once its pipeline is full, every further step takes all ranks equally long, and so does every further sweep; and every
further rank along an axis of the grid begins as much later than the one before it. The exact timelines of a short and of a
longer run, on a small and on a larger grid, tell how long, and the rest is counted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from lapwing.schedule.makespan import completion_seconds
from lapwing.schedule.pipeline import Channel, Pipeline

MANY_RANKS = 256
RANKS = (4, 8)  # what longer axes of their grids are shortened to
SHORT = 160  # steps in all that are followed to their end
STEPS, SWEEPS = (8, 16), (3, 5)  # what longer ones are shortened to, sweeps to as many steps at least
BINS = 96  # steps that differ are put together in so many


def nearly_completion_seconds(pipeline: Pipeline) -> float:
    """``completion_seconds`` of a short pipeline on few ranks; of a long one within a few parts in a thousand, and of many
    ranks within a few parts in a hundred, or too long where they share links unevenly."""
    return _over_steps_and_sweeps(pipeline) if pipeline.ranks <= MANY_RANKS else _over_ranks(pipeline)


def _over_ranks(pipeline: Pipeline) -> float:
    """A small grid of ranks that are all as slow as the slowest says how long it takes once all are at work; how much later
    each rank more along an axis ends, ranks that are as fast as they are in the mean."""
    few, more = RANKS
    small: tuple[int, ...] = tuple(min(parts, more) for parts in pipeline.grid)
    slowest, typical = _all_alike(pipeline)
    seconds = _over_steps_and_sweeps(replace(slowest, grid=small))
    filled = _over_steps_and_sweeps(replace(typical, grid=small))
    for axis, parts in enumerate(pipeline.grid):
        if parts > more:
            shorter = (*small[:axis], few, *small[axis + 1 :])
            each = (filled - _over_steps_and_sweeps(replace(typical, grid=shorter))) / (more - few)
            seconds += each * (parts - more)
    return seconds


def _all_alike(pipeline: Pipeline) -> tuple[Pipeline, Pipeline]:
    """The pipeline with ranks that are all as the slowest is, and as they are in the mean; none shares a link."""
    axes = tuple(range(len(pipeline.grid)))
    compute = np.atleast_1d(pipeline.compute)
    compute = compute.reshape((1,) * (len(axes) + 1 - compute.ndim) + compute.shape)
    sharing = [_sharing(pipeline.grid, pipeline.node, channel.offset) for channel in pipeline.channels]
    slowest, typical = (
        replace(
            pipeline,
            node=1,
            evenness=1.0,
            compute=seconds,
            channels=tuple(
                replace(channel, wire=channel.wire * shares[kind])
                for channel, shares in zip(pipeline.channels, sharing, strict=True)
            ),
        )
        for kind, seconds in enumerate(
            (compute.max(axis=axes, keepdims=True), pipeline.evenness * compute.mean(axis=axes, keepdims=True))
        )
    )
    return slowest, typical


@lru_cache(maxsize=1024)
def _sharing(grid: tuple[int, ...], node: int, offset: tuple[int, ...]) -> tuple[float, float]:
    """How many times its own wire seconds a message takes: at most, and in the mean over those that are sent."""
    if node == 1:
        return 1.0, 1.0
    channel = Channel(offset, lag=1, wire=1.0)
    wires = Pipeline(grid, 1, 1, np.zeros((1,) * (len(grid) + 1)), (channel,), node=node)
    seconds = wires.wire_seconds(channel)
    sent = np.count_nonzero(np.broadcast_to(wires.has_receiver(channel), grid))
    return float(seconds.max()), float(seconds.sum()) / max(1, int(sent))


def _over_steps_and_sweeps(pipeline: Pipeline) -> float:
    if pipeline.total_steps <= SHORT:
        return completion_seconds(pipeline)
    if pipeline.steps > STEPS[1] and not _is_alike(pipeline):
        pipeline = _in_bins(pipeline)
    # Sweeps of a step or two are few steps: the pipeline is to be full after those that are followed.
    fewer, longer = (max(sweeps, -(-steps // pipeline.steps)) for sweeps, steps in zip(SWEEPS, STEPS, strict=True))
    if pipeline.sweeps <= longer:
        return _over_steps(pipeline)
    few, more = (_over_steps(replace(pipeline, sweeps=sweeps)) for sweeps in (fewer, longer))
    return more + (more - few) / (longer - fewer) * (pipeline.sweeps - longer)


def _over_steps(pipeline: Pipeline) -> float:
    if pipeline.steps <= STEPS[1] or not _is_alike(pipeline):
        return completion_seconds(pipeline)
    few, more = (completion_seconds(_with_steps(pipeline, steps)) for steps in STEPS)
    return more + (more - few) / (STEPS[1] - STEPS[0]) * (pipeline.steps - STEPS[1])


def _is_alike(pipeline: Pipeline) -> bool:
    """Whether all steps of a rank but the last, which may be lower, take the same time."""
    compute = np.atleast_1d(pipeline.compute)
    inner = compute[..., :-1]
    return compute.shape[-1] == 1 or bool(
        np.all(inner == compute[..., :1]) and np.all(compute[..., -1:] <= inner[..., :1])
    )


def _with_steps(pipeline: Pipeline, steps: int) -> Pipeline:
    """The same with fewer steps, each as long as all are in the mean."""
    compute = np.atleast_1d(pipeline.compute).mean(axis=-1, keepdims=True)
    channels = tuple(_shortened(c, pipeline.steps, steps) for c in pipeline.channels)
    return replace(pipeline, steps=steps, compute=compute, channels=channels)


def _shortened(channel: Channel, steps: int, fewer: int) -> Channel:
    """Old values have room for a sweep; what waits for all of a sweep goes on doing so."""
    far = abs(channel.shift) > 2
    return replace(
        channel,
        depth=max(fewer, channel.depth * fewer // steps) if channel.lag else channel.depth,
        shift=round(channel.shift * fewer / steps) if far else channel.shift,
    )


def _in_bins(pipeline: Pipeline) -> Pipeline:
    """Several steps as one that takes as long, messages included."""
    bins = min(BINS, pipeline.steps)
    shape = (*pipeline.grid, pipeline.steps)
    starts = np.arange(bins) * pipeline.steps // bins
    compute = np.add.reduceat(np.broadcast_to(pipeline.compute, shape), starts, axis=-1)
    times = pipeline.steps / bins
    channels = tuple(
        replace(
            _shortened(channel, pipeline.steps, bins),
            **{name: times * getattr(channel, name) for name in ("pack", "send", "receive", "unpack", "wire")},
        )
        for channel in pipeline.channels
    )
    return replace(
        pipeline,
        steps=bins,
        compute=compute,
        channels=channels,
        step_overhead=times * pipeline.step_overhead,
        synchronisation=times * pipeline.synchronisation,
    )
