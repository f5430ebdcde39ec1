"""Files with errors are read in a process of their own first: libclang may end the one in which it is asked about them.

What a declaration with errors leaves in libclang can be such that a question about it, as for a type's size, is a bug's death.
The process stays for the next file; where it does not survive one, another takes its place.
"""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache

_PATIENCE = 300.0  # seconds that a file may take


DONE = b"read\n"  # what the other process says of a file


@dataclass(frozen=True)
class Trial:
    """A file, and all that says how it is read. ``text``: its own, if it is in memory only."""

    path: str
    include_dirs: tuple[str, ...]
    defines: Mapping[str, str | None]
    undefines: tuple[str, ...]
    command: Sequence[str] | None
    text: str | None = None


def survives(trial: Trial) -> bool:
    """Whether the file can be read without harm."""
    return _reader().survives(json.dumps(asdict(trial)).encode() + b"\n")


@cache
def _reader() -> _Reader:
    reader = _Reader()
    atexit.register(reader.end)
    return reader


class _Reader:
    """The other process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def survives(self, request: bytes) -> bool:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-P", "-m", "lapwing.overlap.languages.c.reading.trial_process"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # both are pipes
        assert stdout is not None
        try:
            stdin.write(request)
            stdin.flush()
        except BrokenPipeError:
            self.end()
            return False
        ready, _, _ = select.select([stdout], [], [], _PATIENCE)
        if ready and stdout.readline() == DONE:
            return True
        self.end()
        return False

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None
