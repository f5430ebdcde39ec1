"""Checks of all iterations of an inner loop made at its ends, where that is as good.

    for w in range(capacity + 1):                        first, last = max(0, weights[i - 1]), capacity
        if weights[i - 1] <= w:                     →    if first <= last:
            check K[…, w - weights[i - 1]]                   check K[…, first - weights[i - 1]]
                                                             check K[…, last - weights[i - 1]]

An index that is linear in that of the loop is between those that it is at the ends. Conditions that compare the loop's index with
what is the same in all of its iterations bring the ends together; others of it are left out, so that more may be looked at than
is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.ir import MIRRORED, OPPOSITE

_STEEPEST = 1024  # factor of the loop's index: less than what makes 64 bits wrap around between the ends


class _NotLinear(Exception):
    """Something has to be looked at in every iteration."""


@dataclass(frozen=True)
class _Ends:
    """The first and the last value of a loop's index, in ascending order."""

    name: str
    first: t.Typed
    last: t.Typed


def checked_at_ends(loop: t.TypedFor) -> list[t.TypedStatement]:
    """A loop over checks as checks at its ends; the loop itself where that does not do."""
    ends = _ends_of(loop)
    if ends is None:
        return [loop]
    try:
        return _under_ends(loop, ends, [s for inner in loop.body for s in _at(inner, ends)])
    except _NotLinear:
        return [loop]


def mentions_index(node: t.Typed, name: str) -> bool:
    """Whether an expression is over the index of a loop."""
    return any(name in t.indices_of(part) for part in t.walk(node))


def looked_up(load: t.Load) -> t.Load:
    """The element with its indices looked at, where they may be outside."""

    def of(axis: int, subscript: t.AffineSubscript | t.LookupSubscript) -> t.LookupSubscript:
        if isinstance(subscript, t.AffineSubscript):
            return t.LookupSubscript(t.AffineValue("int64", subscript.affine + subscript.wrap), axis, 1)
        return replace(subscript, trap=subscript.trap or 1, guarded=False)

    return replace(load, subscripts=tuple(of(axis, s) for axis, s in enumerate(load.subscripts)))


def _ends_of(loop: t.TypedFor) -> _Ends | None:
    one = t.Literal("int64", 1)
    match loop.step:
        case t.Literal(value=1):
            return _Ends(loop.index.name, loop.start, t.Operation("int64", "-", (loop.stop, one)))
        case t.Literal(value=-1):
            return _Ends(loop.index.name, t.Operation("int64", "+", (loop.stop, one)), loop.start)
    return None


def _under_ends(at: t.TypedStatement, ends: _Ends, found: Sequence[t.TypedStatement]) -> list[t.TypedStatement]:
    """Statements that are done where there are iterations."""
    if not found:
        return []
    test = t.Operation("bool", "<=", (ends.first, ends.last))
    return [t.TypedIf(at.line, at.text, test, tuple(found), ())]


def _at(statement: t.TypedStatement, ends: _Ends) -> list[t.TypedStatement]:
    inside = t.all_statements((statement,))
    if not any(mentions_index(value, ends.name) for s in inside for value in t.own_values(s)):
        return [statement]
    match statement:
        case t.TypedCheck(value=value, array=array):
            if array is None or slope(value, ends.name) is None:
                raise _NotLinear
            return [replace(statement, value=with_index(value, ends.name, end)) for end in (ends.first, ends.last)]
        case t.TypedIf(test=test, then=then, otherwise=otherwise):
            return [
                s
                for arm, truth in ((then, True), (otherwise, False))
                for s in _in_arm(statement, test, truth, arm, ends)
            ]
    raise _NotLinear


def _in_arm(
    at: t.TypedIf, test: t.Typed, truth: bool, arm: Sequence[t.TypedStatement], ends: _Ends
) -> list[t.TypedStatement]:
    """Statements under a condition, at the ends of the iterations in which it holds."""
    if not arm:
        return []
    guards, is_certain = [], True
    inside, parts = ends, list(_parts(test, truth))
    for part, holds in parts:
        if len(parts) > 1:  # it may be looked at only where those before it hold
            part = _with_looked_up(part)
        if not mentions_index(part, ends.name):
            guards.append(part if holds else t.Operation("bool", "not", (part,)))
        elif (narrowed := _narrowed(part, holds, inside)) is not None:
            inside = narrowed
        else:
            is_certain = False
    found = [s for inner in arm for s in _at(inner if is_certain else _uncertain(inner), inside)]
    if inside != ends:
        found = _under_ends(at, inside, found)
    for guard in reversed(guards):
        found = [t.TypedIf(at.line, at.text, guard, tuple(found), ())]
    return found


def _uncertain(statement: t.TypedStatement) -> t.TypedStatement:
    """The statement where it may be done although its condition does not hold."""
    return t.with_values(statement, _with_looked_up)


def _with_looked_up(node: t.Typed) -> t.Typed:
    node = t.mapped(node, _with_looked_up)
    return looked_up(node) if isinstance(node, t.Load) else node


def _parts(test: t.Typed, truth: bool) -> Iterator[tuple[t.Typed, bool]]:
    """Conditions that hold, or do not, where a test has the given truth."""
    match test:
        case t.Operation(operator="not", operands=(operand,)):
            yield from _parts(operand, not truth)
        case t.Operation(operator="&" | "&&" | "|" | "||" as operator, operands=operands, dtype="bool") if (
            operator in ("&", "&&")
        ) == truth:
            for operand in operands:
                yield from _parts(operand, truth)
        case _:
            yield test, truth


def _narrowed(test: t.Typed, truth: bool, ends: _Ends) -> _Ends | None:
    """The ends of the iterations in which a comparison holds; None where that is not known. Where a bound wraps around 64 bits
    there may be more."""
    if not isinstance(test, t.Operation) or test.operator not in OPPOSITE:
        return None
    operator = test.operator if truth else OPPOSITE[test.operator]
    left, right = test.operands
    if mentions_index(right, ends.name):
        left, right, operator = right, left, MIRRORED[operator]
    further = _beyond(left, ends.name)
    if further is None or mentions_index(right, ends.name) or right.dtype != "int64":
        return None
    # index + further, compared with right
    by = further + (operator == "<") - (operator == ">")
    bound = t.Operation("int64", "-", (right, t.Literal("int64", by))) if by else right
    if operator in ("<", "<=") and further >= 0:
        return replace(ends, last=t.Operation("int64", "min", (ends.last, bound)))
    if operator in (">", ">=") and further <= 0:
        return replace(ends, first=t.Operation("int64", "max", (ends.first, bound)))
    return None


def _beyond(node: t.Typed, name: str) -> int | None:
    """How much an expression is more than the loop's index; None where that is not a number in the text."""
    match node:
        case t.Index(name=own) if own == name:
            return 0
        case t.Operation(operator="+" | "-" as sign, operands=(inner, t.Literal(value=int() as by)), dtype="int64"):
            less = _beyond(inner, name)
            return None if less is None else less + (by if sign == "+" else -by)
    return None


def slope(node: t.Typed, name: str) -> int | None:
    """The factor of the loop's index in a linear expression; None where it is none."""
    if not mentions_index(node, name):
        return 0
    match node:
        case t.Index():
            return 1
        case t.Operation(operator="unary -", operands=(operand,), dtype="int64"):
            inner = slope(operand, name)
            return None if inner is None else -inner
        case t.Operation(operator="+" | "-" as sign, operands=(left, right), dtype="int64"):
            a, b = slope(left, name), slope(right, name)
            return None if a is None or b is None else a + b if sign == "+" else a - b
        case (
            t.Operation(operator="*", operands=(t.Literal(value=int() as factor), operand))
            | t.Operation(operator="*", operands=(operand, t.Literal(value=int() as factor)))
        ) if node.dtype == "int64":
            inner = slope(operand, name)
            return None if inner is None or abs(inner * factor) > _STEEPEST else inner * factor
        case t.AffineValue(affine=affine):
            factor = affine.coefficient(name)
            return None if abs(factor) > _STEEPEST else factor
        case t.Select(test=test, then=then, otherwise=otherwise) if not mentions_index(test, name):
            a, b = slope(then, name), slope(otherwise, name)
            return a if a == b else None
    return None


def with_index(node: t.Typed, name: str, value: t.Typed) -> t.Typed:
    """A linear expression with something in the place of the loop's index."""
    if isinstance(node, t.Index) and node.name == name:
        return value
    if isinstance(node, t.AffineValue) and name in node.affine.names:
        factor, rest = node.affine.coefficient(name), replace(node, affine=node.affine.substitute({name: Affine(0)}))
        times = t.Operation("int64", "*", (t.Literal("int64", factor), value))
        return t.Operation("int64", "+", (rest, times))
    return t.mapped(node, lambda child: with_index(child, name, value))
