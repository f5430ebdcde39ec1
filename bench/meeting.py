"""What it costs that ranks agree on a call, and that an array which every rank passes stays the same everywhere.

    mpiexec -n 2 python bench/meeting.py [ROWS] [REPEAT]

One Gauss–Seidel sweep over ROWS × ROWS float64, called in turns with the array on rank 0 alone, with equal arrays on all ranks,
and with a distributed one; medians of the seconds of a call on rank 0. Beside them the comparison of the copies alone, and
a call on a grid so small that nothing but the agreement is left.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import lapwing as lw
from lapwing.runtime import communicator
from lapwing.runtime.meeting import Call, check_same_elements


@lw.nest
def smooth(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


def main() -> None:
    rows, repeat = [*map(int, sys.argv[1:3]), *(2000, 7)[len(sys.argv[1:3]) :]]
    comm = communicator.world()
    rank, everyone = comm.Get_rank(), frozenset(range(comm.Get_size()))
    u = np.random.default_rng(0).random((rows, rows))
    kept, few = lw.DistributedArray(u), u[:9, :9].copy()
    call = Call("smooth")
    ways: dict[str, Callable[[], Any]] = {
        "on rank 0 alone": lambda: smooth(u if rank == 0 else None),
        "on every rank": lambda: smooth(v),
        "comparing copies": lambda: check_same_elements(call, {"u": v}, {"u": everyone}, "", comm),
        "distributed": lambda: smooth(kept),
        "9 × 9, distributed": lambda: smooth(small),
        "9 × 9, on every rank": lambda: smooth(few),
    }
    v, small = u.copy(), lw.DistributedArray(few.copy())
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeat + 1):
        for name, way in ways.items():
            comm.Barrier()
            begin = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - begin)
    if rank == 0:
        print(f"{rows} × {rows} float64, {comm.Get_size()} ranks, medians of {repeat}")
        for name, found in seconds.items():
            print(f"  {name:<22} {1e3 * statistics.median(found):8.2f} ms")


if __name__ == "__main__":
    main()
