"""The else of a loop inside of another comes after it."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from trees import tree

from lapwing.loopnest.normalisation.loop_else import without_else


def test_what_becomes_of_it() -> None:
    found = without_else(
        tree("for i in x:\n    for k in x:\n        if k:\n            break\n    else:\n        n(i)", "x, n")
    )
    assert ast.unparse(found.body[0]) == (
        "for i in x:\n    is_broken = 0\n    for k in x:\n        if k:\n            is_broken = 1\n            break\n"
        "    if is_broken == 0:\n        n(i)"
    )


def test_without_a_break_it_comes_after_the_loop() -> None:
    found = without_else(tree("for i in x:\n    while n:\n        pass\n    else:\n        n = 1", "x, n"))
    assert ast.unparse(found.body[0]) == "for i in x:\n    while n:\n        pass\n    n = 1"


def test_the_outermost_loop_stays() -> None:
    text = "for i in x:\n    if i:\n        break\nelse:\n    n = 1"
    assert ast.dump(without_else(tree(text, "x, n"))) == ast.dump(tree(text, "x, n"))


@pytest.mark.parametrize("n", range(7))
def test_it_does_the_same(n: int) -> None:
    body = """
    found = []
    for i in range(4):
        for k in range(3):
            for m in range(2):
                if m * i == n:
                    break
                found.append((i, k, m))
            else:
                if k + i == n:
                    break
                continue
            found.append((i, k))
        else:
            found.append(i)
            if i == n:
                break
    return found
    """
    names: dict[str, Any] = {}
    exec(ast.unparse(tree(body, "x, n")), names)
    plain = names["f"](None, n)
    exec(ast.unparse(without_else(tree(body, "x, n"))), names)
    assert names["f"](None, n) == plain
