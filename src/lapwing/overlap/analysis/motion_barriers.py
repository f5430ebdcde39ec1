"""Motion barriers: preprocessor lines and jump targets between statements. Nothing moves across them, and no statement that
contains one is split."""

from __future__ import annotations

import bisect
import re

from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Jump, Statement
from lapwing.overlap.source.spans import Span

_DIRECTIVE = re.compile(rb"^[ \t]*#", re.MULTILINE)


class MotionBarriers:
    """The motion barriers of one procedure."""

    def __init__(self, program: Program, procedure: Procedure) -> None:
        data = program.sources[procedure.source].data
        start, end = procedure.span.start, procedure.span.end
        # Lines of regions that conditional compilation omits entirely move with the statement below them.
        self._lines = [
            start + found.start()
            for found in _DIRECTIVE.finditer(data[start:end])
            if not program.is_left_out(procedure.source, start + found.start())
        ]
        self._before: set[tuple[int, int]] = set()
        self._targets = {s.to for s in procedure.body.walk() if isinstance(s, Jump) and s.kind == "goto"}
        if self._lines or self._targets:
            for block in [procedure.body, *(b for s in procedure.body.walk() for b in s.blocks())]:
                at = block.span.start
                for statement in block.statements:
                    jumped_to = self._targets and statement.label is not None
                    if jumped_to or self._any(at, statement.span.start):
                        self._before.add((statement.span.start, statement.span.end))
                    at = statement.span.end

    def _any(self, start: int, end: int) -> bool:
        place = bisect.bisect_left(self._lines, start)
        return place < len(self._lines) and self._lines[place] < end

    def before(self, place: Span) -> bool:
        """Whether a directive precedes the statement that is, or was, there in its block, or a jump may arrive at it."""
        return (place.start, place.end) in self._before

    def inside(self, statement: Statement) -> bool:
        """Whether the statement contains a directive or a jump target."""
        if self._targets and any(inner.label is not None for inner in statement.walk()):
            return True
        return statement.span.source >= 0 and self._any(statement.span.start, statement.span.end)

    @property
    def any(self) -> bool:
        return bool(self._lines or self._targets)
