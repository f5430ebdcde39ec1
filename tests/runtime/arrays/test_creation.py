"""Arrays that no rank has whole: made, handed over block by block, saved and loaded by every rank for itself.

Started by mpiexec as a program, this file runs scenarios, functions below, on the ranks of that run, one after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from limits import scaled
from on_ranks import (
    back,
    mpiexec,
    numbers,
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
from lapwing.planner.plan import ENGINES
from lapwing.runtime.arrays import parts
from lapwing.runtime.arrays.layout import layout_of_blocks, rows_layout

SECONDS = scaled(120)
SCENARIOS: dict[str, Callable[..., None]] = {}


def scenario(function: Callable[..., None]) -> Callable[..., None]:
    SCENARIOS[function.__name__] = function
    return function


# -- on the ranks of a run -------------------------------------------------------------------------------------------


def ramp(i: Any, j: Any) -> Any:
    return (i * 37 + j * 11) % 101 / 8.0


def plain(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    return np.fromfunction(ramp, shape).astype(dtype)


def no_elements_travel() -> Any:
    travelling = AssertionError("elements came from another rank")
    return mock.patch.multiple(
        parts, Exchange=mock.Mock(side_effect=travelling), scatter=mock.Mock(side_effect=travelling)
    )


def refusal(call: Callable[[], Any], kind: type[Exception] = lw.RefusedError) -> str:
    """What a call is refused with, the same on every rank."""
    from mpi4py import MPI

    text = ""
    try:
        call()
    except kind as error:
        text = str(error)
    assert set(MPI.COMM_WORLD.allgather(text)) == {text}
    return text


@scenario
def every_rank_makes_what_its_nest_needs() -> None:
    size, generator = rank_and_size()[1], np.random.default_rng(5)
    for k in rounds(8, 40):
        shape = tuple(map(int, generator.integers(8, 30, 2)))
        dtype = [np.float64, np.float32][k % 2]
        nest = [smooth, back, other_order][k % 3].using(engine=ENGINES[k % 4], tile=int(generator.integers(1, 9)))
        if k % 4 == 0:
            nest = nest.using(grid=(1, size) if nest.loops.name == "smooth" else (size, 1))
        made, expected = lw.from_function(ramp, shape, dtype), plain(shape, dtype)
        arguments = {"smooth": (2,), "other_order": (expected[0].copy(),)}.get(nest.loops.name, ())
        with no_elements_travel():
            value = nest(made, *arguments)
        with np.errstate(all="ignore"):
            wanted = nest.python(expected, *arguments)
        assert wanted is None or nest.loops.name == "other_order" or value == wanted
        same(made.numpy(), expected)
        nest(made, *arguments)
        nest.python(expected, *arguments)
        same(made.numpy(), expected)


@scenario
def arrays_that_are_only_read_are_made_once() -> None:
    calls: list[int] = []

    def counted(i: Any, j: Any) -> Any:
        calls.append(1)
        return ramp(i, j)

    u, v, expected = lw.from_function(counted, (20, 9)), lw.zeros((20, 9)), np.zeros((20, 9))
    for _ in range(3):
        with mock.patch.object(parts, "scatter", side_effect=AssertionError("elements came from rank 0")):
            only_read(u, v)
        only_read.python(plain((20, 9)), expected)
    assert len(calls) == 1
    same(v.numpy(), expected)
    same(u.numpy(), plain((20, 9)))


@scenario
def nests_that_bring_arrays_together() -> None:
    for nest, more in ((slanted, (np.ones((14, 11)), 2)), (written_twice, ())):
        made, expected = lw.from_function(ramp, (14, 11)), plain((14, 11))
        nest(made, *more)
        nest.python(expected, *more)
        same(made.numpy(), expected)


@scenario
def every_rank_fills_its_own() -> None:
    """Before a nest has said who owns what, and also where only some ranks look at theirs."""
    rank, size = rank_and_size()
    for looking in (range(size), [size - 1], [0]):
        u, expected = lw.full((17, 9), 2.5), np.full((17, 9), 2.5)
        for other in looking:
            low, high = rows_layout((17, 9), size).owned[other][0]
            expected[low:high] += other
            if other == rank:
                assert u.owned == (slice(low, high), slice(0, 9))
                u.local[...] += rank
        smooth(u, 2)
        smooth.python(expected, 2)
        whole = u.numpy()
        same(whole, expected)
        assert u.local.tobytes() == expected[u.owned].tobytes()
    u = lw.DistributedArray(np.ones((5, 4)) if rank == 0 else None)
    assert u.local.shape == ((5, 4) if rank == 0 else (0, 0))


@scenario
def blocks_of_every_rank() -> None:
    rank, size = rank_and_size()
    whole = numbers(3, 6 * size, 10)
    u = lw.from_local(whole[6 * rank : 6 * rank + 6])
    assert (u.shape, u.dtype) == ((6 * size, 10), np.float64)
    expected = whole.copy()
    smooth(u, 2)
    smooth.python(expected, 2)
    same(u.numpy(), expected)
    # Columns, in another order than the ranks'.
    at = (rank + 1) % size
    wide = numbers(4, 7, 5 * size).astype(np.float32)
    v = lw.from_local(wide[:, 5 * at : 5 * at + 5], start=(0, 5 * at))
    assert v.owned == (slice(0, 7), slice(5 * at, 5 * at + 5))
    expected = wide.copy()
    back(v)
    back.python(expected)
    same(v.numpy(), expected)
    assert "equal rows" in refusal(lambda: lw.from_local(np.ones((2, 3 + rank))))
    assert "not the parts of a grid" in refusal(lambda: lw.from_local(np.ones((2, 3)), start=(rank, 0)))
    assert "on all ranks or on none" in refusal(lambda: lw.from_local(np.ones((2, 3)), (0, 0) if rank else None))
    assert "values differs between ranks" in refusal(
        lambda: lw.from_local(np.ones((2, 3), [np.int64, float][rank % 2]))
    )


@scenario
def what_ranks_create_differently_is_refused() -> None:
    rank, _ = rank_and_size()
    assert "shape (3, 4) on rank 0, full(0.0) of float64, shape (4, 4)" in refusal(lambda: lw.zeros((3 + rank % 2, 4)))
    assert "shape" in refusal(lambda: lw.zeros((3, -4)))
    assert "one number" in refusal(lambda: lw.full((3, 4), [1, 2]))
    assert "expected numbers" in refusal(lambda: lw.zeros((3, 4), str))
    flat = lw.from_function(lambda i, j: np.ones(7), (9, 5))
    assert "gave shape (7,) for indices that broadcast to (" in refusal(lambda: smooth(flat, 1))

    def short(i: Any, j: Any) -> Any:
        if i.max() > 10:
            raise KeyError("no such row")
        return i + j

    u = lw.from_function(short, (20, 5))
    try:
        smooth(u, 1)
        text = ""
    except (KeyError, lw.RunError) as error:
        text = str(error)
    assert "no such row" in text


@scenario
def every_rank_saves_and_loads_its_own() -> None:
    size = rank_and_size()[1]
    folder = Path(os.environ["FOLDER"])
    for k, shape in enumerate([(13, 9), (2, 9), (0, 9)]):
        u, expected = lw.from_function(ramp, shape, np.float32), plain(shape, np.float32)
        if k == 0:
            smooth.using(grid=(1, size))(u, 1)
            smooth.python(expected, 1)
        path = folder / f"{size}_{k}.npy"
        u.save(path)
        found = np.load(path)
        assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())
        assert ("not made yet" in repr(u)) == (k > 0)  # what no nest has used is written in pieces, and takes no memory
        lw.load(path).save(path)  # is read before it is replaced
        again = lw.load(path)
        with no_elements_travel():
            back(again)
        back.python(expected)
        same(again.numpy(), expected)
    if rank_and_size()[0] == 0:
        np.save(folder / "swapped.npy", np.asfortranarray(plain((9, 7)).astype(">f8")))
    lw.zeros((2, 2))  # all ranks come here: the file is there
    swapped, expected = lw.load(folder / "swapped.npy"), plain((9, 7))
    smooth(swapped, 1)
    smooth.python(expected, 1)
    same(swapped.numpy(), expected)
    assert sorted(p.suffix for p in folder.iterdir()) == [".npy"] * 4
    assert "cannot be written" in refusal(lambda: lw.zeros((3, 3)).save(folder / "missing" / "u.npy"), lw.RunError)
    broken = lw.from_function(lambda i, j: {}[size], (3 * size, 2))
    assert "KeyError" in refusal(lambda: broken.save(folder / "broken.npy"), lw.RunError)
    assert not list(folder.glob("broken*"))
    assert "none.npy" in refusal(lambda: lw.load(folder / "none.npy"))


# -- tests -----------------------------------------------------------------------------------------------------------


@cache
def played(ranks: int, thorough: bool, folder: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [mpiexec(), "-n", str(ranks), sys.executable, __file__, *SCENARIOS],
        capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS, **(THOROUGHLY if thorough else {}), "FOLDER": folder},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    @cache
    def folder(ranks: int) -> str:
        return str(tmp_path_factory.mktemp(f"on_{ranks}_ranks"))

    return folder


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "thorough"), [(3, False), *(pytest.param(n, True, marks=pytest.mark.long) for n in (2, 4, 5))]
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, ranks: int, thorough: bool, folders: Callable[[int], str]) -> None:
    done = played(ranks, thorough, folders(ranks))
    assert done.stdout.count(f"done {name}\n") == ranks, done.stderr[-3000:]


@pytest.mark.parametrize(
    "make", [lambda: lw.zeros((9, 8)), lambda: lw.from_function(ramp, (9, 8)), lambda: lw.from_local(plain((9, 8)))]
)
def test_without_mpi_they_are_whole(make: Callable[[], lw.DistributedArray], tmp_path: Path) -> None:
    u, expected = make(), make().numpy()
    assert expected is not None
    assert u.owned == (slice(0, 9), slice(0, 8))
    smooth(u, 2)
    smooth.python(expected, 2)
    assert u.local.tobytes() == expected.tobytes()
    u.save(tmp_path / "u.npy")
    loaded = lw.load(tmp_path / "u.npy").numpy()
    assert loaded is not None
    assert loaded.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("starts", "shapes"),
    [
        ([(0, 0), (0, 3), (2, 0), (2, 3)], [(2, 3), (2, 2), (4, 3), (4, 2)]),
        ([(2, 0), (0, 0)], [(1, 5), (2, 5)]),
        ([None, None], [(1, 5), (2, 5)]),
    ],
)
def test_blocks_make_up_an_array(starts: list[Any], shapes: list[Any]) -> None:
    layout = layout_of_blocks(starts, shapes)
    counted = np.zeros([cuts[-1] for cuts in layout.cuts], int)
    for box, shape in zip(layout.owned, shapes, strict=True):
        assert counted[tuple(slice(*span) for span in box)].shape == shape
        counted[tuple(slice(*span) for span in box)] += 1
    assert (counted == 1).all()


@pytest.mark.parametrize(
    ("starts", "shapes"),
    [
        ([(0, 0), (0, 2)], [(2, 3), (2, 2)]),  # overlap
        ([(0, 0), (0, 4)], [(2, 3), (2, 2)]),  # a gap
        ([(0, 0), (0, 3), (2, 0)], [(2, 3), (2, 2), (2, 3)]),  # a corner is missing
        ([(0, 0), (0, 0)], [(2, 3), (2, 3)]),  # twice
        ([(1, 0)], [(2, 3)]),  # not from the start
        ([(-2, 0), (0, 0)], [(2, 3), (2, 3)]),  # before the start
    ],
)
def test_blocks_that_make_up_none(starts: list[Any], shapes: list[Any]) -> None:
    with pytest.raises(lw.RefusedError, match="from_local"):
        layout_of_blocks(starts, shapes)


FILE = """
import numpy as np
import lapwing as lw

def wave(i, j):
    return (i * 7 + j * 3) % 11 / 4.0

@lw.nest
def smooth(u, b, sweeps):
    top = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1]) - b[i, j]
                top = max(top, u[i, j])
    return top

@lw.nest
def slanted(u, b, sweeps):
    top = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.5 * u[i - 1, j - 1] + 0.25 * (u[i, j + 1] + u[i + 1, j + 1]) + b[i, j]
                top = max(top, u[i, j])
    return top

@smooth.problem
@slanted.problem
def problem(n=24, how=""):
    u = lw.from_function(wave, (n, n))
    b = np.full((n, n), 0.125) if how == "whole" else lw.full((n, n), 0.125)
    if how == "self":
        b = lw.full((n, n), 0.125, comm=lw.SELF)
    if how == "fewer" and rank() == 1:
        b = np.full((n, n), 0.125)
    if how == "local":
        b.local[...] = 0.125
    if how == "numpy":
        b.numpy()
    return dict(u=u, b=u if how == "alias" else b, sweeps=3)

def rank():
    from mpi4py import MPI
    return MPI.COMM_WORLD.Get_rank()
"""


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("nest", "options"),
    [
        ("slanted", "-p how=local"),
        pytest.param("smooth", "--repeat 2", marks=pytest.mark.long),
        pytest.param("smooth", "-p how=self --repeat 2", marks=pytest.mark.long),
        *(pytest.param(nest, f"-p how={how} {check}", marks=pytest.mark.long) for nest in ("smooth", "slanted")
          for how in ("whole", "self", "local") for check in ("", "--check")),
    ],
)  # fmt: skip
def test_a_problem_of_distributed_arrays(nest: str, options: str, tmp_path: Path) -> None:
    done = lapwing(tmp_path, "run", f"born.py:{nest}", "-n 3 --engine overlap,onesided --json run.json", options)
    assert done.returncode == 0, done.stderr
    runs = json.loads((tmp_path / "run.json").read_text())["runs"]
    names: dict[str, Any] = {}
    exec(FILE, names)
    arguments = {n: v.numpy() if n in "ub" else v for n, v in names["problem"]().items()}
    assert {run["results"]["top"] for run in runs} == {names[nest].python(**arguments)}
    assert {run["identical"] for run in runs} == {True if "--check" in options else None}


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param("-p how=alias", "u and b are the same array, and it is written", marks=pytest.mark.long),
        pytest.param("-p how=alias --check", "arrays u and b share memory, and u is written", marks=pytest.mark.long),
        pytest.param(
            "-p how=numpy",
            "the ranks agree on what a problem creates once it has returned on all of them",
            marks=pytest.mark.long,
        ),
        ("-p how=fewer --check", "what is distributed differs between ranks: ['u', 'b'] on rank 0, ['u'] on rank 1"),
    ],
)
def test_problems_that_are_refused(options: str, text: str, tmp_path: Path) -> None:
    done = lapwing(tmp_path, "run", "born.py:smooth", "-n 2", options)
    assert done.returncode == 2
    assert text in done.stderr


@pytest.mark.mpi
def test_a_program_with_the_data_of_distributed_arrays(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "export", "born.py:smooth", "-n 2 -o out", "")
    assert done.returncode == 0, done.stderr


def lapwing(folder: Path, command: str, target: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "born.py").write_text(FILE)
    mpiexec()
    return subprocess.run(
        [sys.executable, "-m", "lapwing", command, target, *" ".join(options).split()],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_what_cannot_be_saved_or_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "u.npy", np.arange(12.0).reshape(3, 4))
    monkeypatch.chdir(tmp_path)
    u = lw.load("u.npy")
    monkeypatch.chdir("/")
    np.save(tmp_path / "u.npy", np.ones((3, 4)))
    with pytest.raises(lw.RefusedError, match=r"u\.npy: has changed since it was loaded"):
        u.numpy()
    (tmp_path / "empty.npy").touch()
    with pytest.raises(lw.RefusedError, match=r"empty\.npy"):
        lw.load(tmp_path / "empty.npy")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(lw.RunError, match="No space left"):
        lw.zeros((3, 4)).save(tmp_path / "v.npy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty.npy", "u.npy"]


@pytest.mark.parametrize(
    ("create", "text"),
    [
        (lambda: lw.zeros(2.5), "expected one or more lengths"),  # type: ignore[arg-type]
        (lambda: lw.from_local(np.array(["a"])), "expected numbers"),
        (lambda: lw.from_local(np.ones(3), start=2), "expected an index for every axis"),  # type: ignore[arg-type]
        (lambda: lw.from_function(lambda i: "text", 3).numpy(), "gave <U4"),
        (lambda: lw.from_function(lambda i: 1j * i, 3).numpy(), "gave complex128"),
        (lambda: lw.from_function(lambda i: np.ones(2), 3).numpy(), r"gave shape \(2,\)"),
        (lambda: lw.from_function(lambda i: {}[0], 3).numpy(), "KeyError: 0"),
    ],
)
def test_what_cannot_be_created(create: Callable[[], Any], text: str) -> None:
    with pytest.raises(lw.LapwingError, match=text):
        create()


if __name__ == "__main__":
    optimise_little()
    for called in sys.argv[1:]:
        SCENARIOS[called]()
        sys.stdout.write(f"done {called}\n")  # at once, that lines of several ranks do not mix
        sys.stdout.flush()
