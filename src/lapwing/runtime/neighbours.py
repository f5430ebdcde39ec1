"""Which neighbours' arrays are mapped into this process, so that faces can be stored straight into them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lapwing.runtime.arrays.segments import import_segment
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import RankProgram
from lapwing.runtime.mpi.communicator import on_any_rank, ranks_of_node


@dataclass
class Neighbours:
    """Native arrays of other ranks, by rank and phase; ``keep`` holds the mappings they point into."""

    arrays: dict[tuple[int, int], Any]
    keep: list[Any] = field(repr=False)


@dataclass(frozen=True)
class _Exported:
    """Where in a rank's segment an array lies. ``origin`` is relative to the segment's first byte."""

    pid: int
    fd: int
    size: int
    origin: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]


def any_share_memory(comm: Any) -> bool:
    """Whether some ranks are on one node: else exporting arrays brings nothing, and their small pages cost. Collective."""
    return any(comm.allgather(len(ranks_of_node(comm)) > 1))


def join_neighbours(
    program: RankProgram,
    arrays: Mapping[str, LocalArray],
    written: Sequence[str],
    orders: Sequence[Sequence[str]],
    comm: Any,
) -> Neighbours:
    """Let every channel between ranks of one node lead straight into the receiver's arrays, where that is possible.

    orders: the arrays of every phase as its module numbers them. Collective. It is all or nothing: both ends of a channel must
    agree, and one array that cannot be mapped tells of a system on which none can.
    """
    for channels, count in (
        (program.c.outgoing_channels, program.c.outgoing),
        (program.c.incoming_channels, program.c.incoming),
    ):
        for k in range(count):
            channels[k].there = None  # of an earlier run
    exported = comm.allgather(_exported(arrays, written) if program.c.apart else None)
    on_node = ranks_of_node(comm)
    neighbours = Neighbours({}, [])
    peers = {program.c.outgoing_channels[k].peer for k in range(program.c.outgoing)} & on_node
    possible = all(e is not None for e in exported)
    if possible:
        possible = all(_import(neighbours, peer, exported[peer], orders) for peer in sorted(peers))
    if on_any_rank(not possible, comm):
        return Neighbours({}, [])
    for k in range(program.c.outgoing):
        channel = program.c.outgoing_channels[k]
        if channel.peer in on_node:
            channel.there = ctypes.addressof(neighbours.arrays[channel.peer, channel.phase])
    for k in range(program.c.incoming):
        channel = program.c.incoming_channels[k]
        if channel.peer in on_node:
            channel.there = ctypes.addressof(program.c)  # any address: the peer knows where
    return neighbours


def _exported(arrays: Mapping[str, LocalArray], written: Sequence[str]) -> dict[str, _Exported] | None:
    """The written arrays, or None if one of them is not in a segment."""
    found = {}
    for name in written:
        local, segment = arrays[name], arrays[name].segment
        if segment is None:
            return None
        origin = local.origin - segment.address
        found[name] = _Exported(segment.pid, segment.fd, segment.memory.size, origin, local.strides, local.array.shape)
    return found


def _import(
    neighbours: Neighbours, peer: int, exported: Mapping[str, _Exported], orders: Sequence[Sequence[str]]
) -> bool:
    mapped = {name: import_segment(there.pid, there.fd, there.size) for name, there in exported.items()}
    for phase, names in enumerate(orders):
        table = (native.Array * len(names))()
        for position, name in enumerate(names):
            if name not in exported:
                continue  # only read: nobody stores into it
            there, memory = exported[name], mapped[name]
            if memory is None:
                return False
            neighbours.keep.append(memory)
            table[position] = native.array_at(int(memory.ctypes.data) + there.origin, there.strides, there.shape)
        neighbours.arrays[peer, phase] = table
    return True
