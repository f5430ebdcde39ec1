"""Names in a text that could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """``may_call``: whether it may stand for a call, of whatever has that name."""

    name: str
    may_call: bool
