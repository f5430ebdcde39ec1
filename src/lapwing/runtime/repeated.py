"""Runs of a planned nest on ranks, again and again, on distributed arrays: where these lie as they did, nothing is made anew."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapwing.codegen.rows.module import accumulator_words
from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.memo import Memo
from lapwing.planner.plan import Plan
from lapwing.runtime.alone import KEPT_TABLE_BYTES
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.exchange import Exchange
from lapwing.runtime.arrays.layout import write_offsets
from lapwing.runtime.arrays.parts import Need
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.execute import (
    exports,
    handed_over,
    idle_results,
    localise,
    runner_of,
    tile_library,
    touched_boxes,
)
from lapwing.runtime.mpi.communicator import agree, all_rows, finish, first_ranks, meet
from lapwing.runtime.mpi.interrupt import ends_on_interrupt
from lapwing.runtime.runner import Measure, Runner, carry_out, native_options, or_abort
from lapwing.runtime.tuning import Place, Tuning
from lapwing.runtime.workspace import Reductions
from lapwing.tiling.skewing import skewed_nest

_INTERRUPTIBLE_SECONDS = 0.05  # runs shorter than this are over before anybody misses Ctrl-C


@dataclass(frozen=True)
class _Shared:
    """What the runs of one plan have in common on a rank. working: the ranks at work; None on one that idles."""

    needs: dict[str, Need]
    working: Any
    runtime: ctypes.CDLL
    options: native.Options
    library: ctypes.CDLL | None
    reductions: Reductions


@dataclass(frozen=True)
class _Ready:
    """A runner for arrays of some forms. bare_run: ``lw_run`` with its arguments; times: what it takes."""

    runner: Runner
    bare_run: Callable[[], int]
    times: native.Times


class RepeatedRun:
    """One rank's share of a plan, ready to run on distributed arrays as often as wanted, once at a time.

    All ranks of comm (mpi4py, Lapwing's own) make it and run it together. No array is kept between runs.
    """

    def __init__(self, bound: BoundNest, plan: Plan, comm: Any, place: Place, tuning: Tuning | None) -> None:
        """bound: as the user wrote it. place: this rank's."""
        self.plan = plan
        self._comm, self._place, self._tuning = comm, place, tuning or Tuning()
        self._bound = skewed_nest(bound, plan.skew)
        self._is_empty = bound.domain.is_empty
        self._names = [array.name for array in self._bound.arrays]
        self._shared: _Shared | None = None
        self._ready: Memo[_Ready] = Memo()
        size = comm.Get_size()
        found = {name: handed_over(self._bound, plan, name, size) for name in bound.nest.written}
        self._handed_over = {name: handed for name, handed in found.items() if handed is not None}
        # A rank that meets what the plain loop raises tells the others; of one-sided transfers memory is mapped for every run.
        self._is_bare = not bound.body.traps and plan.engine != "onesided"
        self._may_last = bound.may_last
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

    def run(
        self, arrays: Mapping[str, DistributedArray], scalars: Sequence[tuple[int, Any]], distribute: bool
    ) -> dict[str, Any]:
        """The reductions by name. Collective. arrays: by name; scalars: of those that are free, by their places among the native
        ones. distribute: whether arrays may be elsewhere than the plan has them; the same on all ranks. Raises RunError where
        the plain loop would raise."""
        if self._is_empty:
            return idle_results(self._bound)
        if self._shared is None:
            self._shared = agree(self._comm, self._make)
        if distribute:
            exported = exports(self.plan, self._comm)
            for array in self._bound.arrays:
                written = array.name in self._bound.nest.written
                localise(self._bound, self.plan, arrays[array.name], array, exported and written, self._comm.Get_size())
        else:
            self._refresh(arrays)
        runner = None if self._shared.working is None else self._runner(arrays, scalars)
        for name in self._bound.nest.written:
            arrays[name].note_written()
        results = self._bare(runner) if self._is_bare else self._watched(runner, arrays)
        for name, handed in self._handed_over.items():
            arrays[name].hand_over(handed)
        return results

    def _make(self) -> _Shared:
        """What does not depend on where arrays lie. Collective."""
        size, working = self._comm.Get_size(), first_ranks(self._comm, self.plan.ranks)
        needs = {a.name: Need(tuple(touched_boxes(self._bound, self.plan, a, size))) for a in self._bound.arrays}
        runtime = native.mpi_runtime(None)
        options = native_options(self.plan.engine, self.plan.slice_seconds, working, self._place, self._tuning)
        library = None if working is None else tile_library(self._bound, self.plan.inner.form, None)
        return _Shared(needs, working, runtime, options, library, Reductions(self._bound))

    def _runner(self, arrays: Mapping[str, DistributedArray], scalars: Sequence[tuple[int, Any]]) -> _Ready:
        """One for the forms of the arrays, which works on these."""
        given = [arrays[name] for name in self._names]
        memory = [array.memory for array in given]
        forms = tuple([array.form for array in given])
        ready = self._ready.get(forms)
        if ready is None:
            ready = or_abort(self._comm, lambda: self._new_runner(memory))
            if ready.runner.program.bytes <= KEPT_TABLE_BYTES:
                self._ready.keep(forms, ready)
        workspace = ready.runner.workspace
        for position, local in enumerate(memory):
            workspace.move(position, local.origin)
        for position, value in scalars:
            if isinstance(value, int | np.integer):
                workspace.scalars[position].i = value
            else:
                workspace.scalars[position].f = value
        return ready

    def _new_runner(self, memory: Sequence[LocalArray]) -> _Ready:
        assert self._shared is not None
        assert self._shared.library is not None
        local = {array.name: part for array, part in zip(self._bound.arrays, memory, strict=True)}
        runner = runner_of(self._bound, self.plan, self._comm.Get_rank(), self._shared.library, local)
        runner.workspace.arrays.clear()
        return _Ready(runner, *runner.bare_run(self._shared.runtime, self._shared.options))

    def _refresh(self, arrays: Mapping[str, DistributedArray]) -> None:
        """Bring what ranks read of each other's elements up to date."""
        assert self._shared is not None
        exchanges: list[Exchange] = []
        requests: list[Any] = []
        for name, need in self._shared.needs.items():
            exchange = arrays[name].refreshing(need)
            if exchange is not None:
                requests += exchange.start()
                exchanges.append(exchange)
        if requests:
            finish(requests, self._comm)
        for exchange in exchanges:
            exchange.end()

    def _bare(self, ready: _Ready | None) -> dict[str, Any]:
        """Where nothing can be raised: a rank goes on as soon as it has done its share, but for reductions."""
        assert self._shared is not None
        if ready is not None:
            or_abort(self._comm, lambda: self._run(ready))
        if not self._bound.body.accumulators:
            return {}
        idle = np.zeros(max(1, accumulator_words(self._bound.body.accumulators)), np.int64)
        own = idle if ready is None else ready.runner.workspace.words
        rows = all_rows(own, self._comm, is_at_work=ready is not None)
        return self._shared.reductions.merged(list(rows[: self.plan.ranks]))

    def _run(self, ready: _Ready) -> None:
        assert self._shared is not None
        if self.seconds >= _INTERRUPTIBLE_SECONDS:
            trace = ready.runner.run(self._shared.runtime, self._shared.options, None, 0)
            self.seconds = trace.times["total"]
            return
        ready.runner.reset()
        self._shared.options.interrupts = self._may_last and ends_on_interrupt()
        status = ready.bare_run()
        if status != native.DONE:
            ready.runner.check(status, self._shared.runtime)
        self.seconds = ready.times.total

    def _watched(self, ready: _Ready | None, arrays: Mapping[str, DistributedArray]) -> dict[str, Any]:
        """With all that ranks tell each other around a run."""
        assert self._shared is not None
        written = [name for name in self._bound.nest.written if self._bound.body.traps]
        before = agree(self._comm, lambda: {name: arrays[name].memory.values.copy() for name in written})
        working, share = self._shared.working, None
        if ready is not None:
            kept = ready.runner.workspace.arrays
            kept.update((a.name, arrays[a.name].memory) for a in self._bound.arrays)
            try:
                runtime, options = self._shared.runtime, self._shared.options
                share = carry_out(ready.runner, working, runtime, options, None, Measure())
            finally:
                kept.clear()
                ready.runner.neighbours = None
        if working is not self._comm:
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
