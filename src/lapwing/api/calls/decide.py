"""The plan of a run: the planner asks which tiles' speed decides, they are measured, and it has the last word."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from lapwing.calibrate.core.kept import core_here
from lapwing.calibrate.fingerprint import here
from lapwing.calibrate.forms import FormProber
from lapwing.calibrate.probing import Prober
from lapwing.calibrate.tile import kernel_key
from lapwing.codegen.compilation.cache import cache_directory
from lapwing.errors import BuildError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.machine import stored
from lapwing.machine.caches import outer_cache_bytes
from lapwing.machine.machine import Kernel, Link, Machine
from lapwing.notices import say
from lapwing.planner.choose import ROWS_TOGETHER, SHORTEST_RUN, Wishes, make_plan, skew_on
from lapwing.planner.costs import Placement
from lapwing.planner.cuts import Cut
from lapwing.planner.explain import chosen, reasons
from lapwing.planner.inner import InnerChoice, choice_by_measurement, choice_by_rule, choice_where_crowded
from lapwing.planner.notes import notes_of_lanes
from lapwing.planner.optimise import (
    Candidate,
    Problem,
    favourites,
    finished,
    first_looks,
    ladders,
    ranking,
    refinements,
)
from lapwing.planner.plan import Plan
from lapwing.planner.rates import NEAR, EstimatedRates, KernelRates, ProbedRates, Rates, Sample, Shape, step_size
from lapwing.planner.streaming import DiskRates, StreamingWishes, streaming_plan
from lapwing.roofline.bounds import limit_of
from lapwing.runtime.arrays.storage import crowded_arrays
from lapwing.runtime.tuning import allowed_cpus
from lapwing.tiling.inner import InnerForm, sweeps_to_join
from lapwing.tiling.partition import Partition
from lapwing.tiling.skewing import skewed_dependences, skewed_nest
from lapwing.tiling.transposed import TRANSPOSED_LANES

# Measures tiles of the given shapes within some seconds, those already known as well if told so; gives all that is known.
Measure = Callable[[Sequence[Shape], float, bool], Mapping[Shape, Sample]]

Report = Callable[[str], None]  # told what is being done

UNCALIBRATED = "typical"  # the machine that stands for one nobody has measured
# Measuring takes so long in all, building the tile apart: in proportion to the run within limits.
PROBE_SHARE, SHORTEST_PROBE_SECONDS, PROBE_SECONDS = 0.3, 0.2, 1.0
LOOKS_SHARE, LADDERS_SHARE, CONFIRM_SHARE = 0.35, 0.4, 0.25
WORTH_PLANNING_SECONDS = 0.02
MOST_SLABS = 2  # heights of slabs that are measured: the first is chosen before the tile's speed is known
# Comparing inner forms takes about so long, mostly for building them; then so long on tiles of about so many points.
FORMS_SECONDS, FORMS_PROBE_SECONDS, FORMS_POINTS = 0.5, 0.15, 200_000
# Iterations of the outermost loop, by how many loops there are, where sweeps are lanes: these begin one after the other.
LANES_OF_SWEEPS_ITERATIONS = {2: 128, 3: 16}
# Of the outermost cache, what planes take together, if arrays are larger: in it lanes would find what they do not in a call.
BEYOND_CACHE = 1.25
# When calls alike have taken so long, more may be known of their inner form, or may be worth finding out.
SECOND_THOUGHTS_SECONDS = (WORTH_PLANNING_SECONDS, FORMS_SECONDS)


@dataclass(frozen=True)
class Decision:
    """A plan and what it was chosen from, fastest first. ``problem`` is None where there is nothing to do."""

    plan: Plan
    problem: Problem | None = None
    ranked: tuple[Candidate, ...] = ()


@dataclass
class PlannedCalls:
    """Calls that are alike, and the plan they share: it gets second thoughts once they have taken long enough."""

    plan: Plan
    worked: float = 0.0  # seconds that calls took so far
    _thoughts_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.plan_anew(self.plan)

    @property
    def deserve_second_thoughts(self) -> bool:
        return self.worked >= self._thoughts_at

    def plan_anew(self, plan: Plan) -> None:
        """Take a plan that was made with what is known by now."""
        self.plan = plan
        later = [limit for limit in SECOND_THOUGHTS_SECONDS if limit > self.worked] if plan.inner.is_guess else []
        self._thoughts_at = min(later, default=math.inf)

    def note_run(self, seconds: float) -> None:
        """A call took so long."""
        self.worked += seconds


def decide(
    bound: BoundNest,
    dependences: Sequence[Dependence],
    ranks: int,
    wishes: Wishes,
    machine: Machine,
    placement: Placement,
    measure: Measure | None = None,
    partition: Partition | None = None,
    kernel: Kernel | None = None,
    report: Report | None = None,
    inner: InnerChoice | None = None,
) -> Decision:
    """Choose by prediction, and say why.

    measure: for the real tile's speed. Without it, or where it does not help, kernel is taken, the tile as the machine's
    description has it, or what is known of single operations.
    partition: blocks that are given, as those of arrays that are distributed already. report: told what is being done. inner: the
    form of the tile, where it is known.
    Raises RefusedError as make_plan does.
    """
    say = report or _say_nothing
    say("comparing process grids")
    plan = make_plan(bound, dependences, ranks, wishes, partition, inner=inner)
    if plan.steps == 0:
        return Decision(plan)
    problem = Problem.of(plan, bound, machine, placement, wishes, partition)
    estimated = EstimatedRates.of(bound, machine)
    known: Rates = estimated if kernel is None else KernelRates(problem.bound, kernel)
    rates = known if measure is None else _measured(problem, measure, estimated) or known
    ranked = ranking(problem, rates, say)
    if not ranked:  # what is remembered is of other shapes, and nothing more could be measured
        rates, ranked = known, ranking(problem, known, say)
    say("predicting the run")
    best = chosen(ranked)
    final = make_plan(
        bound, dependences, ranks, Wishes(best.engine, best.tile, cut=best.cut), partition, inner=plan.inner
    )
    if not isinstance(rates, EstimatedRates):
        final = replace(final, tile_seconds=rates.seconds_per_point(problem.shape(best.cut, best.tile)))
    why = reasons(problem, ranked, rates)
    if final.ranks == 1 and plan.fusion is not None:
        final, why = replace(final, fusion=plan.fusion), (*why, str(plan.fusion))
    final = finished(replace(final, reasons=why), problem, best, rates)
    return Decision(final, problem, tuple(ranked))


def _measured(problem: Problem, measure: Measure, estimated: Rates) -> Rates | None:
    """Speeds of the shapes that matter; None where nothing could be measured."""
    budget = min(PROBE_SECONDS, max(SHORTEST_PROBE_SECONDS, PROBE_SHARE * problem.work_seconds(estimated)))
    deadline = time.perf_counter() + budget
    samples = dict(measure((), 0.0, False))
    remembered = len(samples)
    looks = first_looks(problem, estimated)
    if sum(map(ProbedRates(samples).knows, looks)) < len(looks) / 2:
        samples.update(measure(looks, LOOKS_SHARE * budget, False))
        if not samples:
            return None
        samples.update(measure(ladders(problem, ProbedRates(samples)), LADDERS_SHARE * budget, False))
    while (wanted := refinements(problem, ProbedRates(samples))) and (left := deadline - time.perf_counter()) > 0:
        known = len(samples)
        samples.update(measure(wanted, left / 2, False))
        if len(samples) == known:
            break
    if len(samples) > remembered:
        # Of many noisy figures the best ones flatter: those that would win are looked at once more.
        samples.update(measure(favourites(problem, ProbedRates(samples)), CONFIRM_SHARE * budget, True))
    return ProbedRates(samples)


def _say_nothing(what: str) -> None:
    """A Report for nobody."""


def machine_here() -> Machine:
    """This machine as it was calibrated, or a typical one with as many cores as there are here.

    What was measured on another CPU is not taken; a network that was not measured is a typical one. Raises RefusedError for
    a file that makes no sense.
    """
    typical, calibrated = stored.find(UNCALIBRATED), stored.own(cache_directory())
    if calibrated is None or calibrated.fingerprint.changes(here(with_mpi=False)):
        return replace(typical, cores_a_node=len(allowed_cpus()))
    return replace(calibrated, links={**typical.links, **calibrated.links})


@dataclass(frozen=True)
class Decider:
    """Plans of one nest for runs here, one after the other; what was measured for one is known to the next.

    report: told what is being done. measures: whether tiles' speeds are measured here, or taken from the machine. skews: whether
    the nest is skewed where tiles need that.
    """

    bound: BoundNest
    dependences: tuple[Dependence, ...]
    ranks: int
    placement: Placement
    arguments: Mapping[str, Any]
    report: Report
    machine: Machine
    measures: bool = True
    skews: bool = True

    @staticmethod
    def here(
        bound: BoundNest,
        dependences: Sequence[Dependence],
        ranks: int,
        ranks_a_node: int,
        ranks_on_cores: int,
        arguments: Mapping[str, Any],
        report: Report | None = None,
        network: Mapping[str, Link] | None = None,
    ) -> Decider:
        """For the machine that is at work; ranks_on_cores: how many share the cores of a node (Placement). network: the
        links between the nodes at work, by engine, where they are known (calibrate.networks).

        Raises RefusedError where its description makes no sense.
        """
        machine = machine_here()
        if network is not None:
            machine = replace(machine, links={**machine.links, "network": network})
        placement = Placement(ranks_a_node, machine.cores_a_node, ranks_on_cores)
        return Decider(bound, tuple(dependences), ranks, placement, arguments, report or _say_nothing, machine)

    @staticmethod
    def machine_and_placement(name: str | None) -> tuple[Machine, Placement]:
        """A file, or a cluster's name, None being this machine, with a rank on every core of its nodes. Raises as
        ``for_machine``."""
        machine = machine_here() if name is None else stored.find(name)
        return machine, Placement(machine.cores_a_node, machine.cores_a_node)

    @staticmethod
    def for_machine(
        bound: BoundNest,
        dependences: Sequence[Dependence],
        ranks: int,
        name: str | None,
        arguments: Mapping[str, Any],
        report: Report | None = None,
    ) -> Decider:
        """For a machine that need not be here: a file, or a cluster's name; None is this one.

        Raises RefusedError where there is no such machine or its description makes no sense.
        """
        machine, placement = Decider.machine_and_placement(name)
        found = tuple(dependences)
        return Decider(
            bound, found, ranks, placement, arguments, report or _say_nothing, machine, measures=name is None
        )

    def __call__(self, wishes: Wishes) -> Plan:
        """For the command line, where planning may take a moment.

        Raises RefusedError as make_plan does, and BuildError where tiles cannot be measured."""
        return self.decision(wishes).plan

    def for_call(self, wishes: Wishes, partition: Partition | None = None, worked: float = 0.0) -> Plan:
        """A plan for one call among others: by rules of thumb where the call is over before a plan would be made.

        worked: seconds that calls alike have taken so far. Inner forms are compared once those calls and this one together
        take as long as comparing, so that comparing never takes more than half of the time (the ski rental problem); what
        is remembered of them is looked up earlier.
        """
        plan = self._by_rules(wishes, partition)
        if plan.steps == 0 or self.bound.nest.is_sequential:
            return plan
        problem = Problem.of(plan, self.bound, self.machine, self.placement, wishes, partition)
        seconds = problem.work_seconds(EstimatedRates.of(self.bound, self.machine))
        if worked + seconds < WORTH_PLANNING_SECONDS:
            return plan
        inner = self._inner(plan, problem, may_measure=worked + seconds >= FORMS_SECONDS)
        if self.ranks == 1 or seconds < WORTH_PLANNING_SECONDS:
            return make_plan(self.bound, self.dependences, self.ranks, wishes, partition, inner=inner)
        return self._decision(wishes, partition, inner).plan

    def limited(self, plan: Plan) -> Plan:
        """The plan with what its tile takes at least, by the ceilings of the machine's cores, measured if it is here."""
        core = self.machine.core
        if plan.steps == 0 or self.bound.nest.is_sequential or not (core or self.measures):
            return plan
        try:
            core = core or core_here(say)
        except BuildError:  # as in _measure
            return plan
        bound, form = self._tiled[0], plan.inner.form
        joined = min(form.sweeps, sweeps_to_join(bound)) if plan.ranks == 1 else plan.joined
        measured = dict(plan.inner.measured).get(form, plan.tile_seconds)
        return replace(plan, limit=limit_of(bound, form, core, plan.partition.widest, joined, measured))

    def explained(self, plan: Plan) -> Plan:
        """The plan with notes on what keeps its tile from faster forms."""
        if plan.steps == 0 or self.bound.nest.is_sequential:
            return plan
        return replace(plan, notes=(*plan.notes, *notes_of_lanes(*self._tiled)))

    def _by_rules(self, wishes: Wishes, partition: Partition | None) -> Plan:
        plan = make_plan(self.bound, self.dependences, self.ranks, wishes, partition)
        if self.ranks > 1 or not crowded_arrays(self.bound.arrays, self.arguments):
            return plan
        sweeps = math.prod(high - low for low, high in self.bound.domain.box[: self.bound.nest.sweep_depth])
        return replace(plan, inner=choice_where_crowded(plan.inner, sweeps))

    def streaming(self, wishes: Wishes, streaming: StreamingWishes, on_disk: Mapping[str, tuple[int, ...]]) -> Plan:
        """A plan for arrays on disk (``streaming_plan``)."""
        return replace(self, skews=False)._streaming(wishes, streaming, on_disk)

    def _streaming(self, wishes: Wishes, streaming: StreamingWishes, on_disk: Mapping[str, tuple[int, ...]]) -> Plan:
        disk = DiskRates.of(self.machine.disk)
        plan_at = partial(
            streaming_plan,
            self.bound, self.dependences, self.ranks, self.placement.ranks_a_node, wishes, streaming, on_disk, disk,
        )  # fmt: skip
        plan = plan_at(self._known_speed())
        if plan.streaming is None or not self._may_measure:
            return plan
        points = plan.streaming.sweeps * math.prod(plan.partition.widest)
        seconds = points * EstimatedRates.of(self.bound, self.machine).value
        if seconds < WORTH_PLANNING_SECONDS:
            return plan
        inner = self._compared(plan.inner, _low_slab(self.bound, plan), seconds >= FORMS_SECONDS, joins=False)
        budget = min(PROBE_SECONDS, max(SHORTEST_PROBE_SECONDS, PROBE_SHARE * seconds)) / MOST_SLABS
        for _ in range(MOST_SLABS):
            slab = _slab(self.bound, plan)
            samples = self._measure(inner.form, [slab], budget, False)
            if slab not in samples:
                break
            plan = plan_at(samples[slab].seconds_per_point)
            if max(plan.tile, slab.tile) <= NEAR * min(plan.tile, slab.tile):
                break
        return replace(plan, inner=inner)

    def _known_speed(self) -> float:
        """Seconds a point, before anything is measured."""
        points = tuple(high - low for low, high in self.bound.domain.box[self.bound.nest.sweep_depth :])
        kernel = self._kernel(choice_by_rule(self.bound, self.dependences).form)
        if kernel is not None:
            return KernelRates(self.bound, kernel).seconds_per_point(Shape(points, 0, ROWS_TOGETHER))
        return EstimatedRates.of(self.bound, self.machine).value

    def decision(self, wishes: Wishes, partition: Partition | None = None) -> Decision:
        """The plan with what it was chosen from. partition: blocks that are given."""
        plan = self._by_rules(wishes, partition)
        if plan.steps == 0 or self.bound.nest.is_sequential:
            return Decision(plan)
        problem = Problem.of(plan, self.bound, self.machine, self.placement, wishes, partition)
        seconds = problem.work_seconds(EstimatedRates.of(self.bound, self.machine))
        inner = self._inner(plan, problem, may_measure=seconds >= WORTH_PLANNING_SECONDS)
        return self._decision(wishes, partition, inner)

    def _decision(self, wishes: Wishes, partition: Partition | None, inner: InnerChoice) -> Decision:
        return decide(
            self.bound,
            self.dependences,
            self.ranks,
            wishes,
            self.machine,
            self.placement,
            partial(self._measure, inner.form) if self._may_measure else None,
            partition,
            self._kernel(inner.form),
            self.report,
            inner,
        )

    def _inner(self, plan: Plan, problem: Problem, may_measure: bool) -> InnerChoice:
        """The inner form: as it was measured for blocks like these, or is measured now, or was measured for others."""
        by_rule = plan.inner
        if not self._may_measure or not by_rule.rivals:
            return by_rule
        joins = plan.ranks == 1 or plan.joined > 1
        return self._compared(by_rule, _probe_shape(problem, plan, self._form_prober(joins).forms), may_measure, joins)

    def _compared(self, by_rule: InnerChoice, shape: Shape, may_measure: bool, joins: bool) -> InnerChoice:
        if not self._may_measure or not by_rule.rivals:
            return by_rule
        prober = self._form_prober(joins)
        seconds = prober.known(shape)
        if not seconds and may_measure:
            self.report("comparing inner forms")
            try:
                seconds = prober.measure(shape, FORMS_PROBE_SECONDS)
            except BuildError:  # as in _measure
                return by_rule
        return choice_by_measurement(by_rule, seconds or prober.nearest(shape))

    def _measure(
        self, form: InnerForm, shapes: Sequence[Shape], budget_seconds: float, again: bool
    ) -> Mapping[Shape, Sample]:
        self.report("measuring tiles")
        if form not in self._probers:
            self._probers[form] = Prober(*self._tiled, self._together, self.arguments, say, form=form)
        try:
            return self._probers[form](shapes, budget_seconds, again)
        except BuildError:  # a plan can be had without a compiler; a run will say what is wrong with it
            return {}

    def _kernel(self, form: InnerForm) -> Kernel | None:
        if not self.machine.kernels or self.bound.domain.is_empty:
            return None
        return self.machine.kernels.get(kernel_key(*self._tiled, form))

    @cached_property
    def _probers(self) -> dict[InnerForm, Prober]:
        return {}

    def _form_prober(self, joins: bool) -> FormProber:
        if joins not in self._form_probers:
            self._form_probers[joins] = FormProber(
                *self._tiled, self._together, joins, self.ranks == 1, self.arguments, say
            )
        return self._form_probers[joins]

    @cached_property
    def _form_probers(self) -> dict[bool, FormProber]:
        return {}

    @property
    def _may_measure(self) -> bool:
        """Loops that go on until something holds may not come to an end on the values that tiles are measured with."""
        return self.measures and not self.bound.nest.has_open_loops

    @property
    def _together(self) -> int:
        return min(self.ranks, self.placement.ranks_on_cores, len(allowed_cpus()))

    @cached_property
    def _tiled(self) -> tuple[BoundNest, tuple[Dependence, ...]]:
        """The nest as it is cut into tiles: skewed, where that takes skewing."""
        if not self.skews:
            return self.bound, self.dependences
        skew = skew_on(self.bound, self.dependences, self.ranks)
        return skewed_nest(self.bound, skew), skewed_dependences(self.dependences, skew)


def _slab(bound: BoundNest, plan: Plan) -> Shape:
    """The slabs of a plan on one rank, in a block as large as the memory it has for them."""
    assert plan.streaming is not None
    assert plan.mapping is not None
    block = plan.partition.widest
    row_bytes = step_size(bound, Shape(block, plan.mapping, 1))[2] / block[plan.mapping]
    rows = min(block[plan.mapping], max(plan.tile, int(plan.streaming.memory / row_bytes)))
    return Shape((*block[: plan.mapping], rows, *block[plan.mapping + 1 :]), plan.mapping, plan.tile)


def _low_slab(bound: BoundNest, plan: Plan) -> Shape:
    """The same, low enough to compare inner forms on."""
    slab = _slab(bound, plan)
    row_points = math.prod(slab.step) // slab.tile
    return replace(slab, tile=min(slab.tile, max(ROWS_TOGETHER, FORMS_POINTS // row_points)))


def _probe_shape(problem: Problem, plan: Plan, forms: Sequence[InnerForm]) -> Shape:
    """The tiles to compare inner forms on: those of the plan, or parts of it where one rank has all in one tile, cut along the
    outermost loop of the form taken by rule, so that rows stay whole."""
    block = problem.block(Cut(plan.mapping, plan.partition.grid))
    if plan.mapping is None or plan.ranks > 1:
        return Shape(block, plan.mapping, plan.tile)
    outermost = plan.inner.form.order[0]
    wanted = FORMS_POINTS * block[outermost] // math.prod(block)
    shortest = {1: SHORTEST_RUN, 2: 2 * TRANSPOSED_LANES}.get(len(block), 1)
    if any(form.lanes_are_sweeps for form in forms) and len(block) in LANES_OF_SWEEPS_ITERATIONS:
        shortest = LANES_OF_SWEEPS_ITERATIONS[len(block)]
        all_bytes = sum(array.itemsize * math.prod(array.shape) for array in problem.bound.arrays)
        if len(block) == 3 and all_bytes > outer_cache_bytes():
            wanted = math.ceil(block[outermost] * min(1.0, BEYOND_CACHE * outer_cache_bytes() / all_bytes))
    return Shape(block, outermost, min(block[outermost], max(shortest, wanted)))
