"""Calls of a program: Python runs its driver, which calls its regions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.calls.planned import PlannedNest
from lapwing.api.calls.run import ranks_of
from lapwing.api.lookahead import LookaheadCall
from lapwing.api.program_forecast import ProgramForecast, forecast
from lapwing.api.program_on_disk import ProgramOnDisk
from lapwing.api.program_on_ranks import MakeCall, run_on_ranks
from lapwing.api.program_plan import PlanRegion, ProgramPlan, interpreted_texts, plan_program
from lapwing.api.program_run import ProgramOutcome, Report, WatchedCalls
from lapwing.api.sweeps import SweepsCall
from lapwing.errors import RefusedError, RunError
from lapwing.loopnest.binding.bound_nest import global_values
from lapwing.loopnest.program.program import Program
from lapwing.loopnest.source import call_by_name, signature_of, takes_all_by_position
from lapwing.notices import followed, say
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.memory_pool import pooled
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.threads import one_call
from lapwing.scratch_arrays import wanted
from lapwing.store.array import StoredArray

MOST_REFUSED = 256  # kinds of arguments that are remembered


def _call(region: Any, arguments: Mapping[str, Any]) -> Any:
    return region(*arguments.values())  # in the order of its parameters


def _kinds(number: int, values: Sequence[Any]) -> tuple[Any, ...]:
    """What a loop is refused for. number: which one."""
    return (number, *((type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for v in values))


def _by_name(region: Any, make: MakeCall) -> Callable[..., Any]:
    names = region.loops.parameters
    return lambda *values: make(region, dict(zip(names, values, strict=True)))


def _as_passed(returned: Any, wrapped: Mapping[int, DistributedArray]) -> Any:
    """What is returned, with the DistributedArrays that were passed in the place of the arrays in them. wrapped: by identity."""
    if isinstance(returned, tuple | list):
        return type(returned)(_as_passed(one, wrapped) for one in returned)
    return wrapped.get(id(returned), returned)


def _check_deleted(nest: PlannedNest, deleted: Collection[str], arguments: Mapping[str, Any]) -> None:
    """Arrays that the program deletes share no memory with others, which may be read after it. Raises RefusedError."""
    if not deleted:
        return
    values = {**global_values(nest.python), **arguments}
    arrays = {n: v for n, v in values.items() if isinstance(v, np.ndarray | DistributedArray)}
    for name in sorted(deleted & arrays.keys()):
        for other in sorted(arrays.keys() - {name}):
            one, two = arrays[name], arrays[other]
            both_plain = isinstance(one, np.ndarray) and isinstance(two, np.ndarray)
            if one is two or (both_plain and np.may_share_memory(one, two)):
                raise RefusedError(
                    f"{nest.where}: arrays {name} and {other} share memory, and {nest.name} deletes {name}, as nobody reads its "
                    f"elements afterwards. Pass {other}.copy(), or leave out del {name}."
                )


@dataclass(eq=False)
class ProgramOfNests:
    """nests: its regions, each a nest of its own, without choices. wholes: as nests, the loops that may be compiled with
    the regions in them."""

    program: Program
    nests: tuple[Any, ...]
    procedures: tuple[Any, ...]
    sweeps: tuple[SweepsCall, ...] = ()
    wholes: tuple[Any, ...] = ()
    fusions: tuple[SweepsCall, ...] = ()
    lookaheads: tuple[LookaheadCall, ...] = ()
    _told: bool = False
    # Of the last call in this process: choices, how many arguments it takes by position, and the driver.
    _alone: tuple[tuple[Any, ...], int, Callable[..., Any]] | None = None
    _refused: set[Any] = field(default_factory=set)  # kinds of arguments of wholes

    def __call__(self, nest: PlannedNest, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run it; see Nest.__call__. Raises what the driver raises."""
        in_order = args
        if kwargs and not args and tuple(kwargs) == tuple(signature_of(nest.python).parameters):
            in_order = tuple(kwargs.values())
        elif kwargs:
            return self.call(nest, nest.arguments(*args, **kwargs))
        driver = self._known_driver(nest, in_order)
        if driver is None:
            return self.call(nest, nest.arguments(*args, **kwargs))
        with wanted(), pooled():
            return driver(*in_order)

    def _known_driver(self, nest: PlannedNest, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        """The driver of an earlier call where this one is like it: in this process, with the same choices, and of arguments that
        are all there and lie in memory. Programs of a millisecond feel what it takes to make one."""
        if self._alone is None:
            return None
        choices, count, driver = self._alone
        if len(args) != count or choices != nest.chosen or not communicator.is_alone(nest.comm):
            return None
        types = set(map(type, args))
        return None if DistributedArray in types or StoredArray in types else driver

    def run(
        self, nest: PlannedNest, arguments: Mapping[str, Any], events: int, report: Report | None = None
    ) -> ProgramOutcome:
        """The same, watched; see Nest.run. events: how many of them to keep on every rank."""
        watched = WatchedCalls(nest.name, ranks_of(nest, arguments, nest.comm), events, report)
        start = time.perf_counter()
        returned = self.call(nest, arguments, watched)
        return watched.outcome(returned, time.perf_counter() - start)

    def call(self, nest: PlannedNest, arguments: Mapping[str, Any], watched: WatchedCalls | None = None) -> Any:
        """The call with arguments by name. watched: makes the calls of regions."""
        make: MakeCall = watched or _call
        _check_deleted(nest, self.program.deleted, arguments)
        regions = [region.like(nest) for region in self.nests]
        ranks = ranks_of(nest, arguments, nest.comm)
        if ranks is None or ranks.Get_rank() == 0:
            self._tell()
        procedures = [_called(procedure, nest, watched) for procedure in self.procedures]
        if ranks is None and any(isinstance(value, StoredArray) for value in arguments.values()):
            return self._call_on_disk(nest, arguments, regions, procedures, make)
        if ranks is not None:
            with one_call(ranks, nest.name):
                return run_on_ranks(
                    nest, self.program, regions, procedures, self.sweeps, arguments, ranks, make, watched
                )
        given = {n: v.whole if isinstance(v, DistributedArray) else v for n, v in arguments.items()}
        sweeps = [loop.alone(nest, watched) for loop in (*self.sweeps, *self.fusions)]
        calls = regions if watched is None else [_by_name(region, make) for region in regions]
        follow = partial(followed, label=nest.name)
        wholes = None if watched is not None else [self._whole(k, nest) for k in range(len(self.wholes))]
        lookaheads = () if watched is not None else self._lookaheads(regions, nest)
        driver = self.program.driver(calls, procedures, sweeps, follow, wholes, lookaheads)
        # Of arrays that are deleted, and of functions that may be no nests any more, something is asked in every call.
        if watched is None and not (self.program.deleted or procedures) and takes_all_by_position(nest.python):
            self._alone = nest.chosen, len(given), driver
        with wanted(), pooled():
            returned = call_by_name(driver, given, nest.python)
        wrapped = {id(given[n]): v for n, v in arguments.items() if isinstance(v, DistributedArray)}
        return _as_passed(returned, wrapped) if wrapped else returned

    def _lookaheads(self, regions: Sequence[Any], nest: PlannedNest) -> list[Callable[..., Any]]:
        by_name = {region.name: call for region, call in zip(self.program.regions, regions, strict=True)}
        return [ahead.alone(by_name[ahead.lookahead.region_name], nest) for ahead in self.lookaheads]

    def _whole(self, number: int, nest: PlannedNest) -> Callable[..., Any]:
        """What is called in the place of a loop with its regions: gives the values of its outputs, or None where it has done
        nothing, so that the loop says what is wrong."""
        if nest.is_cut_by_hand:
            return lambda *values: None  # those are choices for regions that are cut into tiles
        whole, outputs = self.wholes[number].like(nest), self.program.wholes[number].outlined.outputs

        def done(*values: Any) -> Any:
            # What is refused once would be again, and finding that out takes longer than its regions.
            if self._refused and _kinds(number, values) in self._refused:
                return None
            try:
                returned = whole(*values)
            except RefusedError:
                if len(self._refused) < MOST_REFUSED:
                    self._refused.add(_kinds(number, values))
                return None
            except RunError:
                return None
            return (returned,) if len(outputs) == 1 else returned if outputs else ()

        return done

    def plan(
        self, nest: PlannedNest, arguments: Mapping[str, Any], ranks: int, plan_region: PlanRegion | None = None
    ) -> ProgramPlan:
        """How it would run; see Nest.plan. plan_region: plans a region for arguments of which arrays are shapes."""
        regions = [region.like(nest) for region in self.nests]
        by_rule: PlanRegion = lambda region, values: region.plan(**values, ranks=ranks)  # noqa: E731
        return plan_program(
            nest, self.program, regions, self.sweeps, arguments, ranks, plan_region or by_rule, self.lookaheads
        )

    def forecast(
        self, nest: PlannedNest, arguments: Mapping[str, Any], ranks: int, machine: str | None, iterations: int
    ) -> ProgramForecast:
        """What a run should take; see forecast()."""
        regions = [region.like(nest) for region in self.nests]
        return forecast(nest, self.program, regions, self.sweeps, arguments, ranks, machine, iterations)

    def _call_on_disk(
        self,
        nest: PlannedNest,
        arguments: Mapping[str, Any],
        regions: Sequence[Any],
        procedures: Sequence[Any],
        make: MakeCall,
    ) -> Any:
        """In this process, on arrays on disk: loops of sweeps are done region by region."""
        with ProgramOnDisk(nest, arguments) as disk:
            calls = [_by_name(region, partial(disk.call, make=make)) for region in regions]
            procedures = [disk.procedure(procedure, make) for procedure in procedures]
            driver = self.program.driver(calls, procedures, follow=partial(followed, label=nest.name))
            with wanted():
                return disk.returned(call_by_name(driver, disk.arguments, nest.python))

    def _tell(self) -> None:
        """Say once what Python runs, since that takes its time."""
        if self._told:
            return
        self._told = True
        for loop in self.program.interpreted:
            for text in interpreted_texts(self.program.source.file, loop):
                say(text)


def _called(procedure: Any, nest: PlannedNest, watched: WatchedCalls | None) -> Any:
    """What is called in the place of a function with loops: the nest that it is, with the choices of the call, or the function
    itself where it is none."""
    if procedure.refusals:
        return procedure.python
    called = procedure.like(nest)
    return called if watched is None else _Watched(called, watched)


class _Watched:
    """A nest or program whose calls are watched."""

    def __init__(self, nest: Any, watched: WatchedCalls) -> None:
        self.nest, self._watched = nest, watched

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        arguments = self.nest.arguments(*args, **kwargs)
        program = self.nest.program
        if program is None:
            return self._watched(self.nest, arguments)
        return program.call(self.nest, arguments, self._watched)
