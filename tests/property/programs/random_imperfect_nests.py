"""Random nests with something beside the inner loop: scalars, rows and indices that are set before it, conditions around it,
elements that are stored before its first iteration and behind its last; loops without iterations, and indices that leave their
arrays there."""

from __future__ import annotations

from hypothesis import strategies as st
from random_nests import ArraySpec
from random_regions import RegionCase


@st.composite
def imperfect_nests(draw: st.DrawFn) -> RegionCase:
    return _Builder(draw).case()


class _Builder:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.values: list[str] = []  # that the body may use

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent

    def case(self) -> RegionCase:
        n, m = self.integer(1, 7), self.integer(1, 7) if self.chance(70) else 20
        dtype = self.pick("float64", "int64", "float32", "int32")
        seeds = [self.integer(0, 999) for _ in range(4)]
        arrays = (
            ArraySpec("a", dtype, (n, m), "tame", seeds[0]),
            ArraySpec("b", self.pick("float64", dtype), (n, m), "tame", seeds[1]),
            ArraySpec("x", dtype, (n + self.integer(-1, 1) or 1,), "tame", seeds[2]),
            ArraySpec("w", "int64", (n,), "tame", seeds[3]),
        )
        self.number = "2" if dtype.startswith("int") else "0.5"
        begin = self.pick("1", "1", "2", "i + 1", "i", "0", "max(1, i - q)")
        end = self.pick("m", "m - 1", "m - 1", "q", "i + q", "min(m - 1, i + p)")
        self.ahead, self.behind_it = f"{begin} - 1", end  # the elements before a row's first one, and behind its last
        loop = f"for j in range({begin}, {end}):"
        if self.chance(20):
            self.ahead, self.behind_it = self.behind_it, self.ahead
            loop = f"for j in range({end} - 1, {begin} - 1, -1):"
        lines = ["def region(a, b, x, w, p, q):", "    n, m = a.shape", f"    c = {self.number}"]
        indent = "    "
        if self.chance(30):
            lines.append(f"{indent}for t in range(p):")
            indent += "    "
        rows = f"{self.pick('1', '1', '0', '2')}, n{self.pick('', ' - 1')}{self.pick('', '', '', ', 2')}"
        lines.append(f"{indent}for i in range({rows}):")
        indent += "    "
        for _ in range(self.integer(0, 3)):
            lines += [indent + line for line in self.before()]
        if self.chance(15):
            lines.append(f"{indent}if {self.condition()}:")
            indent += "    "
            lines += [indent + line for line in self.before()]
        lines.append(indent + loop)
        lines += [f"{indent}    {line}" for line in self.body()]
        if self.chance(30):
            lines += [indent + line for line in self.behind()]
        scalars = (("p", self.integer(0, 3)), ("q", self.integer(-1, m)))
        return RegionCase("\n".join(lines) + "\n", arrays, scalars)

    def condition(self) -> str:
        return self.pick("w[i] > 1", "w[i] == x[i]", "i > p", "i % 2 == 0", "w[i - 1] > 0 and i != q")

    def value(self) -> str:
        """One that does not change with the inner loop."""
        element = self.pick("x[i]", "x[i - 1]", "x[i + 1]", "b[i, 0]", "w[i]", "b[i - 1, p]", "x[w[i] % 2]", "a[i, 1]")
        plain = self.pick(*self.values, element, element, self.number, "i", "p")
        other = self.pick(plain, element)
        return self.pick(
            element, plain, f"{plain} + {other}", f"{element} * {self.number}", f"max({other}, {element})", f"abs({other})",
            f"{element} if {self.condition()} else {plain}", f"{plain} / {element}", f"{other} // p", f"-{plain}",
        )  # fmt: skip

    def before(self) -> list[str]:
        name = f"s{len(self.values)}"
        value = self.value()
        match self.pick("value", "value", "choice", "index", "row", "guard", "first", "first", "change", "carried"):
            case "value":
                lines = [f"{name} = {value}"]
            case "choice":
                lines = [f"if {self.condition()}:", f"    {name} = {value}", "else:", f"    {name} = {self.value()}"]
            case "index":
                lines, name = [f"k = i - {self.pick('1', '0')}"], "a[k, j]"
            case "row":
                row, index = self.pick("a", "b"), self.pick("i - 1", "i", "i + 1")
                lines, name = [f"r{name} = {row}[{index}]"], f"r{name}[j]"
            case "carried":
                lines, name = [f"c = c + {value}"], "c"
            case "guard":
                return [f"if {self.condition()}:", "    continue"]
            case "change" if self.values and self.values[-1].startswith("s"):
                return [f"if {self.condition()}:", f"    {self.values[-1]} += {value}"]
            case _:
                at = {"1 - 1": "0", "2 - 1": "1", "i + 1 - 1": "i"}.get(self.ahead, self.ahead)
                if self.chance(30):
                    local = f"f{name}"
                    return [f"{local} = {value}", f"if {local} > 1:", f"    a[i, {at}] = {local}"]
                return [
                    f"a[i, {at}] {self.pick('=', '+=')} {self.pick(value, f'a[i - 1, {at}] + {value}', f'b[i, {at}]')}"
                ]
        self.values.append(name)
        return lines

    def body(self) -> list[str]:
        read = self.pick("a[i - 1, j]", "a[i, j - 1]", "b[i, j]", "a[i - 1, j - 1]")
        used = [self.pick(*self.values) for _ in range(2)] if self.values else ["b[i, j]"]
        lines = [f"a[i, j] = {read} * {self.number} + {' - '.join(used)}"]
        if self.chance(30):
            condition = self.pick(f"{self.pick(*used)} > a[i, j - 1]", "i < n - 2", "j > i", self.condition())
            lines = [f"if {condition}:", *(f"    {line}" for line in lines)]
        if self.chance(20):
            lines += ["if b[i, j] > 1:", f"    {self.pick('continue', 'break')}", "a[i, j] -= 1"]
        return lines

    def behind(self) -> list[str]:
        at = {"1 - 1": "0", "2 - 1": "1", "i + 1 - 1": "i"}.get(self.behind_it, self.behind_it)
        value = (
            self.pick(f"a[i, {at} - 1]", *self.values, self.number, "b[i, 0]").replace("[j]", "[0]").replace("j]", "0]")
        )
        lines = [f"a[i, {at}] = {value}"]
        if self.chance(30):
            lines = [f"if {self.condition()}:", *(f"    {line}" for line in lines)]
        return lines
