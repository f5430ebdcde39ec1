"""Loops that do something in one of so many iterations alone: they go from one of these to the next, as the text does where its
loop counts by more than one from a place that changes.

    for j: if (i + j) % 2 == colour: S     →     for j from the first such one, by twos: S
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.loopnest.binding import typed as t


@dataclass(frozen=True)
class Stride:
    """The iterations of a loop in which its index and ``offset`` together leave ``rest``, divided by ``by``."""

    by: int
    offset: t.Typed
    rest: t.Typed


def with_stride(body: t.TypedBody, index: str) -> tuple[t.TypedBody, Stride] | None:
    """What those iterations of a loop do that do something, and which they are; None where all do."""
    match body.statements:
        case (t.TypedIf(otherwise=()) as guarded,):
            pass
        case _:
            return None
    conjuncts: Sequence[t.Typed] = (guarded.test,)
    if isinstance(guarded.test, t.Operation) and guarded.test.operator in ("&&", "&"):
        conjuncts = guarded.test.operands
    first, *others = conjuncts
    stride = _stride(first, index)
    if stride is None:
        return None
    statements: Sequence[t.TypedStatement] = guarded.then
    if others:
        rest = others[0] if len(others) == 1 else t.Operation("bool", "&&", tuple(others))
        statements = (replace(guarded, test=rest),)
    return replace(body, statements=tuple(statements)), stride


def _stride(test: t.Typed, index: str) -> Stride | None:
    match test:
        case t.Operation(
            operator="==",
            operands=(
                t.Operation(operator="%", operands=(place, t.Literal(value=int(by))), dtype="int64", trap=None),
                rest,
            ),
        ) if by > 1 and _is_of_others(rest, index):
            offset = _offset(place, index)
            return None if offset is None else Stride(by, offset, rest)
    return None


def _offset(place: t.Typed, index: str) -> t.Typed | None:
    """What is added to the index; None where that is not all."""
    match place:
        case t.Index(name=name) if name == index:
            return t.Literal("int64", 0)
        case t.Operation(operator="+", operands=(one, other), dtype="int64", trap=None):
            for part, rest in ((one, other), (other, one)):
                if _is_of_others(rest, index) and (offset := _offset(part, index)) is not None:
                    return replace(place, operands=(offset, rest))
        case t.Operation(operator="-", operands=(one, other), dtype="int64", trap=None):
            if _is_of_others(other, index) and (offset := _offset(one, index)) is not None:
                return replace(place, operands=(offset, other))
    return None


def _is_of_others(node: t.Typed, index: str) -> bool:
    """Whether an integer is computed from other indices and arguments alone, and raises nothing."""
    parts = list(t.walk(node))
    known = all(isinstance(p, t.Index | t.Scalar | t.Literal | t.Operation | t.Convert) for p in parts)
    same = any(isinstance(p, t.Index) and p.name == index for p in parts)
    return known and not same and node.dtype == "int64" and not any(map(t.may_raise, parts))
