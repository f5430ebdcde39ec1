"""Random nests whose bodies are structured: conditions, inner loops, scalars of several paths, axes of no loop, arguments of
extrema.

Loops, arrays and accesses are those of ``random_nests``, which also says what dependences there are. In *imperfect* nests
something stands between the loops, so that the inner ones are done as a whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from random_nests import COMPLEX, FRACTIONAL, Builder, Case, Element, Written

DEPTH = 3  # of statements in statements
STATEMENTS = 14  # in a body, about


@dataclass(frozen=True)
class Inner:
    """The index of an inner loop, and what values it has."""

    name: str
    low: int
    high: int


@st.composite
def structured_cases(
    draw: st.DrawFn,
    *,
    skewed: bool | None = None,
    expressions: bool = True,
    imperfect: bool | None = None,
    streaming: bool = False,
) -> Case:
    """A random nest with arguments. skewed, streaming: see ``cases``; expressions: False leaves out what a rank alone gets right
    or wrong."""
    return StructuredBuilder(draw, skewed, expressions, imperfect, streaming).case()


class StructuredBuilder(Builder):
    def __init__(
        self, draw: st.DrawFn, skewed: bool | None, expressions: bool, imperfect: bool | None, streaming: bool
    ) -> None:
        super().__init__(draw, skewed, expressions, None, streaming)
        # Loops of arrays with an axis that is not cut are not skewed.
        self.imperfect = not self.skewed and (expressions and self.chance(20) if imperfect is None else imperfect)
        self.inner: list[Inner] = []
        self.held: list[str] = []  # conditions that hold here
        self.left = STATEMENTS
        self.names = 0
        self.jumped = False
        self.totals: dict[str, str] = {}
        self.unwritten: list[tuple[Written, Element]] = []

    # -- arrays ------------------------------------------------------------------------------------------------------

    def written_array(self, number: int) -> Written:
        array = super().written_array(number)
        if self.skewed or not self.chance(30):
            return array
        array.local = (self.pick(len(array.loops), int(self.streaming)), self.integer(1, 4))
        for elements in (array.writes, array.reads):
            elements[:] = [self.with_axis(array, element) for element in elements]
        return array

    def with_axis(self, array: Written, element: Element) -> Element:
        """An access with the axis that no loop is cut along."""
        assert array.local is not None
        place, length = array.local
        subscripts = element.text[len(array.name) + 1 : -1].split(", ")
        subscripts.insert(place, f"@{length}@")
        guard = element.guard
        if guard is not None:
            guard = re.sub(r"shape\[(\d)\]", lambda found: f"shape[{int(found[1]) + (int(found[1]) >= place)}]", guard)
        return Element(array.name, array.dtype, f"{array.name}[{', '.join(subscripts)}]", guard)

    def placed(self, text: str) -> str:
        """The text of an access with a place along the axis of no loop."""
        return re.sub(r"@(\d)@", lambda found: self.along_axis(int(found[1])), text)

    def along_axis(self, length: int) -> str:
        inside = [index for index in self.inner if 0 <= index.low <= index.high < length]
        way = self.pick("number", "number", "inner", "inner", "remainder", "end")
        if way == "inner" and inside:
            index = self.pick(*inside)
            return self.pick(index.name, index.name, f"{length - 1} - {index.name}")
        if way == "remainder":
            names = [loop.name for loop in self.loops] + [index.name for index in self.inner]
            return f"({self.pick(*names)} + {self.integer(0, 3)}) % {length}"
        return str(length - 1) if way == "end" else str(self.integer(0, length - 1))

    def read_of(self, array: Written) -> str:
        element = self.pick(*array.reads)
        if element.guard is not None and element.guard in self.held:
            return self.placed(element.text)
        if element.guard is None:
            return self.placed(element.text)
        return f"({self.placed(element.text)} if {element.guard} else {self.otherwise(array.dtype)})"

    def leaf(self, dtype: str) -> str:
        if self.inner and self.chance(20):
            index = self.pick(*self.inner)
            if self.chance(40) and self.rich:
                name, constant = f"r{len(self.readonly)}", self.integer(0, 1) - index.low
                self.add_readonly(name, dtype, (index.high + constant + 1 + self.integer(0, 1),), "tame")
                return f"{name}[{index.name} + {constant}]"
            return index.name
        return super().leaf(dtype)

    # -- statements --------------------------------------------------------------------------------------------------

    def body(self) -> tuple[list[str], dict[str, str]]:
        self.unwritten = [(array, write) for array in self.arrays for write in array.writes]
        lines = self.block(DEPTH, False)
        if len(self.unwritten) == sum(len(array.writes) for array in self.arrays):
            later, self.temporaries = self.temporaries, []
            lines = [*self.store(), *lines]  # a nest writes something
            self.temporaries = later
        while self.unwritten and not self.jumped:
            lines += self.store() if self.chance(50) else self.condition_around(DEPTH - 2, False)
        return lines, self.totals

    def block(self, depth: int, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self.pick(1, 1, 2, 2, 3)):
            lines += self.statement(depth, in_loop)
            if self.jumped:
                break
        return lines

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        self.left -= 1
        ways = ["store", "store", "scalar", "scalar"] + ["reduction"] * self.rich
        if depth > 0 and self.left > 0:
            ways += ["if", "if", "if", "for", "for", "while"]
        way = self.pick(*ways)
        if way == "if":
            return self.condition_around(depth, in_loop)
        if way == "for":
            return self.inner_for(depth)
        if way == "while":
            return self.inner_while(depth)
        if way == "scalar":
            return [self.scalar()]
        return self.reduced() if way == "reduction" else self.store()

    def store(self) -> list[str]:  # type: ignore[override]
        if self.unwritten and self.chance(80):
            array, write = self.unwritten.pop(0)
        else:
            array = self.pick(*self.arrays)
            write = self.pick(*array.writes)
        element = Element(write.array, write.dtype, self.placed(write.text), write.guard)
        return [super().store(array, element)]

    def scalar(self) -> str:
        """An assignment to a scalar, new or known."""
        flavour = self.pick("float64", self.arrays[0].dtype)
        value = (
            self.pick("0", "1", "0.0") if self.chance(30) else self.expression(flavour, self.integer(0, 2 * self.rich))
        )
        known = [name for name in self.temporaries if name.startswith("c") == (flavour in COMPLEX)]
        if known and self.chance(60):
            return f"{self.pick(*known)} {self.pick('=', '+=', '+=', '*=')} {value}"
        name = self.fresh("c" if flavour in COMPLEX else "x")
        self.temporaries.append(name)
        return f"{name} = {value}"

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def condition_around(self, depth: int, in_loop: bool) -> list[str]:
        """``if``, ``elif``, ``else``, of which some may end the iteration."""
        before, ends = list(self.temporaries), []
        guards = [e.guard for a in self.arrays for e in a.reads if e.guard is not None and e.guard not in self.held]
        lines = []
        arms = self.pick(1, 1, 2, 2, 3)
        has_else = arms > 1 and self.chance(70)
        negated = None
        for arm in range(arms):
            self.temporaries, self.jumped, held = list(before), False, list(self.held)
            if has_else and arm == arms - 1:
                head = "else:"
                if negated is not None:
                    self.held.append(negated)
            else:
                test = self.condition(self.pick(0, 1, 1))
                negated = None
                if guards and self.chance(40):
                    guard = self.pick(*guards)
                    way = self.pick("guard", "guard", "not", "and")
                    if way == "not":
                        test, negated = f"not ({guard})", guard
                    else:
                        test = guard if way == "guard" else f"{guard} and {test}"
                        self.held.append(guard)
                head = f"{'elif' if arm else 'if'} {test}:"
            lines += [head, *("    " + line for line in self.arm(depth, in_loop))]
            if not self.jumped:
                ends.append(self.temporaries)
            self.held = held
        if not has_else:
            ends.append(before)
        self.jumped = not ends
        self.temporaries = [name for name in before if all(name in end for end in ends)]
        if ends and has_else:
            self.temporaries = [name for name in ends[0] if all(name in end for end in ends)]
        return lines

    def arm(self, depth: int, in_loop: bool) -> list[str]:
        lines = self.block(depth - 1, in_loop) if self.chance(85) else []
        if not self.jumped and (not lines or self.chance(15)):
            lines.append(self.pick("continue", "break") if in_loop else "continue")
            self.jumped = True
        return lines

    def inner_for(self, depth: int) -> list[str]:
        plain = [
            (a, e) for a in self.arrays for e in a.reads if e.guard is None and a.local is None and a.dtype != "bool"
        ]
        if plain and self.chance(25):
            return self.over_offsets(*self.pick(*plain))
        index, text = self.inner_range()
        return self.loop(depth, f"for {index.name} in range({text}):", [], index)

    def over_offsets(self, array: Written, element: Element) -> list[str]:
        """A loop over offsets, of which one reads an element that may be read."""
        name, low = self.fresh("d"), self.integer(-2, 0)
        offset = low + self.integer(0, 2)
        first, rest = element.text.split("[")[1][:-1].split(", ")[0], element.text.split(", ")[1:]
        moved = f"{array.name}[{', '.join([f'{first} + {name} - {offset}'.replace('- -', '+ '), *rest])}"
        moved += "" if rest else "]"
        x = self.fresh("c" if array.dtype in COMPLEX else "x")
        lines = [
            f"{x} = {self.pick('0', '0.0') if array.dtype in FRACTIONAL else '0'}",
            f"for {name} in range({low}, {low + 3}):",
        ]
        if self.chance(50):
            lines += [f"    if {name} != {offset}:", "        continue", f"    {x} += {moved}"]
        else:
            lines += [f"    if {name} == {offset}:", f"        {x} += {moved}"]
        self.temporaries.append(x)
        return lines

    def inner_range(self) -> tuple[Inner, str]:
        name, step = self.fresh("m"), self.pick(1, 1, 1, -1, 2, -2, 3)
        low, count = self.pick(0, 0, 0, -1, 1), self.pick(2, 3, 1, 4, 0)
        high = low + count
        if self.chance(25):
            return self.range_by_outer(name, step)
        if step > 0:
            text = f"{low}, {high}" if low or self.chance(30) else str(high)
        else:
            text = f"{high - 1}, {low - 1}"
        if step != 1:
            text = f"{text if ', ' in text else f'0, {text}'}, {step}"
        return Inner(name, low, max(high - 1, low)), text

    def range_by_outer(self, name: str, step: int) -> tuple[Inner, str]:
        """A triangle, or a window that moves along."""
        k = self.integer(self.depth, len(self.loops) - 1)
        outer, low, high = self.loops[k].name, self.lowest[k], self.highest[k]
        if self.chance(50):  # a window
            first, last = (outer, f"{outer} + 3") if step > 0 else (f"{outer} + 2", f"{outer} - 1")
            inner = Inner(name, low, high + 2)
        else:
            start = max(low, high - 5)
            first, last = (str(start), f"{outer} + 1") if step > 0 else (outer, str(start - 1))
            inner = Inner(name, min(start, high), high)
        return inner, f"{first}, {last}" + (f", {step}" if step != 1 else "")

    def inner_while(self, depth: int) -> list[str]:
        name = self.fresh("n")
        test = f"{name} < {self.integer(1, 4)}"
        if self.chance(40):
            test = f"{test} and {self.condition(0)}"
        self.temporaries.append(name)
        lines = self.loop(depth, f"while {test}:", [f"    {name} += 1"], None)
        return [f"{name} = 0", *lines]

    def loop(self, depth: int, head: str, first: list[str], index: Inner | None) -> list[str]:
        before = list(self.temporaries)
        counters = [name for name in before if name.startswith("n")]
        # Nothing else counts a loop's iterations.
        self.temporaries = [name for name in before if name not in counters]
        self.inner += [index] if index is not None else []
        lines = [head, *first, *("    " + line for line in self.block(depth - 1, True))]
        if index is not None:
            self.inner.pop()
        self.temporaries, self.jumped = [name for name in before if name not in counters], False
        return lines

    # -- reductions --------------------------------------------------------------------------------------------------

    def reduced(self) -> list[str]:
        if self.chance(40):
            line, name, start = self.reduction(len(self.totals))
            self.totals[name] = start
            return [line]
        array = self.pick(*self.arrays)
        number, lines = len(self.totals), []
        value = self.expression(array.dtype, self.integer(0, 1))
        if array.dtype in COMPLEX:
            value = self.modulus(value)
        if self.chance(50):
            lines.append(f"y{number} = {value}")
            value = f"y{number}"
        value = f"({value})" if " " in value else value
        best = f"peak{number}"
        start = (
            self.pick("0.0", "-1e30", "1e30", "0.25")
            if array.dtype in FRACTIONAL
            else self.pick("0", "-100", "100", "2")
        )
        self.totals[best] = start
        operator = self.pick(">", "<", ">=", "<=")
        test = f"{value} {operator} {best}"
        if self.chance(30):
            test = f"{best} {operator.translate(str.maketrans('<>', '><'))} {value}"
        if self.chance(20):
            test = f"{self.condition(0)} and {test}"
        taken = [(best, value)]
        for loop in self.loops:
            if self.chance(60):
                taken.append((f"place{number}{loop.name}", loop.name))
        if self.inner and self.chance(60):
            taken.append((f"place{number}m", self.pick(*self.inner).name))
        if self.chance(30):
            taken.append((f"with{number}", self.leaf(array.dtype)))
        self.totals |= {name: "-1" if its.isidentifier() else start for name, its in taken[1:]}
        if len(taken) > 1 and self.chance(20):
            names, values = zip(*taken, strict=True)
            return [*lines, f"if {test}:", f"    {', '.join(names)} = {', '.join(values)}"]
        return [*lines, f"if {test}:", *(f"    {name} = {its}" for name, its in taken)]

    # -- imperfect nests ---------------------------------------------------------------------------------------------

    def nested(self, body: list[str]) -> list[str]:
        space = len(self.loops) - self.depth
        if not self.imperfect or space < 2:
            return super().nested(body)
        heads = self.loop_lines()
        place = self.integer(self.depth + 1, len(self.loops) - 1)
        self.cut = place
        indent = "    " * (place + 1)
        before = [f"{indent}z = {self.integer(0, 3)}", *heads[place:]]
        inside = ["    " * (len(self.loops) + 1) + line for line in body]
        if self.chance(50):
            inside.append("    " * (len(self.loops) + 1) + "z += 1")
        after = []
        if self.chance(50):
            self.totals["total99"] = "0"
            after = [f"{indent}total99 += z"]
        return [*heads[:place], *before, *inside, *after]

    def finish(self, body: list[str], totals: dict[str, str]) -> Case:
        self.cut = len(self.loops)
        case = super().finish(body, totals)
        return replace(case, loops=self.cut, extents=case.extents[: self.cut - self.depth])
