"""Whether an expression keeps its value while certain statements run, and may be computed a second time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.ir.accesses import ANYTHING, UNKNOWN
from lapwing.overlap.ir.expressions import AddressOf, Cast, Constant, Expression, Name, Number, Operation, Storage, Text


def is_simple(argument: Expression) -> bool:
    """Whether it has no calls or assignments, and reads no memory but variables."""
    return all(isinstance(e, Name | Number | Text | Constant | AddressOf | Operation | Cast) for e in argument.walk())


def is_invariant(expression: Expression, written: set[str]) -> bool:
    """Whether the expression is invariant where only these variables are written."""
    names = [e.symbol for e in _valued(expression) if isinstance(e, Name)]
    if written & {UNKNOWN.key, ANYTHING.key} and any(s.storage is not Storage.LOCAL or s.target for s in names):
        return False
    return not any(s.volatile or s.key in written for s in names)


def written_keys(effects: Sequence[Effects]) -> set[str]:
    """Keys of the variables and the memory that the effects write."""
    return {key for e in effects for key in e.written_keys}


def _valued(argument: Expression) -> Iterator[Expression]:
    """The parts of an argument whose values it depends on, without those of which only the address is taken."""
    if isinstance(argument, AddressOf) and isinstance(argument.object, Name):
        return
    if isinstance(argument, Name) and argument.symbol.dimensions is not None:
        return
    yield argument
    for part in argument.operands():
        yield from _valued(part)
