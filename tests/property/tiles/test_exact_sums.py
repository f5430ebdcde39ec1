"""Float sums are exact and rounded once, in every inner form of a tile: terms of all sizes, so many that they are added many at
once, and some of iterations alone.

LAPWING_EXAMPLES sets how many arrays are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays, check_value, exact_sum
from hypothesis import strategies as st
from inner_forms import in_form
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.tiling.inner import legal_forms
from lapwing.tiling.skewing import skewed_dependences


@lw.nest
def residual(u, f, w, sweeps):
    total = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                w[i, j] = (new - u[i, j]) * f[i, j]
                total += w[i, j]
                u[i, j] = new
    return total


@lw.nest
def of_some(u, f, w):
    total, positive = 0.0, 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            w[i, j] = 0.5 * w[i - 1, j] - 0.25 * w[i, j - 1] + f[i, j]
            total += w[i, j]
            if w[i, j] > 0:
                positive += w[i, j]
    return total, positive


@lw.nest
def alike(u, f, w):
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            w[i, j] = u[i, j] * f[i, j]
            total += w[i, j]
    return total


@lw.nest
def in_space(u, f, w):
    total = 0.0
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            for k in range(1, w.shape[2]):
                w[i, j, k] = f[j, k] + 0.25 * (w[i - 1, j, k] - w[i, j - 1, k] + w[i, j, k - 1])
                total += w[i, j, k]
    return total


def terms_of(name: str, arguments: dict[str, Any]) -> list[list[Any]]:
    """The terms of every sum of one sweep; w has them all after the plain loop."""
    w = arguments["w"]
    if name == "alike":
        return [list(w.ravel())]
    if name == "in_space":
        return [list(w[1:, 1:, 1:].ravel())]
    inner = list(w[1:-1, 1:-1].ravel())
    return [inner] if name == "residual" else [inner, [x for x in inner if x > 0]]


def arguments_of(name: str, shape: tuple[int, int], dtype: str, style: str, seed: int) -> dict[str, Any]:
    """style: how far the sizes of terms are apart, or that some are no finite numbers."""
    generator = np.random.default_rng(seed)
    low, high = {"near": (0, 1), "apart": (-40, 40), "far": (-900, 900), "tiny": (-1070, -900)}.get(style, (0, 1))
    with np.errstate(all="ignore"):
        f = np.ldexp(generator.standard_normal(shape), generator.integers(low, high, shape)).astype(dtype)
        u = generator.standard_normal(shape).astype(dtype)
    if style == "special":
        f[generator.random(shape) < 0.001] = np.inf
        f[generator.random(shape) < 0.0005] = np.nan
        f[generator.random(shape) < 0.5] = -0.0
    w = np.zeros((4, *shape) if name == "in_space" else shape, dtype)
    return {"u": u, "f": f, "w": w} | ({"sweeps": 1} if name == "residual" else {})


NESTS = {"residual": residual, "of_some": of_some, "alike": alike, "in_space": in_space}


def check(data: st.DataObject, name: str) -> None:
    nest = NESTS[name]
    shape = data.draw(st.tuples(st.integers(3, 150), st.integers(3, 90)), label="shape")
    dtype = data.draw(st.sampled_from(["float64", "float32"]), label="dtype")
    style = data.draw(st.sampled_from(["near", "apart", "far", "tiny", "special"]), label="style")
    seed = data.draw(st.integers(0, 1000), label="seed")
    expected, found = (arguments_of(name, shape, dtype, style, seed) for _ in range(2))
    with np.errstate(all="ignore"):
        nest.python(**expected)
    kind = np.dtype(dtype).type
    totals = [exact_sum([0.0, *terms], kind) for terms in terms_of(name, expected)]
    forms = legal_forms(nest.bind(found), skewed_dependences(nest.dependences, None))
    plan, form = nest.plan(**found), data.draw(st.sampled_from(forms), label="form")
    outcome = run(nest, found, plan=in_form(plan, nest.bind(found), form))
    check_arrays(found, expected)
    for (name, value), total in zip(outcome.results.items(), totals, strict=True):
        check_value(name, value, total)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("name", NESTS)
def test_sums_are_exact(name: str) -> None:
    search(lambda data: check(data, name), wanted(1), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NESTS)
def test_sums_are_exact_at_length(name: str) -> None:
    search(lambda data: check(data, name), wanted(600), first_seed())


def test_nests_that_sum_in_every_iteration_take_buffers() -> None:
    for name, takes in (("residual", True), ("of_some", False), ("in_space", True)):
        arguments = arguments_of(name, (90, 90), "float64", "near", 0)
        forms = legal_forms(NESTS[name].bind(arguments), skewed_dependences(NESTS[name].dependences, None))
        assert any(form.transposed for form in forms) == takes, name
