"""What a call takes of a few points: again and again, and after large arrays have gone through the caches.

    python bench/calls/after_large.py [--rounds R] [--quick] [--json PATH]

Programs call their nests between other work: what the calls before have left in caches is gone by then. bench/README.md says how
to read the table.
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
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw

ROUNDS, QUICK_ROUNDS = 300, 3
LARGE_BYTES = 8 << 20  # of each of two arrays: more than second-level caches hold
POINTS = 12


@lw.nest
def history(u, r):
    for n in range(u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[n + 1, j] = u[n, j] + r * (u[n, j - 1] - 2 * u[n, j] + u[n, j + 1])


@lw.nest
def back_and_forth(u, v, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            v[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * v[i] + 0.25 * (v[i - 1] + v[i + 1])


CASES: dict[str, tuple[lw.Nest, tuple[Any, ...]]] = {
    "a nest": (history, (np.ones((3, POINTS)), 0.4)),
    "a program": (back_and_forth, (np.ones(POINTS), np.ones(POINTS), 3)),
}


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "after_large", "machine": machine(), "quick": options.quick, "cases": []}
    for title, (nest, arguments) in CASES.items():
        say(f"after_large: {title}")
        document["cases"].append({"case": title, **measure(nest, arguments, options.rounds)})
        write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Calls of a few points, between large arrays.")
    parser.add_argument("--rounds", type=int, help=f"of one call each way (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    return options


def measure(nest: lw.Nest, arguments: tuple[Any, ...], rounds: int) -> dict[str, Any]:
    """Microseconds of calls, in turns."""
    callers: dict[str, Callable[..., Any]] = {"lapwing": nest}
    if has_numba():
        import numba

        callers["numba"] = numba.njit(nest.python)
    large, other = (np.ones(LARGE_BYTES // 8) for _ in range(2))
    found: dict[str, list[float]] = {f"{name}_{when}": [] for name in callers for when in ("again", "after_large")}
    for call in callers.values():
        for _ in range(20):
            call(*arguments)
    for _ in range(rounds):
        for name, call in callers.items():
            np.add(large, 1.0, out=other)
            found[f"{name}_after_large"].append(_seconds(call, arguments))
            call(*arguments)
            found[f"{name}_again"].append(_seconds(call, arguments))
    return {f"{name}_us": summary([1e6 * s for s in seconds]) for name, seconds in found.items()}


def _seconds(call: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    begin = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begin


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    names = {"lapwing": "Lapwing", "numba": "numba"}
    columns = [f"{title}, {when}, µs" for title in names.values() for when in ("again", "after large arrays")]
    rows = table("", *columns, numbers=columns)
    for case in document["cases"]:
        keys = [f"{name}_{when}_us" for name in names for when in ("again", "after_large")]
        rows.add_row(case["case"], *(spread(case[key], 0) if key in case else "–" for key in keys))
    out.print(rows)
    out.print(f"Medians and ranges of calls of some {POINTS} points, in turns.")


if __name__ == "__main__":
    main()
