"""Scalars that not every way gives a value to: the plain loop's UnboundLocalError where it raises one, else its result."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from loading import load
from randomness import first_seed, wanted
from searching import search

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")

CASES = {
    "kept where the loop sets nothing": """
        k = 7
        for i in range(1, n):
            u[i] += u[i - 1]
            if u[i] > 2:
                k = i
        return k""",
    "set in the loop alone": """
        for i in range(1, n):
            u[i] += u[i - 1]
            if u[i] > 2:
                k = i
        return k""",
    "of the last iteration": """
        for i in range(n):
            k = i
            u[i] += k
        for i in range(m):
            k = -i
            u[i] -= k
        return k""",
    "before the loop, on one way": """
        if m > 2:
            k = 7
        for i in range(n):
            if u[i] > 2:
                k = i
            u[i] = 1
        return k""",
    "in an earlier round": """
        for t in range(m):
            for i in range(1, n):
                if u[i] > 2:
                    k = i
                u[i] += u[i - 1]
            if t > 1:
                u[k] = 0
        return n""",
    "read under another condition": """
        for i in range(1, n):
            if u[i] > 1:
                s = u[i]
                d = 2.0
            u[i] += u[i - 1]
            if u[i] > 3:
                u[i] = s / d
        return n""",
    "from the iteration before": """
        for i in range(n):
            if i > m:
                u[i] -= s
            s = u[i]
        return n""",
    "in an inner loop": """
        for i in range(1, n):
            for k in range(m - i):
                s = u[k]
            u[i] = u[i - 1] + s
        return n""",
    "deleted": """
        k = 7
        if m > 2:
            del k
        for i in range(n):
            if u[i] > 2:
                k = i
            u[i] = 1
        return k""",
}


def check(nest: lw.Nest, u: np.ndarray, n: int, m: int) -> None:
    expected, found = u.copy(), u.copy()
    try:
        right = nest.python(expected, n, m)
    except UnboundLocalError as error:
        name = str(error).split("'")[1]
        with pytest.raises((UnboundLocalError, lw.RunError)) as raised:
            nest(found, n, m)
        assert name in str(raised.value)
        assert "UnboundLocalError" in repr(raised.value)
    else:
        assert nest(found, n, m) == right
        assert found.tobytes() == expected.tobytes()


def loaded(body: str, path: Path) -> lw.Nest:
    nest = load_text(f"def f(u, n, m):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n", path)
    assert not nest.refusals
    return nest


def load_text(text: str, path: Path) -> lw.Nest:
    path.write_text(f"import lapwing as lw\n@lw.nest\n{text}")
    found: lw.Nest = load(path).f
    return found


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_as_plain_python(body: str, tmp_path: Path) -> None:
    nest = loaded(body, tmp_path / "their.py")
    for u in (np.zeros(5), np.ones(5), np.arange(5.0)):
        for n in (0, 1, 5):
            for m in (0, 1, 4):
                check(nest, u, n, m)


class _Program:
    """Statements of a driver and of loops in it that set and read x and y here and there."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def text(self) -> str:
        parts = [self.part() for _ in range(self.draw(st.integers(2, 4)))]
        local = "if n < 0:\n    x = y = 0.0"  # never
        return "\n".join([*parts, self.loop(), local, f"return {self.pick('x', 'y', 'x + y', 'n')}"])

    def part(self) -> str:
        name, value = self.pick("x", "y"), self.pick("1.5", "2.5")
        ways = (f"{name} = {value}", f"if m > 1:\n    {name} = {value}", f"if m > 1 and u[0] > 2:\n    u[0] = {name}")
        return self.pick(*ways, self.loop(), f"for t in range(m):\n{textwrap.indent(self.loop(), '    ')}")

    def loop(self) -> str:
        lines = [self.statement() for _ in range(self.draw(st.integers(1, 3)))]
        body = "\n".join([*lines, "u[i] = 0.5 * u[4 - i] + 0.25 * u[i]"])  # in its own order alone
        return f"for i in range(1, n):\n{textwrap.indent(body, '    ')}"

    def statement(self) -> str:
        name, limit = self.pick("x", "y"), self.pick("0.5", "1.5", "2.5")
        return self.pick(
            f"if u[i] > {limit}:\n    {name} = u[i]",
            f"if u[i] > {limit}:\n    u[i] -= {name}",
            f"if u[i] > {limit}:\n    continue",
            f"{name} = u[i - 1]",
        )


@st.composite
def programs(draw: st.DrawFn) -> str:
    return _Program(draw).text()


def test_random_programs(tmp_path: Path) -> None:
    def check_program(data: st.DataObject) -> None:
        nest: Any = load_text(
            f"def f(u, n, m):\n{textwrap.indent(data.draw(programs()), '    ')}\n", tmp_path / "their.py"
        )
        if nest.refusals:
            return
        for seed in range(3):
            u = 4 * np.random.default_rng(seed).random(5)
            for n, m in ((5, 2), (5, 0), (1, 2), (2, 1)):
                check(nest, u, n, m)

    search(check_program, wanted(5), first_seed())
