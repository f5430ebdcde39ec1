"""Loops around chains whose iterations are not independent, but may be once the loop inside is skewed (wavefronts: Lamport, CACM
1974; Wolf and Lam, 1991).

    for j:                                  for j in strips, each lane one step behind the one before it:
        left = 0.0                              left[:] = 0.0
        for i in range(n):                      for step:
            left = f(left, below[i])    →           left[:] = f(left[:], below[step - j:])
            below[i] = left                         below[step - j:] = left[:]

With i + λ·j for the index of the inner loop two iterations of a strip are at work at once only where neither touches what the
other stores: where an iteration of the outer loop meets what one dj before it has touched, it does so dx iterations further along
the inner loop, and dx + λ·dj is positive. λ is the least factor for which that holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from lapwing.affine.affine import Affine
from lapwing.codegen.outer_loops.independence import (
    Meeting,
    accesses_in,
    assigned_outside,
    inner_indices,
    meeting,
    placed_accesses,
    stores_in,
)
from lapwing.codegen.outer_loops.windows import windows
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.chains import handed_on_cycles

_MOST_FACTOR = 3  # iterations between lanes: at the ends of rows lanes are alone
# Of lanes: how many operations, of all points, are done in a cycle, and how many it takes to bring elements from and to a row.
_OPERATIONS_IN_A_CYCLE, _OPERATIONS_OF_A_ROW = 6, 10
_FEWEST_CYCLES = 8


def skewed(body: Sequence[t.TypedStatement], index: str) -> tuple[tuple[t.TypedStatement, ...], int] | None:
    """The statements of a loop over an index with the one loop inside skewed, so that lanes may go through it together, and where
    that loop stands; None where there is no such loop, or factor."""
    places = [k for k, s in enumerate(body) if isinstance(s, t.TypedFor)]
    if len(places) != 1 or index in inner_indices(body):
        return None
    before, loop, later = body[: places[0]], body[places[0]], body[places[0] + 1 :]
    assert isinstance(loop, t.TypedFor)
    straight = t.SimpleStatement | t.TypedVariable
    if not all(isinstance(s, straight) for s in (*before, *loop.body, *later)) or assigned_outside(body):
        return None
    loop = replace(loop, body=tuple(_with_kept(loop.body)))
    if not (isinstance(loop.step, t.Literal) and loop.step.value == 1):
        return None
    if not _are_clear(before, (loop, *later), index) or not _are_clear(later, (loop,), index):
        return None
    factor = _factor(loop, index)
    if factor is None:
        return None
    return (*before, _with_factor(loop, index, factor), *later), places[0]


def _are_clear(one: Sequence[t.TypedStatement], other: Sequence[t.TypedStatement], index: str) -> bool:
    """That what some statements do in an iteration has nothing to do with what those and others do in another one."""
    inner = inner_indices((*one, *other))
    accesses = [*placed_accesses(one)], [*placed_accesses((*one, *other))]
    return all(
        meeting(a, b, index, inner) is not Meeting.ANY
        for a, stores, _ in accesses[0]
        for b, stores_too, _ in accesses[1]
        if stores or stores_too
    )


def _factor(loop: t.TypedFor, index: str) -> int | None:
    """By how many iterations of a loop those of the loop around it, over an index, have to follow each other."""
    found = 0
    for store in dict.fromkeys(stores_in(loop.body)):
        for access in dict.fromkeys(accesses_in(loop.body)):
            if access.array != store.array:
                continue
            for one, other in ((store, access), (access, store)):
                least = _least(one, other, index, loop.index.name)
                if least is None or least > _MOST_FACTOR:
                    return None
                found = max(found, least)
    return found


def _least(one: t.Load, other: t.Load, outer: str, inner: str) -> int | None:
    """The least factor with which an iteration that touches an element by another access is later than those of earlier
    iterations of the outer loop that touch it by one; None where there is none. 0 where there are no such iterations."""
    found: dict[str, Fraction] = {}  # how far apart they are along each loop, where that is known
    mixed: list[tuple[int, int, int]] = []
    for a, b in zip(one.subscripts, other.subscripts, strict=True):
        if not (isinstance(a, t.AffineSubscript) and isinstance(b, t.AffineSubscript)):
            continue
        first, difference = a.affine, a.affine + a.wrap - b.affine - b.wrap
        if difference.terms:
            continue
        along, apart = {x: first.coefficient(x) for x in (outer, inner) if first.coefficient(x)}, difference.constant
        if len(along) == 2:
            mixed.append((along[outer], along[inner], apart))
            continue
        if not along and apart:
            return 0
        for x, factor in along.items():
            distance = Fraction(apart, factor)
            if distance.denominator > 1 or found.setdefault(x, distance) != distance:
                return 0
    for along_outer, along_inner, apart in mixed:
        if outer in found and inner not in found:
            found[inner] = (apart - along_outer * found[outer]) / along_inner
        elif inner in found and outer not in found:
            found[outer] = (apart - along_inner * found[inner]) / along_outer
    if outer in found and found[outer] < 1:
        return 0
    return max(0, ceil((1 - found[inner]) / found.get(outer, 1))) if inner in found else None


def _with_kept(statements: Sequence[t.TypedStatement]) -> list[t.TypedStatement]:
    """Straight statements that look at what they have stored in variables."""
    found: list[t.TypedStatement] = []
    kept: dict[t.Load, t.Local] = {}

    def visit(node: t.Typed) -> t.Typed:
        known = kept.get(node) if isinstance(node, t.Load) else None
        return t.mapped(node, visit) if known is None else known

    for position, statement in enumerate(statements):
        if not isinstance(statement, t.TypedStore):
            found.append(t.with_values(statement, visit))
            continue
        target, value = statement.target, visit(statement.value)
        if target in only_stores(statements).values() and target in looked_at(statements[position + 1 :]):
            kept[target] = t.Local(target.dtype, f"{target.array} stored", len(kept) + 1)
            found.append(t.TypedLocal(statement.line, statement.text, kept[target], value))
            value = kept[target]
        found.append(replace(statement, value=value))
    return found


def _with_factor(loop: t.TypedFor, index: str, factor: int) -> t.TypedFor:
    """The loop with its index and so many times that of the loop around it for its index."""
    return with_index_moved(loop, Affine.of(index) * factor) if factor else loop


def with_index_moved(loop: t.TypedFor, by: Affine) -> t.TypedFor:
    """The loop with an index that is larger by so much."""
    own = loop.index.name
    forms = {own: Affine.of(own) - by}

    def moved(node: t.Typed) -> t.Typed:
        match node:
            case t.Index(name=name) if name == own:
                return t.AffineValue("int64", forms[own])
            case t.AffineValue(affine=affine):
                return replace(node, affine=affine.substitute(forms))
            case t.Load():
                return moved_load(node)
        return t.mapped(node, moved)

    def moved_load(load: t.Load) -> t.Load:
        return replace(load, subscripts=tuple(map(moved_subscript, load.subscripts)))

    def moved_subscript(subscript: t.AffineSubscript | t.LookupSubscript) -> t.AffineSubscript | t.LookupSubscript:
        if isinstance(subscript, t.AffineSubscript):
            return replace(subscript, affine=subscript.affine.substitute(forms))
        return replace(subscript, index=moved(subscript.index))

    def later(bound: t.Typed) -> t.Typed:
        return t.Operation("int64", "+", (bound, t.AffineValue("int64", by)))

    return replace(
        loop,
        start=later(loop.start),
        stop=later(loop.stop),
        body=tuple(t.with_values(statement, moved) for statement in loop.body),
        independent=False,
        exist=frozenset(map(moved_load, loop.exist)),
    )


@dataclass(frozen=True)
class Carried:
    """An element that lanes look at, which they stored so many steps before (``steps``), or the lane before each did."""

    load: t.Load
    store: t.Load
    steps: int
    by_lane_before: bool


def carried(loop: t.TypedFor, index: str) -> tuple[Carried, ...]:
    """The elements of a skewed loop that were stored a few steps before, and need not be loaded again."""
    found: dict[t.Load, Carried] = {}
    for position, store in only_stores(loop.body).items():
        for load in looked_at(loop.body[: position + 1]) if store.dtype != "bool" else ():
            one = _carried(load, store, index, loop.index.name) if load.array == store.array else None
            if one is not None:
                found[load] = one
    return tuple(found.values())


def ahead(loop: t.TypedFor, index: str) -> frozenset[t.Load]:
    """The elements of a skewed loop that are looked at before they are stored, by the lane itself or the one behind it, or never
    stored: they may be loaded any time before."""
    single = set(only_stores(loop.body).values())
    stores = [*dict.fromkeys(stores_in(loop.body))]

    def is_ahead_of(load: t.Load, store: t.Load) -> bool:
        if meeting(load, store, index, (loop.index.name,)) is Meeting.NEVER:
            return True
        return store in single and (load == store or _is_stored_later(load, store, index, loop.index.name))

    return frozenset(
        load
        for load in looked_at(loop.body)
        if any(load.array == store.array for store in stores) and all(is_ahead_of(load, store) for store in stores)
    )


def only_stores(statements: Sequence[t.TypedStatement]) -> dict[int, t.Load]:
    """The elements that statements store to, of arrays that one of them does, by their places."""
    stored = {place: s.target for place, s in enumerate(statements) if isinstance(s, t.TypedStore)}
    times = Counter(target.array for target in stored.values())
    return {place: target for place, target in stored.items() if times[target.array] == 1}


def _is_stored_later(load: t.Load, store: t.Load, outer: str, inner: str) -> bool:
    return any(
        _moved(store, {inner: Affine.of(inner) + steps, outer: Affine.of(outer) + lanes}) == load.subscripts
        for lanes in (0, 1)
        for steps in range(1, 2 * _MOST_FACTOR + 1)
    )


def _moved(access: t.Load, forms: Mapping[str, Affine]) -> tuple[t.AffineSubscript | None, ...]:
    """The subscripts of an access in another iteration; None for what is looked up."""
    return tuple(
        replace(s, affine=s.affine.substitute(forms)) if isinstance(s, t.AffineSubscript) else None
        for s in access.subscripts
    )


def looked_at(statements: Sequence[t.TypedStatement]) -> list[t.Load]:
    """The elements that statements look at, in the order of the text: what is written must be the same in every process."""
    values = (v for s in statements for v in ((s.value,) if isinstance(s, t.TypedStore) else t.own_values(s)))
    return [*dict.fromkeys(node for value in values for node in t.walk(value) if isinstance(node, t.Load))]


def _carried(load: t.Load, store: t.Load, outer: str, inner: str) -> Carried | None:
    for by_lane_before in (False, True):
        for steps in range(1, _MOST_FACTOR + 1):
            if (
                _moved(store, {inner: Affine.of(inner) - steps, outer: Affine.of(outer) - by_lane_before})
                == load.subscripts
            ):
                return Carried(load, store, steps, by_lane_before)
    return None


def wanted_where(statements: Sequence[t.TypedStatement]) -> dict[t.Local, tuple[t.Local, bool]]:
    """Of locals that take long to compute, and that nothing looks at but choices by one condition, that condition, and whether it
    has to hold: where it does in no lane, they need not be computed."""
    uses: dict[t.Local, set[tuple[t.Local, bool] | None]] = {}

    def note(node: t.Typed, where: tuple[t.Local, bool] | None) -> None:
        match node:
            case t.Local():
                uses.setdefault(node, set()).add(where)
            case t.Select(test=t.Local() as test, then=then, otherwise=otherwise) if where is None:
                note(test, None)
                note(then, (test, True))
                note(otherwise, (test, False))
            case _:
                for child in t.children(node):
                    note(child, where)

    found: dict[t.Local, tuple[t.Local, bool]] = {}
    for place, statement in reversed([*enumerate(statements)]):
        local = statement.local if isinstance(statement, t.TypedLocal) and statement.local.dtype != "bool" else None
        wanted = uses.get(local, set()) if local is not None else set()
        where = next(iter(wanted)) if len(wanted) == 1 else None
        if where is not None and not any(
            isinstance(s, t.TypedLocal) and s.local == where[0] for s in statements[:place]
        ):
            where = None  # it is known too late
        if local is not None and where is not None:
            found[local] = where
        for value in t.own_values(statement):
            note(value, where)
    return found


def waits_long(loop: t.TypedFor) -> bool:
    """Whether iterations of a loop wait for floats of the one before them for longer than lanes take."""
    handed_on = {local for local in assigned_outside(loop.body) if local.dtype.startswith("float")}
    if not handed_on and not any(store.dtype.startswith("float") for store in stores_in(loop.body)):
        return False
    values = dict.fromkeys(value for s in loop.body for value in t.own_values(s))
    operations = {node for value in values for node in t.walk(value) if isinstance(node, t.Operation | t.Select)}
    rows = windows(dict.fromkeys(accesses_in(loop.body)))
    taken = (len(operations) + _OPERATIONS_OF_A_ROW * len(rows)) / _OPERATIONS_IN_A_CYCLE
    return handed_on_cycles(loop.body, handed_on, loop.index.name) > max(_FEWEST_CYCLES, taken)
