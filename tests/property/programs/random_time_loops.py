"""Random time loops as Python source: nests over arrays that change places, are copied and filled, with sums of floats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

NAMES = ("u", "v", "w")


@dataclass(frozen=True)
class TimeLoopCase:
    """The function, and the same with sums that are exact and rounded once, behind each nest; the arguments of one call."""

    source: str
    exact: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    steps: int
    seed: int
    odd: bool  # values with NaNs, infinities, zeros of both signs and denormals among them

    def __str__(self) -> str:
        return f"{self.source}\n# {self.shapes} {self.dtypes} steps={self.steps} seed={self.seed} odd={self.odd}"

    def arguments(self) -> dict[str, object]:
        rng = np.random.default_rng(self.seed)
        arrays: dict[str, object] = {}
        for name, shape, dtype in zip(NAMES, self.shapes, self.dtypes, strict=True):
            values = (rng.random(shape) - 0.5) * 4.0 ** rng.integers(-3, 3, shape)
            if self.odd:
                special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e300], shape)
                values = np.where(rng.random(shape) < 0.15, special, values)
            with np.errstate(all="ignore"):
                arrays[name] = values.astype(dtype)
        return {**arrays, "n": self.shapes[0][0], "m": self.shapes[0][-1], "steps": self.steps}


@st.composite
def time_loops(draw: st.DrawFn, is_plain: bool = False) -> TimeLoopCase:
    """A random time loop with arguments. is_plain: of nests, and what is done with arrays, alone."""
    return _Builder(draw, is_plain).case()


class _Builder:
    def __init__(self, draw: st.DrawFn, is_plain: bool) -> None:
        self.draw, self.is_plain = draw, is_plain
        self.axes = draw(st.integers(1, 2))
        self.sums = self.nests = 0
        self.lines: list[str] = []
        self.exact: list[str] = []

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, *options):
        return options[self.draw(st.integers(0, len(options) - 1))]

    def case(self) -> TimeLoopCase:
        self.both(
            0, "def loop(u, v, w, n, m, steps):", "    total = 0.0", "    count = 0", "    k = 0", "    old = u.copy()"
        )
        by_while = not self.is_plain and self.chance(25)
        self.both(1, "while k < steps:" if by_while else "for t in range(steps):")
        self.block(2, self.draw(st.integers(2, 5)))
        if not self.nests:
            self.nest(2)
        if not self.is_plain:
            self.both(2, "k += 1")
        elif self.chance(40):
            self.exchange(2)
        self.both(1, "return total, count, k, u, v, w")
        shape = tuple(self.draw(st.integers(1, 9)) for _ in range(self.axes))
        other = tuple(size + self.draw(st.integers(0, 2)) for size in shape)
        dtype = self.pick("float64", "float64", "float64", "float32")
        shapes = (shape, shape, other if self.chance(10) else shape)
        dtypes = (dtype, dtype, "float32" if self.chance(10) else dtype)
        source, exact = "\n".join(self.lines), "\n".join(self.exact)
        return TimeLoopCase(
            source,
            exact,
            shapes,
            dtypes,
            self.draw(st.integers(0, 7)),
            self.draw(st.integers(0, 9999)),
            self.chance(20),
        )

    def both(self, level: int, *lines: str) -> None:
        for line in lines:
            self.lines.append("    " * level + line)
            self.exact.append("    " * level + line)

    def block(self, level: int, count: int) -> None:
        for _ in range(count):
            if self.is_plain:
                getattr(self, self.pick("nest", "nest", "nest", "copy", "fill", "edge", "element", "element"))(level)
                continue
            kind = self.pick("nest", "nest", "exchange", "copy", "fill", "edge", "sum", "if", "scalar", "element")
            getattr(self, {"if": "condition"}.get(kind, kind))(level)

    def loops(self, level: int) -> tuple[int, tuple[str, ...]]:
        names = ("i", "j")[: self.axes]
        for name, size in zip(names, ("n", "m"), strict=False):
            self.both(level, f"for {name} in range(1, {size if self.axes == 2 else 'n'} - 1):")
            level += 1
        return level, names

    def nest(self, level: int) -> None:
        self.nests += 1
        target, source = self.pick(*NAMES), self.pick(*NAMES, *NAMES, "old")
        level, names = self.loops(level)
        here, back = ", ".join(names), ", ".join((*names[:-1], f"{names[-1]} - 1"))
        on = ", ".join((f"{names[0]} + 1", *names[1:]))
        value = self.pick(
            f"0.5 * ({source}[{back}] + {source}[{on}])",
            f"{target}[{here}] + 0.25 * {source}[{on}]",
            f"{source}[{here}] if {source}[{back}] > 0.1 else -{target}[{here}]",
        )
        self.both(level, f"{target}[{here}] = {value}")

    def sum(self, level: int) -> None:
        self.nests += 1
        source, other = self.pick(*NAMES), self.pick(*NAMES)
        if self.chance(50):
            self.both(level, "total = 0.0")
        if self.chance(25):
            level, names = self.loops(level)
            here = ", ".join(names)
            self.both(
                level,
                f"if {source}[{here}] > {other}[{here}]:",
                "    count += 1",
                f"{source}[{here}] = 0.5 * {other}[{here}]",
            )
            return
        self.exact.append("    " * level + "terms = []")
        first = level
        level, names = self.loops(level)
        here = ", ".join(names)
        stores = self.chance(50)
        if stores:
            self.both(level, f"{other}[{here}] = 0.5 * {source}[{here}]")
        term = self.pick(
            f"{source}[{here}]",
            f"abs({source}[{here}])",
            f"{source}[{here}] ** 2",
            f"{source}[{here}] * {other}[{here}]",
        )
        if self.chance(20):
            self.both(level, f"if {other}[{here}] > 0.0:")
            level += 1
        sign = self.pick("+", "+", "-")
        self.lines.append("    " * level + f"total {sign}= {term}")
        self.exact.append("    " * level + f"terms.append({'-' if sign == '-' else ''}({term}))")
        self.exact.append("    " * first + "total = exact_sum(total, terms)")

    def exchange(self, level: int) -> None:
        names = [*self.draw(st.permutations(NAMES))][: self.pick(2, 2, 3)]
        turned = [*names[1:], names[0]]
        if self.chance(70):
            self.both(level, f"{', '.join(names)} = {', '.join(turned)}")
            return
        self.both(level, f"held = {names[0]}")
        self.both(level, *(f"{to} = {of}" for to, of in zip(names, [*turned[:-1], "held"], strict=True)))

    def copy(self, level: int) -> None:
        source = self.pick(*NAMES)
        self.both(level, f"old = {source}.copy()" if self.chance(70) else f"old = np.copy({source})")
        self.nests += 1
        level, names = self.loops(level)
        here, back = ", ".join(names), ", ".join((*names[:-1], f"{names[-1]} - 1"))
        self.both(level, f"{source}[{here}] = old[{here}] - 0.25 * old[{back}]")

    def fill(self, level: int) -> None:
        target, source = self.pick(*NAMES), self.pick(*NAMES)
        whole = self.pick(":", "...") if self.axes == 1 else self.pick(":", ":, :", "...")
        self.both(
            level,
            self.pick(
                f"{target}[{whole}] = {source}",
                f"{target}[{whole}] = 0.25",
                f"{target}.fill(0.5)",
                f"{target}[{whole}] = {source}[{whole}]",
            ),
        )

    def edge(self, level: int) -> None:
        target = self.pick(*NAMES)
        source = self.pick(target, target, *NAMES)
        if self.axes == 1:
            self.both(
                level,
                self.pick(f"{target}[0] = {source}[-1]", f"{target}[1:-1] = {source}[1:-1]", f"{target}[:-1] = 0.125"),
            )
            return
        self.both(
            level,
            self.pick(
                f"{target}[0, :] = {source}[-1, :]", f"{target}[:, -1] = {source}[:, 1]", f"{target}[0] = 0.5",
                f"{target}[1:-1, 0] = {source}[1:-1, -1]", f"{target}[-1, :] = {source}[0, 0]", f"{target}[:, 0] = k",
            ),
        )  # fmt: skip

    def element(self, level: int) -> None:
        target, source = self.pick(*NAMES), self.pick(*NAMES)
        if self.axes == 2:
            row, here = self.pick("0", "2", "n - 1", "-1"), self.pick("1", "m - 2", "-1")
            self.both(level, f"{target}[{row}, {here}] = 0.5 * {source}[{self.pick(row, '1')}, {self.pick(here, '0')}]")
            return
        if self.chance(30):
            self.both(level, f"{target}[0] = {target}[n - 1] = 0.75")
            return
        place, operator = self.pick("0", "1", "n - 1", "-1", "n // 2"), self.pick("=", "=", "+=", "-=")
        if place != "-1" and self.chance(40):
            self.both(level, f"i = {place}")
            place = "i"
        term = self.pick("0.125", "t" if self.is_plain else "k")
        value = f"0.5 * {source}[{self.pick(place, place, '0')}] + {term}"
        self.both(level, f"{target}[{place}] {operator} {value}")

    def condition(self, level: int) -> None:
        self.both(level, self.pick("if k % 2 == 0:", "if k > 2:", "if total < 1.0:"))
        self.block(level + 1, self.draw(st.integers(1, 2)))
        self.both(level + 1, "k = k")

    def scalar(self, level: int) -> None:
        self.both(level, self.pick("count += 2", "total = 0.5", "count = count + k"))
