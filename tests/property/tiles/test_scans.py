"""Recurrences of integers computed as scans: random ones have the bits of the plain loop, of one array or of several that wait
for each other, with what is reset, added or computed besides, with small values and such that wrap, and of all vectors.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import WITHOUT_WIDER, in_form
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import forms_of, tile_source
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.binding import native
from lapwing.runtime.execute import tile_library
from lapwing.tiling.faces import faces_of
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

# What does not come from the iteration before.
FREE = (
    "h[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)", "h[i - 1, j] - gap", "h[i - 1, j]", "w[i, j]", "h[i, j]", "0",
    "h[i - 1, j + 1] + w[i, j]", "w[i - 1, j] - w[i, j]", "h[i, j + 1]", "abs(h[i - 1, j])",
)  # fmt: skip
ADDED = ("", "", " - gap", " + 1", " - 3", " + w[i, j]", " - w[i, j - 1]", " + w[i, 1]")
TESTS = ("a[i - 1] == b[j - 1]", "w[i, j] > 0", "j > 5", "i == 2", "h[i - 1, j] > w[i, j]", "w[i, j] == 1")
# Of what rows begin with and grow by: small, at the limits of what is computed in vectors, and such that wraps.
LARGEST = (0, 9, 1000, 4000, 8191, 2**21, 2**24 - 1, 2**24, 2**24 + 1, 2**30, 2**31 - 1)
FAR = (0, 3, -3, -(2**31), 2**31 - 1)
GROWTH = (1, 1, 5, 2**11, 2**31 - 1)
GAPS = (-2, 0, 1, 3, 2**8, 2**10, 2**11, 2**13, 2**30, 2**31 - 1)


@st.composite
def recurrences(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(("one", "one", "one", "sum", "affine", "later", "coupled")))
    extremum = draw(st.sampled_from(("max", "min")))

    def free(count: int) -> str:
        return ", ".join(draw(st.lists(st.sampled_from(FREE), min_size=count, max_size=count)))

    def added() -> str:
        return draw(st.sampled_from(ADDED))

    test, arrays, lines = draw(st.sampled_from(TESTS)), ["h"], []
    if kind == "one":
        before = f"h[i, j - 1]{added()}"
        value = f"{extremum}({free(draw(st.integers(1, 3)))}, {before})"
        if draw(st.integers(0, 4)) == 0:
            value = f"{extremum}({value}, {before} + 2)"
        value += added() if draw(st.booleans()) else ""
        match draw(st.integers(0, 5)):
            case 0:
                lines = [f"if {test}:", f"    h[i, j] = {free(1)}", "else:", f"    h[i, j] = {value}"]
            case 1:
                lines = [f"x = {value}", f"h[i, j] = x if {test} else {free(1)}"]
            case 2:
                lines = [f"h[i, j] = {value}", f"if {test}:", f"    h[i, j] = {extremum}(h[i, j], {free(1)})"]
            case 3:
                lines = [f"x, y = {free(1)}, {before}", "h[i, j] = x if x >= y else y"]
            case _:
                lines = [f"h[i, j] = {value}"]
    elif kind == "sum":
        lines = [
            f"h[i, j] = h[i, j - 1] + w[i, j]{draw(st.sampled_from(('', ' - h[i - 1, j]', ' + h[i - 1, j - 1]')))}"
        ]
    elif kind == "affine":
        arrays = ["e", "f", "h"]
        first = [
            f"e[i, j] = {extremum}(e[i - 1, j]{added()}, h[i - 1, j]{added()})",
            f"f[i, j] = {extremum}(f[i, j - 1]{added()}, h[i, j - 1]{added()})",
        ]
        last = f"h[i, j] = {extremum}({free(draw(st.integers(1, 2)))}, e[i, j]{added()}, f[i, j])"
        lines = [*draw(st.permutations(first)), last]
    elif kind == "later":
        arrays = ["f", "h"]
        lines = [f"h[i, j] = {free(1)}", f"f[i, j] = {extremum}(h[i, j - 1]{added()}, f[i, j - 1]{added()})"]
        lines = lines[::-1] if draw(st.booleans()) else lines
    else:  # each waits for the other
        arrays = ["f", "h"]
        lines = [
            f"f[i, j] = {extremum}(f[i, j - 1]{added()}, h[i, j - 1] - 1, {free(1)})",
            f"h[i, j] = {extremum}(f[i, j], h[i, j - 1]{added()})",
        ]
    if draw(st.integers(0, 2)) == 0:
        choice = draw(
            st.sampled_from(("1 if h[i, j - 1] > h[i - 1, j] else 2", "3 if h[i, j] == h[i, j - 1] - 3 else 0"))
        )
        place = draw(st.integers(0, 1)) * len(lines)
        lines.insert(place, f"d[i, j] = {choice}")
    reduces = draw(st.sampled_from((None, None, "max", "min")))
    backwards = draw(st.booleans())
    columns = draw(
        st.sampled_from(
            ("range(1, h.shape[1] - 1)", "range(1, h.shape[1] - 1)", "range(max(1, i - 3), h.shape[1] - 1)")
        )
    )
    if backwards:
        columns = "range(h.shape[1] - 2, 0, -1)"
        lines = [line.replace("j - 1", "j < 1").replace("j + 1", "j - 1").replace("j < 1", "j + 1") for line in lines]
    head = ["import lapwing as lw", "@lw.nest", f"def nest({', '.join(arrays)}, a, b, w, d, gap):"]
    head += [] if reduces is None else ["    best = 7"]
    inside = [*lines, *([] if reduces is None else [f"best = {reduces}(best, h[i, j])"])]
    tail = [] if reduces is None else ["    return best"]
    loops = ["    for i in range(1, h.shape[0]):", f"        for j in {columns}:"]
    if draw(st.integers(0, 3)) == 0:  # loops that are no perfect nest, whose inner one is part of the loop body
        loops.insert(1, "        letter = a[i - 1]")
        inside = [line.replace("a[i - 1]", "letter") for line in inside]
    return "\n".join([*head, *loops, *(f"            {line}" for line in inside), *tail]) + "\n"


def check(data: st.DataObject) -> None:
    text = data.draw(recurrences(), label="nest")
    rows, columns = st.integers(2, 9), st.integers(3, 60) | st.sampled_from((255, 257, 258, 259, 274, 530))
    shape = data.draw(st.tuples(rows, columns), label="shape")
    dtype = data.draw(st.sampled_from(("int32", "int64")), label="dtype")
    width = data.draw(st.sampled_from(list(WITHOUT_WIDER)), label="bytes of a vector")
    tile = data.draw(st.none() | st.integers(1, 150), label="tile")
    kinds = st.tuples(st.sampled_from(LARGEST), st.sampled_from(GAPS), st.sampled_from(GROWTH), st.integers(0, 99))
    runs = data.draw(st.lists(kinds, min_size=1, max_size=12), label="largest, gap, growth, seed")
    nest = nest_of(text)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(native, "TILE_FLAGS", (*native.TILE_FLAGS, *WITHOUT_WIDER[width]))
        tile_library.cache_clear()
        for kind in runs:
            expected, found = (arguments(nest, shape, dtype, *kind) for _ in range(2))
            with np.errstate(all="ignore"):
                right = nest.python(**expected)
            bound, plan = nest.bind(found), nest.using(tile=tile).plan(**found)
            if "letter" not in text:
                form = scanned_form(nest, bound, plan)
                if form is None:
                    break
                plan = in_form(plan, bound, form)
            outcome = run(nest, found, plan=plan)
            check_arrays(found, expected)
            assert right is None or list(outcome.results.values()) == [right]
    tile_library.cache_clear()


def scanned_form(nest: lw.Nest, bound: BoundNest, plan: Plan) -> InnerForm | None:
    skewed = skewed_nest(bound, plan.skew)
    forms = forms_of(skewed, skewed_dependences(nest.dependences, plan.skew))
    form = next((form for form in forms if form.scanned), None)
    assert form is None or '#include "scans.h"' in tile_source(skewed, faces_of(skewed), form)
    return form


def arguments(
    nest: lw.Nest, shape: tuple[int, int], dtype: str, largest: int, gap: int, growth: int, seed: int
) -> dict[str, Any]:
    """Small and large numbers, or such at the ends of their type."""
    generator = np.random.default_rng(seed)
    is_large, ends = dtype == "int64" and seed % 2, (0.0, 0.5, 0.9, 1.0)[seed // 2 % 4]

    def numbers(most: int) -> Any:
        found = generator.integers(-most, most, shape, dtype, endpoint=True)
        if ends:
            near = generator.integers(max(-most, most - 9), most, shape, dtype, endpoint=True)
            found = np.where(generator.random(shape) < ends, near, -near)
        if is_large and most > 2**20:
            found = found * np.int64(2**32) + np.int64(2**32 - 1 if most == 2**31 - 1 else 0)
        small = generator.integers(-9, 9, shape, dtype)
        match seed // 8 % 3:
            case 1:  # what rows begin with, alone
                small[:, [0, -1]] = found[:, [0, -1]]
                return small
            case 2:
                return np.where(generator.random(shape) < 0.03, found, small)
        return found

    made: dict[str, Any] = {}
    for name in nest.loops.parameters:
        if name in "ab":
            made[name] = generator.integers(0, 3, shape["ab".index(name)]).astype(dtype)
        elif name == "d":
            made[name] = np.zeros(shape, np.uint8)
        elif name in ("gap", "far"):
            made[name] = np.dtype(dtype).type(gap if name == "gap" else FAR[seed % len(FAR)])
        else:
            made[name] = numbers(growth if name == "w" else largest)
    return made


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(4), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def in_rows(h, w, gap):
    for i in range(1, h.shape[0]):
        least = h[i, 0]
        for j in range(1, h.shape[1]):
            h[i, j] = max(h[i, j - 1] - gap, h[i - 1, j] + w[i, j], least)


def test_inner_loops_are_scans() -> None:
    grid = np.zeros((9, 90), np.int32)
    bound = in_rows.bind({"h": grid, "w": grid, "gap": np.int32(1)})
    (form,) = forms_of(bound, in_rows.dependences)
    assert "lw_strip_scan_max_i32" in tile_source(bound, faces_of(bound), form)


@lw.nest
def affine(e, f, h, a, b, gap, far):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i - 1, j] - 1, h[i - 1, j] - gap)
            f[i, j] = max(f[i, j - 1] - 1, h[i, j - 1] - gap, -5)
            h[i, j] = max(h[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1), e[i, j], f[i, j] - far)


@lw.nest
def subsequence(h, d, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            if a[i - 1] == b[j - 1]:
                h[i, j] = h[i - 1, j - 1] + 1
                d[i, j] = 3
            elif h[i - 1, j] >= h[i, j - 1]:
                h[i, j] = h[i - 1, j]
                d[i, j] = 1
            else:
                h[i, j] = h[i, j - 1]
                d[i, j] = 2


@lw.nest
def path(h, w, gap):
    for i in range(1, h.shape[0]):
        for j in range(h.shape[1] - 2, -1, -1):
            h[i, j] = min(h[i - 1, j], h[i, j + 1] + gap) + w[i, j]


@lw.nest
def counts(h, w):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = h[i, j - 1] + h[i - 1, j] - h[i - 1, j - 1] + w[i, j]


@pytest.mark.parametrize("dtype", ["int32", pytest.param("int64", marks=pytest.mark.long)])
@pytest.mark.parametrize("nest", [affine, subsequence, path, counts], ids=lambda nest: nest.__name__)
@pytest.mark.usefixtures("little_optimised")
def test_numbers_that_wrap(nest: lw.Nest, dtype: str) -> None:
    """Those of the rows around, and of what is added, are small, or so large that it decides what wraps."""
    plan = None
    kinds = itertools.product((9, 2**24, 2**31 - 1), (-2, 3, 2**11, -(2**31)), (1, 2**31 - 1), range(24))
    for seed, (largest, gap, growth, _) in enumerate(kinds):
        expected, found = (arguments(nest, (4, 41), dtype, largest, gap, growth, seed) for _ in range(2))
        with np.errstate(all="ignore"):
            nest.python(**expected)
        if plan is None:
            bound = nest.bind(found)
            form = scanned_form(nest, bound, nest.plan(**found))
            assert form is not None
            plan = in_form(nest.plan(**found), bound, form)
        run(nest, found, plan=plan)
        check_arrays(found, expected)
