"""Powers with a constant exponent, of which most have the bits of C's pow without a call of it (``support.h``)."""

from __future__ import annotations

from collections.abc import Iterator

from lapwing.loopnest.binding import typed as t

# By exponent, the name of the function in support.h.
QUICK = {2.0: "square", 3.0: "cube", 4.0: "fourth", 0.5: "root", -1.0: "inverse"}
_OPERATORS = ("**", "math.pow")


def is_power(node: t.Typed) -> bool:
    return isinstance(node, t.Operation) and node.operator in _OPERATORS and node.dtype.startswith("float")


def exponent(node: t.Operation) -> float | None:
    """The exponent of a power where it is a constant."""
    base = node.operands[1]
    while isinstance(base, t.Convert) and base.trap is None:
        base = base.operand
    return float(base.value) if isinstance(base, t.Literal) and not isinstance(base.value, complex) else None


def powers_of(body: t.TypedBody) -> Iterator[tuple[t.SimpleStatement, t.Operation]]:
    """Every power of floats, with the statement it stands in."""
    for statement in body.simple:
        for node in t.walk(statement.value):
            if isinstance(node, t.Operation) and is_power(node):
                yield statement, node
