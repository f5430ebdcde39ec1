"""What is known of the indices of loops from where the loops begin and end: that one affine form is larger than another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding import typed as t

_MOST_FORMS = 64  # that are looked at


@dataclass(frozen=True)
class Ranges:
    """The least and greatest values of loop indices, as affine forms of others."""

    least: Mapping[str, Affine]
    greatest: Mapping[str, Affine]

    def is_positive(self, form: Affine) -> bool:
        """Whether a form is greater than zero wherever the indices are in their ranges; no where that is not known."""
        tried, left = {form}, [form]
        while left and len(tried) < _MOST_FORMS:
            form = left.pop()
            if not form.terms and form.constant > 0:
                return True
            for name, factor in form.terms:  # the order in which indices give way to their bounds matters
                bound = (self.least if factor > 0 else self.greatest).get(name)
                smaller = None if bound is None else form.substitute({name: bound})
                if smaller is not None and smaller not in tried:
                    tried.add(smaller)
                    left.append(smaller)
        return False

    def renamed(self, names: Mapping[str, str]) -> Ranges:
        """The same with other names of indices."""
        as_forms = {name: Affine.of(other) for name, other in names.items()}
        least, greatest = (
            {names.get(name, name): form.substitute(as_forms) for name, form in forms.items()}
            for forms in (self.least, self.greatest)
        )
        return Ranges(least, greatest)

    def also(self, other: Ranges) -> Ranges:
        return Ranges({**self.least, **other.least}, {**self.greatest, **other.greatest})


NOTHING = Ranges({}, {})


def within(loop: t.TypedFor, around: Ranges) -> Ranges:
    """What is known in a loop, besides what is known around it."""
    name, least, greatest = loop.index.name, dict(around.least), dict(around.greatest)
    least.pop(name, None)
    greatest.pop(name, None)
    if isinstance(loop.step, t.Literal) and loop.step.value == 1:
        start, stop = form_of(loop.start), form_of(loop.stop)
        if start is not None:
            least[name] = start
        if stop is not None:
            greatest[name] = stop - 1
    return Ranges(least, greatest)


def form_of(node: t.Typed, known: Mapping[t.Local, Affine] = MappingProxyType({})) -> Affine | None:
    """An integer expression as an affine form. known: those of locals."""
    match node:
        case t.Literal(value=int() as value):
            return Affine(int(value))
        case t.Index(name=name) | t.Scalar(name=name):
            return Affine.of(name)
        case t.AffineValue(affine=affine):
            return affine
        case t.Local():
            return known.get(node)
        case t.Operation(dtype="int64", operator="unary -", operands=(operand,)):
            form = form_of(operand, known)
            return None if form is None else -form
        case t.Operation(dtype="int64", operator="+" | "-" | "*" as operator, operands=(left, right)):
            a, b = form_of(left, known), form_of(right, known)
            if a is None or b is None:
                return None
            if operator == "*":
                return b * a.constant if not a.terms else a * b.constant if not b.terms else None
            return a + b if operator == "+" else a - b
    return None
