"""Sections: which elements of an array a statement touches, as integer sets with symbolic bounds.

A subscript is a linear expression in *terms*. A term is a name for the value that a variable, or any expression that is not
linear, has where the analysed region begins; loop variables and values that are not known are bound inside the section.
What is asked of two sections is in meeting.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

_fresh = itertools.count()


def fresh_term() -> str:
    """A name nobody else has, to be bound in a section."""
    return f"x{next(_fresh)}"


@dataclass  # not frozen, which nothing needs, and which makes what is made most often several times as slowly
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

    def linears(self) -> tuple[Linear, ...]:
        return self.subscripts

    def substitute(self, values: Mapping[str, Linear]) -> Lookup | None:
        """The same of the term that stands in its place now; None if that is no term."""
        term = _renamed(self.term, values)
        return None if term is None else Lookup(term, self.array, tuple(s.substitute(values) for s in self.subscripts))


@dataclass(frozen=True)
class Product:
    """A term that is the product of two values."""

    term: str
    factors: tuple[Linear, Linear]

    def linears(self) -> tuple[Linear, ...]:
        return self.factors

    def linear(self) -> Linear | None:
        """What it is worth where one of the two is a number."""
        one, other = self.factors
        if one.terms and other.terms:
            return None
        return one.times(other.constant) if not other.terms else other.times(one.constant)

    def substitute(self, values: Mapping[str, Linear]) -> Product | None:
        """The same of the term that stands in its place now; None if that is no term."""
        one, other = self.factors
        term = _renamed(self.term, values)
        return None if term is None else Product(term, (one.substitute(values), other.substitute(values)))


Origin = Lookup | Product  # what a term is that is no variable's value


def is_term(linear: Linear) -> bool:
    """Whether it is one term and nothing else."""
    return linear.constant == 0 and len(linear.terms) == 1 and linear.terms[0][1] == 1


def _renamed(name: str, values: Mapping[str, Linear]) -> str | None:
    term = values.get(name, Linear.term(name))
    return term.terms[0][0] if is_term(term) else None


@dataclass  # not frozen, as Linear
class Section:
    """The elements ``subscripts`` takes on while the ``bound`` terms run over what ``conditions`` allow. ``origins``: of those
    among its terms, bound or not, that have one."""

    subscripts: tuple[Subscript, ...]
    bound: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    origins: tuple[Origin, ...] = ()

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
            found = self.__dict__["_hash"] = hash((self.subscripts, self.bound, self.conditions, self.origins))
        return found

    def _linears(self) -> list[Linear]:
        found: list[Linear] = []
        for subscript in self.subscripts:
            if isinstance(subscript, Linear):
                found.append(subscript)
            elif isinstance(subscript, Range):
                found += [end for end in (subscript.lower, subscript.upper) if end is not None]
        found += [linear for condition in self.conditions for conjunction in condition for linear, _ in conjunction]
        found += [linear for origin in self.origins for linear in origin.linears()]
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
                found = Section(coarse, self.bound, self.conditions, self.origins)
            self.__dict__["_coarse"] = found
        return found

    def substitute(self, values: Mapping[str, Linear], unknown: Set[str] = frozenset()) -> Section:
        """The section with terms replaced by what they are worth; those ``unknown`` may be anything."""
        renamed = {name: Linear.term(fresh_term()) for name in unknown & self.names()}
        values = {name: values[name] for name in self.names() if name in values} | renamed
        if not values:
            return self
        found = Section(
            tuple(_substitute(s, values) for s in self.subscripts),
            (*self.bound, *(linear.terms[0][0] for linear in renamed.values())),
            tuple(
                tuple(tuple((linear.substitute(values), op) for linear, op in part) for part in condition)
                for condition in self.conditions
            ),
            tuple(new for origin in self.origins if (new := origin.substitute(values)) is not None),
        )
        known = {o.term: value for o in found.origins if isinstance(o, Product) and (value := o.linear()) is not None}
        return found._with_known(known) if known else found

    def _with_known(self, products: Mapping[str, Linear]) -> Section:
        """The section with these values in place of products."""
        bound = tuple(name for name in self.bound if name not in products)
        origins = tuple(origin for origin in self.origins if origin.term not in products)
        return Section(self.subscripts, bound, self.conditions, origins).substitute(products)

    def constrained(
        self, bound: Iterable[str], conditions: Iterable[Condition], origins: Iterable[Origin] = ()
    ) -> Section:
        new = tuple(origin for origin in origins if origin not in self.origins)
        return Section(self.subscripts, (*self.bound, *bound), (*self.conditions, *conditions), (*self.origins, *new))

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        return tuple(origin for origin in self.origins if isinstance(origin, Lookup))

    def without_lookups(self, arrays: Set[str]) -> Section:
        """The section where nothing is known of what these arrays hold."""
        kept = tuple(o for o in self.origins if not (isinstance(o, Lookup) and o.array in arrays))
        return self if len(kept) == len(self.origins) else Section(self.subscripts, self.bound, self.conditions, kept)

    def shifted(self, offsets: tuple[Linear, ...]) -> Section:
        shifted = tuple(_shift(s, o) for s, o in zip(self.subscripts, offsets, strict=True))
        return Section(shifted, self.bound, self.conditions, self.origins)


def _substitute(subscript: Subscript, values: Mapping[str, Linear]) -> Subscript:
    if isinstance(subscript, Linear):
        return subscript.substitute(values)
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower.substitute(values),
            None if subscript.upper is None else subscript.upper.substitute(values),
        )
    return None


def _shift(subscript: Subscript, offset: Linear) -> Subscript:
    if isinstance(subscript, Linear):
        return subscript.plus(offset)
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower.plus(offset),
            None if subscript.upper is None else subscript.upper.plus(offset),
        )
    return None
