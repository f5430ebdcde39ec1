"""Reductions of windows become reductions of their elements."""

from __future__ import annotations

import ast

import pytest
from trees import numpy_meaning, tree

from lapwing.loopnest.normalisation.windows import with_windows


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("x = np.max(u[n - 1:n + 1])", "x = np.max(u[n - 1], u[n - 1 + 1])"),
        ("x = u[n, :2].any()", "x = u[n, :2].any(u[n, 0], u[n, 0 + 1])"),
        ("x = np.all(u[n:n + 2] > u[n])", "x = np.all(u[n] > u[n], u[n + 1] > u[n])"),
        (
            "for i in range(n):\n    w = u[i:i + 2]\n    u[i] = np.min(w) + w[1]",
            "for i in range(n):\n    u[i] = np.min(u[i], u[i + 1]) + u[i + 1]",
        ),
    ],
)
def test_elements(body: str, after: str) -> None:
    assert "\n".join(ast.unparse(s) for s in with_windows(tree(body), numpy_meaning).body) == after


@pytest.mark.parametrize(
    "body",
    [
        "x = np.max(u[n:2 * n])",
        "x = np.max(u[-2:0])",
        "x = np.max(u[n:n + 2], axis=0)",
        "x = np.max(u[n:n + 2] * u[n:n + 3])",
        "x = np.max(u[n:n + 2] ** 2)",
        "x = np.median(u[n:n + 2])",
        "x = np.max(u[n:n + 2:2])",
        "np = n\nx = np.max(u[n:n + 2])",
        "for i in range(n):\n    w = u[i:i + 2]\n    i = 0\n    u[i] = w[1]",
        "for i in range(n):\n    w = u[i:i + 2]\n    n(w)",
        "for i in range(n):\n    w = u[i:i + 2]\n    w[0] = 1",
    ],
)
def test_what_stays(body: str) -> None:
    assert ast.dump(with_windows(tree(body), numpy_meaning)) == ast.dump(tree(body))
