"""Runs a planned nest: on one process where the arrays lie, or over MPI with blocks on every rank."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.codegen.tile import tile_source
from lapwing.errors import RunError
from lapwing.loopnest.binding import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime import native
from lapwing.runtime.program import rank_program
from lapwing.runtime.storage import Box, LocalArray, allocate, attach, needed_box
from lapwing.runtime.workspace import Workspace, merged
from lapwing.tiling.faces import Faces, loop_offsets
from lapwing.tiling.partition import Range

Report = Callable[[float], None]
_CHUNK_BYTES = 64 << 20


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
        """The longest that any rank waited for transfers between its first and last computation."""
        return max((t["exposed"] for t in self.times), default=0.0)


class Runner:
    """One rank's share of a plan, ready to run: module loaded, local arrays allocated."""

    def __init__(
        self, bound: BoundNest, plan: Plan, rank: int, library: ctypes.CDLL, arrays: Mapping[str, LocalArray]
    ) -> None:
        self.bound, self.plan, self.rank = bound, plan, rank
        self.faces = Faces(bound, plan.partition, plan.mapping, plan.tile)
        self.workspace = Workspace(bound, library, arrays)
        self.program = rank_program(self.faces, rank, plan.ranks)

    def run(self, runtime: ctypes.CDLL, comm_handle: int, report: Report | None, dry: bool = False) -> native.Times:
        """Run all sweeps. Raises RunError where the plain loop would raise, KeyboardInterrupt when interrupted."""
        times = native.Times()
        self.workspace.reset()
        interrupt: list[BaseException] = []

        def progress(done: int, total: int) -> int:
            try:
                if report is not None:
                    report(done / total)
            except BaseException as stop:  # handed on below: nothing may be raised through C
                interrupt.append(stop)
            return len(interrupt)

        callback = native.Progress(progress)
        assert self.workspace.module is not None
        status = runtime.lw_run(
            ctypes.byref(self.program.c), ctypes.byref(self.workspace.module), ctypes.byref(self.workspace.tile),
            native.ENGINE_CODES[self.plan.engine], comm_handle, int(dry), ctypes.cast(callback, ctypes.c_void_p),
            ctypes.byref(times),
        )  # fmt: skip
        if interrupt:
            raise interrupt[0]
        if status == native.TRAPPED:
            self.workspace.check_traps()
        if status != native.DONE:
            raise RunError(f"the runtime stopped with status {status}")
        return times


def run_alone(
    bound: BoundNest, plan: Plan, arguments: Mapping[str, Any], announce: native.Announce, report: Report | None = None
) -> Outcome:
    """Run on this process alone; written arrays are updated in place.

    Arrays are worked on where they lie if their layout allows it and nothing in the loop can raise; else in a copy that
    is stored back at the end, so that an error leaves them as they were.
    """
    if bound.domain.is_empty:
        return Outcome(plan, _initial_results(bound), 0.0, [])
    runtime = native.serial_runtime(announce)
    library = _tile_library(tile_source(bound, _faces(bound, plan).faces, plan.dependences), announce)
    block = plan.partition.block(0)
    arrays: dict[str, LocalArray] = {}
    copied: list[str] = []
    for array in bound.arrays:
        values = arguments[array.name]
        local = attach(array, values) if not (bound.body.traps and array.name in bound.nest.written) else None
        if local is None:
            local = allocate(array, needed_box(bound, array.name, block))
            copied.append(array.name)
        arrays[array.name] = local
    runner = Runner(bound, plan, 0, library, arrays)
    for name in copied:
        _load_from(runner.workspace, name, arrays[name].box, arguments[name])
    start = time.perf_counter()
    times = runner.run(runtime, 0, report)
    seconds = time.perf_counter() - start
    for name in copied:
        if name in bound.nest.written:
            for box in written_boxes(bound, name, block):
                _store_to(runner.workspace, name, box, arguments[name])
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

    sources: per array a NumPy array on rank 0 (None elsewhere), or a LocalArray that each rank has already.
    Raises the same error on every rank where preparation fails; an error in mid-run ends all ranks.
    """
    from lapwing.runtime.communicator import agree

    rank = comm.Get_rank()
    if bound.domain.is_empty:
        return Outcome(plan, _initial_results(bound), 0.0, [])

    def prepare() -> tuple[ctypes.CDLL, Runner]:
        runtime = native.mpi_runtime(announce)
        library = _tile_library(tile_source(bound, _faces(bound, plan).faces, plan.dependences), announce)
        block = plan.partition.block(rank)
        try:
            arrays = {
                a.name: sources[a.name]
                if isinstance(sources[a.name], LocalArray)
                else allocate(a, needed_box(bound, a.name, block))
                for a in bound.arrays
            }
        except MemoryError as error:
            raise RunError(f"rank {rank}: not enough memory for its part of the arrays ({error}). Use more ranks.") from None
        return runtime, Runner(bound, plan, rank, library, arrays)

    runtime, runner = agree(comm, prepare)
    scattered = [a.name for a in bound.arrays if not isinstance(sources[a.name], LocalArray)]
    for name in scattered:
        _scatter(runner, name, sources[name], comm)
    comm.Barrier()
    start = time.perf_counter()
    times = _run_or_abort(runner, runtime, comm, report)
    seconds = comm.allreduce(time.perf_counter() - start, op=_max())
    results = merged(bound, comm.allgather(runner.workspace.words))
    for name in scattered:
        if name in bound.nest.written:
            _gather(runner, name, sources[name], comm)
    transfer = None
    if measure_transfer:
        comm.Barrier()
        transfer = comm.allreduce(runner.run(runtime, comm.py2f(), None, dry=True).total, op=_max())
    return Outcome(plan, results, seconds, comm.allgather(_times(times)), transfer)


def _run_or_abort(runner: Runner, runtime: ctypes.CDLL, comm: Any, report: Report | None) -> native.Times:
    """Run; an error on this rank ends every rank, because the others wait for its messages."""
    import sys

    try:
        return runner.run(runtime, comm.py2f(), report)
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
            low, high = ranges[k]
            first, last = (low, high) if bound.nest.loops[k].step == 1 else (1 - high, 1 - low)
            box.append((first + affine.constant, last + affine.constant))
        boxes.append(tuple(box))
    return boxes


@lru_cache(maxsize=64)
def _tile_library(source: str, announce: native.Announce) -> ctypes.CDLL:
    return native.build_tile(source, announce)


def _faces(bound: BoundNest, plan: Plan) -> Faces:
    return Faces(bound, plan.partition, plan.mapping, plan.tile)


def _initial_results(bound: BoundNest) -> dict[str, Any]:
    return {a.name: bound.parameters[a.name] for a in bound.body.accumulators}


def _times(times: native.Times) -> dict[str, float]:
    return {name: getattr(times, name) for name, _ in times._fields_}


# -- moving blocks between a whole NumPy array on rank 0 and the ranks ------------------------------------------------


def _chunks(box: Box, itemsize: int) -> list[Box]:
    """A box cut along its first axis into pieces small enough to copy and send at once."""
    row = itemsize
    for low, high in box[1:]:
        row *= high - low
    rows = max(1, _CHUNK_BYTES // max(row, 1))
    low, high = box[0]
    return [((at, min(at + rows, high)), *box[1:]) for at in range(low, high, rows)] if row else []


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)


def _load_from(workspace: Workspace, name: str, box: Box, values: npt.NDArray[np.generic]) -> None:
    for piece in _chunks(box, values.itemsize):
        workspace.load(name, piece, np.ascontiguousarray(values[_slices(piece)]))


def _store_to(workspace: Workspace, name: str, box: Box, values: npt.NDArray[np.generic]) -> None:
    for piece in _chunks(box, values.itemsize):
        values[_slices(piece)] = workspace.store(name, piece)


def _scatter(runner: Runner, name: str, values: Any, comm: Any) -> None:
    """Give every rank the elements its block can touch."""
    bound, plan, rank = runner.bound, runner.plan, runner.rank
    itemsize = bound.array(name).itemsize
    if rank == 0:
        _load_from(runner.workspace, name, needed_box(bound, name, plan.partition.block(0)), values)
        for other in range(1, plan.ranks):
            for piece in _chunks(needed_box(bound, name, plan.partition.block(other)), itemsize):
                comm.Send(_bytes(np.ascontiguousarray(values[_slices(piece)])), dest=other)
        return
    for piece in _chunks(needed_box(bound, name, plan.partition.block(rank)), itemsize):
        dense = np.empty([high - low for low, high in piece], bound.array(name).dtype)
        comm.Recv(_bytes(dense), source=0)
        runner.workspace.load(name, piece, dense)


def _gather(runner: Runner, name: str, values: Any, comm: Any) -> None:
    """Bring what every rank wrote into the whole array on rank 0, later writes over earlier ones."""
    bound, plan, rank = runner.bound, runner.plan, runner.rank
    boxes = [written_boxes(bound, name, plan.partition.block(r)) for r in range(plan.ranks)]
    itemsize = bound.array(name).itemsize
    for offset in range(len(boxes[0])):
        for other in range(plan.ranks):
            if other == 0 and rank == 0:
                _store_to(runner.workspace, name, boxes[0][offset], values)
            elif rank in (0, other):
                for piece in _chunks(boxes[other][offset], itemsize):
                    if rank == other:
                        comm.Send(_bytes(runner.workspace.store(name, piece)), dest=0)
                    else:
                        dense = np.empty([high - low for low, high in piece], bound.array(name).dtype)
                        comm.Recv(_bytes(dense), source=other)
                        values[_slices(piece)] = dense


def _bytes(dense: npt.NDArray[np.generic]) -> npt.NDArray[np.uint8]:
    return dense.reshape(-1).view(np.uint8)


def _max() -> Any:
    from mpi4py import MPI

    return MPI.MAX
