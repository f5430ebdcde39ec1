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
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.plan import Plan
from lapwing.tiling.faces import faces_of, shifts_of
from lapwing.tiling.skewing import skewed_nest


def check_run(
    case: Case, ranks: int, choice: Choice, order: Callable[[int], int], joined: int = 1
) -> Simulation | None:
    """None where nothing runs: no iterations, a grid that is refused, a nest for one rank, or one of which so many sweeps cannot
    be done at once."""
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
        if joined > 1 and not may_join(skewed_nest(bound, plan.skew), plan, joined):
            return None
        simulation = Simulation(bound, plan, arrays, body_of(case), joined)  # type: ignore[arg-type]
        simulation.check_pairs()
        simulation.run(order)
    simulation.collect()
    check_arrays(arrays, expected)
    return simulation


def may_join(bound: BoundNest, plan: Plan, sweeps: int) -> bool:
    """Whether so many sweeps can be done at once; bound: in the plan's coordinates."""
    depth, faces = bound.nest.sweep_depth, faces_of(bound)
    names = set(bound.nest.loop_names[:depth])
    once = len({face.array for face in faces}) == len(faces)
    alike = once and bound.analysis.around is None and not any(loop.bound_names & names for loop in bound.domain.loops)
    alike = alike and not any(offset is not None for face in faces for offset in face.offsets[:depth])
    if not depth or not alike or plan.mapping is None or plan.partition.grid[plan.mapping] > 1:
        return False
    lengths = [int(np.diff(edges).min()) if len(edges) > 2 else None for edges in plan.partition.edges]
    lengths[plan.mapping] = plan.tile
    moved = [shift * (sweeps - 1) for shift in shifts_of(bound)]
    return all(length is None or by <= length for length, by in zip(lengths, moved, strict=True))
