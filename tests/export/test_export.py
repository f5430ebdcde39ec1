"""Exported programs: they build with make, run on MPI and in SimGrid's SMPI, and have the very bits of the plain loop."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from exporting import OBJECTS, SECONDS, little_optimised, make, mpiexec, run_here, with_objects
from needs import CMAKE, SIMGRID

import lapwing as lw
from lapwing.api.calls.decide import Decider
from lapwing.api.nest import Nest
from lapwing.cli.main import main
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError, RefusedError
from lapwing.export import smpi
from lapwing.export.description import c_text as _text
from lapwing.export.smpi import Cluster, cost_options, host_file, line, platform_xml
from lapwing.export.stand_alone import export, sources
from lapwing.export.tables import program_bytes, table_of
from lapwing.export.virtual import cluster_of
from lapwing.machine import stored
from lapwing.planner.choose import Wishes, make_plan
from lapwing.planner.plan import ENGINES, Plan
from lapwing.runtime.binding import native
from lapwing.runtime.rounding import nearest

CLUSTER = Cluster(
    name="sixteen",
    hosts=16,
    latency=60e-6,
    bytes_per_second=12.5e6,
    send_cpu=line(60e-6, 10e-9),
    receive_cpu=line(60e-6, 10e-9),
    seconds_per_point=0.441e-6,
)

needs_simgrid = pytest.mark.skipif(not SIMGRID.is_here, reason=SIMGRID.reason)


# -- nests -------------------------------------------------------------------------------------------------------------


@lw.nest
def smooth(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])


@lw.nest
def one_sweep(u):
    total = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i, j + 1]) + 0.1
            total += u[i, j]
    return total


@lw.nest
def roots(a):
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            for k in range(1, a.shape[2]):
                a[i, j, k] = np.sqrt(a[i - 1, j, k]) + np.sqrt(a[i, j - 1, k]) + np.sqrt(a[i, j, k - 1])


@lw.nest
def back(u, c):
    largest, least, total, narrow, count = 0.0, 1.0, 0.5, np.float32(0.25), np.int8(100)
    for i in range(u.shape[0] - 2, 0, -1):
        for j in range(u.shape[1] - 2, -1, -1):
            u[i, j] = 0.5 * u[i + 1, j] + 0.25 * u[i, j + 1] - c[i]
            largest = max(largest, u[i, j])
            least = min(least, u[i, j])
            total += u[i, j] * 1e17
            narrow += c[i]
            count += np.int8(1)
    return largest, least, total, narrow, count


@lw.nest
def upwind(u, speed, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = u[i, j] - speed * (u[i, j] - u[i - 1, j]) - 0.1 * (u[i, j] - u[i, j - 1])


@lw.nest
def align(h, first, second, score, gap):
    best, cells = 0, 0
    for i in range(1, h.shape[0]):
        for j in range(1, h.shape[1]):
            h[i, j] = max(0, h[i - 1, j - 1] + score[first[i - 1], second[j - 1]], h[i - 1, j] - gap, h[i, j - 1] - gap)
            best = max(best, h[i, j])
            cells += 1
    return best, cells


@lw.nest
def places(u, q):
    best, row, column, seen = -1.0, -1, -1, np.float32(0.0)
    least, last = 100, -1
    for i in range(u.shape[0] - 1, 0, -1):
        for j in range(1, u.shape[1]):
            if u[i, j] < 0.2:
                continue
            for c in range(q.shape[2]):
                q[i, j, c] = (q[i, j - 1, c - 1] + j) % 5
            u[i, j] = math.floor(5.0 * u[i, j])
            if u[i, j] > best:
                best, row, column, seen = u[i, j], i, j, q[i, j, 0]
            if q[i, j, 0] <= least:
                least, last = q[i, j, 0], i
    return best, row, column, seen, least, last


@lw.nest
def marks(seen, weight):
    for i in range(1, seen.shape[0]):
        for j in range(1, i):
            seen[i, j] = seen[i - 1, j] or weight[i, j] > 200
            weight[i, j] = weight[i, j - 1] + weight[i - 1, j]


@lw.nest
def written_twice(u, v):
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i + 1, j] = 0.5 * v[i, j] + u[i, j]
            u[i, j] = u[i, j] + u[i - 1, j] * 0.25


@lw.nest
def nine_points(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.125 * (
                    u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i, j + 1] + u[i + 1, j - 1]
                    + u[i + 1, j] + u[i + 1, j + 1]
                )  # fmt: skip


@lw.nest
def waves(psi, turn, step, v):
    total = 0j
    for i in range(1, psi.shape[0]):
        for j in range(1, psi.shape[1] - 1):
            psi[i, j] = (
                turn * psi[i - 1, j] / (2 - 1j * step) + 0.25 * psi[i, j - 1] - np.complex64(v[i, j]) * psi[i, j + 1]
            )
            total += psi[i, j]
    return total


@lw.nest
def logarithms(u):
    for i in range(1, u.shape[0]):
        u[i] = math.log(u[i - 1])


def random(*shape: int, dtype: str = "float64") -> np.ndarray[Any, Any]:
    values = np.random.default_rng(len(shape)).random(shape)
    return values.astype(dtype) if dtype.startswith("float") else (values * 250).astype(dtype)


@dataclass(frozen=True)
class Case:
    """A nest, the arguments of one run (new ones each time), and how it is cut."""

    nest: Nest
    arguments: Callable[[], dict[str, Any]]
    ranks: int
    grid: tuple[int, ...] | None = None
    tile: int | None = None


CASES = {
    "one rank": Case(smooth, lambda: dict(u=random(9, 11), sweeps=2), 1),
    "old values": Case(smooth, lambda: dict(u=random(30, 23), sweeps=4), 3, tile=5),
    "one sweep, old values": Case(one_sweep, lambda: dict(u=random(14, 20)), 3, (1, 3), 4),
    "three dimensions": Case(roots, lambda: dict(a=random(9, 8, 40, dtype="float32")), 4, (2, 2), 7),
    "descending, reductions": Case(back, lambda: dict(u=random(20, 17), c=random(20, dtype="float32")), 3, tile=4),
    "arguments of extrema": Case(
        places, lambda: dict(u=random(20, 17), q=random(20, 17, 3, dtype="float32")), 3, tile=4
    ),
    "along time": Case(upwind, lambda: dict(u=random(18, 15), speed=0.3, sweeps=11), 4, (2, 2), 3),
    "look-ups": Case(
        align,
        lambda: dict(
            h=np.zeros((25, 31), np.int32),
            first=random(24, dtype="uint8") % 4,
            second=random(30, dtype="uint8") % 4,
            score=(random(4, 4) * 9 - 4).astype(np.int8),
            gap=2,
        ),
        2,
        tile=6,
    ),
    "triangle, small types": Case(
        marks, lambda: dict(seen=np.zeros((20, 20), bool), weight=random(20, 20, dtype="uint8")), 2, tile=3
    ),
    "complex": Case(
        waves, lambda: dict(psi=1j * random(20, 17) - 0.5, turn=0.6 + 0.8j, step=0.3, v=random(20, 17)), 3, (3, 1), 4
    ),
    "written twice": Case(written_twice, lambda: dict(u=random(17, 13), v=random(17, 13)[::-1]), 4, (4,)),
    "skewed": Case(nine_points, lambda: dict(u=random(21, 26), sweeps=3), 3, tile=6),
    "skewed, sheared in memory": Case(nine_points, lambda: dict(u=random(34, 82), sweeps=2), 4, tile=9),
    "joined sweeps, one rank": Case(smooth, lambda: dict(u=random(60, 70), sweeps=9), 1),
    "joined sweeps": Case(smooth, lambda: dict(u=random(150, 130), sweeps=7), 2, tile=64),
    "joined sweeps, skewed": Case(nine_points, lambda: dict(u=random(140, 150), sweeps=5), 2, tile=64),
}


def planned(case: Case, engine: str = "overlap") -> tuple[Any, Plan, dict[str, Any]]:
    arguments = case.arguments()
    bound = case.nest.bind(arguments)
    return bound, make_plan(bound, case.nest.dependences, case.ranks, Wishes(engine, case.tile, case.grid)), arguments


def exported(case: Case, folder: Path, engine: str = "overlap") -> dict[str, Any]:
    """Write the program; the arguments it was written with."""
    bound, plan, arguments = planned(case, engine)
    export(folder, bound, plan, {a.name: arguments[a.name] for a in bound.arrays})
    return arguments


def expected(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """What becomes of the written arrays, and the reductions; a float sum is taken from a run, which has defined it."""
    arguments = case.arguments()
    with np.errstate(all="ignore"):
        values = case.nest.python(**arguments)
    named = dict(zip(case.nest.loops.returns, values if isinstance(values, tuple) else [values], strict=False))
    ran = case.nest(**case.arguments())
    exact = dict(zip(case.nest.loops.returns, ran if isinstance(ran, tuple) else [ran], strict=False))
    for name, value in list(named.items()):
        named[name] = exact[name] if isinstance(value, float | np.float32 | complex) else value
        if isinstance(value, complex):
            total = named.pop(name)
            named |= {f"{name}.real": float(total.real), f"{name}.imag": float(total.imag)}
    return {name: arguments[name] for name in case.nest.loops.written}, named


def simulated(folder: Path, ranks: int, name: str, *words: str) -> float:
    return smpi.run(folder / f"build/{name}-smpi", ranks, CLUSTER, ["--dir", str(folder), *words], folder)


def check_results(folder: Path, arrays: dict[str, Any], reductions: dict[str, Any], output: str) -> None:
    for name, values in arrays.items():
        found = np.load(folder / "out" / f"{name}.npy")
        assert found.dtype == values.dtype
        assert found.tobytes() == values.tobytes(), name
    printed = dict(re.findall(r"^([\w.]+) = (.+)$", output, re.MULTILINE))
    assert {name: type(value)(printed[name]) for name, value in reductions.items()} == reductions
    assert len(printed) == len(reductions)


@pytest.fixture(scope="session")
def simulated_objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for the simulator, which `lapwing simulate` takes from the cache."""
    bound, plan, _ = planned(CASES["one rank"])
    tool = shutil.which("smpicxx") or ""
    found = smpi._objects(sources(bound, plan), tool, smpi._version(tool))
    assert {path.name for path in found} == {f"smpi-{name}.o" for name in OBJECTS}
    return found[0].parent


# -- the same bits ---------------------------------------------------------------------------------------------------


EVERYDAY = (
    "joined sweeps",
    "complex",
    "descending, reductions",
    "skewed, sheared in memory",
)


@pytest.mark.mpi
@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("name", everyday(CASES, EVERYDAY))
def test_all_engines_have_the_bits_of_the_plain_loop(
    name: str, tmp_path: Path, objects: Path, request: pytest.FixtureRequest
) -> None:
    case = CASES[name]
    folder = tmp_path / "program"
    exported(case, folder)
    assert (planned(case)[1].joined > 1) == name.startswith("joined")
    with_objects(folder, objects)
    make(folder, *([] if request.node.get_closest_marker("long") else [little_optimised(folder)]))
    arrays, reductions = expected(case)
    for engine in ENGINES:
        shutil.rmtree(folder / "out", ignore_errors=True)
        done = mpiexec(folder, case.ranks, case.nest.loops.name, "--engine", engine)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"^{case.nest.loops.name}: {engine} on {case.ranks} ranks?, \S+ seconds$", done.stdout, re.M)
        check_results(folder, arrays, reductions, done.stdout)


@needs_simgrid
@pytest.mark.parametrize(
    "name",
    everyday(
        ("old values", "three dimensions", "descending, reductions", "along time", "joined sweeps"),
        ("joined sweeps",),
    ),
)
def test_a_simulated_program_that_computes_has_the_same_bits(
    name: str, tmp_path: Path, simulated_objects: Path
) -> None:
    case = CASES[name]
    folder = tmp_path / "program"
    exported(case, folder)
    with_objects(folder, simulated_objects)
    make(folder, "smpi", little_optimised(folder))
    arrays, _ = expected(case)
    for engine in smpi.ENGINES:
        shutil.rmtree(folder / "out", ignore_errors=True)
        words = ("--engine", engine, *cost_options(CLUSTER))
        computed = simulated(folder, case.ranks, case.nest.loops.name, *words)
        check_results(folder, arrays, {}, "")
        # What is computed takes no simulated time of its own, so that times repeat exactly.
        assert simulated(folder, case.ranks, case.nest.loops.name, *words, "--dry") == pytest.approx(computed, rel=1e-9)


@pytest.mark.mpi
def test_the_program_needs_no_python_and_no_lapwing(tmp_path: Path, objects: Path) -> None:
    case = CASES["old values"]
    folder = tmp_path / "program"
    exported(case, folder)
    with_objects(folder, objects)
    make(folder)
    moved = tmp_path / "elsewhere" / "program"
    shutil.copytree(folder, moved)
    shutil.rmtree(folder)
    launcher = str(find_mpi().mpiexec)
    done = run_here(
        [launcher, "-n", "3", str(moved / "build/smooth"), "--dir", str(moved)], tmp_path, PYTHONPATH="/nowhere"
    )
    assert done.returncode == 0, done.stderr
    check_results(moved, expected(case)[0], {}, "")


@pytest.mark.mpi
def test_the_program_computes_on_other_arrays(tmp_path: Path, objects: Path) -> None:
    case = CASES["old values"]
    folder = tmp_path / "program"
    arguments = exported(case, folder)
    with_objects(folder, objects)
    make(folder, little_optimised(folder))
    arguments["u"][...] = arguments["u"][::-1].copy()
    np.save(folder / "data/u.npy", arguments["u"])
    assert mpiexec(folder, 3, "smooth").returncode == 0
    smooth.python(**arguments)
    check_results(folder, {"u": arguments["u"]}, {}, "")


@pytest.mark.mpi
@pytest.mark.skipif(not CMAKE.is_here, reason=CMAKE.reason)
def test_cmake_builds_the_same_program(tmp_path: Path) -> None:
    case = CASES["three dimensions"]
    folder = tmp_path / "program"
    exported(case, folder)
    wrapper = find_mpi().mpicxx.command[0]
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(";-O2", ";-O0"))  # as in `objects`
    for command in (["cmake", "-B", "build", f"-DMPI_CXX_COMPILER={wrapper}"], ["cmake", "--build", "build"]):
        done = run_here(command, folder)
        assert done.returncode == 0, done.stdout + done.stderr
    done = mpiexec(folder, case.ranks, case.nest.loops.name)
    assert done.returncode == 0, done.stderr
    check_results(folder, expected(case)[0], {}, "")


# -- what can go wrong -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, objects: Path) -> Path:
    folder = tmp_path_factory.mktemp("program") / "smooth"
    exported(CASES["old values"], folder)
    with_objects(folder, objects)
    make(folder, little_optimised(folder))
    return folder


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "words", "status", "said"),
    [
        (2, [], 1, "was exported for 3 ranks, but there are 2. Start it with mpiexec -n 3"),
        (1, ["--engine", "fast"], 2, "--engine fast: expected blocking, overlap, onesided or helper"),
        (1, ["--engine"], 2, "--engine: expected a value"),
        (1, ["--dry"], 2, "--dry: unknown"),
        (3, ["--dir", "nowhere"], 1, "nowhere/program.bin cannot be read"),
    ],
)
def test_wrong_use_is_told_once(program: Path, ranks: int, words: list[str], status: int, said: str) -> None:
    done = mpiexec(program, ranks, "smooth", *words)
    assert done.returncode == status
    assert done.stderr.count(said) == 1, done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: np.save(folder / "data/u.npy", random(30, 22)), "expected 'shape': (30, 23)"),
        (lambda folder: np.save(folder / "data/u.npy", random(30, 23, dtype="float32")), "expected 'descr': '<f8'"),
        (lambda folder: np.save(folder / "data/u.npy", np.asfortranarray(random(30, 23))), "'fortran_order': False"),
        (lambda folder: (folder / "data/u.npy").write_bytes(b"nothing"), "is not a .npy file"),
        (lambda folder: os.truncate(folder / "data/u.npy", 1000), "is cut off"),
        (lambda folder: (folder / "data/u.npy").unlink(), "cannot be opened: No such file"),
        (lambda folder: (folder / "program.bin").write_bytes(b"nothing more"), "is not a Lapwing program"),
        (lambda folder: os.truncate(folder / "program.bin", 100), "is cut off"),
    ],
)
def test_damaged_files_are_told_once(program: Path, tmp_path: Path, spoil: Callable[[Path], object], said: str) -> None:
    shutil.copytree(program / "data", tmp_path / "data")
    shutil.copy(program / "program.bin", tmp_path)
    spoil(tmp_path)
    done = mpiexec(program, 3, "smooth", "--dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count(said) == 1, done.stderr


@pytest.mark.mpi
def test_what_python_would_raise_ends_all_ranks(tmp_path: Path, objects: Path) -> None:
    folder = tmp_path / "program"
    exported(Case(logarithms, lambda: dict(u=np.zeros(20)), 2), folder)
    with_objects(folder, objects)
    make(folder, little_optimised(folder))
    done = mpiexec(folder, 2, "logarithms")
    assert done.returncode != 0
    assert "logarithms: rank 0: " in done.stderr
    assert "test_export.py" in done.stderr
    assert not (folder / "out").exists()


def lapwing(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    assert isinstance(stop.value.code, int)
    return stop.value.code


EXAMPLE = str(Path(__file__).parents[2] / "examples" / "gauss_seidel.py")


def test_the_command_writes_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "program"
    assert lapwing("export", EXAMPLE, "-n", "2", "-p", "n=20", "-o", str(folder)) == 0
    assert f"make -C {folder}" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {
        "CMakeLists.txt", "Makefile", "README.md", "data", "program.bin", "src",
    }  # fmt: skip
    assert np.load(folder / "data/u.npy").shape == (20, 20)
    readme = (folder / "README.md").read_text()
    assert "mpiexec -n 2 build/smooth" in readme
    assert not re.search(
        r"@[A-Z_]+@", readme + (folder / "Makefile").read_text() + (folder / "CMakeLists.txt").read_text()
    )


def test_arrays_can_be_left_out(tmp_path: Path) -> None:
    assert lapwing("export", EXAMPLE, "-p", "n=20", "--no-data", "-o", str(tmp_path / "program")) == 0
    assert list((tmp_path / "program/data").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "4", "--grid", "3"], "is for 3 ranks, but there are 4"),
        (["--grid", "all"], "a program is for one"),
        (["--engine", "blocking,overlap"], "expected one engine"),
        (["--engine", "fast"], "expected some of"),
        (["-n", "100", "-p", "n=10"], "36 of 100 ranks would have nothing to do"),
        (["-p", "n=2"], "has no iterations for these sizes"),
    ],
)
def test_wrong_usage_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert lapwing("export", EXAMPLE, *words, "-o", str(tmp_path / "program")) == 2
    assert said in capsys.readouterr().err


def test_a_directory_that_holds_something_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    assert lapwing("export", EXAMPLE, "-o", str(tmp_path)) == 2
    assert f"{tmp_path} is not empty" in capsys.readouterr().err
    assert lapwing("export", EXAMPLE, "-o", str(tmp_path / "mine.txt")) == 2
    assert "is a file, expected a directory" in capsys.readouterr().err
    assert lapwing("export", EXAMPLE, "-o", str(tmp_path / "mine.txt" / "program")) == 2
    assert "Not a directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_disk_without_room_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(RefusedError, match=r"1,000 are free there.*--no-data"):
        exported(CASES["one rank"], tmp_path / "program")


def test_an_unknown_nest_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lapwing("export", f"{EXAMPLE}:rough", "-o", str(tmp_path / "program")) == 2
    assert "has no nest rough" in capsys.readouterr().err
    assert not (tmp_path / "program").exists()


# -- program.bin and nest.c ------------------------------------------------------------------------------------------


def test_programs_of_many_ranks_stay_small() -> None:
    case = Case(roots, lambda: dict(a=np.zeros((33, 33, 2049), np.float32)), 16, (4, 4), 8)
    bound, plan, _ = planned(case)
    assert plan.steps == 256
    # Two channels in and out of 256 messages each, and as many steps.
    assert len(program_bytes(bound, plan)) < 16 * 1000


def read_table(data: bytes, columns: int) -> list[list[int]]:
    """What program_file.hpp does."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append((value >> 1) ^ -(value & 1))
            value, shift = 0, 0
    rows, at = numbers[0], 1
    table = []
    for _ in range(columns if rows else 0):
        column: list[int] = []
        while len(column) < rows:
            difference, count = numbers[at : at + 2]
            at += 2
            for _ in range(count):
                wrapped = ((column[-1] if column else 0) + difference) & (2**64 - 1)
                column.append(wrapped - 2**64 if wrapped >= 2**63 else wrapped)
        table.append(column)
    assert at == len(numbers)
    return [list(row) for row in zip(*table, strict=True)]


def test_tables_are_read_as_they_were() -> None:
    rng = np.random.default_rng(0)
    extremes = np.array([[2**63 - 1, -(2**63)], [-(2**63), 2**63 - 1], [0, -1]], np.int64)
    regular = np.stack([np.arange(100) * 7, np.full(100, 3), -np.arange(100) // 10], axis=1)
    for rows in (extremes, regular, rng.integers(-(2**63), 2**63 - 1, (50, 4)), np.zeros((0, 3), np.int64)):
        assert read_table(table_of(rows), rows.shape[1]) == rows.tolist()
    assert len(table_of(regular)) < 150


def test_the_tables_know_all_of_a_program() -> None:
    """A new field of lw_program has to be exported as well; what is out of core is refused."""
    known = (
        "phases sweeps steps batch apart phase step_boxes incoming outgoing "
        "incoming_channels outgoing_channels messages parts pass_sweeps pass_skew opening_sweeps pass_places places "
        "joined_sweeps last_joined closing_sweeps step_moves"
    )
    of_phase = "loops sweep_depth slice_grain slice_loop slices_rows sweep_points first_step rewrites"
    assert [name for name, *_ in native.Program._fields_] == known.split()
    assert [name for name, *_ in native.Phase._fields_] == of_phase.split()
    assert {name for name, *_ in native.Options._fields_} == {
        "engine", "comm", "dry", "split_bytes", "helper_cpu", "spin", "slice_seconds", "clock_offset", "patience_seconds",
        "grace_seconds", "interrupts", "disk",
    }  # fmt: skip


def test_texts_are_c_strings(tmp_path: Path) -> None:
    text = 'u.py:3: "a\\b"??/ – 10 %\n7'
    source = tmp_path / "text.c"
    source.write_text(f"#include <stdio.h>\nint main(void) {{ fputs({_text(text)}, stdout); return 0; }}\n")
    subprocess.run(["cc", "-std=c11", str(source), "-o", str(tmp_path / "text")], check=True)
    assert subprocess.run([str(tmp_path / "text")], capture_output=True).stdout.decode() == text


@lw.nest
def decaying(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = np.exp(-u[i - 1, j]) + u[i, j - 1]


@lw.nest
def turning(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = np.abs(u[i - 1, j]) * 1j


def test_a_program_that_needs_numpy_is_refused() -> None:
    bound, plan, _ = planned(Case(decaying, lambda: dict(u=random(20, 20)), 2))
    with pytest.raises(RefusedError, match=r"decaying calls numpy\.exp.*write math\.exp"):
        sources(bound, plan)
    bound, plan, _ = planned(Case(turning, lambda: dict(u=random(20, 20) * 1j), 2))
    with pytest.raises(RefusedError, match=r"turning calls numpy\.absolute.*write abs\(z\)"):
        sources(bound, plan)


def test_sources_do_not_depend_on_sizes() -> None:
    small = planned(Case(smooth, lambda: dict(u=random(20, 20), sweeps=2), 2))
    large = planned(Case(smooth, lambda: dict(u=random(50, 40), sweeps=9), 4, tile=3))
    assert sources(*small[:2]) == sources(*large[:2])


SUMS = Path(__file__).with_name("merged_sums.cpp")
PACKAGE = Path(smpi.__file__).parents[1]


def sums_to_try() -> Iterator[tuple[str, float, list[list[float]]]]:
    """The type, what a sum begins with, and every rank's terms."""
    rng = np.random.default_rng(1)
    ulp = 2.0**-53
    for dtype, unit in (("float64", ulp), ("float32", 2.0**-24)):
        yield dtype, 0.0, [[]]
        yield dtype, 0.5, [[1.0, -1.5]]
        yield dtype, 0.0, [[1.0, unit]]  # a tie: to the even neighbour below
        yield dtype, 0.0, [[1.0, unit], [2 * unit]]  # and above
        yield dtype, 0.0, [[1.0, unit], [5e-324]]  # no tie, by the least of numbers
        yield dtype, 0.0, [[-1.0, -unit], [-5e-324]]
        yield dtype, 0.0, [[1.0], [unit, -5e-324]]
        yield dtype, 0.0, [[2.0, -unit]]  # rounds up into the next power of two
        yield dtype, 0.0, [[1e308, 1e308], [-1e308]]
        yield dtype, 0.0, [[1e308, 1e308]]
        yield dtype, 0.0, [[-3.5e38, -3.5e38]]
        yield dtype, 0.0, [[3e-45, 1e-46], [-1e-46]]
        yield dtype, 0.0, [[7e-46]]
        yield dtype, 0.0, [[5e-324, 5e-324], [1e-310]]
        yield dtype, math.inf, [[1.0], [2.0]]
        yield dtype, 0.0, [[math.inf], [-math.inf]]
        yield dtype, 0.0, [[-math.inf], [1.0]]
        yield dtype, 0.0, [[math.nan], [math.inf]]
        for _ in range(200):
            wide = rng.standard_normal(12) * 2.0 ** rng.integers(-80, 80, 12)
            yield dtype, float(wide[0]), [list(wide[1:4]), list(wide[4:]), []]


def test_sums_of_all_ranks_are_rounded_once(tmp_path: Path) -> None:
    folders = [PACKAGE / "export" / "program", PACKAGE / "runtime" / "cpp", PACKAGE / "codegen"]
    command = ["c++", "-std=c++20", "-O1", "-fwrapv", *(f"-I{folder}" for folder in folders), str(SUMS)]
    subprocess.run([*command, "-o", str(tmp_path / "sums")], check=True, timeout=SECONDS)
    tried = list(sums_to_try())
    lines = [
        f"{8 * np.dtype(dtype).itemsize} {initial!r} "
        + " | ".join(" ".join(map(repr, map(float, row))) for row in rows)
        for dtype, initial, rows in tried
    ]
    found = subprocess.run(
        [str(tmp_path / "sums")], input="\n".join(lines), capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(found) == len(tried)
    for (dtype, initial, rows), text in zip(tried, found, strict=True):
        terms = [initial, *(term for row in rows for term in row)]
        if all(map(math.isfinite, terms)):
            expected = nearest(sum(map(Fraction, map(float, terms)), Fraction()), dtype)
        else:
            expected = sum(terms)
        value = np.dtype(dtype).type(text)
        assert value == expected or (math.isnan(value) and math.isnan(expected)), (dtype, initial, rows)


# -- the simulator ---------------------------------------------------------------------------------------------------


def test_a_missing_simgrid_is_said_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert lapwing("simulate", EXAMPLE, "-n", "2", "--machine", "p0-fastethernet", "--smpi") == 1
    assert "apt install libsimgrid-dev" in capsys.readouterr().err


def test_platforms_say_what_the_cluster_is() -> None:
    text = platform_xml(CLUSTER)
    assert 'radical="0-15"' in text
    assert 'bw="12500000.0Bps"' in text
    assert 'lat="3e-05s"' in text  # twice on the way
    assert host_file(CLUSTER, 3) == "host-0\nhost-1\nhost-2\n"


def test_what_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="one thread a rank"):
        smpi.simulate(tmp_path, b"", 4, "helper", CLUSTER)
    with pytest.raises(RefusedError, match="17 ranks on sixteen: it has 16 hosts"):
        smpi.simulate(tmp_path, b"", 17, "overlap", CLUSTER)


@needs_simgrid
def test_simulated_seconds_are_those_of_the_model() -> None:
    """Two ranks, blocking: every step of the second follows one of the first, and a message lies between."""
    case = Case(roots, lambda: dict(a=np.zeros((9, 9, 101), np.float32)), 2, (2, 1), 10)
    bound, plan, _ = planned(case, "blocking")
    program = smpi.build(sources(bound, plan), None)
    seconds = smpi.simulate(program, program_bytes(bound, plan), 2, "blocking", CLUSTER)
    compute = 4 * 8 * 10 * CLUSTER.seconds_per_point
    size = 8 * 10 * 4 + 8  # a face and the time it was sent
    cpu, way = 60e-6 + 10e-9 * size, CLUSTER.latency + size / CLUSTER.bytes_per_second
    # The sender waits until the message has come, the receiver takes it in and computes; the sender's next is ready by then.
    assert seconds == pytest.approx(10 * (compute + cpu + way) + cpu + compute, rel=0.01)


@needs_simgrid
@pytest.mark.parametrize("name", ["three dimensions", "descending, reductions"])
def test_programs_for_the_simulator_share_what_belongs_to_no_nest(name: str, simulated_objects: Path) -> None:
    bound, plan, _ = planned(CASES[name])
    tool = shutil.which("smpicxx") or ""
    assert {path.parent for path in smpi._objects(sources(bound, plan), tool, smpi._version(tool))} == {
        simulated_objects
    }


@needs_simgrid
def test_computing_is_hidden_behind_the_overlap_engines_messages() -> None:
    case = Case(roots, lambda: dict(a=np.zeros((17, 17, 1025), np.float32)), 16, (4, 4), 64)
    times = {}
    for engine in ("blocking", "overlap"):
        bound, plan, _ = planned(case, engine)
        times[engine] = smpi.simulate(
            smpi.build(sources(bound, plan), None), program_bytes(bound, plan), 16, engine, CLUSTER
        )
    assert times["overlap"] < 0.8 * times["blocking"]  # simulated: no clock is involved


@needs_simgrid
def test_the_command_simulates_with_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.json"
    words = ["-n", "4", "-p", "n=100", "-p", "sweeps=2", "--machine", "p0-fastethernet", "--json", str(path)]
    assert lapwing("simulate", EXAMPLE, *words, "--engine", "blocking,overlap", "--smpi") == 0
    document = json.loads(path.read_text())
    assert {"nest", "ranks", "machine", "dependences", "skew", "runs"} == document.keys()
    assert [run["engine"] for run in document["runs"]] == ["blocking", "overlap"]
    shown = capsys.readouterr().out
    for run in document["runs"]:
        assert run["smpi"] > 0
        assert f"{run['smpi']:.4g}" in shown
    assert lapwing("simulate", EXAMPLE, *words) == 0
    assert [run["smpi"] for run in json.loads(path.read_text())["runs"]] == [None]


@pytest.mark.parametrize("ranks", [1, 4])
def test_simulated_seconds_say_what_they_consist_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ranks: int
) -> None:
    path = tmp_path / "out.json"
    words = ["-n", str(ranks), "-p", "n=100", "-p", "sweeps=2", "--machine", "p0-fastethernet", "--json", str(path)]
    assert lapwing("simulate", EXAMPLE, *words, "--engine", "overlap,blocking") == 0
    shown = capsys.readouterr().out
    assert "seconds = compute" in shown
    assert ("one rank takes" in shown) == (ranks > 1)
    overlap, blocking = json.loads(path.read_text())["runs"]
    for run in (overlap, blocking):
        assert sum(run["parts"].values()) == pytest.approx(run["seconds"])
        assert 0 < run["compute"]["min"] <= run["compute"]["mean"] == run["ideal"] <= run["compute"]["max"]
        assert run["compute"]["max"] == run["parts"]["compute"]
        assert run["speedup"] == pytest.approx(run["one_rank"] / run["seconds"])
    if ranks > 1:
        assert blocking["of_blocking"] == 1
        assert overlap["blocking"] == blocking["seconds"]


def test_a_virtual_cluster_costs_what_the_machine_says() -> None:
    case = Case(roots, lambda: dict(a=np.zeros((17, 17, 1025), np.float32)), 16, (4, 4), 64)
    arguments = case.arguments()
    bound = roots.bind(arguments)
    machine = stored.find("p0-fastethernet")
    decide = Decider.for_machine(bound, roots.dependences, 16, "p0-fastethernet", arguments)
    plan = decide(Wishes("overlap", case.tile, case.grid))
    cluster = cluster_of(bound, plan, machine, 1)
    link, size = machine.link("network", "overlap"), 4 * 64 * 4
    assert (cluster.hosts, cluster.cores) == (16, 1)
    assert cluster.bytes_per_second == pytest.approx(12.5e6)
    assert plan.prediction is not None
    assert cluster.seconds_per_point * 4 * 4 * 1024 == pytest.approx(plan.prediction.compute)
    at = {bytes_: seconds for bytes_, seconds in cluster.send_cpu}
    copies = machine.copies.contiguous_seconds_per_byte.value * size
    assert at[size] >= link.send_cpu(size) + copies
    assert [bytes_ for bytes_, _ in cluster.send_cpu] == sorted(at)


@needs_simgrid
def test_a_failed_simulation_is_an_error(tmp_path: Path) -> None:
    case = CASES["old values"]
    bound, plan, _ = planned(case)
    program = smpi.build(sources(bound, plan), None)
    with pytest.raises(lw.LapwingError, match=r"(?s)simulation failed.*program\.bin cannot be read"):
        smpi.run(program, 3, CLUSTER, ["--dir", str(tmp_path / "nothing")], tmp_path)


def test_a_program_that_does_not_compile_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path))
    wrong = tmp_path / "smpicxx"
    wrong.write_text("#!/bin/sh\necho cannot be >&2\nexit 1\n")
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    bound, plan, _ = planned(CASES["one rank"])
    with pytest.raises(BuildError, match=r"(?s)could not be built.*cannot be"):
        smpi.build(sources(bound, plan), None)
