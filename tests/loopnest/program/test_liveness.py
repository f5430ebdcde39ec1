"""Which names a function's statements read, assign and leave to others: tables of small functions."""

from __future__ import annotations

import ast
import textwrap

import pytest

from lapwing.loopnest.program.variables.liveness import Liveness, exposed_reads
from lapwing.loopnest.program.variables.names import captured_names, free_names, local_names


def function(body: str, signature: str = "u") -> ast.FunctionDef:
    tree = ast.parse(f"def f({signature}):\n{textwrap.indent(textwrap.dedent(body), '    ')}").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def loops(tree: ast.AST) -> list[ast.For]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.For)]


LIVE_AFTER_LOOP = {
    "nothing follows": ("for i in r: x = i", set()),
    "read after it": ("for i in r: x = i\nreturn x", {"x"}),
    "assigned before it is read": ("for i in r: x = i\nx = 1\nreturn x", set()),
    "assigned in one branch only": ("for i in r: x = i\nif u: x = 1\nreturn x", {"x", "u"}),
    "assigned in both branches": ("for i in r: x = i\nif u: x = 1\nelse: x = 2\nreturn x", {"u"}),
    "the index": ("for i in r: x = i\nreturn i", {"i"}),
    "in the next round": ("while u:\n    y = x\n    for i in r: x = i\n", {"u", "x", "r"}),
    "in the test of the next round": ("while x > 0:\n    for i in r: x = i\n", {"x", "r"}),
    "not in the next round": ("while u:\n    x = 0\n    for i in r: x = i\n", {"u", "r"}),
    "behind a break": ("while u:\n    for i in r: x = i\n    break\nreturn x", {"x"}),
    "behind a continue": ("while u:\n    for i in r: x = i\n    continue\n    y = x\n", {"u", "r"}),
    "where the loop is left": ("while True:\n    for i in r: x = i\n    if x: break\n    x = 0\n", {"x", "r"}),
    "in else of a loop": ("while u:\n    for i in r: x = i\n    u = 0\nelse:\n    return x", {"x", "r"}),
    "in a handler": ("try:\n    for i in r: x = i\nexcept ValueError:\n    return x", {"x", "ValueError"}),
    "in a handler, from a statement after it": (
        "try:\n    for i in r: x = i\n    g()\n    x = 1\nexcept ValueError:\n    return x",
        {"x", "g", "ValueError"},
    ),
    "at last": ("try:\n    for i in r: x = i\nfinally:\n    print(x)", {"x", "print"}),
    "returned through finally": ("try:\n    for i in r: x = i\n    return 1\nfinally:\n    print(x)", {"x", "print"}),
    "behind with": ("with c:\n    for i in r: x = i\n    x = 1\nreturn x", {"x"}),
    "augmented": ("for i in r: x = i\nx += 1\nreturn x", {"x"}),
    "an element of it": ("for i in r: x = i\nx[0] = 1", {"x"}),
    "an attribute": ("for i in r: x = i\nx.y = 1", {"x"}),
    "deleted": ("for i in r: x = i\ndel x", {"x"}),
    "in a comprehension": ("for i in r: x = i\nreturn [x for _ in u]", {"x", "u"}),
    "a comprehension's own": ("for i in r: x = i\nreturn [x for x in u]", {"u"}),
    "in a comprehension's first iterable": ("for i in r: x = i\nreturn [x for x in x]", {"x"}),
    "walrus": ("for i in r: x = i\nif (x := u): pass\nreturn x", {"u"}),
    "a walrus that may be left out": ("for i in r: x = i\nu and (x := 1)\nreturn x", {"u", "x"}),
    "swapped": ("for i in r: x = i\nx, y = y, x\nreturn x", {"x", "y"}),
    "in an f-string": ("for i in r: x = i\nprint(f'{x:{u}}')", {"x", "u", "print"}),
    "in a match": ("for i in r: x = i\nmatch u:\n    case [a, *b] if b: return x\n", {"x", "u", "b"}),
    "captured by a match": ("for i in r: x = i\nmatch u:\n    case x: pass\nreturn x", {"x", "u"}),
    "a default": ("for i in r: x = i\ndef g(y=x): return y\n", {"x"}),
    "an annotation alone": ("for i in r: x = i\nx: int\nreturn x", {"x"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LIVE_AFTER_LOOP)
def test_live_after_a_loop(name: str) -> None:
    body, expected = LIVE_AFTER_LOOP[name]
    tree = function(body)
    assert Liveness.of(tree.body).after(loops(tree)[0]) == expected


EXPOSED = {
    "in order": ("x = 1\ny = x + z", {"z"}),
    "carried": ("for i in r:\n    s = max(s, u[i])", {"r", "s", "u", "max"}),
    "a temporary": ("for i in r:\n    a = u[i]\n    v[i] = a", {"r", "u", "v"}),
    "a temporary of some rounds": ("for i in r:\n    if c:\n        a = 1\n    v[i] = a", {"r", "c", "v", "a"}),
    "before it is assigned, in the next round": ("for i in r:\n    v[i] = a\n    a = 1", {"r", "v", "a"}),
    "in no round": ("for i in r:\n    a = 1\nb = a", {"r", "a"}),
    "the index behind the loop": ("for i in r:\n    pass\nb = i", {"r", "i"}),
    "augmented": ("a += 1", {"a"}),
    "an augmented element": ("a[i] += 1", {"a", "i"}),
    "deleted": ("del a", {"a"}),
}


@pytest.mark.parametrize("name", EXPOSED)
def test_exposed_reads(name: str) -> None:
    body, expected = EXPOSED[name]
    assert exposed_reads(function(body).body) == expected


CAPTURED = {
    "a function": ("def g(): return x + y\nx = 1", {"x", "y"}),
    "its own": ("def g(x):\n    y = x\n    return y\nx = y = 1", set()),
    "in a function of a function": ("def g():\n    def h(): return x\n    return h\nx = 1", {"x"}),
    "nonlocal": ("def g():\n    nonlocal x\n    x = 1\nx = 0", {"x"}),
    "a lambda": ("g = lambda a, b=y: a + x", {"x", "y"}),
    "a generator": ("g = (x for y in z)", {"x", "z"}),
    "no comprehension of a list": ("g = [x for y in z]", set()),
    "a class": ("class C:\n    y = x", {"x"}),
    "all that it has": ("x = 1\nprint(locals())", {"x", "u"}),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_captured(name: str) -> None:
    body, expected = CAPTURED[name]
    assert captured_names(function(body)) == expected


def test_local_names() -> None:
    tree = function(
        """
        global G
        G = a = 1
        for i, (j, *k) in r: b.x = c[0] = 1
        with p as q: import m.n, o as w
        try: pass
        except E as e: pass
        def g(): inner = 1
        class C: inside = 1
        [l for l in r if (s := l)]
        x: int
        """,
        "u, /, v, *args, w=1, **kw",
    )
    assert local_names(tree) == {
        "u", "v", "args", "w", "kw", "a", "i", "j", "k", "q", "m", "e", "g", "C", "s", "x",
    }  # fmt: skip


def test_free_names_of_a_method_in_a_class() -> None:
    node = function("class C:\n    a = b\n    def g(self): return self.a + c").body[0]
    assert free_names(node) >= {"b", "c"}
