"""Lines for the preprocessor between statements: nothing moves across them, and nothing around them is taken apart."""

from __future__ import annotations

import bisect
import re

from lapwing.overlap.program import Procedure, Program, Statement

_DIRECTIVE = re.compile(rb"^[ \t]*#", re.MULTILINE)


class Fences:
    """Those of one procedure."""

    def __init__(self, program: Program, procedure: Procedure) -> None:
        data = program.sources[procedure.source].data
        start, end = procedure.span.start, procedure.span.end
        self._lines = [start + found.start() for found in _DIRECTIVE.finditer(data[start:end])]
        self._before: set[tuple[int, int]] = set()
        if self._lines:
            for block in [procedure.body, *(b for s in procedure.body.walk() for b in s.blocks())]:
                at = block.span.start
                for statement in block.statements:
                    if self._any(at, statement.span.start):
                        self._before.add((statement.span.start, statement.span.end))
                    at = statement.span.end

    def _any(self, start: int, end: int) -> bool:
        place = bisect.bisect_left(self._lines, start)
        return place < len(self._lines) and self._lines[place] < end

    def before(self, statement: Statement) -> bool:
        """Whether a directive stands between the statement and the one before it in its block."""
        return (statement.span.start, statement.span.end) in self._before

    def inside(self, statement: Statement) -> bool:
        """Whether a directive stands in the statement."""
        return statement.span.source >= 0 and self._any(statement.span.start, statement.span.end)

    @property
    def any(self) -> bool:
        return bool(self._lines)
