"""Whether tiles along time respect the dependences.

Tiles along time (P4, section II-B: d_ij >= 0) ask of all dependences, those between sweeps included, what rectangular tiles of
a sweep ask of those inside it (``loopnest/skew``): that none has a negative component. A rank then does the sweeps of a tile
with no word from the ranks after it. Loops that are not cut among ranks may be excepted, because every rank does all of them
in each sweep.
"""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.loopnest import ir
from lapwing.loopnest.dependences import Dependence


def against_time_tiles(
    nest: ir.LoopNest, dependences: Sequence[Dependence], grid: Sequence[int]
) -> tuple[Dependence, ir.Loop] | None:
    """A dependence that points backwards along a space loop the process grid cuts, and that loop.

    None where there is none, so that tiles along time are legal. grid: the number of parts of every space loop.
    """
    cut = [loop for loop, parts in zip(nest.space_loops, grid, strict=True) if parts > 1]
    for dependence in dependences:
        components = dict(zip(nest.loop_names, dependence.vector, strict=True))
        for loop in cut:
            if components[loop.name] < 0:
                return dependence, loop
    return None
