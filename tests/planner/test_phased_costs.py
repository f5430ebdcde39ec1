"""What a plan of several phases is predicted to take on machines of which everything is known."""

from __future__ import annotations

import pytest

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.machine import stored
from lapwing.planner.costs import Placement
from lapwing.planner.phased import make_phased_plan
from lapwing.planner.phased_costs import pipeline_of_phases
from lapwing.planner.plan import ENGINES
from lapwing.schedule.phased import phased_timeline
from lapwing.schedule.pipeline import Engine

N, SWEEPS = 2050, 20
SECONDS_A_POINT = 1e-9
APART = Placement(1, 1)  # every rank on a node of its own


@lw.nest
def there(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])


@lw.nest
def back(u, v, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (v[i, j] + u[i + 1, j] + v[i, j - 1] + v[i, j + 1])


def seconds(nests: tuple[lw.Nest, ...], ranks: int, engine: Engine) -> float:
    array = ArrayShape("float64", (N, N))
    program = PhasedNest("program", tuple(nest.bind({"u": array, "v": array, "sweeps": SWEEPS}) for nest in nests))
    plan = make_phased_plan(program, ranks, engine)
    machine = stored.find("typical")
    return phased_timeline(pipeline_of_phases(plan, machine, [SECONDS_A_POINT] * len(nests), APART)).makespan


@pytest.mark.parametrize("engine", ENGINES)
def test_one_rank_computes_alone(engine: Engine) -> None:
    assert seconds((there, back), 1, engine) == pytest.approx(2 * SWEEPS * (N - 2) ** 2 * SECONDS_A_POINT)


def test_halos_are_hidden_behind_interiors() -> None:
    """A stencil that reads one array and writes another, in turns with one that is pipelined."""
    computing = 2 * SWEEPS * (N - 2) ** 2 * SECONDS_A_POINT / 4
    blocking, overlap = (seconds((there, back), 4, engine) for engine in ("blocking", "overlap"))
    assert computing < overlap < blocking
    assert overlap < 1.1 * computing
