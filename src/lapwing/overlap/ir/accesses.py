"""Memory, and accesses to it with sections: what statements read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Section
from lapwing.overlap.ir.expressions import (
    Symbol,
)
from lapwing.overlap.source.spans import Span


@dataclass(frozen=True)
class Memory:
    """``symbol``: the variable it is. ``heap``: where it is allocated.

    Neither: UNKNOWN, a library's own memory, or what was allocated through Fortran's pointers.
    """

    key: str
    symbol: Symbol | None = field(default=None, compare=False)
    heap: Span | None = field(default=None, compare=False)


UNKNOWN = Memory("unknown")
"""Escaped or external memory: may alias all memory that has escaped, and itself."""


ANYTHING = Memory("anything")
"""The target of a pointer without a visible definition: it is set in a way that is not modelled. May alias all memory."""


@dataclass(frozen=True)
class Anchor:
    """Where part of an array is passed to a procedure. ``place``: subscripts of its first element (empty: the whole array);
    ``bounds``: of the dimensions as the procedure declares them, except the last upper bound."""

    place: tuple[Affine, ...]
    bounds: tuple[tuple[Affine, Affine], ...]

    def forms(self) -> tuple[Affine, ...]:
        return (*self.place, *(end for pair in self.bounds for end in pair))

    def substitute(self, values: Mapping[str, Affine]) -> Anchor:
        return Anchor(
            tuple(p.substitute(values) for p in self.place),
            tuple((low.substitute(values), high.substitute(values)) for low, high in self.bounds),
        )


@dataclass  # not frozen, as Section
class Access:
    """A read or a write of a variable's elements.

    symbol: the variable whose index space ``section`` is in; None where only ``memory`` is known. ``through``: what the pointer
    ``symbol`` points to, not the pointer. section: None for a scalar, or the whole. must: exactly these elements, for certain.
    anchor: where a part of ``symbol`` was passed to a procedure, and with what shape; the section is relative to it. stale: the
    pointer ``symbol`` may have pointed elsewhere at the beginning.
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
        # Accesses are deduplicated many times on their way up to a procedure's summary.
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.symbol, self.section, self.writes, self.memory))
        return found

    @property
    def own_key(self) -> str | None:
        """The variable's key, if it has no aliases."""
        return self.symbol.key if self.symbol is not None and not self.through and self.symbol.alone else None

    def uncertain(self) -> Access:
        """The same access, possible rather than certain."""
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
        # The usual way to create accesses: the changed fields do not enter the hash.
        copy = object.__new__(Access)
        copy.__dict__.update(self.__dict__, **changes)
        return copy
