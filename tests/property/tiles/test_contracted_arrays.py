"""What nests leave in other arrays, and their reductions, are those of the plain loop where nobody reads some arrays afterwards:
random nests that delete arrays, in every inner form and cut into tiles; a few on ranks.

LAPWING_EXAMPLES sets how many nests are tried, LAPWING_SEED which ones. As a program this file is what the ranks run.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday_together
from hypothesis import strategies as st
from inner_forms import in_form
from limits import scaled
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY, first_seed, rounds, wanted

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError
from lapwing.tiling.inner import legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest
from lapwing.tiling.transposed import planes_of

BORDER = 3
# Distances along i and j from an element to what is read for it, in the direction of the loops.
BEFORE = [(0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (1, 2), (3, 1), (1, -1), (2, -2)]
AFTER = [(0, -1), (-1, 0), (-1, -1), (-2, 0)]
COLUMNS = [
    "{b}, m - {b}", "{b}, min(m - {b}, i + {b})", "max({b}, i - 9), min(m - {b}, i + 20)", "i, m - {b}", "{b}, m - {b} - i",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    source: str
    deleted: tuple[str, ...]
    shape: tuple[int, int]
    planes: int  # of arrays with three axes; 0 of those with two
    seed: int

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self.source}\n# {self.shape}, planes {self.planes}, seed {self.seed}\n")

    def arguments(self) -> dict[str, Any]:
        generator = np.random.default_rng(self.seed)
        shape = (self.planes, *self.shape) if self.planes else self.shape
        return {name: generator.standard_normal(shape) for name in ("h", "g", "out", "x")}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    down, left = draw(st.booleans()), draw(st.booleans())
    outer = draw(st.sampled_from(["", "", "for k in range(1, 4):", "", "for t in range(3):"]))
    plane = "k, " if "k" in outer else ""

    def element(array: str, across: int, along: int, behind: int = 0) -> str:
        first = f"k - {behind}, " if behind else plane
        text = f"{first}i + {-across if not down else across}, j + {-along if not left else along}"
        return f"{array}[{text.replace('+ -', '- ').replace(' + 0', '').replace(' - 0', '')}]"

    def reads(array: str, least: int = 0) -> list[str]:
        found = draw(st.lists(st.sampled_from(BEFORE), min_size=least, max_size=3, unique=True))
        found += draw(st.lists(st.sampled_from(AFTER), max_size=draw(st.sampled_from([0, 0, 1])), unique=True))
        return [element(array, *distance) for distance in found]

    own = {array: element(array, 0, 0) for array in ("h", "g", "out", "x")}
    of_h = [element("h", 0, 1), *reads("h", 1), *reads("g")]
    if plane and draw(st.booleans()):
        of_h.append(element("h", 0, 0, behind=1))
    if draw(st.sampled_from([False, False, True])):
        of_h.append(own["h"])
    of_g = [*reads("g"), *draw(st.sampled_from([[own["h"]], reads("h")]))]

    def value(found: list[str]) -> str:
        return " + ".join([own["x"], *(f"0.{k + 2} * {text}" for k, text in enumerate(found))])

    guard = draw(st.sampled_from(["", "", f"if {own['x']} > 0.1:"]))
    body = [f"{own['h']} = {value(of_h)}"]
    body = [guard, *(f"    {line}" for line in body)] if guard else body
    body += [f"{own['g']} = {value(of_g)}"] if draw(st.booleans()) else []
    body += [f"{own['out']} = {own['h']} - {element('h', 0, 1)}"] if draw(st.sampled_from([True, True, False])) else []
    body += [f"best = max(best, {own['h']})"]
    rows, columns = f"range({BORDER}, n - {BORDER})", f"range({draw(st.sampled_from(COLUMNS)).format(b=BORDER)})"
    if down:
        rows = f"reversed({rows})"
    if left:
        columns = f"reversed({columns})"
    deleted = draw(st.sampled_from([("h",), ("h", "g"), ("g",)]))
    deleted = tuple(name for name in deleted if any(f"{own[name]} = " in line for line in body)) or ("h",)
    lines = ["n, m = x.shape[-2:]", "best = -9.0"]
    heads = [*([outer] if outer else []), f"for i in {rows}:", f"for j in {columns}:"]
    lines += ["    " * depth + head for depth, head in enumerate(heads)]
    lines += ["    " * len(heads) + line for line in body]
    lines += [f"del {', '.join(deleted)}", "return best"]
    text = "\n".join(["import lapwing as lw", "@lw.nest", "def nest(h, g, out, x):", *(f"    {s}" for s in lines)])
    text = text.replace("n, m = x.shape[-2:]", "n, m = x.shape[1], x.shape[2]" if plane else "n, m = x.shape")
    # Blocks have 64 rows.
    shape = (draw(st.sampled_from([75, 140, 72, 100, 20])), draw(st.sampled_from([90, 40, 73, 12])))
    return Case(text, deleted, shape, 5 if plane else 0, draw(st.integers(0, 99)))


def compare(case: Case, found: dict[str, Any], expected: dict[str, Any], before: dict[str, Any], bound: Any) -> None:
    """What is not deleted is right, and what is not written of the others is as it was."""
    from comparing import check_arrays

    check_arrays({n: v for n, v in found.items()}, {n: v for n, v in expected.items() if n not in case.deleted})
    for name in case.deleted:
        kept = np.ones(found[name].shape, bool)
        inside = [slice(BORDER, -BORDER)] * 2
        kept[(slice(None), *inside) if case.planes else tuple(inside)] = False
        assert np.array_equal(found[name][kept], before[name][kept]), f"the border of {name} has changed"


def check(case: Case, directory: Path, number: int, count: dict[str, int]) -> None:
    from loading import load

    path = directory / f"nest_{number}.py"
    path.write_text(case.source)
    nest = load(path).nest
    expected, before = case.arguments(), case.arguments()
    right = nest.python(**expected)
    try:
        bound = nest.bind(before)
        skew = nest.skew
    except lw.RefusedError:
        count["refused"] += 1
        return
    tiled = skewed_nest(bound, skew)
    forms = legal_forms(tiled, skewed_dependences(nest.dependences, skew))
    for form in [form for form in forms if form.transposed] or forms[-1:]:
        planes = planes_of(tiled, form.order) if form.transposed else None
        count["contracted"] += planes is not None and any(p.readers is not None for p in planes.planes)
        for tile in (None, 7):
            found = case.arguments()
            chosen = nest.using(tile=tile)
            plan = chosen.plan(**found)
            outcome = run(chosen, found, plan=in_form(plan, chosen.bind(found), form))
            assert outcome.results["best"] == right or np.isnan(right), form
            compare(case, found, expected, before, bound)


def search_in(directory: Path, examples: int) -> None:
    from searching import search

    numbers, count = itertools.count(), {"contracted": 0, "refused": 0}

    def one(data: st.DataObject) -> None:
        case = data.draw(cases(), label="nest")
        number = next(numbers)
        check(case, directory, number, count)

    complete = search(one, examples, first_seed())
    assert not complete or count["contracted"] >= examples // 6, count


@pytest.mark.usefixtures("little_optimised")
def test_what_is_read_is_that_of_the_plain_loop(tmp_path: Path) -> None:
    search_in(tmp_path, wanted(3))


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_what_is_read_is_that_of_the_plain_loop_at_length(tmp_path: Path) -> None:
    search_in(tmp_path, wanted(1500))


# -- on ranks ----------------------------------------------------------------------------------------------------------


@lw.nest
def aligned(h, e, f, out, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])
            out[i, j] = h[i, j] + e[i, j - 1]
            best = max(best, h[i, j])
    del h, e, f
    return best


@lw.nest
def leaning(h, out, x):
    for i in range(2, h.shape[0]):
        for j in range(1, h.shape[1] - 1):
            h[i, j] = x[i, j] + 0.5 * h[i - 1, j + 1] + 0.25 * h[i, j - 1] + 0.125 * h[i - 2, j]
            out[i, j] = h[i, j] - h[i - 1, j + 1]


@lw.nest
def scored(h, out, x):
    best = 0.0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0.0, h[i - 1, j - 1] + x[i, j], h[i - 1, j] - 0.5, h[i, j - 1] - 0.5)
            best = max(best, h[i, j])
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            out[i, j] = h[i, j] + 0.5 * out[i - 1, j]
    del h
    return best


def arguments_of(nest: Any) -> dict[str, Any]:
    generator, shape = np.random.default_rng(5), (150, 140)
    made: dict[str, Any] = {}
    for name in nest.loops.parameters if nest is not scored else ("h", "out", "x"):
        if name in ("a", "b"):
            made[name] = generator.integers(0, 4, shape[name == "b"] - 1).astype(np.int8)
        elif nest is aligned:
            made[name] = np.zeros(shape, np.int32)
        else:
            made[name] = generator.standard_normal(shape)
    return made


def on_ranks() -> None:
    """Compare in all inner forms, on all grids, with scratch arrays and those that the nest deletes."""
    from mpi4py import MPI

    size = MPI.COMM_WORLD.Get_size()
    ways = list(itertools.product(("blocking", "onesided"), ((size, 1), (1, size))))
    for nest, unwanted in ((aligned, ("h", "e", "f")), (leaning, ("h",))):
        expected = arguments_of(nest)
        right = nest.python(**expected)
        for k in rounds(2, 4):  # two have each engine and each grid
            engine, grid = ways[3 * k % 4]
            chosen = nest.using(engine=engine, grid=grid, tile=9)
            tiled = skewed_nest(nest.bind(expected), nest.skew)
            forms = legal_forms(tiled, skewed_dependences(nest.dependences, nest.skew))
            for form in (forms[0], *(form for form in forms if form.transposed)):
                found = arguments_of(nest)
                for name in unwanted:
                    marked = lw.scratch(found[name].shape, found[name].dtype)
                    marked[...] = found[name]
                    found[name] = marked
                plan = chosen.plan(**found, ranks=size)
                before = {name: found[name].copy() for name in unwanted}
                outcome = run(chosen, found, plan=in_form(plan, chosen.bind(found), form))
                where = (nest.name, engine, grid, form)
                assert right is None or outcome.results["best"] == right, where
                assert np.array_equal(found["out"], expected["out"]), where
                for name in unwanted:
                    assert np.array_equal(found[name], before[name]), f"{where}: {name} was brought together"
    expected = arguments_of(scored)
    right = scored.python(**expected)
    found = arguments_of(scored)
    before = found["h"].copy()
    assert scored(**found) == right
    assert np.array_equal(found["out"], expected["out"])
    assert np.array_equal(found["h"], before), "h was brought together"
    print("done", flush=True)


@pytest.mark.mpi
@pytest.mark.parametrize(("ranks", "thorough"), everyday_together([(2, False), (2, True), (3, True)], [(2, False)]))
def test_on_ranks(ranks: int, thorough: bool) -> None:
    try:
        mpiexec = str(find_mpi().mpiexec)
    except BuildError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [mpiexec, "-n", str(ranks), sys.executable, __file__], capture_output=True, text=True, timeout=scaled(240), check=False,
        stdin=subprocess.DEVNULL, env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done") == ranks


if __name__ == "__main__":
    optimise_little()
    on_ranks()
