"""Strip-mining of Fortran loops."""

from __future__ import annotations

import re

from lapwing.overlap.ir.expressions import Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import is_intrinsic, is_seen_by_its_name
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.fortran.writing.source_text import expression_text
from lapwing.overlap.languages.shared import strip_mining
from lapwing.overlap.languages.shared.strip_mining import Heads, may_strip
from lapwing.overlap.source.spans import Source


def heads(source: Source, loop: Loop, head: str) -> Heads | None:
    """The strip-mined form of the loop's ``head`` (its text up to the body); None if its form is not supported."""
    if not may_strip(source, loop):
        return None
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
        f"do {name} = {name}, {name} + min({strip_mining.STRIP - 1}, {rest}){step}",
        None,
        "end do",
    )


def can_name_bounds(program: Program, procedure: Procedure, loop: Loop) -> bool:
    """Whether the names that ``heads`` uses are available in the procedure: the loop's variable and bound, and MIN."""
    named = [loop.variable, *(e.symbol for e in loop.upper.walk() if isinstance(e, Name))]
    seen = all(is_seen_by_its_name(symbol, procedure) for symbol in named if symbol.storage is not Storage.CONSTANT)
    return seen and is_intrinsic("min", program, procedure)


def _is_plain(symbol: Symbol) -> bool:
    """Whether it is a default integer (MIN takes arguments of one kind) without aliases."""
    return symbol.type.text.lower() == "integer" and symbol.overlay is None and not symbol.pointer


def _directive_above(source: Source, loop: Loop) -> bool:
    """Whether a comment above the loop is a compiler directive."""
    comment = "[cC*!]|[ \t]*!" if source.form == "fixed" else "[ \t]*!"
    for line in reversed(source.data[: loop.span.start].decode("latin-1").split("\n")[:-1]):
        if line.strip() and not re.match(comment, line):
            return False
        if re.match(rf"(?:{comment})\w*\$", line):  # !GCC$ unroll, !DIR$ ivdep
            return True
    return False


_OTHER_KIND = re.compile(r"\d_\w|\d\.|\d[ed][+-]?\d", re.IGNORECASE)  # 1_8, 1., 1e4
