"""Random nests planned and run on simulated ranks, compared with the plain loop."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from comparing import check_arrays
from loading import bind_for_ranks, load
from random_nests import Case, Choice, check_refused_grid
from simulated_ranks import Simulation, body_of

from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan


def check_run(case: Case, ranks: int, choice: Choice, order: Callable[[int], int]) -> Simulation | None:
    """None where nothing runs: no iterations, a grid that is refused, or a nest for one rank."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        nest = load(path).nest
    expected, arrays = case.arguments(), case.arguments()
    bound = bind_for_ranks(nest, arrays)
    with np.errstate(all="ignore"):
        nest.python(**expected)
        if bound is None or bound.domain.is_empty:
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
