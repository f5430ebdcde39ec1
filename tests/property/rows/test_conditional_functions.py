"""Powers and functions under conditions, called where these hold: random bodies have the bits of the plain loop.

LAPWING_EXAMPLES sets how many bodies are tried, LAPWING_SEED which ones.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparing import check_arrays, differing
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, wanted
from searching import search
from special_numbers import numbers

import lapwing as lw
from lapwing.codegen.tile import tile_source
from lapwing.tiling.inner import legal_forms

HEAD = """
import math
import numpy as np
import lapwing as lw


def chosen(x, y):
    if x > 1.0:
        return np.exp(-x)
    if y < 0.0:
        return y**2 + x
    return np.float64(0.5) * x


@lw.nest
def nest(u, v, a, b, p, q):{first}
    for i in range(1, u.shape[0]):
        for j in range({columns}):
"""
COLUMNS = (4, 5, 12, 258, 260, 300, 523)  # among them those around one and two strips
LEAVES = ("a[i, j]", "a[i, j + 1]", "a[i - 1, j]", "b[i, j]", "b[i, j - 2]", "p", "q", "u[i, j]")
INNER_LEAVES = ("a[i, k]", "a[i, j + k - 3]", "a[i, j]", "b[i, k]", "p", "u[i, j]")
CALLS = (
    "np.exp({})", "np.log({})", "np.tanh({})", "np.hypot({}, {})", "np.arctan2({}, {})", "np.sqrt({})", "({})**2", "({})**3",
    "abs({})**0.5", "({})**-1", "abs({})**1.25", "abs({})**p", "p**2 * ({})", "max({}, 0.0)**2", "chosen({}, {})",
    "np.float64(math.atan({}))", "np.float64(math.sin(math.atan({})))", "np.float64(math.sqrt(abs({})))",
)  # fmt: skip
RAISING = (
    "np.float64(math.exp({}))", "np.float64(math.log({}))", "np.float64(math.sqrt({}))", "np.float64(math.pow({}, 3.0))",
    "np.float64(math.pow({}, 0.5))",
)  # fmt: skip
ARITHMETIC = ("{} + {}", "{} - {}", "{} * {}", "{} / {}", "max(np.float64({}), np.float64({}))", "-{}")
CHOICES = ("({0} if {1} else {2})", "({0} if {1} else {2})", "({0} if {1} else {0} * 0.5)")
KINDS = (
    "if",
    "if",
    "elif",
    "nested",
    "expression",
    "early",
    "sum",
    "extremum",
    "count",
    "chain",
    "in place",
    "inner",
    "inner",
)


@dataclass(frozen=True)
class Drawn:
    """A nest's text, and the numbers that it is tried with."""

    text: str
    columns: int
    dtype: str
    seed: int


class Body:
    """Draws the statements of an iteration."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.leaves = [*LEAVES]
        self.calls = (*CALLS, *(RAISING if draw(st.integers(0, 3)) == 0 else ()))
        self.lines: list[str] = []
        self.results: dict[str, str] = {}

    def pick(self, shapes: tuple[str, ...] | list[str]) -> str:
        return self.draw(st.sampled_from(shapes))

    def expression(self, depth: int) -> str:
        if depth == 0 or self.draw(st.integers(0, 4)) == 0:
            return self.pick(self.leaves)
        shape = self.pick((*self.calls, *ARITHMETIC, *ARITHMETIC, *CHOICES))
        if shape in CHOICES:
            return shape.format(self.expression(depth - 1), self.condition(depth - 1), self.expression(depth - 1))
        return shape.format(*(f"({self.expression(depth - 1)})" for _ in range(shape.count("{"))))

    def condition(self, depth: int) -> str:
        simple = f"{self.expression(depth)} {self.pick(['<', '>', '<=', '!='])} {self.expression(depth)}"
        joined = self.draw(st.integers(0, 5))
        if joined > 1 or depth == 0:
            return simple
        return f"({simple} {'and' if joined else 'or'} {self.condition(depth - 1)})"

    def add(self, indent: int, *lines: str) -> None:
        self.lines += ["    " * indent + line for line in lines]

    def store(self, indent: int) -> None:
        self.add(indent, f"{self.pick(['u', 'v', 'v'])}[i, j] = {self.expression(2)}")

    def arm(self, indent: int, name: str, depth: int) -> None:
        """Gives a variable a value, and may store."""
        if self.draw(st.booleans()):
            self.add(indent, f"w = {self.expression(2)}")
            self.add(indent, f"{name} = np.float64(w * {self.expression(1)})")
        else:
            self.add(indent, f"{name} = np.float64({self.expression(2)})")
        if self.draw(st.integers(0, 2)) == 0:
            self.store(indent)
        if depth and self.draw(st.booleans()):
            self.condition_statement(indent, name, depth - 1)

    def condition_statement(self, indent: int, name: str, depth: int, elifs: int = 0) -> None:
        self.add(indent, f"if {self.condition(1)}:")
        self.arm(indent + 1, name, depth)
        for _ in range(elifs):
            self.add(indent, f"elif {self.condition(1)}:")
            self.arm(indent + 1, name, depth)
        if elifs or self.draw(st.booleans()):
            self.add(indent, "else:")
            self.arm(indent + 1, name, depth)

    def statement(self, number: int, kind: str) -> None:
        name = f"x{number}"
        match kind:
            case "if" | "elif" | "nested":
                self.add(0, f"{name} = np.float64({self.expression(1)})")
                elifs = self.draw(st.integers(1, 3)) if kind == "elif" else 0
                self.condition_statement(0, name, 2 if kind == "nested" else 0, elifs)
                self.leaves += [name] * 2
            case "expression":
                self.add(
                    0,
                    f"{name} = {self.pick(CHOICES).format(self.expression(2), self.condition(1), self.expression(2))}",
                )
                self.leaves += [name] * 2
            case "early":
                self.add(0, f"if {self.condition(1)}:")
                self.store(1)
                self.add(1, "continue")
            case "sum":
                self.results["total"] = "0.0"
                self.add(0, f"if {self.condition(1)}:")
                self.add(1, f"total += {self.expression(2)}")
            case "extremum":
                self.results["best"] = "-math.inf"
                self.add(0, f"if {self.condition(1)}:")
                self.add(1, f"best = max(best, {self.expression(2)})")
            case "count":
                self.results["count"] = "0"
                self.add(0, f"if {self.condition(2)}:")
                self.add(1, "count += 1")
            case "chain":
                self.add(0, f"v[i, j] = 0.5 * v[i, j - 1] + {self.expression(2)}")
            case "inner":
                body = Body(self.draw)
                body.calls, body.leaves = self.calls, [*INNER_LEAVES, f"y{number}"]
                body.add(0, f"for k in range({self.pick(['1, b.shape[1] - 1', '-2, 5', '0, b.shape[1] + 2'])}):")
                guard = "0 <= k < b.shape[1] and 0 <= j + k - 3 < b.shape[1]"
                body.add(1, self.pick([f"if {guard}:", f"if {guard} and {body.condition(1)}:"]))
                if self.draw(st.booleans()):
                    body.add(2, f"w = {body.expression(2)}")
                    body.leaves += ["w"]
                if self.draw(st.booleans()):
                    body.add(2, f"if {body.condition(1)}:")
                    body.add(3, f"y{number} = np.float64({body.expression(2)})")
                body.add(2, f"y{number} = np.float64(0.5 * y{number} + {body.expression(2)})")
                if self.draw(st.booleans()):
                    shape = self.pick(self.calls)
                    call = shape.format(
                        *(f"({self.pick(['a[i, j]', 'y' + str(number)])})" for _ in range(shape.count("{")))
                    )
                    body.add(1, "else:", f"    y{number} = np.float64(y{number} - {call})")
                self.add(0, f"y{number} = np.float64({self.expression(1)})", *body.lines)
                self.leaves += [f"y{number}"] * 2
            case "in place":
                self.add(0, f"if {self.condition(1)}:")
                self.add(1, f"b[i, j] = {self.expression(2)}")
                self.leaves = [leaf for leaf in self.leaves if "b[i, j - 2]" not in leaf]


@st.composite
def bodies(draw: st.DrawFn) -> Drawn:
    body = Body(draw)
    for number, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))):
        body.statement(number, kind)
    body.add(0, f"u[i, j] = {body.expression(2)}")
    first = "".join(f"\n    {name} = {value}" for name, value in body.results.items())
    last = f"    return {', '.join(body.results)}\n" if body.results else ""
    order = draw(st.sampled_from(("2, u.shape[1] - 2", "2, u.shape[1] - 2", "u.shape[1] - 3, 1, -1")))
    text = HEAD.format(first=first, columns=order) + "".join(f"            {line}\n" for line in body.lines) + last
    dtype = draw(st.sampled_from(("float64", "float64", "float64", "float32")))
    columns = draw(st.sampled_from(COLUMNS[:3] if "for k" in text else COLUMNS))
    return Drawn(text, columns, dtype, draw(st.integers(0, 99)))


def check_body(data: st.DataObject) -> None:
    drawn = data.draw(bodies(), label="nest")
    random = np.random.default_rng(drawn.seed)
    arrays: dict[str, Any]
    with np.errstate(over="ignore"):
        arrays = {name: numbers(random, 3 * drawn.columns).astype(drawn.dtype).reshape(3, -1) for name in "uvab"}
    expected = {name: array.copy() for name, array in arrays.items()}
    arrays |= {
        "p": np.dtype(drawn.dtype).type(1.5),
        "q": np.dtype(drawn.dtype).type(random.choice([0.75, -0.0, math.inf])),
    }
    expected |= {name: arrays[name] for name in "pq"}
    with tempfile.TemporaryDirectory() as directory, np.errstate(all="ignore"):
        path = Path(directory) / "drawn.py"
        path.write_text(drawn.text)
        nest = load(path).nest
        try:
            right = nest.python(**expected)
        except (ArithmeticError, ValueError):
            with pytest.raises((lw.LapwingError, ArithmeticError, ValueError)):
                nest(**arrays)
            return
        try:
            found = nest(**arrays)
        except lw.RefusedError:
            return
    check_arrays(arrays, expected)
    if right is not None and "total" not in drawn.text:  # sums are rounded once
        assert not differing(np.array([found], float), np.array([right], float)).any()


def test_random_bodies() -> None:
    search(check_body, wanted(6), first_seed())


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_random_bodies_at_length() -> None:
    search(check_body, wanted(3000), first_seed() + 1)


# -- what is called where a condition holds -----------------------------------------------------------------------------------


@lw.nest
def some(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if a[i, j] > 0.5:
                u[i, j] = np.exp(a[i, j])
            elif a[i, j] < -0.5:
                u[i, j] = np.sin(a[i, j]) + np.sin(u[i, j])


@lw.nest
def alike(u, a):
    """Of each pair of squares only one is wanted."""
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if a[i, j] > 0.0:
                u[i, j] = np.sqrt(a[i, j] ** 2 + u[i, j] ** 2)
            else:
                u[i, j] = np.sqrt((a[i, j] - 1.0) ** 2 + (u[i, j] + 1.0) ** 2)


@lw.nest
def in_an_expression(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = np.exp(a[i, j]) if a[i, j] > 0.5 or np.sin(u[i, j]) > 0.0 else 1.0


@lw.nest
def raising(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = math.log(a[i, j]) * np.tanh(a[i, j]) if a[i, j] > 0.0 else 0.0


@lw.nest
def of_the_library(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = math.log(a[i, j]) if a[i, j] > 0.0 else 0.0


@lw.nest
def stored_before(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = 2.0 * u[i, j]
            if a[i, j] > 0.0:
                u[i, j] = np.exp(u[i, j])


@lw.nest
def alike_in_a_chain_of_conditions(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if a[i, j] > 0.5:
                g = np.sqrt(np.exp(a[i, j]) + u[i, j] ** 2) - 1.0
            elif a[i, j] < -0.2:
                g = np.sqrt(np.exp(-a[i, j]) + a[i, j] ** 2) - 1.0
            else:
                g = 0.25
            u[i, j] = u[i, j] - 0.5 * g


@lw.nest
def along_a_chain(u, a):
    for j in range(1, u.shape[0]):
        if a[j] > 0.0:
            w = np.exp(-a[j])
            if a[j - 1] > 0.0:
                w = np.exp(a[j - 1]) * w
            u[j] = 0.5 * u[j - 1] + w
        else:
            u[j] = 0.25 * u[j - 1] - np.sin(a[j]) - a[j - 1] ** 2


@lw.nest
def where_elements_exist(u, a):
    for i in range(u.shape[0]):
        for j in range(1, u.shape[1]):
            if j > 3 and a[i, j - 3] > 0.0:
                u[i, j] = u[i, j - 1] * 0.5 + np.exp(a[i, j - 3])


@lw.nest
def stored_on_the_way(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if a[i, j] > 0.0:
                a[i, j] = 2.0 * a[i, j]
                for k in range(2):
                    u[i, j] = u[i, j] * 0.5 + k
                u[i, j] = u[i, j] + np.exp(a[i, j])


def text_of(nest: lw.Nest, shape: tuple[int, ...] = (3, 9)) -> str:
    bound = nest.bind({"u": np.zeros(shape), "a": np.zeros(shape)})
    return tile_source(bound, (), legal_forms(bound, bound.analysis.dependences)[0])


@pytest.mark.parametrize(
    ("nest", "called"), [(some, "call_1"), (alike, "square"), (in_an_expression, "call_1"), (raising, "log")]
)
def test_functions_are_called_where_a_condition_holds(nest: lw.Nest, called: str) -> None:
    text = text_of(nest)
    assert f"lw_strip_{called}_f64(" in text
    assert " if (" not in text
    assert ("lw_pack_f64(" in text) is (nest is not alike)


def test_functions_are_called_before_conditions_that_stay() -> None:
    text = text_of(along_a_chain, (9,))
    assert text.count("lw_strip_call_1_f64(") == 3
    assert text.count("lw_strip_square_f64(") == 1
    assert text.count(" if (") == 2
    assert "? a[i * a_s0 + j - 3] : 0.0" in text_of(where_elements_exist)
    assert "LW_STRIP" not in text_of(stored_on_the_way)


def test_arms_that_compute_alike_do_so_once() -> None:
    assert text_of(alike).count("lw_strip_square_f64(") == 2
    assert text_of(alike).count(" sqrt(") == 1


def test_conditions_stay_where_functions_cannot_be_called_together() -> None:
    text = text_of(stored_before)
    assert "LW_STRIP" not in text
    assert " if (" in text


def test_functions_that_are_called_one_by_one_anyhow_stay() -> None:
    assert "LW_STRIP" not in text_of(of_the_library)


@pytest.mark.parametrize(
    "nest",
    [
        some,
        alike,
        alike_in_a_chain_of_conditions,
        in_an_expression,
        raising,
        stored_before,
        where_elements_exist,
        stored_on_the_way,
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_bits_whatever_share_of_iterations_calls(nest: lw.Nest, share: float) -> None:
    random = np.random.default_rng(3)
    a = np.where(random.random((5, 600)) < share, 0.75, -0.25) + random.uniform(0, 0.1, (5, 600))
    u = random.uniform(-1, 1, a.shape)
    right, its_own = u.copy(), a.copy()
    nest(u, a)
    nest.python(right, its_own)
    assert not differing(u, right).any()
    assert not differing(a, its_own).any()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_bits_along_a_chain(share: float) -> None:
    random = np.random.default_rng(4)
    a = np.where(random.random(1300) < share, 0.75, -0.25) + random.uniform(0, 0.1, 1300)
    u = random.uniform(-1, 1, a.shape)
    right = u.copy()
    along_a_chain(u, a)
    along_a_chain.python(right, a)
    assert not differing(u, right).any()


def test_what_raises_does_so_where_its_condition_holds() -> None:
    u, a = np.zeros((3, 300)), np.full((3, 300), -1.0)
    raising(u, a)
    a[1, 17] = math.inf
    raising(u, a)
    assert u[1, 17] == math.inf
    u[:] = 5.0
    raises: Callable[..., None] = lw.nest(raising_below)
    a[2, 299] = 0.0
    with pytest.raises(lw.LapwingError):
        raises(u, a)
    assert (u == 5.0).all()


def raising_below(u, a):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = math.log(a[i, j]) * np.tanh(a[i, j]) if a[i, j] >= 0.0 else 0.0
