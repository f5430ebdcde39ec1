"""Runs a planned nest over MPI with blocks on every rank; what that has in common with a run on one process (alone)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from lapwing.codegen.tile import tile_source
from lapwing.errors import RunError
from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.layout import nothing, owner_layout, write_offsets, written_boxes, written_elsewhere
from lapwing.runtime.arrays.parts import HandedOver
from lapwing.runtime.arrays.shear import Box, Shear, shear_of, skewed_box
from lapwing.runtime.arrays.storage import LocalArray, Storage, allocate, storage_of
from lapwing.runtime.arrays.transfer import FIRST_RANK, Region, gather, gather_regions, scatter, scatter_regions
from lapwing.runtime.binding import native
from lapwing.runtime.binding.program import rank_program
from lapwing.runtime.mpi.communicator import (
    agree,
    first_ranks,
)
from lapwing.runtime.neighbours import any_share_memory
from lapwing.runtime.runner import Measure as Measure
from lapwing.runtime.runner import Report as Report
from lapwing.runtime.runner import Runner, carry_out_on_first, native_options
from lapwing.runtime.streaming import DiskTables, StreamedArray
from lapwing.runtime.tuning import Place, Tuning
from lapwing.runtime.workspace import Workspace
from lapwing.tiling.boxes import hull
from lapwing.tiling.faces import Face, faces_of
from lapwing.tiling.inner import InnerForm
from lapwing.tiling.partition import Range
from lapwing.tiling.skewing import skewed_nest
from lapwing.trace.events import RankTrace, RunTrace
from lapwing.trace.foreseen import foreseen, foreseen_on_disk
from lapwing.units import duration


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


def runner_of(
    bound: BoundNest,
    plan: Plan,
    rank: int,
    library: ctypes.CDLL,
    arrays: Mapping[str, LocalArray | StreamedArray],
    disk: DiskTables | None = None,
) -> Runner:
    """One rank's share of a plan, ready to run.

    bound: in the plan's coordinates (``skewed_nest``). disk: of the arrays that stream, where there are some.
    """
    faces = plan.faces(bound)
    pass_sweeps = 1 if plan.streaming is None else plan.streaming.pass_sweeps
    first_sweep = 0 if disk is None else disk.first_sweep
    opening_sweeps = 0 if plan.streaming is None else plan.streaming.opening_sweeps
    program = rank_program(faces, rank, plan.ranks, pass_sweeps, first_sweep, disk is None, opening_sweeps, plan.fusion)
    workspace = Workspace(bound, library, arrays)
    orders = [plan.partition.order(rank)]
    if plan.inner.form.transposed:  # polls come between whole blocks of lanes
        program.c.phase[0].slice_grain = plan.inner.form.lanes
    return Runner(bound.nest.name, rank, plan.engine, [workspace], program, orders, opening_sweeps, disk)


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
    if on_disk is not None:
        bound = bound.storing_all()
    bound = skewed_nest(bound, plan.skew)
    measure = measure or Measure()
    working = first_ranks(comm, plan.ranks)
    options = agree(comm, lambda: native_options(plan.engine, plan.slice_seconds, working, place, tuning or Tuning()))

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
            return runner_of(bound, plan, rank, library, arrays)
        return runner_of(bound, plan, rank, library, {**arrays, **on_disk.arrays(rank)}, on_disk.tables(rank))

    runner = agree(comm, prepare)
    share = carry_out_on_first(runner, working, comm, runtime, options, report, measure)
    if share.stopped is not None:
        for name, values in before.items():
            arrays[name].values[...] = values
        if on_disk is not None and rank == 0:
            on_disk.give_up()
        raise RunError(share.stopped)
    if on_disk is not None:
        agree(comm, lambda: on_disk.end() if rank == 0 else None)
    for name in stays:
        if (handed := handed_over(bound, plan, name, comm.Get_size())) is not None:
            sources[name].hand_over(handed)
    for name in arrays:
        if name in bound.dead:
            continue
        if name in bound.nest.written and not isinstance(sources[name], DistributedArray | LocalArray):
            collect(bound, plan, arrays[name], sources[name], comm, holders.get(name, FIRST_RANK))
    (results,) = share.results
    return outcome_of(plan, results, share.seconds, share.traces, share.transfer, share.measuring_seconds)


def streams(plan: Plan, name: str) -> bool:
    """Whether an array is read and written slab by slab."""
    return plan.streaming is not None and name in plan.streaming.arrays


def exports(plan: Plan, comm: Any) -> bool:
    """Whether written arrays lie in memory that other ranks can map. Where sweeps are joined nobody may store into it, and its
    small pages would cost. Collective."""
    return plan.engine == "onesided" and plan.streaming is None and plan.joined == 1 and any_share_memory(comm)


def outcome_of(
    plan: Plan,
    results: dict[str, Any],
    seconds: float,
    traces: list[RankTrace],
    transfer: float | None,
    measuring: float = 0.0,
) -> Outcome:
    trace = RunTrace(
        plan.nest, plan.engine, plan.tile, plan.grid, seconds, transfer, tuple(traces), measuring_seconds=measuring
    )
    return Outcome(plan, results, seconds, trace)


def idle_outcome(bound: BoundNest, plan: Plan) -> Outcome:
    return outcome_of(plan, idle_results(bound), 0.0, [], None)


def idle_results(bound: BoundNest) -> dict[str, Any]:
    """The reductions of a nest without iterations, by name."""
    return {a.result: bound.parameters[a.result] for a in bound.body.accumulators if a.result in bound.parameters}


def _distribute(
    bound: BoundNest, plan: Plan, array: ArrayType, source: Any, holders: frozenset[int], exported: bool, comm: Any
) -> LocalArray:
    """This rank's part of an array, with the elements of its neighbours that it reads; exported: others may map it."""
    if isinstance(source, LocalArray):
        return source
    if isinstance(source, DistributedArray):
        return replace(localise(bound, plan, source, array, exported, comm.Get_size()), array=array)
    stores = stores_of(bound, plan, array, comm.Get_size())
    own = stores[comm.Get_rank()]
    local = agree(comm, lambda: allocate(array, own.box, exported, own.shear))
    scatter_stores(bound, stores, source, local, comm, holders)
    return local


def localise(
    bound: BoundNest, plan: Plan, source: DistributedArray, array: ArrayType, exported: bool, size: int
) -> LocalArray:
    """This rank's part of a distributed array, up to date. Of one that is written the ranks that write its elements own them from
    now on."""
    needed = touched_boxes(bound, plan, array, size)
    if array.name not in bound.nest.written:
        return source.localise_to_read(needed)
    return source.localise(needed, owner_layout(bound, array.name, plan.partition, size), exported)


def touched_boxes(bound: BoundNest, plan: Plan, array: ArrayType, size: int) -> list[Box]:
    """The elements that every one of so many ranks touches: of an array that a skewed nest writes sheared ones."""
    if bound.skew is None or array.name not in bound.nest.written:
        return [store.box for store in stores_of(bound, plan, array, size)]
    needed = [skewed_box(bound, array.name, block) for block in _reached_blocks(bound, plan)]
    return needed + [nothing(array)] * (size - plan.ranks)


def handed_over(bound: BoundNest, plan: Plan, name: str, ranks: int) -> HandedOver | None:
    """What has to be brought to the ranks that own it after a run; None where every rank writes last what it owns."""
    if write_offsets(bound, name) == 1:
        return None
    layout = owner_layout(bound, name, plan.partition, ranks)
    return HandedOver(written_elsewhere(bound, name, plan.partition, layout))


def stores_of(bound: BoundNest, plan: Plan, array: ArrayType, size: int) -> list[Storage]:
    """What every one of so many ranks keeps of an array; bound: in the plan's coordinates."""
    stores = [storage_of(bound, array.name, block) for block in _reached_blocks(bound, plan)]
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
    return hull(boxes) if boxes else none


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
    for block, reached in zip(_blocks(plan), _reached_blocks(bound, plan), strict=True):
        (box,) = written_boxes(bound, array.name, block)
        stored = storage_of(bound, array.name, reached).shear is not None
        found.append(Region(shear, box, everything, stored))
    return found


def _reached_blocks(bound: BoundNest, plan: Plan) -> list[tuple[Range, ...]]:
    """What ranks compute in any of the sweeps that are joined, or boxes around it."""
    faces = plan.faces(bound)
    return [faces.block(rank) for rank in range(plan.ranks)]


def _blocks(plan: Plan) -> list[tuple[Range, ...]]:
    return [plan.partition.block(rank) for rank in range(plan.ranks)]


@lru_cache(maxsize=64)
def tile_library(
    bound: BoundNest, form: InnerForm, announce: native.Announce, faces: Sequence[Face] | None = None
) -> ctypes.CDLL:
    """The tile, of the nest's own faces where none are given."""
    source = tile_source(bound, faces_of(bound) if faces is None else faces, form)
    return native.build_tile(source, announce, f"the tile of {bound.nest.name}")
