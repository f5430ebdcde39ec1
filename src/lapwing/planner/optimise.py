"""The choice: cuts, tile heights and engines, each predicted, the fastest taken. Pure: no clock, no MPI, no files.

Of every candidate a bound is worked out first; only those that might win are followed on the exact timeline. How fast a
tile computes depends on its shape, so that the shapes worth measuring are asked for before the last word: one of every
promising cut (``first_looks``), many heights of the best (``ladders``), what then looks best (``refinements``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, itemgetter

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.machine.machine import Machine
from lapwing.planner.along_time import AlongTime
from lapwing.planner.choose import ROWS_TOGETHER, Wishes
from lapwing.planner.costs import Placement, pipeline_of, setup_seconds
from lapwing.planner.cuts import Cut, all_cuts, partition_of
from lapwing.planner.geometry import Geometry
from lapwing.planner.inner import evened, joined_sweeps
from lapwing.planner.plan import SLICE_SECONDS, Plan
from lapwing.planner.prediction import Prediction, predict
from lapwing.planner.rates import ProbedRates, Rates, Shape
from lapwing.schedule.estimate import nearly_completion_seconds
from lapwing.schedule.pipeline import Engine, Pipeline
from lapwing.tiling.faces import Faces
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.partition import Partition
from lapwing.tiling.skewing import skewed_dependences, skewed_nest

MOST_CUTS = 12  # of all process grids, those that send least
MOST_FOLLOWED = 5  # candidates on the exact timeline
MOST_LOOKS = 8  # cuts of which a shape is measured
CONFIRMED = 4  # shapes that are measured twice
BEST_CUTS, RUNGS = 2, 6  # of so many cuts, so many heights are measured
CLOSE = 1.25  # a candidate this many times slower than the best by its bound is out
# Heights from the whole block downwards, each so many times the next: the time of a run is flat around its best height.
HEIGHTS_APART = 1.5
MOST_STEPS = 4096  # a sweep
MORE_BUFFERS = (3, 4, 8)  # than two a channel
BUFFER_PAYS = 0.01  # a buffer more has to save this share of the time
EAGER_SLICE_SECONDS = 500e-6  # between polls that no message waits for


@dataclass(frozen=True)
class Candidate:
    """A cut with a tile height and an engine, and the seconds its pipeline takes on the exact timeline."""

    cut: Cut
    tile: int
    engine: Engine
    seconds: float
    setup: float
    pipeline: Pipeline = field(repr=False)

    @cached_property
    def prediction(self) -> Prediction:
        return predict(self.pipeline, self.setup)


@dataclass(frozen=True)
class Problem:
    """A nest to be run on so many ranks of a machine.

    engines, tile and cuts are those that may be chosen; partition: blocks that are given; form: of the tile. A nest that is
    skewed is taken in its skewed coordinates.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    ranks: int
    machine: Machine
    placement: Placement
    engines: tuple[Engine, ...]
    tile: int | None = None
    cuts: tuple[Cut, ...] | None = None
    partition: Partition | None = None
    form: InnerForm | None = None
    _geometries: dict[tuple[Cut, int], Geometry] = field(default_factory=dict, repr=False, compare=False)
    _partitions: dict[Cut, Partition] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(
        plan: Plan,
        bound: BoundNest,
        machine: Machine,
        placement: Placement,
        wishes: Wishes,
        partition: Partition | None = None,
    ) -> Problem:
        """What is left to choose where a plan by rules of thumb keeps to the same wishes."""
        in_text_order = plan.skew is None and bound.analysis.skew is not None
        given = wishes.grid is not None or partition is not None or in_text_order
        problem = Problem(
            bound=skewed_nest(bound, plan.skew),
            dependences=skewed_dependences(plan.dependences, plan.skew),
            ranks=plan.ranks,
            machine=machine,
            placement=placement,
            engines=(wishes.engine,) if wishes.engine else engines_on(plan.ranks, placement),
            tile=None if wishes.tile is None else int(wishes.tile),
            cuts=(Cut(plan.mapping, plan.partition.grid),) if given else None,
            partition=partition,
            form=plan.inner.form,
        )
        if plan.skew is not None and not given:
            space = tuple(cut for cut in problem.possible if cut.mapping is not None)
            problem = replace(problem, cuts=space)
        return problem

    @cached_property
    def extents(self) -> tuple[int, ...]:
        return tuple(high - low for low, high in self.bound.domain.box[self.bound.nest.sweep_depth :])

    @cached_property
    def time(self) -> AlongTime:
        return AlongTime(self.bound, self.dependences)

    @cached_property
    def possible(self) -> list[Cut]:
        cuts = self.cuts or all_cuts(self.time, self.ranks, self.extents)
        kept = list(dict.fromkeys(cut.grid for cut in cuts))[:MOST_CUTS]
        return [cut for cut in cuts if cut.grid in kept]

    def block(self, cut: Cut) -> tuple[int, ...]:
        """The widest of the blocks, along every loop."""
        return self._partition(cut).widest

    def length(self, cut: Cut) -> int:
        """How far tiles can reach: along the mapping loop, or in sweeps."""
        return self.time.sweeps if cut.mapping is None else self.block(cut)[cut.mapping]

    def shape(self, cut: Cut, tile: int) -> Shape:
        return Shape(self.block(cut), cut.mapping, tile, self.joined(cut, tile))

    def work_seconds(self, rates: Rates) -> float:
        """What a rank computes, roughly."""
        cut = self.possible[0]
        points = math.prod(self.block(cut)) * self.time.sweeps
        return points * rates.seconds_per_point(self.shape(cut, self.length(cut)))

    def heights(self, cut: Cut) -> list[int]:
        """Tile heights worth looking at, tallest first."""
        length = self.length(cut)
        if self.tile is not None:
            return [max(1, min(self.tile, length))]
        if self.ranks == 1:
            return [length]
        found: dict[int, None] = {}
        steps = 1.0
        while steps <= min(length, MOST_STEPS):
            found[self.rounded(cut, -(-length // round(steps)))] = None
            steps = max(steps * HEIGHTS_APART, steps + 1)
        return list(found)

    def rounded(self, cut: Cut, tile: int) -> int:
        """A height that holds whole groups of rows where the tile is cut across them."""
        length, together = self.length(cut), ROWS_TOGETHER
        rows = len(self.extents) - 2
        if self.form is not None and self.form.transposed:
            rows, together = self.form.order[-2], self.form.lanes
        if cut.mapping == rows and (tile > together or together > ROWS_TOGETHER):
            tile = -(-tile // together) * together
        return max(1, min(tile, length))

    def joined(self, cut: Cut, tile: int) -> int:
        """How many sweeps are done at once."""
        if self.form is None:
            return 1
        return joined_sweeps(self.bound, self.form, self._partition(cut), cut.mapping, tile)

    def geometry(self, cut: Cut, tile: int) -> Geometry:
        known = self._geometries.get((cut, tile))
        if known is None:
            joined = self.joined(cut, tile)
            faces = Faces(self.bound, self._partition(cut), cut.mapping, tile, joined=joined)
            known = self._geometries[cut, tile] = Geometry(faces, self.time.sweeps)
        return known

    def _partition(self, cut: Cut) -> Partition:
        if self.partition is not None:
            return self.partition
        known = self._partitions.get(cut)
        if known is None:
            known = partition_of(self.bound, cut.grid)
            if self.form is not None:
                known = evened(self.bound, self.form, known, cut.mapping)
            self._partitions[cut] = known
        return known


@dataclass(frozen=True)
class _Bounded:
    bound: float
    setup: float
    cut: Cut
    tile: int
    engine: Engine
    pipeline: Pipeline


def engines_on(ranks: int, placement: Placement) -> tuple[Engine, ...]:
    """The engines worth a thought: a helper thread takes a core of its own, one-sided stores take shared memory."""
    if ranks == 1:
        return ("overlap",)
    found: list[Engine] = ["blocking", "overlap"]
    if placement.has_spare_cores(ranks):
        found.append("helper")
    if placement.ranks_a_node >= ranks:
        found.append("onesided")
    return tuple(found)


def ranking(problem: Problem, rates: Rates, report: Callable[[str], None] | None = None) -> list[Candidate]:
    """Candidates that were followed to their end, fastest first; at least one if the speed of any is known.

    report: told what is being done.
    Raises RefusedError where no grid fits, or the machine does not describe a link that is needed.
    """
    bounded = _with_engines(problem, rates)
    followed: list[tuple[float, _Bounded]] = []
    for one in bounded:
        if len(followed) >= MOST_FOLLOWED or (followed and one.bound > CLOSE * min(followed, key=itemgetter(0))[0]):
            break
        if report is not None:
            report(f"following candidate {len(followed) + 1} of up to {MOST_FOLLOWED}")
        followed.append((one.setup + nearly_completion_seconds(one.pipeline), one))
    followed.sort(key=itemgetter(0))
    return [Candidate(one.cut, one.tile, one.engine, seconds, one.setup, one.pipeline) for seconds, one in followed]


def first_looks(problem: Problem, rates: Rates) -> list[Shape]:
    """A shape of every promising cut, to be measured first."""
    best: dict[Cut, _Bounded] = {}
    for one in _bounded(problem, rates):
        best.setdefault(one.cut, one)
    return [problem.shape(one.cut, one.tile) for one in list(best.values())[:MOST_LOOKS]]


def ladders(problem: Problem, rates: Rates) -> list[Shape]:
    """Shapes of the best cuts known so far, from low to high tiles."""
    shapes: list[Shape] = []
    for cut in _best_cuts(problem, rates)[:BEST_CUTS]:
        heights = problem.heights(cut) if cut.mapping is not None else problem.heights(cut)[:1]
        rungs = min(RUNGS, len(heights))
        chosen = {heights[(len(heights) - 1) * k // max(1, rungs - 1)] for k in range(rungs)}
        shapes += [problem.shape(cut, height) for height in sorted(chosen)]
    return shapes


def refinements(problem: Problem, rates: ProbedRates) -> list[Shape]:
    """Shapes that look best and have no measured one near them."""
    found = []
    for one in _bounded(problem, rates)[:MOST_FOLLOWED]:
        shape = problem.shape(one.cut, one.tile)
        if not rates.has_near(shape) and shape not in found:
            found.append(shape)
    return found[:RUNGS]


def favourites(problem: Problem, rates: ProbedRates) -> list[Shape]:
    """The measured shapes nearest to those that look best."""
    found: list[Shape] = []
    for one in _bounded(problem, rates)[: 2 * MOST_FOLLOWED]:
        shape = rates.nearest(problem.shape(one.cut, one.tile))
        if shape not in found:
            found.append(shape)
    return found[:CONFIRMED]


def _best_cuts(problem: Problem, rates: Rates) -> list[Cut]:
    return list(dict.fromkeys(one.cut for one in _bounded(problem, rates)))


def _bounded(problem: Problem, rates: Rates) -> list[_Bounded]:
    """All cuts and heights whose speed is known, with one engine that stands for all; those with the least bounds first."""
    engine: Engine = "overlap" if "overlap" in problem.engines else problem.engines[0]
    known = (
        (cut, tile)
        for cut in problem.possible
        for tile in problem.heights(cut)
        if rates.knows(problem.shape(cut, tile))
    )
    return sorted((_bound(problem, rates, cut, tile, engine) for cut, tile in known), key=attrgetter("bound"))


def _with_engines(problem: Problem, rates: Rates) -> list[_Bounded]:
    """The best of those with every engine."""
    best = _bounded(problem, rates)[: 2 * MOST_FOLLOWED]
    several = [
        one if one.engine == engine else _bound(problem, rates, one.cut, one.tile, engine)
        for one in best
        for engine in problem.engines
    ]
    return sorted(several, key=attrgetter("bound"))


def _bound(problem: Problem, rates: Rates, cut: Cut, tile: int, engine: Engine) -> _Bounded:
    geometry = problem.geometry(cut, tile)
    pipeline = pipeline_of(geometry, engine, problem.machine, rates, problem.placement)
    setup = setup_seconds(geometry, engine, problem.machine, problem.placement)
    return _Bounded(setup + least_seconds(pipeline), setup, cut, tile, engine, pipeline)


def least_seconds(pipeline: Pipeline) -> float:
    """About how long a pipeline takes, never much more: the busiest rank's work, its links, and the way to the last rank."""
    rounds, steps = pipeline.sweeps, pipeline.steps
    work = float(pipeline.compute.sum(axis=-1).max())
    tile = float(pipeline.compute.max())
    forwards = [c for c in pipeline.channels if c.lag == 0]
    handling = sum(c.pack + c.send for c in forwards) if pipeline.engine != "helper" else 0.0
    handling += sum(c.receive + c.unpack for c in forwards) if pipeline.engine != "helper" and _inner(pipeline) else 0.0
    wire = sum(c.wire for c in forwards)
    sweep = work + steps * (handling + (wire if pipeline.engine == "blocking" else 0.0))
    hop = tile + max((c.pack + c.send + c.wire + c.latency + c.receive + c.unpack for c in forwards), default=0.0)
    stages = sum(parts - 1 for k, parts in enumerate(pipeline.grid) if any(c.offset[k] for c in forwards))
    backwards = [c for c in pipeline.channels if c.lag]
    # A rank, the one after it, and the first again: old values close a circle, which is gone round once in so many steps.
    there = max((c.pack + c.send + c.wire + c.latency + c.receive + c.unpack for c in backwards), default=0.0)
    circle = max((steps * (hop + tile + there) / max(1, steps + c.shift) for c in backwards), default=0.0)
    return rounds * max(sweep, steps * wire, circle) + stages * hop


def _inner(pipeline: Pipeline) -> bool:
    """Whether some rank both receives and sends along one axis."""
    return any(parts > 2 for parts in pipeline.grid)


def finished(plan: Plan, problem: Problem, best: Candidate, rates: Rates) -> Plan:
    """The plan of a candidate with its prediction, as many buffers as pay, and slices as long as its messages allow."""
    geometry = problem.geometry(best.cut, best.tile)
    slices = _slice_seconds(problem, geometry, best.engine)
    plan = replace(plan, prediction=best.prediction, pipeline=best.pipeline, slice_seconds=slices)
    may_pay = best.engine != "blocking" and best.prediction.exposed > BUFFER_PAYS * best.seconds
    for buffers in MORE_BUFFERS if may_pay else ():
        wider = replace(geometry, faces=replace(geometry.faces, buffers=buffers))
        pipeline = pipeline_of(wider, best.engine, problem.machine, rates, problem.placement)
        prediction = predict(pipeline, best.setup)
        assert plan.prediction is not None
        if prediction.seconds < plan.prediction.seconds * (1 - BUFFER_PAYS):
            plan = replace(plan, buffers=buffers, prediction=prediction, pipeline=pipeline)
    return plan


def _slice_seconds(problem: Problem, geometry: Geometry, engine: Engine) -> float:
    """Messages that the library sends unasked need nobody to look after them; others wait for an answer at every poll."""
    for neighbour in geometry.neighbours:
        link = problem.machine.link(problem.placement.place(geometry.partition, neighbour), engine)
        if link.rendezvous_bytes is None or neighbour.bytes >= link.rendezvous_bytes:
            return SLICE_SECONDS
    return EAGER_SLICE_SECONDS
