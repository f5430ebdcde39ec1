"""The makespan of long pipelines, nearly: for planners, which look at many and need three digits.

Once its pipeline is full, every further step takes all ranks equally long, and so does every further sweep. The exact
timelines of a short and of a longer run tell how long, and the rest is counted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lapwing.schedule.makespan import completion_seconds
from lapwing.schedule.pipeline import Channel, Pipeline

SHORT = 160  # steps in all that are followed to their end
STEPS, SWEEPS = (8, 16), (3, 5)  # what longer ones are shortened to
BINS = 96  # steps that differ are put together in so many


def nearly_completion_seconds(pipeline: Pipeline) -> float:
    """``completion_seconds`` of a short pipeline; of a long one within a few parts in a thousand."""
    if pipeline.total_steps <= SHORT:
        return completion_seconds(pipeline)
    if pipeline.steps > STEPS[1] and not _is_alike(pipeline):
        pipeline = _in_bins(pipeline)
    if pipeline.sweeps <= SWEEPS[1]:
        return _over_steps(pipeline)
    few, more = (_over_steps(replace(pipeline, sweeps=sweeps)) for sweeps in SWEEPS)
    return more + (more - few) / (SWEEPS[1] - SWEEPS[0]) * (pipeline.sweeps - SWEEPS[1])


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
