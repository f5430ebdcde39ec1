"""Which calls may communicate with each other: sends with receives, collective calls with collective calls.

Two calls may match unless it is proved that they cannot: by communicator, tag, peer or datatype (MPI 3.1, 3.2.4 and 3.3.1), and
for collectives by name, communicator, root, datatype and count (5.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.scalar_values import Value, Values
from lapwing.overlap.analysis.messages.sites import Site
from lapwing.overlap.dataflow.control_flow import Flow
from lapwing.overlap.ir.expressions import Expression, Name, Operation
from lapwing.overlap.ir.program import Procedure

_Values = frozenset[Value] | None
_NOBODY = Value("MPI_PROC_NULL")
_ANYBODY = Value("MPI_ANY_SOURCE")
_ANY_TAG = Value("MPI_ANY_TAG")
# These types match any bytes.
_UNTYPED = frozenset({"MPI_BYTE", "MPI_PACKED"})
_NO_COMMUNICATOR = Value("MPI_COMM_NULL")


@dataclass(frozen=True)
class _End:
    """One end of a message, or one rank's part in a collective call. ``peer``: its root; ``own``: the caller's rank."""

    name: str
    communicator: _Values
    tag: _Values
    types: _Values
    peer: _Values
    own: _Values
    count: _Values


class Matching:
    """The matches of a program's communications. Calls with equal arguments are compared once."""

    def __init__(self, sites: Sequence[Site], values: Values) -> None:
        self._values = values
        self._flows: dict[str, Flow] = {}
        self._senders: dict[_End, list[Site]] = {}
        self._receivers: dict[_End, list[Site]] = {}
        self._collectives: dict[_End, list[Site]] = {}
        self._ends: dict[int, list[tuple[str, _End]]] = {}
        self._found: dict[tuple[str, _End], tuple[Site, ...]] = {}
        groups = {"send": self._senders, "receive": self._receivers, "collective": self._collectives}
        for site in sites:
            for kind, end in self._ends_of(site):
                groups[kind].setdefault(end, []).append(site)
                self._ends.setdefault(id(site), []).append((kind, end))
        self._by_tag = {"send": _by_tag(self._receivers), "receive": _by_tag(self._senders)}

    def of(self, site: Site) -> tuple[Site, ...]:
        """The calls that may be at the other end, in program order, without a collective's own call."""
        found: dict[Site, None] = {}
        for kind, end in self._ends.get(id(site), ()):
            if (kind, end) not in self._found:
                self._found[kind, end] = tuple(self._partners(kind, end))
            found |= dict.fromkeys(
                other for other in self._found[kind, end] if kind != "collective" or other is not site
            )
        return tuple(found)

    def pairs(self) -> Iterable[tuple[Site, Site]]:
        """Senders with receivers, and collective calls with each other: the communication edges of P2's MPI-CFG."""
        for ends in (self._senders, self._collectives):
            for site in (site for sites in ends.values() for site in sites):
                yield from ((site, other) for other in self.of(site))

    def _partners(self, kind: str, end: _End) -> Iterable[Site]:
        if kind == "collective":
            for other, sites in self._collectives.items():
                if not _calls_never_match(end, other):
                    yield from sites
            return
        others = self._receivers if kind == "send" else self._senders
        for other in _with_tag(self._by_tag[kind], end, others):
            pair = (end, other) if kind == "send" else (other, end)
            if not _messages_never_match(*pair):
                yield from others[other]

    # ---- ends ---------------------------------------------------------------------------------------------------------

    def _ends_of(self, site: Site) -> Iterable[tuple[str, _End]]:
        kind, message = site.message.kind, site.message
        if message.collective and kind in (mpi.Kind.COLLECTIVE, mpi.Kind.BARRIER):
            yield "collective", self._end(site, (mpi.Role.ROOT,), None)
        if kind is mpi.Kind.ONE_SIDED:
            return
        if mpi.index_of(message, mpi.Role.DEST) is not None:
            yield "send", self._end(site, (mpi.Role.DEST,), mpi.Role.SEND_TAG, receives=False)
        if mpi.index_of(message, mpi.Role.SOURCE) is not None or message.name in ("MPI_Mrecv", "MPI_Imrecv"):
            yield "receive", self._end(site, (mpi.Role.SOURCE,), mpi.Role.RECV_TAG)

    def _end(self, site: Site, peer: tuple[mpi.Role, ...], tag: mpi.Role | None, *, receives: bool = True) -> _End:
        communicator = self._values.of(site.argument(mpi.Role.COMM))
        if communicator is not None:
            communicator -= {_NO_COMMUNICATOR}
        buffers = [b for b in site.message.buffers if tag is None or (b.writes if receives else b.reads)]
        types = self._values.of(_argument(site, buffers[0].type)) if buffers else None
        counted = tag is None and len({b.count for b in buffers}) == 1 and not any(b.per_rank for b in buffers)
        count = self._values.of(_argument(site, buffers[0].count)) if counted and buffers else None
        return _End(
            site.message.name if tag is None else "",
            communicator,
            self._values.of(site.argument(tag)) if tag is not None else None,
            types,
            self._values.of(site.argument(*peer)),
            self._own_rank(site, communicator),
            count,
        )

    def _own_rank(self, site: Site, communicator: _Values) -> _Values:
        """The only rank that reaches a call, where an If around it says so."""
        if communicator is None or len(communicator) != 1:
            return None
        rank = frozenset({Value(f"rank in {next(iter(communicator)).base}")})
        for condition, holds in self._flow(site.procedure).node_of(site.statement).guards:
            if isinstance(condition, Operation) and condition.operator == ("==" if holds else "!="):
                left, right = condition.arguments
                for variable, other in ((left, right), (right, left)):
                    if isinstance(variable, Name) and self._values.of(variable) == rank:
                        return self._values.of(other)
        return None

    def _flow(self, procedure: Procedure) -> Flow:
        if procedure.key not in self._flows:
            self._flows[procedure.key] = Flow.of(procedure)
        return self._flows[procedure.key]


def _argument(site: Site, place: int | None) -> Expression | None:
    return site.call.arguments[place] if place is not None and place < len(site.call.arguments) else None


def _by_tag(ends: Iterable[_End]) -> dict[Value | None, list[_End]]:
    """Ends by the tags they may have; under None those that may have any."""
    found: dict[Value | None, list[_End]] = {}
    for end in ends:
        tags = (None,) if end.tag is None or _ANY_TAG in end.tag or any(t.base for t in end.tag) else tuple(end.tag)
        for tag in tags:
            found.setdefault(tag, []).append(end)
    return found


def _with_tag(index: dict[Value | None, list[_End]], end: _End, others: Iterable[_End]) -> Iterable[_End]:
    """Those of the others whose tag may be the end's."""
    if end.tag is None or any(tag.base for tag in end.tag):
        return others
    return dict.fromkeys(other for tag in (None, *sorted(end.tag, key=repr)) for other in index.get(tag, ()))


# ---- proofs that two ends do not match --------------------------------------------------------------------------------


def _messages_never_match(sender: _End, receiver: _End) -> bool:
    """Whether two ends whose tags may be equal certainly do not match."""
    return (
        _disjoint(sender.communicator, receiver.communicator)
        or _types_differ(sender.types, receiver.types)
        or not _may_match(sender, receiver)
    )


def _calls_never_match(one: _End, other: _End) -> bool:
    return (
        one.name != other.name
        or _disjoint(one.communicator, other.communicator)
        or _numbers_differ(one.peer, other.peer)
        or _types_differ(one.types, other.types)
        or _counts_differ(one, other)
    )


def _counts_differ(one: _End, other: _End) -> bool:
    same = one.types is not None and one.types == other.types and len(one.types) == 1
    return same and _numbers_differ(one.count, other.count)


def _disjoint(one: _Values, other: _Values) -> bool:
    return one is not None and other is not None and not one & other


def _numbers_differ(one: _Values, other: _Values) -> bool:
    if one is None or other is None or any(value.base for value in one | other):
        return False
    return not one & other


def _types_differ(one: _Values, other: _Values) -> bool:
    """Whether their elements differ in size; between types of equal size many libraries deliver the bytes."""
    if one is None or other is None:
        return False
    sizes = [{_size(value.base) for value in values} for values in (one, other)]
    return not any(None in part for part in sizes) and not sizes[0] & sizes[1]


def _size(name: str) -> int | None:
    entry = mpi.TYPE_SIZES.get(name)
    return None if entry is None or name in _UNTYPED else entry[2]


def _may_match(sender: _End, receiver: _End) -> bool:
    """Whether the sender may address the receiver, and the receiver accept the sender."""
    targets: Iterable[Value | None] = (None,) if sender.peer is None else sender.peer
    origins: Iterable[Value | None] = (None,) if receiver.peer is None else receiver.peer
    return any(_peers(sender, receiver, to, of) for to in targets for of in origins)


def _peers(sender: _End, receiver: _End, to: Value | None, of: Value | None) -> bool:
    if _NOBODY in (to, of):
        return False
    if to is not None and not to.base and _numbers_differ(frozenset({to}), receiver.own):
        return False
    if of is not None and not of.base and _numbers_differ(frozenset({of}), sender.own):
        return False
    if to is None or of is None or of == _ANYBODY or sender.communicator != receiver.communicator:
        return True
    ranks = {f"rank in {value.base}" for value in sender.communicator or ()}
    relative = to.base == of.base and {to.base} == ranks
    return not relative or to.offset + of.offset == 0
