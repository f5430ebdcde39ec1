"""What one `lapwing run` does: alone in this process, or collectively on every rank of an MPI run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.calls.decide import Decider
from lapwing.api.calls.out_of_core import Ending, check_different, out_of_core_plan, stored_arrays
from lapwing.api.calls.run import (
    agree_on_problem,
    arrays_of_first,
    bind_stand_ins,
    check_aliases,
    check_same_arrays,
    run,
    stand_ins,
)
from lapwing.api.check import Reference, array_differences, make_reference, number_differences
from lapwing.api.nest import Nest
from lapwing.calibrate.networks import network_of
from lapwing.errors import RefusedError, RunError
from lapwing.launch.job import Emit, Job, Report, stopped_text
from lapwing.launch.loading import problem_arguments
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.loopnest.dependences import distance_vectors
from lapwing.machine.machine import Link
from lapwing.planner.choose import grids
from lapwing.planner.costs import Placement
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.creation import agree_on_created, created_by, whole_arrays
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.execute import Measure, Outcome, foreseen_run
from lapwing.runtime.mpi import communicator
from lapwing.runtime.tuning import Tuning, helper_cpus, place_of
from lapwing.scratch_arrays import copy_of
from lapwing.session.drawing import FEWEST_EVENTS, MOST_EVENTS, write_timeline
from lapwing.session.first_rank import from_first, on_first
from lapwing.session.numbers import json_number
from lapwing.session.programs import run_program
from lapwing.session.spilling import spilled
from lapwing.session.together import RunsTogether
from lapwing.store.array import StoredArray
from lapwing.store.opening import open as open_stored
from lapwing.trace.interference import warning
from lapwing.trace.metrics import Metrics, metrics
from lapwing.trace.timeline import MAX_EVENTS


def run_session(job: Job, nest: Nest, comm: Any | None, emit: Emit) -> Report | None:
    """Run every engine on every grid ``job.repeat`` times, in turns, each time on a fresh copy of the problem's arrays.

    comm: the ranks (mpi4py), each of which calls this; None for this process alone. The report is given on the first
    rank, None elsewhere. ``emit`` is called on the first rank only.
    Raises LapwingError, on every rank the same; an error in mid-run ends all ranks.
    """
    if nest.program is not None:
        return run_program(job, nest, _arguments(job, nest, comm), comm, emit)
    places = _places(comm)
    network = None if comm is None else network_of(comm, partial(_report_progress, emit, "measuring the network"))
    given = _arguments(job, nest, comm)
    wished = nest.using(memory=job.memory, pass_sweeps=job.pass_sweeps, ring=job.ring, engine=_first(job.engines))
    writing = partial(_report_progress, emit)
    with spilled(wished, given, comm, places, job.scratch, writing) as arguments:
        if job.resume and not from_first(comm, lambda: bool(stored_arrays(given))):
            raise RefusedError(
                "--resume: the problem has no array on disk, so that there is no earlier run to go on from. Let the problem "
                "return lw.open(PATH)."
            )
        return _run_all(job, nest, _in_memory(job, arguments, comm), places, network, comm, emit)


def _first(engines: Sequence[Any]) -> Any:
    return engines[0] if engines else None


def _run_all(
    job: Job,
    nest: Nest,
    arguments: dict[str, Any],
    places: tuple[int, int, int],
    network: Mapping[str, Link] | None,
    comm: Any | None,
    emit: Emit,
) -> Report | None:
    bench = on_first(comm, lambda: _Bench.prepare(job, nest, arguments, places, network, emit))
    variants = _variants(job, nest, from_first(comm, lambda: bench.grids))
    measure = _measure(job, len(variants), comm)
    on_disk = bool(stored_arrays(arguments))
    together = None if comm is None or on_disk else _together(nest, bench, arguments, comm)
    for repetition in range(job.repeat):
        for position, variant in enumerate(variants):
            label = "" if bench is None else bench.label(position)
            label += "" if job.repeat == 1 else f", run {repetition + 1} of {job.repeat}"
            report = partial(_report_progress, emit, label)
            last = repetition == job.repeat - 1 and position == len(variants) - 1
            if on_disk:
                plan = None if bench is None else bench.plans[position]
                action = partial(_run_on_disk, bench, variant, arguments, report, measure, plan, last)
                outcome, found = _run(bench, action)
            elif together is None:
                outcome, found = _run(bench, lambda: bench.run(position, report, measure))  # noqa: B023
            else:
                outcome, found = _run(bench, lambda: together.run(position, variant.tuning, report, measure))  # noqa: B023
            if bench is not None:
                bench.record(position, outcome, found)
    if job.timeline is not None:
        on_first(comm, partial(_Bench.draw, bench, job.timeline, emit))
    return bench.report() if bench is not None else None


def _run_on_disk(
    bench: _Bench | None,
    variant: Nest,
    arguments: Mapping[str, Any],
    report: Callable[[float], None],
    measure: Measure,
    plan: Plan | None,
    last: bool,
) -> tuple[Outcome, list[str]]:
    """Run a variant on arrays on disk, which stay as they are but for the last run; what differs of its arrays."""
    found: list[str] = []
    reference = None if bench is None else bench.finished

    def examine(arrays: Mapping[str, Any]) -> None:
        assert reference is not None
        found.extend(array_differences(reference, {**arguments, **arrays}))

    ending = Ending(keep=last, examine=None if reference is None else examine)
    return run(variant, arguments, report, measure, plan, ending=ending), found


def _arguments(job: Job, nest: Nest, comm: Any | None) -> dict[str, Any]:
    """What the problem gives: on the first rank alone, or on all ranks where it creates distributed arrays. Collective."""
    if comm is None:
        return problem_arguments(nest, job.settings)
    first = comm.Get_rank() == 0
    known = on_first(comm, lambda: created_by(lambda: problem_arguments(nest, job.settings)))
    if from_first(comm, lambda: len(known[1])):
        arguments, arrays = communicator.agree(
            comm, lambda: known if first else created_by(lambda: problem_arguments(nest, job.settings))
        )
        agree_on_created(arrays, arguments, f"the problem of {nest.name}", comm)
    else:
        arguments = known[0] if first else {}
    paths = from_first(comm, lambda: {name: array.path for name, array in stored_arrays(arguments).items()})
    opened = communicator.agree(
        comm, lambda: {name: open_stored(path) for name, path in paths.items() if name not in arguments}
    )
    if first:
        return arguments
    shared = {n: v for n, v in arguments.items() if isinstance(v, DistributedArray) and v.comm is not None}
    return {**opened, **stored_arrays(arguments), **shared}


def _in_memory(job: Job, arguments: dict[str, Any], comm: Any | None) -> dict[str, Any]:
    """The arguments with arrays that are whole on the first rank where nothing speaks for others. Collective."""
    if comm is None or job.check:  # the plain loop takes whole arrays
        arguments = whole_arrays(arguments)
    shared = {n: v for n, v in arguments.items() if isinstance(v, DistributedArray) and v.comm is not None}
    stored = stored_arrays(arguments)
    if comm is not None and comm.Get_rank() > 0:
        return shared | stored
    return whole_arrays({n: v for n, v in arguments.items() if n not in shared}) | shared


def _grids(job: Job, nest: Nest, bound: BoundNest, ranks: int) -> list[tuple[int, ...] | None]:
    """The process grids asked for; None is the nest's own choice."""
    return [*grids(bound, bound.analysis.dependences, ranks)] if job.grid == "all" else [job.grid]


def _variants(job: Job, nest: Nest, grids: Sequence[tuple[int, ...] | None]) -> list[Nest]:
    """The nest on each of the grids with each engine asked for; no engine is the planner's choice."""
    tuning = Tuning(helper_cpu=helper_cpus(job.helper_cpu))
    engines = job.engines or (nest.engine,)
    wished = nest.using(
        tile=job.tile,
        tuning=tuning,
        memory=job.memory,
        pass_sweeps=job.pass_sweeps,
        ring=job.ring,
        resume=job.resume,
    )
    return [wished.using(engine=e, grid=g) for g in grids for e in engines]


def _label(job: Job, plan: Plan) -> str:
    """What tells a variant from the others."""
    return f"{plan.engine} on {'x'.join(map(str, plan.grid))}" if job.grid == "all" else plan.engine


def _measure(job: Job, variants: int, comm: Any) -> Measure:
    ranks = 1 if comm is None else comm.Get_size()
    most = MOST_EVENTS if job.timeline is None else MAX_EVENTS // variants
    events = max(FEWEST_EVENTS, most // ranks)
    return Measure(transfer=ranks > 1, events=events)


def _places(comm: Any | None) -> tuple[int, int, int]:
    """How many ranks there are, how many share the first one's node, and how many its cores. Collective."""
    if comm is None:
        return 1, 1, 1
    places = (comm.Get_size(), len(communicator.ranks_of_node(comm)), place_of(comm).ranks)
    found: tuple[int, int, int] = comm.bcast(places, root=0)
    return found


def _report_planning(emit: Emit, what: str) -> None:
    emit("progress", [what, None])


def _report_progress(emit: Emit, label: str, done: float) -> None:
    emit("progress", [label, done])


def _together(nest: Nest, bench: _Bench | None, arguments: dict[str, Any], comm: Any) -> RunsTogether:
    """What the ranks need to know for their runs, from the first one. Collective."""
    agree_on_problem(nest, arguments, comm)
    known = None if bench is None else (stand_ins(nest, bench.bound, arguments), bench.plans)
    stubs, plans = comm.bcast(known, root=0)
    bound = bind_stand_ins(nest, stubs)
    sources = arrays_of_first(nest, bound, arguments, comm.Get_rank())
    reference = None if bench is None else bench.finished
    checks = comm.bcast(reference is not None, root=0)
    return RunsTogether(bound, plans, sources, reference, checks, comm)


def _run(bench: _Bench | None, action: Callable[[], tuple[Outcome, list[str]]]) -> tuple[Outcome, list[str]]:
    try:
        return action()
    except RunError as error:
        if bench is None or bench.reference is None or bench.reference.raises is None:
            raise
        raise RunError(stopped_text(str(error), bench.reference.raises)) from error


class _Bench:
    """The first rank's side of a session: the problem, the reference, and what the runs gave."""

    def __init__(
        self,
        job: Job,
        grids: list[tuple[int, ...] | None],
        variants: list[Nest],
        bound: BoundNest,
        arguments: dict[str, Any],
        plans: list[Plan],
        reference: Reference | None,
        placement: Placement,
    ) -> None:
        self.job, self.grids, self.variants, self.bound = job, grids, variants, bound
        self.arguments, self.plans, self.reference, self.placement = arguments, plans, reference, placement
        self.outcomes: list[list[Outcome]] = [[] for _ in variants]
        self.figures: list[list[Metrics]] = [[] for _ in variants]
        self.differences: list[list[str]] = [[] for _ in variants]
        self.runs_left = job.repeat * len(variants)

    @staticmethod
    def prepare(
        job: Job,
        nest: Nest,
        arguments: dict[str, Any],
        places: tuple[int, int, int],
        network: Mapping[str, Link] | None,
        emit: Emit,
    ) -> _Bench:
        nest = nest.for_arguments(arguments)
        bound = nest.bind(arguments)
        for array in bound.arrays:
            given = arguments.get(array.name)
            if given is not None and not isinstance(given, np.ndarray | DistributedArray | StoredArray):
                raise RefusedError(
                    f"the problem of {nest.name} gives {array.name} as {type(given).__name__}, expected a NumPy array."
                )
        check_aliases(bound, {**global_values(nest.python), **arguments})
        check_same_arrays(bound, {n: v for n, v in arguments.items() if isinstance(v, DistributedArray)})
        stored = stored_arrays(arguments)
        check_different(bound, stored)
        tried = _grids(job, nest, bound, places[0])
        variants = _variants(job, nest, tried)
        decide = Decider.here(
            bound, bound.analysis.dependences, *places, arguments, partial(_report_planning, emit), network
        )

        def planned(variant: Nest) -> Plan:
            return out_of_core_plan(variant, decide, stored) if stored else decide(variant.wishes())

        plans = [planned(variant) for variant in variants]
        # Of many grids the one that would be chosen stands for all.
        shown = [planned(variant) for variant in _variants(job, nest, [None])] if job.grid == "all" else plans
        for text in _plan_texts(shown):
            emit("plan", text)
        if job.grid == "all":
            emit("plan", f"  all grids    {', '.join('x'.join(map(str, grid or ())) for grid in tried)}, in turns")
        reference = None
        if job.check:
            emit("progress", ["the plain loop", None])
            whole = {n: v.numpy() if isinstance(v, StoredArray) else v for n, v in arguments.items()}
            reference = make_reference(nest.source, bound, whole, communicator.announcer(True))
            if reference.raises:
                emit("stops", reference.raises)
        return _Bench(job, tried, variants, bound, arguments, plans, reference, decide.placement)

    def label(self, position: int) -> str:
        return _label(self.job, self.plans[position])

    @property
    def finished(self) -> Reference | None:
        """The reference, where there is one and the plain loop comes to its end."""
        return None if self.reference is None or self.reference.raises else self.reference

    def fresh_arguments(self) -> dict[str, Any]:
        """The problem's arguments; what is written is a copy, but for the last run."""
        self.runs_left -= 1
        if self.runs_left == 0:
            return self.arguments
        copies = {name: copy_of(self.arguments[name]) for name in self.bound.nest.written}
        return {**self.arguments, **copies}

    def run(self, position: int, report: Callable[[float], None], measure: Measure) -> tuple[Outcome, list[str]]:
        """Run a variant in this process; what differs of its arrays."""
        arguments = self.fresh_arguments()
        outcome = run(self.variants[position], arguments, report, measure, self.plans[position])
        return outcome, [] if self.finished is None else array_differences(self.finished, arguments)

    def record(self, position: int, outcome: Outcome, found: list[str]) -> None:
        """found: what differs of the arrays."""
        self.figures[position].append(metrics(outcome.trace))
        if self.job.timeline is None:
            outcome = replace(outcome, trace=outcome.trace.without_events())
        self.outcomes[position].append(outcome)
        if self.reference is None:
            return
        if self.reference.raises:
            found = [f"it finished, but the plain loop {self.reference.raises}"]
        else:
            found = [*found, *number_differences(self.reference, outcome.results)]
        if found:
            self.differences[position] = found

    def draw(self, path: str, emit: Emit) -> None:
        """Write the timeline of every variant's median run, and say what it shows."""
        share = MAX_EVENTS // (2 * len(self.plans))
        labels = [_label(self.job, plan) for plan in self.plans]
        runs = [
            replace(outcomes[_median_run(outcomes)].trace, engine=label, predicted=foreseen_run(plan, share))
            for label, plan, outcomes in zip(labels, self.plans, self.outcomes, strict=True)
        ]
        figures = [replace(one, engine=label) for label, one in zip(labels, self.shown_figures(), strict=True)]
        for one in figures:
            emit("metrics", str(one))
        write_timeline(path, runs, figures)

    def shown_figures(self) -> list[Metrics]:
        """The figures that stand for each variant wherever they are shown: those of its median run."""
        return [of_runs[_median_run(outcomes)] for of_runs, outcomes in zip(self.figures, self.outcomes, strict=True)]

    def report(self) -> Report:
        figures = self.shown_figures()
        runs = [
            self._run_document(outcomes, shown, differing)
            for outcomes, shown, differing in zip(self.outcomes, figures, self.differences, strict=True)
        ]
        lost = {_label(self.job, plan): one.cpu_lost_share for plan, one in zip(self.plans, figures, strict=True)}
        plan = self.plans[0]
        noisy = warning(lost, min(plan.ranks, self.placement.ranks_on_cores), self.placement.cores_a_node)
        document = {
            "nest": plan.nest,
            "ranks": plan.ranks,
            "idle": plan.idle,
            "dependences": [list(v) for v in distance_vectors(plan.dependences)],
            "runs": runs,
            "warnings": [*([] if noisy is None else [noisy]), *self._resumed()],
        }
        texts = [
            f"{_label(self.job, plan)}: {text}"
            for plan, found in zip(self.plans, self.differences, strict=True)
            for text in found
        ]
        return Report(document, tuple(texts))

    def _resumed(self) -> list[str]:
        """What earlier runs had done of those that went on from them."""
        (outcome, *_), plan = self.outcomes[0], self.plans[0]
        if not outcome.earlier_sweeps or plan.streaming is None:
            return []
        text = f"resumed: an earlier run had done {outcome.earlier_sweeps} of {plan.streaming.sweeps} sweeps"
        return [f"{text}, all there are." if outcome.earlier_sweeps == plan.streaming.sweeps else f"{text}."]

    def _run_document(self, outcomes: list[Outcome], figures: Metrics, differing: list[str]) -> dict[str, Any]:
        plan = outcomes[-1].plan
        return {
            "engine": plan.engine,
            "tile": plan.tile,
            "grid": list(plan.grid),
            "seconds": [o.seconds for o in outcomes],
            "median": statistics.median(o.seconds for o in outcomes),
            "predicted": plan.predicted_seconds,
            "hidden": figures.hidden,
            "exposed_seconds": figures.exposed_seconds,
            "transfer_seconds": figures.transfer_seconds,
            "disk": None if figures.disk is None else asdict(figures.disk),
            "cpu_lost": figures.cpu_lost_share,
            "cpu_lost_seconds": list(figures.cpu_lost_by_rank),
            "identical": None if self.reference is None else not differing,
            "results": {name: json_number(outcomes[-1].results[name]) for name in self.bound.nest.returns},
        }


def _median_run(outcomes: list[Outcome]) -> int:
    """Which one it is by seconds; of two in the middle the faster one."""
    return sorted(range(len(outcomes)), key=lambda k: outcomes[k].seconds)[(len(outcomes) - 1) // 2]


def _plan_texts(plans: list[Plan]) -> list[str]:
    """The first plan in full; of the others what their engines do differently."""
    first, *others = plans
    return [str(first), *(other.in_short() for other in others)]
