"""Affine integer forms: a constant plus integer multiples of names.

Names are a nest's loop indices and the symbols whose value is known when it is called (parameters, ``u.shape[0]``), or an
existing program's terms (``sections``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Affine:
    """``constant + Σ coefficient · name``; terms are sorted by name and never zero."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(name: str) -> Affine:
        return Affine(0, ((name, 1),))

    def __add__(self, other: Affine | int) -> Affine:
        return self._plus(other, 1)

    def __sub__(self, other: Affine | int) -> Affine:
        return self._plus(other, -1)

    def __neg__(self) -> Affine:
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        return Affine(self.constant * factor, tuple((n, c * factor) for n, c in self.terms) if factor else ())

    def _plus(self, other: Affine | int, factor: int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + factor * other, self.terms) if other else self
        constant = self.constant + factor * other.constant
        if not other.terms:
            return self if constant == self.constant else Affine(constant, self.terms)
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + factor * coefficient
        return Affine(constant, _sorted_terms(sums))

    def coefficient(self, name: str) -> int:
        return dict(self.terms).get(name, 0)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.terms)

    @property
    def is_name(self) -> bool:
        """Whether it is one name and nothing else."""
        return self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    def substitute(self, values: Mapping[str, Affine] | Mapping[str, int]) -> Affine:
        """Replace every name that has a value; the rest stay."""
        if values.keys().isdisjoint(self.names):
            return self
        constant = self.constant
        sums: dict[str, int] = {}
        for name, coefficient in self.terms:
            value = values.get(name)
            if value is None:
                sums[name] = sums.get(name, 0) + coefficient
            elif isinstance(value, Affine):
                constant += coefficient * value.constant
                for inner, factor in value.terms:
                    sums[inner] = sums.get(inner, 0) + coefficient * factor
            else:
                constant += coefficient * value
        return Affine(constant, _sorted_terms(sums))

    def evaluate(self, values: Mapping[str, int]) -> int:
        return self.constant + sum(c * values[n] for n, c in self.terms)

    def interval(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Least and greatest value (inclusive) over a box given by inclusive ranges of the names."""
        low = high = self.constant
        for name, coefficient in self.terms:
            ends = (coefficient * ranges[name][0], coefficient * ranges[name][1])
            low += min(ends)
            high += max(ends)
        return low, high

    def __str__(self) -> str:
        text = ""
        for name, coefficient in self.terms:
            sign = "-" if coefficient < 0 else "+"
            magnitude = "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"
            text += f" {sign} {magnitude}{name}" if text else f"{'-' if coefficient < 0 else ''}{magnitude}{name}"
        if not text:
            return str(self.constant)
        if self.constant:
            text += f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}"
        return text


# A comparison says that a form is = 0 or >= 0; a condition is a disjunction of conjunctions of comparisons.
Comparison = tuple[Affine, str]
Condition = tuple[tuple[Comparison, ...], ...]


def _sorted_terms(sums: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, value) for name, value in sums.items() if value))
