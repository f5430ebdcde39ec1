"""How a C source can declare an outlined part of a function that it declares as a whole.

It repeats the words of its own declaration: a type or a macro may mean something else in the file that defines the function.
Their meaning must not have changed since.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.languages.c.parsing import toolchain
from lapwing.overlap.languages.c.parsing.text import Text

_WORD = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(define|undef)[ \t]+(\w+)", re.MULTILINE)
_TAG = re.compile(rb"\b(struct|union|enum)\s+(\w+)\b")
_OF_SYSTEM = frozenset({"I", "bool", "complex", "imaginary"})  # that C's headers define
_TIED = frozenset({"asm", "__asm", "__asm__", "alias", "__alias__", "weakref", "__weakref__", "ifunc", "__ifunc__"})


def redeclared(program: Program, function: Procedure, number: int, place: int) -> str | None:
    """The declaration of the function that the source of this number contains before an offset, if it has the same meaning
    there."""
    before = [d for d in program.declarations.get(function.key, ()) if d.source == number and d.start < place]
    if not before:
        return None
    last = max(before, key=lambda declaration: declaration.start)
    words = frozenset(_WORD.findall(last.text))
    headers = _headers(program)
    changed = _redefined(program.sources[number].data, last.start, place).union(*(_named(d, "undef") for d in headers))
    # A word that was no macro may have become one in a later header.
    later = _OF_SYSTEM if not toolchain.is_cpp(program.sources[number].path) else frozenset[str]()
    later = later.union(*(_named(d, "define") for d in headers)) - last.macros
    return None if words & (changed | later | _TIED) or _has_own_tags(program, function) else last.text


def _headers(program: Program) -> Sequence[bytes]:
    return (*program.included, *(s.data for s in program.sources if toolchain.is_header(s.path)))


def _has_own_tags(program: Program, function: Procedure) -> bool:
    """Whether the function's head may introduce a struct, union or enum, which would be a distinct type in each declaration."""
    data = program.sources[function.source].data
    before = (*_headers(program), data[: function.span.start])
    tags = _TAG.findall(data[function.span.start : function.body.span.start])
    return not all(any(re.search(rb"\b%b\s+%b\b" % tag, text) for text in before) for tag in tags)


def _redefined(data: bytes, start: int, end: int) -> frozenset[str]:
    """The macros that the lines of a file define, or undefine, between two offsets."""
    found = (d for d in _text(data).directives_in(start, end) if d.name in ("define", "undef"))
    return frozenset(word[0] for d in found if (word := _WORD.match(d.rest)) is not None)


@lru_cache(maxsize=64)
def _named(data: bytes, directive: str) -> frozenset[str]:
    """The macros that a header defines, or undefines."""
    return frozenset(m[2].decode("latin-1") for m in _DIRECTIVE.finditer(data) if m[1].decode() == directive)


@lru_cache(maxsize=64)
def _text(data: bytes) -> Text:
    return Text(data)
