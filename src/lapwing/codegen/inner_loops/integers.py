"""Expressions for where loops begin and end."""

from __future__ import annotations

from lapwing.loopnest.binding import typed as t


def combined(operator: str, one: t.Typed, other: t.Typed) -> t.Operation:
    """Two integers, as by a sum or a minimum."""
    return t.Operation("int64", operator, (one, other))


def plus(node: t.Typed, number: int) -> t.Typed:
    """An integer so much further."""
    return combined("+", node, t.Literal("int64", number)) if number else node
