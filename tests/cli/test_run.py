"""`lapwing run` and `lapwing plan`: the contract of output and exit status, refusals, and runs that are cut off."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from limits import scaled
from processes import default_signals

import lapwing as lw
from lapwing.api import check
from lapwing.api.nest import Nest
from lapwing.cli.main import main
from lapwing.codegen.compilation.cache import cache_directory
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError, LapwingError, RefusedError
from lapwing.files import check_writable, write_json
from lapwing.launch import loading
from lapwing.launch.frames import FrameReader, FrameWriter
from lapwing.launch.job import Job
from lapwing.session import session
from lapwing.trace.metrics import hidden

LIMIT = scaled(120)  # seconds for one command, builds included
GONE = scaled(10)  # seconds in which every rank must have ended

SMOOTH = """
import numpy as np
import lapwing as lw

print("imported")

@lw.nest
def smooth(u, sweeps):
    top = 0.0
    total = 0.0
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                top = max(top, u[i, j])
                total += u[i, j] - 0.5
    return top, total

@smooth.problem
def problem(n=30, sweeps=3):
    return dict(u=np.random.default_rng(1).random((n, n)), sweeps=sweeps)
"""
SEVERAL = """
import math
import numpy as np
import lapwing as lw

@lw.nest
def root(u, v):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = math.sqrt(v[i, j]) + u[i - 1, j] + u[i, j - 1]

@root.problem
def root_problem(n: int = 40, negative=False, tag="x", scale=1.5, where: str | None = None, sides=(1, 2), free=None):
    v = np.ones((n, n))
    if negative:
        v[n - 2, n // 2] = -1
    return dict(u=np.zeros((n, n)), v=v)

@lw.nest
def third(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = (u[i - 1, j] + u[i, j - 1] + u[i, j]) / 3.0

@third.problem
def third_problem(n):
    return dict(u=np.random.default_rng(2).random((int(n), int(n))))

@lw.nest
def bare(u):
    for i in range(1, u.shape[0]):
        u[i] = u[i - 1] + 1.0
"""


WIND = """
import numpy as np
import lapwing as lw

@lw.nest
def wind(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                u[i, j] = 0.5 * u[i, j] + 0.25 * u[i - 1, j] + 0.25 * u[i, j - 1]

@wind.problem
def problem(n=25, sweeps=70):
    return dict(u=np.random.default_rng(1).random((n, n)), sweeps=sweeps)
"""


def _has_mpi() -> bool:
    try:
        find_mpi()
    except BuildError:
        return False
    return True


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
needs_mpi = pytest.mark.skipif(not _has_mpi(), reason="no MPI here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files of nests."""
    (tmp_path / "smooth.py").write_text(SMOOTH)
    (tmp_path / "several.py").write_text(SEVERAL)
    return tmp_path


def lapwing(
    folder: Path, *arguments: str, variables: dict[str, str] | None = None, launcher: bool = True
) -> subprocess.CompletedProcess[str]:
    """One command line, run to its end. Without ``launcher``, starting ranks fails the test."""
    environment = {**os.environ, **(variables or {})}
    mark = folder / "mpiexec was started"
    if not launcher:
        script = folder / "no_mpiexec"
        script.write_text(f"#!/bin/sh\ntouch '{mark}'\nexit 9\n")
        script.chmod(0o755)
        environment["LAPWING_MPIEXEC"] = str(script)
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert not mark.exists()
    assert "Traceback" not in done.stderr
    return done


def refused(folder: Path, *arguments: str) -> tuple[int, str]:
    """The status and the words of one command line in this process, which fails the test where it starts ranks."""
    words = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stderr(words),
        mock.patch.object(sys, "path", list(sys.path)),
        mock.patch.object(sys, "modules", dict(sys.modules)),
        mock.patch.object(subprocess, "Popen", side_effect=AssertionError("a process was started")),
        pytest.raises(SystemExit) as ended,
    ):
        main(arguments)
    assert "Traceback" not in words.getvalue()
    assert isinstance(ended.value.code, int)
    return ended.value.code, words.getvalue()


def document(folder: Path, *arguments: str) -> dict[str, Any]:
    """The JSON of a `lapwing run` that succeeds."""
    done = lapwing(folder, "run", *arguments, "--json", "out/run.json")
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads((folder / "out/run.json").read_text())
    return read


# -- what is loaded --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "import lapwing",
        "from lapwing.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass",
    ],
    ids=["import lapwing", "lapwing --help"],
)
def test_nothing_heavy_is_loaded(program: str) -> None:
    heavy = "{m for m in ('numpy', 'mpi4py', 'islpy', 'rich') if m in sys.modules}"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint('loaded:', {heavy})"],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert done.stdout.endswith("loaded: set()\n")


@pytest.mark.parametrize("command", ["run", "plan"])
def test_help_teaches(tmp_path: Path, command: str) -> None:
    done = lapwing(tmp_path, command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert done.stdout.count(f"lapwing {command} ") >= 3  # usage and two examples
    assert done.stderr == ""


def test_help_lists_the_commands(tmp_path: Path) -> None:
    done = lapwing(tmp_path, "--help")
    assert done.returncode == 0
    assert "run " in done.stdout
    assert "plan " in done.stdout


def test_one_rank_loads_no_mpi(folder: Path) -> None:
    (folder / "watch.py").write_text(
        "import sys\nfrom lapwing.cli.main import main\n"
        "try: main(['run', 'smooth.py'])\n"
        "except SystemExit as end: print('status', end.code, 'mpi4py.MPI' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "watch.py"], cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.stdout.endswith("status 0 False\n")


# -- lapwing run -----------------------------------------------------------------------------------------------------


def expected_results() -> dict[str, float]:
    u = np.random.default_rng(1).random((30, 30))
    top, terms = 0.0, []
    for _ in range(3):
        for i in range(1, 29):
            for j in range(1, 29):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])
                top = max(top, u[i, j])
                terms.append(u[i, j] - 0.5)
    return {"top": float(top), "total": math.fsum(terms)}


@needs_cc
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=[pytest.mark.mpi, needs_mpi])])
def test_json_is_as_in_the_contract(folder: Path, ranks: int) -> None:
    options = "--engine blocking,overlap --repeat 3 --tile 7 --check --json run.json"
    done = lapwing(folder, "run", "smooth.py", "-n", str(ranks), *options.split())
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "run.json").read_text())
    if ranks > 1:
        assert f"smooth: i 28 × j 28 points a sweep on {ranks} ranks" in done.stdout
        check_output(done.stdout)
    assert set(found) == {"nest", "ranks", "idle", "dependences", "runs", "warnings"}
    assert (found["nest"], found["ranks"]) == ("smooth", ranks)
    assert found["dependences"] == [[0, 1, 0], [0, 0, 1], [1, -1, 0], [1, 0, -1]]
    assert [run["engine"] for run in found["runs"]] == ["blocking", "overlap"]
    for run in found["runs"]:
        assert set(run) == {
            "engine", "tile", "grid", "seconds", "median", "predicted", "hidden", "exposed_seconds", "transfer_seconds",
            "disk", "cpu_lost", "cpu_lost_seconds", "identical", "results",
        }  # fmt: skip
        assert run["tile"] == 7
        assert run["grid"] == [ranks]
        assert len(run["seconds"]) == 3
        assert run["median"] == sorted(run["seconds"])[1]
        assert run["predicted"] > 0
        assert run["disk"] is None
        assert run["identical"] is True
        assert run["results"] == expected_results()
        assert 0 <= run["cpu_lost"] <= 1
        assert len(run["cpu_lost_seconds"]) == ranks
        if ranks == 1:
            assert run["hidden"] is run["exposed_seconds"] is run["transfer_seconds"] is None
        else:
            assert run["transfer_seconds"] > 0
            assert run["hidden"] == hidden(run["exposed_seconds"], run["transfer_seconds"])


@needs_cc
@needs_mpi
@pytest.mark.mpi
@pytest.mark.long
def test_output_of_a_run_on_ranks(folder: Path) -> None:
    done = lapwing(folder, "run", "smooth.py", "-n", "3", "--grid", "3x1", "--engine", "blocking", "-p", "n=20")
    assert done.returncode == 0, done.stderr
    assert "smooth: i 18 × j 18 points a sweep on 3 ranks" in done.stdout
    check_output(done.stdout)


def check_output(text: str) -> None:
    """Of a run on ranks: the command has imported the file once and the first rank has, the others are silent."""
    assert text.count("imported") == 2
    assert "communication hidden" in text
    assert "\ntop = 0." in text
    assert "\x1e" not in text


@needs_cc
def test_without_check_nothing_is_called_identical(folder: Path) -> None:
    job = Job("smooth.py", (("n", "12"),), ("overlap",), None, None, repeat=1, check=False)
    nest = loading.load_nest(str(folder / "smooth.py"))
    report = session.run_session(job, nest, None, lambda kind, value: None)
    assert report is not None
    assert report.document["runs"][0]["identical"] is None


def test_engines_take_turns_on_fresh_arrays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nest = loading.load_nest(str(folder / "smooth.py"))
    seen: list[tuple[str, float]] = []
    real = session.run

    def noted(variant: Nest, arguments: dict[str, Any], *rest: Any, **options: Any) -> Any:
        seen.append((variant.engine, float(arguments["u"].sum())))
        return real(variant, arguments, *rest, **options)

    monkeypatch.setattr(session, "run", noted)
    job = Job("smooth.py", (("n", "12"),), ("overlap", "blocking"), None, None, repeat=2, check=True)
    report = session.run_session(job, nest, None, lambda kind, value: None)
    assert report is not None
    assert [engine for engine, _ in seen] == ["overlap", "blocking"] * 2
    assert len({total for _, total in seen}) == 1
    assert report.differences == ()


@needs_cc
def test_results_that_json_has_no_numbers_for(folder: Path) -> None:
    (folder / "grow.py").write_text(
        "import numpy as np\nimport lapwing as lw\n\n@lw.nest\ndef grow(u):\n    low, total = np.inf, 0.0\n"
        "    for i in range(1, u.shape[0]):\n        u[i] = u[i - 1] * 10.0\n"
        "        low = min(low, u[i])\n        total += u[i]\n    return low, total\n\n"
        "@grow.problem\ndef problem(start=np.float64(1.0)):\n    u = np.zeros(400)\n    u[0] = start\n    return dict(u=u)\n"
    )
    assert document(folder, "grow.py", "--check")["runs"][0]["results"] == {"low": 10.0, "total": "inf"}
    found = document(folder, "grow.py", "--check", "-p", "start=nan")["runs"][0]
    assert found["results"] == {"low": "inf", "total": "nan"}
    assert found["identical"] is True


@needs_cc
def test_output_that_nobody_reads(folder: Path) -> None:
    """Closed streams and a full device end in a status, never in a traceback."""
    command = f"'{sys.executable}' -m lapwing run smooth.py"
    for redirection, status in ((">&- 2>&- <&-", 0), (">/dev/full", 1)):
        done = subprocess.run(
            ["sh", "-c", f"{command} {redirection}"], cwd=folder, stderr=subprocess.PIPE, timeout=LIMIT, check=False
        )
        assert done.returncode == status
        assert b"Traceback" not in done.stderr


# -- out of core -----------------------------------------------------------------------------------------------------

TALL = """
import lapwing as lw

@lw.nest
def tall(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i, j - 1] + u[i + 1, j] + u[i, j + 1])

@tall.problem
def problem(n=500):
    return dict(u=lw.from_function(lambda i, j: i % 7 + 0.5 * j, (n, 200)), sweeps=3)
"""


@needs_cc
@pytest.mark.parametrize(
    "ranks", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=[pytest.mark.mpi, needs_mpi])]
)
def test_problems_that_do_not_fit_run_out_of_core(folder: Path, ranks: int) -> None:
    (folder / "tall.py").write_text(TALL)
    done = lapwing(
        folder, "run", "tall.py", "-n", str(ranks), "--memory", "300KB", "--check", "--repeat", "2", "--json", "run.json",
        "--timeline", "run.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "out of core  u: 3 sweeps a pass, one pass" in done.stdout
    assert "disk hidden" in done.stdout
    (run,) = json.loads((folder / "run.json").read_text())["runs"]
    assert run["identical"] is True
    assert run["disk"]["read_bytes"] == run["disk"]["written_bytes"] == 500 * 200 * 8
    assert run["predicted"] > 0
    assert "slab being read" in (folder / "run.html").read_text()
    assert not list(folder.glob("lapwing-arrays-*"))


@needs_cc
def test_plans_out_of_core(folder: Path) -> None:
    (folder / "tall.py").write_text(TALL)
    done = lapwing(folder, "plan", "tall.py", "-n", "2", "--memory", "300KB", "--json", "plan.json")
    assert "because      i is streamed along: the first axis of u" in done.stdout
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["streaming"]["memory"] * 2 <= plan["streaming"]["limit"] == 300_000
    assert json.loads(json.dumps(plan["streaming"]))["arrays"] == ["u"]
    whole = lapwing(folder, "plan", "tall.py", "-n", "2", "--memory", "1GB")
    assert "out of core" not in whole.stdout
    refused = lapwing(folder, "plan", "tall.py", "-n", "2", "--memory", "300KB", "--grid", "all")
    assert (refused.returncode, "expected one grid or none" in refused.stderr) == (2, True)


@needs_cc
def test_no_iteration_and_too_little_memory(folder: Path) -> None:
    (folder / "tall.py").write_text(TALL)
    done = lapwing(folder, "run", "tall.py", "-p", "n=2", "--memory", "1KB", "--check")
    assert done.returncode == 0, done.stderr


@needs_cc
@pytest.mark.parametrize(
    "ranks", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=[pytest.mark.mpi, needs_mpi])]
)
def test_arrays_of_an_interrupted_run_are_removed(folder: Path, ranks: int) -> None:
    (folder / "tall.py").write_text(TALL.replace("sweeps=3", "sweeps=1_000_000"))
    command = [sys.executable, "-m", "lapwing", "run", "tall.py", "-n", str(ranks), "--memory", "300KB"]
    run = subprocess.Popen(
        [*command, "--pass-sweeps", "1"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=default_signals,
    )  # fmt: skip
    begun = time.monotonic()
    while not list(folder.glob("lapwing-arrays-*/u.zarr/.lapwing")) and time.monotonic() - begun < scaled(60):
        assert run.poll() is None
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=scaled(60))
    assert (run.returncode, errors.splitlines()[-1]) == (130, "lapwing: interrupted")
    assert not list(folder.glob("lapwing-arrays-*"))


STORED = TALL.replace("lw.from_function(lambda i, j: i % 7 + 0.5 * j, (n, 200))", 'lw.open("u.zarr")')


@needs_cc
def test_problems_on_disk(folder: Path) -> None:
    (folder / "stored.py").write_text(STORED)
    array = lw.create(folder / "u.zarr", (90, 200), "float64", chunks=(16, 64))
    values = np.random.default_rng(0).random((90, 200))
    array.write(((0, 90), (0, 200)), values)
    exported = lapwing(folder, "export", "stored.py", "-o", "program")
    assert exported.returncode == 0, exported.stderr
    assert "out of core" in lapwing(folder, "plan", "stored.py").stdout
    done = lapwing(folder, "run", "stored.py", "--check", "--json", "run.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "run.json").read_text())["runs"][0]["identical"] is True
    result = array.numpy()
    assert (result != values).any()
    again = lapwing(folder, "run", "stored.py", "--resume")
    assert "resumed: an earlier run had done 3 of 3 sweeps, all there are." in again.stdout
    assert (array.numpy() == result).all()


# -- --check ---------------------------------------------------------------------------------------------------------


def compiler_with(folder: Path, extra: str, only_for: str = "*") -> dict[str, str]:
    """A C compiler that gets one more flag for the sources whose name fits; fast-math divides by multiplying."""
    script = folder / "wrong_cc"
    script.write_text(f'#!/bin/sh\ncase "$*" in {only_for}) exec cc "$@" {extra};; *) exec cc "$@";; esac\n')
    script.chmod(0o755)
    cache = folder / "wrong_cache"
    cache.mkdir(mode=0o700)
    for built in cache_directory().glob("runtime-*.so"):  # the C++ compiler is the right one
        shutil.copy(built, cache)
    return {"LAPWING_CC": str(script), "LAPWING_CACHE": str(cache)}


@needs_cc
@pytest.mark.parametrize(
    ("n", "ranks"),
    [
        pytest.param(40, 1, id="held against Python", marks=pytest.mark.long),
        pytest.param(600, 1, id="held against the plain loop in C", marks=pytest.mark.long),
        pytest.param(40, 2, id="on 2 ranks", marks=[pytest.mark.mpi, needs_mpi]),
        pytest.param(600, 2, id="on 2 ranks, in C", marks=[pytest.mark.mpi, needs_mpi, pytest.mark.long]),
    ],
)
def test_check_finds_a_wrong_result(folder: Path, n: int, ranks: int) -> None:
    wrong = compiler_with(folder, "-ffast-math", only_for="*tile.c*")
    done = lapwing(
        folder,
        "run",
        "several.py:third",
        "-p",
        f"n={n}",
        "-n",
        str(ranks),
        "--check",
        "--json",
        "run.json",
        variables=wrong,
    )
    assert done.returncode == 1
    assert re.search("not identical: [a-z]+: u differs in", done.stderr)
    assert f"of {n * n:,} elements, first in u[" in done.stderr
    run = json.loads((folder / "run.json").read_text())["runs"][0]
    assert run["identical"] is False


@needs_cc
def test_check_does_not_trust_a_wrong_compiler(folder: Path) -> None:
    """Wrong in the same way everywhere: only Python can tell."""
    wrong = compiler_with(folder, "-ffast-math")
    done = lapwing(folder, "run", "several.py:third", "-p", "n=600", "--check", variables=wrong)
    assert done.returncode == 1
    assert "the compiled plain loop differs from the Python function" in done.stderr


@needs_cc
def test_check_on_large_sizes_with_a_float_sum(folder: Path) -> None:
    run = document(folder, "smooth.py", "--check", "-p", "n=300")["runs"][0]
    assert run["identical"] is True


@needs_cc
@pytest.mark.parametrize(
    ("n", "ranks"),
    [
        pytest.param(40, 1, marks=pytest.mark.long),
        (600, 1),
        pytest.param(40, 2, marks=[pytest.mark.mpi, needs_mpi]),
        pytest.param(600, 2, marks=[pytest.mark.mpi, needs_mpi, pytest.mark.long]),
    ],
)
def test_check_where_the_plain_loop_raises(folder: Path, n: int, ranks: int) -> None:
    arguments = ["several.py:root", "-p", "negative=yes", "-p", f"n={n}", "-n", str(ranks), "--check"]
    done = lapwing(folder, "run", *arguments)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "several.py:10: " in last
    assert "the plain loop, too" in last or "the plain loop stops there, too" in last


def _reference(arrays: dict[str, Any], results: dict[str, Any]) -> check.Reference:
    return check.Reference(arrays, results, None, "made up")


def test_comparison_is_of_bits() -> None:
    expected = np.array([[0.0, 1.0, np.nan], [2.0, np.inf, 3.0]])
    other_nan = expected.copy()
    other_nan.view(np.uint64)[0, 2] ^= 1
    reference = _reference({"u": expected}, {"s": 1.5, "k": 3})
    same = {"s": np.float64(1.5), "k": np.int64(3)}
    assert check.differences(reference, {"u": other_nan}, same) == []
    minus_zero = expected.copy()
    minus_zero[0, 0] = -0.0
    (text,) = check.differences(reference, {"u": minus_zero}, same)
    assert "u differs in 1 of 6 elements, first in u[0, 0]" in text
    texts = check.differences(reference, {"u": expected}, {"s": math.nextafter(1.5, 2), "k": 4})
    assert [text.split()[0] for text in texts] == ["s", "k"]


def test_first_difference_is_found_in_a_later_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_COMPARED_AT_ONCE", 10)
    expected = np.arange(60, dtype=np.int32).reshape(12, 5)
    found = expected.copy()
    found[7, 3] = found[11, 4] = -1
    (text,) = check.differences(_reference({"u": expected}, {}), {"u": found}, {})
    assert "differs in 2 of 60 elements, first in u[7, 3]" in text


# -- lapwing plan ----------------------------------------------------------------------------------------------------


@needs_cc
@needs_mpi
@pytest.mark.mpi
def test_all_grids_are_tried(folder: Path) -> None:
    (folder / "wind.py").write_text(WIND)
    options = "-n 2 --grid all --engine blocking,overlap --repeat 2 --check --json out.json"
    done = lapwing(folder, "run", "wind.py", *options.split())
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n  pipelined    [tij], tiles of \d+.* steps", done.stdout)
    assert "  all grids    1x2, 2x1, in turns\n" in done.stdout
    runs = json.loads((folder / "out.json").read_text())["runs"]
    assert [(run["engine"], run["grid"]) for run in runs] == [
        (engine, grid) for grid in ([1, 2], [2, 1]) for engine in ("blocking", "overlap")
    ]
    assert all(run["identical"] is True and len(run["seconds"]) == 2 for run in runs)
    best = min(runs, key=lambda run: run["median"])
    assert f"\nbest: {best['engine']} on {'x'.join(map(str, best['grid']))}, " in done.stdout


@needs_cc
@needs_mpi
@pytest.mark.mpi
@pytest.mark.long
def test_all_grids_leave_the_pipelined_loop_whole(folder: Path) -> None:
    runs = document(folder, "smooth.py", "-n", "3", "--grid", "all", "-p", "n=20")["runs"]
    assert [run["grid"] for run in runs] == [[3]]


@needs_cc
@pytest.mark.long
def test_all_grids_of_one_rank(folder: Path) -> None:
    (folder / "wind.py").write_text(WIND)
    done = lapwing(folder, "run", "wind.py", "--grid", "all")
    assert done.returncode == 0, done.stderr
    assert "best" not in done.stdout


@needs_cc
def test_differences_name_engine_and_grid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the second variant's result is wrong."""
    nest = loading.load_nest(str(folder / "several.py:third"))
    real, count = session.array_differences, iter([[], ["u[1] differs"]])
    monkeypatch.setattr(session, "array_differences", lambda *arguments: real(*arguments) + next(count))
    job = Job("", (("n", "9"),), ("overlap", "blocking"), None, "all", repeat=1, check=True)
    report = session.run_session(job, nest, None, lambda kind, value: None)
    assert report is not None
    assert report.differences == ("blocking on 1: u[1] differs",)
    assert [run["identical"] for run in report.document["runs"]] == [True, False]


def test_jobs_survive_the_way_to_the_ranks() -> None:
    for grid in (None, "all", (2, 3)):
        job = Job("f.py", (("n", "9"),), ("overlap",), 3, grid, repeat=1, check=True)
        assert Job.from_json(job.to_json()) == job


def test_plan_lists_all_grids(folder: Path) -> None:
    (folder / "wind.py").write_text(WIND)
    done = lapwing(folder, "plan", "wind.py", "-n", "4", "--grid", "all", "--tile", "3", "--json", "plan.json")
    assert done.returncode == 0, done.stderr
    listed = done.stdout.split("all grids:\n")[1].split("\n\n")[0].splitlines()
    plan = json.loads((folder / "plan.json").read_text())
    for line, grid, size in zip(listed, ([1, 4], [2, 2], [4, 1]), (576, 288, 576), strict=True):
        mark = r"\*" if (plan["grid"], plan["mapping"]) == (grid, "t") else " "
        name = "x".join(map(str, grid))
        assert re.match(rf"{mark} {name}  [a-z]+ +t pipelined, tiles of 3 sweeps, 24 steps, ", line), line
        assert re.search(rf"; predicted .*, messages of about {size} b", line), line
    assert [one["grid"] for one in plan["grids"]] == [[1, 4], [2, 2], [4, 1]]


def test_plan_explains_itself_without_mpi(folder: Path) -> None:
    arguments = ["smooth.py", "-n", "4", "--grid", "2x2", "--tile", "5", "--engine", "blocking", "--json", "plan.json"]
    done = lapwing(folder, "plan", *arguments, variables={"LAPWING_MPICXX": "false", "LAPWING_CC": "false"})
    assert done.returncode == 0, done.stderr
    assert "on 4 ranks" in done.stdout
    assert "  flow [0, 1, 0]: u[i, j] (line 14) → u[i - 1, j] (line 14)" in done.stdout
    plan = json.loads((folder / "plan.json").read_text())
    assert plan["dependences"] == [[0, 1, 0], [0, 0, 1], [1, -1, 0], [1, 0, -1]]
    assert (plan["engine"], plan["tile"], plan["grid"], plan["ranks"]) == ("blocking", 5, [2, 2], 4)
    assert {"flow", "anti"} == {cause["kind"] for cause in plan["causes"]}


@needs_cc
def test_plan_says_what_limits_the_tile(folder: Path) -> None:
    """With what is reached where tiles can be measured; the bound alone where they cannot; nothing of cores that nobody knows."""
    for variables, machine, shown, reached in (
        ({}, (), True, True),
        ({"LAPWING_CC": "false", "LAPWING_CACHE": str(folder / "empty")}, (), True, False),
        ({}, ("--machine", "cluster-100gbit"), False, False),
    ):
        done = lapwing(folder, "plan", "smooth.py", *machine, "--json", "plan.json", variables=variables)
        assert done.returncode == 0, done.stderr
        line = next((line for line in done.stdout.splitlines() if line.startswith("  limited by   ")), "")
        assert bool(re.search(r": bound [0-9.e-]+ ns a point", line)) is shown
        assert bool(re.search(r", reached \d+%", line)) is reached
        limit = json.loads((folder / "plan.json").read_text())["limit"]
        assert (limit is not None) is shown
        if shown:
            assert limit["seconds_per_point"] == limit["bounds"][limit["by"]] == max(limit["bounds"].values()) > 0
            assert (limit["measured_seconds_per_point"] is not None) is reached


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("nothere.py", "nothere.py does not exist"),
        (".", "is a directory"),
        ("several.py", "several nests: root, third. Name one: several.py:root."),
        ("several.py:nest", "has no nest nest; it has root, third, bare"),
        ("several.py:bare", "several.py:30: nest bare has no problem to run"),
        ("empty.py", "empty.py has no nest"),
        ("refused.py", "refused.py:5: "),
        ("backwards.py", "no supported tiling respects"),
        ("smooth.py -p m=3", "has no parameter m; known: n, sweeps"),
        ("smooth.py -p n=1.5", "-p n=1.5: expected a whole number"),
        ("smooth.py -p n", "expected KEY=VALUE"),
        ("several.py:root -p negative=perhaps", "expected true or false"),
        ("several.py:third", "has no default for n. Add -p n="),
        ("smooth.py --grid 2x", "expected numbers of parts joined by x"),
        ("smooth.py --grid every", "expected numbers of parts joined by x, such as 4 or 2x2, or all"),
        ("smooth.py --grid 2x2", "2x2 is for 4 ranks, but there are 2"),
        ("smooth.py --grid 2x1x1", "2x1x1 has 3 entries; the space loops of smooth are i, j"),
        ("smooth.py --engine swift", "expected some of blocking, overlap, onesided, helper"),
        ("smooth.py --tile 0", "0 is not in the range"),
        ("smooth.py -n 0", "0 is not in the range"),
        ("smooth.py --frob", "No such option"),
        ("smooth.py --json smooth.py/x.json", "cannot write there"),
        ("smooth.py --hosts nofile", "does not exist"),
    ],
)
def test_refused_before_any_rank_is_started(folder: Path, arguments: str, text: str) -> None:
    (folder / "empty.py").write_text("x = 1\n")
    (folder / "refused.py").write_text(
        "import lapwing as lw\n@lw.nest\ndef f(u):\n    for i in range(9):\n        u[i] = str(i)\n"
    )
    (folder / "backwards.py").write_text(
        "import lapwing as lw\n@lw.nest\ndef f(u):\n    for i in range(1, 9):\n        for j in range(8):\n"
        "            u[i, j] = u[i - 1, j + 1]\n            u[i, j + 1] = u[i, j]\n@f.problem\ndef p():\n    return {}\n"
    )
    status, words = refused(folder, "run", "-n", "2", *arguments.split())
    assert status == 2, words
    assert text in " ".join(words.split())


@needs_cc
@needs_mpi
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("smooth.py -n 2 --grid 2x1 -p n=3", "grid 2x1 cuts loop i in 2, but it has 1 rows"),
        pytest.param("wrong.py -n 2", "wrong.py:3: argument u of f is list, expected", marks=pytest.mark.long),
    ],
)
def test_refused_by_the_first_rank(folder: Path, arguments: str, text: str) -> None:
    (folder / "wrong.py").write_text(
        "import lapwing as lw\n@lw.nest\ndef f(u):\n    for i in range(1, 9):\n        u[i] = u[i - 1]\n"
        "@f.problem\ndef p():\n    return dict(u=[1, 2])\n"
    )
    done = lapwing(folder, "run", *arguments.split())
    assert done.returncode == 2
    assert text in done.stderr.splitlines()[-1]
    assert done.stderr.count(text) == 1


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_run_is_not_for_ranks(folder: Path, name: str) -> None:
    done = lapwing(folder, "run", "smooth.py", variables={name: "2"}, launcher=False)
    assert done.returncode == 2
    assert "It starts the ranks itself" in done.stderr


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "def f():\n    return 1 / 0\nf()\n",
            "broken.py:2: ZeroDivisionError: division by zero (while it was imported).",
        ),
        ("def f(:\n", "broken.py:1: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(3)\n", "broken.py:2: called sys.exit(3)"),
        (
            SMOOTH.replace("return dict(", "raise KeyError('x')\n    return dict("),
            "broken.py:21: KeyError: 'x' (in the",
        ),
    ],
)
def test_a_file_that_raises_has_failed(folder: Path, source: str, text: str) -> None:
    (folder / "broken.py").write_text(source)
    done = lapwing(folder, "run", "broken.py", launcher=False)
    assert done.returncode == 1
    assert text in done.stderr


def test_debugging_shows_where_a_file_raises(folder: Path) -> None:
    (folder / "broken.py").write_text("def f():\n    return 1 / 0\nf()\n")
    shown = subprocess.run(
        [sys.executable, "-m", "lapwing", "run", "broken.py"], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "LAPWING_DEBUG": "1"}, timeout=LIMIT,
    )  # fmt: skip
    assert "Traceback" in shown.stderr


@needs_cc
@needs_mpi
@pytest.mark.mpi
def test_a_problem_that_raises_on_ranks(folder: Path) -> None:
    (folder / "broken.py").write_text(SMOOTH.replace("return dict(", "raise KeyError('x')\n    return dict("))
    done = lapwing(folder, "run", "broken.py", "-n", "2")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("lapwing: broken.py:21: KeyError: 'x'")


def test_a_launcher_that_fails(folder: Path) -> None:
    script = folder / "launcher"
    script.write_text("#!/bin/sh\necho no queue for you >&2\nexit 5\n")
    script.chmod(0o755)
    if not _has_mpi():
        pytest.skip("no MPI here")
    done = lapwing(folder, "run", "smooth.py", "-n", "2", variables={"LAPWING_MPIEXEC": str(script)})
    assert done.returncode == 1
    *_, noise, last = done.stderr.splitlines()
    assert noise == "no queue for you"
    assert "ended with status 5 before the run was done" in last


# -- parameters ------------------------------------------------------------------------------------------------------


def settings_of(folder: Path, *settings: tuple[str, str]) -> dict[str, Any]:
    return loading.problem_settings(loading.load_nest(f"{folder}/several.py:root"), settings)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("n", "1_000", 1000),
        ("negative", "true", True),
        ("negative", "0", False),
        ("tag", "5", "5"),
        ("tag", "", ""),
        ("scale", "1e-3", 0.001),
        ("where", "a=b", "a=b"),
        ("sides", "[3, 4]", (3, 4)),
        ("free", "7", 7),
        ("free", "text", "text"),
    ],
)
def test_parameters_have_the_type_of_the_signature(folder: Path, key: str, text: str, value: Any) -> None:
    found = settings_of(folder, (key, text))
    assert found == {key: value}
    assert type(found[key]) is type(value)


@pytest.mark.parametrize(("key", "text"), [("n", "many"), ("n", "1e3"), ("scale", "x"), ("sides", "3"), ("sides", "(")])
def test_parameters_that_do_not_fit(folder: Path, key: str, text: str) -> None:
    with pytest.raises(RefusedError, match=f"-p {key}="):
        settings_of(folder, (key, text))


def test_a_file_imports_its_neighbours(folder: Path) -> None:
    (folder / "neighbour_of_mine.py").write_text("SIZE = 6\n")
    (folder / "json.py").write_text(SMOOTH.replace("import numpy as np", "import numpy as np, neighbour_of_mine"))
    assert loading.load_nest(f"{folder}/json.py").loops.name == "smooth"
    assert sys.modules["json"] is json


# -- JSON files and the line between rank and command ----------------------------------------------------------------


def test_json_is_written_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x.json"
    check_writable(path)
    assert list(path.parent.iterdir()) == []
    write_json(path, {"a": 1})
    before = path.read_text()
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": math.nan})
    assert path.read_text() == before
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_json(link, {"a": 2})
    assert link.is_symlink()
    assert json.loads(path.read_text()) == {"a": 2}


def test_a_full_device_is_reported() -> None:
    with pytest.raises(LapwingError, match="No space left"):
        write_json(Path("/dev/full"), {"a": 1})


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_events_are_told_from_output(size: int) -> None:
    reading, writing = os.pipe()
    send = FrameWriter(writing, "secret")
    os.write(writing, b"no newline")
    send("progress", ["é\n", 0.5])
    os.write(writing, b"\x1e\x1esecre\nt")
    send("report", {"x": None})
    os.write(writing, b"end\x1esec")
    os.close(writing)
    data = os.read(reading, 1 << 16)
    os.close(reading)
    reader = FrameReader("secret")
    text, events = b"", []
    for at in range(0, len(data), size):
        piece, found = reader.feed(data[at : at + size])
        text += piece
        events += found
    assert text + reader.rest() == b"no newline\x1e\x1esecre\ntend\x1esec"
    assert events == [("progress", ["é\n", 0.5]), ("report", {"x": None})]


# -- runs that are cut off -------------------------------------------------------------------------------------------


def children(process: int) -> list[int]:
    """The ids of all descendants of a process, the nearest first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [process]
    for at in found:
        found.extend(parents.get(at, []))
    return found[1:]


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def is_rank(process: int) -> bool:
    command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    return command[1:3] == [b"-m", b"lapwing.session.worker"]


class Started:
    """A long `lapwing run -n N` in mid-run: itself, its launcher and its ranks."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "lapwing",
                "run",
                "smooth.py",
                "-n",
                str(ranks),
                "-p",
                "n=1500",
                "-p",
                "sweeps=100000",
            ],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder / "temporary")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=default_signals,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if b"grid" in line:  # the first rank has its plan
                break
        time.sleep(0.5)
        self.family = children(self.process.pid)
        self.ranks = [p for p in self.family if is_rank(p)]
        assert len(self.ranks) == ranks, self.process.stderr

    @property
    def launcher(self) -> int:
        commands = {p: Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")[0] for p in self.family}
        return next(p for p, command in commands.items() if os.path.basename(command).startswith(b"mpiexec"))

    def end(self) -> tuple[int, str]:
        """Exit status and standard error, once every process is gone."""
        _, errors = self.process.communicate(timeout=GONE)
        self.check_gone()
        return self.process.returncode, errors.decode()

    def check_gone(self) -> None:
        deadline = time.monotonic() + GONE
        while left := [p for p in self.family if runs(p)]:
            assert time.monotonic() < deadline, f"still running: {left}"
            time.sleep(0.05)

    def clean_up(self) -> None:
        """Whatever a test found, nothing stays behind."""
        for process in (self.process.pid, *self.family):
            if runs(process):
                os.kill(process, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[int], Started]]:
    started: list[Started] = []
    (folder / "temporary").mkdir()

    def begin(ranks: int) -> Started:
        started.append(Started(folder, ranks))
        return started[-1]

    yield begin
    for one in started:
        one.clean_up()
    assert list((folder / "temporary").iterdir()) == []


@needs_cc
@needs_mpi
@pytest.mark.mpi
class TestCutOff:
    @pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.long)])
    def test_a_rank_is_killed(self, start: Callable[[int], Started], ranks: int) -> None:
        run = start(ranks)
        os.kill(run.ranks[-1], signal.SIGKILL)
        status, errors = run.end()
        assert status == 1
        last = errors.splitlines()[-1]
        assert last.startswith("lapwing: rank ")
        assert "was killed by signal 9 (SIGKILL); all ranks were ended." in last

    @pytest.mark.long  # every day another process of the run, and the whole command
    def test_the_launcher_is_killed(self, start: Callable[[int], Started]) -> None:
        run = start(2)
        os.kill(run.launcher, signal.SIGKILL)
        status, errors = run.end()
        assert status == 1
        assert "was killed by signal 9 (SIGKILL) before the run was done" in errors.splitlines()[-1]

    @pytest.mark.long
    def test_the_process_of_the_command_is_killed(self, start: Callable[[int], Started]) -> None:
        run = start(2)
        os.kill(run.family[0], signal.SIGKILL)
        status, errors = run.end()
        assert status == 1
        assert errors.splitlines()[-1].startswith("lapwing: the command was killed by signal 9 (SIGKILL)")

    def test_the_command_is_killed(self, start: Callable[[int], Started]) -> None:
        run = start(2)
        run.process.kill()
        run.process.wait(GONE)
        run.check_gone()

    @pytest.mark.parametrize(
        ("number", "status", "text"),
        [
            (signal.SIGINT, 130, "interrupted"),
            pytest.param(signal.SIGHUP, 1, "SIGHUP", marks=pytest.mark.long),
            pytest.param(signal.SIGTERM, 1, "stopped by SIGTERM", marks=pytest.mark.long),
        ],
    )
    def test_the_command_is_stopped(
        self, start: Callable[[int], Started], number: signal.Signals, status: int, text: str
    ) -> None:
        run = start(2)
        run.process.send_signal(number)
        found, errors = run.end()
        assert found == status
        assert text in errors.splitlines()[-1]

    def test_a_rank_that_hangs_does_not_delay_the_end(self, start: Callable[[int], Started]) -> None:
        run = start(2)
        os.kill(run.ranks[0], signal.SIGSTOP)
        run.process.terminate()
        status, _ = run.end()
        assert status == 1


@needs_cc
def test_ctrl_c_in_this_process(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing", "run", "smooth.py", "-p", "n=1500", "-p", "sweeps=100000"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "engine" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=GONE)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "lapwing: interrupted"
