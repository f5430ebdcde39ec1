"""The text of C programs as compilers see it."""

from __future__ import annotations

from collections.abc import Iterator

from lapwing.overlap.ir.program import Program
from lapwing.overlap.source.spelling import spliced


def spellings(program: Program) -> Iterator[bytes]:
    """Texts that together contain all names that the program may use: of its sources and headers, and macros defined from
    outside."""
    yield from (spliced(source.data) for source in program.sources)
    yield from map(spliced, program.included)
