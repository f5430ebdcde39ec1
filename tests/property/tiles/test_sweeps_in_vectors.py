"""Sweeps over one row that lanes do together, each some steps behind the one before: random ones, with rows that are read on both
sides, elements of each sweep's own, and maxima, have the bits of the plain loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import forms_of
from lapwing.planner.choose import Wishes, make_plan

VALUES = (0.0, -0.0, 1.0, -1.5, 0.1, np.nan, np.inf, -np.inf, 5e-324, 1e300)
READ = (
    "b[i]",
    "b[i - 1]",
    "b[i - 1]",
    "b[i + 1]",
    "b[i - 2]",
    "d[i - 1]",
    "d[i]",
    "d[i + 2]",
    "p[t, i]",
    "p[t, i + 1]",
    "w[i]",
)
OWN = ("r[t]", "c", "0.5", "t * 0.25", "i * 0.125")
STORES = ("d[i] = other", "d[i] = new + other", "q[t, i] = other", "q[t, i] += new")
BOUNDS = ("2, m", "2, m", "2, m - 1", "3, 9")


@st.composite
def terms(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(("element", "+", "-", "*", "/", "max", "choice")))
    if depth == 0 or kind == "element":
        return draw(st.sampled_from((*READ, *READ, *OWN)))
    one, other = (draw(terms(depth - 1)) for _ in range(2))
    match kind:
        case "max":
            return f"{draw(st.sampled_from(('max', 'min')))}({one}, {other})"
        case "choice":
            return f"({one} if {draw(st.sampled_from(READ))} > 0.25 else {other})"
        case "/":
            return f"({one}) / (1.5 + w[i] * w[i])"
    return f"({one} {kind} {other})"


@st.composite
def sweeps(draw: st.DrawFn) -> str:
    has_maximum = draw(st.booleans())
    body = [f"other = {draw(terms())}", f"new = {draw(terms())} + 0.5 * b[i - 1]", "b[i] = new"]
    body += draw(st.lists(st.sampled_from(STORES), max_size=2, unique=True))
    body += ["most = max(most, abs(new))"] if has_maximum else []
    lines = ["import lapwing as lw", "@lw.nest", "def nest(b, d, p, q, r, w, c, n, m):"]
    lines += ["    most = 0.0"] if has_maximum else []
    lines += ["    for t in range(n):", f"        for i in range({draw(st.sampled_from(BOUNDS))}):"]
    lines += [f"            {line}" for line in body]
    lines += ["    return most"] if has_maximum else []
    return "\n".join(lines) + "\n"


def arguments(seed: int, n: int, m: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    long = max(m, 9) + 3

    def made(*shape: int) -> np.ndarray:
        special = random.choice(VALUES, shape)
        return np.where(random.random(shape) < 0.02 * (seed % 3), special, random.standard_normal(shape))

    shapes: dict[str, tuple[int, ...]] = {name: (long,) for name in "bdw"} | {"r": (n,), "p": (n, long), "q": (n, long)}
    return {name: made(*shapes[name]) for name in "bdpqrw"} | {"c": 0.75, "n": n, "m": m}


def check(data: st.DataObject) -> None:
    text = data.draw(sweeps(), label="nest")
    n = data.draw(st.sampled_from((1, 2, 4, 7, 8, 9, 17, 40, 70)), label="n")
    m = data.draw(st.sampled_from((3, 5, 9, 17, 40, 90)), label="m")
    width = data.draw(st.sampled_from((64, 32, 32, 16)), label="bytes of a vector")
    seed = data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    expected, found = arguments(seed, n, m), arguments(seed, n, m)
    with np.errstate(all="ignore"):
        returned = nest.python(**expected)
    with vectors_of(width):
        bound = nest.bind(found)
        form = next((form for form in forms_of(bound, nest.dependences) if form.skewed), None)
        if form is None:
            return
        form = replace(form, sweeps=data.draw(st.sampled_from((2, 9, 64)), label="sweeps at once"))
        outcome = run(
            nest, found, plan=in_form(make_plan(bound, nest.dependences, 1, Wishes(engine="blocking")), bound, form)
        )
    check_arrays(found, expected)
    if returned is not None:
        check_arrays({"": np.array(next(iter(outcome.results.values())))}, {"": np.array(returned)})


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def relaxed(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])


@lw.nest
def relaxed_downwards(u, f, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0] - 2, 0, -1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])


@lw.nest
def transported(b, below):
    """A row that every sweep goes on with, and what each has of it."""
    for t in range(below.shape[0]):
        for i in range(1, b.shape[0]):
            b[i] = 0.5 * (b[i] + b[i - 1]) + 0.25 * below[t, i]
            below[t, i] = b[i] * 2.0


@pytest.mark.parametrize("m", [3, 50, 1001])
@pytest.mark.parametrize("n", [1, 3, 16, 150])
def test_relaxation_of_one_row(n: int, m: int) -> None:
    random = np.random.default_rng(n + m)
    for nest in (relaxed, relaxed_downwards):
        expected, f = random.random(m), random.random(m)
        found = expected.copy()
        nest.python(expected, f, n)
        nest(found, f, n)
        check_arrays({"u": found}, {"u": expected})
    expected, below = random.random(m), random.random((n, m))
    found, found_below = expected.copy(), below.copy()
    transported.python(expected, below)
    transported(found, found_below)
    check_arrays({"b": found, "below": found_below}, {"b": expected, "below": below})


def test_many_sweeps_are_in_vectors_by_rule() -> None:
    u, f = np.ones(400), np.ones(400)
    assert relaxed.plan(u, f, 100).inner.form.describe(["i"]) == "sweeps in vectors"
    assert relaxed.plan(u, f, 2).inner.form.describe(["i"]) == "plain"
    assert relaxed.plan(u, f, 100, ranks=2).inner.form.describe(["i"]) == "plain"
