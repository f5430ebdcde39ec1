"""Nests of 0.1 million points: the whole call against its tile, and the first call, cold and from the cache.

    python bench/calls/small.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import KERNELS
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw
from lapwing.runtime.alone import PreparedRun

ROUNDS, QUICK_ROUNDS = 200, 3
SETTLED_SECONDS = 1.5  # of calls, in which inner forms are compared


@lw.nest
def warming(u):
    """Called before a first call is timed: importing is no part of it."""
    for i in range(1, u.shape[0]):
        u[i] = 0.5 * u[i - 1]


@dataclass(frozen=True)
class Case:
    """A nest with a size; in some rows lie a power of two apart."""

    nest: str
    shape: tuple[int, ...]
    sweeps: int = 1

    @property
    def title(self) -> str:
        sweeps = f", {self.sweeps} sweeps" if self.sweeps > 1 else ""
        return f"{KERNELS[self.nest].title}, {'×'.join(map(str, self.shape))}{sweeps}"


CASES = (
    Case("gauss_seidel", (322, 322)),
    Case("gauss_seidel", (256, 512)),
    Case("gauss_seidel", (130, 130), 6),
    Case("nine_points", (322, 322)),
    Case("sor3d", (48, 48, 48)),
    Case("sor3d", (50, 50, 50)),
    Case("twenty_seven_points", (48, 48, 48)),
    Case("advection3d", (48, 48, 48)),
    Case("sqrt3d", (9, 33, 385)),
    Case("smith_waterman", (320, 320)),
    Case("affine_gaps", (320, 320)),
    Case("common_subsequence", (320, 320)),
    Case("time_warping", (320, 320)),
    Case("eikonal", (320, 320)),
)


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "small", "machine": machine(), "quick": options.quick, "cases": []}
    for case in CASES:
        if case.nest in (options.nest or KERNELS):
            say(f"small: {case.title}")
            document["cases"].append(measure(case, options.rounds, options.quick))
            write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Calls of small nests against their tiles, and first calls.")
    parser.add_argument("--nest", action="append", choices=list(KERNELS), help="only this nest; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"of a call and a run each (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    parser.add_argument("--first-call", help=argparse.SUPPRESS)  # of a case, by number, in a process of its own
    options = parser.parse_args()
    if options.first_call is not None:
        print(json.dumps(first_call(CASES[int(options.first_call)])))
        sys.exit()
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    return options


# -- measuring -------------------------------------------------------------------------------------------------------


def measure(case: Case, rounds: int, quick: bool) -> dict[str, Any]:
    nest, arguments = KERNELS[case.nest].nest, KERNELS[case.nest].arguments(case.shape, case.sweeps)
    bound = nest.bind(arguments)
    given = [arguments[name] for name in nest.loops.parameters if name in arguments]
    begin = time.perf_counter()
    while time.perf_counter() - begin < (0.1 if quick else SETTLED_SECONDS):
        nest(*given)
    plan = nest.planned(bound, 1, 1, 1, arguments).plan
    arrays = [arguments[array.name] for array in bound.arrays]
    run = PreparedRun(bound, plan, arrays, say)
    addresses = [array.ctypes.data for array in arrays]
    calls, tiles = [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        nest(*given)
        calls.append(time.perf_counter() - begin)
        run.run(arrays, addresses)
        tiles.append(run.seconds)
    cold, cached = first_calls(CASES.index(case))
    return {
        "case": case.title,
        "points": bound.domain.box_volume,
        "form": plan.inner.form.describe([loop.name for loop in bound.nest.space_loops]),
        "call_us": summary([1e6 * s for s in calls]),
        "tile_us": summary([1e6 * s for s in tiles]),
        "ratio": statistics.median(c / t for c, t in zip(calls, tiles, strict=True)),
        "first_call_cold_seconds": cold,
        "first_call_cached_seconds": cached,
    }


def first_calls(number: int) -> tuple[float, float]:
    """Seconds of computing for the first call in a process, with an empty cache, and with one that holds all of it."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "LAPWING_CACHE": cache, "LAPWING_QUIET": "1"}
        command = [sys.executable, __file__, "--first-call", str(number)]
        cold, cached = (
            json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
            for _ in range(2)
        )
    return cold, cached


def first_call(case: Case) -> float:
    """Seconds that this process, which has called another nest before, and the compilers that it starts compute."""
    warming(np.ones(9))
    problem = KERNELS[case.nest]
    arguments = problem.arguments(case.shape, case.sweeps)
    begin = _computed()
    problem.nest(**arguments)
    return _computed() - begin


def _computed() -> float:
    """Seconds of this process and of those that it has waited for."""
    of_all = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in of_all)


# -- showing ---------------------------------------------------------------------------------------------------------


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("call, µs", "tile, µs", "call / tile", "first, cold, s", "first, cached, ms")
    rows = table("", *columns, "inner form", numbers=columns)
    for case in document["cases"]:
        rows.add_row(
            case["case"],
            spread(case["call_us"], 0),
            spread(case["tile_us"], 0),
            f"{case['ratio']:.2f}",
            f"{case['first_call_cold_seconds']:.1f}",
            f"{1e3 * case['first_call_cached_seconds']:.0f}",
            case["form"],
        )
    out.print(rows)
    out.print("Medians and ranges; ratios are of a call and a run that follow each other.")


if __name__ == "__main__":
    main()
