"""Many sweeps on one rank and on several, both in buffers that several sweeps share.

    python bench/ranks/many_sweeps.py [--nest NAME]... [--ranks N] [--sweeps N]... [--repeats R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _nests import SWEPT
from _ranks import run_worker
from _report import console, machine, say, show_machine, spread, summary, table, write_json

REPEATS, QUICK_REPEATS = 9, 2
SWEEPS = (10, 20, 40)
SHAPES: dict[str, tuple[int, ...]] = {
    "gauss_seidel": (3002, 3002),
    "right_hand_side": (3002, 3002),
    "nine_points": (3002, 3002),
    "sor3d": (202, 202, 102),
}
WORKER = Path(__file__).with_name("_many_sweeps_worker.py")
WORKER_SECONDS = 900  # after which a run counts as hung


@dataclass(frozen=True)
class Job:
    """What the ranks are told to run."""

    nest: str
    shape: tuple[int, ...]
    sweeps: int
    repeats: int
    engines: tuple[str, ...] = ("overlap", "onesided")
    tiles: tuple[int, ...] = (64, 128)


def main() -> None:
    options = parse_options()
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    document: dict[str, Any] = {
        "benchmark": "many_sweeps", "machine": machine(), "quick": options.quick, "ranks": options.ranks, "cases": [],
    }  # fmt: skip
    for name in options.nest or SHAPES:
        for sweeps in options.sweeps or SWEEPS:
            shape = (
                tuple(100 if len(SHAPES[name]) == 3 else 140 for _ in SHAPES[name]) if options.quick else SHAPES[name]
            )
            job = Job(name, shape, sweeps, repeats)
            say(f"many_sweeps: {name}, {sweeps} sweeps")
            runs = run_worker(f"many_sweeps: {name}", WORKER, asdict(job), options.ranks, None, WORKER_SECONDS)
            document["cases"].append({**asdict(job), "runs": runs, **summarise(runs)})
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Many sweeps on one rank and on several, which join them.")
    parser.add_argument("--nest", action="append", choices=list(SHAPES), help="only this nest; can be repeated")
    parser.add_argument("--ranks", type=int, default=2, help="ranks that are compared with one (default 2)")
    parser.add_argument("--sweeps", type=int, action="append", help=f"can be repeated (default {SWEEPS})")
    parser.add_argument("--repeats", type=int, help=f"timed runs of each kind (default {REPEATS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.ranks < 2:
        parser.error("--ranks: expected at least 2")
    return options


def summarise(runs: dict[str, Any]) -> dict[str, Any]:
    """The best of several ranks against one, round by round."""
    one = runs["one rank"]["seconds"]
    best = min((name for name in runs if name != "one rank"), key=lambda name: statistics.median(runs[name]["seconds"]))
    speedups = [alone / together for alone, together in zip(one, runs[best]["seconds"], strict=True)]
    return {
        "best": best,
        "one_rank": summary(one),
        "together": summary(runs[best]["seconds"]),
        "speedup": summary(speedups),
    }


def show(document: dict[str, Any]) -> None:
    out, ranks = console(), document["ranks"]
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("sweeps", "1 rank", f"{ranks} ranks", "speed-up")
    rows = table("", *columns, "best, sweeps at once", numbers=columns)
    for case in document["cases"]:
        milliseconds = [spread({k: 1e3 * v for k, v in case[name].items()}) for name in ("one_rank", "together")]
        joined = case["runs"][case["best"]]["joined"]
        shape = " × ".join(map(str, case["shape"]))
        rows.add_row(
            f"{SWEPT[case['nest']].title}, {shape}", str(case["sweeps"]), *milliseconds, spread(case["speedup"]),
            f"{case['best']}, {joined}",
        )  # fmt: skip
    out.print(rows)
    out.print("Milliseconds, medians and ranges; speed-up: of runs in the same round.")


if __name__ == "__main__":
    main()
