"""Runs of a planned nest on ranks, again and again, on distributed arrays that lie as they did: nothing is made anew."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lapwing.codegen.module import accumulator_words
from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.distributed import DistributedArray, Need
from lapwing.runtime.arrays.exchange import Exchange
from lapwing.runtime.arrays.layout import write_offsets
from lapwing.runtime.binding import native
from lapwing.runtime.execute import (
    handed_over,
    idle_results,
    runner_of,
    tile_library,
    touched_boxes,
)
from lapwing.runtime.mpi.communicator import agree, all_rows, finish, first_ranks, meet
from lapwing.runtime.runner import Measure, Runner, carry_out, native_options, or_abort
from lapwing.runtime.tuning import Place, Tuning
from lapwing.runtime.workspace import Reductions
from lapwing.tiling.skewing import skewed_nest

_INTERRUPTIBLE_SECONDS = 0.05  # runs shorter than this are over before anybody misses Ctrl-C


class RepeatedRun:
    """One rank's share of a plan for arrays of one form, ready to run as often as wanted, once at a time.

    All ranks of comm (mpi4py, Lapwing's own) make it and run it together. No array is kept between runs.
    """

    def __init__(self, bound: BoundNest, plan: Plan, comm: Any, place: Place, tuning: Tuning | None) -> None:
        """bound: as the user wrote it. place: this rank's."""
        self.plan = plan
        self._comm, self._place, self._tuning = comm, place, tuning or Tuning()
        self._bound = skewed_nest(bound, plan.skew)
        self._is_empty = bound.domain.is_empty
        self._runner: Runner | None = None
        self._is_made = False
        size = comm.Get_size()
        found = {name: handed_over(self._bound, plan, name, size) for name in bound.nest.written}
        self._handed_over = {name: handed for name, handed in found.items() if handed is not None}
        # A rank that meets what the plain loop raises tells the others; of one-sided transfers memory is mapped for every run.
        self._is_bare = not bound.body.traps and plan.engine != "onesided"
        self.seconds = float("inf")  # that the last run took on this rank

    @staticmethod
    def fits(bound: BoundNest, plan: Plan, arrays: Mapping[str, DistributedArray]) -> bool:
        """Whether runs of this plan on these arrays can be repeated: of what is only read ranks own boxes."""
        if plan.streaming is not None or arrays.keys() != {array.name for array in bound.arrays}:
            return False
        if (
            any(name in bound.nest.written and write_offsets(bound, name) > 1 for name in arrays)
            and not bound.domain.is_box
        ):
            return False
        read = (array.layout for name, array in arrays.items() if name not in bound.nest.written)
        return all(layout is None or layout.shear is None for layout in read)

    def run(self, arrays: Mapping[str, DistributedArray], scalars: Sequence[tuple[int, Any]]) -> dict[str, Any]:
        """The reductions by name. Collective. arrays: by name; scalars: of those that are free, by their places among the native
        ones. Raises RunError where the plain loop would raise."""
        if self._is_empty:
            return idle_results(self._bound)
        if not self._is_made:
            self._make(arrays)
        self._refresh(arrays)
        runner = self._runner
        if runner is not None:
            for position, array in enumerate(self._bound.arrays):
                runner.workspace.move(position, arrays[array.name].memory.origin)
            for position, value in scalars:
                if isinstance(value, int | np.integer):
                    runner.workspace.scalars[position].i = value
                else:
                    runner.workspace.scalars[position].f = value
        for name in self._bound.nest.written:
            arrays[name].note_written()
        results = self._bare(runner) if self._is_bare else self._watched(arrays)
        for name, handed in self._handed_over.items():
            arrays[name].hand_over(handed)
        return results

    def _make(self, arrays: Mapping[str, DistributedArray]) -> None:
        size = self._comm.Get_size()
        self._needs = {a.name: Need(tuple(touched_boxes(self._bound, self.plan, a, size))) for a in self._bound.arrays}
        self._working = first_ranks(self._comm, self.plan.ranks)
        self._reductions = Reductions(self._bound)

        def make() -> tuple[ctypes.CDLL, Runner | None]:
            runtime = native.mpi_runtime(None)
            if self._working is None:
                return runtime, None
            local = {a.name: arrays[a.name].memory for a in self._bound.arrays}
            library = tile_library(self._bound, self.plan.inner.form, None)
            runner = runner_of(self._bound, self.plan, self._comm.Get_rank(), library, local)
            runner.workspace.arrays.clear()
            return runtime, runner

        self._runtime, self._runner = agree(self._comm, make)
        if self._runner is not None:
            self._options = native_options(
                self.plan.engine, self.plan.slice_seconds, self._working, self._place, self._tuning
            )
            self._bare_run, self._times = self._runner.bare_run(self._runtime, self._options)
        self._is_made = True

    def _refresh(self, arrays: Mapping[str, DistributedArray]) -> None:
        """Bring what ranks read of each other's elements up to date."""
        exchanges: list[Exchange] = []
        requests: list[Any] = []
        for name, need in self._needs.items():
            exchange = arrays[name].refreshing(need)
            if exchange is not None:
                requests += exchange.start()
                exchanges.append(exchange)
        if requests:
            finish(requests, self._comm)
        for exchange in exchanges:
            exchange.end()

    def _bare(self, runner: Runner | None) -> dict[str, Any]:
        """Where nothing can be raised: a rank goes on as soon as it has done its share, but for reductions."""
        if runner is not None:
            or_abort(self._working, lambda: self._run(runner))
        if not self._bound.body.accumulators:
            return {}
        count = self._words if runner is None else len(runner.words)
        own = np.zeros(count, np.int64) if runner is None else runner.words
        rows = all_rows(own, self._comm, is_at_work=runner is not None)
        return self._reductions.merged(list(rows[: self.plan.ranks]))

    @property
    def _words(self) -> int:
        return max(1, accumulator_words(self._bound.body.accumulators))

    def _run(self, runner: Runner) -> None:
        if self.seconds >= _INTERRUPTIBLE_SECONDS:
            self.seconds = runner.run(self._runtime, self._options, None, 0).times["total"]
            return
        runner.reset()
        status = self._bare_run()
        if status != native.DONE:
            runner.check(status, self._runtime)
        self.seconds = self._times.total

    def _watched(self, arrays: Mapping[str, DistributedArray]) -> dict[str, Any]:
        """With all that ranks tell each other around a run."""
        written = [name for name in self._bound.nest.written if self._bound.body.traps]
        before = agree(self._comm, lambda: {name: arrays[name].memory.values.copy() for name in written})
        share = None
        if self._runner is not None:
            workspace = self._runner.workspace
            workspace.arrays.update((a.name, arrays[a.name].memory) for a in self._bound.arrays)
            try:
                share = carry_out(self._runner, self._working, self._runtime, self._options, None, Measure())
            finally:
                workspace.arrays.clear()
                self._runner.neighbours = None
        if self._working is not self._comm:
            meet(self._comm)
            share = self._comm.bcast(share, root=0)
        assert share is not None
        if share.stopped is not None:
            for name, values in before.items():
                arrays[name].memory.values[...] = values
            raise RunError(share.stopped)
        self.seconds = share.seconds
        (results,) = share.results
        return results
