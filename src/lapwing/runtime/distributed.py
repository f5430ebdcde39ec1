"""Arrays that stay distributed between calls of nests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.loopnest.binding import ArrayType, BoundNest
from lapwing.runtime import communicator
from lapwing.runtime.meeting import Call, agree_on, check_same_elements, described, is_plain
from lapwing.runtime.shear import Box
from lapwing.runtime.storage import LocalArray, allocate
from lapwing.runtime.transfer import exchange, gather, intersection, scatter
from lapwing.tiling.faces import loop_offsets
from lapwing.tiling.partition import Partition, in_direction

_WAYS_OUT = "Pass the same array on every rank, or None on all ranks but rank 0; comm=lw.SELF makes an array of each rank's own."


@dataclass(frozen=True)
class Layout:
    """Which rank owns which elements: cut points along every axis, and every rank's box."""

    cuts: tuple[tuple[int, ...], ...]
    owned: tuple[Box, ...]


class DistributedArray:
    """An array that nests leave distributed over the ranks of an MPI run.

    values: the whole NumPy array; on ranks other than the first None, or an equal one. comm: the ranks, an mpi4py
    communicator; None for all of the run, ``lw.SELF`` for this one alone. Outside an MPI run, and for a single rank, the
    object wraps the array and nests update it in place. Raises RefusedError, on every rank, where values differ.

    Creating it, passing it to a nest and ``numpy()`` are collective: all ranks do them in the same order. It is
    distributed by the first nest that uses it, and again only when a nest needs another distribution. A nest that is skewed,
    or writes at several offsets, takes the arrays it writes from rank 0 and brings them back there in every call.
    """

    def __init__(self, values: npt.NDArray[Any] | None, *, comm: Any = None) -> None:
        self._whole = values
        self._layout: Layout | None = None
        self._local: LocalArray | None = None
        self._comm: Any = communicator.ranks_for(comm, "DistributedArray")
        kind: Any = (values.dtype.name, values.shape) if isinstance(values, np.ndarray) else type(values).__name__
        if self._comm is not None:
            kind = self._agree(kind)
        if isinstance(kind, str):
            raise RefusedError(f"DistributedArray: rank 0 passed {kind}, expected a NumPy array.")
        self.dtype: np.dtype[Any] = np.dtype(kind[0])
        self.shape: tuple[int, ...] = kind[1]

    def __repr__(self) -> str:
        return f"<DistributedArray {self.dtype} of shape {self.shape}, {self._place()}>"

    def _repr_html_(self) -> str:
        """For notebooks. Not collective: one rank alone may show it."""
        rows = [("dtype", str(self.dtype)), ("shape", " × ".join(map(str, self.shape))), ("where", self._place())]
        if self._layout is not None and self._comm is not None:
            own = ", ".join(f"{low}:{high}" for low, high in self._layout.owned[self._comm.Get_rank()])
            rows.append((f"rank {self._comm.Get_rank()} owns", f"[{own}]"))
        return table("DistributedArray", rows)

    def _place(self) -> str:
        if self._comm is None:
            return "in this process"
        if self._layout is None:
            return "whole on rank 0"
        parts = "x".join(str(len(cuts) - 1) for cuts in self._layout.cuts)
        return f"distributed {parts} over {len(self._layout.owned)} ranks"

    def _agree(self, kind: Any) -> Any:
        """Rank 0's kind, once it is known that no rank passed something else."""
        known = communicator.known(self._comm)
        number = known.arrays + 1
        self._name = f"DistributedArray {number}"
        call = Call(
            self._name,
            values=(("values", described(self._whole)),),
            copies=frozenset({"values"} if is_plain(self._whole) else ()),
        )
        holders = agree_on(call, _WAYS_OUT, self._comm)
        known.arrays = number
        check_same_elements(call, {"values": self._whole}, holders, _WAYS_OUT, self._comm)
        if self._comm.Get_rank() > 0:
            self._whole = None
        return self._comm.bcast(kind, root=0)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numpy(self) -> npt.NDArray[Any] | None:
        """The whole array on rank 0, None on the others. Collective. The distribution stays as it is."""
        if self._comm is None:
            return self._whole
        agree_on(Call(f"{self._name}.numpy()"), "", self._comm)
        return self._gathered()

    def _gathered(self) -> npt.NDArray[Any] | None:
        if self._layout is not None:
            whole = np.empty(self.shape, self.dtype) if self._comm.Get_rank() == 0 else None
            assert self._local is not None
            gather(self._local, self._layout.owned, whole, self._comm)
            return whole
        return self._whole if self._comm.Get_rank() == 0 else None

    # -- used by the runtime ---------------------------------------------------------------------------------------------

    @property
    def comm(self) -> Any:
        """Lapwing's own communicator for the array's ranks (mpi4py); None where it is one rank's alone."""
        return self._comm

    @property
    def identity(self) -> str:
        """What tells the array from the others of its ranks, the same on all of them."""
        return f"{self._name} of {self.dtype}, shape {self.shape}"

    @property
    def layout(self) -> Layout | None:
        return self._layout

    @property
    def whole(self) -> npt.NDArray[Any] | None:
        """The wrapped array, on rank 0 while it is not distributed."""
        return self._whole

    def collect(self) -> npt.NDArray[Any] | None:
        """Give up the distribution: the whole array on rank 0, to be kept there. Collective."""
        self._whole = self._gathered()
        self._layout = self._local = None
        return self._whole

    def localise(self, needed: Sequence[Box], layout: Layout, exported: bool = False) -> LocalArray:
        """This rank's memory for a run: its owned and needed elements, all up to date. Collective.

        needed: the box every rank touches. layout: who owns what from now on. exported: other ranks want to map it.
        """
        rank = self._comm.Get_rank()
        array = ArrayType("", self.dtype.name, self.shape)
        boxes = [_hull(a, b) for a, b in zip(needed, layout.owned, strict=True)]
        if self._layout is None:
            local = self._allocate(array, boxes[rank], exported)
            scatter(self._whole, boxes, local, self._comm)
            self._whole = None
        else:
            assert self._local is not None
            local = self._local
            same = self._layout == layout
            # Collective: where one rank needs other memory, all take part.
            unfit = not same or not _contains(local.box, boxes[rank]) or (exported and local.segment is None)
            if self._comm.allreduce(int(unfit)):
                local = self._allocate(array, _hull(boxes[rank], local.box) if same else boxes[rank], exported)
            exchange(self._local, local, self._layout.owned, boxes, self._comm)
        self._local, self._layout = local, layout
        return local

    def _allocate(self, array: ArrayType, box: Box, exported: bool) -> LocalArray:
        return communicator.agree(self._comm, lambda: allocate(array, box, exported))


def owner_layout(bound: BoundNest, name: str, partition: Partition, ranks: int) -> Layout:
    """Who owns the elements of a written array under a partition: the rank that writes them, edges to the nearest.

    ranks: how many there are. Those beyond the partition's own nothing.
    """
    array = bound.array(name)
    depth = bound.nest.sweep_depth
    target = _last_writer(bound, name)
    positions: list[int | None] = []
    cuts = []
    for axis, affine in enumerate(target.affine):
        assert affine is not None
        (loop, _), *_ = affine.terms
        k = bound.nest.loop_names.index(loop) - depth
        positions.append(k if k >= 0 else None)
        inner = [c + affine.constant for c in partition.cuts[k][1:-1]] if k >= 0 else []
        cuts.append((0, *inner, array.shape[axis]))
    owned = []
    for rank in range(partition.ranks):
        coordinates = partition.coordinates(rank)
        part = [coordinates[k] if k is not None else 0 for k in positions]
        owned.append(tuple((c[p], c[p + 1]) for c, p in zip(cuts, part, strict=True)))
    owned += [nothing(array)] * (ranks - partition.ranks)
    return Layout(tuple(cuts), tuple(owned))


def nothing(array: ArrayType) -> Box:
    """The box without elements, of a rank that has no part in an array."""
    return ((0, 0),) * len(array.shape)


def partition_of(bound: BoundNest, name: str, layout: Layout) -> Partition | None:
    """The partition of a nest's loops under which the array keeps its layout; None if there is none."""
    depth = bound.nest.sweep_depth
    target = _last_writer(bound, name)
    cuts: dict[str, tuple[int, ...]] = {}
    for affine, axis_cuts in zip(target.affine, layout.cuts, strict=True):
        assert affine is not None
        (loop, _), *_ = affine.terms
        cuts[loop] = tuple(c - affine.constant for c in axis_cuts[1:-1])
    all_cuts = []
    for loop, coordinates in zip(bound.nest.space_loops, bound.domain.box[depth:], strict=True):
        first, last = in_direction(coordinates, loop.step)
        whole = (first, *cuts[loop.name], last)
        if any(a >= b for a, b in itertools.pairwise(whole)):
            return None
        all_cuts.append(whole)
    partition = Partition(tuple(all_cuts), tuple(loop.step for loop in bound.nest.space_loops))
    return partition if owner_layout(bound, name, partition, len(layout.owned)) == layout else None


def write_offsets(bound: BoundNest, name: str) -> int:
    """At how many different offsets a nest writes an array."""
    return len({loop_offsets(bound, s.target) for s in bound.nest.stores if s.target.array == name})


def _last_writer(bound: BoundNest, name: str) -> Any:
    targets = [s.target for s in bound.nest.stores if s.target.array == name]
    return min(targets, key=lambda target: [o for o in loop_offsets(bound, target) if o is not None])


def _hull(a: Box, b: Box) -> Box:
    if intersection(a, a) is None:
        return b
    if intersection(b, b) is None:
        return a
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def _contains(outer: Box, inner: Box) -> bool:
    if intersection(inner, inner) is None:
        return True
    return all(o[0] <= i[0] and i[1] <= o[1] for o, i in zip(outer, inner, strict=True))
