"""Powers and functions in tiles with buffers, where the lanes of a step are a strip for which they are called: random loop bodies
have the bits of the plain loop, and raise what it raises.

LAPWING_EXAMPLES sets how many bodies are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from everyday import everyday
from hypothesis import assume
from hypothesis import strategies as st
from inner_forms import forms_with_vectors, in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import tile_source

ELEMENTS = (
    "u[i - 1, j]",
    "u[i, j - 1]",
    "u[i - 1, j - 1]",
    "v[i - 1, j]",
    "v[i, j]",
    "w[i, j]",
    "w[i, j - 2]",
    "x[i]",
    "y[j]",
)
FUNCTIONS = (
    "({}) ** 2", "({} - {}) ** 2", "({} - {}) ** 2", "abs({}) ** 0.5", "({}) ** 3", "np.exp(-abs({}))", "np.sin({})",
    "math.cos({})", "math.sqrt(abs({}))", "np.sqrt({})",
)  # fmt: skip
MAY_RAISE = ("math.sqrt({} + 3.0)", "math.log({} + 3.0)", "math.sqrt(9.0 - ({} - {}) ** 2)")
TESTS = ("{} > {}", "abs({} - {}) >= 1.0", "i == 1", "j == 1", "j == n - 1", "a[i] == b[j]", "{} > 0.5 and {} < 1.0")


@st.composite
def filled(draw: st.DrawFn, texts: tuple[str, ...]) -> str:
    text = draw(st.sampled_from(texts))
    return text.format(*(draw(st.sampled_from(ELEMENTS)) for _ in range(text.count("{}"))))


@st.composite
def terms(draw: st.DrawFn, functions: tuple[str, ...]) -> str:
    one, other = draw(filled(functions)), draw(st.sampled_from(ELEMENTS))
    kind = draw(st.sampled_from(("{}", "{} + {}", "{} * 0.25 - {}", "min({}, {})", "max({}, {})")))
    return kind.format(*(one, other)[: kind.count("{}")])


@st.composite
def nests(draw: st.DrawFn) -> str:
    functions = draw(st.sampled_from((FUNCTIONS, FUNCTIONS, (*FUNCTIONS, *MAY_RAISE))))
    value = [draw(terms(functions)) for _ in range(3)]
    body = [f"new = {value[0]}"] if draw(st.booleans()) else []
    body += [f"if {draw(filled(TESTS))}:", f"    new = {value[1]}"]
    body += ["else:", f"    new = {value[2]}"] if len(body) == 2 or draw(st.booleans()) else []
    body += draw(st.sampled_from(([], ["v[i, j] = new + w[i, j]"], ["most = max(most, new)"])))
    last = draw(st.sampled_from(("0.5 * (new + u[i, j - 1])", "new - u[i - 1, j]", "min(new, u[i, j - 1]) + 0.125")))
    body.append(f"u[i, j] = {last}")
    head = ["import math", "import numpy as np", "import lapwing as lw", "@lw.nest", "def nest(u, v, w, x, y, a, b):"]
    finds = any("most" in line for line in body)
    first = ["    m, n = u.shape", *(["    most = 0.0"] if finds else [])]
    loops = ["    for i in range(1, m):", "        for j in range(2, n):", textwrap.indent("\n".join(body), " " * 12)]
    return "\n".join([*head, *first, *loops, *(["    return most"] if finds else [])]) + "\n"


def arguments_of(shape: tuple[int, int], seed: int, special: bool) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    made: dict[str, Any] = {name: random.standard_normal(shape) for name in "uvw"}
    if special:
        at = random.random(shape) < 0.05
        made["w"][at] = random.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1e-170, 1e300], at.sum())
    made |= {"x": random.standard_normal(shape[0]), "y": random.standard_normal(shape[1])}
    return made | {name: random.integers(0, 3, n) for name, n in zip("ab", shape, strict=True)}


def check(data: st.DataObject) -> None:
    text = data.draw(nests(), label="nest")
    nest = nest_of(text)
    sides = st.integers(3, 150) | st.integers(3, 30)
    shape = data.draw(st.tuples(sides, sides), label="shape")
    given = shape, data.draw(st.integers(0, 99), label="seed"), data.draw(st.booleans(), label="special")
    width = data.draw(st.sampled_from((16, 32, 64)), label="bytes of a vector")
    expected, found = arguments_of(*given), arguments_of(*given)
    bound = nest.bind(found)
    forms = [form for form in forms_with_vectors(width, bound, nest.dependences) if form.transposed]
    assume(forms)
    plan = in_form(nest.plan(**found), bound, forms[0])
    with vectors_of(width):
        try:
            with np.errstate(all="ignore"):
                most = nest.python(**expected)
        except (ValueError, OverflowError):
            with pytest.raises(lw.RunError):
                run(nest, found, plan=plan)
            return
        outcome = run(nest, found, plan=plan)
    check_arrays(found, expected)
    if most is not None:
        check_arrays({"": np.array(next(iter(outcome.results.values())))}, {"": np.array(most)})


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.timeout(900)
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(5), first_seed())


@pytest.mark.long
@pytest.mark.timeout(14400)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(1000), first_seed())


@lw.nest
def fast_sweep(u, slowness):
    """Godunov's scheme with edges by conditions, as it is often written."""
    n, m = u.shape
    for i in range(n):
        for j in range(m):
            if i == 0:
                a = u[i + 1, j]
            elif i == n - 1:
                a = u[i - 1, j]
            else:
                a = min(u[i - 1, j], u[i + 1, j])
            if j == 0:
                b = u[i, j + 1]
            elif j == m - 1:
                b = u[i, j - 1]
            else:
                b = min(u[i, j - 1], u[i, j + 1])
            s = slowness[i, j]
            if abs(a - b) >= s:
                new = min(a, b) + s
            else:
                new = 0.5 * (a + b + np.sqrt(2 * s * s - (a - b) ** 2))
            u[i, j] = min(u[i, j], new)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("shape", everyday([(70, 90), (31, 200), (5, 40), (129, 33)], [(70, 90)]))
def test_a_fast_sweep_is_computed_in_parts(shape: tuple[int, int]) -> None:
    slowness = 1.0 + np.random.default_rng(1).random(shape)
    expected = np.full(shape, 1000.0)
    expected[shape[0] // 2, shape[1] // 3] = 0.0
    found = expected.copy()
    bound = fast_sweep.bind({"u": found, "slowness": slowness})
    form = next(form for form in forms_with_vectors(32, bound, fast_sweep.dependences) if form.transposed)
    assert "lw_strip_square_f64(" in tile_source(bound, (), form)
    plan = in_form(fast_sweep.plan(u=found, slowness=slowness), bound, form)
    run(fast_sweep, {"u": found, "slowness": slowness}, plan=plan)
    fast_sweep.python(expected, slowness)
    check_arrays({"u": found}, {"u": expected})


@lw.nest
def in_planes(u, s):
    """Functions under a condition, in three dimensions."""
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            for k in range(1, u.shape[2]):
                if u[i - 1, j, k] > u[i, j - 1, k]:
                    new = np.sin(u[i - 1, j, k] - u[i, j, k - 1]) ** 2
                else:
                    new = np.exp(-abs(u[i, j - 1, k])) + s[i, j, k]
                u[i, j, k] = 0.25 * new + 0.5 * u[i, j, k - 1]


@lw.nest
def swept(u, s):
    """Several sweeps at once."""
    for t in range(5):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(1, u.shape[2] - 1):
                    above = u[i - 1, j, k] + u[i, j - 1, k] + u[i, j, k - 1]
                    u[i, j, k] = 0.1 * (above + u[i + 1, j, k]) + s[t, j, k] * (u[i, j, k + 1] - u[i, j + 1, k]) ** 2


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", [in_planes, swept], ids=["in_planes", "swept"])
@pytest.mark.parametrize("width", everyday([16, 32, 64], [32]))
def test_planes_that_follow_one_another(nest: lw.Nest, width: int) -> None:
    random = np.random.default_rng(2)
    expected = {name: random.random((7, 70, 30)) for name in "us"}
    given = {name: array.copy() for name, array in expected.items()}
    nest.python(**expected)
    bound = nest.bind(given)
    for form in forms_with_vectors(width, bound, nest.dependences):
        if form.transposed:
            found = {name: array.copy() for name, array in given.items()}
            with vectors_of(width):
                run(nest, found, plan=in_form(nest.plan(**found), bound, form))
            check_arrays(found, expected)
