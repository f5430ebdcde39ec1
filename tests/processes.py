"""Starting processes on behalf of a test."""

from __future__ import annotations

import os
import signal
from pathlib import Path

# For programs that import what tests share.
WITH_HELPERS = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
}


def default_signals() -> None:
    """For ``preexec_fn``: what `nohup` or a background job of a shell has ignored would be ignored by all that tests start."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
