"""Loops over numbers in the text are unrolled."""

from __future__ import annotations

import ast
import builtins

import pytest
from trees import tree

from lapwing.loopnest.normalisation.tuple_loops import MOST_COPIES, unrolled


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


AROUND = {"STEPS": [1, -1], "OFFSETS": ((-1, 0), (0, 2)), "W": (0.5, 0.25), "NAMES": ["a", "b"]}


def meaning(name: str) -> object:
    return AROUND.get(name, getattr(builtins, name, None))


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("for d in STEPS:\n    u[d] = d", "u[1] = 1\nu[-1] = -1\nd = -1"),
        ("for a, b in OFFSETS:\n    u[a, b] = 1", "u[-1, 0] = 1\nu[0, 2] = 1\na = 0\nb = 2"),
        ("for o in OFFSETS:\n    u[o[0]] = o[1]", "u[-1] = 0\nu[0] = 2"),
        ("for k, w in enumerate(W):\n    u[k] = w", "u[0] = 0.5\nu[1] = 0.25\nk = 1\nw = 0.25"),
        (
            "for w, (a, b) in zip(W, OFFSETS):\n    u[a, b] = w",
            "u[-1, 0] = 0.5\nu[0, 2] = 0.25\nw = 0.25\na = 0\nb = 2",
        ),
        ("for k in range(2):\n    u[STEPS[k]] = OFFSETS[k][1]", "u[1] = 0\nu[-1] = 2\nk = 1"),
        ("for k in range(len(W)):\n    u[k] = W[(k + 1) % 2]", "u[0] = 0.25\nu[1] = 0.5\nk = 1"),
        ("rows = [3, 4]\nfor r in rows:\n    u[r] = 1", "u[3] = 1\nu[4] = 1\nr = 4"),
    ],
)
def test_rows_with_names(body: str, after: str) -> None:
    found = unrolled(tree(body), meaning)
    assert "\n".join(ast.unparse(statement) for statement in found.body) == after


@pytest.mark.parametrize(
    "body",
    [
        "for d in NAMES:\n    u[d] = 1",
        "STEPS = n\nfor d in STEPS:\n    u[d] = 1",
        "rows = [3, 4]\nrows.append(n)\nfor r in rows:\n    u[r] = 1",
        "rows = [3, 4]\nif n:\n    rows = [5]\nfor r in rows:\n    u[r] = 1",
        "for o in OFFSETS:\n    u[o[0]] = 1\nn(o)",
        "enumerate = n\nfor k, w in enumerate(W):\n    u[k] = w",
        "for k in range(3):\n    u[k] = 1",
        "for k in range(2):\n    STEPS[k] = 0",
        "STEPS.append(4)\nfor d in STEPS:\n    u[d] = 1",
        "H = STEPS\nfor d in STEPS:\n    u[d] = 1",
        "for d in w:\n    u[d] = 1\nw = (1, v[0])\nv = w",
        "w = [[1, 2], [3, 4]]\nr = w[0]\nfor a, b in w:\n    u[a] = b",
        "w = [[1, 2], [3, 4]]\nfor r in w:\n    r[0] = 9",
    ],
)
def test_rows_that_stay(body: str) -> None:
    assert ast.dump(unrolled(tree(body), meaning)) == ast.dump(tree(body))


@pytest.mark.parametrize(
    "body",
    [
        "for d in (1, 2):\n    for k in u:\n        n = k\n    else:\n        break",
        "for d in (1, 2):\n    d = 3",
        "for d in (1, n):\n    u[d] = 1",
        "for d in (1, 2):\n    u[d] = 1\nelse:\n    u[0] = 1",
        "for a, b in (1, 2):\n    u[a] = b",
        f"for d in {tuple(range(MOST_COPIES + 1))}:\n    u[d] = 1",
    ],
)
def test_loops_that_stay(body: str) -> None:
    assert [ast.dump(s) for s in unrolled(tree(body)).body] == [ast.dump(s) for s in tree(body).body]


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            "for d in (1, 2):\n    if u[d] > n:\n        u[0] = d\n        break",
            "stopped = False\nif u[1] > n:\n    u[0] = 1\n    stopped = True\n    pass\n"
            "if not stopped:\n    if u[2] > n:\n        u[0] = 2\n        stopped = True\n        pass",
        ),
        (
            "for d in (1, 2):\n    if u[d] > n:\n        break\nu[0] = d",
            "stopped = False\nd = 1\nif u[1] > n:\n    stopped = True\n    pass\n"
            "if not stopped:\n    d = 2\n    if u[2] > n:\n        stopped = True\n        pass\nu[0] = d",
        ),
    ],
)
def test_copies_behind_one_that_ends_the_loop_are_done_where_none_has(body: str, after: str) -> None:
    assert "\n".join(ast.unparse(statement) for statement in unrolled(tree(body)).body) == after


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
