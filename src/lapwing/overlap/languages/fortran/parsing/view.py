"""A Fortran source as tree-sitter reads it: the same length, every byte that counts at its own place.

Comments, continuation marks, preprocessor lines and whatever stands beyond column 72 become blanks; a statement that
spans lines becomes one line, since the line ends inside it become blanks, too. So a node's byte range in the view is
its byte range in the file, in fixed and in free form alike.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FIXED_SUFFIXES = {".f", ".for", ".ftn", ".f77", ".fpp"}
FIRST_COLUMN, LAST_COLUMN = 7, 72

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb"'[^']*'|\"[^\"]*\"|[!;&'\"]")
_CLOSING = {quote: re.compile(quote) for quote in (b"'", b'"')}
_DIRECTIVE = re.compile(rb"[!cC*]\$(omp|acc)\b", re.IGNORECASE)
_CONDITIONAL_LINE = re.compile(rb"[!cC*]\$[ \t0-9]")
# What compilers of punch cards' time put there: a card's number or the deck's name.
_SEQUENCE_NUMBER = re.compile(rb"[A-Za-z0-9 ]{1,8}[ \t]*\Z")
_FREE_START = re.compile(rb" {1,4}[A-Za-z]|[abe-zABE-Z]")
_FIXED_COMMENT = re.compile(rb"[cC*](?:[ \t]*\r?\Z|[-*=]{3}|[ \t]+[^ \t=(%])")


@dataclass(frozen=True)
class Piece:
    """A range of bytes and why it matters: the text of a preprocessor line, a directive, or what is wrong there."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class View:
    """``text``: what tree-sitter reads. ``starts`` and ``ends``: of every statement, label and semicolon included, in order.
    ``unreadable``: statements whose text in the view is not what a compiler reads."""

    text: bytes
    form: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    preprocessor: tuple[Piece, ...]
    directives: tuple[Piece, ...]
    unreadable: tuple[Piece, ...]

    def statement_at(self, offset: int) -> tuple[int, int]:
        """The first and last byte (not included) of the statement that holds the byte at ``offset``."""
        index = max(bisect_right(self.starts, offset) - 1, 0)
        return self.starts[index], self.ends[index]


def form_of(path: Path, data: bytes) -> str:
    """ "fixed" or "free": by the suffix, unless the text cannot be that."""
    lines = data.split(b"\n")
    if path.suffix.lower() in FIXED_SUFFIXES:
        return "free" if any(map(_cannot_be_fixed, lines)) else "fixed"
    fixed = any(map(_only_fixed, lines)) and not any(map(_cannot_be_fixed, lines)) and not any(map(_only_free, lines))
    return "fixed" if fixed else "free"


def _cannot_be_fixed(line: bytes) -> bool:
    """A statement that begins in columns 2 to 5, or in column 1 with a word that is no comment."""
    return _FREE_START.match(line) is not None


def _only_fixed(line: bytes) -> bool:
    """A comment of fixed form."""
    return _FIXED_COMMENT.match(line) is not None


def _only_free(line: bytes) -> bool:
    """A line that is continued."""
    return line.split(b"!")[0].rstrip().endswith(b"&")


def make_view(data: bytes, form: str, dropped: Sequence[Piece] = ()) -> View:
    """The view of a file without the lines that are ``dropped``."""
    builder = _FixedView(data) if form == "fixed" else _FreeView(data)
    return builder.build(dropped)


class _ViewBuilder:
    """Copies statements byte by byte into blanks, and notes where they begin and end."""

    form = ""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.out = bytearray(b" " * len(data))
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.preprocessor: list[Piece] = []
        self.directives: list[Piece] = []
        self.bad: dict[int, str] = {}  # what is wrong with a statement, by its number
        self.quote: bytes | None = None  # the literal that is open at the end of the last line
        self.marks: list[int] = []  # where "&" stands outside of literals in the line copied last
        self.comment = False  # whether the line copied last ends in a comment

    def build(self, dropped: Sequence[Piece]) -> View:
        position = 0
        gone = sorted((piece.start, piece.end) for piece in dropped)
        in_preprocessor = False
        # A mark of the encoding some editors put before the text.
        mark = len(_BYTE_ORDER_MARK) if self.data.startswith(_BYTE_ORDER_MARK) else 0
        for line in self.data.split(b"\n"):
            text = line[:-1] if line.endswith(b"\r") else line
            if in_preprocessor or text.startswith(b"#"):
                self.preprocessor.append(Piece(position, position + len(text), text.decode("latin-1")))
                in_preprocessor = text.endswith(b"\\")
            elif not _is_in(gone, position):
                self.line(position + mark, text[mark:])
            mark = 0
            position += len(line) + 1
        self.finish()
        bad = [Piece(self.starts[number], self.ends[number], text) for number, text in self.bad.items()]
        return View(
            bytes(self.out),
            self.form,
            tuple(self.starts),
            tuple(self.ends),
            tuple(self.preprocessor),
            tuple(self.directives),
            tuple(bad),
        )

    def line(self, position: int, text: bytes) -> None:
        """Takes in one line; each form reads its lines in its own way."""
        raise NotImplementedError

    def begin(self, position: int) -> None:
        """A new statement's first line begins at ``position``: end the one before."""
        self.finish()
        if self.starts:
            self.out[position - 1] = 0x0A
        self.starts.append(-1)
        self.ends.append(-1)

    def finish(self) -> None:
        if self.starts and self.starts[-1] < 0:
            self.starts.pop()
            self.ends.pop()
        self.quote = None

    def copy(self, position: int, text: bytes) -> bytes:
        """Copies a line's part of a statement without its comment; returns what was copied, right-stripped."""
        self.marks.clear()
        end, semicolons = self.scan(text)
        self.comment = end < len(text)
        kept = text[:end].rstrip()
        if not kept:
            return kept
        previous = 0
        empty: list[int] = []  # that end nothing
        for semicolon in semicolons:
            self.extend(position, text, previous, semicolon + 1)
            if self.starts[-1] >= 0:
                self.starts.append(-1)
                self.ends.append(-1)
            else:
                empty.append(semicolon)
            previous = semicolon + 1
        self.extend(position, text, previous, len(kept))
        self.out[position : position + len(kept)] = kept
        for semicolon in empty:
            self.out[position + semicolon] = 0x20
        if any(mark < len(kept) - (self.form == "free") for mark in self.marks):
            self.note("a continuation mark inside a line")
        return kept

    def extend(self, position: int, text: bytes, first: int, last: int) -> None:
        part = text[first:last]
        stripped = part.lstrip()
        if not stripped.rstrip() or (self.starts[-1] < 0 and stripped == b";"):
            return
        if self.starts[-1] < 0:
            self.starts[-1] = position + first + len(part) - len(stripped)
        self.ends[-1] = position + first + len(part.rstrip())

    def scan(self, text: bytes) -> tuple[int, list[int]]:
        """Where the line's comment begins, and its semicolons outside of literals."""
        start = 0
        if self.quote is not None:
            closing = _CLOSING[self.quote].search(text)
            if closing is None:
                return len(text), []
            start = closing.end()
            self.quote = None
        semicolons: list[int] = []
        for token in _TOKEN.finditer(text, start):
            found = token.group()
            if found == b"!":
                return token.start(), semicolons
            if found == b"&":
                self.marks.append(token.start())
            elif found == b";":
                semicolons.append(token.start())
            elif len(found) == 1:
                # A quote without its partner: the literal goes on in the next line, whatever follows belongs to it.
                self.quote = found
                return len(text), semicolons
        return len(text), semicolons

    def directive(self, position: int, text: bytes) -> None:
        stripped = text.lstrip()
        if _DIRECTIVE.match(stripped) or _CONDITIONAL_LINE.match(stripped):
            start = position + len(text) - len(stripped)
            self.directives.append(Piece(start, position + len(text.rstrip()), stripped.decode("latin-1")))

    def note(self, message: str) -> None:
        if self.starts and self.starts[-1] >= 0:
            self.bad.setdefault(len(self.starts) - 1, message)


class _FixedView(_ViewBuilder):
    form = "fixed"

    def line(self, position: int, text: bytes) -> None:
        if text[:1] in (b"c", b"C", b"*", b"!", b"d", b"D"):
            self.directive(position, text)
            return
        body = text.lstrip()
        if not body:
            return
        indent = len(text) - len(body)
        if body[:1] == b"!" and indent != 5:
            return
        tab = text.find(b"\t", 0, 6)
        if tab >= 0:
            continued = text[tab + 1 : tab + 2] in b"123456789" and len(text) > tab + 1
            field = tab + 2 if continued else tab + 1
            limit = tab + 1 + LAST_COLUMN - 6
        else:
            continued = len(text) > 5 and text[5:6] not in (b" ", b"0") and not text[:5].strip()
            field = 6
            limit = LAST_COLUMN
        if not continued:
            self.begin(position)
            label = text[: min(field, 5)]
            if label.strip():
                self.extend(position, label, 0, len(label))
                self.out[position : position + len(label)] = label.replace(b"\t", b" ")
                if not label.strip().isdigit():
                    self.note("columns 1 to 5 hold no label")
        elif not self.starts:
            return
        self.copy_field(position + field, text[field:limit], text[limit:])

    def copy_field(self, position: int, text: bytes, beyond: bytes) -> None:
        self.copy(position, text)
        if (
            beyond.strip()
            and not self.comment
            and beyond.lstrip()[:1] != b"!"
            and not _is_sequence_number(text, beyond)
        ):
            self.note("text beyond column 72")


def _is_sequence_number(text: bytes, beyond: bytes) -> bool:
    """Whether columns 73 to 80 hold a card's number and not the rest of the statement."""
    touches = len(text) == LAST_COLUMN - FIRST_COLUMN + 1 and not text.endswith(b" ")
    return _SEQUENCE_NUMBER.match(beyond) is not None and (not touches or len(beyond.rstrip()) == 8)


class _FreeView(_ViewBuilder):
    form = "free"

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.continues = False
        self.last = b""

    def line(self, position: int, text: bytes) -> None:
        body = text.lstrip()
        indent = len(text) - len(body)
        if not body:
            return
        if body[:1] == b"!" and self.quote is None:
            self.directive(position, text)
            return
        split = stray = False
        if self.continues and self.starts:
            if body[:1] == b"&":
                indent += 1
                body = body[1:]
                split = _is_word(self.last[-1:]) and _is_word(body[:1]) and self.quote is None
        else:
            self.begin(position)
            stray = body[:1] == b"&"
        quoted_before = self.quote is not None
        kept = self.copy(position + indent, body)
        self.continues = kept.endswith(b"&")
        if self.continues:
            mark = position + indent + len(kept) - 1
            self.out[mark] = 0x20
            self.last = kept[:-1]
        elif self.quote is not None:
            self.quote = None
            self.note("a character literal without its end")
        if stray:
            self.note("a continuation of nothing")
        if split and not quoted_before:
            self.note("a word split over two lines")

    def finish(self) -> None:
        super().finish()
        self.continues = False


def _is_in(pieces: Sequence[tuple[int, int]], offset: int) -> bool:
    place = bisect_right(pieces, (offset, math.inf)) - 1
    return place >= 0 and offset < pieces[place][1]


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_"
