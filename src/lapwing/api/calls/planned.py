"""A nest with the choices made for it by hand, and its plans on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lapwing.api.calls.called_integers import CalledIntegers
from lapwing.loopnest.binding.function import NestFunction
from lapwing.loopnest.source import FunctionSource
from lapwing.memo import Memo

if TYPE_CHECKING:
    from lapwing.api.calls.decide import PlannedCalls
    from lapwing.loopnest.binding.bound_nest import BoundNest
    from lapwing.planner.plan import Plan
    from lapwing.runtime.tuning import Tuning
    from lapwing.schedule.pipeline import Engine
    from lapwing.tiling.partition import Partition


_CHOICES = ("engine", "tile", "grid", "tuning", "comm", "memory", "pass_sweeps", "ring", "resume")
_chosen = attrgetter(*_CHOICES)


class PlannedNest(NestFunction):
    """The choices are those of Nest.using."""

    def __init__(self, function: Callable[..., Any], source: FunctionSource | None = None) -> None:
        super().__init__(function, source)
        self.engine: Engine | None = None
        self.tile: int | None = None
        self.grid: tuple[int, ...] | None = None
        self.tuning: Tuning | None = None
        self.comm: Any = None
        self.memory: int | None = None
        self.pass_sweeps: int | None = None
        self.ring = 3
        self.resume = False
        self._planned: Memo[PlannedCalls] = Memo()
        self.called_integers = CalledIntegers()

    @property
    def choices(self) -> dict[str, Any]:
        """What was chosen by hand, by name."""
        return dict(zip(_CHOICES, _chosen(self), strict=True))

    @property
    def chosen(self) -> tuple[Any, ...]:
        """The same without names, to be compared."""
        return tuple(_chosen(self))

    @property
    def is_cut_by_hand(self) -> bool:
        """Whether an engine, a tile or a grid was chosen."""
        return any(choice is not None for choice in (self.engine, self.tile, self.grid))

    def is_chosen_as(self, other: PlannedNest) -> bool:
        """Whether the same was chosen by hand."""
        return self.chosen == other.chosen

    def _forget(self) -> None:
        super()._forget()
        self._planned.clear()
        self.called_integers.clear()

    def plan(self, *args: Any, ranks: int = 1, **kwargs: Any) -> Any:
        """The Plan for these arguments on a number of ranks; nothing is run. Printing it explains it.

        Raises RefusedError for anything that would be refused by a run.
        """
        from lapwing.planner.choose import make_plan

        bound = self.bind(self.arguments(*args, **kwargs))
        return make_plan(bound, bound.analysis.dependences, ranks, self.wishes())

    def planned(
        self,
        bound: BoundNest,
        ranks: int,
        ranks_a_node: int,
        ranks_on_cores: int,
        arguments: Mapping[str, Any],
        partition: Partition | None = None,
    ) -> PlannedCalls:
        """The plan of a call on this machine, which calls alike share. partition: blocks that are given.

        Raises RefusedError as ``plan`` does.
        """
        from lapwing.api.calls.decide import Decider, PlannedCalls
        from lapwing.runtime.arrays.storage import crowded_arrays

        crowded = crowded_arrays(bound.arrays, arguments)
        key: Any = (_planned_alike(bound), ranks, ranks_a_node, ranks_on_cores, self.wishes(), partition, crowded)
        try:
            known = self._planned.get(key)
        except TypeError:  # a choice that cannot be hashed: planning says what is wrong with it
            key = known = None
        if known is not None and not known.deserve_second_thoughts:
            return known
        decide = Decider.here(bound, bound.analysis.dependences, ranks, ranks_a_node, ranks_on_cores, arguments)
        if known is not None:
            known.plan_anew(decide.for_call(self.wishes(), partition, known.worked))
            return known
        known = PlannedCalls(decide.for_call(self.wishes(), partition))
        if key is not None:
            self._planned.keep(key, known)
        return known

    def in_its_order(self, bound: BoundNest, plan: Plan) -> PlannedNest | None:
        """The loops as a sequential region, where a plan for one process would do little in a sweep but begin it; None where they
        are better cut into tiles."""
        return None

    def wishes(self) -> Any:
        from lapwing.planner.choose import Wishes

        # Plans are kept by what was wished for, so that it must not be a list.
        return Wishes(self.engine, self.tile, tuple(self.grid) if isinstance(self.grid, list) else self.grid)


def _planned_alike(bound: BoundNest) -> Any:
    """Equal for nests with the same plans. These do not hang on the numbers that reductions begin with, which may be others in
    every call, as where a largest change goes on from one loop nest to the next."""
    if not bound.body.accumulators:
        return bound
    accumulators = tuple(replace(accumulator, initial=0) for accumulator in bound.body.accumulators)
    body = replace(bound.body, accumulators=accumulators)
    return bound.arrays, bound.domain, body, tuple(bound.symbols.items()), bound.dead
