"""Sweeps that ranks do at once, in buffers of transposed elements: on ranks that are threads, the very bits of the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from everyday import everyday
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import in_form
from randomness import first_seed, wanted
from searching import search
from thread_ranks import RankThreads, Way

import lapwing as lw
from lapwing.codegen.tile import forms_of
from lapwing.errors import BuildError
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.cuts import Cut
from lapwing.planner.inner import joined_sweeps
from lapwing.tiling.inner import InnerForm, legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest


@lw.nest
def gauss_seidel(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])


@lw.nest
def upwards(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(u.shape[1] - 3, 1, -1):
                u[i, j] = 0.25 * (u[i + 1, j] + u[i, j + 2] + u[i - 1, j] + u[i, j - 1] - f[i, j])


@lw.nest
def wide_halo(u, sweeps):
    for t in range(sweeps):
        for i in range(3, u.shape[0] - 3):
            for j in range(u.shape[1] - 4, 2, -1):
                u[i, j] = 0.25 * (u[i - 3, j] + u[i, j + 3] + u[i - 1, j + 1] + u[i + 2, j - 2]) + 0.01 * (i - j)


@lw.nest
def guarded(u, f, sweeps):
    """Some elements are left as they are."""
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if f[i, j] > 0.0:
                    u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.1 * (
                    u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i, j] + u[i, j + 1]
                    + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                )  # fmt: skip


@lw.nest
def one_way(u, sweeps):
    """Nothing is read that this sweep has not written."""
    for t in range(sweeps):
        for i in range(2, u.shape[0]):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.5 * (u[i - 2, j] + u[i, j + 1]) + t


@lw.nest
def over_relaxed(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    u[i, j, k] = 0.25 * u[i, j, k] + 0.125 * (
                        u[i - 1, j, k]
                        + u[i, j - 1, k]
                        + u[i, j, k - 1]
                        + u[i + 1, j, k]
                        + u[i, j + 1, k]
                        + u[i, j, k + 1]
                    )


@lw.nest
def far_in_space(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 3, 1, -1):
            for j in range(1, u.shape[1] - 1):
                for k in range(u.shape[2] - 3, 0, -1):
                    u[i, j, k] = (
                        0.25 * (u[i + 2, j, k] + u[i, j - 1, k] + u[i, j, k + 2] + u[i - 2, j, k]) - i * f[j, k] + t
                    )


@lw.nest
def by_sweep(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1]) + (0.25 if t > 3 else 0.5 * t)


@lw.nest
def walled(u, f, sweeps):
    """Elements of the array that is written, and of one that is only read, that iterations at the ends of loops do not have."""
    for t in range(sweeps):
        for i in range(u.shape[0]):
            for j in range(u.shape[1] - 1, -1, -1):
                total = f[i, j]
                if i > 0:
                    total += u[i - 1, j] - f[i - 1, j]
                if i < u.shape[0] - 2:
                    total += 0.5 * u[i + 2, j]
                if j > 0:
                    total += u[i, j - 1] * f[i, j - 1]
                if j < u.shape[1] - 1:
                    total += u[i, j + 1]
                u[i, j] = 0.2 * total


@lw.nest
def rows_of_groups(u, sweeps):
    """Its innermost loop is long enough for rows to take turns; squares may be computed again."""
    best = 1000.0
    for t in range(sweeps):
        for i in range(2, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 2):
                u[i, j] = 0.25 * (u[i - 2, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 2]) - 0.01 * u[i, j] ** 2
                best = min(best, u[i, j])
    return best


NESTS: dict[str, lw.Nest] = {
    nest.name: nest
    for nest in (
        *(gauss_seidel, upwards, wide_halo, guarded, nine_points, one_way, by_sweep),
        *(over_relaxed, far_in_space, walled, rows_of_groups),
    )
}


@st.composite
def calls(draw: st.DrawFn, name: str) -> tuple[lw.Nest, dict[str, Any], dict[str, Any]]:
    """A nest, with the same arguments twice."""
    nest, generator = NESTS[name], np.random.default_rng(draw(st.integers(0, 1000), label="seed"))
    shape = draw(st.tuples(st.integers(9, 150), st.integers(9, 60) | st.integers(60, 200)), label="shape")
    made: dict[str, Any] = {"sweeps": draw(st.integers(2, 16), label="sweeps")}
    plane = shape
    if len(nest.loops.space_loops) == 3:
        plane = (shape[0], min(shape[1], 40))
        shape = (draw(st.integers(9, 30), label="planes"), *plane)
    dtype = draw(st.sampled_from(["float64", "float32"]), label="dtype")
    made["u"] = generator.standard_normal(shape).astype(dtype)
    if "f" in nest.loops.parameters:
        made["f"] = generator.standard_normal(plane)
    return nest, made, {key: v.copy() if isinstance(v, np.ndarray) else v for key, v in made.items()}


def cut_for(form: InnerForm, ranks: int) -> Cut:
    """The cut on which a form joins sweeps."""
    if form.lanes_are_sweeps and len(form.order) > 2:
        return Cut(form.order[0], tuple(ranks if k == form.order[1] else 1 for k in sorted(form.order)))
    along = form.order[-3 if form.coalesced else -1]
    return Cut(form.order[-2], tuple(ranks if k == along else 1 for k in sorted(form.order)))


def check(data: st.DataObject, name: str) -> None:
    nest, expected, found = data.draw(calls(name))
    bound, skew = nest.bind(found), nest.bind(found).analysis.skew
    assume(not bound.domain.is_empty)
    tiled = skewed_nest(bound, skew)
    forms = [f for f in forms_of(tiled, skewed_dependences(nest.dependences, skew)) if f.sweeps > 1]
    assert forms, "the nest joins no sweeps"
    form, ranks = data.draw(st.sampled_from(forms), label="form"), data.draw(st.sampled_from([2, 3, 4]), label="ranks")
    tile = data.draw(st.sampled_from([64, 128]) | st.integers(3, 150), label="tile")
    cut = cut_for(form, ranks)
    extents = [high - low for low, high in tiled.domain.box[1:]]
    assume(all(parts <= extent for parts, extent in zip(cut.grid, extents, strict=True)))
    plan = in_form(make_plan(bound, nest.dependences, ranks, Wishes("onesided", tile, cut=cut)), bound, form)
    assume(plan.joined > 1)
    nest.python(**expected)
    way = Way(False, data.draw(st.booleans(), label="helper"), False)
    THREADS.run(bound, plan, found, way)
    check_arrays(found, expected)


THREADS = RankThreads(sanitized=False)
LIKE_OTHERS = {"gauss_seidel", "upwards", "over_relaxed"}  # by_sweep, wide_halo, far_in_space


@pytest.fixture(autouse=True)
def threads() -> None:
    try:
        THREADS.runtime()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("name", everyday(NESTS, NESTS.keys() - LIKE_OTHERS))
def test_bits_of_the_plain_loop(name: str) -> None:
    search(lambda data: check(data, name), wanted(1), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NESTS)
def test_bits_of_the_plain_loop_at_length(name: str) -> None:
    search(lambda data: check(data, name), wanted(300), first_seed())


def test_steps_and_blocks_that_are_too_short_join_fewer_sweeps() -> None:
    """Ends move by a row a sweep, and the first step and the first block are to be as long as that."""
    u = np.ones((66, 42))
    bound = by_sweep.bind({"u": u, "sweeps": 20})
    form = next(f for f in legal_forms(bound, by_sweep.dependences) if f.sweeps > 1)
    joined = {}
    for tile, ranks in ((64, 2), (2, 2), (64, 10), (64, 20)):
        plan = make_plan(bound, by_sweep.dependences, ranks, Wishes("overlap", tile, cut=cut_for(form, ranks)))
        joined[tile, ranks] = joined_sweeps(bound, form, plan.partition, plan.mapping, plan.tile)
    assert joined == {(64, 2): 7, (2, 2): 3, (64, 10): 5, (64, 20): 3}
