"""The exact timeline of a program of several phases, in which ranks have steps and messages of their own.

Every rank does what the runtime does (``runtime/cpp/pipeline.hpp``), one thing after the other, and waits for what others do:
a time is known as soon as all times it depends on are, in whatever order ranks come to theirs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lapwing.errors import RefusedError
from lapwing.schedule.pipeline import ENGINES, Engine, Seconds

_Key = tuple[str, int, int]  # what happens, where or on which route, and the how manieth time


@dataclass(frozen=True)
class RoutedMessage:
    """One message of every sweep: the sender's step that makes it, the receiver's that first needs it, both counted through
    the phases of a sweep. Seconds as in schedule.pipeline.Channel.

    ``free``: where faces are stored straight into the receiver's halo, how many steps the receiver has to have done before,
    counted from the beginning of the sweep that makes it; None where messages have buffers.
    """

    made: int
    needed: int
    free: int | None = None
    pack: float = 0.0
    send: float = 0.0
    receive: float = 0.0
    unpack: float = 0.0
    wire: float = 0.0


@dataclass(frozen=True)
class Route:
    """The messages of one channel, in order. ``depth``: the buffers of both ends. ``exchange``: the phase before which blocking
    exchanges those of a sweep as one; None where it sends each by itself. latency: seconds from leaving the link until the
    receiver can see a message."""

    source: int
    target: int
    lag: int
    depth: int
    messages: tuple[RoutedMessage, ...]
    exchange: int | None = None
    latency: float = 0.0


@dataclass(frozen=True)
class PhasedPipeline:
    """``sweeps`` times the steps of all phases on every rank.

    compute: per rank, seconds of every step of a sweep. first_steps: per rank, the first step of every phase; rewrites: the
    phases whose first step overwrites what messages of the step before carry. step_overhead, synchronisation, poll: as in
    Pipeline. With helper the helper packs and unpacks, as where steps are apart (lw_program).

    Raises RefusedError for an engine there is not.
    """

    compute: tuple[Seconds, ...]
    first_steps: tuple[tuple[int, ...], ...]
    sweeps: int
    routes: tuple[Route, ...]
    engine: Engine = "overlap"
    rewrites: tuple[frozenset[int], ...] = ()
    step_overhead: float = 0.0
    synchronisation: float = 0.0
    poll: float = 0.0

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise RefusedError(f"engine {self.engine!r}: expected one of {', '.join(ENGINES)}.")


@dataclass(frozen=True)
class PhasedTimeline:
    """Seconds since the run began, per rank: ``start`` and ``end`` of every step, through all sweeps; ``last``, when its last
    message had left."""

    pipeline: PhasedPipeline
    start: tuple[Seconds, ...] = field(repr=False)
    end: tuple[Seconds, ...] = field(repr=False)
    last: tuple[float, ...] = field(repr=False)

    @cached_property
    def makespan(self) -> float:
        """When all ranks had done all steps and all messages had left."""
        return max(self.last)


def phased_timeline(pipeline: PhasedPipeline) -> PhasedTimeline:
    """The exact timeline. Raises RefusedError where ranks would wait for each other for ever."""
    run = _Run(pipeline)
    run.run()
    return PhasedTimeline(pipeline, tuple(run.start), tuple(run.end), tuple(run.last))


class _Run:
    """``_happened`` has the time of everything that did. The processes of ranks yield what they wait for."""

    def __init__(self, pipeline: PhasedPipeline) -> None:
        self.p = pipeline
        self.steps = [len(compute) for compute in pipeline.compute]
        ranks = range(len(self.steps))
        self.start = [np.zeros(pipeline.sweeps * steps) for steps in self.steps]
        self.end = [np.zeros(pipeline.sweeps * steps) for steps in self.steps]
        self.last = [0.0 for _ in ranks]
        self._link = [0.0 for _ in ranks]
        self._happened: dict[_Key, float] = {}
        self._waiting: dict[_Key, list[Iterator[_Key]]] = {}
        self._able: deque[Iterator[_Key]] = deque()
        self._open = 0
        self._incoming = [[r for r, route in enumerate(pipeline.routes) if route.target == rank] for rank in ranks]
        self._outgoing = [[r for r, route in enumerate(pipeline.routes) if route.source == rank] for rank in ranks]

    def run(self) -> None:
        makers = {"blocking": (self._blocking,), "helper": (self._computing, self._preparing, self._sending)}
        for rank in range(len(self.steps)):
            self._able += [maker(rank) for maker in makers.get(self.p.engine, (self._inline,))]
        self._open = len(self._able)
        while self._able:
            process = self._able.popleft()
            key = next(process, None)
            while key is not None and key in self._happened:
                key = next(process, None)
            if key is None:
                self._open -= 1
            else:
                self._waiting.setdefault(key, []).append(process)
        if self._open:
            raise RefusedError("ranks wait for each other for ever. More buffers (depth) may help.")
        for rank, link in enumerate(self._link):
            self.last[rank] = max(self.last[rank], link)

    def _happens(self, key: _Key, time: float) -> None:
        self._happened[key] = time
        self._able += self._waiting.pop(key, ())

    def _latest(self, time: float, keys: list[_Key]) -> float:
        return max([time, *(self._happened[key] for key in keys)])

    # -- messages ------------------------------------------------------------------------------------------------------

    def _nodes(self, rank: int) -> Iterator[tuple[int, int, int]]:
        """The steps of a rank: sweep, step of the sweep, step of the run."""
        for sweep in range(self.p.sweeps):
            for step in range(self.steps[rank]):
                yield sweep, step, sweep * self.steps[rank] + step

    def _needs(self, rank: int, sweep: int, step: int) -> list[tuple[int, int, RoutedMessage]]:
        """The messages a step is the first to need: route, number, message."""
        found = []
        for r in self._incoming[rank]:
            route = self.p.routes[r]
            for k, message in enumerate(route.messages if sweep >= route.lag else ()):
                if message.needed == step:
                    found.append((r, (sweep - route.lag) * len(route.messages) + k, message))
        return found

    def _makes(self, rank: int, sweep: int, step: int) -> list[tuple[int, int, RoutedMessage]]:
        found = []
        for r in self._outgoing[rank]:
            route = self.p.routes[r]
            for k, message in enumerate(route.messages if sweep + route.lag < self.p.sweeps else ()):
                if message.made == step:
                    found.append((r, sweep * len(route.messages) + k, message))
        return found

    def _rooms(self, sweep: int, made: list[tuple[int, int, RoutedMessage]]) -> list[_Key]:
        """What has to have happened for there to be room."""
        keys: list[_Key] = []
        for r, number, message in made:
            route = self.p.routes[r]
            if message.free is None:
                keys += [("taken", r, number - route.depth)] if number >= route.depth else []
            elif (done := sweep * self.steps[route.target] + message.free) > 0:
                keys.append(("computed", route.target, done - 1))
        return keys

    def _take(self, needed: list[tuple[int, int, RoutedMessage]], time: float) -> None:
        for r, number, _ in needed:
            self._happens(("taken", r, number), time)

    def _send(self, rank: int, made: list[tuple[int, int, RoutedMessage]], time: float) -> float:
        for r, number, message in made:
            time += message.send
            self._link[rank] = max(self._link[rank], time) + message.wire
            self._happens(("arrival", r, number), self._link[rank] + self.p.routes[r].latency + self.p.poll)
        return time

    def _seconds(self, rank: int, step: int) -> float:
        return self.p.step_overhead + float(self.p.compute[rank][step])

    def _phase_opened_by(self, rank: int, step: int) -> int | None:
        firsts = self.p.first_steps[rank]
        return firsts.index(step) if step in firsts else None

    # -- what the threads of a rank do ---------------------------------------------------------------------------------

    def _inline(self, rank: int) -> Iterator[_Key]:
        time = 0.0
        for sweep, step, node in self._nodes(rank):
            needed, made = self._needs(rank, sweep, step), self._makes(rank, sweep, step)
            arrivals: list[_Key] = [("arrival", r, number) for r, number, _ in needed]
            yield from arrivals
            time = self._latest(time, arrivals)
            self.start[rank][node] = time
            time += sum(message.receive + message.unpack for _, _, message in needed)
            self._take(needed, time)
            time += self._seconds(rank, step)
            self._happens(("computed", rank, node), time)
            rooms = self._rooms(sweep, made)
            yield from rooms
            time = self._latest(time, rooms) + sum(message.pack for _, _, message in made)
            time = self._send(rank, made, time)
            self.end[rank][node] = time
        self.last[rank] = time

    def _blocking(self, rank: int) -> Iterator[_Key]:
        time = 0.0
        for sweep, step, node in self._nodes(rank):
            phase = self._phase_opened_by(rank, step)
            if phase is not None:
                time = yield from self._exchange(rank, sweep, phase, time)
            self._happens(("posted", rank, node), time)
            needed = self._needs(rank, sweep, step)
            sent = [one for one in needed if self.p.routes[one[0]].exchange is None]
            arrivals: list[_Key] = [("arrival", r, number) for r, number, _ in sent]
            yield from arrivals
            time = self._latest(time, arrivals)
            self.start[rank][node] = time
            time += sum(message.unpack for _, _, message in needed) + sum(message.receive for _, _, message in sent)
            time += self._seconds(rank, step)
            made = self._makes(rank, sweep, step)
            time += sum(message.pack for _, _, message in made)
            for r, number, message in made:
                route = self.p.routes[r]
                if route.exchange is None:
                    asked = ("posted", route.target, (sweep + route.lag) * self.steps[route.target] + message.needed)
                    yield asked
                    time = max(time + message.send, self._happened[asked]) + message.wire + self.p.synchronisation
                    self._happens(("arrival", r, number), time + route.latency)
            self.end[rank][node] = time
        self.last[rank] = time

    def _exchange(self, rank: int, sweep: int, phase: int, time: float) -> Generator[_Key, None, float]:
        """All messages of a route travel as one, when both ranks have come to the phase (blocking.hpp)."""
        number = sweep * len(self.p.first_steps[rank]) + phase

        def now(routes: list[int]) -> list[int]:
            return [r for r in routes if self.p.routes[r].exchange == phase and self.p.routes[r].lag <= sweep]

        incoming, outgoing = now(self._incoming[rank]), now(self._outgoing[rank])
        time += sum(self.p.routes[r].messages[0].send for r in outgoing)
        time += sum(self.p.routes[r].messages[0].receive for r in incoming)
        self._happens(("ready", rank, number), time)
        done = link = time
        for r in outgoing:
            route = self.p.routes[r]
            yield "ready", route.target, number
            wire = sum(message.wire for message in route.messages)
            link = max(link, self._happened["ready", route.target, number]) + wire + self.p.synchronisation
            self._happens(("exchanged", r, sweep), link + route.latency)
            done = max(done, link)
        for r in incoming:
            yield "exchanged", r, sweep
            done = max(done, self._happened["exchanged", r, sweep])
        return done

    def _computing(self, rank: int) -> Iterator[_Key]:
        time = 0.0
        for _, step, node in self._nodes(rank):
            phase = self._phase_opened_by(rank, step)
            behind = 1 if phase is not None and self.p.rewrites and phase in self.p.rewrites[rank] else 2
            keys: list[_Key] = [("prepared", rank, node)]
            keys += [("passed", rank, node - behind)] if node >= behind else []
            yield from keys
            time = self._latest(time, keys)
            self.start[rank][node] = time
            time += self._seconds(rank, step)
            self.end[rank][node] = time
            self._happens(("computed", rank, node), time)

    def _preparing(self, rank: int) -> Iterator[_Key]:
        """The helper puts a step's messages in place while the step before is computed, but not across phases."""
        time = 0.0
        for sweep, step, node in self._nodes(rank):
            needed = self._needs(rank, sweep, step)
            before = node - (1 if self._phase_opened_by(rank, step) is not None else 2)
            keys: list[_Key] = [("arrival", r, number) for r, number, _ in needed]
            keys += [("computed", rank, before)] if before >= 0 else []
            keys += [("passed", rank, node - 2)] if node >= 2 else []
            yield from keys
            time = self._latest(time, keys) + sum(message.receive + message.unpack for _, _, message in needed)
            self._take(needed, time)
            self._happens(("prepared", rank, node), time)

    def _sending(self, rank: int) -> Iterator[_Key]:
        time = 0.0
        for sweep, step, node in self._nodes(rank):
            made = self._makes(rank, sweep, step)
            keys: list[_Key] = [("computed", rank, node), *self._rooms(sweep, made)]
            yield from keys
            time = self._latest(time, keys) + sum(message.pack for _, _, message in made)
            time = self._send(rank, made, time)
            self._happens(("passed", rank, node), time)
        self.last[rank] = max(time, float(self.end[rank][-1]))
