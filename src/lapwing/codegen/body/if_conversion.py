"""Stores under conditions as stores of one value or another (if-conversion), in loops whose iterations are independent.

    if a[i] == 1:                        a[i] = 0 if a[i] == 1 else 1 if b[i] == 3 else a[i]
        a[i] = 0
    elif b[i] == 3:                →
        a[i] = 1

Compilers do that with masked stores, and branch around those that store nothing: of conditions that hold now and then every other
branch is mispredicted. Storing what an element holds is nothing to anybody: no other iteration touches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_speculable


def without_branches(body: t.TypedBody) -> t.TypedBody:
    """The body with conditional statements that do nothing but store to one element in the place of which they are as values."""
    evaluated = frozenset(_always_loaded(body.statements))
    return replace(body, statements=tuple(_converted(statement, evaluated) for statement in body.statements))


def _converted(statement: t.TypedStatement, evaluated: frozenset[t.Load]) -> t.TypedStatement:
    if not isinstance(statement, t.TypedIf):
        return statement
    targets = {store.target for store in _stores(statement)}
    if len(targets) != 1:
        return statement
    (target,) = targets
    if not is_speculable(target):
        return statement
    value = _value_of((statement,), target, evaluated | {target})
    if value is None:
        return statement
    return t.TypedStore(statement.line, statement.text, target, value)


def _value_of(block: Sequence[t.TypedStatement], target: t.Load, known: frozenset[t.Load]) -> t.Typed | None:
    """What the element holds after a block of one statement or none; None where that is no value that may always be computed.

    known: elements that every iteration may look at.
    """
    match list(block):
        case []:
            return target
        case [t.TypedStore(target=stored, value=value)] if stored == target and value.dtype == target.dtype:
            return value if _may_run(value, known) else None
        case [t.TypedIf(test=test, then=then, otherwise=otherwise)]:
            one, other = (_value_of(arm, target, known) for arm in (then, otherwise))
            if one is None or other is None or not _may_run(test, known):
                return None
            return t.Select(target.dtype, test, one, other, speculable=True)
    return None


def _may_run(node: t.Typed, known: frozenset[t.Load]) -> bool:
    loads = (part for part in t.walk(node) if isinstance(part, t.Load))
    return is_speculable(node) and all(load in known for load in loads)


def _stores(statement: t.TypedStatement) -> Iterator[t.TypedStore]:
    return (s for s in t.all_statements((statement,)) if isinstance(s, t.TypedStore))


def _always_loaded(statements: Sequence[t.TypedStatement]) -> Iterator[t.Load]:
    """Elements that every iteration looks at: what stands behind ``and`` may not be."""
    for statement in statements:
        if isinstance(statement, t.SimpleStatement):
            yield from _loads_in(statement.value)
        elif isinstance(statement, t.TypedIf):
            yield from _loads_in(statement.test)


def _loads_in(node: t.Typed) -> Iterator[t.Load]:
    match node:
        case t.Load():
            yield node
        case t.Select(test=test):
            yield from _loads_in(test)
        case t.Operation(operator="&&" | "||", operands=operands):
            yield from _loads_in(operands[0])
        case _:
            for child in t.children(node):
                yield from _loads_in(child)
