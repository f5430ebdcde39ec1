"""What every rank of bench/ranks/scaling.py runs: one nest, all engines and tile heights in turn, in one process.

    python _scaling_worker.py JOB RESULT                    alone
    mpiexec -n 2 python _scaling_worker.py JOB RESULT       on two ranks

JOB is a JSON object (scaling.Job); rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import PROBLEMS

import lapwing as lw
from lapwing.api.calls import run as api
from lapwing.api.check import Reference, differences, make_reference
from lapwing.errors import RunError
from lapwing.runtime.execute import Outcome
from lapwing.runtime.mpi import communicator
from lapwing.trace.exposure import exposed_seconds

Arguments = Mapping[str, Any]


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = communicator.world() if communicator.launched() else None
    rank, ranks = (comm.Get_rank(), comm.Get_size()) if comm else (0, 1)
    problem = PROBLEMS[job["nest"]]
    arguments = problem.arguments(tuple(job["shape"]), job["sweeps"])
    runs = variants(problem.nest, arguments, ranks, job)
    for run in (runs[0], runs[-1]):
        settle(problem.nest, run, arguments, comm, job)
    first_runs(problem.nest, arguments, runs, rank)
    for number in range(job["repeats"]):
        start = number % len(runs)
        for run in (*runs[start:], *runs[:start]):
            outcome = once(problem.nest, run, arguments)
            run["seconds"].append(outcome.seconds)
            run["exposed_seconds"].append(exposed_seconds(outcome.trace))
    if rank == 0:
        Path(sys.argv[2]).write_text(json.dumps(runs))


def variants(nest: lw.Nest, arguments: Arguments, ranks: int, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Every engine as Lapwing plans it, tile height 0, and with every tile height along the loop pipelined by rule: heights are
    wished for as a number of tiles."""
    plan = nest.plan(**arguments, ranks=ranks)
    low, high = plan.partition.block(0)[plan.mapping]  # none of the nests is pipelined over time
    heights = sorted({-(-(high - low) // min(tiles, high - low)) for tiles in job["tiles"]})
    fixed = {"grid": list(plan.grid), "pipelined": plan.mapping_loop}
    return [
        {"engine": engine, "tile": height, **fixed, "seconds": [], "exposed_seconds": []}
        for height in (0, *heights)
        for engine in job["engines"]
    ]


def settle(nest: lw.Nest, run: Mapping[str, Any], arguments: Arguments, comm: Any, job: dict[str, Any]) -> None:
    """Until inner forms have been compared, which takes runs of half a second in all: others like these find the fastest."""
    start, goes_on = time.perf_counter(), True
    while goes_on:
        once(nest, run, arguments)
        goes_on = time.perf_counter() - start < job["settling_seconds"]
        goes_on = goes_on if comm is None else comm.bcast(goes_on)


def first_runs(nest: lw.Nest, arguments: Arguments, runs: list[dict[str, Any]], rank: int) -> None:
    """Build, warm up, and hold the results against the plain loop. Raises RunError where they differ."""
    reference = None
    if rank == 0:
        reference = make_reference(nest.source, nest.bind(arguments), arguments, communicator.announcer(True))
    for run in runs:
        given = {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in arguments.items()}
        outcome = once(nest, run, given)
        if reference is not None:
            check(reference, run, given, outcome)


def check(reference: Reference, run: Mapping[str, Any], given: Arguments, outcome: Outcome) -> None:
    if wrong := differences(reference, given, outcome.results):
        raise RunError(f"{run['engine']}, tile {run['tile']}: differs from the plain loop: {'; '.join(wrong)}")


def once(nest: lw.Nest, run: Mapping[str, Any], arguments: Arguments) -> Outcome:
    return api.run(nest.using(engine=run["engine"], tile=run["tile"] or None), arguments)


if __name__ == "__main__":
    main()
