"""What ranks tell each other where a sweep has several phases: the last writer of an element before a read decides.

A rank reads an element of its neighbour's in some phase. What it must see was written by the last phase, before that read,
that writes the element: the same phase (a flow dependence across the cut), an earlier one of the same sweep, or else one of
the sweep before. After the step that writes it the neighbour sends it, once, and it is in place from the first step that reads
it on until the next phase that writes it: all reads of what was there before come in earlier phases, so one message never
takes the place of another too early, in whichever order channels are served.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.tiling.boxes import Box, coalesced, common, hull, intersection, volume, without
from lapwing.tiling.faces import Channel, Face, Message, Part, faces_at_places, flow_vectors, in_order, is_of
from lapwing.tiling.needed import images, touched_box, touching
from lapwing.tiling.partition import Range
from lapwing.tiling.phased.distribution import Distribution, Reach, reach
from lapwing.tiling.phased.steps import PhaseTiling, Step, steps_of


class _Need(IntEnum):
    """When a phase's faces are needed: in the phase itself, in a later one of the sweep, in the next sweep."""

    FLOW = 0
    LATER = 1
    OLD = 2


@dataclass(frozen=True)
class _Reads:
    """Elements of an array that a phase of the receiver's reads as another wrote them."""

    phase: int
    array: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True, eq=False)
class PhasedFaces:
    """The communication of a phased nest. Steps are numbered through all phases of a sweep.

    ``tilings``: of every phase. ``buffers``: messages of a channel that may be under way at once where each is used in the step
    after it was made.
    """

    phased: PhasedNest
    distribution: Distribution
    tilings: tuple[PhaseTiling, ...]
    buffers: int = 2
    _channels: dict[tuple[int, int], tuple[Channel, ...]] = field(default_factory=dict, repr=False)
    _neighbours: dict[int, list[int]] = field(default_factory=dict, repr=False)
    _steps: dict[tuple[int, int], list[Step]] = field(default_factory=dict, repr=False)
    _touched: dict[tuple[int, int, str], list[Box]] = field(default_factory=dict, repr=False)

    # -- steps -----------------------------------------------------------------------------------------------------------

    def phase_steps(self, phase: int, rank: int) -> list[Step]:
        """What a rank does in one phase, in order."""
        known = self._steps.get((phase, rank))
        if known is None:
            block, bound = self.distribution.block(phase, rank), self.phased.phases[phase]
            widths = self._boundary(phase, rank) if self.tilings[phase].split else ()
            known = steps_of(block, len(bound.nest.space_loops), self.tilings[phase], widths)
            self._steps[phase, rank] = known
        return known

    def first_step(self, phase: int, rank: int) -> int:
        return sum(len(self.phase_steps(p, rank)) for p in range(phase))

    def step_count(self, rank: int) -> int:
        """The number of steps of a rank's sweep."""
        return self.first_step(len(self.phased.phases), rank)

    def phase_of(self, step: int, rank: int) -> int:
        """The phase that a step belongs to."""
        phases = range(len(self.phased.phases))
        return max(p for p in phases if self.first_step(p, rank) <= step)

    def _boundary(self, phase: int, rank: int) -> list[tuple[int, int, int]]:
        """Per loop that is cut: how many iterations at the beginning and at the end of a block neighbours wait for, or wait
        for neighbours."""
        distribution, bound = self.distribution, self.phased.phases[phase]
        written, found = bound.nest.written, []
        for loop in distribution.cut_loops[phase]:
            number = distribution.dimension_of(phase, loop)
            assert number is not None
            dimension, parts = distribution.cut[number], distribution.grid[number]
            low = high = 0
            around = False
            for reader in range(len(self.phased.phases)):
                # Elements that lie ahead of who reads them are at the beginning of their owner's block.
                for names, ahead in ((written, True), (self.phased.written if reader == phase else (), False)):
                    apart = reach(self.phased, dimension, reader, names) or Reach(dimension.extent, dimension.extent)
                    before, after = (apart.forth, apart.back) if ahead else (apart.back, apart.forth)
                    low, high, around = max(low, before), max(high, after), around or apart.around
            coordinate = distribution.coordinates(rank)[number]
            if not around:
                low, high = low if coordinate else 0, high if coordinate < parts - 1 else 0
            found.append((loop, low, high) if bound.nest.space_loops[loop].step == 1 else (loop, high, low))
        return found

    # -- channels --------------------------------------------------------------------------------------------------------

    def incoming(self, rank: int) -> tuple[Channel, ...]:
        """Channels into a rank, next-sweep ones first."""
        return _sorted(c for source in self._near(rank) for c in self.channels(source, rank))

    def outgoing(self, rank: int) -> tuple[Channel, ...]:
        return _sorted(c for target in self._near(rank) for c in self.channels(rank, target))

    def channels(self, source: int, target: int) -> tuple[Channel, ...]:
        """What one rank sends another in a sweep: per phase that writes it, and by when it is needed."""
        known = self._channels.get((source, target))
        if known is None:
            needs = self._needs(source, target)
            known = self._channels[source, target] = tuple(
                channel
                for phase, need in sorted(needs)
                if (channel := self._channel(source, target, phase, need, needs)) is not None
            )
        return known

    def _near(self, rank: int) -> list[int]:
        """Ranks, itself excepted, that may have something to tell to a rank or to hear from it."""
        known = self._neighbours.get(rank)
        if known is None:
            known = self._neighbours[rank] = self._found_near(rank)
        return known

    def _found_near(self, rank: int) -> list[int]:
        distribution, candidates = self.distribution, []
        for number, (dimension, cuts) in enumerate(zip(distribution.cut, distribution.cuts, strict=True)):
            farthest, moves = 0, {0}
            for phase in range(len(self.phased.phases)):
                apart = reach(self.phased, dimension, phase, self.phased.written)
                farthest = max(farthest, dimension.extent if apart is None else max(apart.back, apart.forth))
                if apart is not None and apart.around:
                    moves |= {-dimension.extent, dimension.extent}
            own = distribution.coordinates(rank)[number]
            near = [(cuts[own] - farthest + move, cuts[own + 1] + farthest + move) for move in sorted(moves)]
            candidates.append(
                [k for k in range(len(cuts) - 1) if any(cuts[k] < high and low < cuts[k + 1] for low, high in near)]
            )
        found = []
        for coordinates in itertools.product(*candidates):
            other = 0
            for coordinate, parts in zip(coordinates, distribution.grid, strict=True):
                other = other * parts + coordinate
            if other != rank:
                found.append(other)
        return found

    def _needs(self, source: int, target: int) -> dict[tuple[int, _Need], list[_Reads]]:
        """Per phase of the source and by when they are needed, the elements that phases of the target read as it wrote them.

        Elements that are needed at two times are those of the earlier one alone: they stay.
        """
        found: dict[tuple[int, _Need], list[_Reads]] = {}
        for name, reader in itertools.product(self.phased.written, range(len(self.phased.phases))):
            missing = self.touched(reader, target, name)
            for phase, need in self._writers_before(reader, source, target) if missing else ():
                wrote = self.wrote(phase, source, name)
                if seen := common(missing, wrote):
                    found.setdefault((phase, need), []).append(_Reads(reader, name, tuple(coalesced(seen))))
                    missing = without(missing, wrote)
        return found

    def _writers_before(self, reader: int, source: int, target: int) -> Iterator[tuple[int, _Need]]:
        """The phases of a source that come before a phase of the target, the last one first."""
        flows = self._flows(reader, source, target)
        if flows:
            yield reader, _Need.FLOW
        yield from ((phase, _Need.LATER) for phase in range(reader - 1, -1, -1))
        last = len(self.phased.phases) - 1
        yield from ((phase, _Need.OLD) for phase in range(last, reader if flows else reader - 1, -1))

    def _flows(self, phase: int, source: int, target: int) -> bool:
        """Whether inside a phase a rank sees what another one writes in it: where it comes later along all loops, and some
        dependence inside the phase leads to other ranks."""
        order = (self.distribution.order(phase, rank) for rank in (source, target))
        return self._crosses_cuts[phase] and all(s <= t for s, t in zip(*order, strict=True))

    @cached_property
    def _crosses_cuts(self) -> tuple[bool, ...]:
        """Per phase, whether dependences inside it lead from one rank to another."""
        phases = zip(self.phased.phases, self.distribution.cut_loops, strict=True)
        return tuple(any(vector[k] for vector in flow_vectors(bound) for k in cut) for bound, cut in phases)

    def _channel(
        self, source: int, target: int, phase: int, need: _Need, needs: Mapping[tuple[int, _Need], list[_Reads]]
    ) -> Channel | None:
        sent = [reads for earlier in _Need if earlier < need for reads in needs.get((phase, earlier), [])]
        messages = in_order(list(self._messages(source, target, phase, need, needs[phase, need], sent)))
        if not messages:
            return None
        at_once = need == _Need.FLOW and self._in_step(phase, source, target)
        return Channel(
            source,
            target,
            lag=int(need == _Need.OLD),
            # Where a message waits for its turn there is room for those of a whole sweep.
            depth=self.buffers if at_once else len(messages),
            messages=tuple(messages),
            phase=phase,
            exchange=None if need == _Need.FLOW else self.phase_of(messages[0].needed, target),
        )

    def _messages(
        self, source: int, target: int, phase: int, need: _Need, reads: Sequence[_Reads], sent: Sequence[_Reads]
    ) -> Iterator[Message]:
        """What a source sends after each of its steps of a phase, before the order of messages counts.

        sent: what travels on other channels of the phase.
        """
        steps = self.phase_steps(phase, source)
        made: dict[int, list[tuple[Part, str, Box]]] = {}
        for name in dict.fromkeys(r.array for r in reads):
            boxes = coalesced(without(_boxes_of(reads, name), _boxes_of(sent, name)))
            for number, face in enumerate(self.faces(phase)):
                if face.array == name:
                    for box in boxes:
                        for step, part, elements in self._parts(phase, source, number, face, box):
                            made.setdefault(step, []).append((part, name, elements))
        if made and any(steps[k].boundary for k in made):
            # The steps of a boundary send one message together.
            made = {max(made): self._joined(phase, [found for k in sorted(made) for found in made[k]])}
        if need != _Need.FLOW and not self._crosses_cuts[phase]:
            made = self._after_reads(phase, target, made, len(steps))
        for step, found in sorted(made.items()):
            held = [(name, elements) for _, name, elements in found]
            needed = self._needed(source, target, phase, need, step, reads, held)
            last = self._last_read_before(source, target, phase, need, held)
            yield Message(self.first_step(phase, source) + step, needed, last, tuple(part for part, _, _ in found))

    def _after_reads(
        self, phase: int, target: int, made: Mapping[int, list[tuple[Part, str, Box]]], steps: int
    ) -> dict[int, list[tuple[Part, str, Box]]]:
        """What a phase makes, by step, no sooner than in the target's last step of it that reads what it replaces, or in the last
        one there is: two ranks that store into each other's arrays would wait for each other's later steps else."""
        found: dict[int, list[tuple[Part, str, Box]]] = {}
        for step, parts in sorted(made.items()):
            reads = [
                touching[1]
                for _, name, elements in parts
                for box in common([elements], self.touched(phase, target, name))
                if (touching := self._touching(phase, target, name, box)) is not None
            ]
            found.setdefault(min(max([step, *reads]), max(step, steps - 1)), []).extend(parts)
        return found

    def _joined(self, phase: int, found: Sequence[tuple[Part, str, Box]]) -> list[tuple[Part, str, Box]]:
        """Parts of several steps as few of them."""
        joined = []
        for number, face in enumerate(self.faces(phase)):
            for box in coalesced(part.box for part, _, _ in found if part.face == number):
                elements = self._carried(phase, number, box)
                joined.append((Part(number, box, volume(box) * face.itemsize), face.array, elements))
        return joined

    def _parts(
        self, phase: int, source: int, number: int, face: Face, elements: Box
    ) -> Iterator[tuple[int, Part, Box]]:
        """The parts of a face that are in a box of elements: per step of the phase, with the elements of each."""
        bound, target = self.phased.phases[phase], self._targets[phase][number]
        block = self.distribution.block(phase, source)
        assert block is not None
        for wanted in touching(bound, target, self._along_local_axes(phase, number, elements), block):
            for step in self._steps_meeting(phase, source, wanted):
                box = intersection(self.phase_steps(phase, source)[step].box, wanted)
                if box is not None:
                    yield step, Part(number, box, volume(box) * face.itemsize), self._carried(phase, number, box)

    def _needed(
        self,
        source: int,
        target: int,
        phase: int,
        need: _Need,
        step: int,
        reads: Sequence[_Reads],
        held: Sequence[tuple[str, Box]],
    ) -> int:
        """The first step of the target that reads some elements as they were written in a step of the phase."""
        found = []
        for r in reads:
            seen = [box for name, elements in held if name == r.array for box in common([elements], r.boxes)]
            if not seen:
                continue
            first = self.first_step(r.phase, target)
            if need == _Need.FLOW:
                # Dependences lead forwards along the pipelined loop as well.
                found.append(first + (step if self._in_step(phase, source, target) else 0))
                continue
            for box in seen:
                touching = self._touching(r.phase, target, r.array, box)
                # Boxes around what is read hold more than that where two axes run along one loop: it may come at any time.
                found.append(self.first_step(r.phase + 1, target) - 1 if touching is None else first + touching[0])
        return min(found)

    def _last_read_before(
        self, source: int, target: int, phase: int, need: _Need, held: Sequence[tuple[str, Box]]
    ) -> int:
        """The last step of the target that reads what elements held before a phase, counted from the beginning of the sweep
        before the one in which the phase's values are needed."""
        count = self.step_count(target)
        beginning = count if need != _Need.OLD else 0  # of the sweep in which the phase writes
        last = beginning - count - 1
        for reader in range(len(self.phased.phases)):
            sees_it = reader > phase or (reader == phase and self._flows(phase, source, target))
            for name, elements in held:
                for box in common([elements], self.touched(reader, target, name)):
                    if (touching := self._touching(reader, target, name, box)) is not None:
                        read = self.first_step(reader, target) + touching[1]
                        last = max(last, beginning + read - (count if sees_it else 0))
        return last

    def _in_step(self, phase: int, source: int, target: int) -> bool:
        """Whether two ranks pass the same places along the pipelined loop of a phase."""
        number = self.distribution.dimension_of(phase, self.tilings[phase].mapping)
        if number is None:
            return True
        return self.distribution.coordinates(source)[number] == self.distribution.coordinates(target)[number]

    def _steps_meeting(self, phase: int, rank: int, box: Box) -> Iterator[int]:
        """The steps of a phase, counted from its first, that may have iterations in a box inside the rank's block."""
        tiling, steps = self.tilings[phase], self.phase_steps(phase, rank)
        if tiling.split is None:
            begin = steps[0].box[tiling.mapping][0]
            low, high = box[tiling.mapping]
            yield from range((low - begin) // tiling.tile, (high - 1 - begin) // tiling.tile + 1)
        else:
            yield from (k for k, step in enumerate(steps) if intersection(step.box, box) is not None)

    def _touching(self, phase: int, rank: int, name: str, elements: Box) -> Range | None:
        """The first and the last step of a phase, counted from its first, that touch elements of an array."""
        bound, block = self.phased.phases[phase], self.distribution.block(phase, rank)
        if block is None:
            return None
        found = []
        for access in bound.accesses:
            if access.array == name and common(images(bound, access, block), [elements]):
                for wanted in touching(bound, access, elements, block):
                    found += list(self._steps_meeting(phase, rank, wanted))
        return (min(found), max(found)) if found else None

    # -- elements --------------------------------------------------------------------------------------------------------

    def faces(self, phase: int) -> tuple[Face, ...]:
        return self._faces[phase]

    @cached_property
    def _faces(self) -> tuple[tuple[Face, ...], ...]:
        return tuple(faces_at_places(bound) for bound in self.phased.phases)

    @cached_property
    def _targets(self) -> tuple[tuple[ir.Access, ...], ...]:
        """Per phase and face, an access that writes it."""
        return tuple(
            tuple(next(s.target for s in bound.nest.stores if is_of(face, bound, s.target)) for face in faces)
            for bound, faces in zip(self.phased.phases, self._faces, strict=True)
        )

    def elements(self, phase: int, part: Part) -> Box:
        """The elements of a part of a message that carries faces of a phase."""
        return self._carried(phase, part.face, part.box)

    def _carried(self, phase: int, number: int, box: Box) -> Box:
        """The smallest box around the elements that a message has of a face for a box of iterations."""
        (elements,) = images(self.phased.phases[phase], self._targets[phase][number], box)
        return self._along_local_axes(phase, number, elements)

    def _along_local_axes(self, phase: int, number: int, elements: Box) -> Box:
        """Elements with all that are beside them along local axes, but for those at one place of which a face is."""
        bound, face = self.phased.phases[phase], self._faces[phase][number]
        loops, shape, places = bound.nest.axis_loops[face.array], bound.array(face.array).shape, dict(face.places)
        return tuple(
            (0, extent) if loop is None and axis not in places else own
            for axis, (own, loop, extent) in enumerate(zip(elements, loops, shape, strict=True))
        )

    def touched(self, phase: int, rank: int, name: str) -> list[Box]:
        """The elements of an array that a rank's iterations of a phase touch."""
        known = self._touched.get((phase, rank, name))
        if known is None:
            bound, block = self.phased.phases[phase], self.distribution.block(phase, rank)
            accesses = [] if block is None else [a for a in bound.accesses if a.array == name]
            boxes = (box for access in accesses for box in images(bound, access, block or ()))
            known = self._touched[phase, rank, name] = coalesced(boxes)
        return known

    def wrote(self, phase: int, rank: int, name: str) -> list[Box]:
        """The elements of an array that a rank writes in a phase."""
        bound, block = self.phased.phases[phase], self.distribution.block(phase, rank)
        if block is None:
            return []
        targets = dict.fromkeys(s.target for s in bound.nest.stores if s.target.array == name)
        return coalesced(box for target in targets for box in images(bound, target, block))

    def needed_box(self, name: str, rank: int) -> Box:
        """The box around all elements of an array that a rank touches in any phase."""
        boxes = []
        for bound, block in self._blocks(rank):
            if any(a.name == name for a in bound.arrays):
                ranges = (*bound.domain.box[: bound.nest.sweep_depth], *block)
                boxes.append(touched_box(bound, name, dict(zip(bound.nest.loop_names, ranges, strict=True))))
        boxes = [box for box in boxes if volume(box)]
        if not boxes:
            return ((0, 0),) * len(self.phased.array(name).shape)
        return hull(boxes)

    def needed_parts(self, name: str, rank: int) -> list[Box]:
        """The elements of an array that a rank touches in some phase, as boxes."""
        phases = (p for p, bound in enumerate(self.phased.phases) if any(a.name == name for a in bound.arrays))
        return coalesced(box for phase in phases for box in self.touched(phase, rank, name))

    def written_boxes(self, name: str, rank: int) -> list[Box]:
        """The elements of an array that a rank writes in some phase."""
        return coalesced(box for phase in range(len(self.phased.phases)) for box in self.wrote(phase, rank, name))

    def _blocks(self, rank: int) -> Iterator[tuple[BoundNest, Box]]:
        for phase, bound in enumerate(self.phased.phases):
            if (block := self.distribution.block(phase, rank)) is not None:
                yield bound, block

    # -- what may be done at the same time -------------------------------------------------------------------------------

    @cached_property
    def is_apart(self) -> bool:
        """Whether, inside a phase, a step touches nothing that messages for the next one carry, and writes nothing that
        messages of the one before carry: always so, unless elements are written at several offsets."""
        return all(len({face.array for face in faces}) == len(faces) for faces in self._faces)

    def rewrites(self, phase: int, rank: int) -> bool:
        """Whether the first step of a phase writes elements that messages of the step before it carry."""
        before = (self.first_step(phase, rank) or self.step_count(rank)) - 1
        box = self.phase_steps(phase, rank)[0].box
        if not volume(box):
            return False
        written = [(face.array, self._carried(phase, number, box)) for number, face in enumerate(self.faces(phase))]
        for channel in self.outgoing(rank):
            for message in channel.messages:
                for part in message.parts if message.made == before else ():
                    name, carried = self.faces(channel.phase)[part.face].array, self.elements(channel.phase, part)
                    if any(n == name and intersection(w, carried) is not None for n, w in written):
                        return True
        return False


def _sorted(channels: Iterable[Channel]) -> tuple[Channel, ...]:
    return tuple(sorted(channels, key=lambda c: (-c.lag, c.phase, c.exchange is not None)))


def _boxes_of(reads: Sequence[_Reads], name: str) -> list[Box]:
    return [box for one in reads if one.array == name for box in one.boxes]
