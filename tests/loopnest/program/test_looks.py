"""Before which statements a driver tells that it looks at arrays."""

from __future__ import annotations

import ast
import textwrap

import pytest

from lapwing.loopnest.program.looks import ITEM, LOCALS, LOOK, SLICE, looking

# A statement, and what becomes of it: look(…) before it, and item(u, …) for what may be a view.
LOOKS = {
    "a move": ("u, v = v, u", "u, v = (v, u)"),
    "another name": ("w = u", "w = u"),
    "a shape": ("n, m = u.shape", "n, m = u.shape"),
    "an array like it": ("w = np.zeros_like(u)", "look(locals(), 'np')\nw = np.zeros_like(u)"),
    "a length": ("n = len(u) - 1", "n = len(u) - 1"),
    "a copy": ("w = u.copy()", "look(locals(), 'u')\nw = u.copy()"),
    "an element or a row": ("r = u[0]", "r = item(u, 0)"),
    "a view": ("r = u[1:n, ::2]", "look(locals(), 'n')\nr = item(u, (slice(1, n, None), slice(None, None, 2)))"),
    "views in a tuple": ("a, b = u[t % 2], v", "look(locals(), 't')\na, b = (item(u, t % 2), v)"),
    "a part that is written": ("u[0, :] = v[1]", "look(locals(), 'u', 'v')\nu[0, :] = v[1]"),
    "in place": ("u += v", "look(locals(), 'u', 'v')\nu += v"),
    "a call": ("f(u)", "look(locals(), 'f', 'u')\nf(u)"),
    "a method": ("s = u.max()", "look(locals(), 'u')\ns = u.max()"),
    "a test": ("if u[0] > n: pass", "if (look(locals(), 'n', 'u'), u[0] > n)[1]:\n    pass"),
    "a test of every round": (
        "while e > 0: e = u.max()",
        "while (look(locals(), 'e'), e > 0)[1]:\n    look(locals(), 'u')\n    e = u.max()",
    ),
    "a range": ("for i in range(1, n, m): pass", "for i in range(1, n, m):\n    pass"),
    "a range of a shape": ("for i in range(u.shape[0] - 1): pass", "for i in range(u.shape[0] - 1):\n    pass"),
    "a range of an element": ("for i in range(u[0]): pass", "for i in (look(locals(), 'range', 'u'), range(u[0]))[1]:\n    pass"),
    "rows": ("for r in u: g(r)", "for r in (look(locals(), 'u'), u)[1]:\n    look(locals(), 'g', 'r')\n    g(r)"),
    "returned": ("return u, 1", "return (u, 1)"),
    "an element returned": ("return u[0, 1]", "return item(u, (0, 1))"),
    "returned and computed": ("return u + 1", "look(locals(), 'u')\nreturn u + 1"),
    "a definition": ("def g(): return u", "def g():\n    return u"),
    "a handler": (
        "try: f()\nexcept E: u[0] = 1",
        "try:\n    look(locals(), 'f')\n    f()\nexcept E:\n    look(locals(), 'u')\n    u[0] = 1",
    ),
    "a context of NumPy": (
        "with np.errstate(): f()", "look(locals(), 'np')\nwith np.errstate():\n    look(locals(), 'f')\n    f()",
    ),
    "any other context": (
        "with c(u): pass",
        "look(locals(), 'c', 'u')\nwith c(u):\n    try:\n        pass\n    finally:\n        look(locals(), 'c', 'u')",
    ),
    "a guard": (
        "match k:\n    case 1 if u[0]: pass",
        "match (look(locals(), 'k'), k)[1]:\n    case 1 if (look(locals(), 'u'), u[0])[1]:\n        pass",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_looks(name: str) -> None:
    statement, expected = LOOKS[name]
    tree = ast.parse(f"def f(u, v):\n{textwrap.indent(statement, '    ')}").body[0]
    assert isinstance(tree, ast.FunctionDef)
    text = textwrap.dedent("\n".join(ast.unparse(looking(tree, {})).splitlines()[1:])).strip()
    for theirs, short in ((LOOK, "look"), (ITEM, "item"), (LOCALS, "locals"), (SLICE, "slice")):
        text = text.replace(f"{theirs}(", f"{short}(")
    assert text == expected


def test_what_regions_read_themselves() -> None:
    tree = ast.parse("def f(u, s):\n    region(u, s[t])").body[0]
    assert isinstance(tree, ast.FunctionDef)
    text = ast.unparse(looking(tree, {id(tree.body[0]): {"s"}}))
    assert text.splitlines()[1].strip() == f"{LOOK}({LOCALS}(), 's')"
