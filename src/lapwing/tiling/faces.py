"""What ranks tell each other: the faces tiles send, when they are made and when they are needed.

A face is one kind of write: an array and the constant offsets it is written at. After a step a rank sends, of what the
step wrote, the part its neighbours will touch. Neighbours that come later in the same sweep need it in that sweep
(flow dependences, lag 0); the others need it in the next sweep (old values, P3's top frontier; lag 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lapwing.loopnest import ir
from lapwing.loopnest.binding import BoundNest
from lapwing.tiling.partition import Partition, Range

Box = tuple[Range, ...]


@dataclass(frozen=True)
class Face:
    """Elements of ``array`` written at ``offsets`` (per loop, None where the array is not indexed by that loop)."""

    array: str
    offsets: tuple[int | None, ...]
    itemsize: int
    text: str
    line: int


@dataclass(frozen=True)
class Part:
    """The elements a face wrote in a box of iterations (space loops only, normalised)."""

    face: int
    box: Box
    bytes: int


@dataclass(frozen=True)
class Message:
    """``made`` is the step of the sender that completes it, ``needed`` the step of the receiver that first uses it."""

    made: int
    needed: int
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(p.bytes for p in self.parts)


@dataclass(frozen=True)
class Channel:
    """The messages of one sweep from one rank to another, in order."""

    source: int
    target: int
    lag: int
    depth: int
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class Faces:
    """The communication of a nest cut by a partition and tiles of height ``tile`` along space loop ``mapping``."""

    bound: BoundNest
    partition: Partition
    mapping: int
    tile: int

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        return faces_of(self.bound)

    @cached_property
    def _touched(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Distinct space offsets at which each written array is read or written."""
        depth, nest = self.bound.nest.sweep_depth, self.bound.nest
        found: dict[str, dict[tuple[int, ...], None]] = {}
        for access in self.bound.accesses:
            if access.array in nest.written:
                space = tuple(o for o in loop_offsets(self.bound, access)[depth:] if o is not None)
                found.setdefault(access.array, {})[space] = None
        return {array: tuple(offsets) for array, offsets in found.items()}

    @cached_property
    def reach(self) -> tuple[Range, ...]:
        """How far, per space loop, a block's accesses and its neighbours' writes can be apart."""
        depth = self.bound.nest.sweep_depth
        spans = []
        for axis in range(len(self.partition.cuts)):
            apart = [0]
            for face in self.faces:
                wrote = face.offsets[depth + axis]
                assert wrote is not None
                apart += [touched[axis] - wrote for touched in self._touched[face.array]]
            spans.append((min(apart), max(apart)))
        return tuple(spans)

    def steps(self, rank: int) -> tuple[Box, ...]:
        """The rank's block cut along the mapping loop into tiles, in order."""
        block = self.partition.block(rank)
        low, high = block[self.mapping]
        starts = range(low, high, self.tile)
        return tuple(
            (*block[: self.mapping], (s, min(s + self.tile, high)), *block[self.mapping + 1 :]) for s in starts
        )

    def incoming(self, rank: int) -> tuple[Channel, ...]:
        """Channels into a rank: next-sweep ones first, then by the order in which the senders come in a sweep."""
        sources = self.partition.ranks_near(rank, self.reach)
        channels = [c for s in sources if (c := self.channel(s, rank)) is not None]
        return tuple(sorted(channels, key=lambda c: (-c.lag, self.partition.order(c.source))))

    def outgoing(self, rank: int) -> tuple[Channel, ...]:
        mirrored = tuple((-high, -low) for low, high in self.reach)
        targets = self.partition.ranks_near(rank, mirrored)
        return tuple(c for t in targets if (c := self.channel(rank, t)) is not None)

    def channel(self, source: int, target: int) -> Channel | None:
        """What one rank sends another in a sweep, or None if it sends nothing."""
        order_s, order_t = self.partition.order(source), self.partition.order(target)
        lag = 0 if all(s <= t for s, t in zip(order_s, order_t, strict=True)) else 1
        same_column = order_s[self.mapping] == order_t[self.mapping]
        block = self.partition.block(target)
        messages = []
        for made, step in enumerate(self.steps(source)):
            parts = tuple(p for k, face in enumerate(self.faces) if (p := self._part(k, face, step, block)) is not None)
            if parts:
                if lag == 0:
                    needed = made if same_column else 0
                else:
                    needed = self._first_touch(parts, block)
                messages.append(Message(made, needed, parts))
        if not messages:
            return None
        # Messages are taken in the order they were sent: one needed early brings those before it along.
        for k in range(len(messages) - 2, -1, -1):
            messages[k] = replace(messages[k], needed=min(messages[k].needed, messages[k + 1].needed))
        # Double buffers where each step's message is used at once; room for a whole sweep where it waits for its turn.
        depth = 2 if lag == 0 and same_column else len(messages)
        return Channel(source, target, lag, depth, tuple(messages))

    def _part(self, index: int, face: Face, step: Box, block: Box) -> Part | None:
        """The iterations of a step whose writes by this face the target block touches: a box, or None."""
        depth = self.bound.nest.sweep_depth
        wrote = [o for o in face.offsets[depth:] if o is not None]
        hull: list[Range] | None = None
        for touched in self._touched[face.array]:
            # Iteration x writes element x + wrote; the target touches elements block + touched.
            common = [
                (max(s_low, b_low + t - w), min(s_high, b_high + t - w))
                for (s_low, s_high), (b_low, b_high), t, w in zip(step, block, touched, wrote, strict=True)
            ]
            if all(low < high for low, high in common):
                pairs = zip(hull, common, strict=True) if hull else zip(common, common, strict=True)
                hull = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs]
        if hull is None:
            return None
        return Part(index, tuple(hull), math.prod(high - low for low, high in hull) * face.itemsize)

    def _first_touch(self, parts: Sequence[Part], block: Box) -> int:
        """The first step of a block that touches elements of the parts."""
        depth = self.bound.nest.sweep_depth
        low, high = block[self.mapping]
        first = math.inf
        for part in parts:
            face = self.faces[part.face]
            wrote = face.offsets[depth + self.mapping]
            assert wrote is not None
            element = part.box[self.mapping][0] + wrote
            furthest = max(t[self.mapping] for t in self._touched[face.array])
            # Step k touches elements below min(low + (k + 1) tile, high) + furthest.
            first = min(first, max(0, (element - furthest - low) // self.tile))
        return int(min(first, (high - low - 1) // self.tile))


def faces_of(bound: BoundNest) -> tuple[Face, ...]:
    """The faces of a nest: one for each array and offset it is written at."""
    found: dict[tuple[str, tuple[int | None, ...]], Face] = {}
    for store in bound.nest.stores:
        target = store.target
        offsets = loop_offsets(bound, target)
        itemsize = bound.array(target.array).itemsize
        found.setdefault((target.array, offsets), Face(target.array, offsets, itemsize, target.text, target.line))
    return tuple(found.values())


def loop_offsets(bound: BoundNest, access: ir.Access) -> tuple[int | None, ...]:
    """The constant a uniform access adds to each loop's normalised coordinate; None for loops it is not indexed by."""
    offsets: dict[str, int] = {}
    steps = {loop.name: loop.step for loop in bound.nest.loops}
    for affine in access.affine:
        assert affine is not None
        (name, _), *_ = affine.terms
        offsets[name] = steps[name] * affine.constant
    return tuple(offsets.get(loop.name) for loop in bound.nest.loops)
