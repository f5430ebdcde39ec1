"""C functions whose text depends on the function it is in (``__func__``): it would mean another one elsewhere."""

from __future__ import annotations

import re

from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.languages.c.parsing.spelling import spellings
from lapwing.overlap.source.spelling import macros

_WORD = re.compile(rb"[A-Za-z_]\w*")
_OWN_NAMES = frozenset({b"__func__", b"__FUNCTION__", b"__PRETTY_FUNCTION__", b"__builtin_FUNCTION"})
# Evaluated in the caller's context by C++, as default arguments.
_CALLERS_NAME = re.compile(rb"\b(?:source_location|__builtin_FUNCTION)\b")


class OwnNames:
    """The answers for one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        texts = [*spellings(program)]
        self._callers_name = any(map(_CALLERS_NAME.search, texts))
        self._words = _with_macros([macro for text in texts for macro in macros(text)])

    def in_text_of(self, function: Procedure) -> bool:
        """Whether the function's text, or that of a macro in it, uses the function's own name."""
        text = self._program.sources[function.source].data[function.span.start : function.span.end]
        return self._callers_name or not self._words.isdisjoint(_WORD.findall(text))


def _with_macros(defined: list[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """The words that denote a function's own name, and the macros that expand to them."""
    found, more = _OWN_NAMES, _OWN_NAMES
    while more:
        more = frozenset(name for name, body in defined if not found.isdisjoint(_WORD.findall(body))) - found
        found |= more
    return found
