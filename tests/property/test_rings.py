"""Periodic axes of arrays in place: random nests whose reads go around, run message by message in
Python on ranks that form a ring."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import assume
from hypothesis import strategies as st
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
    """In place, every read off along one axis; points of one colour, of one direction, or of all."""
    dims = draw(st.sampled_from([2, 2, 1]), label="axes")
    shape = tuple(draw(st.integers(3, 14 if dims == 1 else 8)) for _ in range(dims))
    around = [draw(st.booleans()) for _ in range(dims)]
    margin = [0 if goes else 1 for goes in around]
    lines = ["import lapwing as lw", "@lw.nest", f"def nest({', '.join('uv'[: draw(st.integers(1, 2))])}):"]
    arrays = "uv" if "v" in lines[-1] else "u"
    indent = "    "
    lines.append(f"{indent}for t in range({draw(st.integers(1, 4))}):")
    for axis in range(dims):
        indent += "    "
        low, high = margin[axis], shape[axis] - margin[axis]
        back = draw(st.sampled_from([False, False, True]))
        bounds = f"{high} - 1, {low} - 1, -1" if back else f"{low}, {high}"
        lines.append(f"{indent}for {NAMES[axis]} in range({bounds}):")
    indent += "    "
    colour = draw(st.sampled_from([None, " + ".join(NAMES[:dims]), " + ".join(NAMES[:dims]), "i"]))
    if colour is not None:
        lines.append(f"{indent}if ({colour} + t) % 2 == 0:")
        indent += "    "
    for array in arrays:
        reads = []
        for _ in range(draw(st.integers(1, 4))):
            axis, apart = draw(st.integers(0, dims - 1)), draw(st.sampled_from([-1, 1]))
            texts = [_index(draw, k, apart if k == axis else 0, shape[k], around[k]) for k in range(dims)]
            reads.append(f"{draw(st.integers(1, 3))} * {draw(st.sampled_from(arrays))}[{', '.join(texts)}]")
        lines.append(f"{indent}{array}[{', '.join(NAMES[:dims])}] = {' - '.join(reads)} + t")
    specs = tuple(ArraySpec(name, "int64", shape, "tame", seed) for seed, name in enumerate(arrays))
    extents = tuple(n - 2 * m for n, m in zip(shape, margin, strict=True))
    return Case(
        textwrap.dedent("\n".join(lines)) + "\n", specs, (), extents, 0, skewed=True
    )  # under a condition loops may have fewer rows


def _index(draw: st.DrawFn, axis: int, apart: int, extent: int, around: bool) -> str:
    name = NAMES[axis]
    text = f"{name} + {apart}" if apart > 0 else f"{name} - {-apart}" if apart else name
    if not apart or not around:
        return text
    ways = [f"({text}) % {extent}"]
    ways += [text] if apart < 0 else [f"{text} if {name} < {extent - 1} else 0"]
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


def test_rings_are_told_enough_and_in_time() -> None:
    done.update(runs=0, refused=0)
    search(check, wanted(10), first_seed())
    assert done["runs"] > done["refused"] / 4


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_rings_are_told_enough_and_in_time_at_length() -> None:
    search(check, wanted(5000), first_seed())
