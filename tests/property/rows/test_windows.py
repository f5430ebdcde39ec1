"""Windows around an element, which are cut off, mirrored or go around where the array ends, and what is brought together in them:
random programs with the bits of the plain loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

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

DTYPES = ("float64", "float64", "float32", "int64", "int32", "uint8", "int16")
VALUES = (0.0, -0.0, 1.0, -1.5, 0.1, np.nan, np.inf, -np.inf, 5e-324, 1e300)
# How a loop goes through a window around x, of an axis of so many elements: what comes before it, its range, and what is in it,
# up to the place y.
AXES: dict[str, tuple[str, list[str]]] = {
    "inside": ("range({x} - r, {x} + r + 1)", ["{y} = {d}"]),
    "offsets": ("range(-r, r + 1)", ["{y} = {x} + {d}"]),
    "one-sided": ("range({x}, {x} + r + 1)", ["{y} = {d}"]),
    "cut off": ("range(max(0, {x} - r), min({n}, {x} + r + 1))", ["{y} = {d}"]),
    "cut off by hand": ("range({x} - r if {x} - r > 0 else 0, min({x} + r + 1, {n}))", ["{y} = {d}"]),
    "one half or the other": (
        "range({x} - r if i % 2 == 0 else {x}, ({x} - r if i % 2 == 0 else {x}) + r + 1)",
        ["{y} = {d}"],
    ),
    "guarded": ("range(-r, r + 1)", ["{y} = {x} + {d}", "if {y} >= 0 and {y} < {n}:"]),
    "guarded in one": ("range(-r, r + 1)", ["{y} = {x} + {d}", "if 0 <= {y} < {n}:"]),
    "guarded on one side": ("range(-r, r + 1)", ["{y} = {x} + {d}", "if {y} >= 0:"]),
    "left out": ("range(-r, r + 1)", ["{y} = {x} + {d}", "if {y} < 0 or {y} >= {n}:", "    continue"]),
    "clamped": ("range(-r, r + 1)", ["{y} = min(max({x} + {d}, 0), {n} - 1)"]),
    "clamped by hand": (
        "range(-r, r + 1)",
        ["{y} = {x} + {d}", "if {y} < 0:", "    {y} = 0", "elif {y} >= {n}:", "    {y} = {n} - 1"],
    ),
    "around": ("range(-r, r + 1)", ["{y} = ({x} + {d}) % {n}"]),
    "mirrored": ("range(-r, r + 1)", ["{y} = abs({x} + {d})", "if {y} >= {n}:", "    {y} = 2 * ({n} - 1) - {y}"]),
    "twice as far": ("range(-r, r + 1)", ["{y} = min(max({x} + 2 * {d}, 0), {n} - 1)"]),
}
BOUNDED = (
    "inside",
    "offsets",
    "one-sided",
    "one half or the other",
)  # those that iterations near the ends have to leave out


@st.composite
def programs(draw: st.DrawFn, floats: bool) -> str:
    rows, columns = (draw(st.sampled_from(sorted(AXES)), label=axis) for axis in ("rows", "columns"))
    is_row = draw(st.integers(0, 2), label="one axis") == 0
    reduced = draw(st.sampled_from(("sum", "max", "least", "count", "weights", "mean")), label="reduced")
    heads = {
        "sum": ["s = {zero}"],
        "max": ["s = u[i, j]"],
        "least": ["s = u[i, j]"],
        "count": ["s = {zero}", "c = 0"],
        "weights": ["s = {zero}"],
        "mean": ["s = {zero}", "c = 0"],
    }
    place = "u[a, b]" if not is_row else "u[i, b]"
    inner = {
        "sum": [f"s += {place}"],
        "max": [f"s = max(s, {place})"],
        "least": [f"if {place} < s:", f"    s = {place}"],
        "count": [f"if {place} > u[i, j]:", "    c += 1"],
        "weights": [f"s += w[abs(b - j) % 3] * {place}"],
        "mean": [f"s += {place}", "c += 1"],
    }[reduced]
    last = {"count": "v[i, j] = c", "mean": "v[i, j] = s / c" if floats else "v[i, j] = s // max(c, 1)"}
    lines = inner

    def around(kind: str, x: str, d: str, y: str, n: str, lines: list[str]) -> list[str]:
        loop, body = AXES[kind]
        names = {"x": x, "d": d, "y": y, "n": n}
        found = [line.format(**names) for line in body]
        indent = "    " if body[-1].startswith("if") and body[-1].endswith(":") else ""
        inside = [*found, *(f"{indent}{line}" for line in lines)]
        return [f"for {d} in {loop.format(**names)}:", *(f"    {line}" for line in inside)]

    lines = around(columns, "j", "q", "b", "m", lines)
    if not is_row:
        lines = around(rows, "i", "p", "a", "n", lines)
    zero = "0.0" if floats else "0"
    lines = [*(line.format(zero=zero) for line in heads[reduced]), *lines, last.get(reduced, "v[i, j] = s")]
    ends = [f"range({'r, ' if kind in BOUNDED else ''}{size}{' - r' if kind in BOUNDED else ''})"
            for kind, size in (("" if is_row else rows, "n"), (columns, "m"))]  # fmt: skip
    head = ["n, m = u.shape", f"for i in {ends[0]}:", f"    for j in {ends[1]}:"]
    if draw(st.booleans(), label="in its own order"):
        head[2:2] = ["    v[i, 0] = u[i, 0]"]
    text = [*head, *(f"        {line}" for line in lines)]
    decorated = ["import numpy as np", "import lapwing as lw", "@lw.nest", "def nest(u, v, w, r):"]
    return "\n".join([*decorated, *(f"    {line}" for line in text)]) + "\n"


def arrays(seed: int, shape: tuple[int, int], dtype: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    if dtype.startswith("float"):
        few = random.choice(VALUES if seed % 3 == 0 else VALUES[:5], shape)
        with np.errstate(over="ignore"):
            u = np.where(random.random(shape) < 0.2, few, random.standard_normal(shape)).astype(dtype)
    else:
        u = random.integers(0, 100, shape).astype(dtype)
    return {"u": u, "v": np.zeros(shape, "float64" if seed % 2 else dtype), "w": random.integers(1, 4, 3).astype(dtype)}


def check(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES), label="dtype")
    text = data.draw(programs(dtype.startswith("float")), label="program")
    shape = data.draw(st.tuples(st.integers(1, 9), st.sampled_from((1, 3, 8, 17, 40, 70, 150))), label="shape")
    radius = data.draw(st.integers(0, 4), label="radius")
    width, seed = data.draw(st.sampled_from((64, 32, 16)), label="bytes"), data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    expected, found = ({**arrays(seed, shape, dtype), "r": radius} for _ in range(2))
    with np.errstate(all="ignore"):
        try:
            nest.python(**expected)
        except (IndexError, ValueError, OverflowError, ZeroDivisionError):
            with pytest.raises(lw.LapwingError):
                nest(**found)
            return
    try:
        with vectors_of(width):
            nest(**found)
    except (lw.RefusedError, lw.RunError):  # of types that Lapwing does not mix, and of what NumPy only warns of
        return
    check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(12), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


def around_by(axis: str) -> str:
    """Sums over a window along rows."""
    loop, body = AXES[axis]
    names = {"x": "j", "d": "q", "y": "b", "n": "m"}
    inside = [line.format(**names) for line in body]
    indent = "    " if inside[-1].startswith("if") and inside[-1].endswith(":") else ""
    lines = ["n, m = u.shape", "for i in range(n):"]
    lines += [f"    for j in range({'r, m - r' if axis in BOUNDED else 'm'}):", "        s = 0.0"]
    lines += [f"        for q in {loop.format(**names)}:", *(f"            {line}" for line in inside)]
    lines += [f"            {indent}s += u[i, b]", "        v[i, j] = s"]
    head = ["import lapwing as lw", "@lw.nest", "def nest(u, v, r):"]
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


@pytest.mark.parametrize(
    "axis", [axis for axis in AXES if axis not in ("cut off by hand", "twice as far", "guarded on one side")]
)
def test_windows_are_in_lanes(axis: str) -> None:
    nest = nest_of(around_by(axis))
    given: dict[str, Any] = {"u": np.ones((5, 300)), "v": np.zeros((5, 300)), "r": 2}
    bound = nest.bind(given)
    assert "_in_lanes(" in tile_source(bound, (), legal_forms(bound, nest.dependences)[0])


@pytest.mark.parametrize(
    "guard",
    [
        ["if y >= 0 and y < n:"],
        ["if (y >= 0 or i % 3 == 0) and y < n:"],  # u[-1, j + q] is in the last row
        ["if y < 0 and i % 3 == 0 or y >= n:", "    s += 1.0", "else:"],
        ["if not (y < 0 and i % 3 == 0 or y >= n):"],
    ],
    ids=" ".join,
)
def test_rows_are_where_conditions_say(guard: list[str]) -> None:
    lines = ["n, m = u.shape", "for i in range(n):", "    for j in range(r, m - r):", "        s = 0.0"]
    lines += ["        for d in range(-r, r + 1):", "            y = i + d", *(f"            {line}" for line in guard)]
    lines += [
        "                for q in range(-r, r + 1):",
        "                    s += u[y, j + q]",
        "        v[i, j] = s",
    ]
    nest = nest_of("\n".join(["import lapwing as lw", "@lw.nest", "def nest(u, v, r):", *(f"    {x}" for x in lines)]))
    u = arrays(1, (7, 300), "float64")["u"]
    expected, found = ({"u": u, "v": np.zeros_like(u), "r": 2} for _ in range(2))
    bound = nest.bind(found)
    assert "_in_lanes(" in tile_source(bound, (), legal_forms(bound, nest.dependences)[0])
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)
