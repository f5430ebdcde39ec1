"""The place in the user's program that a call comes from."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[2])


def at_place(what: str) -> str:
    """A call with the file and line of the program that makes it."""
    place = calling_place()
    return f"{what} ({place})" if place else what


def calling_place() -> str:
    """File and line outside this package that the call at hand comes from; empty where it comes from the command line."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or frame.f_code.co_filename.startswith("<frozen"):
        return ""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
