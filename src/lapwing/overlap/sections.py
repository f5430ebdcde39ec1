"""Sections: which elements of an array a statement touches, as integer sets with symbolic bounds.

A subscript is a linear expression in *terms*. A term is a name for the value that a variable, or any expression that is not
linear, has where the analysed region begins; loop variables and values that are not known are bound inside the section.
isl answers the only question that is asked: can two sections meet?
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, reduce

import islpy as isl

_fresh = itertools.count()


def fresh_term() -> str:
    """A name nobody else has, to be bound in a section."""
    return f"x{next(_fresh)}"


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · term + constant; terms in order, without zeros."""

    terms: tuple[tuple[str, int], ...]
    constant: int

    @staticmethod
    @lru_cache(maxsize=10_000)
    def number(value: int) -> Linear:
        return Linear((), value)

    @staticmethod
    @lru_cache(maxsize=100_000)
    def term(name: str) -> Linear:
        return Linear(((name, 1),), 0)

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        constant = self.constant + factor * other.constant
        if not other.terms:
            return self if constant == self.constant else Linear(self.terms, constant)
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + factor * coefficient
        return Linear(tuple(sorted((n, c) for n, c in sums.items() if c != 0)), constant)

    def times(self, factor: int) -> Linear:
        return Linear.number(0).plus(self, factor)

    def substitute(self, values: Mapping[str, Linear]) -> Linear:
        if values.keys().isdisjoint(self.names()):
            return self
        result = Linear.number(self.constant)
        for name, coefficient in self.terms:
            result = result.plus(values.get(name) or Linear.term(name), coefficient)
        return result

    def names(self) -> frozenset[str]:
        found: frozenset[str] | None = self.__dict__.get("_names")
        if found is None:
            found = self.__dict__["_names"] = frozenset(name for name, _ in self.terms)
        return found

    def __hash__(self) -> int:
        # Asked for far more often than anything else; functools.cached_property takes a lock each time.
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.terms, self.constant))
        return found

    def __str__(self) -> str:
        return " + ".join([*(f"{c}*{n}" for n, c in self.terms), f"({self.constant})"])


# A comparison says that a Linear is = 0 or ≥ 0; a condition is a disjunction of conjunctions of comparisons.
Comparison = tuple[Linear, str]
Condition = tuple[tuple[Comparison, ...], ...]
# Terms and the values that they have.
Chosen = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Range:
    """Subscripts ``lower`` to ``upper``, both included; None: from or to the array's end."""

    lower: Linear | None
    upper: Linear | None


Subscript = Linear | Range | None  # None: nothing is known


@dataclass(frozen=True)
class Lookup:
    """A term that is what an element of an integer array holds: two of the same array and the same subscripts are equal."""

    term: str
    array: str  # its key
    subscripts: tuple[Linear, ...]


@dataclass(frozen=True)
class Section:
    """The elements ``subscripts`` takes on while the ``bound`` terms run over what ``conditions`` allow. ``lookups``: those among
    its terms, bound or not."""

    subscripts: tuple[Subscript, ...]
    bound: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    lookups: tuple[Lookup, ...] = ()

    def names(self) -> frozenset[str]:
        """The terms that are not bound inside."""
        found: frozenset[str] | None = self.__dict__.get("_names")
        if found is None:
            every = frozenset[str]().union(*[linear.names() for linear in self._linears()])
            found = self.__dict__["_names"] = every - frozenset(self.bound)
        return found

    def __hash__(self) -> int:
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.subscripts, self.bound, self.conditions, self.lookups))
        return found

    def _linears(self) -> list[Linear]:
        found: list[Linear] = []
        for subscript in self.subscripts:
            if isinstance(subscript, Linear):
                found.append(subscript)
            elif isinstance(subscript, Range):
                found += [end for end in (subscript.lower, subscript.upper) if end is not None]
        found += [linear for condition in self.conditions for conjunction in condition for linear, _ in conjunction]
        found += [subscript for lookup in self.lookups for subscript in lookup.subscripts]
        return found

    @property
    def coarse(self) -> Section:
        """The section without its subscripts that are numbers: the same of the many that differ in nothing else."""
        found: Section | None = self.__dict__.get("_coarse")
        if found is None:
            numbers = [isinstance(s, Linear) and not s.terms for s in self.subscripts]
            found = self
            if any(numbers) and not all(numbers):
                known = zip(self.subscripts, numbers, strict=True)
                coarse = tuple(None if number else s for s, number in known)
                found = Section(coarse, self.bound, self.conditions, self.lookups)
            self.__dict__["_coarse"] = found
        return found

    def substitute(self, values: Mapping[str, Linear], unknown: Set[str] = frozenset()) -> Section:
        """The section with terms replaced by what they are worth; those ``unknown`` may be anything."""
        renamed = {name: Linear.term(fresh_term()) for name in unknown & self.names()}
        values = {name: values[name] for name in self.names() if name in values} | renamed
        if not values:
            return self
        return Section(
            tuple(_substitute(s, values) for s in self.subscripts),
            (*self.bound, *(linear.terms[0][0] for linear in renamed.values())),
            tuple(
                tuple(tuple((linear.substitute(values), op) for linear, op in part) for part in condition)
                for condition in self.conditions
            ),
            tuple(new for lookup in self.lookups if (new := _substitute_lookup(lookup, values)) is not None),
        )

    def constrained(
        self, bound: Iterable[str], conditions: Iterable[Condition], lookups: Iterable[Lookup] = ()
    ) -> Section:
        new = tuple(lookup for lookup in lookups if lookup not in self.lookups)
        return Section(self.subscripts, (*self.bound, *bound), (*self.conditions, *conditions), (*self.lookups, *new))

    def without_lookups(self, arrays: Set[str]) -> Section:
        """The section where nothing is known of what these arrays hold."""
        kept = tuple(lookup for lookup in self.lookups if lookup.array not in arrays)
        return self if len(kept) == len(self.lookups) else Section(self.subscripts, self.bound, self.conditions, kept)

    def shifted(self, offsets: tuple[Linear, ...]) -> Section:
        shifted = tuple(_shift(s, o) for s, o in zip(self.subscripts, offsets, strict=True))
        return Section(shifted, self.bound, self.conditions, self.lookups)


def _substitute(subscript: Subscript, values: Mapping[str, Linear]) -> Subscript:
    if isinstance(subscript, Linear):
        return subscript.substitute(values)
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower.substitute(values),
            None if subscript.upper is None else subscript.upper.substitute(values),
        )
    return None


def _substitute_lookup(lookup: Lookup, values: Mapping[str, Linear]) -> Lookup | None:
    """The same of the term that stands in its place now; None if that is no term."""
    term = values.get(lookup.term, Linear.term(lookup.term))
    if term.constant != 0 or len(term.terms) != 1 or term.terms[0][1] != 1:
        return None
    return Lookup(term.terms[0][0], lookup.array, tuple(s.substitute(values) for s in lookup.subscripts))


def _shift(subscript: Subscript, offset: Linear) -> Subscript:
    if isinstance(subscript, Linear):
        return subscript.plus(offset)
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower.plus(offset),
            None if subscript.upper is None else subscript.upper.plus(offset),
        )
    return None


# Sets are built piece by piece: to read them from texts would take isl ten times as long.
_PARAMETER, _AXIS = isl.dim_type.param, isl.dim_type.set


@lru_cache(maxsize=10_000)
def _value(number: int) -> isl.Val:
    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(number))  # however large


class _Space:
    """Named parameters, and axes: points of the set, and after them what is bound in it."""

    def __init__(self, parameters: Iterable[str], axes: Sequence[str]) -> None:
        names = sorted(parameters)
        self.space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, len(names), len(axes))
        if not axes:
            self.space = self.space.params()
        for number, name in enumerate(names):
            self.space = self.space.set_dim_name(_PARAMETER, number, name)
        self._places = {name: (_PARAMETER, number) for number, name in enumerate(names)}
        self._places |= {name: (_AXIS, number) for number, name in enumerate(axes)}
        self._local = isl.LocalSpace.from_space(self.space)

    def where(self, conditions: Iterable[Condition]) -> isl.Set:
        """All points of which the conditions are true."""
        found = isl.Set.universe(self.space)
        for condition in conditions:
            parts = [self._where_all(part) for part in condition]
            found &= reduce(operator.or_, parts, isl.Set.empty(self.space)) if len(parts) != 1 else parts[0]
        return found

    def _where_all(self, comparisons: Iterable[Comparison]) -> isl.Set:
        found = isl.BasicSet.universe(self.space)
        for linear, sign in comparisons:
            make = isl.Constraint.alloc_equality if sign == "=" else isl.Constraint.alloc_inequality
            constraint = make(self._local).set_constant_val(_value(linear.constant))
            for name, coefficient in linear.terms:
                constraint = constraint.set_coefficient_val(*self._places[name], _value(coefficient))
            found = found.add_constraint(constraint)
        return found.to_set()


@lru_cache(maxsize=100_000)
def _isl_set(section: Section) -> isl.Set:
    axes = [f"axis {number}" for number in range(len(section.subscripts))]
    simple: list[Comparison] = []
    for axis, subscript in zip(map(Linear.term, axes), section.subscripts, strict=True):
        if isinstance(subscript, Linear):
            simple.append((axis.plus(subscript, -1), "="))
        elif isinstance(subscript, Range):
            simple += [(axis.plus(subscript.lower, -1), ">=")] if subscript.lower is not None else []
            simple += [(subscript.upper.plus(axis, -1), ">=")] if subscript.upper is not None else []
    several = [condition for condition in section.conditions if len(condition) != 1]
    simple += [comparison for condition in section.conditions if len(condition) == 1 for comparison in condition[0]]
    bound = list(dict.fromkeys(section.bound))
    points = _Space(section.names(), [*axes, *bound]).where([(tuple(simple),), *several])
    return points.project_out(_AXIS, len(axes), len(bound))


@lru_cache(maxsize=100_000)
def _values_where(condition: Condition) -> isl.Set:
    """The values of terms of which the condition is true, as a set of parameters."""
    names = {name for part in condition for linear, _ in part for name in linear.names()}
    return _Space(names, ()).where([condition])


@lru_cache(maxsize=200_000)
def _common(one: Section, other: Section, context: Condition) -> isl.Set:
    """The elements of both, for values of the terms that the context allows."""
    if {lookup.array for lookup in one.lookups} & {lookup.array for lookup in other.lookups}:
        both = _common_where_lookups_agree(one, other)
    else:
        both = _isl_set(one) & _isl_set(other)
    return both.intersect_params(_values_where(context)) if context else both


def _common_where_lookups_agree(one: Section, other: Section) -> isl.Set:
    """The elements of both, where equal subscripts mean that an array's elements are equal."""
    mine, its = _unbound(one, "p"), _unbound(other, "q")
    both = _isl_set(mine) & _isl_set(its)
    same = {  # where the two meet
        b.terms[0][0]: a
        for a, b in zip(mine.subscripts, its.subscripts, strict=True)
        if isinstance(a, Linear) and isinstance(b, Linear) and _is_term(a) and _is_term(b)
    }
    for left, right in itertools.product(mine.lookups, its.lookups):
        if left.array != right.array or left.term == right.term:
            continue
        if left.subscripts == tuple(s.substitute(same) for s in right.subscripts):
            equal = Linear.term(left.term).plus(Linear.term(right.term), -1), "="
            both = both.intersect_params(_values_where(((equal,),)))
    return both


@lru_cache(maxsize=100_000)
def _unbound(section: Section, prefix: str) -> Section:
    """The section for some value of what is bound in it."""
    own = {name: Linear.term(f"{prefix}{number}") for number, name in enumerate(section.bound)}
    return Section(section.subscripts, (), section.conditions, section.lookups).substitute(own)


def _is_term(linear: Linear) -> bool:
    return linear.constant == 0 and len(linear.terms) == 1 and linear.terms[0][1] == 1


@lru_cache(maxsize=200_000)
def _meet(one: Section, other: Section, context: Condition) -> bool:
    return not _common(one, other, context).is_empty()


@lru_cache(maxsize=200_000)
def _values_where_they_meet(one: Section, other: Section, context: Condition, names: tuple[str, ...]) -> isl.Set:
    """For which values of these terms some element may be in both."""
    values = _common(one, other, context).params()
    for number in reversed(range(values.dim(isl.dim_type.param))):
        if values.get_dim_name(isl.dim_type.param, number) not in names:
            values = values.project_out(isl.dim_type.param, number, 1)
    return values


def may_meet(one: Section, other: Section, context: Condition = (), chosen: Chosen = ()) -> bool:
    """Whether some element may be in both, for some values of the terms that ``context`` (empty: no condition) allows, where
    those ``chosen`` have these values."""
    if len(one.subscripts) != len(other.subscripts):
        return True
    # Most pairs are settled by constants without isl. Of two turns the same term may be bound in both, and be worth another.
    if any(
        isinstance(a, Linear) and isinstance(b, Linear) and a.terms == b.terms and a.constant != b.constant
        for a, b in zip(one.subscripts, other.subscripts, strict=True)
        if not context or (isinstance(a, Linear) and not a.terms)
    ):
        return False
    differ = one.coarse is not one or other.coarse is not other
    if differ and not _may_meet(one.coarse, other.coarse, context, chosen):
        return False
    return _may_meet(one, other, context, chosen)


def _may_meet(one: Section, other: Section, context: Condition, chosen: Chosen) -> bool:
    mentioned = [name for name, _ in chosen if name in one.names() or name in other.names()]
    if not mentioned:
        return _meet(one, other, context)
    values = _values_where_they_meet(one, other, context, tuple(mentioned))
    point = tuple((Linear(((name, 1),), -value), "=") for name, value in chosen if name in mentioned)
    return not (values & _values_where((point,))).is_empty()


def covers(outer: Section, inner: Section) -> bool:
    """Whether every element of ``inner`` is certainly in ``outer``. Unknown subscripts of ``outer`` cover nothing."""
    if len(outer.subscripts) != len(inner.subscripts) or None in outer.subscripts:
        return False
    return bool(_isl_set(inner).is_subset(_isl_set(outer)))
