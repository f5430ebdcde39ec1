"""From a bound nest and a number of ranks to a Plan. Pure: no clock, no MPI, no files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import Refusal, RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.dependences import Dependence, inside_sweep
from lapwing.loopnest.skew import Skew
from lapwing.planner import cuts
from lapwing.planner.along_time import AlongTime, stages
from lapwing.planner.cuts import Cut, fits, is_count, mapping_on, most_ranks, partition_of, rule_of_thumb
from lapwing.planner.inner import (
    FEWEST_JOINED,
    SHORTEST_SIDE,
    InnerChoice,
    choice_by_rule,
    evened,
    joined_sweeps,
    may_be_cut,
)
from lapwing.planner.notes import notes
from lapwing.planner.plan import ENGINES, Plan
from lapwing.schedule.pipeline import Engine
from lapwing.tiling.faces import Faces, loop_offsets
from lapwing.tiling.inner import InnerForm, sweeps_to_join
from lapwing.tiling.partition import Partition
from lapwing.tiling.phased.fusion import fusion_of
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

# Without a model of the machine: tiles of about a fifth of a millisecond, at a nanosecond a point, hide the cost of a
# message and keep the pipeline's fill short.
POINTS_A_TILE = 200_000
FILL_SHARE = 4  # steps a sweep for every rank the first tile has to pass

# Tiles work on 16 rows together, which start one step apart: a tile along the innermost loop is long enough for all of
# them to be at work most of the time, one along the loop around it holds whole groups of rows.
SHORTEST_RUN = 256
ROWS_TOGETHER = 16
SWEEPS_LONG = 4  # rows or planes of a step for each of the sweeps that are its lanes
MOST_RANKS = 1 << 24


@dataclass(frozen=True)
class Wishes:
    """What the user asked for; None leaves the choice to the planner."""

    engine: Engine | None = None
    tile: int | None = None
    grid: tuple[int, ...] | None = None
    cut: Cut | None = None


def make_plan(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    ranks: int,
    wishes: Wishes | None = None,
    partition: Partition | None = None,
    skews: bool = True,
    inner: InnerChoice | None = None,
) -> Plan:
    """Choose mapping loop, grid and tile for a nest.

    partition: blocks that are given (arrays that are distributed already) rather than chosen. skews: False where a wished cut
    respects the dependences as they are, so that the nest need not be skewed. inner: the form of the tile, where it is known.
    Of more ranks than rows some idle. Raises RefusedError for dependences no supported tiling respects, and for a grid, tile or
    engine that does not fit.
    """
    wishes = wishes or Wishes()
    if bound.nest.is_sequential:
        wishes = Wishes(wishes.engine)  # there is nothing to cut
    nest, found = bound.nest, tuple(dependences)
    skew = skew_on(bound, found, ranks) if skews else None
    in_text_order = skews and skew is None and bound.analysis.skew is not None
    bound, dependences = skewed_nest(bound, skew), skewed_dependences(found, skew)
    _check_several_writes(bound)
    engine = "overlap" if wishes.engine is None else wishes.engine
    if engine not in ENGINES:
        raise RefusedError(f"engine {wishes.engine!r}: expected one of {', '.join(ENGINES)}.")
    if wishes.tile is not None and not is_count(wishes.tile):
        raise RefusedError(f"tile {wishes.tile!r}: expected a height, a whole number of at least 1.")
    if not is_count(ranks):
        raise RefusedError(f"{ranks!r} ranks: expected a whole number of at least 1.")
    if ranks > MOST_RANKS:
        raise RefusedError(
            f"{ranks:,} ranks: expected at most {MOST_RANKS:,}, more than any machine has. Plan for fewer."
        )
    depth = nest.sweep_depth
    extents = tuple(high - low for low, high in bound.domain.box[depth:])
    if bound.domain.is_empty:
        return _idle_plan(bound, found, dependences, ranks, wishes, extents)
    reasons: list[str] = []
    time = AlongTime(bound, tuple(dependences))
    if partition is None:
        number = int(ranks) if wishes.grid is not None else most_ranks(int(ranks), extents)
        cut = wishes.cut
        if cut is None and wishes.grid is None and number > 1:
            cut = _joining_cut(bound, dependences, number, extents, reasons)
        mapping, grid = cut or rule_of_thumb(time, number, wishes.grid, extents, reasons)
        blocks = partition_of(bound, grid)
    else:
        blocks = partition
        mapping = mapping_on(time, partition.grid, extents) if wishes.cut is None else wishes.cut.mapping
        if wishes.cut is None:
            reasons.append("the arrays are distributed like this already")
    if in_text_order:  # of which no other cut is known to be legal
        mapping = 0
    block = tuple(-(-extent // parts) for extent, parts in zip(extents, blocks.grid, strict=True))
    length = time.sweeps if mapping is None else block[mapping]

    def tile_of(form: InnerForm) -> int:
        """The height of tiles of a form, as it was asked for or by rule."""
        if wishes.tile is not None:
            return max(1, min(int(wishes.tile), length))
        if mapping is None:
            return max(1, min(time.tile(block, blocks.grid, POINTS_A_TILE), length))
        return max(1, min(default_tile(block, mapping, blocks.grid, form), length))

    def joined(form: InnerForm) -> int:
        return joined_sweeps(bound, form, blocks, mapping, tile_of(form))

    if inner is None:
        inner = choice_by_rule(bound, dependences, is_alone=blocks.ranks == 1, block=block, joined=joined)
    if partition is None:
        blocks = evened(bound, inner.form, blocks, mapping)
    tile = tile_of(inner.form)
    fusion = None
    is_plain = skew is None and mapping is not None and not nest.accumulators and joined(inner.form) == 1
    if is_plain and blocks.ranks == 1 and wishes.tile is None:
        fusion = fusion_of(PhasedNest(nest.name, (bound,)), (inner.form,))
    if fusion is not None:
        reasons.append(str(fusion))
    if wishes.tile is None and blocks.ranks > 1:
        points = tile * (math.prod(block) if mapping is None else math.prod(block) // block[mapping])
        reasons.append(f"tiles of {tile}: about {points:,} points a step")
    faces = Faces(bound, blocks, mapping, tile, joined=joined(inner.form))
    # The ranks at both ends: in a descending loop, or with old values alone, the first one sends nothing.
    outer = (0, blocks.ranks - 1) if blocks.ranks > 1 else ()
    ends = [c for rank in outer for c in (*faces.outgoing(rank), *faces.incoming(rank))]
    largest = faces.batch * max((m.bytes for c in ends for m in c.messages), default=0)
    return Plan(
        nest=nest.name,
        engine=engine,
        sweep_loops=tuple(loop.name for loop in nest.sweep_loops),
        space_loops=tuple(loop.name for loop in nest.space_loops),
        extents=extents,
        mapping=mapping,
        tile=tile,
        partition=blocks,
        dependences=found,
        steps=-(-length // tile),
        message_bytes=largest,
        inner=inner,
        reasons=() if nest.is_sequential else tuple(reasons),
        notes=notes(bound),
        skew=skew,
        joined=faces.joined,
        fusion=fusion,
        idle=int(ranks) - blocks.ranks,
    )


def skew_on(bound: BoundNest, dependences: Sequence[Dependence], ranks: int) -> Skew | None:
    """How a nest is skewed on so many ranks.

    One rank that does all of a sweep in the order of the text need not skew: that is only for lanes, which the nest has where
    the innermost loop is a chain.
    """
    skew = bound.analysis.skew
    if skew is None or ranks > 1:
        return skew
    vectors = [d.vector[bound.nest.sweep_depth :] for d in inside_sweep(dependences, bound.nest.sweep_depth)]
    is_chain = any(vector[-1] and not any(vector[:-1]) for vector in vectors)
    return skew if is_chain else None


def _joining_cut(
    bound: BoundNest, dependences: Sequence[Dependence], ranks: int, extents: tuple[int, ...], reasons: list[str]
) -> Cut | None:
    """The cut on which ranks do several sweeps at once, as one rank would; None where it would not, or blocks are too short."""
    sweeps = sweeps_to_join(bound)
    if sweeps < FEWEST_JOINED:
        return None

    def joined(form: InnerForm) -> int:
        joins = form.transposed or (form.lanes_are_sweeps and may_be_cut(bound, form, *_joining(form)))
        return min(form.sweeps, sweeps) if joins else 1

    form = choice_by_rule(bound, dependences, joined=joined).form
    if joined(form) == 1:
        return None
    mapping, along = _joining(form)
    cut = Cut(mapping, tuple(ranks if k == along else 1 for k in range(len(extents))))
    if not fits(cut.grid, extents):
        return None
    partition, tile = partition_of(bound, cut.grid), default_tile(extents, mapping, cut.grid, form)
    too_short = min(partition.widest[-2:]) < SHORTEST_SIDE
    if too_short or joined_sweeps(bound, form, partition, cut.mapping, tile) < FEWEST_JOINED:
        return None
    names = [loop.name for loop in bound.nest.space_loops]
    what = "do several sweeps as lanes" if form.lanes_are_sweeps else "share sweeps of what is copied"
    reasons.append(f"{names[mapping]} is pipelined and {names[along]} cut: ranks {what}")
    return cut


def _joining(form: InnerForm) -> tuple[int, int]:
    """Which loop is pipelined and which is cut where ranks do several sweeps at once."""
    *outer, mapping, innermost = form.order
    if form.lanes_are_sweeps and outer:
        return form.order[0], form.order[1]
    return mapping, form.order[-3] if form.coalesced else innermost


def _idle_plan(
    bound: BoundNest,
    found: Sequence[Dependence],
    dependences: Sequence[Dependence],
    ranks: int,
    wishes: Wishes,
    extents: tuple[int, ...],
) -> Plan:
    """No iteration, as in a call with no sweeps: any number of ranks has nothing to do.

    found, dependences: in the user's loops, and in the coordinates of the plan.
    """
    loops = bound.nest.space_loops
    cuts = ((0,) * (ranks + 1), *((0, 0),) * (len(loops) - 1))
    return Plan(
        nest=bound.nest.name,
        engine=wishes.engine or "overlap",
        sweep_loops=tuple(loop.name for loop in bound.nest.sweep_loops),
        space_loops=tuple(loop.name for loop in loops),
        extents=extents,
        mapping=len(loops) - 1,
        tile=1,
        partition=Partition(cuts, tuple(loop.step for loop in loops)),
        dependences=tuple(found),
        steps=0,
        message_bytes=0,
        inner=choice_by_rule(bound, dependences),
        reasons=("a loop has no iterations",),
    )


def _check_several_writes(bound: BoundNest) -> None:
    """Several write offsets to one array are exact only where every block writes a full box."""
    if bound.domain.is_box:
        return
    offsets: dict[str, set[tuple[object, ...]]] = {}
    for store in bound.nest.stores:
        offsets.setdefault(store.target.array, set()).add(loop_offsets(bound, store.target))
        if len(offsets[store.target.array]) > 1:
            text = (
                f"{bound.nest.where(store.line)}: {store.target.text}: {store.target.array} is written at several offsets "
                "in loops whose bounds depend on outer indices; supported is one or the other. "
                "Write the array at one offset, or make the bounds constant."
            )
            raise RefusedError(Refusal(text, bound.nest.file, store.line, tiled_only=True))


def default_tile(block: Sequence[int], mapping: int, grid: Sequence[int], form: InnerForm | None = None) -> int:
    """The height of tiles along a space loop where nothing is known of the machine. form: that of the tile, where it is known."""
    extent = block[mapping]
    if math.prod(grid) == 1:
        return extent
    if form is not None and form.lanes_are_sweeps:
        # In every step lanes come in and run out: there are as few as ranks have to wait for, and each is longer than that takes.
        tile = -(-extent // (FILL_SHARE * stages(grid)))
        return min(extent, max(tile, SWEEPS_LONG * form.sweeps))
    across = math.prod(e for k, e in enumerate(block) if k != mapping)
    joining = form if form is not None and form.transposed and form.sweeps > 1 and mapping == form.order[-2] else None
    wanted = max(1, POINTS_A_TILE // (max(across, 1) * (1 if joining is None else joining.sweeps)))
    innermost = mapping == len(block) - 1
    if innermost:
        wanted = max(wanted, SHORTEST_RUN)
    steps = max(-(-extent // wanted), min(FILL_SHARE * stages(grid), extent))
    tile = -(-extent // steps)
    if mapping == len(block) - 2 or joining is not None:
        together = ROWS_TOGETHER if joining is None else joining.lanes
        tile = min(extent, -(-tile // together) * together)
    return tile


def grids(bound: BoundNest, dependences: Sequence[Dependence], ranks: int) -> list[tuple[int, ...]]:
    """All process grids for a number of ranks, as ``--grid all`` tries them. Raises RefusedError as make_plan does."""
    plan = make_plan(bound, dependences, ranks)
    if bound.domain.is_empty:
        return [plan.grid]
    time = AlongTime(skewed_nest(bound, plan.skew), skewed_dependences(dependences, plan.skew))
    return cuts.grids(time, plan.ranks, plan.extents)
