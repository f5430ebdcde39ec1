"""Elements that iterations at the ends of loops do not have: a condition stands around those that lie outside of their array.

for i in range(n):
    if i > 0:
        above = u[i - 1]       # the first iteration has none
"""

from __future__ import annotations

from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.ir import Loop

Ends = tuple[tuple[int, int], ...]


def without(bound: BoundNest, load: t.Load) -> Ends | None:
    """How many iterations at the beginning and at the end of every space loop have no such element, while the others have.

    None where that is not known, as sizes may change or an index is not that of one loop; where no iteration has one; and where
    not every sweep has."""
    if bound.nest.is_generic:
        return None
    ends = {loop.name: _first_and_last(bound, loop) for loop in bound.nest.loops}
    found = dict.fromkeys(ends, (0, 0))
    for subscript, size in zip(load.subscripts, bound.array(load.array).shape, strict=True):
        if not isinstance(subscript, t.AffineSubscript) or subscript.wrap or len(subscript.affine.terms) != 1:
            return None
        ((name, factor),) = subscript.affine.terms
        along = ends.get(name)
        if along is None or abs(factor) != 1:
            return None
        first, last = (factor * end + subscript.affine.constant for end in along)
        if first > last:
            first, last = size - 1 - first, size - 1 - last
        before, after = found[name]
        found[name] = max(before, -first), max(after, last - (size - 1))
        if sum(found[name]) > last - first:
            return None
    of_sweeps, of_space = (
        tuple(found[loop.name] for loop in loops) for loops in (bound.nest.sweep_loops, bound.nest.space_loops)
    )
    return None if any(map(any, of_sweeps)) else of_space


def _first_and_last(bound: BoundNest, loop: Loop) -> tuple[int, int] | None:
    """The indices of a loop's first and last iteration; None where its bounds depend on other loops."""
    starts, stops = ([end.substitute(bound.symbols) for end in ends] for ends in (loop.starts, loop.stops))
    if any(end.terms for end in (*starts, *stops)):
        return None
    start, stop = (max, min) if loop.step == 1 else (min, max)
    return start(end.constant for end in starts), stop(end.constant for end in stops) - loop.step
