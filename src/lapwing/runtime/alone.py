"""Runs a planned nest on this process alone, on the arrays where they lie."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy.typing as npt

from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.layout import written_boxes
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.storage import LocalArray, allocate, attach, is_crowded, needed_box
from lapwing.runtime.arrays.transfer import slices
from lapwing.runtime.binding import native
from lapwing.runtime.execute import (
    Measure,
    OnDisk,
    Outcome,
    Report,
    idle_outcome,
    outcome_of,
    runner_of,
    streams,
    tile_library,
)
from lapwing.runtime.memory_pool import LEAST_POOLED_BYTES, pooled
from lapwing.runtime.mpi.interrupt import ends_on_interrupt
from lapwing.runtime.workspace import Reductions
from lapwing.tiling.invariants import raises_alike
from lapwing.tiling.skewing import skewed_nest
from lapwing.trace.events import RankTrace

Array = npt.NDArray[Any]

KEPT_BYTES = 1 << 18  # of padded copies: what is larger takes longer to fill than to make again
KEPT_TABLE_BYTES = 1 << 24  # of the tables of a runner: where there are more, its runs are long
REPORTED_SECONDS = 0.05  # runs shorter than this have no progress to report


class PreparedRun:
    """A nest ready to run in this process on arrays of one layout, as often as wanted but once at a time.

    Arrays are worked on where they lie if their layout is a good one for the tile's inner form, else in a padded copy that is
    stored back at the end. An error leaves them as they were: elements that a loop may have written when it raises are saved
    before. No array is kept between runs.
    """

    def __init__(self, bound: BoundNest, plan: Plan, arrays: Sequence[Array], announce: native.Announce) -> None:
        """arrays: in the order of ``bound.arrays``, with the layouts of those of later runs; bound: not idle."""
        self.bound, self.plan = bound, plan
        self._runtime = native.serial_runtime(announce)
        tiled = skewed_nest(bound, plan.skew)
        library = tile_library(tiled, plan.inner.form, announce)
        block = bound.domain.box[bound.nest.sweep_depth :]
        places: dict[str, LocalArray] = {}
        self._copies: dict[int, LocalArray | None] = {}  # by position; None where memory is taken for every run
        self._boxes: dict[int, Box] = {}
        self._written: dict[int, list[Box]] = {}  # of those that are copied
        self._saved: dict[int, list[Box]] = {}  # of those that are not
        # What all iterations evaluate alike raises before the first of them has stored anything.
        may_raise = not raises_alike(bound.body)
        copied_bytes = 0
        for position, (array, values) in enumerate(zip(bound.arrays, arrays, strict=True)):
            place = attach(array, values)
            written = array.name in bound.nest.written
            boxes = written_boxes(bound, array.name, block) if written else []
            if place is None or (plan.inner.form.pads and is_crowded(place)):
                place = allocate(array, needed_box(bound, array.name, block))
                self._copies[position], self._boxes[position] = place, place.box
                copied_bytes += place.values.nbytes
                if written and array.name not in bound.dead:
                    self._written[position] = boxes
            elif written and may_raise and array.name not in bound.dead:
                self._saved[position] = boxes
            places[array.name] = place
        self._runner = runner_of(tiled, plan, 0, library, places)
        self._options = native.Options(slice_seconds=1.0)
        self._workspace = self._runner.workspace
        self._workspace.arrays.clear()
        self.scalars: Any = self._workspace.scalars  # native, in the order of ``bound.parameters``
        if copied_bytes > KEPT_BYTES:
            self._copies = dict.fromkeys(self._copies)
        self._addresses: Sequence[int] = ()  # of the arrays of the last run
        self._in_place = tuple(k for k in range(len(arrays)) if k not in self._copies)
        self._inspect = native.inspector_of(library) if may_raise else None
        self._domain = native.box(bound.domain.box)
        self._reductions = Reductions(bound)
        self._bare_run, self._times = self._runner.bare_run(self._runtime, self._options)
        self._may_last = bound.may_last
        self._reduces = bool(bound.body.accumulators)
        self._starts_anew = bool(bound.body.accumulators or bound.body.traps)
        self.seconds = float("inf")  # that the last run took

    @property
    def is_small(self) -> bool:
        """Whether it is worth keeping."""
        return self._runner.program.bytes <= KEPT_TABLE_BYTES

    def begin_with(self, starts: Sequence[tuple[str, Any]]) -> None:
        """Extrema and exact sums of these names begin with other floats from the next run on."""
        self._workspace.begin_with(starts)
        self._reductions.begin_with(starts)

    def run(self, arrays: Sequence[Array], addresses: Sequence[int]) -> dict[str, Any]:
        """Run on arrays whose first elements lie at the addresses; the reductions by name. Raises RunError."""
        # What is not called takes no time: between large arrays that have gone through caches every function has to come back.
        places = self._load(arrays, addresses) if self._copies or addresses != self._addresses else {}
        if self._inspect is not None and not self._may_raise():
            self._run()
        elif self._saved:
            with self._restored_on_error(arrays):
                self._run()
        else:
            self._run()
        if self._written:
            self._store(arrays, places)
        return self._reductions.merged([self._workspace.words]) if self._reduces else {}

    def _may_raise(self) -> bool:
        """Whether the run might raise after it has stored something, as far as can be told before; the tile is told, too."""
        if self._inspect is None:
            return True
        tile = self._workspace.tile
        found = self._inspect(ctypes.byref(tile), ctypes.byref(self._domain))
        tile.raises_nothing = found == native.INSIDE
        return found == native.MAY_RAISE

    def _run(self) -> None:
        if self.seconds < REPORTED_SECONDS:
            if self._starts_anew:
                self._workspace.reset()
            self._options.interrupts = self._may_last and ends_on_interrupt()
            status = self._bare_run()
            if status != native.DONE:
                self._runner.check(status, self._runtime)
            self.seconds = self._times.total
        else:
            self.seconds = self._runner.run(self._runtime, self._options, None, 0).times["total"]

    def run_observed(
        self, arrays: Sequence[Array], report: Report | None, events: int
    ) -> tuple[dict[str, Any], float, RankTrace]:
        """Run and watch it: the reductions by name, seconds, and what was done when. Raises RunError."""
        places = self._load(arrays, [values.ctypes.data for values in arrays])
        self._may_raise()
        start = time.perf_counter()
        with self._restored_on_error(arrays):
            trace = self._runner.run(self._runtime, self._options, report, events)
        seconds = time.perf_counter() - start
        self._store(arrays, places)
        return self._reductions.merged([self._runner.workspace.words]), seconds, trace

    def _load(self, arrays: Sequence[Array], addresses: Sequence[int]) -> dict[int, LocalArray]:
        workspace = self._workspace
        if addresses != self._addresses:
            for position in self._in_place:
                workspace.move(position, addresses[position])
            self._addresses = addresses
        places = {}
        for position, place in self._copies.items():
            if place is None:
                with pooled():
                    place = allocate(self.bound.arrays[position], self._boxes[position])
                workspace.move(position, place.origin)
            place.values[...] = arrays[position][slices(place.box)]
            places[position] = place
        return places

    def _restored_on_error(self, arrays: Sequence[Array]) -> AbstractContextManager[None]:
        return restored_on_error(
            arrays[position][slices(box)] for position, boxes in self._saved.items() for box in boxes
        )

    def _store(self, arrays: Sequence[Array], places: Mapping[int, LocalArray]) -> None:
        for position, boxes in self._written.items():
            for box in boxes:
                arrays[position][slices(box)] = places[position].view(box)


@contextmanager
def restored_on_error(parts: Iterable[Array]) -> Iterator[None]:
    """Parts of arrays are as they were before, where what is done raises."""
    parts = list(parts)
    is_mapped = any(part.nbytes >= LEAST_POOLED_BYTES for part in parts)
    with pooled() if is_mapped else nullcontext():
        saved = [(part, part.copy()) for part in parts]
    try:
        yield
    except BaseException:
        for part, values in saved:
            part[...] = values
        raise


def run_alone(
    bound: BoundNest,
    plan: Plan,
    arguments: Mapping[str, Any],
    announce: native.Announce,
    report: Report | None = None,
    measure: Measure | None = None,
) -> Outcome:
    """Run on this process alone; written arrays are updated in place, but not by a run that raises."""
    if bound.domain.is_empty:
        return idle_outcome(bound, plan)
    arrays = [arguments[array.name] for array in bound.arrays]
    prepared = PreparedRun(bound, plan, arrays, announce)
    results, seconds, trace = prepared.run_observed(arrays, report, measure.events if measure else 0)
    return outcome_of(plan, results, seconds, [trace], None)


def run_alone_on_disk(
    bound: BoundNest,
    plan: Plan,
    arguments: Mapping[str, Any],
    on_disk: OnDisk,
    announce: native.Announce,
    report: Report | None = None,
    measure: Measure | None = None,
) -> Outcome:
    """Run on this process alone where some arrays are on disk; all are as they were after a run that raises.

    There is something to compute.
    """
    bound = bound.storing_all()
    runtime, library = native.serial_runtime(announce), tile_library(bound, plan.inner.form, announce)
    block = bound.domain.box[bound.nest.sweep_depth :]
    places: dict[str, LocalArray] = {}
    for array in bound.arrays:
        if not streams(plan, array.name):
            places[array.name] = allocate(array, needed_box(bound, array.name, block))
            places[array.name].values[...] = arguments[array.name][slices(places[array.name].box)]
    on_disk.begin()
    runner = None
    try:
        runner = runner_of(bound, plan, 0, library, {**places, **on_disk.arrays(0)}, on_disk.tables(0))
        start = time.perf_counter()
        options = native.Options(slice_seconds=1.0)
        trace = runner.run(runtime, options, report, measure.events if measure else 0)
        seconds = time.perf_counter() - start
        on_disk.end()
    except BaseException:
        if runner is not None and runner.workspace.tile.trap:
            on_disk.give_up()  # it would raise again
        else:
            on_disk.leave()
        raise
    for name, place in places.items():
        for box in written_boxes(bound, name, block) if name in bound.nest.written else ():
            arguments[name][slices(box)] = place.view(box)
    assert runner.disk is not None
    results = Reductions(bound).merged([runner.workspace.words, *runner.disk.earlier_words])
    return outcome_of(plan, results, seconds, [trace], None)
