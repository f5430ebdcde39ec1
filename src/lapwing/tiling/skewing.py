"""Skewing: the change of coordinates after which rectangular tiles are legal, and a nest in those coordinates.

A dependence inside a sweep may point backwards along an inner loop, as (1, -1) of a nine-point Gauss-Seidel sweep does. With
x' = U x, U lower triangular with ones on its diagonal, its components become those of U d, and since the first component
that is not zero is positive, large enough factors make all of them >= 0 (Wolf and Lam: A Loop Transformation Theory and
an Algorithm to Maximize Parallelism).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import islpy as isl

from lapwing.affine.affine import Affine
from lapwing.errors import RefusedError
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence, Vector
from lapwing.loopnest.domain import Domain, NormalLoop
from lapwing.loopnest.skew import Skew, in_skewed
from lapwing.tiling.legality import against_rectangular_tiles, inside_sweep


def find_skew(nest: ir.LoopNest, dependences: Sequence[Dependence]) -> Skew | None:
    """The skewing with the least factors that makes rectangular tiles legal; None where they are legal as it is.

    Raises RefusedError where an array is written at several offsets: what a block of a skewed nest writes at each of them
    is a parallelogram, and blocks could not tell whose write comes last.
    """
    found = against_rectangular_tiles(nest, dependences)
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
    for name in nest.written:
        if len({store.target.affine for store in nest.stores if store.target.array == name}) > 1:
            raise RefusedError(
                f"{nest.where(dependence.target_line)}: no supported tiling respects the {dependence.kind} dependence "
                f"{list(dependence.vector)} from {dependence.source} to {dependence.target}: it points backwards along "
                f"loop {loop.name}. Rectangular tiles need every component inside a sweep to be >= 0 (HD >= 0), and loops "
                f"are skewed only where every array is written at one offset; {name} is written at several. "
                f"Reverse loop {loop.name} if all dependences allow it, write {name} at one offset, read that value from a "
                "read-only copy, or move the loop that carries it outside as a sweep."
            )


def _least_factors(vectors: Sequence[Vector], depth: int, k: int) -> Vector:
    """Factors of the space loops outside loop k that make its components >= 0: the least sum, then the innermost."""
    outer = [f"f{m}" for m in range(depth, k)]
    conditions = [f"{name} >= 0" for name in outer]
    for vector in vectors:
        terms = [str(vector[k]), *(f"{vector[m]}*f{m}" for m in range(depth, k))]
        conditions.append(f"{' + '.join(terms)} >= 0")
    conditions.append(f"total = {' + '.join(outer)}")
    point = isl.Set(f"{{ [total, {', '.join(outer)}] : {' and '.join(conditions)} }}").lexmin().sample_point()
    return tuple(point.get_coordinate_val(isl.dim_type.set, m + 1).to_python() for m in range(k - depth))


@lru_cache(maxsize=64)
def skewed_nest(bound: BoundNest, skew: Skew | None) -> BoundNest:
    """The bound nest in skewed coordinates: what is tiled and cut. The nest itself where there is nothing to skew."""
    if skew is None:
        return bound
    assert bound.skew is None, "skewed twice"
    names = bound.nest.loop_names
    loops = []
    for k, loop in enumerate(bound.domain.loops):
        normalised = sum((Affine.of(names[m]).scaled(a) for m, a in skew.factors(k)), Affine())
        moved = in_skewed(normalised, names, skew)
        lower, upper = (in_skewed(b, names, skew) + moved for b in (loop.lower, loop.upper))
        loops.append(NormalLoop(loop.name, loop.step, lower, upper))
    return replace(bound, domain=Domain(tuple(loops)), skew=skew)


def skewed_dependences(dependences: Sequence[Dependence], skew: Skew | None) -> tuple[Dependence, ...]:
    """The same dependences, with their vectors in skewed coordinates."""
    if skew is None:
        return tuple(dependences)
    return tuple(replace(d, vector=skew.apply(d.vector)) for d in dependences)
