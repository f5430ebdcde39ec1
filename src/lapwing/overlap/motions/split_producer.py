"""A loop that produces what is sent: the part that is needed for it comes first, the rest is done during the transfer.

before:  do i = 1, n ; u(i) = u(i) + d(i) ; end do ; send u(1), u(n)
after:   do i = 1, n, all but the others ; … ; end do ; send u(1), u(n) ; do i = 2, n-1 ; … ; end do

Of nests, the shell of the box and then its interior. The mirror image of split_loop.py.

Obligations. The interior conflicts with nothing that now stands before it: the communication's start and what that needs. Turns
that change places (the interior with the boundary) do not conflict with each other, where variables that each turn writes before
it reads, and nobody needs afterwards, do not count. Bounds do not change in the loop, no turn ends it, and none communicates or
does I/O.
"""

from __future__ import annotations

from dataclasses import replace

from lapwing.overlap.analysis import Analysis
from lapwing.overlap.arrange import Ends, Halves
from lapwing.overlap.conflicts import Conflict
from lapwing.overlap.motions.split_loop import Early, Limits, Parts, interior, may_be_split
from lapwing.overlap.phases import PartialLoop
from lapwing.overlap.program import Loop, Name, Number, Operation, Procedure, Statement
from lapwing.overlap.sections import Linear

MOTION = "split-producer"
_WIDEST = 3  # planes left for the boundary below a variable
_MOST_NUMBERS = 4  # that are tried above


def split_producer(
    analysis: Analysis, loop: Statement, procedure: Procedure, start: Ends, apart: Early
) -> Halves | Conflict | None:
    """The loop's boundary and its interior, of which ``apart`` (it may come after the start) is true; or why they may not change
    places. None if it has no such interior.
    """
    if not isinstance(loop, Loop) or isinstance(loop, PartialLoop) or not may_be_split(analysis, loop, procedure):
        return None
    parts = interior(analysis, loop, procedure, apart, _limits(analysis, loop, procedure, start))
    if not isinstance(parts, Parts):
        return parts
    return Halves((replace(parts.shell, sent=True),), (replace(parts.inside, sent=True),))


def _limits(analysis: Analysis, loop: Loop, procedure: Procedure, start: Ends) -> list[list[Limits]]:
    """Limits of the interior in terms of what the start reads: from just above subscripts that are numbers, to just below those
    that are variables.

    A loop's own bounds may be other variables, whose relation to those nobody knows.
    """
    read = [a.section for e in start.effects for a in e.accesses if not a.writes and a.section is not None]
    subscripts = [s for section in read for s in section.subscripts if isinstance(s, Linear)]
    numbers = sorted({s.constant + 1 for s in subscripts if not s.terms})[:_MOST_NUMBERS]
    named = {name for s in subscripts for name in s.names() if len(s.terms) == 1}
    changing = analysis.written(loop.body, procedure)[0] | {loop.variable.key}
    highs = [
        Name(symbol)
        for symbol in procedure.symbols.values()
        if symbol.type.base == "integer" and symbol.type.bytes == 4 and symbol.key not in changing
        if (value := start.values.value(symbol)) is not None and len(value.terms) == 1 and value.names() <= named
    ]
    widths = range(_WIDEST, -1, -1)
    return [
        [
            Limits(Number(low), high if below == 0 else Operation("-", (high, Number(below))))
            for below in widths
            for low in reversed(numbers)
        ]
        for high in highs
    ]
