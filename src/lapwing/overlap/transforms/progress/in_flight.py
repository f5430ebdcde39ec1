"""An estimate of what is in flight after each statement: for progress calls, which are harmless where nothing is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import AddressOf, Element, Expression, Number
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation, Written
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.source.spans import Span
from lapwing.overlap.transforms.context import Context

Key = Expression | str
InFlight = dict[Key, tuple[Span, ...]]
"""The slot of a split-phase operation, or a request, with the sites of its calls."""


@dataclass(frozen=True)
class Event:
    """A communication starts, or ends. ``key``: None for any request, or for ``every`` one, in a called procedure."""

    starts: bool
    site: Span
    key: Key | None = None
    every: bool = False


@dataclass
class Events:
    """The communications that start and end in statements. ``outlined``: outlined procedures by their names. ``moved``: the sites
    of transfers that count; None: all do."""

    context: Context
    outlined: dict[str, Procedure]
    moved: frozenset[Span] | None = None
    _called: dict[str, list[Event]] = field(default_factory=dict)

    def of(self, statement: Statement, procedure: Procedure) -> list[Event]:
        """The starts and ends in a statement without blocks, in order."""
        message = message_of(statement)
        if message is not None and isinstance(statement, Call):
            return self._counted(_of_message(message, statement))
        return self._counted(self._of_others(statement, procedure))

    def _counted(self, events: Iterable[Event]) -> list[Event]:
        return [event for event in events if not event.starts or self.moved is None or event.site in self.moved]

    def in_flight_in(self, part: Procedure) -> InFlight:
        """What is in flight on entry to an outlined last part: what ends in it without starting there before."""
        own: InFlight = {}
        in_flight: InFlight = {}
        for event in self._inside(part):
            missing = not event.starts and (not own if event.key is None else event.key not in own)
            if missing and (self.moved is None or event.site in self.moved):
                in_flight[_name(event)] = (event.site,)
            happens(event, (event.site,), own)
        return in_flight

    def _of_others(self, statement: Statement, procedure: Procedure) -> list[Event]:
        if isinstance(statement, Written):
            return self._of_others(statement.starts, procedure) if statement.starts is not None else []
        if isinstance(statement, SplitPhaseOperation):
            if _is_tiny(mpi.lookup(statement.call.name or ""), statement.call):
                return []
            kind = "send" if statement.part is Part.SEND else "slot"
            key = f"{kind} {procedure.source}:{statement.slot}"
            return [Event(statement.part not in _ENDINGS, statement.call.span, key)]
        if not isinstance(statement, Call):
            return []
        analysis = self.context.analysis
        callee = self.outlined.get(statement.name or "") or analysis.program.resolve(statement.name, procedure)
        if callee is None or not analysis.graph.reaches_mpi(analysis.origin(callee).key):
            return []
        if callee.key not in self._called:
            self._called[callee.key] = []  # for recursion
            self._called[callee.key] = list(self._inside(callee))
        return self._called[callee.key]

    def _inside(self, procedure: Procedure) -> Iterable[Event]:
        """The starts and ends in a called procedure, whose names of requests mean nothing to its caller."""
        for statement in procedure.body.walk():
            message = message_of(statement)
            if message is not None and isinstance(statement, Call):
                for event in _of_message(message, statement):
                    yield Event(event.starts, event.site, None, event.every)
            elif not statement.blocks():
                yield from self._of_others(statement, procedure)


def happens(event: Event, sites: tuple[Span, ...], in_flight: InFlight) -> None:
    """Updates ``in_flight`` by the event; ``sites``: of all events of the statement."""
    if event.starts:
        in_flight[_name(event)] = sites
        return
    if isinstance(event.key, str):
        # Copied sends have mostly left by the time messages from others have arrived.
        for sent in [k for k in in_flight if isinstance(k, str) and k.startswith("send")]:
            del in_flight[sent]
        in_flight.pop(event.key, None)
        return
    requests = [k for k in in_flight if isinstance(k, Expression) or k.startswith("request")]
    every = event.every
    if event.key is not None and event.key in requests:
        requests = [event.key]
    elif event.key is not None:
        # A loop that waits for each request of an array has waited for all.
        array, every = _array(event.key), True
        requests = [k for k in requests if array is not None and _array(k) == array]
    for request in requests if every else requests[:1]:
        del in_flight[request]


def _array(key: Key) -> Expression | None:
    """The array that contains the request."""
    if isinstance(key, AddressOf):
        key = key.object
    return key.base if isinstance(key, Element) else None


def _name(event: Event) -> Key:
    return event.key if event.key is not None else f"request {event.site}"


def _of_message(message: mpi.MpiCall, call: Call) -> Iterable[Event]:
    request = argument_of(call, mpi.Role.REQUEST)
    if message.kind is mpi.Kind.COMPLETION and message.blocking:
        yield Event(False, call.span, request, every=request is None)
    elif request is not None and not message.blocking and message.kind in _TRANSFERS and not _is_tiny(message, call):
        yield Event(True, call.span, request)


def _is_tiny(message: mpi.MpiCall | None, call: Call) -> bool:
    """Whether the message is so short that it arrives without progress calls."""
    count = argument_of(call, mpi.Role.COUNT)
    between_two = message is not None and message.kind is not mpi.Kind.COLLECTIVE
    return between_two and isinstance(count, Number) and count.value <= _FEW


_FEW = 16  # elements
_ENDINGS = frozenset({Part.ARRIVE, Part.END})
_TRANSFERS = frozenset({mpi.Kind.SEND, mpi.Kind.RECV, mpi.Kind.COLLECTIVE})
