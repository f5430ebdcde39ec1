"""From a cut nest, a machine and the speed of its tiles to a pipeline whose timeline can be computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lapwing.machine.machine import Copies, Link, Machine
from lapwing.planner.geometry import Geometry, Neighbour
from lapwing.planner.rates import CopySeconds, Rates, Shape
from lapwing.schedule.pipeline import Channel, Engine, Pipeline
from lapwing.tiling.partition import Partition

# Two ranks that hand over a message in person wait for the later one: of two times that vary alike, the later is late by
# this many standard deviations in the mean, 1/√π where they are normal. Buffers even that out.
LATER_OF_TWO = math.pi**-0.5
LINE_BYTES = 64
MANY_RANKS = 4096  # of more, the one with most to compute stands for all
# A page of a neighbour's arrays is mapped when it is first written to.
FIRST_TOUCH_SECONDS = 0.9e-6


@dataclass(frozen=True)
class Placement:
    """Which ranks share a node: so many in a row.

    ``sharing`` ranks share the node's cores: more than are on the node where several nodes are one machine, as in the lab
    (None: those of the node).
    """

    ranks_a_node: int
    cores_a_node: int
    sharing: int | None = None

    @property
    def ranks_on_cores(self) -> int:
        return self.ranks_a_node if self.sharing is None else self.sharing

    def crowding(self, ranks: int) -> float:
        """How many ranks take turns on a core."""
        return max(1.0, min(ranks, self.ranks_on_cores) / self.cores_a_node)

    def has_spare_cores(self, ranks: int) -> bool:
        """Whether there is a second core for every rank."""
        return 2 * min(ranks, self.ranks_on_cores) <= self.cores_a_node

    def place(self, partition: Partition, neighbour: Neighbour) -> str:
        """ "network" if a message of this kind leaves a node anywhere in the grid."""
        if self.ranks_a_node >= partition.ranks:
            return "node"
        apart = tuple(o * step for o, step in zip(neighbour.offset, partition.steps, strict=True))
        return "network" if _leaves_node(partition.grid, apart, self.ranks_a_node) else "node"


@lru_cache(maxsize=1024)
def _leaves_node(grid: tuple[int, ...], apart: tuple[int, ...], ranks_a_node: int) -> bool:
    """Whether any two ranks of the grid that lie so far apart are on different nodes."""
    ranks = np.arange(math.prod(grid)).reshape(grid)
    here = ranks[tuple(slice(max(0, -o), parts - max(0, o)) for o, parts in zip(apart, grid, strict=True))]
    there = ranks[tuple(slice(max(0, o), parts - max(0, -o)) for o, parts in zip(apart, grid, strict=True))]
    return bool(np.any(here // ranks_a_node != there // ranks_a_node))


def pipeline_of(geometry: Geometry, engine: Engine, machine: Machine, rates: Rates, placement: Placement) -> Pipeline:
    """The pipeline of a cut nest: all times in seconds.

    Raises RefusedError where the machine does not describe a link that is needed.
    """
    partition, faces = geometry.partition, geometry.faces
    shape = Shape(partition.widest, faces.mapping, faces.tile, faces.joined)
    channels, synchronisation = [], 0.0
    for neighbour in geometry.neighbours:
        place = placement.place(partition, neighbour)
        link = machine.link(place, engine)
        stored = engine == "onesided" and place == "node" and faces.batch == 1
        copies = _copy_seconds(neighbour, machine.copies, rates, shape)
        if place == "node":
            copies = _with_sharing(copies, neighbour, machine.copies, stored)
        channels.append(_channel(neighbour, link, copies, stored, geometry))
        synchronisation = max(synchronisation, link.synchronisation.value)
    points, evenness = (geometry.points, 1.0) if partition.ranks <= MANY_RANKS else geometry.busiest
    compute = points * (rates.seconds_per_point(shape) * placement.crowding(partition.ranks))
    if engine == "blocking":
        synchronisation += LATER_OF_TWO * machine.noise * float(compute.max())
    return Pipeline(
        grid=geometry.grid,
        steps=geometry.steps,
        sweeps=geometry.rounds,
        compute=compute,
        channels=tuple(channels),
        engine=engine,
        synchronisation=synchronisation,
        node=1 if placement.ranks_a_node >= partition.ranks else placement.ranks_a_node,
        evenness=evenness,
    )


def setup_seconds(geometry: Geometry, engine: Engine, machine: Machine, placement: Placement) -> float:
    """What a run takes before its first step and after its last, and what its first sweep takes longer than the others."""
    places = [placement.place(geometry.partition, neighbour) for neighbour in geometry.neighbours]
    links = [machine.link(place, engine) for place in places]
    setup = max((link.setup.value for link in links if link.setup is not None), default=0.0)
    if engine == "onesided" and geometry.faces.batch == 1:
        direct = (n.pages for n, place in zip(geometry.neighbours, places, strict=True) if place == "node")
        setup += geometry.steps * max(direct, default=0.0) * FIRST_TOUCH_SECONDS
    return setup


def _with_sharing(copies: CopySeconds, neighbour: Neighbour, costs: Copies, stored: bool) -> CopySeconds:
    """Between cores of a node: lines change hands when they are packed, and once more when the neighbour computes with them.

    stored: faces are written where the receiver reads them, so that there is nothing to unpack.
    """
    lines = max(neighbour.bytes / LINE_BYTES, neighbour.runs)
    write, read = (
        q.value if q else 0.0 for q in (costs.shared_write_seconds_per_line, costs.shared_read_seconds_per_line)
    )
    return CopySeconds(copies.pack + lines * write, lines * read if stored else copies.unpack)


def _channel(neighbour: Neighbour, link: Link, copies: CopySeconds, stored: bool, geometry: Geometry) -> Channel:
    return Channel(
        offset=neighbour.offset,
        lag=neighbour.lag,
        shift=neighbour.shift,
        pack=copies.pack,
        send=link.send_cpu(neighbour.bytes),
        receive=link.receive_cpu(neighbour.bytes),
        unpack=copies.unpack,
        wire=link.wire(neighbour.bytes),
        latency=link.latency.value,
        depth=_depth(neighbour, geometry, stored),
        held=neighbour.held if stored else None,
    )


def _depth(neighbour: Neighbour, geometry: Geometry, stored: bool) -> int:
    """Messages that may be in flight: each end has its buffers, but for faces that need none."""
    if neighbour.lag or stored:
        return geometry.steps
    both_ends = 2 * (geometry.faces.buffers + (geometry.faces.batch > 1))
    return max(both_ends, 1 - neighbour.shift)


def _copy_seconds(neighbour: Neighbour, copies: Copies, rates: Rates, shape: Shape) -> CopySeconds:
    """Seconds of packing and unpacking one message: as measured, or by its bytes and by its pieces of memory."""
    cut = [(axis, offset) for axis, offset in enumerate(neighbour.offset) if offset]
    known = rates.copy_seconds(shape, *cut[0]) if len(cut) == 1 else None
    if known is not None:
        return CopySeconds(known.pack * neighbour.bytes, known.unpack * neighbour.bytes)
    each = max(
        neighbour.bytes * copies.contiguous_seconds_per_byte.value,
        neighbour.runs * copies.strided_seconds_per_element.value,
    )
    seconds = neighbour.parts * copies.seconds_per_part.value + each
    return CopySeconds(seconds, seconds)
