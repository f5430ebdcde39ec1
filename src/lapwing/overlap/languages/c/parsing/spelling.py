"""C programs' texts as compilers see them."""

from __future__ import annotations

from collections.abc import Iterator

from lapwing.overlap.ir.program import Program
from lapwing.overlap.source.spelling import spliced


def spellings(program: Program) -> Iterator[bytes]:
    """Texts that together name all that the program may name: of its sources and headers, and macros from outside."""
    yield from (spliced(source.data) for source in program.sources)
    yield from map(spliced, program.included)
