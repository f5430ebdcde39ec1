"""Random nests planned and run on simulated ranks, compared with the plain loop."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from comparing import check_arrays
from loading import load
from random_nests import Case, Choice, check_refused_grid
from simulated_ranks import Simulation, body_of

from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan

# Stores that would leave the array in iterations which conditions or inner loops leave out: one rank does such nests.
ONE_RANK = r"is stored .* that keeps? it inside"


def check_run(case: Case, ranks: int, choice: Choice, order: Callable[[int], int]) -> Simulation | None:
    """None where nothing runs: no iterations, a grid that is refused, or a nest for one rank."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        nest = load(path).nest
    expected, arrays = case.arguments(), case.arguments()
    try:
        bound = nest.bind(arrays)
    except RefusedError as error:
        if all(re.search(ONE_RANK, refusal.text) for refusal in error.refusals):
            return None
        raise
    with np.errstate(all="ignore"):
        nest.python(**expected)
        if bound.domain.is_empty:
            return None
        try:
            plan = make_plan(bound, nest.dependences, ranks, Wishes(choice.engine, choice.tile, choice.grid))
        except RefusedError as error:
            check_refused_grid(case, ranks, choice, error)
            return None
        simulation = Simulation(bound, plan, arrays, body_of(case))  # type: ignore[arg-type]
        simulation.check_pairs()
        simulation.run(order)
    simulation.collect()
    check_arrays(arrays, expected)
    return simulation
