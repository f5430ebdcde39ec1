"""Loops of a driver that Python does itself where there are few iterations: nothing shows but the time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.api.nest import Nest
from lapwing.errors import RefusedError, RunError

pytestmark = pytest.mark.usefixtures("little_optimised")


@lw.nest
def forward(a, b):
    """Rows of other lengths in every call, and a value that is carried through them."""
    n = a.shape[0]
    x = np.zeros(n)
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= a[i, k] * x[k]
        if s == 0.5 and np.spacing(s) < 1.0:
            return x, i
        x[i] = s / a[i, i]
    return x, n


@lw.nest
def swept(u, v, steps):
    for _t in range(steps):
        for i in range(1, u.shape[0] - 1):
            v[i] = 0.5 * (u[i - 1] + u[i + 1])
        if np.spacing(v[1]) > 0.9:
            return 0
        for i in range(1, u.shape[0] - 1):
            u[i] = v[i]
    return 1


@lw.nest
def averages(u, w):
    """Both nests have few iterations; the sum of one is rounded once where it is cut into tiles."""
    found = np.zeros(u.shape[0])
    for i in range(1, u.shape[0] - 1):
        total = 0.0
        for k in range(3):
            for m in range(2):
                total += w[k, m] * u[i + k - 1]
        found[i] = np.spacing(total)
    return found


@lw.nest
def halves(u, steps):
    for t in range(steps):
        for i in range(u.shape[0]):
            u[i] = 1 // (t - 2)
        u[0] += np.spacing(1.0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the nests that are called."""
    found, called = list[str](), Nest._called

    def noted(self: Nest, args: Any, kwargs: Any) -> Any:
        found.append(self.name)
        return called(self, args, kwargs)

    monkeypatch.setattr(Nest, "_called", noted)
    return found


def matrix(n: int, dtype: Any = float) -> Any:
    rng = np.random.default_rng(n)
    return (rng.random((n, n)) + n * np.eye(n)).astype(dtype), rng.random(n).astype(dtype)


def same(nest: Any, *args: Any) -> Any:
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    by_python, found = nest.python(*expected), nest(*args)
    for one, other in zip(args, expected, strict=True):
        assert not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes()
    for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, by_python)), strict=True):
        assert type(one) is type(other)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    return found


def test_few_iterations_are_done_by_python_and_many_are_not(calls: list[str]) -> None:
    same(forward, *matrix(5))
    calls.clear()
    same(forward, *matrix(5))
    assert calls == ["forward"]
    same(forward, *matrix(150))
    assert "forward_1" in calls
    assert len(calls) < 150


def test_other_shapes_and_dtypes() -> None:
    for n in (4, 7, 4, 120, 4):
        for dtype in (np.float64, np.float32):
            same(forward, *matrix(n, dtype))


def test_arrays_unlike_those_before_go_the_whole_way(calls: list[str]) -> None:
    u, v = np.linspace(0, 1, 9).copy(), np.zeros(9)
    same(swept, u, v, 3)
    calls.clear()
    same(swept, u, v, 3)
    assert calls == ["swept"]
    with pytest.raises(RefusedError, match="share memory"):
        swept(u, u, 3)
    whole = np.linspace(0, 1, 12)
    with pytest.raises(RefusedError, match="share memory"):
        swept(whole[:9], whole[3:], 3)
    v.flags.writeable = False
    with pytest.raises(RefusedError, match="read-only"):
        swept(u, v.view(), 3)
    with pytest.raises(RefusedError, match="float16"):
        swept(u.astype(np.float16), np.zeros(9, np.float16), 3)


def test_a_short_nest_whose_place_changes_has_the_bits_of_plain_python(calls: list[str]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(3):
        calls.clear()
        same(averages, rng.random(30), rng.random((3, 2)))
        assert len(calls) <= 3  # the program, its region, and that for any integers
    same(averages, rng.random(30).astype(np.float32), rng.random((3, 2)))


def test_errors_are_the_plain_loops_own() -> None:
    with pytest.raises((ZeroDivisionError, RunError), match="zero"):
        halves(np.zeros(4), 5)
    same(halves, np.zeros(4), 2)


def test_arrays_are_let_go_of() -> None:
    import gc
    import weakref

    u, v = np.linspace(0, 1, 9), np.zeros(9)
    for _ in range(3):
        swept(u, v, 2)
    gone = weakref.ref(u), weakref.ref(v)
    del u, v
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_no_more_warnings_than_plain_python_has() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(3):
            same(forward, *matrix(5))
    assert not found
