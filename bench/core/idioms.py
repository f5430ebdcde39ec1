"""One core: loops in idioms of numerical programs that are no kernels, the whole call, against numba on the same function.

    python bench/core/idioms.py [--nest NAME]... [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table.
"""

from __future__ import annotations

import argparse
import math
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

ROUNDS, QUICK_ROUNDS = 9, 2
EXTENT, QUICK_EXTENT = 500, 12
SETTLED_SECONDS = 1.5  # of calls before the first round: inner forms are compared
TURN_SECONDS = 0.02


@lw.nest
def decay(u, v, k):
    """A function of one index."""
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[i, j] * math.exp(-k[j]) + 0.5 * u[i - 1, j]


@lw.nest
def sphere(u, v, k):
    """A function of the index of the outer loop, in a variable."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            c = math.cos(k[i])
            v[i, j] = u[i, j] + 0.1 * ((u[i, j + 1] - 2 * u[i, j] + u[i, j - 1]) / (c * c) + u[i + 1, j] + u[i - 1, j])


@lw.nest
def attenuated(u, v, k):
    """The same in a sweep."""
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1]) * math.exp(-k[j])


@lw.nest
def recorded(u, v, k):
    """A state that is recorded step by step."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            k[j] = 0.9 * k[j] + u[i, j]
            v[i, j] = k[j]


@lw.nest
def votes(u, v, k):
    """A short loop under a condition that holds now and then."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if u[i, j] > 0.95:
                for t in range(90):
                    v[0, t] += k[t] * i


@lw.nest
def products(u, v, k):
    """Products of a matrix and a vector that is replaced meanwhile."""
    for i in range(u.shape[0]):
        total = 0.0
        for j in range(u.shape[1]):
            total += u[i, j] * k[j]
        k[i] = total / u.shape[0]


@lw.nest
def window(u, v, k):
    """Weights of a window."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            total = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    total += k[3 * di + dj + 4] * u[i + di, j + dj]
            v[i, j] = total


@lw.nest
def dilated(u, v, k):
    """The largest of a window."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            largest = u[i, j]
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    largest = max(largest, u[i + di, j + dj])
            v[i, j] = largest


@lw.nest
def squares(u, v, k):
    """Powers with the bits of Python's, of numbers of both signs."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = (u[i, j] - 0.5) ** 2


NESTS = {nest.name: nest for nest in (decay, sphere, attenuated, recorded, votes, products, window, dilated, squares)}


def main() -> None:
    options = parse_options()
    if not has_numba():
        raise SystemExit('idioms: numba is not installed: pip install "lapwing[bench]"')
    document: dict[str, Any] = {"benchmark": "idioms", "machine": machine(), "quick": options.quick, "nests": []}
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for name in options.nest or NESTS:
        say(f"idioms: {name}")
        document["nests"].append(measure(NESTS[name], rounds, options.quick))
        write_json(options.json, document)
    show(document)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Loops in idioms of numerical programs, against numba.")
    parser.add_argument("--nest", action="append", choices=list(NESTS), help="only this nest; can be repeated")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which both take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    return parser.parse_args()


def measure(nest: lw.Nest, rounds: int, quick: bool) -> dict[str, Any]:
    extent, random = QUICK_EXTENT if quick else EXTENT, np.random.default_rng(0)
    given = random.random((extent, extent)), np.zeros((extent, extent + 90)), random.random(max(extent, 90))
    arrays = given[0], given[1][:, : max(extent, 90)], given[2][: max(extent, 90)]
    contenders: dict[str, Callable[..., Any]] = {"lapwing": nest, "numba": jitted(nest.python)}
    begin = time.perf_counter()
    nest(*arrays)
    while not quick and time.perf_counter() - begin < SETTLED_SECONDS:
        nest(*arrays)
    contenders["numba"](*arrays)
    seconds: dict[str, list[float]] = {who: [] for who in contenders}
    for number in range(rounds):
        for who in list(contenders)[:: 1 if number % 2 else -1]:
            seconds[who].append(turn(contenders[who], arrays))
    pairs = zip(seconds["lapwing"], seconds["numba"], strict=True)
    return {
        "nest": nest.name,
        "what": nest.python.__doc__,
        "points": extent * extent,
        "ns": {who: summary([1e9 * s / extent**2 for s in found]) for who, found in seconds.items()},
        "over_numba": summary([one / other for one, other in pairs]),
    }


def turn(function: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> float:
    """The mean of calls one after the other for some time: seconds of this thread's own."""
    calls, begin = 0, time.thread_time()
    while (spent := time.thread_time() - begin) < TURN_SECONDS or not calls:
        function(*arrays)
        calls += 1
    return spent / calls


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    columns = ("whole call", "numba", "Lapwing / numba")
    rows = table("", "", *columns, numbers=columns)
    for found in document["nests"]:
        ns = found["ns"]
        rows.add_row(
            found["nest"], found["what"], spread(ns["lapwing"]), f"{ns['numba']['median']:.2f}",
            spread(found["over_numba"]),
        )  # fmt: skip
    out.print(rows)
    out.print("Nanoseconds a point, medians and ranges; ratios are of times in the same round.")


if __name__ == "__main__":
    main()
