"""Phases on one process and on ranks: reductions, errors of the plain loops, arrays that stay distributed, and what is traced.

Started by mpiexec as a program, this file runs all scenarios, functions below, on the ranks of that run.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from limits import scaled
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY, rounds

import lapwing as lw
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.planner.phased import dimensions_to_cut, make_phased_plan
from lapwing.planner.plan import ENGINES
from lapwing.runtime.mpi import communicator
from lapwing.runtime.phased import PhasedOutcome, run_phases_on_ranks
from lapwing.runtime.phased_alone import run_phases_alone
from lapwing.runtime.runner import Measure
from lapwing.runtime.tuning import place_of
from lapwing.schedule.pipeline import Engine
from lapwing.trace.perfetto import perfetto_json
from lapwing.trace.timeline import timeline_page

pytestmark = pytest.mark.usefixtures("little_optimised")

SECONDS = scaled(240)
SWEEPS = 4
SCENARIOS: dict[str, Callable[[], None]] = {}


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS[function.__name__] = function
    return function


@lw.nest
def spread(u, v, first, last):
    largest = -1.0
    for t in range(first, last):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
                largest = max(largest, v[i, j])
    return largest


@lw.nest
def sweep_up(u, v, first, last):
    total = 0.0
    for t in range(first, last):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * v[i, j] + 0.25 * u[i + 1, j] + 0.125 * u[i, j - 1]
                total += u[i, j]
    return total


@lw.nest
def root(u, v, first, last):
    for t in range(first, last):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = math.sqrt(v[i, j] - 0.125 * t)


def numbers(shape: tuple[int, int] = (24, 19)) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {name: random.uniform(0.5, 1.5, shape) for name in "uv"}


def small() -> dict[str, np.ndarray]:
    """So that what is left under a root becomes negative in the second sweep."""
    values = numbers()
    values["u"][9:, 7:] = 0.01
    return values


def phased(arrays: dict[str, np.ndarray], *nests: lw.Nest) -> PhasedNest:
    return PhasedNest("program", tuple(nest.bind({**arrays, "first": 0, "last": SWEEPS}) for nest in nests))


def plain(arrays: dict[str, np.ndarray], *nests: lw.Nest) -> list[list[Any]]:
    """What every sweep returns, phase by phase."""
    returned: list[list[Any]] = [[] for _ in nests]
    for t in range(SWEEPS):
        for values, nest in zip(returned, nests, strict=True):
            values.append(nest.python(**arrays, first=t, last=t + 1))
    return returned


def run(
    nests: tuple[lw.Nest, ...], engine: Engine, sources: dict[str, Any], measure: Measure | None = None, **wishes: Any
) -> PhasedOutcome:
    comm = communicator.world()
    plan = make_phased_plan(phased(numbers(), *nests), comm.Get_size(), engine, **wishes)
    return run_phases_on_ranks(plan, sources, {}, comm, place_of(comm), None, None, measure)


def on_rank_0(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return arrays if communicator.world().Get_rank() == 0 else dict.fromkeys(arrays)


@scenario
def reductions_of_every_phase() -> None:
    expected, found = numbers(), numbers()
    largest, totals = plain(expected, spread, sweep_up)
    for engine in ENGINES:
        found = numbers()
        outcome = run((spread, sweep_up), engine, on_rank_0(found))
        assert outcome.results[0] == {"largest": max(largest)}
        assert abs(outcome.results[1]["total"] - sum(totals)) < 1e-9
        if communicator.world().Get_rank() == 0:
            assert all(np.array_equal(found[name], expected[name]) for name in "uv")


@scenario
def arrays_stay_distributed_from_one_program_to_the_next() -> None:
    """With another distribution in between."""
    expected = numbers()
    plain(expected, spread, sweep_up)
    plain(expected, sweep_up, spread)
    for engine in ENGINES:
        arrays = {name: lw.DistributedArray(values) for name, values in on_rank_0(numbers()).items()}
        run((spread, sweep_up), engine, arrays)
        ranks = communicator.world().Get_size()
        run((sweep_up, spread), engine, arrays, grid=(1, ranks))
        found = {name: array.numpy() for name, array in arrays.items()}
        if communicator.world().Get_rank() == 0:
            assert all(np.array_equal(found[name], expected[name]) for name in "uv")


@scenario
def the_first_error_of_the_plain_loops_is_raised_everywhere() -> None:
    """Of v no root can be taken in the second sweep at some place; arrays are as they were."""
    for engine in ENGINES:
        values = small()
        kept = {name: array.copy() for name, array in values.items()}
        with pytest.raises(lw.RunError, match=r"test_phased\.py:\d+: .*sqrt"):
            run((spread, root), engine, on_rank_0(values))
        if communicator.world().Get_rank() == 0:
            assert all(np.array_equal(kept[name], values[name]) for name in "uv")
    run((spread, sweep_up), "overlap", on_rank_0(numbers()))


@scenario
def events_know_their_phase() -> None:
    outcome = run((spread, sweep_up), "overlap", on_rank_0(numbers()), Measure(transfer=True, events=5000))
    trace = outcome.trace
    assert outcome.trace.transfer_seconds is not None
    if communicator.world().Get_rank():
        return
    for rank in trace.ranks:
        assert rank.phase_names == ("spread", "sweep_up")
        computed = rank.events[rank.events["activity"] == 0]
        first = rank.phases[1].first_step
        assert ((computed["step"] >= first) == (computed["phase"] == 1)).all()
        assert set(rank.steps_of_phases(computed[computed["phase"] == 1])) == set(
            range(len(outcome.plan.faces.phase_steps(1, rank.rank)))
        )
    assert '"phases":["spread","sweep_up"]' in timeline_page([trace])
    assert '"name":"compute in sweep_up"' in perfetto_json([trace])


# -- tests -----------------------------------------------------------------------------------------------------------


def test_one_process_works_on_arrays_where_they_lie() -> None:
    expected, found = numbers(), numbers()
    largest, totals = plain(expected, spread, sweep_up)
    plan = make_phased_plan(phased(found, spread, sweep_up), 1)
    outcome = run_phases_alone(plan, found, None)
    assert all(np.array_equal(found[name], expected[name]) for name in "uv")
    assert outcome.results[0] == {"largest": max(largest)}
    assert abs(outcome.results[1]["total"] - sum(totals)) < 1e-9


def test_one_process_leaves_arrays_as_they_were_where_a_loop_raises() -> None:
    values = small()
    kept = {name: array.copy() for name, array in values.items()}
    with pytest.raises(lw.RunError, match="sqrt"):
        run_phases_alone(make_phased_plan(phased(values, spread, root), 1), values, None)
    assert all(np.array_equal(kept[name], values[name]) for name in "uv")


@lw.nest
def walls(u, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for j in range(m):
            u[0, j] = 0.5 * u[0, j]
            u[n - 1, j] = u[0, j] + 1.0


@lw.nest
def rotating(u, v, w, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                w[i, j] = 2.0 * v[i, j] - u[i, j] + 0.1 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])
        u, v, w = v, w, u
    return v


@lw.nest
def frame(u, v, steps):
    n, m = u.shape
    for t in range(steps):
        for j in range(m):
            u[0, j] = 0.5 * u[0, j]
            u[1, j] = 0.5 * u[1, j] + v[1, j]
            u[n - 1, j] = u[0, j] + 1.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + v[i - 1, j] + u[i, j - 1] + u[i, j + 1] + u[i + 1, j])
        for i in range(n):
            u[i, 0] = 0.5 * u[i, 1]
            u[i, m - 1] = u[i, m - 2] + v[i, 1]
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (v[i - 1, j] + u[i, j - 1] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])


@lw.nest
def table(F, d):
    n, m = F.shape
    for i in range(n):
        F[i, 0] = -d * i
    for j in range(m):
        F[0, j] = -d * j
    for i in range(1, n):
        for j in range(1, m):
            F[i, j] = max(F[i - 1, j - 1] + (i + j) % 3, F[i - 1, j] - d, F[i, j - 1] - d)


@lw.nest
def last_row(u, v, first, last):
    for t in range(first, last):
        for j in range(u.shape[1]):
            u[u.shape[0] - 1, j] = 0.5 * u[u.shape[0] - 2, j] + t


@lw.nest
def second_row(u, v, first, last):
    for t in range(first, last):
        for j in range(u.shape[1]):
            u[1, j] = 0.5 * u[0, j] + t + u[u.shape[0] - 1, j]


@lw.nest
def last_column(u, v, first, last):
    for t in range(first, last):
        for i in range(u.shape[0]):
            u[i, u.shape[1] - 1] = 0.5 * u[i, u.shape[1] - 2] + t


@lw.nest
def sweep_down(u, v, first, last):
    for t in range(first, last):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i - 1, j - 1] + 0.25 * u[i, j - 1] + v[i, j]


@scenario
def elements_that_several_phases_write() -> None:
    """One rank writes them in all phases, or their axis is not cut."""
    comm, shape = communicator.world(), (5, 7)
    random, grids = np.random.default_rng(1), 0
    for nests in (
        (second_row, last_column, sweep_down), (last_column, last_row, sweep_down), (sweep_down, last_row, second_row),
        (sweep_down, last_column, last_row), (second_row, last_row, last_column), (sweep_down, last_row),
    ):  # fmt: skip
        arrays = {name: random.random(shape) for name in "uv"}
        expected = {name: values.copy() for name, values in arrays.items()}
        plain(expected, *nests)
        program = phased(arrays, *nests)
        cut = dimensions_to_cut(program)
        for number in range(len(cut)):
            grid = [comm.Get_size() if k == number else 1 for k in range(len(cut))]
            found = {name: arrays[name].copy() for name in (array.name for array in program.arrays)}
            plan = make_phased_plan(program, comm.Get_size(), ENGINES[grids % len(ENGINES)], grid)
            run_phases_on_ranks(plan, on_rank_0(found), {}, comm, place_of(comm), None)
            if comm.Get_rank() == 0:
                names = [nest.python.__name__ for nest in nests]
                assert all(np.array_equal(found[n], expected[n]) for n in found), (names, grid)
            grids += 1
    assert grids > 3


@scenario
def arrays_that_rotate() -> None:
    """Three iterations are one sweep; one or two are left over."""
    for steps in range(6):
        mine = [np.random.default_rng(k).random((9, 8)) for k in range(3)]
        plain = [values.copy() for values in mine]
        engine = ENGINES[steps % len(ENGINES)]
        returned, expected = rotating.using(engine=engine)(*mine, steps), rotating.python(*plain, steps)
        assert all(one.tobytes() == other.tobytes() for one, other in zip(mine, plain, strict=True)), steps
        assert [one is returned for one in mine] == [other is expected for other in plain], steps


@scenario
def phases_that_write_some_rows() -> None:
    """Blocks of all heights: ranks have different parts of the axes that these loops do not go along."""
    for number, shape in enumerate([(3, 3), (3, 4), (4, 3), (5, 9), (9, 5)]):
        for k in rounds(1, len(ENGINES)):
            engine = ENGINES[(number + k) % len(ENGINES)]
            u = np.random.default_rng(0).random(shape)
            v = 3.0 * u
            a, b = u.copy(), v.copy()
            frame.using(engine=engine)(u, v, 2)
            frame.python(a, b, 2)
            assert u.tobytes() == a.tobytes(), (engine, shape)
            assert v.tobytes() == b.tobytes(), (engine, shape)
            walls.using(engine=engine)(u, 3)
            walls.python(a, 3)
            assert u.tobytes() == a.tobytes(), (engine, shape)
            F, G = np.zeros(shape, int), np.zeros(shape, int)
            table.using(engine=engine)(F, 4)
            table.python(G, 4)
            assert F.tobytes() == G.tobytes(), (engine, shape)


@cache
def played(ranks: int, thorough: bool) -> subprocess.CompletedProcess[str]:
    """All scenarios in turn: to start ranks takes longer than most of them."""
    try:
        mpiexec = str(find_mpi().mpiexec)
    except BuildError as error:
        pytest.skip(str(error))
    return subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, __file__], capture_output=True, text=True, timeout=SECONDS, check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {})},
    )  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "thorough"), [(2, False), pytest.param(4, True, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, ranks: int, thorough: bool) -> None:
    done = played(ranks, thorough)
    assert done.stdout.count(f"done {name}\n") == ranks, done.stderr[-3000:]


@pytest.mark.parametrize("shape", [(5, 4), (5, 3), (4, 9), (9, 4)])
def test_a_phase_that_writes_two_rows(shape: tuple[int, int]) -> None:
    """Rows too short for lanes are copied, and brought back as far as they are written."""
    u = np.random.default_rng(0).random(shape)
    v = u.copy()
    walls(u, 3)
    walls.python(v, 3)
    assert u.tobytes() == v.tobytes()


if __name__ == "__main__":
    optimise_little()
    for name, play in SCENARIOS.items():
        play()
        os.write(sys.stdout.fileno(), f"done {name}\n".encode())  # in one piece: ranks share it
