"""What the exact timeline is computed from: a uniform pipeline of ranks, its channels, and what everything costs.

A pipeline does not know where its numbers come from: a machine description, a trace of a run, or a paper. It follows the
runtime (``runtime/cpp/pipeline.hpp``): for every sweep and step, get what the step needs, compute, pass on what it made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError

Engine = Literal["blocking", "overlap", "onesided", "helper"]
ENGINES: tuple[Engine, ...] = ("blocking", "overlap", "onesided", "helper")

Seconds = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Channel:
    """One message a step from every rank to the rank ``offset`` further on in the grid, where there is one.

    offset: the receiver's place in the grid minus the sender's, in normalised direction; >= 0 everywhere where lag is 0.
    lag: 0 where a message is needed in the sweep that made it, 1 for old values, needed one sweep later.
    shift: the message of step k is first needed by the receiver's step k + shift, but by none before the first or after
    the last of a sweep; -(steps - 1) says that all messages of a sweep are needed before its first step.
    depth: the buffers of a channel, those of sender and receiver together: a message is packed when the receiver has taken
    the one ``depth`` messages earlier. Not used by blocking, which has none, apart from lag 1.
    held: None where a buffer is free as soon as it is unpacked; else (faces stored straight into the receiver's halo) it is
    free when the receiver has computed ``held`` steps after the one that first needed it, or the sweep's last.

    Seconds a message: pack and send of the sender's CPU; receive and unpack of the receiver's; wire on the sender's link,
    one message after the other; latency from leaving the link until the receiver can see it.
    """

    offset: tuple[int, ...]
    lag: int = 0
    shift: int = 0
    pack: float = 0.0
    send: float = 0.0
    receive: float = 0.0
    unpack: float = 0.0
    wire: float = 0.0
    latency: float = 0.0
    depth: int = 2
    held: int | None = None


@dataclass(frozen=True)
class Pipeline:
    """``sweeps`` times ``steps`` steps on every rank of a grid.

    compute: seconds, broadcastable to (*grid, steps): blocks may be uneven, and the last tile partial.
    step_overhead: seconds of the computing CPU that every step costs beside its computation.
    synchronisation: seconds a synchronous send costs beyond its transfer (blocking only).
    poll: seconds until a message that came in the middle of a step is noticed; counted with every message's latency (not
    by blocking, which does nothing else while it waits).
    node: how many ranks, consecutive in row-major order, share one link. Messages inside a node do not use it; those that
    leave it share it fairly: each takes as many times its ``wire`` as ranks of the node use the channel.
    apart: whether the helper packs and unpacks as well (helper only).
    evenness: what ranks compute in the mean, as a share of ``compute``, where that is of the busiest rank only.

    Raises RefusedError where a number has no meaning, or where ranks would wait for each other for ever.
    """

    grid: tuple[int, ...]
    steps: int
    sweeps: int
    compute: Seconds
    channels: tuple[Channel, ...]
    engine: Engine = "overlap"
    step_overhead: float = 0.0
    synchronisation: float = 0.0
    poll: float = 0.0
    node: int = 1
    apart: bool = True
    evenness: float = 1.0

    def __post_init__(self) -> None:
        if not self.grid or min(self.grid) < 1:
            raise RefusedError(f"a grid of {self.grid} ranks: expected at least one rank along every axis.")
        for name in ("steps", "sweeps", "node"):
            if getattr(self, name) < 1:
                raise RefusedError(f"a pipeline of {getattr(self, name)} {name}: expected at least 1.")
        if self.engine not in ENGINES:
            raise RefusedError(f"engine {self.engine!r}: expected one of {', '.join(ENGINES)}.")
        for name in ("step_overhead", "synchronisation", "poll"):
            _check_seconds(name, getattr(self, name))
        self._check_compute()
        for channel in self.channels:
            self._check(channel)

    @property
    def ranks(self) -> int:
        return math.prod(self.grid)

    @cached_property
    def total_steps(self) -> int:
        """The steps of a rank in all sweeps."""
        return self.sweeps * self.steps

    def has_receiver(self, channel: Channel) -> npt.NDArray[np.bool_]:
        """Which ranks send on a channel: bool, the grid's shape, but 1 along axes where all are alike."""
        return self._inside(channel.offset)

    def has_sender(self, channel: Channel) -> npt.NDArray[np.bool_]:
        """Which ranks receive on a channel: bool, the grid's shape, but 1 along axes where all are alike."""
        return self._inside(tuple(-o for o in channel.offset))

    def wire_seconds(self, channel: Channel) -> Seconds:
        """Seconds that a message of each rank occupies the link; broadcastable to the grid, 0 where none is sent."""
        sends = self.has_receiver(channel)
        if self.node == 1:
            return np.where(sends, channel.wire, 0.0)
        places = np.arange(self.ranks).reshape(self.grid)
        step = int(np.dot(channel.offset, row_major_strides(self.grid)))
        leaves = np.broadcast_to(sends, self.grid) & ((places + step) // self.node != places // self.node)
        sharing = np.bincount(places.ravel() // self.node, leaves.ravel())
        return np.where(leaves, channel.wire * sharing[places // self.node], 0.0)

    def needed_step(self, channel: Channel, step: int) -> int:
        """The receiver's step of a sweep that first needs the message of the sender's step."""
        return min(max(step + channel.shift, 0), self.steps - 1)

    def _inside(self, offset: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        there = np.ones((1,) * len(self.grid), bool)
        for axis, (ranks, by) in enumerate(zip(self.grid, offset, strict=True)):
            if by:
                places = np.arange(ranks) + by
                shape = [1] * len(self.grid)
                shape[axis] = ranks
                there = there & ((places >= 0) & (places < ranks)).reshape(shape)
        return there

    def _check_compute(self) -> None:
        shape = (*self.grid, self.steps)
        try:
            np.broadcast_to(self.compute, shape)
        except ValueError:
            raise RefusedError(
                f"compute has shape {np.shape(self.compute)}: expected one that broadcasts to {shape}, grid and steps."
            ) from None
        if not np.isfinite(self.compute).all() or np.min(self.compute) < 0:
            raise RefusedError("compute holds seconds that are negative or not finite.")

    def _check(self, channel: Channel) -> None:
        what = f"the channel by {channel.offset}"
        if len(channel.offset) != len(self.grid) or not any(channel.offset):
            raise RefusedError(f"{what}: expected an offset other than 0 with {len(self.grid)} axes, as the grid has.")
        if channel.lag not in (0, 1):
            raise RefusedError(f"{what} has lag {channel.lag}: expected 0 or 1.")
        if channel.lag == 0 and min(channel.offset) < 0:
            raise RefusedError(f"{what} has lag 0: values of this sweep go to later ranks, so no axis may be negative.")
        # Before the receiver takes the first message it waits for all that its first step needs.
        fewest = self.steps if channel.lag else min(self.steps, 1 + max(0, -channel.shift))
        if self.engine != "blocking" and channel.depth < fewest:
            raise RefusedError(
                f"{what} has depth {channel.depth}: expected at least {fewest}, else ranks wait for ever."
            )
        if channel.held is not None and channel.held < 0:
            raise RefusedError(f"{what} is held for {channel.held} steps: expected at least 0.")
        for name in ("pack", "send", "receive", "unpack", "wire", "latency"):
            _check_seconds(f"{name} of {what}", getattr(channel, name))


def row_major_strides(grid: tuple[int, ...]) -> list[int]:
    """By how much a rank's number grows from one place to the next along every axis."""
    return [math.prod(grid[axis + 1 :]) for axis in range(len(grid))]


def _check_seconds(name: str, seconds: float) -> None:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise RefusedError(f"{name} is {seconds} seconds: expected a finite number, at least 0.")
