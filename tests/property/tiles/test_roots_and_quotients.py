"""Quotients without the core's divider have its bits: by numbers in the text and by arguments, of dividends of all sizes. Roots
and quotients that are computed once for several iterations have those of each.

LAPWING_EXAMPLES sets how many arrays are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from everyday import everyday, everyday_together
from hypothesis import strategies as st
from inner_forms import forms_with_vectors, in_form, vectors_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.lanes import points
from lapwing.codegen.tile import tile_source
from lapwing.loopnest.skew import find_skew
from lapwing.tiling.faces import faces_of
from lapwing.tiling.inner import legal_forms
from lapwing.tiling.skewing import skewed_dependences, skewed_nest


@lw.nest
def relaxed(u, f, h, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j] / h) / 5.0


@lw.nest
def diagonal(u, f, h, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = (u[i - 1, j - 1] + u[i - 1, j] + u[i, j + 1] + u[i, j]) / h


@lw.nest
def in_space(u, f, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = (u[i - 1, j, k] + u[i, j - 1, k] / h + u[i, j, k - 1]) / 3.0 - f[i, j, k] / 0.1


@lw.nest
def largest(u, f, h):
    best = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i, j]) / 7.0 - f[i, j]
            best = max(best, abs(u[i, j]) / h)
    return best


@lw.nest
def chosen(u, f, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = (u[i - 1, j] + u[i, j - 1]) / 3.0 if f[i, j] > 0 else (u[i, j] - u[i - 1, j - 1]) / (h * h)


@lw.nest
def rooted(u, f, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            above = np.sqrt(abs(u[i - 1, j])) - np.sqrt(abs(u[i - 1, j - 1])) * f[i, j]
            u[i, j] = above + np.sqrt(abs(u[i, j - 1]))


@lw.nest
def inverted(u, f, h, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (1.0 / (u[i - 1, j] * h + 2.0) + 1.0 / (u[i, j - 1] * h + 2.0)) / 3.0 + f[i, j] * u[i + 1, j]


@lw.nest
def rooted_in_space(u, f, h):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                u[i, j, k] = np.sqrt(u[i - 1, j, k]) + np.sqrt(u[i, j - 1, k]) + np.sqrt(u[i, j, k - 1]) / h


DIVIDED = (relaxed, diagonal, in_space, largest, chosen, inverted, rooted_in_space)
NESTS = {nest.__name__: nest for nest in (*DIVIDED, rooted)}
SMALL = (relaxed, largest, in_space)  # tried every day with small dividends
IN_SPACE = (in_space, rooted_in_space)
STYLES = ("usual", "of all sizes", "small", "mostly zero")
DIVISORS = [0.0, -0.0, np.nan, np.inf, 5e-324, 1e-310, 1e-200, 1e300, 0.25, -2.0, 3.0, -49.0, 0.1, 1 / 3, 1e-3, 65535.0]


def values(random: np.random.Generator, shape: tuple[int, ...], style: str) -> np.ndarray:
    found = random.standard_normal(shape)
    if style == "of all sizes":
        found = random.integers(0, 2**64, shape, dtype=np.uint64, endpoint=False).view(np.float64)
    elif style == "small":
        found *= 10.0 ** random.integers(-323, -300, shape)
    elif style == "mostly zero":
        found[random.random(shape) < 0.9] = random.choice([0.0, -0.0])
    return found


def arguments_of(
    nest: lw.Nest, shape: tuple[int, ...], h: float, sweeps: int, dtype: str, style: str, seed: int
) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        arrays = {name: values(random, shape, style).astype(dtype) for name in "uf"}
        if style == "small" and dtype == "float32":
            arrays = {name: (a.astype("float64") * 1e278).astype(dtype) for name, a in arrays.items()}
    made = {**arrays, "h": np.float32(h) if dtype == "float32" else h, "sweeps": sweeps}
    return {name: made[name] for name in inspect.signature(nest.python).parameters}


def compare(
    nest: lw.Nest, given: tuple[Any, ...], width: int, tile: int | None, which: Callable[[Sequence[Any]], Any]
) -> None:
    """given: what arguments_of takes besides the nest. which: chooses one of the forms with buffers."""
    expected, found = (arguments_of(nest, *given) for _ in range(2))
    with np.errstate(all="ignore"):
        right = nest.python(**expected)
    bound, skew = nest.bind(found), find_skew(nest.loops, nest.dependences)
    forms = forms_with_vectors(width, skewed_nest(bound, skew), skewed_dependences(nest.dependences, skew))
    form = which([form for form in forms if form.transposed])
    plan = in_form(nest.using(tile=tile).plan(**found), bound, form)
    with vectors_of(width):
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    assert right is None or np.array_equal(list(outcome.results.values()), [right], equal_nan=True)


def check(data: st.DataObject, name: str) -> None:
    sides = st.integers(9, 90)
    shape = data.draw(st.tuples(*([st.integers(2, 6)] if NESTS[name] in IN_SPACE else []), sides, sides), label="shape")
    h = data.draw(st.sampled_from(DIVISORS) | st.floats(1, 2, width=32) | st.floats(1, 2), label="h")
    sweeps, seed = data.draw(st.integers(1, 5), label="sweeps"), data.draw(st.integers(0, 1000), label="seed")
    dtype = data.draw(st.sampled_from(("float64", "float32")), label="dtype")
    style = data.draw(st.sampled_from(STYLES), label="style")
    width = data.draw(st.sampled_from((16, 32, 64)), label="bytes of a vector")
    tile = data.draw(st.none() | st.integers(1, 70), label="tile")
    compare(
        NESTS[name],
        (shape, h, sweeps, dtype, style, seed),
        width,
        tile,
        lambda forms: data.draw(st.sampled_from(forms), label="form"),
    )


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    ("nest", "dtype"),
    everyday_together(
        product(SMALL, ["float64", "float32"]),
        [(relaxed, "float32"), (largest, "float64"), (in_space, "float64")],
    ),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_small_dividends(nest: lw.Nest, dtype: str) -> None:
    shape = (4, 70, 80) if nest is in_space else (70, 80)
    compare(nest, (shape, 7.0, 2, dtype, "small", 1), 32, None, lambda forms: forms[-1])


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("name", everyday(NESTS, NESTS.keys() - {nest.__name__ for nest in SMALL}))
def test_bits_of_the_divider(name: str) -> None:
    search(lambda data: check(data, name), wanted(1), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NESTS)
def test_bits_of_the_divider_at_length(name: str) -> None:
    search(lambda data: check(data, name), wanted(600), first_seed())


def source_of(nest: lw.Nest, dtype: str) -> str:
    """With vectors of 64 bytes."""
    made = arguments_of(nest, (4,) * (3 if nest in IN_SPACE else 2), 0.3, 1, dtype, "usual", 0)
    bound, skew = nest.bind(made), find_skew(nest.loops, nest.dependences)
    tiled = skewed_nest(bound, skew)
    forms = legal_forms(tiled, skewed_dependences(nest.dependences, skew))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(points, "vector_bytes", lambda: 64)
        return tile_source(tiled, faces_of(tiled), next(form for form in forms if form.transposed))


@pytest.mark.parametrize("nest", DIVIDED, ids=lambda nest: nest.__name__)
def test_vectors_take_no_divider(nest: lw.Nest) -> None:
    assert "lw_quotient_f64(" in source_of(nest, "float64")


@pytest.mark.parametrize(("nest", "function"), [(rooted, "sqrt"), (inverted, "1.0 / "), (rooted_in_space, "sqrt")])
def test_functions_of_an_element_are_computed_once(nest: lw.Nest, function: str) -> None:
    _, body = source_of(nest, "float32").split("_in_vector(")[:2]
    text = body[: body.index("\n}")]
    assert function not in text
    assert "_image[lane]" in text
    assert ("_root[lane]" in text) == (nest is rooted_in_space), "what is in another plane is computed before"
