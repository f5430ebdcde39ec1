"""Loop distribution (Kuck, 1977; Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapters 2 and 6) of innermost
loops whose iterations store to each other's elements, and look at none that another stores to.

    for j in range(m - 1):                 for j in range(m - 1):
        if a[j] == 1 and a[j + 1] == 0:        b[j + 1] = 1 if a[j] == 1 and a[j + 1] == 0 else b[j + 1]
            b[j] = 0                    →  for j in range(m - 1):
            b[j + 1] = 1                       b[j] = 0 if a[j] == 1 and a[j + 1] == 0 else b[j]

An element is stored to by the stores that are furthest ahead of the index first. So the dependences between them go from a store
to those that are less far ahead, and to later ones in the text that are as far: there is no cycle, and loops in that order do to
every element what the one loop does, in its order. Of each, iterations are independent. An update of an element is done where it
is stored.

Indices that come back at the other end of an array do not in the middle of the loop, which alone is distributed (index set
splitting).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.codegen.body.distribution import without_unread
from lapwing.codegen.body.wrapping import wrapping
from lapwing.codegen.inner_loops.elements import NewLocal
from lapwing.codegen.inner_loops.integers import combined
from lapwing.codegen.outer_loops.ranges import form_of
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_cheap
from lapwing.tiling.invariants import is_invariant

_MOST_LOOPS = 4  # that go through what conditions look at


def distributed_stores(loop: t.TypedFor, new: NewLocal) -> list[t.TypedStatement]:
    """Loops in the place of one; none where that cannot be."""
    ends = _ends(loop)
    inside = _inside(loop) if ends else loop
    bodies = _bodies(inside)
    if not bodies:
        return []
    found: list[t.TypedStatement] = []

    def held(value: t.Typed) -> t.Local:
        local = new()
        found.append(t.TypedLocal(loop.line, loop.text, local, value))
        return local

    start, stop = held(loop.start), held(loop.stop)
    first, last = start, stop
    if ends:
        lows, highs = ends
        low: t.Typed = start
        high: t.Typed = stop
        for bound in lows:
            low = combined("max", low, bound)
        for bound in highs:
            high = combined("min", high, bound)
        first = held(combined("max", start, combined("min", low, stop)))
        last = held(combined("max", first, high))
    middle = [replace(inside, start=first, stop=last, body=body, independent=True) for body in bodies]
    if not ends:
        return [*found, *middle]
    before, after = (replace(loop, start=a, stop=b) for a, b in ((start, first), (last, stop)))
    return [*found, before, *middle, after]


# -- the middle of a loop, in which no index comes back ------------------------------------------------------------------


def _ends(loop: t.TypedFor) -> tuple[list[t.Typed], list[t.Typed]] | None:
    """What the index is not less than, and less than, where no index comes back; None where none does anywhere."""
    lows, highs = list[t.Typed](), list[t.Typed]()
    for node, (apart, other) in wrapping(loop.body, loop.index.name).items():
        if _comes_back(node):
            lows.append(t.Literal("int64", -apart))
            highs += [] if other is None else [combined("-", other, t.Literal("int64", max(0, apart)))]
    return (list(dict.fromkeys(lows)), list(dict.fromkeys(highs))) if lows else None


def _comes_back(node: t.Typed | t.LookupSubscript) -> bool:
    return isinstance(node, t.LookupSubscript) or (isinstance(node, t.Operation) and node.operator == "wrap")


def _inside(loop: t.TypedFor) -> t.TypedFor:
    """The loop where none does."""
    back = frozenset(node for node in wrapping(loop.body, loop.index.name) if _comes_back(node))

    def found(node: t.Typed) -> t.Typed:
        if isinstance(node, t.Load):
            return replace(node, subscripts=tuple(map(subscript, node.subscripts)))
        inner = t.mapped(node, found)
        return inner.operands[0] if node in back and isinstance(inner, t.Operation) else inner

    def subscript(given: t.AffineSubscript | t.LookupSubscript) -> t.AffineSubscript | t.LookupSubscript:
        if isinstance(given, t.AffineSubscript):
            return given
        index = found(given.index)
        form = form_of(index) if given.trap is None and (given in back or index != given.index) else None
        return replace(given, index=index) if form is None else t.AffineSubscript(form)

    body = tuple(t.with_values(statement, found) for statement in loop.body)
    exist = (found(load) for load in loop.exist)
    return replace(loop, body=body, exist=frozenset(load for load in exist if isinstance(load, t.Load)))


# -- which store is done in which loop -----------------------------------------------------------------------------------


def _bodies(loop: t.TypedFor) -> list[tuple[t.TypedStatement, ...]]:
    """The bodies of the loops in their order; none where there is a dependence besides those between stores."""
    statements = list(t.all_statements(loop.body))
    stores = [s for s in statements if isinstance(s, t.TypedStore)]
    stored = {s.target.array for s in stores}
    for statement in statements:
        target = statement.target if isinstance(statement, t.TypedStore) else None
        own = (node for value in t.own_values(statement) for node in t.walk(value) if isinstance(node, t.Load))
        if any(load.array in stored and load != target for load in own):
            return []
    ahead = _ahead(stores, loop.index.name)
    if ahead is None:
        return []
    distances = sorted(set(ahead.values()), reverse=True)
    shared = (s for s in statements if isinstance(s, t.TypedIf | t.TypedLocal | t.TypedAssign))
    if len(distances) > 1 and not all(_takes_little(value) for s in shared for value in t.own_values(s)):
        return []
    if len(distances) > _MOST_LOOPS:
        return []
    return [
        tuple(without_unread(list(_with_stores(loop.body, ahead, distance, distance == distances[-1]))))
        for distance in distances
    ]


def _ahead(stores: Sequence[t.TypedStore], index: str) -> dict[int, int] | None:
    """How far each store, by its identity, is ahead of the first one to that array; None where that is not known."""
    found: dict[int, int] = {}
    places: dict[str, tuple[int, Affine]] = {}
    for store in stores:
        along = [axis for axis, s in enumerate(store.target.subscripts) if not _is_fixed(s, index)]
        if len(along) != 1:
            return None
        subscript = store.target.subscripts[along[0]]
        if not isinstance(subscript, t.AffineSubscript) or subscript.affine.coefficient(index) != 1:
            return None
        form = subscript.affine + subscript.wrap
        axis, first = places.setdefault(store.target.array, (along[0], form))
        difference = form - first
        if axis != along[0] or difference.terms:
            return None
        found[id(store)] = difference.constant
    return found


def _is_fixed(subscript: t.AffineSubscript | t.LookupSubscript, index: str) -> bool:
    """Whether it is the same in all iterations."""
    if isinstance(subscript, t.AffineSubscript):
        return not subscript.affine.coefficient(index)
    parts = list(t.walk(subscript.index))
    return not any(isinstance(p, t.Local | t.Load) or index in t.indices_of(p) for p in parts)


def _takes_little(node: t.Typed) -> bool:
    divides = any(isinstance(part, t.Operation) and part.operator in ("/", "//", "%") for part in t.walk(node))
    return is_invariant(node) or (is_cheap(node) and not divides)


def _with_stores(
    body: Sequence[t.TypedStatement], ahead: Mapping[int, int], distance: int, is_last: bool
) -> Iterator[t.TypedStatement]:
    """Statements with the stores that are so far ahead alone; what else is done stands in the last loop."""
    for statement in body:
        match statement:
            case t.TypedStore():
                if ahead[id(statement)] == distance:
                    yield statement
            case t.TypedIf(then=then, otherwise=otherwise):
                then, otherwise = (tuple(_with_stores(arm, ahead, distance, is_last)) for arm in (then, otherwise))
                if then or otherwise:
                    yield replace(statement, then=then, otherwise=otherwise)
            case t.TypedAccumulate():
                if is_last:
                    yield statement
            case _:
                yield statement
