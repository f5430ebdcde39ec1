"""A program's text as compilers see it, for what is told by names alone: lines joined, with headers and macros from outside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from lapwing.overlap.source.spans import Source


def spellings(sources: Iterable[Source], included: Iterable[bytes]) -> Iterator[bytes]:
    """Texts that together name all that a program of these sources and included texts may name."""
    for source in sources:
        yield from joined(source)
    yield from map(_spliced, included)


def macros(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The macros that a text with joined lines defines: names, and what follows them, parameters included."""
    return ((found[1], found[2]) for found in _DEFINE.finditer(text))


def joined(source: Source) -> tuple[bytes, ...]:
    """The source's text with its lines joined: as if none ended within a name, and in Fortran also as if all did."""
    return (_spliced(source.data),) if source.language != "fortran" else _joined(source.data, source.form)


@lru_cache(maxsize=1024)  # programs have hundreds of sources, and are searched for several names
def _joined(text: bytes, form: str | None) -> tuple[bytes, ...]:
    if form == "fixed":
        cut = b"\n".join(line[:_COLUMNS] for line in text.splitlines())
        return (_FIXED.sub(b" ", text), _FIXED.sub(b"", text), _FIXED.sub(b"", cut))
    return (_FREE.sub(b" ", text), _FREE.sub(b"", text))


def _spliced(text: bytes) -> bytes:
    return text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")


_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)
_COLUMNS = 72
_BETWEEN = rb"(?:[ \t]*(?:![^\n]*)?\r?\n)*"  # comments and empty lines
_FREE = re.compile(rb"&[ \t]*(?:![^\n]*)?\r?\n" + _BETWEEN + rb"[ \t]*&?")
_FIXED = re.compile(rb"[ \t]*\r?\n(?:[cC*!][^\n]*\n|[ \t]*\r?\n)*(?: {5}[^ 0\r\n]|\t[1-9])")
