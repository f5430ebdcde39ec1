"""Calls of a program's sweeps: all their regions run through one pipeline."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.planned import PlannedNest
from lapwing.api.program_run import WatchedCalls
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values, signature
from lapwing.loopnest.binding.phased_nest import PhasedNest
from lapwing.loopnest.program.sweeps import Sweeps
from lapwing.memo import Memo
from lapwing.planner.phased import PhasedPlan, make_phased_plan
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.meeting import is_plain, share_memory
from lapwing.runtime.mpi import communicator
from lapwing.runtime.phased import run_phases_alone, run_phases_on_ranks
from lapwing.runtime.tuning import place_of


@dataclass(eq=False)
class SweepsCall:
    """One loop's sweeps, for the calls of a program. phases: the regions with that loop around them."""

    sweeps: Sweeps
    phases: tuple[PlannedNest, ...]
    _plans: Memo[PhasedPlan | None] = field(default_factory=Memo)

    @property
    def name(self) -> str:
        return self.sweeps.name

    @property
    def written(self) -> frozenset[str]:
        return frozenset(name for phase in self.phases for name in phase.loops.written)

    def arguments(self, values: Sequence[Any]) -> dict[str, Any]:
        """The inputs by name, of what the driver passes."""
        return dict(zip(self.sweeps.inputs, values[:-1], strict=True))

    def exchanged(self, arguments: Mapping[str, Any], over: range) -> tuple[Any, ...]:
        """The arrays that change places, as they are named after all iterations."""
        names = self.sweeps.exchanged
        return tuple(arguments[n] for n in (names[::-1] if len(over) % 2 else names))

    def runs(
        self, arguments: Mapping[str, Any], over: range, ranks: int, wishes: PlannedNest
    ) -> list[PhasedPlan] | None:
        """The plans to be carried out one after the other; None where the phases do not fit these arguments."""
        arrays = [(n, v) for n, v in arguments.items() if is_plain(v)]
        if any(share_memory(one, other) for (_, one), (_, other) in itertools.combinations(arrays, 2)):
            return None
        if not self.sweeps.exchanged:
            plan = self._plan(arguments, self.phases, ranks, wishes)
            return None if plan is None else [plan]
        found: list[PhasedPlan] = []
        pairs, left = divmod(len(over), 2)
        for count, phases in ((pairs, self.phases), (left, self.phases[: self.sweeps.half])):
            if count:
                plan = self._plan({**arguments, self.sweeps.iterations: count}, phases, ranks, wishes)
                if plan is None:
                    return None
                found.append(plan)
        return found

    def _plan(
        self, arguments: Mapping[str, Any], phases: Sequence[PlannedNest], ranks: int, wishes: PlannedNest
    ) -> PhasedPlan | None:
        surroundings = global_values(self.phases[0].python)
        key = (len(phases), ranks, wishes.engine, wishes.tile, signature(arguments, surroundings))
        if key not in self._plans:
            self._plans.keep(key, self._new_plan(arguments, surroundings, phases, ranks, wishes))
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
            plan = make_phased_plan(phased, ranks, wishes.engine, None, wishes.tile)
        except RefusedError:
            return None
        return plan if plan.ranks > 1 or ranks == 1 else None

    # -- running ---------------------------------------------------------------------------------------------------------

    def alone(self, wishes: PlannedNest, watched: WatchedCalls | None = None) -> Callable[..., Any]:
        """What the driver calls in one process. watched: told of every run."""

        def call(*values: Any) -> tuple[Any, ...]:
            arguments, over = self.arguments(values), values[-1]
            plans = self.runs(arguments, over, 1, wishes)
            if plans is None:
                return (False, *(arguments[n] for n in self.sweeps.exchanged))
            for plan in plans:
                arrays = {a.name: arguments[a.name] for a in plan.distribution.phased.arrays}
                announce = communicator.announcer(True)
                if watched is None:
                    run_phases_alone(plan, arrays, announce)
                    continue
                alike = _alike(plan, arguments)
                report, measure = watched.report(self.name), watched.measure(self.name, alike)
                watched.note_sweeps(self.name, alike, run_phases_alone(plan, arrays, announce, report, measure))
            return (True, *self.exchanged(arguments, over))

        return call

    def on_ranks(
        self, wishes: PlannedNest, coherence: Any, comm: Any, watched: WatchedCalls | None = None
    ) -> Callable[..., Any]:
        """What the driver calls on every rank of comm. watched: told of every run."""

        def call(*values: Any) -> tuple[Any, ...]:
            arguments, over = self.arguments(values), values[-1]
            plans = self.runs(arguments, over, comm.Get_size(), wishes)
            if plans is None:
                return (False, *(arguments[n] for n in self.sweeps.exchanged))
            for plan in plans:
                parts: dict[str, Any] = coherence.parts(arguments, self.written)
                sources = {a.name: parts[a.name] for a in plan.distribution.phased.arrays}
                assert all(isinstance(s, np.ndarray | DistributedArray) for s in sources.values())
                announce = communicator.announcer(comm.Get_rank() == 0)
                run = partial(run_phases_on_ranks, plan, sources, {}, comm, place_of(comm), announce)
                if watched is None:
                    run(tuning=wishes.tuning)
                    continue
                alike = _alike(plan, arguments)
                report = watched.report(self.name) if comm.Get_rank() == 0 else None
                outcome = run(report=report, measure=watched.measure(self.name, alike), tuning=wishes.tuning)
                watched.note_sweeps(self.name, alike, outcome)
            return (True, *self.exchanged(arguments, over))

        return call


def _alike(plan: PhasedPlan, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What tells a run from those that send other messages."""
    return {**arguments, "number of phases": len(plan.tilings), "number of sweeps": plan.distribution.phased.sweeps}
