"""What every rank of bench/overlap/overlap.py runs: one nest of one size, all contenders in turn, in one process.

    mpiexec -n 2 python _overlap_worker.py JOB RESULT

JOB is a JSON object (_pipelines.Job); rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _pipelines import NESTS, Contender, Job
from _report import say

import lapwing as lw
from lapwing.api.calls import run as api
from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.codegen.tile import tile_source
from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import ArrayType
from lapwing.planner.choose import Wishes, make_plan
from lapwing.runtime.arrays.layout import Layout, owner_layout
from lapwing.runtime.arrays.storage import Box, LocalArray, allocate, needed_box
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import rank_program
from lapwing.runtime.execute import Measure, runner_of
from lapwing.runtime.mpi import communicator
from lapwing.runtime.runner import Runner
from lapwing.runtime.tuning import Tuning
from lapwing.tiling.faces import Faces, faces_of
from lapwing.trace.exposure import exposed_seconds

PEER = Path(__file__).with_name("peer_pipeline.c")

Run = dict[str, Any]


def main() -> None:
    job = Job.from_json(json.loads(sys.argv[1]))
    comm = communicator.world()
    site = Site(job, comm)
    site.compare(job.contenders)
    runs: dict[str, list[Run]] = {c.name: [] for c in job.contenders}
    for number in range(job.repeat):
        if comm.Get_rank() == 0:
            say(f"overlap:   round {number + 1} of {job.repeat}")
        start = number % len(job.contenders)
        for contender in (*job.contenders[start:], *job.contenders[:start]):
            runs[contender.name].append(site.run(contender))
    if comm.Get_rank() == 0:
        Path(sys.argv[2]).write_text(json.dumps({"plan": site.plan_json(), "runs": runs}))


class LocalStart(lw.DistributedArray):
    """An array whose parts the ranks make themselves, so that nothing has to cross a slow wire before the first run."""

    def __init__(self, dtype: str, shape: tuple[int, ...]) -> None:
        rank = communicator.world().Get_rank()
        super().__init__(np.broadcast_to(np.zeros((), dtype), shape) if rank == 0 else None)
        self._whole = None

    def localise(self, needed: Sequence[Box], layout: Layout, exported: bool = False) -> LocalArray:
        if self._layout is None:
            rank = communicator.world().Get_rank()
            array = ArrayType("", self.dtype.name, self.shape)
            pairs = zip(needed[rank], layout.owned[rank], strict=True)
            box = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
            self._local, self._layout = allocate(array, box, exported), layout
            self.refill()
        return super().localise(needed, layout, exported)

    def refill(self) -> None:
        """Give every element its first value: far from uniform, and quickly made."""
        assert self._local is not None
        row = np.random.default_rng(0).random(self._local.values.shape[-1])
        for number, plane in enumerate(self._local.values, self._local.box[0][0]):
            plane[...] = row + 0.01 * (number % 97)

    def digest(self) -> str:
        """Of the elements this rank owns."""
        assert self._local is not None
        assert self._layout is not None
        made = hashlib.sha256()
        for plane in self._local.view(self._layout.owned[communicator.world().Get_rank()]):
            made.update(np.ascontiguousarray(plane).data)
        return made.hexdigest()


class Site:
    """A nest with its arrays. One-sided runs have an array of their own, which other ranks can map."""

    def __init__(self, job: Job, comm: Any) -> None:
        self.case, self.comm, self.rank = job.case, comm, comm.Get_rank()
        self.pipelined = NESTS[job.case.nest]
        self.arrays: dict[bool, LocalStart] = {}
        self.announce = communicator.announcer(self.rank == 0)

    def array(self, contender: Contender) -> LocalStart:
        exported = contender.engine == "onesided"
        if exported not in self.arrays:
            self.arrays[exported] = LocalStart(self.pipelined.dtype, self.case.shape)
        return self.arrays[exported]

    def compare(self, contenders: Sequence[Contender]) -> None:
        """Build, warm up, and compare the bits of all that compute with all messages. Raises RunError where they differ."""
        first: tuple[str, str] | None = None
        for contender in contenders:
            array = self.array(contender)
            if array.layout is not None:
                array.refill()
            self.run(contender)
            if contender.kind not in ("engine", "peer"):
                continue
            digests = "".join(self.comm.allgather(array.digest()))
            first = first or (contender.name, digests)
            if digests != first[1]:
                raise RunError(f"{self.case}: {contender.name} differs from {first[0]}")

    def run(self, contender: Contender) -> Run:
        """Seconds of the slowest rank from a barrier on, and where each rank's went."""
        if contender.kind != "engine":
            return self._run_natively(contender)
        tuning = Tuning(_helper_cpu(contender), contender.split_bytes, contender.slice_seconds)
        nest = self.pipelined.nest.using(
            engine=contender.engine, tile=self.case.tile, grid=self.case.grid, tuning=tuning
        )
        arguments = self.pipelined.arguments(self.array(contender), self.case.sweeps)
        outcome = api.run(nest, arguments, measure=Measure(events=contender.events))
        exposed = exposed_seconds(outcome.trace)
        return {
            "seconds": outcome.seconds,
            "ranks": [{**rank.times, "exposed": exposed} for rank in outcome.trace.ranks],
        }

    def _run_natively(self, contender: Contender) -> Run:
        runner = self._runner(alone=contender.kind == "compute")
        options = native.Options(
            engine=native.ENGINE_CODES[contender.engine],
            comm=self.comm.py2f(),
            split_bytes=contender.split_bytes,
            helper_cpu=-1,
            spin=1,
            slice_seconds=contender.slice_seconds,
        )
        runtime = peer_runtime(self.announce) if contender.kind == "peer" else native.mpi_runtime(self.announce)
        options.dry = contender.kind == "wire"
        self.comm.Barrier()
        start = time.perf_counter()
        trace = runner.run(runtime, options, None, 0)
        seconds = max(self.comm.allgather(time.perf_counter() - start))
        return {"seconds": seconds, "ranks": self.comm.allgather(trace.times)}

    @cache  # noqa: B019  (a site lives as long as its process)
    def _prepared(self) -> tuple[Any, Any, ctypes.CDLL]:
        array = self.array(Contender("plain"))
        bound = self.pipelined.nest.bind(self.pipelined.arguments(array, self.case.sweeps))
        wishes = Wishes("overlap", self.case.tile, self.case.grid)
        plan = make_plan(bound, self.pipelined.nest.dependences, self.comm.Get_size(), wishes)
        library = native.build_tile(tile_source(bound, faces_of(bound), plan.inner.form), self.announce)
        return bound, plan, library

    @cache  # noqa: B019
    def _runner(self, alone: bool) -> Runner:
        """This rank's share, without any message if it is to run alone."""
        bound, plan, library = self._prepared()
        name = self.pipelined.array
        boxes = [needed_box(bound, name, plan.partition.block(r)) for r in range(plan.ranks)]
        local = self.array(Contender("plain")).localise(boxes, owner_layout(bound, name, plan.partition, plan.ranks))
        runner = runner_of(bound, plan, self.rank, library, {name: replace(local, array=bound.array(name))})
        if alone:
            faces = Faces(bound, plan.partition, plan.mapping, plan.tile, plan.buffers)
            runner.program = rank_program(faces, self.rank, 1)
        return runner

    def plan_json(self) -> dict[str, Any]:
        plan = self._prepared()[1]
        return {"mapping": plan.mapping_loop, "steps": plan.steps, "message_bytes": plan.message_bytes}


def _helper_cpu(contender: Contender) -> Any:
    known = contender.helper_cpu in ("auto", "none")
    return contender.helper_cpu if known else tuple(map(int, contender.helper_cpu.split(",")))


@cache
def peer_runtime(announce: native.Announce) -> ctypes.CDLL:
    """peer_pipeline.c, built by the mpicc beside the mpicxx that builds Lapwing's runtime."""
    mpicxx = find_mpi().mpicxx
    mpicc = replace(mpicxx, command=(str(Path(mpicxx.command[0]).with_name("mpicc")), *mpicxx.command[1:]))
    header = native.SOURCES / "lapwing.h"
    path = build_shared_library(
        name="bench-peer",
        sources={PEER.name: PEER.read_text(), header.name: header.read_text()},
        main=[PEER.name],
        compiler=mpicc,
        flags=("-std=c11", "-O2"),
        announce=announce,
    )
    library = ctypes.CDLL(str(path))
    library.lw_run.argtypes = native.mpi_runtime(announce).lw_run.argtypes
    library.lw_failure.restype = ctypes.c_char_p
    return library


if __name__ == "__main__":
    main()
