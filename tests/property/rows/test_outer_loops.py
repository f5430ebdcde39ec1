"""Loops around reductions that are computed in lanes: random nests of loops, whose inner loops sum up, multiply, look for an
extremum or its place, or go on with what they have stored, have the bits of the plain loop, with NaN, infinities, zeros of both
signs, ties, and loops without iterations among what they meet.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from hypothesis import strategies as st
from inner_forms import vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

DTYPES = ("float64", "float64", "float32", "int64", "int32", "int16", "uint8", "uint32", "uint16")
ELEMENTS = (
    "a[i, k]",
    "b[k, j]",
    "b[k, j]",
    "x[k]",
    "x[j]",
    "b[k, j + 1]",
    "b[k + 1, j]",
    "x[i]",
    "c[i, j]",
    "b[j, k]",
    "b[j, k]",
    "b[j + 1, k]",
)
BOUNDS = (
    "n",
    "n",
    "n",
    "i",
    "j",
    "i, n",
    "j, n",
    "min(n, j + 2)",
    "max(0, j - 3), n",
    "1, n",
    "n - 1, -1, -1",
    "0",
    "2",
)
VALUES = (0.0, -0.0, 1.0, 1.0, -1.5, 3.25, 0.1, np.nan, np.inf, -np.inf, 5e-324, 1e300)


@st.composite
def terms(draw: st.DrawFn, floats: bool, depth: int = 2) -> str:
    kinds = ("element", "element", "+", "-", "*", "max", "choice", "abs", "index", "square root")
    kind = draw(st.sampled_from(kinds if floats else kinds[:-1]))
    if depth == 0 or kind == "element":
        return draw(st.sampled_from(ELEMENTS))
    one, other = (draw(terms(floats, depth - 1)) for _ in range(2))
    match kind:
        case "max":
            return f"{draw(st.sampled_from(('max', 'min')))}({one}, {other})"
        case "choice":
            return f"({one} if {draw(st.sampled_from(ELEMENTS))} > {draw(st.sampled_from(ELEMENTS))} else {other})"
        case "abs":
            return f"abs({one})"
        case "square root":
            return f"np.sqrt(abs({one}))" if draw(st.booleans()) else f"({one}) / 2.5"
        case "index":
            return f"({one} + {draw(st.sampled_from('ijk'))})"
    return f"({one} {kind} {other})"


@st.composite
def reductions(draw: st.DrawFn, floats: bool, number: int) -> tuple[list[str], list[str]]:
    """The lines of an inner loop with what comes before it, and the expressions that it ends with."""
    term, bounds = draw(terms(floats)), draw(st.sampled_from(BOUNDS))
    s, arg = f"s{number}", f"arg{number}"
    first = draw(st.sampled_from(("c[i, j]", "x[j]", "0", "0.0", "1.0", "-np.inf")[: 6 if floats else 3]))
    before, results = [f"{s} = {first}"], [s]
    kind = draw(
        st.sampled_from(("sum", "product", "max", "if", "argument", "argument", "last argument", "two", "element"))
    )
    match kind:
        case "sum":
            body = [f"{s} {draw(st.sampled_from(('+=', '-=')))} {term}"]
        case "product":
            body = [f"{s} = {s} * ({term})"]
        case "max":
            body = [f"{s} = {draw(st.sampled_from(('max', 'min')))}({s}, {term})"]
        case "if":
            body = [f"if {draw(st.sampled_from(ELEMENTS))} > {s}:", f"    {s} = {term}"]
        case "argument" | "last argument":
            compared = draw(st.sampled_from(("<", ">"))) + ("=" if kind == "last argument" else "")
            body = [f"v = {term}", f"if v {compared} {s}:", f"    {s} = v", f"    {arg} = k"]
            before.append(f"{arg} = {draw(st.sampled_from(('-1', '0', 'i')))}")
            results.append(arg)
        case "two":
            body = [f"d = {term}", f"{s} += d", f"t{number} = t{number} + d * x[k]"]
            before.append(f"t{number} = {0.0 if floats else 0}")
            results.append(f"t{number}")
        case "element":
            before = [f"c[i, j] = {first}"] if draw(st.booleans()) else []
            body, results = [f"c[i, j] = c[i, j] + {term.replace('c[i, j]', 'x[i]')}"], []
    return [*before, f"for k in range({bounds}):", *(f"    {line}" for line in body)], results


@st.composite
def nests(draw: st.DrawFn, floats: bool) -> str:
    lines = []
    for number in range(draw(st.integers(1, 2))):
        body, results = draw(reductions(floats, number))
        lines += body
        lines += [f"{target}[i, j] = {value}" for target, value in zip(("c", "p"), results, strict=False)]
    if draw(st.integers(0, 3)) == 0:
        lines.append("e[i, j] = e[i, j] + c[i, j]")
    around = draw(st.sampled_from(("nest", "in order", "chained", "triangle")))
    columns = draw(st.sampled_from(("m", "1, m", "i, m"))) if around == "triangle" else "m"
    head = ["for i in range(n):", f"    for j in range({columns}):"]
    indent = "        "
    if around == "in order":  # an inner loop before, so that the nest is done in its own order
        head = ["for i in range(n):", "    y[i] = 0.0", f"    for j in range({columns}):"]
    if around == "chained":
        lines += draw(
            st.sampled_from(
                (["y[i] = y[i] + c[i, j]"], ["for q in range(1, 3):", "    y[i] = y[i] + c[i, j] * a[i, q]"])
            )
        )
    text = "\n".join(
        ["import numpy as np", "import lapwing as lw", "@lw.nest", "def nest(a, b, c, e, p, x, y, n, m):"]
        + [f"    {line}" for line in head]
        + [f"    {indent}{line}" for line in lines]
    )
    return text + "\n"


@st.composite
def recurrences(draw: st.DrawFn, floats: bool) -> str:
    """Loops whose iterations take what all iterations before them have stored."""
    bound = draw(
        st.sampled_from(("i", "i", "i", "i - 1", "i + 1", "1, i", "i - 3", "min(i, 5), i", "max(0, i - 9), i"))
    )
    old = draw(st.sampled_from(("x[k]", "x[k]", "x[k + 1]", "x[i]", "u[k]")))
    row = draw(st.sampled_from(("b[i, k]", "b[k, i]", "u[i]", "b[i, k + 1]")))
    match draw(st.sampled_from(("sum", "argument", "longest", "factors", "matrix"))):
        case "sum":
            lines = ["s = u[i]", f"for k in range({bound}):", f"    s = s - {row} * {old}", "x[i] = s"]
        case "argument":
            lines = ["s = u[i]", "arg = -1", f"for k in range({bound}):", f"    v = {row} + {old}"]
            lines += ["    if v > s:", "        s = v", "        arg = k", "x[i] = s", "z[i] = arg"]
        case "longest":
            lines = ["x[i] = 1", "z[i] = -1", f"for k in range({bound}):", "    if u[k] < u[i] and x[k] + 1 > x[i]:"]
            lines += ["        x[i] = x[k] + 1", "        z[i] = k"]
        case "factors":
            lines = [f"for k in range({bound}):", "    for q in range(k):", "        b[i, k] -= b[i, q] * b[k, q]"]
            lines += ["    b[i, k] = b[i, k] * 0.5" if floats else "    b[i, k] = b[i, k] + 1"]
            lines += ["for q in range(i):", "    b[i, i] -= b[i, q] * b[i, q]"]
        case _:
            inner = draw(st.sampled_from(("b[k, q]", "b[q, k]", "b[i, q]")))
            lines = ["s = u[i]", f"for k in range({bound}):", "    for q in range(3):", f"        s += {inner} * {old}"]
            lines += ["x[i] = s", "for k in range(i):", "    e[0, 0] = e[0, 0] + x[k]"]
    head = [
        "import numpy as np",
        "import lapwing as lw",
        "@lw.nest",
        "def nest(b, e, u, x, z, m):",
        "    for i in range(m):",
    ]
    return "\n".join([*head, *(f"        {line}" for line in lines)]) + "\n"


OLD = (
    "b[k - 1, j]",
    "b[k - 1, j]",
    "b[max(k - 1, 0), j]",
    "b[min(k + 1, m), j]",
    "b[k + 1, j]",
    "b[k, j]",
    "b[k - 2, j]",
    "g[k - 1, j]",
    "g[k, j]",
)
MIXED = (
    "b[k - 1, j - 1]",
    "b[k - 1, j + 1]",
    "b[k, j + 1]",
    "b[k, 0]",
    "b[0, j]",
    "b[j, k]",
)  # what other columns store


@st.composite
def filters(draw: st.DrawFn) -> str:
    """Loops along columns whose iterations take what the ones before them have stored in the column."""
    others = ("x[k]", "u[j]", "g[k, j]", "g[k + 1, j]", "k", *(draw(st.sampled_from((MIXED, ()))) or ()))
    lines = []
    for _ in range(draw(st.integers(1, 2))):
        bound = draw(st.sampled_from(("2, m", "m", "m - 1, 1, -1", "m - 1, -1, -1", "2, m, 2", "2, j + 1", "j, m")))
        one, two = draw(st.sampled_from(OLD)), draw(st.sampled_from((*OLD, *others)))
        target = draw(st.sampled_from(("b[k, j]", "b[k, j]", "b[k, j]", "b[k + 1, j]", "g[k, j]")))
        value = draw(
            st.sampled_from(("{0} - {1}", "u[j] * {0} + {1}", "max({0}, {1})", "({1} if {0} > {1} else {0} + {1})"))
        ).format(one, two)
        body = draw(
            st.sampled_from(
                (
                    [f"{target} = {value}"],
                    [f"v = {value}", f"{target} = v - {two}", f"g[k, j] = v + {one}"],
                    [f"if {one} < x[k]:", f"    {target} = {value}"],
                )
            )
        )
        lines += [f"for k in range({bound}):", *(f"    {line}" for line in body)]
    lines = ["for j in range(1, m):", *(f"    {line}" for line in lines)]
    if draw(st.booleans()):  # in a nest that is done in its own order
        lines = ["for r in range(2):", "    y[0] = y[0] + b[r, 1]", *(f"    {line}" for line in lines)]
    head = ["import numpy as np", "import lapwing as lw", "@lw.nest", "def nest(b, g, u, x, y, m):"]
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


def arrays(seed: int, n: int, m: int, dtype: str, other: str) -> dict[str, np.ndarray]:
    """other: the type of what is read along rows and columns."""
    random = np.random.default_rng(seed)

    def made(dtype: str, *shape: int) -> np.ndarray:
        if dtype.startswith("float"):
            few = random.choice(VALUES if seed % 3 else (0.0, -0.0, 1.0, 2.0), shape)
            with np.errstate(over="ignore"):
                return np.where(random.random(shape) < 0.3, few, random.standard_normal(shape)).astype(dtype)
        ends = np.iinfo(dtype)
        wide = random.integers(ends.min, ends.max, shape, dtype, endpoint=True)
        return np.where(random.random(shape) < 0.2, wide, random.integers(0, 5, shape, dtype))

    large = max(n, m) + 3
    kinds = {
        "a": (n, large),
        "b": (large, large),
        "g": (large, large),
        "c": (n, m),
        "e": (n, m),
        "p": (n, m),
        "x": (large,),
        "y": (n,),
        "u": (large,),
    }
    whole = {"p": np.zeros((n, m), np.int64), "z": np.zeros(m, np.int64)}
    return {name: made(other if name in "bgu" else dtype, *shape) for name, shape in kinds.items()} | whole


def check(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES), label="dtype")
    floats = dtype.startswith("float")
    alike = [other for other in DTYPES if other.startswith("float") == floats]
    other = data.draw(st.sampled_from([dtype, dtype, *alike]), label="dtype of rows")
    text = data.draw(st.one_of(nests(floats), nests(floats), recurrences(floats), filters()), label="nest")
    n = data.draw(st.integers(1, 6), label="n")
    m = data.draw(st.sampled_from((1, 2, 3, 7, 8, 9, 15, 17, 33, 40, 70)), label="m")
    width = data.draw(st.sampled_from((64, 64, 32, 16)), label="bytes of a vector")
    seed = data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    given = {"n": n, "m": m}

    def arguments() -> dict[str, Any]:
        made = arrays(seed, n, m, dtype, other) | given
        return {name: made[name] for name in inspect.signature(nest.python).parameters}

    expected, found = arguments(), arguments()
    with np.errstate(all="ignore"):
        try:
            nest.python(**expected)
        except (ValueError, OverflowError):  # what is not a number has no place among integers
            return
    try:
        with vectors_of(width):
            nest(**found)
    except (lw.RefusedError, lw.RunError):  # the latter where NumPy's result would be undefined
        return
    check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def twice(a, c, x, y):
    for i in range(c.shape[0]):
        y[i] = 0.0
        for j in range(c.shape[1]):
            c[i, j] = x[j]
            for k in range(c.shape[0] - 1, -1, -1):
                c[i, j] = c[i, j] + a[i, k]


@pytest.mark.parametrize("columns", [8, 9, 15, 17, 31, 33])
def test_iterations_that_add_to_what_they_store_are_done_once(columns: int) -> None:
    random = np.random.default_rng(0)
    shapes = {"a": (3, 3), "c": (3, columns), "x": (columns,), "y": (3,)}
    expected = {name: random.random(shape) for name, shape in shapes.items()}
    found = {name: array.copy() for name, array in expected.items()}
    twice.python(**expected)
    twice(**found)
    check_arrays(found, expected)


@lw.nest
def beside(x, u, w):
    for i in range(x.shape[0]):
        s = w[i]
        for k in range(i + 1):  # the last one reads what the iteration itself is about to store
            s = s - u[i, k] * x[k]
        x[i] = s


@lw.nest
def behind(x, u, w):
    for i in range(x.shape[0] - 9):
        s = w[i]
        for k in range(i + 9):  # elements that iterations behind this one store
            s = s - u[i, k] * x[k]
        x[i] = s


@pytest.mark.parametrize("nest", [beside, behind])
@pytest.mark.parametrize("n", [10, 17, 40, 70])
def test_what_lanes_store_is_read_in_the_order_of_the_plain_loop(nest: lw.Nest, n: int) -> None:
    random = np.random.default_rng(n)
    expected = {name: random.random(shape) / n for name, shape in {"x": (n,), "u": (n, n), "w": (n,)}.items()}
    found = {name: array.copy() for name, array in expected.items()}
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)


@lw.nest
def along_columns(u, v, w):
    for r in range(2):
        w[0] = 0.5 * w[r]
        for j in range(1, u.shape[1] - 1):
            for i in range(1, u.shape[0]):
                u[i, j] = u[i, j] - w[j] * u[i - 1, j]
            for i in range(u.shape[0] - 2, -1, -1):
                u[i, j] = u[i, j] / v[i, j] + 0.5 * u[i + 1, j] / w[j]


@lw.nest
def from_the_left(u, v, w):
    for r in range(2):
        w[0] = 0.5 * w[r]
        for j in range(1, u.shape[1] - 1):
            for i in range(1, u.shape[0]):
                u[i, j] = 0.5 * u[i - 1, j] - w[j] * u[i - 1, j - 1]


@lw.nest
def from_the_right(u, v, w):
    for r in range(2):
        w[0] = 0.5 * w[r]
        for j in range(1, u.shape[1] - 1):
            for i in range(1, u.shape[0]):
                u[i, j] = 0.5 * u[i - 1, j] - w[j] * u[i - 1, j + 1]


@pytest.mark.parametrize("nest", [along_columns, from_the_left, from_the_right])
@pytest.mark.parametrize("columns", [10, 19, 70])
def test_recurrences_along_columns(nest: lw.Nest, columns: int) -> None:
    random = np.random.default_rng(columns)
    expected = {name: 1 + random.random((12, columns)) for name in "uv"} | {"w": 1 + random.random(columns)}
    found = {name: array.copy() for name, array in expected.items()}
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)
    region = lw.Nest(nest.python)
    region.source = replace(region.source, sequential=True)
    bound = region.bind(region.arguments(**expected))
    text = tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])
    assert ("_in_lanes(" in text) == (nest is along_columns)
