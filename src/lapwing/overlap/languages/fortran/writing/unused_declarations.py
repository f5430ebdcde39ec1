"""Removes declarations of variables that a procedure's new text no longer names.

before:  integer :: i, left, right          after:  integer :: i, left
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lapwing.overlap.source.spans import Source
from lapwing.overlap.source.spelling import separated


def without_unused(text: str, source: Source) -> str:
    """A procedure's text without unused variables in one-line declarations."""
    lines = text.split("\n")
    if any((_HIDES.match(line) and not _MPIF.match(line)) or _COMPONENTS.match(line) for line in lines):
        return text
    while True:
        words = Counter(word.lower() for line in lines for word in re.findall(r"[A-Za-z]\w*", _code(line, source)))
        for number, line in enumerate(lines):
            new = None if _is_continued(lines, number, source) else _declaration(line, words)
            if new is not None and new != line:
                lines[number : number + 1] = [new] if new else []
                break
        else:
            return "\n".join(lines)


def _declaration(line: str, words: Counter[str]) -> str | None:
    """The line without the unused variables that it declares; None where it is no plain declaration."""
    found = _DECLARATION.fullmatch(line)
    if found is None:
        return None
    declarators = [part.strip() for part in separated(found["variables"])]
    names = [re.fullmatch(r"([A-Za-z]\w*)\s*(?:\(.*\))?\s*(?:\*\s*\d+)?", declarator) for declarator in declarators]
    if not all(names):
        return None
    kept = [d for d, name in zip(declarators, names, strict=True) if name is not None and words[name[1].lower()] > 1]
    if len(kept) == len(declarators):
        return line
    gap = found["variables"][len(found["variables"].rstrip()) :]
    return f"{found['head']}{', '.join(kept)}{gap}{found['comment']}".rstrip() if kept else ""


def _code(line: str, source: Source) -> str:
    """A line without its comment, if that is easy to find."""
    if source.form == "fixed" and line[:1] in "cC*":
        return ""
    return line if "'" in line or '"' in line else line.partition("!")[0]


def _is_continued(lines: Sequence[str], number: int, source: Source) -> bool:
    """Whether a line is, or may be, continued."""
    if source.form == "fixed":
        following = (line for line in lines[number : number + 2] if _code(line, source))
        return any(line[5:6].strip(" 0") for line in following) or len(lines[number]) > 72
    before = next((_code(line, source).strip() for line in reversed(lines[:number]) if _code(line, source).strip()), "")
    return before.endswith("&") or "&" in lines[number]


# Lines that may name variables implicitly; mpif.h uses none of the program's.
_HIDES = re.compile(r"\s*(?:#|include\b)", re.IGNORECASE)
# Components belong to a type's layout even if they are not named.
_COMPONENTS = re.compile(r"\s*(?:type\s*(?:,|::|&|$|\s[a-z])|structure\b|union\b|enum\b)", re.IGNORECASE)
_MPIF = re.compile(r"\s*include\s*['\"]mpif\.h['\"]\s*$", re.IGNORECASE)
_BOUNDS = r"\([^()]*(?:\([^()]*\)[^()]*)*\)"
_DECLARATION = re.compile(
    rf"(?P<head>\s*(?:type\s*\([^()]*\)(?=.*::)|(?:integer|real|logical|complex|character|double\s+precision)"
    rf"\s*(?:{_BOUNDS}|\*\s*\d+)?)(?:\s*,\s*(?:dimension\s*{_BOUNDS}|allocatable))*(?:\s*::\s*|\s+))"
    r"(?P<variables>[A-Za-z][^=!'\"&;:]*(?:\([^=!'\"&;]*)?)(?P<comment>\s*(?:![^$].*)?)",
    re.IGNORECASE,
)
