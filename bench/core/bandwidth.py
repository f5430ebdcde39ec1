"""Single sweeps over arrays that only memory holds, beside a copy of such an array.

    python bench/core/bandwidth.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import advection3d, gauss_seidel, right_hand_side
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw

ROUNDS, QUICK_ROUNDS = 9, 2
POINTS, QUICK_POINTS = 36_000_000, 40_000
WARMING = 2  # calls before the first round: forms are compared, memory is touched
NUMBER = 8  # bytes


@lw.nest
def add_product(x, y, a):
    for i in range(x.shape[0]):
        y[i] = y[i] + a * x[i]


@lw.nest
def jacobi(u, v):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def heat3d(u, v):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                around = (
                    u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
                )
                v[i, j, k] = u[i, j, k] + 0.1 * (around - 6.0 * u[i, j, k])


@lw.nest
def leap_frog(p, u, c):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            p[i, j] = (
                2.0 * u[i, j] - p[i, j] + c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
            )


@lw.nest
def running_sums(x, y):
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j]


@dataclass(frozen=True)
class Case:
    """A nest of arrays of one size, of ``dims`` dimensions, and what else it takes. ``moves``: how many numbers go through memory
    for a point: those read, those written, and those that are fetched only because they are written."""

    title: str
    nest: lw.Nest
    arrays: int
    dims: int
    others: tuple[float, ...]
    moves: int


CASES = {
    "add_product": Case("y + a x", add_product, 2, 1, (0.3,), 3),
    "jacobi": Case("Jacobi, 2-D", jacobi, 2, 2, (), 3),
    "heat3d": Case("heat, 3-D", heat3d, 2, 3, (), 3),
    "leap_frog": Case("leap-frog, 2-D", leap_frog, 2, 2, (0.1,), 3),
    "running_sums": Case("running sums along rows", running_sums, 2, 2, (), 3),
    "gauss_seidel": Case("Gauss–Seidel, 2-D", gauss_seidel, 1, 2, (1,), 2),
    "right_hand_side": Case("Gauss–Seidel with a right-hand side", right_hand_side, 2, 2, (1,), 3),
    "advection3d": Case("advection, 3-D", advection3d, 1, 3, (1, 0.25, 0.2, 0.15), 2),
}
COPY_MOVES = 2  # NumPy's copy stores past the caches


def main() -> None:
    options = parse_options()
    document: dict[str, Any] = {"benchmark": "bandwidth", "machine": machine(), "quick": options.quick, "cases": []}
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for name in options.nest or CASES:
        say(f"bandwidth: {CASES[name].title}")
        document["cases"].append(measure(CASES[name], rounds, QUICK_POINTS if options.quick else POINTS))
        write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Single sweeps over arrays in memory, beside a copy.")
    parser.add_argument("--nest", action="append", choices=list(CASES), help="only this nest; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"of every contender (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    return parser.parse_args()


def measure(case: Case, rounds: int, points: int) -> dict[str, Any]:
    extent = round(points ** (1 / case.dims))
    random = np.random.default_rng(0)
    arrays = [random.random((extent,) * case.dims) for _ in range(case.arrays)]
    source, target = random.random(arrays[0].size), np.empty(arrays[0].size)
    contenders: dict[str, Callable[[], Any]] = {
        "copy": lambda: np.copyto(target, source),
        "whole_call": lambda: case.nest(*arrays, *case.others),
    }
    if (compiled := _numba(case.nest)) is not None:
        contenders["numba"] = lambda: compiled(*arrays, *case.others)
    for call in contenders.values():
        for _ in range(WARMING):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            begin = time.thread_time()
            call()
            seconds[name].append(time.thread_time() - begin)
    rate = COPY_MOVES / case.moves  # of a copy's time, what the nest's numbers would take
    reached = [c / rate / w for c, w in zip(seconds["copy"], seconds["whole_call"], strict=True)]
    return {
        "case": case.title,
        "points": arrays[0].size,
        "moves": case.moves,
        "ns": {name: summary([1e9 * s / arrays[0].size for s in found]) for name, found in seconds.items()},
        "gigabytes_per_second": {
            "copy": statistics.median(COPY_MOVES * NUMBER * source.size / s / 1e9 for s in seconds["copy"]),
            "whole_call": statistics.median(case.moves * NUMBER * source.size / s / 1e9 for s in seconds["whole_call"]),
        },
        "reached": summary(reached),
    }


def _numba(nest: lw.Nest) -> Callable[..., Any] | None:
    try:
        import numba
    except ImportError:
        return None
    compiled: Callable[..., Any] = numba.njit(nest.python)
    return compiled


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("copy", "whole call", "numba", "bytes", "GB/s", "of a copy's")
    rows = table("", *columns, numbers=columns)
    for case in document["cases"]:
        ns, speed = case["ns"], case["gigabytes_per_second"]["whole_call"]
        rows.add_row(
            case["case"], f"{ns['copy']['median']:.2f}", spread(ns["whole_call"]),
            f"{ns['numba']['median']:.2f}" if "numba" in ns else "–", str(NUMBER * case["moves"]), f"{speed:.1f}",
            spread(case["reached"]),
        )  # fmt: skip
    out.print(rows)
    out.print("Nanoseconds a point, medians and ranges; of a copy's: bytes a second, in the same round.")


if __name__ == "__main__":
    main()
