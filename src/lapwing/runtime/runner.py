"""One rank's share of a run, and what ranks tell each other around it: of one nest, or of several phases."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lapwing.errors import BeyondError, RunError
from lapwing.notices import ProgressLine
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import RankProgram
from lapwing.runtime.mpi.arrival import LOST
from lapwing.runtime.mpi.communicator import (
    all_finished,
    allgather,
    clock_offset,
    finish_work,
    host,
    join,
    largest,
    meet,
)
from lapwing.runtime.mpi.ending import abort, say_and_abort
from lapwing.runtime.mpi.interrupt import ends_on_interrupt, noted_interrupts
from lapwing.runtime.mpi.patience import patience_seconds
from lapwing.runtime.mpi.stopping import StopSignal
from lapwing.runtime.neighbours import Neighbours, join_neighbours
from lapwing.runtime.streaming import DiskTables, StreamedArray
from lapwing.runtime.tuning import Place, Tuning, helper_cpu, may_spin
from lapwing.runtime.workspace import Reductions, Workspace
from lapwing.trace.events import ACTIVITIES, EVENT, UNDER_WAY, PhaseSteps, RankTrace

GRACE_SECONDS = 5.0  # for the ranks to agree that the plain loop raises; then the run is ended everywhere

Report = Callable[[float], None]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Measure:
    """What to find out about a run beside its result. ``events``: how many to keep on each rank for a timeline.

    ``transfer``: afterwards, send the same messages with nothing else going on.
    """

    transfer: bool = False
    events: int = 0


@dataclass(frozen=True, order=True)
class Trap:
    """Where a rank met an error of the plain loop: sweep, phase, its block's place in the order of the phase's loops, and step.
    None that is less can depend on it, because dependences lead forwards along all four.
    """

    sweep: int
    phase: int
    block: tuple[int, ...]
    step: int
    text: str
    is_beyond: bool


class Runner:
    """One rank's share of a plan, ready to run: modules loaded, local arrays allocated.

    orders: of every phase, the place of the rank's block in the order of its loops. opening_sweeps: as in lw_program. disk: of
    the arrays that stream, where there are some.
    """

    def __init__(
        self,
        name: str,
        rank: int,
        engine: str,
        workspaces: Sequence[Workspace],
        program: RankProgram,
        orders: Sequence[tuple[int, ...]],
        opening_sweeps: int = 0,
        disk: DiskTables | None = None,
    ) -> None:
        self.name, self.rank, self.engine, self.program = name, rank, engine, program
        self.workspaces, self.orders = tuple(workspaces), tuple(orders)
        self.opening_sweeps, self.disk = opening_sweeps, disk
        self._modules = (native.Module * len(workspaces))(*(native.module_of(w.library) for w in workspaces))
        self._tiles = (native.Tile * len(workspaces))(*(w.tile for w in workspaces))
        for workspace, tile in zip(workspaces, self._tiles, strict=True):
            workspace.tile = tile  # the one that runs
        self.trap: Trap | None = None  # what the plain loop raises, after a run that met it
        self.neighbours: Neighbours | None = None  # alive as long as the program points into them

    @property
    def workspace(self) -> Workspace:
        """That of the only phase."""
        (workspace,) = self.workspaces
        return workspace

    @property
    def local_arrays(self) -> dict[str, LocalArray]:
        """The arrays that are in memory."""
        arrays: dict[str, LocalArray | StreamedArray] = {}
        for workspace in self.workspaces:
            arrays.update(workspace.arrays)
        return {name: array for name, array in arrays.items() if isinstance(array, LocalArray)}

    @property
    def written(self) -> tuple[str, ...]:
        """The arrays that some phase writes."""
        return tuple(dict.fromkeys(name for workspace in self.workspaces for name in workspace.bound.nest.written))

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """The accumulators of all phases, one after the other."""
        return np.concatenate([workspace.words for workspace in self.workspaces])

    def results(self, rows: Sequence[npt.NDArray[np.int64]]) -> list[dict[str, Any]]:
        """The reductions of every phase by name, from the ``words`` of all ranks."""
        ends = list(accumulate(len(workspace.words) for workspace in self.workspaces))
        parts = zip([0, *ends[:-1]], ends, self.workspaces, strict=True)
        return [Reductions(workspace.bound).merged([row[i:j] for row in rows]) for i, j, workspace in parts]

    def reset(self) -> None:
        """Reductions start anew."""
        for workspace in self.workspaces:
            workspace.reset()

    def run(
        self,
        runtime: ctypes.CDLL,
        options: native.Options,
        report: Report | None,
        events: int,
        signal: StopSignal | None = None,
    ) -> RankTrace:
        """Run all sweeps. signal: to and from the other ranks.

        Raises KeyboardInterrupt when interrupted, and RunError where the plain loop would raise, unless the run came to its end
        with the other ranks all the same: ``trap`` says so then.
        """
        times, kept = native.Times(), np.empty(events, EVENT)
        trace = native.Trace(kept.ctypes.data, events, 0)
        self.reset()
        interrupt: list[BaseException]
        line = ProgressLine(self.name) if report is None and self.rank == 0 else None
        report = report or line

        def progress(done: int, total: int) -> int:
            try:
                if done < 0 and signal is not None and (met := self._met()) is not None:
                    signal.tell((met.sweep, met.phase, *met.block))
                if done >= 0 and report is not None:
                    report(done / total)
                if done >= 0 and signal is not None:
                    stopped = signal.stop_before(self._open_place(done))
                    if stopped is not None:
                        return native.PASS_ON + self.opening_sweeps + stopped[0]
            except BaseException as stop:  # handed on below: nothing may be raised through C
                interrupt.append(stop)
            return native.STOP if interrupt else native.GO_ON

        def notice(event: int, number: int, checksum: int) -> int:
            try:
                assert log is not None
                return log(event, number, self.words, checksum)
            except BaseException as stop:
                interrupt.append(stop)
                return 0

        log = None if self.disk is None else self.disk.log
        heard = native.Notice(notice) if log is not None else native.Notice()
        if self.disk is not None:
            self.disk.c.notice = heard
        callback = native.Progress(progress)
        options.interrupts = ends_on_interrupt()
        with noted_interrupts() as interrupt:
            status = self._run(runtime, options, ctypes.cast(callback, ctypes.c_void_p), trace, times)
        if line is not None:
            line.close()
        if interrupt:
            raise interrupt[0]
        if log is not None:
            log.close()
        self.trap = self._met()
        self.check(status, runtime)
        events_kept = min(trace.count, events)
        shown = kept[:events_kept].copy()
        shown["sweep"] -= self.opening_sweeps
        shown["sweep"] *= self.program.c.joined_sweeps  # the first of those that are done at once
        return RankTrace(
            self.rank, host(), times.begin, _by_name(times), shown, trace.count - events_kept, self._phase_steps()
        )

    def _phase_steps(self) -> tuple[PhaseSteps, ...]:
        phases = [self.program.c.phase[k] for k in range(self.program.c.phases)]
        return tuple(
            PhaseSteps(workspace.bound.nest.name, int(phase.first_step))
            for workspace, phase in zip(self.workspaces, phases, strict=True)
        )

    def _open_place(self, done: int) -> tuple[int, ...]:
        """The first place that may not be complete after so many steps: sweeps of one pass advance together."""
        sweeps, step = divmod(done, int(self.program.c.steps))
        sweeps -= self.opening_sweeps
        together = int(self.program.c.pass_sweeps)
        phase = max(k for k in range(len(self.workspaces)) if self.program.c.phase[k].first_step <= step)
        return (max(0, sweeps // together * together), phase, *self.orders[phase])

    def _met(self) -> Trap | None:
        for phase, workspace in enumerate(self.workspaces):
            if (tile := workspace.tile).trap:
                trap, sweep = workspace.bound.body.traps[tile.trap - 1], tile.trap_sweep - self.opening_sweeps
                return Trap(sweep, phase, self.orders[phase], tile.trap_step, trap.message, trap.is_beyond)
        return None

    def bare_run(self, runtime: ctypes.CDLL, options: native.Options) -> tuple[Callable[[], int], native.Times]:
        """lw_run with all of its arguments made, and where its times will be: to be called after ``reset()``.

        Nothing is reported or kept. It gives the status. Where options say that it ends on Ctrl-C, Python raises that.
        """
        times, trace = native.Times(), native.Trace(None, 0, 0)
        return partial(runtime.lw_run, *self._run_arguments(options, None, trace, times)), times

    def check(self, status: int, runtime: ctypes.CDLL) -> None:
        """Raise RunError where the plain loop would raise and nothing has come to its end, or where the runtime failed."""
        if status in (native.TRAPPED, native.FAILED) and (met := self._met()) is not None:
            raise (BeyondError if met.is_beyond else RunError)(met.text)
        _check(status, runtime)

    def transfer_seconds(self, runtime: ctypes.CDLL, options: native.Options) -> float:
        """How long the same messages take with nothing else going on: nothing is computed, packed or unpacked."""
        times, trace = native.Times(), native.Trace(None, 0, 0)
        options.engine, options.dry = native.ENGINE_CODES["overlap"], 1
        _check(self._run(runtime, options, None, trace, times), runtime)
        return float(times.total)

    def _run(
        self, runtime: ctypes.CDLL, options: native.Options, progress: Any, trace: native.Trace, times: native.Times
    ) -> int:
        status: int = runtime.lw_run(*self._run_arguments(options, progress, trace, times))
        return status

    def _run_arguments(
        self, options: native.Options, progress: Any, trace: native.Trace, times: native.Times
    ) -> tuple[Any, ...]:
        if self.disk is not None:
            options.disk = ctypes.pointer(self.disk.c)
        return (
            ctypes.byref(self.program.c), self._modules, self._tiles,
            ctypes.byref(options), progress, ctypes.byref(trace), ctypes.byref(times),
        )  # fmt: skip


def _check(status: int, runtime: ctypes.CDLL) -> None:
    if status == native.FAILED:
        raise RunError(runtime.lw_failure().decode(errors="replace"))
    if status != native.DONE:
        raise RunError(f"the runtime stopped with status {status}")


@dataclass(frozen=True)
class Share:
    """What the ranks at work know together after a run; ``stopped`` is what the plain loop raises, if it does. ``results`` are
    the reductions of every phase, ``measuring_seconds`` how long it took to measure the transfer and bring events together."""

    stopped: str | None
    results: list[dict[str, Any]]
    seconds: float
    traces: list[RankTrace]
    transfer: float | None
    measuring_seconds: float = 0.0

    def without_events(self) -> Share:
        return replace(self, traces=[_bare(trace) for trace in self.traces])


def carry_out(
    runner: Runner, comm: Any, runtime: ctypes.CDLL, options: native.Options, report: Report | None, measure: Measure
) -> Share:
    """Run on the ranks at work, which comm (mpi4py) is of. Collective over them."""
    if runner.engine == "onesided" and runner.disk is None:
        orders = [[array.name for array in workspace.bound.arrays] for workspace in runner.workspaces]
        runner.neighbours = join_neighbours(runner.program, runner.local_arrays, runner.written, orders, comm)
    options.clock_offset = clock_offset(comm)
    join(comm, naps=False)  # all begin as soon as the last has come
    start = time.perf_counter()
    signal = StopSignal(comm, runner.engine == "helper", 2 + len(runner.orders[0]))
    trace = or_abort(comm, lambda: runner.run(runtime, options, report, measure.events, signal))
    ends = _tell_ends(_End(time.perf_counter() - start, runner.words, runner.trap, _bare(trace)), comm)
    slowest = max(end.seconds for end in ends)
    signal.drain([rank for rank, end in enumerate(ends) if end.trap is not None])
    if stops := [end.trap for end in ends if end.trap is not None]:
        # What a rank meets after another has stopped may be no error of the plain loop: the first one in its order is.
        return Share(min(stops).text, [], slowest, [], None)
    transfer, measuring = None, time.perf_counter()
    if measure.transfer:
        comm.Barrier()
        transfer = largest(or_abort(comm, lambda: runner.transfer_seconds(runtime, options)), comm)
    traces = _with_events(trace, comm) if measure.events else [end.trace for end in ends]
    measuring = time.perf_counter() - measuring
    earlier = [] if runner.disk is None else runner.disk.earlier_words
    return Share(None, runner.results([*(end.words for end in ends), *earlier]), slowest, traces, transfer, measuring)


def carry_out_on_first(
    runner: Runner | None,
    working: Any,
    comm: Any,
    runtime: ctypes.CDLL,
    options: native.Options,
    report: Report | None,
    measure: Measure,
) -> Share:
    """Run on the first ranks of comm (mpi4py), those of ``working``; the others, without a runner, idle. Collective over comm.

    An error or an interrupt of any rank ends all of them.
    """
    share = None
    if runner is not None:
        share = or_abort(comm, lambda: carry_out(runner, working, runtime, options, report, measure))
    if working is not comm:
        or_abort(comm, lambda: meet(comm))  # the ranks that idle must not take a core from the others
        told = comm.bcast(None if share is None else share.without_events(), root=0)
        share = share or told
    assert share is not None
    return share


@dataclass(frozen=True)
class _End:
    """How one rank came to a run's end; ``trace`` has no events."""

    seconds: float
    words: npt.NDArray[np.int64]
    trap: Trap | None
    trace: RankTrace


def _tell_ends(own: _End, comm: Any) -> list[_End]:
    """Tell each other how the run ended: the ends of all ranks. Collective."""

    def wait(arrived: Callable[[], bool]) -> None:
        if own.trap is None:
            finish_work(arrived, comm)
            return
        # Others may wait in vain for what this rank has not computed.
        until = time.monotonic() + GRACE_SECONDS
        while not arrived():
            if time.monotonic() > until:
                lost = f". At the end of the run {LOST}" if all_finished(arrived, comm) else ""
                say_and_abort(f"rank {comm.Get_rank()}: {own.trap.text}{lost}", comm)
            time.sleep(1e-3)

    return allgather(own, comm, wait)


def _bare(trace: RankTrace) -> RankTrace:
    return replace(trace, events=trace.events[:0])


def _with_events(trace: RankTrace, comm: Any) -> list[RankTrace]:
    """The traces of all ranks on rank 0, without their events on the others. Collective."""
    gathered: list[RankTrace] | None = comm.gather(trace, root=0)
    bare: list[RankTrace] = comm.allgather(_bare(trace))
    return bare if gathered is None else gathered


def native_options(engine: str, slice_seconds: float, comm: Any, place: Place, tuning: Tuning) -> native.Options:
    """How to run on the ranks of comm (mpi4py; None where this one idles)."""
    threads = 2 if engine == "helper" else 1
    return native.Options(
        engine=native.ENGINE_CODES[engine],
        comm=-1 if comm is None else comm.py2f(),
        split_bytes=tuning.split_bytes,
        helper_cpu=helper_cpu(tuning, place) if engine == "helper" else -1,
        spin=may_spin(place, threads),
        slice_seconds=slice_seconds if tuning.slice_seconds is None else tuning.slice_seconds,
        patience_seconds=patience_seconds(),
        grace_seconds=GRACE_SECONDS,
    )


def or_abort(comm: Any, action: Callable[[], Result]) -> Result:
    """Run; an error on this rank ends every rank, because the others wait for its messages."""
    try:
        return action()
    except BaseException as error:
        if comm.Get_size() > 1:
            text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            print(f"lapwing: rank {comm.Get_rank()}: {text}", file=sys.stderr, flush=True)
            abort(comm)
        raise


def _by_name(times: native.Times) -> dict[str, float]:
    """lw_times by name."""
    found = {
        name: getattr(times, name)
        for name in (
            *("total", "fill", "drain", "exposed", "disk_busy", "cpu_lost"),
            *("messages", "bytes", "read_bytes", "written_bytes"),
        )
    }
    return {**found, **{name: times.activity[k] for k, name in enumerate(ACTIVITIES) if name not in UNDER_WAY}}
