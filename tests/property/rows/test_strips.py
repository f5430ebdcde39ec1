"""Loops in strips, distributed around powers and functions: random bodies have the bits of the plain loop, and so have powers of
numbers where the library's rounding is in doubt.

LAPWING_EXAMPLES sets how many bodies are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from comparing import check_arrays, differing
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, seeds, wanted
from searching import search
from special_numbers import numbers

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

HEAD = """
import math
import numpy as np
import lapwing as lw

@lw.nest
def nest(u, v, a, b, p):{first}
    for i in range(1, u.shape[0]):
        for j in range({columns}):
"""
COLUMNS = (4, 5, 12, 258, 259, 260, 264, 265, 300, 523)  # among them those around one and two strips
LEAVES = (
    "a[i, j]",
    "a[i, j + 1]",
    "a[i, j - 1]",
    "a[i - 1, j]",
    "b[i, j]",
    "b[i, j + 2]",
    "p",
    "0.75",
    "u[i, j]",
    "a[i, j + 2 if j < 9 else j]",
    "a[i, j if a[i, j] > 0 else 0]",
    "p**2",
    "a[i, j]**2",
    "a[i, j + 1]**2",
    "a[i, j - 1]**2",
)
FUNCTIONS = (
    "np.exp({})", "np.log({})", "np.tanh({})", "np.sin({})", "np.hypot({}, {})", "np.arctan2({}, {})", "np.power({}, 2)",
    "math.atan({})", "math.sin(math.atan({}))", "math.atan2({}, {})", "abs({})", "np.sqrt(abs({}))",
)  # fmt: skip
POWERS = ("({})**2", "({})**3", "({})**4", "abs({})**0.5", "({})**-1", "abs({})**1.25", "abs({})**p", "p**2 * ({})")
KINDS = ("local", "local", "store", "store", "in place", "condition", "chain", "extremum", "inner")
# Python's max gives a Python number or NumPy's, which raise otherwise, unless both are of one kind.
SUMS = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} / {})",
    "({0} if {1} > {2} else {0} * 0.5)",
    "max(np.float64({}), np.float64({}))",
)


@dataclass(frozen=True)
class Drawn:
    """A nest's text, and the numbers that it is tried with."""

    text: str
    columns: int
    dtype: str
    seed: int


@st.composite
def bodies(draw: st.DrawFn) -> Drawn:
    leaves = [*LEAVES]
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    if "in place" not in kinds:
        leaves += ["b[i, 2 - j]", "b[0, j]"]

    def expression(depth: int) -> str:
        if depth == 0 or draw(st.integers(0, 4)) == 0:
            return draw(st.sampled_from(leaves))
        shape = draw(st.sampled_from((*FUNCTIONS, *POWERS, *POWERS, *SUMS, *SUMS)))
        count = max(shape.count("{"), 3 * ("{2}" in shape))
        return shape.format(*(expression(depth - 1) for _ in range(count)))

    lines = []
    for number, kind in enumerate(kinds):
        match kind:
            case "local":
                lines.append(f"x{number} = {expression(3)}")
                leaves += [f"x{number}"] * 3
            case "store":
                lines.append(f"{draw(st.sampled_from('uv'))}[i, j] = {expression(3)}")
            case "in place":
                lines.append(f"b[i, j] = {expression(2)}")
            case "condition":
                lines += [f"if {expression(1)} > {expression(1)}:", f"    v[i, j] = {expression(2)}"]
            case "chain":
                lines.append(f"v[i, j] = 0.5 * v[i, j - 1] + {expression(2)}")
            case "extremum":
                lines.append(f"best = max(best, {expression(2)})")
            case "inner":
                term = expression(2).replace(", j", ", k").replace("- j", "- k")
                lines += [f"y{number} = {expression(1)}", "for k in range(2, b.shape[1] - 2):"]
                lines.append(f"    y{number} = 0.5 * y{number} + {term}")
                leaves.append(f"y{number}")
    lines.append(f"u[i, j] = {expression(3)}")
    first, last = ("\n    best = -math.inf", "    return best\n") if "extremum" in kinds else ("", "")
    order = draw(st.sampled_from(("2, u.shape[1] - 2", "2, u.shape[1] - 2", "u.shape[1] - 3, 1, -1")))
    text = HEAD.format(first=first, columns=order) + "".join(f"            {line}\n" for line in lines) + last
    columns = draw(st.sampled_from(COLUMNS[:3] if "for k" in text else COLUMNS))
    return Drawn(text, columns, draw(st.sampled_from(("float64", "float64", "float32"))), draw(st.integers(0, 99)))


def check_body(data: st.DataObject) -> None:
    drawn = data.draw(bodies(), label="nest")
    random = np.random.default_rng(drawn.seed)
    with np.errstate(over="ignore"):
        arrays = {name: numbers(random, 3 * drawn.columns).astype(drawn.dtype).reshape(3, -1) for name in "uvab"}
    expected = {name: array.copy() for name, array in arrays.items()}
    with tempfile.TemporaryDirectory() as directory, np.errstate(all="ignore"):
        path = Path(directory) / "drawn.py"
        path.write_text(drawn.text)
        nest = load(path).nest
        try:
            best = nest.python(**expected, p=1.5)
        except ArithmeticError:
            with pytest.raises(lw.LapwingError):
                nest(**arrays, p=1.5)
            return
        try:
            found = nest(**arrays, p=1.5)
        except lw.RefusedError:
            return
    check_arrays(arrays, expected)
    if best is not None:
        assert not differing(np.array([found], float), np.array([best], float)).any()


def test_random_bodies() -> None:
    search(check_body, wanted(5), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_random_bodies_at_length() -> None:
    search(check_body, wanted(3000), first_seed() + 1)


# -- powers --------------------------------------------------------------------------------------------------------------


@lw.nest
def powers(square, cube, fourth, root, inverse, x):
    for i in range(x.shape[0]):
        square[i] = x[i] ** 2
        cube[i] = x[i] ** 3
        fourth[i] = x[i] ** 4
        root[i] = x[i] ** 0.5
        inverse[i] = x[i] ** -1


def check_powers(x: np.ndarray) -> None:
    found = [np.zeros_like(x) for _ in range(5)]
    with np.errstate(all="ignore"):
        powers(*found, x)
        for result, exponent in zip(found, (2, 3, 4, 0.5, -1), strict=True):
            expected = np.array([value**exponent for value in x], x.dtype)
            where = np.flatnonzero(differing(result, expected))
            assert not len(where), f"{x[where[0]]!r}**{exponent} is {result[where[0]]!r}, not {expected[where[0]]!r}"


def in_doubt(x: np.ndarray) -> np.ndarray:
    """Those whose squares lie near the middle between two doubles: their last bits as integers tell."""
    mantissas = (np.frexp(x)[0] * 2.0**53).astype(np.int64)
    squares = [int(m) * int(m) for m in mantissas]
    cut = [s.bit_length() - 53 for s in squares]
    away = np.array([abs(s % (1 << c) - (1 << c - 1)) / (1 << c) for s, c in zip(squares, cut, strict=True)])
    return x[away < 0.02]


def of_all_sizes(random: np.random.Generator, count: int) -> np.ndarray:
    return random.uniform(1, 2, count) * 2.0 ** random.integers(-1070, 1000, count) * random.choice([-1, 1], count)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_powers_have_the_bits_of_the_plain_loop(dtype: str) -> None:
    random = np.random.default_rng(first_seed())
    doubtful = in_doubt(random.uniform(1, 2, 60_000))
    assert len(doubtful) > 1000
    scaled = doubtful * 2.0 ** random.integers(-34, 34, len(doubtful))
    near = np.concatenate(
        [np.nextafter(2.0**k, direction) for k in np.arange(-33, 33, 0.5) for direction in ([0.0], [9e99])]
    )
    tested = np.concatenate([doubtful, scaled, -scaled, near, numbers(random, 3000), of_all_sizes(random, 3000)])
    with np.errstate(all="ignore"):
        check_powers(random.permutation(tested).astype(dtype))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_powers_have_the_bits_of_the_plain_loop_at_length(dtype: str) -> None:
    for seed in seeds(wanted(40)):
        random = np.random.default_rng(seed)
        uniform = random.uniform(-8, 8, 400_000)
        scaled = random.uniform(1, 2, 400_000) * 2.0 ** random.integers(-40, 40, 400_000)
        with np.errstate(all="ignore"):
            check_powers(np.concatenate([uniform, scaled, of_all_sizes(random, 50_000)]).astype(dtype))


# -- what is distributed ---------------------------------------------------------------------------------------------------


@lw.nest
def independent(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = a[i, j] ** 2 + np.exp(-a[i, j])


@lw.nest
def read_after_it_is_stored(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            a[i, j] = 2 * a[i, j]
            u[i, j] = a[i, j] ** 2


@lw.nest
def chained(u, a):
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i, j - 1] ** 2 + 0.25


@lw.nest
def chained_elsewhere(u, a):
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * u[i, j - 1] + a[i, j] ** 2 - a[i, j - 1] ** 2


@lw.nest
def far_apart(u, a):
    for i in range(u.shape[0]):
        for j in range(9, u.shape[1] - 9):
            u[i, j] = a[i, j + 9] ** 2 + a[i, j + 1] ** 2 * a[i, j - 1] ** 2 - a[i, j - 9] ** 2


@lw.nest
def on_a_ring(u, a):
    n = a.shape[1]
    for i in range(u.shape[0]):
        for j in range(n):
            before, after = (j - 1) % n, (j + 1) % n
            u[i, j] = a[i, before] ** 2 - a[i, j] * a[i, after] ** 2 + u[i, before]


@pytest.mark.parametrize("nest", [chained_elsewhere, far_apart, on_a_ring])
@pytest.mark.parametrize("columns", [2, 256, 257, 258, 274, 275, 600])
def test_results_that_iterations_share(nest: lw.Nest, columns: int) -> None:
    random = np.random.default_rng(columns)
    u, a = random.uniform(-3, 3, (2, 3, columns))
    expected = u.copy()
    nest.python(expected, a)
    nest(u, a)
    assert not differing(u, expected).any()


def text_of(nest: lw.Nest) -> str:
    bound = nest.bind({"u": np.zeros((3, 9)), "a": np.zeros((3, 9))})
    return tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])


def test_what_can_be_computed_for_many_iterations_is() -> None:
    text = text_of(independent)
    assert "lw_strip_square_f64(&a[" in text
    assert "lw_strip_call_1_f64(&lw_numpy_exp_f64, argument_1_strip" in text
    assert "LW_STRIP" not in text_of(read_after_it_is_stored)
    assert "LW_STRIP" not in text_of(chained)
    # Squares of elements next to each other are computed once.
    assert text_of(chained_elsewhere).count("lw_strip_square_f64(") == 1
    # Indices are computed again, and not handed on from loop to loop.
    assert "lw_strip_square_f64(" in text_of(on_a_ring)
    assert not re.search("(before|after)[a-z0-9_]*_strip", text_of(on_a_ring))
