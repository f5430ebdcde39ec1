"""Time loops of several nests on one core, on arrays of three sizes: fused, not fused, and by numba.

    python bench/core/time_loops.py [--program NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _contenders import has_numba
from _literature import Program, jitted
from _report import console, machine, say, show_machine, spread, summary, table, write_json
from literature import settle, turn

import lapwing as lw
from lapwing.tiling.phased import fusion

ROUNDS, QUICK_ROUNDS = 7, 2
SIZES: dict[str, tuple[dict[str, int], ...]] = {  # in a second-level cache, in the last one, in memory
    "jacobi_2d": ({"n": 300, "tsteps": 20}, {"n": 1000, "tsteps": 20}, {"n": 3000, "tsteps": 10}),
    "heat_3d": ({"n": 48, "tsteps": 20}, {"n": 100, "tsteps": 10}, {"n": 200, "tsteps": 12}),
    "fdtd_2d": ({"n": 250, "tmax": 20}, {"n": 800, "tmax": 20}, {"n": 2500, "tmax": 10}),
    "game_of_life": ({"n": 300, "steps": 20}, {"n": 1000, "steps": 20}, {"n": 3000, "steps": 10}),
    "wave_1d": ({"n": 50_000, "Nt": 20}, {"n": 400_000, "Nt": 20}, {"n": 4_000_000, "Nt": 20}),
    "dufort_frankel": ({"n": 50_000, "steps": 20}, {"n": 400_000, "steps": 20}, {"n": 4_000_000, "steps": 20}),
}


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "time_loops", "machine": machine(), "quick": options.quick, "cases": []}
    for name in options.program or SIZES:
        for size in ({},) if options.quick else SIZES[name]:
            say(f"time_loops: {name}, {size}")
            document["cases"].append(measure(name, size, options.rounds, options.quick))
            write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time loops of several nests: fused, not fused, and by numba.")
    parser.add_argument("--program", action="append", choices=list(SIZES), help="only this one; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="the tests' sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected at least 1")
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    return options


def measure(name: str, size: dict[str, int], rounds: int, quick: bool) -> dict[str, Any]:
    """The figures of one program, as they go into the JSON document."""
    program = Program(name, size)
    contenders: dict[str, Callable[..., Any]] = {"fused": program.nest, "not fused": lw.nest(program.nest.python)}
    expected = program.called(contenders["fused"])
    usual, never = fusion.cached_bytes, lambda: 1 << 62
    fusion.cached_bytes = never
    assert all(np.array_equal(v, expected[n]) for n, v in program.called(contenders["not fused"]).items())
    fusion.cached_bytes = usual
    if has_numba():
        contenders["numba"] = jitted(program.nest.python)
        program.called(contenders["numba"])
    settle(program, quick)
    times: dict[str, list[float]] = {who: [] for who in contenders}
    for number in range(rounds):
        for who in list(contenders)[:: 1 if number % 2 else -1]:
            fusion.cached_bytes = never if who == "not fused" else usual
            times[who].append(turn(program, contenders[who], 1))
    fusion.cached_bytes = usual
    arrays = [v for v in program.arguments.values() if isinstance(v, np.ndarray)]
    return {
        "program": name,
        "size": size,
        "megabytes": sum(v.nbytes for v in arrays) / 1e6,
        "ms": {who: summary([1e3 * s for s in seconds]) for who, seconds in times.items()},
        "over": {
            who: summary([a / b for a, b in zip(times["fused"], times[who], strict=True)])
            for who in times
            if who != "fused"
        },
    }


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("MB", "fused", "not fused", "numba", "of not fused", "of numba")
    rows = table("", *columns, numbers=columns)
    for case in document["cases"]:
        size = ", ".join(f"{name} = {value:,}" for name, value in case["size"].items())
        times = [spread(case["ms"][who]) if who in case["ms"] else "–" for who in columns[1:4]]
        ratios = [spread(case["over"][who]) if who in case["over"] else "–" for who in columns[2:4]]
        rows.add_row(f"{case['program']}, {size}", f"{case['megabytes']:.1f}", *times, *ratios)
    out.print(rows)
    out.print("Milliseconds of a call, medians and ranges; ratios of runs in the same round.")


if __name__ == "__main__":
    main()
