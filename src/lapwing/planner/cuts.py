"""Which loop is pipelined and how the others are divided among ranks: all ways there are, and rules of thumb."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence, inside_sweep
from lapwing.planner.along_time import AlongTime
from lapwing.tiling.faces import reach_of
from lapwing.tiling.partition import Partition, even_cuts, factorisations

# Cutting the innermost loop cuts the runs of memory that tiles work along, so an outer loop is pipelined unless it is
# this many times shorter than the longest.
MUCH_SHORTER = 4


class Cut(NamedTuple):
    """``mapping``: the pipelined space loop, None for time; ``grid``: parts of every space loop."""

    mapping: int | None
    grid: tuple[int, ...]


def all_cuts(time: AlongTime, ranks: int, extents: tuple[int, ...]) -> list[Cut]:
    """Every legal way to divide the space loops among ranks, most_ranks of them at most; those that send least first."""
    weights = communication_weights(time.bound, time.dependences)
    over_all = [g for g in factorisations(ranks, len(extents)) if fits(g, extents)]
    over_all.sort(key=lambda g: (_communication(g, extents, weights), sum(g), g[::-1]))
    if ranks == 1:
        return [Cut(pipelined(range(len(extents)), extents), over_all[0])]
    cuts = [Cut(k, grid) for grid in over_all for k, parts in enumerate(grid) if parts == 1]
    cuts += [Cut(None, grid) for grid in over_all if time.is_legal(grid)]
    return cuts or [Cut(pipelined(range(len(extents)), extents), grid) for grid in over_all]


def grids(time: AlongTime, ranks: int, extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All process grids for a number of ranks, as ``--grid all`` tries them (P4, section V).

    They cut all space loops where time is pipelined, and all but the pipelined one elsewhere, as far as ranks fit there.
    """
    over_all = [g for g in factorisations(ranks, len(extents)) if fits(g, extents)]
    rule = rule_of_thumb(time, ranks, None, extents, [])
    if rule.mapping is None:
        return [g for g in over_all if time.is_legal(g)]
    if rule.grid[rule.mapping] > 1 or len(extents) == 1:
        return over_all
    mapping = pipelined(range(len(extents)), extents)
    others = factorisations(ranks, len(extents) - 1)
    return [g for g in others if fits((*g[:mapping], 1, *g[mapping:]), extents)] or over_all


def rule_of_thumb(
    time: AlongTime, ranks: int, wished: tuple[int, ...] | None, extents: tuple[int, ...], reasons: list[str]
) -> Cut:
    """The cut that was asked for, or the one that generally does well; what speaks for it is added to ``reasons``."""
    bound = time.bound
    if wished is not None:
        mapping, grid = _wished_grid(time, ranks, wished, extents)
        if mapping is not None and len(wished) == len(extents):
            reasons += time.reasons_against(grid)
        return Cut(mapping, grid)
    weights = communication_weights(bound, time.dependences)
    over_all = [g for g in factorisations(ranks, len(extents)) if fits(g, extents)]
    # Of equal grids the one that leaves inner loops long: faces across outer loops are whole runs of memory.
    over_all.sort(key=lambda g: (_communication(g, extents, weights), sum(g), g[::-1]))
    with_time = next((g for g in over_all if time.is_legal(g)), None)
    if with_time is not None and time.pays(with_time):
        name = bound.nest.sweep_loops[-1].name
        reasons.append(f"{name} is pipelined: no dependence points backwards, and there are {time.sweeps:,} sweeps")
        return Cut(None, with_time)
    for mapping, candidates in _candidates(ranks, extents):
        fitting = [g for g in candidates if fits(g, extents)]
        if fitting:
            grid = min(fitting, key=lambda g: (_communication(g, extents, weights), sum(g)))
            if grid[mapping] > 1 and time.is_legal(grid):
                name = bound.nest.sweep_loops[-1].name
                reasons.append(f"{name} is pipelined: the space loops are all cut, for {ranks} ranks to fit")
                return Cut(None, grid)
            if ranks > 1:
                reasons.append(_mapping_reason(bound, mapping, grid, extents))
                reasons += time.reasons_against(with_time or over_all[0])
            return Cut(mapping, grid)
    raise AssertionError(f"{ranks} ranks on {extents}: more than most_ranks")


def _mapping_reason(bound: BoundNest, mapping: int, grid: tuple[int, ...], extents: tuple[int, ...]) -> str:
    name, ranks = bound.nest.space_loops[mapping].name, math.prod(grid)
    if grid[mapping] > 1:
        return f"{name} is pipelined and cut as well: the other loops have no room for {ranks} ranks"
    if mapping == pipelined(range(len(extents)), extents):
        return f"{name} is pipelined: among the longest loops, with room for {ranks} ranks on the others"
    return f"{name} is pipelined: with a longer one pipelined, the others would have no room for {ranks} ranks"


def _candidates(ranks: int, extents: tuple[int, ...]) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
    """Mapping loops, best first, with the grids over the others; at last grids that cut the mapping loop as well."""
    best = pipelined(range(len(extents)), extents)
    order = sorted(range(len(extents)), key=lambda k: (k != best, -extents[k]))
    for mapping in order:
        others = [(*g[:mapping], 1, *g[mapping:]) for g in factorisations(ranks, len(extents) - 1)]
        yield mapping, others
    yield best, list(factorisations(ranks, len(extents)))


def mapping_on(time: AlongTime, grid: tuple[int, ...], extents: tuple[int, ...]) -> int | None:
    """The loop to pipeline on a grid over all space loops that is given."""
    whole = [k for k, parts in enumerate(grid) if parts == 1]
    if time.is_legal(grid) and (time.pays(grid) or not whole):
        return None
    return pipelined(whole or range(len(extents)), extents)


def _wished_grid(
    time: AlongTime, ranks: int, wished: tuple[int, ...], extents: tuple[int, ...]
) -> tuple[int | None, tuple[int, ...]]:
    """A grid with an entry for every space loop asks for time to be pipelined, wherever that is legal."""
    if not isinstance(wished, tuple | list) or not all(map(is_count, wished)):
        raise RefusedError(f"grid {wished!r}: expected whole numbers of at least 1, such as (2, 1).")
    wished = tuple(map(int, wished))
    names = [loop.name for loop in time.bound.nest.space_loops]
    text = "x".join(map(str, wished))
    mapping = pipelined(range(len(extents)), extents)
    if len(wished) == len(extents):
        grid = wished
        mapping = pipelined([k for k, p in enumerate(grid) if p == 1] or range(len(extents)), extents)
    elif len(wished) == len(extents) - 1:
        grid = (*wished[:mapping], 1, *wished[mapping:])
    else:
        others = ", ".join(n for k, n in enumerate(names) if k != mapping)
        expected = f"{len(names) - 1} ({others}; {names[mapping]} is pipelined) or " if len(names) > 1 else ""
        raise RefusedError(
            f"grid {text} has {len(wished)} entries; expected {expected}{len(names)} ({', '.join(names)})."
        )
    most = most_ranks(ranks, extents)
    if math.prod(wished) not in (ranks, most):
        fewer = f", or to {most}, which is as many as have rows here," if most < ranks else ""
        raise RefusedError(
            f"grid {text} is for {math.prod(wished)} ranks, but there are {ranks}. "
            f"Give one whose entries multiply to {ranks}{fewer} or none."
        )
    for name, parts, extent in zip(names, grid, extents, strict=True):
        if parts > max(extent, 1):
            raise RefusedError(
                f"grid {text} cuts loop {name} in {parts}, but it has {extent} rows; every rank needs at least one. "
                f"Give none: then {most} of {ranks} ranks work."
            )
    if len(wished) == len(extents) and time.is_legal(grid):
        return None, grid
    return mapping, grid


def partition_of(bound: BoundNest, grid: tuple[int, ...]) -> Partition:
    """Blocks with about as many points along every loop, in the coordinates of the domain."""
    loops, depth = bound.nest.space_loops, bound.nest.sweep_depth
    cuts = (even_cuts(bound.domain, depth + k, parts) for k, parts in enumerate(grid))
    return Partition(tuple(cuts), tuple(loop.step for loop in loops))


def communication_weights(bound: BoundNest, dependences: Sequence[Dependence]) -> list[int]:
    """Per space loop, how many rows cross a cut: the sum of the dependences' components (P0 eq. 1), or what is touched of
    neighbours' where all of it is from the sweep before."""
    depth = bound.nest.sweep_depth
    inside = inside_sweep(dependences, depth)
    spans = reach_of(bound)
    weights = [sum(d.vector[depth + k] for d in inside) for k in range(len(spans))]
    return weights if any(weights) else [high - low for low, high in spans]


def _communication(grid: tuple[int, ...], extents: tuple[int, ...], weights: list[int]) -> float:
    """Elements sent per point computed."""
    return sum(w * p / max(e, 1) for w, p, e in zip(weights, grid, extents, strict=True) if p > 1)


def pipelined(candidates: Sequence[int] | range, extents: tuple[int, ...]) -> int:
    """The loop to pipeline: the longest, or the outermost that is not much shorter."""
    longest = max(extents[k] for k in candidates)
    return next(k for k in candidates if extents[k] * MUCH_SHORTER >= longest)


def most_ranks(ranks: int, extents: tuple[int, ...]) -> int:
    """The greatest number of so many ranks of which some grid gives each a row of every loop: the others idle."""
    number = min(ranks, math.prod(max(e, 1) for e in extents))
    while not any(fits(g, extents) for g in factorisations(number, len(extents))):
        number -= 1
    return number


def fits(grid: tuple[int, ...], extents: tuple[int, ...]) -> bool:
    return all(parts <= max(extent, 1) for parts, extent in zip(grid, extents, strict=True))


def is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= 1
