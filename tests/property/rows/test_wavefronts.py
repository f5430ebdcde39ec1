"""Loops around chains that are computed in lanes each some steps behind the one before: random ones, with variables and rows that
are handed on, elements of the row above, and rows that begin and end with others, have the bits of the plain loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays
from everyday import everyday, everyday_together
from hypothesis import strategies as st
from inner_forms import in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.outer_loops import candidates
from lapwing.codegen.rows import outer_loops
from lapwing.codegen.tile import forms_of, tile_source
from lapwing.tiling.inner import legal_forms

VALUES = (0.0, -0.0, 1.0, 1.0, -1.5, 3.25, 0.1, np.nan, np.inf, -np.inf, 5e-324, 1e300)
# x is the index along a row, y that of the row; rows b and d are handed on, u and v have two axes, s has planes.
READ = (
    "b[x]",
    "b[x - 1]",
    "b[x + 1]",
    "d[x]",
    "d[x - 1]",
    "left",
    "before",
    "p[y, x]",
    "p[y, x + 1]",
    "p[y, x + 3]",
    "p[x, y]",
    "w[y]",
    "w[x]",
)
ABOVE = ("u[y - 1, x]", "u[y, x - 1]", "u[y - 1, x - 1]", "u[y, x]", "u[y, x + 1]", "u[y + 1, x]", "u[y - 1, x + 1]")
PLANES = ("s[0, y, x]", "s[2, y, x]", "s[2, y - 1, x + 1]", "s[0, y + 1, x + 2]", "s[1, y - 1, x]", "s[1, y, x + 1]")
DIRECTIONS = ("x = i", "x = m - i")
BOUNDS = (
    "1, m",
    "1, m",
    "1, m",
    "2, m - 1",
    "j, m",
    "1, m - j",
    "max(1, j - 3), m",
    "1, 3",
    "1, j + 2",
    "max(1, m - j), m",
)
STORES = (
    "b[x] = new",
    "b[x] = new",
    "d[x] = other",
    "u[y, x] = new - other",
    "s[1, y, x] = new * other",
    "q[y, x] += other",
    "left = new",
    "before = left",
    "left = other * 0.5",
)
READ_AGAIN = ("q[y, x] = b[x] - left", "left = b[x] * 0.5", "before = u[y, x]", "left = d[x]")
FIRST = ("0.0", "0.0", "w[j]", "b[1]", "u[j, 0]", "r[j - 1]")
LAST = ("", "", "r[j] = left", "r[j] = new + before", "b[2] = left", "u[j, 3] = before")


@st.composite
def terms(draw: st.DrawFn, elements: tuple[str, ...], depth: int = 2) -> str:
    kind = draw(st.sampled_from(("element", "+", "-", "*", "/", "max", "choice")))
    if depth == 0 or kind == "element":
        return draw(st.sampled_from((*elements, "0.5")))
    one, other = (draw(terms(elements, depth - 1)) for _ in range(2))
    match kind:
        case "max":
            return f"{draw(st.sampled_from(('max', 'min')))}({one}, {other})"
        case "choice":
            return f"({one} if {draw(st.sampled_from(elements))} > 0.25 else {other})"
        case "/":
            return f"({one}) / (1.5 + w[y] * w[y])"
    return f"({one} {kind} {other})"


@st.composite
def wavefronts(draw: st.DrawFn) -> str:
    elements = draw(st.sampled_from((READ, READ, (*READ, *ABOVE), ABOVE, (*ABOVE, *PLANES), (*READ, *PLANES))))
    value = [draw(terms(elements)) for _ in range(3)]
    body = [f"new = {value[0]}"]
    if draw(st.booleans()):
        body += [
            f"if {draw(st.sampled_from(elements))} < new:",
            f"    new = {value[1]}",
            "    other = 0.0",
            "else:",
            "    other = new",
        ]
    else:
        body.append(f"other = {value[1]}")
    body += draw(st.lists(st.sampled_from(STORES), min_size=1, max_size=4))
    body += draw(st.lists(st.sampled_from(READ_AGAIN), max_size=1))
    if draw(st.integers(0, 5)) == 0:
        body += [f"if {draw(st.sampled_from(('x > 5', 'y == 2', 'b[x] > 0.0')))}:", "    b[x] = b[x] + new"]
    x = draw(st.sampled_from(DIRECTIONS)).replace("x = ", "")
    bounds = draw(st.sampled_from(BOUNDS))
    lines = ["for j in range(1, n):", f"    left = {draw(st.sampled_from(FIRST))}", "    before = 0.0", "    new = 0.0"]
    lines += [f"    for i in range({bounds}):"]
    y = draw(st.sampled_from(("j", "j", "n - j")))

    def placed(line: str) -> str:
        return line.replace("x", f"({x})").replace("ma(" + x + ")", "max").replace("y", f"({y})")

    lines += [f"        {placed(line)}" for line in body]
    lines += [f"    {last}" for last in [draw(st.sampled_from(LAST))] if last]
    head = ["import lapwing as lw", "@lw.nest", "def nest(b, d, u, p, q, s, w, r, n, m):"]
    head += ["    for again in range(1):", "        r[0] = 0.5 * r[0]"]
    return "\n".join([*head, *(f"        {line}" for line in lines)]) + "\n"


def arguments(seed: int, n: int, m: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    large = max(n, m) + 4

    def made(*shape: int) -> np.ndarray:
        few = random.choice(VALUES if seed % 3 else (0.0, -0.0, 1.0, 2.0), shape)
        return np.where(random.random(shape) < 0.2, few, random.standard_normal(shape))

    shapes = {name: (large, large) for name in "upq"} | {name: (large,) for name in "bdwr"} | {"s": (3, large, large)}
    found = {name: made(*shapes[name]) for name in "bdupqswr"}
    if seed % 5 == 0:
        with np.errstate(over="ignore"):
            found = {name: array.astype(np.float32) for name, array in found.items()}
    return found | {"n": n, "m": m}


def check(data: st.DataObject) -> None:
    text = data.draw(wavefronts(), label="nest")
    n = data.draw(st.sampled_from((2, 4, 5, 9, 10, 18, 21)), label="n")
    m = data.draw(st.sampled_from((1, 2, 5, 9, 17, 20, 40)), label="m")
    width = data.draw(st.sampled_from((64, 32, 32, 16)), label="bytes of a vector")
    seed = data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    expected, found = arguments(seed, n, m), arguments(seed, n, m)
    with np.errstate(all="ignore"):
        nest.python(**expected)
    with pytest.MonkeyPatch.context() as patched, vectors_of(width):
        patched.setattr(outer_loops, "FEWEST_STEPS", 0)
        patched.setattr(candidates, "waits_long", lambda loop: True)
        try:
            nest(**found)
        except lw.RefusedError as refused:
            if "the type of a value depends on the values" in str(refused):  # that of float32
                return
            raise
    check_arrays(found, expected)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def swept(new, source, sigma, below, cx, cy):
    """A sweep with a flux that is handed on along rows, and a row of fluxes from one to the next."""
    for j in range(new.shape[0]):
        left = 0.0
        for i in range(new.shape[1]):
            psi = (source[j, i] + cx * left + cy * below[i]) / (sigma[j, i] + cx + cy)
            right = 2.0 * psi - left
            if right < 0.0:
                psi = (source[j, i] + 0.5 * cx * left + cy * below[i]) / (sigma[j, i] + cy)
                right = 0.0
            below[i] = 2.0 * psi - below[i]
            left = right
            new[j, i] += psi


@lw.nest
def relaxed(u, f):
    """A row above that has been stored, one below that has not, and the element before in a variable."""
    for j in range(1, u.shape[0] - 1):
        west = u[j, 0]
        for i in range(1, u.shape[1] - 1):
            west = u[j, i] + 1.2 * (0.25 * (west + u[j, i + 1] + u[j - 1, i] + u[j + 1, i] - f[j, i]) - u[j, i])
            u[j, i] = west


@lw.nest
def warped(a, b, row):
    """The row is read ahead of what is stored, and behind."""
    for i in range(len(a)):
        corner = 1e300
        left = 1e300
        for j in range(1, len(b)):
            up = row[j]
            left = abs(a[i] - b[j]) * 1.5 + min(min(corner, up), row[j - 1])
            corner = up
            row[j] = left


@lw.nest
def widened(u, row):
    """Each row begins before the one above, which has not stored what it reads first."""
    for j in range(1, u.shape[0]):
        left = 0.0
        for i in range(u.shape[1] - j, u.shape[1]):
            left = (left + row[i] + u[j, i]) / 3.0
            row[i] = left


@lw.nest
def looked_at_again(u, v, row):
    """What is read before it is stored, and after."""
    for j in range(u.shape[0]):
        left = 0.0
        for i in range(u.shape[1]):
            left = (left + row[i]) / 3.0 + u[j, i]
            row[i] = left * 0.5
            v[j, i] = row[i] + left


@lw.nest
def smoothed(u):
    """Rows of the planes beside, each looked at where it is, one element before and one after."""
    for i in range(1, 2):
        for j in range(1, u.shape[1] - 1):
            for k in range(1, u.shape[2] - 1):
                above = u[i - 1, j, k - 1] + u[i - 1, j, k] + u[i - 1, j, k + 1] + u[i - 1, j + 1, k]
                below = u[i + 1, j, k - 1] + u[i + 1, j, k] + u[i + 1, j, k + 1] + u[i + 1, j - 1, k]
                u[i, j, k] = (u[i, j, k - 1] + u[i, j - 1, k + 1] + u[i, j + 1, k] + above + below) / 11.0


def of(nest: lw.Nest, n: int, m: int) -> dict[str, Any]:
    random = np.random.default_rng(n + m)
    kinds = {"a": (n,), "b": (m,), "row": (m,), "below": (m,)}
    if nest.name == smoothed.name:
        kinds["u"] = (3, n, m)
    names = inspect.signature(nest.python).parameters
    return {name: 0.7 if len(name) == 2 else random.random(kinds.get(name, (n, m))) for name in names}


LOOPS = [pytest.param(nest, id=nest.name) for nest in (swept, relaxed, warped, widened, looked_at_again, smoothed)]


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", LOOPS)
@pytest.mark.parametrize(("n", "m"), [(3, 50), (4, 50), (17, 31), (40, 80), (41, 33)])
def test_loops_that_hand_on_elements(nest: lw.Nest, n: int, m: int) -> None:
    expected = of(nest, n, m)
    found = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in expected.items()}
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)


@pytest.mark.parametrize("nest", LOOPS)
def test_they_are_in_lanes(nest: lw.Nest) -> None:
    region = lw.Nest(nest.python)
    region.source = replace(region.source, sequential=True)
    bound = region.bind(of(region, 20, 50))
    assert "_in_lanes(" in tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])


@lw.nest
def shared(u, total):
    """Every row goes on with what the one before has left in a variable."""
    left = 0.0
    for j in range(u.shape[0]):
        for i in range(u.shape[1]):
            left = 0.5 * (left / 3.0 + u[j, i])
            u[j, i] = left
    total[0] = left


@lw.nest
def scattered(u, v):
    """What a row stores, the next one reads at any distance."""
    for j in range(1, u.shape[0]):
        left = 0.0
        for i in range(u.shape[1]):
            left = left / 3.0 + u[j, i] * v[u.shape[1] - 1 - i]
            v[i] = left


@lw.nest
def spiralled(u, v):
    """A row begins with what the one before has come to."""
    for j in range(1, u.shape[0]):
        left = v[j - 1]
        for i in range(u.shape[1]):
            left = left / 3.0 + u[j, i]
            u[j, i] = left * 0.5
        v[j] = left


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("nest", [shared, scattered, spiralled], ids=["shared", "scattered", "spiralled"])
def test_others_are_done_one_by_one(nest: lw.Nest) -> None:
    random = np.random.default_rng(1)
    expected = {"u": random.random((40, 60)), "v": random.random(60), "total": np.zeros(1)}
    expected = {name: expected[name] for name in nest.python.__code__.co_varnames[:2]}
    found = {name: array.copy() for name, array in expected.items()}
    nest.python(**expected)
    nest(**found)
    check_arrays(found, expected)


@lw.nest
def gauss_seidel(u):
    delta = 0.0
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            old = u[i, j]
            u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
            delta = max(delta, abs(u[i, j] - old))
    return delta


@lw.nest
def aligned(u):
    """The row above is read where it is, and one element further back."""
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = max(u[i - 1, j - 1] * 0.5 + u[i, j], u[i - 1, j] - 0.25, u[i, j - 1] - 0.125)


@lw.nest
def two_arrays(u, v):
    for i in range(2, u.shape[0]):
        for j in range(3, u.shape[1]):
            v[i, j] = v[i, j - 1] / 3.0 + u[i - 1, j - 2]
            u[i, j] = u[i, j] * 0.5 + v[i - 1, j - 3] + v[i, j] + u[i - 2, j]


IN_ROWS = (gauss_seidel, aligned, two_arrays)
WIDTHS = (16, 32, 64)


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    ("nest", "width"),
    everyday_together(product(IN_ROWS, WIDTHS), list(zip(IN_ROWS, WIDTHS, strict=True))),
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.parametrize(("n", "m"), [(3, 50), (6, 40), (13, 23), (41, 70)])
def test_tiles_with_rows_in_vectors(nest: lw.Nest, n: int, m: int, width: int) -> None:
    random = np.random.default_rng(n + m)
    expected = {name: random.random((n, m)) for name in nest.loops.parameters}
    found = {name: array.copy() for name, array in expected.items()}
    bound = nest.bind(found)
    form = next(form for form in forms_of(bound, nest.dependences) if form.skewed)
    with vectors_of(width):
        outcome = run(nest, found, plan=in_form(nest.plan(**found), bound, form))
    returned = nest.python(**expected)
    check_arrays(found, expected)
    assert list(outcome.results.values()) == ([] if returned is None else [returned])


TEXT = """
import numpy as np
import test_wavefronts as here
u = np.zeros((20, 50))
for nest in (here.aligned, here.two_arrays):
    bound = nest.bind({name: u.copy() for name in nest.loops.parameters})
    form = next(form for form in here.forms_of(bound, nest.dependences) if form.skewed)
    print(here.tile_source(bound, (), form))
"""


@pytest.mark.parametrize("seeds", everyday([("1", "2"), ("3", "4", "5")], [("1", "2")]))
def test_every_process_writes_the_same_text(seeds: tuple[str, ...]) -> None:
    """What one has compiled another one finds."""
    found = set()
    for seed in seeds:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{TEXT}"]
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1
    assert "_in_lanes(" in found.pop()


@lw.nest
def stored_again(h, d, letters, w):
    for i in range(1, h.shape[0]):
        letter = letters[i]
        for j in range(1, h.shape[1]):
            d[i, j] = h[i, j - 1] - h[i - 1, j]
            h[i, j] = max(h[i - 1, j - 1] + letter, h[i, j - 1] * 0.5)
            if j > 5:
                h[i, j] = h[i, j] + w[j]
            d[i, j] = d[i, j] + h[i, j]


@pytest.mark.usefixtures("little_optimised")
def test_elements_that_a_condition_stores_to_again() -> None:
    random = np.random.default_rng(3)
    expected = {
        "h": random.random((30, 90)),
        "d": np.zeros((30, 90)),
        "letters": random.random(30),
        "w": random.random(90),
    }
    found = {name: values.copy() for name, values in expected.items()}
    stored_again.python(**expected)
    stored_again(**found)
    check_arrays(found, expected)
