"""Ranges that have a name: the loops go over the same numbers."""

from __future__ import annotations

import ast
from functools import partial

import pytest
import trees
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.loopnest.normalisation.range_variables import with_ranges

tree = partial(trees.tree, parameters="n, m, seen")


def statements(body: str) -> str:
    return "\n".join(ast.unparse(statement) for statement in with_ranges(tree(body)).body)


MOST_SEEN = 2000  # loops over ranges that grow in them may go round for ever


class Enough(Exception):
    pass


def seen(node: ast.FunctionDef, n: int, m: int) -> list[object]:
    """What a function notes, and the error that ends it."""
    found: list[object] = []
    names: dict[str, object] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([node], [])), "<tree>", "exec"), names)

    def note(value: object) -> None:
        found.append(value)
        if len(found) == MOST_SEEN:
            raise Enough

    try:
        names["f"](n, m, note)  # type: ignore[operator]
    except UnboundLocalError:
        found.append("unbound")
    except Enough:
        pass
    return found


def test_a_range_that_stays() -> None:
    assert statements("rows = range(1, n)\nfor i in rows:\n    seen(i)") == "pass\nfor i in range(1, n):\n    seen(i)"


def test_a_direction_that_a_condition_chooses() -> None:
    body = "if n > m:\n    rows = range(n)\nelse:\n    rows = range(n - 1, -1, -1)\nfor i in rows:\n    seen(i)"
    assert "for i in range(rows_start, rows_stop, rows_step)" in statements(body)


def test_bounds_that_have_changed_since() -> None:
    found = statements("rows = range(n)\nn = 7\nfor i in rows:\n    seen(i)")
    assert "for i in range(rows_start, rows_stop, rows_step)" in found


@pytest.mark.parametrize(
    "body",
    [
        "rows = range(n)\nseen(rows)\nfor i in rows:\n    seen(i)",
        "rows = range(n)\nfor i in rows:\n    seen(i)\nseen(len(rows))",
        "rows = [1, 2]\nfor i in rows:\n    seen(i)",
        "rows = range(n)\nrows = [1]\nfor i in rows:\n    seen(i)",
        "n = range(3)\nfor i in n:\n    seen(i)",
    ],
)
def test_names_that_stay(body: str) -> None:
    assert ast.dump(with_ranges(tree(body))) == ast.dump(tree(body))


@st.composite
def bodies(draw: st.DrawFn, depth: int = 3) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["range", "range", "loop", "loop", "number", "if", "while"]))
        name, number = draw(st.sampled_from("rs")), draw(st.sampled_from(["n", "m", "k"]))
        if kind == "number":
            lines.append(f"{number} = {draw(st.sampled_from(['n', 'm', '3', 'n + 1', 'm - 1']))}")
        elif kind == "range":
            text = draw(st.sampled_from([f"range({number})", f"range(1, {number})", f"range({number}, 0, -1)"]))
            if draw(st.booleans()):
                text = f"{text} if {number} > 2 else range(2)"
            lines.append(f"{name} = {text}")
        elif depth:
            head = {"loop": f"for i{depth} in {name}:", "if": f"if {number} > 2:"}.get(
                kind, f"for w{depth} in range(2):"
            )
            inner = draw(bodies(depth=depth - 1))
            lines += [head, *("    " + line for line in inner)]
            if kind == "loop":
                lines.append(f"    seen(i{depth})")
    return lines or ["pass"]


@settings(max_examples=150, deadline=None)
@given(bodies(), st.integers(0, 4), st.integers(0, 4))
def test_the_same_numbers(lines: list[str], n: int, m: int) -> None:
    before = tree("\n".join(["k = 2", "r = range(2)", "s = range(m)", *lines]))
    right = seen(before, n, m)
    assert seen(with_ranges(before), n, m)[: len(right)] == right
