"""Which elements a loop with data-dependent subscripts writes: those that its own counters have passed.

    for (i = 0; i < n; i++) { k = key[i]; x[p[k >> shift]++] = k; }

Every iteration writes the element of ``x`` at a counter ``p[b]`` and increments that counter. So the loop writes exactly the
elements from each counter's value before the loop up to, not including, its value after it. Two copies of the counters record
them, whatever the keys are. With ``x[n++] = v`` the counter is a scalar.

Obligation: the loop accesses the counters and ``x`` nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.overlap.ir.expressions import Assignment, Element, Expression, Name, Number, Symbol
from lapwing.overlap.ir.statements import Assign, Evaluate, Loop, Statement, While


@dataclass(frozen=True)
class WrittenRanges:
    """``statement`` writes ``array`` at ``counters`` (an array, or a scalar), and nowhere else."""

    statement: Statement
    array: Symbol
    counters: Symbol


def written_ranges(statement: Statement, array: Symbol) -> WrittenRanges | None:
    """The ranges of ``array`` that the statement writes, if its loops write it only in this way."""
    if not isinstance(statement, Loop | While):
        return None
    counters = [c for inner in statement.walk() if (c := _counter_of(inner, array)) is not None]
    if len(counters) != 1:
        return None
    counter = counters[0]
    mentions = [
        e.symbol
        for inner in statement.walk()
        for e in inner.every_expression()
        if isinstance(e, Name) and e.symbol in (array, counter)
    ]
    headers = [inner.variable for inner in statement.walk() if isinstance(inner, Loop)]
    # Once each, in the scattering statement itself.
    if sorted(s.key for s in mentions) != sorted([array.key, counter.key]) or counter in headers:
        return None
    return WrittenRanges(statement, array, counter)


def _counter_of(statement: Statement, array: Symbol) -> Symbol | None:
    """``p`` of ``array[p[…]++] = …`` or ``array[p++] = …``."""
    for target, operator in _assigned(statement):
        if operator is None and isinstance(target, Element) and target.base == Name(array) and len(target.indices) == 1:
            index = target.indices[0]
            if _counts_up(index):
                assert isinstance(index, Assignment)
                place = index.target
                if isinstance(place, Name) and place.symbol.dimensions is None and not place.symbol.pointer:
                    return place.symbol
                if isinstance(place, Element) and isinstance(place.base, Name) and not place.base.symbol.pointer:
                    return place.base.symbol
    return None


def _counts_up(index: Expression) -> bool:
    return isinstance(index, Assignment) and index.operator == "+" and index.value == Number(1) and index.gives_old


def _assigned(statement: Statement) -> Iterator[tuple[Expression, str | None]]:
    if isinstance(statement, Assign):
        yield statement.target, statement.operator
    elif isinstance(statement, Evaluate) and isinstance(statement.value, Assignment):
        yield statement.value.target, statement.value.operator
