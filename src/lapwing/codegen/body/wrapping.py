"""Index set splitting (Banerjee, 1979): where along a loop indices come back at the other end of an array, ``u[(i + 1) % n]`` and
``u[i - 1]``, or stay at an end, ``u[max(i - 1, 0)]``. In the middle of the loop they do neither, and vectors can be loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from lapwing.codegen.body.expression import stripped
from lapwing.codegen.body.text import plus
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.invariants import is_invariant

# How far each is from the loop's index, and what that is compared with.
Wrapping = Mapping[t.Operation | t.LookupSubscript, tuple[int, t.Typed | None]]


def wrapping(
    statements: Iterable[t.TypedStatement], loop: str
) -> dict[t.Operation | t.LookupSubscript, tuple[int, t.Typed | None]]:
    """What wraps along a loop with so called an index, which counts up by ones."""
    found: dict[t.Operation | t.LookupSubscript, tuple[int, t.Typed | None]] = {}
    values = (v for s in t.all_statements(statements) for v in t.own_values(s))
    for node in (node for value in values for node in t.walk(value)):
        match node:
            case t.Operation(operator="wrap" | "max" | "min", operands=(index, other), dtype="int64"):
                apart = _apart(index, loop)
                if apart is not None and is_invariant(other):
                    found[node] = apart, other
            case t.Load(subscripts=subscripts):
                for s in subscripts:
                    if isinstance(s, t.LookupSubscript) and s.counts_from_end and s.trap is None:
                        apart = _apart(s.index, loop)
                        if apart is not None:
                            found[s] = apart, None
    return found


def middle(wraps: Wrapping, end: str, printed: Callable[[t.Typed], str]) -> tuple[str, str]:
    """C texts of where that part of a loop begins and ends in which nothing wraps."""
    begins, ends = {"0"}, set[str]()
    for node, (apart, other) in wraps.items():
        operator = node.operator if isinstance(node, t.Operation) else ""
        bound = "" if other is None else printed(other)
        if operator == "max":
            begins.add(plus(f"lw_near({stripped(bound)})", -apart))
        elif operator == "min":
            ends.add(plus(f"lw_near({stripped(bound)})", 1 - apart))
        else:
            begins.add(str(max(0, -apart)))
            ends |= {f"{bound} - {max(0, apart)}"} if bound else set()
    numbers = [int(text) for text in begins if text.isdigit()]
    first = reduce("lw_max_i64({}, {})".format, [str(max(numbers)), *sorted(t for t in begins if not t.isdigit())])
    return first, reduce("lw_min_i64({}, {})".format, sorted(ends), end)


def _apart(index: t.Typed, loop: str) -> int | None:
    """How far an index is from that of a loop; None where that is not a constant."""
    match index:
        case t.Index(name=name) if name == loop:
            return 0
        case t.Operation(operator="+" | "-" as sign, operands=(t.Index(name=name), t.Literal(value=int(value)))) if (
            name == loop
        ):
            return value if sign == "+" else -value
    return None
