"""One core: nanoseconds a point of alignments of which only the score is wanted, against gcc's plain loop and against parasail.

    python bench/core/alignment.py [--rounds R] [--quick] [--json PATH]

bench/README.md says how to read the table. parasail takes part where it is installed (`pip install parasail`).
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw
from lapwing.codegen.plain import plain_source
from lapwing.runtime.alone import PreparedRun
from lapwing.runtime.arrays.storage import attach
from lapwing.runtime.binding import native
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.inner import legal_forms

SIZES, QUICK_SIZES = (700, 3000), (40,)
ROUNDS, QUICK_ROUNDS = 15, 2
GCC, STORED, SCORE = "the plain loop in C", "all stored", "score alone"
UNLIMITED = 2**62
TITLES = {"linear": "linear gaps", "affine": "affine gaps", "looked_up": "linear gaps, scores from a table"}


@lw.nest
def linear(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def affine(h, e, f, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])
            best = max(best, h[i, j])
    return best


@lw.nest
def looked_up(h, a, b, score):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + score[a[i - 1], b[j - 1]], h[i - 1, j] - 4, h[i, j - 1] - 4)
            best = max(best, h[i, j])
    return best


# What opening a gap and going on with it cost, a match and a mismatch.
COSTS = {"linear": (1, 1, 2, -1), "affine": (4, 1, 3, -2), "looked_up": (4, 4, 5, -2)}
LETTERS = {"linear": "ACGT", "affine": "ACGT", "looked_up": "ARNDCQEGHILKMFPSTWYVBZX*"}


def arguments(nest: lw.Nest, size: int, make: Callable[..., Any]) -> dict[str, Any]:
    random, made = np.random.default_rng(1), {}
    letters, (_, _, match, mismatch) = len(LETTERS[nest.name]), COSTS[nest.name]
    for name in nest.loops.parameters:
        if name in ("a", "b"):
            made[name] = random.integers(0, letters, size - 1).astype(np.int32)
        elif name == "score":
            made[name] = np.where(np.eye(letters, dtype=bool), match, mismatch).astype(np.int32)
        else:
            made[name] = make((size, size), np.int32)
            made[name][...] = 0 if name == "h" else -9
    return made


def in_c(nest: lw.Nest, size: int) -> Callable[[], int]:
    given = arguments(nest, size, np.zeros)
    bound = nest.bind(given)
    library = native.build_plain(plain_source(bound), None, nest.name)
    workspace = Workspace(bound, library, {a.name: attach(a, given[a.name]) for a in bound.arrays})

    def run() -> int:
        workspace.reset()
        library.lw_plain(ctypes.byref(workspace.tile), ctypes.c_int64(UNLIMITED))
        return int(workspace.words[0])

    return run


def in_buffers(nest: lw.Nest, size: int, make: Callable[..., Any]) -> Callable[[], int]:
    given = arguments(nest, size, make)
    bound, plan = nest.bind(given), nest.plan(**given)
    form = next(form for form in legal_forms(bound, nest.dependences) if form.transposed)
    arrays = [given[array.name] for array in bound.arrays]
    prepared = PreparedRun(bound, replace(plan, inner=replace(plan.inner, form=form)), arrays, None)
    addresses = [values.ctypes.data for values in arrays]
    return lambda: int(prepared.run(arrays, addresses)["best"])


def of_parasail(nest: lw.Nest, size: int) -> dict[str, Callable[[], int]]:
    if importlib.util.find_spec("parasail") is None:
        return {}
    import parasail

    given = arguments(nest, size, np.zeros)
    letters = LETTERS[nest.name]
    one, other = ("".join(letters[k] for k in given[name]) for name in "ab")
    opening, extending, match, mismatch = COSTS[nest.name]
    matrix = parasail.matrix_create(letters, match, mismatch)

    def call(function: Any) -> Callable[[], int]:
        return lambda: int(function(one, other, opening, extending, matrix).score)

    names = ("sw_striped_32", "sw_scan_32", "sw_diag_32", "sw_striped_16", "sw_scan_16")
    return {f"parasail, {name}": call(getattr(parasail, name)) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description="Nanoseconds a point of alignments whose score alone is wanted.")
    parser.add_argument("--rounds", type=int, help=f"timed rounds, in which all take turns (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works, not how fast")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure there")
    options = parser.parse_args()
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    document: dict[str, Any] = {"benchmark": "alignment", "machine": machine(), "quick": options.quick, "cases": []}
    for nest in (linear, affine, looked_up):
        for size in QUICK_SIZES if options.quick else SIZES:
            say(f"alignment: {nest.name} {size}")
            document["cases"].append(measure(nest, size, rounds))
    show(document)
    write_json(options.json, document)


def measure(nest: lw.Nest, size: int, rounds: int) -> dict[str, Any]:
    runs = {
        GCC: in_c(nest, size),
        STORED: in_buffers(nest, size, np.zeros),
        SCORE: in_buffers(nest, size, lw.scratch),
        **of_parasail(nest, size),
    }
    scores = {name: run() for name, run in runs.items()}
    if scores[STORED] != scores[GCC] or scores[SCORE] != scores[GCC]:
        raise SystemExit(f"{nest.name} {size}: scores differ: {scores}")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.thread_time()
            run()
            times[name].append(time.thread_time() - begin)
    points = (size - 1) ** 2
    figures = {
        name: {
            "score": scores[name],
            "ns": summary([1e9 * s / points for s in own]),
            "gcc_over": summary([g / s for s, g in zip(own, times[GCC], strict=True)]),
        }
        for name, own in times.items()
    }
    return {"nest": nest.name, "size": size, "rounds": rounds, "figures": figures}


def show(document: dict[str, Any]) -> None:
    out = console()
    show_machine(out, document["machine"])
    if document["quick"]:
        out.print("Quick: sizes too small to say anything about speed.")
    for case in document["cases"]:
        columns = ("ns a point", "plain loop / this", "score")
        rows = table(f"{TITLES[case['nest']]}, {case['size']}", *columns, numbers=columns)
        right = case["figures"][GCC]["score"]
        for name, figure in case["figures"].items():
            score = str(figure["score"]) + ("" if figure["score"] == right else f", not {right}")
            rows.add_row(name, spread(figure["ns"]), spread(figure["gcc_over"]), score)
        out.print(rows)


if __name__ == "__main__":
    main()
