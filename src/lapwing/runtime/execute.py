"""Runs a planned nest: on one process where the arrays lie, or over MPI with blocks on every rank."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from lapwing.codegen.tile import tile_source
from lapwing.errors import RunError
from lapwing.loopnest.binding import ArrayType, BoundNest
from lapwing.loopnest.dependences import Dependence
from lapwing.planner.plan import Plan
from lapwing.runtime import native
from lapwing.runtime.communicator import agree, clock_offset
from lapwing.runtime.distributed import DistributedArray, owner_layout
from lapwing.runtime.interrupt import noted_interrupts
from lapwing.runtime.program import rank_program
from lapwing.runtime.storage import Box, LocalArray, allocate, attach, is_crowded, needed_box
from lapwing.runtime.transfer import gather, scatter, slices
from lapwing.runtime.workspace import Workspace, merged
from lapwing.tiling.faces import Faces, faces_of, loop_offsets
from lapwing.tiling.partition import Range, in_direction

Report = Callable[[float], None]


@dataclass
class Outcome:
    """What a run gives: reductions by name, seconds of the slowest rank, and where each rank's time went.

    ``transfer_seconds`` is None unless it was asked for: the time the same messages take with nothing else going on.
    """

    plan: Plan
    results: dict[str, Any]
    seconds: float
    times: list[dict[str, float]] = field(repr=False)
    transfer_seconds: float | None = None

    @property
    def exposed_seconds(self) -> float:
        """The longest that any rank waited for messages on their way, between its first and last computation."""
        return max((t["exposed"] for t in self.times), default=0.0)


class Runner:
    """One rank's share of a plan, ready to run: module loaded, local arrays allocated."""

    def __init__(
        self, bound: BoundNest, plan: Plan, rank: int, library: ctypes.CDLL, arrays: Mapping[str, LocalArray]
    ) -> None:
        self.bound, self.plan, self.rank = bound, plan, rank
        self.faces = Faces(bound, plan.partition, plan.mapping, plan.tile)
        self.module = native.module_of(library)
        self.workspace = Workspace(bound, library, arrays)
        self.program = rank_program(self.faces, rank, plan.ranks)

    def run(
        self, runtime: ctypes.CDLL, report: Report | None, comm_handle: int = 0, clock_offset: float = 0.0
    ) -> native.Times:
        """Run all sweeps. Raises RunError where the plain loop would raise, KeyboardInterrupt when interrupted."""
        times = native.Times()
        self.workspace.reset()
        interrupt: list[BaseException]

        def progress(done: int, total: int) -> int:
            try:
                if report is not None:
                    report(done / total)
            except BaseException as stop:  # handed on below: nothing may be raised through C
                interrupt.append(stop)
            return len(interrupt)

        callback = native.Progress(progress)
        with noted_interrupts() as interrupt:
            status = runtime.lw_run(
                ctypes.byref(self.program.c), ctypes.byref(self.module), ctypes.byref(self.workspace.tile),
                native.ENGINE_CODES[self.plan.engine], comm_handle, clock_offset, 0,
                ctypes.cast(callback, ctypes.c_void_p), ctypes.byref(times),
            )  # fmt: skip
        if interrupt:
            raise interrupt[0]
        if status == native.TRAPPED:
            self.workspace.check_traps()
        if status != native.DONE:
            raise RunError(f"the runtime stopped with status {status}")
        return times

    def transfer_seconds(self, runtime: ctypes.CDLL, comm_handle: int) -> float:
        """How long the same messages take with nothing else going on: one after the other, nothing computed."""
        times = native.Times()
        status = runtime.lw_run(
            ctypes.byref(self.program.c), ctypes.byref(self.module), ctypes.byref(self.workspace.tile),
            native.BLOCKING, comm_handle, 0.0, 1, None, ctypes.byref(times),
        )  # fmt: skip
        if status != native.DONE:
            raise RunError(f"the runtime stopped with status {status} while timing messages")
        return float(times.total)


def run_alone(
    bound: BoundNest, plan: Plan, arguments: Mapping[str, Any], announce: native.Announce, report: Report | None = None
) -> Outcome:
    """Run on this process alone; written arrays are updated in place.

    Arrays are worked on where they lie if their layout is a good one and nothing in the loop can raise; else in a padded
    copy that is stored back at the end, so that an error leaves them as they were.
    """
    if bound.domain.is_empty:
        return Outcome(plan, _initial_results(bound), 0.0, [])
    runtime = native.serial_runtime(announce)
    library = _tile_library(bound, plan.dependences, announce)
    block = plan.partition.block(0)
    arrays: dict[str, LocalArray] = {}
    copied: list[str] = []
    for array in bound.arrays:
        values = arguments[array.name]
        local = attach(array, values)
        may_raise = bound.body.traps and array.name in bound.nest.written
        if local is None or may_raise or is_crowded(local):
            local = allocate(array, needed_box(bound, array.name, block))
            local.values[...] = values[slices(local.box)]
            copied.append(array.name)
        arrays[array.name] = local
    runner = Runner(bound, plan, 0, library, arrays)
    start = time.perf_counter()
    times = runner.run(runtime, report)
    seconds = time.perf_counter() - start
    for name in copied:
        if name in bound.nest.written:
            for box in written_boxes(bound, name, block):
                arguments[name][slices(box)] = arrays[name].view(box)
    return Outcome(plan, merged(bound, [runner.workspace.words]), seconds, [_times(times)])


def run_on_ranks(
    bound: BoundNest,
    plan: Plan,
    sources: Mapping[str, Any],
    comm: Any,
    announce: native.Announce,
    report: Report | None = None,
    measure_transfer: bool = False,
) -> Outcome:
    """Run over MPI. Collective: every rank of comm (mpi4py) calls it with the same bound nest and plan.

    sources: per array a DistributedArray, or a NumPy array on rank 0 (None elsewhere).
    Raises the same error on every rank where preparation fails; an error in mid-run ends all ranks.
    """
    rank = comm.Get_rank()
    if bound.domain.is_empty:
        return Outcome(plan, _initial_results(bound), 0.0, [])

    def build() -> tuple[ctypes.CDLL, ctypes.CDLL]:
        return native.mpi_runtime(announce), _tile_library(bound, plan.dependences, announce)

    runtime, library = agree(comm, build)
    arrays = {a.name: _distribute(bound, plan, a, sources[a.name], comm) for a in bound.arrays}
    runner = agree(comm, lambda: Runner(bound, plan, rank, library, arrays))
    comm.Barrier()
    start = time.perf_counter()
    times = _run_or_abort(runner, runtime, comm, report)
    seconds = comm.allreduce(time.perf_counter() - start, op=_max())
    results = merged(bound, comm.allgather(runner.workspace.words))
    for name in bound.nest.written:
        if not isinstance(sources[name], DistributedArray):
            _collect(bound, plan, arrays[name], sources[name], comm)
    transfer = None
    if measure_transfer:
        comm.Barrier()
        transfer = comm.allreduce(runner.transfer_seconds(runtime, comm.py2f()), op=_max())
    return Outcome(plan, results, seconds, comm.allgather(_times(times)), transfer)


def _distribute(bound: BoundNest, plan: Plan, array: ArrayType, source: Any, comm: Any) -> LocalArray:
    """This rank's part of an array, with the elements of its neighbours that it reads."""
    boxes = [needed_box(bound, array.name, plan.partition.block(r)) for r in range(plan.ranks)]
    if isinstance(source, DistributedArray):
        written = array.name in bound.nest.written
        layout = owner_layout(bound, array.name, plan.partition) if written else source.layout
        if layout is not None:
            return replace(source.localise(boxes, layout), array=array)
        source = source.whole  # only read, and not distributed by any nest so far

    local = agree(comm, lambda: allocate(array, boxes[comm.Get_rank()]))
    scatter(source, boxes, local, comm)
    return local


def _collect(bound: BoundNest, plan: Plan, local: LocalArray, whole: Any, comm: Any) -> None:
    """Bring what every rank wrote into the whole array on rank 0, later writes over earlier ones."""
    boxes = [written_boxes(bound, local.array.name, plan.partition.block(r)) for r in range(plan.ranks)]
    for of_offset in zip(*boxes, strict=True):
        gather(local, of_offset, whole, comm)


def _run_or_abort(runner: Runner, runtime: ctypes.CDLL, comm: Any, report: Report | None) -> native.Times:
    """Run; an error on this rank ends every rank, because the others wait for its messages."""
    offset = clock_offset()
    try:
        return runner.run(runtime, report, comm.py2f(), offset)
    except BaseException as error:
        if comm.Get_size() > 1:
            text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
            print(f"lapwing: rank {comm.Get_rank()}: {text}", file=sys.stderr, flush=True)
            comm.Abort(1)
        raise


def written_boxes(bound: BoundNest, name: str, block: Sequence[Range]) -> list[Box]:
    """The elements iterations of a block write, a box per write offset, in the order in which later ones count."""
    depth = bound.nest.sweep_depth
    ranges = (*bound.domain.box[:depth], *block)
    targets = {loop_offsets(bound, s.target): s.target for s in bound.nest.stores if s.target.array == name}
    boxes = []
    # Of several writes to an element the last iteration's counts, and that is the one with the least offset.
    for offsets in sorted(targets, key=lambda o: [k for k in o if k is not None], reverse=True):
        target = targets[offsets]
        box = []
        for affine in target.affine:
            assert affine is not None
            (loop, _), *_ = affine.terms
            k = bound.nest.loop_names.index(loop)
            first, last = in_direction(ranges[k], bound.nest.loops[k].step)
            box.append((first + affine.constant, last + affine.constant))
        boxes.append(tuple(box))
    return boxes


@lru_cache(maxsize=64)
def _tile_library(bound: BoundNest, dependences: tuple[Dependence, ...], announce: native.Announce) -> ctypes.CDLL:
    return native.build_tile(tile_source(bound, faces_of(bound), dependences), announce)


def _initial_results(bound: BoundNest) -> dict[str, Any]:
    return {a.name: bound.parameters[a.name] for a in bound.body.accumulators}


def _times(times: native.Times) -> dict[str, float]:
    return {field[0]: getattr(times, field[0]) for field in times._fields_}


def _max() -> Any:
    from mpi4py import MPI

    return MPI.MAX
