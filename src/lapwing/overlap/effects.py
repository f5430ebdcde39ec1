"""What a statement does: the memory it reads and writes, with sections; what else keeps it in its place.

The sections of one *walk* (a list of statements, in order) are in terms of values at the walk's beginning, so any two of
its statements can be compared. Summaries of procedures are walks of their bodies, in terms of their arguments and
globals; a call puts in what these are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.overlap import mpi
from lapwing.overlap.aliases import Memory
from lapwing.overlap.program import Call, Span, Symbol
from lapwing.overlap.sections import Linear, Section


@dataclass(frozen=True)
class Anchor:
    """``place``: subscripts of the element where the part begins (none: the whole array); ``bounds``: of its dimensions as the
    procedure declares them, the last upper one apart."""

    place: tuple[Linear, ...]
    bounds: tuple[tuple[Linear, Linear], ...]

    def linears(self) -> tuple[Linear, ...]:
        return (*self.place, *(end for pair in self.bounds for end in pair))

    def substitute(self, values: Mapping[str, Linear]) -> Anchor:
        return Anchor(
            tuple(p.substitute(values) for p in self.place),
            tuple((low.substitute(values), high.substitute(values)) for low, high in self.bounds),
        )


@dataclass  # not frozen, as Linear
class Access:
    """One variable's elements are read or written.

    symbol: the variable whose index space ``section`` is in; None where only ``memory`` is known. ``through``: what the pointer
    ``symbol`` points to, not the pointer. section: None for a scalar, or the whole. must: exactly these elements, for certain.
    anchor: where a part of ``symbol`` was handed to a procedure, with what shape; the section counts from there. stale: the
    pointer ``symbol`` may have led elsewhere at the beginning.
    """

    symbol: Symbol | None
    section: Section | None
    writes: bool
    must: bool
    through: bool
    memory: frozenset[Memory]
    where: Span | None = field(compare=False, default=None)
    anchor: Anchor | None = None
    stale: bool = False

    def __hash__(self) -> int:
        # Accesses go through many lists without doubles on their way up to a procedure's summary.
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.symbol, self.section, self.writes, self.memory))
        return found

    @property
    def own_key(self) -> str | None:
        """The variable's key, if what is touched is reached by no other name."""
        return self.symbol.key if self.symbol is not None and not self.through and self.symbol.alone else None

    def uncertain(self) -> Access:
        """The same, but it may not happen."""
        return self._with_hash(must=False) if self.must else self

    def within(self, section: Section | None, must: bool) -> Access:
        return Access(
            self.symbol, section, self.writes, must, self.through, self.memory, self.where, self.anchor, self.stale
        )

    def in_memory(self, memory: frozenset[Memory]) -> Access:
        return Access(
            self.symbol, self.section, self.writes, self.must, self.through, memory, self.where, self.anchor, self.stale
        )

    def at(self, where: Span | None) -> Access:
        return self._with_hash(where=where)

    def _with_hash(self, **changes: object) -> Access:
        # Far more are made so than in any other way, of changes that do not enter the hash.
        copy = object.__new__(Access)
        copy.__dict__.update(self.__dict__, **changes)
        return copy


@dataclass(frozen=True)
class MessageOperation:
    """One MPI call that a statement makes, directly or in procedures it calls.

    communicator, peer, tag: canonical texts that are equal only if the values are, or None where nothing is known.
    ``in_turn``: it sends, or lets a synchronous send of another rank go on, and somewhere it matters what was sent first (to a
    receive from anyone, or to what asks what has come).
    """

    call: mpi.MpiCall
    statement: Call | None
    procedure: str
    communicator: str | None
    peer: str | None
    tag: str | None
    in_turn: bool = False


@dataclass(frozen=True)
class Effects:
    """accesses; operations in order; ``io`` (its order with other I/O shows); hidden ``states`` (see known.py); ``leaves``:
    it may not come
    to its end (return, stop, exit, goto); ``barrier``: why nothing may pass it."""

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
        """Keys of the variables and the memory that may be read; not of the pointers by which it is reached."""
        return _keys(self.reads())

    @cached_property
    def written_keys(self) -> frozenset[str]:
        """Keys of the variables and the memory that may be written; not of the pointers by which it is reached."""
        return _keys(self.writes())

    @cached_property
    def without_sections(self) -> tuple[Access, ...]:
        """The accesses, of which nothing is known but the variables."""
        return tuple(dict.fromkeys(a.within(None, False) for a in self.accesses))

    @cached_property
    def set_keys(self) -> frozenset[str]:
        """Keys of the scalars that are given a new value, for certain."""
        return frozenset(
            a.symbol.key
            for a in self.writes()
            if a.must and a.symbol is not None and a.symbol.dimensions is None and not a.through
        )

    def near(self, access: Access) -> Sequence[Access]:
        """In order, all but accesses of which it is certain by their variables' names alone that they are of other memory."""
        own, others = self._by_variable
        return self.accesses if access.own_key is None else own.get(access.own_key, others)

    @cached_property
    def _by_variable(self) -> tuple[dict[str, list[Access]], list[Access]]:
        """For each variable in memory of its own: its accesses, and all of other memory; and the latter alone."""
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
    """Whether doing it once more makes no difference."""
    return not (any(effects.writes()) or effects.operations or effects.io or effects.states or effects.barrier)


OUT_OF_LOOPS = "jump out of several loops"


def _furthest(ways: Sequence[str]) -> str | None:
    """Of ways out, one that leaves no less than any of the others: the program, the procedure, several loops, or one."""
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
    """What a way out of the body of a loop with this name is to those around the loop."""
    ends_here = way in ("break", "continue") or (label is not None and way == f"{OUT_OF_LOOPS} to {label}")
    return None if ends_here else way


def together(parts: Sequence[Effects]) -> Effects:
    """The effects of statements done one after another."""
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
