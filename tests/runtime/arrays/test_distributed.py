"""Arrays that stay distributed between calls.

Started by mpiexec as a program, this file runs scenarios, functions below, on the ranks of that run, one after the other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from on_ranks import (
    back,
    mpiexec,
    numbers,
    on_rank_0,
    only_read,
    other_order,
    rank_and_size,
    same,
    slanted,
    smooth,
    written_twice,
)
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY, rounds

import lapwing as lw

SECONDS = scaled(120)
TOGETHER = scaled(270)  # all scenarios in turn: as long as a test may take
SCENARIOS: dict[str, Callable[[], None]] = {}


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS[function.__name__] = function
    return function


# -- nests -----------------------------------------------------------------------------------------------------------


@lw.nest
def written_off_centre(u):
    for i in range(3, u.shape[0] - 2):
        for j in range(2, u.shape[1]):
            u[i + 2, j - 1] = 0.5 * u[i - 1, j - 1]


@lw.nest
def corner(u):
    for i in range(1, 4):
        for j in range(1, 5):
            u[i, j] = u[i - 1, j] + 0.5 * u[i, j - 1]


@lw.nest
def nothing(u):
    for i in range(3, 3):
        for j in range(u.shape[1]):
            u[i, j] = 1.0


# -- on the ranks of a run -------------------------------------------------------------------------------------------


def nearly(a: float, b: float) -> bool:
    """An exact sum and one rounded at every step."""
    return abs(a - b) <= 1e-12 * abs(b)


@scenario
def nests_in_turn() -> None:
    u, v, c = numbers(1, 20, 30), numbers(2, 20, 30), numbers(3, 30)
    U, V, C = (lw.DistributedArray(on_rank_0(x)) for x in (u, v, c))
    assert (U.shape, U.dtype, U.ndim) == ((20, 30), np.float64, 2)
    steps: list[Callable[[], None]] = [
        lambda: same_results(smooth(U, 2), smooth.python(u, 2)),
        lambda: same_results(back(U), back.python(u)),
        lambda: nearly_results(other_order(U, C), other_order.python(u, c)),
        lambda: same_results(only_read(U, V), only_read.python(u, v)),
        lambda: same_results(only_read(V, U), only_read.python(v, u)),
        lambda: same_results(slanted(U, V, 2), slanted.python(u, v, 2)),
        lambda: same_results(slanted(V, U, 1), slanted.python(v, u, 1)),
        lambda: same_results(written_off_centre(U), written_off_centre.python(u)),
        lambda: same_results(smooth(V, 1), smooth.python(v, 1)),
        lambda: same_results(written_twice(U), written_twice.python(u)),
        lambda: same_results(corner(U), corner.python(u)),
        lambda: same_results(nothing(U), nothing.python(u)),
    ]
    generator = np.random.default_rng(7)
    for k in (*range(len(steps)), *generator.integers(0, len(steps), len(rounds(12, 30)))):
        steps[k]()
        # Looking must not change anything, and not looking neither.
        if k % 3 == 0:
            same(U.numpy(), u)
            same(V.numpy(), v)
    same(U.numpy(), u)
    same(V.numpy(), v)
    same(C.numpy(), c)


def same_results(found: Any, expected: Any) -> None:
    assert found == expected, (found, expected)


def nearly_results(found: float, expected: float) -> None:
    assert nearly(found, expected), (found, expected)


@scenario
def looked_at_after_every_nest() -> None:
    nests = (smooth, written_off_centre, written_twice, back, corner)
    pairs = list(product(nests[:-1], nests))
    for k in rounds(len(pairs) // 2, 2 * len(pairs)):
        engine = ("overlap", "blocking")[(k + k // len(pairs)) % 2]
        first, second = (
            nest.using(engine=engine) for nest in pairs[7 * k % len(pairs)]
        )  # all of the first, all of the second
        if first.loops.name == "smooth":
            first = first.using(tile=4)
        u = numbers(5, 19, 21)
        U = lw.DistributedArray(on_rank_0(u))
        for nest in (first, second, first):
            more = (2,) if nest.loops.name == "smooth" else ()
            assert nest(U, *more) == nest.python(u, *more)
            same(U.numpy(), u)


@scenario
def grids_by_hand() -> None:
    """Every change of the grid distributes anew."""
    _, size = rank_and_size()
    u = numbers(4, 17, 18)
    U = lw.DistributedArray(on_rank_0(u))
    for grid in [(size, 1), (1, size), (size, 1), *([(2, size // 2)] if size % 2 == 0 else [])]:
        smooth.using(grid=grid, tile=3)(U, 2)
        smooth.python(u, 2)
        same(U.numpy(), u)
        back.using(grid=grid)(U)
        back.python(u)
        same(U.numpy(), u)


@scenario
def stays_where_it_is() -> None:
    """Nests that can work on the distribution they find keep it, whatever they would have chosen."""
    _, size = rank_and_size()
    u, v = numbers(4, 17, 18), numbers(5, 17, 18)
    for grid in ((size, 1), (1, size)):
        U, V = lw.DistributedArray(on_rank_0(u)), lw.DistributedArray(on_rank_0(v))
        smooth.using(grid=grid)(U, 1)
        found = U.layout
        assert (found is None) == (size == 1)
        assert back(U) is not None
        smooth(U, 1)
        only_read(U, V)
        assert U.layout == found


@scenario
def plain_arrays_and_distributed_ones() -> None:
    u, v = numbers(1, 15, 16), numbers(2, 15, 16)
    U, plain = lw.DistributedArray(on_rank_0(u)), on_rank_0(v)
    for _ in range(2):
        only_read(U, plain)
        only_read.python(u, v)
        smooth(U, 1)
        smooth.python(u, 1)
        only_read(plain, U)
        only_read.python(v, u)
    same(U.numpy(), u)
    same(plain, v)


@scenario
def results_on_every_rank() -> None:
    u = numbers(1, 15, 16)
    U = lw.DistributedArray(on_rank_0(u))
    assert back(U) == back.python(u)
    c = numbers(2, 16)
    assert nearly(other_order(U, on_rank_0(c)), other_order.python(u, c))


@scenario
def wrong_arguments() -> None:
    """The same error on every rank, after which all goes on."""
    rank, size = rank_and_size()
    u = numbers(1, 15, 16)
    U = lw.DistributedArray(on_rank_0(u))
    smooth(U, 1)
    attempts: list[tuple[Callable[[], Any], str]] = [
        (lambda: smooth(on_rank_0(u.astype("longdouble")), 2), "dtype float128"),
        (lambda: smooth(on_rank_0(u[0]), 2), "cannot be computed"),
        (lambda: smooth([1.0] if rank == 0 else on_rank_0(u), 2), "argument u of smooth is list"),
        (lambda: smooth(None, 2), "argument u of smooth is NoneType"),
        (lambda: smooth(U, 2.5), "not an integer"),
        (lambda: smooth(U, None), "sweeps is NoneType"),
        (lambda: smooth.using(grid=(size + 1, 1))(U, 2), "multiply to"),
        (lambda: smooth.using(tile=0)(U, 2), "tile 0"),
        (lambda: smooth.using(engine="turbo")(U, 2), "engine 'turbo'"),
        (lambda: only_read(U, U), "are the same array" if size > 1 else "share memory"),
        (lambda: smooth(U), "missing a required argument"),
        (lambda: lw.DistributedArray([1.0] if rank == 0 else None), "rank 0 passed list"),
        (lambda: lw.DistributedArray(None), "rank 0 passed NoneType"),
    ]
    from mpi4py import MPI

    for attempt, expected in attempts:
        try:
            attempt()
        except lw.RefusedError as error:
            text = str(error)
        else:
            raise AssertionError(f"not refused: {expected}")
        assert expected in text, (expected, text)
        assert set(MPI.COMM_WORLD.allgather(text)) == {text}
    smooth(U, 2)
    smooth.python(u, 1)
    smooth.python(u, 2)
    same(U.numpy(), u)


@scenario
def mpi_used_before_and_after() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    pending = world.isend(("mine", rank), dest=right, tag=0)
    u = numbers(1, 15, 16)
    U = lw.DistributedArray(on_rank_0(u))
    smooth(U, 3)
    assert world.recv(source=left, tag=0) == ("mine", left)  # not taken by a tile
    pending.wait()
    assert world.allreduce(rank) == size * (size - 1) // 2
    half = world.Split(rank % 2)
    smooth(U, 1)
    assert half.allreduce(1) == len(range(rank % 2, size, 2))
    smooth.python(u, 4)
    same(U.numpy(), u)


class Counted:
    """A communicator that counts the bytes it sends of arrays."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.bytes = comm, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)

    def Send(self, buffer: np.ndarray, dest: int) -> None:
        self.bytes += buffer.nbytes
        self.comm.Send(buffer, dest=dest)

    def total(self) -> int:
        found: int = self.comm.allreduce(self.bytes)
        self.bytes = 0
        return found


@scenario
def runs_that_start_from_the_same_values() -> None:
    """However many runs, an element goes to a rank once, and results are gathered once for each partition."""
    from lapwing.api.check import Reference
    from lapwing.planner.choose import Wishes, make_plan
    from lapwing.runtime.execute import Measure, written_views
    from lapwing.runtime.mpi import communicator
    from lapwing.session import together
    from lapwing.session.together import RunsTogether
    from lapwing.tiling.skewing import skewed_nest

    rank, size = rank_and_size()
    whole, v = numbers(3, 24, 26), numbers(4, 24, 26)
    for nest, arguments in ((smooth, {"u": whole, "sweeps": 3}), (slanted, {"u": whole, "v": v, "sweeps": 2})):
        expected = {name: np.array(value) for name, value in arguments.items()}
        nest.python(**expected)
        bound = nest.bind(arguments)
        wishes = [Wishes(e, 5, g) for g in ((size, 1), (1, size)) for e in ("overlap", "blocking", "onesided")]
        if nest is slanted:
            wishes = [Wishes(e, 5) for e in ("overlap", "blocking")]
        plans = [make_plan(bound, nest.dependences, size, wish) for wish in wishes]
        sources = {a.name: arguments[a.name] if rank == 0 else None for a in bound.arrays}
        reference = Reference({"u": expected["u"]}, {}, None, "") if rank == 0 else None
        comm = Counted(communicator.world())
        runs = RunsTogether(bound, plans, sources, reference, True, comm)
        sent = []
        for _ in range(2):
            for position in range(len(plans)):
                outcome, found = runs.run(position, None, None, Measure())
                assert found == []
                assert outcome.plan is plans[position]
                sent.append(comm.total())
        partitions = len({plan.partition for plan in plans})
        arrays = len(sources)
        assert sum(sent) <= (arrays * 2 + partitions) * whole.nbytes
        assert sum(sent[len(plans) :]) == 0
        assert np.array_equal(whole, numbers(3, 24, 26))

        kept = together.run_on_ranks

        def spoiled(bound: Any, plan: Any, blocks: Any, *rest: Any, kept: Any = kept) -> Any:
            outcome = kept(bound, plan, blocks, *rest)
            if rank == size - 1:
                views = written_views(skewed_nest(bound, plan.skew), plan, blocks["u"], rank)
                next(view for view in views if view.size).flat[0] += 1.0
            return outcome

        together.run_on_ranks = spoiled
        try:
            _, found = runs.run(0, None, None, Measure())
        finally:
            together.run_on_ranks = kept
        assert (rank == 0) == any("u differs in 1 of" in text for text in found), found


@scenario
def runs_of_less_work_than_ranks() -> None:
    """Surplus ranks keep nothing and have nothing to compare."""
    from lapwing.api.check import Reference
    from lapwing.planner.choose import Wishes, make_plan
    from lapwing.runtime.execute import Measure
    from lapwing.runtime.mpi import communicator
    from lapwing.session.together import RunsTogether

    rank, size = rank_and_size()
    arguments = {"u": numbers(3, 3, 3), "sweeps": 3}
    expected = {name: np.array(value) for name, value in arguments.items()}
    smooth.python(**expected)
    bound = smooth.bind(arguments)
    plans = [make_plan(bound, smooth.dependences, size, Wishes(engine)) for engine in ("overlap", "onesided")]
    assert (plans[0].ranks, plans[0].idle) == (1, size - 1)
    sources = {"u": arguments["u"] if rank == 0 else None}
    reference = Reference({"u": expected["u"]}, {}, None, "") if rank == 0 else None
    runs = RunsTogether(bound, plans, sources, reference, True, communicator.world())
    for position in (0, 1, 0, 1):
        outcome, found = runs.run(position, None, None, Measure(transfer=True))
        assert found == []
        assert outcome.plan is plans[position]


@scenario
def fails_on_one_rank() -> None:
    rank, size = rank_and_size()
    U = lw.DistributedArray(on_rank_0(numbers(1, 15, 16)))
    smooth(U, 1)
    if rank == size - 1:
        raise KeyError("lost on the way")
    smooth(U, 1)  # waits for the rank that is gone


# -- tests -----------------------------------------------------------------------------------------------------------


def start(command: list[str], seconds: float = SECONDS, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **settings},
    )  # fmt: skip


# Two and four ranks bring no class that one and three do not.
MORE = (2, 4)
RANKS = [1, 3, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in MORE)]
ALONE = ["fails_on_one_rank", "mpi_used_before_and_after"]
IN_TURN = [name for name in SCENARIOS if name not in ALONE]


def play(ranks: int, *names: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    settings = THOROUGHLY if ranks in MORE else {}
    return start([mpiexec(), "-n", str(ranks), sys.executable, __file__, *names], seconds, **settings)


@cache
def played_in_turn(ranks: int) -> subprocess.CompletedProcess[str]:
    """All scenarios that need no process of their own, in one: to start ranks takes longer than most of them."""
    try:
        return play(ranks, *IN_TURN, seconds=TOGETHER)
    except subprocess.TimeoutExpired as late:
        done = (late.stdout or b"").decode()
        return subprocess.CompletedProcess(late.cmd, -1, done, f"not over after {TOGETHER} s; over are:\n{done}")


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", IN_TURN)
def test_scenario(name: str, ranks: int) -> None:
    done = played_in_turn(ranks)
    if done.returncode != 0:
        ended = next(n for n in IN_TURN if done.stdout.count(f"done {n}\n") < ranks)
        assert name != ended, done.stderr[-3000:]
        done = play(ranks, name)  # it may not have had its turn
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count(f"done {name}\n") == ranks


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", everyday([1, 2, 3, 4], [3]))
def test_a_process_that_has_used_mpi(ranks: int) -> None:
    done = play(ranks, "mpi_used_before_and_after")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("done") == ranks


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", everyday([2, 4], [2]))
def test_an_uncaught_error_on_one_rank_ends_all(ranks: int) -> None:
    begun = time.monotonic()
    done = start([mpiexec(), "-n", str(ranks), sys.executable, __file__, "fails_on_one_rank"], seconds=60)
    assert time.monotonic() - begun < 60
    assert done.returncode != 0
    assert "KeyError: 'lost on the way'" in done.stderr
    assert "done" not in done.stdout


PROGRAM = """
import numpy as np
import lapwing as lw


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


if __name__ == "__main__":
    u = np.arange(30.0).reshape(5, 6) % 7
    U = lw.DistributedArray(u.copy())
    smooth(U, 2)
    smooth.python(u, 2)
    if (found := U.numpy()) is not None:
        print("same" if found.tobytes() == u.tobytes() else "different")
"""


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", everyday([1, 3], [3]), ids=["1 rank", "3 ranks"])
def test_a_program_of_the_users_own(ranks: int, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = start([mpiexec(), "-n", str(ranks), sys.executable, str(tmp_path / "program.py")])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


def test_without_mpi_it_wraps_the_array() -> None:
    u, expected = numbers(1, 9, 10), numbers(1, 9, 10)
    U = lw.DistributedArray(u)
    smooth(U, 2)
    smooth.python(expected, 2)
    assert U.numpy() is u
    assert u.tobytes() == expected.tobytes()
    with pytest.raises(lw.RefusedError, match="rank 0 passed list, expected a NumPy array"):
        lw.DistributedArray([1.0])  # type: ignore[arg-type]


def test_without_mpi_the_same_array_twice_is_refused() -> None:
    U = lw.DistributedArray(numbers(1, 9, 10))
    with pytest.raises(lw.RefusedError, match="share memory"):
        only_read(U, U)


def test_no_mpi_is_loaded_without_a_launcher(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM + "    import sys\n    assert 'mpi4py.MPI' not in sys.modules\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "OMPI", "PALS", "MV2"))}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=SECONDS, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


if __name__ == "__main__":
    optimise_little()
    for called in sys.argv[1:]:
        SCENARIOS[called]()
        sys.stdout.write(f"done {called}\n")  # at once, that lines of several ranks do not mix
        sys.stdout.flush()
