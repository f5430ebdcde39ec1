"""What mpiexec starts on every rank for `lapwing calibrate`: ``python -m lapwing.session.calibrate_worker TOKEN JOB``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from lapwing.calibrate.session import measure_network, measure_node
from lapwing.launch.job import Emit, Report
from lapwing.launch.loading import problem_arguments
from lapwing.machine.document import links_document, to_document
from lapwing.planner.choose import Wishes
from lapwing.runtime.mpi.communicator import agree
from lapwing.session.worker import load_on_ranks, main

MODULE = "lapwing.session.calibrate_worker"


@dataclass(frozen=True)
class CalibrateJob:
    """What the ranks of one launch measure: a node, or the network between two; ``target`` and ``settings`` name a nest of the
    user's to measure as well."""

    network: bool
    seconds: float
    target: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> CalibrateJob:
        job = CalibrateJob(**json.loads(text))
        return replace(job, settings=tuple((key, value) for key, value in job.settings))


def work(text: str, comm: Any, emit: Emit) -> Report | None:
    """Measure what a job says. Collective; None but on the first rank. Raises LapwingError, on every rank the same."""
    job = CalibrateJob.from_json(text)

    def progress(what: str, done: float) -> None:
        if comm.Get_rank() == 0:
            emit("progress", [f"calibrating: {what}", done])

    if job.network:
        links = measure_network(job.seconds, comm, progress)
        return None if links is None else Report({"links": links_document({"network": links})}, ())
    nest, arguments = None, None
    if job.target is not None:
        nest = load_on_ranks(job.target, comm, emit)
        arguments = agree(comm, partial(problem_arguments, nest, job.settings))
    wishes = Wishes() if nest is None else nest.wishes()
    figures = measure_node(nest, arguments, wishes, job.seconds, comm, progress)
    if figures is None:
        return None
    return Report({"machine": to_document(figures.machine), "warnings": list(figures.warnings)}, ())


if __name__ == "__main__":
    main(work)
