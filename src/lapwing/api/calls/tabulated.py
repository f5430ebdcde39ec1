"""Calls of a nest whose costly functions of some indices alone are tabulated before its loops (``tiling.tabulation``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lapwing.api.calls.planned import PlannedNest
from lapwing.errors import RunError
from lapwing.loopnest import ir
from lapwing.loopnest.analysis import NestAnalysis
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.tiling.tabulation import Tabulation, tabulation

Values = Sequence[Any]


class Call(Protocol):
    """A nest that is bound and planned for calls that are alike; see dispatch."""

    is_small: bool

    def scalars(self, values: Values) -> Any: ...

    def run(self, values: Values, numbers: Any = ...) -> dict[str, Any]: ...


MakeCall = Callable[
    [PlannedNest, Mapping[str, int], Values], Call
]  # of a nest, positions of its arguments, and their values


class _Part(PlannedNest):
    """A nest that nobody wrote, over the arguments of one that somebody did and tables."""

    def __init__(self, whole: PlannedNest, loops: ir.LoopNest) -> None:
        super().__init__(whole.python, whole.source)
        self._of_part = NestAnalysis(loops)

    @property
    def _analysis(self) -> NestAnalysis:
        return self._of_part


def tabulation_of(nest: PlannedNest, bound: BoundNest, arguments: Mapping[str, Any]) -> Tabulation | None:
    """What is tabulated in calls with these arguments. Nothing where tiles, grids or engines were chosen by hand."""
    if nest.is_cut_by_hand:
        return None
    return tabulation(bound, arguments, global_values(nest.python))


class TabulatedCall:
    """Fills the tables in every call, and then runs the nest that looks them up."""

    def __init__(
        self, nest: PlannedNest, found: Tabulation, positions: Mapping[str, int], values: Values, make: MakeCall
    ) -> None:
        names = [table.name for table in found.tables]
        self._shapes = [table.shape for table in found.tables]
        self._idle: list[list[npt.NDArray[Any]]] = []
        extended = {**positions, **{name: len(values) + k for k, name in enumerate(names)}}
        tables = self._tables()
        given = [*values, *tables]
        self._fills = [make(_Part(nest, table.nest), extended, given) for table in found.tables]
        self._main = make(_Part(nest, found.nest), extended, given)
        self._idle.append(tables)
        self._make_whole = partial(make, nest, positions)
        self._whole: Call | None = None
        self.is_small = all(call.is_small for call in (*self._fills, self._main))

    def _tables(self) -> list[npt.NDArray[Any]]:
        return [np.empty(shape) for shape in self._shapes]

    def scalars(self, values: Values) -> Any:
        """The free scalars of a call, of each nest; None where some nest is bound to others."""
        found = [call.scalars(values) for call in (*self._fills, self._main)]
        return None if None in found else found

    def run(self, values: Values, numbers: Any = None) -> dict[str, Any]:
        """As of a nest alone; numbers: what ``scalars`` gave. Raises RunError where the nest does."""
        try:
            tables = self._idle.pop()
        except IndexError:  # another thread is in the same call
            tables = self._tables()
        given = [*values, *tables]
        of_each: list[tuple[Any, ...]] = [()] * (len(self._fills) + 1) if numbers is None else [(n,) for n in numbers]
        try:
            for fill, its in zip(self._fills, of_each, strict=False):
                fill.run(given, *its)
        except RunError:  # which the loops may not come to
            return self._run_whole(values)
        results = self._main.run(given, *of_each[-1])
        self._idle.append(tables)
        return results

    def _run_whole(self, values: Values) -> dict[str, Any]:
        """Run the nest as it is."""
        whole = self._whole
        numbers = None if whole is None else whole.scalars(values)
        if whole is None or numbers is None:
            self._whole = whole = self._make_whole(values)
            return whole.run(values)
        return whole.run(values, numbers)
