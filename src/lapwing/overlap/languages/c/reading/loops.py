"""Which ``for`` of C is a counted loop: one that runs its variable from a bound to a bound by a fixed step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Expression,
    Invocation,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Unread,
)
from lapwing.overlap.ir.statements import Assign, Block, Call, Declare, Loop, Opaque, Statement
from lapwing.overlap.languages.c.reading.expressions import base_symbol
from lapwing.overlap.source.spans import Span

_DISTINCT = frozenset(("integer", "real", "complex", "pointer"))  # a character pointer may lead anywhere
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass(frozen=True)
class PointedKinds:
    """Kinds of types (``Type.base``) of what is read in a loop's condition and written in its body through pointers."""

    read: frozenset[str]
    written: frozenset[str]


def counted(
    parts: Sequence[Expression], body: Block, declares: bool, unsigned: bool, kinds: PointedKinds, span: Span
) -> Loop | None:
    """The counted loop that a ``for`` with these three parts is, None if it is none.

    ``for (i = a; i < b; i += c)`` → ``Loop(i, a, b - 1, c)``. The body must not assign the variable, nor what the bound is
    computed from; a function the body calls might still change a global in the bound. ``unsigned``: the condition compares
    unsigned numbers, for which b - 1 may wrap around. ``kinds``: what pointers lead to in the condition and the body.
    """
    first, condition, after = parts
    if not isinstance(first, Assignment) or first.operator is not None or not isinstance(first.target, Name):
        return None
    variable = first.target.symbol
    if not _may_count(variable) or any(_has_effects(part) for part in (first.value, condition)):
        return None
    compared = _comparison(condition, variable)
    step = _step(after, variable)
    if compared is None or step is None:
        return None
    operator, bound = compared
    if _mentions(bound, variable) or (unsigned and _subtracts(bound)):
        return None
    upper = _last(operator, bound, step, unsigned)
    if upper is None or not _holds_still(body, variable, bound, kinds):
        return None
    return Loop(variable, first.value, upper, Number(step), body, declares, wraps=unsigned, span=span)


def _may_count(variable: Symbol) -> bool:
    """Whether the variable has no aliases, and a type that is wide enough to reach the bound."""
    private = variable.storage is Storage.LOCAL or (variable.storage is Storage.ARGUMENT and variable.by_value)
    whole = variable.type.base == "integer" and (variable.type.bytes or 0) >= 4
    return private and whole and not variable.volatile and variable.dimensions is None


def _has_effects(expression: Expression) -> bool:
    return any(isinstance(part, Assignment | Invocation | Unread) for part in expression.walk())


def _mentions(expression: Expression, variable: Symbol) -> bool:
    return any(isinstance(part, Name) and part.symbol == variable for part in expression.walk())


def _subtracts(expression: Expression) -> bool:
    return any(isinstance(part, Operation) and part.operator in ("-", "neg", "~") for part in expression.walk())


def _comparison(condition: Expression, variable: Symbol) -> tuple[str, Expression] | None:
    if not isinstance(condition, Operation) or condition.operator not in _MIRRORED:
        return None
    left, right = condition.arguments
    if isinstance(left, Name) and left.symbol == variable:
        return condition.operator, right
    if isinstance(right, Name) and right.symbol == variable:
        return _MIRRORED[condition.operator], left
    return None


def _step(after: Expression, variable: Symbol) -> int | None:
    """The increment per iteration, if it is a number."""
    if not isinstance(after, Assignment) or not isinstance(after.target, Name) or after.target.symbol != variable:
        return None
    value = after.value
    if after.operator in ("+", "-") and isinstance(value, Number) and isinstance(value.value, int):
        return value.value if after.operator == "+" else -value.value
    if after.operator is not None or not isinstance(value, Operation) or value.operator not in ("+", "-"):
        return None
    numbers = [part.value for part in value.arguments if isinstance(part, Number) and isinstance(part.value, int)]
    names = [part for part in value.arguments if isinstance(part, Name) and part.symbol == variable]
    if len(numbers) != 1 or len(names) != 1:
        return None
    if value.operator == "-":
        return -numbers[0] if value.arguments[0] is names[0] else None
    return numbers[0]


def _last(operator: str, bound: Expression, step: int, unsigned: bool) -> Expression | None:
    """The bound, included."""
    if operator == "!=" and step in (1, -1):
        operator = "<" if step == 1 else ">"
    if step > 0 and operator in ("<", "<="):
        return bound if operator == "<=" else _plus(bound, -1)
    if step < 0 and operator in (">", ">="):
        if operator == ">=" and unsigned:
            return None
        return bound if operator == ">=" else _plus(bound, 1)
    return None


def _plus(bound: Expression, number: int) -> Expression:
    if isinstance(bound, Number):
        return Number(bound.value + number)
    return Operation("+" if number > 0 else "-", (bound, Number(abs(number))))


def _holds_still(body: Block, variable: Symbol, bound: Expression, kinds: PointedKinds) -> bool:
    """Whether the body assigns neither the variable nor, as far as its own text shows, the bound's operands."""
    fixed = {part.symbol for part in bound.walk() if isinstance(part, Name)} | {variable}
    calls_others = False
    for statement in body.walk():
        if isinstance(statement, Opaque):
            return False
        calls_others = calls_others or isinstance(statement, Call)
        for part in statement.every_expression():
            calls_others = calls_others or isinstance(part, Invocation | Unread)
            if isinstance(part, AddressOf) and base_symbol(part.object) in fixed:
                return False
    if variable.target and calls_others:
        return False
    within_reach = kinds.read | {symbol.type.base for symbol in fixed if symbol.target}
    for target in _written(body):
        base = base_symbol(target)
        if base in fixed or (base is None and _may_meet(kinds.written, within_reach)):
            return False
    return True


def _may_meet(written: frozenset[str], read: frozenset[str]) -> bool:
    """Whether a write through a pointer may alias what is read: only objects of its own type (C 2011, 6.5.7)."""
    return bool(read) and not (written <= _DISTINCT and read <= _DISTINCT and written.isdisjoint(read))


def _written(body: Block) -> Iterator[Expression]:
    for statement in body.walk():
        yield from _written_by(statement)
        for part in statement.every_expression():
            if isinstance(part, Assignment):
                yield part.target


def _written_by(statement: Statement) -> Iterator[Expression]:
    if isinstance(statement, Assign):
        yield statement.target
    elif isinstance(statement, Call) and statement.result is not None:
        yield statement.result
    elif isinstance(statement, Loop):
        yield Name(statement.variable)
    elif isinstance(statement, Declare):
        yield from (Name(symbol) for symbol, _ in statement.variables)
