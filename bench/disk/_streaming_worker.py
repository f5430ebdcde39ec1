"""What every rank of bench/disk/streaming.py runs: one nest on one array on disk, once.

    python _streaming_worker.py JOB RESULT                  alone
    mpiexec -n 2 python _streaming_worker.py JOB RESULT     on two ranks

JOB is a JSON object: the array's path, sweeps, and what Nest.using takes. Rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _memory import memory

import lapwing as lw
from lapwing.api.calls import run as api
from lapwing.runtime.execute import Measure
from lapwing.runtime.mpi import communicator
from lapwing.trace.metrics import metrics


@lw.nest
def smooth(u, K):
    """Gauss-Seidel."""
    n, m = u.shape
    for k in range(K):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = communicator.world() if communicator.launched() else None
    smooth(np.zeros((64, 64)), 1)  # starts what is started once
    nest = smooth.using(**job["using"])
    array = lw.open(job["path"])
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    begin = time.perf_counter()
    outcome = api.run(nest, {"u": array, "K": job["sweeps"]}, measure=Measure(events=1000))
    called = time.perf_counter() - begin
    grown = memory("VmHWM") - before
    grown = max(comm.allgather(grown)) if comm else grown
    if comm is None or comm.Get_rank() == 0:
        found = metrics(outcome.trace)
        assert found.disk is not None
        assert outcome.plan.streaming is not None
        pipeline = outcome.plan.streaming.pipeline
        figures: dict[str, Any] = {
            "seconds": outcome.seconds, "called": called, "pipeline": pipeline and asdict(pipeline),
            "computing": found.compute_seconds.max, "exposed": found.disk.exposed_seconds, "busy": found.disk.busy_seconds,
            "bytes": found.disk.read_bytes + found.disk.written_bytes, "tile": outcome.plan.tile,
            "pass_sweeps": outcome.plan.streaming.pass_sweeps, "passes": outcome.plan.streaming.passes,
            "planned_memory": outcome.plan.streaming.memory, "memory": grown,
        }  # fmt: skip
        Path(sys.argv[2]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
