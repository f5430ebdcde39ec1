"""Whether iterations of a loop around others may be done together, from the indices of what they touch.

Two accesses to one array, in iterations x and x' of the loop, are to different elements where along some axis their indices are
the same affine form of x and of what does not change in the loop, with a factor for x; or forms that differ by a constant that is
no multiple of that factor (the strong SIV and the ZIV test: Goff, Kennedy and Tseng, PLDI 1991); or forms one of which is the
larger wherever the loops' indices are in their ranges (as Banerjee's test has it).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum

from lapwing.affine.affine import Affine
from lapwing.codegen.outer_loops.ranges import NOTHING, Ranges, within
from lapwing.loopnest.binding import typed as t


class Meeting(Enum):
    """Whether two accesses may be to the same element: never, in the same iteration alone, or in several."""

    NEVER = 0
    SAME_ITERATION = 1
    ANY = 2


def meeting(one: t.Load, other: t.Load, index: str, changing: Collection[str]) -> Meeting:
    """Of two accesses in a loop over an index; changing: the indices of loops inside of it."""
    if one.array != other.array:
        return Meeting.NEVER
    found = Meeting.ANY
    for first, second in affine_pairs(one, other):
        if (first.names | second.names) & set(changing):
            continue
        factor, difference = first.coefficient(index), first - second
        if difference.terms:
            continue
        if difference.constant % factor if factor else difference.constant:
            return Meeting.NEVER
        if factor and not difference.constant:
            found = Meeting.SAME_ITERATION
    return found


def affine_pairs(one: t.Load, other: t.Load) -> Iterator[tuple[Affine, Affine]]:
    """The indices along each axis of two accesses to one array, where both are affine."""
    for a, b in zip(one.subscripts, other.subscripts, strict=True):
        if isinstance(a, t.AffineSubscript) and isinstance(b, t.AffineSubscript):
            yield a.affine + a.wrap, b.affine + b.wrap


def is_recurrence(loop: t.TypedFor) -> bool:
    """Whether iterations of a loop look at elements that earlier ones may have stored (a flow dependence that it carries)."""
    if loop.independent:
        return False
    return any(
        _may_be_later(store, access, loop) for store in stores_in(loop.body) for access in accesses_in(loop.body)
    )


def _may_be_later(store: t.Load, access: t.Load, loop: t.TypedFor) -> bool:
    """Whether what is stored may be looked at in a later iteration of a loop."""
    index = loop.index.name
    if meeting(store, access, index, inner_indices(loop.body)) is not Meeting.ANY:
        return False
    step = loop.step.value if isinstance(loop.step, t.Literal) else None
    for first, second in affine_pairs(store, access):
        factor, difference = first.coefficient(index), first - second
        if factor and not difference.terms and isinstance(step, int) and difference.constant * factor * step < 0:
            return False  # it is looked at before
    return True


def are_apart(one: t.Load, other: t.Load, ranges: Ranges) -> bool:
    """Whether two accesses are to different elements wherever indices are in their ranges."""
    return one.array != other.array or any(
        ranges.is_positive(a - b) or ranges.is_positive(b - a) for a, b in affine_pairs(one, other)
    )


def first_of(index: str) -> t.Index:
    """The first of the iterations that are done together."""
    return t.Index("int64", f"{index} first")


def stores_in(statements: Iterable[t.TypedStatement]) -> list[t.Load]:
    """The elements that statements store to."""
    return [s.target for s in t.all_statements(statements) if isinstance(s, t.TypedStore)]


def accesses_in(statements: Iterable[t.TypedStatement]) -> Iterator[t.Load]:
    """The elements that statements look at or store to."""
    for statement in t.all_statements(statements):
        for value in t.own_values(statement):
            yield from (node for node in t.walk(value) if isinstance(node, t.Load))


def assigned_outside(statements: Sequence[t.TypedStatement]) -> set[t.Local]:
    """The variables that statements assign to, and do not declare: one iteration hands them on to the next."""
    inside = list(t.all_statements(statements))
    declared = {s.local for s in inside if isinstance(s, t.TypedVariable | t.TypedLocal | t.TypedRounded)}
    return {s.local for s in inside if isinstance(s, t.TypedAssign)} - declared


def placed_accesses(
    statements: Iterable[t.TypedStatement], ranges: Ranges = NOTHING
) -> Iterator[tuple[t.Load, bool, Ranges]]:
    """The elements that statements look at or store to, whether they store, and what is known of indices there."""
    for statement in statements:
        own = (node for value in t.own_values(statement) for node in t.walk(value))
        yield from ((node, False, ranges) for node in own if isinstance(node, t.Load))
        if isinstance(statement, t.TypedStore):
            yield statement.target, True, ranges
        match statement:
            case t.TypedFor(body=body):
                yield from placed_accesses(body, within(statement, ranges))
            case t.TypedIf(then=then, otherwise=otherwise):
                yield from placed_accesses((*then, *otherwise), ranges)
            case t.TypedWhile(body=body):
                yield from placed_accesses(body, ranges)


def inner_indices(statements: Iterable[t.TypedStatement]) -> list[str]:
    """The indices of loops in statements."""
    return [s.index.name for s in t.all_statements(statements) if isinstance(s, t.TypedFor)]


def may_be_apart(first: Sequence[t.TypedStatement], later: Sequence[t.TypedStatement], index: str) -> bool:
    """Whether the first statements of a loop's body may be done for many iterations together, the later ones then for each."""
    inner = inner_indices((*first, *later))
    if index in inner or assigned_outside((*first, *later)):
        return False
    own, beginning = Affine.of(index), Affine.of(first_of(index).name)
    there = {name: f"{name} there" for name in (index, *inner)}

    def is_clear(one: Sequence[t.TypedStatement], other: Sequence[t.TypedStatement], least: dict[str, Affine]) -> bool:
        """That nothing that iterations store in one part is touched by others in the other."""
        touched = [(_renamed(access, there), access, ranges) for access, _, ranges in placed_accesses(other)]
        return all(
            meeting(store, access, index, inner) is not Meeting.ANY
            or are_apart(store, renamed, here.also(ranges.renamed(there)).also(Ranges(least, {})))
            for store, stores, here in placed_accesses(one)
            if stores
            for renamed, access, ranges in touched
        )

    x, y = index, there[index]
    together = is_clear(first, first, {x: beginning, y: beginning})
    # An iteration's later statements come before the first ones of the iterations behind it.
    return (
        together
        and is_clear(later, first, {x: beginning, y: own + 1})
        and is_clear(first, later, {x: Affine.of(y) + 1, y: beginning})
    )


def _renamed(load: t.Load, names: dict[str, str]) -> t.Load:
    forms = {name: Affine.of(other) for name, other in names.items()}
    subscripts = tuple(
        t.AffineSubscript(s.affine.substitute(forms), s.wrap) if isinstance(s, t.AffineSubscript) else s
        for s in load.subscripts
    )
    return t.Load(load.dtype, load.array, subscripts)


def may_be_repeated(body: Sequence[t.TypedStatement], index: str) -> bool:
    """Whether an iteration does the same when it is done twice at the same time, statement by statement: of what it stores it
    looks at nothing but what it has stored before, once."""
    inner = inner_indices(body)
    stores, stored = stores_in(body), set[t.Load]()
    for statement in body:
        own = list(accesses_in((statement,)))
        if isinstance(statement, t.TypedStore):
            own.remove(statement.target)
        for access in own:
            meeting_it = [store for store in stores if meeting(store, access, index, inner) is not Meeting.NEVER]
            if meeting_it and not (access in stored and len(meeting_it) == 1):
                return False
        if isinstance(statement, t.TypedStore):
            stored.add(statement.target)
    return True
