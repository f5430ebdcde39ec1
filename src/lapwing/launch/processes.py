"""Processes that must not outlive the run they belong to (Linux)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def signal_name(number: int) -> str:
    """A signal as messages name it: "signal 11 (SIGSEGV)"."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def marked_with(mark: str) -> list[int]:
    """The ids of the other processes on this machine with ``mark`` in their command line, zombies left out."""
    wanted = mark.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if wanted in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it ended, or is another user's
            continue
    return found


def end_marked(mark: str, patience: float) -> None:
    """Wait until no process with ``mark`` is left; after ``patience`` seconds kill those that are."""
    deadline = time.monotonic() + patience
    while left := marked_with(mark):
        if time.monotonic() >= deadline:
            for process in left:
                try:
                    os.kill(process, signal.SIGKILL)
                except OSError:
                    continue
            return
        time.sleep(0.05)
