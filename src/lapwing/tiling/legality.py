"""Which tilings respect the dependences.

Rectangular tiles have H = diag(1/sides), so H D >= 0 (P0, section 2.3) asks that no dependence inside a sweep has a
negative component along a space loop; where one has, loops are skewed first (``skewing``). Dependences carried by a sweep
loop are satisfied by doing sweeps in order.

Tiles along time (P4, section II-B: d_ij >= 0) ask the same of all dependences, those between sweeps included: a rank then
does the sweeps of a tile with no word from the ranks after it. Loops that are not cut among ranks may be excepted, because
every rank does all of them in each sweep.
"""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.loopnest import ir
from lapwing.loopnest.dependences import Dependence


def inside_sweep(dependences: Sequence[Dependence], sweep_depth: int) -> tuple[Dependence, ...]:
    """Dependences between iterations of one sweep: zero along every sweep loop."""
    return tuple(d for d in dependences if not any(d.vector[:sweep_depth]))


def against_rectangular_tiles(
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
