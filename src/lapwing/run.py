"""Running a nest on its arguments: alone, or collectively on the ranks of an MPI run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import LapwingError, RefusedError, RunError
from lapwing.loopnest.binding import BoundNest, global_values
from lapwing.loopnest.promotion import scalar_type
from lapwing.planner.choose import make_plan
from lapwing.planner.plan import Plan
from lapwing.runtime import communicator
from lapwing.runtime.alone import run_alone
from lapwing.runtime.distributed import DistributedArray, partition_of, write_offsets
from lapwing.runtime.execute import Measure, Outcome, Report, run_on_ranks
from lapwing.runtime.tuning import place_of
from lapwing.tiling.partition import Partition
from lapwing.tiling.skewing import find_skew

if TYPE_CHECKING:
    from lapwing.api import Nest


def run(
    nest: Nest,
    arguments: Mapping[str, Any],
    report: Report | None = None,
    measure: Measure | None = None,
    plan: Plan | None = None,
) -> Outcome:
    """Run a nest; see Nest.__call__. Returns the outcome with times and plan.

    plan: one that was made for these arguments before, on the first rank; None makes one.

    Raises RefusedError, BuildError or RunError, on every rank the same.
    """
    if not communicator.launched():
        arguments = {n: v.whole if isinstance(v, DistributedArray) else v for n, v in arguments.items()}
        bound, plan = bound_alone(nest, arguments, plan)
        return run_alone(
            bound, plan, _all_arrays(nest, bound, arguments), communicator.announcer(True), report, measure
        )
    return _run_collectively(nest, arguments, communicator.world(), report, measure, plan)


def bound_alone(nest: Nest, arguments: Mapping[str, Any], plan: Plan | None = None) -> tuple[BoundNest, Plan]:
    """What a run in this process follows: the nest bound to its arguments, and the plan, made where there is none.

    Raises RefusedError.
    """
    bound = nest.bind(arguments)
    check_aliases(bound, {**global_values(nest.python), **arguments})
    return bound, plan or make_plan(bound, nest.dependences, 1, nest.wishes())


def _run_collectively(
    nest: Nest,
    arguments: Mapping[str, Any],
    comm: Any,
    report: Report | None,
    measure: Measure | None,
    plan: Plan | None,
) -> Outcome:
    rank, node, place = comm.Get_rank(), communicator.ranks_of_node(), place_of(comm)
    distributed = {n: v for n, v in arguments.items() if isinstance(v, DistributedArray)}
    message: Any = None
    unexpected: Exception | None = None
    if rank == 0:
        try:
            bound = nest.bind(arguments)
            values = {**global_values(nest.python), **arguments}
            check_aliases(bound, {n: _whole(v) for n, v in values.items()})
            _check_same_arrays(bound, distributed)
            stubs = stand_ins(nest, bound, arguments)
            free = nest.grid or find_skew(nest.loops, nest.dependences)
            given = None if free else _given_partition(bound, distributed)
            plan = plan or nest.planned(bound, comm.Get_size(), len(node), place.ranks, arguments, given)
            message = (stubs, plan)
        except LapwingError as error:
            message = error
        except Exception as error:  # the other ranks must not wait for a message that never comes
            unexpected = error
            message = RunError(f"rank 0 could not prepare the run: {type(error).__name__}: {error}")
    communicator.meet(comm)
    message = comm.bcast(message, root=0)
    if unexpected is not None:
        raise unexpected
    if isinstance(message, LapwingError):
        raise message
    stubs, plan = message
    bound = bind_stand_ins(nest, stubs)
    sources = arrays_of_first(nest, bound, arguments, rank)
    skewed = plan.skew is not None
    whole_again = [n for n in bound.nest.written if n in distributed and (skewed or write_offsets(bound, n) > 1)]
    for name in distributed:
        # Several write offsets leave the last values of some elements with other ranks than their owners, and a skewed
        # nest leaves every rank with a parallelogram of elements.
        sources[name] = distributed[name].collect() if name in whole_again else distributed[name]
    announce = communicator.announcer(rank == 0)
    report = report if rank == 0 else None
    return run_on_ranks(bound, plan, sources, comm, place, announce, report, measure, nest.tuning)


def _whole(value: Any) -> Any:
    """The NumPy array behind a DistributedArray that no nest has distributed yet."""
    return value.whole if isinstance(value, DistributedArray) and value.whole is not None else value


def _stub(value: Any) -> Any:
    from lapwing.api import ArrayShape

    known = isinstance(value, np.ndarray | DistributedArray)
    return ArrayShape(value.dtype.name, value.shape) if known else value


def stand_ins(nest: Nest, bound: BoundNest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What other ranks bind the nest to, from the arguments of rank 0: scalars, and the shapes of arrays, globals included."""
    from lapwing.api import ArrayShape

    values = {**global_values(nest.python), **arguments}
    found = {n: _stub(v) for n, v in values.items() if n in arguments or scalar_type(v) is not None}
    return {**found, **{a.name: ArrayShape(a.dtype, a.shape) for a in bound.arrays}}


def bind_stand_ins(nest: Nest, stubs: Mapping[str, Any]) -> BoundNest:
    """The nest bound as rank 0 has bound it."""
    return nest.bind(stubs, {**global_values(nest.python), **stubs})


def arrays_of_first(nest: Nest, bound: BoundNest, arguments: Mapping[str, Any], rank: int) -> dict[str, Any]:
    """The arrays of a call by name, arguments and global read-only ones, on rank 0; None in their place elsewhere."""
    if rank != 0:
        return dict.fromkeys(a.name for a in bound.arrays)
    return _all_arrays(nest, bound, arguments)


def _all_arrays(nest: Nest, bound: BoundNest, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a call by name: arguments, and global read-only arrays."""
    values = {**global_values(nest.python), **arguments}
    return {a.name: values[a.name] for a in bound.arrays}


def _given_partition(bound: BoundNest, distributed: Mapping[str, DistributedArray]) -> Partition | None:
    """The partition under which an array that is distributed already stays where it is, if there is one."""
    for name in bound.nest.written:
        if name in distributed and (layout := distributed[name].layout) is not None:
            return partition_of(bound, name, layout)
    return None


def _check_same_arrays(bound: BoundNest, distributed: Mapping[str, DistributedArray]) -> None:
    names = list(distributed)
    for k, name in enumerate(names):
        for other in names[k + 1 :]:
            if distributed[name] is distributed[other] and {name, other} & set(bound.nest.written):
                raise RefusedError(
                    f"{bound.nest.where(bound.nest.line)}: {name} and {other} are the same array, and it is written. "
                    "Pass two arrays."
                )


def _check_plain_array(bound: BoundNest, name: str, values: Any) -> None:
    where = bound.nest.where(bound.nest.line)
    if isinstance(values, DistributedArray):
        return
    if not isinstance(values, np.ndarray) or isinstance(values, np.ma.MaskedArray):
        kind = f"{type(values).__module__}.{type(values).__name__}"
        raise RefusedError(
            f"{where}: array {name} is a {kind}, expected a NumPy array. Pass numpy.asarray({name}) or its plain values."
        )
    if name in bound.nest.written and _may_overlap_itself(values):
        raise RefusedError(
            f"{where}: elements of array {name} overlap in memory, and it is written. Pass {name}.copy()."
        )


def _may_overlap_itself(values: npt.NDArray[Any]) -> bool:
    """Whether some axis steps over less than the axes inside it cover, as in views made by as_strided."""
    covered = values.itemsize
    for stride, extent in sorted((abs(s), n) for s, n in zip(values.strides, values.shape, strict=True) if n > 1):
        if stride < covered:
            return True
        covered += stride * (extent - 1)
    return False


def _share_memory(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Whether two arrays have elements in common; arrays too intricate to tell count as sharing."""
    try:
        return bool(np.shares_memory(a, b, max_work=10_000))  # type: ignore[arg-type]  # any limit is accepted
    except np.exceptions.TooHardError:
        return True


def check_aliases(bound: BoundNest, arguments: Mapping[str, Any]) -> None:
    """Written arrays must not share memory with others: the plain loop would see writes through both names.

    arguments: arrays by name, global ones included. What is no plain array is refused as well.
    """
    arrays = [(a.name, arguments.get(a.name)) for a in bound.arrays]
    for name, values in arrays:
        _check_plain_array(bound, name, values)
    for name, written in arrays:
        if name not in bound.nest.written:
            continue
        for other, values in arrays:
            if other == name or not isinstance(values, np.ndarray) or not isinstance(written, np.ndarray):
                continue
            if _share_memory(written, values):
                raise RefusedError(
                    f"{bound.nest.where(bound.nest.line)}: arrays {name} and {other} share memory, and {name} is written. "
                    f"Pass {other}.copy()."
                )
