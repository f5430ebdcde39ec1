"""Layout of Fortran, in either form: where statements, comments and blocks begin."""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.overlap.languages.fortran.writing.printer import FIXED_START, comment_line, statement_lines
from lapwing.overlap.source.spans import Source


class FortranLayout:
    """The layout of one file."""

    has_braces = False
    step = 3

    def __init__(self, source: Source) -> None:
        self._form = source.form or "free"

    def column(self, line: str) -> int:
        body = line[FIXED_START:] if self._form == "fixed" and len(line) > FIXED_START else line
        return len(line) - len(body.lstrip(" \t"))

    def lines(self, lines: Sequence[str], indent: int) -> str:
        return "".join(
            statement_lines(line.strip(), indent + len(line) - len(line.lstrip(" ")), self._form) for line in lines
        )

    def comment(self, text: str, indent: int) -> str:
        return comment_line(text, indent, self._form)

    def enclosed(self, inner: str, indent: int) -> str:
        return "then\n" + inner + self.lines(["end if"], indent).rstrip("\n")
