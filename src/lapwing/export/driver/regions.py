"""The regions of a program as calls of an exported one: bound to what the driver passes, and planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lapwing.api.calls.decide import Decider
from lapwing.api.nest import Nest
from lapwing.api.sweeps import SweepsCall
from lapwing.export.driver.calls import LocalCall, NestCall, PhasesCall
from lapwing.export.driver.values import NeedsValue, Register, Value, example_of
from lapwing.export.stand_alone import check_stands_alone
from lapwing.loopnest import ir
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.scalars import free_scalars, set_again, used_parameters


@dataclass(frozen=True, eq=False)
class BoundRegion:
    """call: None where there is nothing to do."""

    bound: BoundNest
    call: NestCall | LocalCall | None


class RegionCalls:
    """For one number of ranks of one machine, with the choices of a nest."""

    def __init__(self, nest: Nest, ranks: int, machine: str | None) -> None:
        self._nest, self._ranks, self._machine = nest, ranks, machine
        program = nest.program
        assert program is not None
        self._regions = [region.like(nest) for region in program.nests]
        self._sweeps = program.sweeps
        self._bound: dict[Any, BoundRegion] = {}
        self._phased: dict[Any, list[PhasesCall] | None] = {}

    def region(self, number: int, given: Mapping[str, Value]) -> BoundRegion:
        """given: by parameter. Raises NeedsValue where its plan needs a number that is left to the program, and RefusedError as
        binding and planning do."""
        key = (number, tuple(given.items()))
        if key not in self._bound:
            self._bound[key] = self._region(self._regions[number], given)
        return self._bound[key]

    def parameters(self, number: int) -> tuple[str, ...]:
        parameters: tuple[str, ...] = self._regions[number].loops.parameters
        return parameters

    def _region(self, region: Nest, given: Mapping[str, Value]) -> BoundRegion:
        examples = {name: example_of(value) for name, value in given.items()}
        region = region.for_arguments(examples)
        changing = {name: value for name, value in given.items() if isinstance(value, Register)}
        if region.loops.is_sequential and any(not value.type.is_inexact for value in changing.values()):
            region = region.for_any_integers()
        _check_free(region.loops, changing)
        bound = region.bind(examples)
        check_stands_alone(bound)
        if bound.domain.is_empty:
            return BoundRegion(bound, None)
        if region.loops.is_sequential:
            return BoundRegion(bound, LocalCall(bound))
        decide = Decider.for_machine(bound, region.dependences, self._ranks, self._machine, examples)
        return BoundRegion(bound, NestCall(bound, replace(decide, measures=False)(region.wishes())))

    def sweeps(self, number: int, given: Mapping[str, Value], over: range) -> list[PhasesCall] | None:
        """The runs of regions through one pipeline, one after the other; None where they do not fit each other."""
        key = (number, tuple(given.items()), over)
        if key not in self._phased:
            self._phased[key] = self._runs(self._sweeps[number], given, over)
        return self._phased[key]

    def _runs(self, loop: SweepsCall, given: Mapping[str, Value], over: range) -> list[PhasesCall] | None:
        changing = {name: value for name, value in given.items() if isinstance(value, Register)}
        try:
            for phase in loop.phases:
                own = {name: value for name, value in changing.items() if name in phase.loops.parameters}
                _check_free(phase.loops, own)
        except NeedsValue:
            return None  # region by region it may do without
        examples = {name: example_of(value) for name, value in given.items()}
        plans = loop.expected_runs(examples, over, self._ranks, self._nest)
        if plans is None:
            return None
        for plan in plans:
            for bound in plan.distribution.phased.phases:
                check_stands_alone(bound)
        return [PhasesCall(plan) for plan in plans]

    def loop(self, number: int) -> SweepsCall:
        return self._sweeps[number]


def _check_free(loops: ir.LoopNest, changing: Mapping[str, Register]) -> None:
    """Raise NeedsValue for a number that is left to the program and that binding looks at."""
    free = free_scalars(loops, loops.accumulators)
    for name, register in changing.items():
        looked_at = name not in free
        if not looked_at and not register.type.is_inexact and not loops.is_generic:
            # Of integers ranges are found: those may change that reductions begin with, and nothing else.
            made = {name, *(target for setup in set_again(loops, [name]) for target in setup.targets)}
            looked_at = bool(made & {*used_parameters(loops), *loops.symbol_names})
        if looked_at:
            raise NeedsValue(register, f"the loops in line {loops.line} are planned for one value of {name}")
