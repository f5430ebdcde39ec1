"""Runs a planned nest over MPI with blocks on every rank; what that has in common with a run on one process (alone)."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lapwing.codegen.tile import tile_source
from lapwing.errors import RunError
from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.notices import ProgressLine
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.layout import nothing, owner_layout
from lapwing.runtime.arrays.shear import Box, Shear, element_box, shear_of
from lapwing.runtime.arrays.storage import LocalArray, Storage, allocate, storage_of
from lapwing.runtime.arrays.transfer import FIRST_RANK, Region, gather, gather_regions, scatter, scatter_regions
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import rank_program
from lapwing.runtime.mpi.arrival import LOST
from lapwing.runtime.mpi.communicator import (
    agree,
    all_finished,
    allgather,
    clock_offset,
    finish_work,
    first_ranks,
    host,
    join,
    meet,
)
from lapwing.runtime.mpi.ending import abort, say_and_abort
from lapwing.runtime.mpi.interrupt import noted_interrupts
from lapwing.runtime.mpi.patience import patience_seconds
from lapwing.runtime.mpi.stopping import StopSignal
from lapwing.runtime.neighbours import Neighbours, any_share_memory, join_neighbours
from lapwing.runtime.streaming import DiskTables, StreamedArray
from lapwing.runtime.tuning import Place, Tuning, helper_cpu, may_spin
from lapwing.runtime.workspace import Reductions, Workspace
from lapwing.tiling.faces import Faces, faces_of, loop_offsets
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.partition import Range
from lapwing.tiling.skewing import skewed_nest
from lapwing.trace.events import EVENT, PHASES, UNDER_WAY, RankTrace, RunTrace
from lapwing.trace.foreseen import foreseen, foreseen_on_disk
from lapwing.units import duration

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


@dataclass
class Outcome:
    """What a run gives: reductions by name, seconds of the slowest rank, and what every rank did when.

    ``earlier_sweeps`` had been done by a run that this one has gone on from.
    ``trace`` has no events unless they were asked for; ``trace.transfer_seconds`` is None unless it was.
    """

    plan: Plan
    results: dict[str, Any]
    seconds: float
    trace: RunTrace = field(repr=False)
    earlier_sweeps: int = 0

    def __repr__(self) -> str:
        results = "".join(f", {name} = {value!r}" for name, value in self.results.items())
        ranks = "one rank" if self.plan.ranks == 1 else f"{self.plan.ranks} ranks"
        return f"<run of {self.plan.nest}: {duration(self.seconds)} on {ranks}, {self.plan.engine}{results}>"

    def _repr_html_(self) -> str:
        """For notebooks: results, and the time beside the predicted one."""
        rows = [("time", duration(self.seconds))]
        if (predicted := self.plan.predicted_seconds) is not None:
            rows.append(("predicted", duration(predicted)))
        rows += [("ranks", str(self.plan.ranks)), ("engine", self.plan.engine)]
        rows += [("result", f"{name} = {value!r}") for name, value in self.results.items()]
        return table(f"run of {self.plan.nest}", rows)

    def timeline(self, path: str | Path | None = None) -> Path | None:
        """What every rank did when, as ``lapwing run --timeline`` shows it: in a notebook's cell, or as a page,
        ``NEST-timeline.html`` where no path is given.

        Returns the file; None where there is none, as on ranks that are not the first, which has the events of all. Raises
        LapwingError where it cannot be written.
        """
        if not any(len(rank.events) for rank in self.trace.ranks):
            return None
        from lapwing.display import show_page
        from lapwing.trace.timeline import MAX_EVENTS, timeline_page

        name = self.plan.nest
        page = timeline_page([replace(self.trace, predicted=foreseen_run(self.plan, MAX_EVENTS // 2))])
        return show_page(page, f"timeline of {name}", path, f"{name}-timeline.html")


def foreseen_run(plan: Plan, most_events: int) -> tuple[RankTrace, ...] | None:
    """The trace of a run as the plan foresees it; None where it foresees none, or one of more events."""
    if plan.streaming is not None:
        on_disk = plan.streaming.pipeline
        return None if on_disk is None else foreseen_on_disk(on_disk, most_events)
    return None if plan.pipeline is None else foreseen(plan.pipeline, plan.partition.steps, most_events)


class OnDisk(Protocol):
    """The arrays of a run that stream: what each rank has of them. One rank begins and ends for all, or gives up or leaves what
    is finished for another run.
    """

    def begin(self) -> None: ...
    def end(self) -> None: ...
    def give_up(self) -> None: ...
    def leave(self) -> None: ...
    def arrays(self, rank: int) -> dict[str, StreamedArray]: ...
    def tables(self, rank: int) -> DiskTables: ...


@dataclass(frozen=True, order=True)
class Trap:
    """Where a rank met an error of the plain loop: sweep, its block's place in the loops' order, and step. None that is less
    can depend on it, because dependences lead forwards along all three.
    """

    sweep: int
    block: tuple[int, ...]
    step: int
    text: str


class Runner:
    """One rank's share of a plan, ready to run: module loaded, local arrays allocated.

    bound: in the plan's coordinates (``skewed_nest``). disk: of the arrays that stream, where there are some.
    """

    def __init__(
        self,
        bound: BoundNest,
        plan: Plan,
        rank: int,
        library: ctypes.CDLL,
        arrays: Mapping[str, LocalArray | StreamedArray],
        disk: DiskTables | None = None,
    ) -> None:
        self.bound, self.plan, self.rank = bound, plan, rank
        self.faces = Faces(bound, plan.partition, plan.mapping, plan.tile, plan.buffers)
        self.module = native.module_of(library)
        self.workspace = Workspace(bound, library, arrays)
        self.disk = disk
        pass_sweeps = 1 if plan.streaming is None else plan.streaming.pass_sweeps
        first_sweep = 0 if disk is None else disk.first_sweep
        self.opening_sweeps = 0 if plan.streaming is None else plan.streaming.opening_sweeps
        self.program = rank_program(
            self.faces, rank, plan.ranks, pass_sweeps, first_sweep, disk is None, self.opening_sweeps
        )
        self.trap: Trap | None = None  # what the plain loop raises, after a run that met it
        self.neighbours: Neighbours | None = None  # alive as long as the program points into them

    @property
    def local_arrays(self) -> dict[str, LocalArray]:
        """The arrays that are in memory."""
        return {name: array for name, array in self.workspace.arrays.items() if isinstance(array, LocalArray)}

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
        self.workspace.reset()
        interrupt: list[BaseException]
        line = ProgressLine(self.bound.nest.name) if report is None and self.rank == 0 else None
        report = report or line

        def progress(done: int, total: int) -> int:
            try:
                if done < 0 and signal is not None:
                    signal.tell(int(self.workspace.tile.trap_sweep) - self.opening_sweeps)
                if done >= 0 and report is not None:
                    report(done / total)
                if done >= 0 and signal is not None and signal.is_behind(self._first_open_sweep(done)):
                    return native.PASS_ON
            except BaseException as stop:  # handed on below: nothing may be raised through C
                interrupt.append(stop)
            return native.STOP if interrupt else native.GO_ON

        def notice(event: int, number: int, checksum: int) -> int:
            try:
                assert log is not None
                return log(event, number, self.workspace.words, checksum)
            except BaseException as stop:
                interrupt.append(stop)
                return 0

        log = None if self.disk is None else self.disk.log
        heard = native.Notice(notice) if log is not None else native.Notice()
        if self.disk is not None:
            self.disk.c.notice = heard
        callback = native.Progress(progress)
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
        return RankTrace(self.rank, host(), times.begin, _by_name(times), shown, trace.count - events_kept)

    def _first_open_sweep(self, done: int) -> int:
        """The first sweep that may not be complete after so many steps: sweeps of one pass advance together."""
        sweeps = done // int(self.program.c.steps) - self.opening_sweeps
        together = int(self.program.c.pass_sweeps)
        return max(0, sweeps // together * together)

    def _met(self) -> Trap | None:
        tile = self.workspace.tile
        if not tile.trap:
            return None
        order = self.plan.partition.order(self.rank)
        return Trap(
            tile.trap_sweep - self.opening_sweeps, order, tile.trap_step, self.bound.body.traps[tile.trap - 1].message
        )

    def bare_run(self, runtime: ctypes.CDLL, options: native.Options) -> tuple[Callable[[], int], native.Times]:
        """lw_run with all of its arguments made, and where its times will be: to be called after ``workspace.reset()``.

        Nothing is reported or kept, and Ctrl-C waits for its end. It gives the status.
        """
        times, trace = native.Times(), native.Trace(None, 0, 0)
        return partial(runtime.lw_run, *self._run_arguments(options, None, trace, times)), times

    def check(self, status: int, runtime: ctypes.CDLL) -> None:
        """Raise RunError where the plain loop would raise and nothing has come to its end, or where the runtime failed."""
        if status in (native.TRAPPED, native.FAILED):
            self.workspace.check_traps()
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
            ctypes.byref(self.program.c), ctypes.byref(self.module), ctypes.byref(self.workspace.tile),
            ctypes.byref(options), progress, ctypes.byref(trace), ctypes.byref(times),
        )  # fmt: skip


def _check(status: int, runtime: ctypes.CDLL) -> None:
    if status == native.FAILED:
        raise RunError(runtime.lw_failure().decode(errors="replace"))
    if status != native.DONE:
        raise RunError(f"the runtime stopped with status {status}")


def run_on_ranks(
    bound: BoundNest,
    plan: Plan,
    sources: Mapping[str, Any],
    holders: Mapping[str, frozenset[int]],
    comm: Any,
    place: Place,
    announce: native.Announce,
    report: Report | None = None,
    measure: Measure | None = None,
    tuning: Tuning | None = None,
    on_disk: OnDisk | None = None,
) -> Outcome:
    """Run over MPI. Collective: every rank of comm (mpi4py) calls it with the same bound nest and plan.

    sources: per array a DistributedArray; a NumPy array on its holders (rank 0 where none are named; None elsewhere), which
    help themselves and get the result; or a LocalArray, this rank's part, which the run works on and leaves where it is
    (runtime.start). place: this rank's. Ranks beyond the plan's idle. on_disk: the arrays that stream, where the plan has some.
    Raises the same error on every rank where preparation fails or the plain loop would raise; any other error in mid-run
    ends all ranks.
    """
    rank = comm.Get_rank()
    if bound.domain.is_empty:
        return idle_outcome(bound, plan)
    bound = skewed_nest(bound, plan.skew)
    measure = measure or Measure()
    working = first_ranks(comm, plan.ranks)
    options = agree(comm, lambda: _options(plan, working, place, tuning or Tuning()))

    def build() -> tuple[ctypes.CDLL, ctypes.CDLL]:
        return native.mpi_runtime(announce), tile_library(bound, plan.inner.form, announce)

    runtime, library = agree(comm, build)
    exported = exports(plan, comm)
    arrays = {
        a.name: _distribute(
            bound,
            plan,
            a,
            sources[a.name],
            holders.get(a.name, FIRST_RANK),
            exported and a.name in bound.nest.written,
            comm,
        )
        for a in bound.arrays
        if not streams(plan, a.name)
    }
    if on_disk is not None:
        agree(comm, lambda: on_disk.begin() if rank == 0 else None)
    stays = [name for name in bound.nest.written if isinstance(sources.get(name), DistributedArray)]
    before = agree(comm, lambda: {n: arrays[n].values.copy() for n in stays} if bound.body.traps else {})

    def prepare() -> Runner | None:
        if working is None:
            return None
        if on_disk is None:
            return Runner(bound, plan, rank, library, arrays)
        return Runner(bound, plan, rank, library, {**arrays, **on_disk.arrays(rank)}, on_disk.tables(rank))

    runner = agree(comm, prepare)
    share = None
    if runner is not None:
        share = _carry_out(runner, working, runtime, options, report, measure)
    if working is not comm:
        meet(comm)  # the ranks that idle must not take a core from the others
        told = comm.bcast(None if share is None else share.without_events(), root=0)
        share = share or told
    assert share is not None
    if share.stopped is not None:
        for name, values in before.items():
            arrays[name].values[...] = values
        if on_disk is not None and rank == 0:
            on_disk.give_up()
        raise RunError(share.stopped)
    if on_disk is not None:
        agree(comm, lambda: on_disk.end() if rank == 0 else None)
    for name in arrays:
        if name in bound.nest.written and not isinstance(sources[name], DistributedArray | LocalArray):
            collect(bound, plan, arrays[name], sources[name], comm, holders.get(name, FIRST_RANK))
    return outcome_of(plan, share.results, share.seconds, share.traces, share.transfer)


def streams(plan: Plan, name: str) -> bool:
    """Whether an array is read and written slab by slab."""
    return plan.streaming is not None and name in plan.streaming.arrays


def exports(plan: Plan, comm: Any) -> bool:
    """Whether written arrays lie in memory that other ranks can map. Collective."""
    return plan.engine == "onesided" and plan.streaming is None and any_share_memory(comm)


@dataclass(frozen=True)
class _Share:
    """What the ranks at work know together after a run; ``stopped`` is what the plain loop raises, if it does."""

    stopped: str | None
    results: dict[str, Any]
    seconds: float
    traces: list[RankTrace]
    transfer: float | None

    def without_events(self) -> _Share:
        return replace(self, traces=[_bare(trace) for trace in self.traces])


def _carry_out(
    runner: Runner, comm: Any, runtime: ctypes.CDLL, options: native.Options, report: Report | None, measure: Measure
) -> _Share:
    """Run on the ranks at work, which comm (mpi4py) is of. Collective over them."""
    if runner.plan.engine == "onesided" and runner.disk is None:
        runner.neighbours = join_neighbours(runner.program, runner.local_arrays, runner.bound.nest.written, comm)
    options.clock_offset = clock_offset(comm)
    join(comm, naps=False)  # all begin as soon as the last has come
    start = time.perf_counter()
    signal = StopSignal(comm, runner.plan.engine == "helper", runner.plan.partition.order(runner.rank))
    trace = _or_abort(comm, lambda: runner.run(runtime, options, report, measure.events, signal))
    ends = _tell_ends(_End(time.perf_counter() - start, runner.workspace.words, runner.trap, _bare(trace)), comm)
    slowest = max(end.seconds for end in ends)
    signal.drain([rank for rank, end in enumerate(ends) if end.trap is not None])
    if stops := [end.trap for end in ends if end.trap is not None]:
        # What a rank meets after another has stopped may be no error of the plain loop: the first one in its order is.
        return _Share(min(stops).text, {}, slowest, [], None)
    transfer = None
    if measure.transfer:
        comm.Barrier()
        transfer = comm.allreduce(_or_abort(comm, lambda: runner.transfer_seconds(runtime, options)), op=_max())
    traces = _with_events(trace, comm) if measure.events else [end.trace for end in ends]
    earlier = [] if runner.disk is None else runner.disk.earlier_words
    results = Reductions(runner.bound).merged([*(end.words for end in ends), *earlier])
    return _Share(None, results, slowest, traces, transfer)


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


def _options(plan: Plan, comm: Any, place: Place, tuning: Tuning) -> native.Options:
    threads = 2 if plan.engine == "helper" else 1
    return native.Options(
        engine=native.ENGINE_CODES[plan.engine],
        comm=-1 if comm is None else comm.py2f(),
        split_bytes=tuning.split_bytes,
        helper_cpu=helper_cpu(tuning, place) if plan.engine == "helper" else -1,
        spin=may_spin(place, threads),
        slice_seconds=plan.slice_seconds if tuning.slice_seconds is None else tuning.slice_seconds,
        patience_seconds=patience_seconds(),
        grace_seconds=GRACE_SECONDS,
    )


def outcome_of(
    plan: Plan, results: dict[str, Any], seconds: float, traces: list[RankTrace], transfer: float | None
) -> Outcome:
    trace = RunTrace(plan.nest, plan.engine, plan.tile, plan.grid, seconds, transfer, tuple(traces))
    return Outcome(plan, results, seconds, trace)


def idle_outcome(bound: BoundNest, plan: Plan) -> Outcome:
    return outcome_of(plan, idle_results(bound), 0.0, [], None)


def idle_results(bound: BoundNest) -> dict[str, Any]:
    """The reductions of a nest without iterations, by name."""
    return {a.name: bound.parameters[a.name] for a in bound.body.accumulators}


def _distribute(
    bound: BoundNest, plan: Plan, array: ArrayType, source: Any, holders: frozenset[int], exported: bool, comm: Any
) -> LocalArray:
    """This rank's part of an array, with the elements of its neighbours that it reads; exported: others may map it."""
    if isinstance(source, LocalArray):
        return source
    size = comm.Get_size()
    stores = stores_of(bound, plan, array, size)
    written = array.name in bound.nest.written
    if isinstance(source, DistributedArray):
        source.make_on_all_ranks()
        layout = owner_layout(bound, array.name, plan.partition, size) if written else source.layout
        if layout is not None:
            return replace(source.localise([s.box for s in stores], layout, exported), array=array)
        # Only read, and not distributed by any nest so far.
        if source.initial is not None:
            return replace(source.part_to_read([s.box for s in stores]), array=array)
        source = source.whole

    own = stores[comm.Get_rank()]
    local = agree(comm, lambda: allocate(array, own.box, exported, own.shear))
    scatter_stores(bound, stores, source, local, comm, holders)
    return local


def stores_of(bound: BoundNest, plan: Plan, array: ArrayType, size: int) -> list[Storage]:
    """What every one of so many ranks keeps of an array; bound: in the plan's coordinates."""
    stores = [storage_of(bound, array.name, block) for block in _blocks(plan)]
    return stores + [Storage(nothing(array))] * (size - plan.ranks)


def scatter_stores(
    bound: BoundNest,
    stores: Sequence[Storage],
    whole: Any,
    local: LocalArray,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Give every rank what it keeps of the whole array on its holders. Collective."""
    if any(store.shear for store in stores):
        everything = tuple((0, n) for n in local.array.shape)
        shear = shear_of(bound, local.array.name)
        scatter_regions(whole, [_region(shear, s, s.box, everything) for s in stores], local, comm, holders)
    else:
        scatter(whole, [s.box for s in stores], local, comm, holders)


def take_stores(bound: BoundNest, stores: Sequence[Storage], source: DistributedArray, local: LocalArray) -> None:
    """Give every rank what it keeps of a distributed array, sheared boxes among it. Collective."""
    everything = tuple((0, n) for n in local.array.shape)
    shear = shear_of(bound, local.array.name)
    regions = [list(_region(shear, s, s.box, everything).pieces()) for s in stores]
    none = nothing(local.array)
    part = source.part([_around([plain for plain, _ in region], none) for region in regions])
    for plain, own in regions[source.comm.Get_rank()]:
        local.view(own)[...] = part.view(plain)


def _around(boxes: Sequence[Box], none: Box) -> Box:
    """The box around boxes."""
    if not boxes:
        return none
    return tuple((min(low for low, _ in spans), max(high for _, high in spans)) for spans in zip(*boxes, strict=True))


def _region(shear: Shear, store: Storage, box: Box, limits: Box) -> Region:
    """A region of what a rank keeps; a box of plain elements stands for itself."""
    if store.shear is not None:
        return Region(shear, box, limits, stored=True)
    return Region(shear.none, box, limits, stored=False)


def collect(
    bound: BoundNest,
    plan: Plan,
    local: LocalArray,
    whole: Any,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Bring what every rank wrote into the whole array on its holders, later writes over earlier ones. Collective."""
    if bound.skew is not None:
        gather_regions(local, _written_regions(bound, plan, local.array), whole, comm, holders)
        return
    boxes = [written_boxes(bound, local.array.name, block) for block in _blocks(plan)]
    for of_offset in zip(*boxes, strict=True):
        gather(local, of_offset, whole, comm, holders)


def written_views(bound: BoundNest, plan: Plan, local: LocalArray, rank: int) -> list[npt.NDArray[Any]]:
    """The elements a rank wrote, over the same memory: those that ``collect`` brings together. None of a rank that idles."""
    if rank >= plan.ranks:
        return []
    if bound.skew is not None:
        return [local.view(own) for _, own in _written_regions(bound, plan, local.array)[rank].pieces()]
    return [local.view(box) for box in written_boxes(bound, local.array.name, _blocks(plan)[rank])]


def _written_regions(bound: BoundNest, plan: Plan, array: ArrayType) -> list[Region]:
    """Of a skewed nest: one offset only, so every element has one writer, and no two regions meet."""
    shear, everything = shear_of(bound, array.name), tuple((0, n) for n in array.shape)
    found = []
    for block in _blocks(plan):
        (box,) = written_boxes(bound, array.name, block)
        stored = storage_of(bound, array.name, block).shear is not None
        found.append(Region(shear, box, everything, stored))
    return found


def _blocks(plan: Plan) -> list[tuple[Range, ...]]:
    return [plan.partition.block(rank) for rank in range(plan.ranks)]


def _or_abort(comm: Any, action: Callable[[], Result]) -> Result:
    """Run; an error on this rank ends every rank, because the others wait for its messages."""
    try:
        return action()
    except BaseException as error:
        if comm.Get_size() > 1:
            text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            print(f"lapwing: rank {comm.Get_rank()}: {text}", file=sys.stderr, flush=True)
            abort(comm)
        raise


def written_boxes(bound: BoundNest, name: str, block: Sequence[Range]) -> list[Box]:
    """The elements iterations of a block write, a box per write offset, in the order in which later ones count.

    Of a skewed nest they are sheared elements.
    """
    targets = {loop_offsets(bound, s.target): s.target for s in bound.nest.stores if s.target.array == name}
    # Of several writes to an element the last iteration's counts, and that is the one with the least offset.
    ordered = sorted(targets, key=lambda o: [k for k in o if k is not None], reverse=True)
    return [element_box(bound, targets[offsets], block) for offsets in ordered]


@lru_cache(maxsize=64)
def tile_library(bound: BoundNest, form: InnerForm, announce: native.Announce) -> ctypes.CDLL:
    return native.build_tile(tile_source(bound, faces_of(bound), form), announce, f"the tile of {bound.nest.name}")


def _by_name(times: native.Times) -> dict[str, float]:
    """lw_times by name."""
    found = {
        name: getattr(times, name)
        for name in (
            *("total", "fill", "drain", "exposed", "disk_busy", "cpu_lost"),
            *("messages", "bytes", "read_bytes", "written_bytes"),
        )
    }
    return {**found, **{name: times.phase[k] for k, name in enumerate(PHASES) if name not in UNDER_WAY}}


def _max() -> Any:
    from mpi4py import MPI

    return MPI.MAX
