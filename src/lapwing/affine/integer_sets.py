"""Conditions on terms as isl's sets.

They are built piece by piece: to read them from texts would take isl ten times as long.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce

import islpy as isl

from lapwing.affine.sections import Comparison, Condition

_PARAMETER, _AXIS = isl.dim_type.param, isl.dim_type.set


@lru_cache(maxsize=10_000)
def _value(number: int) -> isl.Val:
    return isl.Val.read_from_str(isl.DEFAULT_CONTEXT, str(number))  # however large


class Space:
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


def names_in(condition: Condition) -> frozenset[str]:
    """The terms that it mentions."""
    return frozenset(name for part in condition for linear, _ in part for name in linear.names())


@lru_cache(maxsize=100_000)
def never(conditions: tuple[Condition, ...]) -> bool:
    """Whether no values of the terms fulfil all these conditions."""
    names = frozenset[str]().union(*map(names_in, conditions))
    return bool(Space(names, ()).where(conditions).is_empty())
