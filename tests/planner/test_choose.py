"""What is decided, and how the plan tells it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inner_forms import vectors_of
from limits import scaled

import lapwing as lw
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.planner.choose import grids
from lapwing.tiling.partition import factorisations


@lw.nest
def gauss_seidel(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def sqrt3d(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def upwind(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def upwind3d(u, rounds, sweeps):
    for s in range(rounds):
        for t in range(s, sweeps):
            for i in range(1, u.shape[0]):
                for j in range(1, u.shape[1]):
                    for k in range(1, u.shape[2]):
                        u[i, j, k] += 0.5 * u[i - 1, j, k] + 0.25 * u[i, j - 1, k] + 0.125 * u[i, j, k - 1]


@lw.nest
def from_the_right(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1] - 1):
                u[i, j] = 0.5 * u[i, j + 1] + 0.5 * u[i - 1, j]


@lw.nest
def written_twice(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1]):
                u[i, j] = v[i, j] + u[i, j - 1]
                u[i + 1, j] = 0.5 * v[i, j]


@lw.nest
def line(u):
    for i in range(1, u.shape[0]):
        u[i] = 0.5 * u[i - 1]


@lw.nest
def upwards(u):
    for i in range(u.shape[0] - 2, -1, -1):
        for j in range(u.shape[1]):
            u[i, j] = 0.5 * u[i + 1, j]


@lw.nest
def far_down(u):
    for i in range(4, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(u.shape[2]):
                u[i, j, k] = u[i - 4, j, k] + u[i, j - 1, k]


def of_shape(*shape: int) -> ArrayShape:
    """Planning needs no elements."""
    return ArrayShape("float64", shape)


# -- mapping and grid ------------------------------------------------------------------------------------------------


def test_a_much_longer_loop_is_pipelined() -> None:
    assert sqrt3d.plan(of_shape(10, 200, 15), ranks=4).mapping == 1
    assert sqrt3d.plan(of_shape(10, 15, 200), ranks=4).mapping == 2
    assert sqrt3d.plan(of_shape(200, 10, 15), ranks=4).mapping == 0


def test_the_innermost_loop_stays_whole_where_another_is_about_as_long() -> None:
    assert sqrt3d.plan(of_shape(21, 21, 30), ranks=4).mapping == 0


def test_a_shorter_loop_is_pipelined_where_the_longest_has_to_be_cut() -> None:
    plan = gauss_seidel.plan(of_shape(4, 100), 1, ranks=7)
    assert plan.mapping == 0
    assert plan.partition.grid == (1, 7)


def test_all_loops_are_cut_where_nothing_else_fits() -> None:
    plan = gauss_seidel.plan(of_shape(5, 6), 1, ranks=12)
    assert plan.partition.grid == (3, 4)
    assert plan.grid == (3, 4)


def test_the_grid_sends_least() -> None:
    assert sqrt3d.plan(of_shape(41, 41, 999), ranks=4).grid == (2, 2)
    assert sqrt3d.plan(of_shape(9, 81, 999), ranks=4).grid == (1, 4)
    # Four rows cross every cut of i: cutting j is cheaper.
    assert far_down.plan(of_shape(44, 41, 999), ranks=4).grid == (1, 4)


def test_every_grid_is_accepted() -> None:
    for ranks in range(1, 17):
        for grid in factorisations(ranks, 3):
            plan = sqrt3d.using(grid=grid).plan(of_shape(17, 18, 190), ranks=ranks)
            assert plan.partition.grid == grid
            assert plan.ranks == ranks
        for grid in factorisations(ranks, 2):
            plan = sqrt3d.using(grid=grid).plan(of_shape(17, 18, 190), ranks=ranks)
            assert plan.partition.grid == (*grid, 1)
            assert plan.grid == grid


def test_a_grid_is_given_by_lists_and_numpy_integers_as_well() -> None:
    plan = sqrt3d.using(grid=[np.int64(2), 1], tile=np.int64(3)).plan(of_shape(9, 9, 99), ranks=np.int64(2))
    assert plan.grid == (2, 1)
    json.dumps(plan.to_json())


def test_one_loop_is_cut_itself() -> None:
    plan = line.plan(of_shape(11), ranks=3)
    assert plan.partition.cuts == ((1, 4, 7, 11),)
    assert plan.grid == (3,)
    assert line.plan(of_shape(11), ranks=10).partition.ranks == 10


@pytest.mark.parametrize(("ranks", "work"), [(5, 4), (7, 6), (10, 9), (99, 12)])
def test_of_more_ranks_than_rows_some_idle(ranks: int, work: int) -> None:
    plan = gauss_seidel.plan(of_shape(5, 6), 1, ranks=ranks)
    assert (plan.ranks, plan.idle) == (work, ranks - work)
    assert f"{work} of {ranks} ranks work" in str(plan)
    assert all(high > low for rank in range(work) for low, high in plan.partition.block(rank))


def test_a_grid_for_the_ranks_that_work_is_taken() -> None:
    assert gauss_seidel.using(grid=(3, 4)).plan(of_shape(5, 6), 1, ranks=99).idle == 87
    with pytest.raises(lw.RefusedError, match=r"grid 2x2 is for 4 ranks, .* multiply to 99, or to 12, "):
        gauss_seidel.using(grid=(2, 2)).plan(of_shape(5, 6), 1, ranks=99)


@pytest.mark.parametrize("ranks", range(1, 13))
def test_a_grid_that_exists_is_found(ranks: int) -> None:
    exists = any(a <= 3 and b <= 4 for a, b in factorisations(ranks, 2))
    plan = gauss_seidel.plan(of_shape(5, 6), 1, ranks=ranks)
    assert (math.prod(plan.partition.grid) == ranks) == exists


# -- time as the mapping dimension -------------------------------------------------------------------------------------


def test_time_is_pipelined_where_sweeps_are_many() -> None:
    plan = upwind.plan(of_shape(201, 201), 200, ranks=4)
    assert (plan.mapping, plan.mapping_loop) == (None, "t")
    assert plan.grid == plan.partition.grid == (2, 2)
    few = upwind.plan(of_shape(201, 201), 31, ranks=4)
    assert few.mapping_loop == "i"
    assert any("31 sweeps are too few to keep 3 ranks in a row busy" in reason for reason in few.reasons)


def test_one_sweep_and_one_rank_have_no_time_to_tile() -> None:
    assert upwind.plan(of_shape(201, 201), 200, ranks=1).mapping == 0
    assert upwind.plan(of_shape(201, 201), 1, ranks=2).mapping == 0
    assert upwind.using(grid=(2, 2)).plan(of_shape(201, 201), 1, ranks=4).mapping is not None


def test_equal_grids_leave_the_inner_loop_long() -> None:
    assert upwind.plan(of_shape(201, 201), 200, ranks=2).grid == (2, 1)
    assert upwind.plan(of_shape(101, 401), 200, ranks=2).grid == (1, 2)  # half as much to send


def test_a_grid_over_all_loops_asks_for_time() -> None:
    for grid in factorisations(12, 2):
        plan = upwind.using(grid=grid).plan(of_shape(25, 25), 2, ranks=12)
        assert (plan.mapping, plan.grid) == (None, grid)
    assert upwind.using(grid=(12,)).plan(of_shape(25, 25), 2, ranks=12).mapping_loop == "i"
    for grid in factorisations(8, 3):
        plan = upwind3d.using(grid=grid).plan(of_shape(17, 17, 17), 2, 5, ranks=8)
        assert (plan.mapping_loop, plan.grid) == ("t", grid)


def test_ranks_that_fill_all_loops_pipeline_time() -> None:
    plan = upwind.plan(of_shape(4, 5), 2, ranks=12)
    assert (plan.mapping, plan.grid) == (None, (3, 4))
    assert any("the space loops are all cut" in reason for reason in plan.reasons)


def test_gauss_seidel_keeps_a_space_loop_pipelined() -> None:
    for ranks, grid in ((2, (2, 1)), (4, (2, 2)), (4, (1, 4))):
        plan = gauss_seidel.using(grid=grid).plan(of_shape(66, 66), 500, ranks=ranks)
        assert plan.mapping is not None
        assert plan.partition.grid == grid
        assert any("t is not: the flow dependence [1, " in reason for reason in plan.reasons)
    assert gauss_seidel.plan(of_shape(66, 66), 500, ranks=4).mapping is not None


def test_a_dependence_backwards_along_a_loop_that_is_whole_does_no_harm() -> None:
    plan = from_the_right.plan(of_shape(66, 66), 500, ranks=2)
    assert (plan.mapping, plan.grid) == (None, (2, 1))
    refused = from_the_right.using(grid=(1, 2)).plan(of_shape(66, 66), 500, ranks=2)
    assert refused.mapping_loop == "i"
    assert refused.reasons[0] == "t is not: the flow dependence [1, 0, -1] points backwards along j"


def test_elements_written_by_two_ranks_keep_a_space_loop_pipelined() -> None:
    """The later rank's value of the sweep before is in the way, although nobody reads it."""
    assert all(c >= 0 for d in written_twice.dependences for c in d.vector)
    shapes = (of_shape(66, 66), of_shape(66, 66))
    assert written_twice.using(grid=(2, 1)).plan(*shapes, 500, ranks=2).mapping is not None
    assert written_twice.using(grid=(1, 2)).plan(*shapes, 500, ranks=2).mapping is None


def test_default_tiles_along_time() -> None:
    """About POINTS_A_TILE points, and many tiles for each stage of the pipeline."""
    assert upwind.plan(of_shape(1001, 1001), 10_000, ranks=2).tile == 1
    assert upwind.plan(of_shape(101, 101), 10_000, ranks=2).tile == 40
    assert upwind.plan(of_shape(101, 101), 160, ranks=2).tile == 10
    assert upwind.using(grid=(2, 1)).plan(of_shape(101, 101), 2, ranks=2).tile == 1


def test_a_tile_holds_no_more_sweeps_than_there_are() -> None:
    plan = upwind.using(grid=(2, 1), tile=10**30).plan(of_shape(101, 101), 7, ranks=2)
    assert (plan.tile, plan.steps) == (7, 1)
    ragged = upwind3d.using(grid=(2, 1, 1), tile=4).plan(of_shape(9, 9, 9), 3, 4, ranks=2)
    assert (ragged.tile, ragged.steps) == (4, 3)  # 4 + 3 + 2 sweeps


def test_all_grids() -> None:
    def found(nest: lw.Nest, *arguments: Any, ranks: int) -> list[tuple[int, ...]]:
        return grids(nest.bind(nest.arguments(*arguments)), nest.dependences, ranks)

    assert found(upwind, of_shape(201, 201), 200, ranks=4) == [(1, 4), (2, 2), (4, 1)]
    assert found(upwind, of_shape(201, 4), 200, ranks=4) == [(2, 2), (4, 1)]
    assert found(upwind, of_shape(201, 201), 1, ranks=4) == [(4,)]
    assert found(gauss_seidel, of_shape(202, 202), 200, ranks=4) == [(4,)]
    assert found(gauss_seidel, of_shape(4, 4), 200, ranks=4) == [(2, 2)]
    assert found(sqrt3d, of_shape(17, 18, 190), ranks=6) == [(1, 6), (2, 3), (3, 2), (6, 1)]
    assert found(from_the_right, of_shape(66, 66), 500, ranks=4) == [(4, 1)]
    assert found(upwind, of_shape(1, 1), 200, ranks=3) == [(3,)]  # nothing to do
    assert found(line, of_shape(3), ranks=3) == [(2,)]
    for nest, arguments in ((upwind, (of_shape(25, 25), 40)), (gauss_seidel, (of_shape(25, 25), 40))):
        for grid in found(nest, *arguments, ranks=6):
            assert nest.using(grid=grid).plan(*arguments, ranks=6).grid == grid


# -- tiles -----------------------------------------------------------------------------------------------------------


def test_one_rank_takes_its_block_as_one_tile() -> None:
    plan = gauss_seidel.plan(of_shape(102, 1002), 3)
    assert (plan.tile, plan.steps) == (1000, 1)


def test_a_default_tile_keeps_the_pipeline_full() -> None:
    for ranks in (2, 4, 8):
        plan = sqrt3d.plan(of_shape(65, 65, 16385), ranks=ranks)
        assert plan.steps >= 4 * sum(p - 1 for p in plan.partition.grid)
        assert plan.steps == math.ceil(16384 / plan.tile)


def test_a_tile_is_at_most_the_block() -> None:
    plan = gauss_seidel.using(tile=10**30).plan(of_shape(9, 42), 1, ranks=2)
    assert (plan.tile, plan.steps) == (40, 1)
    assert gauss_seidel.using(tile=13).plan(of_shape(9, 42), 1, ranks=2).steps == 4


@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_an_empty_space_has_a_plan_on_any_ranks(ranks: int) -> None:
    for plan in (gauss_seidel.plan(of_shape(2, 2), 1, ranks=ranks), gauss_seidel.plan(of_shape(9, 9), 0, ranks=ranks)):
        assert (plan.ranks, plan.steps, plan.message_bytes) == (ranks, 0, 0)
        assert "a loop has no iterations" in str(plan)


# -- how it is told --------------------------------------------------------------------------------------------------


def test_plan_as_text() -> None:
    plan = gauss_seidel.using(engine="blocking", tile=20).plan(of_shape(9, 42), 3, ranks=2)
    *told, reason, against = str(plan).splitlines()
    assert told == [
        "gauss_seidel: i 7 × j 40 points a sweep on 2 ranks",
        "  dependences  [0, 1, 0] [0, 0, 1] [1, -1, 0] [1, 0, -1]",
        "  sweeps       t, in order; old values exchanged between them",
        "  pipelined    j, tiles of 20, 2 steps a sweep",
        "  inner form   lanes of 16: along j each point waits about 16 cycles for the one before it",
        "  grid         2 (i in 2)",
        "  messages     about 160 bytes a step from one rank to the next",
        "  engine       blocking",
    ]
    assert reason.startswith("  because      j is pipelined: ")
    assert against == "  because      t is not: the flow dependence [1, 0, -1] points backwards along j"


def test_old_values_are_told_of_where_they_are_exchanged() -> None:
    exchanged = "; old values exchanged between them"
    assert f"  sweeps       t, in order{exchanged}\n" in str(gauss_seidel.plan(of_shape(66, 66), 9, ranks=2))
    for plan in (gauss_seidel.plan(of_shape(66, 66), 3), upwind.using(grid=(2,)).plan(of_shape(66, 66), 9, ranks=2)):
        assert "  sweeps       t, in order\n" in str(plan)


def test_sweeps_that_share_what_is_copied_are_told_of() -> None:
    with vectors_of(32):
        text = str(gauss_seidel.plan(of_shape(66, 66), 17))
    assert "  sweeps       t, in order; 6 at once\n" in text
    assert "  inner form   8 sweeps in vectors: along j each point waits about 16 cycles" in text
    assert "copied" not in str(gauss_seidel.plan(of_shape(66, 66), 9, ranks=2))


def test_ranks_that_do_several_sweeps_at_once_have_as_much_to_do() -> None:
    """Over five sweeps the ends of blocks move by four columns: the first rank is given two more, the last two less."""
    plan = gauss_seidel.plan(of_shape(202, 402), 10, ranks=2)
    assert (plan.joined, plan.mapping_loop, plan.tile, plan.grid) == (5, "i", 64, (2,))
    assert plan.partition.cuts == ((1, 201), (1, 203, 401))
    assert "  sweeps       t, in order; old values exchanged between them; 5 at once, on what is copied once\n" in str(
        plan
    )


def test_plan_along_time_as_text() -> None:
    plan = upwind.using(tile=3).plan(of_shape(41, 81), 64, ranks=2)
    assert str(plan).splitlines() == [
        "upwind: i 40 × j 80 points a sweep on 2 ranks",
        "  dependences  [1, 0, 0] [0, 1, 0] [0, 0, 1]",
        "  sweeps       t, in order",
        "  pipelined    t, tiles of 3 sweeps, 22 steps",
        "  inner form   plain: along j each point waits about 8 cycles for the one before it",
        "  grid         1x2 (j in 2)",
        "  messages     about 960 bytes a step from one rank to the next",
        "  engine       overlap, polling every 75 µs, 2 buffers a channel",
        "  because      t is pipelined: no dependence points backwards, and there are 64 sweeps",
    ]
    told = plan.to_json()
    assert json.loads(json.dumps(told)) == told
    assert {key: told[key] for key in ("mapping", "tile", "grid", "steps", "sweeps", "message_bytes")} == {
        "mapping": "t",
        "tile": 3,
        "grid": [1, 2],
        "steps": 22,
        "sweeps": ["t"],
        "message_bytes": 960,
    }


def test_plan_of_one_rank_as_text() -> None:
    text = str(sqrt3d.plan(of_shape(5, 5, 7)))
    assert "i 4 × j 4 × k 6 points a sweep on 1 rank\n" in text
    assert "  grid         one rank\n" in text
    assert "messages" not in text
    assert "sweeps  " not in text


def test_plan_as_json() -> None:
    plan = gauss_seidel.using(tile=20).plan(of_shape(9, 42), 3, ranks=2)
    told = plan.to_json()
    assert json.loads(json.dumps(told)) == told
    reasons = told.pop("reasons")
    assert all(isinstance(reason, str) for reason in reasons)
    assert told == {
        "nest": "gauss_seidel",
        "ranks": 2,
        "idle": 0,
        "dependences": [[0, 1, 0], [0, 0, 1], [1, -1, 0], [1, 0, -1]],
        "engine": "overlap",
        "sweeps": ["t"],
        "mapping": "j",
        "tile": 20,
        "inner": {
            "form": "lanes of 16",
            "rule": "along j each point waits about 16 cycles for the one before it",
            "seconds_per_point": {},
        },
        "notes": [],
        "grid": [2],
        "steps": 2,
        "joined": 1,
        "limit": None,
        "message_bytes": 160,
        "buffers": 2,
        "slice_seconds": 75e-6,
        "skew": None,
        "streaming": None,
        "predicted": None,
    }


def test_messages_of_descending_loops_are_told() -> None:
    assert upwards.using(tile=4, grid=(2, 1)).plan(of_shape(9, 4), ranks=2).message_bytes == 32


def test_choices_do_not_change_the_nest_they_were_made_from() -> None:
    gauss_seidel.using(engine="blocking", tile=2, grid=(1, 1))
    assert (gauss_seidel.engine, gauss_seidel.tile, gauss_seidel.grid) == (None, None, None)


def test_planning_is_pure(tmp_path: Path) -> None:
    """A plan for 64 ranks loads no MPI and no compiled code, and builds nothing."""
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "import lapwing as lw\n"
        "from lapwing.loopnest.array_shape import ArrayShape\n"
        "@lw.nest\n"
        "def line(u):\n"
        "    for i in range(1, u.shape[0]):\n"
        "        for j in range(u.shape[1]):\n"
        "            u[i, j] = 0.5 * u[i - 1, j]\n"
        "print(line.plan(ArrayShape('float64', (999, 999)), ranks=64))\n"
        "light = {'lapwing.runtime.mpi', 'lapwing.runtime.mpi.ending', 'lapwing.launcher'}\n"
        "loaded = [n for n in sys.modules if n.split('.')[0] == 'mpi4py' or n.startswith('lapwing.runtime.')]\n"
        "loaded = [n for n in loaded if n not in light]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=scaled(120), check=False,
        env={**os.environ, "LAPWING_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("line: i 998 × j 999 points a sweep on 64 ranks")
    assert not (tmp_path / "cache").exists()
