"""Checks random nests some of whose arrays are on disk: started by test_nests_on_disk.py as nest_worker.py is by its test."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from types import ModuleType

from hypothesis import strategies as st
from nest_worker import Leader, Manner, main, manners
from on_disk import OnDisk, layouts, streaming_grids
from random_nests import Case, Choice, cases, choices
from structured_nests import structured_cases

import lapwing as lw
from lapwing.planner.plan import ENGINES

RUNS = 4  # ways tried on one compiled nest

# What refusals say, and what they are counted as.
REASONS = {
    "no loop can be streamed along: .* points backwards along it": "backwards",
    "no loop can be streamed along": "does not stream",
    "expected .* the frontiers and slabs": "too little memory",
    "out of core expected .* ranks over the loops other than": "grid",
    "out of core expected one rank along .: statements write elements of . at different places": "written apart",
    "out of core expected one rank along .: the .* dependence .* points backwards": "backwards",
}


@st.composite
def ways(draw: st.DrawFn, case: Case, ranks: int) -> tuple[Choice, Manner]:
    choice = draw(choices(case, ranks, ENGINES))
    if draw(st.integers(0, 9)) < 9:  # others are refused
        choice = replace(choice, grid=draw(st.sampled_from([None, *streaming_grids(case, ranks)])))
    if draw(st.booleans()):  # low slabs, so that there are many
        choice = replace(choice, tile=draw(st.integers(1, 4)))
    manner = replace(draw(manners(ranks)), kept=False, created=False, on_disk=draw(layouts(case)))
    return choice, manner


class DiskLeader(Leader):
    def refused_on_disk(
        self, case: Case, module: ModuleType, choice: Choice, on_disk: OnDisk, error: lw.RefusedError
    ) -> None:
        text = str(error)
        kind = next((name for pattern, name in REASONS.items() if re.search(pattern, text)), None)
        assert kind is not None, f"refused: {error}"
        self.count[f"refused: {kind}"] += 1
        if kind == "backwards":
            assert case.skewed or module.nest.plan(**case.arguments()).skew is not None, f"refused: {error}"
        assert kind != "does not stream" or case.along is None, f"refused: {error}"
        assert kind != "too little memory" or on_disk.memory is not None, f"refused: {error}"
        assert kind != "grid" or choice.grid is not None, f"refused: {error}"


def check(leader: Leader, data: st.DataObject) -> None:
    skewed = data.draw(st.integers(0, 4), label="skewed") == 4
    if data.draw(st.integers(0, 2), label="structured") == 2:
        case = data.draw(structured_cases(skewed=skewed, imperfect=False, streaming=True), label="nest")
    else:
        case = data.draw(cases(skewed=skewed, streaming=True), label="nest")
    cuts = data.draw(st.lists(ways(case, leader.comm.Get_size()), min_size=RUNS, max_size=RUNS), label="ways")
    try:
        leader.check(case, cuts)
    finally:
        for path in leader.directory.glob("nest_*.*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(DiskLeader, check))
