"""Declares external procedures where IMPLICIT NONE (EXTERNAL) requires it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lapwing.overlap.languages.fortran.writing.printer import statement_lines
from lapwing.overlap.source.replacements import Edit
from lapwing.overlap.source.spans import Source


def external_statements(source: Source, texts: Sequence[str]) -> list[Edit]:
    """Declarations of the support procedures that ``texts`` call, after every IMPLICIT NONE that requires them. In a module
    they are private: scopes that use it have their own."""
    names = sorted({name.lower() for text in texts for name in _CALLED.findall(text)})
    if not names or not wants_external(source):
        return []
    data = source.data.decode("latin-1")
    edits, in_module = [], False
    for line in _LINE.finditer(data):
        head = _HEAD.match(line[0])
        if head is not None:
            in_module = head[1].lower().endswith("module")
        elif _IMPLICIT.fullmatch(line[0].rstrip()):
            words = ("external ::", "private ::") if in_module else ("external ::",)
            form = source.form or "free"
            indent = 6 if form == "fixed" else len(line[0]) - len(line[0].lstrip(" "))
            written = (statement_lines(f"{word} {', '.join(names)}", indent, form) for word in words)
            text = "".join(lines.rstrip("\n") + "\n" for lines in written)
            edits.append(Edit(line.end(), line.end(), text))
    return edits


def wants_external(source: Source) -> bool:
    """Whether this file requires external procedures to be declared somewhere."""
    return _IMPLICIT.search(source.data.decode("latin-1")) is not None


_CALLED = re.compile(r"(?i)\bcall (lapwing_\w+)")
_LINE = re.compile(r"[^\n]*\n")
_IMPLICIT = re.compile(r"(?im)^[ \t]*implicit[ \t]+none[ \t]*\([^)\n]*\bexternal\b[^)\n]*\)[ \t]*(?:![^\n]*)?$")
# Heads of program units and procedures, without ``module procedure`` and ``end``.
_HEAD = re.compile(
    r"(?i)[ \t]*((?:sub)?module(?=[ \t]+(?!procedure\b)\w|[ \t]*\()|program|(?:(?!end)[\w()=*]+[ \t]+)*(?:subroutine|function))\b"
)
