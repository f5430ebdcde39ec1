"""Names of indices and rows are replaced by what they are, where it is the same at every use."""

from __future__ import annotations

import ast

import pytest
from trees import numpy_meaning, tree

from lapwing.loopnest.normalisation.nests.forward_substitution import Taken, taken_of, with_substituted

SUBSTITUTED = {
    "an index": (
        "for i in range(n):\n    k = i + 1\n    for j in range(n):\n        u[k, j] = u[k - 1, j]",
        "for i in range(n):\n    for j in range(n):\n        u[i + 1, j] = u[i + 1 - 1, j]",
    ),
    "bounds": (
        "for i in range(n):\n    low, high = 0, n\n    b = max(1, i - 2)\n    for j in range(b, n):\n        u[i, j] = b",
        "for i in range(n):\n    low, high = (0, n)\n    for j in range(max(1, i - 2), n):\n        u[i, j] = max(1, i - 2)",
    ),
    "rows": (
        "for i in range(1, n):\n    row, k = u[i], 0\n    up = u[i - 1]\n"
        "    for j in range(n):\n        u[i, j] = up[j] + len(up)",
        "for i in range(1, n):\n    row, k = (u[i], 0)\n    for j in range(n):\n        u[i, j] = u[i - 1, j] + u.shape[1]",
    ),
    "several at a time": (
        "for i in range(1, n):\n    row, x, k = u[i], v[i], i + 1\n    row[k] = x",
        "for i in range(1, n):\n    x = v[i]\n    u[i, i + 1] = x",
    ),
    "one of another": (
        "for i in range(n):\n    k = i + 1\n    m = k * 2\n    u[m] = u[k]",
        "for i in range(n):\n    u[(i + 1) * 2] = u[i + 1]",
    ),
    "in a condition": (
        "for i in range(n):\n    if i > 2:\n        k = i - 1\n        u[k] = 0",
        "for i in range(n):\n    if i > 2:\n        u[i - 1] = 0",
    ),
}
STAYING = {
    "a value": "for i in range(n):\n    k = i + 1\n    u[i] = k",
    "an element": "for i in range(n):\n    k = u[i]\n    v[k] = 1",
    "set twice": "for i in range(n):\n    k = i + 1\n    u[k] = 0\n    k = i + 2\n    u[k] = 1",
    "read afterwards": "for i in range(n):\n    k = i + 1\n    u[k] = 0\nu[k] = 1",
    "of a loop that goes over it again": "for i in range(n):\n    k = i + 1\n    for i in range(3):\n        u[k] = i",
    "of what is changed": "for i in range(n):\n    m = 2\n    while m < n:\n        k = i + m\n        m += 1\n        u[k] = 0",
    "a row as a whole": "for i in range(n):\n    row = u[i]\n    row[0] = f(row)",
    "a row under a condition": "for i in range(n):\n    if i > 2:\n        row = u[i - 3]\n        row[0] = 1",
    "a row behind a jump": "for i in range(n):\n    if i > 2:\n        continue\n    row = u[i]\n    row[0] = 1",
    "a row of an array that changes": "for i in range(n):\n    row = v[i]\n    row[0] = 1\n    u, v = v, u",
    "a name that a function keeps": "for i in range(n):\n    k = i + 1\n    f(lambda: u[k])",
    "an argument": "for i in range(n):\n    m = i + 1\n    u[m] = 0",
}


@pytest.mark.parametrize("name", SUBSTITUTED)
def test_what_is_substituted(name: str) -> None:
    before, after = SUBSTITUTED[name]
    found = with_substituted(tree(before, "u, v, n"), numpy_meaning)
    assert "\n".join(map(ast.unparse, found.body)) == after


@pytest.mark.parametrize("name", STAYING)
def test_what_stays(name: str) -> None:
    given = tree(STAYING[name], "u, v, n, m")
    assert with_substituted(given, numpy_meaning) is given


def test_rows_are_noted_to_be_taken() -> None:
    found = with_substituted(tree(SUBSTITUTED["rows"][0], "u, n"), numpy_meaning)
    taken = {ast.unparse(node): taken_of(node) for node in ast.walk(found) if taken_of(node)}
    assert taken == {"u[i - 1, j]": (Taken(frozenset({"i"}), 1, is_guarded=False),)}


def test_of_many_names_not_all_are_substituted() -> None:
    """Each takes a walk through the function."""
    lines = [f"    k{n} = i + {n}\n    u[k{n}] = 0" for n in range(200)]
    found = with_substituted(tree("\n".join(["for i in range(n):", *lines])), numpy_meaning)
    assert 0 < ast.unparse(found).count("k") < 400
