"""Which statement is of what kind, and where program units begin and end: by the statements' first words alone.

Only what tree-sitter cannot parse as a whole is looked at this way: broken sources, and statements in ``#if`` regions.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.overlap.languages.fortran.parsing.view import Piece, View


class Kind(enum.Enum):
    UNIT = "unit"  # the first statement of a program unit or an interface body
    END = "end"  # the END of one
    CONTAINS = "contains"
    GROUP = "group"  # begins or ends an interface or a derived type
    SPECIFICATION = "specification"
    CONSTRUCT = "construct"  # begins, divides or ends an executable construct
    EXECUTABLE = "executable"
    NOTHING = "nothing"  # cut out


_LABEL = re.compile(r"\s*\d*\s*")
_ASSIGNMENT = re.compile(r"[a-z]\w*\s*(\([^:]*\))?\s*=[^=>]")
_TYPE_WORDS = r"integer|real|double\s*precision|double\s*complex|complex|logical|character|type|class|byte"
_UNIT = re.compile(
    rf"((recursive|pure|impure|elemental|module|({_TYPE_WORDS})\s*(\*\s*\d+|\([^)]*\))?)\s+)*"
    r"(subroutine|function)\s+[a-z]\w*\s*(\(|$|bind|result)|program\s+\w+|module\s+(?!procedure\b)\w+$|submodule\s*\(|block\s*data\b"
)
_END = re.compile(r"end\s*(subroutine|function|program|module|submodule|procedure|block\s*data)?\s*(\w+\s*)?$")
_END_CONSTRUCT = re.compile(r"end\s*(if|do|select|where|forall|associate|block|critical|team)\b")
_GROUP = re.compile(r"(end\s*)?(interface|enum)\b|abstract\s+interface|type\s*(,|::|[a-z])|end\s*type")
_SPECIFICATION = re.compile(
    rf"({_TYPE_WORDS})\b|(use|implicit|dimension|common|equivalence|data|save|external|intrinsic|include|allocatable|pointer|"
    r"target|optional|intent|public|private|import|procedure|namelist|volatile|asynchronous|format|contiguous|value|"
    r"protected|generic|parameter|sequence|enumerator|module\s+procedure)\b"
)
_CONSTRUCT = re.compile(
    r"(\w+\s*:\s*)?(do\b|do\d|if\s*\(.*\)\s*then\s*\w*$|else|select\s*(case|type|rank)|case\s*(\(|default)|class\s*(is|default)"
    r"|type\s*is|block$|associate\s*\(|critical$|(where|forall)\s*\()"
)


def kind_of(statement: str) -> Kind:
    """``statement``: as in the view, label included."""
    text = statement[_LABEL.match(statement).end() :].lower().rstrip("; \t\n")  # type: ignore[union-attr]
    if _CONSTRUCT.match(text):
        return Kind.EXECUTABLE if _one_line(text) else Kind.CONSTRUCT
    if _END_CONSTRUCT.match(text):
        return Kind.CONSTRUCT
    if _ASSIGNMENT.match(text):
        return Kind.EXECUTABLE
    for pattern, kind in (
        (_UNIT, Kind.UNIT),
        (_END, Kind.END),
        (_GROUP, Kind.GROUP),
        (_SPECIFICATION, Kind.SPECIFICATION),
    ):
        if pattern.match(text):
            return kind
    return Kind.CONTAINS if text == "contains" else Kind.EXECUTABLE


def _one_line(text: str) -> bool:
    """Whether a WHERE or FORALL carries its statement: something follows the parenthesis that closes its condition."""
    if not text.startswith(("where", "forall")):
        return False
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ")" and depth == 0:
            return bool(text[index + 1 :].strip())
    return False


@dataclass(frozen=True)
class UnitExtent:
    """Statement numbers: the header, the first executable statement, CONTAINS or END, the END."""

    header: int
    executable: int
    executable_end: int
    end: int


def kinds_of(view: View, cut: Sequence[Piece] = ()) -> list[Kind]:
    """The kinds of all statements, those that begin inside what was cut out left out."""
    kinds = []
    for start, end in zip(view.starts, view.ends, strict=True):
        gone = any(piece.start <= start < piece.end for piece in cut)
        kinds.append(Kind.NOTHING if gone else kind_of(view.text[start:end].decode("latin-1")))
    return kinds


def unit_extents(kinds: Sequence[Kind]) -> list[UnitExtent]:
    """The program units, inner ones before those that contain them; a main program without PROGRAM included."""
    found: list[UnitExtent] = []
    open_units: list[list[int]] = []
    for number, kind in enumerate(kinds):
        if kind is Kind.UNIT or (not open_units and kind not in (Kind.END, Kind.NOTHING)):
            open_units.append([number, -1, -1])
        if not open_units:
            continue
        unit = open_units[-1]
        if kind in (Kind.EXECUTABLE, Kind.CONSTRUCT) and unit[1] < 0 and unit[2] < 0:
            unit[1] = number
        elif kind is Kind.CONTAINS:
            unit[2] = number
        elif kind is Kind.END:
            open_units.pop()
            stop = unit[2] if unit[2] >= 0 else number
            found.append(UnitExtent(unit[0], unit[1] if unit[1] >= 0 else stop, stop, number))
    return found
