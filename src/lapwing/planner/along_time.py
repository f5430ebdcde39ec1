"""Time as the mapping dimension (P4, section II-C): tiles of several sweeps, and a process grid over all space loops.

Each rank does its whole block in every sweep, and the faces of a tile's sweeps travel in one message. Of P4's linear schedules
the pipeline over time is the one that needs no space loop to be left whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.faces import reads_ahead
from lapwing.tiling.legality import against_time_tiles

# The last rank starts a tile later for every rank before it, and as many tiles are lost at the end of the run. With a space
# loop pipelined those tiles are parts of one sweep; with time they are whole sweeps, so there have to be many.
SWEEPS_A_STAGE = 16
MOST_COUNTED = 1_000_000  # sweeps beyond that many change no decision


@dataclass(frozen=True)
class AlongTime:
    """Tiles along time for one call of a nest: on which process grids they are legal, when they pay, how high they are.

    Grids here hold the number of parts of every space loop.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]

    @cached_property
    def sweeps(self) -> int:
        """How many sweeps there are, all sweep loops together."""
        domain, depth = self.bound.domain, self.bound.nest.sweep_depth
        if not all(loop.is_fixed for loop in domain.loops[:depth]):
            return sum(1 for _ in islice(domain.points(depth), MOST_COUNTED))
        return math.prod(high - low for low, high in domain.box[:depth])

    def is_legal(self, grid: Sequence[int]) -> bool:
        """Whether there is a time to tile, and no rank needs values of one that comes after it."""
        return (
            self.sweeps > 1
            and math.prod(grid) > 1
            and against_time_tiles(self.bound.nest, self.dependences, grid) is None
            and not reads_ahead(self.bound, grid)
        )

    def pays(self, grid: Sequence[int]) -> bool:
        """Whether the sweeps are many enough for the pipeline to be full most of the time."""
        return self.sweeps >= SWEEPS_A_STAGE * stages(grid)

    def tile(self, block: Sequence[int], grid: Sequence[int], points: int) -> int:
        """A tile height in sweeps: about so many points a tile, and many tiles for every stage of the pipeline."""
        wanted = points // math.prod(block)
        return max(1, min(wanted, self.sweeps // (SWEEPS_A_STAGE * max(1, stages(grid)))))

    def reasons_against(self, grid: Sequence[int]) -> list[str]:
        """Why time is not pipelined on such a grid; nothing where that goes without saying."""
        if self.sweeps < 2 or math.prod(grid) == 1:
            return []
        name = self.bound.nest.sweep_loops[-1].name
        found = against_time_tiles(self.bound.nest, self.dependences, grid)
        if found is not None:
            dependence, loop = found
            vector = list(dependence.vector)
            return [f"{name} is not: the {dependence.kind} dependence {vector} points backwards along {loop.name}"]
        if self.is_legal(grid) and not self.pays(grid):
            return [f"{name} is not: {self.sweeps} sweeps are too few to keep {stages(grid) + 1} ranks in a row busy"]
        return []


def stages(grid: Sequence[int]) -> int:
    """How many ranks the first tile passes before the last rank begins."""
    return sum(parts - 1 for parts in grid)
