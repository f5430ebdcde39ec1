"""From a bound nest and a number of ranks to a Plan. Pure: no clock, no MPI, no files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

from lapwing.errors import RefusedError
from lapwing.loopnest.binding import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.along_time import AlongTime, stages
from lapwing.planner.plan import ENGINES, Plan
from lapwing.tiling.faces import Faces
from lapwing.tiling.legality import check_rectangular, inside_sweep
from lapwing.tiling.partition import Partition, balanced_cuts, factorisations, in_direction

# Without a model of the machine: tiles of about a fifth of a millisecond, at a nanosecond a point, hide the cost of a
# message and keep the pipeline's fill short.
POINTS_A_TILE = 200_000
FILL_SHARE = 4  # steps a sweep for every rank the first tile has to pass

# Cutting the innermost loop cuts the runs of memory that tiles work along, so an outer loop is pipelined unless it is
# this many times shorter than the longest.
MUCH_SHORTER = 4
# Tiles work on 16 rows together, which start one step apart: a tile along the innermost loop is long enough for all of
# them to be at work most of the time, one along the loop around it holds whole groups of rows.
SHORTEST_RUN = 256
ROWS_TOGETHER = 16


@dataclass(frozen=True)
class Wishes:
    """What the user asked for; None leaves the choice to the planner."""

    engine: str = "overlap"
    tile: int | None = None
    grid: tuple[int, ...] | None = None


def make_plan(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    ranks: int,
    wishes: Wishes | None = None,
    partition: Partition | None = None,
) -> Plan:
    """Choose mapping loop, grid and tile for a nest.

    partition: blocks that are given (arrays that are distributed already) rather than chosen.
    Raises RefusedError for dependences no supported tiling respects, and for a grid, tile, engine or number of ranks that does
    not fit.
    """
    wishes = wishes or Wishes()
    nest = bound.nest
    check_rectangular(nest, dependences)
    _check_several_writes(bound)
    if wishes.engine not in ENGINES:
        raise RefusedError(f"engine {wishes.engine!r}: expected one of {', '.join(ENGINES)}.")
    if wishes.tile is not None and not _is_count(wishes.tile):
        raise RefusedError(f"tile {wishes.tile!r}: expected a height, a whole number of at least 1.")
    if not _is_count(ranks):
        raise RefusedError(f"{ranks!r} ranks: expected a whole number of at least 1.")
    depth = nest.sweep_depth
    extents = tuple(high - low for low, high in bound.domain.box[depth:])
    if bound.domain.is_empty:
        return _idle_plan(bound, dependences, ranks, wishes, extents)
    reasons: list[str] = []
    time = AlongTime(bound, tuple(dependences))
    if partition is None:
        mapping, grid = _grid(time, ranks, wishes.grid, extents, reasons)
        partition = _partition(bound, grid)
    else:
        mapping = _mapping_on(time, partition.grid, extents)
        reasons.append("the arrays are distributed like this already")
    block = tuple(-(-extent // parts) for extent, parts in zip(extents, partition.grid, strict=True))
    tile = wishes.tile
    if tile is None:
        tile = _default_tile(time, block, mapping, partition.grid)
        if ranks > 1:
            points = tile * (math.prod(block) if mapping is None else math.prod(block) // block[mapping])
            reasons.append(f"tiles of {tile}: about {points:,} points a step")
    length = time.sweeps if mapping is None else block[mapping]
    tile = max(1, min(int(tile), length))
    faces = Faces(bound, partition, mapping, tile)
    # The ranks at both ends: in a descending loop, or with old values alone, the first one sends nothing.
    ends = [c for rank in (0, ranks - 1) for c in (*faces.outgoing(rank), *faces.incoming(rank))] if ranks > 1 else []
    largest = faces.batch * max((m.bytes for c in ends for m in c.messages), default=0)
    return Plan(
        nest=nest.name,
        engine=wishes.engine,
        sweep_loops=tuple(loop.name for loop in nest.sweep_loops),
        space_loops=tuple(loop.name for loop in nest.space_loops),
        extents=extents,
        mapping=mapping,
        tile=tile,
        partition=partition,
        dependences=tuple(dependences),
        steps=-(-length // tile),
        message_bytes=largest,
        reasons=tuple(reasons),
    )


def _idle_plan(
    bound: BoundNest, dependences: Sequence[Dependence], ranks: int, wishes: Wishes, extents: tuple[int, ...]
) -> Plan:
    """No iteration, as in a call with no sweeps: any number of ranks has nothing to do."""
    loops = bound.nest.space_loops
    cuts = ((0,) * (ranks + 1), *((0, 0),) * (len(loops) - 1))
    return Plan(
        nest=bound.nest.name,
        engine=wishes.engine,
        sweep_loops=tuple(loop.name for loop in bound.nest.sweep_loops),
        space_loops=tuple(loop.name for loop in loops),
        extents=extents,
        mapping=len(loops) - 1,
        tile=1,
        partition=Partition(cuts, tuple(loop.step for loop in loops)),
        dependences=tuple(dependences),
        steps=0,
        message_bytes=0,
        reasons=("a loop has no iterations",),
    )


def _check_several_writes(bound: BoundNest) -> None:
    """Several write offsets to one array are exact only where every block writes a full box."""
    if bound.domain.is_box:
        return
    offsets: dict[str, set[tuple[object, ...]]] = {}
    for store in bound.nest.stores:
        offsets.setdefault(store.target.array, set()).add(store.target.affine)
        if len(offsets[store.target.array]) > 1:
            raise RefusedError(
                f"{bound.nest.where(store.line)}: {store.target.text}: {store.target.array} is written at several offsets "
                "in loops whose bounds depend on outer indices; supported is one or the other. "
                "Write the array at one offset, or make the bounds constant."
            )


def grids(bound: BoundNest, dependences: Sequence[Dependence], ranks: int) -> list[tuple[int, ...]]:
    """All process grids for a number of ranks, as ``--grid all`` tries them (P4, section V).

    They cut all space loops where time is pipelined, and all but the pipelined one elsewhere, as far as ranks fit there.
    Raises RefusedError as make_plan does.
    """
    plan = make_plan(bound, dependences, ranks)
    if bound.domain.is_empty:
        return [plan.grid]
    over_all = [g for g in factorisations(ranks, len(plan.extents)) if _fits(g, plan.extents)]
    if plan.mapping is None:
        time = AlongTime(bound, plan.dependences)
        return [g for g in over_all if time.is_legal(g)]
    if len(plan.grid) == len(plan.extents):
        return over_all
    mapping = _pipelined(range(len(plan.extents)), plan.extents)
    others = factorisations(ranks, len(plan.extents) - 1)
    return [g for g in others if _fits((*g[:mapping], 1, *g[mapping:]), plan.extents)] or over_all


def _grid(
    time: AlongTime, ranks: int, wished: tuple[int, ...] | None, extents: tuple[int, ...], reasons: list[str]
) -> tuple[int | None, tuple[int, ...]]:
    """The mapping loop, None for time, and the number of parts along every space loop."""
    bound = time.bound
    if wished is not None:
        mapping, grid = _wished_grid(time, ranks, wished, extents)
        if mapping is not None and len(wished) == len(extents):
            reasons += time.reasons_against(grid)
        return mapping, grid
    weights = _communication_weights(bound, time.dependences)
    over_all = [g for g in factorisations(ranks, len(extents)) if _fits(g, extents)]
    # Of equal grids the one that leaves inner loops long: faces across outer loops are whole runs of memory.
    over_all.sort(key=lambda g: (_communication(g, extents, weights), sum(g), g[::-1]))
    with_time = next((g for g in over_all if time.is_legal(g)), None)
    if with_time is not None and time.pays(with_time):
        name = bound.nest.sweep_loops[-1].name
        reasons.append(f"{name} is pipelined: no dependence points backwards, and there are {time.sweeps:,} sweeps")
        return None, with_time
    for mapping, candidates in _candidates(ranks, extents):
        fitting = [g for g in candidates if _fits(g, extents)]
        if fitting:
            grid = min(fitting, key=lambda g: (_communication(g, extents, weights), sum(g)))
            if grid[mapping] > 1 and time.is_legal(grid):
                name = bound.nest.sweep_loops[-1].name
                reasons.append(f"{name} is pipelined: the space loops are all cut, for {ranks} ranks to fit")
                return None, grid
            if ranks > 1:
                reasons.append(_mapping_reason(bound, mapping, grid, extents))
                reasons += time.reasons_against(with_time or over_all[0])
            return mapping, grid
    loops = ", ".join(f"{loop.name} {e}" for loop, e in zip(bound.nest.space_loops, extents, strict=True))
    raise RefusedError(
        f"{bound.nest.name}: {ranks} ranks do not fit the iteration space ({loops}): every rank needs at least one row. "
        f"Use fewer ranks: {_most_ranks(ranks, extents)} fit."
    )


def _mapping_reason(bound: BoundNest, mapping: int, grid: tuple[int, ...], extents: tuple[int, ...]) -> str:
    name, ranks = bound.nest.space_loops[mapping].name, math.prod(grid)
    if grid[mapping] > 1:
        return f"{name} is pipelined and cut as well: the other loops have no room for {ranks} ranks"
    if mapping == _pipelined(range(len(extents)), extents):
        return f"{name} is pipelined: among the longest loops, with room for {ranks} ranks on the others"
    return f"{name} is pipelined: with a longer one pipelined, the others would have no room for {ranks} ranks"


def _candidates(ranks: int, extents: tuple[int, ...]) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
    """Mapping loops, best first, with the grids over the others; at last grids that cut the mapping loop as well."""
    best = _pipelined(range(len(extents)), extents)
    order = sorted(range(len(extents)), key=lambda k: (k != best, -extents[k]))
    for mapping in order:
        others = [(*g[:mapping], 1, *g[mapping:]) for g in factorisations(ranks, len(extents) - 1)]
        yield mapping, others
    yield best, list(factorisations(ranks, len(extents)))


def _mapping_on(time: AlongTime, grid: tuple[int, ...], extents: tuple[int, ...]) -> int | None:
    """The loop to pipeline on a grid over all space loops that is given."""
    whole = [k for k, parts in enumerate(grid) if parts == 1]
    if time.is_legal(grid) and (time.pays(grid) or not whole):
        return None
    return _pipelined(whole or range(len(extents)), extents)


def _wished_grid(
    time: AlongTime, ranks: int, wished: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[int | None, tuple[int, ...]]:
    """A grid with an entry for every space loop asks for time to be pipelined, wherever that is legal."""
    if not isinstance(wished, tuple | list) or not all(map(_is_count, wished)):
        raise RefusedError(f"grid {wished!r}: expected whole numbers of at least 1, such as (2, 1).")
    wished = tuple(map(int, wished))
    names = [loop.name for loop in time.bound.nest.space_loops]
    text = "x".join(map(str, wished))
    mapping = _pipelined(range(len(extents)), extents)
    if len(wished) == len(extents):
        grid = wished
        mapping = _pipelined([k for k, p in enumerate(grid) if p == 1] or range(len(extents)), extents)
    elif len(wished) == len(extents) - 1:
        grid = (*wished[:mapping], 1, *wished[mapping:])
    else:
        others = ", ".join(n for k, n in enumerate(names) if k != mapping)
        expected = f"{len(names) - 1} ({others}; {names[mapping]} is pipelined) or " if len(names) > 1 else ""
        raise RefusedError(
            f"grid {text} has {len(wished)} entries; expected {expected}{len(names)} ({', '.join(names)})."
        )
    if math.prod(wished) != ranks:
        raise RefusedError(
            f"grid {text} is for {math.prod(wished)} ranks, but there are {ranks}. "
            f"Give one whose entries multiply to {ranks}, or none."
        )
    for name, parts, extent in zip(names, grid, extents, strict=True):
        if parts > max(extent, 1):
            raise RefusedError(
                f"grid {text} cuts loop {name} in {parts}, but it has {extent} rows; every rank needs at least one."
            )
    if len(wished) == len(extents) and time.is_legal(grid):
        return None, grid
    return mapping, grid


def _partition(bound: BoundNest, grid: tuple[int, ...]) -> Partition:
    loops = bound.nest.space_loops
    cuts = []
    for loop, coordinates, parts in zip(loops, bound.domain.box[bound.nest.sweep_depth :], grid, strict=True):
        first, last = in_direction(coordinates, loop.step)
        cuts.append(balanced_cuts(first, last, parts))
    return Partition(tuple(cuts), tuple(loop.step for loop in loops))


def _communication_weights(bound: BoundNest, dependences: Sequence[Dependence]) -> list[int]:
    """Per space loop, how many rows cross a cut: the sum of the dependences' components (P0 eq. 1)."""
    depth = bound.nest.sweep_depth
    inside = inside_sweep(dependences, depth)
    return [sum(d.vector[depth + k] for d in inside) for k in range(len(bound.nest.space_loops))]


def _communication(grid: tuple[int, ...], extents: tuple[int, ...], weights: list[int]) -> float:
    """Elements sent per point computed."""
    return sum(w * p / max(e, 1) for w, p, e in zip(weights, grid, extents, strict=True) if p > 1)


def _pipelined(candidates: Sequence[int] | range, extents: tuple[int, ...]) -> int:
    """The loop to pipeline: the longest, or the outermost that is not much shorter."""
    longest = max(extents[k] for k in candidates)
    return next(k for k in candidates if extents[k] * MUCH_SHORTER >= longest)


def _most_ranks(ranks: int, extents: tuple[int, ...]) -> int:
    """The greatest number below ``ranks`` of which some grid fits."""
    number = min(ranks - 1, math.prod(max(e, 1) for e in extents))
    while not any(_fits(g, extents) for g in factorisations(number, len(extents))):
        number -= 1
    return number


def _fits(grid: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    return all(parts <= max(extent, 1) for parts, extent in zip(grid, extents, strict=True))


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1


def _default_tile(time: AlongTime, block: tuple[int, ...], mapping: int | None, grid: tuple[int, ...]) -> int:
    if mapping is None:
        return time.tile(block, grid, POINTS_A_TILE)
    extent = block[mapping]
    if math.prod(grid) == 1:
        return extent
    across = math.prod(e for k, e in enumerate(block) if k != mapping)
    wanted = max(1, POINTS_A_TILE // max(across, 1))
    innermost = mapping == len(block) - 1
    if innermost:
        wanted = max(wanted, SHORTEST_RUN)
    steps = max(-(-extent // wanted), min(FILL_SHARE * stages(grid), extent))
    tile = -(-extent // steps)
    if mapping == len(block) - 2:
        tile = min(extent, -(-tile // ROWS_TOGETHER) * ROWS_TOGETHER)
    return tile
