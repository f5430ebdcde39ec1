"""What every rank of bench/ranks/many_sweeps.py runs: one nest on one rank, while the others idle, and on all of them, in turns.

    mpiexec -n 2 python _many_sweeps_worker.py JOB RESULT

JOB is a JSON object (many_sweeps.Job); rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import SWEPT

from lapwing.api.calls.run import run
from lapwing.api.check import differences, make_reference
from lapwing.errors import RunError
from lapwing.planner.plan import Plan
from lapwing.runtime.mpi import communicator


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = communicator.world()
    nest = SWEPT[job["nest"]].nest
    arguments = SWEPT[job["nest"]].arguments(tuple(job["shape"]), job["sweeps"])
    plans = contenders(nest, arguments, comm.Get_size(), job)
    check(nest, arguments, plans, comm.Get_rank())
    seconds: dict[str, list[float]] = {name: [] for name in plans}
    lost: dict[str, list[float]] = {name: [] for name in plans}
    for number in range(job["repeats"]):
        names = list(plans)
        start = number % len(names)
        for name in (*names[start:], *names[:start]):
            outcome = run(nest, copied(arguments), plan=plans[name])
            seconds[name].append(outcome.seconds)
            lost[name].append(max(rank.times["cpu_lost"] for rank in outcome.trace.ranks))
    if comm.Get_rank() == 0:
        found = {
            name: {
                "joined": plan.joined,
                "tile": plan.tile,
                "engine": plan.engine,
                "seconds": seconds[name],
                "cpu_lost": lost[name],
            }
            for name, plan in plans.items()
        }
        Path(sys.argv[2]).write_text(json.dumps(found))


def contenders(nest: Any, arguments: dict[str, Any], ranks: int, job: dict[str, Any]) -> dict[str, Plan]:
    """One rank as it is planned, and all of them with every engine and tile height."""
    plans = {"one rank": replace(nest.plan(**arguments, ranks=1), idle=ranks - 1)}
    for engine in job["engines"]:
        for tile in job["tiles"]:
            plans[f"{engine}, tiles of {tile}"] = nest.using(engine=engine, tile=tile).plan(**arguments, ranks=ranks)
    return plans


def check(nest: Any, arguments: dict[str, Any], plans: dict[str, Plan], rank: int) -> None:
    """Build, warm up, and hold the results against the plain loop. Raises RunError where they differ."""
    reference = None
    if rank == 0:
        reference = make_reference(nest.source, nest.bind(arguments), arguments, communicator.announcer(True))
    for name, plan in plans.items():
        given = copied(arguments)
        outcome = run(nest, given, plan=plan)
        if reference is not None and (wrong := differences(reference, given, outcome.results)):
            raise RunError(f"{name}: differs from the plain loop: {'; '.join(wrong)}")


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in arguments.items()}


if __name__ == "__main__":
    main()
