"""The timeline's recurrence against a simulation that knows nothing of planes: every rank does what the runtime does, one
thing after the other, and waits by giving way until what it waits for has happened."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_pipelines import pipelines
from randomness import wanted

from lapwing.schedule.pipeline import Channel, Pipeline
from lapwing.schedule.timeline import completion_seconds, timeline

Rank = tuple[int, ...]
Key = tuple[object, ...]


class Simulation:
    """``happened`` has the time of everything that did: a rank's process yields the keys it waits for."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.p = pipeline
        self.ranks = list(itertools.product(*(range(g) for g in pipeline.grid)))
        self.compute = np.broadcast_to(pipeline.compute, (*pipeline.grid, pipeline.steps))
        self.happened: dict[Key, float] = {}
        self.link = dict.fromkeys(self.ranks, 0.0)

    def run(self) -> Simulation:
        if self.p.engine == "helper":
            makers = [self.computing, self.preparing, self.sending]
        else:
            makers = [self.blocking if self.p.engine == "blocking" else self.inline]
        waiting = [(process, next(process)) for rank in self.ranks for maker in makers for process in [maker(rank)]]
        while waiting:
            still = []
            for process, keys in waiting:
                try:
                    while all(key in self.happened for key in keys):
                        keys = next(process)
                    still.append((process, keys))
                except StopIteration:
                    pass
            assert len(still) < len(waiting) or any(a[1] != b[1] for a, b in zip(still, waiting, strict=True)), (
                f"all wait for ever: {[keys for _, keys in still]}"
            )
            waiting = still
        return self

    def nodes(self) -> Iterator[tuple[int, int]]:
        return itertools.product(range(self.p.sweeps), range(self.p.steps))

    def neighbour(self, rank: Rank, channel: Channel, sign: int) -> Rank | None:
        there = tuple(r + sign * o for r, o in zip(rank, channel.offset, strict=True))
        return there if all(0 <= r < g for r, g in zip(there, self.p.grid, strict=True)) else None

    def incoming(self, rank: Rank, sweep: int) -> Iterator[tuple[int, Channel, Rank]]:
        for c, channel in enumerate(self.p.channels):
            sender = self.neighbour(rank, channel, -1)
            if sender is not None and sweep >= channel.lag:
                yield c, channel, sender

    def outgoing(self, rank: Rank, sweep: int) -> Iterator[tuple[int, Channel, Rank]]:
        for c, channel in enumerate(self.p.channels):
            receiver = self.neighbour(rank, channel, 1)
            if receiver is not None and sweep + channel.lag < self.p.sweeps:
                yield c, channel, receiver

    def needed(self, channel: Channel, sweep: int, step: int) -> list[int]:
        """The numbers of the messages that a step is the first to need."""
        steps = self.p.steps
        first = (sweep - channel.lag) * steps
        return [first + k for k in range(steps) if min(max(k + channel.shift, 0), steps - 1) == step]

    def needs(self, rank: Rank, sweep: int, step: int) -> list[tuple[int, Channel, Rank, int]]:
        found = []
        for c, channel, sender in self.incoming(rank, sweep):
            found += [(c, channel, sender, n) for n in self.needed(channel, sweep, step)]
        return found

    def rooms(self, rank: Rank, sweep: int, step: int) -> list[Key]:
        number = sweep * self.p.steps + step
        return [
            ("free", c, rank, number - channel.depth)
            for c, channel, _ in self.outgoing(rank, sweep)
            if number >= channel.depth
        ]

    def times(self, keys: list[Key]) -> list[float]:
        return [self.happened[key] for key in keys]

    def free(self, rank: Rank, sweep: int, step: int, time: float, held: bool) -> None:
        """The step has taken its messages (or has been computed: ``held``)."""
        for c, channel, sender in self.incoming(rank, sweep):
            if (channel.held is not None) != held:
                continue
            for k in range(self.p.steps):
                if channel.held is not None and min(k + channel.held, self.p.steps - 1) != step:
                    continue
                for n in self.needed(channel, sweep, k if held else step):
                    self.happened["free", c, sender, n] = time

    def send(self, rank: Rank, sweep: int, step: int, time: float) -> float:
        number = sweep * self.p.steps + step
        for c, channel, receiver in self.outgoing(rank, sweep):
            time += channel.send
            self.link[rank] = max(self.link[rank], time) + self.wire(rank, channel, receiver)
            self.happened["arrival", c, rank, number] = self.link[rank] + channel.latency + self.p.poll
        return time

    def wire(self, rank: Rank, channel: Channel, receiver: Rank) -> float:
        place = {r: k // self.p.node for k, r in enumerate(self.ranks)}
        if self.p.node == 1:
            return channel.wire
        sharing = 0
        for r in self.ranks:
            to = self.neighbour(r, channel, 1)
            sharing += to is not None and place[r] == place[rank] and place[to] != place[r]
        return channel.wire * sharing if place[rank] != place[receiver] else 0.0

    def seconds(self, rank: Rank, step: int) -> float:
        return self.p.step_overhead + float(self.compute[(*rank, step)])

    def arrivals(self, needs: list[tuple[int, Channel, Rank, int]]) -> list[Key]:
        return [("arrival", c, sender, n) for c, _, sender, n in needs]

    # -- the processes of a rank ---------------------------------------------------------------------------------------

    def inline(self, rank: Rank) -> Iterator[list[Key]]:
        time = 0.0
        for sweep, step in self.nodes():
            node, needs = sweep * self.p.steps + step, self.needs(rank, sweep, step)
            arrivals = self.arrivals(needs)
            yield arrivals
            time = max([time, *self.times(arrivals)])
            self.happened["begin", rank, node] = time
            time += sum(channel.receive + channel.unpack for _, channel, _, _ in needs)
            self.free(rank, sweep, step, time, held=False)
            time += self.seconds(rank, step)
            self.free(rank, sweep, step, time, held=True)
            rooms = self.rooms(rank, sweep, step)
            yield rooms
            time = max([time, *self.times(rooms)])
            time += sum(channel.pack for _, channel, _ in self.outgoing(rank, sweep))
            time = self.send(rank, sweep, step, time)
            self.happened["end", rank, node] = time
        self.happened["last", rank] = max(time, self.link[rank])

    def blocking(self, rank: Rank) -> Iterator[list[Key]]:
        time = 0.0
        for sweep, step in self.nodes():
            node = sweep * self.p.steps + step
            if step == 0 and sweep > 0:
                time = yield from self.exchange(rank, sweep, time)
            self.happened["posted", rank, node] = time
            needs = self.needs(rank, sweep, step)
            arrivals = self.arrivals([n for n in needs if n[1].lag == 0])
            yield arrivals
            time = max([time, *self.times(arrivals)])
            self.happened["begin", rank, node] = time
            time += sum(channel.unpack + channel.receive * (channel.lag == 0) for _, channel, _, _ in needs)
            time += self.seconds(rank, step) + sum(channel.pack for _, channel, _ in self.outgoing(rank, sweep))
            for c, channel, receiver in self.outgoing(rank, sweep):
                if channel.lag:
                    continue
                taken = sweep * self.p.steps + min(max(step + channel.shift, 0), self.p.steps - 1)
                yield [("posted", receiver, taken)]
                time = max(time + channel.send, self.happened["posted", receiver, taken])
                time += self.wire(rank, channel, receiver) + self.p.synchronisation
                self.happened["arrival", c, rank, node] = time + channel.latency
            self.happened["end", rank, node] = time
        self.happened["last", rank] = time

    def exchange(self, rank: Rank, sweep: int, time: float) -> Iterator[list[Key]]:
        old_in = [x for x in self.incoming(rank, sweep) if x[1].lag]
        old_out = [x for x in self.outgoing(rank, sweep - 1) if x[1].lag]
        time += sum(channel.receive for _, channel, _ in old_in) + sum(channel.send for _, channel, _ in old_out)
        self.happened["ready", rank, sweep] = time
        link, done = time, time
        for c, channel, receiver in old_out:
            yield [("ready", receiver, sweep)]
            link = max(link, self.happened["ready", receiver, sweep])
            link += self.p.steps * self.wire(rank, channel, receiver) + self.p.synchronisation
            self.happened["old", c, rank, sweep] = link + channel.latency
            done = max(done, link)
        keys: list[Key] = [("old", c, sender, sweep) for c, _, sender in old_in]
        yield keys
        return max([done, *self.times(keys)])

    def computing(self, rank: Rank) -> Iterator[list[Key]]:
        time = 0.0
        for sweep, step in self.nodes():
            node = sweep * self.p.steps + step
            keys: list[Key] = [("prepared", rank, node)]
            if self.p.apart and node >= 2:
                keys.append(("sent", rank, node - 2))
            yield keys
            time = max([time, *self.times(keys)])
            self.happened["begin", rank, node] = time
            if not self.p.apart:
                time += sum(channel.unpack for _, channel, _, _ in self.needs(rank, sweep, step))
            time += self.seconds(rank, step)
            if not self.p.apart:
                time += sum(channel.pack for _, channel, _ in self.outgoing(rank, sweep))
            self.happened["end", rank, node] = time
        yield [("sent", rank, self.p.total_steps - 1)]
        self.happened["last", rank] = max(time, self.happened["sent", rank, self.p.total_steps - 1], self.link[rank])

    def preparing(self, rank: Rank) -> Iterator[list[Key]]:
        time = 0.0
        for sweep, step in self.nodes():
            node, needs = sweep * self.p.steps + step, self.needs(rank, sweep, step)
            computed = node - 1 if self.p.apart and step == 0 else node - 2
            keys: list[Key] = self.arrivals(needs)
            keys += [("end", rank, computed)] * (computed >= 0) + [("sent", rank, node - 2)] * (node >= 2)
            if not self.p.apart:
                keys += self.rooms(rank, sweep, step)
            yield keys
            time = max([time, *self.times(keys)])
            time += sum(channel.receive + channel.unpack * self.p.apart for _, channel, _, _ in needs)
            if self.p.apart:
                self.free(rank, sweep, step, time, held=False)
            self.happened["prepared", rank, node] = time

    def sending(self, rank: Rank) -> Iterator[list[Key]]:
        time = 0.0
        for sweep, step in self.nodes():
            node = sweep * self.p.steps + step
            keys: list[Key] = [("end", rank, node)]
            if self.p.apart:
                keys += self.rooms(rank, sweep, step)
            yield keys
            time = max([time, *self.times(keys)])
            if self.p.apart:
                time += sum(channel.pack for _, channel, _ in self.outgoing(rank, sweep))
            else:
                self.free(rank, sweep, step, time, held=False)
            time = self.send(rank, sweep, step, time)
            self.happened["sent", rank, node] = time

    def table(self, what: str) -> np.ndarray:
        shape = (*self.p.grid, self.p.total_steps)
        return np.array([[self.happened[what, r, n] for n in range(self.p.total_steps)] for r in self.ranks]).reshape(
            shape
        )


@settings(max_examples=wanted(100), deadline=None)
@given(pipelines())
def test_the_timeline_is_what_a_simulation_of_events_finds(pipeline: Pipeline) -> None:
    simulated, exact = Simulation(pipeline).run(), timeline(pipeline)
    np.testing.assert_allclose(exact.start, simulated.table("begin"), rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact.end, simulated.table("end"), rtol=0, atol=1e-9)
    last = np.array([simulated.happened["last", r] for r in simulated.ranks]).reshape(pipeline.grid)
    np.testing.assert_allclose(exact.last, last, rtol=0, atol=1e-9)


FREE = dict.fromkeys(("pack", "send", "receive", "unpack", "wire", "latency"), 0.0)
# Two axes on which no channel sets a bound of its own have to keep the diagonal one between them.
DIAGONAL = Pipeline(
    (2, 2, 2), 4, 2, np.ones(4),
    (Channel((1, 1, 1), 0, -3, **FREE, depth=4), Channel((1, 0, 0), 0, 0, **FREE, depth=1),
     Channel((0, -1, 0), 1, 0, **FREE, depth=4), Channel((0, 0, -1), 1, 0, **FREE, depth=4)),
    "blocking",
)  # fmt: skip


@settings(max_examples=wanted(40), deadline=None)
@given(pipelines(), st.integers(1, 3))
@example(DIAGONAL, 1)
def test_the_makespan_of_a_long_run_is_that_of_its_timeline(pipeline: Pipeline, longer: int) -> None:
    # Repeated steps where there are none of another sweep, else repeated sweeps.
    if pipeline.sweeps == 1:
        steps = 70 * longer
        compute = pipeline.compute[..., :1]
        channels = tuple(
            replace(c, shift=0, depth=c.depth + (steps if c.lag or c.held else 0)) for c in pipeline.channels
        )
        pipeline = replace(pipeline, steps=steps, compute=compute, channels=channels)
    else:
        pipeline = replace(pipeline, sweeps=13 * longer)
    assert completion_seconds(pipeline) == pytest.approx(timeline(pipeline).makespan, rel=1e-12, abs=1e-9)
