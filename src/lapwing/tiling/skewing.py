"""A nest and its dependences in skewed coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from lapwing.affine.affine import Affine
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.loopnest.domain import Domain, NormalLoop
from lapwing.loopnest.skew import Skew, in_skewed


@lru_cache(maxsize=64)
def skewed_nest(bound: BoundNest, skew: Skew | None) -> BoundNest:
    """The bound nest in skewed coordinates: what is tiled and cut. The nest itself where there is nothing to skew."""
    if skew is None:
        return bound
    assert bound.skew is None, "skewed twice"
    names = bound.nest.loop_names
    loops = []
    for k, loop in enumerate(bound.domain.loops):
        normalised = sum((Affine.of(names[m]) * a for m, a in skew.factors(k)), Affine())
        moved = in_skewed(normalised, names, skew)
        lowers, uppers = (
            tuple(in_skewed(bound, names, skew) + moved for bound in bounds) for bounds in (loop.lowers, loop.uppers)
        )
        loops.append(NormalLoop(loop.name, loop.step, lowers, uppers))
    return replace(bound, domain=Domain(tuple(loops)), skew=skew)


def skewed_dependences(dependences: Sequence[Dependence], skew: Skew | None) -> tuple[Dependence, ...]:
    """The same dependences, with their vectors in skewed coordinates."""
    if skew is None:
        return tuple(dependences)
    return tuple(replace(d, vector=skew.apply(d.vector)) for d in dependences)
