"""Several nests in common sweeps: in every sweep all phases are done, one after the other, on the same arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from lapwing.errors import RefusedError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.loopnest.dependences import Dependence


@dataclass(frozen=True, eq=False)
class PhasedNest:
    """Nests, each bound to arguments of the same call, whose outermost loops are common to them: the sweep loops, or none.

    Arrays are the same where their names are. Every phase has iterations of its own, in any order of loops and directions;
    one without iterations is left out. Raises RefusedError where phases do not fit each other.
    """

    name: str
    phases: tuple[BoundNest, ...]

    def __post_init__(self) -> None:
        first, *others = self.phases
        for bound in self.phases:
            assert bound.skew is None
            assert not bound.domain.is_empty
        for bound in others:
            where = bound.nest.where(bound.nest.line)
            if bound.nest.sweep_depth != first.nest.sweep_depth:
                raise RefusedError(
                    f"{where}: the arrays that {bound.nest.name} writes are indexed by all but {bound.nest.sweep_depth} of its "
                    f"outermost loops, those of {first.nest.name} by all but {first.nest.sweep_depth}: expected the same "
                    "sweep loops around every phase. Give a nest with loops of its own around it a function of its own."
                )
            if _sweeps(bound) != self.sweeps:
                raise RefusedError(
                    f"{where}: {bound.nest.name} has {_sweeps(bound):,} sweeps and {first.nest.name} {self.sweeps:,}: "
                    "expected the same sweep loops around every phase. Let them run over the same range."
                )
            for array in bound.arrays:
                if array != self.array(array.name):
                    raise RefusedError(
                        f"{where}: {array.name} is {array.dtype} of shape {array.shape} in {bound.nest.name} and "
                        f"{self.array(array.name).dtype} of shape {self.array(array.name).shape} before: expected one array "
                        "of that name. Give one of them another name."
                    )

    @property
    def sweep_depth(self) -> int:
        return self.phases[0].nest.sweep_depth

    @cached_property
    def sweeps(self) -> int:
        return _sweeps(self.phases[0])

    @cached_property
    def arrays(self) -> tuple[ArrayType, ...]:
        """All of them, in the order in which phases name them."""
        return tuple({a.name: a for bound in reversed(self.phases) for a in reversed(bound.arrays)}.values())[::-1]

    def array(self, name: str) -> ArrayType:
        return next(a for a in self.arrays if a.name == name)

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The arrays that some phase writes."""
        return tuple(a.name for a in self.arrays if any(a.name in bound.nest.written for bound in self.phases))

    @cached_property
    def dependences(self) -> tuple[tuple[Dependence, ...], ...]:
        """Those inside every phase. Raises RefusedError where distances inside a sweep are not constant."""
        return tuple(bound.analysis.dependences for bound in self.phases)


def _sweeps(bound: BoundNest) -> int:
    depth, domain = bound.nest.sweep_depth, bound.domain
    if all(loop.is_fixed for loop in domain.loops[:depth]):
        return math.prod(high - low for low, high in domain.box[:depth])
    return sum(1 for _ in domain.points(depth))
