"""What it costs that ranks agree on a call, and that an array which every rank passes stays the same everywhere.

One Gauss–Seidel sweep, called in turns with the array on rank 0 alone, with equal arrays on all ranks, and with a
distributed one. Beside them the comparison of the copies alone, and calls on a grid so small that little but the agreement
is left. Medians of the seconds of a call on rank 0.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _report import machine

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.runtime.arrays.meeting import Call, check_same_elements
from lapwing.runtime.mpi import communicator


@lw.nest
def smooth(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small sizes, which say nothing about speed")
    parser.add_argument("--json", type=Path, help="write every single time")
    options = parser.parse_args()
    if options.ranks > 1 and not communicator.launched():
        mpiexec = str(find_mpi().mpiexec)
        command = [mpiexec, "-n", str(options.ranks), sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(command, check=False).returncode)
    rows, repeats = (100, 1) if options.quick else (options.rows, options.repeats)
    seconds = measured(rows, repeats)
    if seconds is None:
        return
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, {about['mpi']}")
    if options.quick:
        print("Quick: sizes too small to say anything about speed.")
    print(f"{rows} × {rows} float64, {options.ranks} ranks, medians of {repeats}")
    for name, found in seconds.items():
        print(f"  {name:<22} {1e3 * statistics.median(found):8.2f} ms")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"machine": about, "rows": rows, "seconds": seconds}, indent=1))


def measured(rows: int, repeats: int) -> dict[str, list[float]] | None:
    """Seconds of every call, by way; None but on rank 0. Collective."""
    comm = communicator.world()
    rank, everyone = comm.Get_rank(), frozenset(range(comm.Get_size()))
    u = np.random.default_rng(0).random((rows, rows))
    few, call = u[:9, :9].copy(), Call("smooth")
    kept, small, mine = lw.DistributedArray(u), lw.DistributedArray(few.copy()), u.copy()
    ways: dict[str, Callable[[], Any]] = {
        "on rank 0 alone": lambda: smooth(mine if rank == 0 else None),
        "on every rank": lambda: smooth(copy),
        "comparing copies": lambda: check_same_elements(call, {"u": copy}, {"u": everyone}, "", comm),
        "distributed": lambda: smooth(kept),
        "9 × 9, distributed": lambda: smooth(small),
        "9 × 9, on every rank": lambda: smooth(few),
    }
    copy = u.copy()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            comm.Barrier()
            begin = time.perf_counter()
            way()
            if turn:  # the first time tiles are built
                seconds[name].append(time.perf_counter() - begin)
    return seconds if rank == 0 else None


if __name__ == "__main__":
    main()
