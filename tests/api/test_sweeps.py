"""Calls of sweeps in one process, one after the other: each gives what the plain loop gives, whatever is kept of earlier ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lapwing as lw
from lapwing.errors import RefusedError, RunError
from lapwing.loopnest.program import short_loops
from lapwing.tiling.phased import fusion

pytestmark = pytest.mark.usefixtures("little_optimised")

Array = npt.NDArray[Any]


@lw.nest
def relaxed(u, v, steps, w):
    n, m = u.shape
    for _t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = w * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        u, v = v, u
    return u


@lw.nest
def shifted(u, v, steps):
    for _t in range(steps):
        for i in range(1, u.shape[0]):
            u[i] = v[i] + v[i - 1]
        for i in range(1, u.shape[0]):
            v[i] = u[i] - u[i - 1]


@lw.nest
def looked_up(u, v, at, steps):
    for _t in range(steps):
        for i in range(u.shape[0]):
            u[i] = v[at[i]] + 1
        for i in range(u.shape[0]):
            v[i] = u[i] * 2


def numbers(*shape: int, dtype: Any = float) -> Array:
    rng = np.random.default_rng(sum(shape))
    return (100 * rng.random(shape)).astype(dtype)


def same(nest: Any, *args: Any) -> None:
    """The call changes arrays and returns what Python does, to the bit."""
    expected = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    by_python, found = nest.python(*expected), nest(*args)
    for one, other in zip(args, expected, strict=True):
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes()
    if isinstance(by_python, np.ndarray):
        which = next(k for k, a in enumerate(expected) if a is by_python)
        assert found is args[which]


@pytest.fixture(autouse=True)
def as_sweeps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that were made of sweeps, and not with the loop around them compiled as a whole."""
    from lapwing.runtime.phased_alone import PreparedPhases

    runs, run = list[Any](), PreparedPhases.run
    monkeypatch.setattr(short_loops, "BUDGET", 0)

    def noted(self: PreparedPhases, arrays: Any) -> Any:
        runs.append(self)
        return run(self, arrays)

    monkeypatch.setattr(PreparedPhases, "run", noted)
    return runs


def test_other_arrays_of_the_same_shape(as_sweeps: list[Any]) -> None:
    for seed in range(3):
        same(relaxed, numbers(9, 8) + seed, numbers(9, 8) - seed, 4, 0.25)
    assert len(as_sweeps) == 3
    assert as_sweeps[0] is as_sweeps[2]


def test_an_array_in_two_roles() -> None:
    u, v = numbers(9, 8), numbers(9, 8) + 1
    for one, other in ((u, v), (v, u), (u, v)):
        same(relaxed, one, other, 3, 0.25)


def test_other_numbers_of_steps() -> None:
    for steps in (1, 2, 5, 0, 2, 1):
        same(relaxed, numbers(7, 6), numbers(7, 6) + 1, steps, 0.25)


def test_other_shapes_dtypes_and_scalars() -> None:
    for shape in ((7, 6), (6, 7), (9, 3), (7, 6)):
        for dtype in (np.float64, np.float32):
            for w in (0.25, 0.5):
                same(relaxed, numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype), 3, w)
    for dtype in (np.float64, np.int64, np.float64):
        same(shifted, numbers(8, dtype=dtype), numbers(8, dtype=dtype), 3)


@pytest.mark.parametrize("turn", [0, 1])
def test_other_layouts_of_the_same_shape(turn: int) -> None:
    layouts: list[Callable[[], Array]] = [
        lambda: numbers(8, 8),
        lambda: np.asfortranarray(numbers(8, 8)),
        lambda: numbers(16, 20)[::2, 3:11],
        lambda: numbers(8, 8)[::-1],
        lambda: numbers(8, 8),
    ]
    for k, layout in enumerate(layouts):
        pair = (layout(), numbers(8, 8))
        same(relaxed, pair[turn], pair[1 - turn], 2 + k % 2, 0.25)


def test_arrays_that_share_memory_are_seen_in_every_call() -> None:
    same(shifted, numbers(8), numbers(8), 3)
    whole = numbers(12)
    with pytest.raises(RefusedError, match="share memory"):
        shifted(whole[:8], whole[4:], 3)
    assert whole.tobytes() == numbers(12).tobytes()
    same(shifted, numbers(8), numbers(8), 3)


def test_a_run_that_raises_leaves_arrays_and_later_calls_as_they_were() -> None:
    inside, outside = np.arange(6)[::-1].copy(), np.array([0, 1, 2, 3, 4, 9])
    same(looked_up, numbers(6), numbers(6), inside, 3)
    u, v = numbers(6), numbers(6)
    with pytest.raises(RunError):
        looked_up(u, v, outside, 3)
    assert u.tobytes() == numbers(6).tobytes()
    assert v.tobytes() == numbers(6).tobytes()
    same(looked_up, numbers(6), numbers(6), inside, 3)


def test_memory_of_arrays_is_let_go_of() -> None:
    import gc
    import weakref

    u, v = numbers(30, 30), numbers(30, 30)
    relaxed(u, v, 2, 0.25)
    gone = [weakref.ref(u), weakref.ref(v)]
    del u, v
    gc.collect()
    assert [one() for one in gone] == [None, None]


def test_threads_in_the_same_call() -> None:
    results: list[bytes] = []

    def work() -> None:
        for _ in range(20):
            u, v = numbers(40, 40), numbers(40, 40) + 1
            results.append(relaxed(u, v, 6, 0.25).tobytes())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = relaxed.python(numbers(40, 40), numbers(40, 40) + 1, 6, 0.25).tobytes()
    assert set(results) == {expected}
    assert len(results) == 60


@lw.nest
def divided(u, v, steps, h):
    for _t in range(steps):
        for i in range(1, u.shape[0]):
            u[i] = v[i] + v[i - 1]
        for i in range(1, u.shape[0]):
            v[i] = u[i] - u[i - 1] * (1 / h)


def test_what_all_iterations_raise_alike_is_raised_before_anything_is_stored(
    monkeypatch: pytest.MonkeyPatch, as_sweeps: list[Any]
) -> None:
    for size, value in (("cached_bytes", lambda: -1), ("room_bytes", lambda: 1 << 12), ("BLOCK_BYTES", 32)):
        monkeypatch.setattr(fusion, size, value)
    u, v = numbers(40), numbers(40)
    same(divided, u, v, 3, 2.0)
    assert as_sweeps[0].plan.fusion.sweeps == 3
    before = u.tobytes(), v.tobytes()
    for _ in range(2):
        with pytest.raises(RunError, match="division by zero"):
            divided(u, v, 3, 0.0)
    assert (u.tobytes(), v.tobytes()) == before
    assert not as_sweeps[-1]._saved
    same(divided, u, v, 3, 2.0)
