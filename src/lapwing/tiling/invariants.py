"""What every iteration evaluates alike and may raise at, as ``h**2`` of an argument: it is taken out of the loops (loop-invariant
code motion), so that nothing inside of them can raise."""

from __future__ import annotations

from collections.abc import Iterator

from lapwing.loopnest.binding import typed as t


def raising_invariants(body: t.TypedBody) -> tuple[t.Typed, ...]:
    """The largest expressions over arguments alone that may raise and that every iteration evaluates."""
    if not body.traps:
        return ()
    if any(isinstance(s, t.TypedJump) for s in t.all_statements(body.statements)):
        return ()  # a statement after it may be left out
    always = (s for s in body.statements if isinstance(s, t.SimpleStatement))
    values = (value for s in always for value in t.own_values(s))
    return tuple(dict.fromkeys(found for value in values for found in _inside(value)))


def raises_alike(body: t.TypedBody) -> bool:
    """Whether nothing else in the body may raise."""
    if not body.traps:
        return True
    known = set(raising_invariants(body))
    values = (value for s in t.all_statements(body.statements) for value in t.own_values(s))
    return not any(_raises(value, known) for value in values)


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
