"""Running a nest on its arguments: alone, or collectively on the ranks of an MPI run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.api.calls.decide import Decider, PlannedCalls
from lapwing.api.calls.out_of_core import (
    Ending,
    WorkOnDisk,
    check_different,
    loaded_arrays,
    out_of_core_plan,
    state_of_earlier,
    stored_arrays,
    task_of,
)
from lapwing.api.calls.planned import PlannedNest
from lapwing.errors import LapwingError, RefusedError, RunError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest, global_values
from lapwing.loopnest.binding.promotion import scalar_type
from lapwing.loopnest.binding.scalars import names_from_outside
from lapwing.loopnest.refusals import Refusals
from lapwing.planner.cuts import most_ranks
from lapwing.planner.plan import Plan
from lapwing.runtime.alone import run_alone, run_alone_on_disk
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.layout import partition_of, write_offsets
from lapwing.runtime.arrays.meeting import Call, agree_on, check_same_elements, described, is_plain, share_memory
from lapwing.runtime.execute import Measure, Outcome, Report, idle_outcome, outcome_of, run_on_ranks
from lapwing.runtime.mpi import communicator
from lapwing.runtime.mpi.threads import one_call
from lapwing.runtime.tuning import Place, place_of
from lapwing.scratch_arrays import is_scratch
from lapwing.store.array import StoredArray
from lapwing.store.manifest import State
from lapwing.tiling.partition import Partition


@dataclass(frozen=True)
class Found:
    """What a call has found out. calls: on the first rank, where the plan was not given. place: this rank's."""

    bound: BoundNest
    plan: Plan
    calls: PlannedCalls | None
    place: Place


@dataclass
class Met:
    """The ranks of a call have told each other of it (``meeting.tell``). ``found``: after it."""

    told: npt.NDArray[np.int64]
    found: Found | None = None


def run(
    nest: PlannedNest,
    arguments: Mapping[str, Any],
    report: Report | None = None,
    measure: Measure | None = None,
    plan: Plan | None = None,
    comm: Any = None,
    ending: Ending | None = None,
    met: Met | None = None,
) -> Outcome:
    """Run a nest; see Nest.__call__. Returns the outcome with times and plan.

    plan: one that was made for these arguments before, on the first rank; None makes one. comm: the ranks that make this
    call, as for ``Nest.using``; None takes the nest's, else the arrays', else all. ending: of a run on arrays on disk. met: where
    these ranks have told each other of the call.

    Raises RefusedError, BuildError or RunError, on every rank the same.
    """
    ranks = ranks_of(nest, arguments, nest.comm if comm is None else comm)
    if ranks is None:
        arguments = {n: v.whole if isinstance(v, DistributedArray) else v for n, v in arguments.items()}
        bound = bound_alone(nest, arguments)
        arrays, announce = _all_arrays(nest, bound, arguments), communicator.announcer(True)
        if stored := stored_arrays(arguments):
            check_different(bound, stored)
            decide = Decider.here(bound, bound.analysis.dependences, 1, 1, 1, arguments)
            plan = plan or out_of_core_plan(nest, decide, stored)
            if bound.domain.is_empty:
                return idle_outcome(bound, plan)
            state = state_of_earlier(nest, bound, plan, stored)
            on_disk = WorkOnDisk(bound, plan, stored, task_of(nest, bound, stored), state, ending)
            if on_disk.is_complete:
                on_disk.finish()
                return replace(outcome_of(plan, on_disk.results, 0.0, [], None), earlier_sweeps=state.sweeps)
            loaded = loaded_arrays(plan, arrays)
            outcome = run_alone_on_disk(bound, plan, loaded, on_disk, announce, report, measure)
            return replace(outcome, earlier_sweeps=state.sweeps)
        if plan is not None:
            return run_alone(bound, plan, arrays, announce, report, measure)
        calls = nest.planned(bound, 1, 1, 1, arguments)
        outcome = run_alone(bound, calls.plan, arrays, announce, report, measure)
        calls.note_run(outcome.seconds)
        return outcome
    with one_call(ranks, nest.name):
        return _run_collectively(nest, arguments, ranks, report, measure, plan, ending, met)


def ranks_of(nest: PlannedNest, arguments: Mapping[str, Any], comm: Any) -> Any | None:
    """Lapwing's own communicator of the ranks a call is for: as wished, else those of its arrays; None for this one alone."""
    if comm is None and not any(isinstance(v, DistributedArray) for v in arguments.values()):
        return communicator.ranks_for(None, nest.name)
    arrays = {name: v for name, v in arguments.items() if isinstance(v, DistributedArray)}
    chosen = next(iter(arrays.values())).comm if comm is None else communicator.ranks_for(comm, nest.name)
    for name, array in arrays.items():
        if array.comm != chosen:
            raise RefusedError(
                f"{nest.where}: {nest.name}: array {name} is distributed over "
                f"{communicator.described(array.comm)}, but the call is for {communicator.described(chosen)}. "
                "Give arrays and calls the same comm=."
            )
    return chosen


def own_ranks(nest: PlannedNest, values: Iterable[Any]) -> Any | None:
    """The same without a look at whether arrays fit the wish."""
    for value in values:
        if type(value) is DistributedArray:
            return value.comm
    return communicator.ranks_for(nest.comm, nest.name)


def bound_alone(nest: PlannedNest, arguments: Mapping[str, Any]) -> BoundNest:
    """The nest bound to the arguments of a run in this process. Raises RefusedError, also for arrays that share memory."""
    bound = nest.bind(arguments)
    check_aliases(bound, {**global_values(nest.python), **arguments})
    nest.called_integers.note(None, arguments)
    return bound


def _run_collectively(
    nest: PlannedNest,
    arguments: Mapping[str, Any],
    comm: Any,
    report: Report | None,
    measure: Measure | None,
    plan: Plan | None,
    ending: Ending | None,
    met: Met | None,
) -> Outcome:
    values = {**global_values(nest.python), **arguments}
    call = call_of(nest, arguments, values)
    ways_out = ways_out_of(nest)
    holders = agree_on(call, ways_out, comm, None if met is None else met.told)
    rank, node, place = comm.Get_rank(), communicator.ranks_of_node(comm), place_of(comm)
    distributed = {n: v for n, v in arguments.items() if isinstance(v, DistributedArray)}
    stored = stored_arrays(arguments)
    message: Any = None
    state = State()
    calls: PlannedCalls | None = None  # on the first rank, where the plan is not given
    unexpected: Exception | None = None
    if rank == 0:
        try:
            bound = nest.bind(arguments)
            check_aliases(bound, {n: _whole(v) for n, v in values.items()})
            check_same_arrays(bound, distributed)
            check_different(bound, stored)
            stubs = stand_ins(nest, bound, arguments)
            free = nest.grid or nest.skew
            given = None if free or stored else _given_partition(bound, distributed, comm.Get_size())
            if plan is None and stored:
                decide = Decider.here(
                    bound, bound.analysis.dependences, comm.Get_size(), len(node), place.ranks, arguments
                )
                plan = out_of_core_plan(nest, decide, stored)
            if plan is None:
                calls = nest.planned(bound, comm.Get_size(), len(node), place.ranks, arguments, given)
                plan = calls.plan
            if stored:
                state = state_of_earlier(nest, bound, plan, stored)
            message = (stubs, plan, state, stored)
        except LapwingError as error:
            message = error
        except Exception as error:  # the other ranks must not wait for a message that never comes
            unexpected = error
            message = RunError(f"rank 0 could not prepare the run: {type(error).__name__}: {error}")
    communicator.join(comm)
    message = comm.bcast(message, root=0)
    if unexpected is not None:
        raise unexpected
    if isinstance(message, LapwingError):
        raise message
    stubs, plan, state, stored = message  # a rank that gives None for an array on disk has the first rank's
    bound = bind_stand_ins(nest, stubs)
    nest.called_integers.note(comm, stubs)
    copies = {n: values[n] for n in call.copies}
    if any(len(ranks) > 1 for ranks in holders.values()):
        communicator.agree(comm, lambda: check_aliases(bound, copies))
    check_same_elements(call, copies, holders, ways_out, comm)
    sources: dict[str, Any] = {a.name: copies.get(a.name) for a in bound.arrays}
    for name, array in distributed.items():
        # Of several writes to an element in other domains than boxes it is not known which rank's is the last.
        several = name in bound.nest.written and write_offsets(bound, name) > 1
        sources[name] = array.collect() if several and not bound.domain.is_box else array
    on_disk = None
    if stored and not bound.domain.is_empty:
        on_disk = WorkOnDisk(bound, plan, stored, task_of(nest, bound, stored), state, ending)
        if on_disk.is_complete:
            communicator.agree(comm, lambda: on_disk.finish() if rank == 0 else None)
            return replace(outcome_of(plan, on_disk.results, 0.0, [], None), earlier_sweeps=state.sweeps)
        loaded = communicator.agree(comm, lambda: loaded_arrays(plan, stored) if rank == 0 else {})
        sources.update(loaded)
    announce = communicator.announcer(rank == 0)
    report = report if rank == 0 else None
    outcome = run_on_ranks(bound, plan, sources, holders, comm, place, announce, report, measure, nest.tuning, on_disk)
    outcome = replace(outcome, earlier_sweeps=state.sweeps)
    if calls is not None:
        calls.note_run(outcome.seconds)
    if met is not None:
        met.found = Found(bound, plan, calls, place)
    return outcome


def call_of(nest: PlannedNest, arguments: Mapping[str, Any], values: Mapping[str, Any]) -> Call:
    """A call as this rank makes it. Where it leaves an argument out, or gives None for it, rank 0's counts."""
    loops = nest.loops
    outside = (n for n in names_from_outside(loops) if n in values and n not in arguments)
    names = [n for n in outside if n in loops.arrays or scalar_type(values[n]) is not None]
    given = {name: values.get(name) for name in (*loops.parameters, *sorted(names))}
    texts = {n: v.identity if isinstance(v, DistributedArray | StoredArray) else described(v) for n, v in given.items()}
    return Call(
        loops.name,
        loops.where(loops.line),
        agreed_choices(nest),
        tuple(texts.items()),
        frozenset(n for n, v in given.items() if n in loops.arrays and is_plain(v)),
    )


def agreed_choices(nest: PlannedNest) -> tuple[tuple[str, str], ...]:
    """The choices made by hand that are the same on all ranks, for Call."""
    return tuple((name, repr(choice)) for name, choice in nest.choices.items() if name not in ("comm", "resume"))


def ways_out_of(nest: PlannedNest) -> str:
    """What to do where ranks pass different arguments."""
    name = nest.name
    return (
        "Pass the same on every rank; or None on all ranks but rank 0, whose value counts then; or, for an array that stays on "
        f"the ranks, a lw.DistributedArray; or run on each rank by itself: {name}.using(comm=lw.SELF)."
    )


def _whole(value: Any) -> Any:
    """The NumPy array behind a DistributedArray that no nest has distributed yet."""
    return value.whole if isinstance(value, DistributedArray) and value.whole is not None else value


def _stub(value: Any) -> Any:
    known = isinstance(value, np.ndarray | DistributedArray | StoredArray)
    return ArrayShape(value.dtype.name, value.shape, is_scratch(value)) if known else value


def agree_on_problem(nest: PlannedNest, arguments: Mapping[str, Any], comm: Any) -> None:
    """See that the ranks are about to run the same nest among the same globals; the arguments are the first rank's.

    Collective. arguments: {} on other ranks. Raises RefusedError, on every rank the same.
    """
    values = {**global_values(nest.python), **arguments}
    call, ways_out = call_of(nest, arguments, values), ways_out_of(nest)
    holders = agree_on(call, ways_out, comm)
    check_same_elements(call, {n: values[n] for n in call.copies}, holders, ways_out, comm)


def stand_ins(nest: PlannedNest, bound: BoundNest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What other ranks bind the nest to, from the arguments of rank 0: scalars, and the shapes of arrays, globals included."""
    values = {**global_values(nest.python), **arguments}
    found = {n: _stub(v) for n, v in values.items() if n in arguments or scalar_type(v) is not None}
    return {**found, **{a.name: ArrayShape(a.dtype, a.shape, a.name in bound.dead) for a in bound.arrays}}


def bind_stand_ins(nest: PlannedNest, stubs: Mapping[str, Any]) -> BoundNest:
    """The nest bound as rank 0 has bound it."""
    return nest.bind(stubs, {**global_values(nest.python), **stubs})


def arrays_of_first(nest: PlannedNest, bound: BoundNest, arguments: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """The arrays of a call by name, arguments and global read-only ones, on rank 0; None in their place elsewhere, but for
    distributed ones."""
    if rank != 0:
        found = {a.name: arguments.get(a.name) for a in bound.arrays}
        return {name: value if isinstance(value, DistributedArray) else None for name, value in found.items()}
    return _all_arrays(nest, bound, arguments)


def _all_arrays(nest: PlannedNest, bound: BoundNest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a call by name: arguments, and global read-only arrays."""
    values = {**global_values(nest.python), **arguments}
    return {a.name: values[a.name] for a in bound.arrays}


def _given_partition(bound: BoundNest, distributed: Mapping[str, DistributedArray], ranks: int) -> Partition | None:
    """The partition under which an array that is distributed already stays where it is, if it has work for as many ranks as
    can be."""
    for name in bound.nest.written:
        if name in distributed and (layout := distributed[name].layout) is not None:
            partition = partition_of(bound, name, layout)
            extents = bound.domain.box[bound.nest.sweep_depth :]
            most = most_ranks(ranks, tuple(high - low for low, high in extents))
            return partition if partition is not None and partition.ranks == most else None
    return None


def check_same_arrays(bound: BoundNest, distributed: Mapping[str, DistributedArray]) -> None:
    """As ``check_aliases``, for distributed arrays. Raises RefusedError."""
    names = list(distributed)
    for k, name in enumerate(names):
        for other in names[k + 1 :]:
            same = distributed[name] is distributed[other] and 0 not in distributed[name].shape
            if same and {name, other} & set(bound.nest.written):
                raise RefusedError(
                    f"{bound.nest.where(bound.nest.line)}: {name} and {other} are the same array, and it is written. "
                    "Pass two arrays."
                )


def _check_plain_array(bound: BoundNest, name: str, values: Any, refusals: Refusals) -> None:
    if isinstance(values, DistributedArray | StoredArray):
        return
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray | np.matrix):
        kind = f"{type(values).__module__}.{type(values).__name__}"
        advice = f"pass numpy.asarray({name}) or its plain values"
        refusals.note(bound.nest.line, f"array {name} is a {kind}, expected a NumPy array", advice)
    elif name in bound.nest.written and _may_overlap_itself(values):
        found = f"elements of array {name} overlap in memory, and it is written"
        refusals.note(bound.nest.line, found, f"pass {name}.copy()")


def _may_overlap_itself(values: npt.NDArray[Any]) -> bool:
    """Whether some axis steps over less than the axes inside it cover, as in views made by as_strided."""
    if values.size == 0:
        return False  # the strides of an array without elements say nothing
    covered = values.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(values.strides, values.shape, strict=True) if n > 1):
        if stride < covered:
            return True
        covered += stride * (extent - 1)
    return False


def check_aliases(bound: BoundNest, arguments: Mapping[str, Any]) -> None:
    """Written arrays must not share memory with others: the plain loop would see writes through both names.

    arguments: arrays by name, global ones included. What is no plain array is refused as well.
    """
    refusals = Refusals(bound.nest.file)
    arrays = [(a.name, arguments[a.name]) for a in bound.arrays if a.name in arguments]
    for name, values in arrays:
        _check_plain_array(bound, name, values, refusals)
    plain = [(name, values) for name, values in arrays if isinstance(values, np.ndarray)]
    for pair in itertools.combinations(plain, 2):
        # The one that is written first, so that the other is what may be copied.
        (name, one), (other, values) = sorted(pair, key=lambda named: named[0] not in bound.nest.written)
        if name in bound.nest.written and share_memory(one, values):
            found = f"arrays {name} and {other} share memory, and {name} is written"
            refusals.note(bound.nest.line, found, f"pass {other}.copy()", memory_is_shared=True)
    refusals.raise_if_any()
