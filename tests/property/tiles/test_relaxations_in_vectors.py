"""Sweeps over two dimensions and more that are lanes of vectors: random ones, with offsets in all directions, several arrays that
are written, others in any order of axes, conditions and elements of all types, have the bits of the plain loop.

LAPWING_EXAMPLES sets how many are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays, check_value
from everyday import everyday, everyday_together
from hypothesis import strategies as st
from inner_forms import in_form, vectors_of
from loading import nest_of
from randomness import first_seed, wanted
from searching import search

import lapwing as lw
from lapwing.api.calls.run import run
from lapwing.codegen.tile import forms_of
from lapwing.errors import RefusedError
from lapwing.planner.choose import Wishes, make_plan
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

LOOPS = "ijk"
VALUES = (0.0, -0.0, 1.0, -1.5, 0.1, np.nan, np.inf, -np.inf, 5e-324, 1e30)
HALO = 3
REDUCTIONS = (
    "found = max(found, abs({}))",
    "found = min({}, found)",
    "if {0} > found:\n    found = {0}",
    "found += {}",
)
# What a choice gives can be of several types.
LEFT_OUT = r"values of types .* meet|the type of a value depends on the values"


def where_there(element: str, otherwise: str, offsets: list[int]) -> str:
    """An element, where the nest goes as far as the walls, and another one at these."""
    inside = [f"{x} >= {-o}" if o < 0 else f"{x} + {o} < n{x}" for x, o in zip(LOOPS, offsets, strict=False) if o]
    return f"({element} if {' and '.join(inside)} else {otherwise})" if inside else element


@st.composite
def elements(draw: st.DrawFn, axes: int, to_walls: bool, arrays: str = "uuuvfg") -> str:
    """Of u and v, which are written, f, which is not, and arrays with fewer axes, or others first."""
    array = draw(st.sampled_from(arrays))
    reach = draw(st.sampled_from((0, 1, 1, 1, HALO)))
    offsets = [draw(st.sampled_from((0, 0, -1, 1, reach, -reach))) for _ in range(axes)]
    places = [f"{x} {'+' if o >= 0 else '-'} {abs(o)}" if o else x for x, o in zip(LOOPS, offsets, strict=False)]

    def there(name: str, axes_of: list[int]) -> str:
        element, own = (f"{name}[{', '.join(at[k] for k in axes_of)}]" for at in (places, LOOPS))
        few = [o if k in axes_of else 0 for k, o in enumerate(offsets)]
        return where_there(element, own, few) if to_walls else element

    every = list(range(axes))
    if array == "g":
        which = draw(
            st.sampled_from(("last", "first", "turned", "constant", "c", "sweep", "sweeps", "few", "single", "index"))
        )
        match which:
            case "last":
                return there("a", every[-1:])
            case "first":
                return there("b", every[:1])
            case "turned":
                return there("g", every[::-1])
            case "constant":
                return f"f[{', '.join('2' for _ in places)}]"
            case "sweep":
                return "w[t]"
            case "sweeps":
                return there("p", every[-1:]).replace("p[", "p[t, ")
            case "few" | "single":
                return there(which, every)
            case "index":
                return draw(st.sampled_from(("t", *LOOPS[:axes])))
        return "c"
    return there(array, every)


@st.composite
def terms(draw: st.DrawFn, axes: int, divides: bool, to_walls: bool, depth: int = 2) -> str:
    kind = draw(st.sampled_from(("element", "+", "+", "-", "*", "/", "max", "choice", "power")))
    if depth == 0 or kind == "element" or (kind in ("/", "power") and not divides):
        return draw(elements(axes, to_walls))
    one, other = (draw(terms(axes, divides, to_walls, depth - 1)) for _ in range(2))
    match kind:
        case "max":
            return f"{draw(st.sampled_from(('max', 'min')))}({one}, {other})"
        case "choice":
            first, second = (draw(elements(axes, to_walls)) for _ in range(2))
            return f"({one} if {first} > {second} else {other})"
        case "/":
            return f"({one}) / 1.5"
        case "power":
            return f"({one}) ** {draw(st.sampled_from((2, 2, 3, 4, -1, 0.5)))}"
    return f"({one} {kind} {other})"


@st.composite
def relaxations(draw: st.DrawFn, axes: int, divides: bool) -> str:
    to_walls = draw(st.integers(0, 2)) == 0
    own = f"[{', '.join(LOOPS[:axes])}]"
    west = f"u[{', '.join((*LOOPS[: axes - 1], f'{LOOPS[axes - 1]} - 1'))}]"
    east = west.replace(" - 1", " + 1")
    if to_walls:
        west, east = (where_there(at, f"u{own}", [*[0] * (axes - 1), o]) for at, o in ((west, -1), (east, 1)))
    value = draw(terms(axes, divides, to_walls))
    body = [f"new = {value} + {west}", f"u{own} = new"]
    if draw(st.booleans()):
        stored = f"v{own} = {draw(terms(axes, divides, to_walls))}"
        body.insert(draw(st.integers(0, 2)), stored)
    if draw(st.integers(0, 2)) == 0:
        test = f"{draw(elements(axes, to_walls))} > {draw(elements(axes, to_walls))}"
        body += [f"if {test}:\n    u{own} = {draw(terms(axes, divides, to_walls, 1))}"]
    if draw(st.integers(0, 3)) == 0:
        body += [f"v{own} = u{own} + v{own}"]
    reduction = draw(st.sampled_from(("", "", *REDUCTIONS)))
    if reduction:
        body.insert(draw(st.integers(1, len(body))), reduction.format(draw(terms(axes, divides, to_walls, 1))))
    body = [line for statement in body for line in statement.split("\n")]
    lines = [
        "import lapwing as lw",
        "@lw.nest",
        f"def nest(u, v, f, g, a, b, c, w, p, few, single, start, sweeps, {', '.join(f'n{x}' for x in LOOPS[:axes])}):",
        "    found = start",
    ]
    lines.append("    for t in range(sweeps):")
    indent = "        "
    for k, x in enumerate(LOOPS[:axes]):
        down = draw(st.integers(0, 4)) == 0
        ahead, behind = (draw(st.sampled_from((0, 0, 1, 3) if to_walls else (HALO, HALO, HALO + 1))) for _ in range(2))
        if down:
            lines.append(f"{indent}for {x} in range(n{x} - {behind + 1}, {ahead - 1}, -1):")
        else:
            lines.append(f"{indent}for {x} in range({ahead}, n{x} - {behind}):")
        indent += "    "
        if down and k == axes - 1:
            body = [line.replace(west, east) for line in body]
    return "\n".join([*lines, *(f"{indent}{line}" for line in body), "    return found" if reduction else ""]) + "\n"


def arguments(seed: int, shape: tuple[int, ...], sweeps: int, dtype: str) -> dict[str, Any]:
    random = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        if dtype.startswith("int"):
            return random.integers(-5, 6, shape).astype(dtype)
        special = random.choice(VALUES, shape)
        return np.where(random.random(shape) < 0.02 * (seed % 3), special, random.standard_normal(shape)).astype(dtype)

    wider = made(*shape[:-1], shape[-1] + seed % 2)
    named = {f"n{x}": n for x, n in zip(LOOPS, shape, strict=False)}
    return {
        "u": wider[..., : shape[-1]], "v": made(*shape), "f": made(*shape), "g": made(*reversed(shape)), "a": made(shape[-1]),
        "b": made(shape[0]), "c": np.dtype(dtype).type(2), "w": made(sweeps), "p": made(sweeps, shape[-1]),
        "few": random.integers(0, 3, shape).astype((np.uint8, np.int8, bool, np.int16)[seed % 4]),
        "single": random.standard_normal(shape).astype(np.float32), "sweeps": sweeps,
        "start": np.dtype(dtype).type((0, -1, 2)[seed % 3]), **named,
    }  # fmt: skip


def form_of(nest: lw.Nest, given: dict[str, Any], rows: int = 1) -> tuple[Any, InnerForm] | None:
    """A plan, and the form whose lanes are sweeps, if there is one, with so many rows in turns."""
    bound = nest.bind(given)
    plan = make_plan(bound, nest.dependences, 1, Wishes(engine="blocking"))
    forms = forms_of(skewed_nest(bound, plan.skew), skewed_dependences(nest.dependences, plan.skew))
    form = next((form for form in forms if form.skewed and form.sweeps > 1), None)
    if form is None:
        return None
    form = replace(form, rows=rows)
    return in_form(plan, bound, form), form


def in_plain_loops(nest: lw.Nest, given: dict[str, Any]) -> Any:
    """What a nest returns. A sum of floats is exact, and rounded once."""
    bound = nest.bind(given)
    plan = make_plan(bound, nest.dependences, 1, Wishes(engine="blocking"))
    form = next(
        form for form in forms_of(skewed_nest(bound, plan.skew), skewed_dependences(nest.dependences, plan.skew))
    )
    return nest.loops.returned(run(nest, given, plan=in_form(plan, bound, form)).results)


def check(data: st.DataObject) -> None:
    axes = data.draw(st.sampled_from((2, 2, 3)), label="axes")
    dtype = data.draw(st.sampled_from(("float64", "float64", "float32", "int32", "int64")), label="type")
    text = data.draw(relaxations(axes, dtype.startswith("float")), label="nest")
    outer = [data.draw(st.sampled_from((7, 8, 9, 12, 20)), label="n") for _ in range(axes - 1)]
    shape = (*outer, data.draw(st.sampled_from((9, 48, 61, 75, 90)), label="m"))
    sweeps = data.draw(st.sampled_from((4, 7, 8, 9, 16, 21)), label="sweeps")
    width = data.draw(st.sampled_from((64, 32, 32, 16)), label="bytes of a vector")
    rows = data.draw(st.sampled_from((1, 2, 2, 4)), label="rows in turns")
    seed = data.draw(st.integers(0, 999), label="seed")
    nest = nest_of(text)
    if nest.program is not None:
        return
    expected, found = (arguments(seed, shape, sweeps, dtype) for _ in range(2))
    with vectors_of(width):
        try:
            chosen = form_of(nest, found, rows)
        except RefusedError as error:
            if not all(re.search(LEFT_OUT, refusal.text) for refusal in error.refusals):
                raise
            return
        if chosen is None:
            return
        with np.errstate(all="ignore"):
            sum_of = in_plain_loops(nest, {n: np.copy(v) if np.ndim(v) else v for n, v in expected.items()})
            returned = nest.python(**expected)
        outcome = run(nest, found, plan=chosen[0])
    check_arrays(found, expected)
    if outcome.results:
        value = sum_of if "found +=" in text else returned
        check_value("found", nest.loops.returned(outcome.results), value)


@pytest.mark.usefixtures("little_optimised")
def test_bits_of_the_plain_loop() -> None:
    search(check, wanted(8), first_seed())


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_bits_of_the_plain_loop_at_length() -> None:
    search(check, wanted(4000), first_seed())


@lw.nest
def with_corners(u, f, a, b, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (
                    0.2 * (u[i - 1, j - 1] + u[i - 1, j + 1] + u[i, j - 1] + u[i + 1, j - 1] + u[i + 1, j + 1])
                    - f[i, j]
                )


@lw.nest
def with_corners_of_cubes(u, f, a, b, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                for k in range(1, u.shape[2] - 1):
                    around = u[i - 1, j - 1, k + 1] + u[i, j, k - 1] + u[i + 1, j + 1, k - 1] + u[i + 1, j - 1, k + 1]
                    u[i, j, k] = 0.25 * around * a[k] - f[i, j, k] * b[j]


@lw.nest
def hyperplanes(u, f, a, b, sweeps):
    for t in range(sweeps):
        for h in range(1, u.shape[0] - 1):
            for i in range(1, u.shape[1] - 1):
                for j in range(1, u.shape[2] - 1):
                    for k in range(1, u.shape[3] - 1):
                        near = u[h - 1, i, j, k] + u[h + 1, i, j, k] + u[h, i - 1, j, k] + u[h, i + 1, j, k]
                        near += u[h, i, j - 1, k] + u[h, i, j + 1, k] + u[h, i, j, k - 1] + u[h, i, j, k + 1]
                        u[h, i, j, k] = 0.125 * near - f[h, i, j, k]


@lw.nest
def far_along_few(u, f, a, b, sweeps):
    """Further along the second loop than it has iterations."""
    for t in range(sweeps):
        for i in range(2, u.shape[0] - 1):
            for j in range(u.shape[1] - 4):
                for k in range(1, u.shape[2]):
                    u[i, j, k] = 0.5 * (u[i - 2, j + 4, k] + u[i + 1, j + 4, k]) - u[i, j, k - 1] * f[i, j, k]


@lw.nest
def of_integers(u, f, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = max(u[i - 1, j], u[i, j - 1], u[i + 1, j]) + f[i, j]


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_integers_of_every_vector(dtype: type) -> None:
    random = np.random.default_rng(5)
    u, f = (random.integers(-9, 9, (20, 70)).astype(dtype) for _ in range(2))
    for width in (16, 32, 64):
        expected, given = u.copy(), {"u": u.copy(), "f": f, "sweeps": 17}
        of_integers.python(expected, f, 17)
        with vectors_of(width):
            chosen = form_of(of_integers, given, rows=2)
            assert chosen is not None, "no such form"
            run(of_integers, given, plan=chosen[0])
        assert given["u"].tobytes() == expected.tobytes(), width


SHAPES: dict[str, tuple[lw.Nest, tuple[int, ...]]] = {
    "corners": (with_corners, (9, 70)),
    "corners of cubes": (with_corners_of_cubes, (7, 8, 90)),
    "hyperplanes": (hyperplanes, (5, 6, 7, 60)),
    "few": (far_along_few, (9, 5, 70)),
    "one row": (with_corners, (3, 70)),
    "planes of one row": (hyperplanes, (5, 5, 3, 60)),
}


DTYPES = (np.float64, np.float32)  # every day one for each shape


@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize(
    ("name", "dtype"),
    everyday_together(product(SHAPES, DTYPES), list(zip(SHAPES, DTYPES * len(SHAPES), strict=False))),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_relaxations(name: str, dtype: type) -> None:
    nest, shape = SHAPES[name]
    random = np.random.default_rng(len(name))
    u, f, a, b = (random.standard_normal(size).astype(dtype) for size in (shape, shape, shape[-1], shape[-2]))
    for sweeps, rows in ((5, 1), (8, 2), (19, 4), (33, 2)):
        expected, given = u.copy(), {"u": u.copy(), "f": f, "a": a, "b": b, "sweeps": sweeps}
        nest.python(**{**given, "u": expected})
        with vectors_of(32):
            chosen = form_of(nest, given, rows)
            assert chosen is not None, "no such form"
            run(nest, given, plan=chosen[0])
        assert given["u"].tobytes() == expected.tobytes(), (sweeps, rows)


@lw.nest
def of_spacing(u, f, h, sweeps):
    """The square may be too large for a float: every iteration would raise."""
    worst = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - h**2 * f[i, j])
                worst = max(worst, abs(new - u[i, j]))
                u[i, j] = new
    return worst


@pytest.mark.usefixtures("little_optimised")
def test_what_all_iterations_raise() -> None:
    f = np.random.default_rng(1).random((9, 70))
    for h in (0.1, 1e200):
        expected, given = f.copy(), {"u": f.copy(), "f": f, "h": h, "sweeps": 19}
        with vectors_of(32):
            chosen = form_of(of_spacing, given)
            assert chosen is not None
            if h > 1:
                with pytest.raises(lw.RunError, match="a power is not a finite real number"):
                    run(of_spacing, given, plan=chosen[0])
            else:
                outcome = run(of_spacing, given, plan=chosen[0])
                assert outcome.results["worst"] == of_spacing.python(expected, f, h, 19)
        assert given["u"].tobytes() == expected.tobytes()


@lw.nest
def of_its_own_shape(u, f, b, p, sweeps):
    """What is only read has no elements around the domain."""
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                for k in range(2, u.shape[2] - 1):
                    around = u[i, j, k - 2] + u[i + 1, j + 1, k + 1] + u[i - 1, j, k] + u[i, j - 1, k + 1]
                    u[i, j, k] = 0.25 * around - f[i - 1, j - 1, k - 2] * b[j - 1, i - 1] * p[t, k - 2]


@lw.nest
def between_walls(u, f, b, p, sweeps):
    """Conditions stand around what lies outside of arrays, those that are written and those that are only read."""
    n, m, length = f.shape
    for t in range(sweeps):
        for i in range(n):
            for j in range(m):
                for k in range(length):
                    around = u[i, j, k]
                    if i > 0:
                        around += f[i - 1, j, k] * u[i - 1, j, k]
                    if i < n - 1:
                        around += f[i + 1, j, k] * u[i + 1, j, k]
                    if j > 1:
                        around += u[i, j - 2, k] * b[j - 2, i]
                    if j < m - 1:
                        around += u[i, j + 1, k]
                    if k > 0:
                        around += u[i, j, k - 1] * p[t, k - 1]
                    if k < length - 2:
                        around += u[i, j, k + 2] * f[i, j, k + 2]
                    u[i, j, k] = 0.2 * around


def guarded(values: np.ndarray, is_last: bool) -> np.ndarray:
    """A copy at the end of memory that may be touched, or at its beginning."""
    page = mmap.PAGESIZE
    inside = -(-values.nbytes // page) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    for guard in (begin, begin + page + inside):
        assert libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0) == 0
    start = page + (inside - values.nbytes if is_last else 0)
    found = np.frombuffer(memory, values.dtype, values.size, start).reshape(values.shape)
    found[...] = values
    return found


def run_between_guards() -> None:
    random = np.random.default_rng(4)
    shapes = {
        of_its_own_shape: {"u": (7, 8, 70), "f": (5, 6, 67), "b": (6, 5)},
        between_walls: {"u": (5, 6, 67), "f": (5, 6, 67), "b": (4, 5)},
    }
    for nest, is_last, (sweeps, rows) in product(shapes, (True, False), ((4, 1), (8, 2), (11, 4))):
        given = {name: random.random(shape) for name, shape in {**shapes[nest], "p": (sweeps, 67)}.items()}
        arrays: dict[str, Any] = {name: guarded(values, is_last) for name, values in given.items()}
        nest.python(**given, sweeps=sweeps)
        with vectors_of(32):
            chosen = form_of(nest, {**arrays, "sweeps": sweeps}, rows)
            assert chosen is not None
            run(nest, {**arrays, "sweeps": sweeps}, plan=chosen[0])
        assert arrays["u"].tobytes() == given["u"].tobytes()


def in_a_process(text: str, **changes: str) -> subprocess.CompletedProcess[str]:
    # Folders of tests come last: some have the names of modules that come with Python.
    found = f"import sys\nsys.path += {[str(Path(__file__).parent), *sys.path]!r}\nimport {Path(__file__).stem} as here\n{text}"
    command = [sys.executable, "-c", found]
    return subprocess.run(command, env={**os.environ, **changes}, capture_output=True, text=True, check=False)


def test_nothing_is_touched_but_elements() -> None:
    done = in_a_process("import optimising\noptimising.optimise_little()\nhere.run_between_guards()")
    assert done.returncode == 0, done.stderr


TEXT = """
import numpy as np
from lapwing.codegen.tile import tile_source
u = np.zeros((7, 8, 70))
plan, form = here.form_of(here.with_corners_of_cubes, dict(u=u, f=u, a=u[0, 0], b=u[0, 0], sweeps=8), rows=2)
bound = here.with_corners_of_cubes.bind(dict(u=u, f=u, a=u[0, 0], b=u[0, 0], sweeps=8))
print(tile_source(here.skewed_nest(bound, plan.skew), (), form))
"""


@pytest.mark.parametrize("seeds", everyday([("1", "2"), ("3", "4", "5")], [("1", "2")]))
def test_every_process_writes_the_same_text(seeds: tuple[str, ...]) -> None:
    """What one has compiled another one finds."""
    found = {in_a_process(TEXT, PYTHONHASHSEED=seed).stdout for seed in seeds}
    assert len(found) == 1
    assert "_in_vector(" in found.pop()
