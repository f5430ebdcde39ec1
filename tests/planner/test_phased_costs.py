"""What a plan of several phases is predicted to take on machines of which everything is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.machine import stored
from lapwing.machine.machine import Curve, Machine
from lapwing.planner.costs import Placement
from lapwing.planner.phased import make_phased_plan
from lapwing.planner.phased_costs import Comparison, compared, pipeline_of_phases
from lapwing.planner.plan import ENGINES
from lapwing.planner.rates import EstimatedRates
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


@lw.nest
def straight(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i, j] / 3.0 + 0.5 / u[i, j]
                v[i, j] = u[i, j] / 7.0 + 0.5 / v[i, j]


@lw.nest
def turned(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = u[i, j] / 3.0 + 0.5 / u[i, j]
                v[j, i] = u[i, j] / 7.0 + 0.5 / v[j, i]


def both_ways(nests: tuple[lw.Nest, ...], ranks: int, sweeps: int, machine: Machine | None = None) -> Comparison:
    array = ArrayShape("float64", (N, N))
    program = PhasedNest("program", tuple(nest.bind({"u": array, "v": array, "sweeps": sweeps}) for nest in nests))
    return compared(make_phased_plan(program, ranks), machine or stored.find("typical"), APART)


@pytest.mark.parametrize("sweeps", [1, 2, 20])
def test_what_follows_from_halos_is_sooner_done_together(sweeps: int) -> None:
    found = both_ways((there, back), 4, sweeps)
    assert found.together < found.apart


def test_all_sweeps_are_as_the_first_ones() -> None:
    few, many = (both_ways((there, back), 4, sweeps).together for sweeps in (3, 20))
    assert many == pytest.approx(seconds_of((there, back), 4, 20), rel=0.02)
    assert few < many


def seconds_of(nests: tuple[lw.Nest, ...], ranks: int, sweeps: int) -> float:
    array = ArrayShape("float64", (N, N))
    bound = tuple(nest.bind({"u": array, "v": array, "sweeps": sweeps}) for nest in nests)
    machine = stored.find("typical")
    rates = [EstimatedRates.of(one, machine).value for one in bound]
    plan = make_phased_plan(PhasedNest("program", bound), ranks)
    return phased_timeline(pipeline_of_phases(plan, machine, rates, APART)).makespan


def test_phases_that_no_cut_fits_are_done_one_by_one_where_arrays_travel_fast() -> None:
    """Rows of u and rows of v, then rows of u and columns of v: together one rank does all, apart v is brought elsewhere."""
    typical = stored.find("typical")
    wire = Curve(((1, 0.0), (1 << 30, 1e-9)))
    links = {p: {n: replace(link, wire=wire) for n, link in found.items()} for p, found in typical.links.items()}
    slow, fast = (both_ways((straight, turned), 4, 1, m) for m in (typical, replace(typical, links=links)))
    assert slow.together == fast.together
    assert fast.apart < fast.together
    assert fast.apart < slow.apart


def test_halos_are_hidden_behind_interiors() -> None:
    """A stencil that reads one array and writes another, in turns with one that is pipelined."""
    computing = 2 * SWEEPS * (N - 2) ** 2 * SECONDS_A_POINT / 4
    blocking, overlap = (seconds((there, back), 4, engine) for engine in ("blocking", "overlap"))
    assert computing < overlap < blocking
    assert overlap < 1.1 * computing
