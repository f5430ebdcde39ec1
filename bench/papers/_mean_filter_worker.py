"""A run of examples/mean_filter.py out of core, on every rank of an MPI run or alone: `_mean_filter_worker.py JOB`.

JOB: path, sweeps, memory, tile, ring, pass_sweeps (None: as planned), as JSON. The first rank prints what the run took.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import _paths  # noqa: F401
from mean_filter import smooth

import lapwing as lw
from lapwing.api.calls.decide import Decider
from lapwing.api.calls.out_of_core import out_of_core_plan, stored_arrays
from lapwing.api.calls.run import run
from lapwing.planner.plan import Plan
from lapwing.runtime.execute import Measure
from lapwing.runtime.mpi import communicator
from lapwing.runtime.tuning import place_of
from lapwing.trace.events import ACTIVITIES

_EVENTS = 50_000  # a rank


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = communicator.world() if communicator.launched() else None
    choices = {name: job[name] for name in ("memory", "tile", "ring", "pass_sweeps")}
    nest, arguments = smooth.using(**choices), {"u": lw.open(job["path"]), "sweeps": job["sweeps"]}
    places = (1, 1, 1) if comm is None else (comm.Get_size(), comm.Get_size(), place_of(comm).ranks)
    plan = planned(nest, arguments, places) if comm is None or comm.Get_rank() == 0 else None
    if comm is not None:
        comm.Barrier()
    begin = time.perf_counter()
    outcome = run(nest, arguments, measure=Measure(events=_EVENTS), plan=plan)
    if comm is not None:
        comm.Barrier()
    seconds = time.perf_counter() - begin
    if comm is None or comm.Get_rank() == 0:
        streaming = outcome.plan.streaming
        assert streaming is not None
        found = {
            "seconds": seconds,
            "run": outcome.seconds,
            "loaded": until_loaded(outcome.trace.ranks),
            "tile": outcome.plan.tile,
            "pass_sweeps": streaming.pass_sweeps,
            "memory": streaming.memory,
        }
        print(json.dumps({"found": found}), flush=True)


def planned(nest: lw.Nest, arguments: dict[str, Any], places: tuple[int, int, int]) -> Plan:
    """As `lapwing run` plans, before the clock starts: tiles are measured for it."""
    bound = nest.bind(arguments)
    return out_of_core_plan(nest, Decider.here(bound, nest.dependences, *places, arguments), stored_arrays(arguments))


def until_loaded(ranks: Any) -> float | None:
    """Seconds until the last rank has written its first slab: P3's activities of synchronisation and load."""
    writes = [rank.events["end"][rank.events["activity"] == ACTIVITIES.index("write")] for rank in ranks]
    if not all(len(ends) for ends in writes):
        return None
    return float(max(ends.min() for ends in writes) - min(rank.begin for rank in ranks))


if __name__ == "__main__":
    main()
