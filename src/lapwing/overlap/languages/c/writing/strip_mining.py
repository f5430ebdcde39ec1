"""Strip-mining of C loops."""

from __future__ import annotations

import re

from lapwing.overlap.ir.expressions import Name
from lapwing.overlap.ir.statements import Loop
from lapwing.overlap.languages.shared import strip_mining
from lapwing.overlap.languages.shared.strip_mining import Heads, closing, may_strip
from lapwing.overlap.source.spans import Source


def heads(source: Source, loop: Loop, whole: str) -> Heads | None:
    """The strip-mined form of the loop's head (``whole``: its text up to the body); None if its form is not supported."""
    if not may_strip(source, loop):
        return None
    end = closing(whole) + 1
    name, head = re.escape(loop.variable.name), whole[:end]
    found = re.fullmatch(rf"(for ?\()([^;]+); ?({name} ?(<=?) ?)([^;<>=!?,]+); ?([^;]+\))", " ".join(head.split()))
    if found is None or re.search(r"/[*/]|\\", head):
        return None
    opening, first, compared, operator, bound, after = found.groups()
    names = {e.symbol.name for e in loop.upper.walk() if isinstance(e, Name)}
    # An apparent name may be a macro.
    bound = bound.strip() if bound.strip() in names or bound.strip().isdigit() else f"({bound.strip()})"
    # Not i + STRIP < n, which may overflow the variable's type; n is compared with a number first, as n - STRIP may underflow
    # its own.
    strip = strip_mining.STRIP
    more = strip if operator == "<" else strip - 1
    limit = f"{bound} > {strip} && {loop.variable.name} < {bound} - {strip} ? {loop.variable.name} + {more} : {bound}"
    return Heads(
        (f"{opening}{first}; {compared}{found[5].strip()}; ) {{", f"{loop.variable.type.text} lw_end = {limit};"),
        f"{opening}; {compared}lw_end; {after}",
        whole[end:],
        "}",
    )
