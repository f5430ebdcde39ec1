"""Conditions in tiles with buffers, where lanes take values for them: random loop bodies have the bits of the plain loop.

LAPWING_EXAMPLES sets how many bodies are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import forms_with_vectors, in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import forms_of
from lapwing.planner.choose import Wishes, make_plan
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e-310, 1e300])
# Of what every iteration finds, and of what only some do.
TESTS = (
    "a[i - 2] == b[j - 2]|u[i - 1, j] > u[i, j - 1]|v[i, j] <= u[i - 1, j - 1]|i > j|j > 5 and a[i - 2] == b[j - 3]|i == 2|"
    "j + 1 < 2 * i - 3|i > 4 and u[i - 2, j] > v[i, j] and a[i - 1] != b[j - 2]|v[i, j] != v[i, j]|p > v[i - 1, j]|"
    "u[i, j] < v[i, j - 1] or p < 3"
).split("|")
VALUES = (
    "u[i - 1, j]|u[i, j - 1] + v[i, j]|u[i - 1, j - 1] - 1|v[i - 1, j]|max(u[i - 1, j], v[i, j - 1])|p|p + v[i, j]|u[i, j]|"
    "v[i, j]|u[i - 1, j - 1] + q|v[i, j] - q|min(v[i, j - 1], u[i - 2, j - 2])|abs(u[i, j - 2])|"
    "u[i - 1, j] if a[i - 2] == b[j - 2] else v[i, j]"
).split("|")
TYPES = ("float64", "float32", "int64", "int32")


@st.composite
def nests(draw: st.DrawFn) -> str:
    head = ["import lapwing as lw", "@lw.nest", "def nest(u, v, a, b):", "    count = 0"]
    loops = ["    for i in range(2, u.shape[0]):", "        for j in range(2, u.shape[1]):"]
    body = draw(st.sampled_from([[], ["if i + j < 9:", "    v[i, j] = i", "    continue"]]))
    body += ["q = 2", f"p = {draw(st.sampled_from([value for value in VALUES if 'p' not in value]))}"]
    for _ in range(draw(st.integers(1, 2))):
        body += draw(condition(2))
    if draw(st.booleans()):
        body.append(f"v[i, j] = {draw(st.sampled_from(VALUES))}")
    body.append(f"u[i, j] = {draw(st.sampled_from(['p', 'u[i, j]']))} + u[i, j - 1]")
    return "\n".join([*head, *loops, textwrap.indent("\n".join(body), " " * 12), "    return count"]) + "\n"


@st.composite
def condition(draw: st.DrawFn, depth: int) -> list[str]:
    lines = [f"if {draw(st.sampled_from(TESTS))}:", *draw(arm(depth))]
    if draw(st.booleans()):
        lines += [f"elif {draw(st.sampled_from(TESTS))}:", *draw(arm(depth))]
    if draw(st.booleans()):
        lines += ["else:", *draw(arm(depth))]
    return lines


@st.composite
def arm(draw: st.DrawFn, depth: int) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 9))
        if depth and kind < 2:
            lines += draw(condition(depth - 1))
        elif kind == 2:
            lines.append("count += 1")
        elif kind == 4:
            lines.append(f"q = {draw(st.sampled_from(['0', '1', 'int(a[i - 2] != b[j - 2])']))}")
        elif kind == 3:
            lines.append(
                f"{draw(st.sampled_from(['u[i, j]', 'v[i, j]']))} = {draw(st.sampled_from(['0', 'i - 2 * j', 'j']))}"
            )
        else:
            lines.append(f"{draw(st.sampled_from(['u[i, j]', 'v[i, j]', 'p', 'p']))} = {draw(st.sampled_from(VALUES))}")
    return [f"    {line}" for line in lines]


def arguments_of(dtype: str, letters: str, shape: tuple[int, int], seed: int, special: bool) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 3, n).astype(letters) for n in shape)
    made = {}
    for name in "uv":
        values = rng.integers(-9, 10, shape).astype(dtype)
        if special:
            ends = SPECIAL if dtype.startswith("float") else np.array([np.iinfo(dtype).min, np.iinfo(dtype).max])
            at = rng.random(shape) < 0.1
            with np.errstate(all="ignore"):
                values[at] = rng.choice(ends, at.sum()).astype(dtype)
        made[name] = values
    return {**made, "a": a, "b": b}


def check(data: st.DataObject) -> None:
    text = data.draw(nests(), label="nest")
    nest = nest_of(text)
    sides = st.integers(3, 150) | st.integers(3, 30)
    given = (
        data.draw(st.sampled_from(TYPES), label="type"),
        data.draw(st.sampled_from(["int64", "int8"]), label="letters"),
        data.draw(st.tuples(sides, sides), label="shape"),
        data.draw(st.integers(0, 99), label="seed"),
        data.draw(st.booleans(), label="special"),
    )
    width = data.draw(st.sampled_from((0, 16, 32, 64)), label="bytes of a vector")
    expected, found = arguments_of(*given), arguments_of(*given)
    try:
        bound = nest.bind(found)
    except lw.RefusedError:
        assume(False)
    forms = [form for form in forms_with_vectors(width or 64, bound, nest.dependences) if form.transposed]
    assume(forms and not bound.domain.is_empty)
    with np.errstate(all="ignore"):
        count = nest.python(**expected)
    plan = in_form(nest.plan(**found), bound, forms[0])
    with vectors_of(width):
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    assert next(iter(outcome.results.values())) == count


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.timeout(900)
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(3), first_seed(), simplest=False)


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(1000), first_seed())


@lw.nest
def with_a_power_at_a_wall(u, c, sweeps):
    """Conditions of statements and of values with powers, which become values one after the other."""
    n, m = u.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                new = u[i, j]
                if i < n - 1:
                    new += u[i + 1, j]
                else:
                    new -= 1
                new += u[i, j + 1] ** 3 if j + 1 < m else c
                u[i, j] = 0.125 * new


def test_conditions_around_powers_in_every_form() -> None:
    u = np.random.default_rng(1).random((9, 90))
    given = {"u": u, "c": np.float64(2), "sweeps": 16}
    bound = with_a_power_at_a_wall.bind(given)
    plan = make_plan(bound, with_a_power_at_a_wall.dependences, 1, Wishes(engine="blocking"))
    dependences = skewed_dependences(with_a_power_at_a_wall.dependences, plan.skew)
    expected = u.copy()
    with_a_power_at_a_wall.python(expected, np.float64(2), 16)
    for form in forms_of(skewed_nest(bound, plan.skew), dependences):
        found = {**given, "u": u.copy()}
        run(with_a_power_at_a_wall, found, plan=in_form(plan, bound, form))
        assert found["u"].tobytes() == expected.tobytes(), form
