"""Flat arrays as rows of elements: ``u[i * (ny + 2) + j]`` is element ``j`` of row ``i``, if ``j`` is certain to lie in the row.

A flat array's one subscript is a polynomial: a sum of terms and of products of terms. Divided by the length of a row it gives
the row's number, and what is left is the place in the row. The number is divided in its turn, by the number of rows in a
plane. Elements in different rows, or in different places, are different ones only if every place is between 0 and the length of a
row less one, which isl has to prove from the section's conditions. (Grosser, Ramanujam, Pouchet, Sadayappan and Pop, "Optimistic
Delinearization of Parametrically Sized Arrays", ICS 2015, guess such shapes in the same way, and check them at run time.)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.integer_sets import never
from lapwing.affine.sections import Product, Range, Section, Subscript

_Monomial = tuple[str, ...]  # terms in order, as often as they are factors
_MOST_LENGTHS = 3  # that are tried
_NOTHING: _Monomial = ()
_LINEAR = 1


@dataclass(frozen=True)
class Shape:
    """``lengths``: of a row, and of a plane in rows, and so on, all but the last; ``first``: the subscript of the first element.
    Neither need be so: any shape is right if elements are proved to lie within their rows."""

    lengths: tuple[Affine, ...]
    first: int


class _Polynomial:
    """Σ coefficient · product of terms, without zeros."""

    def __init__(self, sums: Mapping[_Monomial, int]) -> None:
        self.sums = {monomial: number for monomial, number in sums.items() if number}

    @staticmethod
    def of(form: Affine) -> _Polynomial:
        return _Polynomial({**{(name,): factor for name, factor in form.terms}, _NOTHING: form.constant})

    @property
    def degree(self) -> int:
        return max(map(len, self.sums), default=0)

    def plus(self, other: _Polynomial, factor: int = 1) -> _Polynomial:
        sums = dict(self.sums)
        for monomial, number in other.sums.items():
            sums[monomial] = sums.get(monomial, 0) + factor * number
        return _Polynomial(sums)

    def times(self, other: _Polynomial) -> _Polynomial:
        sums: dict[_Monomial, int] = {}
        for (one, a), (two, b) in itertools.product(self.sums.items(), other.sums.items()):
            monomial = tuple(sorted((*one, *two)))
            sums[monomial] = sums.get(monomial, 0) + a * b
        return _Polynomial(sums)

    def affine(self) -> Affine | None:
        """The same where nothing is multiplied."""
        if self.degree > _LINEAR:
            return None
        terms = tuple(sorted((monomial[0], number) for monomial, number in self.sums.items() if monomial))
        return Affine(self.sums.get(_NOTHING, 0), terms)


def _expanded(form: Affine, products: Mapping[str, Product]) -> _Polynomial:
    """The same with all products of terms multiplied out."""
    found = _Polynomial({_NOTHING: form.constant})
    for name, factor in form.terms:
        if name in products:
            one, other = (_expanded(f, products) for f in products[name].factors)
            found = found.plus(one.times(other), factor)
        else:
            found = found.plus(_Polynomial({(name,): factor}))
    return found


def _products(section: Section) -> dict[str, Product]:
    return {origin.term: origin for origin in section.origins if isinstance(origin, Product)}


def is_flat(section: Section) -> bool:
    """Whether its one subscript may be a row and a place in it."""
    return len(section.subscripts) == 1 and any(isinstance(origin, Product) for origin in section.origins)


# ---- shapes ---------------------------------------------------------------------------------------------------------------


def shapes(one: Section, other: Section) -> Iterator[Shape]:
    """Shapes that the array they are in may have, as far as their subscripts tell."""
    lengths = list(dict.fromkeys((*_lengths(one), *_lengths(other))))[:_MOST_LENGTHS]
    depth = max(_degree(one), _degree(other)) - 1
    for number in range(min(depth, 2), 0, -1):
        for chosen in itertools.product(lengths, repeat=number):
            for first in (0, 1):
                yield Shape(chosen, first)


@lru_cache(maxsize=10_000)
def _lengths(section: Section) -> tuple[Affine, ...]:
    """What something is multiplied by, where it is the same all through the section."""
    products, bound = _products(section), frozenset(section.bound)
    found = [
        factor
        for product in products.values()
        for factor in reversed(product.factors)
        if factor.terms and factor.names.isdisjoint(bound) and factor.names.isdisjoint(products)
    ]
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=10_000)
def _degree(section: Section) -> int:
    products = _products(section)
    (subscript,) = section.subscripts
    ends = (subscript,) if isinstance(subscript, Affine) else (subscript.lower, subscript.upper) if subscript else ()
    return max((_expanded(end, products).degree for end in ends if end is not None), default=0)


# ---- sections in rows -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=100_000)
def delinearised(section: Section, shape: Shape) -> Section | None:
    """The section of a flat array in the subscripts that the shape gives its elements, the row's place last; None if some
    may lie outside their rows."""
    (subscript,) = section.subscripts
    products = _products(section)
    if isinstance(subscript, Affine):
        subscripts = _element(section, _expanded(subscript, products), shape)
    elif isinstance(subscript, Range) and subscript.lower is not None and subscript.upper is not None:
        lower, upper = _expanded(subscript.lower, products), _expanded(subscript.upper, products)
        subscripts = _run(section, lower, upper, shape)
    else:
        return None
    if subscripts is None:
        return None
    return Section(tuple(reversed(subscripts)), section.bound, section.conditions, section.lookups)


def _element(section: Section, place: _Polynomial, shape: Shape) -> list[Subscript] | None:
    rest = place.plus(_Polynomial({_NOTHING: shape.first}), -1)
    found: list[Subscript] = []
    for length in shape.lengths:
        divided = _place_in_row(section, rest, length)
        if divided is None:
            return None
        rest, own = divided
        found.append(own)
    return [*found, _row(section, rest)]


def _run(section: Section, lower: _Polynomial, upper: _Polynomial, shape: Shape) -> list[Subscript] | None:
    """Elements one after another: a part of a row, or whole rows."""
    count = upper.plus(lower, -1).plus(_Polynomial({_NOTHING: 1}))
    rest = lower.plus(_Polynomial({_NOTHING: shape.first}), -1)
    found: list[Subscript] = []
    whole = True  # rows so far
    for length in shape.lengths:
        several = count.affine() if whole else Affine(1)
        # Of rows of a negative length, a negative number is something, too.
        known = several is not None and (not found or not whole or _is_some(section, several))
        divided = _place_in_row(section, rest, length, several) if known else None
        if divided is not None:
            assert several is not None
            rest, own = divided
            found.append(Range(own, own + several - 1) if whole else own)
            whole = False
            continue
        at_start, left = _divided(rest, length), _divided(count, length)
        if not whole or at_start is None or left is None:
            return None
        rest, count = at_start, left
        found.append(Range(None, None))
    row = _row(section, rest)
    if not whole:
        return [*found, row]
    rows = count.affine()
    if row is None or rows is None or rows.terms or rows.constant < 1:
        return [*found, Range(None, None)]  # of how many rows nobody knows whether there are any
    return [*found, Range(row, row + (rows.constant - 1))]


def _row(section: Section, number: _Polynomial) -> Affine | None:
    """The number of a row as a subscript; a product that stays the same all through the section is a term like any other."""
    bound = frozenset(section.bound)
    if any(len(monomial) > _LINEAR and not bound.isdisjoint(monomial) for monomial in number.sums):
        return None
    named = {
        monomial if len(monomial) <= _LINEAR else (" * ".join(monomial),): n for monomial, n in number.sums.items()
    }
    return _Polynomial(named).affine()


def _place_in_row(
    section: Section, place: _Polynomial, length: Affine, count: Affine | None = None
) -> tuple[_Polynomial, Affine] | None:
    """The row's number and the place in it, where ``count`` (one) elements from there on are certain to lie in the row."""
    more = Affine() if count is None else count - 1
    for row, left in _quotients(place, length):
        own = left.affine()
        if own is None:
            continue
        for away in _rows_away(own, length):
            here = own - length * away
            if _lies_within(section.conditions, here, here + more, length):
                return row.plus(_Polynomial({_NOTHING: away})), here
    return None


def _rows_away(place: Affine, length: Affine) -> Iterable[int]:
    """How many rows from the one it is spelled in a place may lie in."""
    name, factor = length.terms[0]
    spelled = place.coefficient(name) // factor
    return dict.fromkeys(near + step for near in (0, spelled) for step in (0, -1, 1))


def _is_some(section: Section, count: Affine) -> bool:
    """Whether it is certainly more than none."""
    return never((*section.conditions, (((-count, ">="),),)))


@lru_cache(maxsize=100_000)
def _lies_within(conditions: tuple[Condition, ...], first: Affine, last: Affine, length: Affine) -> bool:
    """Whether 0 ≤ first and last < length where the conditions hold; if first > last, nothing has to lie anywhere."""
    some: Condition = (((last - first, ">="),),)
    below = Affine(-1) - first
    beyond = last - length
    outside: Condition = (((below, ">="),), ((beyond, ">="),))
    return never((*conditions, some, outside))


def _divided(number: _Polynomial, length: Affine) -> _Polynomial | None:
    """How many times the length it is, if it is exactly so many times."""
    name, factor = length.terms[0]
    for quotient, left in _quotients(number, length):
        times = left.sums.get((name,), 0) // factor
        if not left.plus(_Polynomial.of(length), -times).sums:
            return quotient.plus(_Polynomial({_NOTHING: times}))
    return None


def _quotients(number: _Polynomial, length: Affine) -> Iterable[tuple[_Polynomial, _Polynomial]]:
    """``number`` = quotient · length + rest: for each term of the length one way to take it out of the number's products."""
    for name, factor in length.terms:
        if abs(factor) != 1:
            continue
        # length = factor · name + others, and so name = factor · (length - others).
        others = _Polynomial.of(length - Affine.of(name) * factor)
        quotient, rest = _Polynomial({}), number
        while True:
            found = next((m for m in rest.sums if len(m) > _LINEAR and name in m), None)
            if found is None:
                break
            place = found.index(name)
            cofactor = _Polynomial({(*found[:place], *found[place + 1 :]): factor * rest.sums[found]})
            quotient = quotient.plus(cofactor)
            rest = rest.plus(_Polynomial({found: rest.sums[found]}), -1).plus(cofactor.times(others), -1)
        yield quotient, rest
