"""The preprocessor's lines: macros, included names, and which ``#if`` regions are certain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lapwing.overlap.fortran.view import Piece, View

_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(\()?(?:[ \t]+(.*))?")
_UNDEFINE = re.compile(r"#\s*undef\s+([A-Za-z_]\w*)")
_INCLUDE = re.compile(r"#\s*include\s*[\"<]([^\">]+)[\">]")
_CONDITIONAL = re.compile(r"#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", re.DOTALL)
_DEFINED = re.compile(r"(!?)\s*(?:defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+))")
_INTEGER = re.compile(r"\d+")
UNKNOWN = "(unknown)"


@dataclass
class _Branch:
    condition: str
    start: int
    end: int = 0
    inner: list[_Region] = field(default_factory=list)


@dataclass
class _Region:
    start: int
    end: int = 0
    branches: list[_Branch] = field(default_factory=list)


@dataclass(frozen=True)
class Conditions:
    """``dropped``: what is not compiled, conditional lines around it included. ``open``: regions that may be compiled or not."""

    dropped: tuple[Piece, ...]
    open: tuple[Piece, ...]


def macros_of(lines: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """What ``#define`` and the command line put for a name; functions and names defined twice stand for something unknown."""
    macros = dict(given)
    for line in lines:
        define = _DEFINE.match(line)
        if define:
            name, function, value = define.groups()
            text = UNKNOWN if function else (value or "").strip()
            macros[name] = text if macros.get(name, text) == text else UNKNOWN
    return macros


def included_name(line: str) -> str | None:
    """What ``#include`` names."""
    match = _INCLUDE.match(line)
    return match.group(1) if match else None


def conditions(view: View, given: Mapping[str, str]) -> Conditions:
    """``given``: macros that are certain. Any other may be defined elsewhere: by a file or the build's flags."""
    undefined = {match.group(1) for line in view.preprocessor if (match := _UNDEFINE.match(line.text))}
    known = {name: value for name, value in given.items() if name not in undefined}
    dropped: list[Piece] = []
    left: list[Piece] = []
    for region in _regions(view):
        _settle(region, known, dropped, left)
    return Conditions(tuple(dropped), tuple(left))


def conditional_regions(view: View) -> list[tuple[int, int]]:
    """From ``#if`` to its ``#endif``, both included; inner ones belong to the outer."""
    return [(region.start, region.end) for region in _regions(view)]


def _regions(view: View) -> list[_Region]:
    found: list[_Region] = []
    stack: list[_Region] = []
    for line in view.preprocessor:
        match = _CONDITIONAL.match(line.text)
        if match is None:
            continue
        word, condition = match.group(1), match.group(2).strip()
        if word.startswith("if"):
            region = _Region(line.start)
            (stack[-1].branches[-1].inner if stack else found).append(region)
            stack.append(region)
        elif not stack:
            continue
        else:
            stack[-1].branches[-1].end = line.start
        if word == "endif":
            stack.pop().end = line.end
        else:
            spelled = {"ifdef": f"defined({condition})", "ifndef": f"!defined({condition})", "else": "1"}
            stack[-1].branches.append(_Branch(spelled.get(word, condition), line.end))
    for region in stack:
        # Without its #endif: everything that follows depends on it.
        region.end = region.branches[-1].end = len(view.text)
    return found


def _settle(region: _Region, known: Mapping[str, str], dropped: list[Piece], left: list[Piece]) -> None:
    """Notes the branches that are not compiled, or the whole region where that is not certain."""
    values = [_value(branch.condition, known) for branch in region.branches]
    taken = next((number for number, value in enumerate(values) if value is not False), None)
    if taken is not None and values[taken] is None:
        left.append(Piece(region.start, region.end, "conditional compilation"))
        return
    kept = None if taken is None else region.branches[taken]
    dropped.append(Piece(region.start, kept.start if kept else region.end, ""))
    if kept is not None:
        dropped.append(Piece(kept.end, region.end, ""))
        for inner in kept.inner:
            _settle(inner, known, dropped, left)


def _value(condition: str, known: Mapping[str, str]) -> bool | None:
    """Whether a condition holds; None if that is not certain."""
    text = known.get(condition, condition).strip()
    if _INTEGER.fullmatch(text):
        return int(text) != 0
    match = _DEFINED.fullmatch(condition)
    if match is None:
        return None
    name = match.group(2) or match.group(3)
    return (match.group(1) == "") if name in known else None


def outside(pieces: Sequence[Piece], dropped: Collection[Piece]) -> list[Piece]:
    """The pieces that do not begin inside what is dropped."""
    return [piece for piece in pieces if not any(part.start <= piece.start < part.end for part in dropped)]
