"""Short loops around others that are written out in full (loop unrolling: Allen and Kennedy, chapter 8).

    for di in range(-1, 2):
        for dj in range(-1, 2):
            k = count
            while k > 0 and window[k - 1] > value: …
            count += 1

Compilers write out a short innermost loop by themselves, but none that has a loop in it. Written out, its index and what it
counts are numbers: what is checked of these is known, and the loops inside end after so many iterations.
"""

from __future__ import annotations

from collections.abc import Iterable

from lapwing.loopnest.binding import typed as t

_MOST_ITERATIONS = 9
_MOST_STATEMENTS = 128  # once it is written out, with what is in loops inside


def copies(loop: t.TypedFor) -> int:
    """How often the body of a loop is to be written; 0 where that is left to compilers."""
    if loop.independent or not any(_is_loop(s) for s in t.all_statements(loop.body)):
        return 0
    iterations = _iterations(loop)
    return iterations if iterations > 1 and 0 < _size((loop,)) <= _MOST_STATEMENTS else 0


def _is_loop(statement: t.TypedStatement) -> bool:
    return isinstance(statement, t.TypedFor | t.TypedWhile)


def _iterations(loop: t.TypedFor) -> int:
    """How many iterations a loop has; 0 where that is not known, or they are many."""
    bounds = [_number(bound) for bound in (loop.start, loop.stop, loop.step)]
    start, stop, step = bounds
    if start is None or stop is None or not step:
        return 0
    count = len(range(start, stop, step))
    return count if count <= _MOST_ITERATIONS else 0


def _number(node: t.Typed) -> int | None:
    match node:
        case t.Literal(value=int() as value):
            return value
        case t.Operation(operator="unary -", operands=(t.Literal(value=int() as value),)):
            return -value
        case t.AffineValue(affine=affine) if not affine.terms:
            return affine.constant
    return None


def _size(statements: Iterable[t.TypedStatement]) -> int:
    """How many statements there are once all loops with known iterations are written out; more than can be where a loop has
    others, which takes its time anyhow."""
    total = 0
    for statement in statements:
        match statement:
            case t.TypedFor():
                total += (_iterations(statement) or _MOST_STATEMENTS + 1) * _size(statement.body)
            case t.TypedIf(then=then, otherwise=otherwise):
                total += 1 + _size((*then, *otherwise))
            case t.TypedWhile(body=body):
                total += 1 + _size(body)
            case _:
                total += 1
    return total
