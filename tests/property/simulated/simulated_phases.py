"""Runs the phases of a planned program in Python with every rank on its own part of the arrays, message by message.

As ``simulated_ranks`` for one nest: it takes what the plan says, elements that a rank does not hold are absent, and what
engines may do at different times is done as late or as early as they may.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from simulated_ranks import Body, Element, Local, Point

from lapwing.planner.phased import PhasedPlan
from lapwing.runtime.arrays.storage import Storage
from lapwing.tiling.faces import Channel, Message


@dataclass
class Rank:
    number: int
    arrays: dict[str, Local]
    incoming: tuple[Channel, ...]
    outgoing: tuple[Channel, ...]
    sweep: int = 0
    step: int = 0
    exchanged: int = 0  # exchanges that are over, one before every phase of every sweep
    used: dict[Channel, int] = field(default_factory=dict)
    unsent: list[tuple[Channel, Message, int]] = field(default_factory=list)  # with the sweep, to be packed later


class PhasedSimulation:
    """What engines have leave to do: ``blocking`` waits until a message is asked for, and exchanges what later phases need right
    before them; ``overlap`` has ``depth`` buffers a channel; ``onesided`` stores into the receiver's arrays as soon as what is
    there has been read; ``helper`` packs the last step's messages and puts the next step's in place while a step is computed.
    """

    def __init__(self, plan: PhasedPlan, whole: dict[str, np.ndarray], bodies: Sequence[Body]) -> None:
        self.plan, self.faces, self.whole, self.bodies = plan, plan.faces, whole, bodies
        self.phased = plan.distribution.phased
        depth = self.phased.sweep_depth
        self.sweeps = [list(bound.domain.points(depth)) for bound in self.phased.phases]
        self.ranks = [self._rank(r) for r in range(plan.ranks)]
        self.counts = [self.faces.step_count(r) for r in range(plan.ranks)]
        self.mail: dict[Channel, deque[list[object]]] = {c: deque() for r in self.ranks for c in r.outgoing}
        self.direct = plan.engine == "onesided" and self.faces.is_apart
        self.helped = plan.engine == "helper" and self.faces.is_apart

    def _rank(self, number: int) -> Rank:
        arrays = {
            a.name: Local(self.whole[a.name], Storage(self.faces.needed_box(a.name, number)))
            for a in self.phased.arrays
        }
        channels = self.faces.incoming(number), self.faces.outgoing(number)
        if self.phased.sweeps < 2:
            channels = tuple(tuple(c for c in side if c.lag == 0) for side in channels)  # type: ignore[assignment]
        return Rank(number, arrays, *channels)

    def check_pairs(self) -> None:
        """Every message has a sender and a receiver, and the two agree on it; no element travels twice on a channel."""
        sent = [c for r in self.ranks for c in r.outgoing]
        received = [c for r in self.ranks for c in r.incoming]
        assert sorted(map(str, sent)) == sorted(map(str, received))
        names = [(c.source, c.target, c.phase, c.lag, c.exchange is None) for c in sent]
        assert len(set(names)) == len(names)
        for channel in sent:
            for name, count in (("made", self.counts[channel.source]), ("needed", self.counts[channel.target])):
                order = [getattr(m, name) for m in channel.messages]
                assert order == sorted(order)
                assert all(0 <= k < count for k in order)
            assert len({m.made for m in channel.messages}) == len(channel.messages)

    def run(self, choose: Callable[[int], int]) -> None:
        """Let one rank after another do a step; ``choose`` picks among those that can go on."""
        while unfinished := [r for r in self.ranks if r.sweep < self.phased.sweeps]:
            for rank in self.ranks:
                if self._has_to_send(rank):
                    self._send(rank)
            able = [r for r in unfinished if self._can_go_on(r)]
            if able:
                self._do_step(able[choose(len(able))])
                continue
            unsent = sum(len(r.unsent) for r in self.ranks)
            for rank in self.ranks:
                self._send(rank)
            assert sum(len(r.unsent) for r in self.ranks) < unsent, "deadlock: " + ", ".join(
                f"rank {r.number} at {(r.sweep, r.step)}" for r in unfinished
            )
        for rank in self.ranks:
            self._send(rank)
        assert not any(r.unsent for r in self.ranks), "there is no room for messages"
        assert not any(self.mail.values()), "messages were sent that nobody takes"

    def collect(self) -> None:
        """Bring what the ranks wrote into the whole arrays; every element has one writer."""
        for name in self.phased.written:
            writer: dict[Element, int] = {}
            for rank in self.ranks:
                for box in self.faces.written_boxes(name, rank.number):
                    for index in itertools.product(*(range(*r) for r in box)):
                        assert writer.setdefault(index, rank.number) == rank.number
                        self.whole[name][index] = rank.arrays[name][index]

    # -- one step ----------------------------------------------------------------------------------------------------

    def _phase(self, rank: Rank) -> int:
        return self.faces.phase_of(rank.step, rank.number)

    def _opens_phase(self, rank: Rank, step: int) -> bool:
        return step == self.faces.first_step(self.faces.phase_of(step, rank.number), rank.number)

    def _needed(self, rank: Rank, step: int) -> Iterator[tuple[Channel, int]]:
        """Channels and the number of messages that a step of the rank's sweep waits for."""
        for channel in rank.incoming:
            number, count = rank.used.get(channel, 0), 0
            while True:
                sweep, k = divmod(number + count, len(channel.messages))
                if sweep + channel.lag > rank.sweep or channel.messages[k].needed > step:
                    break
                assert sweep + channel.lag == rank.sweep, "a message was not taken in time"
                count += 1
            yield channel, count

    def _has_arrived(self, rank: Rank, step: int) -> bool:
        return all(len(self.mail[channel]) >= count for channel, count in self._needed(rank, step))

    def _can_go_on(self, rank: Rank) -> bool:
        if self.plan.engine == "blocking":
            return self._is_exchanged(rank) and self._has_arrived(rank, rank.step) and self._all_taken(rank)
        return self._has_arrived(rank, rank.step) and not (rank.unsent and self._has_to_send(rank))

    def _has_to_send(self, rank: Rank) -> bool:
        """Whether what a rank has made is sent before its next step. A helper has until the end of that one with what the last
        one made, but where it would overwrite what messages carry."""
        if not self.helped or rank.sweep == self.phased.sweeps:
            return True
        count = self.counts[rank.number]
        last = rank.sweep * count + rank.step - 1
        if any(sweep * count + message.made < last for _, message, sweep in rank.unsent):
            return True
        return self._opens_phase(rank, rank.step) and self.faces.rewrites(self._phase(rank), rank.number)

    def _all_taken(self, rank: Rank) -> bool:
        """Whether synchronous sends are over: receivers have come to the step that needs the messages."""
        for channel in rank.outgoing:
            target, count = self.ranks[channel.target], len(channel.messages)
            last = target.used.get(channel, 0) + len(self.mail[channel]) - 1
            needed = (last // count, channel.messages[last % count].needed)
            if channel.exchange is None and self.mail[channel] and (target.sweep, target.step) < needed:
                return False
        return True

    def _is_exchanged(self, rank: Rank) -> bool:
        """Whether the exchange before the phase is over, or can be: all who take part in it have come to it."""
        if not self._opens_phase(rank, rank.step):
            return True
        number = rank.sweep * len(self.phased.phases) + self._phase(rank)
        for channel in (*rank.incoming, *rank.outgoing):
            if channel.exchange == self._phase(rank) and channel.lag <= rank.sweep:
                peer = self.ranks[channel.target if channel.source == rank.number else channel.source]
                if peer.exchanged <= number and not self._comes_to_exchange(peer, number):
                    return False
        rank.exchanged = number + 1
        return True

    def _comes_to_exchange(self, rank: Rank, number: int) -> bool:
        if rank.sweep == self.phased.sweeps or not self._opens_phase(rank, rank.step) or not self._all_taken(rank):
            return False
        return rank.sweep * len(self.phased.phases) + self._phase(rank) == number

    def _has_room(self, channel: Channel, message: Message, sweep: int) -> bool:
        """Whether there is room for a message: a buffer, or elements that have been read."""
        target, count = self.ranks[channel.target], len(channel.messages)
        if self.plan.engine == "blocking":
            return True
        if self.direct:
            done = target.sweep * self.counts[target.number] + target.step
            return done >= (sweep + channel.lag - 1) * self.counts[target.number] + message.last + 1
        number = sweep * count + channel.messages.index(message)
        return target.used.get(channel, 0) >= number + 1 - channel.depth

    def _do_step(self, rank: Rank) -> None:
        count = self.counts[rank.number]
        self._take(rank, rank.step)
        ahead = rank.step + 1
        if self.helped and ahead < count and not self._opens_phase(rank, ahead) and self._has_arrived(rank, ahead):
            self._take(rank, ahead)
        phase = self._phase(rank)
        box = self.faces.phase_steps(phase, rank.number)[rank.step - self.faces.first_step(phase, rank.number)].box
        for point in self._points(phase, rank.sweep, box):
            self.bodies[phase](point, rank.arrays)
        self._send(rank)  # of the step before
        for channel in rank.outgoing:
            if rank.sweep + channel.lag < self.phased.sweeps:
                rank.unsent += [(channel, m, rank.sweep) for m in channel.messages if m.made == rank.step]
        if not self.helped:
            self._send(rank)
        rank.step += 1
        if rank.step == count:
            rank.sweep, rank.step = rank.sweep + 1, 0

    def _take(self, rank: Rank, step: int) -> None:
        """Take the messages a step of the sweep needs, and put what they hold in place."""
        for channel, count in list(self._needed(rank, step)):
            for _ in range(count):
                number = rank.used.get(channel, 0)
                sweep, k = divmod(number, len(channel.messages))
                values = self.mail[channel].popleft()
                if not self.direct:
                    self._unpack(rank, channel, channel.messages[k], sweep, values)
                rank.used[channel] = number + 1

    def _send(self, rank: Rank) -> None:
        left: list[tuple[Channel, Message, int]] = []
        for channel, message, sweep in rank.unsent:
            if any(other is channel for other, _, _ in left) or not self._has_room(channel, message, sweep):
                left.append((channel, message, sweep))
                continue
            values = [rank.arrays[array][index] for array, index in self._elements(channel, message, sweep)]
            if self.direct:
                self._unpack(self.ranks[channel.target], channel, message, sweep, values)
            self.mail[channel].append(values)
        rank.unsent = left

    def _unpack(self, rank: Rank, channel: Channel, message: Message, sweep: int, values: list[object]) -> None:
        for (array, index), value in zip(self._elements(channel, message, sweep), values, strict=True):
            rank.arrays[array][index] = value

    def _points(self, phase: int, sweep: int, box: Sequence[tuple[int, int]]) -> Iterator[Point]:
        """The points of a step, in user's indices."""
        bound = self.phased.phases[phase]
        for space in itertools.product(*(range(*r) for r in box)):
            point = (*self.sweeps[phase][sweep], *space)
            loops = bound.domain.loops
            values = dict(zip((loop.name for loop in loops), point, strict=True))
            if all(values[loop.name] in loop.span(values) for loop in loops):
                yield tuple(bound.indices(point).values())

    def _elements(self, channel: Channel, message: Message, sweep: int) -> Iterator[tuple[str, Element]]:
        """What a message carries: whole boxes."""
        bound = self.phased.phases[channel.phase]
        faces = self.faces.faces(channel.phase)
        for part in message.parts:
            face = faces[part.face]
            target = next(
                s.target for s in bound.nest.stores if (s.target.array, s.target.text) == (face.array, face.text)
            )
            for space in itertools.product(*(range(*r) for r in part.box)):
                values = bound.indices((*self.sweeps[channel.phase][sweep], *space))
                yield face.array, tuple(a.evaluate(values) for a in target.affine if a is not None)
