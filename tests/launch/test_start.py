"""What stands in the way of a start: modules in the current directory, locales, files that end or crash the process, and
what killed processes leave behind."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from everyday import everyday
from limits import scaled

from lapwing import temporary
from lapwing.errors import LapwingError
from lapwing.launch import launch, loading, search_path
from lapwing.launch.loading import load_nest
from lapwing.runtime.mpi import memory

SOURCES = Path(temporary.__file__).parent
NEST = """
import numpy as np
import lapwing as lw

@lw.nest
def smooth(u):
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = 0.5 * (u[i - 1, j] + u[i, j - 1])

@smooth.problem
def problem(n=30):
    return dict(u=np.ones((n, n)))
"""
# Of the standard library, of what Lapwing needs, and Lapwing itself.
NAMES = ("select", "json", "statistics", "typing", "numpy", "mpi4py", "rich", "lapwing")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a nest among files that must not be imported in another module's place."""
    (tmp_path / "smooth.py").write_text(NEST, encoding="utf-8")
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py was imported')\n", encoding="utf-8")
    return tmp_path


def plan(folder: Path, file: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`lapwing plan FILE` as its script starts it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "lapwing", "plan", file, "-n", "2", "--machine", "typical"],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=scaled(120),
        check=False,
    )


# -- modules ---------------------------------------------------------------------------------------------------------


def test_neighbours_do_not_take_the_place_of_modules(folder: Path) -> None:
    (folder / "mine.py").write_text("import helper, json\nassert json.dumps\n" + NEST, encoding="utf-8")
    (folder / "helper.py").write_text("", encoding="utf-8")
    done = plan(folder, "mine.py")
    assert done.returncode == 0, done.stderr


def test_ranks_import_nothing_from_the_current_directory(folder: Path) -> None:
    environment = search_path.without_current_directory({**os.environ, "PYTHONPATH": f":{SOURCES.parent}::"})
    script = (
        "import os, select, lapwing.launch.search_path as s\n"
        "s.forget_environment()\n"
        "print(os.environ.get('PYTHONSAFEPATH'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.stdout, done.returncode) == ("None\n", 0), done.stderr


def test_the_launcher_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: dict[str, str] = {}

    def start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        seen.update(environment)
        raise LapwingError("not started")

    class Work:
        def to_json(self) -> str:
            return "{}"

    monkeypatch.setattr(launch, "_start", start)
    with pytest.raises(LapwingError, match="not started"):
        launch.launch(Work(), 2, None, print, None, {"PATH": os.environ["PATH"], "PYTHONPATH": ":/x"})  # type: ignore[arg-type]
    assert seen["PYTHONSAFEPATH"]
    assert seen["PYTHONPATH"] == "/x"


def test_a_file_called_like_a_module_leaves_that_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "colorsys.py").write_text(NEST, encoding="utf-8")
    assert load_nest(str(tmp_path / "colorsys.py")).loops.name == "smooth"
    import colorsys

    assert colorsys.rgb_to_hsv


def test_a_neighbour_that_is_not_found_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "queue.py").write_text("mine = 1\n", encoding="utf-8")
    (tmp_path / "user.py").write_text("from queue import mine\n", encoding="utf-8")
    with pytest.raises(LapwingError, match=r"user\.py:1: ImportError.*queue\.py beside it is not found.*rename it"):
        load_nest(str(tmp_path / "user.py"))


def test_a_file_that_goes_elsewhere_goes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(loading, "_directory", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "data").mkdir()
    source = "import os\nos.chdir('other')\n" + NEST.replace(
        "    return dict", "    print(os.getcwd())\n    return dict"
    )
    (tmp_path / "elsewhere.py").write_text(source, encoding="utf-8")
    nest = load_nest("elsewhere.py")
    assert Path.cwd() == tmp_path
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        loading.problem_arguments(nest, [])
    assert said.getvalue() == f"{tmp_path / 'other'}\n"
    assert Path.cwd() == tmp_path


# -- files that end the process ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (
            "import os; os._exit(0)",
            "bad.py: it ended the process with status 0 while it was imported, as os._exit does",
        ),
        (
            "import ctypes; ctypes.string_at(0)",
            "bad.py:1: the process was killed by signal 11 (SIGSEGV) while it was imported",
        ),
        ("class Own(BaseException): pass\nraise Own", "bad.py:2: Own (while it was imported)"),
    ],
    ids=["ends", "crashes", "raises"],
)
def test_a_file_that_ends_the_process_is_named(tmp_path: Path, line: str, text: str) -> None:
    (tmp_path / "bad.py").write_text(f"{line}\n{NEST}", encoding="utf-8")
    done = plan(tmp_path, "bad.py")
    assert done.returncode == 1
    assert done.stderr.startswith(f"lapwing: {text}"), done.stderr


@pytest.mark.parametrize(("status", "heard"), [(3, b""), (0, b"")])
def test_a_file_that_ends_a_rank_is_named(status: int, heard: bytes) -> None:
    ending = launch._Ending(user_code="bad.py", tail=heard)
    with pytest.raises(
        LapwingError, match=rf"^bad\.py: it ended the process with status {status} while ranks imported it"
    ):
        launch._outcome(ending, status, Path("mpiexec"))


def test_a_file_that_crashes_a_rank_is_named() -> None:
    ending = launch._Ending(user_code="bad.py", ranks=[("here", 7)], tail=b"PID 7 RUNNING AT here\n= EXIT CODE: 11\n")
    with pytest.raises(
        LapwingError, match=r"^rank 0 .* \(SIGSEGV\) while ranks imported bad\.py; all ranks were ended"
    ):
        launch._outcome(ending, 11, Path("mpiexec"))


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", everyday(["C", "eucjp", "gbk"], ["gbk"]))
def test_files_are_utf8_in_every_locale(tmp_path: Path, locale: str) -> None:
    (tmp_path / "größe.py").write_text(NEST.replace("smooth", "größe") + "# 漢字 ×\n", encoding="utf-8")
    if locale != "C":
        charset, source = {"eucjp": ("EUC-JP", "ja_JP"), "gbk": ("GBK", "zh_CN")}[locale]
        command = ["localedef", "-i", source, "-f", charset, str(tmp_path / locale)]
        try:
            subprocess.run(command, capture_output=True, check=False)
        except OSError:
            pytest.skip("no localedef here")
        if not (tmp_path / locale).exists():
            pytest.skip(f"no sources of locale {source} here")
    script = (
        "import sys, lapwing.runtime.binding.native as n, lapwing.export.stand_alone as s, lapwing.calibrate.calls\n"
        "n._load_source.__globals__['build_shared_library'] = lambda **k: sys.exit(len(k['sources']) != 5)\n"
        'n.build_tile(\'"lapwing.h" "support.h" "transposed.h"\', None)'
    )
    variables = {"LC_ALL": locale, "LOCPATH": str(tmp_path), "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, **variables}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


def test_every_text_has_its_encoding() -> None:
    """The locale's is another one on every machine."""
    found = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search("read_text|write_text|text=|universal_newlines=", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and _is_in_the_locales_encoding(node):
                found.append(f"{path.relative_to(SOURCES)}:{node.lineno}")
    assert found == []


def _is_in_the_locales_encoding(call: ast.Call) -> bool:
    names = {keyword.arg for keyword in call.keywords}
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("read_text", "write_text") and isinstance(call.func, ast.Attribute):
        return "encoding" not in names
    if name in ("run", "Popen", "check_output"):
        return bool(names & {"text", "universal_newlines"}) and "encoding" not in names
    return False


# -- what is left behind -----------------------------------------------------------------------------------------------


@pytest.fixture
def abandoned() -> Callable[[Path], Path]:
    """Return a function that has a process make a scratch directory and be killed."""

    def make(parent: Path) -> Path:
        script = (
            "import os, sys, pathlib\nfrom lapwing.temporary import scratch_directory\n"
            "with scratch_directory('lapwing-test-', pathlib.Path(sys.argv[1])) as made:\n"
            "    print(made, flush=True)\n    os.kill(os.getpid(), 9)"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, parent], capture_output=True, encoding="utf-8", check=False
        )
        return Path(done.stdout.strip())

    return make


def test_directories_of_killed_processes_are_removed(tmp_path: Path, abandoned: Callable[[Path], Path]) -> None:
    left = abandoned(tmp_path)
    assert left.is_dir()
    with temporary.scratch_directory("lapwing-test-", tmp_path) as mine:
        temporary.remove_abandoned(tmp_path)
        assert list(tmp_path.iterdir()) == [mine]
    assert not mine.exists()


def test_what_was_kept_and_what_is_of_other_machines_stays(tmp_path: Path, abandoned: Callable[[Path], Path]) -> None:
    left = abandoned(tmp_path)
    temporary.keep(left)
    elsewhere = tmp_path / f"lapwing-test-0123456789-{os.getpid()}-1-abc"
    elsewhere.mkdir()
    temporary.remove_abandoned(tmp_path)
    assert left.is_dir()
    assert elsewhere.is_dir()


def test_shared_memory_that_nobody_has_mapped_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mmap

    monkeypatch.setattr(memory, "_SHARED", tmp_path)
    monkeypatch.setattr(memory, "_YOUNG_SECONDS", -1.0)
    for name in ("mpich_shm_1_0", "mpich_shm_2_0", "others"):
        (tmp_path / name).write_bytes(bytes(mmap.PAGESIZE))
    with (tmp_path / "mpich_shm_1_0").open("r+b") as stream, mmap.mmap(stream.fileno(), 0):
        memory.remove_abandoned_segments()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mpich_shm_1_0", "others"]
        memory.unname_mapped()
        assert [path.name for path in tmp_path.iterdir()] == ["others"]


def test_young_shared_memory_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_SHARED", tmp_path)
    (tmp_path / "mpich_shm_1_0").write_bytes(b"x")
    assert time.time() - (tmp_path / "mpich_shm_1_0").stat().st_ctime < memory._YOUNG_SECONDS
    memory.remove_abandoned_segments()
    assert (tmp_path / "mpich_shm_1_0").exists()
