"""What a run of a program should take on a machine that need not be here: its regions in sequence, each on the exact timeline.

Python's own statements between them take no time here, and neither does bringing arrays from one distribution to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lapwing.api.calls.decide import Decider
from lapwing.api.calls.planned import PlannedNest
from lapwing.api.sweeps import SweepsCall
from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import global_values
from lapwing.loopnest.outside import ALWAYS_KNOWN
from lapwing.loopnest.program.expected_values import expected_calls
from lapwing.loopnest.program.program import Program
from lapwing.machine.machine import Machine
from lapwing.planner.costs import Placement
from lapwing.planner.phased import PhasedPlan
from lapwing.planner.phased_costs import pipeline_of_phases
from lapwing.planner.plan import Plan
from lapwing.planner.prediction import Prediction, predict, predict_phases
from lapwing.planner.rates import EstimatedRates
from lapwing.schedule.timeline import completion_seconds


@dataclass(frozen=True)
class Part:
    """A region, or the regions of a loop that run through one pipeline. prediction: of one of its calls."""

    name: str
    line: int
    calls: int
    plan: Plan | PhasedPlan
    prediction: Prediction

    @property
    def seconds(self) -> float:
        """Of all calls."""
        return self.calls * self.prediction.seconds


@dataclass(frozen=True)
class ProgramForecast:
    """parts: in the order of the text. unknown: texts on regions that are not among them. uncounted: the headings of loops of
    which it is not known how often they go round."""

    machine: Machine
    parts: tuple[Part, ...]
    unknown: tuple[str, ...]
    uncounted: tuple[str, ...]

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    def total(self, name: str) -> float:
        """The sum of one of a prediction's parts over all calls."""
        return sum(part.calls * float(getattr(part.prediction, name)) for part in self.parts)


def forecast(
    nest: PlannedNest,
    program: Program,
    regions: Sequence[Any],
    sweeps: Sequence[SweepsCall],
    arguments: Mapping[str, Any],
    ranks: int,
    machine: str | None,
    iterations: int,
) -> ProgramForecast:
    """regions: with the choices of the call. machine: a file, or a cluster's name; None is this one. iterations: how often loops
    go round of which that is not known. Raises RefusedError as planning does."""
    known = {**ALWAYS_KNOWN, **global_values(nest.python), **arguments}
    expected = expected_calls(program.source.tree.body, program.regions, program.sweeps, known, iterations)
    named = Decider.machine_and_placement(machine)
    parts: list[Part] = []
    unknown: list[str] = []
    in_pipelines: set[int] = set()
    for loop in sweeps:
        if loop.name in expected.sweeps:
            values, over = expected.sweeps[loop.name]
            if (plans := loop.expected_runs(values, over, ranks, nest)) is not None:
                line = loop.sweeps.line
                parts += [
                    Part(loop.name, line, expected.calls[loop.name], plan, _of_phases(plan, *named)) for plan in plans
                ]
                in_pipelines |= {phase.loops.line for phase in loop.phases}
    for region in regions:
        if region.loops.line in in_pipelines:
            continue
        calls, values_or_why = expected.calls.get(region.name, 0), expected.inputs.get(region.name, "an argument")
        found = _of_region(region, values_or_why, ranks, machine)
        if isinstance(found, str):
            unknown.append(f"{region.where}: {region.name}: {found}")
        elif found is not None:
            parts.append(Part(region.name, region.loops.line, calls, *found))
    unknown += [f"{program.source.file}:{loop.line}: {loop.text} is run by Python" for loop in program.interpreted]
    parts.sort(key=lambda part: part.line)
    return ProgramForecast(named[0], tuple(parts), tuple(unknown), expected.uncounted)


def _of_region(
    region: Any, values: list[Any] | str, ranks: int, machine: str | None
) -> tuple[Plan, Prediction] | str | None:
    """A region's plan and what a call takes; or what keeps that from being known. None where there is nothing to do."""
    if isinstance(values, str):
        return f"{values} is not known before it runs"
    given = dict(zip(region.loops.parameters, values, strict=True))
    try:
        region = region.for_arguments(given)
    except RefusedError:
        if region.may_be_interpreted:
            return "run by Python"
        raise
    if region.loops.is_sequential:
        return "loops in their own order on one rank, which no model times"
    bound = region.bind(given)
    if bound.domain.is_empty:
        return None
    decide = Decider.for_machine(bound, region.dependences, ranks, machine, given)
    plan = replace(decide, measures=False)(region.wishes())  # of arrays there are only shapes
    assert plan.pipeline is not None
    return plan, predict(plan.pipeline, completion=completion_seconds)


def _of_phases(plan: PhasedPlan, machine: Machine, placement: Placement) -> Prediction:
    rates = [EstimatedRates.of(bound, machine).value for bound in plan.distribution.phased.phases]
    return predict_phases(pipeline_of_phases(plan, machine, rates, placement))
