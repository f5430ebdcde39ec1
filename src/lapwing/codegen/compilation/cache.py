"""The build cache: generated sources in, a verified shared library out, compiled once per machine and user.

An entry is `NAME-KEY.so`, with the text it was made from beside it in `NAME-KEY.src/` for people to read.
Entries appear in one step (rename), end with a checksum that is verified at every use, and are never changed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import pwd
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing import temporary
from lapwing.codegen.compilation import ownership
from lapwing.codegen.compilation.toolchain import Compiler, compiler_environment, cpu_identity
from lapwing.errors import BuildError

_BUILD_SECONDS = 300
# A stopped holder must not hang us: after this long we build without the lock, which is only wasteful.
_LOCK_SECONDS = 2 * _BUILD_SECONDS
_LOCK_POLL_SECONDS = 0.05
_SHOWN_LINES = 30
_MAGIC = b"LAPWING1"
_DIGEST_BYTES = hashlib.sha256().digest_size
# What a compiler says when the trouble is the directory and not the source.
_STORAGE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclass(frozen=True)
class _Job:
    """One library to build; `entry` is its name in the cache, without suffix."""

    name: str
    entry: str
    sources: Mapping[str, str]
    main: tuple[str, ...]
    compiler: Compiler
    flags: tuple[str, ...]
    announce: Callable[[str], None] | None
    what: str


class _StorageError(OSError):
    """The compiler could not write its output."""


def cache_directory() -> Path:
    """Return `$LAPWING_CACHE`, else `$XDG_CACHE_HOME/lapwing`, else `~/.cache/lapwing`, as an absolute path.

    It need not exist. Raises BuildError when none of the three is known, and when others than this user can change what
    is there.
    """
    directory = _chosen_directory()
    ownership.check_directory(directory)
    return directory


def make_cache_directory() -> Path:
    """Return the cache directory, made if need be, and readable by this user alone. Raises OSError where it cannot be made."""
    directory = cache_directory()
    _make_directory(directory)
    return directory


def _chosen_directory() -> Path:
    chosen = os.environ.get("LAPWING_CACHE", "")
    if chosen:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    standard = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    if os.path.isabs(standard):
        return Path(standard) / "lapwing"
    try:
        # HOME may be set to nothing, or to a path that means another place in every directory.
        named = os.path.isabs(os.environ.get("HOME", "/"))
        home = Path.home() if named else Path(pwd.getpwuid(os.getuid()).pw_dir)
    except (RuntimeError, KeyError) as error:
        raise BuildError(
            "no place for the build cache: this user has no home directory. Set LAPWING_CACHE to a directory."
        ) from error
    return home / ".cache" / "lapwing"


def build_shared_library(
    *,
    name: str,
    sources: Mapping[str, str],
    main: Sequence[str],
    compiler: Compiler,
    flags: Sequence[str],
    announce: Callable[[str], None] | None,
    what: str = "",
) -> Path:
    """Return the path of a shared library built from `sources`, compiling only what is not in the cache.

    name: how the entry's file name begins.
    sources: text by relative file name, headers included.
    main: the names of the sources that are compiled.
    flags: compiler and linker flags, put after the sources. The compiler runs in the directory of the
        sources, so paths in flags must be absolute or lie there.
    announce: called with one line before a compiler starts.
    what: what the library is, in that line; its name by default.

    Any number of processes may ask for the same library at once: one compiles, the others wait. When the
    cache directory cannot be used, it says so once on stderr and builds in a temporary directory that is
    removed at exit.
    Raises BuildError when the compiler rejects the sources or does not finish, or nothing can be written.
    """
    job = _Job(
        name=name,
        entry=f"{name}-{_key(sources, main, compiler, flags)}",
        sources=sources,
        main=tuple(main),
        compiler=compiler,
        flags=tuple(flags),
        announce=announce,
        what=what or name,
    )
    cache = cache_directory()
    library = _library(cache, job)
    if _is_intact(library):
        return library
    temporary.remove_abandoned(cache)
    if cache not in _unusable:
        try:
            return _build_once(cache, job)
        except OSError as error:
            _report_unusable(cache, error)
    return _build_in_temporary_directory(cache, job)


def _key(sources: Mapping[str, str], main: Sequence[str], compiler: Compiler, flags: Sequence[str]) -> str:
    parts = [
        sorted(sources.items()),
        list(main),
        compiler.command,
        compiler.identity,
        list(flags),
        cpu_identity(),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


def _library(directory: Path, job: _Job) -> Path:
    return directory / f"{job.entry}.so"


# --- entries that prove themselves --------------------------------------------


def _seal(library: Path) -> None:
    """Append a checksum of the file to it; loaders ignore what follows the last section."""
    digest = hashlib.sha256(library.read_bytes()).digest()
    with library.open("ab") as stream:
        stream.write(_MAGIC + digest)


def _is_intact(library: Path) -> bool:
    """Raises BuildError where others can change the library."""
    try:
        data = library.read_bytes()
        ownership.check_file(library)
    except OSError:
        return False
    body, trailer = data[: -len(_MAGIC) - _DIGEST_BYTES], data[-len(_MAGIC) - _DIGEST_BYTES :]
    return trailer == _MAGIC + hashlib.sha256(body).digest()


# --- one builder at a time ----------------------------------------------------


def _build_once(cache: Path, job: _Job) -> Path:
    """Build the library unless another process does it first; OSError when the directory is unusable."""
    _make_directory(cache)
    library = _library(cache, job)
    with _lock(cache / f"{job.entry}.lock"):
        if _is_intact(library):
            return library
        # A damaged entry is replaced, not deleted first: without a lock another process may have mended it.
        _build(cache, job)
    return library


def _make_directory(cache: Path) -> None:
    # Not with parents=True, which leaves their modes to the umask.
    for directory in (*reversed(cache.parents), cache):
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError as error:
            if not directory.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(cache)) from error


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock, where it can be had. The kernel releases it when the holder dies."""
    # The file stays: deleting it would let a third process lock a new file of that name beside a waiting one.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_POLL_SECONDS)
        except OSError:
            # Some network file systems have no locks.
            return
        else:
            return


# --- compiling ----------------------------------------------------------------


def _build(directory: Path, job: _Job) -> None:
    """Compile in a private directory and publish the library and its source in `directory`."""
    with temporary.scratch_directory(f".{job.entry}.", directory) as work:
        source = work / "source"
        _write_sources(source, job.sources)
        output = work / "library.so"
        if job.announce is not None:
            job.announce(f"building {job.what} with {job.compiler.label} (once; then it is in the cache) …")
        try:
            _compile(job, source, output)
        except BuildError as error:
            kept = _publish_source(source, directory, job)
            raise BuildError(f"{error}\nThe source is in {kept}.") from None
        output.chmod(0o700)  # the umask may let others write to it
        _seal(output)
        _publish_source(source, directory, job)
        os.replace(output, _library(directory, job))


def _write_sources(directory: Path, sources: Mapping[str, str]) -> None:
    directory.mkdir()
    for file_name, text in sources.items():
        path = directory / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _publish_source(source: Path, directory: Path, job: _Job) -> Path:
    """Move the sources beside the library, for reading only: when this fails the build does not."""
    published = directory / f"{job.entry}.src"
    # The same entry has the same sources: one that is there already will do.
    with contextlib.suppress(OSError):
        source.rename(published)
    return published


def _compile(job: _Job, source: Path, output: Path) -> None:
    """Raise BuildError when the compiler rejects the source, OSError when it cannot write."""
    # Relative, so that a failed command can be repeated in the directory where the source was kept.
    written = os.path.relpath(output, source)
    command = [*job.compiler.command, "-shared", "-fPIC", *job.main, "-o", written, *job.flags]
    environment = {**compiler_environment(), "TMPDIR": str(output.parent)}
    status, said = _run(command, source, environment)
    if status == 0 and output.is_file():
        return
    for code in _STORAGE_ERRORS:
        if os.strerror(code) in said:
            raise _StorageError(code, os.strerror(code), str(output))
    lines = said.splitlines()
    shown = lines[:_SHOWN_LINES]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"… and {len(lines) - _SHOWN_LINES} more lines")
    raise BuildError(
        "\n".join([f"{job.name} does not compile: {_describe(status)}.", f"  {shlex.join(command)}", *shown])
    )


def _describe(status: int) -> str:
    if status < 0:
        return f"the compiler was killed by {signal.Signals(-status).name} (SIGKILL: often out of memory)"
    if status == 0:
        return "the compiler succeeded but wrote nothing"
    return f"the compiler ended with status {status}"


def _run(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Return the compiler's exit status and what it said; it and its children are gone afterwards."""
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # A group of its own, so that killing the driver kills the compiler proper too.
            process_group=0,
        )
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be started: {error.strerror}. Install it again or choose another compiler "
            "(LAPWING_CC, LAPWING_CXX, LAPWING_MPICXX)."
        ) from error
    with process:
        try:
            said, _ = process.communicate(timeout=_BUILD_SECONDS)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            raise BuildError(
                f"the compiler did not finish in {_BUILD_SECONDS} s and was stopped:\n  {shlex.join(command)}"
            ) from None
        except BaseException:
            _kill_group(process)
            raise
    return process.returncode, said


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


# --- when the cache cannot be used --------------------------------------------

_unusable: set[Path] = set()


def _report_unusable(cache: Path, error: OSError) -> None:
    _unusable.add(cache)
    print(
        f"lapwing: cache directory {cache} cannot be used ({error.strerror or error}); "
        "building in a temporary directory for this run; set LAPWING_CACHE",
        file=sys.stderr,
        flush=True,
    )


def _build_in_temporary_directory(cache: Path, job: _Job) -> Path:
    try:
        directory = _temporary_directory()
        ownership.check_directory(directory)
        library = _library(directory, job)
        if not _is_intact(library):
            _build_for_now(directory, job)
    except OSError as error:
        raise BuildError(
            f"{job.name} cannot be built: neither the cache directory {cache} nor a temporary directory can "
            f"be used ({error.strerror or error}). Set LAPWING_CACHE to a directory with free space."
        ) from error
    return library


def _build_for_now(directory: Path, job: _Job) -> None:
    try:
        _build(directory, job)
    except BuildError:
        temporary.keep(directory)  # the message names the source there
        raise


@functools.cache
def _temporary_directory() -> Path:
    return temporary.scratch_until_exit("lapwing-build-")
