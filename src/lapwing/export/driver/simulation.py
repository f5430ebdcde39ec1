"""Exported programs of several nests on a virtual cluster: what they compute decides what they do next, so they do compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lapwing.api.calls.decide import Decider
from lapwing.api.nest import Nest
from lapwing.export.driver.calls import Call
from lapwing.export.driver.program import driver_sources
from lapwing.export.driver.specialisation import specialise
from lapwing.export.driver.tables import DriverTables
from lapwing.export.smpi import build, check_engine, cost_options, run
from lapwing.export.virtual import cluster_of_program
from lapwing.planner.rates import EstimatedRates
from lapwing.scratch import scratch_directory


def simulate_program(
    nest: Nest, arguments: Mapping[str, Any], ranks: int, machine: str | None, announce: Callable[[str], None]
) -> float:
    """Simulated seconds of a run. nest: a program, with its engine chosen. arguments: of the run, arrays as NumPy's.

    Raises RefusedError where the program cannot be exported or the engine not be simulated, and RunError where the simulation
    fails.
    """
    engine = nest.engine or "overlap"
    check_engine(engine)
    described, placement = Decider.machine_and_placement(machine)
    cluster = cluster_of_program(described, engine, ranks, placement.ranks_a_node)
    driver = specialise(nest, arguments, ranks, machine)
    tables = DriverTables(driver, engine)
    program = build(driver_sources(tables), announce)

    def seconds_per_point(call: Call) -> float:
        """The mean over its phases."""
        points = [bound.domain.box_volume for bound in call.bounds]
        rates = [EstimatedRates.of(bound, described).value for bound in call.bounds]
        return sum(n * rate for n, rate in zip(points, rates, strict=True)) / max(1, sum(points))

    with scratch_directory("lapwing-simulation-") as folder:
        (folder / "program.bin").write_bytes(tables.file(seconds_per_point=seconds_per_point))
        (folder / "data").mkdir()
        for memory in driver.memories.values():
            if memory.data is not None:
                np.save(folder / "data" / f"{memory.name}.npy", np.ascontiguousarray(memory.data), allow_pickle=False)
        words = ["--dir", str(folder), "--engine", engine, *cost_options(cluster)]
        return run(program, ranks, cluster, words, folder)
