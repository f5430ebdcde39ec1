"""Tiles with buffers of transposed elements have the bits of the plain loop: nests of every kind that takes them, on arrays from
one row to several blocks of them.

LAPWING_EXAMPLES sets how many arrays are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import math
import platform
from itertools import product
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from everyday import everyday, everyday_together
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import forms_with_vectors, in_form, vectors_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.loopnest.skew import find_skew
from lapwing.runtime.binding import native
from lapwing.runtime.execute import tile_library
from lapwing.tiling.inner import legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e-310, 1e300])


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
def wide_halo(u, f, sweeps):
    for t in range(sweeps):
        for i in range(3, u.shape[0] - 3):
            for j in range(u.shape[1] - 4, 2, -1):
                u[i, j] = 0.25 * (u[i - 3, j] + u[i, j + 3] + u[i - 1, j + 1] + u[i + 2, j - 2]) + f[i, j] * i - j


@lw.nest
def in_space(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, 4):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    before = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    u[i, j, k] = 0.9 * f[i, j, k] + 0.1 * (before + u[i + 1, j, k] + u[i, j + 1, k] + u[i, j, k + 1])


@lw.nest
def aligned(h, a, b):
    best = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            best = max(best, h[i, j])
    return best


@lw.nest
def weighted(u, f, a, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                near = 0.25 * (u[i - 1, j] + u[i, j + 1] + u[i + 1, j] + u[i, j - 1])
                u[i, j] = near * a[t, i] - a[0, i + 1] * f[2, j - 1] + f[1, j]


@lw.nest
def located(h, a, b):
    best = 0
    best_i = best_j = 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            same = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + same, h[i - 1, j] - 1, h[i, j - 1] - 1)
            if h[i, j] > best:
                best, best_i, best_j = h[i, j], i, j
    return best, best_i, best_j


@lw.nest
def last_of_least(u, f, sweeps):
    least, at_i, at_j, value = 1.0, -1, -1, 0.0
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = max(-2.0, min(2.0, 0.5 * (u[i + 1, j] + u[i, j - 1]) - f[i, j]))
                if u[i, j] <= least:
                    least, at_i, at_j, value = u[i, j], i, j, f[i, j]
    return least, at_i, at_j, value


@lw.nest
def affine_gaps(h, e, f, a, b):
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            e[i, j] = max(e[i, j - 1] - 1, h[i, j - 1] - 4)
            f[i, j] = max(f[i - 1, j] - 1, h[i - 1, j] - 4)
            h[i, j] = max(0, h[i - 1, j - 1] + (3 if a[i - 1] == b[j - 1] else -2), e[i, j], f[i, j])


@lw.nest
def guarded(u, f, sweeps):
    count = 0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if f[i, j] > 0.5:
                    u[i, j] = min(u[i, j], 0.5 * (u[i - 1, j] + u[i, j - 1]) + f[i, j])
                    count += 1
    return count


@lw.nest
def warped(d, x, y):
    for i in range(1, d.shape[0]):
        for j in range(1, d.shape[1]):
            d[i, j] = abs(x[i - 1] - y[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])


@lw.nest
def interchanged(u, f):
    for j in range(1, u.shape[1]):
        for i in range(1, u.shape[0] - 1):
            u[i, j] = u[i, j - 1] * 0.5 + f[i + 1, j] - u[i - 1, j]


@lw.nest
def bordered(u, f):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            north = u[i - 1, j] if i > 0 else 0.0
            west = u[i, j - 1] if j > 0 else 0.0
            corner = u[i - 2, j - 2] if i > 1 and j > 1 else f[i, j]
            u[i, j] = f[i, j] + 0.5 * north + 0.25 * west - 0.125 * corner


@lw.nest
def backwards(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 1, -1, -1):
            for j in range(u.shape[1] - 1, -1, -1):
                if i < u.shape[0] - 1:
                    u[i, j] -= 0.5 * u[i + 1, j]
                if j < u.shape[1] - 1:
                    u[i, j] -= 0.25 * u[i, j + 1]
                if i > 2:
                    u[i, j] += 0.125 * u[i - 3, j] * f[i - 1, j]


@lw.nest
def relaxed(u, f, sweeps, h):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h**2 * f[i, j])
                u[i, j] = (1 - 1 / h) * u[i, j] + new / h


@lw.nest
def nine_points(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
                u[i, j] = (above + u[i, j - 1] + u[i, j] * f[i + 1, j - 1] + u[i, j + 1] + below) / 9.0


@lw.nest
def far_corner(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(2, u.shape[1] - 2):
                u[i, j] = 0.5 * u[i + 1, j + 2] + 0.25 * u[i, j - 1] + 0.125 * u[i - 1, j - 2] + f[i, j] * i


@lw.nest
def band(d, x, y):
    for i in range(1, d.shape[0]):
        for j in range(max(1, i - 7), min(d.shape[1], i + 20)):
            d[i, j] = abs(x[i - 1] - y[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])


@lw.nest
def lower_triangle(u, f):
    for i in range(1, u.shape[0]):
        for j in range(1, min(i, u.shape[1])):
            u[i, j] = f[i, j] + 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def upper_triangle(u, f):
    for i in range(1, u.shape[0] - 1):
        for j in range(i, u.shape[1] - 1):
            u[i, j] = f[i, j] + 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1] + 0.125 * u[i + 1, j]


@lw.nest
def narrowing(u, f):
    for i in range(1, u.shape[0] - 1):
        for j in range(max(1, 30 - i), u.shape[1] - i):
            u[i, j] = f[i, j] + 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1] + 0.125 * u[i + 1, j]


@lw.nest
def in_space_27(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, 4):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    before = u[i - 1, j + 1, k + 1] + u[i, j - 1, k + 1] + u[i, j, k - 1] + u[i - 1, j - 1, k - 1]
                    u[i, j, k] = (
                        0.1 * (before + u[i + 1, j - 1, k - 1] + u[i, j + 1, k - 1] + u[i, j, k + 1]) + f[i, j, k]
                    )


@lw.nest
def in_space_one_way(u, f):
    for i in range(2, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = np.sqrt(abs(u[i - 2, j, k])) + 0.5 * u[i, j - 1, k] - 0.25 * u[i, j, k - 1] + f[i, j, k]


@lw.nest
def in_space_backwards(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(1, u.shape[1] - 1):
                for k in range(u.shape[2] - 3, 1, -1):
                    after = u[i + 1, j, k] + u[i, j - 1, k] + u[i, j, k + 2]
                    u[i, j, k] = 0.2 * (after + u[i - 1, j, k] + u[i, j + 1, k] + u[i, j, k - 1]) - f[i, j, k]


@lw.nest
def in_space_bordered(u, f):
    best = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            for k in range(u.shape[2]):
                above = u[i - 1, j, k] if i > 0 else f[i, j, k]
                north = u[i, j - 1, k] if j > 0 else 1.0 * i
                west = u[i, j, k - 1] if k > 0 else 0.5 * k
                u[i, j, k] = 0.5 * above + 0.25 * north + 0.125 * west
                best = max(best, u[i, j, k])
    return best


@lw.nest
def in_space_counted(u, a):
    count = 0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = max(u[i - 1, j, k] + a[j, k], u[i, j - 1, k] + i, u[i, j, k - 1] - k)
                if u[i, j, k] > 50:
                    count += 1
    return count


@lw.nest
def of_roots(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = math.sqrt(1.5 + u[i, j - 1]) - 0.5 * u[i - 1, j] + f[i, j] / (u[i + 1, j] * u[i, j + 1] + 9)


@lw.nest
def of_functions(u, f, sweeps):
    """Functions that are a few operations of the processor."""
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                p = np.clip(np.square(f[i, j]) - 0.5 * u[i - 1, j], -2.0, 2.0) + np.copysign(0.5, u[i, j - 1])
                if np.isnan(p) or not np.isfinite(u[i, j - 1]):
                    u[i, j] = np.sign(f[i, j]) + np.floor(f[i - 1, j]) - np.rint(f[i, j - 1])
                else:
                    u[i, j] = p + np.ceil(u[i, j + 1]) - np.trunc(u[i + 1, j]) * 0.25


@lw.nest
def chosen_quotients(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                if f[i, j] > 0.0:
                    u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + f[i, j]) / 9.0
                elif u[i, j] < u[i, j - 1]:
                    u[i, j] = 0.5 * u[i, j - 1] + f[i, j] / 3.0


@lw.nest
def looked_up(u, f, table):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = u[i - 1, j, k] + table[f[j, k]] - max(u[i, j - 1, k], u[i, j, k - 1])


@lw.nest
def driven(u, f):
    for t in range(f.shape[0]):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = f[t, i, j] + 0.5 * u[i - 1, j] + 0.25 * u[i, j - 1]


@lw.nest
def in_space_driven(u, f, b):
    for t in range(f.shape[0]):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                for k in range(1, u.shape[2]):
                    u[i, j, k] = (
                        f[t, j, k] + 12 // (2 - int(b[i, j, k])) + u[i - 1, j, k] - u[i, j - 1, k] + u[i, j, k - 1]
                    )


def floats(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "float64") | {"sweeps": "sweeps"}


# Per nest its arguments: of arrays the type, of letters ``rows`` or ``columns``.
NESTS: dict[str, tuple[lw.Nest, dict[str, str]]] = {
    "gauss_seidel": (gauss_seidel, {**floats("u"), "f": "float32"}),
    "upwards": (upwards, floats("u", "f")),
    "wide_halo": (wide_halo, {"u": "float32", "f": "float32", "sweeps": "sweeps"}),
    "in_space": (in_space, floats("u", "f")),
    "aligned": (aligned, {"h": "int32", "a": "rows", "b": "columns"}),
    "weighted": (weighted, {**floats("u", "f"), "a": "rows of sweeps"}),
    "located": (located, {"h": "int32", "a": "wide rows", "b": "wide columns"}),
    "last_of_least": (last_of_least, floats("u", "f")),
    "affine_gaps": (affine_gaps, {"h": "int64", "e": "int64", "f": "int64", "a": "rows", "b": "columns"}),
    "guarded": (guarded, floats("u", "f")),
    "warped": (warped, {"d": "float64", "x": "row", "y": "column"}),
    "bordered": (bordered, {"u": "float64", "f": "float64"}),
    "backwards": (backwards, floats("u", "f")),
    "relaxed": (relaxed, {**floats("u", "f"), "h": "number"}),
    "nine_points": (nine_points, floats("u", "f")),
    "far_corner": (far_corner, floats("u", "f")),
    "band": (band, {"d": "float64", "x": "row", "y": "column"}),
    "lower_triangle": (lower_triangle, {"u": "float64", "f": "float64"}),
    "upper_triangle": (upper_triangle, {"u": "float32", "f": "float64"}),
    "narrowing": (narrowing, {"u": "float64", "f": "float64"}),
    "in_space_27": (in_space_27, floats("u", "f")),
    "in_space_one_way": (in_space_one_way, {"u": "float32", "f": "float32"}),
    "in_space_backwards": (in_space_backwards, floats("u", "f")),
    "in_space_bordered": (in_space_bordered, {"u": "float64", "f": "float64"}),
    "in_space_counted": (in_space_counted, {"u": "int32", "a": "plane"}),
    "of_roots": (of_roots, floats("u", "f")),
    "of_functions": (of_functions, floats("u", "f")),
    "chosen_quotients": (chosen_quotients, floats("u", "f")),
    "looked_up": (looked_up, {"u": "int64", "f": "plane", "table": "table"}),
    "driven": (driven, {"u": "float64", "f": "levels"}),
    "in_space_driven": (in_space_driven, {"u": "int64", "f": "whole levels", "b": "bool"}),
    "interchanged": (interchanged, {"u": "float64", "f": "float64"}),
}


def arguments_of(name: str, shape: tuple[int, int], sweeps: int, seed: int, special: bool) -> dict[str, Any]:
    """Values for a nest; special: not numbers, infinities and integers that wrap among them."""
    generator, (rows, columns) = np.random.default_rng(seed), shape
    planes = (5,) if name.startswith("in_space") or name == "looked_up" else ()
    made: dict[str, Any] = {}
    for parameter, kind in NESTS[name][1].items():
        if kind == "number":
            made[parameter] = 0.75
        elif kind == "sweeps":
            made[parameter] = sweeps
        elif kind in ("rows", "columns"):
            made[parameter] = generator.integers(0, 4, (rows if kind == "rows" else columns) - 1).astype(np.int8)
        elif kind.startswith("wide"):
            made[parameter] = generator.integers(0, 3, (rows if kind == "wide rows" else columns) - 1)
            if special:  # equal in their lower halves
                made[parameter] += (generator.random(made[parameter].shape) < 0.02) * 2**32
        elif kind == "rows of sweeps":
            made[parameter] = generator.standard_normal((sweeps, rows))
        elif kind == "levels":
            made[parameter] = generator.standard_normal((3, *shape))
        elif kind == "whole levels":
            made[parameter] = generator.integers(-9, 10, (3, *shape))
        elif kind == "bool":
            made[parameter] = generator.random((*planes, *shape)) < 0.5
        elif kind == "table":
            made[parameter] = generator.integers(-9, 9, 9 if special else 19)
        elif kind == "plane":
            made[parameter] = generator.integers(-9, 10, shape, dtype=np.int32)
        elif kind.startswith("int"):
            ends = np.iinfo(kind) if special else np.iinfo(np.int8)
            made[parameter] = generator.integers(ends.min, ends.max, (*planes, *shape), dtype=kind)
        else:
            length = {"row": (rows - 1,), "column": (columns - 1,)}.get(kind, shape)
            values = generator.standard_normal((*planes, *length))
            if special:
                values[generator.random(values.shape) < 0.1] = generator.choice(SPECIAL)
            with np.errstate(over="ignore"):
                made[parameter] = values.astype(kind if kind.startswith("float") else "float64")
    return made


def check(data: st.DataObject, name: str) -> None:
    nest = NESTS[name][0]
    sides = st.integers(9, 200) | st.integers(9, 30)
    shape = data.draw(st.tuples(sides, sides), label="shape")
    sweeps, seed = data.draw(st.integers(1, 20), label="sweeps"), data.draw(st.integers(0, 1000), label="seed")
    special = data.draw(st.booleans(), label="special")
    width = data.draw(st.sampled_from((0, 16, 32, 64)), label="bytes of a vector")
    expected, found = (arguments_of(name, shape, sweeps, seed, special) for _ in range(2))
    raises = False
    try:
        with np.errstate(all="ignore"):
            right = nest.python(**expected)
    except (ValueError, IndexError):
        raises, expected = True, arguments_of(name, shape, sweeps, seed, special)
    bound, skew = nest.bind(found), find_skew(nest.loops, nest.dependences)
    lanes = data.draw(st.sampled_from((16, 32, 64)), label="lanes")
    forms = forms_with_vectors(lanes, skewed_nest(bound, skew), skewed_dependences(nest.dependences, skew))
    transposed = [form for form in forms if form.transposed]
    assert transposed, "the nest takes no buffers"
    assume(not bound.domain.is_empty)
    tile = data.draw(st.none() | st.integers(1, 150), label="tile")
    form = data.draw(st.sampled_from([*transposed, *(form for form in forms if form.skewed)]), label="form")
    plan = in_form(nest.using(tile=tile).plan(**found), bound, form)
    if raises:
        with pytest.raises(lw.RunError), vectors_of(width):
            run(nest, found, plan=plan)
        check_arrays(found, expected)
        return
    with vectors_of(width):
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    assert right is None or list(outcome.results.values()) == list(right if isinstance(right, tuple) else (right,))


@pytest.mark.usefixtures("little_optimised")
def test_vectors_longer_than_a_block() -> None:
    """As on another host than the one that the plan was made on."""
    nest = NESTS["aligned"][0]
    expected, found = (arguments_of("aligned", (40, 50), 1, 0, False) for _ in range(2))
    right = nest.python(**expected)
    bound = nest.bind(found)
    form = next(form for form in forms_with_vectors(16, bound, nest.dependences) if form.transposed)
    plan = in_form(nest.plan(**found), bound, form)
    with vectors_of(64):
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    assert outcome.results["best"] == right


FLAGS = {"AVX2": "-mno-avx512f", "SSE": "-mno-avx", "no vectors": "-D__has_builtin(x)=0"}
NARROW = ("in_space_backwards", "wide_halo", "upwards")  # nests tried every day with narrower vectors
LIKE_OTHERS = {*NARROW, "lower_triangle", "in_space"}


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("name", everyday(NESTS, NESTS.keys() - LIKE_OTHERS))
def test_bits_of_the_plain_loop(name: str) -> None:
    search(lambda data: check(data, name), wanted(1), first_seed(), simplest=False)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    "name", ["gauss_seidel", "wide_halo", pytest.param("nine_points", marks=pytest.mark.long), "aligned"]
)
def test_rows_around_whole_and_half_blocks(name: str) -> None:
    """As lanes come in and run out only half of a block's vectors are computed, and at the last rows one more."""
    nest = NESTS[name][0]
    shapes = ((34, 70, 3), (66, 67, 8), (67, 140, 7), (99, 66, 5), (130, 200, 9), (130, 96, 16), (137, 90, 20))
    for rows, columns, sweeps in shapes:
        expected, found = (arguments_of(name, (rows, columns), sweeps, 0, True) for _ in range(2))
        with np.errstate(all="ignore"):
            nest.python(**expected)
        bound, skew = nest.bind(found), find_skew(nest.loops, nest.dependences)
        forms = legal_forms(skewed_nest(bound, skew), skewed_dependences(nest.dependences, skew))
        form = next(form for form in forms if form.transposed)
        with vectors_of(64):
            run(nest, found, plan=in_form(nest.using(tile=None).plan(**found), bound, form))
        check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
@pytest.mark.parametrize(
    ("name", "narrowed"), everyday_together(product(NARROW, FLAGS), list(zip(NARROW, FLAGS, strict=True)))
)
def test_narrower_vectors(name: str, narrowed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "TILE_FLAGS", (*native.TILE_FLAGS, FLAGS[narrowed]))
    tile_library.cache_clear()
    search(lambda data: check(data, name), wanted(1), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NESTS)
def test_bits_of_the_plain_loop_at_length(name: str) -> None:
    search(lambda data: check(data, name), wanted(400), first_seed())
