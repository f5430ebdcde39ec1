"""Random sequential regions as Python source: loops of any form over scalars and arrays, indexed in any way, with early exits.

Some raise on the way: an index outside, a division by zero, an integer that does not fit, a scalar without a value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from random_nests import ArraySpec

DTYPES = ("float64", "int64", "int32", "float32", "float64", "uint8", "int8", "bool")
STATEMENTS = 16
DEPTH = 3


@dataclass(frozen=True)
class RegionCase:
    """The function and the arguments of one call."""

    source: str
    arrays: tuple[ArraySpec, ...]
    scalars: tuple[tuple[str, object], ...]

    def __str__(self) -> str:
        lines = [self.source, *(f"# {a.name}: {a.dtype} {a.shape} {a.style} seed {a.seed}" for a in self.arrays)]
        return "\n".join([*lines, *(f"# {name} = {value!r}" for name, value in self.scalars)])

    def arguments(self) -> dict[str, object]:
        return {**{a.name: a.values() for a in self.arrays}, **dict(self.scalars)}


@st.composite
def regions(draw: st.DrawFn) -> RegionCase:
    """A random region with arguments."""
    return _Builder(draw).case()


class _Builder:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.names = 0
        self.left = STATEMENTS
        self.indices: list[str] = []  # of the loops around
        self.counters: list[str] = []  # of while loops
        self.integers: list[str] = []  # scalars that hold Python integers, or nothing, where they are read
        self.floats: list[str] = []
        self.lasting: set[str] = set()  # indices of loops that are over

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, *options):
        return options[self.draw(st.integers(0, len(options) - 1))]

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def case(self) -> RegionCase:
        style = self.pick("tame", "tame", "tame", "special")
        shapes = {"a": (self.integer(1, 8),), "b": (self.integer(1, 8),), "h": (self.integer(1, 5), self.integer(1, 5))}
        self.arrays = {
            name: ArraySpec(name, self.pick(*DTYPES), shape, style, self.integer(0, 999))
            for name, shape in shapes.items()
        }
        scalars: dict[str, object] = {
            "n": self.integer(0, 6),
            "x": self.pick(0.5, 1.0, 3, np.float32(0.25), np.int32(3), True),
        }
        self.integers, self.floats = ["n"], ["x"]
        lines = []
        for _ in range(self.pick(1, 2, 0)):
            lines.append(self.new_scalar())
        for _ in range(self.pick(2, 1, 3)):
            lines += self.statement(DEPTH, False)
        known = [*self.integers, *self.floats, *sorted(self.lasting)]
        returned = list(dict.fromkeys(self.pick(*known) for _ in range(self.pick(2, 1, 3))))
        names = [*shapes, *scalars]
        text = [
            "import math",
            "import numpy as np",
            f"def region({', '.join(names)}):",
            "    if n >= 0:",  # from here on it is the region's own
            *("        " + line for line in lines),
        ]
        text.append(f"    return {', '.join(returned)}")
        return RegionCase("\n".join(text) + "\n", tuple(self.arrays.values()), tuple(scalars.items()))

    # -- statements --------------------------------------------------------------------------------------------------

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.pick(1, 2, 3)):
            lines += self.statement(depth, in_loop)
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        self.left -= 1
        ways = ["store", "store", "swap", "scalar", "scalar", "tuple"]
        if depth > 0 and self.left > 0:
            ways += ["if", "if", "for", "for", "for", "while"]
        way = self.pick(*ways)
        if way == "store":
            return [
                f"{self.element()} {self.pick('=', '=', '=', '+=', '-=', '*=')} {self.expression(self.integer(0, 2))}"
            ]
        if way == "swap":
            name = self.pick("a", "b")
            first, second = self.element(name), self.element(name)
            return [f"{first}, {second} = {second}, {first}"]
        if way == "scalar":
            return [self.scalar()]
        if way == "tuple":
            names = list(dict.fromkeys(self.pick(*self.integers[1:], *self.floats[1:], "q") for _ in range(2)))
            self.floats += [name for name in names if name == "q" and name not in self.floats]
            return [f"{', '.join(names)} = {', '.join(self.expression(1) for _ in names)}"]
        if way == "if":
            return self.condition_around(depth, in_loop)
        return self.inner_for(depth) if way == "for" else self.inner_while(depth)

    def scalar(self) -> str:
        if self.chance(35):
            return self.new_scalar()
        if self.chance(50) and self.integers[1:]:
            name = self.pick(*self.integers[1:])
            return f"{name} {self.pick('=', '+=', '+=', '-=', '*=', '//=')} {self.whole(self.integer(0, 1))}"
        name = self.pick(*self.floats)
        return f"{name} {self.pick('=', '+=', '+=', '-=', '*=')} {self.expression(self.integer(0, 1))}"

    def new_scalar(self) -> str:
        if self.chance(50):
            name, value = self.fresh("k"), self.pick("0", "1", self.whole(1))
            self.integers.append(name)
        else:
            name, value = self.fresh("s"), self.pick("0", "0.0", self.expression(1))
            self.floats.append(name)
        return f"{name} = {value}"

    def condition_around(self, depth: int, in_loop: bool) -> list[str]:
        lines = []
        arms = self.pick(1, 1, 2, 3)
        for arm in range(arms):
            head = f"{'elif' if arm else 'if'} {self.condition(1)}:"
            if arm and arm == arms - 1 and self.chance(70):
                head = "else:"
            lines += [head, *("    " + line for line in self.arm(depth, in_loop))]
        return lines

    def arm(self, depth: int, in_loop: bool) -> list[str]:
        lines = self.block(depth - 1, in_loop) if self.chance(80) else []
        if in_loop and (not lines or self.chance(25)):
            lines.append(self.pick("break", "continue"))
        return lines or ["pass"]

    def inner_for(self, depth: int) -> list[str]:
        name = self.fresh("i")
        array = self.pick("a", "b", "h")
        size = self.pick(f"{array}.shape[0]", f"len({array})", "n", "5", f"{self.whole(0)} % 6")
        outer = self.pick(*self.indices) if self.indices else "n"
        text = self.pick(
            size, size, f"1, {size}", f"{size} - 1", f"{size} - 1, -1, -1", f"0, {size}, 2", f"{size}, 0, -2",
            f"{outer}, {size}", f"{outer} + 1", f"{outer}, {outer} - 3, -1", f"-2, {size}, 3",
            f"0, {size}, 1 + {outer} % 3", f"{size} - 1, -1, {outer} % 4 - 4", f"1, {size}, {self.whole(0)} % 3",
            "-1, 2", "1, -2, -1", "3",
        )  # fmt: skip
        self.indices.append(name)
        lines = [f"for {name} in range({text}):", *("    " + line for line in self.block(depth - 1, True))]
        self.indices.pop()
        self.lasting.add(name)
        return lines

    def inner_while(self, depth: int) -> list[str]:
        name = self.fresh("c")
        test = f"{name} < {self.integer(1, 5)}"
        if self.chance(50):
            test = self.pick(f"{test} and {self.condition(0)}", f"{self.condition(0)} and {test}")
        self.indices.append(name)
        lines = [f"{name} = 0", f"while {test}:", f"    {name} += 1"]
        lines += ["    " + line for line in self.block(depth - 1, True)]
        self.indices.pop()
        return lines

    # -- expressions -------------------------------------------------------------------------------------------------

    def element(self, name: str | None = None) -> str:
        name = name or self.pick("a", "b", "h")
        return f"{name}[{', '.join(self.index(extent, name, k) for k, extent in enumerate(self.arrays[name].shape))}]"

    def index(self, extent: int, name: str, axis: int) -> str:
        """An index that is inside mostly."""
        size = f"{name}.shape[{axis}]"
        way = self.pick("remainder", "remainder", "remainder", "number", "number", "end", "bare", "offset")
        if way == "offset" and len(self.indices) > 1:
            return f"{self.indices[-2]} + {self.indices[-1]}"
        if way == "number":
            return str(self.integer(0, extent - 1))
        if way == "end":
            return self.pick(f"-{self.integer(1, extent)}", f"{size} - {self.integer(1, extent)}")
        whole = self.whole(self.integer(0, 1))
        if way == "bare":
            return self.pick(*self.indices, *self.indices, whole) if self.indices else whole
        return self.pick(f"({whole}) % {size}", f"({whole}) % {extent}", f"({whole}) % {size} - {size}")

    def whole(self, depth: int) -> str:
        """A Python integer, or an integer of an array."""
        if depth == 0:
            kind = self.pick("index", "index", "number", "scalar", "lasting", "element")
            if kind == "index" and self.indices:
                return self.pick(*self.indices)
            if kind == "lasting" and self.lasting and self.chance(30):
                return self.pick(*sorted(self.lasting))
            integers = [name for name, a in self.arrays.items() if a.dtype.startswith(("int", "uint"))]
            if kind == "element" and integers:
                return self.element(self.pick(*integers))
            return str(self.integer(0, 4)) if kind == "number" else self.pick(*self.integers)
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"({a} // 2)", f"{a} % 3", f"min({a}, {b})", f"({a} // {b})",
            f"abs({a})", f"({a} if {self.condition(0)} else {b})",
        )  # fmt: skip

    def expression(self, depth: int) -> str:
        if depth == 0:
            kind = self.pick("element", "element", "element", "scalar", "number", "whole")
            if kind == "element":
                return self.element()
            if kind == "whole":
                return self.whole(0)
            return self.pick(*self.floats) if kind == "scalar" else self.pick("0.5", "2.0", "1", "0", "-1.5")
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"max({a}, {b})", f"min({a}, 3)",
            f"({a} if {self.condition(0)} else {b})", f"0.5 * {a}", f"float({a})", f"math.sqrt(abs({a}))",
            f"({a}) / {b}", f"np.sqrt({a})", f"-({a})",
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        if depth == 0:
            if self.chance(40):
                return f"{self.whole(0)} {self.pick('<', '>', '==', '!=', '<=')} {self.whole(0)}"
            return f"{self.element()} {self.pick('<', '>', '==', '<=', '>=', '!=')} {self.expression(0)}"
        a, b = self.condition(0), self.condition(0)
        return self.pick(a, a, f"({a} and {b})", f"({a} or {b})", f"not {a}")
