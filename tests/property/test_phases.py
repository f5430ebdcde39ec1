"""What ranks tell each other where a sweep has several phases is enough, in time and inside their memory: programs run message
by message in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from random_nests import ArraySpec, Case
from random_phases import Program, bind, load_phases, plain_run, programs
from randomness import first_seed, wanted
from searching import search
from simulated_phases import PhasedSimulation
from simulated_ranks import body_of, orders
from starting import APART, DELAYS, PAIRS, Variant, run_worker

from lapwing.planner.phased import PhasedPlan, dimensions_to_cut, make_phased_plan
from lapwing.planner.plan import ENGINES
from lapwing.tiling.partition import factorisations

Order = Callable[[int], int]

VARIANTS = {
    "2 ranks": Variant(2, 400),
    "4 ranks": Variant(4, 200, seed=1),
    "3 ranks and delays": Variant(3, 200, DELAYS, 2),
    "no shared memory, 2 ranks": Variant(2, 200, APART, 3, 1),
    "two nodes and delays, 4 ranks": Variant(4, 120, {**PAIRS, **DELAYS}, 4, 2),
}
EVERYDAY = ("3 ranks and delays",)
FEW = 2  # programs of each of these


def check(data: st.DataObject) -> None:
    program = data.draw(programs(), label="program")
    nests = load_phases(program)
    found = bind(program, nests)
    if found is None:
        return
    phased, places = found
    cut = dimensions_to_cut(phased)
    ranks = data.draw(st.sampled_from([2, 3, 4, 6]), label="ranks")
    grids = [g for g in factorisations(ranks, len(cut)) if all(p <= d.extent for p, d in zip(g, cut, strict=True))]
    grid = data.draw(st.sampled_from([*grids, None]), label="grid")
    tile = data.draw(st.sampled_from([1, 2, 3, 5, None]), label="tile")
    plan = make_phased_plan(phased, ranks, data.draw(st.sampled_from(ENGINES), label="engine"), grid, tile)
    check_run(program, nests, plan, places, data.draw(orders(), label="order"))


def check_run(
    program: Program, nests: Sequence, plan: PhasedPlan, places: Sequence[int], order: Order
) -> PhasedSimulation:
    """places: which phases of the program the plan's are: some have no iterations."""
    expected, arrays = program.values(), program.values()
    with np.errstate(all="ignore"):
        plain_run(program, nests, expected)
        simulation = PhasedSimulation(plan, arrays, [body_of(program.phases[k]) for k in places])
        simulation.check_pairs()
        simulation.run(order)
    simulation.collect()
    check_arrays(arrays, expected)
    return simulation


def test_messages_between_phases_are_enough_and_in_time() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_messages_between_phases_are_enough_and_in_time_at_length() -> None:
    search(check, wanted(5000), first_seed())


RING = Program(
    (
        Case(
            """@lw.nest
def phase0(u, first, last):
    for t in range(first, last):
        for i in range(5, 27):
            if i % 2 == t % 2:
                u[i] = u[(i - 4) % 22 + 5] - 2 * u[(i - 6) % 22 + 5]
""",
            (ArraySpec("u", "float64", (32,), "tame", 0),),
            (("first", 0), ("last", 1)),
            (22,),
            0,
        ),
        Case(
            """@lw.nest
def phase1(u, v, first, last):
    for t in range(first, last):
        for i in range(5, 27):
            v[i] = v[i] + u[(i - 4) % 22 + 5] - 3 * u[(i - 6) % 22 + 5]
""",
            (ArraySpec("u", "float64", (32,), "tame", 0), ArraySpec("v", "float64", (32,), "tame", 1)),
            (("first", 0), ("last", 1)),
            (22,),
            0,
        ),
    ),
    (ArraySpec("u", "float64", (32,), "tame", 0), ArraySpec("v", "float64", (32,), "tame", 1)),
    3,
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_on_a_ring_do_not_all_wait_until_the_next_one_has_read(engine: str, ranks: int) -> None:
    """Every rank replaces elements in its first step that the next one reads in its second."""
    nests = load_phases(RING)
    phased, places = bind(RING, nests) or pytest.fail("there are iterations")
    check_run(RING, nests, make_phased_plan(phased, ranks, engine, None, 5), places, lambda count: count - 1)


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", EVERYDAY)
def test_bits_of_the_plain_loops(name: str, tmp_path: Path) -> None:
    check_variant(replace(VARIANTS[name], nests=wanted(FEW)), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("name", VARIANTS)
def test_bits_of_the_plain_loops_at_length(name: str, tmp_path: Path) -> None:
    check_variant(VARIANTS[name], tmp_path)


def check_variant(variant: Variant, directory: Path) -> None:
    report = run_worker("phase_worker.py", variant, directory)
    if report["complete"]:
        assert report["cut"], "no program was divided"
        assert report["split"] + report["pipelined"] > 0
