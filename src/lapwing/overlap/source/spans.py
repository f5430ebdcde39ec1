"""Source files as they are on disk, and places in them."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """A file as it is on disk. ``language``: "fortran" or "c" (C++ too); ``form``: "fixed" or "free" for Fortran."""

    path: Path
    data: bytes
    language: str
    form: str | None = None

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Where the file's lines begin, the first at 0."""
        return (0, *(found.end() for found in re.finditer(rb"\n", self.data)))

    def line_of(self, offset: int) -> int:
        """The line, counted from 1, that holds the byte at ``offset``."""
        return bisect.bisect_right(self.line_starts, offset)

    def text(self, span: Span) -> str:
        # One character a byte: columns and offsets survive whatever the encoding is.
        return self.data[span.start : span.end].decode("latin-1")


@dataclass(frozen=True)
class Span:
    """Bytes ``start`` up to, not including, ``end`` of file number ``source`` of the program."""

    source: int
    start: int
    end: int

    def contains(self, other: Span) -> bool:
        return self.source == other.source and self.start <= other.start and other.end <= self.end


@dataclass(frozen=True)
class Problem:
    """Something a reader of the report should know about a source: what could not be read, and what that means."""

    path: Path
    line: int
    message: str
