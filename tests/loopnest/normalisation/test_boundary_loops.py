"""Loops along boundaries as nests: the same elements, and phases of one pipeline."""

from __future__ import annotations

import ast
import copy
import textwrap
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.loopnest.normalisation.nests.boundary_loops import with_boundary_loops

NEST = """
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.5 * (u[i - 1, j] + u[i, j + 1])
"""
LIFTED = {
    "a number": "for j in range(m):\n    v[0, j] = 2.5",
    "a value of the step": "for j in range(m):\n    v[0, j] += t * a[t]",
    "beside the edge": "for i in range(n):\n    v[i, 0] = v[i, 1]",
    "the last": "for i in range(1, n - 1):\n    v[i, m - 1] = 2 * v[i, m - 2] - v[i, m - 3] + u[i, m - 1]",
    "from the end": "for j in range(m):\n    v[-1, j] = v[-2, j] + u[-1, j]",
    "all four": "for i in range(n):\n    v[i, 0] = v[i, 1]\n    v[i, m - 1] = -v[i, m - 2]\n"
    "for j in range(m):\n    v[0, j] = v[1, j]\n    v[n - 1, j] = v[n - 2, j]",
    "a recurrence": "for j in range(1, m):\n    v[0, j] = v[0, j - 1] + 1.0",
    "backwards": "for j in range(m - 1, -1, -1):\n    v[2, j] = u[2, j]",
    "a face of a box": "for i in range(2):\n    for j in range(m):\n        w[i, 0, j] = w[i, 1, j]",
}
STAYING = {
    "another row of itself": "for j in range(m):\n    v[0, j] = v[k, j]",
    "around": "for j in range(m):\n    v[0, j] = v[n - 1, j]",
    "a scalar": "for j in range(m):\n    s = u[0, j]\n    v[0, j] = s",
    "a condition": "for j in range(m):\n    if j > 2:\n        v[0, j] = 0.0",
    "statements that depend on others' places": "for j in range(1, m):\n    v[0, j] = v[1, j - 1]\n    v[1, j] = 3.0",
    "a row that changes": "for j in range(m):\n    v[t, j] = 0.0",
    "a diagonal": "for i in range(3):\n    v[i, i] = 0.0",
    "a whole nest": "for i in range(n):\n    for j in range(m):\n        v[i, j] += 1.0",
}


def function(lines: str, nest: str = NEST) -> ast.FunctionDef:
    text = "def f(u, v, w, a, k, steps):\n    n, m = u.shape\n    for t in range(steps):\n"
    tree = ast.parse(text + nest + textwrap.indent(lines, "        ")).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def arguments() -> list[Any]:
    rng = np.random.default_rng(2)
    return [rng.random((6, 7)), rng.random((6, 7)), rng.random((6, 3, 7)), rng.random(4), 3, 4]


def run(tree: ast.FunctionDef) -> list[bytes]:
    names: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([copy.deepcopy(tree)], [])), "<tree>", "exec"), names)
    values = arguments()
    names["f"](*values)
    return [value.tobytes() for value in values[:4]]


@pytest.mark.parametrize("what", LIFTED)
def test_lifted(what: str) -> None:
    tree = function(LIFTED[what])
    found = with_boundary_loops(tree)
    loops = [node for node in ast.walk(found) if isinstance(node, ast.For) and isinstance(node.target, ast.Name)]
    assert sum(loop.target.id.startswith("at") for loop in loops) == LIFTED[what].count(" = ") + LIFTED[what].count(
        "+= "
    )
    assert run(found) == run(tree)


@pytest.mark.parametrize("what", STAYING)
def test_staying(what: str) -> None:
    tree = function(STAYING[what])
    assert ast.dump(with_boundary_loops(tree)) == ast.dump(tree)


@pytest.mark.parametrize("what", ["a number", "a face of a box"])
def test_without_a_nest_beside_it(what: str) -> None:
    tree = function(LIFTED[what], nest="")
    assert ast.dump(with_boundary_loops(tree)) == ast.dump(tree)


def cavity(u, v, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in range(n):
            v[i, 0] = v[i, 1]
            v[i, m - 1] = 0.5
        for j in range(m):
            v[0, j] = -v[1, j]
            v[-1, j] = 2.0 - v[-2, j]
        u, v = v, u
    return u


@pytest.mark.usefixtures("little_optimised")
def test_phases_of_one_pipeline() -> None:
    nest, rng = lw.nest(cavity), np.random.default_rng(0)
    found = [rng.random((9, 11)), rng.random((9, 11)), 5]
    right = copy.deepcopy(found)
    assert nest(*found).tobytes() == cavity(*right).tobytes()
    assert [array.tobytes() for array in found[:2]] == [array.tobytes() for array in right[:2]]
    program = nest.program
    assert program is not None
    assert len(program.program.sweeps) == 1
    assert not any(region.loops.is_sequential for region in program.nests)
