"""Runs the phases of a program on this process alone, on the arrays where they lie."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy.typing as npt

from lapwing.planner.phased import PhasedPlan
from lapwing.runtime.alone import KEPT_BYTES, KEPT_TABLE_BYTES, REPORTED_SECONDS, restored_on_error
from lapwing.runtime.arrays.storage import LocalArray, allocate, attach, is_crowded
from lapwing.runtime.arrays.transfer import slices
from lapwing.runtime.binding import native
from lapwing.runtime.mpi.interrupt import ends_on_interrupt
from lapwing.runtime.phased import PhasedOutcome, phased_outcome, phased_runner, tile_libraries
from lapwing.runtime.runner import Measure, Report
from lapwing.runtime.workspace import Reductions
from lapwing.tiling.boxes import Box
from lapwing.tiling.invariants import raises_alike

Array = npt.NDArray[Any]


class PreparedPhases:
    """A plan for one rank, ready to run in this process on arrays of one layout, as often as wanted but once at a time.

    Arrays are worked on where they lie if their layout is a good one for the tiles, else in a padded copy that is stored back at
    the end. An error leaves them as they were: where a loop can raise, elements that are written are saved before. No array is
    kept between runs.
    """

    def __init__(self, plan: PhasedPlan, arrays: Mapping[str, Array], announce: native.Announce) -> None:
        """arrays: by name, with the shapes and strides of those of later runs."""
        phased, faces = plan.distribution.phased, plan.faces
        self.plan = plan
        self._runtime = native.serial_runtime(announce)
        # What all iterations of a phase evaluate alike is looked at before the first phase has stored anything.
        alike = [p for p, bound in enumerate(phased.phases) if bound.body.traps and raises_alike(bound.body)]
        may_raise = any(bound.body.traps and not raises_alike(bound.body) for bound in phased.phases)
        pads = any(form.pads for form in plan.forms)
        places: dict[str, LocalArray] = {}
        self._copies: dict[str, LocalArray | None] = {}  # None where memory is taken for every run
        self._boxes: dict[str, Box] = {}
        self._stored: dict[str, list[Box]] = {}  # of those that are copied
        self._saved: dict[str, list[Box]] = {}  # of those that are not
        copied_bytes = 0
        for array in phased.arrays:
            place, written = attach(array, arrays[array.name]), array.name in phased.written
            boxes = faces.written_boxes(array.name, 0) if written else []
            if place is None or (pads and is_crowded(place)):
                place = allocate(array, faces.needed_box(array.name, 0))
                self._copies[array.name], self._boxes[array.name] = place, place.box
                copied_bytes += place.values.nbytes
                if written:
                    self._stored[array.name] = boxes
            elif written and may_raise:
                self._saved[array.name] = boxes
            places[array.name] = place
        if copied_bytes > KEPT_BYTES:
            self._copies = dict.fromkeys(self._copies)
        self._options = native.Options(slice_seconds=1.0)
        libraries = tile_libraries(plan, announce)
        self._raising_alike = [(phase, native.compute_of(libraries[phase])) for phase in alike]
        self._runner = phased_runner(plan, faces, 0, libraries, places)
        self._uses = [
            (array.name, workspace, position)
            for workspace in self._runner.workspaces
            for position, array in enumerate(workspace.bound.arrays)
        ]
        for workspace in self._runner.workspaces:
            workspace.arrays.clear()
        self._reductions = [Reductions(bound) for bound in phased.phases]
        self._bare_run, self._times = self._runner.bare_run(self._runtime, self._options)
        self._seconds = float("inf")  # that the last run took

    @property
    def is_small(self) -> bool:
        """Whether it is worth keeping."""
        return self._runner.program.bytes <= KEPT_TABLE_BYTES

    def run(self, arrays: Mapping[str, Array]) -> list[dict[str, Any]]:
        """Run on arrays by name, of which written ones are updated in place; the reductions of every phase by name.

        Raises RunError where a loop raises: arrays are as they were then.
        """
        self._raise_alike()
        places = self._load(arrays)
        with self._restored_on_error(arrays):
            if self._seconds < REPORTED_SECONDS:
                self._runner.reset()
                self._options.interrupts = ends_on_interrupt()
                status = self._bare_run()
                if status != native.DONE:
                    self._runner.check(status, self._runtime)
                self._seconds = self._times.total
            else:
                self._seconds = self._runner.run(self._runtime, self._options, None, 0).times["total"]
        self._store(arrays, places)
        return self._results()

    def run_observed(self, arrays: Mapping[str, Array], report: Report | None, measure: Measure) -> PhasedOutcome:
        """The same, watched."""
        self._raise_alike()
        places = self._load(arrays)
        start = time.perf_counter()
        with self._restored_on_error(arrays):
            trace = self._runner.run(self._runtime, self._options, report, measure.events)
        seconds = time.perf_counter() - start
        self._store(arrays, places)
        return phased_outcome(self.plan, self._results(), seconds, [trace], None)

    def _raise_alike(self) -> None:
        """Raises RunError where a phase raises whatever its iterations are."""
        for phase, compute in self._raising_alike:
            workspace = self._runner.workspaces[phase]
            workspace.reset()
            compute(ctypes.byref(workspace.tile), ctypes.byref(native.Box()))
            workspace.check_traps()

    def _results(self) -> list[dict[str, Any]]:
        pairs = zip(self._reductions, self._runner.workspaces, strict=True)
        return [reductions.merged([workspace.words]) for reductions, workspace in pairs]

    def _load(self, arrays: Mapping[str, Array]) -> dict[str, LocalArray]:
        places = {}
        for name, kept in self._copies.items():
            place = kept or allocate(self.plan.distribution.phased.array(name), self._boxes[name])
            place.values[...] = arrays[name][slices(place.box)]
            places[name] = place
        origins = {n: places[n].origin if n in places else int(v.ctypes.data) for n, v in arrays.items()}
        for name, workspace, position in self._uses:
            workspace.move(position, origins[name])
        return places

    def _restored_on_error(self, arrays: Mapping[str, Array]) -> AbstractContextManager[None]:
        return restored_on_error(arrays[name][slices(box)] for name, boxes in self._saved.items() for box in boxes)

    def _store(self, arrays: Mapping[str, Array], places: Mapping[str, LocalArray]) -> None:
        for name, boxes in self._stored.items():
            for box in boxes:
                arrays[name][slices(box)] = places[name].view(box)


def run_phases_alone(
    plan: PhasedPlan,
    arguments: Mapping[str, Any],
    announce: native.Announce,
    report: Report | None = None,
    measure: Measure | None = None,
) -> PhasedOutcome:
    """Run on this process alone; written arrays are updated in place, but not by a run that raises.

    plan: for one rank. arguments: NumPy arrays by name.
    """
    arrays = {a.name: arguments[a.name] for a in plan.distribution.phased.arrays}
    return PreparedPhases(plan, arrays, announce).run_observed(arrays, report, measure or Measure())
