"""The names in a piece of C that could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lapwing.overlap.languages.shared.words import Word

_KEYWORDS = frozenset(
    "if while for switch return sizeof case do else goto break continue default NULL EOF FILE".split()
)
_COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'", re.DOTALL)
_BLANKED = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_IDENTIFIER = re.compile(r"(?P<before>\.|->|%)?\s*\b(?P<name>[A-Za-z_]\w*)\b(?P<after>\s*\()?")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(.*)$", re.MULTILINE)


def words(text: str) -> list[Word]:
    """The identifiers of a text. Macros are conventionally in capitals, and may stand for anything."""
    return [
        Word(
            name := match["name"],
            match["before"] is None and name not in _KEYWORDS and (match["after"] is not None or name.isupper()),
        )
        for match in _IDENTIFIER.finditer(_COMMENT_OR_TEXT.sub(" ", text))
    ]


def definitions(text: str) -> Iterator[tuple[str, str]]:
    """The macros that a text defines, each with its replacement, parameters included."""
    return ((found[1], found[2]) for found in _DEFINE.finditer(text))


def blanked(text: str) -> str:
    """The text with comments and string literals blanked out."""
    return _BLANKED.sub(lambda match: " " * len(match[0]), text)
