"""Temporary directories that do not outlive their owner for long.

A process that ends removes its own. One that was killed cannot; the names say which process made a directory, and
``remove_abandoned``, which every command calls, removes those whose process is gone. Linux only: elsewhere names say nothing,
and nothing is taken for abandoned.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PREFIX = "lapwing-"
_KEPT = ".keep"
# Where process ids mean something, process id, when it started, and what tempfile adds.
_MARKED = re.compile(r"-([0-9a-f]{10})-(\d+)-(\d+)-[^-]+")


@contextlib.contextmanager
def scratch_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new directory in ``parent`` (None: where temporary files go), only this user's, until the end of the block.

    Raises OSError where it cannot be made.
    """
    directory = _made(prefix, parent)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def scratch_until_exit(prefix: str) -> Path:
    """A new directory, only this user's, until this process ends. Raises OSError where it cannot be made."""
    directory = _made(prefix, None)
    atexit.register(_remove, directory, os.getpid())
    return directory


def keep(directory: Path) -> None:
    """Leave a scratch directory for the user to look at."""
    (directory / _KEPT).touch()


def remove_abandoned(parent: Path | None = None) -> None:
    """Remove the scratch directories in ``parent`` (None: where temporary files go) whose process is gone."""
    place = _place()
    with contextlib.suppress(OSError), os.scandir(parent or tempfile.gettempdir()) as entries:
        for entry in entries:
            found = _MARKED.search(entry.name)
            if found is None or found[1] != place or _started(int(found[2])) == found[3]:
                continue
            with contextlib.suppress(OSError):  # another process removes it, too
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid() and not os.path.exists(
                    os.path.join(entry.path, _KEPT)
                ):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _made(prefix: str, parent: Path | None) -> Path:
    place = _place()
    mark = "" if place is None else f"-{place}-{os.getpid()}-{_started(os.getpid())}-"
    return Path(tempfile.mkdtemp(prefix=prefix.removesuffix("-") + mark if mark else prefix, dir=parent))


def _remove(directory: Path, owner: int) -> None:
    # A forked child inherits both the directory and this call; the directory is its parent's.
    if os.getpid() == owner and not (directory / _KEPT).exists():
        shutil.rmtree(directory, ignore_errors=True)


@cache
def _place() -> str | None:
    """A name for this boot of this machine and its process ids: elsewhere, or in another container, they mean others."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return hashlib.sha256(boot + os.fsencode(namespace)).hexdigest()[:10]


def _started(process: int) -> str | None:
    """When a process started, in ticks since the boot; None where there is none. An id may be given again, but not so soon."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    state, *fields = stat.rpartition(b")")[2].split()
    return None if state in b"ZX" else fields[18].decode("ascii")
