"""Loops with something beside the inner one as perfect nests, and where they have to stay as they are written."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
from trees import numpy_meaning, tree

import lapwing as lw
from lapwing.loopnest.normalisation.nests.perfect_nests import perfect_nest

pytestmark = pytest.mark.usefixtures("little_optimised")

INNER = "\n    for j in range(1, n):\n        u[i, j] = u[i, j - 1] + {}"
PERFECT = {
    "a value": (
        "for i in range(n):\n    x = a[i]" + INNER.format("x"),
        "for i in range(n):\n    for j in range(1, n):\n        x = a[i]\n        u[i, j] = u[i, j - 1] + x",
    ),
    "a choice": (
        "for i in range(n):\n    x = 0\n    if a[i] > 1:\n        x = 1" + INNER.format("x"),
        "for i in range(n):\n    for j in range(1, n):\n        x = 0\n        if a[i] > 1:\n            x = 1\n"
        "        u[i, j] = u[i, j - 1] + x",
    ),
    "what is left out": (
        "for i in range(n):\n    if a[i] > 1:\n        continue" + INNER.format("1"),
        "for i in range(n):\n    for j in range(1, n):\n        if a[i] > 1:\n            continue\n"
        "        u[i, j] = u[i, j - 1] + 1",
    ),
    "a condition around": (
        "for i in range(n):\n    if a[i] > 1:\n        for j in range(n):\n            u[i, j] = 1",
        "for i in range(n):\n    for j in range(n):\n        if a[i] > 1:\n            u[i, j] = 1",
    ),
    "the first column": (
        "for i in range(1, n):\n    u[i, 0] = u[i - 1, 0] + i" + INNER.format("1"),
        "for i in range(1, n):\n    for j in range(0, n):\n        if j == 0:\n            u[i, j] = u[i - 1, j] + i\n"
        "        else:\n            u[i, j] = u[i, j - 1] + 1",
    ),
    "the last one": (
        "for i in range(n):\n    for j in range(n - 1):\n        u[i, j] = 1\n    u[i, n - 1] = u[i, n - 2]",
        "for i in range(n):\n    for j in range(0, n):\n        if j == n - 1:\n            u[i, j] = u[i, j - 1]\n"
        "        else:\n            u[i, j] = 1",
    ),
    "both, downwards": (
        "for i in range(n):\n    u[i, n] = 0\n    for j in range(n - 1, 0, -1):\n        u[i, j] = u[i, j + 1]\n    u[i, 0] = 3",
        "for i in range(n):\n    for j in range(n, -1, -1):\n        if j == n:\n            u[i, j] = 0\n"
        "        elif j == 0:\n            u[i, j] = 3\n        else:\n            u[i, j] = u[i, j + 1]",
    ),
    "a condition around, with a first element": (
        "for i in range(n):\n    x = a[i]\n    if x > 1:\n        u[i, 0] = 1"
        + INNER.format("x").replace("\n", "\n    "),
        "for i in range(n):\n    for j in range(0, n):\n        x = a[i]\n        if x > 1:\n            if j == 0:\n"
        "                u[i, j] = 1\n            else:\n                u[i, j] = u[i, j - 1] + x",
    ),
    "three loops": (
        "for t in range(n):\n    c = a[t]\n    for i in range(n):\n        x = c + i"
        + INNER.format("x").replace("\n", "\n    "),
        "for t in range(n):\n    for i in range(n):\n        for j in range(1, n):\n            c = a[t]\n            x = c + i\n"
        "            u[i, j] = u[i, j - 1] + x",
    ),
}
STAYING = {
    "what the inner loop changes": "for i in range(n):\n    x = a[i]" + INNER.format("x") + "\n        x = x + 1",
    "an element of what is written": "for i in range(n):\n    x = u[i, 0]" + INNER.format("x"),
    "from the iteration before": "x = 0\nfor i in range(n):\n    x = x + a[i]" + INNER.format("x"),
    "set under a condition alone": "for i in range(n):\n    if a[i] > 1:\n        x = 1" + INNER.format("x"),
    "read afterwards": "for i in range(n):\n    x = a[i]" + INNER.format("x") + "\na[0] = x",
    "a function": "for i in range(n):\n    x = np.exp(a[i])" + INNER.format("x"),
    "a look-up": "for i in range(n):\n    x = a[b[i]]" + INNER.format("x"),
    "a bound": "for i in range(n):\n    m = b[i]\n    for j in range(m):\n        u[i, j] = 1",
    "an element of another row": "for i in range(n):\n    u[0, i] = 1" + INNER.format("1"),
    "another array": "for i in range(n):\n    a[i] = 1" + INNER.format("1"),
    "two loops": "for i in range(n):" + INNER.format("1") + INNER.format("2"),
    "a sum of the row": "for i in range(n):\n    for j in range(n):\n        s = u[i, j]\n    u[i, n] = s",
    "set behind, for the next row": "for i in range(n):\n    for j in range(n - 1):\n        if i > 0:\n            u[i, j] = x\n"
    "    x = a[i]\n    u[i, n - 1] = x",
    "two loops, the first under a condition with a value": "for i in range(n):\n    if a[i] > 1:\n        u[i, 0] = 1"
    + INNER.format("1").replace("\n", "\n    ")
    + INNER.format("2"),
    "behind a break": "for i in range(n):\n    for j in range(n - 1):\n        if a[j] > 1:\n            break\n"
    "        u[i, j] = 1\n    u[i, n - 1] = 1",
}


@pytest.mark.parametrize("name", PERFECT)
def test_what_becomes_perfect(name: str) -> None:
    before, after = PERFECT[name]
    found = perfect_nest(tree(before, "u, a, b, n"), numpy_meaning)
    assert "\n".join(map(ast.unparse, found.body)) == after


@pytest.mark.parametrize("name", STAYING)
def test_what_stays(name: str) -> None:
    given = tree(STAYING[name], "u, a, b, n")
    assert perfect_nest(given, numpy_meaning) is given


def aligned(a, b, d, gap):
    for i, x in enumerate(a, 1):
        d[i, 0] = i * gap
        row, above = d[i], d[i - 1]
        for j, y in enumerate(b, 1):
            row[j] = max(above[j - 1] + (2 if x == y else -1), above[j] + gap, row[j - 1] + gap)


def divided(u, w, n):
    for i in range(1, u.shape[0]):
        c = 1 // w[i]
        for j in range(1, n):
            u[i, j] = u[i - 1, j] + c * u[i, j - 1]


def taken(u, x, n):
    for i in range(1, u.shape[0]):
        c = x[i]
        for j in range(i, n):
            u[i, j] = u[i - 1, j] + c * u[i, j - 1]


def test_loops_are_tiled() -> None:
    a, b = np.arange(9) % 4, np.arange(12) % 3
    assert lw.Nest(aligned).plan(a, b, np.zeros((10, 13)), -1.0, ranks=2).extents == (9, 13)
    assert lw.Nest(divided).loops.loop_names == lw.Nest(taken).loops.loop_names == ("i", "j")


def _same(function: Any, *arguments: Any) -> None:
    expected, found = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments], [*arguments]
    function(*expected)
    lw.Nest(function)(*found)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(9, 12), (1, 1), (3, 0), (0, 3)])
def test_the_first_column_without_others(shape: tuple[int, int]) -> None:
    """It is set where rows have nothing else."""
    n, m = shape
    _same(aligned, np.arange(n) % 4, np.arange(m) % 3, np.full((n + 1, m + 1), 7.0), -1.0)


def stepping(u, a):
    n, m = u.shape
    for i in range(0, n, 2):
        x = a[i]
        for j in range(i + 1, m - 1):
            u[i, j] = u[i, j] + x
        u[i, m - 1] = 7.0


def under_a_condition(u, n):
    for i in range(n):
        if i >= 0 and 1 // (i - 4) > -9:
            for j in range(i, u.shape[1]):
                u[i, j] = 1.0


def raising_before_it_fails(u):
    for i in range(u.shape[0]):
        if 1 // i >= 0 and i > 2:
            u[i] = 1.0


def guarded(u, v, n):
    for i in range(n):
        row = u[i]
        for j in range(v.shape[1]):
            if i < 4:
                v[i, j] = row[j] if j < u.shape[1] else row[7]


def bounded(u, p):
    for i in range(u.shape[0]):
        x = 1 / (i + 1)
        for j in range(p, u.shape[1]):
            u[i, j] = u[i, j - 1] + x


def edits(a, b, d):
    for i, x in enumerate(a, 1):
        row, above = d[i], d[i - 1]
        for j, y in enumerate(b, 1):
            row[j] = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))


def rows_of_two_axes(u, v):
    for i in range(3):
        row = u[i]
        for j in range(len(row)):
            v[i, j] = row[0, j]


def test_rows_in_which_the_inner_loop_does_nothing() -> None:
    """Their ends are set, and what is taken for them has to be there."""
    _same(stepping, np.ones((6, 3)), np.ones(6))
    with pytest.raises((lw.RunError, lw.RefusedError), match=r"outside|reaches"):
        lw.Nest(stepping)(np.ones((6, 3)), np.ones(3))
    with pytest.raises(lw.RunError, match="division by zero"):
        lw.Nest(under_a_condition)(np.ones((6, 3)), 6)
    with pytest.raises(lw.RunError, match="division by zero"):
        lw.Nest(raising_before_it_fails)(np.ones(6))


def test_a_row_is_taken_whatever_guards_its_elements() -> None:
    _same(guarded, np.ones((6, 5)), np.zeros((6, 5)), 6)
    with pytest.raises(IndexError):
        lw.Nest(guarded)(np.ones((4, 5)), np.zeros((6, 5)), 6)


def test_what_cannot_be_perfect_is_done_as_it_is_written() -> None:
    """Also where that is Python's work: sizes and types say so when it is called."""
    _same(bounded, np.ones((3, 4)), True)
    _same(guarded, np.ones((5, 6)), np.zeros((5, 6)), 5)
    table, right = [[0] * 5 for _ in range(4)], [[0] * 5 for _ in range(4)]
    edits("abc", "abdc", right)
    lw.Nest(edits)("abc", "abdc", table)
    assert table == right
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(np.ones((3, 4)))
    _same(rows_of_two_axes, matrix, np.zeros((3, 4)))


def test_an_error_where_the_inner_loop_has_no_iterations() -> None:
    """The plain loop divides all the same, and takes elements that are not there."""
    u, w = np.ones((4, 5)), np.array([1, 1, 1, 1])
    _same(divided, u, w, 1)
    _same(taken, u, np.ones(4), 3)
    with pytest.raises(lw.RefusedError, match="index 1 reaches 3"):
        lw.Nest(taken)(u, np.ones(3), 3)
