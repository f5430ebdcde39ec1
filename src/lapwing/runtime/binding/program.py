"""What one rank does in a run, as the tables of lw_program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from lapwing.errors import RefusedError
from lapwing.runtime.binding import native
from lapwing.tiling.faces import Channel, Faces, Message
from lapwing.tiling.inner import MOST_LANES

MOST_SWEEPS = 10_000_000  # each has its place in a table
_AHEAD = 4  # messages by which a sender may be ahead of what its receiver needs
LARGEST_MESSAGE = 2**31 - 64  # MPI counts bytes in an int, and the runtime adds a few


@dataclass
class RankProgram:
    """``c`` points into the arrays held by ``keep``."""

    c: native.Program
    keep: list[Any] = field(repr=False)

    @property
    def bytes(self) -> int:
        """The size of the tables."""
        return sum(memoryview(table).nbytes for table in self.keep)


def rank_program(
    faces: Faces,
    rank: int,
    ranks: int,
    pass_sweeps: int = 1,
    first_sweep: int = 0,
    in_memory: bool = True,
    opening_sweeps: int = 0,
) -> RankProgram:
    """The steps, channels, messages and parts of one rank.

    pass_sweeps: how many sweeps share a pass over the steps. first_sweep: the first that is done, from 0. in_memory: whether
    arrays are there at all times, all of them. opening_sweeps: 1 where a sweep that only sends comes before the first one
    (lw_program).
    """
    nest, domain = faces.bound.nest, faces.bound.domain
    depth = nest.sweep_depth
    sweeps = list(islice(domain.points(depth), MOST_SWEEPS + 1))
    if len(sweeps) > MOST_SWEEPS:
        raise RefusedError(
            f"{nest.where(nest.line)}: {nest.name} does more than {MOST_SWEEPS:,} sweeps. Call it several times with fewer."
        )
    sweeps = sweeps[first_sweep:]
    sweeps = sweeps[:opening_sweeps] + sweeps
    points = np.array(sweeps, np.int64).reshape(len(sweeps), depth)
    steps = faces.steps(rank)
    boxes = _array(native.Box, [native.box((*((0, 1),) * depth, *step)) for step in steps])
    tables = _Tables(depth, faces.batch)
    received = faces.incoming(rank) if ranks > 1 else ()
    incoming = [tables.channel(c, c.source, lambda m: m.needed) for c in received]
    outgoing = [tables.channel(c, c.target, lambda m: m.made) for c in (faces.outgoing(rank) if ranks > 1 else ())]
    pass_sweeps = max(1, min(pass_sweeps, len(sweeps) - opening_sweeps))
    places = opening_sweeps + pass_sweeps
    incoming, outgoing = (_of_all_sweeps(side, places, faces.sweep_skew) for side in (incoming, outgoing))
    if len(sweeps) < 2:
        incoming, outgoing = ([c for c in side if c.lag == 0] for side in (incoming, outgoing))
    arrays = {
        "incoming_channels": _array(native.Channel, incoming),
        "outgoing_channels": _array(native.Channel, outgoing),
        "messages": _array(native.Message, tables.messages),
        "parts": _array(native.Part, tables.parts),
    }
    program = native.Program(
        loops=len(nest.loops),
        sweep_depth=depth,
        sweeps=len(sweeps),
        steps=len(steps),
        batch=faces.batch,
        # In a pass of several sweeps the next step may be one of another sweep. Arrays on disk are in place for one step alone.
        apart=int(in_memory and pass_sweeps == 1 and faces.is_apart(rank, received)),
        slice_grain=MOST_LANES if depth == len(nest.loops) - 2 else 1,
        slice_loop=depth,
        sweep_points=points.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
        step_boxes=boxes,
        incoming=len(incoming),
        outgoing=len(outgoing),
        pass_sweeps=pass_sweeps,
        pass_skew=faces.sweep_skew,
        opening_sweeps=opening_sweeps,
        **arrays,
    )
    return RankProgram(program, [points, boxes, *arrays.values()])


def _of_all_sweeps(channels: Sequence[native.Channel], places: int, skew: int) -> list[native.Channel]:
    """The channels of every sweep of a pass, which has so many: none of them waits for another's messages.

    Old values for a sweep of the same pass are needed at most ``skew`` steps after they were sent; those for the next pass
    all have to find room.
    """
    found = []
    for channel in channels:  # old values are still put in place first
        for sweep in range(places):
            copy = native.Channel.from_buffer_copy(channel)
            copy.pass_sweep = sweep
            if copy.lag and sweep < places - 1:
                copy.depth = min(copy.depth, skew + _AHEAD)
            found.append(copy)
    return found


class _Tables:
    """Collects messages and parts while channels are written down."""

    def __init__(self, sweep_depth: int, batch: int) -> None:
        self.sweep_depth, self.batch = sweep_depth, batch
        self.messages: list[native.Message] = []
        self.parts: list[native.Part] = []

    def channel(self, channel: Channel, peer: int, step: Callable[[Message], int]) -> native.Channel:
        largest = max(m.bytes for m in channel.messages)
        at_once = sum(m.bytes for m in channel.messages) if channel.lag else self.batch * largest
        if at_once > LARGEST_MESSAGE:
            raise RefusedError(
                f"a message of {at_once} bytes: MPI sends at most 2 GiB at once. Use smaller tiles or more ranks."
            )
        first = len(self.messages)
        for message in channel.messages:
            first_part = len(self.parts)
            for part in message.parts:
                box = native.box((*((0, 1),) * self.sweep_depth, *part.box))
                self.parts.append(native.Part(part.face, part.bytes, box))
            self.messages.append(
                native.Message(step(message), message.last, message.bytes, first_part, len(message.parts))
            )
        return native.Channel(peer, channel.lag, channel.depth, largest, first, len(channel.messages))


def _array(kind: Any, items: Sequence[Any]) -> Any:
    """A ctypes array that is never empty, so that its address is always good."""
    return (kind * max(1, len(items)))(*items)
