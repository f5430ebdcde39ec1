"""Loops over numbers in the text are unrolled."""

from __future__ import annotations

import ast
import textwrap

import pytest

from lapwing.loopnest.tuple_loops import MOST_COPIES, unrolled


def tree(body: str) -> ast.FunctionDef:
    node = ast.parse("def f(u, n):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def statements(body: str) -> list[str]:
    return [ast.unparse(statement) for statement in unrolled(tree(body)).body]


def test_every_number_in_its_place() -> None:
    assert statements("for d in (1, -1):\n    u[d] = u[d] + d") == [
        "u[1] = u[1] + 1",
        "u[-1] = u[-1] + -1",
        "d = -1",
    ]


def test_rows_of_numbers() -> None:
    assert statements("for a, b in ((1, 0), (0, 2)):\n    u[a] = b") == ["u[1] = 0", "u[0] = 2", "a = 0", "b = 2"]


def test_loops_in_each_other() -> None:
    found = statements("for a in (0, 1):\n    for b in [5, 6]:\n        u[a] = b")
    assert found == ["u[0] = 5", "u[0] = 6", "b = 6", "u[1] = 5", "u[1] = 6", "b = 6", "a = 1"]


def test_what_follows_a_continue() -> None:
    found = statements("for d in (0, 1):\n    if d == 0:\n        continue\n    u[d] = 1")
    assert found[0] == "if 0 == 0:\n    pass\nelse:\n    u[0] = 1"


def test_a_condition_that_is_known() -> None:
    found = statements("for d in (1, -1):\n    u[0] = n if d > 0 else 1 if n > d else 0")
    assert found[:2] == ["u[0] = n", "u[0] = 1 if n > -1 else 0"]


@pytest.mark.parametrize(
    "body",
    [
        "for d in (1, 2):\n    break",
        "for d in (1, 2):\n    d = 3",
        "for d in (1, n):\n    u[d] = 1",
        "for d in (1, 2):\n    u[d] = 1\nelse:\n    u[0] = 1",
        "for a, b in (1, 2):\n    u[a] = b",
        f"for d in {tuple(range(MOST_COPIES + 1))}:\n    u[d] = 1",
    ],
)
def test_loops_that_stay(body: str) -> None:
    assert [ast.dump(s) for s in unrolled(tree(body)).body] == [ast.dump(s) for s in tree(body).body]


def test_the_bits_of_the_loop() -> None:
    body = """
    s = 0
    for a in (2, -3):
        for b in (0, 1, 2):
            if a * b == 2:
                continue
            s = s * 7 + a + b
    return s
    """
    names: dict[str, object] = {}
    exec(ast.unparse(tree(body)), names)
    plain = names["f"]
    exec(ast.unparse(unrolled(tree(body))), names)
    assert plain(None, 0) == names["f"](None, 0)  # type: ignore[operator]
