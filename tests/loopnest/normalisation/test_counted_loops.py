"""Loops over arrays, enumerate, zip, reversed and the like as counted ones: the same in plain Python, and compiled."""

# ruff: noqa: B905, RUF007  (loops as people write them)

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import itertools
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.loopnest.normalisation.counted_loops import counted
from lapwing.loopnest.source import FunctionSource

pytestmark = pytest.mark.usefixtures("little_optimised")


CASES: list[Callable[..., Any]] = []


def case(function: Callable[..., Any]) -> Callable[..., Any]:
    CASES.append(function)
    return function


@case
def backwards(u):
    for i in reversed(range(1, u.shape[0])):
        for j in range(u.shape[1]):
            u[i - 1, j] += 0.5 * u[i, j]


@case
def backwards_in_steps(u, a):
    for i in reversed(range(1, len(a) - 1, 3)):
        a[i] = a[i + 1] + i
    for i in reversed(range(len(a) - 1, 0, -2)):
        a[i] = a[i - 1] + i


@case
def sliced_range(u):
    for i in range(1, u.shape[0])[::-1]:
        for j in range(u.shape[1]):
            u[i - 1, j] += 0.5 * u[i, j]


@case
def counted_elements(u, a):
    for i, x in enumerate(a):
        for j in range(u.shape[1]):
            u[i, j] += x


@case
def counted_from_one(u, a):
    for i, x in enumerate(a[:-1], 1):
        u[i, 0] = x * i


@case
def pairs(u, a, b):
    for i in range(u.shape[0]):
        s = 0.0
        for x, y in zip(a, b[2:]):
            s += x * y
        u[i, 0] = s


@case
def differences(u, a):
    for k, (x, y) in enumerate(zip(a, a[1:])):
        u[k, 0] = x - y


@case
def rows(u):
    for row in u:
        for j in range(1, len(row)):
            row[j] += row[j - 1]


@case
def rows_in_pairs(u, v):
    for i, (one, other) in enumerate(zip(u, v)):
        for j in range(len(one)):
            one[j] += other[j] * i


@case
def elements_of_a_row(u, hist, codes):
    for i in range(u.shape[0]):
        for c in codes:
            hist[c] += i


@case
def unpacked_rows(u, rules):
    for i in range(u.shape[0]):
        for a, b, c in rules:
            u[i, a] += u[i, b] * c


@case
def backwards_elements(u, a):
    for i in range(u.shape[0]):
        for x in reversed(a):
            u[i, 0] = 0.5 * u[i, 0] + x


@case
def all_places(u, v):
    for i, j in np.ndindex(u.shape):
        v[i, j] = 2 * u[i, j]
    for i, j in np.ndindex(u.shape[0], 3):
        v[i, j] += 1
    for i, j in itertools.product(range(1, u.shape[0]), range(u.shape[1])):
        v[i, j] += u[i - 1, j]


@case
def left_early(u, a):
    for i in range(u.shape[0]):
        for k, x in enumerate(a):
            if x > 0.7:
                break
            u[i, k] = x


@case
def changed_on_the_way(u, a):
    for k, x in enumerate(a):
        if k + 1 < len(a):
            a[k + 1] += x
        u[k, 0] = x


def arguments(function: Callable[..., Any]) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    every = {
        "u": rng.random((7, 9)), "v": rng.random((7, 9)), "a": rng.random(7), "b": rng.random(8),
        "hist": np.zeros(5, int), "codes": rng.integers(0, 5, 30), "rules": rng.integers(0, 5, (4, 3)),
    }  # fmt: skip
    return {name: every[name] for name in inspect.signature(function).parameters}


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    return tree


def meaning(name: str) -> object:
    return globals().get(name, getattr(builtins, name, None))


def run(tree: ast.FunctionDef, values: dict[str, Any]) -> dict[str, Any]:
    names = dict(globals())
    exec(compile(ast.fix_missing_locations(ast.Module([copy.deepcopy(tree)], [])), "<tree>", "exec"), names)
    names[tree.name](**values)
    return values


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_the_same_loop(function: Callable[..., Any]) -> None:
    tree = tree_of(function)
    changed = counted(tree, meaning).tree
    loops = [node for node in ast.walk(changed) if isinstance(node, ast.For)]
    assert all(ast.unparse(loop.iter).startswith("range(") for loop in loops)
    found, right = run(changed, arguments(function)), run(tree, arguments(function))
    assert all(found[name].tobytes() == right[name].tobytes() for name in right)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_compiled(function: Callable[..., Any]) -> None:
    nest, found, right = lw.nest(function), arguments(function), arguments(function)
    nest(**found)
    function(**right)
    assert all(found[name].tobytes() == right[name].tobytes() for name in right)
    program = nest.program
    assert program is None or not program.program.interpreted


STAYING = {
    "a starred target": "for x, *y in a:\n    u[0] = x",
    "a row as a whole": "for row in a:\n    u[row[0]] = row",
    "a row that is read later": "for row in a:\n    u[0] = row[0]\nu[1] = row",
    "an argument that is set again": "for a in u:\n    u[0] = a[0]",
    "a dictionary's items": "for x in a.items():\n    u[0] = x",
    "a call": "for x in f(a):\n    u[0] = x",
    "a name of its own": "zip = f\nfor x, y in zip(a, a):\n    u[0] = x",
    "a slice from the end": "for x in a[-3:]:\n    u[0] = x",
    "a start that changes": "for i, x in enumerate(a, s):\n    u[i] = x\n    s = s + 1",
    "an index that changes": "for x in a[k]:\n    u[k] += x\n    k = 1",
    "a length that changes": "for k, i in enumerate(reversed(range(m))):\n    u[k] = i\n    m = m - 1",
    "an element as a bound": "for i in reversed(range(a[0])):\n    u[i] = 1",
    "an index of a slice": "for x in a[1:-1][0]:\n    u[0] = x",
    "inner bounds that change": "for i, j in itertools.product(range(n), range(m)):\n    u[i, j] += m\n    m = m - 1",
    "a slice in steps": "for x in a[::2]:\n    u[0] = x",
    "a loop over all places that ends early": "for i, j in np.ndindex(3, 4):\n    break",
    "one name for two": "for i in np.ndindex(3, 4):\n    u[i] = 1",
    "zip of unequal ones is wrong": "for x, y in zip(a, a, strict=True):\n    u[0] = x",
}


@pytest.mark.parametrize("what", STAYING)
def test_loops_that_stay(what: str) -> None:
    tree = ast.parse("def f(u, a):\n" + textwrap.indent(STAYING[what], "    ")).body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert ast.dump(counted(tree, meaning).tree) == ast.dump(tree)
    assert not counted(tree, meaning).unpackings


def test_rows_of_another_length() -> None:
    rules = np.zeros((4, 2), int)
    with pytest.raises(lw.RefusedError, match="3 names take 2 elements of rules"):
        lw.nest(unpacked_rows)(np.zeros((7, 9)), rules)
    with pytest.raises(lw.RefusedError, match="3 names take 4 elements of rules"):
        lw.nest(unpacked_rows)(np.zeros((7, 9)), np.zeros((4, 4), int))


def test_the_source_keeps_its_loops() -> None:
    """What Python runs may go over anything."""
    source = FunctionSource.of(pairs)
    assert "zip(" in ast.unparse(source.tree)
    assert "zip(" not in ast.unparse(source.counted.tree)
