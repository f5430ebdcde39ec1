"""Affine integer expressions: a constant plus integer multiples of names.

Names are loop indices or symbols whose value is known when the nest is called (parameters, ``u.shape[0]``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Affine:
    """``constant + Σ coefficient · name``; terms are sorted by name and never zero."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(name: str) -> Affine:
        return Affine(0, ((name, 1),))

    def __add__(self, other: Affine) -> Affine:
        sums = dict(self.terms)
        for name, coefficient in other.terms:
            sums[name] = sums.get(name, 0) + coefficient
        return Affine(self.constant + other.constant, _sorted_terms(sums))

    def __neg__(self) -> Affine:
        return self.scaled(-1)

    def __sub__(self, other: Affine) -> Affine:
        return self + (-other)

    def scaled(self, factor: int) -> Affine:
        return Affine(self.constant * factor, _sorted_terms({n: c * factor for n, c in self.terms}))

    def coefficient(self, name: str) -> int:
        return dict(self.terms).get(name, 0)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.terms)

    def substitute(self, values: Mapping[str, int]) -> Affine:
        """Replace every name that has a value; the rest stay."""
        constant = self.constant + sum(c * values[n] for n, c in self.terms if n in values)
        return Affine(constant, tuple((n, c) for n, c in self.terms if n not in values))

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


def _sorted_terms(terms: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, value) for name, value in terms.items() if value))
