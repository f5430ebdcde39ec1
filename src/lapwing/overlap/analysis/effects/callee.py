"""A call's effects in its caller's terms, and which of the caller's values they depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lapwing.affine.affine import Affine
from lapwing.overlap.analysis.effects.effects import Effects, MessageOperation
from lapwing.overlap.analysis.effects.value_numbering import Terms
from lapwing.overlap.ir.accesses import ANYTHING, UNKNOWN, Access
from lapwing.overlap.ir.expressions import (
    Expression,
    Name,
    Storage,
    Symbol,
)


@dataclass(frozen=True)
class Called:
    """The effects of a call, in its caller's terms. ``written``: keys of what it may write; ``everything``: it may write
    anything."""

    accesses: tuple[Access, ...]
    operations: tuple[MessageOperation, ...]
    written: frozenset[str]
    everything: bool


@dataclass(frozen=True)
class Asked:
    """Keys of the variables that translating a summary into a caller's terms may depend on. ``keys``: whether they have
    changed; ``whole``: those whose values matter, too; ``pointers``: those that are pointers and arguments."""

    keys: tuple[str, ...]
    whole: tuple[str, ...]
    pointers: tuple[str, ...]

    @staticmethod
    def of(summary: Effects, bounds: Iterable[Affine], arguments: Iterable[Expression], terms: Terms) -> Asked:
        """``bounds``: of the callee's dummy arguments, on entry."""
        keys: set[str] = set()
        names = {name for bound in bounds for name in bound.names}
        for access in summary.accesses:
            keys |= {m.key for m in access.memory}
            if access.symbol is not None:
                keys.add(access.symbol.key)
            if access.section is not None:
                names |= access.section.names
                keys |= {lookup.array for lookup in access.section.lookups}
            if access.anchor is not None:
                names.update(*(form.names for form in access.anchor.forms()))
        for operation in summary.operations:
            for text in (operation.communicator, operation.peer, operation.tag):
                names |= terms_in(text, terms)
        symbols = _made_of(arguments, terms)
        keys |= {s.key for s in symbols}
        whole = {s.key for s in symbols if s.dimensions is None and s.type.base in ("integer", "logical")}
        for name in names:
            keys |= terms.origin.get(name, frozenset())
            keys |= {UNKNOWN.key, ANYTHING.key} if name in terms.members else set()  # what the caller's struct may be
            whole |= {terms.variable[name]} if name in terms.variable else set()
        return Asked(tuple(keys), tuple(whole), tuple({s.key for s in symbols if s.pointer}))


def _made_of(expressions: Iterable[Expression], terms: Terms) -> set[Symbol]:
    """The variables in the expressions, in the bounds of arrays among them and in the values of invariant ones."""
    found: set[Symbol] = set()
    waiting = list(expressions)
    while waiting:
        for name in waiting.pop().walk():
            if not isinstance(name, Name) or name.symbol in found or name.symbol.storage is Storage.CONSTANT:
                continue
            found.add(name.symbol)
            waiting += [e for d in name.symbol.index_space or () for e in (d.lower, d.upper) if e is not None]
            given = terms.invariants.get(name.symbol.key)
            waiting += [] if given is None else [given]
    return found


def terms_in(text: str | None, terms: Terms) -> frozenset[str]:
    """The terms in the text of an operation's communicator, peer or tag."""
    if text is None or not text.startswith("["):
        return frozenset()
    return frozenset(word for word in text[1:-1].replace("*", " ").split() if word in terms.origin)
