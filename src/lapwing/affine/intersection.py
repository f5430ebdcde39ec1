"""Whether two sections have elements in common, and whether one covers the other: isl answers."""

from __future__ import annotations

import itertools
from functools import lru_cache

from lapwing.affine.affine import Affine, Comparison, Condition
from lapwing.affine.delinearisation import delinearised, is_flat, shapes
from lapwing.affine.integer_sets import Set, Space, names_in, values_of, without_axes
from lapwing.affine.sections import Chosen, Range, Section


@lru_cache(maxsize=100_000)
def _elements(section: Section) -> Set:
    axes = [f"axis {number}" for number in range(len(section.subscripts))]
    simple: list[Comparison] = []
    for axis, subscript in zip(map(Affine.of, axes), section.subscripts, strict=True):
        if isinstance(subscript, Affine):
            simple.append((axis - subscript, "="))
        elif isinstance(subscript, Range):
            simple += [(axis - subscript.lower, ">=")] if subscript.lower is not None else []
            simple += [(subscript.upper - axis, ">=")] if subscript.upper is not None else []
    several = [condition for condition in section.conditions if len(condition) != 1]
    simple += [comparison for condition in section.conditions if len(condition) == 1 for comparison in condition[0]]
    bound = list(dict.fromkeys(section.bound))
    points = Space(sorted(section.names), [*axes, *bound]).where([(tuple(simple),), *several])
    return without_axes(points, len(axes))


@lru_cache(maxsize=100_000)
def _values_where(condition: Condition) -> Set:
    """The values of terms of which the condition is true, as a set of parameters."""
    return Space(sorted(names_in(condition)), ()).where([condition])


@lru_cache(maxsize=200_000)
def _common(one: Section, other: Section, context: Condition) -> Set:
    """The elements of both, for values of the terms that the context allows."""
    if {lookup.array for lookup in one.lookups} & {lookup.array for lookup in other.lookups}:
        both = _common_where_lookups_agree(one, other)
    else:
        both = _elements(one) & _elements(other)
    return both.intersect_params(_values_where(context)) if context else both


def _common_where_lookups_agree(one: Section, other: Section) -> Set:
    """The elements of both, where equal subscripts mean that an array's elements are equal."""
    mine, its = _unbound(one, "p"), _unbound(other, "q")
    both = _elements(mine) & _elements(its)
    same = {  # where the two meet
        b.terms[0][0]: a
        for a, b in zip(mine.subscripts, its.subscripts, strict=True)
        if isinstance(a, Affine) and isinstance(b, Affine) and a.is_name and b.is_name
    }
    for left, right in itertools.product(mine.lookups, its.lookups):
        if left.array != right.array or left.term == right.term:
            continue
        if left.subscripts == tuple(s.substitute(same) for s in right.subscripts):
            equal = Affine.of(left.term) - Affine.of(right.term), "="
            both = both.intersect_params(_values_where(((equal,),)))
    return both


@lru_cache(maxsize=100_000)
def _unbound(section: Section, prefix: str) -> Section:
    """The section for some value of what is bound in it."""
    own = {name: Affine.of(f"{prefix}{number}") for number, name in enumerate(section.bound)}
    return Section(section.subscripts, (), section.conditions, section.origins).substitute(own)


@lru_cache(maxsize=200_000)
def _intersects(one: Section, other: Section, context: Condition) -> bool:
    return not _common(one, other, context).is_empty()


@lru_cache(maxsize=200_000)
def _values_where_they_intersect(one: Section, other: Section, context: Condition, names: tuple[str, ...]) -> Set:
    """For which values of these terms some element may be in both."""
    return values_of(_common(one, other, context), names)


def may_intersect(one: Section, other: Section, context: Condition = (), chosen: Chosen = ()) -> bool:
    """Whether some element may be in both, for some values of the terms that ``context`` (empty: no condition) allows, where
    those ``chosen`` have these values."""
    if len(one.subscripts) != len(other.subscripts):
        return True
    # Most pairs are settled by constants without isl. What is bound in both is worth another in each.
    if any(
        isinstance(a, Affine)
        and isinstance(b, Affine)
        and a.terms == b.terms
        and a.constant != b.constant
        and not any(name in one.bound or name in other.bound for name, _ in a.terms)
        for a, b in zip(one.subscripts, other.subscripts, strict=True)
    ):
        return False
    differ = one.coarse is not one or other.coarse is not other
    if differ and not _may_intersect(one.coarse, other.coarse, context, chosen):
        return False
    return _may_intersect(one, other, context, chosen) and _may_intersect_in_rows(one, other, context, chosen)


def _may_intersect_in_rows(one: Section, other: Section, context: Condition, chosen: Chosen) -> bool:
    """Whether some element may be in both, whatever shape a flat array has."""
    if not (is_flat(one) or is_flat(other)) or len(one.subscripts) != 1:
        return True
    for shape in shapes(one, other):
        mine, its = delinearised(one, shape), delinearised(other, shape)
        if mine is not None and its is not None and not _may_intersect(mine, its, context, chosen):
            return False
    return True


def _may_intersect(one: Section, other: Section, context: Condition, chosen: Chosen) -> bool:
    mentioned = [name for name, _ in chosen if name in one.names or name in other.names]
    if not mentioned:
        return _intersects(one, other, context)
    values = _values_where_they_intersect(one, other, context, tuple(mentioned))
    point = tuple((Affine.of(name) - value, "=") for name, value in chosen if name in mentioned)
    return not (values & _values_where((point,))).is_empty()


def covers(outer: Section, inner: Section) -> bool:
    """Whether every element of ``inner`` is certainly in ``outer``. Unknown subscripts of ``outer`` cover nothing."""
    if len(outer.subscripts) != len(inner.subscripts) or None in outer.subscripts:
        return False
    return bool(_elements(inner).is_subset(_elements(outer)))
