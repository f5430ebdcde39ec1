"""What loops return stands behind them, and functions do what they did."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest
from randomness import first_seed, wanted
from trees import tree

from lapwing.loopnest.normalisation.single_exits import with_single_exits


def test_what_becomes_of_it() -> None:
    found = with_single_exits(tree("for i in x:\n    if i > n:\n        return i\n    n += 1\nreturn 0", "x, n"))
    assert "\n".join(map(ast.unparse, found.body)) == (
        "left = 0\nfor i in x:\n    if i > n:\n        left = 1\n        break\n    n += 1\n"
        "if left == 1:\n    return i\nreturn 0"
    )


def test_out_of_two_loops() -> None:
    found = with_single_exits(tree("for i in x:\n    while n:\n        return i", "x, n"))
    assert "\n".join(map(ast.unparse, found.body)) == (
        "left_2 = 0\nfor i in x:\n    left = 0\n    while n:\n        left = 1\n        break\n"
        "    if left == 1:\n        left_2 = 1\n        break\nif left_2 == 1:\n    return i"
    )


@pytest.mark.parametrize(
    "text",
    [
        "for i in x:\n    n += i\nreturn n",
        "for i in x:\n    with n:\n        return i",
        "for i in x:\n    try:\n        return i\n    finally:\n        n = 2",
        "for i in x:\n    def g():\n        return i",
        "for i in x:\n    n = 1\nelse:\n    return n",
    ],
)
def test_what_stays(text: str) -> None:
    assert ast.dump(with_single_exits(tree(text, "x, n"))) == ast.dump(tree(text, "x, n"))


class _Writer:
    """Functions whose statements note where they are, and whose loops are left in all ways."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def block(self, depth: int, loops: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth, loops)]

    def statement(self, depth: int, loops: int) -> list[str]:
        self.names += 1
        number = self.names
        kinds = [
            "note",
            "return",
            *(["break", "continue"] if loops else []),
            *(["if", "for", "while", "try"] * (depth > 0)),
        ]
        match self.random.choice(kinds):
            case "note":
                return [f"found.append(({number}, k))"]
            case "return":
                return self.sometimes(self.random.choice(("return", f"return {number}, k", "return k + len(found)")))
            case "break" | "continue" as jump:
                return self.sometimes(jump)
            case "if":
                lines = [f"if {self.test()}:", *indented(self.block(depth - 1, loops))]
                return [
                    *lines,
                    *(["else:", *indented(self.block(depth - 1, loops))] if self.random.random() < 0.5 else []),
                ]
            case "for":
                head, before = f"for k in range({self.random.randint(0, 4)}):", []
            case "while":
                head, before = f"while w{number} < {self.random.randint(0, 4)}:", [f"w{number} = 0"]
            case _:
                return ["try:", *indented(self.block(depth - 1, loops)), "finally:", f"    found.append(({number}, k))"]
        own = [f"    w{number} += 1"] if before else []
        lines = [*before, head, *own, *indented(self.block(depth - 1, loops + 1))]
        return [*lines, *(["else:", *indented(self.block(depth - 1, loops))] if self.random.random() < 0.3 else [])]

    def test(self) -> str:
        return self.random.choice(("(n + k) % 3 == 0", "len(found) > n", "k == n", "n > 1"))

    def sometimes(self, jump: str) -> list[str]:
        return [f"if {self.test()}:", f"    {jump}"] if self.random.random() < 0.8 else [jump]


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _runs(function: ast.FunctionDef) -> list[Any]:
    """What a function gives, and where it has been on its way."""
    names: dict[str, Any] = {}
    exec(ast.unparse(function), names)
    runs = []
    for n in range(5):
        found: list[Any] = []
        runs.append((names["f"](found, n), found))
    return runs


def check(first: int, examples: int) -> None:
    moved = 0
    for seed in range(first, first + examples):
        text = "\n".join(["k = 0", *_Writer(seed).block(4, 0), *_Writer(-1 - seed).block(4, 0), "return found[-1:]"])
        plain = tree(text, "found, n")
        changed = with_single_exits(plain)
        moved += ast.dump(changed) != ast.dump(plain)
        assert _runs(changed) == _runs(plain), text
    assert moved > examples // 4


def test_functions_do_what_they_did() -> None:
    check(1000 * first_seed(), wanted(100))


@pytest.mark.long
def test_functions_do_what_they_did_at_length() -> None:
    check(1_000_000 * (1 + first_seed()), wanted(20000))
