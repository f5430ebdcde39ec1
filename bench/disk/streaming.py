"""Out of core against its bound: Gauss-Seidel on an array on disk, several times as large as the memory it may take.

    python bench/disk/streaming.py [--quick] [--parts ring,slabs,passes,tiles] [--disk DIR] [--json PATH]

The bound is the time to read an array of the same size and write a new one with the same requests, nothing computed: O_DIRECT,
1 MiB each, as many under way as the runtime has, until all is on the disk and has taken the place of the old one. All cases of a
part take turns, round after round, the bound at the beginning and at the end of each; a round's ratios are to the mean of its
two, and medians over rounds are shown. Times are those of whole calls. Predictions are of a run without making its files: "of
predicted" for a disk as fast as the bound, "at its rate" for one as fast as it was in the run while bytes were under way.

    ring     one sweep: three slabs on 1, 2 and 4 ranks, and one slab at a time (P3's basic scheme) on one
    slabs    12 sweeps, for which computing takes about as long as the disk: three slabs and one slab at a time
    passes   8 sweeps: as many in a pass as the planner takes, and one a pass (P3's scheme), against the bound of one pass; 32
             sweeps, for which computing takes longer
    tiles    one sweep: slabs of several heights, measured and predicted
"""

from __future__ import annotations

import argparse
import math
import mmap
import os
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _ranks import run_worker
from _report import console, machine, say, show_machine, table, write_json

import lapwing as lw
from lapwing.planner.streaming import QUEUE_DEPTH, REQUEST_BYTES
from lapwing.schedule.disk_ring import DiskPipeline, disk_timeline

WORKER = Path(__file__).with_name("_streaming_worker.py")
PARTS = ("ring", "slabs", "passes", "tiles")
TILES = (16, 32, 64, 128, 256)
LIMIT_SECONDS = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=16384, help="of the array, and columns [16384: 2 GiB]")
    parser.add_argument("--memory", type=int, default=512, metavar="MIB", help="for all ranks together [512]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--disk", type=Path, default=Path(), help="the folder for the arrays [.]")
    parser.add_argument("--quick", action="store_true", help="a small array, which says nothing about speed")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, memory, rounds = (512, 1 << 19, 1) if options.quick else (options.rows, options.memory << 20, options.rounds)
    out, about = console(), machine()
    show_machine(out, about)
    out.print(f"{rows} × {rows} float64, {memory >> 10} KiB of memory, {rounds} rounds")
    if options.quick:
        out.print("Quick: sizes too small to say anything.")
    document: dict[str, Any] = {"machine": about, "rows": rows, "memory": memory, "parts": {}}
    folder = Path(tempfile.mkdtemp(prefix="lapwing-bench-", dir=options.disk))
    try:
        parts = {part: cases_of(part, rows, memory) for part in options.parts.split(",")}
        for ranks in sorted({case["ranks"] for cases in parts.values() for case in cases.values()}):
            filled(folder / f"{ranks}.zarr", rows, ranks)
        for name in ("from", "to"):
            flat(folder / name, 8 * rows * rows)
        for part, cases in parts.items():
            document["parts"][part] = measured(cases, rounds, folder, rows)
            show(out, part, document["parts"][part])
    finally:
        shutil.rmtree(folder)
    write_json(options.json, document)


def cases_of(part: str, rows: int, memory: int) -> dict[str, dict[str, Any]]:
    """By name: ranks, sweeps, and what Nest.using takes."""

    def case(ranks: int = 1, sweeps: int = 1, **using: Any) -> dict[str, Any]:
        return {"ranks": ranks, "sweeps": sweeps, "using": {"memory": memory, "engine": "overlap", **using}}

    if part == "ring":
        return {
            **{f"three slabs, {n} rank{'s' if n > 1 else ''}": case(n) for n in (1, 2, 4)},
            "one slab, 1 rank": case(ring=1),
        }
    if part == "slabs":
        height = memory // (8 * rows) // 40  # fourteen and more fit in memory
        tile = max(1, height if height < 16 else height // 16 * 16)
        return {
            "12 sweeps, three slabs": case(sweeps=12, pass_sweeps=12, tile=tile),
            "12 sweeps, one slab": case(sweeps=12, pass_sweeps=12, tile=tile, ring=1),
        }
    if part == "passes":
        return {
            "8 sweeps": case(sweeps=8),
            "8 sweeps, 2 ranks": case(2, sweeps=8),
            "8 sweeps, one a pass": case(sweeps=8, pass_sweeps=1),
            "32 sweeps": case(sweeps=32),
            "32 sweeps, 2 ranks": case(2, sweeps=32),
        }
    if part == "tiles":
        heights = [None, *(t for t in TILES if 5 * t * rows * 8 <= memory)]
        return {f"tiles of {t or 'the plan'}": case(tile=t) for t in heights}
    raise SystemExit(f"bench/disk/streaming.py: --parts {part!r}: expected some of {', '.join(PARTS)}")


def filled(path: Path, rows: int, ranks: int) -> None:
    """An array in chunks as `lapwing run` makes them: as wide as a rank's block, and 8 MiB each."""
    say(f"bench/disk/streaming.py: writing {path.name}")
    width = rows // ranks
    array = lw.create(path, (rows, rows), np.float64, chunks=(max(1, (8 << 20) // (8 * width)), width))
    height = max(1, (64 << 20) // (8 * rows))
    values = np.random.default_rng(0).random((min(height, rows), rows))
    for row in range(0, rows, height):
        high = min(row + height, rows)
        array.write(((row, high), (0, rows)), values[: high - row])


def flat(path: Path, size: int) -> None:
    """A file for the bound."""
    values = np.random.default_rng(0).bytes(64 << 20)
    with path.open("wb") as stream:
        for at in range(0, size, len(values)):
            stream.write(values[: size - at])
        stream.flush()
        os.fsync(stream.fileno())


def measured(cases: dict[str, dict[str, Any]], rounds: int, folder: Path, rows: int) -> dict[str, Any]:
    """The bound's seconds, two a round, and every case's figures by round."""
    bound: list[list[float]] = []
    found: dict[str, list[Any]] = {name: [] for name in cases}
    for number in range(rounds):
        say(f"bench/disk/streaming.py: round {number + 1} of {rounds}")
        before = copied(folder, 8 * rows * rows)
        names = list(cases)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            case = cases[name]
            job = {"path": str(folder / f"{case['ranks']}.zarr"), "sweeps": case["sweeps"], "using": case["using"]}
            found[name].append(
                run_worker(f"bench/disk/streaming.py: {name}", WORKER, job, case["ranks"], None, LIMIT_SECONDS)
            )
        bound.append([before, copied(folder, 8 * rows * rows)])
    return {"bound": bound, "cases": found}


def copied(folder: Path, size: int) -> float:
    """Seconds to read one file and write a new one, which takes the place of an old one when all of it is on the disk."""
    requests = -(-size // REQUEST_BYTES)
    begin = time.perf_counter()
    source = os.open(folder / "from", os.O_RDONLY | os.O_DIRECT)
    target = os.open(folder / "new", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    os.posix_fallocate(target, 0, size)
    buffers = [mmap.mmap(-1, REQUEST_BYTES) for _ in range(QUEUE_DEPTH)]

    def work(thread: int) -> None:
        for number in range(thread, requests, QUEUE_DEPTH):
            os.preadv(source, [buffers[thread]], number * REQUEST_BYTES)
            os.pwritev(target, [buffers[thread]], number * REQUEST_BYTES)

    with ThreadPoolExecutor(QUEUE_DEPTH) as pool:
        list(pool.map(work, range(QUEUE_DEPTH)))
    os.fsync(target)
    for file in (source, target):
        os.close(file)
    os.replace(folder / "new", folder / "to")
    return time.perf_counter() - begin


def predicted(run: dict[str, Any], disk: float) -> float:
    """Seconds by the plan's timeline, for a disk that takes so many seconds for the run's bytes; not a number where the plan has
    none."""
    if run["pipeline"] is None:
        return math.nan
    pipeline = DiskPipeline(**{**run["pipeline"], "grid": tuple(run["pipeline"]["grid"])})
    slabs = pipeline.passes * pipeline.slabs * pipeline.ranks
    slower = disk / (slabs * (pipeline.read + pipeline.write))
    return disk_timeline(replace(pipeline, read=slower * pipeline.read, write=slower * pipeline.write)).makespan


def show(out: Any, part: str, found: dict[str, Any]) -> None:
    bounds = [statistics.mean(pair) for pair in found["bound"]]
    numbers = ("seconds", "of the bound", "disk hidden", "computing", "of predicted", "at its rate", "memory")
    shown = table("", "tile", "passes", *numbers, numbers=("tile", "passes", *numbers))
    shown.add_row("bound: reading and writing once", "", "", f"{statistics.median(bounds):.2f}", "1.00", *5 * [""])
    for name, runs in found["cases"].items():
        ratios = [run["called"] / bound for run, bound in zip(runs, bounds, strict=True)]
        hidden = statistics.median(1 - run["exposed"] / run["busy"] for run in runs)
        shown.add_row(
            name,
            str(runs[0]["tile"]),
            f"{runs[0]['passes']} of {runs[0]['pass_sweeps']}",
            f"{statistics.median(run['called'] for run in runs):.2f}",
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})",
            f"{max(0, hidden):.0%}",
            f"{statistics.median(run['computing'] for run in runs):.2f}",
            f"{statistics.median(r['seconds'] / predicted(r, r['passes'] * b) for r, b in zip(runs, bounds, strict=True)):.2f}",
            f"{statistics.median(run['seconds'] / predicted(run, run['busy']) for run in runs):.2f}",
            f"{max(run['memory'] for run in runs) >> 20} MiB",
        )
    apart = statistics.median(max(pair) / min(pair) for pair in found["bound"])
    out.print(
        f"\n{part}: seconds, and as medians of a round's ratios; the two bounds of a round are {apart:.2f} times apart"
    )
    out.print(shown)


if __name__ == "__main__":
    main()
