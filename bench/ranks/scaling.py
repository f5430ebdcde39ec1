"""Strong scaling: the same nests on one rank and on two, with both engines, over a few tile heights.

    python bench/ranks/scaling.py [--nest NAME]... [--ranks N] [--repeats R] [--quick] [--json PATH]

bench/README.md says how to read the tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _nests import PROBLEMS
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.codegen.compilation.toolchain import find_mpi

REPEATS, QUICK_REPEATS = 7, 2
ENGINES = ("blocking", "overlap")
TILES = (4, 8, 16, 32, 64, 128)  # along the pipelined loop
WORKER = Path(__file__).with_name("_scaling_worker.py")
SETTLING_SECONDS = 1.5  # of runs before those that are timed
WORKER_SECONDS = 900  # after which a run counts as hung

Run = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What the ranks are told to run."""

    nest: str
    shape: tuple[int, ...]
    sweeps: int = 1
    engines: tuple[str, ...] = ENGINES
    tiles: tuple[int, ...] = TILES
    repeats: int = REPEATS
    settling_seconds: float = 0.0


JOBS = (
    Job("sqrt3d", (65, 65, 8193)),
    Job("gauss_seidel", (3002, 3002), 10),
    Job("sor3d", (162, 162, 162), 10),
    Job("smith_waterman", (6001, 6001)),
)
QUICK_JOBS = (
    Job("sqrt3d", (9, 9, 129), tiles=(2, 4)),
    Job("gauss_seidel", (50, 50), 2, tiles=(2, 4)),
    Job("sor3d", (18, 18, 18), 2, tiles=(2, 4)),
    Job("smith_waterman", (65, 65), tiles=(2, 4)),
)


def main() -> None:
    options = parse_options()
    jobs = [j for j in (QUICK_JOBS if options.quick else JOBS) if j.nest in (options.nest or PROBLEMS)]
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    document: dict[str, Any] = {
        "benchmark": "scaling",
        "machine": machine(),
        "quick": options.quick,
        "ranks": options.ranks,
        "nests": [],
    }
    for job in jobs:
        settling = 0.0 if options.quick else SETTLING_SECONDS
        document["nests"].append(measure(replace(job, repeats=repeats, settling_seconds=settling), options.ranks))
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Strong scaling on one rank and on several, both engines.")
    parser.add_argument("--nest", action="append", choices=list(PROBLEMS), help="only this nest; can be repeated")
    parser.add_argument("--ranks", type=int, default=2, help="ranks that are compared with one (default 2)")
    parser.add_argument("--repeats", type=int, help=f"timed runs of each kind (default {REPEATS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats: expected at least 1")
    if options.ranks < 2:
        parser.error("--ranks: expected at least 2")
    return options


# -- measuring -------------------------------------------------------------------------------------------------------


def measure(job: Job, ranks: int) -> dict[str, Any]:
    """All runs of one nest. One rank runs before and after the others, so that a change of the machine's pace shows."""
    alone = replace(job, engines=("overlap",), tiles=(1, *job.tiles))  # alone, all engines are the same
    before = start(alone, 1)
    together = start(job, ranks)
    after = start(alone, 1)
    return {
        "nest": job.nest,
        "shape": list(job.shape),
        "sweeps": job.sweeps,
        "repeats": job.repeats,
        "one_rank_before": before,
        "one_rank_after": after,
        "runs": together,
        "summary": summarise(before, after, together, ranks),
    }


def start(job: Job, ranks: int) -> list[Run]:
    """Run the worker, alone or under mpiexec. Exits with a message if it fails; it has said why on standard error."""
    say(f"scaling: {job.nest} on {ranks} rank{'s' if ranks > 1 else ''}")
    launcher = [str(find_mpi().mpiexec), "-n", str(ranks)] if ranks > 1 else []
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [*launcher, sys.executable, str(WORKER), json.dumps(asdict(job)), str(result)]
        try:
            status = subprocess.run(command, timeout=WORKER_SECONDS).returncode
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{job.nest} on {ranks} ranks: not done after {WORKER_SECONDS} s") from None
        if status or not result.exists():
            raise SystemExit(f"{job.nest} on {ranks} ranks: failed with exit status {status}")
        runs: list[Run] = json.loads(result.read_text())
    return runs


def summarise(before: list[Run], after: list[Run], together: list[Run], ranks: int) -> dict[str, Any]:
    """Every kind of run at its best tile height, the one with the least median."""
    both = [{**b, "seconds": b["seconds"] + a["seconds"]} for b, a in zip(before, after, strict=True)]
    one = best(both)
    seconds = statistics.median(one["seconds"])
    made: dict[str, Any] = {
        "one_rank": {
            "tile": one["tile"],
            "seconds": summary(one["seconds"]),
            "before": summary(of_tile(before, one["tile"])["seconds"]),
            "after": summary(of_tile(after, one["tile"])["seconds"]),
        },
        "bound": seconds / ranks,
    }
    for engine in ENGINES:
        run = best([r for r in together if r["engine"] == engine])
        made[engine] = {
            "tile": run["tile"],
            "seconds": summary(run["seconds"]),
            "exposed_seconds": summary(run["exposed_seconds"]),
            "speedup": seconds / statistics.median(run["seconds"]),
        }
    pairs = (best([r for r in together if r["engine"] == engine])["seconds"] for engine in ("overlap", "blocking"))
    made["overlap_over_blocking"] = summary([o / b for o, b in zip(*pairs, strict=True)])
    return made


def best(runs: list[Run]) -> Run:
    return min(runs, key=lambda run: statistics.median(run["seconds"]))


def of_tile(runs: list[Run], tile: int) -> Run:
    return next(run for run in runs if run["tile"] == tile)


# -- showing ---------------------------------------------------------------------------------------------------------


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    for nest in document["nests"]:
        show_heights(out, nest, document["ranks"])
    show_summary(out, document)


def title(nest: dict[str, Any]) -> str:
    shape = " × ".join(map(str, nest["shape"]))
    sweeps = f", {nest['sweeps']} sweeps" if nest["sweeps"] > 1 else ""
    return f"{PROBLEMS[nest['nest']].title}: {shape}{sweeps}"


def show_heights(out: Console, nest: dict[str, Any], ranks: int) -> None:
    """Milliseconds at every tile height."""
    run = nest["runs"][0]
    grid = "x".join(map(str, run["grid"]))
    out.print(f"\n{title(nest)}; {run['pipelined']} pipelined, grid {grid}. Milliseconds:", style="bold")
    columns = ("tile", "1 rank, before", "1 rank, after", *(f"{ranks} ranks, {engine}" for engine in ENGINES))
    rows = table(*columns, numbers=columns)
    parts = [nest["one_rank_before"], nest["one_rank_after"]]
    parts += [[r for r in nest["runs"] if r["engine"] == engine] for engine in ENGINES]
    for height in sorted({r["tile"] for part in parts for r in part}):
        cells = [next((r["seconds"] for r in part if r["tile"] == height), None) for part in parts]
        rows.add_row(str(height) if height else "as planned", *(milliseconds(summary(s)) if s else "–" for s in cells))
    out.print(rows)


def show_summary(out: Console, document: dict[str, Any]) -> None:
    ranks = document["ranks"]
    out.print("Each at its best tile height. Milliseconds:", style="bold")
    columns = ("1 rank", "bound", *(f"{ranks}, {engine}" for engine in ENGINES), "speed-up", "overlap / blocking")
    rows = table("", *columns, numbers=columns)
    for nest in document["nests"]:
        found = nest["summary"]
        rows.add_row(
            PROBLEMS[nest["nest"]].title,
            milliseconds(found["one_rank"]["seconds"]),
            f"{1e3 * found['bound']:.2f}",
            *(milliseconds(found[engine]["seconds"]) for engine in ENGINES),
            " ".join(f"{found[engine]['speedup']:.2f}" for engine in ENGINES),
            spread(found["overlap_over_blocking"]),
        )
    out.print(rows)
    out.print(f"bound: 1 rank / {ranks}. speed-up: 1 rank / {ranks} ranks, {' and '.join(ENGINES)}.")
    out.print("Medians and ranges; overlap / blocking is of runs in the same round.")
    out.print("Distributing the arrays and collecting them is not counted.")


def milliseconds(seconds: dict[str, float]) -> str:
    return spread({name: 1e3 * value for name, value in seconds.items()})


if __name__ == "__main__":
    main()
