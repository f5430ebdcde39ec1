"""How long ranks wait for each other."""

from __future__ import annotations

import math
import os

from lapwing.errors import RefusedError

RUN_SECONDS = 600.0  # for a message in mid-run
MEETING_SECONDS = 60.0  # for the other ranks to make the same call


def patience_seconds(default: float = RUN_SECONDS) -> float:
    """How long a rank waits before it takes the others for dead: LAPWING_PATIENCE, or the default; 0 for ever.

    Raises RefusedError where the variable is no number.
    """
    text = os.environ.get("LAPWING_PATIENCE", "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (math.isfinite(seconds) and seconds >= 0):
        raise RefusedError(f"LAPWING_PATIENCE={text}: expected seconds, such as 120, or 0 to wait for ever.")
    return seconds
