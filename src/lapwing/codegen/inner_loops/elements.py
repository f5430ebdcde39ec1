"""What is known of an innermost loop's body: whether its statements may be done for many iterations in turn, and which elements
exist in all iterations.

Whether indices are inside of arrays was proved under the conditions on indices that they stand under. Conditions on values say
nothing of that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from lapwing.codegen.body.widening import COMPARISONS
from lapwing.codegen.outer_loops.independence import assigned_outside
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_speculable

Certain = Callable[[t.LookupSubscript], bool]  # whether a computed index is inside of its array whatever conditions say
NewLocal = Callable[[], t.Local]  # makes a local for an integer


def may_be_reordered(body: Sequence[t.TypedStatement]) -> bool:
    """Whether iterations hand on nothing but elements and reductions, and raise nothing under their conditions: dependences
    between elements then say all about the order of their statements."""
    found = False
    for statement in t.all_statements(body):
        match statement:
            case t.TypedStore():
                found = True
            case t.TypedLocal() | t.TypedAssign() | t.TypedVariable() | t.TypedIf():
                pass
            case t.TypedAccumulate(position=(), payload=()):
                pass
            case _:
                return False
        if not t.own_values_raise_nothing_there(statement):
            return False
    return found and not assigned_outside(body)


def elements_in(body: Sequence[t.TypedStatement], certain: Certain) -> frozenset[t.Load]:
    """The elements that exist in every iteration: those that stand under no condition on indices in one place at least."""
    data = frozenset[t.Local]()
    for statement in t.all_statements(body):
        if isinstance(statement, t.TypedLocal) and _is_data(statement.value, data):
            data |= {statement.local}
    return frozenset(load for load in _unguarded(body, data) if all(_is_proved(s, certain) for s in load.subscripts))


def _is_proved(subscript: t.AffineSubscript | t.LookupSubscript, certain: Certain) -> bool:
    if isinstance(subscript, t.AffineSubscript):
        return True
    is_plain = not any(isinstance(node, t.Local | t.Load) for node in t.walk(subscript.index))
    return subscript.trap is None and is_plain and is_speculable(subscript.index) and certain(subscript)


def _unguarded(body: Sequence[t.TypedStatement], data: Collection[t.Local]) -> Iterator[t.Load]:
    for statement in body:
        for value in t.own_values(statement):
            yield from _unguarded_in(value, data)
        if isinstance(statement, t.TypedIf) and _is_data(statement.test, data):
            yield from _unguarded((*statement.then, *statement.otherwise), data)


def _unguarded_in(node: t.Typed, data: Collection[t.Local]) -> Iterator[t.Load]:
    match node:
        case t.Select(test=test) if not _is_data(test, data):
            yield from _unguarded_in(test, data)
            return
        case t.Operation(operator="&&" | "||", operands=(first, *others), dtype="bool"):
            yield from _unguarded_in(first, data)
            for before, other in zip((first, *others), others, strict=False):
                if not _is_data(before, data):
                    return
                yield from _unguarded_in(other, data)
            return
        case t.Load():
            yield node
    for child in t.children(node):
        yield from _unguarded_in(child, data)


def _is_data(node: t.Typed, data: Collection[t.Local]) -> bool:
    """Whether a value, and every condition in it, is made of elements: no indices have been proved by it then."""

    def is_made_of_elements(node: t.Typed) -> bool:
        return any(isinstance(part, t.Load) or part in data for part in t.walk(node))

    parts = list(t.walk(node))
    conditions = (p for p in parts if (isinstance(p, t.Operation) and p.operator in COMPARISONS) or _is_flag(p))
    return is_made_of_elements(node) and all(map(is_made_of_elements, conditions))


def _is_flag(node: t.Typed) -> bool:
    return isinstance(node, t.Local) and node.dtype == "bool"
