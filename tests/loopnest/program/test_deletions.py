"""Which arguments a function deletes at its end so that nobody reads their elements, and after which loops that is so."""

from __future__ import annotations

import ast

import pytest
from test_liveness import function

from lapwing.loopnest.program.deletions import dead_after, deleted_arguments, last_deletions

LOOP = "for i in r: h[i] = i"

# Of functions of h and u whose loops are regions: the arguments deleted, and after each loop what is dead.
DELETED: dict[str, tuple[str, set[str], list[tuple[str, ...]]]] = {
    "nothing": (LOOP, set(), [()]),
    "an argument": (f"{LOOP}\ndel h", {"h"}, [("h",)]),
    "before a return": (f"{LOOP}\ndel h\nreturn u.sum()", {"h"}, [("h",)]),
    "several": (f"{LOOP}\nfor i in r: u[i] = 1\ndel h, u", {"h", "u"}, [("h",), ("u",)]),
    "in two statements": (f"{LOOP}\ndel h\ndel u", {"h", "u"}, [("h",)]),
    "read by the next loop": (f"{LOOP}\nfor i in r: u[i] = h[i]\ndel h", {"h"}, [(), ()]),
    "in a loop of the driver": (f"for t in s:\n    {LOOP}\ndel h", {"h"}, [()]),
    "only its shape is asked for later": (f"{LOOP}\nn = h.shape[0]\ndel h\nreturn n", {"h"}, [("h",)]),
    "an element set later": (f"{LOOP}\nh[0] = 1\ndel h", {"h"}, [()]),
    "an element read": (f"{LOOP}\nx = h[0]\ndel h\nreturn x", set(), [()]),
    "another name for it": (f"v = h\n{LOOP}\ndel h\nreturn v", set(), [()]),
    "a view of it": (f"v = h[1:]\n{LOOP}\ndel h\nreturn v", set(), [()]),
    "passed on": (f"g(h)\n{LOOP}\ndel h", set(), [()]),
    "another array by then": (f"{LOOP}\nh = u\ndel h", set(), [()]),
    "swapped": (f"{LOOP}\nh, u = u, h\ndel h", set(), [()]),
    "captured": (f"{LOOP}\ng = lambda: h\ndel h\nreturn g", set(), [()]),
    "in a branch": (f"{LOOP}\nif u[0]:\n    del h", set(), [()]),
    "no argument": (f"v = u.copy()\n{LOOP}\ndel v", set(), [()]),
}


@pytest.mark.parametrize("name", DELETED)
def test_what_is_deleted(name: str) -> None:
    text, deleted, dead = DELETED[name]
    tree = function(text, "h, u")
    regions = [n for n in ast.walk(tree) if isinstance(n, ast.For) and not any(isinstance(s, ast.For) for s in n.body)]
    assert deleted_arguments(tree, regions) == deleted
    passed = [(n, ast.Name(n, ast.Load())) for n in ("h", "u")]
    found = [dead_after(tree, region, passed, deleted) for region in regions]
    stored = [
        {n.value.id for n in ast.walk(r) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)}
        for r in regions
    ]
    assert [tuple(n for n in names if n in own) for names, own in zip(found, stored, strict=True)] == dead


def test_one_array_for_two_parameters() -> None:
    tree = function(f"{LOOP}\ndel h", "h, u")
    passed = [("h", ast.Name("h", ast.Load())), ("v", ast.Name("h", ast.Load()))]
    assert dead_after(tree, tree.body[0], passed, {"h"}) == ()


def test_only_what_stands_last() -> None:
    assert last_deletions(function(f"del u\n{LOOP}\n'text'\nreturn 1", "h, u")) == ()
