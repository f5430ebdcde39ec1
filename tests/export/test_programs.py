"""Exported programs of several nests: the bits of plain Python on any number of ranks, or a refusal that says what to write."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from everyday import everyday
from exporting import little_optimised, make, mpiexec, with_objects
from needs import SIMGRID

import lapwing as lw
from lapwing.api.nest import Nest
from lapwing.cli.main import main
from lapwing.errors import RefusedError
from lapwing.export.driver.operations import CallNest, Choose, Count, Exchange
from lapwing.export.driver.partial_evaluation.specialisation import specialise
from lapwing.export.driver.program import export_driver
from lapwing.export.driver.residency import Move, Residency
from lapwing.planner.plan import ENGINES
from lapwing.tiling.phased import fusion

needs_simgrid = pytest.mark.skipif(not SIMGRID.is_here, reason=SIMGRID.reason)


@lw.nest
def jacobi(u, f, tol, most):
    """A while loop whose end depends on a reduction, names that change places, a copy that the driver makes."""
    n, m = u.shape
    v = u.copy()
    residual = 2.0 * tol
    iterations = 0
    while residual > tol and iterations < most:
        residual = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
                residual = max(residual, abs(v[i, j] - u[i, j]))
        u, v = v, u
        iterations += 1
    return u, iterations, residual


@lw.nest
def fdtd(ex, ey, hz, steps):
    """A time loop that is one pipeline, an element that the driver sets, a sine of the time step."""
    nx, ny = hz.shape
    for t in range(steps):
        for i in range(1, nx):
            for j in range(ny):
                ey[i, j] = ey[i, j] - 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in range(nx):
            for j in range(1, ny):
                ex[i, j] = ex[i, j] - 0.5 * (hz[i, j] - hz[i, j - 1])
        hz[nx // 2, ny // 2] += math.sin(0.3 * t)
        for i in range(nx - 1):
            for j in range(ny - 1):
                hz[i, j] = hz[i, j] - 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return hz[3, 4]


@lw.nest
def ssor(u, f, omega, rounds):
    """Forward and backward through one pipeline."""
    n, m = u.shape
    for k in range(rounds):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = u[i, j] + omega * (
                    0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) - u[i, j] - f[i, j]
                )
        for i in range(n - 2, 0, -1):
            for j in range(m - 2, 0, -1):
                u[i, j] = u[i, j] + omega * (
                    0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) - u[i, j] - f[i, j]
                )


@lw.nest
def there_and_back(u, v, steps):
    """Arrays that are larger than the cache, say: blocks of several sweeps are done together on one rank."""
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])


@lw.nest
def rotating(u, v, w, steps):
    """Three iterations are one sweep, and two are left over."""
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                w[i, j] = 2.0 * v[i, j] - u[i, j] + 0.1 * (v[i - 1, j] + v[i + 1, j] + v[i, j - 1] + v[i, j + 1])
        u, v, w = v, w, u
    return v[2, 3]


@lw.nest
def levels(u, steps):
    """Time levels by t % 3, views with a fixed index, and one along a column."""
    last = u.shape[1] - 1
    for t in range(steps):
        before, now, after = (t - 1) % 3, t % 3, (t + 1) % 3
        for i in range(1, last):
            for j in range(1, u.shape[2] - 1):
                u[after, i, j] = 0.3 * (u[now, i + 1, j] + u[now, i - 1, j] + u[now, i, j + 1]) - 0.2 * u[before, i, j]
        u[after, 0, 1] = 0.5
    for i in range(last + 1):
        u[0, i, 0] = u[0, i, 1] + 1.0
    return u[0, 2, 0]


@lw.nest
def nine_points(u, w, rounds, count):
    """A nest that must be skewed beside one that is not; sums of integers and of floats; a value that may be kept."""
    n, m = u.shape
    largest = np.float32(2.5)
    for r in range(rounds):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.2 * (u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1] + u[i, j - 1] + u[i, j])
        for i in range(n):
            for j in range(m):
                w[i, j] = w[i, j] + u[i, j]
                count += 1
                largest = max(largest, w[i, j])
        if largest > 100.0:
            return -1, largest
    total = 0
    for i in range(n):
        for j in range(m):
            if w[i, j] > 1.5:
                total += i - j
    return count, total, largest


@lw.nest
def relaxed(u, f, sweeps):
    """Sweeps that are done several at once, before and after a nest that is not."""
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - f[i, j])
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            f[i, j] = 4.0 * u[i, j] - u[i - 1, j] - u[i, j - 1]
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1] - 0.1 * f[i, j])


@lw.nest
def in_order(a, x, rounds):
    """Loops in their own order on one rank between nests on all; arrays that are filled, and made of numbers."""
    n = a.shape[0]
    weights = np.array([0.5, 0.25, 0.125])
    copied = np.zeros_like(a)
    for r in range(rounds):
        work = np.full((n, n), 0.5)
        copied[:] = a
        for i in range(n):
            for j in range(n):
                work[i, j] = work[i, j] + weights[r % 3] * a[i, j]
        k = 0
        while k < n and x[k] < 1.0:
            x[k] = x[k] + work[k, n - 1 - k] * a[0, k]
            k += 1
        for i in range(n):
            for j in range(n):
                a[i, j] = 0.9 * work[i, j] + 0.01 * x[j]
    copied[...] = copied
    a[:] = 0.25
    return work, k, copied


def random(*shape: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(7).random(shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    nest: Nest
    arguments: Callable[[], dict[str, Any]]


CASES = {
    "jacobi": Case(jacobi, lambda: dict(u=random(15, 19), f=0.01 * random(15, 19), tol=2e-3, most=60)),
    "jacobi, to the last iteration": Case(jacobi, lambda: dict(u=random(9, 12), f=random(9, 12), tol=1e-12, most=5)),
    "fdtd": Case(fdtd, lambda: dict(ex=random(14, 17), ey=random(14, 17), hz=random(14, 17), steps=7)),
    "ssor": Case(ssor, lambda: dict(u=random(14, 17), f=random(14, 17), omega=1.3, rounds=4)),
    "levels": Case(levels, lambda: dict(u=random(3, 13, 16), steps=5)),
    "there and back": Case(there_and_back, lambda: dict(u=random(14, 17), v=random(14, 17), steps=7)),
    "rotating": Case(rotating, lambda: dict(u=random(9, 8), v=random(9, 8), w=random(9, 8), steps=8)),
    "nine points": Case(
        nine_points, lambda: dict(u=random(13, 16), w=random(13, 16, dtype="float32"), rounds=3, count=4)
    ),
    "in order": Case(in_order, lambda: dict(a=random(12, 12), x=0.5 * random(12), rounds=4)),
    "joined sweeps": Case(relaxed, lambda: dict(u=random(140, 220), f=0.1 * random(140, 220), sweeps=6)),
}
EVERYDAY = ("jacobi", "nine points", "joined sweeps")


def exported(case: Case, folder: Path, ranks: int) -> dict[str, Any]:
    arguments = case.arguments()
    export_driver(folder, specialise(case.nest, copy.deepcopy(arguments), ranks), "overlap", arguments)
    return arguments


def check(case: Case, folder: Path, output: str) -> None:
    """The arrays that were passed and what is returned are those of plain Python, bit by bit."""
    arguments = case.arguments()
    before = copy.deepcopy(arguments)
    returned = case.nest.python(**arguments)
    for name, values in arguments.items():
        if isinstance(values, np.ndarray) and values.tobytes() != before[name].tobytes():
            assert np.load(folder / "out" / f"{name}.npy").tobytes() == values.tobytes(), name
    printed = dict(re.findall(r"^(\S+) = (.+)$", output, re.MULTILINE))
    if not isinstance(returned, tuple):
        check_returned(folder, printed, "returned", "returned", returned)
        return
    for k, value in enumerate(returned):
        check_returned(folder, printed, f"returned[{k}]", f"returned_{k}", value)


def check_returned(folder: Path, printed: dict[str, str], name: str, file: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        found = np.load(folder / "out" / f"{file}.npy")
        assert (found.dtype, found.tobytes()) == (value.dtype, value.tobytes()), name
    elif value is not None:
        assert type(value)(printed[name]) == value


@pytest.mark.mpi
@pytest.mark.usefixtures("little_optimised")
@pytest.mark.parametrize("ranks", everyday((1, 2, 3, 4), (3,)))
@pytest.mark.parametrize("name", everyday(CASES, EVERYDAY))
def test_programs_have_the_bits_of_plain_python(
    name: str, ranks: int, tmp_path: Path, driver_objects: Path, request: pytest.FixtureRequest
) -> None:
    case, folder = CASES[name], tmp_path / "program"
    exported(case, folder, ranks)
    with_objects(folder, driver_objects)
    make(folder, *([] if request.node.get_closest_marker("long") else [little_optimised(folder)]))
    for engine in ENGINES if name == "jacobi" else ("overlap",):
        done = mpiexec(folder, ranks, case.nest.name, "--engine", engine)
        assert done.returncode == 0, done.stderr
        assert re.search(rf"^{case.nest.name}: {engine} on {ranks} ranks?, \S+ seconds$", done.stdout, re.M)
        check(case, folder, done.stdout)


@pytest.mark.mpi
def test_a_program_on_one_rank_fuses_its_sweeps(
    tmp_path: Path, driver_objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size, value in (("cached_bytes", lambda: 0), ("BLOCK_BYTES", 64), ("room_bytes", lambda: 2048)):
        monkeypatch.setattr(fusion, size, value)
    case, folder = CASES["there and back"], tmp_path / "program"
    (call,) = operations(case, 1, CallNest)
    assert call.call.plan.fusion.sweeps == 2
    exported(case, folder, 1)
    with_objects(folder, driver_objects)
    make(folder, little_optimised(folder))
    done = mpiexec(folder, 1, case.nest.name)
    assert done.returncode == 0, done.stderr
    check(case, folder, done.stdout)


@pytest.mark.mpi
def test_a_program_computes_on_other_arrays(tmp_path: Path, driver_objects: Path) -> None:
    """What depends on elements is found out when it runs: other elements take other numbers of iterations."""
    case, folder = CASES["jacobi"], tmp_path / "program"
    exported(case, folder, 2)
    with_objects(folder, driver_objects)
    make(folder)
    other = Case(jacobi, lambda: {**case.arguments(), "u": 0.01 * random(15, 19)})
    np.save(folder / "data" / "u.npy", other.arguments()["u"])
    done = mpiexec(folder, 2, "jacobi")
    assert done.returncode == 0, done.stderr
    check(other, folder, done.stdout)
    assert other.nest.python(**other.arguments())[1] != case.nest.python(**case.arguments())[1]


@pytest.mark.mpi
def test_what_python_would_raise_ends_the_program(tmp_path: Path, driver_objects: Path) -> None:
    folder = tmp_path / "program"
    arguments = {"u": random(8), "steps": 3}
    export_driver(folder, specialise(ratios, copy.deepcopy(arguments), 2), "overlap", arguments)
    with_objects(folder, driver_objects)
    make(folder)
    np.save(folder / "data" / "u.npy", np.zeros(8))
    done = mpiexec(folder, 2, "ratios")
    assert done.returncode != 0
    assert "division by zero" in done.stderr


@lw.nest
def ratios(u, steps):
    for t in range(steps):
        largest = 0.0
        for i in range(u.shape[0]):
            largest = max(largest, u[i])
        scale = 1.0 / largest
        for i in range(u.shape[0]):
            u[i] = u[i] * scale


@needs_simgrid
@pytest.mark.parametrize("name", everyday(("jacobi", "ssor"), ()))
def test_programs_run_on_a_virtual_cluster(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{Path(__file__).parent.parent / 'literature' / 'relaxation.py'}:{name}"
    words = ["simulate", target, "-n", "4", "--machine", "p0-fastethernet", "--engine", "overlap", "--smpi"]
    assert lapwing(*words) == 0
    assert "SMPI, s" in capsys.readouterr().out


# -- what drivers become ---------------------------------------------------------------------------------------------------


def operations(case: Case, ranks: int, kind: Any) -> list[Any]:
    driver = specialise(case.nest, case.arguments(), ranks)
    return [operation for block in driver.blocks for operation in block if isinstance(operation, kind)]


def test_a_time_loop_of_nests_is_one_call() -> None:
    assert len(operations(CASES["ssor"], 2, CallNest)) == 1
    assert not operations(CASES["ssor"], 2, Choose | Count)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_call_joins_its_sweeps(ranks: int) -> None:
    first, _, last = operations(CASES["joined sweeps"], ranks, CallNest)
    assert all(call.call.tables(0).c.joined_sweeps > 1 for call in (first, last))


def test_counters_are_left_to_the_program_unless_their_values_are_asked_for() -> None:
    assert len(operations(CASES["fdtd"], 2, Count)) == 1
    assert not operations(CASES["levels"], 2, Count)
    assert len(operations(CASES["levels"], 2, CallNest)) == 5 + 1


def test_ranks_send_what_others_lack_and_nothing_else() -> None:
    """Two neighbours tell each other a row of the array that was written; of the one that is only read they have all."""
    found = operations(CASES["jacobi"], 2, Exchange)
    assert found
    for exchange in found:
        assert sorted((move.source, move.target) for _, move in exchange.moves) == [(0, 1), (1, 0)]
        assert all(sum(high - low == 1 for low, high in move.box) == 1 for _, move in exchange.moves)
        assert "f" not in {memory for memory, _ in exchange.moves}


def test_residency_knows_who_has_what() -> None:
    begin = Residency.new(("file", "u"), 2)
    assert begin.moves([(((0, 9),),), (((0, 9),),)]) == ()
    written = begin.written([[(((0, 4),),), (((4, 9),),)]])
    assert written.moves([(((0, 5),),), ()]) == (Move(1, 0, ((4, 5),)),)
    moved = written.moved(written.moves([(((0, 5),),), ()]))
    assert moved.moves([(((0, 5),),), ()]) == ()
    again = moved.written([[(), (((4, 5),),)]])
    assert again.moves([(((0, 5),),), ()]) == (Move(1, 0, ((4, 5),)),)
    assert again.owned() == ((((0, 4),),), (((4, 9),),))


# -- what is refused ---------------------------------------------------------------------------------------------------------


@lw.nest
def with_printing(u):
    for i in range(1, u.shape[0]):
        u[i] = u[i] + u[i - 1]
    print(u.shape)
    for i in range(1, u.shape[0]):
        u[i] = u[i] * u[i - 1]


@lw.nest
def of_unknown_size(u):
    count = 0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if u[i, j] > 0.5:
                count += 1
    v = np.zeros((count, 3))
    for i in range(count):
        for j in range(3):
            v[i, j] = i + j
    return v


@lw.nest
def with_numpy(u, v):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i, j] + u[i - 1, j]
    u[...] = np.sort(u, axis=0)
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[i, j] + v[i - 1, j]


def inner(u):
    for i in range(1, u.shape[0]):
        for j in range(u.shape[1]):
            u[i, j] = u[i, j] + u[i - 1, j]


@lw.nest
def with_functions(u):
    for t in range(3):
        inner(u)


def lapwing(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    assert isinstance(stop.value.code, int)
    return stop.value.code


def line_of(nest: Nest, text: str) -> int:
    lines, first = nest.source.lines, nest.source.first
    assert lines is not None
    return first + next(k for k, line in enumerate(lines) if text in line)


@pytest.mark.parametrize(
    ("nest", "arguments", "at", "said"),
    [
        (with_printing, {"u": np.ones(9)}, "print(", "Do anything else before the call, or after it"),
        (of_unknown_size, {"u": np.ones((9, 4))}, "v = np", "Pass it as an argument"),
        (with_numpy, {"u": np.ones((9, 4)), "v": np.ones((9, 4))}, "u[...]", "Write it as a loop over elements"),
        (with_functions, {"u": np.ones((9, 4))}, None, "Write the loops of inner where it is called"),
    ],
)
def test_refusals_say_where_and_what_to_write(nest: Nest, arguments: dict[str, Any], at: str | None, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        specialise(nest, arguments, 2)
    text = str(refused.value)
    assert said in text
    if at is not None:
        assert f"test_programs.py:{line_of(nest, at)}: " in text


def test_the_command_exports_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{Path(__file__).parent.parent / 'literature' / 'time_stepping.py'}:heat_periodic"
    assert lapwing("export", target, "-n", "2", "-o", str(tmp_path / "heat")) == 0
    assert "mpiexec -n 2 build/heat_periodic" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "heat").iterdir()} == {
        "CMakeLists.txt", "Makefile", "README.md", "data", "program.bin", "src",
    }  # fmt: skip
    readme = (tmp_path / "heat" / "README.md").read_text()
    assert not re.search(r"@[A-Z_]+@", readme)
    assert "phases a sweep through one pipeline" in readme
