"""Runs a planned nest in Python with every rank on its own part of the arrays, message by message.

It stands for the generated C and the runtime, and takes only what the plan says: which steps a rank does, which elements it
sends after a step, and before which step of the receiver they are put in place. Elements a rank does not hold are absent, so
touching one is an error. What engines may do at different times is done as late or as early as they may.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from random_nests import SWEEP_NAMES, Case

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import Box, shear_of
from lapwing.runtime.arrays.storage import Storage, storage_of
from lapwing.tiling.faces import Channel, Faces, Message
from lapwing.tiling.skewing import skewed_nest

Element = tuple[int, ...]
Point = tuple[int, ...]
Body = Callable[[Point, dict[str, "Local"]], None]
Slabs = deque[list[object]]


def body_of(case: Case) -> Body:
    """What the loops that are cut do, as a function of a point and a rank's arrays."""
    lines = textwrap.dedent(case.source).splitlines()
    heads = [k for k, line in enumerate(lines) if line.lstrip().startswith("for ")][: case.loops]
    loops, depth = [lines[k].split()[1] for k in heads], heads[-1]
    unpacked = [f"    {a.name} = arrays.get({a.name!r})" for a in case.arrays]
    before = lines[next(k for k, line in enumerate(lines) if line.startswith("def ")) + 1 : heads[0]]
    # In a loop of one iteration, since it may continue. What is cut are all iterations within affine bounds.
    indent = len(lines[depth]) - len(lines[depth].lstrip())
    space = [(name, k) for name, k in zip(loops, heads, strict=True) if name not in SWEEP_NAMES]
    own = [f"{name} in {lines[k].split(' in ', 1)[1][:-1]}" for name, k in space]
    statements = ["    for _ in (0,):", f"        if not ({' and '.join(own)}):", "            continue"]
    statements += [f"    {line[indent:]}" for line in lines[depth + 1 :]]
    text = [f"def body(point, arrays, {', '.join(['np', 'math', *(n for n, _ in case.scalars)])}):"]
    text += [f"    {', '.join(loops)}, = point", *unpacked, *before, *statements]
    names: dict[str, object] = {}
    exec("\n".join(text), names)
    function = names["body"]
    scalars = [value for _, value in case.scalars]
    return lambda point, arrays: function(point, arrays, np, math, *scalars)  # type: ignore[operator]


@st.composite
def orders(draw: st.DrawFn) -> Callable[[int], int]:
    """Which of the ranks that can go on does: any, or always one end of them, as far as it may."""
    randomly = draw(st.randoms(use_true_random=False)).randrange
    return draw(st.sampled_from([randomly, lambda count: 0, lambda count: count - 1]))


class Local:
    """The elements of an array that one rank holds. Indexing another one raises KeyError."""

    def __init__(self, whole: np.ndarray, storage: Storage) -> None:
        self.shape, self.kind = whole.shape, whole.dtype.type
        everything = tuple((0, n) for n in whole.shape)
        boxes = [storage.box]
        if storage.shear is not None:
            boxes = [box for box, _ in storage.shear.pieces(storage.box, everything)]
        self.elements = {index: whole[index] for box in boxes for index in itertools.product(*(range(*r) for r in box))}

    def __len__(self) -> int:
        return self.shape[0]

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
    held: list[Held] = field(default_factory=list)
    unsent: list[tuple[Channel, Message, int]] = field(default_factory=list)  # with the sweep, to be packed later
    batch: dict[tuple[Channel, int], Slabs] = field(default_factory=dict)


@dataclass
class Held:
    """A message that was taken: slabs of consecutive sweeps, of which ``sweep`` is the next to put in place."""

    message: Message
    sweep: int
    slabs: Slabs


class Simulation:
    """What engines have leave to do: ``blocking`` exchanges old values between two sweeps; ``onesided`` stores into the
    receiver's arrays as soon as what is there has been read; ``helper`` packs the last step's messages and puts the next
    step's in place while a step is computed. ``joined`` sweeps are done at once, step by step: a sweep of a rank is so many then,
    and a last one only takes messages.
    """

    def __init__(self, bound: BoundNest, plan: Plan, whole: dict[str, np.ndarray], body: Body, joined: int = 1) -> None:
        bound = skewed_nest(bound, plan.skew)
        self.bound, self.plan, self.whole, self.body = bound, plan, whole, body
        self.faces = Faces(bound, plan.partition, plan.mapping, plan.tile, joined=joined)
        apart = all(self.faces.is_apart(rank, self.faces.incoming(rank)) for rank in range(plan.ranks))
        self.at_once = plan.engine == "blocking"
        self.direct = plan.engine == "onesided" and apart
        self.helped = plan.engine == "helper" and apart
        points = list(bound.domain.points(bound.nest.sweep_depth))
        self.sweeps = [points[k : k + joined] for k in range(0, len(points), joined)]
        self.closing = int(joined > 1)
        self.sweeps += self.sweeps[-1:] * self.closing
        self.targets = [
            next(s.target for s in bound.nest.stores if (s.target.array, s.target.text) == (f.array, f.text))
            for f in self.faces.faces
        ]
        self.ranks = [self._rank(r) for r in range(plan.ranks)]
        self.mail: dict[Channel, deque[Slabs]] = {c: deque() for r in self.ranks for c in r.outgoing}

    def _rank(self, number: int) -> Rank:
        block = self.faces.block(number)
        arrays = {a.name: Local(self.whole[a.name], storage_of(self.bound, a.name, block)) for a in self.bound.arrays}
        return Rank(number, arrays, self.faces.incoming(number), self.faces.outgoing(number))

    def check_pairs(self) -> None:
        """Every message has a sender and a receiver, and the two agree on it."""
        sent = [c for r in self.ranks for c in r.outgoing]
        received = [c for r in self.ranks for c in r.incoming]
        assert sorted(map(str, sent)) == sorted(map(str, received))
        for channel in sent:
            counts = {"made": len(self.faces.steps(channel.source)), "needed": len(self.faces.steps(channel.target))}
            for name, count in {**counts, "last": counts["needed"]}.items():
                order = [getattr(m, name) for m in channel.messages]
                assert order == sorted(order)
                assert all(0 <= k < count for k in order)
            assert all(m.needed <= m.last for m in channel.messages)

    def run(self, choose: Callable[[int], int]) -> None:
        """Let one rank after another do a step; ``choose`` picks among those that can go on."""
        while unfinished := [r for r in self.ranks if r.sweep < len(self.sweeps)]:
            if self.direct:
                self._send_all()
            for rank in self.ranks:
                if self._has_to_send(rank):
                    self._send(rank)
            able = [r for r in unfinished if self._can_go_on(r)]
            if able:
                self._do_step(able[choose(len(able))])
                continue
            unsent = sum(len(r.unsent) for r in self.ranks)
            self._send_all()
            assert sum(len(r.unsent) for r in self.ranks) < unsent, "deadlock: " + ", ".join(
                f"rank {r.number} at {(r.sweep, r.step)}" for r in unfinished
            )
        self._send_all()
        assert not any(r.unsent for r in self.ranks), "there is no room for messages"
        assert not any(self.mail.values()), "messages were sent that nobody takes"

    def collect(self) -> None:
        """Bring what the ranks wrote into the whole arrays."""
        for name in self.bound.nest.written:
            for rank, box in self._written(name):
                for index in itertools.product(*(range(*r) for r in box)):
                    self.whole[name][index] = rank.arrays[name][index]

    def _written(self, name: str) -> Iterator[tuple[Rank, Box]]:
        """What every rank writes, later writes last."""
        boxes = [written_boxes(self.bound, name, self.plan.partition.block(r.number)) for r in self.ranks]
        everything = tuple((0, n) for n in self.whole[name].shape)
        for of_offset in zip(*boxes, strict=True):
            for rank, box in zip(self.ranks, of_offset, strict=True):
                if self.bound.skew is None:
                    yield rank, box
                else:
                    yield from ((rank, piece) for piece, _ in shear_of(self.bound, name).pieces(box, everything))

    # -- one step ----------------------------------------------------------------------------------------------------

    def _needed(self, rank: Rank, step: int) -> Iterator[tuple[Channel, int]]:
        """Channels and the number of messages that a step of the rank's sweep waits for."""
        batch = self.faces.batch
        for channel in rank.incoming:
            number = rank.used.get(channel, 0)
            count = 0
            while True:
                first, k = divmod(number + count, len(channel.messages))
                at_once = self.at_once and channel.lag
                if (
                    first * batch + channel.lag > rank.sweep
                    or first * batch >= self._sending(channel)
                    or not (at_once or channel.messages[k].needed <= step)
                ):
                    break
                assert first * batch + channel.lag == rank.sweep, "a message was not taken in time"
                count += 1
            yield channel, count

    def _sending(self, channel: Channel) -> int:
        """In how many sweeps messages are sent."""
        return len(self.sweeps) - max(channel.lag, self.closing)

    def _has_arrived(self, rank: Rank, step: int) -> bool:
        return all(len(self.mail[channel]) >= count for channel, count in self._needed(rank, step))

    def _can_go_on(self, rank: Rank) -> bool:
        return self._has_arrived(rank, rank.step) and not ((self.direct or self._has_to_send(rank)) and rank.unsent)

    def _has_to_send(self, rank: Rank) -> bool:
        """Whether a helper sends what the last step made before the next one, which would overwrite what messages carry."""
        return self.helped and rank.step == 0 and self.faces.rewrites(rank.number, rank.outgoing)

    def _has_room(self, channel: Channel, message: Message, sweep: int) -> bool:
        """Whether what a message is stored over has been read: see DirectOutbound in link.hpp."""
        target, count = self.ranks[channel.target], len(channel.messages)
        read = target.sweep * count + sum(m.last < target.step for m in channel.messages)
        content = (sweep + channel.lag) * count + channel.messages.index(message)
        return not self.direct or read >= content + 1 - count

    def _do_step(self, rank: Rank) -> None:
        steps = self.faces.steps(rank.number)
        self._take(rank, rank.step)
        if self.helped and rank.step + 1 < len(steps) and self._has_arrived(rank, rank.step + 1):
            self._take(rank, rank.step + 1)
        step, together = self.faces.moving(steps[rank.step]), self.sweeps[rank.sweep]
        for k, sweep in enumerate(together if rank.sweep < len(self.sweeps) - self.closing else ()):
            for point in self._points(sweep, step.at(k)):
                self.body(point, rank.arrays)
        self._send(rank)  # of the step before
        self._note_messages(rank, len(steps) - 1)
        if not self.helped:
            self._send(rank)
        rank.step += 1
        if rank.step == len(steps):
            rank.sweep, rank.step = rank.sweep + 1, 0

    def _take(self, rank: Rank, step: int) -> None:
        """Take the messages a step of the sweep needs, and put what they hold for this sweep in place."""
        for channel, count in list(self._needed(rank, step)):
            for _ in range(count):
                number = rank.used.get(channel, 0)
                first, k = divmod(number, len(channel.messages))
                rank.held.append(Held(channel.messages[k], first * self.faces.batch, self.mail[channel].popleft()))
                rank.used[channel] = number + 1
        for held in rank.held:
            values = held.slabs.popleft()
            if not self.direct:
                self._unpack(rank, held.message, held.sweep, values)
            held.sweep += 1
        rank.held = [held for held in rank.held if held.slabs]

    def _note_messages(self, rank: Rank, last: int) -> None:
        """What the step has made is to be sent."""
        for channel in rank.outgoing:
            if rank.sweep >= self._sending(channel):
                continue
            at_once = self.at_once and channel.lag
            for message in channel.messages:
                if rank.step == last if at_once else message.made == rank.step:
                    rank.unsent.append((channel, message, rank.sweep))

    def _send_all(self) -> None:
        for rank in self.ranks:
            self._send(rank)

    def _send(self, rank: Rank) -> None:
        left: list[tuple[Channel, Message, int]] = []
        for channel, message, sweep in rank.unsent:
            if any(other is channel for other, _, _ in left) or not self._has_room(channel, message, sweep):
                left.append((channel, message, sweep))
                continue
            slabs = rank.batch.setdefault((channel, channel.messages.index(message)), deque())
            slabs.append(self._pack(rank, message, sweep))
            if self.direct:
                self._unpack(self.ranks[channel.target], message, sweep, slabs[-1])
            if (sweep + 1) % self.faces.batch == 0 or sweep + 1 == len(self.sweeps):
                self.mail[channel].append(slabs)
                del rank.batch[channel, channel.messages.index(message)]
        rank.unsent = left

    def _points(self, sweep: Sequence[int], box: Sequence[tuple[int, int]]) -> Iterator[Point]:
        """The points of a step, in user's indices."""
        loops = self.bound.domain.loops
        for space in itertools.product(*(range(*r) for r in box)):
            point = (*sweep, *space)
            values = dict(zip((loop.name for loop in loops), point, strict=True))
            if all(values[loop.name] in loop.span(values) for loop in loops):
                yield tuple(self.bound.indices(point).values())

    def _elements(self, message: Message, sweep: int) -> Iterator[tuple[str, Element]]:
        """What a message carries: of a skewed nest only elements that are written, of others whole boxes."""
        names = self.bound.nest.loop_names
        for part in message.parts:
            target = self.targets[part.face]
            first = self.sweeps[sweep][0]
            points = self._points(first, part.box) if self.bound.skew else self._box(first, part.box)
            for point in points:
                values = dict(zip(names, point, strict=True))
                places = [
                    range(extent) if loop is None or affine is None else (affine.evaluate(values),)
                    for loop, affine, extent in zip(
                        self.bound.nest.axis_loops[target.array],
                        target.affine,
                        self.whole[target.array].shape,
                        strict=True,
                    )
                ]
                yield from ((target.array, index) for index in itertools.product(*places))

    def _box(self, sweep: Sequence[int], box: Sequence[tuple[int, int]]) -> Iterator[Point]:
        for space in itertools.product(*(range(*r) for r in box)):
            yield tuple(self.bound.indices((*sweep, *space)).values())

    def _pack(self, rank: Rank, message: Message, sweep: int) -> list[object]:
        return [rank.arrays[array][index] for array, index in self._elements(message, sweep)]

    def _unpack(self, rank: Rank, message: Message, sweep: int, values: list[object]) -> None:
        for (array, index), value in zip(self._elements(message, sweep), values, strict=True):
            rank.arrays[array][index] = value
