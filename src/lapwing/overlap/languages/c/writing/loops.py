"""Which of C's loops can be peeled at both ends."""

from __future__ import annotations

from lapwing.overlap.ir.expressions import Number
from lapwing.overlap.ir.rewriter import is_spelled_signed, types_in
from lapwing.overlap.ir.statements import Loop


def may_wrap(loop: Loop, planes: int) -> bool:
    """Whether a bound minus some planes may wrap around, as unsigned numbers do below zero."""
    ends = (loop.lower, loop.upper)
    if loop.wraps and not all(isinstance(e, Number) and e.value >= 0 for e in ends):
        return True
    high = loop.upper if loop.step == Number(1) else loop.lower
    # A number may come from a macro or a sizeof, of any type.
    near = isinstance(high, Number) and high.value < planes and not all(isinstance(e, Number) for e in ends)
    kinds = [kind for e in loop.expressions() for kind in types_in(e)]
    return near or not all(kind is not None and is_spelled_signed(kind) for kind in (loop.variable.type, *kinds))
