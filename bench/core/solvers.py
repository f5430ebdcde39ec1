"""Solvers on one core that look at a change after every sweep: sweeps ahead of the tests, one by one, and by numba.

    python bench/core/solvers.py [--solver NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _contenders import has_numba
from _literature import jitted
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw
from lapwing.api import lookahead

ROUNDS, QUICK_ROUNDS = 7, 2
EXTENTS, QUICK_EXTENTS = (60, 120, 300, 1000), (60,)
SWEEPS = 120
SETTLED_SECONDS = 2.0  # of calls before the first round: inner forms are compared


@lw.nest
def largest_change(u, f, most):
    """Gauss-Seidel until no value changes by much."""
    sweeps = 0
    while sweeps < most:
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        sweeps += 1
        if change < 1e-12:
            break
    return sweeps


@lw.nest
def sum_of_changes(u, f, most):
    """SOR until the sum of all changes is small."""
    for sweep in range(most):
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                difference = 1.5 * (new - u[i, j])
                change += abs(difference)
                u[i, j] += difference
        if change < 1e-12:
            return sweep
    return most


@lw.nest
def above(u, f, most):
    """Projected SOR above an obstacle, with a history."""
    history = []
    while True:
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                new = max(f[i, j], u[i, j] + 1.5 * (new - u[i, j]))
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
        history.append(change)
        if change < 1e-12 or len(history) >= most:
            break
    return len(history)


SOLVERS = {nest.name: nest for nest in (largest_change, sum_of_changes, above)}


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "solvers", "machine": machine(), "quick": options.quick, "cases": []}
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for name in options.solver or SOLVERS:
        for extent in QUICK_EXTENTS if options.quick else EXTENTS:
            say(f"solvers: {name}, {extent}")
            document["cases"].append(measure(SOLVERS[name], extent, rounds, options.quick))
            write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Solvers that look at a change after every sweep.")
    parser.add_argument("--solver", action="append", choices=list(SOLVERS), help="only this one; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="one small size: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    return parser.parse_args()


def measure(nest: lw.Nest, extent: int, rounds: int, quick: bool) -> dict[str, Any]:
    """The figures of one solver and size, as they go into the JSON document."""
    random = np.random.default_rng(extent)
    start, f = random.random((extent, extent)), random.random((extent, extent))
    u = start.copy()
    usual = lookahead.Ahead.how_many

    def timed(function: Callable[..., Any], is_ahead: bool) -> float:
        np.copyto(u, start)
        lookahead.Ahead.how_many = usual if is_ahead else lambda *_: 0  # type: ignore[method-assign]
        begin = time.thread_time()
        function(u, f, SWEEPS)
        seconds = time.thread_time() - begin
        lookahead.Ahead.how_many = usual  # type: ignore[method-assign]
        return seconds

    contenders: dict[str, tuple[Callable[..., Any], bool]] = {
        "ahead": (nest, True),
        "one by one": (lw.nest(nest.python), False),
    }
    if has_numba():
        contenders["numba"] = jitted(nest.python), True
    for function, is_ahead in contenders.values():
        end = time.perf_counter() + (0.0 if quick else SETTLED_SECONDS)
        timed(function, is_ahead)
        while time.perf_counter() < end:
            timed(function, is_ahead)
    times: dict[str, list[float]] = {who: [] for who in contenders}
    for number in range(rounds):
        for who in list(contenders)[:: 1 if number % 2 else -1]:
            times[who].append(timed(*contenders[who]))
    points = SWEEPS * (extent - 2) ** 2
    return {
        "solver": nest.name,
        "extent": extent,
        "sweeps": SWEEPS,
        "ns": {who: summary([1e9 * s / points for s in seconds]) for who, seconds in times.items()},
        "over": {
            who: summary([a / b for a, b in zip(times["ahead"], times[who], strict=True)])
            for who in times
            if who != "ahead"
        },
    }


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("ahead", "one by one", "numba", "of one by one", "of numba")
    rows = table("", *columns, numbers=columns)
    for case in document["cases"]:
        times = [spread(case["ns"][who]) if who in case["ns"] else "–" for who in columns[:3]]
        ratios = [spread(case["over"][who]) if who in case["over"] else "–" for who in columns[1:3]]
        rows.add_row(f"{case['solver']}, {case['extent']}²", *times, *ratios)
    out.print(rows)
    out.print(f"Nanoseconds a point, {SWEEPS} sweeps, medians and ranges; ratios of runs in the same round.")


if __name__ == "__main__":
    main()
