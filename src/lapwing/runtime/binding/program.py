"""What one rank does in a run, as the tables of lw_program."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import inside_sweep
from lapwing.runtime.binding import native
from lapwing.tiling.boxes import Box
from lapwing.tiling.faces import Channel, Faces, Message
from lapwing.tiling.inner import MOST_LANES
from lapwing.tiling.phased.faces import PhasedFaces
from lapwing.tiling.phased.fusion import Fusion

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
    fusion: Fusion | None = None,
) -> RankProgram:
    """The steps, channels, messages and parts of one rank.

    pass_sweeps: how many sweeps share a pass over the steps. first_sweep: the first that is done, from 0. in_memory: whether
    arrays are there at all times, all of them. opening_sweeps: 1 where a sweep that only sends comes before the first one
    (lw_program). fusion: of a rank that does all by itself.
    """
    points = _sweep_points(faces.bound)[first_sweep:]
    points = np.concatenate([points[:opening_sweeps], points])
    last_joined = len(points) - (len(points) - 1) // faces.joined * faces.joined
    closing_sweeps = int(faces.joined > 1 and ranks > 1)
    points = points[:: faces.joined]
    points = np.concatenate([points, points[-1:][:closing_sweeps]])
    sweeps = len(points)
    tables = _Tables(faces.batch)
    received = _used(faces.incoming(rank), sweeps) if ranks > 1 else []
    sent = _used(faces.outgoing(rank), sweeps) if ranks > 1 else []
    steps = faces.steps(rank) if fusion is None else fusion.steps(0)
    tables.add_phase(faces.bound, points, steps, rewrites=faces.rewrites(rank, sent))
    incoming = [tables.incoming(c, faces.step_count(c.source)) for c in received]
    outgoing = [tables.outgoing(c, faces.step_count(c.target)) for c in sent]
    pass_sweeps = max(1, min(pass_sweeps, sweeps - opening_sweeps))
    places = opening_sweeps + pass_sweeps
    incoming, outgoing = (_of_all_sweeps(side, places, faces.sweep_skew) for side in (incoming, outgoing))
    program = tables.program(sweeps, incoming, outgoing)
    # In a pass of several sweeps the next step may be one of another sweep. Arrays on disk are in place for one step alone.
    program.c.apart = int(in_memory and pass_sweeps == 1 and faces.is_apart(rank, received))
    program.c.pass_sweeps, program.c.pass_skew = pass_sweeps, faces.sweep_skew
    program.c.opening_sweeps = opening_sweeps
    program.c.joined_sweeps, program.c.last_joined = faces.joined, last_joined
    program.c.closing_sweeps = closing_sweeps
    _fuse(program, fusion)
    if faces.joined > 1:
        depth = faces.bound.nest.sweep_depth
        moves = [native.box((*((0, 0),) * depth, *faces.moving(step).moves)) for step in faces.steps(rank)]
        program.c.step_moves = _array(native.Box, moves)
        program.keep.append(program.c.step_moves)
    return program


def phased_program(faces: PhasedFaces, rank: int, fusion: Fusion | None = None) -> RankProgram:
    """The steps of all phases, channels, messages and parts of one rank. fusion: of a rank that does all by itself."""
    phased, tables = faces.phased, _Tables(batch=1)
    for number, (bound, dependences) in enumerate(zip(phased.phases, phased.dependences, strict=True)):
        inside = inside_sweep(dependences, phased.sweep_depth)
        tables.add_phase(
            bound,
            _sweep_points(bound),
            [step.box for step in faces.phase_steps(number, rank)] if fusion is None else fusion.steps(number),
            slices_rows=all(d.vector[-1] >= 0 for d in inside),
            rewrites=faces.rewrites(number, rank),
        )
    received, sent = (_used(side, phased.sweeps) for side in (faces.incoming(rank), faces.outgoing(rank)))
    incoming = [tables.incoming(c, faces.step_count(c.source)) for c in received]
    outgoing = [tables.outgoing(c, faces.step_count(c.target)) for c in sent]
    program = tables.program(phased.sweeps, incoming, outgoing)
    program.c.apart, program.c.pass_sweeps = int(faces.is_apart), 1
    _fuse(program, fusion)
    return program


def _fuse(program: RankProgram, fusion: Fusion | None) -> None:
    if fusion is None:
        return
    firsts = [program.c.phase[k].first_step for k in range(program.c.phases)]
    places = np.array([(sweep, firsts[phase] + step) for sweep, phase, step in fusion.order()], np.int64)
    program.keep.append(places)
    program.c.pass_sweeps, program.c.pass_places = fusion.sweeps, len(places)
    program.c.places = places.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))


def _used(channels: Sequence[Channel], sweeps: int) -> list[Channel]:
    """Without those of old values where there is no next sweep to read them."""
    return [channel for channel in channels if channel.lag == 0 or sweeps > 1]


def _sweep_points(bound: BoundNest) -> npt.NDArray[np.int64]:
    """The sweeps in order, a row of normalised coordinates each. Raises RefusedError where there are too many."""
    nest, domain, depth = bound.nest, bound.domain, bound.nest.sweep_depth
    loops = domain.loops[:depth]
    is_box = all(loop.is_fixed for loop in loops)
    sweeps: list[tuple[int, ...]] = []
    starts, sides = [], []
    if is_box:
        for loop, (low, high) in zip(loops, domain.box, strict=False):
            starts.append(max(low, loop.span({}).start))
            sides.append(max(0, min(high, loop.span({}).stop) - starts[-1]))
    else:
        sweeps += islice(domain.points(depth), MOST_SWEEPS + 1)
    if max(len(sweeps), math.prod(sides)) > MOST_SWEEPS:
        raise RefusedError(
            f"{nest.where(nest.line)}: {nest.name} does more than {MOST_SWEEPS:,} sweeps. Call it several times with fewer."
        )
    if is_box:
        points = np.indices(sides, np.int64).reshape(depth, math.prod(sides))
        return np.ascontiguousarray(points.T + np.array(starts, np.int64))
    return np.array(sweeps, np.int64).reshape(len(sweeps), depth)


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
    """Collects phases, steps, messages and parts while they are written down."""

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.phases: list[native.Phase] = []
        self.steps: list[native.Box] = []
        self.messages: list[native.Message] = []
        self.parts: list[native.Part] = []
        self._depth = 0
        self._points: list[npt.NDArray[np.int64]] = []

    def add_phase(
        self,
        bound: BoundNest,
        points: npt.NDArray[np.int64],
        steps: Sequence[Box],
        slices_rows: bool = True,
        rewrites: bool = False,
    ) -> None:
        nest, depth = bound.nest, bound.nest.sweep_depth
        points = np.ascontiguousarray(points)
        phase = native.Phase(
            loops=len(nest.loops),
            sweep_depth=depth,
            slice_grain=MOST_LANES if depth == len(nest.loops) - 2 else 1,
            slice_loop=depth,
            slices_rows=int(slices_rows),
            sweep_points=points.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
            first_step=len(self.steps),
            rewrites=int(rewrites),
        )
        self._depth = depth
        self._points.append(points)
        self.phases.append(phase)
        self.steps += [native.box((*((0, 1),) * depth, *box)) for box in steps]

    def program(
        self, sweeps: int, incoming: Sequence[native.Channel], outgoing: Sequence[native.Channel]
    ) -> RankProgram:
        arrays = {
            "phase": _array(native.Phase, self.phases),
            "step_boxes": _array(native.Box, self.steps),
            "incoming_channels": _array(native.Channel, incoming),
            "outgoing_channels": _array(native.Channel, outgoing),
            "messages": _array(native.Message, self.messages),
            "parts": _array(native.Part, self.parts),
        }
        program = native.Program(
            phases=len(self.phases),
            sweeps=sweeps,
            steps=len(self.steps),
            batch=self.batch,
            incoming=len(incoming),
            outgoing=len(outgoing),
            joined_sweeps=1,
            last_joined=1,
            **arrays,
        )
        return RankProgram(program, [*self._points, *arrays.values()])

    def incoming(self, channel: Channel, peer_steps: int) -> native.Channel:
        return self._channel(channel, channel.source, peer_steps, lambda message: (message.needed, 0))

    def outgoing(self, channel: Channel, peer_steps: int) -> native.Channel:
        before = (channel.lag - 1) * peer_steps  # the receiver reads what is overwritten in the sweep before
        return self._channel(channel, channel.target, peer_steps, lambda m: (m.made, before + m.last + 1))

    def _channel(
        self, channel: Channel, peer: int, peer_steps: int, times: Callable[[Message], tuple[int, int]]
    ) -> native.Channel:
        """times: the steps of an lw_message."""
        largest = max(m.bytes for m in channel.messages)
        exchanged = channel.exchange is not None
        at_once = sum(m.bytes for m in channel.messages) if exchanged else self.batch * largest
        if at_once > LARGEST_MESSAGE:
            raise RefusedError(
                f"a message of {at_once} bytes: MPI sends at most 2 GiB at once. Use smaller tiles or more ranks."
            )
        first = len(self.messages)
        for message in channel.messages:
            first_part = len(self.parts)
            for part in message.parts:
                box = native.box((*((0, 1),) * self._depth, *part.box))
                self.parts.append(native.Part(part.face, part.bytes, box))
            self.messages.append(native.Message(*times(message), message.bytes, first_part, len(message.parts)))
        return native.Channel(
            peer=peer,
            phase=channel.phase,
            lag=channel.lag,
            exchange=-1 if channel.exchange is None else channel.exchange,
            depth=channel.depth,
            largest=largest,
            first_message=first,
            messages=len(channel.messages),
            peer_steps=peer_steps,
        )


def _array(kind: Any, items: Sequence[Any]) -> Any:
    """A ctypes array that is never empty, so that its address is always good."""
    return (kind * max(1, len(items)))(*items)
