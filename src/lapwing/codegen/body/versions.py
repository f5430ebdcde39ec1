"""Loops in two versions, one of which checks no index that is linear in that of the loop: it is for where all of these are
inside at the loop's ends (range checks hoisted out of loops: Gupta, ACM LOPLAS 2, 1993; loop versioning).

    for j in range(half):                   if 0 <= half - 1 + half < len(work) and …:
        work[half + j] = …            →         for j in range(half): …     # without checks
                                            else:
                                                for j in range(half): …     # as it was, with errors where they are
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lapwing.codegen.body.loop_ends import slope, with_index
from lapwing.loopnest.binding import typed as t

_MOST_STATEMENTS = 40  # which are compiled twice
_MOST_CHECKS = 12


@dataclass(frozen=True)
class Check:
    """An index along an axis, at an end of a loop."""

    array: str
    axis: int
    index: t.Typed


def checks_at_ends(loop: t.TypedFor, first: t.Typed, last: t.Typed) -> tuple[list[Check], t.TypedFor] | None:
    """What has to be inside of its array for an innermost loop without these checks, and that loop; None where nothing is won.

    first, last: the loop's index at its ends.
    """
    inside = list(t.all_statements(loop.body))
    if any(isinstance(s, t.TypedFor | t.TypedWhile) for s in inside) or len(inside) > _MOST_STATEMENTS:
        return None
    if not (isinstance(loop.step, t.Literal) and loop.step.value in (1, -1)):
        return None
    own = {s.local for s in inside if isinstance(s, t.TypedLocal | t.TypedAssign | t.TypedVariable | t.TypedRounded)}
    always = [s.index for _, s in _checked(_always_touched(loop.body)) if _is_linear(s.index, loop.index.name, own)]
    if not always:
        return None
    # Under conditions elements may well be touched at other places alone, but hardly where others always are.
    nodes = (n for s in t.all_statements(loop.body) for value in t.own_values(s) for n in t.walk(value))
    touched = _checked(node for node in nodes if isinstance(node, t.Load))
    alike = dict.fromkeys((array, s.axis, s.index) for array, s in touched if s.index in always)
    checks = [
        Check(array, axis, with_index(index, loop.index.name, end))
        for array, axis, index in alike
        for end in ((first, last) if slope(index, loop.index.name) else (first,))
    ]
    if len(checks) > _MOST_CHECKS:
        return None

    def visit(node: t.Typed) -> t.Typed:
        node = t.mapped(node, visit)
        if not isinstance(node, t.Load):
            return node
        free = (
            replace(s, trap=None, counts_from_end=False)
            if isinstance(s, t.LookupSubscript) and (node.array, s.axis, s.index) in alike
            else s
            for s in node.subscripts
        )
        return replace(node, subscripts=tuple(free))

    return checks, replace(loop, body=tuple(t.with_values(s, visit) for s in loop.body))


def _checked(loads: Iterable[t.Load]) -> Iterator[tuple[str, t.LookupSubscript]]:
    """Their indices that are checked, with the array."""
    for load in loads:
        for subscript in load.subscripts:
            if isinstance(subscript, t.LookupSubscript) and subscript.is_checked:
                yield load.array, subscript


def _is_linear(index: t.Typed, name: str, own: set[t.Local]) -> bool:
    """Whether an index can be reckoned before the loop, and is between what it is at the ends."""
    parts = list(t.walk(index))
    return slope(index, name) is not None and not any(
        part in own or isinstance(part, t.Load) or t.may_raise(part) for part in parts
    )


def _always_touched(statements: Iterable[t.TypedStatement]) -> Iterator[t.Load]:
    """The elements that an iteration touches whatever holds, up to where it may end."""
    for statement in statements:
        if isinstance(statement, t.TypedJump):
            return
        if isinstance(statement, t.TypedIf):
            yield from _always_in(statement.test)
            if any(isinstance(s, t.TypedJump) for s in t.all_statements((statement,))):
                return
            continue
        for value in t.own_values(statement):
            yield from _always_in(value)


def _always_in(node: t.Typed) -> Iterator[t.Load]:
    match node:
        case t.Load():
            yield node
        case t.Select(test=test):
            yield from _always_in(test)
            return
        case t.Operation(operator="&&" | "||", operands=(first, *_)):
            yield from _always_in(first)
            return
    for child in t.children(node):
        yield from _always_in(child)
