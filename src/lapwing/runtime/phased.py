"""Runs the phases of a program through one pipeline over MPI, with blocks on every rank."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from lapwing.errors import RunError
from lapwing.planner.phased import PhasedPlan
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.layout import Layout, nothing
from lapwing.runtime.arrays.storage import LocalArray, allocate
from lapwing.runtime.arrays.transfer import FIRST_RANK, gather, scatter_parts
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import phased_program
from lapwing.runtime.execute import tile_library
from lapwing.runtime.mpi.communicator import agree, first_ranks
from lapwing.runtime.neighbours import any_share_memory
from lapwing.runtime.runner import Measure, Report, Runner, carry_out_on_first, native_options
from lapwing.runtime.tuning import Place, Tuning
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.boxes import Box, volume
from lapwing.tiling.phased.faces import PhasedFaces
from lapwing.trace.events import RankTrace, RunTrace


@dataclass
class PhasedOutcome:
    """What a run gives: the reductions of every phase by name, seconds of the slowest rank, and what every rank did when."""

    plan: PhasedPlan
    results: list[dict[str, Any]]
    seconds: float
    trace: RunTrace = field(repr=False)


def run_phases_on_ranks(
    plan: PhasedPlan,
    sources: Mapping[str, Any],
    holders: Mapping[str, frozenset[int]],
    comm: Any,
    place: Place,
    announce: native.Announce,
    report: Report | None = None,
    measure: Measure | None = None,
    tuning: Tuning | None = None,
) -> PhasedOutcome:
    """Run over MPI. Collective: every rank of comm (mpi4py) calls it with the same plan.

    sources: per array a DistributedArray, or a NumPy array on its holders (rank 0 where none are named; None elsewhere), which
    help themselves and get the result. place: this rank's. Ranks beyond the plan's idle.
    Raises the same error on every rank where preparation fails or the plain loop would raise; any other error in mid-run
    ends all ranks.
    """
    phased, faces, rank = plan.distribution.phased, plan.faces, comm.Get_rank()
    measure = measure or Measure()
    working = first_ranks(comm, plan.ranks)
    options = agree(comm, lambda: native_options(plan.engine, plan.slice_seconds, working, place, tuning or Tuning()))
    runtime, libraries = agree(comm, lambda: (native.mpi_runtime(announce), tile_libraries(plan, announce)))
    exported = plan.engine == "onesided" and any_share_memory(comm)
    arrays = {
        array.name: _distribute(plan, faces, array.name, sources[array.name], holders, exported, comm)
        for array in phased.arrays
    }
    stays = [name for name in phased.written if isinstance(sources[name], DistributedArray)]
    may_raise = any(bound.body.traps for bound in phased.phases)
    before = agree(comm, lambda: {n: arrays[n].values.copy() for n in stays} if may_raise else {})
    runner = agree(comm, lambda: None if working is None else phased_runner(plan, faces, rank, libraries, arrays))
    share = carry_out_on_first(runner, working, comm, runtime, options, report, measure)
    if share.stopped is not None:
        for name, values in before.items():
            arrays[name].values[...] = values
        raise RunError(share.stopped)
    for name in phased.written:
        if not isinstance(sources[name], DistributedArray):
            nobody = nothing(phased.array(name))
            boxes = [faces.written_boxes(name, r) for r in range(plan.ranks)]
            for turn in zip_longest(*boxes, fillvalue=nobody):
                gather(arrays[name], turn, sources[name], comm, holders.get(name, FIRST_RANK))
    return phased_outcome(plan, share.results, share.seconds, share.traces, share.transfer, share.measuring_seconds)


def tile_libraries(plan: PhasedPlan, announce: native.Announce) -> list[ctypes.CDLL]:
    """The tile of every phase."""
    phases = zip(plan.distribution.phased.phases, plan.forms, strict=True)
    return [tile_library(bound, form, announce, plan.faces.faces(k)) for k, (bound, form) in enumerate(phases)]


def phased_runner(
    plan: PhasedPlan,
    faces: PhasedFaces,
    rank: int,
    libraries: Sequence[ctypes.CDLL],
    arrays: Mapping[str, LocalArray],
) -> Runner:
    """One rank's share, on its part of every array."""
    phases = plan.distribution.phased.phases
    workspaces = [
        Workspace(bound, library, {a.name: arrays[a.name] for a in bound.arrays})
        for bound, library in zip(phases, libraries, strict=True)
    ]
    orders = [plan.distribution.order(phase, rank) for phase in range(len(phases))]
    return Runner(plan.name, rank, plan.engine, workspaces, phased_program(faces, rank, plan.fusion), orders)


def _distribute(
    plan: PhasedPlan,
    faces: PhasedFaces,
    name: str,
    source: Any,
    holders: Mapping[str, frozenset[int]],
    exported: bool,
    comm: Any,
) -> LocalArray:
    """This rank's part of an array, with the elements of its neighbours that it reads; exported: others may map it."""
    array, size = plan.distribution.phased.array(name), comm.Get_size()
    written = name in plan.distribution.phased.written
    boxes = [faces.needed_box(name, r) for r in range(plan.ranks)] + [nothing(array)] * (size - plan.ranks)
    parts = _parts(plan, faces, name, size)
    if isinstance(source, DistributedArray):
        if written:
            layout = _layout(plan, name, size)
            return replace(source.localise(boxes, layout, exported, parts), array=array)
        return replace(source.localise_to_read(boxes), array=array)
    local: LocalArray = agree(comm, lambda: allocate(array, boxes[comm.Get_rank()], exported and written))
    scatter_parts(source, parts or [[box] for box in boxes], local, comm, holders.get(name, FIRST_RANK))
    return local


def _parts(plan: PhasedPlan, faces: PhasedFaces, name: str, ranks: int) -> list[list[Box]] | None:
    """Of every rank's box of an array what it reads or writes, where that leaves most of some box out: along a periodic axis the
    first rank has elements at either end. None where it does not."""
    parts = [faces.needed_parts(name, r) for r in range(plan.ranks)]
    boxes = [faces.needed_box(name, r) for r in range(plan.ranks)]
    if all(volume(box) <= 2 * sum(map(volume, found)) for box, found in zip(boxes, parts, strict=True)):
        return None
    return [*parts, *([] for _ in range(ranks - plan.ranks))]


def _layout(plan: PhasedPlan, name: str, ranks: int) -> Layout:
    """Who owns the elements of an array that phases write."""
    distribution = plan.distribution
    array = distribution.phased.array(name)
    owned: list[Box] = [distribution.owned(name, rank) for rank in range(plan.ranks)]
    cuts = tuple(distribution.axis_cuts(name, axis) for axis in range(len(array.shape)))
    return Layout(cuts, (*owned, *[nothing(array)] * (ranks - plan.ranks)))


def phased_outcome(
    plan: PhasedPlan,
    results: list[dict[str, Any]],
    seconds: float,
    traces: Sequence[RankTrace],
    transfer: float | None,
    measuring: float = 0.0,
) -> PhasedOutcome:
    """What a run has given, of the traces of its ranks."""
    tile = max(tiling.tile for tiling in plan.tilings)
    trace = RunTrace(
        plan.name, plan.engine, tile, plan.grid, seconds, transfer, tuple(traces), measuring_seconds=measuring
    )
    return PhasedOutcome(plan, results, seconds, trace)
