"""A command in a child process of its own, so that code of the user's that ends the process does not do so without a word.

The child is the command: it imports the user's file and does all there is to do. The process that was started waits for it,
passes signals on to it, ends as it ended, and says what happened where it was ended from inside (os._exit, a crash).
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import mmap
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from lapwing.launch.processes import signal_name
from lapwing.orphans import die_with
from lapwing.temporary import remove_abandoned

_FAILED = 1
_NOTE_BYTES = 1 << 14
# By these a command is ended from outside, and nothing has to be said.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TRACED_FILE = re.compile(rb'File "(.*)", line (\d+)')


class _Note:
    """What code of the user's is running, for the parent to read when the child is gone; memory that both share."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NOTE_BYTES)
        self.traceback = os.memfd_create("lapwing") if hasattr(os, "memfd_create") else None

    def write(self, file: str, when: str) -> None:
        data = json.dumps([file, when]).encode("ascii")
        if len(data) < _NOTE_BYTES:
            self._memory[: len(data) + 1] = data + b"\0"

    def clear(self) -> None:
        self._memory[0] = 0

    def read(self) -> tuple[str, str] | None:
        data = self._memory[:].partition(b"\0")[0]
        return tuple(json.loads(data)) if data else None


_note: _Note | None = None


def continue_in_child() -> None:
    """Return in a child process. This process waits for it and exits as it does."""
    global _note
    _note = _Note()
    parent = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored nobody could wait
    # What was started to ignore a signal (nohup, a background job) goes on ignoring it.
    watched = [n for n in (*_ENDING, signal.SIGCHLD) if signal.getsignal(n) is not signal.SIG_IGN]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    child = os.fork()
    if child == 0:
        die_with(parent, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    _exit_as(_waited_for(child, watched))


@contextlib.contextmanager
def user_code(file: str, when: str) -> Iterator[None]:
    """Inside the block code of the user's runs: should the process end there, the parent says that it was this.

    file: as it is shown. when: such as "while it was imported".
    """
    if _note is None:
        yield
        return
    _note.write(file, when)
    if _note.traceback is not None:
        faulthandler.enable(_note.traceback)
    try:
        yield
    finally:
        faulthandler.disable()
        _note.clear()


def _waited_for(child: int, watched: list[signal.Signals]) -> int:
    """Pass signals on until the child has ended; its exit status, or minus the signal that ended it."""
    while True:
        heard = signal.sigwaitinfo(watched)
        if heard.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
        elif heard.si_code <= 0:  # sent by a process; what a terminal sends comes to the child by itself
            os.kill(child, heard.si_signo)


def _exit_as(status: int) -> NoReturn:
    if status < 0:
        remove_abandoned()
    assert _note is not None
    running = _note.read()
    if status < 0 and -status in _ENDING:
        signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-status])
        os.kill(os.getpid(), -status)
    if running is not None:
        _complain(_in_user_code(status, *running))
    elif status < 0:
        _complain(f"the command was killed by {signal_name(-status)} before the run was done{_guess(-status)}.")
    else:
        _leave(status)
    _leave(_FAILED)


def _in_user_code(status: int, file: str, when: str) -> str:
    if status >= 0:
        return ended_inside(file, status, when)
    line = _traced_line(file)
    shown = file if line is None else f"{file}:{line}"
    return f"{shown}: the process was killed by {signal_name(-status)} {when}{_guess(-status, file)}."


def ended_inside(file: str, status: int, when: str) -> str:
    """What to say where a file of the user's ended its process by itself."""
    return (
        f"{file}: it ended the process with status {status} {when}, as os._exit does. Let it raise an error where something "
        "is wrong; what should not run here belongs under if __name__ == '__main__'."
    )


def _guess(number: int, file: str | None = None) -> str:
    if number == signal.SIGKILL:
        return "; often there is not enough memory"
    return "" if file is None else f"; `python -X faulthandler {file}` may show the same crash without Lapwing"


def _traced_line(file: str) -> int | None:
    """The deepest line of the user's file that the crash passed through."""
    if _note is None or _note.traceback is None:
        return None
    os.lseek(_note.traceback, 0, os.SEEK_SET)
    traced = os.read(_note.traceback, 1 << 20)
    lines = [int(n) for name, n in _TRACED_FILE.findall(traced) if os.fsdecode(name) == str(Path(file).resolve())]
    return lines[0] if lines else None


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"lapwing: {text}", file=sys.stderr, flush=True)


def _leave(status: int) -> NoReturn:
    # Nothing was done here that would have to be undone, and streams were flushed by the child.
    os._exit(status)
