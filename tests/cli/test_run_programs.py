"""`lapwing run`, `lapwing plan` and others on a program of several nests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from limits import scaled

from lapwing.codegen.compilation.cache import cache_directory
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError

SSOR = """
import numpy as np
import lapwing as lw

@lw.nest
def ssor(u, f, tol, most):
    old = u.copy()
    err, k = 2 * tol, 0
    while err > tol and k < most:
        old[:] = u
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])
        for i in range(u.shape[0] - 2, 0, -1):
            for j in range(u.shape[1] - 2, 0, -1):
                u[i, j] = 0.25 * (u[i-1, j] + u[i, j-1] + u[i+1, j] + u[i, j+1] - f[i, j])
        err = np.abs(u - old).max()
        k += 1
    total = 0.0
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            total += u[i, j]
    return u, k, err, total

@ssor.problem
def problem(n=24, most=4, fails=False, spread=False):
    random = np.random.default_rng(0)
    u, f = random.random((n, n)), random.random((n, n))
    return dict(u=lw.DistributedArray(u) if spread else u, f=f, tol=1e-3, most="four" if fails else most)
"""


def _has_mpi() -> bool:
    try:
        find_mpi()
    except BuildError:
        return False
    return True


pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
ON_TWO = pytest.param(2, marks=[pytest.mark.mpi, pytest.mark.skipif(not _has_mpi(), reason="no MPI here")])
RANKS = [pytest.param(1, marks=pytest.mark.long), ON_TWO]


def lapwing(folder: Path, *arguments: str, source: str = SSOR, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "ssor.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=scaled(120), check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    done = lapwing(folder, *arguments, "--json", "out.json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "out.json").read_text())
    return found


@pytest.mark.parametrize("ranks", RANKS)
def test_a_run_with_its_regions(ranks: int, tmp_path: Path) -> None:
    arguments = ("run", "ssor.py", "-n", str(ranks), "--engine", "blocking,overlap", "--repeat", "2", "--check")
    found = document(tmp_path, *arguments, "--timeline", "timeline.json")
    assert (found["nest"], found["ranks"], found["interpreted"]) == ("ssor", ranks, [])
    assert [region["name"] for region in found["regions"]] == ["ssor_1", "ssor_2", "ssor_3"]
    assert [region["line"] for region in found["regions"]] == [11, 14, 20]
    assert found["regions"][0]["dependences"] == [[1, 0], [0, 1]]
    assert [run["engine"] for run in found["runs"]] == ["blocking", "overlap"]
    for run in found["runs"]:
        assert len(run["seconds"]) == 2
        assert run["identical"] is True
        calls = {region["name"]: region["calls"] for region in run["regions"]}
        # On ranks the sweeps there and back are one pipeline.
        together = {"ssor_1": 4, "ssor_2": 4} if ranks == 1 else {"ssor_1_run": 4}
        assert calls == {**together, "ssor_3": 1}
        assert all(region["engine"] == run["engine"] for region in run["regions"])
        assert run["results"].keys() == {"returned[1]", "returned[2]", "returned[3]"}
        assert run["results"]["returned[1]"] == 4
        check_timeline(run, tmp_path / "timeline.json", ranks, 2)


def check_timeline(run: dict[str, Any], file: Path, ranks: int, runs: int) -> None:
    """It goes through all regions, on the ranks of each run."""
    assert (run["transfer_seconds"] is None) == (ranks == 1)
    assert (run["hidden"] is None) or 0 <= run["hidden"] <= 1
    text = file.read_text()
    is_one_pipeline = "ssor_1_run" in text
    assert is_one_pipeline or all(name in text for name in ("ssor_1", "ssor_2", "ssor_3"))
    if file.suffix == ".json" and not is_one_pipeline:
        computed = [e for e in json.loads(text)["traceEvents"] if e["name"] == "compute in ssor_2"]
        assert {e["args"]["sweep"] for e in computed} == {0, 1, 2, 3}
        assert len({e["pid"] for e in computed}) == ranks * runs


def test_what_is_printed(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "run", "ssor.py", "-p", "most=2")
    assert done.returncode == 0
    assert done.stdout.startswith("ssor: a program of 3 nests on 1 rank\n")
    assert "ssor_2: i 22 × j 22 points a sweep" in done.stdout
    assert "returned[1] = 2" in done.stdout
    assert [line.split()[:3] for line in done.stdout.splitlines() if line.strip().startswith("ssor_3 ")] == [
        ["ssor_3", "20", "i,"]
    ]


def test_large_problems_are_held_against_the_compiled_loop(tmp_path: Path) -> None:
    (run,) = document(tmp_path, "run", "ssor.py", "-p", "n=500", "-p", "most=2", "--check")["runs"]
    assert run["identical"] is True


@pytest.mark.parametrize("ranks", RANKS)
def test_an_error_of_the_driver(ranks: int, tmp_path: Path) -> None:
    done = lapwing(tmp_path, "run", "ssor.py", "-n", str(ranks), "-p", "fails=1", "--check")
    assert done.returncode == 1
    assert "ssor.py:6: ssor: raises TypeError: '<' not supported" in done.stderr
    assert "(the plain loop stops there, too)" in done.stderr


@pytest.mark.mpi
def test_distributed_arrays_of_the_problem(tmp_path: Path) -> None:
    (run,) = document(tmp_path, "run", "ssor.py", "-n", "2", "-p", "spread=1", "--check")["runs"]
    assert run["identical"] is True


def test_a_wrong_region_is_found(tmp_path: Path) -> None:
    """Fast-math divides by multiplying, in tiles but not in the plain loop."""
    script = tmp_path / "wrong_cc"
    script.write_text('#!/bin/sh\ncase "$*" in *tile.c*) exec cc "$@" -ffast-math;; *) exec cc "$@";; esac\n')
    script.chmod(0o755)
    (cache := tmp_path / "cache").mkdir(mode=0o700)
    for built in cache_directory().glob("runtime-*.so"):  # the C++ compiler is the right one
        shutil.copy(built, cache)
    divided = SSOR.replace("0.25 * (u[i-1", "(1.0 / 3.0) * (u[i-1").replace("- f[i, j])", "- f[i, j]) / 3.0")
    done = lapwing(
        tmp_path, "run", "ssor.py", "--check", source=divided, LAPWING_CC=str(script), LAPWING_CACHE=str(cache)
    )
    assert done.returncode == 1, done.stdout
    assert "not identical: planned: u differs in" in done.stderr
    assert "not identical: planned: what is returned[0] differs in" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("file", ["out.html", "timeline.json"])
def test_a_timeline_through_all_regions(ranks: int, file: str, tmp_path: Path) -> None:
    found = document(tmp_path, "run", "ssor.py", "-n", str(ranks), "--timeline", file, "--check")
    (run,) = found["runs"]
    assert run["identical"] is True
    check_timeline(run, tmp_path / file, ranks, 1)


@pytest.mark.parametrize("ranks", RANKS)
def test_more_than_fits_runs_out_of_core(ranks: int, tmp_path: Path) -> None:
    arguments = ("run", "ssor.py", "-n", str(ranks), "-p", "n=300", "-p", "most=2", "--memory", "1MB", "--check")
    found = document(tmp_path, *arguments, "--timeline", "timeline.html", "--engine", "blocking,overlap")
    for run in found["runs"]:
        assert run["identical"] is True
        assert run["disk"]["read_bytes"] > 2 * 300 * 300 * 8
    left = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert left == {"out.json", "ssor.py", "timeline.html"}


@pytest.mark.parametrize("option", [["--grid", "all"], ["--resume"]])
def test_options_that_are_for_a_nest_alone(option: list[str], tmp_path: Path) -> None:
    done = lapwing(tmp_path, "run", "ssor.py", "-n", "2", *option, LAPWING_MPIEXEC="/no/such/launcher")
    assert done.returncode == 2
    assert f"{' '.join(option) if option[0] == '--grid' else option[0]}: ssor is a program of 3 nests" in done.stderr


COUNTED = """
import numpy as np
import lapwing as lw

@lw.nest
def steps(u, v, n):
    for t in range(n):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
        u, v = v, u
    for k in range(3):
        for w in (u, v):
            w[0] = k
            for i in range(1, w.shape[0]):
                for j in range(1, w.shape[1]):
                    w[i, j] = w[i - 1, j] + w[i, j - 1]
    while u[3, 3] < 1e9:
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] += v[i - 1, j]
        for i in range(2, u.shape[0]):
            s = 0.0
            for j in range(1, u.shape[1]):
                s += u[u.shape[0] - i, j]
                u[i, j] = s

@steps.problem
def problem(n=5):
    return dict(u=np.ones((200, 210)), v=np.ones((200, 210)), n=n)
"""


def test_a_simulated_program(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(COUNTED)
    arguments = ("simulate", "steps.py", "-n", "4", "--machine", "cluster-100gbit", "--engine", "blocking,overlap")
    found = document(tmp_path, *arguments, "--iterations", "7")
    assert found["machine"] == "cluster-100gbit"
    assert found["uncounted"] == ["while u[3, 3] < 1000000000.0"]
    for run in found["runs"]:
        calls = [(region["name"], region["calls"]) for region in run["regions"]]
        assert calls == [("steps_1_sweep", 1), ("steps_1_sweep", 1), ("steps_2", 6), ("steps_3", 7)]
        assert run["seconds"] == pytest.approx(sum(region["seconds"] for region in run["regions"]))
        assert run["seconds"] == pytest.approx(sum(run["parts"].values()))
    (unknown,) = found["unknown"]
    assert "steps_4: loops in their own order on one rank" in unknown
    (twice,) = document(tmp_path, *arguments[:-1], "overlap", "-p", "n=10", "--iterations", "14")["runs"]
    once = found["runs"][1]
    assert twice["regions"][-1]["seconds"] == pytest.approx(2 * once["regions"][-1]["seconds"])
    assert twice["regions"][0]["seconds"] > 1.5 * once["regions"][0]["seconds"]


def test_what_is_printed_of_a_simulated_program(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "simulate", "ssor.py", "-n", "4", "--machine", "cluster-100gbit")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ssor on 4 ranks of cluster-100gbit, simulated\n")
    assert "while err > tol and k < most: taken to go round once (--iterations)." in done.stdout
    assert "all of it" in done.stdout


def test_a_driver_that_needs_numpy_is_not_exported(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "export", "ssor.py", "-o", "out")
    assert done.returncode == 2
    assert "ssor.py:17: np.abs(u - old).max() stands between the loops of a program that is exported" in done.stderr
    assert "Write it as a loop over elements" in done.stderr


def test_plan(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "plan", "ssor.py", "-n", "4", "--machine", "cluster-100gbit", "--json", "out.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ssor: a program of 3 nests on 4 ranks\n  ssor.py:11: loops i, j\n")
    found = json.loads((tmp_path / "out.json").read_text())
    assert [region["plan"]["ranks"] for region in found["regions"]] == [4, 4, 4]
