"""What ranks tell each other: the faces tiles send, when they are made and when they are needed.

A face is one kind of write: an array and the constant offsets it is written at. After a step a rank sends, of what the
step wrote, the part its neighbours will touch. Neighbours that come later in the same sweep need it in that sweep (flow
dependences, lag 0); the others need it in the next sweep (old values, P3's top frontier; lag 1). Where no dependence inside a
sweep crosses a cut, as between red points and black ones, all of it is old values: ranks exchange them while they are at the
rest of their blocks.

Where time is the mapping dimension (P4) a step is a sweep of the whole block, and a message holds the faces of as many
sweeps as a tile is high.

Where several sweeps are joined, a step is done in all of them before the next one (time skewing; Wolf 1989, Wonnacott 2000). So
that no dependence points backwards then, a step and a block end lower in each of those sweeps than in the one before, unless they
end where the loop does, by as much as accesses are apart from writes: what lies below is left to the next step, or rank. After a
step a rank hands on the elements that it wrote in any of the sweeps, as they are then. Steps in their order - of all ranks in
one step before those in the next, and of a step in the order in which dependences lead - respect all dependences on
one memory, and messages bring every rank what it would find there. Old values are those of the last of the sweeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lapwing.affine.affine import Affine
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Vector, distance_vectors, inside_sweep
from lapwing.tiling.boxes import MovingBox, coalesced, hull, intersection, volume
from lapwing.tiling.partition import Partition, Range
from lapwing.tiling.skewing import skewed_dependences

Box = tuple[Range, ...]


@dataclass(frozen=True)
class Face:
    """Elements of ``array`` written at ``offsets`` (per loop, None where the array is not indexed by that loop), all along its
    local axes, but for those that have their one index in ``places``. ``itemsize``: the bytes of those that one iteration stands
    for."""

    array: str
    offsets: tuple[int | None, ...]
    itemsize: int
    text: str
    line: int
    places: tuple[tuple[int, Affine], ...] = ()


@dataclass(frozen=True)
class Part:
    """The elements a face wrote in a box of iterations (space loops only, normalised)."""

    face: int
    box: Box
    bytes: int


@dataclass(frozen=True)
class Message:
    """``made`` is the step of the sender that completes it, ``needed`` the step of the receiver that first uses it, and
    ``last`` the last step of the receiver's sweep that touches its elements (or a later one): what they hold may be overwritten
    then. ``parts`` are those of one sweep.

    Where a sweep has several phases ``last`` is the last step that touches what the elements held before, counted from the
    beginning of the sweep before the one that ``needed`` lies in.
    """

    made: int
    needed: int
    last: int
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return sum(p.bytes for p in self.parts)


@dataclass(frozen=True)
class Channel:
    """The messages of one sweep from one rank to another, in order: faces of ``phase``.

    ``exchange``: the phase before which all messages of a sweep may be exchanged at once; None where some are needed in the
    phase that makes them.
    """

    source: int
    target: int
    lag: int
    depth: int
    messages: tuple[Message, ...]
    phase: int = 0
    exchange: int | None = None


@dataclass(frozen=True)
class Faces:
    """The communication of a nest cut by a partition and tiles of height ``tile`` along space loop ``mapping``.

    ``mapping`` is None where tiles lie along time; no rank may need values of a later one then (``reads_ahead``).
    ``buffers``: messages of a channel that may be in flight at once where each is used in the step after it was made.
    ``joined``: how many sweeps are done at once; what a channel's messages are of is then so many. No rank cuts the mapping loop,
    and the first step, and the blocks of the first ranks, are at least as long as the others' ends move.
    """

    bound: BoundNest
    partition: Partition
    mapping: int | None
    tile: int
    buffers: int = 2
    joined: int = 1

    @property
    def batch(self) -> int:
        """The number of sweeps whose values travel together."""
        return self.tile if self.mapping is None else 1

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        return faces_of(self.bound)

    @cached_property
    def _touched(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        return touched_offsets(self.bound)

    @cached_property
    def reach(self) -> tuple[Range, ...]:
        """How far, per space loop, a block's accesses and its neighbours' writes can be apart."""
        return reach_of(self.bound)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """By how much, per space loop, ends lie lower in each of the sweeps that are joined."""
        return shifts_of(self.bound)

    def moving(self, box: Box) -> MovingBox:
        """A step, or a block, in all sweeps that are joined."""
        whole = self.bound.domain.box[self.bound.nest.sweep_depth :]
        moves = tuple(
            (0 if low == first else shift, 0 if high == last else shift)
            for (low, high), (first, last), shift in zip(box, whole, self.shifts, strict=True)
        )
        return MovingBox(box, moves, self.joined)

    def block(self, rank: int) -> Box:
        """The iterations that a rank does in any of the sweeps that are joined, or a box around them."""
        return self.moving(self.partition.block(rank)).around

    @property
    def sweep_skew(self) -> int:
        """How many steps sweeps of one pass are behind each other; 0 where time is the mapping dimension."""
        if self.mapping is None:
            return 0
        low, high = self.reach[self.mapping]
        return sweep_skew(max(-low, high), self.tile, self.partition.ranks)

    def steps(self, rank: int) -> tuple[Box, ...]:
        """What a rank does in a sweep, in order: its block, cut along the mapping loop into tiles."""
        return tuple(self.step(rank, k) for k in range(self.step_count(rank)))

    def step_count(self, rank: int) -> int:
        """The number of steps of a rank's sweep."""
        if self.mapping is None:
            return 1
        low, high = self.partition.block(rank)[self.mapping]
        return -(-(high - low) // self.tile)

    def step(self, rank: int, number: int) -> Box:
        """What a rank does in one step of a sweep."""
        block = self.partition.block(rank)
        if self.mapping is None:
            return block
        low, high = block[self.mapping]
        begin = low + number * self.tile
        return (*block[: self.mapping], (begin, min(begin + self.tile, high)), *block[self.mapping + 1 :])

    def incoming(self, rank: int) -> tuple[Channel, ...]:
        """Channels into a rank: next-sweep ones first, then by the order in which the senders come in a sweep."""
        sources = self.partition.ranks_near(rank, self._far)
        channels = [c for s in sources if (c := self.channel(s, rank)) is not None]
        return tuple(sorted(channels, key=lambda c: (-c.lag, self.partition.order(c.source))))

    def outgoing(self, rank: int) -> tuple[Channel, ...]:
        mirrored = tuple((-high, -low) for low, high in self._far)
        targets = self.partition.ranks_near(rank, mirrored)
        return tuple(c for t in targets if (c := self.channel(rank, t)) is not None)

    @property
    def _far(self) -> tuple[Range, ...]:
        """How far apart the blocks of ranks may be that tell each other something."""
        moved = (shift * (self.joined - 1) for shift in self.shifts)
        return tuple((low - by, high + by) for (low, high), by in zip(self.reach, moved, strict=True))

    def channel(self, source: int, target: int) -> Channel | None:
        """What one rank sends another in a sweep, or None if it sends nothing."""
        lag = self.lag(source, target)
        numbers = range(self.step_count(source))
        messages = [message for made in numbers if (message := self.message(source, target, made)) is not None]
        if not messages:
            return None
        assert self.mapping is not None or lag == 0, f"rank {target} needs old values of rank {source}"
        if self.is_exchange:
            messages = self._after_reads(messages, self.step_count(source))
        messages = in_order(messages)
        # Their elements are given up in that order, too: one used for long keeps those after it.
        for k in range(1, len(messages)):
            messages[k] = replace(messages[k], last=max(messages[k].last, messages[k - 1].last))
        # Where a message waits for its turn there is room for a whole sweep. Packing several sweeps takes a buffer more.
        at_once = lag == 0 and self._in_step(source, target)
        depth = self.buffers + (self.batch > 1) if at_once else len(messages)
        return Channel(source, target, lag, depth, tuple(messages), exchange=0 if lag else None)

    def _after_reads(self, messages: Sequence[Message], steps: int) -> list[Message]:
        """Messages sent no sooner than in the receiver's last step that reads what they replace, or in the last one there is: two
        ranks that store into each other's arrays would wait for each other's later steps else."""
        found: dict[int, Message] = {}
        for message in messages:
            made = max(message.made, min(message.last, steps - 1))
            one = found.get(made, replace(message, made=made, parts=()))
            found[made] = Message(
                made, min(one.needed, message.needed), max(one.last, message.last), (*one.parts, *message.parts)
            )
        return [found[made] for made in sorted(found)]

    def lag(self, source: int, target: int) -> int:
        """How many sweeps later a rank needs what another one wrote: 0 where it comes later in the same sweep and any dependence
        leads to other ranks in it, else 1."""
        order = zip(self.partition.order(source), self.partition.order(target), strict=True)
        return 0 if all(s <= t for s, t in order) and not self.is_exchange else 1

    @cached_property
    def is_exchange(self) -> bool:
        """Whether ranks need nothing of each other's in the sweep that makes it. Along time they do the same sweep one after the
        other, and are told all the same."""
        cut = [k for k, parts in enumerate(self.partition.grid) if parts > 1]
        alone = self.mapping is not None and self.joined == 1
        return alone and not any(v[k] for v in flow_vectors(self.bound) for k in cut)

    def message(self, source: int, target: int, made: int) -> Message | None:
        """What a rank sends another after a step, or None if it sends nothing; taken by itself, whatever comes before."""
        step, block = self.moving(self.step(source, made)), self.block(target)
        written = [step.last] if self.lag(source, target) else step.swept()
        faces = [(k, face, box) for k, face in enumerate(self.faces) for box in written]
        parts = tuple(part for k, face, box in faces for part in self._parts(k, face, box, block))
        if not parts:
            return None
        first, last = self._touching(parts, block)
        needed = first if self.lag(source, target) else made if self._in_step(source, target) else 0
        return Message(made, needed, max(needed, last), parts)

    def _in_step(self, source: int, target: int) -> bool:
        """Whether two ranks pass the same places along the mapping loop."""
        if self.mapping is None:
            return True
        return self.partition.order(source)[self.mapping] == self.partition.order(target)[self.mapping]

    def is_apart(self, rank: int, incoming: Sequence[Channel]) -> bool:
        """Whether, inside a sweep, a step touches nothing that messages for the next step carry, and writes nothing that
        messages of the step before carry: then the next ones can be unpacked, and the last ones packed, while it runs.

        incoming: the rank's channels.
        """
        if self.mapping is None or self.step_count(rank) < 2:
            return False  # the next step is the next sweep of the same points
        if self.joined > 1:
            return False  # the next step goes on with what this one began
        if len({face.array for face in self.faces}) < len(self.faces):
            return False  # elements written at one offset are written again at another
        block = self.partition.block(rank)
        return all(
            message.needed <= self._touching(message.parts, block)[0]
            for channel in incoming
            for message in channel.messages
        )

    def rewrites(self, rank: int, outgoing: Sequence[Channel]) -> bool:
        """Whether the first step of a sweep writes elements that messages of the last step carry, as those do that wait there
        until the receiver has read what they replace.

        outgoing: the rank's channels.
        """
        last, first = self.step_count(rank) - 1, self.step(rank, 0)
        parts = (p for channel in outgoing for m in channel.messages if m.made == last for p in m.parts)
        return any(intersection(first, box) is not None for part in parts for box in self._writing_points(part))

    def _writing_points(self, part: Part) -> Iterator[Box]:
        """The points that write elements of the part: a box for every offset they are written at."""
        depth, face = self.bound.nest.sweep_depth, self.faces[part.face]
        for other in self.faces:
            if other.array == face.array:
                moves = [
                    w - o
                    for w, o in zip(face.offsets[depth:], other.offsets[depth:], strict=True)
                    if w is not None and o is not None
                ]
                yield tuple((low + move, high + move) for (low, high), move in zip(part.box, moves, strict=True))

    def _parts(self, index: int, face: Face, step: Box, block: Box) -> Iterator[Part]:
        """The iterations of a step whose writes by this face the target block touches: a box around them, if there are any, or
        where axes are gone around boxes apart."""
        depth = self.bound.nest.sweep_depth
        wrote = [o for o in face.offsets[depth:] if o is not None]
        boxes = []
        for touched in self._touched[face.array]:
            # Iteration x writes element x + wrote; the target touches elements block + touched.
            common = [
                (max(s_low, b_low + t - w), min(s_high, b_high + t - w))
                for (s_low, s_high), (b_low, b_high), t, w in zip(step, block, touched, wrote, strict=True)
            ]
            if all(low < high for low, high in common):
                boxes.append(common)
        if not boxes:
            return
        if face.array in self._gone_around:
            for box in coalesced(tuple(box) for box in boxes):
                yield Part(index, box, volume(box) * face.itemsize)
            return
        around = hull(map(tuple, boxes))
        if not self.bound.domain.is_box:
            written = self._written(around)
            if written is None or not any(_meet(written, box) for box in boxes):
                return
            around = written
        yield Part(index, around, volume(around) * face.itemsize)

    @cached_property
    def _gone_around(self) -> frozenset[str]:
        """The written arrays of which some read goes around an axis that loops run along."""
        around = self.bound.analysis.around
        return frozenset() if around is None else frozenset(access.array for access, _ in around.pieces)

    def _written(self, box: Box) -> Box | None:
        """The part of a box that the loops come to in some sweep, or a box around it."""
        depth = self.bound.nest.sweep_depth
        clipped = self.bound.domain.clipped((*self.bound.domain.box[:depth], *box))
        return None if clipped is None else clipped[depth:]

    def _touching(self, parts: Sequence[Part], block: Box) -> Range:
        """The first and the last step of a block that touch elements of the parts."""
        if self.mapping is None:
            return 0, 0
        begin = block[self.mapping][0]
        rows = [points[self.mapping] for part in parts for points in self._touching_points(part, block)]
        first, last = min(low for low, _ in rows), max(high for _, high in rows) - 1
        return (first - begin) // self.tile, (last - begin) // self.tile

    def _touching_points(self, part: Part, block: Box) -> Iterator[Box]:
        """The points of a block that touch elements of the part: a box for every offset they may be touched at."""
        face = self.faces[part.face]
        wrote = [o for o in face.offsets[self.bound.nest.sweep_depth :] if o is not None]
        for touched in self._touched[face.array]:
            points = tuple(
                (max(b_low, p_low + w - t), min(b_high, p_high + w - t))
                for (p_low, p_high), (b_low, b_high), w, t in zip(part.box, block, wrote, touched, strict=True)
            )
            if all(low < high for low, high in points):
                yield points


def in_order(messages: Sequence[Message]) -> list[Message]:
    """Messages of a channel, which are taken in the order they were sent: one needed early brings those before it along."""
    found = list(messages)
    for k in range(len(found) - 2, -1, -1):
        found[k] = replace(found[k], needed=min(found[k].needed, found[k + 1].needed))
    return found


def sweep_skew(reach: int, tile: int, ranks: int) -> int:
    """How many steps a sweep stays behind the one before where both are at work in one pass (time skewing).

    Iterations of different sweeps that touch the same element are at most ``reach`` apart along the mapping loop. With one
    step more old values come from another rank before they are needed.
    """
    return max(1, -(-reach // tile)) + (ranks > 1)


def _meet(a: Sequence[Range], b: Sequence[Range]) -> bool:
    return all(max(x[0], y[0]) < min(x[1], y[1]) for x, y in zip(a, b, strict=True))


def flow_vectors(bound: BoundNest) -> tuple[Vector, ...]:
    """Along space loops, the dependences inside a sweep by which an iteration is given elements of another: it reads what they
    hold, or stores to them again."""
    depth = bound.nest.sweep_depth
    found = skewed_dependences(inside_sweep(bound.analysis.dependences, depth), bound.skew)
    return distance_vectors(replace(d, vector=d.vector[depth:]) for d in found if d.kind != "anti")


def faces_of(bound: BoundNest) -> tuple[Face, ...]:
    """The faces of a nest: one for each array and offset it is written at."""
    found: dict[tuple[str, tuple[int | None, ...]], Face] = {}
    for store in bound.nest.stores:
        target = store.target
        offsets = loop_offsets(bound, target)
        itemsize = bound.array(target.array).itemsize * bound.local_volume(target.array)
        found.setdefault((target.array, offsets), Face(target.array, offsets, itemsize, target.text, target.line))
    return tuple(found.values())


def faces_at_places(bound: BoundNest) -> tuple[Face, ...]:
    """The faces of a nest, each with the axes along which all its stores are at one place: of them it carries no more."""
    found = []
    for face in faces_of(bound):
        stores = [s.target for s in bound.nest.stores if is_of(face, bound, s.target)]
        shape, itemsize, places = bound.array(face.array).shape, face.itemsize, []
        for axis, loop in enumerate(bound.nest.axis_loops[face.array]):
            indices = {target.affine[axis] for target in stores}
            index = indices.pop() if len(indices) == 1 else None
            counted = any((target, axis) in bound.wraps or (target, axis) in bound.looked_up for target in stores)
            if loop is None and index is not None and index.names <= bound.symbols.keys() and not counted:
                places.append((axis, index))
                itemsize //= shape[axis]
        found.append(replace(face, itemsize=itemsize, places=tuple(places)))
    return tuple(found)


def is_of(face: Face, bound: BoundNest, target: ir.Access) -> bool:
    """Whether a store writes elements of a face."""
    return target.array == face.array and loop_offsets(bound, target) == face.offsets


def touched_offsets(bound: BoundNest) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Distinct space offsets at which each written array is read or written."""
    depth, nest = bound.nest.sweep_depth, bound.nest
    found: dict[str, dict[tuple[int, ...], None]] = {}
    for access in bound.accesses:
        if access.array in nest.written:
            for offsets in _offsets_of(bound, access):
                space = tuple(o for o in offsets[depth:] if o is not None)
                found.setdefault(access.array, {})[space] = None
    return {array: tuple(offsets) for array, offsets in found.items()}


def reach_of(bound: BoundNest) -> tuple[Range, ...]:
    """Per space loop, how far an access lies before and beyond the iteration that writes its element."""
    depth, touched = bound.nest.sweep_depth, touched_offsets(bound)
    spans = []
    for axis in range(len(bound.nest.space_loops)):
        apart = [0]
        for face in faces_of(bound):
            wrote = face.offsets[depth + axis]
            if wrote is None:  # a sequential region
                continue
            apart += [offsets[axis] - wrote for offsets in touched[face.array]]
        spans.append((min(apart), max(apart)))
    return tuple(spans)


def shifts_of(bound: BoundNest) -> tuple[int, ...]:
    """Per space loop, by how much an iteration has to move up in each sweep for all dependences between sweeps to lead forwards:
    an iteration and one of a later sweep that touch the same element are no further apart."""
    return tuple(max(-low, high) for low, high in reach_of(bound))


def reads_ahead(bound: BoundNest, grid: Sequence[int]) -> bool:
    """Whether some rank of a grid over all space loops touches elements that one after it writes: channels of lag 1."""
    return any(high > 0 and parts > 1 for (_, high), parts in zip(reach_of(bound), grid, strict=True))


def _offsets_of(bound: BoundNest, access: ir.Access) -> list[tuple[int | None, ...]]:
    """The offsets of an access, which has several where it goes around an axis: as many apart as the axis has elements."""
    choices: list[list[Affine | None]] = []
    for axis, loop in enumerate(bound.nest.axis_loops[access.array]):
        pieces = bound.pieces.get((access, axis), ()) if loop is not None else ()
        choices.append([*(piece.index for piece in pieces)] or [access.affine[axis]])
    return [loop_offsets(bound, replace(access, affine=indices)) for indices in itertools.product(*choices)]


def loop_offsets(bound: BoundNest, access: ir.Access) -> tuple[int | None, ...]:
    """The constant a uniform access adds to each loop's coordinate in the domain; None for loops it is not indexed by.

    In a skewed nest element e of an array stands for U e: in these coordinates the access is uniform as well.
    """
    offsets: dict[str, int] = {}
    steps = {loop.name: loop.step for loop in bound.nest.loops}
    for affine, name in zip(access.affine, bound.nest.axis_loops[access.array], strict=True):
        if name is not None:
            assert affine is not None
            offsets[name] = steps[name] * affine.constant
    names = bound.nest.loop_names
    if bound.skew is None:
        return tuple(offsets.get(name) for name in names)
    moved = bound.skew.apply([offsets.get(name, 0) for name in names])
    return tuple(x if name in offsets else None for name, x in zip(names, moved, strict=True))
