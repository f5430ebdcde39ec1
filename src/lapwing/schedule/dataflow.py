"""Who waits for what in a pipeline: tables a step of one sweep looks its message and its room up in, and ranks by number.

Nodes are a rank's steps, numbered over all sweeps; message n of a channel is the one its sender's node n makes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lapwing.schedule.pipeline import Channel, Pipeline, Seconds, row_major_strides

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class ChannelTables:
    """One channel, by rank (flat, row-major) and by step of a sweep.

    receiver, sender: (ranks,), the rank at the other end; ``ranks``, one past the last, where there is none.
    need: (steps,), the last message a step needs, relative to the first of the sweep it comes from; count: how many it is
    the first to need.
    room: (steps,), the receiver's node whose end frees the buffer of the step's message, relative to the sweep's first one;
    not defined for the first ``depth`` messages of a run. posted: (steps,), the receiver's node that takes the message,
    relative to the first node of the sweep that takes it.
    """

    channel: Channel
    receiver: Indices
    sender: Indices
    sends: Seconds  # (ranks,), 1 where there is a receiver, else 0
    receives: Seconds
    wire: Seconds  # (ranks,), seconds
    need: Indices
    count: Indices
    room: Indices
    posted: Indices


def tables_of(pipeline: Pipeline) -> tuple[ChannelTables, ...]:
    """The tables of all channels, in order."""
    return tuple(_channel_tables(pipeline, channel) for channel in pipeline.channels)


def _channel_tables(pipeline: Pipeline, channel: Channel) -> ChannelTables:
    steps, ranks = pipeline.steps, pipeline.ranks
    places = np.arange(ranks).reshape(pipeline.grid)
    sends = np.broadcast_to(pipeline.has_receiver(channel), pipeline.grid)
    receives = np.broadcast_to(pipeline.has_sender(channel), pipeline.grid)
    by = sum(o * s for o, s in zip(channel.offset, row_major_strides(pipeline.grid), strict=True))
    made = np.arange(steps)
    needed = np.clip(made + channel.shift, 0, steps - 1)
    count = np.bincount(needed, minlength=steps)
    freed = needed if channel.held is None else np.minimum(needed + channel.held, steps - 1)
    earlier, message = np.divmod(made - channel.depth, steps)
    return ChannelTables(
        channel,
        receiver=np.where(sends, places + by, ranks).ravel(),
        sender=np.where(receives, places - by, ranks).ravel(),
        sends=sends.ravel().astype(np.float64),
        receives=receives.ravel().astype(np.float64),
        wire=np.broadcast_to(pipeline.wire_seconds(channel), pipeline.grid).ravel(),
        need=np.cumsum(count) - 1,
        count=count,
        room=(earlier + channel.lag) * steps + freed[message],
        posted=needed,
    )


def compute_by_rank(pipeline: Pipeline) -> Seconds:
    """Seconds of computation of a sweep's steps: (ranks, steps), a view where it can be one."""
    return np.broadcast_to(pipeline.compute, (*pipeline.grid, pipeline.steps)).reshape(pipeline.ranks, pipeline.steps)
