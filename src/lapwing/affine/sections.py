"""Sections: which elements of an array a statement touches, as integer sets with symbolic bounds.

A subscript is an affine form in *terms*. A term is a name for the value that a variable, or any expression that is not affine,
has where the analysed region begins; loop variables and values that are not known are bound inside the section. What is asked
of two sections is in ``intersection``.

Sections are those of existing programs. A nest needs none: its sizes are numbers once it is bound, so that what a tile touches
is a box of numbers (``tiling/faces``), what is asked of an access is the least and the greatest index (``Domain.range_of``), and
its dependences are distances between iterations, which the set of elements has forgotten.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from lapwing.affine.affine import Affine, Condition

_fresh = itertools.count()


def fresh_term() -> str:
    """A name nobody else has, to be bound in a section."""
    return f"x{next(_fresh)}"


# Terms and the values that they have.
Chosen = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Range:
    """Subscripts ``lower`` to ``upper``, both included; None: from or to the array's end."""

    lower: Affine | None
    upper: Affine | None


Subscript = Affine | Range | None  # None: nothing is known


@dataclass(frozen=True)
class Lookup:
    """A term that is what an element of an integer array holds: two of the same array and the same subscripts are equal."""

    term: str
    array: str  # its key
    subscripts: tuple[Affine, ...]

    def forms(self) -> tuple[Affine, ...]:
        return self.subscripts

    def substitute(self, values: Mapping[str, Affine]) -> Lookup | None:
        """The same of the term that stands in its place now; None if that is no term."""
        term = _renamed(self.term, values)
        return None if term is None else Lookup(term, self.array, tuple(s.substitute(values) for s in self.subscripts))


@dataclass(frozen=True)
class Product:
    """A term that is the product of two values."""

    term: str
    factors: tuple[Affine, Affine]

    def forms(self) -> tuple[Affine, ...]:
        return self.factors

    def affine(self) -> Affine | None:
        """What it is worth where one of the two is a number."""
        one, other = self.factors
        if one.terms and other.terms:
            return None
        return one * other.constant if not other.terms else other * one.constant

    def substitute(self, values: Mapping[str, Affine]) -> Product | None:
        """The same of the term that stands in its place now; None if that is no term."""
        one, other = self.factors
        term = _renamed(self.term, values)
        return None if term is None else Product(term, (one.substitute(values), other.substitute(values)))


Origin = Lookup | Product  # what a term is that is no variable's value


def _renamed(name: str, values: Mapping[str, Affine]) -> str | None:
    term = values.get(name, Affine.of(name))
    return term.terms[0][0] if term.is_name else None


@dataclass  # not frozen, which nothing needs, and which makes what is made most often several times as slowly
class Section:
    """The elements ``subscripts`` takes on while the ``bound`` terms run over what ``conditions`` allow. ``origins``: of those
    among its terms, bound or not, that have one."""

    subscripts: tuple[Subscript, ...]
    bound: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    origins: tuple[Origin, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The terms that are not bound inside."""
        found: frozenset[str] | None = self.__dict__.get("_names")
        if found is None:
            every = frozenset[str]().union(*[form.names for form in self._forms()])
            found = self.__dict__["_names"] = every - frozenset(self.bound)
        return found

    def __hash__(self) -> int:
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.subscripts, self.bound, self.conditions, self.origins))
        return found

    def _forms(self) -> list[Affine]:
        found: list[Affine] = []
        for subscript in self.subscripts:
            if isinstance(subscript, Affine):
                found.append(subscript)
            elif isinstance(subscript, Range):
                found += [end for end in (subscript.lower, subscript.upper) if end is not None]
        found += [form for condition in self.conditions for conjunction in condition for form, _ in conjunction]
        found += [form for origin in self.origins for form in origin.forms()]
        return found

    @property
    def coarse(self) -> Section:
        """The section without its subscripts that are numbers: the same of the many that differ in nothing else."""
        found: Section | None = self.__dict__.get("_coarse")
        if found is None:
            numbers = [isinstance(s, Affine) and not s.terms for s in self.subscripts]
            found = self
            if any(numbers) and not all(numbers):
                known = zip(self.subscripts, numbers, strict=True)
                coarse = tuple(None if number else s for s, number in known)
                found = Section(coarse, self.bound, self.conditions, self.origins)
            self.__dict__["_coarse"] = found
        return found

    def substitute(self, values: Mapping[str, Affine], unknown: Set[str] = frozenset()) -> Section:
        """The section with terms replaced by what they are worth; those ``unknown`` may be anything."""
        renamed = {name: Affine.of(fresh_term()) for name in unknown & self.names}
        values = {name: values[name] for name in self.names if name in values} | renamed
        if not values:
            return self
        found = Section(
            tuple(_substitute(s, values) for s in self.subscripts),
            (*self.bound, *(form.terms[0][0] for form in renamed.values())),
            tuple(
                tuple(tuple((form.substitute(values), op) for form, op in part) for part in condition)
                for condition in self.conditions
            ),
            tuple(new for origin in self.origins if (new := origin.substitute(values)) is not None),
        )
        known = {o.term: value for o in found.origins if isinstance(o, Product) and (value := o.affine()) is not None}
        return found._with_known(known) if known else found

    def _with_known(self, products: Mapping[str, Affine]) -> Section:
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

    def shifted(self, offsets: tuple[Affine, ...]) -> Section:
        shifted = tuple(_shift(s, o) for s, o in zip(self.subscripts, offsets, strict=True))
        return Section(shifted, self.bound, self.conditions, self.origins)


def _substitute(subscript: Subscript, values: Mapping[str, Affine]) -> Subscript:
    if isinstance(subscript, Affine):
        return subscript.substitute(values)
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower.substitute(values),
            None if subscript.upper is None else subscript.upper.substitute(values),
        )
    return None


def _shift(subscript: Subscript, offset: Affine) -> Subscript:
    if isinstance(subscript, Affine):
        return subscript + offset
    if isinstance(subscript, Range):
        return Range(
            None if subscript.lower is None else subscript.lower + offset,
            None if subscript.upper is None else subscript.upper + offset,
        )
    return None
