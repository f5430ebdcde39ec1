"""Random nests with structured bodies, on ranks and on simulated ones, with all engines: the very bits of the plain loop."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from random_nests import ArraySpec, Case, Choice, choices
from randomness import first_seed, wanted
from searching import search
from simulated_ranks import orders
from simulated_runs import check_run
from starting import Variant, run_worker
from structured_nests import structured_cases

from lapwing.errors import RefusedError
from lapwing.planner.plan import ENGINES

# What a scalar of several paths holds can be of several types; ranks have nothing to do with that.
LEFT_OUT = r"values of types .* meet|the type of a value depends on the values"


def check_simulated(data: st.DataObject) -> None:
    case = data.draw(structured_cases(expressions=False, imperfect=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4, 6]), label="ranks")
    choice = data.draw(choices(case, ranks, ENGINES), label="cut")
    assume(is_accepted(case, ranks, choice, data.draw(orders(), label="order")))


def is_accepted(case: Case, ranks: int, choice: Choice, order: Callable[[int], int]) -> bool:
    """Whether a nest runs, rather than be refused for what is left out; raises AssertionError where its bits are wrong."""
    try:
        check_run(case, ranks, choice, order)
    except RefusedError as error:
        if not all(re.search(LEFT_OUT, refusal.text) for refusal in error.refusals):
            raise
        return False
    return True


def test_scalars_of_several_types_are_left_out_and_nothing_else() -> None:
    text = """
        import lapwing as lw
        @lw.nest
        def nest(u):
            for i in range(4):
                x = u[i]
                for m in range(i):
                    x = 0.5
                u[i] = x + 1
    """
    case = Case(textwrap.dedent(text), (ArraySpec("u", "int64", (4,), "tame", 0),), (), (4,), 4, loops=1)

    def accepted(value: str) -> bool:
        changed = replace(case, source=case.source.replace("0.5", value))
        return is_accepted(changed, 2, Choice("overlap", None, None), lambda count: 0)

    assert accepted("u[i]")
    assert not accepted("0.5")
    with pytest.raises(RefusedError):
        accepted("unknown(i)")


def test_what_ranks_tell_each_other_is_enough() -> None:
    search(check_simulated, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_what_ranks_tell_each_other_is_enough_at_length() -> None:
    search(check_simulated, wanted(4000), first_seed() + 1)


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("ranks", "nests"), [(2, 2), *(pytest.param(n, 12, marks=pytest.mark.long) for n in (1, 4))])
def test_bits_of_the_plain_loop(ranks: int, nests: int, tmp_path: Path) -> None:
    run_worker("structured_worker.py", Variant(ranks, wanted(nests)), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize(("ranks", "nests"), [(1, 1500), (2, 1200), (3, 300), (4, 400)])
def test_bits_of_the_plain_loop_at_length(ranks: int, nests: int, tmp_path: Path) -> None:
    run_worker("structured_worker.py", Variant(ranks, wanted(nests), seed=10 + ranks), tmp_path)
