"""Starting processes on behalf of a test."""

from __future__ import annotations

import signal
from pathlib import Path

WITH_HELPERS = {"PYTHONPATH": str(Path(__file__).parent)}  # for programs that import what tests share


def default_signals() -> None:
    """For ``preexec_fn``: what `nohup` or a background job of a shell has ignored would be ignored by all that tests start."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
