"""What it costs that two cores take turns on the same memory: a line that the other one has must be fetched or claimed."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np

from lapwing.calibrate.statistics import median_quantity
from lapwing.machine.machine import Quantity

_BYTES, _LINE = 32768, 64
_ROUNDS = 200


def measure_sharing(comm: Any) -> tuple[Quantity, Quantity] | None:
    """Seconds a cache line more than by itself of writing what another rank has read, and of reading what it has written.

    comm: two ranks (mpi4py) of one node. Collective; None but on the first rank, and where ranks share no memory.
    """
    from mpi4py import MPI

    window = MPI.Win.Allocate_shared(_BYTES if comm.Get_rank() == 0 else 0, 1, comm=comm)
    memory, _ = window.Shared_query(0)
    shared = np.frombuffer(cast(Any, memory), np.float64)
    own = np.ones(_BYTES // 8)
    written, read = _turns(comm, shared, shared)
    written_alone, read_alone = _turns(comm, own, own)
    others = comm.gather((read, read_alone), root=0)
    del shared, memory
    window.Free()
    if others is None:
        return None
    lines = _BYTES / _LINE
    source = f"measured: {_ROUNDS} turns"
    return (
        median_quantity(np.maximum(written - np.median(written_alone), 0.0) / lines, source),
        median_quantity(np.maximum(others[1][0] - np.median(others[1][1]), 0.0) / lines, source),
    )


def _turns(comm: Any, target: Any, source: Any) -> tuple[Any, Any]:
    """The first rank writes, then the second one reads, again and again; the seconds of each."""
    values, room = np.ones(_BYTES // 8), np.empty(_BYTES // 8)
    written, read = np.zeros(_ROUNDS), np.zeros(_ROUNDS)
    for number in range(_ROUNDS):
        comm.Barrier()
        begin = time.perf_counter()
        if comm.Get_rank() == 0:
            target[...] = values
            written[number] = time.perf_counter() - begin
        comm.Barrier()
        begin = time.perf_counter()
        if comm.Get_rank() == 1:
            room[...] = source
            read[number] = time.perf_counter() - begin
    return written, read
