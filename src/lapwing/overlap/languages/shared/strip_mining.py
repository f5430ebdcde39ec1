"""Strip-mining: the head of a loop whose iterations run in strips, so that a call fits between them; the body's text stays.

before:  for (i = 0; i < n; i++) body          do i = 1, n … end do
after:   for (i = 0; i < n; ) {                i = 1
             int end = …;                      do while (i .le. n)
             for (; i < end; i++) body         do i = i, i + min(4095, n - i) … end do
             between                           between
         }                                     end do

The variable's values are the same, in the body and after the loop, if the loop's bound is invariant in it and no iteration
leaves the loop. Fortran's DO evaluates its bound once, so nothing else may access the bound's operands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lapwing.overlap.ir.expressions import Number
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.source.spans import Source, Span

STRIP = 4096
"""Iterations per strip: at a few nanoseconds each they take about as long as the interval between polls
(c/writing/support.py)."""


@dataclass(frozen=True)
class Heads:
    """``outer``: lines before the loop's text; ``inner``: what its head becomes. ``rest``: the text after the head on its line,
    if the body continues there. ``end``: the line that closes the loop over the strips."""

    outer: tuple[str, ...]
    inner: str
    rest: str | None
    end: str


def may_strip(source: Source, loop: Loop) -> bool:
    """Whether the loop counts upwards and can be rewritten, regardless of its head's form."""
    upward = isinstance(loop.step, Number) and loop.step.value > 0
    return upward and loop.label is None and loop.body.form != "chain" and _END.search(source.text(loop.span)) is None


def head_of(source: Source, loop: Loop) -> str:
    """The loop's text up to its body."""
    return source.text(Span(loop.span.source, loop.span.start, loop.body.span.start))


def closing(text: str) -> int:
    """The position where the first parenthesis is closed."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == ")" and depth == 0:
            return place
    return len(text) - 1


_END = re.compile(r"\blw_end\b")
