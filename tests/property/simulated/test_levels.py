"""Levels in time of one array, chosen by remainders: random nests alone, and message by message in Python on several ranks."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from loading import load
from random_nests import ArraySpec, Case, Choice, fitting_grids
from randomness import first_seed, wanted
from searching import search
from simulated_ranks import orders
from simulated_runs import check_run

from lapwing.errors import RefusedError
from lapwing.planner.plan import ENGINES

NAMES = "ij"


@st.composite
def nests(draw: st.DrawFn) -> Case:
    """One level is written in every sweep, from elements nearby of any of them; every other colour of points, or all."""
    dims = draw(st.sampled_from([1, 2, 2]), label="axes")
    shape = tuple(draw(st.integers(3, 14 if dims == 1 else 8)) for _ in range(dims))
    levels = draw(st.integers(2, 3), label="levels")
    lines = ["import lapwing as lw", "@lw.nest", "def nest(u):", f"    for t in range({draw(st.integers(1, 7))}):"]
    indent = "    " * 2
    for axis in range(dims):
        bounds = draw(st.sampled_from([f"1, {shape[axis] - 1}", f"{shape[axis] - 2}, 0, -1"]))
        lines.append(f"{indent}for {NAMES[axis]} in range({bounds}):")
        indent += "    "
    if draw(st.sampled_from([False, False, True])):
        lines.append(f"{indent}if ({' + '.join(NAMES[:dims])} + t) % 2 == 0:")
        indent += "    "
    reads = []
    for _ in range(draw(st.integers(1, 5))):
        axis, apart = draw(st.integers(0, dims - 1)), draw(st.integers(-1, 1))
        texts = [f"{NAMES[k]} + {apart}" if k == axis else NAMES[k] for k in range(dims)]
        reads.append(f"{draw(st.integers(1, 3))} * u[{', '.join([draw(level(levels)), *texts])}]")
    target = ", ".join([f"(t + {draw(st.integers(0, levels - 1))}) % {levels}", *NAMES[:dims]])
    lines.append(f"{indent}u[{target}] = {' - '.join(reads)} + t")
    array = ArraySpec("u", "int64", (levels, *shape), "tame", 0)
    # Under a condition loops may have fewer rows.
    return Case("\n".join(lines) + "\n", (array,), (), tuple(n - 2 for n in shape), 0, skewed=True)


@st.composite
def level(draw: st.DrawFn, levels: int) -> str:
    later = f"(t + {draw(st.integers(0, levels - 1))}) % {levels}"
    ways = [later, later, f"{levels - 1} - t % {levels}"]
    ways += ["t & 1", str(draw(st.integers(0, levels - 1)))]
    return draw(st.sampled_from(ways))


done = {"runs": 0, "refused": 0}


def check(data: st.DataObject) -> None:
    case = data.draw(nests(), label="nest")
    ranks = data.draw(st.sampled_from([2, 3, 4]), label="ranks")
    grids = fitting_grids(case, ranks)
    assume(grids)
    choice = Choice(
        data.draw(st.sampled_from(ENGINES), label="engine"),
        data.draw(st.integers(1, 4), label="tile"),
        data.draw(st.sampled_from(grids), label="grid"),
    )
    try:
        check_run(case, ranks, choice, data.draw(orders(), label="order"))
    except RefusedError as error:
        if not all(refusal.tiled_only for refusal in error.refusals):
            raise
        done["refused"] += 1
    else:
        done["runs"] += 1


def test_ranks_are_told_enough_and_in_time() -> None:
    done.update(runs=0, refused=0)
    search(check, wanted(25), first_seed())
    assert done["runs"] > done["refused"]


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_ranks_are_told_enough_and_in_time_at_length() -> None:
    search(check, wanted(5000), first_seed())


def check_alone(data: st.DataObject) -> None:
    case = data.draw(nests(), label="nest")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "nest.py"
        path.write_text(case.source)
        nest = load(path).nest
    expected, arrays = case.arguments(), case.arguments()
    nest.python(**expected)
    nest(**arrays)
    check_arrays(arrays, expected)


@pytest.mark.timeout(600)
def test_compiled_loops_have_the_bits_of_the_plain_one() -> None:
    search(check_alone, wanted(8), first_seed())
