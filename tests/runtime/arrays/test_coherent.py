"""Programs on ranks: copies of arrays are brought up to date when the driver looks at them; errors; distributed arrays."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from limits import scaled
from on_ranks import mpiexec, numbers, rank_and_size
from optimising import optimise_little
from processes import WITH_HELPERS
from randomness import THOROUGHLY

import lapwing as lw

SCENARIOS: dict[str, Callable[[], None]] = {}


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS[function.__name__] = function
    return function


@lw.nest
def relax(u, v, n=4):
    for t in range(n):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
        u, v = v, u
    return u


@lw.nest
def looked_at(u, v, stop=None):
    """Views, edges, a helper that writes, and a reduction by NumPy between nests."""
    largest = 0.0
    for t in range(3):
        row, inside = u[2], v[1:-1, 1:-1]
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.5 * u[i - 1, j] + 0.25 * u[i, j + 1]
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.5 * v[i + 1, j] + u[i, j]
        inside[0] += 1.0
        row[3] = inside[1, 1]
        u[:, 0] = np.roll(row, 1)[0]
        largest = max(largest, np.abs(u - v).max())
        if t == stop:
            raise ValueError(f"stopped after {largest:.17g}")
    return largest, row, v[1]


@lw.nest
def apart(u, mark):
    """The driver does something else on each rank."""
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + 1.0
    if mark():
        return u.sum()
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + 2.0
    return None


def pair() -> tuple[np.ndarray, np.ndarray]:
    return numbers(1, 12, 14), numbers(2, 12, 14)


def same(found: Any, right: Any) -> bool:
    if isinstance(right, tuple):
        return len(found) == len(right) and all(map(same, found, right))
    return np.asarray(found).tobytes() == np.asarray(right).tobytes()


@scenario
def arrays_on_all_ranks() -> None:
    for nest in (relax, looked_at):
        for engine in ("blocking", "overlap", "onesided", "helper"):
            given, expected = pair(), pair()
            found, right = nest.using(engine=engine)(*given), nest.python(*expected)
            assert same(found, right)
            assert same(given, expected)


@scenario
def arrays_on_the_first_rank() -> None:
    rank, _ = rank_and_size()
    for nest in (relax, looked_at):
        given, expected = pair(), pair()
        found, right = nest(*(given if rank == 0 else (None, None))), nest.python(*expected)
        assert same(found, right)
        assert same(given, expected if rank == 0 else pair())


@scenario
def watched_runs() -> None:
    rank, size = rank_and_size()
    for nest, calls in ((relax, {"relax_1_sweep": 1}), (looked_at, {"looked_at_1": 3, "looked_at_2": 3})):
        given, expected = pair(), pair()
        outcome, right = nest.run(*given), nest.python(*expected)
        assert isinstance(outcome, lw.ProgramOutcome)
        assert same(outcome.returned, right)
        assert same(given, expected)
        assert (outcome.ranks, outcome.trace.nest) == (size, nest.name)
        noted = {name: noted.calls for name, noted in outcome.regions.items()}
        # On ranks nests may run through one pipeline, where that is predicted to pay.
        assert noted == calls if size == 1 else all(name.startswith(nest.name) for name in noted)
        assert all(noted.plan is not None and noted.plan.ranks <= size for noted in outcome.regions.values())
        if nest is relax and (size == 1 or "relax_1_sweep" in noted):
            assert (outcome.figures.transfer_seconds is None) == (size == 1)
        assert any(len(one.events) for one in outcome.trace.ranks) == (rank == 0)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            assert outcome.timeline() == (Path(f"{nest.name}-timeline.html") if rank == 0 else None)


@scenario
def pictures_of_plans() -> None:
    rank, size = rank_and_size()
    plan = relax.plan(*pair(), ranks=size)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        assert plan.show() == (Path("relax-plan.svg") if rank == 0 else None)


@scenario
def what_is_returned_is_what_was_passed() -> None:
    u, v = pair()
    assert relax(u, v, 4) is u
    assert relax(u, v, 3) is v


@scenario
def distributed_arrays() -> None:
    given, expected = pair(), pair()
    distributed = tuple(map(lw.DistributedArray, given))
    right = relax.python(*expected)
    assert relax(*distributed) is distributed[0]
    assert same(np.asarray(distributed[0]), right)
    assert same(np.asarray(distributed[1]), expected[1])
    assert distributed[0].size == 12 * 14
    assert len(distributed[0]) == 12


@scenario
def computing_with_distributed_arrays() -> None:
    u, v = pair()
    expected = u.copy(), v.copy()
    a, b = map(lw.DistributedArray, (u, v))
    for _ in range(2):
        relax(a, b, 2)
        relax.python(*expected, 2)
        one, other = expected
        assert a[3, 4] == one[3, 4]
        assert same(a[2:4, ::3], one[2:4, ::3])
        assert same(np.maximum(a, b) + 1, np.maximum(one, other) + 1)
        assert a.max() == one.max()
        assert math.isclose(np.linalg.norm(a - b), np.linalg.norm(one - other), rel_tol=1e-14)  # added rank by rank
        assert np.abs(a - b).max() == np.abs(one - other).max()
        a[0, 2:5] = b[1, 2:5]
        one[0, 2:5] = other[1, 2:5]
        a *= 0.5
        one *= 0.5
        assert same(a.copy(), one)
        with pytest.raises(ValueError, match="read-only"):
            a[1:3][0] = 1.0


@scenario
def a_view_of_a_distributed_array_is_refused() -> None:
    u, v = map(lw.DistributedArray, pair())
    if rank_and_size()[1] == 1:
        return  # it wraps a NumPy array, and so is the view
    with pytest.raises(lw.RefusedError, match=r"a view of a DistributedArray of shape \(12, 14\) gets a name"):
        looked_at(u, v)


@lw.nest
def rows_and_columns(u, v, w, k):
    """Loops along rows and columns, outside of any other: one into the next of the same array, one on itself, one back."""
    n, m = u.shape
    for j in range(m):
        u[0, j] = v[1, j] + u[n - 1, j]
    for j in range(1, m):
        u[k, j] = u[k, j - 1] + 0.5 * u[1, j]
    for i in range(n):
        v[i, 0] = 0.25 * u[i, 2] + w[i]
    largest = 0.0
    for j in range(m - 1, -1, -1):
        largest = max(largest, u[k, j])
        w[j % 3] += u[k, j]
    for i in range(1, n):
        for j in range(m):
            u[i, j] = 0.5 * (u[i - 1, j] + v[i, j])
    return largest


@scenario
def rows_of_distributed_arrays_are_written() -> None:
    for k in (0, 1, 2, -1):
        (u, v), expected, w = pair(), pair(), numbers(5, 12)
        right = w.copy()
        a, b = map(lw.DistributedArray, (u, v))
        for _ in range(2):
            assert rows_and_columns(a, b, w, k) == rows_and_columns.python(*expected, right, k)
            assert same((a.copy(), b.copy(), w), (*expected, right))


@lw.nest
def one_twice(u, v):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += v[i, u.shape[1] - 1 - j]
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += u[i - 1, j]


@lw.nest
def row_of_one_twice(u, v):
    for i in range(u.shape[0]):
        u[1, i] = v[0, i] + v[i, 0]
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] += u[i - 1, j]


@scenario
def a_distributed_array_under_two_names_is_refused() -> None:
    u = lw.DistributedArray(numbers(6, 12, 12))
    with pytest.raises(lw.RefusedError, match="share memory, and u is written"):
        one_twice(u, u)
    reason = "is passed with the array itself, as v" if rank_and_size()[1] > 1 else "share memory"
    with pytest.raises(lw.RefusedError, match=reason):
        row_of_one_twice(u, u)


@scenario
def an_error_on_all_ranks() -> None:
    given, expected = pair(), pair()
    with pytest.raises(ValueError, match="stopped after") as right:
        looked_at.python(*expected, 1)
    with pytest.raises(ValueError, match="stopped after") as found:
        looked_at(*given, 1)
    assert str(found.value) == str(right.value)
    assert same(given, expected)


@scenario
def arguments_that_differ() -> None:
    rank, size = rank_and_size()
    u, v = pair()
    u[3, 4] += rank
    if size > 1:
        with pytest.raises(lw.RefusedError, match=r"u\[3, 4\] differs between ranks"):
            relax(u, v)
        with pytest.raises(lw.RefusedError, match="n differs between ranks: 0 on rank 0"):
            relax(*pair(), rank)


@scenario
def drivers_that_part() -> None:
    rank, size = rank_and_size()
    if size > 1:
        with pytest.raises(lw.RefusedError, match=r"the ranks make different calls: .*apart_2"):
            apart(numbers(1, 12, 14), lambda: rank == 0)


@scenario
def each_rank_by_itself() -> None:
    rank, _ = rank_and_size()
    given, expected = pair(), pair()
    found, right = relax.using(comm=lw.SELF)(*given, rank), relax.python(*expected, rank)
    assert same(found, right)


@lw.nest
def from_ever_others(u, starts):
    """A region, between lines that only Python runs, that is made for any integers before long, and may raise then."""
    for start in starts:
        print(end="")
        for i in range(start, u.shape[0]):
            u[i] = 0.5 * u[i - 1] + u[start]


@scenario
def regions_that_ranks_call_with_different_integers() -> None:
    rank, size = rank_and_size()
    given, expected = numbers(1, 40), numbers(1, 40)
    if size > 1:
        with pytest.raises(lw.RefusedError, match="start differs between ranks: 1 on rank 0"):
            from_ever_others(given, [1 + rank])
        assert same(given, expected)


@scenario
def ranks_that_have_called_it_by_themselves() -> None:
    rank, _ = rank_and_size()
    starts = [1, 2, 3, 4, 5, 6, 7, 8, 1]
    if rank == 0:
        from_ever_others.using(comm=lw.SELF)(numbers(1, 40), starts)
    given, expected = numbers(2, 40), numbers(2, 40)
    from_ever_others(given, starts)
    from_ever_others.python(expected, starts)
    assert same(given, expected)


@scenario
def arrays_that_are_let_go_of() -> None:
    from lapwing.runtime.arrays.coherent import Coherence
    from lapwing.runtime.mpi import communicator

    if not communicator.launched():
        return
    coherence = Coherence(communicator.world())
    u, v = pair()
    coherence.parts({"u": u, "v": v[1]}, ["u"])
    coherence.parts({}, [])
    assert coherence.behind == 1
    del u
    coherence.parts({}, [])
    assert coherence.behind == 0
    assert len(coherence._copies) == 1


@scenario
def an_array_that_changes_its_shape() -> None:
    """It is the same object, and has parts of another shape from then on."""
    from lapwing.runtime.arrays.coherent import Coherence
    from lapwing.runtime.mpi import communicator

    if not communicator.launched():
        return
    coherence, u = Coherence(communicator.world()), np.zeros((4, 6))
    first = coherence.parts({"u": u}, ["u"])["u"]
    assert coherence.parts({"u": u}, ["u"])["u"] is first
    u.shape = (6, 4)
    assert coherence.parts({"u": u}, [])["u"].shape == (6, 4)


@scenario
def one_rank_fails() -> None:
    rank, size = rank_and_size()

    def mark() -> bool:
        if rank == size - 1:
            raise KeyError("lost on the way")
        return False

    apart(numbers(1, 12, 14), mark)


IN_TURN = [name for name in SCENARIOS if name != "one_rank_fails"]
EVERYDAY = (2, 3)  # ranks of everyday tests


def play(ranks: int, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, __file__, *names],
        capture_output=True, text=True, timeout=scaled(240), check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **({} if ranks in EVERYDAY else THOROUGHLY), "LAPWING_QUIET": "1"},
    )  # fmt: skip


@pytest.mark.mpi
@pytest.mark.parametrize("ranks", everyday([1, 2, 3, 4], [3]))
def test_scenarios(ranks: int) -> None:
    done = play(ranks, *IN_TURN)
    assert done.returncode == 0, f"{done.stdout[-1000:]}\n{done.stderr[-3000:]}"
    assert [done.stdout.count(f"done {name}\n") for name in IN_TURN] == [ranks] * len(IN_TURN)


@pytest.mark.mpi
def test_an_error_of_the_driver_on_one_rank_ends_all() -> None:
    done = play(2, "one_rank_fails")
    assert done.returncode != 0
    assert "KeyError: 'lost on the way'" in done.stderr


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    optimise_little()
    for name in sys.argv[1:]:
        SCENARIOS[name]()
        sys.stdout.write(f"done {name}\n")  # in one piece: ranks share it
        sys.stdout.flush()
