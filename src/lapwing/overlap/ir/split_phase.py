"""A communication taken apart: when it starts, and when what it brings is needed.

before:  call MPI_RECV(buf, …)            after:  post buf … ; arrive buf
before:  call MPI_SEND(buf, …)            after:  send buf …
before:  call MPI_ALLREDUCE(a, b, …)      after:  start a, b … ; end

With ``copies`` the message travels in memory of its own: it is copied there when it is sent, or to where it belongs when
it has arrived. Then the program may use its buffer meanwhile, and what it finds there is what it would have found.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import Expression, Number, Operation
from lapwing.overlap.ir.statements import Call, Loop, Statement
from lapwing.overlap.source.spans import Span

NOWHERE = Span(-1, 0, 0)
"""The span of a statement that was made: it has no text of its own and takes no comments along."""


SHORT_MESSAGE = 2048
"""Bytes that MPI keeps in memory of its own until they are received: the widely used MPIs keep about 4 KiB, or more."""


class Part(enum.Enum):
    POST = "post"  # a receive is posted
    ARRIVE = "arrive"  # its message is there, in the buffer
    SEND = "send"  # a message is on its way
    START = "start"  # of a collective
    END = "end"


@dataclass(frozen=True)
class SplitPhaseOperation(Statement):
    """One part of the communication that ``call`` (a blocking call, or a nonblocking one completed by ``wait``) stood for.

    ``slot``: its number in its file, the same in all parts. ``status``: where the arriving message's status goes. ``instead``:
    texts that stand for arguments, by their places. ``unless``: C's variable that says it was started before.
    ``plain_if_short``: a short message is sent where the send is, or received where the receive ends, by a blocking call as the
    program has it (split_phase/direct_messages.py).
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
    """A call of one part of a procedure that was divided; ``original``: the call of the whole, whose arguments' texts
    it takes. ``work``: it was divided as work, of which the first part needs nothing from other ranks.
    """

    original: Call | None = field(default=None, compare=False)
    work: bool = field(default=False, compare=False)


def home(statement: Statement) -> Span:
    """Where the statement stood that this one is, is made of or made for; NOWHERE if there is none."""
    if statement.span == NOWHERE and isinstance(statement, SplitPhaseOperation):
        return statement.call.span
    if statement.span == NOWHERE and isinstance(statement, OutlinedCall) and statement.original is not None:
        return statement.original.span
    return statement.place if isinstance(statement, Drain) else statement.span


@dataclass(frozen=True)
class Drain(Statement):
    """Before MPI is finalised (at ``place``): copies of sends of these files that may still be on their way are waited for."""

    sources: tuple[int, ...]
    place: Span


@dataclass(frozen=True)
class Progress(Statement):
    """MPI is given the time to go on with what is under way. ``lender``: the number of the file whose procedure is called for
    that, where it is another one."""

    lender: int | None = None


def plus(value: Expression, number: int) -> Expression:
    """The sum, with numbers put together."""
    match value:
        case Number(value=int(own)):
            return Number(own + number)
        case Operation(operator="+" | "-" as sign, arguments=(inner, Number(value=int(own)))):
            return plus(inner, number + (own if sign == "+" else -own))
    return Operation("+" if number > 0 else "-", (value, Number(abs(number)))) if number else value


@dataclass(frozen=True)
class Level:
    """A loop of a nest, and how many of its turns belong to the boundary at its lower and at its upper end; or between which
    values of its variable, ``low`` and ``high``, its turns belong to the interior.
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
    """The interior of the nest ``whole`` (``inside``): turns away from both ends at every level of ``box``; or the others.

    Its bounds, and those of the loops in it, are the interior's, or for the others the whole nest's. ``sent``: the others come
    first, because a message needs what they make.
    """

    inside: bool = field(default=True, kw_only=True)
    box: tuple[Level, ...] = field(default=(), kw_only=True)
    whole: Loop | None = field(default=None, kw_only=True, compare=False)
    sent: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class StripMinedLoop(Loop):
    """A long innermost loop whose turns run in strips, with a progress call after each (languages/shared/strip_mining.py)."""


@dataclass(frozen=True)
class Written(Statement):
    """Lines of text that a motion wrote, and the memory they touch; ``barrier``: why nothing may pass them. ``starts``: what is
    under way after them."""

    lines: tuple[str, ...]
    accesses: tuple[Access, ...] = field(default=(), compare=False)
    barrier: str | None = None
    starts: SplitPhaseOperation | None = field(default=None, compare=False)
