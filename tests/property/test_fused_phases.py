"""Phases and sweeps that are fused touch every element in the order of the plain loops: random programs, block by block in
Python, and compiled."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from random_phases import Program, bind, load_phases, plain_run, programs, rings
from randomness import first_seed, wanted
from searching import search
from simulated_ranks import body_of

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.planner.choose import make_plan
from lapwing.planner.phased import make_phased_plan
from lapwing.runtime.alone import run_alone
from lapwing.runtime.phased_alone import run_phases_alone
from lapwing.tiling.boxes import Box
from lapwing.tiling.phased.fusion import Fusion, Strips, shifts_of

done: Counter[str] = Counter()


def drawn(data: st.DataObject) -> tuple[Program, list, list[int], Fusion] | None:
    """A random program that can be fused, and how it is."""
    program = data.draw(st.one_of(programs(), rings()), label="program")
    nests = load_phases(program)
    found = bind(program, nests)
    if found is None:
        return None
    done["programs"] += 1
    phased, places = found
    fusion = data.draw(fusions(phased))
    if fusion is None:
        return None
    done["fused"] += 1
    return program, nests, places, fusion


@st.composite
def fusions(draw: st.DrawFn, phased: PhasedNest) -> Fusion | None:
    """Blocks of any height, in strips of any width where there are two dimensions for them."""
    shifts = [*shifts_of(phased)]
    if not shifts:
        return None
    height = draw(st.sampled_from([1, 2, 2, 3, 5]), label="height of blocks")
    fusion = shifts[0].fused(height, draw(st.integers(2, 4), label="sweeps of a pass"))
    done["rings"] += shifts[0].ring > 0 and fusion is not None
    if fusion is None or len(shifts) < 2 or shifts[0].ring or shifts[1].ring or draw(st.booleans()):
        return fusion
    done["strips"] += 1
    width = draw(st.sampled_from([1, 2, 3, 5]), label="width of strips")
    return replace(fusion, strips=Strips(shifts[1].dimension, width, shifts[1].of_phases, shifts[1].apart))


def order(fusion: Fusion, sweeps: int) -> Iterator[tuple[int, int, int]]:
    """Sweep, phase and block, as ``order.hpp`` comes to them."""
    for first in range(0, sweeps, fusion.sweeps):
        for sweep, phase, block in fusion.order():
            if first + sweep < sweeps:
                yield first + sweep, phase, block


def points(bound: BoundNest, sweep: tuple[int, ...], box: Box) -> Iterator[tuple[int, ...]]:
    """The user's indices of what a phase does in a box."""
    for space in itertools.product(*(range(*ends) for ends in box)):
        values = dict(zip((loop.name for loop in bound.domain.loops), (*sweep, *space), strict=True))
        if all(values[loop.name] in loop.span(values) for loop in bound.domain.loops):
            yield tuple(bound.indices((*sweep, *space)).values())


def check_order(data: st.DataObject) -> None:
    if (found := drawn(data)) is None:
        return
    program, nests, places, fusion = found
    expected, arrays = program.values(), program.values()
    bodies = [body_of(program.phases[k]) for k in places]
    steps = [fusion.steps(phase) for phase in range(len(places))]
    depth = fusion.phased.sweep_depth
    sweeps = [list(bound.domain.points(depth)) for bound in fusion.phased.phases]
    with np.errstate(all="ignore"):
        plain_run(program, nests, expected)
        for sweep, phase, block in order(fusion, fusion.phased.sweeps):
            bound = fusion.phased.phases[phase]
            for point in points(bound, (*sweeps[phase][sweep],), steps[phase][block]):
                bodies[phase](point, arrays)
    check_arrays(arrays, expected)


def check_compiled(data: st.DataObject) -> None:
    if (found := drawn(data)) is None:
        return
    program, nests, _, fusion = found
    expected, arrays = program.values(), program.values()
    with np.errstate(all="ignore"):
        plain_run(program, nests, expected)
    run_phases_alone(replace(make_phased_plan(fusion.phased, 1), fusion=fusion), arrays, None)
    check_arrays(arrays, expected)


def check_nest(data: st.DataObject) -> None:
    """The first phase, as a nest by itself."""
    program = data.draw(st.one_of(programs(), rings()), label="program")
    nests = load_phases(program)
    found = bind(program, nests)
    if found is None:
        return
    bound, nest = found[0].phases[0], nests[found[1][0]]
    try:
        plan = make_plan(bound, bound.analysis.dependences, 1)
    except RefusedError:
        return
    is_plain = plan.skew is None and plan.joined == 1
    fusion = data.draw(fusions(PhasedNest("program", (bound,)))) if is_plain else None
    if fusion is None:
        return
    expected, arrays = program.values(), program.values()
    names = [array.name for array in bound.arrays]
    with np.errstate(all="ignore"):
        nest.python(**{n: expected[n] for n in names}, first=0, last=program.sweeps)
    run_alone(bound, replace(plan, fusion=fusion), arrays, None)
    check_arrays(arrays, expected)


def test_every_element_is_touched_in_the_order_of_the_plain_loops() -> None:
    done.clear()
    search(check_order, wanted(20), first_seed())
    assert done["fused"] * 4 > done["programs"]
    assert done["rings"]
    assert done["strips"]


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_element_is_touched_in_the_order_of_the_plain_loops_at_length() -> None:
    search(check_order, wanted(20000), first_seed())


@pytest.mark.timeout(900)
def test_bits_of_the_plain_loops(little_optimised: None) -> None:
    search(check_compiled, wanted(6), first_seed())


@pytest.mark.timeout(900)
def test_bits_of_plain_nests(little_optimised: None) -> None:
    search(check_nest, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_plain_nests_at_length() -> None:
    search(check_nest, wanted(2000), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loops_at_length() -> None:
    search(check_compiled, wanted(2000), first_seed())
