"""What it takes to fill, use and save an array over several ranks: from rank 0, or every rank its own part.

For each way a run of its own: bytes that travel between ranks beside a nest's own messages, what each rank's memory grew by
at most, and the seconds of every step on the slowest rank, medians over the repetitions.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _memory import memory
from _report import machine

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.runtime.arrays import transfer
from lapwing.runtime.mpi import communicator

WAYS = ("from rank 0", "from_function", "from_local", "load")
STEPS = ("fill", "run", "save")


@lw.nest
def smooth(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


def values(i: Any, j: Any) -> Any:
    return (i * 37.0 + j * 11.0) % 101.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, which say nothing about speed or memory")
    parser.add_argument("--json", type=Path, help="write every figure")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows, repeats = (200, 1) if options.quick else (options.rows, options.repeats)
    if options.way is not None:
        figures = measured(options.way, rows, options.folder)
        if communicator.world().Get_rank() == 0:
            print(json.dumps(figures))
        return
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, {about['mpi']}")
    print(f"{rows} × {rows} float64 ({8e-6 * rows * rows:.0f} MB), {options.ranks} ranks, medians of {repeats}")
    if options.quick:
        print("Quick: sizes too small to say anything.")
    found: dict[str, list[Any]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "u.npy", np.fromfunction(values, (rows, rows)))
        for _ in range(repeats):
            for way in WAYS:
                found[way].append(run(way, options.ranks, rows, Path(folder)))
    print(
        f"  {'':<14} {'MB between ranks':>17} {'MB of rank 0':>13} {'of others':>10}"
        + "".join(f"{s + ' s':>9}" for s in STEPS)
    )
    for way, runs in found.items():
        middle = [statistics.median(column) for column in zip(*(one["figures"] for one in runs), strict=True)]
        print(
            f"  {way:<14} {middle[0]:17.1f} {middle[1]:13.0f} {middle[2]:10.0f}"
            + "".join(f"{s:9.2f}" for s in middle[3:])
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"machine": about, "rows": rows, "runs": found}, indent=1))


def run(way: str, ranks: int, rows: int, folder: Path) -> Any:
    command = [str(find_mpi().mpiexec), "-n", str(ranks), sys.executable, __file__]
    command += ["--way", way, "--rows", str(rows), "--folder", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"figures"'))


def measured(way: str, rows: int, folder: Path) -> dict[str, Any]:
    comm = communicator.world()
    smooth(lw.zeros((60, 60)))  # builds the tile, and sets up what is set up once
    travelled = counting()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    seconds = []

    def step(action: Callable[[], Any]) -> Any:
        comm.Barrier()
        begin = time.perf_counter()
        result = action()
        seconds.append(max(comm.allgather(time.perf_counter() - begin)))
        return result

    u = step(lambda: created(way, rows, folder, comm))
    step(lambda: smooth(u))
    step(lambda: saved(u, way, folder))
    grown = comm.allgather(memory("VmHWM") - before)
    bytes_sent = sum(comm.allgather(sum(travelled))) / 2  # on both ends
    return {"figures": [bytes_sent / 1e6, grown[0] / 1e6, max(grown[1:], default=0) / 1e6, *seconds]}


def created(way: str, rows: int, folder: Path, comm: Any) -> lw.DistributedArray:
    if way == "load":
        return lw.load(folder / "u.npy")
    if way == "from_function":
        return lw.from_function(values, (rows, rows))
    rank, size = comm.Get_rank(), comm.Get_size()
    if way == "from_local":
        # A nest cuts columns here: blocks of columns stay where they are.
        low, high = rank * rows // size, (rank + 1) * rows // size
        return lw.from_local(values(*np.ogrid[:rows, low:high]), start=(0, low))
    return lw.DistributedArray(np.fromfunction(values, (rows, rows)) if rank == 0 else None)


def saved(u: lw.DistributedArray, way: str, folder: Path) -> None:
    if way == "from rank 0":
        if (whole := u.numpy()) is not None:
            np.save(folder / "saved.npy", whole)
    else:
        u.save(folder / "saved.npy")


def counting() -> list[int]:
    """Bytes that go to or come from other ranks outside of runs, from now on."""
    counted: list[int] = []
    as_bytes = transfer.as_bytes

    def noted(dense: Any) -> Any:
        counted.append(dense.nbytes)
        return as_bytes(dense)

    transfer.as_bytes = noted
    return counted


if __name__ == "__main__":
    main()
