"""A Plan: how a nest is cut, who computes what, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lapwing.loopnest.dependences import Dependence, distance_vectors
from lapwing.tiling.partition import Partition

ENGINES = ("blocking", "overlap", "onesided", "helper")


@dataclass(frozen=True)
class Plan:
    """The decisions for one nest on one number of ranks.

    ``mapping`` is the space loop pipelined inside each rank, as a position among ``space_loops``, and ``tile`` its tile
    height in iterations; ``steps`` are then those of one sweep. Where time is the mapping dimension (P4) ``mapping`` is
    None, ``tile`` a number of sweeps, and ``steps`` the tiles of the whole run. ``partition`` holds the blocks the ranks
    own; ``reasons`` says, a line each, why.
    """

    nest: str
    engine: str
    sweep_loops: tuple[str, ...]
    space_loops: tuple[str, ...]
    extents: tuple[int, ...]
    mapping: int | None
    tile: int
    partition: Partition
    dependences: tuple[Dependence, ...]
    steps: int
    message_bytes: int
    reasons: tuple[str, ...]

    @property
    def ranks(self) -> int:
        return self.partition.ranks

    @property
    def grid(self) -> tuple[int, ...]:
        """The process grid over the loops other than the pipelined one; over all space loops where that one is cut too, or
        where time is pipelined."""
        grid = self.partition.grid
        if self.mapping is not None and grid[self.mapping] == 1 and len(grid) > 1:
            return (*grid[: self.mapping], *grid[self.mapping + 1 :])
        return grid

    @property
    def mapping_loop(self) -> str:
        """The name of the pipelined loop: of several sweep loops, the innermost."""
        return self.sweep_loops[-1] if self.mapping is None else self.space_loops[self.mapping]

    def to_json(self) -> dict[str, Any]:
        return {
            "nest": self.nest,
            "ranks": self.ranks,
            "dependences": [list(v) for v in distance_vectors(self.dependences)],
            "engine": self.engine,
            "sweeps": list(self.sweep_loops),
            "mapping": self.mapping_loop,
            "tile": self.tile,
            "grid": list(self.grid),
            "steps": self.steps,
            "message_bytes": self.message_bytes,
            "reasons": list(self.reasons),
        }

    def __str__(self) -> str:
        shape = " × ".join(f"{n} {e}" for n, e in zip(self.space_loops, self.extents, strict=True))
        vectors = " ".join(str(list(v)) for v in distance_vectors(self.dependences)) or "none"
        lines = [f"{self.nest}: {shape} points a sweep on {self.ranks} rank{'s' if self.ranks > 1 else ''}"]
        lines.append(f"  dependences  {vectors}")
        if self.sweep_loops:
            exchanged = "; old values exchanged between them" if self._exchanges_old_values() else ""
            lines.append(f"  sweeps       {', '.join(self.sweep_loops)}, in order{exchanged}")
        lines.append(f"  pipelined    {self.mapping_loop}, {self._tiles_text()}")
        lines.append(f"  grid         {self._grid_text()}")
        if self.message_bytes:
            lines.append(f"  messages     about {self.message_bytes} bytes a step from one rank to the next")
        lines.append(f"  engine       {self.engine}")
        lines += [f"  because      {reason}" for reason in self.reasons]
        return "\n".join(lines)

    def _exchanges_old_values(self) -> bool:
        """Whether a rank needs values that a later one wrote in the sweep before."""
        depth, grid = len(self.sweep_loops), self.partition.grid
        inside = [dependence.vector[depth:] for dependence in self.dependences]
        return any(c < 0 and parts > 1 for vector in inside for c, parts in zip(vector, grid, strict=True))

    def _tiles_text(self) -> str:
        if self.mapping is None:
            return f"tiles of {self.tile} sweep{'s' if self.tile > 1 else ''}, {self.steps} steps"
        return f"tiles of {self.tile}, {self.steps} steps a sweep"

    def _grid_text(self) -> str:
        parts = [
            f"{loop} in {parts}" for loop, parts in zip(self.space_loops, self.partition.grid, strict=True) if parts > 1
        ]
        return ("x".join(map(str, self.grid)) + f" ({', '.join(parts)})") if parts else "one rank"
