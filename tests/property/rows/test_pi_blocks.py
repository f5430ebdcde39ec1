"""Loops that wait for themselves, distributed over what waits for nothing, the cycle, and what depends on it: random statements
with dependences along a row, and to the row above, have the bits of the plain loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import in_form
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.inner_loops import pi_blocks
from lapwing.codegen.outer_loops import candidates
from lapwing.codegen.tile import forms_of, tile_source
from lapwing.planner.choose import make_plan
from lapwing.runtime.execute import tile_library
from lapwing.tiling.inner import InnerForm

ARRAYS = "ab"
PLACES = (
    "[i - 1, j]",
    "[i - 1, j - 1]",
    "[i - 1, j + 1]",
    *3 * ("[i, j - 1]",),
    "[i, j - 2]",
    "[i, j]",
    "[i, j]",
    "[i, j + 1]",
)
OTHERS = ("p[i, j]", "p[i, (j + 1) % m]", "w[j]", "w[j - 1]", "x[i] * 0.5", "j * 0.125")


@st.composite
def element(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(OTHERS))
    return draw(st.sampled_from(ARRAYS)) + draw(st.sampled_from(PLACES))


@st.composite
def value(draw: st.DrawFn, known: tuple[str, ...]) -> str:
    one, other, third = (draw(element() if not known else st.sampled_from(known) | element()) for _ in range(3))
    form = ("{} * 0.5 + {}", "max({}, {}) - 0.25", "{} - {} * {}", "({} if {} > {} else 0.5)", "({} + {}) / 3.0", "{}")
    text = draw(st.sampled_from(form))
    return text.format(*(one, other, third)[: text.count("{}")])


@st.composite
def loops(draw: st.DrawFn) -> str:
    body: list[str] = []
    known: tuple[str, ...] = ()
    for number in range(draw(st.integers(3, 6))):
        if number == 0 or draw(st.integers(0, 2)):
            body.append(f"{draw(st.sampled_from(ARRAYS))}[i, j] = {draw(value(known))}")
        else:
            body.append(f"s{number} = {draw(value(known))}")
            known = (*known, f"s{number}")
    if draw(st.booleans()):
        body += [f"if {draw(value(known))} > 0.0:", f"    d[i, j] = {draw(value(known))}"]
        body += ["else:", "    q[i, j] = 2"] if draw(st.booleans()) else []
    head = ["import lapwing as lw", "@lw.nest", "def nest(a, b, c, d, p, q, w, x, r, n, m):"]
    rows = ["for i in range(1, n):", "    for j in range(2, m):", *(f"        {line}" for line in body)]
    if draw(st.booleans()):  # a region in the order of the text
        rows = ["for again in range(1):", "    r[0] = 0.5 * r[0]", *(f"    {row}" for row in rows)]
    return "\n".join([*head, *(f"    {row}" for row in rows)]) + "\n"


def arguments(seed: int, n: int, m: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {name: random.standard_normal((n, m + 2)) for name in "abcdp"}
    if seed % 3 == 0:
        found["p"][random.random(found["p"].shape) < 0.05] = random.choice([np.nan, np.inf, -0.0, 5e-324])
    found |= {"q": np.zeros((n, m + 2), np.int8), "w": random.standard_normal(m + 2), "x": random.standard_normal(n)}
    return found | {"r": np.ones(1), "n": n, "m": m}


def check(data: st.DataObject) -> None:
    text = data.draw(loops(), label="nest")
    n = data.draw(st.sampled_from((3, 2, 5)), label="n")
    m = data.draw(st.sampled_from((9, 3, 40, 258, 260, 600)), label="m")
    seed = data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    expected, found = arguments(seed, n, m), arguments(seed, n, m)
    with np.errstate(all="ignore"):
        nest.python(**expected)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pi_blocks, "_is_worth_it", lambda *_: True)
        patched.setattr(candidates, "waits_long", lambda _: False)
        tile_library.cache_clear()
        try:
            called(nest, found)
        finally:
            tile_library.cache_clear()
    check_arrays(found, expected)


def called(nest: lw.Nest, arguments: dict[str, Any]) -> None:
    """In plain loops, where the nest is one."""
    if nest.program is not None:
        nest(**arguments)
        return
    bound = nest.bind(arguments)
    plan = make_plan(bound, nest.dependences, 1)
    plain = InnerForm(plan.inner.form.order, 1, independent=plan.inner.form.independent and plan.inner.form.lanes == 1)
    run(nest, arguments, plan=in_form(plan, bound, plain))


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def affine_gaps(m, e, f, way, a, b):
    for i in range(1, m.shape[0]):
        for j in range(1, m.shape[1]):
            m[i, j] = (1.0 if a[i] == b[j] else -1.0) + max(m[i - 1, j - 1], e[i - 1, j - 1], f[i - 1, j - 1])
            e[i, j] = max(m[i - 1, j] - 2.0, e[i - 1, j] - 0.5)
            f[i, j] = max(m[i, j - 1] - 2.0, f[i, j - 1] - 0.5)
            if m[i, j] >= e[i, j] and m[i, j] >= f[i, j]:
                way[i, j] = 0
            else:
                way[i, j] = 1 if e[i, j] >= f[i, j] else 2


@lw.nest
def relaxed(u, f):
    """Iterations wait longer than for all that they do."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])


def made(nest: lw.Nest, n: int, m: int) -> dict[str, Any]:
    random = np.random.default_rng(n * m)
    kinds = {"a": random.integers(0, 4, n), "b": random.integers(0, 4, m), "way": np.zeros((n, m), np.int8)}
    return {name: kinds.get(name, random.random((n, m))) for name in nest.loops.parameters}


@pytest.mark.parametrize("m", [3, 255, 257, 258, 700])
def test_alignment_with_a_way_back(m: int) -> None:
    expected, found = made(affine_gaps, 7, m), made(affine_gaps, 7, m)
    affine_gaps.python(**expected)
    bound = affine_gaps.bind(found)
    plain = forms_of(bound, affine_gaps.dependences)[0]
    run(affine_gaps, found, plan=in_form(make_plan(bound, affine_gaps.dependences, 1), bound, plain))
    check_arrays(found, expected)


@pytest.mark.parametrize(("nest", "parts"), [(affine_gaps, 3), (relaxed, 0)], ids=["affine_gaps", "relaxed"])
def test_loops_that_one_is_distributed_over(nest: lw.Nest, parts: int) -> None:
    bound = nest.bind(made(nest, 9, 30))
    text = tile_source(bound, (), forms_of(bound, nest.dependences)[0])
    assert text.count(f"LW_INLINE void {nest.name}_part_") == parts
