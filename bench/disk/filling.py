"""How much memory it takes to fill an array on disk that is larger than memory, on every rank, and how long.

Three ways, each in a run of its own: a user's own program that writes chunks, an array that is saved as it is made, and what
`lapwing run --memory` does with a problem's array. The files are removed at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _memory import memory
from _report import console, machine, show_machine, table, write_json

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import LapwingError
from lapwing.runtime.mpi import communicator
from lapwing.session.spilling import spilled
from lapwing.store.chunking import blocks
from lapwing.units import parsed_size

WAYS = ("create and write", "from_function, save", "run --memory")
ASKED_BYTES = 300_000_000
QUICK_BYTES = 200_000_000
SPILL_SHARE = 40  # of the array: what `lapwing run --memory` may take, 512 MB for 20 GB
SAMPLES_A_SECOND = 50
ROOM = 1.05  # times the array: what has to be free on the disk
COMPARED = 16  # parts of the array


@lw.nest
def smooth(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


def values(i: Any, j: Any) -> Any:
    return (i * 37.0 + j * 11.0) % 101.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0] if __doc__ else "")
    parser.add_argument("--size", type=parsed_size, default=20_000_000_000, help="of the array (default 20GB)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument(
        "--disk", type=Path, default=Path(), metavar="DIR", help="where (default: the working directory)"
    )
    parser.add_argument("--quick", action="store_true", help="200 MB, which says nothing about speed")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to PATH")
    parser.add_argument("--way", action="append", choices=WAYS, help="leave out the others; may be repeated")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = QUICK_BYTES if options.quick else options.size
    columns = max(1000, math.isqrt(size // 8))
    shape = (max(1, size // 8 // columns), columns)
    if options.folder is not None:
        measure(options.way[0], shape, options.folder)
        return 0

    out, about = console(), machine()
    show_machine(out, about)
    out.print(f"{shape[0]} × {shape[1]} float64 ({8e-9 * math.prod(shape):.2f} GB) in {options.disk.resolve()}")
    if options.quick:
        out.print("Quick: sizes too small to say anything.")
    free = shutil.disk_usage(options.disk).free
    if free < ROOM * 8 * math.prod(shape):
        out.print(f"There are {free / 1e9:.1f} GB free. Name another directory (--disk) or a smaller array (--size).")
        return 0
    runs = {}
    for way in options.way or WAYS:
        with tempfile.TemporaryDirectory(prefix="lapwing-filling-", dir=options.disk) as folder:
            runs[way] = run(way, shape, options.ranks, Path(folder))
    shown = table("", "memory of each rank, MB", "of it anonymous", "300 MB or less", "seconds", "MB/s", "as computed")
    for way, found in runs.items():
        shown.add_row(
            way,
            ", ".join(f"{peak / 1e6:.0f}" for peak in found["peak_bytes"]),
            ", ".join(f"{peak / 1e6:.0f}" for peak in found["anonymous_bytes"]),
            "yes" if max(found["peak_bytes"]) <= ASKED_BYTES else "NO",
            f"{found['seconds']:.1f}",
            f"{8e-6 * math.prod(shape) / found['seconds']:.0f}",
            "yes" if found["correct"] else "NO",
        )
    out.print(shown)
    write_json(options.json, {"machine": about, "shape": shape, "ranks": options.ranks, "runs": runs})
    return 0 if all(found["correct"] for found in runs.values()) else 1


def run(way: str, shape: tuple[int, int], ranks: int, folder: Path) -> Any:
    command = [str(find_mpi().mpiexec), "-n", str(ranks), sys.executable, __file__]
    command += ["--way", way, "--size", f"{8 * math.prod(shape)}B", "--folder", str(folder)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{way}: failed with exit status {done.returncode}")
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"peak_bytes"'))


def measure(way: str, shape: tuple[int, int], folder: Path) -> None:
    """On every rank: fill, and say on the first what it took."""
    comm = communicator.world()
    smooth(lw.from_function(values, (60, 60)))  # sets up what is set up once
    disk = folder / "u"
    comm.Barrier()
    with peaks() as peak:
        begin = time.perf_counter()
        correct = ACTIONS[way](shape, disk, comm, lambda: seconds.append(time.perf_counter() - begin))
    found = {
        "peak_bytes": comm.allgather(peak["VmHWM"]),
        "anonymous_bytes": comm.allgather(peak["RssAnon"]),
        "seconds": max(comm.allgather(seconds[0])),
        "correct": all(comm.allgather(correct)),
    }
    if comm.Get_rank() == 0:
        print(json.dumps(found))


seconds: list[float] = []  # until this rank had everything on disk

Done = Callable[[], None]


def create_and_write(shape: tuple[int, int], disk: Path, comm: Any, done: Done) -> bool:
    path = f"{disk}.zarr"
    if comm.Get_rank() == 0:
        lw.create(path, shape)
    comm.Barrier()
    u = lw.open(path)
    everything = tuple((0, n) for n in shape)
    for (top, bottom), (left, right) in list(blocks(everything, u.chunks))[comm.Get_rank() :: comm.Get_size()]:
        u.write(((top, bottom), (left, right)), values(*np.ogrid[top:bottom, left:right]))
    flush(path, comm)
    done()
    return is_correct(u, comm)


def save(shape: tuple[int, int], disk: Path, comm: Any, done: Done) -> bool:
    path = f"{disk}.npy"
    lw.from_function(values, shape).save(path)
    flush(path, comm)
    done()
    return is_correct(lw.open(path), comm)


def run_with_memory(shape: tuple[int, int], disk: Path, comm: Any, done: Done) -> bool:
    nest = smooth.using(memory=8 * math.prod(shape) // SPILL_SHARE)
    arguments = {"u": lw.from_function(values, shape)}
    ranks = comm.Get_size()
    with spilled(nest, arguments, comm, (ranks, ranks, 1), str(disk.parent), lambda _what, _done: None) as found:
        assert isinstance(found["u"], lw.StoredArray)
        flush(found["u"].path, comm)
        done()
        correct = is_correct(found["u"], comm)
        comm.Barrier()
    return correct


ACTIONS = dict(zip(WAYS, (create_and_write, save, run_with_memory), strict=True))


def is_correct(u: lw.StoredArray, comm: Any) -> bool:
    """Whether some rows here and there are as computed; each rank looks at others."""
    comm.Barrier()
    chooser = np.random.default_rng(comm.Get_rank())
    for row in chooser.integers(0, u.shape[0], COMPARED).tolist():
        found = u.read(((row, row + 1), (0, u.shape[1])))
        if not np.array_equal(found, values(*np.ogrid[row : row + 1, : u.shape[1]])):
            return False
    return True


def flush(path: str, comm: Any) -> None:
    """See that what was written is on the disk."""
    comm.Barrier()
    files = [path] if os.path.isfile(path) else [str(p) for p in Path(path).rglob("*") if p.is_file()]
    for file in sorted(files)[comm.Get_rank() :: comm.Get_size()]:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    comm.Barrier()


@contextmanager
def peaks() -> Iterator[dict[str, int]]:
    """By how much this process's memory grows at most inside the block; known after it."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins anew
    before = {"VmHWM": memory("VmRSS"), "RssAnon": memory("RssAnon")}
    highest = dict(before)
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(1 / SAMPLES_A_SECOND):
            highest["RssAnon"] = max(highest["RssAnon"], memory("RssAnon"))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    found: dict[str, int] = {}
    try:
        yield found
    finally:
        stop.set()
        sampler.join()
    highest["VmHWM"] = memory("VmHWM")
    found.update({kind: highest[kind] - before[kind] for kind in before})


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LapwingError as error:
        sys.exit(str(error))
