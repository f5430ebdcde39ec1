"""A program on the ranks of an MPI run: every rank runs the driver, and its regions share the work.

A NumPy array that is passed is the same on all ranks before the call and after it. Regions leave their results where they were
computed; copies are brought up to date before the driver looks at them, and at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from lapwing.api.calls.planned import PlannedNest
from lapwing.api.calls.run import agreed_choices, ways_out_of
from lapwing.api.program_on_disk import ProgramOnDisk
from lapwing.api.program_run import WatchedCalls
from lapwing.errors import DifferentCalls, RefusedError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.program.program import Program
from lapwing.loopnest.source import call_by_name
from lapwing.memo import Memo
from lapwing.notices import followed
from lapwing.runtime.arrays.coherent import Coherence
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.elements import plain_bits
from lapwing.runtime.arrays.meeting import Call, agree_on, check_same_elements, described, is_plain
from lapwing.runtime.arrays.transfer import replicate
from lapwing.runtime.mpi import communicator
from lapwing.scratch_arrays import is_scratch, wanted
from lapwing.store.array import StoredArray

MakeCall = Callable[[Any, Mapping[str, Any]], Any]


def run_on_ranks(
    nest: PlannedNest,
    program: Program,
    regions: Sequence[PlannedNest],
    procedures: Sequence[Any],
    sweeps: Sequence[Any],
    arguments: Mapping[str, Any],
    comm: Any,
    make: MakeCall,
    watched: WatchedCalls | None,
) -> Any:
    """Collective over comm (mpi4py, Lapwing's own). regions, procedures: with the choices of this call. make: makes the calls of
    regions, with arguments by name; watched: told of the others. What the driver returns.

    Raises RefusedError, on every rank the same, where ranks pass different arguments; else what the driver raises.
    """
    given, unwanted = _agreed(nest, arguments, comm)
    unwanted |= program.deleted
    coherence = Coherence(comm)
    with ExitStack() as stack:
        disk = None
        if any(isinstance(value, StoredArray) for value in given.values()):
            disk = stack.enter_context(ProgramOnDisk(nest, given, comm, coherence.look))
            given, sweeps = disk.arguments, ()
            procedures = [disk.procedure(procedure, make) for procedure in procedures]
        calls = [_RegionCall(region, coherence, make, disk) for region in regions]
        tried = [loop.on_ranks(nest, coherence, comm, watched) for loop in sweeps]
        follow = partial(followed, label=nest.name) if comm.Get_rank() == 0 else lambda over: over
        driver = program.looking_driver(
            calls, procedures, tried, coherence.look, coherence.item, coherence.view, follow
        )
        result: Any = None
        error: Exception | None = None
        try:
            with plain_bits(), wanted():
                result = call_by_name(driver, given, nest.python)
        except DifferentCalls:
            raise
        except Exception as raised:
            error = raised
        for name in unwanted if error is None else ():
            if isinstance(given[name], np.ndarray):
                coherence.drop(given[name])
        _end(nest, coherence, error, comm)
        if error is not None:
            raise error
        return result if disk is None else communicator.agree(comm, lambda: disk.returned(result))


def _end(nest: PlannedNest, coherence: Coherence, error: Exception | None, comm: Any) -> None:
    """Bring all arrays up to date, where all ranks have come to the same end. Collective."""
    what = f"the end of {nest.name}"
    if error is not None:
        what += f", which raised {type(error).__name__}: {error}"
    values = (("how many arrays to bring together", str(coherence.behind)),)
    try:
        agree_on(Call(what, nest.where, values=values), "Every rank does the same.", comm)
    except DifferentCalls as different:
        raise error or different from different
    coherence.look_at_all()


class _RegionCall:
    """Calls a region with the parts of arrays that ranks hold."""

    def __init__(self, region: Any, coherence: Coherence, make: MakeCall, disk: ProgramOnDisk | None) -> None:
        self._region, self._coherence, self._make, self._disk = region, coherence, make, disk
        self._parameters = region.loops.parameters
        self._checked: Memo[Any] = Memo()

    def __call__(self, *values: Any) -> Any:
        arguments = dict(zip(self._parameters, values, strict=True))
        try:
            self._coherence.check_views(arguments)
            result = self._called(values, arguments)
            self._coherence.put_views(arguments, self._region.loops.written)
            return result
        finally:
            self._coherence.forget_views()

    def _called(self, values: tuple[Any, ...], arguments: Mapping[str, Any]) -> Any:
        if self._disk is not None:
            return self._disk.call(self._region, arguments, self._on_parts)
        if (as_arrays := self._region.with_arrays(values, {})) is not None:
            try:
                return self._on_parts(*as_arrays)
            except RefusedError as refused:
                if not self._region.is_left_to_python(refused):
                    raise
                self._coherence.look(*values)
                return self._region.interpreted(refused)(*values)
        likeness = self._region.likeness(values)
        region = None if likeness is None else self._checked.get(likeness)
        if region is not None:
            return self._on_checked_parts(region, arguments)
        return self._on_parts(self._region, arguments, likeness)

    def _on_parts(self, region: Any, arguments: Mapping[str, Any], likeness: Any = None) -> Any:
        values = tuple(arguments.values())
        try:
            checked = region.checked(values)  # ranks only hold parts of arrays afterwards
        except RefusedError as refused:
            if not region.is_left_to_python(refused):
                raise
            self._coherence.look(*values)
            return region.interpreted(refused)(*values)
        if likeness is not None:
            self._checked.keep(likeness, checked)
        return self._on_checked_parts(checked, arguments)

    def _on_checked_parts(self, region: Any, arguments: Mapping[str, Any]) -> Any:
        return self._make(region, self._coherence.parts(arguments, region.loops.written))


def _agreed(nest: PlannedNest, arguments: Mapping[str, Any], comm: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The arguments on every rank; what is None is the first rank's. And which of them are scratch arrays. Collective."""
    texts = {
        n: v.identity if isinstance(v, DistributedArray | StoredArray) else described(v) for n, v in arguments.items()
    }
    copies = {name: value for name, value in arguments.items() if is_plain(value)}
    call = Call(nest.name, nest.where, agreed_choices(nest), tuple(texts.items()), frozenset(copies))
    ways_out = ways_out_of(nest)
    holders = agree_on(call, ways_out, comm)
    check_same_elements(call, copies, holders, ways_out, comm)
    missing = communicator.on_any_rank(any(value is None for value in arguments.values()), comm)
    if not missing:
        return dict(arguments), frozenset(name for name, value in arguments.items() if is_scratch(value))
    first = comm.Get_rank() == 0
    told = {
        n: ArrayShape(v.dtype.name, v.shape, is_scratch(v)) if is_plain(v) else _sendable(nest, n, v)
        for n, v in arguments.items()
    }
    told = comm.bcast(told if first else None, root=0)
    found = dict(arguments)
    for name, value in told.items():
        if not isinstance(value, ArrayShape):
            found[name] = value if arguments[name] is None else arguments[name]
        elif len(holders[name]) < comm.Get_size():
            source = arguments[name]
            copy = communicator.agree(comm, partial(_copy, source, value))
            replicate(source, copy, comm)
            found[name] = copy
    return found, frozenset(n for n, value in told.items() if isinstance(value, ArrayShape) and value.is_scratch)


def _copy(values: Any, like: ArrayShape) -> Any:
    return np.empty(like.shape, like.dtype) if values is None else values


def _sendable(nest: PlannedNest, name: str, value: Any) -> Any:
    return None if isinstance(value, DistributedArray) else value
