"""The effects of a statement: the memory it reads and writes, with sections, and whatever else constrains its order.

The sections of a list of statements are in terms of values at the list's beginning, so any two of its statements can be
compared. A procedure's summary holds the effects of its body, in terms of its arguments and globals; a call substitutes their
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.source.spans import Span


@dataclass(frozen=True)
class MessageOperation:
    """One MPI call that a statement makes, directly or in procedures it calls.

    communicator, peer, tag: canonical texts that are equal only if the values are, or None where nothing is known. ``ordered``:
    it sends, or lets a synchronous send of another rank complete, and the order of sends may be observed (by a receive from any
    source, or by a call that asks what has arrived).
    """

    call: mpi.MpiCall
    statement: Call | None
    procedure: str
    communicator: str | None
    peer: str | None
    tag: str | None
    ordered: bool = False


@dataclass(frozen=True)
class Effects:
    """Accesses; operations in order; ``io`` (its order relative to other I/O is observable); hidden ``states`` (see
    libraries/summaries.py); ``leaves``: control may leave it (return, stop, exit, goto); ``barrier``: why nothing may pass
    it."""

    accesses: tuple[Access, ...] = ()
    operations: tuple[MessageOperation, ...] = ()
    io: bool = False
    states: frozenset[str] = frozenset()
    leaves: str | None = None
    barrier: str | None = None
    where: Span | None = field(default=None, compare=False)

    def reads(self) -> Iterable[Access]:
        return (a for a in self.accesses if not a.writes)

    def writes(self) -> Iterable[Access]:
        return (a for a in self.accesses if a.writes)

    @cached_property
    def read_keys(self) -> frozenset[str]:
        """Keys of the variables and the memory that may be read, without the pointers that lead to it."""
        return _keys(self.reads())

    @cached_property
    def written_keys(self) -> frozenset[str]:
        """Keys of the variables and the memory that may be written, without the pointers that lead to it."""
        return _keys(self.writes())

    @cached_property
    def without_sections(self) -> tuple[Access, ...]:
        """The accesses reduced to their variables, without sections."""
        return tuple(dict.fromkeys(a.within(None, False) for a in self.accesses))

    @cached_property
    def set_keys(self) -> frozenset[str]:
        """Keys of the scalars that are certainly assigned."""
        return frozenset(
            a.symbol.key
            for a in self.writes()
            if a.must and a.symbol is not None and a.symbol.dimensions is None and not a.through
        )

    def near(self, access: Access) -> Sequence[Access]:
        """In order, all accesses except those whose variables alone show that they are to other memory."""
        own, others = self._by_variable
        return self.accesses if access.own_key is None else own.get(access.own_key, others)

    @cached_property
    def _by_variable(self) -> tuple[dict[str, list[Access]], list[Access]]:
        """For each variable with memory of its own: its accesses together with those to shared memory; and the latter alone."""
        own: dict[str, list[Access]] = {}
        others: list[Access] = []
        for access in self.accesses:
            if access.own_key is not None:
                own.setdefault(access.own_key, list(others)).append(access)
                continue
            others.append(access)
            for found in own.values():
                found.append(access)
        return own, others


def _keys(accesses: Iterable[Access]) -> frozenset[str]:
    keys = set()
    for access in accesses:
        keys |= {m.key for m in access.memory}
        if access.symbol is not None and not access.through:
            keys.add(access.symbol.key)
    return frozenset(keys)


def is_only_read(effects: Effects) -> bool:
    """Whether the effects are only reads, so that repeating the statement makes no difference."""
    return not (any(effects.writes()) or effects.operations or effects.io or effects.states or effects.barrier)


OUT_OF_LOOPS = "jump out of several loops"


def _furthest(ways: Sequence[str]) -> str | None:
    """The farthest-reaching of several exits: of the program, the procedure, several loops, or one."""
    out = [way for way in ways if way not in ("break", "continue")]
    several = {way for way in out if way.startswith(OUT_OF_LOOPS)}
    for way in out:
        if way not in ("return", *several):
            return way
    if "return" in out:
        return "return"
    if len(several) > 1:
        return OUT_OF_LOOPS
    return next(iter((*several, *ways)), None)


def out_of_loop(way: str | None, label: str | None) -> str | None:
    """What an exit from the body of a loop with this label means outside the loop."""
    ends_here = way in ("break", "continue") or (label is not None and way == f"{OUT_OF_LOOPS} to {label}")
    return None if ends_here else way


def together(parts: Sequence[Effects]) -> Effects:
    """The combined effects of statements in sequence."""
    accesses = dict.fromkeys(a for part in parts for a in part.accesses)
    return Effects(
        tuple(accesses),
        tuple(o for part in parts for o in part.operations),
        any(part.io for part in parts),
        frozenset().union(*(part.states for part in parts)),
        _furthest([part.leaves for part in parts if part.leaves]),
        next((part.barrier for part in parts if part.barrier), None),
        next((part.where for part in parts if part.barrier or part.leaves), None),
    )
