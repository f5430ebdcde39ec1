"""The exact timeline of very many ranks: seconds and peak memory on one core.

    python bench/ranks/timeline.py [--case GRIDxSTEPS]... [--quick] [--json PATH]

A case such as 1000x1000x1000 is a grid of 1000 x 1000 ranks and 1000 steps; 1000000x1000 is a chain. The pipeline is P0's:
every rank sends one message a step along every axis of the grid (overlap, two buffers), and its last tile is partial.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _report import console, machine, say, show_machine, table, write_json

from lapwing.schedule.pipeline import Channel, Pipeline
from lapwing.schedule.timeline import long_timeline

CASES, QUICK_CASES = ("1000x1000x1000", "1000000x1000"), ("30x20x10", "200x10")


def main() -> None:
    options = parse_options()
    cases = options.case or (QUICK_CASES if options.quick else CASES)
    document: dict[str, Any] = {"benchmark": "timeline", "machine": machine(), "quick": options.quick, "cases": []}
    for case in cases:
        say(f"timeline: {case}")
        document["cases"].append(measure(case))
    show(document)
    write_json(options.json, document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Seconds and memory of the exact timeline of many ranks.")
    parser.add_argument("--case", action="append", metavar="GRIDxSTEPS", help="only this one; can be repeated")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    for case in options.case or ():
        numbers = case.split("x")
        if len(numbers) < 2 or not all(n.isdecimal() and int(n) > 0 for n in numbers):
            parser.error(f"--case {case}: expected ranks along every axis and steps, such as 1000x1000x1000")
    return options


def measure(case: str) -> dict[str, Any]:
    """One case, as it goes into the JSON document. Peak memory is the process's so far."""
    *grid, steps = map(int, case.split("x"))
    begin, worked = time.perf_counter(), time.process_time()
    makespan = long_timeline(pipeline(tuple(grid), steps)).makespan
    return {
        "grid": grid,
        "ranks": math.prod(grid),
        "steps": steps,
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - worked,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "makespan": makespan,
    }


def pipeline(grid: tuple[int, ...], steps: int) -> Pipeline:
    """A message along every axis; compute and transfer of a step take about as long as each other."""
    offsets = np.eye(len(grid), dtype=int).tolist()
    costs = {"pack": 1e-6, "send": 2e-6, "receive": 2e-6, "unpack": 1e-6, "wire": 9e-6, "latency": 10e-6}
    compute = np.full(steps, 20e-6)
    compute[-1] = 7e-6
    return Pipeline(grid, steps, 1, compute, tuple(Channel(tuple(o), **costs) for o in offsets))


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    columns = ("ranks", "steps", "seconds", "CPU seconds", "peak GB")
    rows = table("grid", *columns, numbers=columns)
    for case in document["cases"]:
        seconds = [f"{case[name]:.2f}" for name in ("seconds", "cpu_seconds")]
        memory = f"{case['peak_bytes'] / 1e9:.2f}"
        rows.add_row("x".join(map(str, case["grid"])), f"{case['ranks']:,}", f"{case['steps']:,}", *seconds, memory)
    out.print(rows)


if __name__ == "__main__":
    main()
