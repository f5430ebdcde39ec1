"""The runs of a session on the ranks of an MPI run: arrays are scattered once, and gathered once for each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.api.check import Reference, array_difference, array_differences
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.execute import Measure, Outcome, Report, collect, run_on_ranks, written_views
from lapwing.runtime.mpi import communicator
from lapwing.runtime.start import StartingValues
from lapwing.runtime.tuning import Tuning, place_of
from lapwing.session.first_rank import on_first
from lapwing.tiling.skewing import skewed_nest

Views = Mapping[str, list[npt.NDArray[Any]]]


class RunsTogether:
    """Runs of one nest by different plans, each from the same values. All methods are collective.

    The first result of every partition is brought together and compared with the plain loop. Others of that partition are
    compared with it where they are, on every rank, and brought together only where a bit differs.
    """

    def __init__(
        self,
        bound: BoundNest,
        plans: Sequence[Plan],
        sources: Mapping[str, Any],
        reference: Reference | None,
        checks: bool,
        comm: Any,
    ) -> None:
        """sources: as for StartingValues, and whole where there is a reference: what the plain loop gives, on rank 0; None
        elsewhere."""
        self._bound, self._plans, self._sources = bound, plans, sources
        self._reference, self._checks, self._comm = reference, checks, comm
        self._place = place_of(comm)
        self._start = StartingValues(bound, sources, comm)
        self._firsts: dict[Any, tuple[Views, list[str]]] = {}

    def run(self, position: int, tuning: Tuning | None, report: Report, measure: Measure) -> tuple[Outcome, list[str]]:
        """Run by one of the plans; the outcome, and on rank 0 what differs of the arrays. Raises as run_on_ranks does."""
        plan, first = self._plans[position], self._comm.Get_rank() == 0
        blocks = {} if self._bound.domain.is_empty else self._start.copies(plan)
        outcome = run_on_ranks(
            self._bound, plan, blocks, {}, self._comm, self._place, communicator.announcer(first),
            report if first else None, measure, tuning,
        )  # fmt: skip
        return outcome, self._differences(plan, blocks) if self._checks else []

    def _differences(self, plan: Plan, blocks: Mapping[str, LocalArray]) -> list[str]:
        bound = skewed_nest(self._bound, plan.skew)
        names = [name for name in bound.nest.written if name not in bound.dead] if blocks else []
        views = {name: written_views(bound, plan, blocks[name], self._comm.Get_rank()) for name in names}
        known = self._firsts.get(plan.partition)
        if known is not None and not communicator.on_any_rank(not _same(known[0], views), self._comm):
            return known[1]
        wholes: dict[str, Any] = on_first(self._comm, self._copies_of_sources) or {}
        for name in names:
            collect(bound, plan, blocks[name], wholes.get(name), self._comm)
        reference = self._reference
        found = on_first(self._comm, lambda: reference and array_differences(reference, wholes)) or []
        if known is None:
            copies = {name: [view.copy() for view in of_name] for name, of_name in views.items()}
            self._firsts[plan.partition] = copies, found
        return found

    def _copies_of_sources(self) -> dict[str, npt.NDArray[Any]]:
        return {name: np.array(self._sources[name], copy=True, order="K") for name in self._bound.nest.written}


def _same(expected: Views, found: Views) -> bool:
    return all(
        array_difference(name, one, other) is None
        for name, views in expected.items()
        for one, other in zip(views, found[name], strict=True)
    )
