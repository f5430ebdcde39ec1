"""A Linux control group that limits the memory of the programs in it, their share of the system's file cache included."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import LapwingError

_ROOT = Path("/sys/fs/cgroup")
_TRIES, _PAUSE = 50, 0.1  # a group can be removed once the last process in it has gone


@dataclass(frozen=True)
class ControlGroup:
    path: Path
    limit: str  # the file that holds it

    def allow(self, size: int) -> None:
        (self.path / self.limit).write_text(str(size), encoding="ascii")

    def command(self, command: list[str]) -> list[str]:
        """Start a command in the group."""
        return ["sh", "-c", f'echo $$ > {shlex.quote(str(self.path / "cgroup.procs"))} && exec "$@"', "sh", *command]


@contextlib.contextmanager
def control_group() -> Iterator[ControlGroup]:
    """A group inside the one this process is in, whose limits hold as well; removed at the end.

    Raises LapwingError, with the reason, where there can be none.
    """
    path, limit = _made()
    try:
        yield ControlGroup(path, limit)
    finally:
        for _ in range(_TRIES):
            try:
                path.rmdir()
                break
            except OSError:
                time.sleep(_PAUSE)


def _made() -> tuple[Path, str]:
    reasons = []
    for parent, limit in _parents():
        path = parent / f"lapwing-p3-{os.getpid()}"
        try:
            path.mkdir()
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
            continue
        if (path / limit).exists() and os.access(path / limit, os.W_OK):
            return path, limit
        path.rmdir()
        reasons.append(f"{parent}: memory is not limited in its groups")
    raise LapwingError("; ".join(reasons) or "this system has no control groups of memory")


def _parents() -> Iterator[tuple[Path, str]]:
    """Where a group may be made, and the name of its limit. In version 2 one that has processes has no limited groups."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            number, controllers, place = line.split(":", 2)
            if "memory" in controllers.split(","):
                yield _ROOT / "memory" / place.lstrip("/"), "memory.limit_in_bytes"
            elif number == "0":
                for mounted in (_ROOT, _ROOT / "unified"):
                    own = mounted / place.lstrip("/")
                    if (own / "cgroup.controllers").exists():
                        yield own, "memory.max"
                        if own != mounted:
                            yield own.parent, "memory.max"
