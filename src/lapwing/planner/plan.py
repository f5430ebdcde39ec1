"""A Plan: how a nest is cut, who computes what, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence, distance_vectors
from lapwing.loopnest.ir import WHOLE
from lapwing.loopnest.skew import Skew
from lapwing.planner.inner import InnerChoice
from lapwing.planner.prediction import Prediction
from lapwing.roofline.bounds import Limit
from lapwing.schedule.disk_ring import DiskPipeline
from lapwing.schedule.pipeline import ENGINES as ENGINES
from lapwing.schedule.pipeline import Engine, Pipeline
from lapwing.tiling.faces import Faces
from lapwing.tiling.partition import Partition
from lapwing.tiling.phased.fusion import Fusion
from lapwing.units import duration, size

_VALUES_AT = len("  dependences  ")  # where the values stand in the lines of str(plan)

# Short enough that a message too large to be sent unasked never waits long for an answer, long enough to cost nothing
# (docs/performance/ranks.md).
SLICE_SECONDS = 75e-6


@dataclass(frozen=True)
class Streaming:
    """How a nest runs out of core: ``arrays`` are read and written slab by slab, in every one of ``passes`` passes, each of
    ``pass_sweeps`` of the ``sweeps`` sweeps.

    ``opening_sweeps`` is 1 where a sweep that computes nothing comes before the first: its messages bring ranks what their
    neighbours' elements are at the beginning, which lie apart on the disk. ``ring`` is 3 where a slab is read and one written
    while others are computed on, 1 where nothing happens at the same time. ``memory`` is what a rank needs at most, ``limit``
    what all of a node may take (None: no limit), both in bytes; ``seconds`` are predicted, from the exact timeline of
    ``pipeline`` where that is not too long to be worked out (None).
    """

    arrays: tuple[str, ...]
    sweeps: int
    pass_sweeps: int
    passes: int
    ring: int
    memory: int
    limit: int | None
    seconds: float
    opening_sweeps: int = 0
    pipeline: DiskPipeline | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        shown = {name: value for name, value in vars(self).items() if name != "pipeline"}
        return {**shown, "arrays": list(self.arrays)}

    def __str__(self) -> str:
        sweeps = f"{self.pass_sweeps} sweeps a pass, " if self.pass_sweeps > 1 else ""
        passes = f"{self.passes} passes" if self.passes > 1 else "one pass"
        limit = "" if self.limit is None else f"; at most {size(self.limit)} for a node"
        ring = "" if self.ring == 3 else f", ring {self.ring}"
        return f"{', '.join(self.arrays)}: {sweeps}{passes}{ring}, {size(self.memory)} a rank in memory{limit}"


@dataclass(frozen=True)
class Plan:
    """The decisions for one nest on one number of ranks.

    ``mapping`` is the space loop pipelined inside each rank, as a position among ``space_loops``, and ``tile`` its tile
    height in iterations; ``steps`` are then those of one sweep. Where time is the mapping dimension (P4) ``mapping`` is
    None, ``tile`` a number of sweeps, and ``steps`` the tiles of the whole run. ``partition`` holds the blocks the ranks
    own; ``inner`` is the order in which a tile's points are computed; ``reasons`` says, a line each, why, and ``notes``
    what in the nest's text costs much time. ``joined`` sweeps are done at once, step by step. ``idle`` ranks more than these have
    nothing to do. ``buffers`` messages of a channel may be in flight at once, and an engine that polls does so every
    ``slice_seconds``. ``fusion`` says how one rank does several sweeps in a pass, in place of its tiles; None where it does not.
    ``prediction``, and the ``pipeline`` whose exact timeline it comes from, are None where nothing is known of the machine.
    ``streaming`` is None where all is in memory. ``tile_seconds`` were measured of the tile for a point, and ``limit`` is what
    that takes at least; None where it is not known.

    Where the nest is skewed, ``extents``, ``mapping``, ``tile`` and ``partition`` are in skewed coordinates; ``dependences``
    are as in the user's loops.
    """

    nest: str
    engine: Engine
    sweep_loops: tuple[str, ...]
    space_loops: tuple[str, ...]
    extents: tuple[int, ...]
    mapping: int | None
    tile: int
    partition: Partition
    dependences: tuple[Dependence, ...]
    steps: int
    message_bytes: int
    inner: InnerChoice
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    skew: Skew | None = None
    joined: int = 1
    fusion: Fusion | None = field(default=None, repr=False, compare=False)
    idle: int = 0
    buffers: int = 2
    slice_seconds: float = SLICE_SECONDS
    streaming: Streaming | None = None
    prediction: Prediction | None = None
    tile_seconds: float | None = None
    limit: Limit | None = None
    pipeline: Pipeline | None = field(default=None, repr=False, compare=False)

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

    def faces(self, bound: BoundNest) -> Faces:
        """What ranks tell each other; bound: the nest in the plan's coordinates."""
        return Faces(
            bound, self.partition, self.mapping, self.tile, self.buffers, min(self.joined, self.inner.form.sweeps)
        )

    @property
    def predicted_seconds(self) -> float | None:
        """Of a run; None where nothing is known of the machine."""
        if self.streaming is not None:
            return self.streaming.seconds
        return None if self.prediction is None else self.prediction.seconds

    @property
    def mapping_loop(self) -> str:
        """The name of the pipelined loop: of several sweep loops, the innermost."""
        return self.sweep_loops[-1] if self.mapping is None else self.space_loops[self.mapping]

    def to_json(self) -> dict[str, Any]:
        return {
            "nest": self.nest,
            "ranks": self.ranks,
            "idle": self.idle,
            "dependences": [list(v) for v in distance_vectors(self.dependences)],
            "skew": None if self.skew is None else [list(row) for row in self.skew.rows],
            "engine": self.engine,
            "sweeps": list(self.sweep_loops),
            "mapping": self.mapping_loop,
            "tile": self.tile,
            "grid": list(self.grid),
            "steps": self.steps,
            "joined": self.joined,
            "inner": self.inner.to_json(self.space_loops),
            "limit": None if self.limit is None else self.limit.to_json(),
            "message_bytes": self.message_bytes,
            "buffers": self.buffers,
            "slice_seconds": self.slice_seconds,
            "streaming": None if self.streaming is None else self.streaming.to_json(),
            "predicted": None if self.prediction is None else self.prediction.to_json(),
            "reasons": list(self.reasons),
            "notes": list(self.notes),
        }

    @property
    def is_sequential(self) -> bool:
        """Whether a nest's loops are done in their own order on one rank: it is a sequential region."""
        return self.space_loops == (WHOLE,)

    def __str__(self) -> str:
        if self.is_sequential:
            lines = [f"{self.nest}: loops in their own order on one rank"]
            return "\n".join(
                lines + [f"  because      {r}" for r in self.reasons] + [f"  note         {n}" for n in self.notes]
            )
        names = [self._coordinate(k) for k in range(len(self.space_loops))]
        shape = " × ".join(f"{n} {e}" for n, e in zip(names, self.extents, strict=True))
        vectors = " ".join(str(list(v)) for v in distance_vectors(self.dependences)) or "none"
        lines = [f"{self.nest}: {shape} points a sweep on {self._ranks_text()}"]
        lines.append(f"  dependences  {vectors}")
        lines += [f"  skewed       {text}" for text in self._skew_texts()]
        if self.sweep_loops:
            exchanged = "; old values exchanged between them" if self._exchanges_old_values() else ""
            lines.append(f"  sweeps       {', '.join(self.sweep_loops)}, in order{exchanged}{self._joined_text()}")
        lines.append(f"  pipelined    {self.mapping_loop}, {self._tiles_text()}")
        lines.append(f"  inner form   {self.inner.describe(self.space_loops)}")
        if self.limit is not None:
            lines.append(f"  limited by   {self.limit}")
        lines.append(f"  grid         {self._grid_text()}")
        if self.message_bytes:
            lines.append(f"  messages     about {self.message_bytes} bytes a step from one rank to the next")
        lines.append(f"  engine       {self._engine_text()}")
        if self.streaming is not None:
            lines.append(f"  out of core  {self.streaming}")
            lines.append(f"  predicted    {duration(self.streaming.seconds)}")
        if self.prediction is not None:
            lines.append(f"  predicted    {self.prediction}")
        lines += [f"  because      {reason}" for reason in self.reasons]
        lines += [f"  note         {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<plan of {self.nest}: {'; '.join(self._decisions())}>"

    def _repr_html_(self) -> str:
        """For notebooks: the lines of ``str``, as a table."""
        title, *lines = str(self).splitlines()
        return table(title, [(line[:_VALUES_AT].strip(), line[_VALUES_AT:]) for line in lines])

    def show(self, path: str | Path | None = None) -> Path | None:
        """A picture of cut, grid and schedule: in a notebook's cell, or as a file, ``NEST-plan.svg`` where no path is given.

        Returns the file; None where there is none, as on ranks of an MPI run that are not the first. Raises LapwingError where it
        cannot be written.
        """
        from lapwing.display import show_picture

        return show_picture(self.picture(), f"plan of {self.nest}", path, f"{self.nest}-plan.svg")

    def picture(self) -> str:
        """What ``show`` shows: a text in SVG."""
        from lapwing.tiling.picture import Cut, plan_picture

        drawn = Cut(
            str(self), self.sweep_loops, self.space_loops, self.mapping, self.tile, self.steps, self.partition,
            tuple(self._computed_vectors()), self.pipeline,
        )  # fmt: skip
        return plan_picture(drawn)

    def _computed_vectors(self) -> list[tuple[int, ...]]:
        """The dependences in the coordinates that are computed in, skewed where loops are."""
        return [d.vector if self.skew is None else self.skew.apply(d.vector) for d in self.dependences]

    def _decisions(self) -> list[str]:
        """What was decided, in a few words each."""
        if self.is_sequential:
            return ["loops in their own order on one rank"]
        ranks = "one rank" if self.ranks == 1 else f"{self.ranks} ranks, grid {'x'.join(map(str, self.grid))}"
        seconds = self.predicted_seconds
        predicted = [] if seconds is None else [f"predicted {duration(seconds)}"]
        return [ranks, self.engine, f"{self.mapping_loop} pipelined, {self._tiles_text()}", *predicted]

    def _ranks_text(self) -> str:
        text = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        if self.idle:
            text += f": {self.ranks} of {self.ranks + self.idle} ranks work, the others idle for want of rows"
        return text

    def in_short(self) -> str:
        """One line: for a plan that stands beside another of the same nest."""
        if self.is_sequential:
            return "  loops in their own order on one rank"
        seconds = self.predicted_seconds
        predicted = "" if seconds is None else f"; predicted {duration(seconds)}"
        grid = f", grid {self._grid_text()}" if self.ranks > 1 else ""
        return f"  {self.engine:<12} {self.mapping_loop} pipelined, {self._tiles_text()}{grid}{predicted}"

    def _coordinate(self, space_loop: int) -> str:
        """What is counted along a loop: with skewing, a sum of loops."""
        names, k = (*self.sweep_loops, *self.space_loops), len(self.sweep_loops) + space_loop
        others = () if self.skew is None else self.skew.factors(k)
        return names[k] + "".join(f" + {'' if factor == 1 else f'{factor}·'}{names[m]}" for m, factor in others)

    def _skew_texts(self) -> list[str]:
        """Per skewed loop, what it becomes and a dependence that asks for it."""
        if self.skew is None:
            return []
        depth, texts = len(self.sweep_loops), []
        for k, name in enumerate(self.space_loops):
            backwards = (d for d in self.dependences if d.vector[depth + k] < 0 and not any(d.vector[:depth]))
            if self._coordinate(k) != name and (against := next(backwards, None)) is not None:
                why = f"the {against.kind} dependence {list(against.vector)} points backwards along {name}"
                texts.append(f"{self._coordinate(k)}: {why}")
        return texts

    def _joined_text(self) -> str:
        if self.joined == 1:
            return ""
        return f"; {self.joined} at once" + (", on what is copied once" if self.inner.form.transposed else "")

    def _exchanges_old_values(self) -> bool:
        """Whether a rank needs values that a later one wrote in the sweep before."""
        depth, grid = len(self.sweep_loops), self.partition.grid
        inside = [vector[depth:] for vector in self._computed_vectors()]
        return any(c < 0 and parts > 1 for vector in inside for c, parts in zip(vector, grid, strict=True))

    def _tiles_text(self) -> str:
        steps = f"{self.steps} step{'s' if self.steps != 1 else ''}"
        if self.mapping is None:
            return f"tiles of {self.tile} sweep{'s' if self.tile > 1 else ''}, {steps}"
        return f"tiles of {self.tile}, {steps} a sweep"

    def _engine_text(self) -> str:
        if self.ranks == 1:
            return self.engine
        polls = f", polling every {duration(self.slice_seconds)}" if self.engine == "overlap" else ""
        buffers = "" if self.engine == "blocking" else f", {self.buffers} buffers a channel"
        return f"{self.engine}{polls}{buffers}"

    def _grid_text(self) -> str:
        parts = [
            f"{loop} in {parts}" for loop, parts in zip(self.space_loops, self.partition.grid, strict=True) if parts > 1
        ]
        return ("x".join(map(str, self.grid)) + f" ({', '.join(parts)})") if parts else "one rank"
