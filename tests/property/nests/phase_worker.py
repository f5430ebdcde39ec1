"""Checks random programs of several phases on the ranks of one MPI run: started by test_phases.py under mpiexec.

    mpiexec -n 3 python phase_worker.py DIRECTORY EXAMPLES SEED SECONDS

Rank 0 runs hypothesis and sends every example to the other ranks, as nest_worker.py does.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from comparing import check_arrays
from hypothesis import strategies as st
from nest_worker import ranks_of_this_node
from random_phases import Program, bind, load_phases, plain_run, programs
from searching import search

import lapwing as lw
from lapwing.planner.phased import PhasedPlan, dimensions_to_cut, make_phased_plan
from lapwing.planner.plan import ENGINES
from lapwing.runtime.arrays import storage
from lapwing.runtime.mpi import communicator
from lapwing.runtime.phased import run_phases_on_ranks
from lapwing.runtime.phased_alone import run_phases_alone
from lapwing.runtime.tuning import Tuning, place_of
from lapwing.schedule.pipeline import Engine
from lapwing.tiling.partition import factorisations


@dataclass(frozen=True)
class Cut:
    """One run: ``kept`` on arrays that stay distributed; ``without_segments``: ranks whose memory others cannot map."""

    engine: Engine
    grid: tuple[int, ...] | None
    tile: int | None
    kept: bool
    without_segments: tuple[int, ...]
    slice_seconds: float


@st.composite
def cuts(draw: st.DrawFn, grids: list[tuple[int, ...]], ranks: int, engine: Engine) -> Cut:
    return Cut(
        engine,
        draw(st.sampled_from([*grids, None])),
        draw(st.sampled_from([1, 2, 3, 5, None])),
        draw(st.booleans()),
        draw(st.sampled_from([(), (), (ranks - 1,)])),
        draw(st.sampled_from([1e-6, 75e-6])),
    )


def carry_out(program: Program, cut: Cut, comm: Any, values: dict[str, Any]) -> dict[str, np.ndarray]:
    """Run a program on all ranks; the arrays afterwards. Collective. values: None but on rank 0."""
    found = bind(program, load_phases(program))
    assert found is not None
    plan = make_phased_plan(found[0], comm.Get_size(), cut.engine, cut.grid, cut.tile)
    sources: dict[str, Any] = dict(values)
    if cut.kept:
        sources = {name: lw.DistributedArray(array, comm=comm) for name, array in values.items()}
    export = storage.export_segment
    if comm.Get_rank() in cut.without_segments:
        storage.export_segment = lambda size: None
    try:
        tuning = Tuning(slice_seconds=cut.slice_seconds)
        run_phases_on_ranks(plan, sources, {}, comm, place_of(comm), None, tuning=tuning)
    finally:
        storage.export_segment = export
    return {name: array.numpy() for name, array in sources.items()} if cut.kept else sources


class Leader:
    """Rank 0: judges examples."""

    def __init__(self, comm: Any, directory: Path) -> None:
        self.comm, self.directory, self.count = comm, directory, Counter[str]()

    def check(self, data: st.DataObject) -> None:
        program = data.draw(programs(most_phases=3), label="program")
        nests = load_phases(program)
        found = bind(program, nests)
        if found is None:
            return
        dimensions, ranks = dimensions_to_cut(found[0]), self.comm.Get_size()
        grids = [
            g
            for g in factorisations(ranks, len(dimensions))
            if all(p <= d.extent for p, d in zip(g, dimensions, strict=True))
        ]
        runs = [data.draw(cuts(grids, ranks, engine), label=engine) for engine in ENGINES]
        self.count["drawn"] += 1
        (self.directory / "current.py").write_text(str(program))
        expected, alone = program.values(), program.values()
        with np.errstate(all="ignore"):
            plain_run(program, nests, expected)
        run_phases_alone(make_phased_plan(found[0], 1), alone, None)
        check_arrays(alone, expected)
        self.count["run"] += 1
        for cut in runs:
            (self.directory / "current.py").write_text(f"{program}\n# {cut}\n")
            for rank in range(1, ranks):
                self.comm.send((program, cut), dest=rank)
            values = carry_out(program, cut, self.comm, program.values())
            self.note(make_phased_plan(found[0], ranks, cut.engine, cut.grid, cut.tile))
            try:
                check_arrays(values, expected)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{cut}") from None

    def note(self, plan: PhasedPlan) -> None:
        self.count["cut"] += plan.ranks > 1
        self.count["split"] += any(tiling.split is not None for tiling in plan.tilings)
        self.count["pipelined"] += plan.ranks > 1 and any(tiling.split is None for tiling in plan.tilings)


def follow(comm: Any) -> None:
    """The other ranks: obey until told to stop. They sleep while they wait, for cores are few."""
    while True:
        while not comm.Iprobe(source=0):
            time.sleep(0.0005)
        order = comm.recv(source=0)
        if order is None:
            return
        program, cut = order
        carry_out(program, cut, comm, dict.fromkeys(array.name for array in program.arrays))


def main() -> int:
    directory, examples, start, seconds = Path(sys.argv[1]), *map(int, sys.argv[2:])
    faulthandler.dump_traceback_later(seconds, exit=True)
    comm = communicator.world().Dup()
    node = ranks_of_this_node(comm)
    if comm.Get_rank() > 0:
        follow(comm)
        return 0
    leader, complete = Leader(comm, directory), False
    try:
        complete = search(leader.check, examples, start)
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        report = {"complete": complete, **leader.count, "ranks of this node": node}
        (directory / "report.json").write_text(json.dumps(report))
        for rank in range(1, comm.Get_size()):
            comm.send(None, dest=rank)
    return 0


if __name__ == "__main__":
    sys.exit(main())
