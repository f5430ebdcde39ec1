"""What iterations evaluate alike and is taken out of loops (loop-invariant code motion): what may raise, as ``h**2`` of an
argument, so that nothing inside of them can; and what compilers leave there, as it is a call that the loop may not come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t

_BRANCHING = ("wrap", "//", "%")  # operations that are functions of support.h with conditions


def raising_invariants(body: t.TypedBody) -> tuple[t.Typed, ...]:
    """The largest expressions over arguments alone that may raise and that every iteration evaluates."""
    if not body.traps:
        return ()
    if any(isinstance(s, t.TypedJump) for s in t.all_statements(body.statements)):
        return ()  # a statement after it may be left out
    always = (s for s in body.statements if isinstance(s, t.SimpleStatement))
    values = (value for s in always for value in t.own_values(s))
    return tuple(dict.fromkeys(found for value in values for found in _inside(value)))


def conditional_invariants(body: t.TypedBody) -> tuple[t.Typed, ...]:
    """The largest others over arguments alone that may raise, and that iterations evaluate which come to them."""
    if not body.traps:
        return ()
    known = set(raising_invariants(body))
    found = _largest(body, lambda node: node in known or (is_invariant(node) and any(map(_is_trapped, t.walk(node)))))
    return tuple(node for node in dict.fromkeys(found) if node not in known)


def raises_alike(body: t.TypedBody) -> bool:
    """Whether nothing else in the body may raise."""
    if not body.traps:
        return True
    known = set(raising_invariants(body))
    values = (value for s in t.all_statements(body.statements) for value in t.own_values(s))
    return not any(_raises(value, known) for value in values)


def costly_invariants(body: t.TypedBody) -> tuple[t.Typed, ...]:
    """The largest expressions over arguments alone with a power or a call, and that raise nothing: whether an iteration comes to
    them or not."""
    return tuple(dict.fromkeys(_largest(body, lambda node: is_invariant(node) and _is_costly(node))))


def row_invariants(body: t.TypedBody, outer: frozenset[str]) -> tuple[t.Typed, ...]:
    """The same, and choices, in which also the indices of some loops may occur, but no arguments alone."""

    def is_found(node: t.Typed) -> bool:
        return is_row_invariant(node, outer) and not is_invariant(node) and (_is_costly(node) or _branches(node))

    return tuple(dict.fromkeys(_largest(body, is_found)))


def is_row_invariant(node: t.Typed, outer: frozenset[str]) -> bool:
    """Whether an expression that raises nothing is over arguments and indices of outer loops."""
    return not any(
        isinstance(part, t.Load | t.Local)
        or (isinstance(part, t.Index) and part.name not in outer)
        or _is_trapped(part)
        for part in t.walk(node)
    )


def _largest(body: t.TypedBody, is_wanted: Callable[[t.Typed], bool]) -> Iterator[t.Typed]:
    pending = [value for s in t.all_statements(body.statements) for value in t.own_values(s)][::-1]
    while pending:
        node = pending.pop()
        if is_wanted(node):
            yield node
        else:
            pending += t.children(node)[::-1]


def _is_costly(node: t.Typed) -> bool:
    parts = list(t.walk(node))
    calls = (
        isinstance(part, t.Operation) and (powers.is_power(part) or "math." in part.operator or t.is_numpy_loop(part))
        for part in parts
    )
    return any(calls) and not any(map(_is_trapped, parts))


def _branches(node: t.Typed) -> bool:
    return any(isinstance(part, t.Operation) and part.operator in _BRANCHING for part in t.walk(node))


def _is_trapped(node: t.Typed) -> bool:
    return getattr(node, "trap", None) is not None


def _inside(node: t.Typed) -> Iterator[t.Typed]:
    if is_invariant(node):
        if any(getattr(part, "trap", None) is not None for part in t.walk(node)):
            yield node
        return
    match node:
        case t.Select(test=test):
            yield from _inside(test)
        case t.Operation(operator="&&" | "||", operands=operands):
            yield from _inside(operands[0])
        case _:
            for child in t.children(node):
                yield from _inside(child)


def invariant_divisors(body: t.TypedBody) -> tuple[t.Typed, ...]:
    """The divisors of floats that are the same in every iteration, but for powers of two in the text, by which compilers
    multiply."""
    values = (value for s in t.all_statements(body.statements) for value in t.own_values(s))
    divisors = (invariant_divisor(node) for value in values for node in t.walk(value))
    return tuple(dict.fromkeys(divisor for divisor in divisors if divisor is not None))


def invariant_divisor(node: t.Typed) -> t.Typed | None:
    """That of a quotient, where it is one of those."""
    if not isinstance(node, t.Operation) or node.operator != "/" or node.trap is not None or is_invariant(node):
        return None
    divisor = node.operands[1]
    is_float = divisor.dtype in ("float32", "float64")
    return divisor if is_float and is_invariant(divisor) and not is_power_of_two(divisor) else None


def is_power_of_two(divisor: t.Typed) -> bool:
    """Whether it is a number in the text by which a quotient is a product with the same bits."""
    if isinstance(divisor, t.Convert):
        return is_power_of_two(divisor.operand)
    if not isinstance(divisor, t.Literal) or isinstance(divisor.value, complex):
        return False
    return math.isfinite(divisor.value) and math.frexp(abs(divisor.value))[0] == 0.5


def is_invariant(node: t.Typed) -> bool:
    """Whether an expression is over arguments alone."""
    return not any(isinstance(part, t.Load | t.Index | t.Local | t.AffineValue) for part in t.walk(node))


def _raises(node: t.Typed, known: set[t.Typed]) -> bool:
    if node in known:
        return False
    if getattr(node, "trap", None) is not None:
        return True
    if isinstance(node, t.Load) and any(getattr(s, "trap", None) is not None for s in node.subscripts):
        return True
    return any(_raises(child, known) for child in t.children(node))
