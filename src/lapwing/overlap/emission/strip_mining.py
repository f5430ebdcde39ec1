"""The head of a loop whose turns run in strips, so that something can be done between them; its body's text stays.

before:  for (i = 0; i < n; i++) body          do i = 1, n … end do
after:   for (i = 0; i < n; ) {                i = 1
             int end = …;                      do while (i .le. n)
             for (; i < end; i++) body         do i = i, i + min(4095, n - i) … end do
             between                           between
         }                                     end do

The variable's values are the same, in the body and after the loop, if its bound stays the same while the loop runs and no turn
leaves the loop. Fortran's DO keeps the bound that it began with, so nothing else may reach what the bound is made of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lapwing.overlap.emission.emitter import expression_text
from lapwing.overlap.ir.expressions import Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import is_intrinsic, is_seen_by_its_name
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.source.spans import Source, Span

STRIP = 4096
"""Turns of a strip: with a few nanoseconds each they take about as long as a progress call lets MPI alone (c/support.py)."""


@dataclass(frozen=True)
class Heads:
    """``outer``: lines before the loop's text; ``inner``: what its head becomes."""

    outer: tuple[str, ...]
    inner: str


def heads(source: Source, loop: Loop, head: str) -> Heads | None:
    """What the loop's ``head`` (its text up to the body) becomes; None if it has no form that is known here."""
    upward = isinstance(loop.step, Number) and loop.step.value > 0
    if not upward or loop.label is not None or loop.body.form == "chain":
        return None
    if _END.search(source.text(loop.span)):
        return None
    return _fortran(source, loop, head) if source.language == "fortran" else _c(loop, head)


def can_strip(program: Program, procedure: Procedure, loop: Loop) -> bool:
    """Whether ``heads`` knows the form of a procedure's loop, and may name what it needs."""
    source = program.sources[procedure.source]
    if source.language == "fortran":
        named = [loop.variable, *(e.symbol for e in loop.upper.walk() if isinstance(e, Name))]
        if not all(
            is_seen_by_its_name(symbol, procedure) for symbol in named if symbol.storage is not Storage.CONSTANT
        ):
            return False
        if not is_intrinsic("min", program, procedure):
            return False
    return heads(source, loop, source.text(Span(loop.span.source, loop.span.start, loop.body.span.start))) is not None


def closing(text: str) -> int:
    """Where the parenthesis that is opened first is closed."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == ")" and depth == 0:
            return place
    return len(text) - 1


def _c(loop: Loop, head: str) -> Heads | None:
    name, head = re.escape(loop.variable.name), head[: closing(head) + 1]
    found = re.fullmatch(rf"(for ?\()([^;]+); ?({name} ?(<=?) ?)([^;<>=!?,]+); ?([^;]+\))", " ".join(head.split()))
    if found is None or re.search(r"/[*/]|\\", head):
        return None
    opening, first, compared, operator, bound, after = found.groups()
    names = {e.symbol.name for e in loop.upper.walk() if isinstance(e, Name)}
    # What looks like a name may be a macro for more.
    bound = bound.strip() if bound.strip() in names or bound.strip().isdigit() else f"({bound.strip()})"
    # Not i + STRIP < n, which may be too large for the variable's type; n is compared with a number first, as n - STRIP may be
    # too small for its own.
    more = STRIP if operator == "<" else STRIP - 1
    end = f"{bound} > {STRIP} && {loop.variable.name} < {bound} - {STRIP} ? {loop.variable.name} + {more} : {bound}"
    return Heads(
        (f"{opening}{first}; {compared}{found[5].strip()}; ) {{", f"{loop.variable.type.text} lw_end = {end};"),
        f"{opening}; {compared}lw_end; {after}",
    )


def _fortran(source: Source, loop: Loop, head: str) -> Heads | None:
    if not re.match(r"do\s+\w+\s*=", head, re.IGNORECASE) or loop.body.form != "lines":
        return None
    names = [e.symbol for e in loop.upper.walk() if isinstance(e, Name)]
    if loop.variable in names or not all(map(_is_plain, [loop.variable, *names])):
        return None
    name = loop.variable.name
    first, last = (expression_text(source, e) for e in (loop.lower, loop.upper))
    if _OTHER_KIND.search(last) or _directive_above(source, loop):
        return None
    rest = f"{last} - {name}" if re.fullmatch(r"\w+", last) else f"({last}) - {name}"
    step = f", {expression_text(source, loop.step)}" if loop.step != Number(1) else ""
    return Heads(
        (f"{name} = {first}", f"do while ({name} .le. {last})"),
        f"do {name} = {name}, {name} + min({STRIP - 1}, {rest}){step}",
    )


def _is_plain(symbol: Symbol) -> bool:
    """Whether it is a default integer, as MIN wants both of one kind, that only its name reaches."""
    return symbol.type.text.lower() == "integer" and symbol.overlay is None and not symbol.pointer


def _directive_above(source: Source, loop: Loop) -> bool:
    """Whether a comment above the loop tells the compiler something about it."""
    comment = "[cC*!]|[ \t]*!" if source.form == "fixed" else "[ \t]*!"
    for line in reversed(source.data[: loop.span.start].decode("latin-1").split("\n")[:-1]):
        if line.strip() and not re.match(comment, line):
            return False
        if re.match(rf"(?:{comment})\w*\$", line):  # !GCC$ unroll, !DIR$ ivdep
            return True
    return False


_END = re.compile(r"\blw_end\b")
_OTHER_KIND = re.compile(r"\d_\w|\d\.|\d[ed][+-]?\d", re.IGNORECASE)  # 1_8, 1., 1e4
