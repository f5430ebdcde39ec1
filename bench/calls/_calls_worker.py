"""One rank of bench/calls/calls.py --ranks: small nests called again and again on arrays that stay distributed.

python _calls_worker.py JOB RESULT
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw
from lapwing.runtime.mpi import communicator

_ROWS = 34
_STEPS = 50  # of a program's time loop


@lw.nest
def smoothed(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def slanted(u):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.2 * (u[i - 1, j] + u[i, j - 1] + u[i - 1, j + 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def ahead(u):
    for i in range(2, u.shape[0] - 3):
        for j in range(2, u.shape[1] - 3):
            u[i, j] = 0.5 * (u[i, j] + u[i - 1, j])
            u[i + 2, j + 1] = 0.5 * u[i, j - 1]


@lw.nest
def largest(u, v, w):
    most = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (1.0 - w) * u[i, j] + w * (u[i - 1, j] + u[i, j - 1]) * v[i + 1, j]
            most = max(most, u[i, j])
    return most


@lw.nest
def until(u, v, steps):
    k = 0
    change = 1.0
    while k < steps and change >= 0.0:
        change = 0.0
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                change = max(change, abs(v[i, j] - u[i, j]))
        u, v = v, u
        k += 1
    return change


@dataclass(frozen=True)
class Case:
    """``call`` makes ``calls`` calls; ``of_run``: one of the same, which tells its run's seconds."""

    title: str
    call: Callable[[], Any]
    of_run: Callable[[], float]
    calls: int = 1


def cases() -> list[Case]:
    start = np.random.default_rng(1).random((_ROWS, _ROWS))

    def made() -> lw.DistributedArray:
        return lw.from_function(lambda i, j: start[i, j], start.shape)

    u, v = made(), made()
    found = [
        Case(title, lambda nest=nest, u=u: nest(u), lambda nest=nest, u=u: _run_seconds(nest, u))
        for title, nest, u in (
            (f"Gauss–Seidel {_ROWS}×{_ROWS}", smoothed, made()),
            ("nine points, skewed", slanted, made()),
            ("several write offsets", ahead, made()),
        )
    ]
    found.append(Case("two arrays, maximum", lambda: largest(u, v, 0.3), lambda: _run_seconds(largest, u, v, 0.3)))
    ((region,), (a, b), (p, q)) = until.regions, (made(), made()), (start.copy(), start.copy())
    for title, one, other in (("a step of a program", a, b), ("the same, NumPy arrays", p, q)):
        call = lambda one=one, other=other: until(one, other, _STEPS)  # noqa: E731
        found.append(Case(title, call, lambda: _run_seconds(region, *_of_region(region, a, b)), _STEPS))
    return found


def _of_region(region: Any, u: Any, v: Any) -> list[Any]:
    arrays = {"u": u, "v": v}
    return [arrays.get(name, 0.0) for name in region.loops.parameters]


def _run_seconds(nest: Any, *arguments: Any) -> float:
    return float(max(rank.times["total"] for rank in nest.run(*arguments).trace.ranks))


def main() -> None:
    job, result = json.loads(sys.argv[1]), Path(sys.argv[2])
    comm = communicator.world()
    found = []
    for case in cases():
        case.call(), case.call()
        rounds, each = job["rounds"], max(1, job["calls"] // case.calls)
        seconds = [_round(case, each, comm) for _ in range(rounds)]
        runs = sorted(case.of_run() for _ in range(job["runs"]))
        figures = {
            "call": [1e6 * s for s in seconds],
            "run": [1e6 * s for s in runs],
            "overhead": [1e6 * (s - runs[0]) for s in seconds],
        }
        found.append({"case": case.title, "rounds": rounds, "calls": each * case.calls, "microseconds": figures})
    if comm.Get_rank() == 0:
        result.write_text(json.dumps(found))


def _round(case: Case, calls: int, comm: Any) -> float:
    """Seconds a call."""
    comm.Barrier()
    start = time.perf_counter()
    for _ in range(calls):
        case.call()
    return (time.perf_counter() - start) / (calls * case.calls)


if __name__ == "__main__":
    main()
