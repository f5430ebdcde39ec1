"""Builds and runs by_hand.c, the papers' own programs, on a simulated cluster."""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from lapwing.errors import BuildError
from lapwing.export.smpi import Cluster, require_simgrid, run

_SOURCE = Path(__file__).parent / "by_hand.c"

Procedure = Literal["blocking", "overlap", "standard", "sci-blocking", "sci-overlap"]
_AXES = 3


@dataclass(frozen=True)
class Work:
    """What a rank of a grid of two or three dimensions does: ``length`` points along the mapping dimension, ``height`` a tile.

    compute, bytes: seconds of a tile, and bytes of a message to the neighbour along each axis, per point of height.
    """

    grid: tuple[int, ...]
    length: int
    height: int
    compute: float
    bytes: tuple[int, ...]


class ByHand:
    """The program, built once in a directory of its own: use as a context."""

    def __enter__(self) -> ByHand:
        self._folder = tempfile.TemporaryDirectory(prefix="lapwing-papers-")
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def seconds(
        self, procedure: Procedure, work: Work, costs: tuple[float, float], cluster: Cluster, what: str = "total"
    ) -> float:
        """Simulated seconds of a run; costs and what: see by_hand.c. Raises BuildError without SimGrid."""
        more = _AXES - len(work.grid)
        grid, bytes_ = (*work.grid, *(1,) * more), (*work.bytes, *(0,) * more)
        numbers = (*grid, work.length, work.height, work.compute, *bytes_, *costs)
        ranks = math.prod(grid)
        return run(self._program, ranks, cluster, [procedure, *map(repr, numbers), what], Path(self._folder.name))

    @cached_property
    def _program(self) -> Path:
        require_simgrid()
        program = Path(self._folder.name) / "by_hand"
        command = [shutil.which("smpicc") or "smpicc", "-O1", "-o", str(program), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder.name)
        if done.returncode != 0:
            raise BuildError(f"{_SOURCE.name} could not be built for the simulator:\n{done.stderr[-2000:]}")
        return program
