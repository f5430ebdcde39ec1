"""Two programs at once: on communicators of the user's, in several threads, between the user's own messages.

Started by mpiexec as a program, this file runs scenarios, functions below, on the ranks of that run, one after the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import on_ranks
import pytest
from limits import scaled
from on_ranks import back, mpiexec, numbers, rank_and_size, smooth
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY

import lapwing as lw
from lapwing.planner.plan import ENGINES
from lapwing.runtime.mpi.threads import one_call

SECONDS = scaled(120)
SCENARIOS: dict[str, Callable[[], None]] = {}


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS[function.__name__] = function
    return function


# -- on the ranks of a run -------------------------------------------------------------------------------------------


@lw.nest
def jacobi(u, v, steps):
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
        u, v = v, u
    return u.max()


@lw.nest
def converged(u, tol):
    change, sweeps = 1.0, 0
    while change > tol:
        change = 0.0
        sweeps += 1
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                change = max(change, abs(new - u[i, j]))
                u[i, j] = new
    return sweeps, change


def check(nest: Any, comm: Any, seed: int, *more: Any, **choices: Any) -> None:
    """The plain loop's bits and results, on every rank of comm."""
    u = numbers(seed, 9 + seed % 4, 11)
    expected, spare = u.copy(), [u.copy()] if nest is jacobi else []
    with_spare = [a.copy() for a in spare]
    found = nest.using(comm=comm, **choices)(u, *spare, *more)
    assert repr(found) == repr(nest.python(expected, *with_spare, *more))
    assert u.tobytes() == expected.tobytes()


def check_all(comm: Any, seed: int) -> None:
    check(smooth, comm, seed, 2)
    check(back, comm, seed)
    check(jacobi, comm, seed, 3)
    check(converged, comm, seed, 1e-2)


@scenario
def different_programs_on_two_halves() -> None:
    from mpi4py import MPI

    rank, _ = rank_and_size()
    half = MPI.COMM_WORLD.Split(rank % 2, -rank)
    for seed in range(2):
        check(*((converged, half, seed, 1e-2) if rank % 2 else (jacobi, half, seed, 5)))
        check(smooth, half, rank % 2, 1 + rank % 2)
    half.Free()


@scenario
def ranks_in_another_order_and_each_alone() -> None:
    from mpi4py import MPI

    rank, _ = rank_and_size()
    reverse = MPI.COMM_WORLD.Split(0, -rank)
    check_all(reverse, 1)
    check_all(MPI.COMM_SELF, rank)  # each another problem
    mine = lw.DistributedArray(numbers(1, 9, 9) if reverse.Get_rank() == 0 else None, comm=reverse)
    smooth(mine, 2)
    expected = numbers(1, 9, 9)
    smooth.python(expected, 2)
    found = mine.numpy()
    assert (found is None) == (reverse.Get_rank() != 0)
    assert found is None or found.tobytes() == expected.tobytes()
    reverse.Free()


@scenario
def alternately_on_several() -> None:
    from mpi4py import MPI

    rank, _ = rank_and_size()
    several = [MPI.COMM_WORLD, MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Split(0, -rank)]
    for seed in range(2):
        for comm in several:
            check(converged, comm, seed, 0.1)
            check(smooth, comm, seed, 2)
    for comm in several[1:]:
        comm.Free()
        with pytest.raises(lw.RefusedError, match="COMM_NULL"):
            smooth.using(comm=comm)(numbers(1, 9, 9), 1)


@scenario
def intercommunicators_are_refused() -> None:
    from mpi4py import MPI

    rank, size = rank_and_size()
    half = MPI.COMM_WORLD.Split(rank % 2, rank)
    between = half.Create_intercomm(0, MPI.COMM_WORLD, 1 - rank % 2, 7)
    for nest, more in ((smooth, (1,)), (converged, (1.0,))):
        with pytest.raises(lw.RefusedError, match=r"comm is an intercommunicator.*Pass comm.Merge"):
            nest.using(comm=between)(numbers(1, 9, 9), *more)
    check(smooth, merged := between.Merge(), 1, 2)
    assert merged.Get_size() == size
    merged.Free()
    between.Free()


@scenario
def between_messages_of_the_users() -> None:
    """Receives of anything, posted before, and sends with any tag that nobody has received: also before the first call on a
    communicator."""
    from mpi4py import MPI

    rank, size = rank_and_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    for comm in (MPI.COMM_WORLD, MPI.COMM_WORLD.Dup()):
        anything = np.zeros(2)
        posted = comm.Irecv(anything, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG)
        for engine in ENGINES:
            check(smooth, comm, 1, 2, engine=engine)
        check_all(comm, 2)
        assert not posted.Test()
        comm.Barrier()
        sent = comm.Isend(np.full(2, 1.0 + rank), dest=after, tag=5)
        posted.Wait()
        sent.Wait()
        assert (anything == 1.0 + before).all()
        tags = [0, 1, 2, 77, 78, 32_767]  # Lapwing's own, too
        under_way = [comm.Isend(np.full(2, tag + 0.5), dest=after, tag=tag) for tag in tags]
        for engine in ENGINES:
            check(smooth, comm, 3, 2, engine=engine)
        check_all(comm, 4)
        for tag in reversed(tags):
            comm.Recv(anything, source=before, tag=tag)
            assert (anything == tag + 0.5).all()
        MPI.Request.Waitall(under_way)


@scenario
def each_thread_on_its_own_communicator() -> None:
    from mpi4py import MPI

    rank, _ = rank_and_size()
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    several = [MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Split(0, -rank), MPI.COMM_SELF]

    def work(k: int) -> None:
        for seed, engine in enumerate(ENGINES):
            check(smooth, several[k], seed + k, 2, engine=engine)
        check(jacobi, several[k], k, 3)
        check(converged, several[k], k, 0.3)

    assert in_threads(work, 3) == []


@scenario
def two_threads_on_one_communicator_are_refused() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD.Dup()
    array = lw.DistributedArray(numbers(1, 9, 9), comm=comm)

    def work(k: int) -> None:
        for call in (lambda: smooth(array, 1), lambda: converged.using(comm=comm)(numbers(1, 9, 9), 1.0), array.numpy):
            with pytest.raises(lw.RefusedError, match="another thread of this rank is in a call on the same comm"):
                call()
        check(smooth, MPI.COMM_SELF, 1, 1)

    with one_call(array.comm, "a long call"):
        assert in_threads(work, 1) == []
        check(smooth, comm, 1, 1)  # of the thread that is in the call already
    smooth(array, 1)


@scenario
def threads_that_mpi_does_not_take_are_refused() -> None:
    from mpi4py import MPI

    name = {MPI.THREAD_SINGLE: "MPI_THREAD_SINGLE", MPI.THREAD_FUNNELED: "MPI_THREAD_FUNNELED"}[MPI.Query_thread()]

    def work(k: int) -> None:
        for call in (lambda: smooth(numbers(1, 9, 9), 1), lambda: converged(numbers(1, 9, 9), 1.0)):
            with pytest.raises(
                lw.RefusedError, match=f"initialised with {name}. Initialise it with MPI_THREAD_MULTIPLE"
            ):
                call()
        check_all(lw.SELF, 1)

    assert in_threads(work, 1) == []
    check_all(MPI.COMM_WORLD, 1)


def in_threads(work: Callable[[int], None], number: int) -> list[BaseException]:
    """What the threads raise."""
    raised: list[BaseException] = []

    def tried(k: int) -> None:
        try:
            work(k)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=tried, args=(k,)) for k in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


# -- tests -----------------------------------------------------------------------------------------------------------


HELPERS = os.pathsep.join([*WITH_HELPERS.values(), str(Path(on_ranks.__file__).parent)])


@cache
def played(ranks: int, threads: str, *names: str, thorough: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, __file__, threads, *names],
        capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": HELPERS, **(THOROUGHLY if thorough else {})},
    )  # fmt: skip


FEWER_THREADS = "threads_that_mpi_does_not_take_are_refused"
OF_TWO = ("each_thread_on_its_own_communicator", "two_threads_on_one_communicator_are_refused")
IN_TURN = [name for name in SCENARIOS if name != FEWER_THREADS]
EVERYDAY = [(name, 2 if name in OF_TWO else 3) for name in IN_TURN]


@pytest.mark.mpi
@pytest.mark.parametrize(("name", "ranks"), EVERYDAY)
def test_scenario(name: str, ranks: int) -> None:
    done = played(ranks, "multiple", *(other for other, wanted in EVERYDAY if wanted == ranks))
    assert done.stdout.count(f"done {name}\n") == ranks, done.stderr[-3000:]


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", IN_TURN)
def test_scenario_on_any_number_of_ranks(name: str, ranks: int) -> None:
    done = played(ranks, "multiple", name, thorough=True)
    assert done.stdout.count(f"done {name}\n") == ranks, done.stderr[-3000:]


@pytest.mark.mpi
@pytest.mark.parametrize("threads", ["funneled", pytest.param("single", marks=pytest.mark.long)])
def test_fewer_threads(threads: str) -> None:
    done = played(2, threads, FEWER_THREADS)
    assert done.stdout.count(f"done {FEWER_THREADS}\n") == 2, done.stderr[-3000:]


if __name__ == "__main__":
    import mpi4py

    mpi4py.rc.thread_level = sys.argv[1]
    from mpi4py import MPI  # noqa: F401

    optimise_little()
    for name in sys.argv[2:]:
        SCENARIOS[name]()
        sys.stdout.write(f"done {name}\n")  # at once, that lines of several ranks do not mix
        sys.stdout.flush()
