"""The words by which a C source can declare a part of a function that it has declared as a whole.

They are its own: a type or a macro may mean something else in the file that defines the function. Nothing may have given them
another meaning meanwhile.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lapwing.overlap.c import toolchain
from lapwing.overlap.c.text import Text
from lapwing.overlap.program import Procedure, Program

_WORD = re.compile(r"[A-Za-z_]\w*")
_UNDEFINED = re.compile(rb"^[ \t]*#[ \t]*undef[ \t]+(\w+)", re.MULTILINE)
_TIED = frozenset({"asm", "__asm", "__asm__", "alias", "__alias__", "weakref", "__weakref__", "ifunc", "__ifunc__"})


def redeclared(program: Program, function: Procedure, number: int, place: int) -> str | None:
    """How the source of this number declares the function before an offset, if that means there what it means where it stands."""
    before = [d for d in program.declarations.get(function.key, ()) if d.source == number and d.start < place]
    if not before:
        return None
    last = max(before, key=lambda declaration: declaration.start)
    words = frozenset(_WORD.findall(last.text))
    headers = (*program.included, *(s.data for s in program.sources if toolchain.is_header(s.path)))
    changed = _redefined(program.sources[number].data, last.start, place).union(*map(_undefined, headers))
    return None if words & (changed | _TIED) else last.text


def _redefined(data: bytes, start: int, end: int) -> frozenset[str]:
    """The macros that the lines of a file define, or undefine, between two offsets."""
    found = (d for d in _text(data).directives_in(start, end) if d.name in ("define", "undef"))
    return frozenset(word[0] for d in found if (word := _WORD.match(d.rest)) is not None)


@lru_cache(maxsize=64)
def _undefined(data: bytes) -> frozenset[str]:
    return frozenset(name.decode("latin-1") for name in _UNDEFINED.findall(data))


@lru_cache(maxsize=64)
def _text(data: bytes) -> Text:
    return Text(data)
