"""A progress bar on standard error, where that is a terminal and the work takes longer than a moment."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0  # seconds


class ProgressBar:
    """One bar that follows what is going on. Text written meanwhile goes through ``write``."""

    def __init__(self) -> None:
        self.enabled = sys.stderr.isatty()
        self._label: str | None = None
        self._since = 0.0
        self._shown: tuple[Progress, TaskID] | None = None

    def update(self, label: str, fraction: float | None) -> None:
        """Show how far ``label`` has come; None where that is not known."""
        if not self.enabled:
            return
        if label != self._label:
            self.close()
            self._label, self._since = label, time.monotonic()
        if self._shown is None and (fraction is None or time.monotonic() - self._since > _PATIENCE):
            self._show()
        if self._shown is not None and fraction is not None:
            progress, task = self._shown
            progress.update(task, completed=fraction, total=1.0)

    def say(self, label: str) -> None:
        """Show what is going on, how far it has come being unknown."""
        self.update(label, None)

    def write(self, text: str) -> None:
        """Put text on standard error, above the bar if there is one."""
        if self._shown is not None:
            self._shown[0].console.print(text, end="", markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(text)
            sys.stderr.flush()

    def close(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown[0].stop()
        self._shown = self._label = None

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        task = progress.add_task(self._label or "", total=None)
        progress.start()
        self._shown = progress, task
