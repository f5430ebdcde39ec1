"""Texts as compilers see them, for what is told by names alone."""

from __future__ import annotations

import re
from collections.abc import Iterator


def macros(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The macros that a text with joined lines defines: names, and what follows them, parameters included."""
    return ((found[1], found[2]) for found in _DEFINE.finditer(text))


def spliced(text: bytes) -> bytes:
    """With lines joined that a backslash ends."""
    return text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")


def separated(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


_DEFINE = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)
