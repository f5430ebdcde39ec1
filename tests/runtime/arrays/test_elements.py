"""Elements of distributed arrays, and what NumPy computes with them: without bringing arrays together, on several ranks."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from on_ranks import mpiexec, numbers, on_rank_0, rank_and_size, slanted, smooth, written_twice
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY

import lapwing as lw
from lapwing.runtime.mpi import communicator
from lapwing.runtime.repeated import RepeatedRun

SCENARIOS: dict[str, Callable[[], None]] = {}
SHAPE = (19, 21)
EVERYDAY = 3  # ranks


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS[function.__name__] = function
    return function


@contextlib.contextmanager
def staying_apart(exchanges: bool = True) -> Iterator[None]:
    """Arrays are neither brought together nor distributed anew. exchanges: whether ranks may send each other parts."""
    if rank_and_size()[1] == 1:
        yield
        return
    moved = communicator.known(communicator.world()).moved
    before = moved.copy()
    yield
    assert moved["gathered"] == before["gathered"], "brought together"
    assert moved["scattered"] == before["scattered"], "distributed anew"
    assert exchanges or moved["bytes"] == before["bytes"], "parts were sent"


def layouts() -> Iterator[tuple[lw.DistributedArray, np.ndarray]]:
    """Arrays that lie on the ranks in every way there is, with what is in them."""
    _, size = rank_and_size()
    for k, nest in enumerate(
        (None, smooth.using(grid=(size, 1)), smooth.using(grid=(1, size)), written_twice, slanted)
    ):
        u, v = numbers(k, *SHAPE), numbers(9, *SHAPE)
        made = lw.from_function(lambda *at, u=u: u[at], SHAPE)
        if nest is not None:
            more: tuple[Any, ...] = (v, 2) if nest is slanted else () if nest is written_twice else (2,)
            nest(made, *more)
            nest.python(u, *more)
        yield made, u


@scenario
def reductions_of_the_parts() -> None:
    v = numbers(7, *SHAPE)
    V = lw.DistributedArray(on_rank_0(v))
    assert V.max() == v.max()  # which gives every rank a part
    for U, u in layouts():
        with staying_apart():
            assert (np.max(U), U.min(), np.abs(U - v).max()) == (u.max(), u.min(), np.abs(u - v).max())
            assert abs(U - V).max() == abs(u - v).max()
            assert (U > 0.5).any() == (u > 0.5).any()
            assert np.all(U > 0.0) == np.all(u > 0.0)
            assert (U > 0.5).sum() == (u > 0.5).sum()
            assert np.allclose(U, u)
            assert np.array_equal(U, u)
            assert not np.array_equal(U, v)
            pairs = [(np.sum(U), np.sum(u)), (U.mean(), u.mean()), (np.linalg.norm(U - V), np.linalg.norm(u - v))]
            pairs += [(np.vdot(U, V), np.vdot(u, v)), (np.sqrt((U * U).sum()), np.sqrt((u * u).sum()))]
            for found, expected in pairs:
                assert math.isclose(found, expected, rel_tol=1e-13)
                assert type(found) is type(expected)


@scenario
def integers_are_exact() -> None:
    for dtype in (np.int8, np.int32, np.int64, np.uint8, bool):
        whole = (1e18 * numbers(3, *SHAPE)).astype(np.int64).astype(dtype)
        made = lw.from_function(lambda *at, whole=whole: whole[at], SHAPE, dtype)
        with staying_apart(), np.errstate(over="ignore"):
            for function in (np.sum, np.max, np.min, np.any, np.all):
                found, expected = function(made), function(whole)
                assert (found, found.dtype) == (expected, expected.dtype), function
            assert np.vdot(made, made) == np.vdot(whole, whole)


@scenario
def elementwise_functions_give_distributed_arrays() -> None:
    v = numbers(7, *SHAPE)
    for U, u in layouts():
        with staying_apart():
            found = np.where(U > 0.5, np.sqrt(U) + v, 2.0 * U - v[0])
            U += 0.25
            U *= found
        right = np.where(u > 0.5, np.sqrt(u) + v, 2.0 * u - v[0])
        u += 0.25
        u *= right
        assert isinstance(found, lw.DistributedArray) == (rank_and_size()[1] > 1)
        smooth(found, 1)
        smooth.python(right, 1)
        assert np.asarray(found).tobytes() == right.tobytes()
        assert np.asarray(U).tobytes() == u.tobytes()
        with pytest.raises(ValueError, match="ambiguous"):
            bool(U > 0.5)
        assert [row[0] for row in U] == [row[0] for row in u]
        assert np.cumsum(U).tobytes() == np.cumsum(u).tobytes()  # of NumPy arrays, which are kept until they change


@scenario
def an_error_of_one_rank_is_raised_on_all() -> None:
    made = lw.from_function(lambda i, j: i + 0 * j, SHAPE)
    with pytest.raises((FloatingPointError, lw.RunError)), np.errstate(divide="raise"):
        1.0 / made  # 0 is in the first row alone
    assert made.sum() == SHAPE[1] * sum(range(SHAPE[0]))


@scenario
def elements_and_slices() -> None:
    for U, u in layouts():
        with staying_apart():
            for index in [(3, 4), (-1, -2), 5, (slice(2, 9, 3), 4), (slice(None, None, -2), slice(7, 2, -1)), (..., 3)]:
                found = U[index]
                assert type(found) is type(u[index])
                assert np.asarray(found).tobytes() == u[index].tobytes(), index
        with pytest.raises(IndexError):
            U[99, 0]
        U[2:4, 3] = 7.0
        u[2:4, 3] = 7.0
        U[5] = numbers(4, SHAPE[1])
        u[5] = numbers(4, SHAPE[1])
        U[::2, 1] = -1.0
        u[::2, 1] = -1.0
        smooth(U, 1)
        smooth.python(u, 1)
        assert np.asarray(U).tobytes() == u.tobytes()


@lw.nest
def program(u, v, sweeps):
    total = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        total = total + np.sum(v) + np.linalg.norm(u - v) + v.mean() + np.vdot(u, v) - np.abs(u - v).max()
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = v[i, j]
    return total


@scenario
def programs_have_the_bits_of_plain_python() -> None:
    for make in (lw.DistributedArray, lambda values: values):
        (u, v), expected = (numbers(1, *SHAPE), numbers(2, *SHAPE)), (numbers(1, *SHAPE), numbers(2, *SHAPE))
        assert program(make(u), make(v), 3) == program.python(*expected, 3)


@lw.nest
def scaled_by(u, v, factor):
    largest = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = factor * u[i - 1, j] + v[i, j - 1]
            largest = max(largest, u[i, j])
    return largest


@scenario
def calls_alike_are_repeated() -> None:
    """Whatever happens to the arrays in between."""
    _, size = rank_and_size()
    u, v = numbers(1, *SHAPE), numbers(2, *SHAPE)
    U, V = lw.from_function(lambda *at: numbers(1, *SHAPE)[at], SHAPE), lw.DistributedArray(on_rank_0(v))
    repeated: list[int] = []
    run = RepeatedRun.run
    RepeatedRun.run = lambda self, *rest: (repeated.append(1), run(self, *rest))[1]
    try:
        for k in range(24):
            if k % 5 == 1:
                U.local[...] *= 0.5
                u *= 0.5
            if k % 7 == 2:
                assert np.asarray(V).tobytes() == v.tobytes()
                V[3, 4:9] = k
                v[3, 4:9] = k
            if k == 11:
                smooth.using(grid=(1, size))(U, 1)
                smooth.python(u, 1)
            if k == 17:
                slanted(V, U, 1)
                slanted.python(v, u, 1)
            assert scaled_by(U, V, 0.3 + 0.01 * k) == scaled_by.python(u, v, 0.3 + 0.01 * k)
            U, V, u, v = (V, U, v, u) if k % 3 == 0 and k < 9 else (U, V, u, v)
    finally:
        RepeatedRun.run = run
    assert np.asarray(U).tobytes() == u.tobytes()
    assert np.asarray(V).tobytes() == v.tobytes()
    assert len(repeated) >= 12 or size == 1, len(repeated)


@lw.nest
def looked_up(u, k, table):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * u[i - 1, j] + table[k[i, j]]


@scenario
def what_the_plain_loop_raises_leaves_arrays_as_they_were() -> None:
    u, k, table = numbers(1, *SHAPE), (4 * numbers(2, *SHAPE)).astype(np.int64), numbers(3, 4)
    U, K, T = (lw.DistributedArray(on_rank_0(values)) for values in (u, k, table))
    for _ in range(3):
        looked_up(U, K, T)
        looked_up.python(u, k, table)
    for at in ((17, 20), (2, 3)):
        before = K[at]
        K[at] = 4
        with pytest.raises((lw.RunError, IndexError)):
            looked_up(U, K, T)
        assert np.asarray(U).tobytes() == u.tobytes()
        K[at] = before
        looked_up(U, K, T)
        looked_up.python(u, k, table)
    assert np.asarray(U).tobytes() == u.tobytes()


@scenario
def other_calls_than_the_repeated_one_are_refused() -> None:
    rank, size = rank_and_size()
    U = lw.from_function(lambda i, j: i * j, SHAPE)
    for _ in range(3):
        smooth(U, 1)
    if size > 1:
        with pytest.raises(lw.RefusedError, match="sweeps differs between ranks: 1 on rank 0, 2 on"):
            smooth(U, 1 if rank == 0 else 2)
    smooth(U, 1)
    u = np.fromfunction(lambda i, j: i * j, SHAPE)
    smooth.python(u, 4)
    assert np.asarray(U).tobytes() == u.tobytes()


def play(ranks: int, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, __file__, *names],
        capture_output=True, text=True, timeout=scaled(240), check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **({} if ranks == EVERYDAY else THOROUGHLY), "LAPWING_QUIET": "1"},
    )  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", everyday([1, 2, 3, 4], [EVERYDAY]))
def test_scenarios(ranks: int) -> None:
    done = play(ranks, *SCENARIOS)
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    assert [done.stdout.count(f"done {name}\n") for name in SCENARIOS] == [ranks] * len(SCENARIOS)


if __name__ == "__main__":
    optimise_little()
    for name in sys.argv[1:]:
        SCENARIOS[name]()
        sys.stdout.write(f"done {name}\n")  # at once, that lines of several ranks do not mix
        sys.stdout.flush()
