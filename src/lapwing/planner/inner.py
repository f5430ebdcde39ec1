"""The choice of a tile's inner form: by what was measured, or else by how long the innermost loop's chain is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapwing.codegen.temporal.sweeps import may_move_ends
from lapwing.codegen.tile import forms_of
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.tiling.chains import chain_cycles, shortened
from lapwing.tiling.faces import shifts_of
from lapwing.tiling.inner import FEW_LANES, InnerForm, planes_in, sweeps_to_join, usual_lanes
from lapwing.tiling.partition import Partition
from lapwing.tiling.sweep_lanes import rows_are_long, sweep_lanes
from lapwing.tiling.transposed import reason_against

# With lanes a point takes one load and one store more, each from a row of its own: so many cycles, when all overlap.
LANES_CYCLES = 8
# Sweeps for which rows are worth copying, and how many of which length there have to be for it.
FEWEST_JOINED, SHORTEST_SIDE = 4, 48
BUSY_LANES = 0.75  # the share of lanes that are to be sweeps in every turn, or buffers take less time
# That points wait for one another at least, where a scan of a few operations for each is by rule faster.
SCANNED_CYCLES = 3
# Sweeps that several ranks do at once, or as many as there are steps: each rank waits for as many in the first step of the one
# before it.
MOST_JOINED_BY_RANKS = 8
WORTHWHILE = 0.03  # another form than that by rule has to save this share of the time, which is more than noise


@dataclass(frozen=True)
class InnerChoice:
    """A form, and why: seconds per point of all forms that were measured, the fastest first, or a rule.

    ``rivals``: how many other forms there are.
    """

    form: InnerForm
    rule: str
    rivals: int = 0
    measured: tuple[tuple[InnerForm, float], ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether other forms might be faster for all one knows."""
        return self.rivals > 0 and not self.measured

    def describe(self, loops: Sequence[str]) -> str:
        """In words; ``loops`` are the names of the space loops."""
        name = self.form.describe(loops)
        if not self.measured:
            return f"{name}: {self.rule}"
        others = "".join(f"; {f.describe(loops)} {1e9 * s:.3g}" for f, s in self.measured if f != self.form)
        return f"{name}, measured {1e9 * dict(self.measured)[self.form]:.3g} ns a point{others}"

    def to_json(self, loops: Sequence[str]) -> dict[str, object]:
        return {
            "form": self.form.describe(loops),
            "rule": None if self.measured else self.rule,
            "seconds_per_point": {form.describe(loops): seconds for form, seconds in self.measured},
        }


def choice_by_rule(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    is_alone: bool = False,
    block: Sequence[int] = (),
    joined: Callable[[InnerForm], int] | None = None,
) -> InnerChoice:
    """The form to take where nothing was measured.

    bound, dependences: in the coordinates that are cut into tiles. is_alone: whether one rank does all of the nest. block: how
    much of each loop a rank does. joined: how many sweeps are done at once with a form; each by itself where this is not given.
    """
    forms = forms_of(bound, dependences)
    if not forms:
        nest = bound.nest
        raise RefusedError(
            f"{nest.where(nest.line)}: {nest.name}: its sweeps cannot be lanes, so none has reductions of its own."
        )
    rivals = len(forms) - 1
    innermost = forms[-1].order[-1]  # that of another order, if there is one: arrays are contiguous along it
    loop = bound.nest.space_loops[innermost]
    name = loop.name
    of_order = [form for form in forms if form.order[-1] == innermost]
    plain = of_order[0]
    if plain.independent:
        return InnerChoice(plain, f"no dependence joins the iterations of {name}", rivals)
    cycles = chain_cycles(shortened(bound.body, name, loop.step), name, loop.step)
    lanes = usual_lanes(bound)
    wanted = lanes if cycles > LANES_CYCLES else 1
    form = next((form for form in of_order if form.lanes == wanted and not (form.scanned or form.skewed)), plain)
    rule = f"along {name} each point waits about {cycles} cycle{'s' if cycles != 1 else ''} for the one before it"
    sides = block[-2:] if block else [high - low for low, high in bound.domain.box[-2:]]
    for transposed in of_order if is_alone and min(sides) >= SHORTEST_SIDE else ():
        if transposed.transposed and _stores_little(bound, transposed):
            return InnerChoice(transposed, "nobody reads what it writes but the iterations next to it", rivals)
    scanned = next((form for form in of_order if form.scanned), None)
    if scanned is not None and sides[-1] >= SHORTEST_SIDE and cycles >= SCANNED_CYCLES:
        return InnerChoice(scanned, f"along {name} points wait for integers, whose recurrence is a scan", rivals)
    if joined is not None and cycles > LANES_CYCLES and min(sides) >= SHORTEST_SIDE:

        def has_idle_lanes(form: InnerForm) -> bool:
            """Whether lanes are no sweeps, of those that are done in a turn, or, of ranks, may be none."""
            return form.lanes_are_sweeps and not (is_alone and joined(form) >= BUSY_LANES * form.sweeps)

        for joining in sorted((f for f in of_order if joined(f) >= FEWEST_JOINED), key=has_idle_lanes):
            why = "sweeps share what is copied" if joining.transposed else "sweeps need not wait for one another"
            return InnerChoice(joining, f"{rule}, and {why}", rivals)
    if cycles > LANES_CYCLES and len(of_order) > 1 and not any(f.transposed for f in of_order):
        rule += f" (rows are not copied into buffers: {reason_against(bound, plain.order)})"
    if lanes == 1 and cycles > LANES_CYCLES and len(of_order) > 1:
        rule += ", but rows of so many arrays side by side are more than the prefetchers can follow"
    return InnerChoice(form, rule, rivals)


def evened(bound: BoundNest, form: InnerForm, partition: Partition, mapping: int | None) -> Partition:
    """Blocks with about as many points in the mean of the sweeps that are done at once, of such with as many in each sweep: while
    their ends move the first ranks lose what the last ones gain."""
    tile = form.lanes if mapping is None or not form.lanes_are_sweeps else partition.widest[mapping]
    sweeps = joined_sweeps(bound, form, partition, mapping, tile)
    return partition.later([shift * (sweeps - 1) // 2 for shift in shifts_of(bound)])


def joined_sweeps(bound: BoundNest, form: InnerForm, partition: Partition, mapping: int | None, tile: int) -> int:
    """How many sweeps a form does at once: as many at a time as it can, or fewer to have about as many every time.

    Where there are several steps, or ranks, their ends move, and the first ones are to be as long as the others' move.
    """
    sweeps = sweeps_to_join(bound)
    most = min(form.sweeps, sweeps)
    if most == 1 or mapping is None:
        return 1
    shortest = [int(np.diff(edges).min()) for edges in partition.edges]
    if form.lanes_are_sweeps and not rows_are_long(bound, form.sweeps, form.rows, shortest[-1]):
        return 1
    has_steps = tile < shortest[mapping]
    if partition.ranks > 1:
        most = min(most, max(MOST_JOINED_BY_RANKS, -(-shortest[mapping] // tile)))
    if has_steps or partition.ranks > 1:
        shortest[mapping] = min(tile, shortest[mapping])
        cut = [k for k, parts in enumerate(partition.grid) if parts > 1]
        if partition.grid[mapping] > 1 or not may_be_cut(bound, form, mapping, *cut):
            return 1
        cut += [mapping] if has_steps else []
        shifts = shifts_of(bound)
        most = min(most, *(1 + shortest[k] // shifts[k] for k in cut if shifts[k]))
    return evenly(sweeps, most)


def evenly(sweeps: int, most: int) -> int:
    """Of so many sweeps how many are done in a turn, at most so many, where turns are about alike."""
    return -(-sweeps // -(-sweeps // most))


def may_be_cut(bound: BoundNest, form: InnerForm, mapping: int, *cut: int) -> bool:
    """Whether a form does several sweeps at once in steps along a loop, and on ranks that cut others."""
    innermost = form.order[-1]
    if form.coalesced and innermost in cut:
        return False  # the rows of a lane follow one another by one pitch in all sweeps
    if not form.skewed:
        return mapping == form.order[-2]
    if not form.lanes_are_sweeps or mapping == innermost or not may_move_ends(bound):
        return False
    lanes = sweep_lanes(bound, form.rows)
    assert lanes is not None, "its sweeps are no lanes"
    return innermost not in cut or shifts_of(bound)[innermost] <= lanes.skew[innermost]


def _stores_little(bound: BoundNest, form: InnerForm) -> bool:
    """Whether of all that a form with buffers writes only what other blocks of rows read is stored."""
    planes = planes_in(bound, form)
    return planes is not None and all(plane.readers is not None for plane in planes.planes if plane.written)


def choice_where_crowded(by_rule: InnerChoice, sweeps: int) -> InnerChoice:
    """The form to take by rule where one rank has arrays whose rows are crowded: a few rows at a time where they lie, unless
    sweeps are so many that copying the arrays into padded memory pays."""
    taken = by_rule.form
    if not taken.pads or sweeps >= FEWEST_JOINED:
        return by_rule
    form = InnerForm(taken.order, FEW_LANES, independent=True, in_place=True)  # legal with as many lanes as with any
    return replace(by_rule, form=form, rule=f"{by_rule.rule}; a padded copy of crowded rows takes longer than it gains")


def choice_by_measurement(by_rule: InnerChoice, seconds: Mapping[InnerForm, float]) -> InnerChoice:
    """The fastest form, or that by rule where it is as good; seconds per point of every form measured."""
    if not seconds:
        return by_rule
    ranked = tuple(sorted(seconds.items(), key=lambda item: item[1]))
    fastest, least = ranked[0]
    form = by_rule.form if seconds.get(by_rule.form, math.inf) <= least * (1 + WORTHWHILE) else fastest
    return InnerChoice(form, by_rule.rule, by_rule.rivals, ranked)
