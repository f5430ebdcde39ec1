"""What ranks tell each other is enough, in time, and inside their memory: plans run message by message in Python."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from itertools import product

import pytest
from everyday import everyday_together
from hypothesis import assume
from hypothesis import strategies as st
from random_nests import ArraySpec, Case, Choice, cases, choices, fitting_grids
from randomness import first_seed, wanted
from searching import search
from simulated_ranks import orders
from simulated_runs import check_run

from lapwing.planner.plan import ENGINES


def check(data: st.DataObject) -> None:
    case = data.draw(cases(expressions=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4, 6, 8]), label="ranks")
    choice = data.draw(choices(case, ranks, ENGINES), label="cut")
    check_run(case, ranks, choice, data.draw(orders(), label="order"))


def check_along_time(data: st.DataObject) -> None:
    """Tiles of one to four sweeps, in nests and on grids where they are legal."""
    case = data.draw(cases(skewed=False, expressions=False, forward=True), label="nest")
    ranks = data.draw(st.sampled_from([4, 2, 6, 8, 3]), label="ranks")
    grids = fitting_grids(case, ranks)
    assume(grids)
    grids.sort(key=lambda grid: -sum(parts > 1 for parts in grid))
    engine, tile = data.draw(st.sampled_from(ENGINES), label="engine"), data.draw(st.integers(1, 4), label="tile")
    choice = Choice(engine, tile, data.draw(st.sampled_from(grids), label="grid"))
    done = check_run(case, ranks, choice, data.draw(orders(), label="order"))
    assert done is None or done.plan.mapping is None or len(done.sweeps) == 1


def check_apart(data: st.DataObject) -> None:
    """Steps short and many, with the engines that work on the messages of other steps meanwhile."""
    case = data.draw(cases(expressions=False, forward=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4]), label="ranks")
    engine, tile = data.draw(st.sampled_from(["onesided", "helper"]), label="engine"), data.draw(st.integers(1, 3))
    grid = data.draw(st.sampled_from([None, *fitting_grids(case, ranks)]), label="grid")
    check_run(case, ranks, Choice(engine, tile, grid), data.draw(orders(), label="order"))


def check_joined(data: st.DataObject) -> None:
    """Several sweeps at once, in nests and on grids where that can be done."""
    case = data.draw(cases(expressions=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4, 6, 1]), label="ranks")
    grids = fitting_grids(case, ranks)
    grid = data.draw(st.sampled_from([None, *grids]), label="grid")
    engine, tile = data.draw(st.sampled_from(ENGINES), label="engine"), data.draw(st.integers(1, 9), label="tile")
    joined = data.draw(st.integers(2, 5), label="joined")
    order = data.draw(orders(), label="order")
    assume(check_run(case, ranks, Choice(engine, tile, grid), order, joined) is not None)


def test_an_array_that_reaches_farther_is_not_late() -> None:
    """w is needed three rows before the others, so its messages overtake theirs."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u, v, w):
            for s in range(3):
                for i in range(2, 23):
                    for j in range(0, 8):
                        u[i, j] = u[i, j + 1]
                        w[i, j] = w[i + 3, j + 1]
                        v[i, j] = v[i - 1, j]
    """
    arrays = tuple(ArraySpec(name, "int64", (26, 9), "tame", seed) for seed, name in enumerate("uvw"))
    case = Case(textwrap.dedent(text), arrays, (), (21, 8), 3 * 21 * 8)
    for grid in ((1, 2), (2, 1), (1, 3), (3, 1)):
        check_run(case, math.prod(grid), Choice("overlap", 1, grid), lambda count: 0)


def test_rows_without_iterations_are_nobodys() -> None:
    """The inner loop is empty from i = 3 on, and u has no such rows."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for i in range(1, 15):
                for j in range(1, -2 * i + 6):
                    u[i, j] = (u[i - 2, j] if i >= 2 else 2) - 1
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (4, 4), "tame", 0),), (), (2, 3), 4)
    for grid in ((1, 2), (2, 1), (1, 3)):
        check_run(case, math.prod(grid), Choice("blocking", 1, grid), lambda count: count - 1)


def test_stores_whose_boxes_leave_the_array_are_for_one_rank() -> None:
    text = """
        import lapwing as lw
        @lw.nest
        def nest(v, n):
            for s in range(1, 3):
                for t in range(0, s + 1):
                    for i in range(0, -s + 4):
                        for j in range(2, 20):
                            for k in range(n + (s + 1) % 4, 3, 2):
                                v[s, i, j, k] = v[s - 1, i, j - 2, k + 2] + 1
    """
    case = Case(
        textwrap.dedent(text), (ArraySpec("v", "int64", (2, 3, 21, 5), "tame", 0),), (("n", 0),), (3, 18, 1), 400
    )
    assert check_run(case, 2, Choice("blocking", None, (1, 2, 1)), lambda count: 0) is None


def test_indices_from_the_end_in_a_window_that_moves() -> None:
    """i - t - 6 is negative wherever the loops go, but not everywhere in a rank's block."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u, r):
            for t in range(4):
                for i in range(2, t + 6):
                    for j in range(1, 9):
                        u[i, j] = r[i - t - 6] + u[i, j - 1]
    """
    arrays = (ArraySpec("u", "int64", (9, 9), "tame", 0), ArraySpec("r", "int64", (7,), "tame", 1))
    case = Case(textwrap.dedent(text), arrays, (), (7, 8), 4 * 7 * 8)
    for grid in ((1, 2), (2, 1), (3, 1)):
        check_run(case, math.prod(grid), Choice("overlap", 2, grid), lambda count: 0)


def each_engine(*grids: tuple[int, ...]) -> pytest.MarkDecorator:
    """Engines and grids: every day each engine with one of the grids, in the long tests with all."""
    ones = [(engine, grids[k % len(grids)]) for k, engine in enumerate(ENGINES)]
    return pytest.mark.parametrize(("engine", "grid"), everyday_together(product(ENGINES, grids), ones))


@each_engine((1, 4), (2, 2), (4, 1))
def test_halos_of_two_colours_are_exchanged_between_sweeps(engine: str, grid: tuple[int, int]) -> None:
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for t in range(5):
                for i in range(1, 10):
                    for j in range(1, 12):
                        if (i + j + t) % 2 == 0:
                            u[i, j] += 3 * u[i - 1, j] + u[i + 1, j] - u[i, j - 1] + 2 * u[i, j + 1]
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (11, 13), "tame", 0),), (), (9, 11), 5 * 9 * 11, True)
    for order in (lambda count: 0, lambda count: count - 1):
        done = check_run(case, 4, Choice(engine, 2, grid), order)
        assert done is not None
        assert all(channel.lag for rank in done.ranks for channel in rank.outgoing)


@each_engine((1, 3), (2, 2), (4, 1))
def test_colours_on_a_torus_do_not_wait_in_a_circle(engine: str, grid: tuple[int, int]) -> None:
    """What the first step makes is needed by the neighbour's last one, in both directions."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for t in range(3):
                for i in range(8):
                    for j in range(6):
                        if (i + j + t) % 2 == 0:
                            u[i, j] += 3 * u[i - 1, j] + u[(i + 1) % 8, j] - u[i, j - 1] + 2 * u[i, (j + 1) % 6]
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (8, 6), "tame", 0),), (), (8, 6), 3 * 8 * 6, True)
    for order in (lambda count: 0, lambda count: count - 1):
        assert check_run(case, grid[0] * grid[1], Choice(engine, 2, grid), order) is not None


def test_elements_stay_until_they_have_been_read() -> None:
    """Rank 0 runs ahead by all it may; six columns back are three steps back."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for t in range(4):
                for i in range(1, 7):
                    for j in range(6, 36):
                        u[i, j] += 3 * u[i - 1, j - 6] + u[i - 1, j] + u[i, j - 1]
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (7, 36), "tame", 0),), (), (6, 30), 4 * 6 * 30, True)
    for engine in ENGINES:
        check_run(case, 3, Choice(engine, 2, (3,)), lambda count: 0)


def test_elements_are_not_replaced_while_a_step_before_reads_them() -> None:
    """The lower rank's first columns are read by the step before the one that its columns lie under."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for t in range(4):
                for i in range(0, 6):
                    for j in range(0, 30):
                        u[i, j] += 3 * u[i + 1, j + 3] + u[i + 1, j] + u[i, j + 1]
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (7, 33), "tame", 0),), (), (6, 30), 4 * 6 * 30, True)
    for engine in ENGINES:
        for order in (lambda count: 0, lambda count: count - 1):
            check_run(case, 3, Choice(engine, 2, (3,)), order)


def test_a_sweep_does_not_overwrite_what_its_last_step_sends() -> None:
    """The last column to the left is computed last, from a neighbour's first one, which is kept for it until then: a helper packs
    it after the neighbour's last step, and not while the next sweep's first one replaces it."""
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for t in range(5):
                for i in range(0, 24 - 3 * t):
                    u[i] += 3 * u[i + 1]
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (25,), "tame", 0),), (), (24,), 5 * 24, True)
    for engine in ENGINES:
        for ranks in (2, 3):
            for order in (lambda count: 0, lambda count: count - 1):
                done = check_run(case, ranks, Choice(engine, 2, (ranks,)), order)
                assert done is not None
                if engine == "helper":
                    assert done.helped


def test_messages_are_enough_and_in_time() -> None:
    search(check, wanted(6), first_seed())


def test_messages_of_several_sweeps_are_enough_and_in_time() -> None:
    search(check_along_time, wanted(5), first_seed())


def test_messages_of_sweeps_done_at_once_are_enough_and_in_time() -> None:
    search(check_joined, wanted(2), first_seed(), simplest=False)


def test_messages_are_apart_from_the_steps_around_them() -> None:
    search(check_apart, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "which", [check, check_along_time, check_joined, check_apart], ids=lambda which: which.__name__
)
def test_messages_are_enough_and_in_time_at_length(which: Callable[[st.DataObject], None]) -> None:
    search(which, wanted(10000), first_seed())
