"""What a nest's dependences ask of its order: found when first asked for, once, and carried by all that is bound of the nest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lapwing.loopnest import ir

if TYPE_CHECKING:
    from lapwing.loopnest.dependences import Dependence
    from lapwing.loopnest.skew import Skew


@dataclass(frozen=True, eq=False)
class NestAnalysis:
    """isl is loaded when something is asked, so that a nest can be parsed, and refused, without it."""

    nest: ir.LoopNest

    @cached_property
    def dependences(self) -> tuple[Dependence, ...]:
        """Flow, anti and output dependences. Raises RefusedError where a distance inside a sweep is not constant."""
        from lapwing.loopnest.dependences import find_dependences

        if self.nest.is_sequential:
            return ()
        return find_dependences(self.nest)

    @cached_property
    def skew(self) -> Skew | None:
        """The skewing that makes rectangular tiles legal, None where they are as it is. Raises RefusedError as find_skew."""
        from lapwing.loopnest.skew import find_skew

        return find_skew(self.nest, self.dependences)
