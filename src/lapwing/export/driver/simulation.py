"""Exported programs of several nests on a virtual cluster: what they compute decides what they do next, so they do compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lapwing.api.calls.decide import Decider
from lapwing.export.driver.calls import Call
from lapwing.export.driver.operations import SpecialisedDriver
from lapwing.export.driver.program import driver_sources
from lapwing.export.driver.tables import DriverTables
from lapwing.export.smpi import build, check_engine, cost_options, run
from lapwing.export.virtual import cluster_of_program
from lapwing.planner.rates import EstimatedRates
from lapwing.temporary import scratch_directory


def simulate_program(
    driver: SpecialisedDriver, engine: str, machine: str | None, announce: Callable[[str], None]
) -> float:
    """Simulated seconds of a run on a machine, as ``specialise`` has it.

    Raises RefusedError where the engine cannot be simulated or the machine has no such link, and RunError where the simulation
    fails.
    """
    check_engine(engine)
    described, placement = Decider.machine_and_placement(machine)
    cluster = cluster_of_program(described, engine, driver.ranks, placement.ranks_a_node)
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
        return run(program, driver.ranks, cluster, words, folder)
