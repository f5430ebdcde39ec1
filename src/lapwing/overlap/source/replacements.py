"""Pieces of a file's text replaced by others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Bytes ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: str


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The file with all edits made; edits at the same place come in the order given. They must not overlap."""
    pieces, at = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise ValueError(f"edits overlap at byte {edit.start}")
        pieces += [data[at : edit.start], edit.text.encode("latin-1", "replace")]
        at = edit.end
    return b"".join([*pieces, data[at:]])
