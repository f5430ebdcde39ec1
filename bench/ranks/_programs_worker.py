"""What every rank of bench/ranks/programs.py runs in the lab: a program of one size with two engines in turn.

    mpiexec -n 2 python _programs_worker.py JOB RESULT

JOB is a JSON object: program, rows, columns, steps, tile (0: as planned), repeat. Rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _programs import NESTS, arguments
from mpi4py import MPI

import lapwing as lw
from lapwing.trace.metrics import metrics

ENGINES = ("overlap", "blocking")


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = MPI.COMM_WORLD
    nest = NESTS[job["program"]].using(tile=job["tile"] or None)
    plain = arguments(job["program"], job["rows"], job["columns"], job["steps"])
    given = {n: lw.DistributedArray(a) if isinstance(a, np.ndarray) and a.ndim > 1 else a for n, a in plain.items()}
    found: dict[str, list[dict[str, Any]]] = {engine: [] for engine in ENGINES}
    for number in range(-1, job["repeat"]):
        for engine in ENGINES if number % 2 else ENGINES[::-1]:
            measured = measure(nest.using(engine=engine), given, comm)
            if number >= 0:
                found[engine].append(measured)
    if comm.Get_rank() == 0:
        Path(sys.argv[2]).write_text(json.dumps(found))


def measure(nest: lw.Nest, given: dict[str, Any], comm: Any) -> dict[str, Any]:
    """A call as it is, then one that is traced."""
    comm.Barrier()
    start = time.perf_counter()
    nest(**given)
    seconds = comm.allreduce(time.perf_counter() - start, MPI.MAX)
    outcome = nest.run(**given)
    if comm.Get_rank() > 0:
        return {}
    figures = outcome.figures if isinstance(outcome, lw.ProgramOutcome) else metrics(outcome.trace)
    return {
        "seconds": seconds,
        "traced": outcome.seconds,
        "compute": figures.compute_seconds.max,
        "hidden": figures.hidden,
        "transfer": figures.transfer_seconds,
        "exposed": figures.exposed_seconds,
    }


if __name__ == "__main__":
    main()
