"""The examples give the bits of their plain loops, alone and on ranks, and the answers of other methods.

Started by mpiexec as a program, this file compares the examples on the ranks of that run, or runs those it is given.
"""

from __future__ import annotations

import heapq
import importlib.util
import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from limits import scaled
from optimising import optimise_little
from processes import WITH_HELPERS

import lapwing as lw
from lapwing.launcher import launcher_rank

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {
    "sqrt3d": [],
    "gauss_seidel": [],
    "gauss_seidel9": [],
    "heat1d": [],
    "sor3d": [],
    "advection2d": [],
    "advection3d": [],
    "alignment": ["--bases", "700"],
    "mean_filter": ["--n", "60"],
    "eikonal": ["--spacing", "600"],
}


@cache
def example(name: str) -> Any:
    """An example imported by path, as a program elsewhere would."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- the bits of the plain loop --------------------------------------------------------------------------------------


def cases() -> dict[str, tuple[lw.Nest, dict[str, Any]]]:
    """Every nest of the examples with a small problem."""
    plate = example("gauss_seidel").problem(n=23, sweeps=4)
    walk = dict(zip(("T", "cost"), rough_ground(19, 26), strict=True))
    eikonal = example("eikonal")
    return {
        "sqrt3d": (example("sqrt3d").sqrt3d, example("sqrt3d").problem(i=5, j=7, k=90)),
        "smooth": (example("gauss_seidel").smooth, plate),
        "residual": (example("gauss_seidel").residual, {"u": np.random.default_rng(3).random((17, 29))}),
        "smooth9": (example("gauss_seidel9").smooth9, example("gauss_seidel9").problem(n=23, sweeps=4)),
        "cool": (example("heat1d").cool, example("heat1d").problem(n=40, steps=25)),
        "sor": (example("sor3d").sor, example("sor3d").problem(n=11, sweeps=3)),
        "advect in 2-D": (example("advection2d").advect, example("advection2d").problem(n=30, sweeps=35)),
        "advect in 3-D": (example("advection3d").advect, example("advection3d").problem(n=12, sweeps=35)),
        "align": (example("alignment").align, example("alignment").problem(bases=120)),
        "mean filter": (example("mean_filter").smooth, {"u": np.random.default_rng(4).random((31, 22)), "sweeps": 4}),
        "down_right": (eikonal.down_right, walk),
        "up_right": (eikonal.up_right, walk),
        "up_left": (eikonal.up_left, walk),
        "down_left": (eikonal.down_left, walk),
    }


def rough_ground(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrival times known at one point, and uneven costs, with a margin as in the example."""
    times = np.full((rows + 2, columns + 2), example("eikonal").FAR)
    times[rows // 3, columns // 2] = 0.0
    return times, np.random.default_rng(7).uniform(10.0, 90.0, times.shape)


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}


def differences(call: Callable[[lw.Nest, dict[str, Any]], tuple[Any, dict[str, Any]]]) -> list[str]:
    """The nests whose result or arrays differ, when called so, from those of the plain loop.

    call: runs a nest and returns its result and its arrays as NumPy arrays, or None for them where they are not known.
    """
    found = []
    for name, (nest, arguments) in cases().items():
        expected = copied(arguments)
        expected_result = nest.python(**expected)
        result, arrays = call(nest, copied(arguments))
        if result != expected_result:
            found.append(f"{name}: result {result}, expected {expected_result}")
        found += [f"{name}: {k}" for k, v in arrays.items() if v is not None and v.tobytes() != expected[k].tobytes()]
    return found


def call_with_numpy(nest: lw.Nest, arguments: dict[str, Any], is_root: bool = True) -> tuple[Any, dict[str, Any]]:
    result = nest(**arguments)
    return result, {k: v for k, v in arguments.items() if isinstance(v, np.ndarray) and is_root}


def call_with_distributed(nest: lw.Nest, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    wrapped = {k: lw.DistributedArray(v) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    result = nest(**wrapped)
    return result, {k: v.numpy() for k, v in wrapped.items() if isinstance(v, lw.DistributedArray)}


@pytest.mark.long  # every day on two ranks
def test_every_nest_gives_the_bits_of_its_plain_loop() -> None:
    assert differences(call_with_numpy) == []


@pytest.mark.long  # every day of programs of the literature
@pytest.mark.parametrize("engine", ["blocking", "overlap"])
def test_engine_and_tile_do_not_matter(engine: str) -> None:
    assert differences(lambda nest, a: call_with_numpy(nest.using(engine=engine, tile=5), a)) == []


@pytest.mark.mpi
def test_every_nest_gives_the_bits_of_its_plain_loop_on_two_ranks() -> None:
    done = run([*mpiexec(2), __file__])
    assert done.stdout.splitlines() == ["identical on 2 ranks"], done.stdout + done.stderr


def compare_on_ranks() -> int:
    """Run by every rank of an MPI run; what differs is said by the ranks that see it."""
    from mpi4py import MPI

    optimise_little()
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    found = differences(lambda nest, a: call_with_numpy(nest, a, rank == 0)) + differences(call_with_distributed)
    for text in found:
        print(f"rank {rank}: {text}", flush=True)
    if not MPI.COMM_WORLD.allreduce(len(found)) and rank == 0:
        print(f"identical on {size} ranks")
    return 1 if found else 0


# -- the answers of other methods ------------------------------------------------------------------------------------


def test_alignment_score_is_that_of_another_program() -> None:
    alignment = example("alignment")
    for scores in ({"match": 2, "mismatch": -4, "gap": 5}, {"match": 1, "mismatch": -1, "gap": 1}):
        arguments = alignment.problem(bases=260, **scores)
        a, b = arguments["a"][40:], arguments["b"]
        h = np.zeros((len(a) + 1, len(b) + 1), np.int32)
        assert alignment.align(h, a, b, **scores) == score_by_diagonals(a, b, **scores)


def score_by_diagonals(a: np.ndarray, b: np.ndarray, match: int, mismatch: int, gap: int) -> int:
    """Smith-Waterman along anti-diagonals, whose cells do not depend on each other."""
    before = last = np.zeros(len(a) + 1, int)  # cells (i, d - i) of the two diagonals before d, by i
    best = 0
    for d in range(2, len(a) + len(b) + 1):
        i = np.arange(max(1, d - len(b)), min(len(a), d - 1) + 1)
        pairs = np.where(a[i - 1] == b[d - i - 1], match, mismatch)
        diagonal = np.zeros(len(a) + 1, int)
        diagonal[i] = np.maximum.reduce([0 * i, before[i - 1] + pairs, last[i - 1] - gap, last[i] - gap])
        best = max(best, int(diagonal.max()))
        before, last = last, diagonal
    return best


def test_alignment_read_off_the_matrix_has_the_score() -> None:
    alignment = example("alignment")
    arguments = alignment.problem(bases=1500)
    score = alignment.align(**arguments)
    cells = alignment.traceback(**arguments)
    above, below = alignment.columns(cells, arguments["a"], arguments["b"])
    worth = {True: arguments["match"], False: arguments["mismatch"]}
    columns = list(zip(above, below, strict=True))
    assert score == sum(-arguments["gap"] if "-" in column else worth[column[0] == column[1]] for column in columns)
    assert above.replace("-", "") in arguments["a"].tobytes().decode()
    assert below.replace("-", "") in arguments["b"].tobytes().decode()


def test_arrival_times_are_those_of_fast_marching() -> None:
    times, cost = rough_ground(31, 42)
    expected = fast_marching(times, cost)
    example("eikonal").solve(times, cost)
    np.testing.assert_allclose(times[1:-1, 1:-1], expected[1:-1, 1:-1], rtol=1e-12)


def fast_marching(times: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Sethian's method: points become final in the order of their times, each from final neighbours only."""
    far = times.max()
    final = np.full_like(times, far)
    queue = [(0.0, i, j) for i, j in np.argwhere(times == 0.0).tolist()]
    while queue:
        time, i, j = heapq.heappop(queue)
        if final[i, j] < far:
            continue
        final[i, j] = time
        for y, x in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 < y < times.shape[0] - 1 and 0 < x < times.shape[1] - 1 and final[y, x] == far:
                near, other = sorted((min(final[y - 1, x], final[y + 1, x]), min(final[y, x - 1], final[y, x + 1])))
                step, apart = cost[y, x], other - near
                slanted = near + 0.5 * (apart + max(2.0 * step**2 - apart**2, 0.0) ** 0.5)
                heapq.heappush(queue, (near + step if apart >= step else slanted, y, x))
    return final


def test_gauss_seidel_residual_falls() -> None:
    gauss_seidel = example("gauss_seidel")
    u = gauss_seidel.problem(n=40)["u"]
    residuals = [gauss_seidel.residual(u)]
    for _ in range(6):
        gauss_seidel.smooth(u, 20)
        residuals.append(gauss_seidel.residual(u))
    assert residuals == sorted(residuals, reverse=True)
    assert residuals[-1] < 1e-2 * residuals[0]


def test_nine_points_are_of_sixth_order() -> None:
    gauss_seidel9 = example("gauss_seidel9")
    errors = []
    for n in (9, 17):
        arguments = gauss_seidel9.problem(n=n, sweeps=3 * n * n)
        gauss_seidel9.smooth9(**arguments)
        errors.append(np.abs(arguments["u"] - gauss_seidel9.exact(n)).max())
    assert errors[0] / errors[1] == pytest.approx(64.0, rel=0.1)


def test_waves_of_a_rod_shrink_as_they_should() -> None:
    heat1d = example("heat1d")
    arguments = heat1d.problem(n=101, steps=300)
    heat1d.cool(**arguments)
    for number, start in ((1, 1.0), (heat1d.WAVES, 0.5)):
        factor = 1.0 - 4.0 * arguments["r"] * np.sin(number * np.pi / 200) ** 2
        assert heat1d.wave(arguments["u"][300], number) == pytest.approx(start * factor**300, abs=1e-9)


def test_sor_comes_to_the_exact_solution() -> None:
    sor3d = example("sor3d")
    arguments = sor3d.problem(n=33, sweeps=120)
    sor3d.sor(**arguments)
    assert np.abs(arguments["u"] - sor3d.solution(33)).max() < 1e-3


@pytest.mark.parametrize(("name", "courant"), [("advection2d", (0.5, 0.25)), ("advection3d", (0.5, 0.25, 0.125))])
def test_advection_keeps_the_total_and_moves_the_centre(name: str, courant: tuple[float, ...]) -> None:
    advection = example(name)
    v = advection.problem(n=64)["v"]
    total, start = v.sum(), np.array(advection.centre(v))
    advection.advect(v, *courant, 20)
    assert v.sum() == pytest.approx(total, rel=1e-6)
    np.testing.assert_allclose(advection.centre(v), start + 20 * np.array(courant), atol=1e-4)
    assert 0.0 <= v.min() <= v.max() <= 1.0


def test_terrain_is_mirrored_at_its_edges() -> None:
    pytest.importorskip("matplotlib")
    mean_filter = example("mean_filter")
    model = mean_filter.model()
    rows, columns = model.shape
    whole = mean_filter.height(*np.ogrid[: 2 * rows + 3, : 2 * columns + 3])
    tiled = np.pad(model, ((0, rows + 3), (0, columns + 3)), mode="symmetric")
    assert whole.tobytes() == tiled.tobytes()
    part = mean_filter.height(*np.ogrid[rows - 2 : rows + 5, 7:11])
    assert part.tobytes() == np.ascontiguousarray(tiled[rows - 2 : rows + 5, 7:11]).tobytes()


def test_mean_filter_smooths() -> None:
    pytest.importorskip("matplotlib")
    mean_filter = example("mean_filter")
    arguments = mean_filter.problem(n=80, sweeps=4)
    before = mean_filter.height(*np.ogrid[:80, :80])
    mean_filter.smooth(**arguments)
    after = arguments["u"].numpy()
    assert mean_filter.roughness(after) < 0.8 * mean_filter.roughness(before)
    assert before.min() <= after.min()
    assert after.max() <= before.max()


def test_advection_is_pipelined_over_time() -> None:
    for name, grid in (("advection2d", (2, 4)), ("advection3d", (2, 2, 2))):
        plan = example(name).advect.plan(**example(name).problem(), ranks=8)
        assert (plan.mapping_loop, sorted(plan.grid)) == ("t", sorted(grid))


# -- the programs ------------------------------------------------------------------------------------------------------


EVERYDAY = [
    "heat1d",
    "eikonal",
]  # a skewed nest, several nests


@pytest.mark.mpi
@pytest.mark.parametrize("names", [EVERYDAY, pytest.param(list(SMALL), marks=pytest.mark.long)], ids=["some", "all"])
def test_programs_say_the_same_alone_and_on_two_ranks(names: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    alone, together = (run([*launcher, __file__, *names], tmp_path) for launcher in ([sys.executable], mpiexec(2)))
    assert alone.stdout.count("== ") == len(names)
    assert untimed(together.stdout) == untimed(alone.stdout)


def run_programs(names: list[str]) -> None:
    """Run as the programs they are, one after the other in this process: to start one takes longer than to run it."""
    for name in names:
        if not launcher_rank():
            print(f"== {name}", flush=True)
        sys.argv = [str(EXAMPLES / f"{name}.py"), *SMALL[name]]
        runpy.run_path(sys.argv[0], run_name="__main__")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("alignment", ["bases=900"]),
        *(
            pytest.param(name, parameters, marks=pytest.mark.long)
            for name, parameters in (
                ("gauss_seidel", []),  # rows a power of two apart
                ("heat1d", ["n=301", "steps=400"]),
                ("sqrt3d", ["k=2048"]),
                ("gauss_seidel9", ["n=300"]),
                ("sor3d", ["n=40"]),
                ("advection2d", ["n=200"]),
                ("advection3d", ["n=40"]),
                ("eikonal", []),
            )
        ),
    ],
)
def test_lapwing_run_finds_it_identical(name: str, parameters: list[str], tmp_path: Path) -> None:
    if name == "eikonal":
        pytest.importorskip("matplotlib")
    mpiexec(2)
    command = [sys.executable, "-c", "from lapwing.cli.main import main; main()", "run", str(EXAMPLES / f"{name}.py")]
    settings = [word for setting in parameters for word in ("-p", setting)]
    run([*command, "-n", "2", "--check", "--engine", "blocking,overlap", "--json", "out.json", *settings], tmp_path)
    runs = json.loads((tmp_path / "out.json").read_text())["runs"]
    assert [one["identical"] for one in runs] == [True, True]
    assert name != "alignment" or all(one["results"]["score"] > 900 for one in runs)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "memory", "parameters"),
    [
        pytest.param("mean_filter", "1MB", ["n=500"], marks=pytest.mark.long),
        pytest.param("gauss_seidel", "1MB", ["n=500"], marks=pytest.mark.long),
        pytest.param("alignment", "600KB", ["bases=500"], marks=pytest.mark.long),
        pytest.param("mean_filter", "8MB", ["n=3000", "sweeps=7"], marks=pytest.mark.long),
        pytest.param("gauss_seidel", "8MB", ["n=3000", "sweeps=40"], marks=pytest.mark.long),
        pytest.param("alignment", "32MB", [], marks=pytest.mark.long),
    ],
)
def test_lapwing_run_finds_it_identical_out_of_core(
    name: str, memory: str, parameters: list[str], tmp_path: Path
) -> None:
    if name == "mean_filter":
        pytest.importorskip("matplotlib")
    mpiexec(2)
    command = [sys.executable, "-c", "from lapwing.cli.main import main; main()", "run", str(EXAMPLES / f"{name}.py")]
    settings = [word for setting in parameters for word in ("-p", setting)]
    options = ["-n", "2", "--check", "--memory", memory, "--json", "out.json", "--scratch", str(tmp_path)]
    done = run([*command, *options, *settings], tmp_path)
    assert "out of core  " in done.stdout
    assert [one["identical"] for one in json.loads((tmp_path / "out.json").read_text())["runs"]] == [True]
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]  # nothing stays on disk


@pytest.mark.parametrize(
    "name", ["alignment", "eikonal", "mean_filter", pytest.param("advection2d", marks=pytest.mark.long)]
)
def test_picture_is_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES / f"{name}.py"), *SMALL[name], "--picture", "new/picture.png"])
    runpy.run_path(sys.argv[0], run_name="__main__")
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "name", ["alignment", *(pytest.param(n, marks=pytest.mark.long) for n in ("eikonal", "advection2d"))]
)
def test_without_matplotlib_a_picture_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    program = str(EXAMPLES / f"{name}.py")
    start = f"import runpy, sys; sys.modules['matplotlib'] = None; runpy.run_path({program!r}, {{}}, '__main__')"
    arguments = [*SMALL[name], "--picture", "picture.png"]
    done = run([sys.executable, "-c", start, *arguments], tmp_path, status=1)
    message = [line for line in done.stderr.splitlines() if not line.startswith("lapwing: building")]
    assert len(message) == 1
    assert 'pip install "lapwing[examples]"' in message[0]


def untimed(text: str) -> list[str]:
    return [line for line in text.splitlines() if " points in " not in line]


def mpiexec(ranks: int) -> list[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    launcher = shutil.which("mpiexec", path=path)
    if launcher is None:
        pytest.skip("no mpiexec")
    return [launcher, "-n", str(ranks), sys.executable]


def run(command: list[str], folder: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **WITH_HELPERS}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=scaled(120), env=environment, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


if __name__ == "__main__":
    sys.exit(run_programs(sys.argv[1:]) if sys.argv[1:] else compare_on_ranks())
