"""The build cache: one compiler run, nothing half-written, and a way out when the directory is unusable."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lapwing.codegen.compilation import cache
from lapwing.codegen.compilation.toolchain import Compiler
from lapwing.errors import BuildError

CC = shutil.which("cc") or "cc"
SOURCES = {
    "tile.c": '#include "inc/answer.h"\nint answer(void) { return ANSWER; }\n',
    "inc/answer.h": "#define ANSWER 42\n",
}
# A program that builds the same library as `build` does, for tests that need processes of their own.
# A background job of a shell ignores Ctrl-C, and so would all it starts.
SCRIPT = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import Compiler
print(build_shared_library(name="tile", sources={SOURCES!r}, main=["tile.c"], flags=["-O1"], announce=None,
                           compiler=Compiler((sys.argv[1],), "logged")))
"""

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A cache of the test's own; a fallback directory would be made in `tmp_path / "temporary"`."""
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path / "cache"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(cache, "_unusable", set())
    cache._temporary_directory.cache_clear()
    yield tmp_path / "cache"
    cache._temporary_directory.cache_clear()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "compiler.log"


@pytest.fixture
def compiler(tmp_path: Path, log: Path) -> Callable[[str], Compiler]:
    """Return a function that makes a compiler: it logs its start, then runs the given lines and cc."""

    def make(before: str = "") -> Compiler:
        path = tmp_path / "logged-cc"
        path.write_text(f'#!/bin/sh\necho "$TMPDIR" >> {log}\n{before}\nexec {CC} "$@"\n')
        path.chmod(0o755)
        return Compiler((str(path),), "logged")

    return make


def build(compiler: Compiler, announce: Callable[[str], None] | None = None, **changed: Any) -> Path:
    arguments: dict[str, Any] = {"sources": SOURCES, "main": ["tile.c"], "flags": ["-O1"], **changed}
    return cache.build_shared_library(name="tile", compiler=compiler, announce=announce, **arguments)


def answer(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).answer())


def runs(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def start(compiler: Compiler) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, compiler.command[0]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for another process to get somewhere; the bound only ends a test that has failed."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "the other process never got there"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """A zombie that nobody has collected yet is not running."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def suffixes(directory: Path) -> set[str]:
    return {path.suffix for path in directory.iterdir()}


# --- where ----------------------------------------------------------------------


def test_cache_directory_follows_the_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LAPWING_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache.cache_directory() == tmp_path / ".cache" / "lapwing"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.cache_directory() == Path("/xdg/lapwing")
    monkeypatch.setenv("LAPWING_CACHE", "~/mine")
    assert cache.cache_directory() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAPWING_CACHE", "here")
    assert cache.cache_directory() == tmp_path / "here"


def test_no_home_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.delenv("LAPWING_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(BuildError, match="Set LAPWING_CACHE"):
        cache.cache_directory()


# --- hit and miss ---------------------------------------------------------------


def test_second_build_is_a_hit(directory: Path, compiler: Callable[[], Compiler], log: Path) -> None:
    said: list[str] = []
    first = build(compiler(), said.append)
    second = build(compiler(), said.append)
    assert first == second
    assert first.parent == directory
    assert answer(first) == 42
    assert said == ["building tile with logged-cc (once; then it is in the cache) …"]
    assert runs(log) == 1


def test_sources_lie_beside_the_library(directory: Path, compiler: Callable[[], Compiler]) -> None:
    library = build(compiler())
    for name, text in SOURCES.items():
        assert (library.with_suffix(".src") / name).read_text() == text
    assert suffixes(directory) == {".so", ".src", ".lock"}


def test_everything_that_matters_is_in_the_key(
    directory: Path, compiler: Callable[[], Compiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiler()
    libraries = [
        build(made),
        build(made, sources={**SOURCES, "inc/answer.h": "#define ANSWER 43\n"}),
        build(made, flags=["-O2"]),
        build(Compiler(made.command, "another version")),
    ]
    monkeypatch.setattr(cache, "cpu_identity", lambda: "another processor")
    libraries.append(build(made))
    assert len(set(libraries)) == len(libraries)
    assert [answer(library) for library in libraries] == [42, 43, 42, 42, 42]


def test_flags_may_name_libraries(directory: Path, compiler: Callable[[], Compiler]) -> None:
    text = "#include <math.h>\nint answer(void) { volatile double x = 8; return (int)cbrt(x); }\n"
    flags = ["-Wl,--as-needed", "-lm", "-Wl,-z,defs"]
    assert answer(build(compiler(), sources={"tile.c": text}, flags=flags)) == 2


def test_compiler_writes_its_temporary_files_privately(
    directory: Path, compiler: Callable[[], Compiler], log: Path
) -> None:
    build(compiler())
    scratch = Path(log.read_text().strip())
    assert scratch.parent == directory
    assert not scratch.exists()


# --- many at once ---------------------------------------------------------------


@pytest.mark.usefixtures("directory")
def test_eight_processes_compile_once(compiler: Callable[[str], Compiler], log: Path) -> None:
    # The pause makes all eight arrive while the first is compiling.
    made = compiler("sleep 1")
    processes = [start(made) for _ in range(8)]
    printed = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, printed
    paths = {out.strip() for out, _ in printed}
    assert len(paths) == 1
    assert answer(Path(paths.pop())) == 42
    assert runs(log) == 1


def test_without_file_locks_all_build_and_no_one_is_hurt(
    directory: Path, compiler: Callable[[], Compiler], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unsupported)
    # Without a lock another builder's directory may be in use and must be left alone.
    library = build(compiler())
    library.unlink()
    busy = directory / f".{library.stem}.busy"
    busy.mkdir()
    assert answer(build(compiler())) == 42
    assert busy.is_dir()
    assert runs(log) == 2


def test_a_holder_that_never_ends_hangs_no_one(
    directory: Path, compiler: Callable[[], Compiler], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = build(compiler())
    library.unlink()
    monkeypatch.setattr(cache, "_LOCK_SECONDS", 0.2)
    with library.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert answer(build(compiler())) == 42


def test_killed_builder_leaves_nothing_in_the_way(
    directory: Path, compiler: Callable[[str], Compiler], log: Path
) -> None:
    process = start(compiler("sleep 3"))
    wait_for(lambda: runs(log) == 1)
    process.kill()
    process.communicate()
    assert any(path.name.startswith(".tile-") for path in directory.iterdir())
    assert answer(build(compiler(""))) == 42
    assert suffixes(directory) == {".so", ".src", ".lock"}


def test_interrupt_leaves_nothing(
    directory: Path, compiler: Callable[[str], Compiler], log: Path, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    process = start(compiler(f"sleep 60 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"))
    wait_for(pids.exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert "KeyboardInterrupt" in errors
    assert suffixes(directory) == {".lock"}
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not is_running(int(pid)))  # killed, which takes a moment


# --- damage ---------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 0.5, -1])
def test_a_flipped_byte_is_noticed(place: float, directory: Path, compiler: Callable[[], Compiler], log: Path) -> None:
    library = build(compiler())
    good = library.read_bytes()
    damaged = bytearray(good)
    damaged[int(place * len(good))] ^= 1
    library.write_bytes(damaged)
    assert answer(build(compiler())) == 42
    assert library.read_bytes() == good
    assert runs(log) == 2


@pytest.mark.parametrize("kept", [0, 10, 100, 4096, -40, -1])
def test_a_truncated_entry_is_noticed(kept: int, directory: Path, compiler: Callable[[], Compiler], log: Path) -> None:
    library = build(compiler())
    good = library.read_bytes()
    library.write_bytes(good[:kept])
    assert build(compiler()) == library
    assert library.read_bytes() == good
    assert runs(log) == 2


# --- compilers in trouble -------------------------------------------------------


def test_a_source_that_does_not_compile(
    directory: Path, compiler: Callable[[], Compiler], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "".join(f"int wrong{i} = undeclared{i};\n" for i in range(40))
    with pytest.raises(BuildError) as caught:
        build(compiler(), sources={"tile.c": wrong})
    message = str(caught.value)
    assert "tile does not compile" in message
    assert "logged-cc -shared -fPIC tile.c" in message
    assert "undeclared0" in message
    assert "undeclared39" not in message
    assert "more lines" in message
    kept = next(path for path in directory.iterdir() if path.suffix == ".src")
    assert str(kept) in message
    assert (kept / "tile.c").read_text() == wrong
    assert suffixes(directory) == {".src", ".lock"}
    assert capsys.readouterr().err == ""


def test_a_compiler_that_is_gone(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BuildError, match=r"/nowhere/cc cannot be started: No such file(.|\n)*LAPWING_CC"):
        build(Compiler(("/nowhere/cc",), "gone"))
    assert capsys.readouterr().err == ""


def test_a_compiler_that_is_killed(directory: Path, compiler: Callable[[str], Compiler]) -> None:
    with pytest.raises(BuildError, match="killed by SIGKILL"):
        build(compiler("kill -9 $$"))
    assert suffixes(directory) == {".src", ".lock"}


def test_a_compiler_that_writes_nothing(directory: Path, compiler: Callable[[str], Compiler]) -> None:
    with pytest.raises(BuildError, match="succeeded but wrote nothing"):
        build(compiler("exit 0"))


def test_a_compiler_that_hangs_is_stopped_with_its_children(
    directory: Path, compiler: Callable[[str], Compiler], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "_BUILD_SECONDS", 1)
    pids = tmp_path / "pids"
    with pytest.raises(BuildError, match="did not finish in 1 s"):
        build(compiler(f"sleep 60 & echo $$ $! > {pids}; wait"))
    for pid in pids.read_text().split():
        wait_for(lambda pid=int(pid): not is_running(pid))  # type: ignore[misc]
    assert suffixes(directory) == {".src", ".lock"}


# --- a cache that cannot be used ------------------------------------------------


def warning(directory: Path, reason: str) -> str:
    return (
        f"lapwing: cache directory {directory} cannot be used ({reason}); "
        "building in a temporary directory for this run; set LAPWING_CACHE\n"
    )


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize("below", ["", "deep/er"])
def test_a_file_in_the_way(
    below: str,
    compiler: Callable[[], Compiler],
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("")
    unusable = tmp_path / "file" / below
    monkeypatch.setenv("LAPWING_CACHE", str(unusable))
    library = build(compiler())
    assert answer(library) == 42
    assert library.is_relative_to(tmp_path / "temporary")
    # The warning comes once, and what was built is found again.
    assert build(compiler()) == library
    build(compiler(), flags=["-O2"])
    assert capsys.readouterr().err == warning(unusable, "Not a directory")
    assert runs(log) == 2


@pytest.mark.parametrize(
    ("owner", "function"),
    [(Path, "mkdir"), (os, "open"), (tempfile, "mkdtemp"), (Path, "write_text"), (os, "replace")],
)
@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_any_refused_write_leads_to_the_temporary_directory(
    owner: Any,
    function: str,
    code: int,
    directory: Path,
    compiler: Callable[[], Compiler],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = getattr(owner, function)

    def refuse(*arguments: Any, **named: Any) -> Any:
        if any(str(directory) in str(value) for value in [*arguments, *named.values()]):
            raise OSError(code, os.strerror(code))
        return real(*arguments, **named)

    monkeypatch.setattr(owner, function, refuse)
    library = build(compiler())
    assert answer(library) == 42
    assert library.is_relative_to(tmp_path / "temporary")
    assert capsys.readouterr().err == warning(directory, os.strerror(code))
    monkeypatch.undo()
    assert not directory.exists() or suffixes(directory) <= {".lock", ".src"}


def test_a_compiler_that_finds_the_disk_full(
    directory: Path,
    compiler: Callable[[str], Compiler],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    full = f'case "$PWD" in {directory}*) echo "as: No space left on device" >&2; exit 1;; esac'
    library = build(compiler(full))
    assert library.is_relative_to(tmp_path / "temporary")
    assert answer(library) == 42
    assert capsys.readouterr().err == warning(directory, "No space left on device")
    assert suffixes(directory) == {".lock"}


def test_nowhere_to_write(directory: Path, compiler: Callable[[], Compiler], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(BuildError, match=r"neither the cache directory .*No space left.*Set LAPWING_CACHE"):
        build(compiler())


def test_what_is_cached_can_be_used_when_nothing_can_be_written(
    directory: Path,
    compiler: Callable[[], Compiler],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library = build(compiler())

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert build(compiler()) == library
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("directory")
def test_temporary_directory_is_gone_afterwards(
    compiler: Callable[[], Compiler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    out, errors = start(compiler()).communicate()
    assert Path(out.strip()).is_relative_to(tmp_path / "temporary"), errors
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.usefixtures("directory")
def test_source_that_failed_in_the_temporary_directory_stays_for_reading(
    compiler: Callable[[str], Compiler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LAPWING_CACHE", str(tmp_path / "file"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    _, errors = start(compiler("exit 1")).communicate()
    kept = list((tmp_path / "temporary").glob("lapwing-*/tile-*.src/tile.c"))
    assert len(kept) == 1
    assert str(kept[0].parent) in errors


@pytest.mark.parametrize("options", ["ro", "size=4k", "size=16k", "size=24k"])
def test_a_real_file_system_that_is_full_or_read_only(
    options: str, compiler: Callable[[], Compiler], tmp_path: Path, log: Path
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    mount = f"mount -t tmpfs -o {options} lapwing {mounted}"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "sh", "-c", mount]).returncode:
        pytest.skip("mounting is not permitted here")
    made = compiler()
    ran = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            f'{mount} && exec "$@"',
            "sh",
            sys.executable,
            "-c",
            SCRIPT,
            *made.command,
        ],
        env={**os.environ, "LAPWING_CACHE": str(mounted), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    reason = "Read-only file system" if options == "ro" else "No space left on device"
    assert ran.stderr == warning(mounted, reason)
    assert ran.returncode == 0
    assert Path(ran.stdout.strip()).is_relative_to(tmp_path)
    assert not Path(ran.stdout.strip()).is_relative_to(mounted)
