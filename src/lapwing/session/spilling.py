"""`lapwing run --memory`: arrays that do not fit are made on disk, each rank its part, for as long as the runs last."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.api.calls.decide import Decider
from lapwing.api.calls.out_of_core import streaming_wishes
from lapwing.api.nest import Nest
from lapwing.errors import RefusedError
from lapwing.loopnest.array_shape import ArrayShape
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.planner.plan import Plan
from lapwing.planner.streaming import DISK_BLOCK
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.on_disk import copy_elements
from lapwing.runtime.arrays.transfer import pieces, slices
from lapwing.runtime.mpi import communicator
from lapwing.session.first_rank import from_first, on_first
from lapwing.store.array import StoredArray
from lapwing.store.boxes import Box
from lapwing.store.chunking import blocks, default_chunks
from lapwing.store.opening import create
from lapwing.store.opening import open as open_stored
from lapwing.temporary import scratch_directory

Report = Callable[[str, float], None]

_SMALL_SHARE = 16  # read-only arrays of less than this part of the memory stay in it
_CHUNK_BYTES = 8 << 20
_MADE_AT_ONCE = 4 << 20


@contextmanager
def spilled(
    nest: Nest,
    arguments: Mapping[str, Any],
    comm: Any,
    places: tuple[int, int, int],
    scratch: str | None,
    report: Report,
) -> Iterator[dict[str, Any]]:
    """The arguments, with arrays on disk in place of those that take more memory than there may be. Collective.

    arguments: of every rank; plain arrays count on the first. places: how many ranks there are, on a node, and on its cores.
    scratch: the folder for the disk's files.
    """
    shapes = from_first(comm, lambda: shapes_in_memory(nest, arguments))
    if not is_too_much(nest, shapes):
        yield dict(arguments)
        return

    def planned() -> Plan:
        bound = nest.bind({**arguments, **shapes})
        return spilled_plan(
            nest, Decider.here(bound, bound.analysis.dependences, *places, {**arguments, **shapes}), shapes
        )

    plan = on_first(comm, planned)
    plan = from_first(comm, lambda: plan)
    if plan.streaming is None:  # there is no iteration
        yield dict(arguments)
        return
    bound = nest.bind({**_others(arguments, shapes, comm), **shapes})
    with ExitStack() as stack:
        folder = on_first(comm, lambda: _folder(scratch, stack))
        folder = from_first(comm, lambda: folder)
        found = dict(arguments)
        for name in plan.streaming.arrays:
            chunks = _chunks(bound, plan, name)
            path = str(Path(folder) / f"{name}.zarr")
            found[name] = _on_disk(path, shapes[name], chunks, arguments.get(name), comm, report)
        yield found


@contextmanager
def spilled_program(
    nest: Nest, arguments: Mapping[str, Any], comm: Any, scratch: str | None, report: Report
) -> Iterator[dict[str, Any]]:
    """The same for a program: its arrays of more than a small part of the memory, in whole rows. Collective."""

    def too_large() -> dict[str, ArrayShape]:
        shapes = {
            name: ArrayShape(np.dtype(value.dtype).name, tuple(value.shape))
            for name, value in arguments.items()
            if isinstance(value, np.ndarray | DistributedArray) and value.shape
        }
        if nest.memory is None or sum(map(_bytes, shapes.values())) <= nest.memory:
            return {}
        limit = nest.memory // _SMALL_SHARE
        return {name: shape for name, shape in shapes.items() if _bytes(shape) > limit}

    shapes = from_first(comm, too_large)
    with ExitStack() as stack:
        found = dict(arguments)
        if shapes:
            folder = on_first(comm, lambda: _folder(scratch, stack))
            folder = from_first(comm, lambda: folder)
        for name, shape in shapes.items():
            chunks = default_chunks(shape.shape, np.dtype(shape.dtype).itemsize)
            found[name] = _on_disk(str(Path(folder) / f"{name}.zarr"), shape, chunks, arguments.get(name), comm, report)
        yield found


@contextmanager
def fresh_arrays(
    arrays: Mapping[str, StoredArray], last: bool, scratch: str | None, comm: Any
) -> Iterator[dict[str, StoredArray]]:
    """Arrays on disk for one run: those themselves for the last one, copies for as long as another lasts. Collective."""
    if last or not arrays:
        yield dict(arrays)
        return
    with ExitStack() as stack:
        folder = on_first(comm, lambda: _folder(scratch, stack))
        folder = from_first(comm, lambda: folder)
        found = {}
        for name, array in arrays.items():
            path, shape = str(Path(folder) / f"{name}.zarr"), ArrayShape(array.dtype.name, array.shape)
            found[name] = _made(path, shape, default_chunks(array.shape, array.dtype.itemsize), comm)
            copy_elements(array, found[name], comm)
        yield found


def _on_disk(
    path: str, shape: ArrayShape, chunks: tuple[int, ...], source: Any, comm: Any, report: Report
) -> StoredArray:
    """An array on disk with the elements of one in memory. Collective."""
    stored = _made(path, shape, chunks, comm)
    _fill(stored, source, comm, partial(report, f"writing {Path(path).stem} to disk"))
    return stored


def _made(path: str, shape: ArrayShape, chunks: tuple[int, ...], comm: Any) -> StoredArray:
    on_first(comm, lambda: create(path, shape.shape, shape.dtype, chunks=chunks))
    return communicator.agree(comm, lambda: open_stored(path)) if comm else open_stored(path)


def shapes_in_memory(nest: Nest, arguments: Mapping[str, Any]) -> dict[str, ArrayShape]:
    """The arrays among the arguments that are in memory, or to be made there."""
    return {
        name: ArrayShape(np.dtype(value.dtype).name, tuple(value.shape))
        for name, value in arguments.items()
        if name in nest.loops.arrays and isinstance(value, np.ndarray | DistributedArray)
    }


def _bytes(shape: ArrayShape) -> int:
    return math.prod(shape.shape) * np.dtype(shape.dtype).itemsize


def is_too_much(nest: Nest, shapes: Mapping[str, ArrayShape]) -> bool:
    """Whether arrays take more than the memory that there may be."""
    return nest.memory is not None and sum(map(_bytes, shapes.values())) > nest.memory


def _others(arguments: Mapping[str, Any], shapes: Mapping[str, ArrayShape], comm: Any) -> dict[str, Any]:
    """Arguments that are no arrays, as the first rank has them."""
    found: dict[str, Any] = from_first(comm, lambda: {n: v for n, v in arguments.items() if n not in shapes})
    return found


def spilled_plan(nest: Nest, decide: Decider, shapes: Mapping[str, ArrayShape]) -> Plan:
    """A plan for arrays on disk, before it is known how they are cut into chunks."""
    written = decide.bound.nest.written
    limit = (nest.memory or 0) // _SMALL_SHARE
    names = {n: s.shape for n, s in shapes.items() if n in written or _bytes(s) > limit}
    return decide.streaming(nest.wishes(), streaming_wishes(nest), names)


def _chunks(bound: BoundNest, plan: Plan, name: str) -> tuple[int, ...]:
    """Chunks as wide as blocks, of whole blocks of the disk, and some MiB large."""
    array = bound.array(name)
    access = next(a for a in bound.accesses if a.array == name)
    widths = list(array.shape)
    for axis in range(1, len(widths)):
        affine = access.affine[axis]
        loops = [] if affine is None else [k for k, s in enumerate(bound.nest.space_loops) if s.name in affine.names]
        if len(loops) == 1 and plan.partition.grid[loops[0]] > 1:
            unit = max(1, DISK_BLOCK // array.itemsize) if axis == len(widths) - 1 else 1
            cuts = plan.partition.cuts[loops[0]]
            assert affine is not None
            inner = [0, *(c + affine.constant for c in cuts[1:-1]), widths[axis]]
            widest = max(high - low for low, high in itertools.pairwise(inner))
            widths[axis] = min(widths[axis], -(-widest // unit) * unit)
    row = array.itemsize * math.prod(widths[1:])
    widths[0] = max(1, min(array.shape[0], _CHUNK_BYTES // max(1, row)))
    return tuple(widths)


def _fill(stored: StoredArray, source: Any, comm: Any, report: Callable[[float], None]) -> None:
    """Write all elements: every rank those of some chunks, or the first all where it alone has them. Collective."""
    rank, ranks = (0, 1) if comm is None else (comm.Get_rank(), comm.Get_size())
    initial = source.initial if isinstance(source, DistributedArray) else None
    by_all = from_first(comm, lambda: initial is not None)
    if not by_all and isinstance(source, DistributedArray):
        source = source.numpy()

    def write() -> None:
        if not by_all and rank != 0:
            return
        everything: Box = tuple((0, n) for n in stored.shape)
        boxes = list(blocks(everything, stored.chunks))
        own = boxes[rank::ranks] if by_all else boxes
        for number, box in enumerate(own):
            # A chunk is a row of the array at least, which may be long; and functions take several times what they give.
            for part in pieces(box, stored.dtype.itemsize, _MADE_AT_ONCE):
                stored.write(part, initial.fill(part) if initial is not None else source[slices(part)])
            if rank == 0:
                report((number + 1) / len(own))

    if comm is None:
        write()
    else:
        communicator.agree(comm, write)


def _folder(scratch: str | None, stack: ExitStack) -> str:
    try:
        return str(stack.enter_context(scratch_directory("lapwing-arrays", Path(scratch or ".").absolute())))
    except OSError as error:
        raise RefusedError(
            f"--scratch {scratch or '.'}: {error.strerror}. Expected a folder on a disk with room for the arrays."
        ) from None
