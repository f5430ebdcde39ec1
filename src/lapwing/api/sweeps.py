"""Calls of a program's sweeps: all their regions run through one pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.calls.decide import machine_here
from lapwing.api.calls.planned import PlannedNest
from lapwing.api.program_run import WatchedCalls
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values, signature
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.memo import Memo
from lapwing.planner.costs import Placement
from lapwing.planner.phased import PhasedPlan, make_phased_plan
from lapwing.planner.phased_costs import compared
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.meeting import is_plain, share_memory
from lapwing.runtime.mpi import communicator
from lapwing.runtime.phased import PhasedOutcome, run_phases_on_ranks
from lapwing.runtime.phased_alone import PreparedPhases
from lapwing.runtime.tuning import place_of
from lapwing.tiling.phased import fusion

Results = Sequence[Mapping[str, Any]]  # of every phase by name


@dataclass(eq=False)
class SweepsCall:
    """One loop's sweeps, for the calls of a program. phases: the regions with that loop around them."""

    sweeps: Sweeps
    phases: tuple[PlannedNest, ...]
    _plans: Memo[PhasedPlan | None] = field(default_factory=Memo)
    _idle: Memo[PreparedPhases] = field(default_factory=Memo)  # by plan and layout, those that are not under way

    @property
    def name(self) -> str:
        return self.sweeps.name

    @property
    def written(self) -> frozenset[str]:
        return frozenset(name for phase in self.phases for name in phase.loops.written)

    def arguments(self, values: Sequence[Any]) -> dict[str, Any]:
        """The inputs by name, of what the driver passes."""
        return dict(zip(self.sweeps.inputs, values[:-1], strict=True))

    def not_done(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """What the driver is told where nothing has been done."""
        starts = (arguments[start] for start in self.sweeps.outputs.values())
        return (False, *(arguments[n] for n in self.sweeps.exchanged), *starts)

    def done(
        self, arguments: Mapping[str, Any], over: range, plans: Sequence[PhasedPlan], results: Sequence[Results]
    ) -> tuple[Any, ...]:
        """What the driver is told where all has been done: the arrays that change places, as they are named after all iterations,
        and reductions. results: of every plan."""
        arrays = [arguments[array] for array in self.sweeps.exchanged_after(len(over)).values()]
        found = {n: arguments[start] for n, start in self.sweeps.outputs.items()}
        for plan, of_phases in zip(plans, results, strict=True):
            for bound, of_phase in zip(plan.distribution.phased.phases, of_phases, strict=True):
                found |= {n: of_phase[n] for n in bound.nest.returns}
        return (True, *arrays, *found.values())

    def fused_runs(self, arguments: Mapping[str, Any], over: range, wishes: PlannedNest) -> list[PhasedPlan] | None:
        """The plans for this process alone where phases are fused, so that running them in their own order takes longer; else
        None."""
        sizes = [values.nbytes for values in arguments.values() if isinstance(values, np.ndarray)]
        if sum(sizes) <= fusion.cached_bytes() or not self._fit(arguments):
            return None
        plans = self.runs(arguments, over, None, wishes)
        return plans if plans is not None and any(plan.fusion is not None for plan in plans) else None

    def _fit(self, arguments: Mapping[str, Any]) -> bool:
        """Whether arrays are as what was made of statements on whole ones wants them."""

        def kind(name: str) -> Any:
            return getattr(arguments[name], "shape", None), getattr(arguments[name], "dtype", None)

        edges = (getattr(arguments[name], "shape", (0,)) for name in self.sweeps.edges)
        return all(kind(one) == kind(other) for one, other in self.sweeps.alike) and not any(0 in s for s in edges)

    def runs(
        self, arguments: Mapping[str, Any], over: range, comm: Any | None, wishes: PlannedNest
    ) -> list[PhasedPlan] | None:
        """The plans to be carried out one after the other; None where the phases do not fit these arguments, or are faster one by
        one. Collective over comm, None for this process alone."""
        if comm is None and not self.sweeps.is_loop:
            return None  # there is nobody to wait for between one nest and the next
        own = {n: v for n, v in arguments.items() if n not in self.sweeps.copies}
        arrays = [v for v in own.values() if is_plain(v) or isinstance(v, DistributedArray)]
        if any(_have_common_elements(one, other) for one, other in itertools.combinations(arrays, 2)):
            return None
        return self._in_turn(arguments, over, lambda given, phases: self._plan(given, phases, comm, wishes))

    def expected_runs(
        self, arguments: Mapping[str, Any], over: range, ranks: int, wishes: PlannedNest
    ) -> list[PhasedPlan] | None:
        """The same for so many ranks that are not there; arrays may be shapes."""

        def plan(given: Mapping[str, Any], phases: Sequence[PlannedNest]) -> PhasedPlan | None:
            found = self._new_plan(given, global_values(self.phases[0].python), phases, ranks, wishes)
            return found if found is not None and (found.ranks > 1 or ranks == 1) else None

        return self._in_turn(arguments, over, plan)

    def _in_turn(
        self,
        arguments: Mapping[str, Any],
        over: range,
        plan: Callable[[Mapping[str, Any], Sequence[PlannedNest]], PhasedPlan | None],
    ) -> list[PhasedPlan] | None:
        runs = [(arguments, self.phases)]
        if self.sweeps.exchanged:
            whole, left = divmod(len(over), len(self.sweeps.orders))
            counted = ((whole, self.phases), (int(left > 0), self.phases[: self.sweeps.phases_of(left)]))
            runs = [({**arguments, self.sweeps.iterations: count}, phases) for count, phases in counted if count]
        found = [plan(given, phases) for given, phases in runs]
        plans = [one for one in found if one is not None]
        return plans if len(plans) == len(found) else None

    def _plan(
        self, arguments: Mapping[str, Any], phases: Sequence[PlannedNest], comm: Any | None, wishes: PlannedNest
    ) -> PhasedPlan | None:
        surroundings = global_values(self.phases[0].python)
        ranks = 1 if comm is None else comm.Get_size()
        key = (len(phases), ranks, wishes.engine, wishes.tile, signature(arguments, surroundings))
        if key not in self._plans:
            plan = self._new_plan(arguments, surroundings, phases, ranks, wishes)
            self._plans.keep(key, plan if plan is None or comm is None or _pays(plan, comm) else None)
        return self._plans[key]

    def _new_plan(
        self,
        arguments: Mapping[str, Any],
        surroundings: Mapping[str, Any],
        phases: Sequence[PlannedNest],
        ranks: int,
        wishes: PlannedNest,
    ) -> PhasedPlan | None:
        try:
            bound: list[BoundNest] = []
            for phase in phases:
                own = {name: arguments[name] for name in phase.loops.parameters}
                bound.append(phase.bind(own, {**surroundings, **global_values(phase.python)}))
            bound = [one for one in bound if not one.domain.is_empty]
            if not bound:
                return None
            phased = PhasedNest(self.name, tuple(bound))
            return make_phased_plan(phased, ranks, wishes.engine, None, wishes.tile)
        except RefusedError:
            return None

    # -- running ---------------------------------------------------------------------------------------------------------

    def alone(self, wishes: PlannedNest, watched: WatchedCalls | None = None) -> Callable[..., Any]:
        """What the driver calls in one process; its ``fuses`` says whether phases would be fused. watched: told of every run."""

        def call(*values: Any) -> tuple[Any, ...]:
            arguments, over = self.arguments(values), values[-1]
            if self.sweeps.is_rewritten:
                plans = self.fused_runs(arguments, over, wishes)
            else:
                plans = self.runs(arguments, over, None, wishes)
            if plans is None:
                return self.not_done(arguments)
            given = {**arguments, **{name: np.empty_like(arguments[name]) for name in self.sweeps.copies}}
            return self.done(arguments, over, plans, [self._run_alone(plan, given, watched) for plan in plans])

        def fuses(*values: Any) -> bool:
            return self.fused_runs(self.arguments(values), values[-1], wishes) is not None

        call.fuses = fuses  # type: ignore[attr-defined]
        return call

    def _run_alone(self, plan: PhasedPlan, arguments: Mapping[str, Any], watched: WatchedCalls | None) -> Results:
        """What every phase gives. Prepared once for arrays of one layout; two threads never share what is prepared."""
        arrays = {a.name: arguments[a.name] for a in plan.distribution.phased.arrays}
        key = (id(plan), *(values.strides for values in arrays.values()))
        prepared = self._idle.pop(key, None) or PreparedPhases(plan, arrays, communicator.announcer(True))
        if watched is None:
            results = prepared.run(arrays)
        else:
            run = partial(prepared.run_observed, arrays)
            results = self._watched(run, plan, arguments, watched, True).results
        if prepared.is_small:  # it holds the plan, so nothing else has its identity
            self._idle.keep(key, prepared)
        return results

    def on_ranks(
        self, wishes: PlannedNest, coherence: Any, comm: Any, watched: WatchedCalls | None = None
    ) -> Callable[..., Any]:
        """What the driver calls on every rank of comm. watched: told of every run."""

        def call(*values: Any) -> tuple[Any, ...]:
            arguments, over = self.arguments(values), values[-1]
            plans = self.runs(arguments, over, comm, wishes)
            if plans is None:
                return self.not_done(arguments)
            results = []
            for plan in plans:
                parts: dict[str, Any] = coherence.parts(arguments, self.written)
                sources = {a.name: parts[a.name] for a in plan.distribution.phased.arrays}
                assert all(isinstance(s, np.ndarray | DistributedArray) for s in sources.values())
                announce = communicator.announcer(comm.Get_rank() == 0)
                place = place_of(comm)
                run = partial(run_phases_on_ranks, plan, sources, {}, comm, place, announce, tuning=wishes.tuning)
                results.append(self._watched(run, plan, arguments, watched, comm.Get_rank() == 0).results)
            return self.done(arguments, over, plans, results)

        return call

    def _watched(
        self,
        run: Callable[..., PhasedOutcome],
        plan: PhasedPlan,
        arguments: Mapping[str, Any],
        watched: WatchedCalls | None,
        reports: bool,
    ) -> PhasedOutcome:
        """A run, of which is told whoever watches. reports: whether this rank says how far it has come."""
        if watched is None:
            return run()
        # What tells a run from those that send other messages.
        sweeps = plan.distribution.phased.sweeps
        alike = {**arguments, "number of phases": len(plan.tilings), "number of sweeps": sweeps}
        report = watched.report(self.name) if reports else None
        outcome = run(report=report, measure=watched.measure(self.name, alike))
        watched.note_sweeps(self.name, alike, outcome)
        return outcome


def _have_common_elements(one: Any, other: Any) -> bool:
    return share_memory(one, other) if is_plain(one) and is_plain(other) else one is other


def _pays(plan: PhasedPlan, comm: Any) -> bool:
    """Whether phases are predicted to be done sooner through one pipeline than one by one. Collective: the first rank decides."""
    place = place_of(comm)
    found = None
    if comm.Get_rank() == 0:
        try:
            seconds = compared(plan, machine_here(), Placement(place.ranks, place.all_cpus))
            found = seconds.together <= seconds.apart
        except RefusedError:
            found = plan.ranks > 1
    return bool(comm.bcast(found, root=0))
