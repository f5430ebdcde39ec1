"""What early work put into a shadow sent from there, and copied to its own place while it travels.

before:  take over x from its shadow; MPI_Ialltoallv(x, …); the next turn's work
after:   MPI_Ialltoallv(shadow, …); take over x; the next turn's work, into a second shadow

Obligations. Between the work's place and the transfer nobody touches ``x``. That all that is sent was written by the early work,
the program checks when it runs: the counters' ranges are one interval, and every block that is sent lies in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.overlap.conflicts import meet
from lapwing.overlap.motions.context import Context
from lapwing.overlap.motions.early_work import EarlyWork
from lapwing.overlap.motions.shadows import Shadow, Taken
from lapwing.overlap.program import Call, Cast, Expression, Name

_SENDS = "MPI_Alltoallv"  # (send buffer, counts, displacements, type, …, communicator)


@dataclass(frozen=True)
class EarlySend:
    """``shadow``: of the buffer that is sent. ``arguments``: counts, displacements, type and communicator."""

    shadow: Shadow
    arguments: tuple[Expression, Expression, Expression, Expression]


def early_send(context: Context, work: EarlyWork, shadows: tuple[Shadow, ...], transfer: Call) -> EarlySend | None:
    """How the transfer may send from a shadow, if it may."""
    if transfer.name != _SENDS or len(transfer.arguments) != 9 or context.basic_type(transfer.arguments[3]) is None:
        return None
    buffer = transfer.arguments[0]
    while isinstance(buffer, Cast):
        buffer = buffer.value
    shadow = next((s for s in shadows if Name(s.symbol) == buffer and s.taken is Taken.RANGES), None)
    if (
        shadow is None
        or shadow.ranges is None
        or shadow.allocation is None
        or shadow.ranges.counters.dimensions is None
    ):
        return None
    arguments = (*transfer.arguments[1:4], transfer.arguments[8])
    if any(e.span is None for e in arguments) or _is_touched(context, work, shadow):
        return None
    return EarlySend(shadow, arguments)


def _is_touched(context: Context, work: EarlyWork, shadow: Shadow) -> bool:
    """Whether a statement that stays touches what the pointer points to."""
    analysis = context.analysis
    own = [a for e in work.effects for a in e.accesses if a.symbol == shadow.symbol and a.through]
    return any(
        meet(access, other, analysis.aliases)
        for statement in work.staying
        for access in analysis.plain(statement, work.procedure).accesses
        for other in own
    )
