"""Planning: are predictions true, and is what the planner chooses the best there is?

    python bench/ranks/planning.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _nests import ADVECTION3D, PROBLEMS
from _ranks import run_worker
from _report import console, machine, say, show_machine, table, write_json
from rich.console import Console

from lapwing.errors import LapwingError
from lapwing.launch.lab import Lab, find_lab

NESTS = {**PROBLEMS, "advection3d": ADVECTION3D}
ROUNDS, QUICK_ROUNDS = 5, 2
WORKER = Path(__file__).with_name("_planning_worker.py")
LIMIT_SECONDS = 1800  # after which a case counts as hung


@dataclass(frozen=True)
class Job:
    """One case: a nest of a size, on so many ranks, so many of them on a node."""

    nest: str
    shape: tuple[int, ...]
    sweeps: int = 1
    ranks: int = 2
    ranks_a_node: int = 2
    rounds: int = ROUNDS

    @property
    def place(self) -> str:
        return "one rank" if self.ranks == 1 else "node" if self.ranks_a_node >= self.ranks else "lab"


NODE = (
    Job("sqrt3d", (33, 33, 32769)),
    Job("sqrt3d", (33, 33, 8193)),
    Job("sqrt3d", (65, 65, 8193)),
    Job("sqrt3d", (129, 129, 1025)),
    Job("gauss_seidel", (514, 514), 100),
    Job("gauss_seidel", (1026, 1026), 40),
    Job("gauss_seidel", (3002, 3002), 10),
    Job("sor3d", (66, 66, 66), 40),
    Job("sor3d", (130, 130, 130), 10),
    Job("smith_waterman", (4001, 4001)),
    Job("smith_waterman", (12001, 12001)),
    Job("advection3d", (65, 65, 65), 100),
    Job("advection3d", (161, 161, 161), 20),
)
ALONE = tuple(replace(job, ranks=1, ranks_a_node=1) for job in (NODE[1], NODE[5], NODE[8], NODE[10], NODE[12]))
LAB = tuple(
    replace(job, ranks_a_node=1)
    for job in (
        Job("sqrt3d", (65, 65, 8193)),
        Job("sqrt3d", (97, 97, 4097)),
        Job("sqrt3d", (33, 33, 8193)),
        Job("gauss_seidel", (1026, 1026), 40),
        Job("gauss_seidel", (3002, 3002), 10),
        Job("sor3d", (130, 130, 130), 10),
        Job("smith_waterman", (12001, 12001)),
        Job("advection3d", (65, 65, 65), 100),
        Job("advection3d", (161, 161, 161), 20),
    )
)
QUICK = (
    Job("sqrt3d", (17, 17, 129)),
    Job("gauss_seidel", (50, 50), 2),
    Job("smith_waterman", (65, 65), ranks=1, ranks_a_node=1),
)


def main() -> None:
    options = parse_options()
    lab = _lab()
    jobs = [*QUICK] if options.quick else [*ALONE, *NODE, *(LAB if lab else ())]
    jobs = [replace(j, rounds=options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)) for j in jobs]
    jobs = [j for j in jobs if j.nest in (options.nest or NESTS) and j.place in (options.place or (j.place,))]
    document: dict[str, Any] = {"benchmark": "planning", "machine": machine(), "quick": options.quick, "cases": []}
    for job in jobs:
        document["cases"].append({**asdict(job), "place": job.place, **measure(job, lab)})
        write_json(options.json, document)
    if lab is None and not options.quick:
        say("planning: no lab is up (make lab-up): its cases were left out")
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Predicted against measured, and chosen against the best of all.")
    parser.add_argument("--nest", action="append", choices=list(NESTS), help="only this nest; can be repeated")
    parser.add_argument(
        "--place", action="append", choices=("one rank", "node", "lab"), help="only there; can be repeated"
    )
    parser.add_argument("--rounds", type=int, help=f"how often each way to run is timed (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every time to PATH")
    return parser.parse_args()


def _lab() -> Lab | None:
    """The lab, if it is up and has a host for every rank."""
    try:
        lab = find_lab()
    except LapwingError:
        return None
    return lab if len(lab.hosts) >= 2 else None


def measure(job: Job, lab: Lab | None) -> dict[str, Any]:
    """Exits with a message where a rank fails; it has said why on standard error."""
    what = f"planning: {job.nest} {'x'.join(map(str, job.shape))}, {job.place}"
    say(what)
    found: dict[str, Any] = run_worker(
        what, WORKER, asdict(job), job.ranks, lab if job.place == "lab" else None, LIMIT_SECONDS
    )
    return found


def figures(case: dict[str, Any]) -> dict[str, Any]:
    """Predicted against measured; the chosen run against the best height, and against the best of all, round by round."""
    chosen, *others = case["variants"]
    measured = statistics.median(chosen["seconds"])
    best = {}
    for kind, kinds in (("height", ("height",)), ("all", ("height", "other"))):
        rivals = [v for v in others if v["kind"] in kinds]
        rival = min(rivals, key=lambda v: statistics.median(v["seconds"]), default=chosen)
        ratios = [a / b for a, b in zip(chosen["seconds"], rival["seconds"], strict=True)]
        best[kind] = (max(1.0, statistics.median(ratios)), rival)
    return {
        "measured": measured,
        "predicted": chosen["predicted"],
        "error": chosen["predicted"] / measured - 1,
        "best": best,
        "planning_seconds": case["planning_seconds"],
    }


def show(document: dict[str, Any]) -> None:
    out: Console = console()
    show_machine(out, document["machine"])
    rows = table(
        "nest", "shape", "place", "engine", "pipelined", "tile", "measured s", "predicted s", "error", "/ best height",
        "/ best", "best", "planned in s",
        numbers=("tile", "measured s", "predicted s", "error", "/ best height", "/ best", "planned in s"),
    )  # fmt: skip
    errors = []
    for case in document["cases"]:
        found = figures(case)
        errors.append(abs(found["error"]))
        rival = found["best"]["all"][1]
        rows.add_row(
            case["nest"], "x".join(map(str, case["shape"])), case["place"], case["plan"]["engine"], case["plan"]["mapping"],
            str(case["plan"]["tile"]), f"{found['measured']:.4g}", f"{found['predicted']:.4g}", f"{found['error']:+.1%}",
            f"{found['best']['height'][0]:.2f}", f"{found['best']['all'][0]:.2f}",
            f"{rival['engine']} {rival['mapping']} {'x'.join(map(str, rival['parts']))} {rival['tile']}",
            f"{found['planning_seconds']:.3f}",
        )  # fmt: skip
    out.print(rows)
    if errors:
        within = sum(error <= 0.1 for error in errors)
        out.print(f"median error {statistics.median(errors):.1%}, {within} of {len(errors)} within 10 %")


if __name__ == "__main__":
    main()
