"""A C file as text: its tokens, its preprocessor lines and the regions that conditional compilation makes."""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    rb"""
    (?P<blank>(?:[ \t\f\v\r\n]|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|u|U|L)?R"(?P<fence>[^()\s\\]{0,16})\(.*?\)(?P=fence)")
  | (?P<string>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*"?)
  | (?P<character>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])*'?)
  | (?P<word>[A-Za-z_$\x80-\xff][A-Za-z_$0-9\x80-\xff]*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z]|[0-9A-Za-z_.])*)
  | (?P<sign><<=|>>=|\.\.\.|->\*?|\+\+|--|&&|\|\||<<|>>|::|[-+*/%&|^<>=!]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE = re.compile(
    rb"""\#(?:\\\r?\n|/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|[^\n\\]|\\)*""",
    re.VERBOSE | re.DOTALL,
)
INCLUDES = frozenset({"include", "include_next", "import"})
EFFECTIVE = INCLUDES | {"define", "undef", "pragma"}  # directives that change code
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|//[^\n]*", re.DOTALL)
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_DIRECTIVE = re.compile(rb"#\s*(\w*)\s*(.*)", re.DOTALL)


@dataclass(frozen=True)
class Directive:
    """``name``: "if", "pragma", …; ``rest``: what follows it; ``start``: of its line; ``end``: before its line's end."""

    name: str
    rest: str
    start: int
    end: int


@dataclass
class Region:
    """From ``#if`` to ``#endif``. ``branches``: the text of each, between directive lines; ``conditions``: of all but #else."""

    start: int
    end: int
    head: str
    branches: list[tuple[int, int]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    def macros(self) -> frozenset[str]:
        """The names that decide which branch is compiled."""
        return frozenset(_NAME.findall(_COMMENT.sub(" ", "\n".join(self.conditions)))) - {"defined"}


class Text:
    """The tokens of a file (blanks, comments and directives left out) and its directives."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.directives: list[Directive] = []
        self._read()
        self.regions = _regions(self.directives, len(data))

    def _read(self) -> None:
        position, size = (3 if self.data.startswith(_BYTE_ORDER_MARK) else 0), len(self.data)
        match = _TOKEN.match
        fresh = True  # nothing but blanks and comments on this line so far
        while position < size:
            found = match(self.data, position)
            if found is None:  # pragma: no cover (the last alternative takes any byte)
                break
            kind, end = found.lastgroup, found.end()
            if kind == "blank":
                fresh = fresh or b"\n" in found.group()
            elif kind == "sign" and fresh and found.group()[:1] == b"#":
                end = self._directive(position)
            elif kind != "comment":
                fresh = False
                self.starts.append(position)
                self.ends.append(end)
            position = end

    def _directive(self, start: int) -> int:
        line = _LINE.match(self.data, start)
        end = line.end() if line else start + 1
        found = _DIRECTIVE.match(self.data, start, end)
        if found:
            name, rest = found.group(1).decode("latin-1"), found.group(2).decode("latin-1")
            self.directives.append(Directive(name, rest.strip(), start, start + len(found.group().rstrip())))
        return end

    def tokens(self, start: int, end: int) -> range:
        """The numbers of the tokens that start in those bytes."""
        return range(bisect.bisect_left(self.starts, start), bisect.bisect_left(self.starts, end))

    def token(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.ends[number]]

    def next_token(self, offset: int) -> int | None:
        """The number of the first token at or after ``offset``."""
        number = bisect.bisect_left(self.starts, offset)
        return number if number < len(self.starts) else None

    def directives_in(self, start: int, end: int) -> list[Directive]:
        """The directives that start in those bytes."""
        first = bisect.bisect_left(self.directives, start, key=lambda directive: directive.start)
        last = bisect.bisect_left(self.directives, end, key=lambda directive: directive.start)
        return self.directives[first:last]

    def holds_anything(self, region: Region) -> bool:
        """Whether code, or a directive that changes code, stands in any branch."""
        inside = self.directives_in(region.start, region.end)
        return bool(self.tokens(region.start, region.end)) or any(one.name in EFFECTIVE for one in inside)

    def regions_in(self, start: int, end: int, whole: bool = True) -> list[Region]:
        """The conditional regions that start in those bytes; ``whole``: and end there."""
        first = bisect.bisect_left(self.regions, start, key=lambda region: region.start)
        last = bisect.bisect_left(self.regions, end, key=lambda region: region.start)
        return [region for region in self.regions[first:last] if region.end <= end or not whole]


def named_words(data: bytes) -> Counter[str]:
    """How often a file names what: comments do not count, and strings only where they may be assembly or another name's
    meaning."""
    text = Text(data)
    tokens = [text.token(number) for number in range(len(text.starts))]
    quoted = (b"'",) if not _NAMING_STRINGS.isdisjoint(tokens) else (b"'", b'"')
    tokens = [token for token in tokens if not token.endswith(quoted)]
    words = _NAME.findall(b" ".join(tokens).decode("latin-1"))
    return Counter(words + [word for directive in text.directives for word in _NAME.findall(directive.rest)])


_NAMING_STRINGS = frozenset(
    f"{before}{word}{after}".encode()
    for word in ("asm", "alias", "weakref", "ifunc")
    for before, after in (("", ""), ("__", ""), ("__", "__"))
)


def _regions(directives: Sequence[Directive], end: int) -> list[Region]:
    """Every conditional region, nested ones too; one that is never closed ends with the file."""
    found: list[Region] = []
    open_: list[tuple[Region, int]] = []
    for directive in directives:
        if directive.name in ("if", "ifdef", "ifndef"):
            region = Region(directive.start, directive.end, f"#{directive.name} {directive.rest}")
            region.conditions.append(directive.rest)
            found.append(region)
            open_.append((region, directive.end))
        elif open_ and directive.name in ("elif", "elifdef", "elifndef", "else", "endif"):
            region, since = open_[-1]
            region.branches.append((since, directive.start))
            region.end = directive.end
            if directive.name.startswith("elif"):
                region.conditions.append(directive.rest)
            if directive.name == "endif":
                open_.pop()
            else:
                open_[-1] = region, directive.end
    for region, since in open_:
        region.end = end
        region.branches.append((since, end))
    return sorted(found, key=lambda region: region.start)


def conditional_definitions(text: Text) -> dict[str, frozenset[str]]:
    """The macros that a file defines or undefines under conditions, with those that the conditions name; what only keeps a header
    from being read twice is no condition."""
    found: dict[str, frozenset[str]] = {}
    for directive in text.directives:
        if directive.name not in ("define", "undef"):
            continue
        around = (one for one in text.regions if one.start < directive.start < one.end and not guards_header(one, text))
        macros = frozenset[str]().union(*(region.macros() for region in around))
        name = _NAME.match(directive.rest)
        if name is not None and macros:
            found[name.group()] = found.get(name.group(), frozenset()) | macros
    return found


def guards_header(region: Region, text: Text) -> bool:
    """Whether the whole file stands in ``#ifndef NAME`` and defines that name at once."""
    inside = [directive for directive in text.directives if directive.start > region.start]
    names = region.macros()
    first = inside[0] if inside else None
    defines = first is not None and first.name == "define" and _NAME.findall(first.rest)[:1] == list(names)
    return defines and inside[-1].end == region.end
