"""Processes that end when the one that started them ends, however it does (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with(parent: int, number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends; end at once if ``parent`` has ended already."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
