"""Random programs, several nests with all sorts of statements around them, as Python source with arguments.

Arrays u, v and w are matrices of one shape, s two or three levels of that shape, x a vector. Regions are stencils in and out of
place, with guards and reductions; the driver swaps, copies, slices, computes with NumPy, counts, branches and calls functions.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

HEADING = """
import math

import numpy as np

import lapwing as lw


def scaled(a, factor):
    a *= factor
    return a


def corner(a):
    return a[:2, :2]


@lw.nest
def program(u, v, w, s, x, n, tol):
"""
MATRICES = ("u", "v", "w")


@dataclass(frozen=True)
class RandomProgram:
    source: str
    dtype: str
    shape: tuple[int, int]
    levels: int
    seed: int

    def arguments(self) -> tuple[object, ...]:
        values = np.random.default_rng(self.seed)

        def made(*shape: int) -> np.ndarray:
            if self.dtype.startswith("int"):
                return values.integers(-4, 5, shape).astype(self.dtype)
            if self.dtype.startswith("complex"):
                return (values.uniform(-1, 1, shape) + 1j * values.uniform(-1, 1, shape)).astype(self.dtype)
            return values.uniform(-1, 1, shape).astype(self.dtype)

        matrices = [made(*self.shape) for _ in MATRICES]
        return (*matrices, made(self.levels, *self.shape), made(self.shape[0]), 3, 0.25)


def random_program(seed: int) -> RandomProgram:
    writer = _Writer(seed)
    body = ["best = -1000.0", "count = 0", "k = 0", *writer.block(0, 4, False)]
    body += writer.nest("") if not writer.nests else []
    body.append(
        f"return {writer.pick('u', 'u, best', 'best, count', 'v[1, 2], k', 's[k % 2]', 'x, w.sum()', 'u[1:-1], x')}"
    )
    return RandomProgram(
        HEADING + textwrap.indent("\n".join(body), "    ") + "\n", writer.dtype, writer.shape, writer.levels, seed
    )


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.dtype = self.pick("float64", "float64", "float32", "int64", "int32", "complex128", "complex64")
        self.shape = (self.random.randint(6, 12), self.random.randint(6, 12))
        self.levels = self.random.randint(2, 3)
        self.factors = ("0.25", "0.5", *(["(0.2 - 0.3j)", "0.5j"] if self.dtype.startswith("complex") else []))
        self.nests = 0
        self.number = 0

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def real(self, element: str) -> str:
        """An element as a real number."""
        return f"{element}.real" if self.dtype.startswith("complex") else element

    def block(self, depth: int, most: int, in_loop: bool) -> Iterator[str]:
        for _ in range(self.random.randint(1, most)):
            yield from self.statement(depth, in_loop)

    def statement(self, depth: int, in_loop: bool) -> Iterator[str]:
        kinds = ["nest"] * 8 + ["driver"] * 6
        kinds += ["for", "for", "while", "if"] if depth < 2 else []
        kinds += ["leave"] if in_loop else []
        match self.random.choice(kinds):
            case "nest":
                yield from self.nest(self.index if in_loop else "")
            case "driver":
                yield self.driver()
            case "leave":
                larger = f"{self.real('u[1, 1]')} > {self.real('v[2, 2]')}"
                yield f"if {self.pick('count > 2', 'best > 0.75', larger)}: {self.pick('break', 'continue')}"
            case "if":
                positive = f"{self.real('u[2, 1]')} > 0"
                yield f"if {self.pick('n > 2', 'best < tol', positive, 'k % 2 == 0', 'np.abs(x).max() > 0.5')}:"
                yield from self.inside(depth, in_loop)
                if self.random.random() < 0.5:
                    yield "else:"
                    yield from self.inside(depth, in_loop)
            case "for":
                self.number += 1
                before, self.index = getattr(self, "index", ""), f"t{self.number}"
                yield f"for {self.index} in {self.pick('range(n)', 'range(1, 4)', 'range(2, -1, -1)', '(0, 1)')}:"
                yield from self.inside(depth, True)
                self.index = before
            case "while":
                self.number += 1
                before, self.index = getattr(self, "index", ""), f"m{self.number}"
                yield f"{self.index} = 0"
                yield f"while {self.index} < 3 and {self.pick('best < 3', 'np.abs(u).max() < 50', 'count < 9', 'tol > 0')}:"
                yield f"    {self.index} += 1"
                yield from self.inside(depth, True)
                self.index = before

    def inside(self, depth: int, in_loop: bool) -> Iterator[str]:
        for line in self.block(depth + 1, 3, in_loop):
            yield "    " + line

    def driver(self) -> str:
        a, b, c = (self.pick(*MATRICES) for _ in range(3))
        half = "// 2" if self.dtype.startswith("int") else "* 0.5"
        return self.pick(
            f"{a}, {b} = {b}, {a}" if a != b else "k += 1",
            f"{a} = {b}.copy()",
            f"{a} = np.zeros_like({b})",
            f"{a} = np.zeros({b}.shape, {b}.dtype)",
            f"{a} = np.full_like({b}, 2)",
            f"{a}[:] = {b} if {a} is not {b} else {c}",
            f"{a}[0, :] = {b}[-1, :] {half}",
            f"{a}[1:-1, 1:-1] = ({b}[1:-1, :-2] + {c}[1:-1, 2:]) {half}",
            f"{a}[2, 3] = {b}[3, 2]",
            f"row = {a}[1]; {b}[3, :] = row; row[2] = 1",
            f"{a} += {b} {half}",
            f"x = {a}[:, 1].copy()",
            f"x[1:] = x[:-1] {half}",
            f"best = max(best, float(np.abs({a} - {b}).max()))",
            f"best = float({self.real(f'{a}[2, 2]')}) + k",
            "best *= 0.5",
            "count += 1",
            "k = (k + 1) % 2",
            f"scaled({a}, 1)",
            f"corner({a})[0, 1] = 1",
            f"{a} = scaled({b}.copy(), 1)",
            f"s[k % {self.levels}] = {a}",
            f"{a} = s[k % {self.levels}].copy()",
            f"s[0], {a}[:] = {a}.copy(), s[1].copy()",
            f"pair = [{a}, {b}]; {c} = pair[k % 2].copy()",
            f"z = {a}[1:-1] if count % 2 else {b}[1:-1]; z[0, 0] = 0",
            f"assert {a}.shape == {b}.shape",
            f"np.copyto({a}, {b})" if a != b else "pass",
        )

    # -- nests ---------------------------------------------------------------------------------------------------------

    def nest(self, index: str) -> Iterator[str]:
        self.nests += 1
        kind = self.pick(
            "in place", "in place", "out of place", "out of place", "reduction", "levels", "edge", "vector", "sweeps"
        )
        return getattr(self, "nest_" + kind.replace(" ", "_"))(index)

    def loops(self, names: str = "u", low: str = "1", triangle: str = "") -> Iterator[str]:
        if self.random.random() < 0.3 and not triangle:
            yield f"for i in range({names}.shape[0] - 2, 0, -1):"
        else:
            yield f"for i in range({low}, {names}.shape[0] - 1):"
        yield f"    for j in range({triangle or '1'}, {names}.shape[1] - 1):"

    def mean(self, *terms: str) -> str:
        total = " + ".join(terms)
        return (
            f"({total}) // {len(terms) + 1}"
            if self.dtype.startswith("int")
            else f"{self.pick(*self.factors)} * ({total})"
        )

    def scalar(self, index: str) -> str:
        own = [f"{index} * 2", f"({index} + 1) % 2"] if index else []
        return self.pick("k", "count", "n", *own)

    def near(self, a: str, forwards: bool = False) -> str:
        options = [f"{a}[i - 1, j]", f"{a}[i, j - 1]"]
        return (
            self.pick(*options) if forwards else self.pick(*options, f"{a}[i + 1, j]", f"{a}[i, j + 1]", f"{a}[i, j]")
        )

    def nest_in_place(self, index: str) -> Iterator[str]:
        a, b = self.pick(*MATRICES), self.pick(*MATRICES)
        yield from self.loops(triangle=self.pick("", "", "i", "max_one"[:0]))
        value = self.mean(self.near(a), self.near(a), f"{b}[i, j]" if b != a else f"{a}[i, j]", self.scalar(index))
        if self.random.random() < 0.3:
            value = f"{value} if {self.real(f'{a}[i, j]')} > {self.pick('0', 'k', 'tol')} else {a}[i, j]"
        yield f"        {a}[i, j] = {value}"

    def nest_out_of_place(self, index: str) -> Iterator[str]:
        a, b = self.random.sample(MATRICES, 2)
        # Two names may stand for one array: then a nest is refused, with reason.
        yield f"{b} = {b}.copy()"
        yield from self.loops()
        yield f"        {a}[i, j] = {self.mean(self.near(b), self.near(b), self.scalar(index))}"
        if self.random.random() < 0.4:
            yield f"        best = max(best, float({self.real(f'{a}[i, j]')}))"

    def nest_reduction(self, index: str) -> Iterator[str]:
        a = self.pick(*MATRICES)
        element = self.real(f"{a}[i, j]")
        start, update = self.random.choice(
            [("count", f"count += int({element} > 0)"), ("best", f"best = max(best, float({element}))"),
             ("best", f"best = min(best, float({element}))")]
        )  # fmt: skip
        if self.random.random() < 0.5:
            yield f"{start} = {'0' if start == 'count' else '0.5'}"
        yield from self.loops(low="0")
        yield f"        {update}"

    def nest_levels(self, index: str) -> Iterator[str]:
        level = index or "k"
        new, old = f"({level} + 1) % {self.levels}", f"{level} % {self.levels}"
        yield "for i in range(1, s.shape[1] - 1):"
        yield "    for j in range(1, s.shape[2] - 1):"
        yield f"        s[{new}, i, j] = {self.mean(f's[{old}, i - 1, j]', f's[{old}, i, j + 1]', f's[{new}, i, j - 1]')}"

    def nest_edge(self, index: str) -> Iterator[str]:
        a = self.pick(*MATRICES)
        yield f"for i in range({a}.shape[0]):"
        yield f"    {a}[i, {self.pick('0', '-1')}] = {self.mean(f'{a}[i, 1]', f'{a}[i, 2]')}"

    def nest_vector(self, index: str) -> Iterator[str]:
        yield "for i in range(1, len(x)):"
        yield f"    x[i] = {self.mean('x[i - 1]', 'x[i]', self.scalar(index))}"

    def nest_sweeps(self, index: str) -> Iterator[str]:
        a = self.pick(*MATRICES)
        yield "for r in range(2):"
        for line in self.loops():
            yield "    " + line
        yield f"            {a}[i, j] = {self.mean(f'{a}[i - 1, j]', f'{a}[i, j - 1]', f'{a}[i + 1, j]')}"
