"""What every rank of bench/ranks/planning.py runs: the planned run of one nest and every other way to run it, in turns.

    python _planning_worker.py JOB RESULT                    alone
    mpiexec -n 2 python _planning_worker.py JOB RESULT       on two ranks

JOB is a JSON object (planning.Job); rank 0 writes the JSON file RESULT.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
import numpy as np
from _nests import ADVECTION3D, PROBLEMS
from _report import say

from lapwing.api.calls.decide import Decider
from lapwing.codegen.tile import tile_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.cuts import Cut
from lapwing.planner.plan import SLICE_SECONDS, Plan
from lapwing.runtime.arrays.storage import LocalArray, allocate, needed_box
from lapwing.runtime.binding import native
from lapwing.runtime.execute import runner_of
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.patience import patience_seconds
from lapwing.runtime.neighbours import join_neighbours
from lapwing.runtime.tuning import may_spin, place_of
from lapwing.tiling.faces import faces_of

Variant = dict[str, Any]


def main() -> None:
    job = json.loads(sys.argv[1])
    comm = communicator.world() if communicator.launched() else None
    site = Site(job, comm)
    plan, seconds, others = site.shared(site.decided)
    variants = [_chosen(plan), *others]
    runs = [site.prepared(variant) for variant in variants]
    for number in range(job["rounds"] + 1):
        site.announce_round(number, job["rounds"])
        start = number % len(runs)
        for position in (*range(start, len(runs)), *range(start)):
            took = runs[position]()
            if number:  # the first round warms up
                variants[position]["seconds"].append(took)
    if site.rank == 0:
        document = {
            "plan": plan.to_json(), "text": str(plan), "planning_seconds": seconds, "variants": variants,
        }  # fmt: skip
        Path(sys.argv[2]).write_text(json.dumps(document))


@dataclass
class Site:
    """A nest with its sizes; arrays are made by each rank, so that nothing has to cross a slow wire first."""

    job: dict[str, Any]
    comm: Any

    def __post_init__(self) -> None:
        self.rank, self.ranks = (self.comm.Get_rank(), self.comm.Get_size()) if self.comm else (0, 1)
        self.problem = {**PROBLEMS, "advection3d": ADVECTION3D}[self.job["nest"]]
        self.announce = communicator.announcer(self.rank == 0)
        self.arrays: dict[Any, dict[str, LocalArray]] = {}

    @cached_property
    def bound(self) -> BoundNest:
        arguments = self.problem.arguments(tuple(self.job["shape"]), self.job["sweeps"])
        return self.problem.nest.bind(arguments)

    def shared(self, make: Any) -> Any:
        """What rank 0 makes, on all ranks; the others wait without taking a core."""
        if self.comm is None:
            return make()
        found = make() if self.rank == 0 else None
        communicator.meet(self.comm)
        return self.comm.bcast(found, root=0)

    def decided(self) -> tuple[Plan, float, list[Variant]]:
        """The plan, how long planning took without measuring, and the ways to run that it is held against."""
        wishes, node = Wishes(), self.job["ranks_a_node"]
        decide = Decider.here(
            self.bound, self.problem.nest.dependences, self.ranks, node, self.ranks, {}, lambda _: None
        )
        decide(wishes)
        begin = time.perf_counter()
        decision = decide.decision(wishes)  # everything that had to be measured is known by now
        seconds = time.perf_counter() - begin
        plan, problem = decision.plan, decision.problem
        if self.ranks == 1 or problem is None:
            return plan, seconds, []
        cut = Cut(plan.mapping, plan.partition.grid)
        heights = [h for h in problem.heights(cut) if plan.tile / 12 <= h <= plan.tile * 12 and h != plan.tile]
        variants = [_variant("height", cut, h, plan.engine) for h in heights]
        found: dict[Any, Variant] = {}
        for one in decision.ranked:
            if (one.cut, one.engine) != (cut, plan.engine):
                predicted = one.seconds
                found.setdefault((one.cut, one.engine), _variant("other", one.cut, one.tile, one.engine, predicted))
        return plan, seconds, [*variants, *found.values()]

    def prepared(self, variant: Variant) -> Any:
        """A function that runs a variant once and returns the seconds of the slowest rank."""
        cut = Cut(variant["mapping"], tuple(variant["parts"]))
        nest = self.problem.nest
        plan = make_plan(self.bound, nest.dependences, self.ranks, Wishes(variant["engine"], variant["tile"], cut=cut))
        library = native.build_tile(tile_source(self.bound, faces_of(self.bound), plan.inner.form), self.announce)
        exported = variant["engine"] == "onesided"
        key = (plan.partition, exported)
        if key not in self.arrays:
            self.arrays[key] = {a.name: self._filled(a, plan, exported) for a in self.bound.arrays}
        runner = runner_of(self.bound, plan, self.rank, library, self.arrays[key])
        if self.comm is None:
            runtime, options = native.serial_runtime(self.announce), native.Options(slice_seconds=1.0)
        else:
            runtime, options = native.mpi_runtime(self.announce), self._options(variant)
            if exported:
                arrays = self.arrays[key]
                written = nest.loops.written
                runner.neighbours = join_neighbours(runner.program, arrays, written, [list(arrays)], self.comm)

        def once() -> float:
            if self.comm is not None:
                self.comm.Barrier()
            begin = time.perf_counter()
            runner.run(runtime, options, None, 0)
            took = time.perf_counter() - begin
            return took if self.comm is None else max(self.comm.allgather(took))

        return once

    def _options(self, variant: Variant) -> native.Options:
        threads = 2 if variant["engine"] == "helper" else 1
        return native.Options(
            engine=native.ENGINE_CODES[variant["engine"]],
            comm=self.comm.py2f(),
            helper_cpu=-1,
            spin=may_spin(place_of(self.comm), threads),
            slice_seconds=variant["slice_seconds"],
            patience_seconds=patience_seconds(),
        )

    def _filled(self, array: Any, plan: Plan, exported: bool) -> LocalArray:
        written = array.name in self.bound.nest.written
        local = allocate(
            array, needed_box(self.bound, array.name, plan.partition.block(self.rank)), exported and written
        )
        random = np.random.default_rng(self.rank)
        row = random.random(local.values.shape[-1])
        local.values[...] = row if np.dtype(array.dtype).kind == "f" else (4 * row).astype(array.dtype)
        return local

    def announce_round(self, number: int, rounds: int) -> None:
        if self.rank == 0:
            say(f"planning:   {'warming up' if number == 0 else f'round {number} of {rounds}'}")


def _variant(
    kind: str, cut: Cut, tile: int, engine: str, predicted: float | None = None, slice_seconds: float = SLICE_SECONDS
) -> Variant:
    return {
        "kind": kind,
        "engine": engine,
        "mapping": cut.mapping,
        "parts": list(cut.grid),
        "tile": tile,
        "slice_seconds": slice_seconds,
        "predicted": predicted,
        "seconds": [],
    }


def _chosen(plan: Plan) -> Variant:
    predicted = None if plan.prediction is None else plan.prediction.seconds
    cut = Cut(plan.mapping, plan.partition.grid)
    return _variant("chosen", cut, plan.tile, plan.engine, predicted, plan.slice_seconds)


if __name__ == "__main__":
    main()
