"""A program's text as compilers see it, for searches by name: with lines joined, headers, and macros defined from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.source.spans import Source
from lapwing.overlap.source.spelling import spliced


def spellings(sources: Iterable[Source], included: Iterable[bytes]) -> Iterator[bytes]:
    """Texts that together contain all names that a program of these sources and included texts may use."""
    for source in sources:
        yield from language_of(source).joined(source)
    yield from map(spliced, included)
