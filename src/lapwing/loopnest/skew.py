"""Skewing: a unimodular change of coordinates after which rectangular tiles are legal.

Rectangular tiles have H = diag(1/sides), so H D >= 0 (P0, section 2.3) asks that no dependence inside a sweep has a negative
component along a space loop. Dependences carried by a sweep loop are satisfied by doing sweeps in order.

A dependence inside a sweep may point backwards along an inner loop, as (1, -1) of a nine-point Gauss-Seidel sweep does. With
x' = U x, U lower triangular with ones on its diagonal, its components become those of U d, and since the first component
that is not zero is positive, large enough factors make all of them >= 0 (Wolf and Lam: A Loop Transformation Theory and
an Algorithm to Maximize Parallelism).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.integer_sets import Space, first_point
from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.dependences import Dependence, Vector, inside_sweep

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
    return affine.substitute(_unskewed(tuple(names), skew))


@lru_cache(maxsize=16)
def _unskewed(names: tuple[str, ...], skew: Skew) -> dict[str, Affine]:
    """The indices of loops over skewed coordinates."""
    indices = [Affine.of(name) for name in names]
    moved = (sum((x * factor for x, factor in zip(indices, row, strict=True)), Affine()) for row in skew.inverse)
    return dict(zip(names, moved, strict=True))


def find_skew(nest: ir.LoopNest, dependences: Sequence[Dependence]) -> Skew | None:
    """The skewing with the least factors that makes rectangular tiles legal; None where they are legal as it is.

    Raises RefusedError where an array is written at several offsets: what a block of a skewed nest writes at each of them
    is a parallelogram, and blocks could not tell whose write comes last.
    """
    found = _against_rectangular_tiles(nest, dependences)
    if found is None:
        return None
    _check_one_offset(nest, *found)
    depth, vectors = nest.sweep_depth, [d.vector for d in inside_sweep(dependences, nest.sweep_depth)]
    rows = []
    for k in range(len(nest.loops)):
        factors = _least_factors(vectors, depth, k) if any(v[k] < 0 for v in vectors) else (0,) * (k - depth)
        before = (0,) * min(k, depth) + factors
        rows.append((*before, 1, *(0,) * (len(nest.loops) - k - 1)))
    return Skew(tuple(rows))


def _check_one_offset(nest: ir.LoopNest, dependence: Dependence, loop: ir.Loop) -> None:
    against = (
        f"{nest.where(dependence.target_line)}: no supported tiling respects the {dependence.kind} dependence "
        f"{list(dependence.vector)} from {dependence.source} to {dependence.target}: it points backwards along loop "
        f"{loop.name}. Rectangular tiles need every component inside a sweep to be >= 0 (HD >= 0), and loops are skewed only "
    )
    for name in nest.written:
        if None in nest.axis_loops[name]:
            raise _refused(
                f"{against}where loops index every axis of written arrays, each by a loop of its own; of {name} they do not. "
                f"Reverse loop {loop.name} if all dependences allow it, or move the loop that carries it outside as a sweep."
            )
        if len({store.target.affine for store in nest.stores if store.target.array == name}) > 1:
            raise _refused(
                f"{against}where every array is written at one offset; {name} is written at several. "
                f"Reverse loop {loop.name} if all dependences allow it, write {name} at one offset, read that value from a "
                "read-only copy, or move the loop that carries it outside as a sweep."
            )


def _refused(text: str) -> RefusedError:
    return RefusedError(Refusal(text, tiled_only=True))


def _least_factors(vectors: Sequence[Vector], depth: int, k: int) -> Vector:
    """Factors of the space loops outside loop k that make its components >= 0: the least sum, then the innermost."""
    names = [f"f{m}" for m in range(depth, k)]
    factors = [Affine.of(name) for name in names]
    moved = [
        sum((f * x for f, x in zip(factors, vector[depth:k], strict=True)), Affine(vector[k])) for vector in vectors
    ]
    total = Affine.of("total") - sum(factors, Affine())
    enough: Condition = (tuple((form, ">=") for form in (*factors, *moved)),)
    return first_point(Space((), ["total", *names]).where([enough, (((total, "="),),)]))[1:]


def _against_rectangular_tiles(
    nest: ir.LoopNest, dependences: Sequence[Dependence]
) -> tuple[Dependence, ir.Loop] | None:
    """A dependence inside a sweep that points backwards along a space loop, and that loop.

    None where there is none, so that rectangular tiles are legal: H D >= 0.
    """
    for dependence in inside_sweep(dependences, nest.sweep_depth):
        for loop, component in zip(nest.loops, dependence.vector, strict=True):
            if component < 0:
                return dependence, loop
    return None
