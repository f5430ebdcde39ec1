"""What a call costs beyond its run: small nests called again and again in one process, or on ranks with distributed arrays.

python bench/calls/calls.py [--ranks N] [--rounds N] [--json PATH] [--quick]
"""

from __future__ import annotations

import ctypes
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import click
import numpy as np
from _contenders import UNLIMITED, has_numba
from _nests import PROBLEMS
from _ranks import run_worker
from _report import console, machine, say, show_machine, spread, summary, table, write_json

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.plain import plain_source
from lapwing.runtime.arrays.storage import attach
from lapwing.runtime.binding import native
from lapwing.runtime.workspace import Workspace

_CALLS = 500  # between two looks at the clock


@lw.nest
def relaxed(u, f, w, h):
    c = w / 4.0
    total = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            r = u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - h * f[i, j]
            u[i, j] = (1.0 - w) * u[i, j] + c * r
            total += u[i, j]
    return total


@dataclass(frozen=True)
class Case:
    """Calls of one nest that take turns: with each of the arguments in order, again and again."""

    title: str
    nest: lw.Nest
    arguments: tuple[dict[str, Any], ...]


def cases() -> list[Case]:
    gauss_seidel, alignment = PROBLEMS["gauss_seidel"], PROBLEMS["smith_waterman"]
    square = gauss_seidel.arguments((12, 12), 1)
    levels = tuple(gauss_seidel.arguments((2**k + 2, 2**k + 2), 2) for k in range(1, 7))
    u, f = square["u"].copy(), square["u"].copy()
    return [
        Case("Gauss–Seidel 12×12", gauss_seidel.nest, (square,)),
        Case("six sizes in turn, as in a V-cycle", gauss_seidel.nest, levels),
        Case("relaxation, sum returned", relaxed, ({"u": u, "f": f, "w": 1.5, "h": 0.1},)),
        Case(
            "another w in every call", relaxed, tuple({"u": u, "f": f, "w": 1 + 0.001 * k, "h": 0.1} for k in range(99))
        ),
        Case("Smith–Waterman 12×12", alignment.nest, (alignment.arguments((12, 12), 1),)),
    ]


@click.command()
@click.option(
    "--ranks", type=click.IntRange(min=1), default=1, show_default=True, help="More: arrays stay distributed."
)
@click.option("--rounds", type=click.IntRange(min=1), help="Of 500 calls, 15 unless given; on ranks of 50, 200.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Show in seconds that all works.")
def main(ranks: int, rounds: int | None, json_path: Path | None, quick: bool) -> None:
    """Time small calls, what of it is the run itself, and the same calls of the plain loop in C and of numba."""
    out, known = console(), machine()
    show_machine(out, known)
    if quick:
        out.print("Quick: sizes too small and rounds too few to say anything.")
    if ranks > 1:
        job = {"rounds": 2, "calls": 20, "runs": 3} if quick else {"rounds": rounds or 200, "calls": 50, "runs": 50}
        _on_ranks(ranks, job, json_path, out, known)
        return
    rounds, calls = (2, 20) if quick else (rounds or 15, _CALLS)
    found = []
    shown = table(
        "calls", "µs a call", "of it the run", "overhead", "plain C through ctypes", "numba", numbers=("µs a call",)
    )
    for case in cases():
        say(case.title)
        figures = _measured(case, rounds, calls)
        found.append({"case": case.title, "rounds": rounds, "calls": calls, "microseconds": figures})
        columns = ("call", "run", "overhead", "plain", "numba")
        shown.add_row(case.title, *(spread(summary(figures[name])) if figures.get(name) else "–" for name in columns))
    out.print(shown)
    write_json(json_path, {"machine": known, "cases": found})


def _on_ranks(ranks: int, job: dict[str, int], json_path: Path | None, out: Any, known: dict[str, Any]) -> None:
    found = run_worker(f"calls: {ranks} ranks", Path(__file__).with_name("_calls_worker.py"), job, ranks, None, 1800)
    columns = ("call", "run", "overhead")
    shown = table(f"calls on {ranks} ranks", "µs a call", "of it the run", "overhead", numbers=("µs a call",))
    for case in found:
        shown.add_row(case["case"], *(spread(summary(case["microseconds"][name]), 1) for name in columns))
    out.print(shown)
    write_json(json_path, {"machine": known, "cases": found})


def _measured(case: Case, rounds: int, calls: int) -> dict[str, list[float]]:
    """Microseconds a call, once a round; what is compared takes turns."""
    contenders = {"call": _mean_of(lambda a: case.nest(**a), case), "plain": _mean_of(*_plain(case))}
    if has_numba():
        contenders["numba"] = _mean_of(*_numba(case))
    figures: dict[str, list[float]] = {name: [] for name in ("call", "run", "overhead", "plain", "numba")}
    for mean in contenders.values():
        mean(len(case.arguments))
    for _ in range(rounds):
        for name, mean in contenders.items():
            figures[name].append(mean(calls))
        figures["run"].append(_run_microseconds(case, max(20, calls // 10)))
        figures["overhead"].append(figures["call"][-1] - figures["run"][-1])
    return figures


def _mean_of(call: Callable[[Any], Any], case: Case, arguments: list[Any] | None = None) -> Callable[[int], float]:
    given = arguments if arguments is not None else list(case.arguments)

    def mean(calls: int) -> float:
        turns = list(itertools.islice(itertools.cycle(given), calls))
        start = time.perf_counter()
        for one in turns:
            call(one)
        return (time.perf_counter() - start) / calls * 1e6

    return mean


def _run_microseconds(case: Case, calls: int) -> float:
    """What the runtime says it took, in the median of every signature's runs."""
    per_signature: dict[int, list[float]] = {}
    for position, arguments in itertools.islice(itertools.cycle(enumerate(case.arguments)), calls):
        outcome = run(case.nest, case.nest.arguments(**arguments))
        per_signature.setdefault(position, []).append(outcome.trace.ranks[0].times["total"])
    return statistics.mean(map(statistics.median, per_signature.values())) * 1e6


def _plain(case: Case) -> tuple[Callable[[Any], Any], Case, list[Any]]:
    """The plain loop in C, its native arguments made beforehand: the least a call from Python costs."""
    prepared = []
    for arguments in case.arguments:
        by_name = case.nest.arguments(**arguments)
        bound = case.nest.bind(by_name)
        library = native.build_plain(plain_source(bound), None)
        copies = {a.name: np.array(by_name[a.name]) for a in bound.arrays}
        places = {a.name: attach(a, copies[a.name]) for a in bound.arrays}
        workspace = Workspace(bound, library, places)
        prepared.append((library.lw_plain, ctypes.byref(workspace.tile), workspace))
    return lambda one: one[0](one[1], UNLIMITED), case, prepared


def _numba(case: Case) -> tuple[Callable[[Any], Any], Case, list[Any]]:
    import numba

    compiled = numba.njit(case.nest.python)
    copies = [{n: v.copy() if isinstance(v, np.ndarray) else v for n, v in a.items()} for a in case.arguments]
    return lambda one: compiled(**one), case, copies


if __name__ == "__main__":
    main()
