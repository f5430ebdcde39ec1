"""tree-sitter's tree of a Fortran source, without errors in it: what cannot be parsed is cut out and listed as holes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import tree_sitter_fortran
from tree_sitter import Language, Node, Parser

from lapwing.overlap.languages.fortran.parsing.preprocessor import Known, Left, conditions, outside
from lapwing.overlap.languages.fortran.parsing.skeleton import Kind, UnitExtent, kind_of, kinds_of, unit_extents
from lapwing.overlap.languages.fortran.parsing.view import Piece, View, make_view

_BINARY_LITERAL = re.compile(rb"\b[xzob]'[0-9a-f]+'|\b[xzob]\"[0-9a-f]+\"", re.IGNORECASE)
_BLANK_COMMON = re.compile(rb"(\bcommon\s*)(/\s*/)", re.IGNORECASE)
# Words of the grammar that programs use as names.
_KEYWORD_NAMES = re.compile(
    rb"\b(class|type|data|target|value|status|name|size|kind|len|stat|file|unit|block|select|rank|team|event|sync|form|label"
    rb"|end|common|save|entry|format|include|none|only|result|shape|source|mold|in|out)\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(rb"(\s*\d*\s*)([a-z]\w*)(\s*(\(.*?\))?\s*=)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Parsed:
    """``root`` of a tree over ``view.text``, whose nodes' bytes are ``shift`` beyond the file's. ``holes``: statements cut out,
    with the reason, in order and apart; nothing of them is in the tree. ``preprocessor``, ``directives``: the view's
    lines that are not dropped with an ``#if``. ``left``: the regions of which something is."""

    view: View
    root: Node
    holes: tuple[Piece, ...]
    shift: int = 0
    preprocessor: tuple[Piece, ...] = ()
    directives: tuple[Piece, ...] = ()
    left: tuple[Left, ...] = ()

    def holes_between(self, start: int, end: int) -> tuple[Piece, ...]:
        if not self.holes:
            return ()
        return tuple(hole for hole in self.holes if start <= hole.start < end)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_fortran.language()))


def parse_text(text: bytes) -> Node:
    return _parser().parse(text if text.endswith(b"\n") else text + b"\n").root_node


def parse_file(data: bytes, form: str, known: Known, wrap: bool = False) -> Parsed:
    """Parses a whole file; with ``wrap`` an include file, as the inside of a subroutine. ``known``: what macros are before it."""
    view = make_view(data, form)
    decided = conditions(view, known, lambda piece: _holds_units(view, piece))
    if decided.dropped:
        # What is left out may stand in the middle of a statement.
        view = make_view(data, form, decided.dropped)
    prefix = b"subroutine wrapped\n" if wrap else b""
    suffix = b"\nend\n" if wrap else b""
    repaired: list[tuple[int, bytes]] = []
    dropped = list(decided.dropped)

    def parse(holes: list[Piece]) -> Node:
        return parse_text(prefix + _changed(view.text, [*holes, *dropped], repaired) + suffix)

    unreadable = [
        *outside(view.unreadable, dropped),
        *_conditional_holes(view, decided.open),
        *_with_lines_inside(view),
    ]
    holes = _merged(unreadable)
    root = parse(holes)
    if root.has_error:
        broken, repaired = _broken_statements(view, [*holes, *dropped])
        holes = _merged([*holes, *broken])
        root = parse(holes)
    if root.has_error:
        holes = _merged([*holes, *_broken_units(view, [*holes, *dropped], repaired)])
        root = parse(holes)
    if root.has_error:
        holes = _merged([*holes, *_incomplete_units(view, [*holes, *dropped])])
        root = parse(holes)
    if root.has_error:
        holes = [Piece(0, len(view.text), "syntax that cannot be parsed")]
        root = parse(holes)
    lines, directives = (tuple(outside(pieces, dropped)) for pieces in (view.preprocessor, view.directives))
    return Parsed(view, root, tuple(holes), len(prefix), lines, directives, decided.left)


def _changed(text: bytes, holes: list[Piece], repaired: list[tuple[int, bytes]]) -> bytes:
    if not holes and not repaired:
        return text
    out = bytearray(text)
    for start, statement in repaired:
        out[start : start + len(statement)] = statement
    for hole in holes:
        out[hole.start : hole.end] = b" " * (hole.end - hole.start)
    return bytes(out)


def _merged(holes: list[Piece]) -> list[Piece]:
    """In order, and one where several overlap."""
    result: list[Piece] = []
    for hole in sorted(holes, key=lambda piece: (piece.start, -piece.end)):
        if result and hole.start < result[-1].end:
            result[-1] = replace(result[-1], end=max(result[-1].end, hole.end))
        else:
            result.append(hole)
    return result


# ---- conditional compilation -------------------------------------------------------------------------------------------


def _conditional_holes(view: View, regions: Sequence[Piece]) -> list[Piece]:
    """Regions with executable statements in them, that do not hold whole program units."""
    holes = []
    for region in regions:
        declares = all(kind in (Kind.SPECIFICATION, Kind.GROUP) for kind in _kinds_in(view, region))
        if not (declares or _holds_units(view, region)):
            holes.append(region)
    return holes


def _holds_units(view: View, region: Piece) -> bool:
    kinds = _kinds_in(view, region)
    return bool(kinds) and kinds[0] is Kind.UNIT and kinds[-1] is Kind.END


def _kinds_in(view: View, region: Piece) -> list[Kind]:
    first, last = bisect_left(view.starts, region.start), bisect_left(view.starts, region.end)
    return [kind_of(view.text[view.starts[i] : view.ends[i]].decode("latin-1")) for i in range(first, last)]


def _with_lines_inside(view: View) -> Iterator[Piece]:
    """Executable statements with a line of the preprocessor in them: their text is not what is compiled."""
    for line in view.preprocessor:
        start, end = view.statement_at(line.start) if view.starts else (0, 0)
        if start < line.start < end and kind_of(view.text[start:end].decode("latin-1")) is not Kind.SPECIFICATION:
            yield Piece(start, end, "a statement with a line of the preprocessor in it")


# ---- broken sources ----------------------------------------------------------------------------------------------------


def _broken_statements(view: View, holes: list[Piece]) -> tuple[list[Piece], list[tuple[int, bytes]]]:
    """Statements that do not parse by themselves; a broken IF, DO, … takes its unit's whole executable part with it. Second,
    those that parse when spelled otherwise (of the same length), by their start."""
    kinds = kinds_of(view, holes)
    found: list[int] = []
    repaired: list[tuple[int, bytes]] = []
    for number, kind in enumerate(kinds):
        start, end = view.starts[number], view.ends[number]
        statement = view.text[start:end]
        if kind is Kind.NOTHING or parses_alone(statement, kind):
            continue
        better = next((text for text in respellings(statement) if parses_alone(text, kind)), None)
        if better is None:
            found.append(number)
        else:
            repaired.append((start, better))
    pieces = [Piece(view.starts[n], view.ends[n], "a statement that cannot be parsed") for n in found]
    broken = [number for number in found if kinds[number] is Kind.CONSTRUCT]
    for unit in unit_extents(kinds) if broken else ():
        if any(unit.executable <= number < unit.executable_end for number in broken):
            pieces.append(_executable_part(view, unit.executable, unit.executable_end))
    return pieces, repaired


def _executable_part(view: View, first: int, stop: int) -> Piece:
    return Piece(view.starts[first], view.ends[stop - 1], "constructs that cannot be parsed")


def respellings(statement: bytes) -> Iterator[bytes]:
    """The statement with names and literals tree-sitter stumbles over replaced by others as long: names are read from the file
    itself, so it is only the syntax that must be right."""

    def blurred(match: re.Match[bytes]) -> bytes:
        return b"z" * len(match.group())

    without_literals = _BINARY_LITERAL.sub(lambda match: b"1" * len(match.group()), statement)
    if without_literals != statement:
        yield without_literals
    unnamed = _BLANK_COMMON.sub(lambda match: match.group(1) + b" " * len(match.group(2)), statement)
    if unnamed != statement:
        yield unnamed
    first = _FIRST_WORD.match(statement)
    if first:
        begin, end = first.span(2)
        yield statement[:begin] + b"z" * (end - begin) + _KEYWORD_NAMES.sub(blurred, statement[end:])
    # The first word says what the statement is.
    word = re.match(rb"\s*\d*\s*\w+", statement)
    kept = word.end() if word else 0
    yield statement[:kept] + _KEYWORD_NAMES.sub(blurred, statement[kept:])


def parses_alone(statement: bytes, kind: Kind) -> bool:
    text = statement.decode("latin-1")
    if kind in (Kind.UNIT, Kind.END, Kind.CONTAINS, Kind.GROUP):
        return True
    if kind is Kind.CONSTRUCT:
        around = _construct_around(text)
        if around is None:
            return True
        before, after = around
    else:
        before, after = b"", b""
    return not parse_text(b"subroutine alone\n" + before + statement + after + b"\nend\n").has_error


def _construct_around(text: str) -> tuple[bytes, bytes] | None:
    """What makes a construct's first statement a whole construct; None for the others, which hold little to get wrong."""
    words = re.sub(r"^\s*\d+\s", "", text).lower()
    words = re.sub(r"^\s*\w+\s*:\s*", "", words)
    if re.match(r"else\s*if", words):
        return b"if (a) then\n", b"\nend if"
    if words.startswith("if"):
        return b"", b"\nend if"
    if re.match(r"do\s*\d", words) or not re.match(r"do|select|where", words):
        return None
    word = re.match(r"do|select|where", words)
    return b"", f"\nend {word.group() if word else ''}".encode()


def _broken_units(view: View, cut: list[Piece], repaired: list[tuple[int, bytes]]) -> list[Piece]:
    """The executable parts of the units that do not parse by themselves; the whole unit where that does not help."""
    holes: list[Piece] = []

    def parses(unit: UnitExtent) -> bool:
        text = _changed(view.text, [*cut, *holes], repaired)
        return not parse_text(text[view.starts[unit.header] : view.ends[unit.end]] + b"\n").has_error

    for unit in unit_extents(kinds_of(view, cut)):
        if parses(unit):
            continue
        if unit.executable < unit.executable_end:
            holes.append(_executable_part(view, unit.executable, unit.executable_end))
        if not parses(unit):
            holes.append(Piece(view.starts[unit.header], view.ends[unit.end], "a program unit that cannot be parsed"))
    return holes


def _incomplete_units(view: View, cut: list[Piece]) -> list[Piece]:
    """The statements that are in no unit with an END, in runs."""
    kinds = kinds_of(view, cut)
    inside = {number for unit in unit_extents(kinds) for number in range(unit.header, unit.end + 1)}
    runs: list[Piece] = []
    last = -2
    for number, kind in enumerate(kinds):
        if kind is Kind.NOTHING or number in inside:
            continue
        start = runs.pop().start if number == last + 1 else view.starts[number]
        runs.append(Piece(start, view.ends[number], "a program unit without its end"))
        last = number
    return runs
