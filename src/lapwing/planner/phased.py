"""From the phases of a program and a number of ranks to one plan for all of them, by rules of thumb. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.dependences import Vector, inside_sweep
from lapwing.planner.choose import MOST_RANKS, POINTS_A_TILE, default_tile
from lapwing.planner.cuts import fits, is_count, pipelined
from lapwing.planner.inner import choice_by_rule
from lapwing.planner.plan import ENGINES, SLICE_SECONDS
from lapwing.schedule.pipeline import Engine
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.partition import balanced_cuts, factorisations, in_direction, weighted_cuts
from lapwing.tiling.phased.distribution import Dimension, Distribution, dimensions, reach
from lapwing.tiling.phased.faces import PhasedFaces
from lapwing.tiling.phased.fusion import Fusion, fusion_of
from lapwing.tiling.phased.steps import PhaseTiling, Split

# Over windows a rank tells others of what it has sent a step late: an interior has several steps, so that they hear of a
# boundary in time.
INTERIOR_STEPS = 4


@dataclass(frozen=True)
class PhasedPlan:
    """The decisions for a program of several phases: one distribution, and tiles and their inner form for every phase.

    ``idle`` ranks more than those of the distribution have nothing to do. ``buffers`` and ``slice_seconds`` are as in Plan.
    fusion: of a rank that does all by itself, in place of its tiles.
    """

    name: str
    engine: Engine
    distribution: Distribution
    tilings: tuple[PhaseTiling, ...]
    forms: tuple[InnerForm, ...]
    reasons: tuple[str, ...] = ()
    idle: int = 0
    buffers: int = 2
    slice_seconds: float = SLICE_SECONDS
    fusion: Fusion | None = None

    @property
    def ranks(self) -> int:
        return self.distribution.ranks

    @property
    def grid(self) -> tuple[int, ...]:
        return self.distribution.grid

    @property
    def tile(self) -> int:
        """The height of the highest tiles."""
        return max(tiling.tile for tiling in self.tilings)

    def __repr__(self) -> str:
        return f"<plan of {self.name}: {len(self.tilings)} phases a sweep on {self.ranks} ranks; {self.engine}>"

    def __str__(self) -> str:
        phases = self.distribution.phased.phases
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        lines = [f"{self.name}: {len(phases)} phases a sweep through one pipeline, on {ranks}"]
        lines.append(f"  grid         {'x'.join(map(str, self.grid)) or 'one rank'}")
        lines.append(f"  engine       {self.engine}")
        return "\n".join([*lines, *(f"  because      {reason}" for reason in self.reasons)])

    @cached_property
    def faces(self) -> PhasedFaces:
        return PhasedFaces(self.distribution.phased, self.distribution, self.tilings, self.buffers)


def dimensions_to_cut(phased: PhasedNest) -> tuple[Dimension, ...]:
    """The dimensions that may be cut among ranks: no dependence inside a phase points backwards along them, and every element is
    written by one rank."""
    vectors = _vectors(phased)
    return tuple(
        dimension
        for dimension in dimensions(phased)
        if all(v[loop] >= 0 for phase, (loop, _) in dimension.loops.items() for v in vectors[phase])
        and dimension.homes is not None
    )


def make_phased_plan(
    phased: PhasedNest,
    ranks: int,
    engine: Engine | None = None,
    grid: Sequence[int] | None = None,
    tile: int | None = None,
) -> PhasedPlan:
    """Choose grid and tiles for a program of several phases.

    grid: parts of every dimension that may be cut (``dimensions_to_cut``). tile: the height of the tiles of every phase. Of more
    ranks than there are rows some idle. Raises RefusedError for an engine, grid or tile that does not fit.
    """
    engine = "overlap" if engine is None else engine
    if engine not in ENGINES:
        raise RefusedError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}.")
    if tile is not None and not is_count(tile):
        raise RefusedError(f"tile {tile!r}: expected a height, a whole number of at least 1.")
    if not is_count(ranks) or ranks > MOST_RANKS:
        raise RefusedError(f"{ranks!r} ranks: expected a whole number from 1 to {MOST_RANKS:,}.")
    cut, reasons = dimensions_to_cut(phased), []
    chosen = _best_grid(phased, cut, int(ranks)) if grid is None else _wished_grid(cut, int(ranks), grid)
    if math.prod(chosen) < ranks and not cut:
        reasons.append("one rank does all: no loop may be cut in every phase")
    cuts = tuple(_cuts(phased, dimension, parts) for dimension, parts in zip(cut, chosen, strict=True))
    distribution = Distribution(phased, cut, cuts)
    tilings = _tilings(distribution, tile)
    forms = tuple(
        choice_by_rule(bound, found).form for bound, found in zip(phased.phases, phased.dependences, strict=True)
    )
    fusion = fusion_of(phased, forms) if distribution.ranks == 1 and tile is None else None
    if fusion is not None:
        reasons.append(str(fusion))
    for bound, tiling in zip(phased.phases, tilings, strict=True) if fusion is None else ():
        loop = bound.nest.space_loops[tiling.mapping].name
        how = f"{tiling.split}, the interior in" if tiling.split else f"{loop} pipelined,"
        reasons.append(f"{bound.nest.name}: {how} tiles of {tiling.tile}")
    return PhasedPlan(
        name=phased.name,
        engine=engine,
        distribution=distribution,
        tilings=tilings,
        forms=forms,
        reasons=tuple(reasons),
        idle=int(ranks) - distribution.ranks,
        fusion=fusion,
    )


def _vectors(phased: PhasedNest) -> list[list[Vector]]:
    """Per phase, the dependences inside a sweep, along space loops."""
    depth = phased.sweep_depth
    return [[d.vector[depth:] for d in inside_sweep(found, depth)] for found in phased.dependences]


def _wished_grid(cut: Sequence[Dimension], ranks: int, wished: Sequence[int]) -> tuple[int, ...]:
    text = "x".join(map(str, wished))
    if len(wished) != len(cut) or not all(map(is_count, wished)):
        raise RefusedError(
            f"grid {text}: expected a whole number of parts for each of the {len(cut)} loops that may be cut."
        )
    if math.prod(wished) != ranks:
        raise RefusedError(
            f"grid {text} is for {math.prod(wished)} ranks, but there are {ranks}. Give one that fits, or none."
        )
    grid = tuple(map(int, wished))
    if not fits(grid, tuple(d.extent for d in cut)):
        extents = "x".join(str(d.extent) for d in cut)
        raise RefusedError(f"grid {text} has more parts than there are rows, {extents}. Give smaller numbers, or none.")
    return grid


def _best_grid(phased: PhasedNest, cut: Sequence[Dimension], ranks: int) -> tuple[int, ...]:
    """The grid that sends least of those in which every phase that has to be pipelined has a loop left for it."""
    extents = tuple(d.extent for d in cut)
    number = min(ranks, math.prod(extents)) if cut else 1
    while not (found := [g for g in factorisations(number, len(cut)) if fits(g, extents)]):
        number -= 1
    return min(found, key=lambda g: (_unpipelined(phased, cut, g), _communication(phased, cut, g), sum(g), g[::-1]))


def _unpipelined(phased: PhasedNest, cut: Sequence[Dimension], grid: Sequence[int]) -> int:
    """In how many phases dependences cross cuts and no loop that is whole can be pipelined."""
    count = 0
    for phase, vectors in enumerate(_vectors(phased)):
        loops = {d.loops[phase][0] for d, parts in zip(cut, grid, strict=True) if parts > 1 and phase in d.loops}
        whole = set(range(len(phased.phases[phase].nest.space_loops))) - loops
        crossing = any(v[k] for v in vectors for k in loops)
        count += crossing and not any(all(v[k] >= 0 for v in vectors) for k in whole)
    return count


def _communication(phased: PhasedNest, cut: Sequence[Dimension], grid: Sequence[int]) -> float:
    """Elements sent per point computed."""
    total = 0.0
    for dimension, parts in zip(cut, grid, strict=True):
        for phase in range(len(phased.phases)) if parts > 1 else ():
            apart = reach(phased, dimension, phase, phased.written)
            total += parts if apart is None else (apart.back + apart.forth) * parts / dimension.extent
    return total


def _cuts(phased: PhasedNest, dimension: Dimension, parts: int) -> tuple[int, ...]:
    """Coordinates between which ranks have about as many iterations of all phases together."""
    low, high = dimension.span
    if parts == 1 or all(phased.phases[phase].domain.is_box for phase in dimension.loops):
        return balanced_cuts(low, high, parts)
    weights: npt.NDArray[np.int64] = np.zeros(high - low, np.int64)
    for phase, (loop, shift) in dimension.loops.items():
        bound = phased.phases[phase]
        k = bound.nest.sweep_depth + loop
        counts = bound.domain.counts(k)
        if counts is None:
            return balanced_cuts(low, high, parts)
        step = bound.nest.loops[k].step
        first, last = in_direction(bound.domain.box[k], step)
        weights[first + shift - low : last + shift - low] += counts[::step]
    return weighted_cuts(low, weights, parts)


def _tilings(distribution: Distribution, tile: int | None) -> tuple[PhaseTiling, ...]:
    phased, vectors = distribution.phased, _vectors(distribution.phased)
    found: list[PhaseTiling] = []
    splittable = [_is_splittable(vectors[p], distribution.cut_loops[p]) for p in range(len(phased.phases))]
    for phase in range(len(phased.phases)):
        block = _largest_block(distribution, phase)
        cut = distribution.cut_loops[phase]
        pipelines = [k for k in range(len(block)) if all(v[k] >= 0 for v in vectors[phase])]
        if splittable[phase]:
            mapping, split = pipelines[0], _split(phased, splittable, phase)
            height = min(
                POINTS_A_TILE * block[mapping] // max(1, math.prod(block)), -(-block[mapping] // INTERIOR_STEPS)
            )
        else:
            split = None
            mapping = pipelined([k for k in pipelines if k not in cut] or pipelines, block)
            height = default_tile(block, mapping, [p if k in cut else 1 for k, p in _parts(distribution, phase)])
        found.append(PhaseTiling(mapping, max(1, min(tile or height, block[mapping])), split))
    return tuple(found)


def _parts(distribution: Distribution, phase: int) -> list[tuple[int, int]]:
    """Every space loop of a phase with the number of its parts."""
    loops = range(len(distribution.phased.phases[phase].nest.space_loops))
    numbers = [distribution.dimension_of(phase, k) for k in loops]
    return [(k, 1 if n is None else distribution.grid[n]) for k, n in zip(loops, numbers, strict=True)]


def _is_splittable(vectors: Sequence[Vector], cut: Sequence[int]) -> bool:
    """Whether boundary and interior of a phase may be done in any order: no dependence crosses a cut."""
    return bool(cut) and not any(v[k] for v in vectors for k in cut)


def _split(phased: PhasedNest, splittable: Sequence[bool], phase: int) -> Split:
    """With the interior first where the neighbours' faces are the last that the phase before has made."""
    before = (phase - 1) % len(phased.phases)
    names = set(phased.phases[before].nest.written)
    reads = any(access.array in names for access in phased.phases[phase].accesses)
    return "interior first" if reads and before != phase and not splittable[before] else "boundary first"


def _largest_block(distribution: Distribution, phase: int) -> tuple[int, ...]:
    """The longest extent of any rank's block along every space loop of a phase."""
    blocks = [b for rank in range(distribution.ranks) if (b := distribution.block(phase, rank)) is not None]
    return tuple(max(high - low for low, high in axis) for axis in zip(*blocks, strict=True))
