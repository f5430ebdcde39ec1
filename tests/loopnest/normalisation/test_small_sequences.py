"""Comprehensions over known sequences are written out, and small lists of scalars become variables."""

from __future__ import annotations

import ast
import builtins
import random
from typing import Any

import pytest
from everyday import one_of
from trees import tree

from lapwing.loopnest.normalisation.aggregates import with_scalars
from lapwing.loopnest.normalisation.comprehensions import expanded
from lapwing.loopnest.normalisation.tuple_loops import unrolled

AROUND: dict[str, object] = {"W": (0.5, 0.25), "OFFSETS": [(0, 1), (1, 0)]}


def meaning(name: str) -> object:
    return AROUND.get(name, getattr(builtins, name, None))


def normalised(node: ast.FunctionDef) -> ast.FunctionDef:
    return with_scalars(unrolled(expanded(node, meaning), meaning), meaning)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("v = [u[k] * 2 for k in (-1, 1)]\nn(v)", "v = [u[-1] * 2, u[1] * 2]\nn(v)"),
        ("v = [k * k - 1 for k in range(3)]\nn(v)", "v = [-1, 0, 3]\nn(v)"),
        ("v = [1 / 4, 2]\nn(v)", "v = [0.25, 2]\nn(v)"),
        ("s = sum(w * u[k] for k, w in enumerate(W))", "s = sum((0.5 * u[0], 0.25 * u[1]))"),
        ("s = max(u[a] for a, b in OFFSETS)", "s = max((u[0], u[1]))"),
        ("s = any(u[k] for k in range(2))", "s = bool(u[0]) or bool(u[1])"),
        ("s = all(u[k] for k in range(2) if k > 0)", "s = bool(u[1])"),
        ("s = any(u[k] for k in range(2) if k > 5)", "s = any(())"),
        ("v = [0.0] * 3\nn(v)", "v = [0.0, 0.0, 0.0]\nn(v)"),
    ],
)
def test_written_out(body: str, after: str) -> None:
    found = [ast.unparse(statement) for statement in expanded(tree(body), meaning).body]
    assert "\n".join(found).replace("any(())", "False") == after.replace("any(())", "False")


@pytest.mark.parametrize(
    "body",
    [
        "v = [u[k] for k in range(n)]",
        "v = [k for k in u]",
        "v = [u[k] for k in range(3) if u[k]]",
        "v = [(k := j) for j in range(3)]",
        "v = [[k for k in range(n)] for k in range(2)]",
        "any = n\ns = any(u[k] for k in range(2))",
        "s = min((u[k] for k in range(2)), default=3)",
        "v = [n + w for w, in OFFSETS]",
    ],
)
def test_comprehensions_that_stay(body: str) -> None:
    assert ast.dump(expanded(tree(body), meaning)) == ast.dump(tree(body))


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            "for i in range(n):\n    r = [u[i], 2.0]\n    u[i] = r[0] + r[-1]",
            "for i in range(n):\n    r_0 = u[i]\n    r_1 = 2.0\n    u[i] = r_0 + r_1",
        ),
        (
            "for i in range(n):\n    r = (u[i], i)\n    u[i] = max(r)\n    r = (r[1], r[0])",
            "for i in range(n):\n    r_0 = u[i]\n    r_1 = i\n    u[i] = max(r_0, r_1)\n    r_0, r_1 = (r_1, r_0)",
        ),
        (
            "for i in range(n):\n    r = [[i, 1], [u[i], 2]]\n    u[i] = r[1][0]\n    r[0][1] = 3",
            "for i in range(n):\n    r_0_0 = i\n    r_0_1 = 1\n    r_1_0 = u[i]\n    r_1_1 = 2\n    u[i] = r_1_0\n    r_0_1 = 3",
        ),
        (
            "r_0 = 1\nfor i in range(n):\n    r = [u[i], i]\n    a, b = r\n    u[i] = any(r)",
            "r_0 = 1\nfor i in range(n):\n    r_0_2 = u[i]\n    r_1 = i\n    a, b = (r_0_2, r_1)\n"
            "    u[i] = bool(r_0_2) | bool(r_1)",
        ),
    ],
)
def test_scalars(body: str, after: str) -> None:
    assert "\n".join(ast.unparse(statement) for statement in with_scalars(tree(body), meaning).body) == after


@pytest.mark.parametrize(
    "uses",
    [
        "u[i] = r[i]",
        "u[i] = r[2]",
        "n(r)",
        "r.append(3)",
        "s = r",
        "r = [1]",
        "r += [1]",
        "del r[0]",
        "u[i] = r[0][1]",
        "u[i] = r[0:1]",
        "g = lambda: r",
        "for r in u:\n        u[i] = 1",
        "u[i] = u[r[0], r]",
    ],
)
def test_lists_that_stay(uses: str) -> None:
    node = tree(f"for i in range(n):\n    r = [u[i], i]\n    {uses}")
    assert ast.dump(with_scalars(node, meaning)) == ast.dump(node)


def test_no_element_of_a_tuple_is_set() -> None:
    node = tree("for i in range(n):\n    r = (u[i], i)\n    r[0] = 3")
    assert ast.dump(with_scalars(node, meaning)) == ast.dump(node)


class Writer:
    """Writes functions that make, change, go over and reduce small lists."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, names: list[str]) -> str:
        return self.random.choice([*names, *names, "u[i]", "u[i - 1]", "0.5", "2", "-1", "W[1]"])

    def expression(self, names: list[str]) -> str:
        kind = self.random.random()
        if kind < 0.5:
            return f"{self.number(names)} {self.random.choice('+-*')} {self.number(names)}"
        return self.number(names)

    def function(self) -> str:
        lines = ["def f(u, n):", "    x = 0", "    for i in range(n):"]
        size = self.random.randint(1, 4)
        names = ["x", "i"]
        elements = ", ".join(self.expression(names) for _ in range(size))
        made = self.random.choice(
            [f"[{elements}]", f"({elements},)", f"[{self.expression([*names, 'k'])} for k in range({size})]"]
        )
        lines.append(f"        r = {made}")
        for _ in range(self.random.randint(1, 5)):
            lines += ["        " + line for line in self.statement(names, size, made.startswith("["))]
        return "\n".join([*lines, "    return x"])

    def statement(self, names: list[str], size: int, is_list: bool) -> list[str]:
        place = self.random.randint(-size - (self.random.random() < 0.05), size - 1)
        test = self.random.choice(["r[0] > x", "p < 1", "p"])
        choices = [
            [f"x = r[{place}] + x * 0.5"],
            [f"x = {self.random.choice(['sum', 'min', 'max'])}(r) - x"],
            [f"x = x + (1 if {self.random.choice(['any', 'all'])}(q > 0 for q in r) else 0)"],
            [
                "for p in r:",
                f"    if {test}:",
                "        continue",
                f"    x = x * 0.5 + {self.expression([*names, 'p'])}",
            ],
            ["for p, q in zip(r, r[1:]):", "    x = x * 0.25 + p - q"],
            ["for k, p in enumerate(r[::-1]):", "    x = x * 0.5 + p * k", "p = 0"],
            [f"for k in range({size}):", "    x = x * 0.5 + r[k] * k"],
            [f"u[i] = sum(v * {self.number(names)} for v in r)"],
            ["x = x + len(r)"],
        ]
        if is_list:
            choices += [[f"r[{place}] = {self.expression(names)}"], ["r = [q * 0.5 for q in r]"]]
        return self.random.choice(choices)


@pytest.mark.parametrize("seed", one_of(2, range(4)))
def test_random_lists(seed: int) -> None:
    changed = 0
    for number in range(60):
        text = Writer(seed * 60 + number).function()
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef)
        new = normalised(node)
        changed += ast.dump(new) != ast.dump(node)
        assert run(ast.unparse(new)) == run(text), text
    assert changed > 30


def run(text: str) -> str:
    names: dict[str, Any] = dict(AROUND)
    exec(text, names)
    u = [0.5, -1.25, 3, 0.0, 7.5]
    try:
        return repr((names["f"](u, 5), u))
    except (IndexError, NameError, TypeError) as error:
        return type(error).__name__
