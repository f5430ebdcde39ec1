"""Random nests with structured bodies, on ranks and on simulated ones, with all engines: the very bits of the plain loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st
from random_nests import choices
from randomness import first_seed, wanted
from searching import search
from simulated_ranks import orders
from simulated_runs import check_run
from starting import Variant, run_worker
from structured_nests import structured_cases

from lapwing.planner.plan import ENGINES


def check_simulated(data: st.DataObject) -> None:
    case = data.draw(structured_cases(expressions=False, imperfect=False), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4, 6]), label="ranks")
    choice = data.draw(choices(case, ranks, ENGINES), label="cut")
    check_run(case, ranks, choice, data.draw(orders(), label="order"))


def test_what_ranks_tell_each_other_is_enough() -> None:
    search(check_simulated, wanted(15), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_what_ranks_tell_each_other_is_enough_at_length() -> None:
    search(check_simulated, wanted(4000), first_seed() + 1)


@pytest.mark.mpi
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("ranks", "nests"), [(1, 12), (2, 12), pytest.param(4, 12, marks=pytest.mark.long)])
def test_bits_of_the_plain_loop(ranks: int, nests: int, tmp_path: Path) -> None:
    run_worker("structured_worker.py", Variant(ranks, wanted(nests)), tmp_path)


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.timeout(14400)
@pytest.mark.parametrize(("ranks", "nests"), [(1, 1500), (2, 1200), (3, 300), (4, 400)])
def test_bits_of_the_plain_loop_at_length(ranks: int, nests: int, tmp_path: Path) -> None:
    run_worker("structured_worker.py", Variant(ranks, wanted(nests), seed=10 + ranks), tmp_path)
