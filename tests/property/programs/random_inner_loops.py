"""Random regions whose innermost loops store under conditions: on their index, on what is looked up, to several elements of one
array, ahead of the index and behind it, with indices that come back at the other end. And such with short loops in them, which
call functions of the elements in a window."""

from __future__ import annotations

from hypothesis import strategies as st
from random_nests import ArraySpec
from random_regions import RegionCase

DTYPES = ("int8", "float64", "int64", "int32", "float32", "uint8")


@st.composite
def inner_loops(draw: st.DrawFn) -> RegionCase:
    return _Builder(draw).case()


class _Builder:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.left = 7  # statements

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def case(self) -> RegionCase:
        n, m = self.integer(1, 4), self.pick("3", "5", "9", "17", "40")
        shape = n, int(m)
        dtype = self.pick(*DTYPES)
        seeds = [self.integer(0, 999) for _ in range(5)]
        arrays = (
            ArraySpec("a", dtype, shape, "tame", seeds[0]),
            ArraySpec("b", self.pick(dtype, *DTYPES), shape, "tame", seeds[1]),
            ArraySpec("c", dtype, shape, "tame", seeds[2]),
            ArraySpec("w", "int64", (n,), "tame", seeds[3]),
        )
        self.value = self.pick("1", "2") if dtype.startswith(("int", "uint")) else self.pick("0.5", "2.0")
        self.reach = self.integer(0, 2)  # of indices that do not come back
        low, high = (
            (str(self.reach), f"m - {self.reach}") if self.reach or self.chance(50) else ("0", self.pick("m", "p"))
        )
        self.stored = ("a", "a", "a", "c") if self.chance(50) else ("a",)
        lines = ["def region(a, b, c, w, p, q):", "    n, m = a.shape", "    for i in range(n):"]
        lines.append(f"        for j in range({low}, {high}):")
        lines += self.block("            ", 0)
        lines.append("    return n")
        scalars = (("p", self.integer(0, int(m))), ("q", self.integer(-2, int(m) + 1)))
        return RegionCase("\n".join(lines) + "\n", arrays, scalars)

    def block(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.integer(1, 2 if depth else 3)):
            if self.left <= 0:
                break
            self.left -= 1
            if depth < 3 and self.chance(65 if depth == 0 else 40):
                lines.append(f"{indent}if {self.condition()}:")
                lines += self.block(indent + "    ", depth + 1)
                if self.chance(40):
                    lines.append(f"{indent}else:")
                    lines += self.block(indent + "    ", depth + 1)
            else:
                lines += self.statement(indent)
        return lines or self.statement(indent)

    def condition(self) -> str:
        data = f"b[{self.row()}, {self.column()}] {self.pick('>', '==', '<=')} {self.pick('1', '2')}"
        index = f"j{self.pick('', ' + 1', ' - 2')} {self.pick('<', '<=', '>', '>=', '==', '!=')} "
        index += self.pick("p", "q", "i", "w[i]", "m - 1", "0", "m - 2 - i")
        pair = f"{self.pick('i', 'p')} {self.pick('==', '<')} {self.pick('0', 'q')}"
        first, other = self.pick(data, index, index, pair), self.pick(data, index)
        return self.pick(first, data, index, f"{first} {self.pick('and', 'or')} {other}", f"not ({first})")

    def row(self) -> str:
        return self.pick("i", "i", "(i + 1) % n", "i - 1")

    def column(self) -> str:
        if self.chance(20):
            return f"(j + {self.integer(1, 2)}) % m"
        by = self.integer(-self.reach, self.reach)
        return "j" if by == 0 else f"j {'+' if by > 0 else '-'} {abs(by)}"

    def statement(self, indent: str) -> list[str]:
        target = f"{self.pick(*self.stored)}[{self.row()}, {self.column()}]"
        if self.chance(15):  # an element that is there under that condition alone
            return [f"{indent}if j + 3 < m:", f"{indent}    a[i, j + 3] = {self.value}"]
        if self.chance(25):
            return [f"{indent}{target} = {target} {self.pick('+', '-', '*')} {self.value}"]
        if self.chance(15):
            return [f"{indent}{target} = a[{self.row()}, {self.column()}]"]
        return [f"{indent}{target} = {self.pick(self.value, self.value, 'b[i, j]', f'c[{self.row()}, j]')}"]


@st.composite
def windows(draw: st.DrawFn) -> RegionCase:
    return _Windows(draw).case()


class _Windows(_Builder):
    """Sums over a window around each element, some of which is outside of the array."""

    def case(self) -> RegionCase:
        n, m = self.integer(1, 3), int(self.pick("20", "3", "40", "300"))
        arrays = tuple(
            ArraySpec(name, "float64", (n, m), self.pick("tame", "tame", "special"), self.integer(0, 999))
            for name in "ab"
        )
        self.sums = ["s", "t"][: self.integer(1, 2)]
        depth = self.integer(1, 2)
        lines = [
            "import numpy as np",
            "def region(a, b, r, q):",
            "    n, m = a.shape",
            "    for i in range(n):",
            "        for j in range(m):",
        ]
        starts = [self.pick("0.0", "a[i, j]", "1.0") for _ in self.sums]
        lines += [f"            {name} = {start}" for name, start in zip(self.sums, starts, strict=True)]
        indent = " " * 12
        self.inner = ["k", "l"][:depth]
        for name in self.inner:
            lines.append(f"{indent}for {name} in range({self.pick('-r', '-r, 0', '0').split(',')[0]}, r + 1):")
            indent += "    "
            if name == "k" and depth == 2 and self.chance(40):
                lines.append(f"{indent}f = {self.term('k')}")
                self.inner = ["k", "l"]
                self.extra = " * f"
        self.extra = getattr(self, "extra", "")
        row = f"i + {self.inner[0]}" if depth == 2 else "i"
        column = f"j + {self.inner[-1]}"
        tests = [f"0 <= {column} < m", *([f"0 <= {row} < n"] if depth == 2 else [])]
        if self.chance(30):
            tests.append(f"a[{row}, {column}] > 0.5")
        lines.append(f"{indent}if {' and '.join(tests[::-1] if self.chance(20) and len(tests) == 2 else tests)}:")
        lines.append(f"{indent}    d = a[{row}, {column}] - a[i, j]")
        for name in self.sums:
            lines.append(f"{indent}    {name} {self.pick('+=', '-=')} {self.term('d')}{self.extra}")
        # Of a float of Python's or NumPy's it depends on the window whether dividing by zero raises.
        divisor = f" / {self.sums[-1]}" if starts[-1] == "a[i, j]" and self.chance(50) else ""
        lines.append(f"            b[i, j] = {self.sums[0]}{divisor}")
        if self.chance(20):
            lines.append("            a[i, j] = 1.0")
        lines.append("    return n")
        return RegionCase("\n".join(lines) + "\n", arrays, (("r", self.integer(0, 3)), ("q", self.pick_number())))

    def pick_number(self) -> float:
        return float(self.pick("0.5", "2.0", "0.0"))

    def term(self, of: str) -> str:
        return self.pick(f"np.exp(-{of}**2 / q)", f"{of}**2", f"np.exp({of})", f"np.tanh({of}) * {of}", f"{of} * {of}")
