"""Loops that do something in one of so many iterations alone: they go from one of these to the next, as the text does where its
loop counts by more than one from a place that changes.

    for j: if (i + j) % 2 == colour: S     →     for j from the first such one, by twos: S
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.loopnest.binding import typed as t
from lapwing.tiling.invariants import is_row_invariant


@dataclass(frozen=True)
class Stride:
    """The iterations of a loop in which its index and ``offset`` together leave ``rest``, divided by ``by``."""

    by: int
    offset: t.Typed
    rest: t.Typed


def with_stride(body: t.TypedBody, index: str, outer: frozenset[str]) -> tuple[t.TypedBody, Stride] | None:
    """What those iterations of a loop do that do something, and which they are; None where all do. outer: indices of the loops
    around it."""
    match body.statements:
        case (t.TypedIf(otherwise=()) as guarded,):
            pass
        case _:
            return None
    conjuncts: Sequence[t.Typed] = (guarded.test,)
    if isinstance(guarded.test, t.Operation) and guarded.test.operator in ("&&", "&"):
        conjuncts = guarded.test.operands
    first, *others = conjuncts
    stride = _stride(first, index, outer)
    if stride is None:
        return None
    statements: Sequence[t.TypedStatement] = guarded.then
    if others:
        rest = others[0] if len(others) == 1 else t.Operation("bool", "&&", tuple(others))
        statements = (replace(guarded, test=rest),)
    return replace(body, statements=tuple(statements)), stride


def _stride(test: t.Typed, index: str, outer: frozenset[str]) -> Stride | None:
    match test:
        case t.Operation(
            operator="==",
            operands=(
                t.Operation(operator="%", operands=(place, t.Literal(value=int(by))), dtype="int64", trap=None),
                rest,
            ),
        ) if by > 1 and _is_known(rest, outer):
            offset = _offset(place, index, outer)
            return None if offset is None else Stride(by, offset, rest)
    return None


def _offset(place: t.Typed, index: str, outer: frozenset[str]) -> t.Typed | None:
    """What is added to the index; None where that is not all."""
    match place:
        case t.Index(name=name) if name == index:
            return t.Literal("int64", 0)
        case t.Operation(operator="+", operands=(one, other), dtype="int64", trap=None):
            for part, rest in ((one, other), (other, one)):
                if _is_known(rest, outer) and (offset := _offset(part, index, outer)) is not None:
                    return replace(place, operands=(offset, rest))
        case t.Operation(operator="-", operands=(one, other), dtype="int64", trap=None):
            if _is_known(other, outer) and (offset := _offset(one, index, outer)) is not None:
                return replace(place, operands=(offset, other))
    return None


def _is_known(node: t.Typed, outer: frozenset[str]) -> bool:
    """Whether it is an integer of 64 bits that is the same in all iterations of the loop."""
    return node.dtype == "int64" and is_row_invariant(node, outer)
