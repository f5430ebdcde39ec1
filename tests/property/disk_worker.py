"""Checks random nests some of whose arrays are on disk: started by test_nests_on_disk.py as nest_worker.py is by its test."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from types import ModuleType

from hypothesis import strategies as st
from nest_worker import Leader, Manner, OnDisk, main, manners
from random_nests import Case, Choice, cases, choices, grids

import lapwing as lw
from lapwing.planner.plan import ENGINES

RUNS = 4  # ways tried on one compiled nest

# What refusals say, and what they are counted as.
REASONS = {
    "has to be skewed": "skewed",
    "no loop runs along the first axis, and only the first": "does not stream",
    "expected .* the frontiers and slabs": "too little memory",
    "out of core expected .* ranks over the loops other than": "grid",
}


@st.composite
def layouts(draw: st.DrawFn, case: Case) -> OnDisk:
    """Arrays on disk, one that is written among them. Mostly all that are written."""
    written = [a for a in case.arrays if a.name in "uvw"]
    others = [a for a in case.arrays if a not in written]
    on_disk = written
    if draw(st.integers(0, 4)) == 4:
        on_disk = draw(st.lists(st.sampled_from(written), min_size=1, unique=True))
    if others:
        on_disk = [*on_disk, *draw(st.lists(st.sampled_from(others), unique=True))]
    chunks: list[tuple[str, tuple[int, ...] | None]] = []
    for array in on_disk:
        most = 7 if len(array.shape) < 3 else 3  # chunks along an axis: each is a file
        shape = draw(st.tuples(*(st.integers(-(-max(1, n) // most), max(1, n) + 1) for n in array.shape)))
        chunks.append((array.name, None if draw(st.integers(0, 4)) == 4 else shape))
    digits = draw(st.sampled_from([None, None, None, None, 6, 5, 4, 3]))
    memory = None if digits is None else draw(st.integers(10**digits, 10 ** (digits + 1)))
    pass_sweeps = draw(st.one_of(st.none(), st.integers(1, 8)))
    return OnDisk(tuple(chunks), memory, pass_sweeps, draw(st.sampled_from([None, 1, 2, 3])), draw(st.booleans()))


@st.composite
def ways(draw: st.DrawFn, case: Case, ranks: int) -> tuple[Choice, Manner]:
    choice = draw(choices(case, ranks, ENGINES))
    assert case.along is not None
    fitting = [
        grid
        for grid in grids(ranks, len(case.extents))
        if grid[case.along] == 1 and all(p <= max(e, 1) for p, e in zip(grid, case.extents, strict=True))
    ]
    if draw(st.integers(0, 9)) < 9:  # others are refused
        choice = replace(choice, grid=draw(st.sampled_from([None, *fitting])))
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
        if kind == "skewed":
            assert case.skewed or module.nest.plan(**case.arguments()).skew is not None, f"refused: {error}"
        assert kind != "does not stream" or case.along is None, f"refused: {error}"
        assert kind != "too little memory" or on_disk.memory is not None, f"refused: {error}"
        assert kind != "grid" or choice.grid is not None, f"refused: {error}"


def check(leader: Leader, data: st.DataObject) -> None:
    case = data.draw(cases(skewed=data.draw(st.integers(0, 19), label="skewed") == 19, streaming=True), label="nest")
    cuts = data.draw(st.lists(ways(case, leader.comm.Get_size()), min_size=RUNS, max_size=RUNS), label="ways")
    try:
        leader.check(case, cuts)
    finally:
        for path in leader.directory.glob("nest_*.*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(DiskLeader, check))
