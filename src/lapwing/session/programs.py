"""What one `lapwing run` of a program does: alone in this process, or collectively on every rank of an MPI run."""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.calls.out_of_core import stored_arrays
from lapwing.api.check_program import ProgramReference, program_reference
from lapwing.api.nest import Nest
from lapwing.api.program_plan import interpreted_texts
from lapwing.api.program_run import ProgramOutcome
from lapwing.errors import LapwingError, RefusedError, RunError
from lapwing.launch.job import Emit, Job, Report, stopped_text
from lapwing.loopnest.dependences import distance_vectors
from lapwing.runtime.arrays.creation import whole_arrays
from lapwing.runtime.mpi import communicator
from lapwing.runtime.tuning import Tuning, helper_cpus
from lapwing.session.drawing import FEWEST_EVENTS, MOST_EVENTS, write_timeline
from lapwing.session.first_rank import from_first, on_first
from lapwing.session.numbers import json_number
from lapwing.session.spilling import fresh_arrays, spilled_program
from lapwing.store.array import StoredArray
from lapwing.trace.timeline import MAX_EVENTS


def run_program(job: Job, nest: Nest, given: Mapping[str, Any], comm: Any | None, emit: Emit) -> Report | None:
    """Run the program with every engine ``job.repeat`` times, in turns, each time on a fresh copy of the problem's arguments.

    given: those, on the first rank; on others what is distributed. comm, emit: as for ``run_session``. The report is given on the
    first rank, None elsewhere. Raises LapwingError, on every rank the same.
    """
    wished = nest.using(memory=job.memory, pass_sweeps=job.pass_sweeps, ring=job.ring)
    with spilled_program(wished, given, comm, job.scratch, partial(_report_writing, emit)) as arguments:
        return _run_all(job, wished, arguments, comm, emit)


def _run_all(job: Job, nest: Nest, given: Mapping[str, Any], comm: Any | None, emit: Emit) -> Report | None:
    whole = whole_arrays(given)
    bench = on_first(comm, lambda: _Bench.prepare(job, nest, whole, comm, emit))
    variants = [
        nest.using(engine=engine, tile=job.tile, grid=_grid(job), tuning=Tuning(helper_cpu=helper_cpus(job.helper_cpu)))
        for engine in job.engines or (nest.engine,)
    ]
    names = from_first(comm, lambda: [*whole])
    events = _events(job, len(variants), comm)
    for turn in range(job.repeat):
        for position, variant in enumerate(variants):
            label = _label(variant) + ("" if job.repeat == 1 else f", run {turn + 1} of {job.repeat}")
            last = turn == job.repeat - 1 and position == len(variants) - 1
            with fresh_arrays(stored_arrays(whole), last, job.scratch, comm) as on_disk:
                arguments = {**(dict.fromkeys(names) if bench is None else bench.fresh_arguments()), **on_disk}
                report = partial(_report_progress, emit, label) if bench is not None else None
                try:
                    outcome = _run(variant, arguments, events, report, comm)
                except RunError as error:
                    if bench is None or bench.reference is None or bench.reference.raises is None:
                        raise
                    raise RunError(stopped_text(str(error), bench.reference.raises)) from error
                if bench is not None:
                    bench.record(position, arguments, outcome)
    if job.timeline is not None:
        on_first(comm, partial(_Bench.draw, bench, job.timeline, emit))
    return None if bench is None else bench.report(variants)


def check_options(job: Job, nest: Nest) -> None:
    """Raise RefusedError for options that are not for programs."""
    chosen = {"--resume": job.resume, "--grid all": job.grid == "all"}
    if names := [name for name, is_chosen in chosen.items() if is_chosen]:
        raise RefusedError(
            f"{', '.join(names)}: {nest.name} is {nest.program and nest.program.program}, and this is for a nest alone. Leave it "
            "out, or put the loops of one nest into a function of their own."
        )


def _grid(job: Job) -> tuple[int, ...] | None:
    return None if job.grid is None or job.grid == "all" else job.grid


def _label(variant: Nest) -> str:
    return str(variant.engine or "planned")


def _events(job: Job, variants: int, comm: Any | None) -> int:
    """How many to keep on every rank; none in one process where nobody looks at them."""
    if job.timeline is not None:
        return max(FEWEST_EVENTS, MAX_EVENTS // variants // (1 if comm is None else comm.Get_size()))
    return 0 if comm is None else max(FEWEST_EVENTS, MOST_EVENTS // comm.Get_size())


def _report_writing(emit: Emit, what: str, done: float) -> None:
    emit("progress", [what, done])


def _report_progress(emit: Emit, label: str, region: str, done: float) -> None:
    emit("progress", [f"{label}: {region}", done])


def _run(
    variant: Nest, arguments: dict[str, Any], events: int, report: Callable[[str, float], None] | None, comm: Any | None
) -> ProgramOutcome:
    """Run once. Errors of the driver become RunErrors."""
    program = variant.program
    assert program is not None
    if comm is not None:
        communicator.join(comm)
    try:
        return program.run(variant, arguments, events, report)
    except LapwingError:
        raise
    except Exception as error:
        raise RunError(f"{variant.where}: {variant.name}: raises {type(error).__name__}: {error}") from error


class _Bench:
    """The first rank's side: the arguments, the reference, and what the runs gave."""

    def __init__(self, job: Job, nest: Nest, arguments: Mapping[str, Any], ranks: int, emit: Emit) -> None:
        self.job, self.nest, self.arguments, self.ranks, self.emit = job, nest, arguments, ranks, emit
        self.reference: ProgramReference | None = None
        count = max(1, len(job.engines))
        self.outcomes: list[list[ProgramOutcome]] = [[] for _ in range(count)]
        self.differences: list[list[str]] = [[] for _ in range(count)]

    @staticmethod
    def prepare(job: Job, nest: Nest, arguments: Mapping[str, Any], comm: Any | None, emit: Emit) -> _Bench:
        program = nest.program
        assert program is not None
        bench = _Bench(job, nest, arguments, 1 if comm is None else comm.Get_size(), emit)
        ranks = "1 rank" if bench.ranks == 1 else f"{bench.ranks} ranks"
        emit("plan", f"{nest.name}: {program.program} on {ranks}")
        for loop in program.program.interpreted:
            for text in interpreted_texts(nest.source.file, loop):
                emit("plan", f"  {text}")
        if job.check:
            emit("progress", ["plain Python", None])
            regions = [*nest.using(comm=communicator.SELF).regions]
            bench.reference = program_reference(
                program.program, regions, _in_memory(arguments), communicator.announcer(True)
            )
            if bench.reference.raises:
                emit("stops", bench.reference.raises)
        return bench

    def fresh_arguments(self) -> dict[str, Any]:
        return copy.deepcopy(dict(self.arguments))

    def record(self, position: int, arguments: Mapping[str, Any], outcome: ProgramOutcome) -> None:
        if not any(self.outcomes):
            for of_region in outcome.regions.values():
                if of_region.plan is not None:
                    self.emit("plan", "\n".join(f"  {line}" for line in str(of_region.plan).splitlines()))
        if self.reference is not None:
            found = self.reference.differences(_in_memory(arguments), _in_memory(outcome.returned))
            self.differences[position] = found or self.differences[position]
        if self.job.timeline is None:
            outcome.trace = outcome.trace.without_events()
        outcome.returned = _numbers("returned", outcome.returned)
        self.outcomes[position].append(outcome)

    def _median(self, position: int) -> ProgramOutcome:
        """The run that stands for a variant: by seconds, and of two in the middle the faster one."""
        ordered = sorted(self.outcomes[position], key=lambda outcome: outcome.seconds)
        return ordered[(len(ordered) - 1) // 2]

    def draw(self, path: str, emit: Emit) -> None:
        """Write the timeline of every variant's median run, and say what it shows."""
        medians = [self._median(position) for position in range(len(self.outcomes))]
        figures = [outcome.figures for outcome in medians]
        for one in figures:
            emit("metrics", str(one))
        write_timeline(path, [outcome.trace for outcome in medians], figures)

    def report(self, variants: Sequence[Nest]) -> Report:
        program = self.nest.program
        assert program is not None
        document = {
            "nest": self.nest.name,
            "ranks": self.ranks,
            "idle": 0,
            "regions": [_about(region) for region in (*self.nest.regions, *_called(program.procedures))],
            "sweeps": [
                {"name": loop.name, "line": loop.line, "phases": [phase.tree.name for phase in loop.phases]}
                for loop in program.program.sweeps
            ],
            "interpreted": [loop.line for loop in program.program.interpreted],
            "runs": [self._run_document(position, variant) for position, variant in enumerate(variants)],
            "warnings": [],
        }
        texts = [f"{_label(v)}: {t}" for v, found in zip(variants, self.differences, strict=True) for t in found]
        return Report(document, tuple(texts))

    def _run_document(self, position: int, variant: Nest) -> dict[str, Any]:
        outcomes, median = self.outcomes[position], self._median(position)
        seconds, figures = [outcome.seconds for outcome in outcomes], median.figures
        return {
            "engine": variant.engine or "planned",
            "tile": None,
            "grid": None,
            "seconds": seconds,
            "median": statistics.median(seconds),
            "predicted": None,
            "hidden": figures.hidden,
            "exposed_seconds": figures.exposed_seconds,
            "transfer_seconds": figures.transfer_seconds,
            "disk": None if figures.disk is None else asdict(figures.disk),
            "regions": [
                {
                    "name": name,
                    "calls": noted.calls,
                    "seconds": noted.seconds,
                    "engine": noted.plan.engine if noted.plan else None,
                    "tile": noted.plan.tile if noted.plan else None,
                    "grid": list(noted.plan.grid) if noted.plan else None,
                }
                for name, noted in median.regions.items()
            ],
            "identical": None if self.reference is None else not self.differences[position],
            "results": outcomes[-1].returned,
        }


def _in_memory(value: Any) -> Any:
    """A value with NumPy arrays in the place of those on disk."""
    if isinstance(value, StoredArray):
        return value.numpy()
    if isinstance(value, tuple | list):
        return type(value)(map(_in_memory, value))
    return {name: _in_memory(one) for name, one in value.items()} if isinstance(value, dict) else value


def _called(procedures: Sequence[Nest]) -> Iterator[Nest]:
    """The nests of functions that are called."""
    for procedure in procedures:
        if not procedure.refusals:
            yield from procedure.regions


def _about(region: Nest) -> dict[str, Any]:
    return {
        "name": region.name,
        "line": region.loops.line,
        "loops": list(region.loops.loop_names),
        "dependences": [list(v) for v in distance_vectors(region.dependences)],
    }


def _numbers(name: str, value: Any) -> dict[str, Any]:
    """The numbers of what is returned, by name."""
    if isinstance(value, tuple | list):
        return {n: v for k, one in enumerate(value) for n, v in _numbers(f"{name}[{k}]", one).items()}
    if isinstance(value, bool | int | float | complex | np.bool | np.number):
        return {name: json_number(value)}
    return {}
