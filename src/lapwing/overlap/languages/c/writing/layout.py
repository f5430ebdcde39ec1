"""Layout of C: where statements, comments and blocks begin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from lapwing.overlap.source.indentation import indentation_step
from lapwing.overlap.source.spans import Source

_TAB = 8  # columns


class CLayout:
    """The layout of one file, which is indented by tabs or by blanks."""

    has_braces = True

    def __init__(self, source: Source) -> None:
        self._source = source

    @cached_property
    def step(self) -> int:
        return len(indentation_step(self._source).expandtabs(_TAB))

    def column(self, line: str) -> int:
        line = line.expandtabs(_TAB)
        return len(line) - len(line.lstrip(" \t"))

    def lines(self, lines: Sequence[str], indent: int) -> str:
        return "".join(self._line(line, indent + len(line) - len(line.lstrip(" "))) for line in lines)

    def _line(self, line: str, column: int) -> str:
        return f"{self._blanks(column)}{line.strip()}\n" if line.strip() else "\n"

    def comment(self, text: str, indent: int) -> str:
        return f"{self._blanks(indent)}/* {text} */\n"

    def enclosed(self, inner: str, indent: int) -> str:
        return f"{{\n{inner}{self._blanks(indent)}}}"

    def _blanks(self, columns: int) -> str:
        tabs = columns // _TAB if self._in_tabs else 0
        return "\t" * tabs + " " * (columns - _TAB * tabs)

    @cached_property
    def _in_tabs(self) -> bool:
        return indentation_step(self._source) == "\t"
