"""A skewing of loops: a unimodular change of coordinates after which rectangular tiles are legal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from lapwing.affine.affine import Affine

Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Skew:
    """``x' = U x`` in normalised coordinates of all loops of a nest, the outermost first.

    ``rows`` is U: lower triangular with ones on the diagonal, so that a loop is only ever moved along by outer ones and
    every value of the outer loops still has the same number of inner iterations. Sweep loops are left as they are.
    """

    rows: Matrix

    @cached_property
    def inverse(self) -> Matrix:
        """U⁻¹, which is lower triangular with ones on the diagonal as well."""
        size = len(self.rows)
        found: list[list[int]] = []
        for k, row in enumerate(self.rows):
            found.append([int(k == m) - sum(row[p] * found[p][m] for p in range(k)) for m in range(size)])
        return tuple(map(tuple, found))

    def apply(self, vector: Sequence[int]) -> tuple[int, ...]:
        """U times a point or a dependence vector."""
        return tuple(sum(a * x for a, x in zip(row, vector, strict=True)) for row in self.rows)

    def undo(self, vector: Sequence[int]) -> tuple[int, ...]:
        """U⁻¹ times a point."""
        return tuple(sum(a * x for a, x in zip(row, vector, strict=True)) for row in self.inverse)

    def moves(self, loop: int) -> bool:
        """Whether the loop at this position is skewed."""
        return any(self.rows[loop][:loop])

    def factors(self, loop: int) -> tuple[tuple[int, int], ...]:
        """The outer loops that move a loop along, by position, with their factors."""
        return tuple((m, a) for m, a in enumerate(self.rows[loop][:loop]) if a)


def in_skewed(affine: Affine, names: Sequence[str], skew: Skew) -> Affine:
    """An affine expression over normalised coordinates as one over skewed coordinates, under the same names."""
    result = Affine(affine.constant)
    for name, coefficient in affine.terms:
        if name not in names:
            result += Affine(0, ((name, coefficient),))
            continue
        row = skew.inverse[names.index(name)]
        for outer, factor in zip(names, row, strict=True):
            result += Affine.of(outer).scaled(coefficient * factor)
    return result
