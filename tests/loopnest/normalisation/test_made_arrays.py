"""Arrays that NumPy makes of numbers for loops to go over are made before them."""

from __future__ import annotations

import ast

import pytest
from trees import numpy_meaning, tree

from lapwing.loopnest.normalisation.made_arrays import with_made_arrays


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (
            "for i in range(n):\n    for j, y in enumerate(np.linspace(0, n, 5)):\n        u[i, j] = y",
            "y_values = np.linspace(0, n, 5)\nfor i in range(n):\n    for j, y in enumerate(y_values):\n        u[i, j] = y",
        ),
        (
            "for i in range(n):\n    for y in np.arange(i + 1):\n        u[i] = y",
            "for i in range(n):\n    y_values = np.arange(i + 1)\n    for y in y_values:\n        u[i] = y",
        ),
        (
            "for x, y in zip(u, np.arange(n)):\n    n = n + y",
            "y_values = np.arange(n)\nfor x, y in zip(u, y_values):\n    n = n + y",
        ),
    ],
)
def test_made_before(body: str, after: str) -> None:
    assert "\n".join(ast.unparse(s) for s in with_made_arrays(tree(body), numpy_meaning).body) == after


@pytest.mark.parametrize(
    "body",
    [
        "for y in np.linspace(0, u[0], 5):\n    n(y)",
        "for y in np.random.random(5):\n    n(y)",
        "np = n\nfor y in np.arange(5):\n    n(y)",
        "for y in n(np.arange(5)):\n    n(y)",
    ],
)
def test_loops_that_stay(body: str) -> None:
    assert ast.dump(with_made_arrays(tree(body), numpy_meaning)) == ast.dump(tree(body))
