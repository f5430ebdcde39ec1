"""Ranks of a collective call: the same call with the same arguments, on the ranks it is for; nothing chosen silently, no hang.

Started by mpiexec as a program, this file runs scenarios, functions below, on the ranks of that run, one after the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from on_ranks import back, mpiexec, numbers, on_rank_0, only_read, other_order, rank_and_size, slanted, smooth
from on_ranks import written_twice as writes_twice
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY, rounds

import lapwing as lw
from lapwing.planner.plan import ENGINES
from lapwing.runtime import execute
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.arrival import ranks_text

SECONDS = scaled(120)
PATIENCE = "2"
SCENARIOS: dict[str, Callable[..., None]] = {}


def scenario(function: Callable[..., None]) -> Callable[..., None]:
    SCENARIOS[function.__name__] = function
    return function


# -- on the ranks of a run -------------------------------------------------------------------------------------------

STEP, VALUES = 0.25, np.arange(200.0)


@lw.nest
def with_globals(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = STEP * u[i - 1, j] + VALUES[i]


@lw.nest
def divided(u, sweeps, at):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j + 1]) // 3 + 7 // (i + j + t - at)


@lw.nest
def counted(u, table, at):
    """Only what another rank left out makes the look-up leave its table."""
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + 1 + table[u[i - 1, j] - i + 1] + 0 // (2 * i + j - at)


def everywhere(value: Any) -> list[Any]:
    from mpi4py import MPI

    return MPI.COMM_WORLD.allgather(value)


def refusal(call: Callable[[], Any], kind: type[Exception] = lw.RefusedError) -> str:
    """What a call is refused with, the same on every rank."""
    try:
        call()
    except kind as error:
        text = str(error)
    else:
        text = "not refused"
    assert set(everywhere(text)) == {text}
    assert text != "not refused"
    return text


def as_laid_out(values: np.ndarray, k: int) -> np.ndarray:
    """The same elements in another layout."""
    if k % 3 == 1:
        return np.asfortranarray(values)
    if k % 3 == 2:
        return np.repeat(values, 2, axis=-1)[..., ::2]
    return values.copy()


@scenario
def equal_arrays_stay_equal() -> None:
    """Every rank that passes an array has the result, whatever the layout of its copy; NaNs are equal to themselves."""
    rank, size = rank_and_size()
    generator = np.random.default_rng(3)
    for k in rounds(12, 24):
        nest = [smooth, back, other_order, writes_twice, slanted, with_globals][k % 6]
        shape = tuple(map(int, generator.integers(8, 30, 2)))
        dtype = [np.float64, np.float32][k % 2]
        u = generator.random(shape).astype(dtype)
        u[3, generator.integers(0, shape[1])] = np.nan
        more: tuple[Any, ...] = {"smooth": (2,), "other_order": (u[0].copy(),), "slanted": (u.copy(), 2)}.get(
            nest.loops.name, ()
        )
        mine, expected = as_laid_out(u, k + rank), u.copy()
        if k % 4 == 3 and rank == size - 1:
            mine = mine if rank == 0 else None
        nest.using(engine=ENGINES[k % 4])(mine, *more)
        with np.errstate(all="ignore"):
            nest.python(expected, *more)
        assert mine is None or np.array_equal(mine, expected, equal_nan=True), (nest, k)


@scenario
def what_differs_is_shown() -> None:
    rank, size = rank_and_size()
    if size == 1:
        return
    generator = np.random.default_rng(4)
    for k in rounds(6, 12):
        other = int(generator.integers(1, size))
        shape = tuple(map(int, generator.integers(5, 40, 2)))
        u = generator.random(shape)
        at = tuple(int(generator.integers(0, n)) for n in shape)
        mine = as_laid_out(u, k + rank)
        if rank == other:
            mine[at] = [-u[at], np.nan, 2.5][k % 3]
        text = refusal(lambda mine=mine: smooth(mine, 2))
        found = repr([-u[at], np.nan, 2.5][k % 3] + 0.0).removeprefix("np.float64(").rstrip(")")
        assert (
            f"u[{at[0]}, {at[1]}] differs between ranks: {float(u[at])!r} on rank 0, {found} on rank {other}. " in text
        )
        assert "lw.DistributedArray" in text
        assert "None on all ranks but rank 0" in text
        assert "smooth.using(comm=lw.SELF)" in text
        assert np.array_equal(u, mine) == (rank != other)
        assert "values[" in refusal(lambda mine=mine: lw.DistributedArray(mine))
    u, v = numbers(1, 9, 9), numbers(2, 9, 9)
    last = ranks_text([size - 1])
    here = rank == size - 1
    nan = np.full((9, 9), np.nan)
    if here:
        nan.view(np.uint64)[2, 2] ^= 1
    attempts: list[tuple[Callable[[], Any], str]] = [
        (lambda: smooth(u, 3 if here else 2), f"sweeps differs between ranks: 2 on rank 0, 3 on {last}"),
        (lambda: smooth(u, np.int64(2) if here else 2), f"2 on rank 0, np.int64(2) on {last}"),
        (
            lambda: smooth(u[:-1] if here else u, 2),
            f"shape (9, 9) on rank 0, a float64 array of shape (8, 9) on {last}",
        ),
        (
            lambda: smooth(u.astype("f4") if here else u, 2),
            "a float64 array of shape (9, 9) on rank 0, a float32 array",
        ),
        (lambda: smooth([1.0] if here else u, 2), f"a list on {last}"),
        (lambda: smooth(None if rank == 0 else u, 2), "u differs between ranks: None on rank 0, a float64"),
        (lambda: only_read(u, v + here), "v[0, 0] differs"),
        (lambda: only_read(u + here, v), "u[0, 0] differs"),
        (lambda: smooth(nan, 2), "u[2, 2] differs between ranks: nan (bits "),
        (
            lambda: smooth.using(engine="blocking" if here else "overlap")(u, 2),
            "engine differs between ranks: 'overlap' on",
        ),
        (lambda: smooth.using(tile=3 if here else 2)(u, 2), f"tile differs between ranks: 2 on rank 0, 3 on {last}"),
        (
            lambda: smooth.using(grid=(1, size) if here else (size, 1))(u, 2),
            f"grid differs between ranks: ({size}, 1) on",
        ),
        (lambda: back(u) if here else smooth(u, 2), f"{last} calls "),
        (lambda: U.numpy() if here else smooth(U, 2), "DistributedArray "),
        (lambda: smooth(None if here else U, 2), f"None on {last}"),
        (lambda: smooth(V if here else U, 2), "u differs between ranks: DistributedArray "),
    ]
    U, V = lw.DistributedArray(on_rank_0(u)), lw.DistributedArray(v)
    for attempt, expected in attempts:
        text = refusal(attempt)
        assert expected in text, (expected, text)
    read_only = u.copy()
    read_only.flags.writeable = not here
    assert "a read-only float64 array" in refusal(lambda: smooth(read_only, 2))
    global STEP
    STEP = 0.5 if here else 0.25
    assert "STEP differs between ranks: 0.25 on rank 0, 0.5 on" in refusal(lambda: with_globals(u))
    STEP = 0.25
    VALUES[7] += here
    assert "VALUES[7] differs between ranks: 7.0 on rank 0, 8.0 on" in refusal(lambda: with_globals(u))
    VALUES[7] = 7
    if here:
        mine = np.lib.stride_tricks.as_strided(numbers(5, 9, 9), (9, 9), (72, 0))
    else:
        mine = numbers(5, 9, 9)[:, :1] + np.zeros((9, 9))
    assert "overlap in memory" in refusal(lambda: smooth(mine, 1))


@scenario
def on_communicators_of_the_users() -> None:
    """Disjoint ones at the same time, with every engine; a freed one's successor starts anew."""
    from mpi4py import MPI

    rank, size = rank_and_size()
    for turn in range(3):
        mine = MPI.COMM_WORLD.Split([rank % 2, rank // 2, rank > 0][turn], [rank, -rank, 0][turn])
        first = mine.Get_rank() == 0
        for k, engine in enumerate(ENGINES):
            sweeps = 1 + k + (rank if mine.Get_size() == 1 else 0)
            u = numbers(mine.bcast(rank), 20 + k, 17)
            nest = smooth.using(comm=mine, engine=engine, tile=5)
            U = lw.DistributedArray(u.copy() if first else None, comm=mine)
            expected = u.copy()
            nest(U, sweeps)
            smooth(U, 1)  # where its array is
            smooth.python(expected, sweeps)
            smooth.python(expected, 1)
            found = U.numpy()
            assert (found is not None) == first
            assert found is None or found.tobytes() == expected.tobytes()
            nest(u, sweeps)
            smooth.using(comm=lw.SELF)(u, 1)
            assert u.tobytes() == expected.tobytes()
        mine.Free()
    u = numbers(1, 9, 9) + rank
    alone = lw.DistributedArray(u, comm=lw.SELF)
    expected = u.copy()
    back(alone)
    back.python(expected)
    assert alone.numpy() is u
    assert u.tobytes() == expected.tobytes()
    with pytest.raises(lw.RefusedError, match=r"smooth: comm=7: expected an mpi4py communicator, lw.SELF"):
        smooth.using(comm=7)(u, 1)
    with pytest.raises(lw.RefusedError, match="COMM_NULL: this rank is no member"):
        smooth.using(comm=MPI.COMM_NULL)(u, 1)
    if size > 1:
        with pytest.raises(
            lw.RefusedError, match="u is distributed over this rank alone, but the call is for all ranks"
        ):
            smooth.using(comm=MPI.COMM_WORLD)(alone, 1)


@scenario
def surplus_ranks_idle() -> None:
    """The grids of a multigrid cycle, down to one point and none, with reductions and arrays of every kind."""
    from lapwing.api.calls.run import run

    _, size = rank_and_size()
    for k in rounds(6, 24):
        engine, n = ENGINES[(k + k // 6) % 4], (17, 9, 5, 4, 3, 2)[k % 6]
        u, c = numbers(n, n, n), numbers(n + 1, n)
        expected, U, mine = u.copy(), lw.DistributedArray(u), u.copy()
        for nest, more in ((smooth, (2,)), (back, ()), (other_order, (c,)), (smooth, (1,)), (slanted, (c * u, 2))):
            value = nest.python(expected, *more)
            for array in (U, mine):
                found = nest.using(engine=engine)(array, *more)
                assert value is None or abs(found - value) <= 1e-12 * abs(value)
            plan = nest.plan(u, *more, ranks=size)
            assert plan.ranks + plan.idle == size
        assert mine.tobytes() == expected.tobytes()
        assert (whole := U.numpy()) is None or whole.tobytes() == expected.tobytes()
    outcome = run(smooth, smooth.arguments(numbers(1, 3, 4), 1))
    assert outcome.plan.ranks == min(size, 2)
    assert len(outcome.trace.ranks) == outcome.plan.ranks


@scenario
def arrays_without_elements() -> None:
    for shape in ((0, 5), (5, 0), (0, 0), (1, 0)):
        u = np.zeros(shape)
        smooth(u, 2)
        smooth(u.T, 2)
        only_read(u, np.zeros(shape))
        U = lw.DistributedArray(on_rank_0(u))
        smooth(U, 1)
        only_read(U, U)
        assert (found := U.numpy()) is None or found.shape == shape


@scenario
def errors_are_raised_on_all_ranks() -> None:
    """With arrays as they were; then all goes on."""
    generator = np.random.default_rng(6)
    for k in rounds(8, 24):
        shape = tuple(map(int, generator.integers(4, 40, 2)))
        nest = divided.using(engine=ENGINES[k % 4], tile=int(generator.integers(1, 9)))
        u = np.ones(shape, np.int64)
        U: Any = lw.DistributedArray(u.copy()) if k % 3 else u.copy()
        for at in (int(generator.integers(2, shape[0] + shape[1] - 2)), 1000, 3):
            kept = u.copy()
            try:
                divided.python(u, 3, at)
                nest(U, 3, at)
            except ZeroDivisionError:
                u = kept
                assert "division by zero" in refusal(lambda at=at: nest(U, 3, at), lw.RunError)  # noqa: B023
            found = U.numpy() if k % 3 else U
            assert found is None or found.tobytes() == u.tobytes(), (k, at)
    for k in rounds(4, 12):  # the error is one of the plain loop, not one of what was left out
        shape = tuple(map(int, generator.integers(4, 30, 2)))
        at = int(generator.integers(2, 2 * shape[0] - 1))
        u = np.zeros(shape, np.int64)
        nest = counted.using(engine=ENGINES[k % 4], tile=int(generator.integers(1, 9)))
        assert "division by zero" in refusal(lambda: nest(u, np.zeros(1, np.int64), at), lw.RunError)  # noqa: B023
        nest(u, np.zeros(1, np.int64), 1000)
        assert (u == np.arange(shape[0])[:, None]).all()


@scenario
def an_error_nobody_foresees_is_told_to_all_ranks() -> None:
    rank, u = int(os.environ["PMI_RANK"]), numbers(1, 30, 9)

    def short(*_: Any) -> Any:
        raise MemoryError("no room")

    kept, execute.runner_of = execute.runner_of, short if rank == 1 else execute.runner_of  # type: ignore[assignment]
    try:
        with pytest.raises(MemoryError if rank == 1 else lw.RunError, match="no room"):
            smooth(u, 1)
    finally:
        execute.runner_of = kept
    smooth(u, 1)


@scenario
def an_error_ends_a_long_run_soon() -> None:
    u = np.ones((2000, 2000), np.int64)
    assert "division by zero" in refusal(lambda: divided.using(tile=2000)(u, 200, 301), lw.RunError)


# Alone: what ends the run.


@scenario
def late(how: str, which: str) -> None:
    if "mpi" in how:
        from mpi4py import MPI  # noqa: F401
    u = numbers(1, 9, 9)
    if "second" in how:
        smooth(u, 1)
    if os.environ["PMI_RANK"] in which:
        if "raises" in how:
            raise KeyError("lost on the way")
        if "sleeps" in how:
            time.sleep(100)
        if "hears nothing" not in how:
            return
        kept = communicator.wait_for_work
        communicator.wait_for_work = lambda arrived, roll: kept(lambda: False, roll)  # type: ignore[attr-defined]
    smooth(u, 1)
    print("over", flush=True)


# -- tests -----------------------------------------------------------------------------------------------------------

IN_TURN = [name for name in SCENARIOS if name != "late"]


def play(ranks: int, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, __file__, *words],
        capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **settings},
    )  # fmt: skip


# Every day on as many ranks as are needed to tell one from the others; all of them on each number in the long tests.
OF_THREE = ("what_differs_is_shown", "on_communicators_of_the_users", "an_error_nobody_foresees_is_told_to_all_ranks")
EVERYDAY = [(name, 3 if name in OF_THREE else 2) for name in IN_TURN]
ALL = [pytest.param(name, ranks, True, marks=pytest.mark.long) for name in IN_TURN for ranks in (2, 3, 5)]


def in_turn(ranks: int, thorough: bool) -> list[str]:
    return IN_TURN if thorough else [name for name, wanted in EVERYDAY if wanted == ranks]


@cache
def played_in_turn(ranks: int, thorough: bool) -> subprocess.CompletedProcess[str]:
    return play(ranks, *in_turn(ranks, thorough), **(THOROUGHLY if thorough else {}))


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "ranks", "thorough"), [*((*one, False) for one in EVERYDAY), *ALL])
def test_scenario(name: str, ranks: int, thorough: bool) -> None:
    done = played_in_turn(ranks, thorough)
    if done.returncode != 0:
        ended = next(n for n in in_turn(ranks, thorough) if done.stdout.count(f"done {n}\n") < ranks)
        assert name != ended, done.stderr[-3000:]
        done = play(ranks, name)  # it may not have had its turn
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count(f"done {name}\n") == ranks


NOT_ARRIVED = "lapwing: ranks 0, 2 at smooth (test_meeting.py:{}): rank 1 has not arrived after 2 s. "
ENDINGS = {
    "mpi second sleeps": ("1", NOT_ARRIVED),
    "mpi sleeps": ("1", NOT_ARRIVED),
    "mpi returns": ("1", NOT_ARRIVED),
    "mpi second returns": (
        "02",
        "lapwing: rank 1 at smooth (test_meeting.py:{}): ranks 0, 2 have not arrived after 2 s. ",
    ),
    "mpi raises": ("1", "KeyError: 'lost on the way'"),
    "mpi second raises": ("0", "KeyError: 'lost on the way'"),
    "raises": ("1", "KeyError: 'lost on the way'"),
    "mpi hears nothing at the end": (
        "02",
        "lapwing: rank 0: waited 2 s at the end of the run: all ranks have come there, and MPI has lost a message",
    ),
    "sleeps": ("1", "MPI has not started after 2 s: some rank has not arrived"),
}


# The same class as another: in the second call, longer on the way, before or after MPI has started.
AGAIN = {
    "mpi second sleeps",
    "mpi second raises",
    "mpi second returns",
    "mpi hears nothing at the end",
    "mpi sleeps",
    "raises",
}


@pytest.mark.mpi
@pytest.mark.parametrize("how", everyday(ENDINGS, ENDINGS.keys() - AGAIN))
def test_a_rank_that_does_not_come(how: str) -> None:
    which, text = ENDINGS[how]
    begun = time.monotonic()
    done = play(3, "late", how, which, LAPWING_PATIENCE=PATIENCE)
    assert time.monotonic() - begun < 60
    assert done.returncode != 0
    with open(__file__) as source:
        line = next(k for k, text in enumerate(source, 1) if text == "    smooth(u, 1)\n" and k > LATE)
    assert text.format(line) in done.stderr, done.stderr
    assert "over" not in done.stdout


LATE = late.__code__.co_firstlineno


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 0), (0,)])
def test_arrays_without_elements_do_not_overlap(shape: tuple[int, ...]) -> None:
    u = np.zeros(shape)
    nest = smooth if len(shape) == 2 else alone
    nest(u, 2)
    if len(shape) == 2:
        only_read(u, u)
        only_read(u.T, u.T)


@lw.nest
def alone(u, sweeps):
    for t in range(sweeps):
        for i in range(u.shape[0]):
            u[i] = u[i] + 1


def test_the_ranks_of_one_process() -> None:
    u = numbers(1, 9, 9)
    expected = u.copy()
    smooth.using(comm=lw.SELF)(u, 1)
    smooth.python(expected, 1)
    assert u.tobytes() == expected.tobytes()
    assert repr(lw.SELF) == "lw.SELF"
    with pytest.raises(lw.RefusedError, match="expected an mpi4py communicator"):
        smooth.using(comm="all")(u, 1)


def test_patience_beyond_what_clocks_can_count() -> None:
    watch = "library.lw_watch(1e12, b'over'); time.sleep(0.1); library.lw_unwatch()"
    script = f"import time; from lapwing.runtime.binding import native; library = native.serial_runtime(); {watch}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, "over" in done.stderr) == (0, False)


def test_ranks_in_words() -> None:
    assert [ranks_text(r) for r in ([3], [1, 2], [0, 1, 2, 5], [0, 2])] == [
        "rank 3", "ranks 1, 2", "ranks 0 to 2, 5", "ranks 0, 2",
    ]  # fmt: skip


if __name__ == "__main__":
    optimise_little()
    if sys.argv[1] == "late":
        late(*sys.argv[2:])
        sys.exit()
    for name in sys.argv[1:]:
        SCENARIOS[name]()
        sys.stdout.write(f"done {name}\n")  # at once, that lines of several ranks do not mix
        sys.stdout.flush()
