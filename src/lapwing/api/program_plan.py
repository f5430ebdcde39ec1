"""How a program would run: its regions, each with its plan where its arguments can be foreseen, and what Python runs."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.api.calls.planned import PlannedNest
from lapwing.api.lookahead import LookaheadCall
from lapwing.api.sweeps import SweepsCall
from lapwing.display import show_picture
from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import global_values
from lapwing.loopnest.dependences import Dependence, distance_vectors
from lapwing.loopnest.outside import ALWAYS_KNOWN
from lapwing.loopnest.program.expected_values import ExpectedCalls, expected_calls
from lapwing.loopnest.program.program import Program
from lapwing.loopnest.program.regions import Interpreted
from lapwing.planner.phased import PhasedPlan
from lapwing.planner.plan import Plan
from lapwing.tiling.picture import stacked

PlanRegion = Callable[[Any, Mapping[str, Any]], Plan]


@dataclass(frozen=True)
class RegionPlan:
    """plan: None where an argument is not known before the program runs; unknown is that expression then. why_in_order: what
    keeps the loops of a sequential region from being cut into tiles. ahead: how many sweeps may be done at once before the tests
    of the loop around it; 0 where none are."""

    loops: ir.LoopNest
    dependences: tuple[Dependence, ...]
    plan: Plan | None
    unknown: str | None
    why_in_order: tuple[str, ...]
    ahead: int = 0

    def __str__(self) -> str:
        if self.loops.is_sequential:
            lines = [f"{self.loops.where(self.loops.line)}: loops in their own order on one rank"]
            return "\n".join([*lines, *(f"  because      {reason}" for reason in self.why_in_order)])
        lines = [f"{self.loops.where(self.loops.line)}: loops {', '.join(self.loops.loop_names)}"]
        if self.plan is not None:
            lines += str(self.plan).splitlines()
        else:
            vectors = " ".join(str(list(v)) for v in distance_vectors(self.dependences)) or "none"
            lines += [f"{self.loops.name}: planned when it runs, since {self.unknown} is not known before"]
            lines += [f"  dependences  {vectors}"]
        if self.ahead:
            lines += [f"  ahead        up to {self.ahead} sweeps at once, before the tests of the loop around it"]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.loops.name,
            "line": self.loops.line,
            "loops": [] if self.loops.is_sequential else list(self.loops.loop_names),
            "dependences": [list(v) for v in distance_vectors(self.dependences)],
            "plan": None if self.plan is None else self.plan.to_json(),
            "ahead": self.ahead,
        }


@dataclass(frozen=True)
class PipelinePlan:
    """Regions of a loop that run through one pipeline where their arguments are as foreseen. plan: where several runs follow each
    other, of the first one."""

    line: int
    regions: tuple[str, ...]
    plan: PhasedPlan

    def __str__(self) -> str:
        what = f"the loop around {', '.join(self.regions)} is one pipeline"
        return "\n".join([f"line {self.line}: {what}", *str(self.plan).splitlines()])

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.plan.name,
            "line": self.line,
            "regions": list(self.regions),
            "engine": self.plan.engine,
            "grid": list(self.plan.grid),
            "tiles": [tiling.tile for tiling in self.plan.tilings],
        }


@dataclass(frozen=True)
class ProgramPlan:
    """Printing it explains it."""

    name: str
    kind: str
    file: str
    ranks: int
    regions: tuple[RegionPlan, ...]
    interpreted: tuple[Interpreted, ...]
    pipelines: tuple[PipelinePlan, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.kind} on {_ranks(self.ranks)}"]
        lines += [textwrap.indent(str(pipeline), "  ") for pipeline in self.pipelines]
        lines += [textwrap.indent(str(region), "  ") for region in self.regions]
        lines += [f"  {line}" for loop in self.interpreted for line in interpreted_texts(self.file, loop)]
        return "\n".join(lines)

    def show(self, path: str | Path | None = None) -> Path | None:
        """The pictures of its regions that are planned, one below the other; see Plan.show. Raises as that does."""
        planned = [region.plan.picture() for region in self.regions if region.plan is not None]
        return show_picture(stacked(planned), f"plan of {self.name}", path, f"{self.name}-plan.svg")

    def __repr__(self) -> str:
        return f"<plan of program {self.name}: {', '.join(region.loops.name for region in self.regions)}>"

    def _repr_html_(self) -> str:
        """For notebooks: a line for every region."""
        rows = []
        for region in self.regions:
            short = f"planned when it runs: {region.unknown} is not known before"
            rows.append((region.loops.name, short if region.plan is None else region.plan.in_short().strip()))
        return table(str(self).splitlines()[0], rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "nest": self.name,
            "ranks": self.ranks,
            "regions": [region.to_json() for region in self.regions],
            "pipelines": [pipeline.to_json() for pipeline in self.pipelines],
            "interpreted": [
                {"line": loop.line, "why": [str(reason) for reason in loop.why]} for loop in self.interpreted
            ],
        }


def plan_program(
    nest: PlannedNest,
    program: Program,
    regions: Sequence[Any],
    sweeps: Sequence[SweepsCall],
    arguments: Mapping[str, Any],
    ranks: int,
    plan_region: PlanRegion,
    lookaheads: Sequence[LookaheadCall] = (),
) -> ProgramPlan:
    """sweeps: the loops whose regions may run through one pipeline. plan_region: the plan of a region with these arguments,
    arrays as ArrayShape. lookaheads: loops whose sweeps may be done ahead. Raises RefusedError as plan_region does."""
    known = {**ALWAYS_KNOWN, **global_values(nest.python), **arguments}
    expected = expected_calls(program.source.tree.body, program.regions, program.sweeps, known)
    inputs = expected.inputs
    planned = []
    for region in regions:
        values = inputs.get(region.name, "an argument")
        plan, unknown = None, values if isinstance(values, str) else None
        given: dict[str, Any] = {}
        if not isinstance(values, str):
            given = dict(zip(region.loops.parameters, values, strict=True))
            try:
                if (as_arrays := region.with_arrays(tuple(values), {})) is not None:
                    region, given = as_arrays
                region = region.for_arguments(given)
                plan = plan_region(region, given)
            except RefusedError as refused:
                if not region.may_be_interpreted:
                    raise
                unknown = f"Python runs it: {refused}"
        ahead = 0
        if plan is not None and ranks == 1 and not nest.is_cut_by_hand:
            ahead = max(
                (one.expected_sweeps(given) for one in lookaheads if one.lookahead.region_name == region.name),
                default=0,
            )
        planned.append(RegionPlan(region.loops, region.dependences, plan, unknown, region.why_in_order, ahead))
    pipelines = tuple(_pipelines(sweeps, expected, regions, ranks, nest))
    return ProgramPlan(
        nest.name, str(program), program.source.file, ranks, tuple(planned), program.interpreted, pipelines
    )


def _pipelines(
    sweeps: Sequence[SweepsCall], expected: ExpectedCalls, regions: Sequence[Any], ranks: int, nest: PlannedNest
) -> Iterator[PipelinePlan]:
    for loop in sweeps:
        if loop.name not in expected.sweeps:
            continue
        values, over = expected.sweeps[loop.name]
        if plans := loop.expected_runs(values, over, ranks, nest):
            lines = {phase.loops.line for phase in loop.phases}
            names = tuple(region.name for region in regions if region.loops.line in lines)
            yield PipelinePlan(loop.sweeps.line, names, plans[0])


def interpreted_texts(file: str, loop: Interpreted) -> list[str]:
    """What is said of a loop that Python runs, and why it does."""
    said = f"{file}:{loop.line}: {loop.text} is run by Python, one iteration after the other, since it is no nest"
    return [f"{said}{':' if loop.why else '.'}", *(f"  {reason}" for reason in loop.why)]


def _ranks(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"
