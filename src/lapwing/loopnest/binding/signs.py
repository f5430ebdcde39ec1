"""What is known of a float's sign from how it is computed: neither a root of a sum of squares raises nor a quotient by 1 plus it.

A NaN has any sign: nothing that is asked about here raises for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from lapwing.loopnest.binding import powers
from lapwing.loopnest.binding import typed as t


class Sign(IntEnum):
    """What a float is at least; -0.0 is not negative."""

    ANY = 0
    NOT_NEGATIVE = 1
    POSITIVE = 2


_NEVER_NEGATIVE = frozenset(
    f"{module}.{name}" for module in ("math", "numpy") for name in ("sqrt", "exp", "fabs", "absolute", "square")
) | {"abs"}


def sign_of(node: t.Typed, known: Mapping[t.Local, Sign]) -> Sign:
    """known: the signs of locals that have one value each."""
    if not node.dtype.startswith("float"):
        return Sign.ANY
    match node:
        case t.Literal(value=float() | int() as value):
            return Sign.POSITIVE if value > 0 else Sign.NOT_NEGATIVE if value == 0 else Sign.ANY
        case t.Local():
            return known.get(node, Sign.ANY)
        case t.Convert(operand=t.Literal(value=float() | int() as value)) if node.dtype == "float64":
            return Sign.POSITIVE if value > 0 else Sign.NOT_NEGATIVE if value == 0 else Sign.ANY
        case t.Convert(operand=operand) if node.dtype == "float64":
            return sign_of(operand, known)
        case t.Operation(operator="max", operands=(one, other)):
            # The first one, unless the other is larger; a number is no NaN, which is not larger, nor smaller.
            return max(sign_of(one, known), sign_of(other, known) if isinstance(other, t.Literal) else Sign.ANY)
        case t.Operation(operator="min", operands=operands):
            return min(sign_of(operand, known) for operand in operands)
        case t.Select(then=then, otherwise=otherwise):
            return min(sign_of(then, known), sign_of(otherwise, known))
        case t.Operation(operator="*", operands=(one, other)) if one == other:
            return Sign.NOT_NEGATIVE
        case t.Operation(operator="*", operands=operands):
            # What is too small becomes 0.
            return min(Sign.NOT_NEGATIVE, *(sign_of(operand, known) for operand in operands))
        case t.Operation(operator="/", operands=(over, by)) if sign_of(by, known) is Sign.POSITIVE:
            return min(Sign.NOT_NEGATIVE, sign_of(over, known))
        case t.Operation(operator="+", operands=operands):
            signs = [sign_of(operand, known) for operand in operands]
            return max(signs) if Sign.ANY not in signs else Sign.ANY
        case t.Operation(operator=operator) if operator in _NEVER_NEGATIVE:
            return Sign.NOT_NEGATIVE
        case t.Operation() if powers.is_power(node) and powers.exponent(node) in (2.0, 4.0):
            return Sign.NOT_NEGATIVE
    return Sign.ANY
