"""Random helpers called from random nests, against plain Python."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from everyday import one_of

import lapwing as lw
from lapwing.loopnest.source import FunctionSource

PER_TEST = 2  # functions in a file


class Writer:
    """Writes helpers and a function that calls them; names of helpers and of the function's own variables are often the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.helpers: list[str] = []
        self.procedures: list[
            tuple[str, bool]
        ] = []  # which store to the second array they are passed; whether they return one

    def source(self) -> str:
        lines = ["SCALE = 0.75", "COUNT = 3", ""]
        for k in range(self.random.randint(2, 5)):
            lines += self.helper(f"h{k}")
            self.helpers.append(f"h{k}")
        for k in range(self.random.choice([0, 1, 1, 2])):
            lines += self.procedure(f"p{k}")
        return "\n".join([*lines, *self.function()]) + "\n"

    def helper(self, name: str) -> list[str]:
        names = ["w", "i", "a", "b"]  # an array, an index, and two numbers
        if self.random.random() < 0.4:
            return [f"def {name}(w, i, a, b=0.5):", f"    return {self.expression(names, 3)}", ""]
        body, names = self.statements(names, 2)
        return [f"def {name}(w, i, a, b=0.5):", *body, f"    return {self.expression(names, 2)}", ""]

    def procedure(self, name: str) -> list[str]:
        names, returns = ["w", "i", "a"], self.random.random() < 0.4
        body: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            body += self.stores(names)
        if self.random.random() < 0.4:
            value = f" {self.expression(names, 1)}" if returns else ""
            body += [f"    if {self.condition(names)}:", f"        return{value}", *self.stores(names)]
        if self.procedures and self.random.random() < 0.5:
            body.append(f"    {self.called(names, 'z')}")
        if returns:
            body.append(f"    return {self.expression(names, 1)}")
        self.procedures.append((name, returns))
        return [f"def {name}(w, z, i, a):", *body, ""]

    def stores(self, names: list[str]) -> list[str]:
        place = self.random.choice(["i", "i - 1", "i + 1"])
        store = f"z[{place}] {self.random.choice(['=', '+=', '*='])} 0.5 * {self.expression(names, 2)}"
        kind = self.random.random()
        if kind < 0.3:
            return [f"    if {self.condition(names)}:", f"        {store}"]
        if kind < 0.6:
            index = self.random.choice(["k", "m"])
            end = self.random.choice(["3", "len(z)", "20"])
            within = [*names, f"{index} * 0.01"]
            return [
                f"    for {index} in range({end}):",
                f"        z[{index}] = z[{index}] * 0.5 + {self.expression(within, 1)}",
            ]
        return [f"    {store}"]

    def called(self, names: list[str], array: str) -> str:
        """A procedure that stores to an array."""
        name, returns = self.random.choice(self.procedures)
        source = self.random.choice(["w"] if "w" in names else ["u", "v"])
        call = f"{name}({source}, {array}, i, {self.expression(names, 1)})"
        return f"{self.random.choice(['d', 'x'])} = {call}" if returns else call

    def statements(self, names: list[str], level: int) -> tuple[list[str], list[str]]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.5:
                name = self.random.choice(["a", "b", "x", "y", "d"])
                lines.append(f"    {name} = {self.expression(names, 2)}")
                names = [*names, name]
            elif kind < 0.7 and level:
                body, _ = self.statements(names, level - 1)
                lines += [f"    if {self.condition(names)}:", *("    " + line for line in body)]
                if self.random.random() < 0.7:
                    lines.append(f"        return {self.expression(names, 1)}")
            elif kind < 0.8:
                lines += [f"    if {self.condition(names)}:", f"        return {self.expression(names, 1)}"]
            elif kind < 0.9 and level:
                lines += self.loop(names)
            else:
                lines.append(f"    a += {self.expression(names, 1)}")
        return lines, names

    def loop(self, names: list[str]) -> list[str]:
        """A loop that may return, from inside another one, too."""
        index = self.random.choice(["k", "m"])
        inside = [*names, f"{index} * 0.5"]
        returned = [f"        if {self.condition(inside)}:", f"            return {self.expression(inside, 1)}"]
        if self.random.random() < 0.4:
            other = "m" if index == "k" else "k"
            within = [*inside, f"{other} * 0.5"]
            inner = [
                f"        for {other} in range({self.random.randint(1, 2)}):",
                f"            b = {self.expression(within, 1)}",
            ]
            inner += [
                f"            if {self.condition(within)}:",
                f"                return {self.expression(within, 1)}",
            ]
            returned = [*inner, *(returned if self.random.random() < 0.5 else [])]
        first = [f"    for {index} in range({self.random.randint(1, 3)}):", f"        a = {self.expression(inside, 1)}"]
        return [*first, *returned]

    def expression(self, names: list[str], level: int) -> str:
        kind = self.random.random() if level else 1.0
        if kind < 0.4:
            return (
                f"({self.expression(names, level - 1)} {self.random.choice('+-*')} {self.expression(names, level - 1)})"
            )
        if kind < 0.5:
            return f"({self.expression(names, level - 1)} if {self.condition(names)} else {self.expression(names, level - 1)})"
        if kind < 0.6:
            return f"max({self.expression(names, level - 1)}, {self.expression(names, level - 1)})"
        if kind < 0.85 and self.helpers:
            return self.call(names, level - 1)
        numbers = [name for name in dict.fromkeys(names) if name not in ("w", "i", "u", "v", "n")]
        return self.random.choice([*numbers, *numbers, "0.25", "SCALE", self.element(names)])

    def element(self, names: list[str]) -> str:
        array = "w" if "w" in names else self.random.choice("uv")
        return f"{array}[i{self.random.choice(['', ' - 1', ' + 1'])}]"

    def call(self, names: list[str], level: int) -> str:
        array = "w" if "w" in names else "u"
        first = self.expression(names, level)
        second = self.random.choice(["", f", {self.expression(names, level)}", f", b={self.expression(names, level)}"])
        return f"{self.random.choice(self.helpers)}({array}, i, {first}{second})"

    def condition(self, names: list[str]) -> str:
        simple = f"{self.expression(names, 1)} {self.random.choice(['<', '>', '<='])} {self.expression(names, 1)}"
        kind = self.random.random()
        if kind < 0.2:
            return f"{simple} {self.random.choice(['and', 'or'])} {self.expression(names, 1)} < 0.5"
        return f"{simple} < {self.expression(names, 1)}" if kind < 0.3 else simple

    def function(self) -> list[str]:
        lines = ["def f(u, v, c, n):", "    for i in range(1, n - 1):"]
        names = ["u", "i", "c"]
        for name in self.random.sample(["a", "x", "d", "h0_a", "value"], 2):
            lines.append(f"        {name} = {self.expression(names, 3)}")
            names.append(name)
        if self.procedures:
            lines += [f"        if {self.condition(names)}:"] * (self.random.random() < 0.3)
            lines.append(("    " if lines[-1].endswith(":") else "") + f"        {self.called(names, 'v')}")
        if self.random.random() < 0.5:
            lines += [f"        if {self.condition(names)}:", f"            v[i] = {self.expression(names, 3)}"]
        lines.append(f"        v[i] = v[i - 1] * 0.25 + {self.call(names, 2)}")
        return lines


@pytest.mark.parametrize("seed", one_of(24, range(24)))
def test_random_helpers(seed: int, tmp_path: Path) -> None:
    ran = 0
    for number in range(PER_TEST):
        text = Writer(seed * PER_TEST + number).source()
        path = tmp_path / f"helpers_{number}.py"
        path.write_text(text)
        module: Any = ModuleType(path.stem)
        exec(compile(text, str(path), "exec"), vars(module))
        tree = FunctionSource.of(module.f).tree
        again: dict[str, Any] = dict(vars(module))
        tree.decorator_list = []
        exec(compile(ast.unparse(tree), "inlined", "exec"), again)
        expected = run(module.f)
        assert np.array_equal(run(again["f"]), expected, equal_nan=True), text
        nest = lw.nest(module.f)
        if refused := "".join(map(str, nest.refusals)):
            assert "cannot be inlined" not in refused or "it is too long" in refused, text
            continue
        try:
            found = run(nest)
        except lw.RefusedError as refused:
            if "share memory" in str(refused):  # a procedure that is called, and passed an array as two
                continue
            raise
        assert np.array_equal(found, expected, equal_nan=True), text
        ran += 1
    assert ran >= PER_TEST // 2


def run(function: Any) -> np.ndarray:
    u, v = (np.random.default_rng(k).uniform(-1, 1, 20) for k in range(2))
    with np.errstate(all="ignore"):
        function(u, v, 0.5, 20)
    return v
