"""Programs on arrays on disk: regions out of core, one after the other, with the bits of plain Python; refusals with ways out.

Started as a program by mpiexec, this file runs one of the programs on arrays in the folder that it is given.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import scaled
from processes import WITH_HELPERS

import lapwing as lw

pytestmark = pytest.mark.usefixtures("little_optimised")

SHAPE = (40, 30)


@lw.nest
def relaxed(u, v, steps=3):
    """Names that change places, and a row that the driver sets."""
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
        u, v = v, u
        u[0, 1:5] = u[0, 1:5] + t
    return u


@lw.nest
def ssor(u, v, most=2):
    """A copy, a residual by NumPy, sweeps both ways, and a reduction."""
    old, err, k, most_of_all = u.copy(), 1.0, 0, 0.0
    while err > 1e-6 and k < most:
        old[:] = u
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1]) - v[i, j]
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1]) - v[i, j]
        err = np.abs(u - old).max()
        k += 1
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            most_of_all = max(most_of_all, u[i, j])
    return k, err, most_of_all, u[1, ::-2], np.zeros_like(v)


@lw.nest
def in_order(u, v):
    """A recurrence backwards along one loop and forwards along it: nothing streams."""
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = u[u.shape[0] - 1 - i, j] + v[i, j]
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = 2 * u[i, j]
    return u, v


def edges(a, x):
    for j in range(a.shape[1]):
        a[0, j] = x


@lw.nest
def with_a_procedure(u, v):
    for t in range(2):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = u[i - 1, j] + v[i, j]
        edges(v, float(t))
    v[2:6] = 1.0
    v[u.shape[0] - 1, [0, 2]] = u[-1, [3, 4]]
    v[0] = u[1]


@lw.nest
def with_loops_in_python(u, v):
    """Loops that are no nest, over whole arrays and over an edge: both change what is on the disk."""
    k = 0
    while k < 3 and u[2, 2] > 0:
        k += 1
        u += v * 0.5
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
    m = 0
    while v[m, 1] < 1.5 and m < 7:
        v[m, 2] = u[m, 3] + m
        m += 1
    return k, m, u


PROGRAMS = (relaxed, ssor, in_order, with_a_procedure, with_loops_in_python)


def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    return random.random(SHAPE), random.random(SHAPE)


def on_disk(folder: Path) -> tuple[lw.StoredArray, lw.StoredArray]:
    made = []
    for name, values in zip(("u.zarr", "v.npy"), arrays(), strict=True):
        stored = lw.create(folder / name, SHAPE, chunks=None if name.endswith("npy") else (16, 17))
        stored.write(((0, SHAPE[0]), (0, SHAPE[1])), values)
        made.append(stored)
    return made[0], made[1]


def check(nest: Any, folder: Path, returned: Any) -> None:
    """What is returned and what is on the disk is what plain Python gives."""
    expected = arrays()
    right = nest.python(*expected)
    for name, values in zip(("u.zarr", "v.npy"), expected, strict=True):
        assert lw.open(folder / name).numpy().tobytes() == values.tobytes(), name
    same(returned, right)
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("v.npy.")) == ["u.zarr", "v.npy"]


def same(found: Any, right: Any) -> None:
    if isinstance(right, tuple):
        assert len(found) == len(right)
        for one, other in zip(found, right, strict=True):
            same(one, other)
    elif isinstance(right, np.ndarray):
        values = found.numpy() if isinstance(found, lw.StoredArray) else found
        assert values.tobytes() == right.tobytes()
    else:
        assert found == right


@pytest.mark.parametrize("nest", PROGRAMS, ids=lambda nest: nest.name)
def test_the_bits_of_plain_python(nest: Any, tmp_path: Path) -> None:
    check(nest, tmp_path, nest(*on_disk(tmp_path)))


def test_a_watched_run_tells_what_was_read(tmp_path: Path) -> None:
    outcome = ssor.run(*on_disk(tmp_path))
    check(ssor, tmp_path, outcome.returned)
    assert outcome.figures.disk is not None
    assert outcome.figures.disk.read_bytes > 4 * 8 * SHAPE[0] * SHAPE[1]
    assert outcome.timeline(tmp_path.parent / "timeline.html") is not None


def test_arrays_that_are_passed_come_back_as_they_were_passed(tmp_path: Path) -> None:
    u, v = on_disk(tmp_path)
    assert relaxed(u, v, 2) is u
    assert relaxed(u, v, 1) is v


def test_one_in_memory_and_one_on_disk(tmp_path: Path) -> None:
    (u, _), (_, v) = on_disk(tmp_path), arrays()
    found = ssor(u, v)
    same(found, ssor.python(*arrays()))


@lw.nest
def with_a_look(u, v):
    if np.abs(u).max() > 0:
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = u[i - 1, j] + v[i, j]


REFUSED = {
    "no room for a look": (
        with_a_look,
        "a statement of the driver looks at .* more than .* Write that statement as loops",
    ),
    "no room for loops in order": (
        in_order,
        "no loop can be streamed along.*\n.*to run in memory its arrays take .*memory=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_a_way_out(name: str, tmp_path: Path) -> None:
    nest, text = REFUSED[name]
    u, v = on_disk(tmp_path)
    with pytest.raises(lw.RefusedError, match=text):
        nest.using(memory=9000)(u, v)


def test_what_fits_with_more_memory_is_accepted(tmp_path: Path) -> None:
    check(in_order, tmp_path, in_order.using(memory="1MB")(*on_disk(tmp_path)))


@lw.nest
def with_a_view(u, v):
    row = u[1]
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
    v[0] = row


@lw.nest
def with_a_copy(u, v):
    row = u[1].copy()
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
    v[0] = row


def test_views_that_would_change_are_refused_and_copies_are_not(tmp_path: Path) -> None:
    with pytest.raises(lw.RefusedError, match=r"still in use when u is written.*Write \.copy\(\)"):
        with_a_view(*on_disk(tmp_path))
    check_folder = tmp_path / "copies"
    check_folder.mkdir()
    check(with_a_copy, check_folder, with_a_copy(*on_disk(check_folder)))


@lw.nest
def with_a_transpose(u, v):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i - 1, j] + v[i, j]
    return u.T


def test_what_arrays_on_disk_do_not_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(lw.RefusedError, match=r"u\.T: u is on disk.*Write numpy\.asarray\(u\)\.T"):
        with_a_transpose(*on_disk(tmp_path))


def test_what_is_read_cannot_be_written_to(tmp_path: Path) -> None:
    @lw.nest
    def writes(u, v):
        u[2][3] = 1.0
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1]):
                u[i, j] = u[i - 1, j] + v[i, j]

    with pytest.raises(ValueError, match="read-only"):
        writes(*on_disk(tmp_path))


def test_a_program_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(lw.RefusedError, match="resume: a program of several nests begins anew"):
        ssor.using(resume=True)(*on_disk(tmp_path))


INDICES = (
    "3", "-1", "1:4", "::2", "::-1", "5:1:-2", "...", "2, 3", "1:3, ::-3", "..., 4", "-2, ...", "4:2", "None, 2", "[1, 3]",
    "np.arange(4) % 2 == 0, 0",
)  # fmt: skip


@pytest.mark.parametrize("text", INDICES)
def test_indices_mean_what_they_mean_in_numpy(text: str, tmp_path: Path) -> None:
    from lapwing.runtime.arrays.on_disk import DiskArray

    values = np.arange(4 * 6.0).reshape(4, 6)
    stored = lw.create(tmp_path / "u.zarr", (4, 6), chunks=(2, 4))
    stored.write(((0, 4), (0, 6)), values)
    array = DiskArray(stored, "u", 1 << 20, None, lambda *_: stored)
    index = eval(f"np.index_exp[{text}]")
    index = index[0] if len(index) == 1 else index
    same(array[index], values[index])
    array[index] = values[index] * 2 - 1
    values[index] = values[index] * 2 - 1
    assert stored.numpy().tobytes() == values.tobytes()


def test_indices_out_of_bounds(tmp_path: Path) -> None:
    from lapwing.runtime.arrays.on_disk import DiskArray

    stored = lw.create(tmp_path / "u.zarr", (4, 6))
    array = DiskArray(stored, "u", 1 << 20, None, lambda *_: stored)
    for index in (4, (0, -7), (0, 0, 0)):
        with pytest.raises(IndexError):
            array[index]


@pytest.mark.mpi
@pytest.mark.timeout(300)
def test_on_ranks(tmp_path: Path) -> None:
    from lapwing.codegen.compilation.toolchain import find_mpi

    find_mpi()
    for nest in PROGRAMS:
        (tmp_path / nest.name).mkdir()
        on_disk(tmp_path / nest.name)
    done = subprocess.run(
        ["mpiexec", "-n", "2", sys.executable, __file__, str(tmp_path)],
        capture_output=True, text=True, timeout=scaled(240), check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **WITH_HELPERS},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def _on_ranks(folder: Path) -> None:
    from mpi4py import MPI

    for nest in PROGRAMS:
        returned = nest(*(lw.open(folder / nest.name / name) for name in ("u.zarr", "v.npy")))
        MPI.COMM_WORLD.Barrier()
        check(nest, folder / nest.name, returned)
        MPI.COMM_WORLD.Barrier()


if __name__ == "__main__":
    _on_ranks(Path(sys.argv[1]))
