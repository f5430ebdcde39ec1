"""Fortran source text with continuation lines joined."""

from __future__ import annotations

import re
from functools import lru_cache

from lapwing.overlap.source.spans import Source


def joined(source: Source) -> tuple[bytes, ...]:
    """Joined as if no line ended within a name, and as if all did."""
    return _joined(source.data, source.form)


@lru_cache(maxsize=1024)  # programs have hundreds of sources, and are searched for several names
def _joined(text: bytes, form: str | None) -> tuple[bytes, ...]:
    if form == "fixed":
        cut = b"\n".join(line[:_COLUMNS] for line in text.splitlines())
        return (_FIXED.sub(b" ", text), _FIXED.sub(b"", text), _FIXED.sub(b"", cut))
    return (_FREE.sub(b" ", text), _FREE.sub(b"", text))


_COLUMNS = 72
_BETWEEN = rb"(?:[ \t]*(?:![^\n]*)?\r?\n)*"  # comments and empty lines
_FREE = re.compile(rb"&[ \t]*(?:![^\n]*)?\r?\n" + _BETWEEN + rb"[ \t]*&?")
_FIXED = re.compile(rb"[ \t]*\r?\n(?:[cC*!][^\n]*\n|[ \t]*\r?\n)*(?: {5}[^ 0\r\n]|\t[1-9])")
