"""Loop versioning (Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001) of innermost loops that store to a row
of an array and look at another one, which may be the same: the rows are compared before the loop.

    for d in range(n):                   if p != y:
        u[y, d] = f(u[p, d - 1])             for d in range(n):    # iterations are independent
                                                 u[y, d] = f(u[p, d - 1])
                                    →    else:
                                             for d in range(n):
                                                 u[y, d] = f(u[p, d - 1])
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lapwing.codegen.outer_loops.independence import Meeting, accesses_in, meeting, stores_in
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_speculable

_MOST = 4  # pairs of rows that are compared


def independent_where(loop: t.TypedFor) -> t.Typed | None:
    """What holds where no iteration stores to what another one touches; None where no rows say that."""
    name, stores = loop.index.name, stores_in(loop.body)
    statements = t.all_statements(loop.body)
    inside = {s.local for s in statements if isinstance(s, t.TypedLocal | t.TypedVariable | t.TypedAssign)}
    found: dict[t.Typed, None] = {}
    for store in stores:
        for access in accesses_in(loop.body):
            if meeting(store, access, name, ()) is not Meeting.ANY:
                continue
            tests = _tests(store, access, name, inside)
            if not tests:
                return None
            found[_joined("||", tests)] = None
    return _joined("&&", list(found)) if 0 < len(found) <= _MOST else None


def _tests(one: t.Load, other: t.Load, name: str, inside: Collection[t.Local]) -> list[t.Typed]:
    """Comparisons of the indices of two accesses along the axes along which those are the same in all iterations."""
    pairs = zip(one.subscripts, other.subscripts, strict=True)
    indices = ((_index(a, name, inside), _index(b, name, inside)) for a, b in pairs if a != b)
    return [t.Operation("bool", "!=", (a, b)) for a, b in indices if a is not None and b is not None]


def _index(subscript: t.AffineSubscript | t.LookupSubscript, name: str, inside: Collection[t.Local]) -> t.Typed | None:
    """An index from the start of an axis that all iterations share; None where it is none, or may not be."""
    if isinstance(subscript, t.AffineSubscript):
        shared = not subscript.wrap and name not in subscript.affine.names
        return t.AffineValue("int64", subscript.affine) if shared else None
    index = subscript.index
    if subscript.counts_from_end or not is_speculable(index):
        return None
    parts = list(t.walk(index))
    if any(isinstance(part, t.Load) or part in inside for part in parts) or name in t.indices_of(index):
        return None
    return index if index.dtype == "int64" else t.Convert("int64", index)


def _joined(operator: str, tests: Sequence[t.Typed]) -> t.Typed:
    return tests[0] if len(tests) == 1 else t.Operation("bool", operator, tuple(tests))
