"""Checks random nests with structured bodies on the ranks of one MPI run, as ``nest_worker.py`` does others."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import strategies as st
from nest_worker import RUNS, main, manners
from random_nests import choices
from structured_nests import structured_cases

from lapwing.planner.plan import ENGINES


def check_structured(leader: Any, data: st.DataObject) -> None:
    ranks = leader.comm.Get_size()
    case = data.draw(structured_cases(), label="nest")
    cut = st.tuples(choices(case, ranks, ENGINES), manners(ranks))
    leader.check(case, data.draw(st.lists(cut, min_size=RUNS, max_size=RUNS), label="cuts"))


if __name__ == "__main__":
    sys.exit(main(check=check_structured))
