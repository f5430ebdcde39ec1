"""The recurrence for very many ranks: planes of a window that moves over the grid, with the last few planes alone kept.

In plane p rank r does step p - (the sum of its place). Messages come from earlier planes and room is made in earlier
ones, so what lies further back is not kept. Windows are bands of rows of the grid, which slide by a row a plane: a band is
worked through many planes while it lies in the cache, and all it needs of the next band is in planes it has done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lapwing.errors import RefusedError
from lapwing.schedule.pipeline import Channel, Pipeline, Seconds, row_major_strides

_BAND = 32768  # ranks in a band: longer ones leave the cache, shorter ones cost more calls of NumPy
_OTHER_STEPS = 8  # of another cost than most
_PLANES = 128  # worked through before the next band's turn


@dataclass
class Ends:
    """Of every rank (the grid's shape), in seconds: first, when its first step starts; end, when its last one ends; last,
    when its last message has left. asked: of each rank asked for, start and end of every step, (2, steps)."""

    first: Seconds
    end: Seconds
    last: Seconds
    asked: dict[tuple[int, ...], Seconds] = field(default_factory=dict)


def check_fits(pipeline: Pipeline) -> None:
    """Raises RefusedError where a pipeline is not of the kind that windows are for."""
    wrong = []
    if pipeline.engine not in ("overlap", "onesided"):
        wrong.append(f"engine {pipeline.engine}")
    if pipeline.sweeps > 1:
        wrong.append(f"{pipeline.sweeps} sweeps")
    if any(c.shift or c.lag for c in pipeline.channels):
        wrong.append("messages needed at another step or in another sweep")
    for channel in pipeline.channels:
        if channel.held is not None and channel.depth < pipeline.steps:
            wrong.append("buffers held")
        if channel.depth < min(sum(channel.offset), pipeline.steps):
            wrong.append(f"depth {channel.depth} of the channel by {channel.offset}")
    if pipeline.node > 1:
        wrong.append("shared links")
    if _varies(pipeline) == (True, True):
        wrong.append("compute that varies along ranks and steps")
    if wrong:
        raise RefusedError(
            f"a long timeline of {', '.join(wrong)}: expected one sweep of overlap or onesided, messages needed at the step "
            "that made them, depth of at least the sum of each offset, compute along ranks or steps. timeline() does all."
        )


def _other_steps(pipeline: Pipeline) -> int:
    """How many steps do not cost what most do."""
    counts = np.unique(np.asarray(pipeline.compute).reshape(-1), return_counts=True)[1]
    return int(counts.sum() - counts.max())


def _varies(pipeline: Pipeline) -> tuple[bool, bool]:
    shape = (1,) * (len(pipeline.grid) + 1 - np.ndim(pipeline.compute)) + np.shape(pipeline.compute)
    return any(n > 1 for n in shape[:-1]), shape[-1] > 1


class Windows:
    """One sweep over a grid of any number of axes."""

    def __init__(self, pipeline: Pipeline, ranks: Sequence[tuple[int, ...]] = ()) -> None:
        check_fits(pipeline)
        if _varies(pipeline)[1] and _other_steps(pipeline) > _OTHER_STEPS:
            raise RefusedError(
                f"a long timeline where more than {_OTHER_STEPS} steps do not compute as long as most: on a grid that is "
                "no chain, expected steps that are alike. timeline() does all."
            )
        self.pipeline, self.grid, self.steps = pipeline, pipeline.grid, pipeline.steps
        self.levels = sum(g - 1 for g in self.grid)
        self.channels = [c for c in pipeline.channels if all(o < g for o, g in zip(c.offset, self.grid, strict=True))]
        # Rows are whole and lie one after the other, so that a band is one run of memory (blocks of it would take NumPy four
        # times as long). Around them are ranks that are not there.
        self.around = 1 + max((max(c.offset) for c in self.channels), default=0)
        self.padded = tuple(g + 2 * self.around for g in self.grid)
        self.width = math.prod(self.padded[1:])
        self.roomy = [c for c in self.channels if c.depth < self.steps]
        ring = max((c.depth - sum(c.offset) + 1 for c in self.roomy), default=1)
        taken = [self._never() for _ in range(ring)]
        arrival = [[self._never() for _ in range(c.offset[0] + sum(c.offset))] for c in self.channels]
        # The same memory as the rank itself, its sender and its receiver see it, by plane modulo the planes kept.
        self.taken = [self._seen(one) for one in taken]
        self.room = [[self._seen(one, c, 1) for one in taken] for c in self.roomy]
        self.leaving = [[self._seen(one) for one in kept] for kept in arrival]
        self.coming = [[self._seen(one, c, -1) for one in kept] for c, kept in zip(self.channels, arrival, strict=True)]
        self.wired = any(c.wire > 0 for c in self.channels)
        time, link = self._never(), self._never() if self.wired else np.empty(0)
        self.time, self.time_by_place = self._seen(time), self._by_place(time)
        self.link = self._seen(link)
        self.link_by_place = self._by_place(link) if self.wired else link
        self._costs()
        self.ends = Ends(np.zeros(self.grid), np.zeros(self.grid), np.zeros(self.grid))
        self.ends.asked = {rank: np.zeros((2, self.steps)) for rank in ranks}

    def _never(self) -> Seconds:
        """Before its first step nothing has a time, and what is not there is not waited for: minus infinity."""
        return np.full(math.prod(self.padded), -np.inf)

    def _by_place(self, times: Seconds) -> Seconds:
        """The times of the grid's ranks, a view of the grid's shape."""
        inside = tuple(slice(self.around, self.around + g) for g in self.grid)
        view: Seconds = times.reshape(self.padded)[inside]
        return view

    def _seen(self, times: Seconds, channel: Channel | None = None, sign: int = 0) -> Seconds:
        """What every rank sees of the ranks a channel's offset away: all rows, one after the other."""
        strides = row_major_strides(self.padded)
        by = 0 if channel is None else sign * sum(o * s for o, s in zip(channel.offset, strides, strict=True))
        first = self.around * self.width + by
        return times[first : first + self.grid[0] * self.width]

    def _spread(self, seconds: Seconds | float, elsewhere: float = 0.0) -> Seconds:
        """Seconds of every rank, in rows as the times are."""
        spread = np.full(math.prod(self.padded), elsewhere)
        self._by_place(spread)[...] = seconds
        return self._seen(spread).copy()

    def _costs(self) -> None:
        pipeline = self.pipeline
        taking = np.zeros(self.grid)
        sending = [np.zeros(self.grid) for _ in self.channels]
        self.wire = []
        for k, channel in enumerate(self.channels):
            sends = pipeline.has_receiver(channel)
            taking += pipeline.has_sender(channel) * (channel.receive + channel.unpack)
            sending[0] += sends * channel.pack
            sending[k] += sends * channel.send
            self.wire.append(self._spread(np.asarray(sends * channel.wire, np.float64)) if self.wired else taking)
        # Ranks that are not there stay so, whatever they seem to receive.
        self.taking = self._spread(taking, elsewhere=-np.inf)
        self.sending = [self._spread(one) for one in sending]
        compute = np.asarray(pipeline.compute) + pipeline.step_overhead
        self.by_rank, self.by_step, self.other_steps = None, 0.0, []
        if not _varies(pipeline)[1]:
            self.by_rank = self._spread(np.broadcast_to(compute, (*self.grid, 1))[..., 0])
            return
        # Most steps cost the same; what the others cost more or less is added to them alone.
        steps = np.broadcast_to(compute.reshape(-1), self.steps)
        values, counts = np.unique(steps, return_counts=True)
        self.by_step = float(values[counts.argmax()])
        self.other_steps = [(int(k), float(steps[k])) for k in np.flatnonzero(steps != self.by_step)]

    def run(self) -> Ends:
        """Work out all planes."""
        planes, rows = self.levels + self.steps, self.grid[0]
        # A band needs room that was made in rows of the next band, which is behind by as many planes as rows.
        slides = all(c.offset[0] + sum(c.offset) <= c.depth for c in self.roomy)
        band = max(1, _BAND * rows // self.pipeline.ranks) if slides else rows + planes
        chunk = _PLANES if slides else planes
        for opening in range(0, planes, chunk):
            closing = min(opening + chunk, planes)
            for first in range(opening, rows + closing, band):
                for plane in range(opening, closing):
                    self._plane(plane, first - plane, first - plane + band)
        np.maximum(self.ends.end, self.ends.last, out=self.ends.last)
        return self.ends

    def _plane(self, plane: int, low: int, high: int) -> None:
        beyond = self.levels - (self.grid[0] - 1)
        first, last = max(low, 0, plane - (self.steps - 1) - beyond), min(high, self.grid[0], plane + 1)
        if first >= last:
            return
        rows = slice(first * self.width, last * self.width)
        time = self.time[rows]
        for channel, coming in zip(self.channels, self.coming, strict=True):
            np.maximum(time, coming[(plane - sum(channel.offset)) % len(coming)][rows], out=time)
        self._begin(plane, first, last)
        taken = self.taken[plane % len(self.taken)][rows]
        np.add(time, self.taking[rows], out=taken)
        np.add(taken, self.by_step if self.by_rank is None else self.by_rank[rows], out=time)
        for step, seconds in self.other_steps:
            self._correct(plane, first, last, step, seconds - self.by_step)
        for channel, room in zip(self.roomy, self.room, strict=True):
            np.maximum(time, room[(plane + sum(channel.offset) - channel.depth) % len(room)][rows], out=time)
        self._send(plane, rows, time)
        self._end(plane, first, last)

    def _send(self, plane: int, rows: slice, time: Seconds) -> None:
        link = self.link[rows]
        for channel, leaving, sending, wire in zip(self.channels, self.leaving, self.sending, self.wire, strict=True):
            time += sending[rows]
            leaves = time
            if self.wired:
                np.maximum(link, time, out=link)
                link += wire[rows]
                leaves = link
            np.add(leaves, channel.latency + self.pipeline.poll, out=leaving[plane % len(leaving)][rows])

    def _correct(self, plane: int, low: int, high: int, step: int, seconds: float) -> None:
        window = self._window(plane, low, high, range(step, step + 1))
        if window is not None:
            time = self.time_by_place[window]
            np.add(time, seconds, out=time, where=self._doing(plane, window, step))

    def _window(self, plane: int, low: int, high: int, steps: range) -> tuple[slice, ...] | None:
        """The box around the ranks in rows low to high that do one of the steps in a plane; None if there are none.

        All but the first two axes are whole. The box also holds ranks that are not there yet, whose times stay minus
        infinity, and ranks that have done all steps, whose times nobody looks at any more.
        """
        beyond = self.levels - (self.grid[0] - 1)
        low, high = max(low, 0, plane - steps[-1] - beyond), min(high, self.grid[0], plane - steps[0] + 1)
        if low >= high:
            return None
        if len(self.grid) == 1:
            return (slice(low, high),)
        beyond -= self.grid[1] - 1
        left = max(0, plane - steps[-1] - (high - 1) - beyond)
        right = min(self.grid[1], plane - steps[0] - low + 1)
        if left >= right:
            return None
        return (slice(low, high), slice(left, right), *(slice(0, g) for g in self.grid[2:]))

    def _doing(self, plane: int, window: tuple[slice, ...], step: int) -> np.ndarray:
        """Which ranks of the window around those that do a step in a plane do it."""
        if len(window) == 1:
            return np.asarray(True)  # there is one
        level: int | np.ndarray = 0
        for axis, places in enumerate(window):
            shape = [1] * len(window)
            shape[axis] = places.stop - places.start
            level = level + np.arange(places.start, places.stop).reshape(shape)
        return np.asarray(level == plane - step)

    def _begin(self, plane: int, low: int, high: int) -> None:
        """Let the ranks begin whose first step this is, and keep what is asked for."""
        window = self._window(plane, low, high, range(1))
        if window is not None:
            doing = self._doing(plane, window, 0)
            time = self.time_by_place[window]
            np.maximum(time, 0.0, out=time, where=doing)
            np.copyto(self.ends.first[window], time, where=doing)
        self._note(plane, low, high, 0)

    def _end(self, plane: int, low: int, high: int) -> None:
        window = self._window(plane, low, high, range(self.steps - 1, self.steps))
        if window is not None:
            doing = self._doing(plane, window, self.steps - 1)
            np.copyto(self.ends.end[window], self.time_by_place[window], where=doing)
            if self.wired:
                np.copyto(self.ends.last[window], self.link_by_place[window], where=doing)
        self._note(plane, low, high, 1)

    def _note(self, plane: int, low: int, high: int, row: int) -> None:
        for rank, times in self.ends.asked.items():
            step = plane - sum(rank)
            if 0 <= step < self.steps and low <= rank[0] < high:
                times[row, step] = self.time_by_place[rank]
