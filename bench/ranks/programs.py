"""Programs of several nests: one core against numba, and two hosts of the lab, overlapping against blocking.

    python bench/ranks/programs.py [--part core|lab]... [--program NAME]... [--repeat N] [--quick] [--json PATH]

    core    nanoseconds a point of Jacobi with swapped arrays, FDTD, red-black Gauss-Seidel and SSOR on one core, in the cache
            and beyond, of Lapwing and of numba on the same function
    lab     the same on two hosts of the lab, one rank each; how long computing takes, of how long transferring, is the link's
            rate to say. Needs root, and the lab: make lab-up HOSTS=2 RATE=26mbit

All contenders take turns in every round; ratios are of times in the same round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _programs import NESTS, PROGRAMS, arguments
from _ranks import run_worker
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from rich.console import Console

from lapwing.errors import LapwingError
from lapwing.launch.lab import Lab, find_lab
from lapwing.units import share

WORKER = Path(__file__).with_name("_programs_worker.py")
PARTS = ("core", "lab")
REPEAT, QUICK_REPEAT = 7, 2
SIZES = {"in the cache": (260, 258, 200), "beyond it": (3000, 3002, 6)}  # rows, columns, steps
QUICK_SIZES = {"in the cache": (20, 18, 4), "beyond it": (40, 34, 2)}
# The axis that is cut is the longer one. Rows of the first three are too long for the kernel to send them on by itself.
LAB_SHAPES = {"jacobi": (4200, 4096), "fdtd": (4200, 4096), "ssor": (4200, 4096), "red_black": (4096, 731)}
QUICK_SHAPE = (32, 64)
STEPS, QUICK_STEPS = 30, 4
LIMIT_SECONDS = 1800


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {
        "benchmark": "programs",
        "machine": machine(),
        "quick": options.quick,
        "core": [],
        "lab": [],
    }
    out = console()
    show_machine(out, document["machine"])
    if options.quick:
        out.print("Quick: sizes too small to say anything about speed.")
    repeat = options.repeat or (QUICK_REPEAT if options.quick else REPEAT)
    if "core" in options.part:
        document["core"] = part_core(options, repeat)
        show_core(out, document["core"])
    if "lab" in options.part:
        document["lab"] = part_lab(options, repeat)
        show_lab(out, document["lab"])
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; can be repeated")
    parser.add_argument("--program", action="append", choices=list(PROGRAMS), help="only this one; can be repeated")
    parser.add_argument("--repeat", type=int, help=f"timed rounds (default {REPEAT})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    options.program = options.program or list(PROGRAMS)
    options.lab = the_lab() if options.part is None or "lab" in options.part else None
    if options.part is None:
        options.part = [part for part in PARTS if part == "core" or options.lab is not None]
    elif "lab" in options.part and options.lab is None:
        parser.exit(1, "programs: part lab needs two hosts: make lab-up HOSTS=2\n")
    return options


def the_lab() -> Lab | None:
    try:
        lab = find_lab()
    except LapwingError:
        return None
    return lab if len(lab.hosts) >= 2 else None


# -- one core --------------------------------------------------------------------------------------------------------------


def part_core(options: argparse.Namespace, repeat: int) -> list[dict[str, Any]]:
    try:
        import numba
    except ImportError:
        raise SystemExit('programs: numba is not installed: pip install "lapwing[bench]"') from None
    found = []
    for where, (rows, columns, steps) in (QUICK_SIZES if options.quick else SIZES).items():
        for name in options.program:
            say(f"programs: {name}, {where}")
            calls = {"lapwing": NESTS[name], "numba": numba.njit(PROGRAMS[name])}
            results = {who: arguments(name, rows, columns, steps) for who in calls}
            for who, call in calls.items():
                call(*results[who].values())
            if not all(np.array_equal(results["lapwing"][n], results["numba"][n]) for n in results["numba"]):
                raise SystemExit(f"programs: {name}: Lapwing and numba differ")
            # Both work in the same arrays: where arrays lie to each other makes up to a sixth of the time in the cache.
            given = results["numba"].values()
            times: dict[str, list[float]] = {who: [] for who in calls}
            for number in range(repeat):
                for who in list(calls)[:: 1 if number % 2 else -1]:
                    start = time.perf_counter()
                    calls[who](*given)
                    times[who].append(time.perf_counter() - start)
            points = rows * columns * steps
            found.append(
                {
                    "program": name, "size": where, "rows": rows, "columns": columns, "steps": steps,
                    "ns": {who: summary([1e9 * s / points for s in seconds]) for who, seconds in times.items()},
                    "over_numba": summary([a / b for a, b in zip(times["lapwing"], times["numba"], strict=True)]),
                }
            )  # fmt: skip
    return found


def show_core(out: Console, found: list[dict[str, Any]]) -> None:
    columns = ("Lapwing ns a point", "numba ns a point", "Lapwing / numba")
    rows = table("One core", "", *columns, numbers=columns)
    for f in found:
        figures = (spread(f["ns"]["lapwing"]), spread(f["ns"]["numba"]), spread(f["over_numba"]))
        rows.add_row(f"{f['program']} {f['rows']}×{f['columns']}", f["size"], *figures)
    out.print(rows)


# -- the lab ---------------------------------------------------------------------------------------------------------------


def part_lab(options: argparse.Namespace, repeat: int) -> list[dict[str, Any]]:
    found = []
    for name in options.program:
        rows, columns = QUICK_SHAPE if options.quick else LAB_SHAPES[name]
        steps = QUICK_STEPS if options.quick else STEPS
        runs = race(name, rows, columns, steps, repeat, options.lab)
        pairs = list(zip(runs["overlap"], runs["blocking"], strict=True))
        found.append(
            {
                "program": name, "rows": rows, "columns": columns, "steps": steps, "runs": runs,
                "ratio": summary([a["seconds"] / b["seconds"] for a, b in pairs]),
                "balance": statistics.median(a["compute"] / a["transfer"] for a, _ in pairs),
                "hidden": summary([a["hidden"] or 0.0 for a, _ in pairs]),
            }
        )  # fmt: skip
    return found


def race(name: str, rows: int, columns: int, steps: int, repeat: int, lab: Lab) -> Any:
    what = f"programs: {name} {rows}×{columns}, {steps} steps, lab"
    say(what)
    job = {"program": name, "rows": rows, "columns": columns, "steps": steps, "tile": 0, "repeat": repeat}
    return run_worker(what, WORKER, job, 2, lab, LIMIT_SECONDS)


def show_lab(out: Console, found: list[dict[str, Any]]) -> None:
    columns = ("overlap s", "blocking s", "overlap / blocking", "compute / transfer", "hidden")
    rows = table("Two hosts of the lab", *columns, numbers=columns)
    for f in found:
        seconds = [spread(summary([run["seconds"] for run in f["runs"][engine]])) for engine in ("overlap", "blocking")]
        hidden = f"{share(f['hidden']['median'])} ({share(f['hidden']['min'])}–{share(f['hidden']['max'])})"
        title = f"{f['program']} {f['rows']}×{f['columns']}, {f['steps']} steps"
        rows.add_row(title, *seconds, spread(f["ratio"]), f"{f['balance']:.2f}", hidden)
    out.print(rows)


if __name__ == "__main__":
    main()
