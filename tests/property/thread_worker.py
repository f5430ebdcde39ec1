"""Checks random nests on ranks that are threads: started by test_thread_ranks.py, under ThreadSanitizer or not.

    python thread_worker.py DIRECTORY EXAMPLES SEED plain|sanitized
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from comparing import check_arrays
from hypothesis import strategies as st
from loading import load
from random_nests import Case, Choice, cases, check_refused_grid, choices, fitting_grids
from searching import engine, search
from thread_ranks import BROKEN, RankThreads, Way

from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan

CUTS = 4  # tried on one compiled nest
SECONDS = 1500


@st.composite
def runs(draw: st.DrawFn, case: Case) -> tuple[int, Choice, Way]:
    ranks = draw(st.sampled_from([2, 3, 4, 6, 1]))
    choice = draw(choices(case, ranks, ["onesided"]))
    if draw(st.booleans()) and (grids := fitting_grids(case, ranks)):  # tiles along time, where they are legal
        choice = Choice("onesided", draw(st.integers(1, 4)), draw(st.sampled_from(grids)))
    return ranks, choice, draw(st.builds(Way, *[st.booleans()] * 3))


class Checker:
    def __init__(self, directory: Path, sanitized: bool) -> None:
        self.threads = RankThreads(sanitized)
        self.directory = directory
        self.count: Counter[str] = Counter()

    def check(self, data: st.DataObject) -> None:
        case = data.draw(cases(illegal=False, expressions=False), label="nest")
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "nest.py"
            path.write_text(case.source)
            nest = load(path).nest
        expected = case.arguments()
        with np.errstate(all="ignore"):
            nest.python(**expected)
        for ranks, choice, way in data.draw(st.lists(runs(case), min_size=CUTS, max_size=CUTS), label="cuts"):
            (self.directory / "current.py").write_text(f"{case}\n# {ranks} ranks, {choice}, {way}\n")
            arguments = case.arguments()
            bound = nest.bind(arguments)
            if bound.domain.is_empty:
                return
            try:
                plan = make_plan(bound, nest.dependences, ranks, Wishes(choice.engine, choice.tile, choice.grid))
            except RefusedError as error:
                check_refused_grid(case, ranks, choice, error)
                continue
            self.threads.run(bound, plan, arguments, way)
            check_arrays(arguments, expected)
            self.count["along time" if plan.mapping is None else "along space"] += 1


def main() -> int:
    directory, examples, start, kind = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os.environ.pop("LD_PRELOAD", None)  # compilers need no ThreadSanitizer
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    if BROKEN:
        engine.MAX_SHRINKING_SECONDS = 0
    checker = Checker(directory, kind == "sanitized")
    try:
        search(checker.check, examples, start)
    except Exception:
        traceback.print_exc()
        return 1
    print(dict(checker.count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
