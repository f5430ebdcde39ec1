"""Directives for threads and accelerators (OpenMP, OpenACC): what they govern becomes Opaque, as nothing may be put there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lapwing.overlap.ir.statements import Opaque, Statement
from lapwing.overlap.languages.fortran.parsing.view import Piece
from lapwing.overlap.source.spans import Span

REASON = "a directive for threads"

_WORDS = re.compile(r"[!c*]\$(?:omp|acc)(&?)\s*(end\s*)?(.*)", re.IGNORECASE | re.DOTALL)
_ALONE = re.compile(
    r"barrier|flush|taskwait|taskyield|threadprivate|cancel|declare|update|enter|exit|wait|init|shutdown|set\b|cache|routine"
)
_NEXT_STATEMENT = re.compile(r"(\w+\s*)*?(do|loop|simd|atomic)\b")


def with_directives(
    source: int,
    statements: Sequence[Statement],
    directives: Sequence[Piece],
    opaque: Callable[[Span, str, str | None], Opaque],
) -> list[Statement]:
    """The statements of a list with the directives between them, each with what it governs as one Opaque: the next statement, or
    all up to its END directive."""
    items: list[Statement | Piece] = sorted([*statements, *directives], key=_start)
    result: list[Statement] = []
    number = 0
    while number < len(items):
        item = items[number]
        if isinstance(item, Statement):
            result.append(item)
            number += 1
            continue
        last = _governed(items, number)
        labels = [part.label for part in items[number : last + 1] if isinstance(part, Statement) and part.label]
        span = Span(source, item.start, max(_end(part) for part in items[number : last + 1]))
        result.append(opaque(span, REASON, labels[0] if labels else None))
        number = last + 1
    return result


def _governed(items: Sequence[Statement | Piece], number: int) -> int:
    """The last item the directive at ``number`` governs; itself if it stands alone."""
    item = items[number]
    match = _WORDS.match(item.text) if isinstance(item, Piece) else None
    if match is None or match.group(1) or match.group(2) or _ALONE.match(match.group(3).lower()):
        return number
    words = match.group(3).lower()
    if _NEXT_STATEMENT.match(words.split("(")[0]):
        return next((i for i in range(number, len(items)) if isinstance(items[i], Statement)), len(items) - 1)
    name = words.split("(")[0].split()[0] if words.split() else ""
    return next((i for i in range(number + 1, len(items)) if _ends(items[i], name)), len(items) - 1)


def _ends(item: Statement | Piece, name: str) -> bool:
    match = _WORDS.match(item.text) if isinstance(item, Piece) else None
    return match is not None and match.group(2) is not None and match.group(3).lower().startswith(name)


def _start(item: Statement | Piece) -> int:
    return item.start if isinstance(item, Piece) else item.span.start


def _end(item: Statement | Piece) -> int:
    return item.end if isinstance(item, Piece) else item.span.end
