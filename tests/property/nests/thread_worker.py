"""Checks nests on ranks that are threads: started by test_thread_ranks.py, under ThreadSanitizer or not.

Half of the examples are random nests, the others are nests below on random shapes, which are compiled but once. With
LAPWING_TEST_NEST=NAME all are the nest of that name.

    python thread_worker.py DIRECTORY EXAMPLES SEED plain|sanitized memory|disk|queue
"""

from __future__ import annotations

import faulthandler
import os
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import in_any_form
from loading import bind_for_ranks, load
from on_disk import OnDisk, layouts, streaming_grids
from random_nests import ArraySpec, Case, Choice, cases, check_refused_grid, choices, fitting_grids
from searching import engine, search
from thread_ranks import BROKEN, RankThreads, Way

import lapwing as lw
from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.streaming import DiskRates, StreamingWishes, streaming_plan

BLOCK = 64  # elements of a block of the disk
CUTS = 4  # tried on one nest
SECONDS = 7000


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def far(u, sweeps):
    for t in range(sweeps):
        for i in range(2, u.shape[0] - 3):
            for j in range(u.shape[1] - 2, 1, -1):
                u[i, j] = 0.5 * u[i - 2, j + 1] + 0.25 * u[i + 3, j - 2] + u[i, j - 1]


@lw.nest
def two_reaches(u, v, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 3):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i - 1, j - 1] + v[i + 1, j]
                v[i, j] = 0.5 * v[i + 3, j + 1] + u[i, j]


@lw.nest
def written_twice(u, sweeps):
    for t in range(sweeps):
        for i in range(2, u.shape[0] - 3):
            for j in range(2, u.shape[1] - 3):
                u[i, j] = u[i, j] + u[i - 1, j]
                u[i + 2, j + 1] = 0.5 * u[i, j - 1]


@lw.nest
def advance(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1]) + 0.5 * u[i, j]


@lw.nest
def slanted(u, sweeps):
    for t in range(sweeps):
        for i in range(3, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.25 * (u[i - 3, j - 1] + u[i - 1, j - 1]) + 0.5 * u[i - 1, j]


@lw.nest
def upstream(u, sweeps):
    """Old values alone cross the cuts: they are sent when the receiver has read what they replace."""
    for t in range(sweeps):
        for i in range(0, u.shape[0] - 1):
            for j in range(0, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i, j] + 0.25 * (u[i + 1, j] + u[i, j + 1])


NARROW = st.integers(8, 14)
# Rows of whole blocks of the disk, which need not be copied on their way.
WIDE = st.sampled_from([BLOCK, 2 * BLOCK])
KNOWN = (smooth, far, two_reaches, written_twice, advance, slanted, slanted, upstream)
ONLY = [nest for nest in KNOWN if nest.loops.name == os.environ.get("LAPWING_TEST_NEST")]


@st.composite
def calls(draw: st.DrawFn, nests: Sequence[lw.Nest], columns: st.SearchStrategy[int]) -> tuple[lw.Nest, Case]:
    """One of the nests with arrays for it."""
    nest = draw(st.sampled_from(nests))
    shape = draw(st.tuples(st.integers(8, 24), columns))
    arrays = tuple(
        ArraySpec(name, "float64", shape, "tame", seed) for seed, name in enumerate(nest.loops.parameters[:-1])
    )
    sweeps = draw(st.integers(1, 9))
    extents = (shape[0] - 5, shape[1] - 5)  # or more
    return nest, Case(nest.loops.name, arrays, (("sweeps", sweeps),), extents, 1, True, nest is advance, 0)


@st.composite
def runs(draw: st.DrawFn, case: Case) -> tuple[int, Choice, Way]:
    ranks = draw(st.sampled_from([2, 3, 4, 6, 1]))
    choice = draw(choices(case, ranks, ["onesided"]))
    if draw(st.booleans()) and (grids := fitting_grids(case, ranks)):  # tiles along time, where they are legal
        choice = Choice("onesided", draw(st.integers(1, 4)), draw(st.sampled_from(grids)))
    elif draw(st.booleans()):  # short ones, so that there are several to a sweep
        choice = Choice("onesided", draw(st.integers(1, 9)), choice.grid)
    direct = draw(st.sampled_from([True, True, False]))
    return ranks, choice, Way(direct, draw(st.booleans()), draw(st.booleans()))


STREAMING = (smooth, far, two_reaches, written_twice, advance)


@st.composite
def disk_runs(draw: st.DrawFn, case: Case) -> tuple[int, Choice, Way, OnDisk]:
    ranks = draw(st.sampled_from([2, 1, 3, 2, 4]))
    grid = draw(st.sampled_from([None, *streaming_grids(case, ranks)]))
    choice = Choice("onesided", draw(st.integers(1, 5)), grid)
    few_bytes = draw(st.sampled_from([8, 40, 64, 200]))
    way = Way(False, draw(st.booleans()), False, few_bytes, draw(st.integers(1, 4)), draw(st.booleans()))
    on_disk = replace(draw(layouts(case)), memory=None)
    if draw(st.booleans()):  # passes of one sweep or two, so that there are several
        on_disk = replace(on_disk, pass_sweeps=draw(st.integers(1, 2)))
    return ranks, choice, way, on_disk


@st.composite
def queue_runs(draw: st.DrawFn, case: Case) -> tuple[int, Choice, Way, OnDisk]:
    """Chunks and requests of whole blocks of the disk."""
    ranks, choice, way, on_disk = draw(disk_runs(case))
    way = replace(way, request_bytes=8 * BLOCK * draw(st.integers(1, 4)))
    chunks = draw(st.tuples(st.integers(3, 9), WIDE))
    return ranks, choice, way, replace(on_disk, chunks=tuple((name, chunks) for name, _ in on_disk.chunks))


class Checker:
    def __init__(self, directory: Path, sanitized: bool, queue: bool) -> None:
        self.threads = RankThreads(sanitized, queue)
        self.directory = directory
        self.count: Counter[str] = Counter()

    def check(self, data: st.DataObject) -> None:
        if not ONLY and data.draw(st.booleans(), label="random"):
            case = data.draw(cases(expressions=False), label="nest")
            nest = imported(case)
        else:
            nest, case = data.draw(calls(ONLY or KNOWN, NARROW), label="nest")
        expected = self.expected(nest, case)
        for ranks, choice, way in data.draw(st.lists(runs(case), min_size=CUTS, max_size=CUTS), label="cuts"):
            self.note(case, f"{ranks} ranks, {choice}, {way}")
            arguments = case.arguments()
            bound = bind_for_ranks(nest, arguments)
            if bound is None or bound.domain.is_empty:
                return
            try:
                plan = make_plan(bound, nest.dependences, ranks, Wishes(choice.engine, choice.tile, choice.grid))
            except RefusedError as error:
                if nest not in KNOWN:
                    check_refused_grid(case, ranks, choice, error)
                continue
            direct = self.threads.run(bound, in_any_form(plan, bound, nest), arguments, way)
            check_arrays(arguments, expected)
            self.count["along time" if plan.mapping is None else "along space"] += 1
            self.count["stored directly"] += direct

    def check_on_disk(self, data: st.DataObject) -> None:
        if data.draw(st.booleans(), label="random"):
            case = data.draw(cases(expressions=False, skewed=False, streaming=True), label="nest")
            nest = imported(case)
        else:
            nest, case = data.draw(calls(STREAMING, NARROW), label="nest")
        self.check_streamed(nest, case, data.draw(st.lists(disk_runs(case), min_size=CUTS, max_size=CUTS)))

    def check_in_queue(self, data: st.DataObject) -> None:
        nest, case = data.draw(calls(STREAMING, WIDE), label="nest")
        self.check_streamed(nest, case, data.draw(st.lists(queue_runs(case), min_size=CUTS, max_size=CUTS)))

    def check_streamed(self, nest: lw.Nest, case: Case, runs: Sequence[tuple[int, Choice, Way, OnDisk]]) -> None:
        expected = self.expected(nest, case)
        for ranks, choice, way, on_disk in runs:
            self.note(case, f"{ranks} ranks, {choice}, {way}, {on_disk}")
            arguments = case.arguments()
            bound = bind_for_ranks(nest, arguments)
            if bound is None or bound.domain.is_empty:
                return
            with tempfile.TemporaryDirectory() as directory:
                paths = on_disk.store(Path(directory) / "arrays", arguments)
                stored = {name: lw.open(path) for name, path in paths.items()}
                try:
                    plan = streaming_plan(
                        bound,
                        nest.dependences,
                        ranks,
                        1,
                        Wishes(choice.engine, choice.tile, choice.grid),
                        StreamingWishes(None, on_disk.pass_sweeps, on_disk.ring or 3),
                        {name: array.chunks for name, array in stored.items()},
                        DiskRates.of(None),
                        1e-9,
                    )
                except RefusedError as error:
                    if not re.search("points backwards along|at different places along", str(error)):
                        raise
                    self.count["refused"] += 1
                    continue
                self.threads.run(bound, in_any_form(plan, bound, nest), arguments, way, stored)
            check_arrays(arguments, expected)
            assert plan.streaming is not None
            self.count["on disk"] += 1
            self.count["several passes"] += plan.streaming.passes > 1
            self.count["several sweeps a pass"] += plan.streaming.pass_sweeps > 1

    def expected(self, nest: lw.Nest, case: Case) -> dict[str, object]:
        arguments = case.arguments()
        with np.errstate(all="ignore"):
            nest.python(**arguments)
        return arguments

    def note(self, case: Case, run: str) -> None:
        (self.directory / "current.py").write_text(f"{case}\n# {run}\n")


def imported(case: Case) -> lw.Nest:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        nest: lw.Nest = load(path).nest
        return nest


def main() -> int:
    directory, examples, start = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    kind, place = sys.argv[4:]
    os.environ.pop("LD_PRELOAD", None)  # compilers need no ThreadSanitizer
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    if BROKEN:
        engine.MAX_SHRINKING_SECONDS = 0
    checker = Checker(directory, kind == "sanitized", place == "queue")
    checks = {"memory": checker.check, "disk": checker.check_on_disk, "queue": checker.check_in_queue}
    try:
        search(checks[place], examples, start)
    except Exception:
        traceback.print_exc()
        return 1
    print(dict(checker.count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
