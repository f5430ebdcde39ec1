"""The preprocessor's lines: macros, included names, and which ``#if`` regions are certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lapwing.overlap.languages.fortran.parsing.condition import UNKNOWN, evaluate
from lapwing.overlap.languages.fortran.parsing.view import Piece, View
from lapwing.overlap.source.predefined_macros import is_predefined

_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(\()?(?:[ \t]+(.*))?")
_UNDEFINE = re.compile(r"#\s*undef\s+([A-Za-z_]\w*)")
_DEFINING = re.compile(r"#\s*(?:define|undef)\s+([A-Za-z_]\w*)")
_INCLUDE = re.compile(r"#\s*include\s*[\"<]([^\">]+)[\">]")
_CONDITIONAL = re.compile(r"#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", re.DOTALL)


# What `includes` says that an #include brings: the macros it may define; None where the file is not found.
Included = Callable[[str], Collection[str] | None]


@dataclass(frozen=True)
class Left:
    """A region of which a branch is left out that holds something, or would be with other macros, from ``#if`` to ``#endif``.
    ``pieces``: those branches.
    ``whole``: nothing is compiled there. ``macros``: those that decide because they are taken as undefined."""

    start: int
    end: int
    pieces: tuple[Piece, ...]
    whole: bool
    macros: frozenset[str]


@dataclass
class _Branch:
    condition: str
    start: int
    value: bool | None = None  # whether the condition holds; None if that is not certain
    end: int = 0
    inner: list[_Region] = field(default_factory=list)


@dataclass
class _Region:
    start: int
    end: int = 0
    branches: list[_Branch] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)

    @property
    def taken(self) -> _Branch | None:
        """The first branch whose condition may hold."""
        return next((branch for branch in self.branches if branch.value is not False), None)

    @property
    def is_certain(self) -> bool:
        return self.taken is None or self.taken.value is True


@dataclass(frozen=True)
class Conditions:
    """``dropped``: what is not compiled, conditional lines around it included. ``open``: regions that may be compiled or not.
    ``left``: regions of which something is left out."""

    dropped: tuple[Piece, ...]
    open: tuple[Piece, ...]
    left: tuple[Left, ...] = ()


@dataclass
class Known:
    """Macros as they are at a line. ``values``: text, UNKNOWN or, of those that are certainly not defined, None. ``includes``:
    what an #include may define. ``all``: no other macro is defined; else a file was not found that may define any."""

    values: dict[str, str | None]
    includes: Included = lambda _: ()
    all: bool = True
    _because: dict[str, frozenset[str]] = field(default_factory=dict)  # macros taken as undefined that values rest on

    def copy(self) -> Known:
        return Known(dict(self.values), self.includes, self.all)

    def take(self, line: str, around: Sequence[_Region]) -> None:
        """A line that defines or undefines. ``around``: the regions that it stands in the last branch of."""
        values = [region.branches[-1].value for region in around]
        because = frozenset[str]().union(*(region.macros for region in around))
        for left_out in _DEFINING.findall(line) if any(value is False for value in values) else ():
            # That it is left out may rest on others, too.
            self._because[left_out] = self._because.get(left_out, frozenset()) | because
        if any(value is False for value in values):
            return
        certain = all(values)
        define, undefine, name = _DEFINE.match(line), _UNDEFINE.match(line), included_name(line)
        if define:
            value = UNKNOWN if define[2] or not certain else (define[3] or "").strip()
            self.values[define[1]] = value
            self._because[define[1]] = because
        elif undefine:
            self.values[undefine[1]] = None if certain else UNKNOWN
        elif name is not None:
            brought = self.includes(name)
            self.all = self.all and brought is not None
            self.values.update(dict.fromkeys(brought or (), UNKNOWN))

    def value(self, condition: str) -> tuple[bool | None, frozenset[str]]:
        """Whether a condition holds, None if that is not certain; and the macros that were taken as undefined for that."""
        missing: set[str] = set()

        def lookup(name: str) -> str | None:
            missing.update(self._because.get(name, ()))
            if name in self.values:
                return self.values[name]
            if is_predefined(name):
                return UNKNOWN
            missing.add(name)
            return None if self.all else UNKNOWN

        value = evaluate(condition, lookup)
        return (None, frozenset()) if value is None else (value != 0, frozenset(missing))


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


def conditions(view: View, known: Known, holds_units: Callable[[Piece], bool]) -> Conditions:
    """Which lines are compiled. A macro that neither ``known`` nor the lines before name is not defined; but a region that
    ``holds_units``, whole ones, and that this would decide, is left open: it is read as a whole."""
    dropped: list[Piece] = []
    open_: list[Piece] = []
    left: list[Left] = []

    def settle(region: _Region) -> None:
        piece = Piece(region.start, region.end, "conditional compilation")
        if not region.is_certain or (region.macros and holds_units(piece)):
            open_.append(piece)
            for inner in (one for branch in region.branches for one in branch.inner):
                if holds_units(piece):
                    settle(inner)
            return
        kept = region.taken
        dropped.append(Piece(region.start, kept.start if kept else region.end, ""))
        if kept is not None:
            dropped.append(Piece(kept.end, region.end, ""))
        hidden = (Piece(b.start, b.end, "") for b in region.branches if b is not kept)
        pieces = tuple(piece for piece in hidden if _holds_anything(view, piece))
        decides = (
            bool(region.macros) and kept is not None and _holds_anything(view, kept) and not _guards_file(view, region)
        )
        if pieces or decides:
            whole = kept is None or not _holds_anything(view, kept)
            left.append(Left(region.start, region.end, pieces, whole, frozenset(region.macros)))
        for inner in kept.inner if kept is not None else ():
            settle(inner)

    for region in _regions(view, known):
        settle(region)
    return Conditions(tuple(dropped), tuple(open_), tuple(left))


def _holds_anything(view: View, piece: Piece | _Branch) -> bool:
    """Whether code, a directive, or a line of the preprocessor that changes what is compiled, stands there."""
    if view.text[piece.start : piece.end].strip():
        return True
    lines = (line for line in view.preprocessor if _CONDITIONAL.match(line.text) is None)
    return any(piece.start <= line.start < piece.end for line in (*lines, *view.directives))


def _guards_file(view: View, region: _Region) -> bool:
    """Whether the file stands in ``#ifndef NAME`` and defines that name at once, so that it is read only once."""
    around = [line for line in view.preprocessor if not region.start <= line.start < region.end]
    inside = [line for line in view.preprocessor if region.start < line.start]
    first = _DEFINE.match(inside[0].text) if inside else None
    alone = not (around or view.text[: region.start].strip() or view.text[region.end :].strip())
    return alone and first is not None and {first[1]} == region.macros


def conditional_regions(view: View) -> list[tuple[int, int]]:
    """From ``#if`` to its ``#endif``, both included; inner ones belong to the outer."""
    return [(region.start, region.end) for region in _regions(view, Known({}))]


def _regions(view: View, known: Known) -> list[_Region]:
    """Every region that lies in no other, with the values of its conditions at their place."""
    known = known.copy()
    found: list[_Region] = []
    stack: list[_Region] = []
    for line in view.preprocessor:
        match = _CONDITIONAL.match(line.text)
        if match is None:
            known.take(line.text, stack)
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
            region, branch = stack[-1], _Branch(spelled.get(word, condition), line.end)
            if any(before.value for before in region.branches):
                branch.value = False
            else:
                branch.value, macros = known.value(branch.condition)
                if branch.value is not None and any(before.value is None for before in region.branches):
                    branch.value = None
                region.macros |= macros
            region.branches.append(branch)
    for region in stack:
        # Without its #endif: everything that follows depends on it, and no preprocessor takes it.
        region.end = region.branches[-1].end = len(view.text)
        for branch in region.branches:
            branch.value = None
    return found


def outside(pieces: Sequence[Piece], dropped: Collection[Piece]) -> list[Piece]:
    """The pieces that do not begin inside what is dropped."""
    return [piece for piece in pieces if not any(part.start <= piece.start < part.end for part in dropped)]
