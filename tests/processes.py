"""Starting processes that a test interrupts."""

from __future__ import annotations

import signal


def default_signals() -> None:
    """For ``preexec_fn``: what `nohup` or a background job of a shell has ignored would be ignored by all that tests start."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
