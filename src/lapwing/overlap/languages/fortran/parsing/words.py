"""The names in a piece of Fortran that could not be read."""

from __future__ import annotations

import re

from lapwing.overlap.languages.shared.words import Word

_KEYWORDS = frozenset(
    """if elseif while select case do where forall write read print open close inquire allocate deallocate nullify
    integer real logical character complex type class dimension format data result bind rank associate concurrent
    stop call then else end exit cycle return""".split()
)
_COMMENT_OR_TEXT = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|![^\n]*")
_FIXED_COMMENT = re.compile(r"^[cC*][^\n]*", re.MULTILINE)
_IDENTIFIER = re.compile(r"(?P<before>\.|->|%)?\s*\b(?P<name>[A-Za-z_]\w*)\b(?P<after>\s*\()?")
_CALL = re.compile(r"\bcall\s+([a-z_]\w*)")


def words(text: str) -> list[Word]:
    """The identifiers of a text, in lower case."""
    text = _COMMENT_OR_TEXT.sub(" ", text).lower()
    calls = set(_CALL.findall(text))
    return [
        # Dots belong to operators (.and.); what follows one is no component.
        Word(
            name := match["name"],
            match["before"] != "%" and name not in _KEYWORDS and (match["after"] is not None or name in calls),
        )
        for match in _IDENTIFIER.finditer(text)
    ]


def blanked(text: str, form: str | None) -> str:
    """The text with comments and string literals blanked out."""
    if form == "fixed":
        text = _FIXED_COMMENT.sub(_blank, text)
    return _COMMENT_OR_TEXT.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])
