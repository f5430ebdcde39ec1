"""Ctrl-C while compiled code runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted_interrupts() -> Iterator[list[BaseException]]:
    """Ctrl-C inside the block adds a KeyboardInterrupt to the list instead of raising it.

    Python raises it on the way into a callback from C, before any ``try`` there, where it would be lost. A handler of
    the user's own is left alone.
    """
    noted: list[BaseException] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield noted
        return
    signal.signal(signal.SIGINT, lambda *_: noted.append(KeyboardInterrupt()))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
