"""What a nest's dependences ask of its order: found when first asked for, once, and carried by all that is bound of the nest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lapwing.loopnest import ir
from lapwing.loopnest.pieces import Around, refuse_around

if TYPE_CHECKING:
    from lapwing.loopnest.dependences import Dependence
    from lapwing.loopnest.skew import Skew


@dataclass(frozen=True, eq=False)
class NestAnalysis:
    """isl is loaded when something is asked, so that a nest can be parsed, and refused, without it."""

    nest: ir.LoopNest
    around: Around | None = None

    @cached_property
    def dependences(self) -> tuple[Dependence, ...]:
        """Flow, anti and output dependences. Raises RefusedError where a distance inside a sweep is not constant."""
        from lapwing.loopnest.dependences import find_dependences

        if self.nest.is_sequential:
            return ()
        return find_dependences(self.nest, self.around)

    @cached_property
    def skew(self) -> Skew | None:
        """The skewing that makes rectangular tiles legal, None where they are as it is. Raises RefusedError as find_skew."""
        from lapwing.loopnest.skew import find_skew

        found = find_skew(self.nest, self.dependences)
        if found is not None and self.around is not None:
            access, axis = next(iter(self.around.pieces))
            refuse_around(self.nest, access, axis, "and other dependences point backwards along a loop")
        return found
