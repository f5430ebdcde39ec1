"""What Lapwing says while it works: that it builds something, and how far a long call is.

It goes to standard error where a person is likely to read it: a terminal, a notebook, the command line, or ranks under
mpiexec, which hides the terminal. Elsewhere it is logged (logger ``lapwing``, level INFO), as in a test or a service.
LAPWING_QUIET=1 leaves it to the log everywhere.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from lapwing.launcher import is_rank

_PATIENCE_SECONDS = 2.0  # a call that is over before has nothing to say
_BETWEEN_SECONDS = 0.25
_BAR = 24  # characters wide

_log = logging.getLogger("lapwing")
_in_command = False


def speak_in_command() -> None:
    """From now on this process is the command line, whose standard error says what it does wherever it goes."""
    global _in_command
    _in_command = True


def say(text: str) -> None:
    """One line, in the right place."""
    if not _is_quiet() and (_in_command or _is_watched() or is_rank()):  # a launcher's pipes hide the terminal
        with suppress(OSError, ValueError):  # standard error that is closed is no reason to stop
            print(f"lapwing: {text}", file=sys.stderr, flush=True)
    else:
        _log.info(text)


class ProgressLine:
    """A bar that follows one long call, and is gone when it ends; only on a terminal and in notebooks.

    It is written by the computing thread, between slices of a tile: no library for progress bars, since loading one would keep
    the other ranks waiting for a tenth of a second.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = time.monotonic()
        self._next = self._began + _PATIENCE_SECONDS
        self._width = 0

    def __call__(self, fraction: float) -> None:
        """The call is so far, between 0 and 1."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _BETWEEN_SECONDS
        if _is_quiet() or _in_command or not _is_watched():
            self._next = float("inf")
            return
        spent = now - self._began
        left = f", {_clock(spent * (1 - fraction) / fraction)} left" if fraction > 0 else ""
        self._write(f"lapwing: {self._label} {_bar(fraction)} {100 * fraction:.0f} % after {_clock(spent)}{left}")

    def close(self) -> None:
        """Wipe the line out."""
        if self._width:
            self._write("")
            self._width = 0

    def _write(self, text: str) -> None:
        wiped = " " * max(0, self._width - len(text))
        end = "" if text else "\r"
        with suppress(OSError, ValueError):
            sys.stderr.write(f"\r{text}{wiped}{end}")
            sys.stderr.flush()
        self._width = len(text)


def followed(over: Any, label: str) -> Any:
    """What a loop goes over; where that is a range, with a bar that follows how far it has come."""
    return _followed(over, label) if isinstance(over, range) else over


def _followed(over: range, label: str) -> Iterator[int]:
    line, length = ProgressLine(label), -(-(over.stop - over.start) // over.step)
    try:
        for done, number in enumerate(over):
            line(done / length)
            yield number
    finally:
        line.close()


def _bar(fraction: float) -> str:
    """In characters that standard error can show."""
    full, rest = "━", "╌"
    try:
        (full + rest).encode(getattr(sys.stderr, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        full, rest = "#", "."
    done = min(max(round(_BAR * fraction), 0), _BAR)
    return full * done + rest * (_BAR - done)


def _is_quiet() -> bool:
    return os.environ.get("LAPWING_QUIET", "") not in ("", "0")


def _is_watched() -> bool:
    """Whether standard error is a terminal or belongs to a notebook."""
    with suppress(AttributeError, ValueError):
        return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
    return False


def _clock(seconds: float) -> str:
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
