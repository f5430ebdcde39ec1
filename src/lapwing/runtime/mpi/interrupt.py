"""Ctrl-C while compiled code runs."""

from __future__ import annotations

import signal
from _signal import (  # type: ignore[import-not-found]  # signal.getsignal takes a microsecond
    default_int_handler,
    getsignal,
)
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident, main_thread


def ends_on_interrupt() -> bool:
    """Whether Ctrl-C is to end what this thread runs: it is the main one, and no handler of the user's own takes it."""
    return getsignal(signal.SIGINT) is default_int_handler and get_ident() == main_thread().ident


@contextmanager
def noted_interrupts() -> Iterator[list[BaseException]]:
    """Ctrl-C inside the block adds a KeyboardInterrupt to the list instead of raising it.

    Python raises it on the way into a callback from C, before any ``try`` there, where it would be lost. A handler of
    the user's own is left alone.
    """
    noted: list[BaseException] = []
    if not ends_on_interrupt():
        yield noted
        return
    signal.signal(signal.SIGINT, lambda *_: noted.append(KeyboardInterrupt()))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
