"""Split-phase operations: a communication split into its start and its completion, where its data is needed.

before:  call MPI_RECV(buf, …)            after:  post buf … ; arrive buf
before:  call MPI_SEND(buf, …)            after:  send buf …
before:  call MPI_ALLREDUCE(a, b, …)      after:  start a, b … ; end

With ``copies`` the message travels in a buffer of its own: it is copied there when it is sent, or to its destination once it
has arrived. The program may then use its buffer in the meantime, and finds there what it would have found.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import Expression, Number, Operation
from lapwing.overlap.ir.statements import Call, Loop, Statement
from lapwing.overlap.source.spans import Span

NOWHERE = Span(-1, 0, 0)
"""The span of a generated statement: it has no text of its own and takes no comments along."""


SHORT_MESSAGE = 2048
"""Bytes that MPI buffers itself until they are received (eager protocol): the common MPIs buffer about 4 KiB, or more."""


class Part(enum.Enum):
    POST = "post"  # a receive is posted
    ARRIVE = "arrive"  # its message is in the buffer
    SEND = "send"  # a message is sent
    START = "start"  # of a collective
    END = "end"


@dataclass(frozen=True)
class SplitPhaseOperation(Statement):
    """One operation of the communication that ``call`` (a blocking call, or a nonblocking one completed by ``wait``) performed.

    ``slot``: its number in its file, the same in all operations. ``status``: where the arriving message's status goes.
    ``instead``: texts that replace arguments, by their positions. ``unless``: C's variable that tells that it was started
    before. ``plain_if_short``: a short message is sent at the send, or received at the end of the receive, by the program's
    original blocking call (split_phase/direct_messages.py).
    """

    part: Part
    call: Call
    slot: int
    copies: bool = False
    wait: Call | None = field(default=None, compare=False)
    status: Expression | None = field(default=None, compare=False)
    comment: str | None = field(default=None, compare=False)
    instead: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    unless: str | None = field(default=None, compare=False)
    plain_if_short: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class OutlinedCall(Call):
    """A call of one of a procedure's outlined parts; ``original``: the call of the whole, whose argument texts it takes.
    ``work``: the procedure was split as computation whose first part needs nothing from other ranks.
    """

    original: Call | None = field(default=None, compare=False)
    work: bool = field(default=False, compare=False)


def home(statement: Statement) -> Span:
    """Where the statement was that this one is, or was generated from or for; NOWHERE if there is none."""
    if statement.span == NOWHERE and isinstance(statement, SplitPhaseOperation):
        return statement.call.span
    if statement.span == NOWHERE and isinstance(statement, OutlinedCall) and statement.original is not None:
        return statement.original.span
    return statement.place if isinstance(statement, Drain) else statement.span


@dataclass(frozen=True)
class Drain(Statement):
    """Waits, before MPI is finalised (at ``place``), for copies of these files' sends that may still be in flight."""

    sources: tuple[int, ...]
    place: Span


@dataclass(frozen=True)
class Progress(Statement):
    """A progress call: lets MPI advance communication in flight. ``lender``: the number of the file whose progress procedure is
    called, where it is another one."""

    lender: int | None = None


def plus(value: Expression, number: int) -> Expression:
    """The sum, with constants folded."""
    match value:
        case Number(value=int(own)):
            return Number(own + number)
        case Operation(operator="+" | "-" as sign, arguments=(inner, Number(value=int(own)))):
            return plus(inner, number + (own if sign == "+" else -own))
    return Operation("+" if number > 0 else "-", (value, Number(abs(number)))) if number else value


@dataclass(frozen=True)
class Level:
    """A loop of a nest, and how many of its iterations belong to the boundary at its lower and at its upper end; or the values
    of its variable, ``low`` and ``high``, between which its iterations belong to the interior.
    """

    loop: Loop
    below: int = 0
    above: int = 0
    low: Expression | None = None
    high: Expression | None = None

    @property
    def splits(self) -> bool:
        return self.below + self.above > 0 or self.low is not None or self.high is not None


@dataclass(frozen=True)
class PartialLoop(Loop):
    """The interior of the nest ``whole`` (``inside``): the iterations away from both ends at every level of ``box``; or its
    boundary, the others.

    Its bounds, and those of the loops in it, are the interior's, or for the boundary the whole nest's. ``sent``: the boundary
    comes first, because a message carries its results.
    """

    inside: bool = field(default=True, kw_only=True)
    box: tuple[Level, ...] = field(default=(), kw_only=True)
    whole: Loop | None = field(default=None, kw_only=True, compare=False)
    sent: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class StripMinedLoop(Loop):
    """A long innermost loop, strip-mined, with a progress call after each strip (languages/shared/strip_mining.py)."""


@dataclass(frozen=True)
class Written(Statement):
    """Lines of text that a transformation wrote, and their accesses; ``barrier``: why nothing may pass them. ``starts``: what
    is in flight after them."""

    lines: tuple[str, ...]
    accesses: tuple[Access, ...] = field(default=(), compare=False)
    barrier: str | None = None
    starts: SplitPhaseOperation | None = field(default=None, compare=False)
