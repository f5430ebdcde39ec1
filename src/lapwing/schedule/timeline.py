"""The exact timeline of a pipeline: when every step of every rank begins and ends, and how long all of it takes.

Three ways to the same numbers: plane by plane with every time kept (``timeline``); for planning, nothing but the end
(``completion_seconds``); and for a million ranks, a window of planes that moves over the grid (``long_timeline``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lapwing.errors import RefusedError
from lapwing.schedule.chain import Chain
from lapwing.schedule.dataflow import ChannelTables, tables_of
from lapwing.schedule.makespan import completion_seconds
from lapwing.schedule.pipeline import Pipeline, Seconds
from lapwing.schedule.planes import Planes
from lapwing.schedule.windows import Windows

__all__ = ["LongTimeline", "Timeline", "completion_seconds", "long_timeline", "timeline", "without_network"]

MOST_NODES = 50_000_000  # steps of all ranks, of which every time is kept: about 4 GB


@dataclass(frozen=True)
class Timeline:
    """Seconds since the run began.

    start, end: (*grid, sweeps * steps); a step starts when all it needs is there, with receiving and unpacking it, and ends
    when what it made is handed over (with a helper: to the helper). last: the grid's shape, when a rank's last message had
    left. busy: the grid's shape, what its computing CPU did; the rest up to the end of the last step are waits, with
    synchronous transfers among them.
    """

    pipeline: Pipeline
    start: Seconds = field(repr=False)
    end: Seconds = field(repr=False)
    last: Seconds = field(repr=False)
    busy: Seconds = field(repr=False)

    @cached_property
    def makespan(self) -> float:
        """When all ranks had done all steps and all messages had left."""
        return float(self.last.max())

    @property
    def fill(self) -> Seconds:
        """What every rank waited before its first step."""
        return self.start[..., 0]

    @property
    def drain(self) -> Seconds:
        """From the end of every rank's last step to that of the run."""
        return self.makespan - self.end[..., -1]

    @property
    def waits(self) -> Seconds:
        """What every rank did not compute, pack, unpack or call, up to the end of its last step."""
        return self.end[..., -1] - self.busy

    @cached_property
    def exposed(self) -> Seconds:
        """What the network cost every rank from its first step's start to its last step's end: the same pipeline with
        messages that take no time is taken away, so that waits for a neighbour that is itself late are not counted.
        """
        free = timeline(without_network(self.pipeline))
        spans = [one.end[..., -1] - one.start[..., 0] for one in (self, free)]
        exposed: Seconds = np.maximum(spans[0] - spans[1], 0.0)
        return exposed


def timeline(pipeline: Pipeline) -> Timeline:
    """The exact timeline by the max-plus recurrence: every step of every rank.

    Raises RefusedError where it is larger than memory should be asked for, or ranks would wait for each other for ever.
    """
    nodes = pipeline.ranks * pipeline.total_steps
    if nodes > MOST_NODES:
        raise RefusedError(
            f"a timeline of {pipeline.ranks:,} ranks times {pipeline.total_steps:,} steps: expected at most "
            f"{MOST_NODES:,} steps of all ranks. long_timeline() keeps fewer times of more steps."
        )
    planes = Planes(pipeline).run()
    shape = (*pipeline.grid, pipeline.total_steps)
    start, end = (times[2:, :-1].T.reshape(shape) for times in (planes.begin, planes.end))
    passed = np.maximum(planes.passed[-1, :-1], planes.link[:-1])
    return Timeline(pipeline, start, end, passed.reshape(pipeline.grid), busy_seconds(pipeline, planes.tables))


def without_network(pipeline: Pipeline) -> Pipeline:
    """The same pipeline where messages take CPU time alone."""
    channels = tuple(replace(channel, wire=0.0, latency=0.0) for channel in pipeline.channels)
    return replace(pipeline, channels=channels, synchronisation=0.0, poll=0.0)


def busy_seconds(pipeline: Pipeline, tables: tuple[ChannelTables, ...]) -> Seconds:
    """What every rank's computing CPU does in all sweeps but wait: the grid's shape."""
    helped = pipeline.engine == "helper"
    shape = (*pipeline.grid, pipeline.steps)
    busy = np.broadcast_to(np.broadcast_to(pipeline.compute, shape).sum(axis=-1), pipeline.grid).ravel().copy()
    busy += pipeline.steps * pipeline.step_overhead
    busy *= pipeline.sweeps
    for table in tables:
        channel = table.channel
        messages = pipeline.steps * (pipeline.sweeps - channel.lag)
        exchanges = pipeline.sweeps - 1 if pipeline.engine == "blocking" and channel.lag else messages
        touching = 0.0 if helped and pipeline.apart else messages
        calling = 0.0 if helped else exchanges
        busy += table.sends * (touching * channel.pack + calling * channel.send)
        busy += table.receives * (touching * channel.unpack + calling * channel.receive)
    return busy.reshape(pipeline.grid)


@dataclass(frozen=True)
class LongTimeline:
    """What is kept of a long timeline: seconds, the grid's shape.

    first: when a rank's first step starts; end: when its last one ends; last: when its last message has left. waits: as in
    Timeline. asked: of the ranks asked for, by place, start and end of every step, (2, steps).
    """

    pipeline: Pipeline
    first: Seconds = field(repr=False)
    end: Seconds = field(repr=False)
    last: Seconds = field(repr=False)
    waits: Seconds = field(repr=False)
    asked: dict[tuple[int, ...], Seconds] = field(repr=False)

    @cached_property
    def makespan(self) -> float:
        """When all ranks had done all steps and all messages had left."""
        return float(self.last.max())


def long_timeline(pipeline: Pipeline, ranks: Sequence[tuple[int, ...]] = ()) -> LongTimeline:
    """The exact timeline of a million ranks and more: as ``timeline``, but every step of the given ranks only.

    Raises RefusedError for a pipeline that is not one sweep of overlap or onesided in the usual order (windows.py).
    """
    for rank in ranks:
        if len(rank) != len(pipeline.grid) or not all(0 <= r < g for r, g in zip(rank, pipeline.grid, strict=True)):
            raise RefusedError(f"rank {rank}: expected a place in a grid of {'x'.join(map(str, pipeline.grid))}.")
    shape = np.shape(pipeline.compute)
    chain = (
        len(pipeline.grid) == 1 and [c.offset for c in pipeline.channels] == [(1,)] and max(shape[:-1], default=1) == 1
    )
    ends = Chain(pipeline, ranks).run() if chain else Windows(pipeline, ranks).run()
    waits = ends.end - busy_seconds(pipeline, tables_of(pipeline))
    return LongTimeline(pipeline, ends.first, ends.end, ends.last, waits, ends.asked)
