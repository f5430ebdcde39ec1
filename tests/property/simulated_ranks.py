"""Runs a planned nest in Python with every rank on its own part of the arrays, message by message.

It stands for the generated C and the runtime, and takes only what the plan says: which steps a rank does, which elements it
sends after a step, and before which step of the receiver they are put in place. Elements a rank does not hold are absent, so
touching one is an error.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lapwing.loopnest.binding import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.execute import written_boxes
from lapwing.runtime.storage import needed_box
from lapwing.tiling.faces import Channel, Faces, Message

Element = tuple[int, ...]
Point = tuple[int, ...]
Body = Callable[[Point, dict[str, "Local"]], None]


class Local:
    """The elements of an array that one rank holds. Indexing another one raises KeyError."""

    def __init__(self, whole: np.ndarray, box: Sequence[tuple[int, int]]) -> None:
        self.shape, self.kind = whole.shape, whole.dtype.type
        self.elements = {index: whole[index] for index in itertools.product(*(range(*r) for r in box))}

    def __getitem__(self, index: int | Element) -> object:
        return self.elements[self._key(index)]

    def __setitem__(self, index: int | Element, value: object) -> None:
        key = self._key(index)
        if key not in self.elements:
            raise KeyError(key)
        self.elements[key] = self.kind(value)

    def _key(self, index: int | Element) -> Element:
        key = index if isinstance(index, tuple) else (index,)
        return tuple(k + n if k < 0 else k for k, n in zip(key, self.shape, strict=True))


@dataclass
class Rank:
    number: int
    arrays: dict[str, Local]
    incoming: tuple[Channel, ...]
    outgoing: tuple[Channel, ...]
    sweep: int = 0
    step: int = 0
    used: dict[Channel, int] = field(default_factory=dict)


class Simulation:
    """``at_once`` is how the blocking engine serves old values: packed and put in place between two sweeps."""

    def __init__(self, bound: BoundNest, plan: Plan, whole: dict[str, np.ndarray], body: Body, at_once: bool) -> None:
        self.bound, self.plan, self.whole, self.body, self.at_once = bound, plan, whole, body, at_once
        self.faces = Faces(bound, plan.partition, plan.mapping, plan.tile)
        self.sweeps = list(bound.domain.points(bound.nest.sweep_depth))
        self.targets = [
            next(s.target for s in bound.nest.stores if (s.target.array, s.target.text) == (f.array, f.text))
            for f in self.faces.faces
        ]
        self.ranks = [self._rank(r) for r in range(plan.ranks)]
        self.mail: dict[Channel, deque[list[object]]] = {c: deque() for r in self.ranks for c in r.outgoing}

    def _rank(self, number: int) -> Rank:
        block = self.plan.partition.block(number)
        arrays = {a.name: Local(self.whole[a.name], needed_box(self.bound, a.name, block)) for a in self.bound.arrays}
        return Rank(number, arrays, self.faces.incoming(number), self.faces.outgoing(number))

    def check_pairs(self) -> None:
        """Every message has a sender and a receiver, and the two agree on it."""
        sent = [c for r in self.ranks for c in r.outgoing]
        received = [c for r in self.ranks for c in r.incoming]
        assert sorted(map(str, sent)) == sorted(map(str, received))
        for channel in sent:
            steps = [(len(self.faces.steps(channel.source)), "made"), (len(self.faces.steps(channel.target)), "needed")]
            for count, name in steps:
                order = [getattr(m, name) for m in channel.messages]
                assert order == sorted(order)
                assert all(0 <= k < count for k in order)

    def run(self, choose: Callable[[int], int]) -> None:
        """Let one rank after another do a step; ``choose`` picks among those that can go on."""
        while unfinished := [r for r in self.ranks if r.sweep < len(self.sweeps)]:
            able = [r for r in unfinished if self._can_go_on(r)]
            assert able, "deadlock: " + ", ".join(f"rank {r.number} at {(r.sweep, r.step)}" for r in unfinished)
            self._do_step(able[choose(len(able))])
        assert not any(self.mail.values()), "messages were sent that nobody takes"

    def collect(self) -> None:
        """Bring what the ranks wrote into the whole arrays."""
        for name in self.bound.nest.written:
            boxes = [written_boxes(self.bound, name, self.plan.partition.block(r.number)) for r in self.ranks]
            for of_offset in zip(*boxes, strict=True):
                for rank, box in zip(self.ranks, of_offset, strict=True):
                    for index in itertools.product(*(range(*r) for r in box)):
                        self.whole[name][index] = rank.arrays[name][index]

    # -- one step ----------------------------------------------------------------------------------------------------

    def _needed(self, rank: Rank) -> Iterator[tuple[Channel, int]]:
        """Channels and the number of messages the rank's next step waits for."""
        for channel in rank.incoming:
            number = rank.used.get(channel, 0)
            count = 0
            while True:
                sweep, k = divmod(number + count, len(channel.messages))
                at_once = self.at_once and channel.lag
                if sweep + channel.lag != rank.sweep or not (at_once or channel.messages[k].needed <= rank.step):
                    break
                count += 1
            yield channel, count

    def _can_go_on(self, rank: Rank) -> bool:
        return all(len(self.mail[channel]) >= count for channel, count in self._needed(rank))

    def _do_step(self, rank: Rank) -> None:
        for channel, count in list(self._needed(rank)):
            for _ in range(count):
                number = rank.used.get(channel, 0)
                sweep, k = divmod(number, len(channel.messages))
                self._unpack(rank, channel.messages[k], sweep, self.mail[channel].popleft())
                rank.used[channel] = number + 1
        steps = self.faces.steps(rank.number)
        for point in self._points(rank.sweep, steps[rank.step]):
            self.body(point, rank.arrays)
        last = rank.step == len(steps) - 1
        for channel in rank.outgoing:
            if rank.sweep + channel.lag >= len(self.sweeps):
                continue
            at_once = self.at_once and channel.lag
            for message in channel.messages:
                if last if at_once else message.made == rank.step:
                    self.mail[channel].append(self._pack(rank, message))
        rank.step += 1
        if last:
            rank.sweep, rank.step = rank.sweep + 1, 0

    def _points(self, sweep: int, box: Sequence[tuple[int, int]]) -> Iterator[Point]:
        """The points of a step, in user's indices."""
        loops = self.bound.domain.loops
        for space in itertools.product(*(range(*r) for r in box)):
            point = (*self.sweeps[sweep], *space)
            values = dict(zip((loop.name for loop in loops), point, strict=True))
            if all(loop.lower.evaluate(values) <= values[loop.name] < loop.upper.evaluate(values) for loop in loops):
                yield tuple(loop.step * x for loop, x in zip(loops, point, strict=True))

    def _elements(self, message: Message, sweep: int) -> Iterator[tuple[str, Element]]:
        loops = self.bound.domain.loops
        for part in message.parts:
            target = self.targets[part.face]
            for space in itertools.product(*(range(*r) for r in part.box)):
                point = (*self.sweeps[sweep], *space)
                values = {loop.name: loop.step * x for loop, x in zip(loops, point, strict=True)}
                yield target.array, tuple(a.evaluate(values) for a in target.affine if a is not None)

    def _pack(self, rank: Rank, message: Message) -> list[object]:
        return [rank.arrays[array][index] for array, index in self._elements(message, rank.sweep)]

    def _unpack(self, rank: Rank, message: Message, sweep: int, values: list[object]) -> None:
        for (array, index), value in zip(self._elements(message, sweep), values, strict=True):
            rank.arrays[array][index] = value
