"""Where a program's text calls MPI, and whether the program model says so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from lapwing.overlap.ir.expressions import Invocation
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Call, Opaque, Statement

# Comments, strings and characters are matched first, so that what they hold is not.
_SCAN = re.compile(
    rb"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\bP?MPI_(?:T_)?[A-Z][a-z0-9]\w*(?=\s*\()""",
    re.DOTALL,
)


def calls_in_text(data: bytes, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Every ``MPI_name(`` of the bytes, outside comments and strings, with where it stands."""
    for found in _SCAN.finditer(data, start, end):
        if found.group()[:1] in (b"M", b"P"):
            yield found.group().decode(), found.start()


def unrepresented(program: Program) -> list[str]:
    """The calls of MPI that a function's text has and the model does not: neither called nor inside an Opaque statement."""
    missing = []
    for procedure in program.procedures.values():
        source = program.sources[procedure.source]
        statements = list(procedure.body.walk())
        barriers = [s.span for s in statements if isinstance(s, Opaque)]
        said = Counter(name for statement in statements for name in _called(statement))
        written: Counter[str] = Counter()
        for name, at in calls_in_text(source.data, procedure.body.span.start, procedure.body.span.end):
            if any(span.start <= at < span.end for span in barriers):
                continue
            written[name] += 1
            if written[name] > said[name]:
                missing.append(f"{source.path}:{source.line_of(at)}: {name}")
    return missing


def _called(statement: Statement) -> Iterator[str]:
    if isinstance(statement, Call) and statement.name:
        yield statement.name
    for expression in statement.expressions():
        for part in expression.walk():
            if isinstance(part, Invocation) and part.name:
                yield part.name
