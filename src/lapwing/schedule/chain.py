"""The recurrence for a chain of very many ranks, each of which sends to the next: planes by step instead of by rank.

In plane p step n is done by rank p - n. A plane then lies where the one before lay, and all planes but the first and last
few are the same calls on the same memory: what they cost is what limits a chain, whose planes are short and many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lapwing.schedule.pipeline import Pipeline, Seconds
from lapwing.schedule.windows import Ends, check_fits

Call = tuple[Callable[..., object], Seconds, Seconds | float, Seconds]


@dataclass(frozen=True)
class _Costs:
    taking: Seconds | float
    passing: Seconds | float
    wire: Seconds | float


class Chain:
    """One sweep over a grid of one axis with one channel, to the next rank; compute varies along steps at most."""

    def __init__(self, pipeline: Pipeline, ranks: Sequence[tuple[int, ...]] = ()) -> None:
        check_fits(pipeline)
        self.pipeline, self.steps, (self.ranks,) = pipeline, pipeline.steps, pipeline.grid
        (self.channel,) = pipeline.channels
        self.keeps = min(self.channel.depth, self.steps)
        # Row 0 of time is the end of the step before the first. Before a rank begins nothing has a time.
        self.time = [np.full(self.steps + 1, -np.inf) for _ in range(2)]
        for time in self.time:
            time[0] = 0.0
        self.link = [np.full(self.steps + 1, -np.inf) for _ in range(2)]
        self.taken = [np.full(self.steps, -np.inf) for _ in range(self.keeps)]
        self.arrival, self.begin = np.full(self.steps, -np.inf), np.empty(self.steps)
        self.compute = np.broadcast_to(pipeline.compute, (1, self.steps))[0] + pipeline.step_overhead
        self.ends = Ends(np.zeros(self.ranks), np.zeros(self.ranks), np.zeros(self.ranks))
        self.ends.asked = {rank: np.zeros((2, self.steps)) for rank in ranks}

    def run(self) -> Ends:
        """Work out all planes."""
        steps, period, channel = self.steps, 2 * self.keeps, self.channel
        inner = _Costs(channel.receive + channel.unpack, channel.pack + channel.send, channel.wire)
        repeated = [self._calls(phase, 0, steps, inner) for phase in range(period)]
        first, end, last = self.ends.first, self.ends.end, self.ends.last
        for plane in range(self.ranks + steps - 1):
            low, high = max(0, plane - self.ranks + 1), min(steps, plane + 1)
            if steps <= plane < self.ranks - 1:
                calls = repeated[plane % period]
            else:
                calls = self._calls(plane, low, high, self._outer_costs(plane, low, high))
            for call, one, other, out in calls:
                call(one, other, out=out)
            time = self.time[plane % 2]
            if low == 0:
                first[plane] = self.begin[0]
            if high == steps and plane >= steps - 1:
                rank = plane - steps + 1
                end[rank] = time[steps]
                last[rank] = max(time[steps], self.link[plane % 2][steps])
            for (rank,), times in self.ends.asked.items():
                step = plane - rank
                if 0 <= step < steps:
                    times[:, step] = self.begin[step], time[step + 1]
        return self.ends

    def _outer_costs(self, plane: int, low: int, high: int) -> _Costs:
        """Costs of a plane that the first or the last rank, which have one neighbour less, may be part of."""
        channel = self.channel
        taking = np.full(self.steps, channel.receive + channel.unpack)
        passing, wire = np.full(self.steps, channel.pack + channel.send), np.full(self.steps, channel.wire)
        if plane < self.steps:
            taking[plane] = 0.0
        if plane >= self.ranks - 1:
            passing[plane - self.ranks + 1] = wire[plane - self.ranks + 1] = 0.0
        return _Costs(taking[low:high], passing[low:high], wire[low:high])

    def _calls(self, plane: int, low: int, high: int, costs: _Costs) -> list[Call]:
        """What to do for steps low to high of a plane, or of one that lies a multiple of 2 * keeps planes further on."""
        here, before, after = slice(low, high), slice(low, high), slice(low + 1, high + 1)
        time, link = self.time[plane % 2][after], self.link[plane % 2][after]
        taken = self.taken[plane % self.keeps]
        calls: list[Call] = [
            (np.maximum, self.time[1 - plane % 2][before], self.arrival[here], self.begin[here]),
            (np.add, self.begin[here], costs.taking, taken[here]),
            (np.add, taken[here], self.compute[here], time),
        ]
        depth = self.channel.depth
        roomy = slice(max(low, depth), high)
        if roomy.start < roomy.stop:
            # Room is made by the next rank, depth steps before: the oldest plane kept, one place up.
            made = self.taken[(plane + 1 - depth) % self.keeps][roomy.start - depth : roomy.stop - depth]
            waiting = self.time[plane % 2][roomy.start + 1 : roomy.stop + 1]
            calls.append((np.maximum, waiting, made, waiting))
        calls.append((np.add, time, costs.passing, time))
        leaves, latency = time, self.channel.latency + self.pipeline.poll
        if self.channel.wire > 0:
            calls.append((np.maximum, self.link[1 - plane % 2][before], time, link))
            calls.append((np.add, link, costs.wire, link))
            leaves = link
        return [*calls, (np.add, leaves, latency, self.arrival[here])]
