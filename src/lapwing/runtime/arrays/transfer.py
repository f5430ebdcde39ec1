"""Moves elements between rank 0 and the others outside the pipeline: scatter, gather. All are collective.

What moves is boxes of elements; of arrays that a skewed nest writes it is regions, parallelograms cut into such boxes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.runtime.arrays.layout import nothing
from lapwing.runtime.arrays.shear import Box, Shear
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.mpi.communicator import finish, known, receive, send
from lapwing.tiling.boxes import intersection

CHUNK_BYTES = 4 << 20  # what is copied and sent at once: it stays in the cache on the way

FIRST_RANK = frozenset({0})

_Batch = list[tuple[Box, Box]]  # boxes of elements, each with where its rank keeps them


def scatter(
    whole: npt.NDArray[Any] | None,
    boxes: Sequence[Box],
    local: LocalArray,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Give every rank its box of the whole array; boxes may overlap.

    holders: the ranks that have the whole array, rank 0 among them. They help themselves, and rank 0 sends to the others.
    """
    rank = comm.Get_rank()
    _note_scattered(holders, comm)
    if rank in holders:
        assert whole is not None
        local.view(boxes[rank])[...] = whole[slices(boxes[rank])]
    else:
        for piece in pieces(boxes[rank], local.array.itemsize):
            dense = np.empty(sides(piece), local.array.dtype)
            receive(as_bytes(dense), comm, source=0)
            local.view(piece)[...] = dense
    for other, box in enumerate(boxes) if rank == 0 else ():
        for piece in pieces(box, local.array.itemsize) if other not in holders else ():
            assert whole is not None
            send(as_bytes(np.ascontiguousarray(whole[slices(piece)])), comm, dest=other)


def _note_scattered(holders: frozenset[int], comm: Any) -> None:
    if len(holders) < comm.Get_size():
        known(comm).moved["scattered"] += 1


def scatter_parts(
    whole: npt.NDArray[Any] | None,
    parts: Sequence[Sequence[Box]],
    local: LocalArray,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """The same with several boxes for every rank."""
    nobody = nothing(local.array)
    for turn in zip_longest(*parts, fillvalue=nobody):
        scatter(whole, turn, local, comm, holders)


def gather(
    local: LocalArray,
    boxes: Sequence[Box],
    whole: npt.NDArray[Any] | None,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Bring every rank's box into the whole array on the holders, rank 0 among them, in the order of the ranks."""
    known(comm).moved["gathered"] += 1
    batches = [([(piece, piece)] for piece in pieces(box, local.array.itemsize)) for box in boxes]
    if len(holders) == comm.Get_size() and not _any_meet(boxes):
        _exchange(local, batches, whole, comm)
        return
    for owner, of_owner in enumerate(batches):
        for batch in of_owner:
            _hand_over(local, owner, batch, whole, comm, holders)


def _any_meet(boxes: Sequence[Box]) -> bool:
    return any(intersection(one, other) is not None for one, other in itertools.combinations(boxes, 2))


def _exchange(
    local: LocalArray, batches: Sequence[Iterable[_Batch]], whole: npt.NDArray[Any] | None, comm: Any
) -> None:
    """Bring what every rank has into the whole array of every rank's, no element from two: each sends to one other at a time
    and receives from one, a batch each, so that no second copy of the array is needed (``exchange.Exchange`` would take one).

    batches: every rank's.
    """
    assert whole is not None
    rank, size = comm.Get_rank(), comm.Get_size()
    nothing_more: _Batch = []
    of_ranks = [list(of_rank) for of_rank in batches] + [[]] * (size - len(batches))
    for batch in of_ranks[rank]:
        for piece, own in batch:
            whole[slices(piece)] = local.view(own)
    for distance in range(1, size):
        source, target = (rank - distance) % size, (rank + distance) % size
        for arriving, leaving in zip_longest(of_ranks[source], of_ranks[rank], fillvalue=nothing_more):
            views = [whole[slices(piece)] for piece, _ in arriving]
            dense = _dense(views) if views else None
            requests = [] if dense is None else [comm.Irecv(as_bytes(dense), source=source)]
            if leaving:
                joined = _joined([local.view(own) for _, own in leaving])
                requests.append(comm.Isend(as_bytes(joined), dest=target))
            finish(requests, comm)
            if dense is not None and dense is not views[0]:
                _spread(dense, views)


def _dense(views: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Memory for what comes to be spread over views, or their own where they are one in one piece."""
    if len(views) == 1 and views[0].flags.c_contiguous:
        return views[0]
    return np.empty(sum(view.size for view in views), views[0].dtype)


def replicate(source: npt.NDArray[Any] | None, values: npt.NDArray[Any], comm: Any) -> None:
    """Bring rank 0's array into an array of every rank's. source: None on other ranks."""
    known(comm).moved["scattered"] += 1
    for piece in pieces(tuple((0, n) for n in values.shape), values.itemsize):
        dense = np.empty(sides(piece), values.dtype) if source is None else np.ascontiguousarray(source[slices(piece)])
        comm.Bcast(as_bytes(dense), root=0)
        if source is not values:
            values[slices(piece)] = dense


def _hand_over(
    local: LocalArray,
    owner: int,
    batch: _Batch,
    whole: npt.NDArray[Any] | None,
    comm: Any,
    holders: frozenset[int],
) -> None:
    """Bring elements of one rank, boxes of them with where it keeps them, into the whole array on the holders."""
    rank, others = comm.Get_rank(), holders - {owner}
    if rank == owner and rank in holders:
        assert whole is not None
        for piece, own in batch:
            whole[slices(piece)] = local.view(own)
    if not others:
        return
    to_all = others != FIRST_RANK
    if rank == owner:
        dense = _joined([local.view(own) for _, own in batch])
        if to_all:
            comm.Bcast(as_bytes(dense), root=owner)  # along MPI's own tree: whoever has no copy takes part all the same
        else:
            send(as_bytes(dense), comm, dest=0)
    elif to_all or rank == 0:
        dense = np.empty(sum(math.prod(sides(piece)) for piece, _ in batch), local.array.dtype)
        if to_all:
            comm.Bcast(as_bytes(dense), root=owner)
        else:
            receive(as_bytes(dense), comm, source=owner)
        if rank in others:
            assert whole is not None
            _spread(dense, [whole[slices(piece)] for piece, _ in batch])


@dataclass(frozen=True)
class Region:
    """The elements of ``limits`` that lie in a sheared box; ``stored`` says whether their rank keeps sheared ones."""

    shear: Shear
    box: Box
    limits: Box
    stored: bool

    def pieces(self) -> Iterator[tuple[Box, Box]]:
        """Boxes of elements, each with where its rank keeps them."""
        for plain, sheared in self.shear.pieces(self.box, self.limits):
            yield plain, sheared if self.stored else plain


def scatter_regions(
    whole: npt.NDArray[Any] | None,
    regions: Sequence[Region],
    local: LocalArray,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Give every rank its region of the whole array; regions may overlap. holders: as in ``scatter``."""
    rank = comm.Get_rank()
    _note_scattered(holders, comm)
    if rank in holders and rank < len(regions):
        assert whole is not None
        for piece, own in regions[rank].pieces():
            local.view(own)[...] = whole[slices(piece)]
    for other, region in enumerate(regions):
        takes_part = other not in holders and rank in (0, other)
        for batch in _batches(region.pieces(), local.array.itemsize) if takes_part else ():
            if rank == 0:
                assert whole is not None
                send(as_bytes(_joined([whole[slices(piece)] for piece, _ in batch])), comm, dest=other)
            else:
                dense = np.empty(sum(math.prod(sides(own)) for _, own in batch), local.array.dtype)
                receive(as_bytes(dense), comm, source=0)
                _spread(dense, [local.view(own) for _, own in batch])


def gather_regions(
    local: LocalArray,
    regions: Sequence[Region],
    whole: npt.NDArray[Any] | None,
    comm: Any,
    holders: frozenset[int] = FIRST_RANK,
) -> None:
    """Bring every rank's region into the whole array on the holders, rank 0 among them."""
    known(comm).moved["gathered"] += 1
    if len(holders) == comm.Get_size():
        _exchange(local, [_batches(region.pieces(), local.array.itemsize) for region in regions], whole, comm)
        return
    for owner, region in enumerate(regions):
        takes_part = len(holders) > 1 or comm.Get_rank() in (0, owner)
        for batch in _batches(region.pieces(), local.array.itemsize) if takes_part else ():
            _hand_over(local, owner, batch, whole, comm, holders)


def _batches(found: Iterable[tuple[Box, Box]], itemsize: int) -> Iterator[_Batch]:
    """Pieces put together to messages of about CHUNK_BYTES; a larger piece is cut."""
    batch: _Batch = []
    size = 0
    for plain, own in found:
        large = itemsize * math.prod(sides(plain)) > CHUNK_BYTES
        parts = zip(pieces(plain, itemsize), pieces(own, itemsize), strict=True) if large else [(plain, own)]
        for part, part_own in parts:
            batch.append((part, part_own))
            size += itemsize * math.prod(sides(part))
            if size >= CHUNK_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _joined(views: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if len(views) == 1:
        return np.ascontiguousarray(views[0])
    return np.concatenate([view.reshape(-1) for view in views])


def _spread(dense: npt.NDArray[Any], views: Sequence[npt.NDArray[Any]]) -> None:
    """The other way round."""
    position = 0
    for view in views:
        view[...] = dense[position : position + view.size].reshape(view.shape)
        position += view.size


def pieces(box: Box, itemsize: int, at_once: int | None = None) -> Iterator[Box]:
    """A box cut into parts of so many bytes, CHUNK_BYTES if none are given, in order; nothing for an empty box."""
    at_once = CHUNK_BYTES if at_once is None else at_once
    sizes = sides(box)
    if not all(sizes):
        return
    if len(box) > 1 and itemsize * math.prod(sizes[1:]) > at_once:
        for at in range(*box[0]):
            for rest in pieces(box[1:], itemsize, at_once):
                yield ((at, at + 1), *rest)
        return
    rows = max(1, at_once // (itemsize * math.prod(sizes[1:])))
    low, high = box[0]
    for at in range(low, high, rows):
        yield ((at, min(at + rows, high)), *box[1:])


def slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(low, high) for low, high in box)


def sides(box: Box) -> tuple[int, ...]:
    return tuple(high - low for low, high in box)


def as_bytes(dense: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return dense.reshape(-1).view(np.uint8)
