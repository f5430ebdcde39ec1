"""The timeline that a session writes, and how many events are kept for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lapwing.files import write_text
from lapwing.trace.events import RunTrace
from lapwing.trace.metrics import Metrics
from lapwing.trace.perfetto import perfetto_json
from lapwing.trace.timeline import timeline_page

FEWEST_EVENTS = 1000  # kept of each rank, however many there are
MOST_EVENTS = 100_000  # kept of all ranks where no timeline is drawn: enough to tell what was hidden


def write_timeline(path: str, runs: Sequence[RunTrace], figures: Sequence[Metrics]) -> None:
    """A file for ui.perfetto.dev where its name ends in .json, else a page. Raises LapwingError where it cannot be written."""
    page = perfetto_json(runs, figures) if path.endswith(".json") else timeline_page(runs, figures)
    write_text(Path(path), page, "--timeline")
