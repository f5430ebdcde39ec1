"""Names that are not Python's own, helpers that become others, and indices that count from the end of short arrays: the plain
loop's result, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from equal import equal

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")


def load(text: str, path: Path) -> Any:
    path.write_text("import numpy as np\n" + text)
    module: Any = ModuleType(path.stem)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


SHADOWED = {
    "len": "def len(x):\n    return 3\ndef f(u):\n    for i in range(len(u)):\n        u[i] = 1.0\n",
    "min": "def min(a, b):\n    return b\ndef f(u):\n    for i in range(min(4, u.shape[0])):\n        u[i] = i\n",
    "sum": "def sum(x):\n    return 5\ndef f(u):\n    for i in range(u.shape[0]):\n        u[i] = sum((u[i], 1.0))\n",
    "any": "def any(x):\n    return False\ndef f(u):\n    for i in range(5):\n        u[i] = any(u[k] >= 0 for k in (0, 1))\n",
    "zip": "def zip(a, b):\n    return []\ndef f(u):\n    for a, b in zip((0, 1), (2, 3)):\n        u[a] = b\n",
}


@pytest.mark.parametrize("name", SHADOWED)
def test_a_builtin_that_means_something_else(name: str, tmp_path: Path) -> None:
    module = load(SHADOWED[name], tmp_path / "shadowing.py")
    found, expected = np.ones(9), np.ones(9)
    module.f(expected)
    try:
        lw.nest(module.f)(found)
    except lw.RefusedError as refused:
        assert "shadowing.py:" in str(refused)  # noqa: PT017 - it may as well be accepted
    else:
        assert equal(found, expected)


def test_a_builtin_that_comes_to_mean_something_else(tmp_path: Path) -> None:
    text = "def f(u):\n    for i in range(u.shape[0]):\n        u[i] = 1.0 if any(u[k] > 0 for k in (0, 1)) else 2.0\n"
    module = load(text, tmp_path / "later.py")
    nest = lw.nest(module.f)
    u = np.ones(4)
    nest(u)
    assert u[0] == 1.0
    module.any = lambda values: False
    with pytest.raises(lw.RefusedError):
        nest(u)


def _doubled(x, by=2.0):
    return by * x


def _halved(x, by=2.0):
    return x / by


def test_a_helper_that_becomes_another() -> None:
    @lw.nest
    def scaled(u):
        for i in range(u.shape[0]):
            u[i] = _doubled(u[i])

    before = _doubled.__defaults__, _doubled.__code__
    changes: list[Callable[[], None]] = [
        lambda: None,
        lambda: setattr(_doubled, "__defaults__", (5.0,)),
        lambda: setattr(_doubled, "__code__", _halved.__code__),
    ]
    try:
        for change in changes:
            change()
            found, expected = np.arange(4.0), np.arange(4.0)
            scaled.python(expected)
            try:
                scaled(found)
            except lw.RefusedError:
                continue  # its text is not what it does
            assert equal(found, expected)
    finally:
        _doubled.__defaults__, _doubled.__code__ = before


def test_counting_from_the_end_of_a_short_array() -> None:
    @lw.nest
    def bounded(u, steps):
        for t in range(steps):
            for i in range(1, u.shape[0] - 1):
                for j in range(u.shape[1]):
                    u[i, j] = 0.5 * (u[i - 1, j] + u[i + 1, j])
            for j in range(u.shape[1]):
                u[-1, j] = u[-2, j]

    found, expected = np.ones((2, 5)), np.ones((2, 5))
    bounded(found, 2)
    bounded.python(expected, 2)
    assert equal(found, expected)
    with pytest.raises(IndexError):
        bounded.python(np.ones((1, 5)), 1)
    with pytest.raises(lw.RefusedError, match="reaches 1 before the start of u, which has 1 elements"):
        bounded(np.ones((1, 5)), 1)


def test_a_count_that_may_wrap() -> None:
    @lw.nest
    def counted(u, v, start):
        for k, x in enumerate(u, start):
            v[k - 250] = x * k

    found, expected = np.zeros(9), np.zeros(9)
    counted.python(np.ones(9), expected, np.uint8(250))
    try:
        counted(np.ones(9), found, np.uint8(250))
    except lw.RefusedError:
        return
    assert equal(found, expected)


@pytest.mark.parametrize("first", [0, 1])
def test_a_window_that_reaches_beyond_the_array(first: int) -> None:
    """In Python it is shorter, or empty."""

    @lw.nest
    def largest(u, out, at):
        for i in range(u.shape[0] - 1):
            k = at[i]
            out[i] = np.max(u[k - 1:k + 2])  # fmt: skip

    @lw.nest
    def uniform(u, out, first):
        for i in range(first, u.shape[0] - 1 + first):
            out[i] = np.max(u[i - 1:i + 2])  # fmt: skip

    u = np.arange(6.0)
    with pytest.raises((lw.RefusedError, lw.RunError)):
        largest(u, np.zeros(6), np.array([1, 2, 3, 4, 0 if first == 0 else 5, 1]))
    with pytest.raises((lw.RefusedError, lw.RunError)):
        uniform(u, np.zeros(6), first)


TABLE = [1.0, 2.0]


def _from_table(k, x):
    return TABLE[k] * x


def test_a_table_that_changes() -> None:
    """Between calls, or in the very call."""

    @lw.nest
    def scaled(u):
        for i in range(u.shape[0]):
            u[i] = _from_table(1, u[i])

    @lw.nest
    def changing(u):
        TABLE[1] = TABLE[1] + 1.0
        for i in range(u.shape[0]):
            u[i] = _from_table(1, u[i])

    for nest in (scaled, changing, scaled):
        before = list(TABLE)
        expected = np.arange(4.0)
        nest.python(expected)
        TABLE[:] = before
        found = np.arange(4.0)
        try:
            nest(found)
        except lw.RefusedError:
            TABLE[1] += 0.5
            continue
        assert equal(found, expected)
        TABLE[1] += 0.5
