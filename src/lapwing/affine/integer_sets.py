"""Sets and maps of integer points, by isl, from affine forms: for a nest's iterations and for a program's terms alike.

They are built piece by piece: to read them from texts would take isl ten times as long, and names could not be any text then.
What is built are isl's own sets and maps, combined by isl's own operators. Only ``affine/`` calls isl.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import TypeAlias

import islpy as isl

from lapwing.affine.affine import Affine, Comparison, Condition

Set: TypeAlias = isl.Set
Map: TypeAlias = isl.Map
Point = tuple[int, ...]

_PARAMETER, _AXIS, _FIRST, _SECOND = isl.dim_type.param, isl.dim_type.set, isl.dim_type.in_, isl.dim_type.out


@lru_cache(maxsize=10_000)
def _value(number: int) -> isl.Val:
    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(number))  # however large


def _parameter(name: str) -> str:
    """What isl calls a parameter: it takes no name that reads like a number."""
    return f"n {name}" if name[:1] in "+-0123456789" else name


class Space:
    """Named parameters, and named axes: the coordinates of the points of a set, and after them what is bound in it."""

    def __init__(self, parameters: Sequence[str], axes: Sequence[str]) -> None:
        self.space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, len(parameters), len(axes))
        if not axes:
            self.space = self.space.params()
        for number, name in enumerate(parameters):
            self.space = self.space.set_dim_name(_PARAMETER, number, _parameter(name))
        self._places = {name: (_PARAMETER, number) for number, name in enumerate(parameters)}
        self._places |= {name: (_AXIS, number) for number, name in enumerate(axes)}
        self._local = isl.LocalSpace.from_space(self.space)

    # -- sets

    def where(self, conditions: Iterable[Condition]) -> isl.Set:
        """All points of which the conditions are true."""
        found = isl.Set.universe(self.space)
        for condition in conditions:
            parts = [self._where_all(part) for part in condition]
            found &= reduce(operator.or_, parts, isl.Set.empty(self.space)) if len(parts) != 1 else parts[0]
        return found

    def where_nonnegative(self, forms: Iterable[Affine]) -> isl.Set:
        """All points at which the forms are >= 0."""
        return self._where_all((form, ">=") for form in forms)

    def _where_all(self, comparisons: Iterable[Comparison]) -> isl.Set:
        found = isl.BasicSet.universe(self.space)
        for form, sign in comparisons:
            make = isl.Constraint.alloc_equality if sign == "=" else isl.Constraint.alloc_inequality
            constraint = make(self._local).set_constant_val(_value(form.constant))
            for name, coefficient in form.terms:
                constraint = constraint.set_coefficient_val(*self._places[name], _value(coefficient))
            found = found.add_constraint(constraint)
        return found.to_set()

    # -- functions of points

    def range_of(self, form: Affine, points: isl.Set) -> tuple[int, int]:
        """Least and greatest value over points, of which there are some and finitely many."""
        function = self._function(form)
        return points.min_val(function).to_python(), points.max_val(function).to_python()

    def map(self, points: isl.Set, images: Sequence[Affine]) -> isl.Map:
        """From each of the points to the one with these coordinates."""
        space = self.space.map_from_set().drop_dims(_SECOND, 0, len(self._axes)).add_dims(_SECOND, len(images))
        function = isl.MultiAff.zero(space)
        for axis, image in enumerate(images):
            function = function.set_aff(axis, self._function(image))
        return isl.Map.from_multi_aff(function).intersect_domain(points)

    def _function(self, form: Affine) -> isl.Aff:
        function = isl.Aff.zero_on_domain(self._local).set_constant_val(_value(form.constant))
        for name, coefficient in form.terms:
            kind, place = self._places[name]
            kind = _FIRST if kind == _AXIS else kind
            function = function.set_coefficient_val(kind, place, _value(coefficient))
        return function

    @property
    def _axes(self) -> list[str]:
        return [name for name, (kind, _) in self._places.items() if kind == _AXIS]


# ---- of sets --------------------------------------------------------------------------------------------------------------


def without_axes(points: isl.Set, first: int) -> isl.Set:
    """The points without their coordinates from the first on."""
    return points.project_out(_AXIS, first, points.dim(_AXIS) - first)


def values_of(points: isl.Set, names: Sequence[str]) -> isl.Set:
    """For which values of these parameters there are points."""
    kept = {_parameter(name) for name in names}
    values = points.params()
    for number in reversed(range(values.dim(_PARAMETER))):
        if values.get_dim_name(_PARAMETER, number) not in kept:
            values = values.project_out(_PARAMETER, number, 1)
    return values


def zero_along(points: isl.Set, axes: int) -> isl.Set:
    """The points whose first so many coordinates are 0."""
    for axis in range(axes):
        points = points.fix_val(_AXIS, axis, _value(0))
    return points


def disjuncts(points: isl.Set) -> list[isl.Set]:
    """The parts of which isl has made the set their union, without those that hold no integer point: it keeps such parts."""
    return [basic.to_set() for basic in points.get_basic_sets() if not basic.is_empty()]


def all_points(points: isl.Set) -> list[Point]:
    """An enumeration, in no certain order."""
    found: list[Point] = []
    points.foreach_point(lambda point: found.append(_coordinates(point)))
    return found


def first_point(points: isl.Set) -> Point:
    """The lexicographically least one, which there has to be."""
    return some_point(points.lexmin())


def some_point(points: isl.Set) -> Point:
    """One of the points, of which there has to be one."""
    return _coordinates(points.sample_point())


def _coordinates(point: isl.Point) -> Point:
    count = point.get_space().dim(_AXIS)
    return tuple(point.get_coordinate_val(_AXIS, axis).to_python() for axis in range(count))


# ---- of maps --------------------------------------------------------------------------------------------------------------


def without_sources(pairs: isl.Map, first: int) -> isl.Map:
    """The pairs without the coordinates of their first points from one on."""
    return pairs.project_out(_FIRST, first, pairs.dim(_FIRST) - first)


def related(points: isl.Set, axes: int) -> isl.Map:
    """From the first so many coordinates of every point to the others."""
    return isl.Map.from_range(points).move_dims(_FIRST, 0, _SECOND, 0, axes)


def alike_along(pairs: isl.Map, axes: int) -> isl.Map:
    """The pairs that have the first so many coordinates in common."""
    for axis in range(axes):
        pairs = pairs.equate(_FIRST, axis, _SECOND, axis)
    return pairs


def distances(pairs: isl.Map) -> isl.Set:
    """Second less first of all pairs, for whatever values of the parameters."""
    found = pairs.reset_tuple_id(_FIRST).reset_tuple_id(_SECOND).deltas()
    return found.project_out(_PARAMETER, 0, found.dim(_PARAMETER))


def flow(read: tuple[int, isl.Map], writes: Iterable[tuple[int, isl.Map]]) -> list[tuple[int, isl.Map]]:
    """Value-based flow: of each write the pairs of an iteration and one whose read sees what was written.

    Accesses map iterations to elements of one array, and stand in statements with these numbers; iterations are in
    lexicographic order, and statements of one iteration in that of their numbers.
    """
    numbered = {f"S{number}": number for number, _ in [*writes, read]}
    sources = isl.UnionMap.empty_ctx(isl.DEFAULT_CONTEXT)
    order = _in_order(*read)
    for number, access in writes:
        sources = sources.union(_of_statement(number, access))
        order = order.union(_in_order(number, access))
    sink = isl.UnionAccessInfo.from_sink(_of_statement(*read))
    pairs: list[isl.Map] = []
    sink.set_must_source(sources).set_schedule_map(order).compute_flow().get_must_dependence().foreach_map(pairs.append)
    return [(numbered[found.get_tuple_name(_FIRST)], found) for found in pairs]


def _of_statement(number: int, access: isl.Map) -> isl.UnionMap:
    return access.set_tuple_name(_FIRST, f"S{number}").set_tuple_name(_SECOND, "A").to_union_map()


def _in_order(number: int, access: isl.Map) -> isl.UnionMap:
    """When a statement's iterations are done."""
    times = isl.Map.identity(access.get_space().domain().map_from_set()).add_dims(_SECOND, 1)
    times = times.fix_val(_SECOND, times.dim(_SECOND) - 1, _value(number))
    return times.set_tuple_name(_FIRST, f"S{number}").to_union_map()


# ---- of conditions --------------------------------------------------------------------------------------------------------


def names_in(condition: Condition) -> frozenset[str]:
    """The terms that it mentions."""
    return frozenset(name for part in condition for form, _ in part for name in form.names)


@lru_cache(maxsize=100_000)
def never(conditions: tuple[Condition, ...]) -> bool:
    """Whether no values of the terms fulfil all these conditions."""
    names = frozenset[str]().union(*map(names_in, conditions))
    return bool(Space(sorted(names), ()).where(conditions).is_empty())
