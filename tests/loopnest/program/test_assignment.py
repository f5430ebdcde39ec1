"""Which names surely have a value before a function's last loop, and which may have one: tables of small functions."""

from __future__ import annotations

import ast
import textwrap

import pytest

from lapwing.loopnest.program.variables.assignment import Assignments
from lapwing.loopnest.program.variables.liveness import first_reads

BEFORE_LAST_LOOP = {  # statements: what surely has a value beside u, and what may have one as well
    "nothing": ("for i in r: x = i", "", ""),
    "an assignment": ("x = 1\nfor i in r: pass", "x", ""),
    "one after it": ("for i in r: pass\nx = 1", "", ""),
    "one branch": ("if u: x = 1\nfor i in r: pass", "", "x"),
    "both branches": ("if u: x = 1\nelse: x = 2\nfor i in r: pass", "x", ""),
    "a branch that returns": ("if u: x = 1\nelse: return\nfor i in r: pass", "x", ""),
    "a loop before": ("for j in r: x = j\nfor i in r: pass", "", "j x"),
    "the loop around, before": ("for j in r:\n    x = j\n    for i in r: pass", "j x", "i"),
    "the loop around, after": ("while u:\n    for i in r: pass\n    x = 1", "", "i x"),
    "the loop itself in the round before": ("while u:\n    for i in r: x = i", "", "i x"),
    "a while loop before": ("while u: x = 1\nfor i in r: pass", "", "x"),
    "else of a loop": ("while u: x = 1\nelse: y = 1\nfor i in r: pass", "", "x y"),
    "deleted": ("x = 1\ndel x\nfor i in r: pass", "", "x"),
    "deleted in the round before": ("x = 1\nwhile u:\n    for i in r: pass\n    del x", "", "i x"),
    "an assignment that may be left out": ("u or (x := 1)\nfor i in r: pass", "", "x"),
    "in a test": ("if (x := u): pass\nfor i in r: pass", "x", ""),
    "tried": ("try: x = 1\nexcept ValueError: pass\nfor i in r: pass", "", "x"),
    "tried or handled": ("try: x = 1\nexcept ValueError: x = 2\nfor i in r: pass", "x", ""),
    "at last": ("try: u()\nfinally: x = 1\nfor i in r: pass", "x", ""),
    "with": ("with u as w: x = 1\nfor i in r: pass", "w x", ""),
    "a case": ("match u:\n    case [y]: x = 1\nfor i in r: pass", "", "x y"),
}


def function(body: str) -> ast.FunctionDef:
    tree = ast.parse(f"def f(u):\n{textwrap.indent(body, '    ')}").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def last_loop(tree: ast.AST) -> ast.For:
    return max((n for n in ast.walk(tree) if isinstance(n, ast.For)), key=lambda n: n.lineno)


@pytest.mark.parametrize(("body", "surely", "perhaps"), BEFORE_LAST_LOOP.values(), ids=BEFORE_LAST_LOOP)
def test_before_the_last_loop(body: str, surely: str, perhaps: str) -> None:
    tree = function(body)
    found = Assignments.of(tree).before(last_loop(tree))
    assert found.surely == {"u", *surely.split()}
    assert found.perhaps == {"u", *surely.split(), *perhaps.split()}


FIRST_READS = {
    "read": ("x = s", "r s"),
    "set before": ("s = 1\nx = s", "r"),
    "added to": ("s += 1", "r s"),
    "under a condition": ("if c: x = s", "r c"),
    "after a condition that may set it": ("if c: s = 1\nx = s", "r c"),
    "after a condition that may leave": ("if c: continue\nx = s", "r c"),
    "in an inner loop": ("for j in q: x = s", "r q s"),
    "in an inner while loop": ("while w: x = s + i", "r w s"),
}


@pytest.mark.parametrize(("body", "read"), FIRST_READS.values(), ids=FIRST_READS)
def test_what_a_first_iteration_reads(body: str, read: str) -> None:
    tree = function(f"for i in r:\n{textwrap.indent(body, '    ')}")
    loop = tree.body[0]
    assert isinstance(loop, ast.For)
    assert first_reads(loop) == set(read.split())
