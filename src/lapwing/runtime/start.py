"""What many runs of one nest start from: arrays scattered once and copied on every rank for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.planner.plan import Plan
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.layout import nothing
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.storage import LocalArray, Storage, allocate
from lapwing.runtime.arrays.transfer import scatter
from lapwing.runtime.execute import exports, scatter_stores, stores_of, take_stores
from lapwing.runtime.mpi.communicator import agree
from lapwing.tiling.boxes import difference, intersection
from lapwing.tiling.skewing import skewed_nest


class StartingValues:
    """The arrays of a nest before its runs. Rank 0 has them whole, or they are distributed; elements go to another rank once,
    when a plan first needs them there.

    What is kept of one array on one rank are boxes that do not meet. Sheared boxes of skewed nests are kept one for each
    partition.
    """

    def __init__(
        self, bound: BoundNest, sources: Mapping[str, npt.NDArray[Any] | DistributedArray | None], comm: Any
    ) -> None:
        """bound: as the user wrote it. sources: the arrays by name on rank 0, None elsewhere, or distributed ones; nobody
        writes to them."""
        self._bound, self._sources, self._comm = bound, sources, comm
        self._kept: dict[str, list[list[Box]]] = {}  # by name, for every rank
        self._values: dict[tuple[str, Box], npt.NDArray[Any]] = {}
        self._sheared: dict[tuple[str, tuple[Storage, ...]], LocalArray] = {}
        for name, whole in sources.items():
            everything = tuple((0, n) for n in bound.array(name).shape)
            self._kept[name] = [[] for _ in range(comm.Get_size())]
            if isinstance(whole, DistributedArray):
                continue
            self._kept[name][0].append(everything)
            if whole is not None:
                self._values[name, everything] = whole

    def copies(self, plan: Plan) -> dict[str, LocalArray]:
        """This rank's part of every array for a run, in memory of its own. Collective. Raises RunError."""
        bound = skewed_nest(self._bound, plan.skew)
        exported = exports(plan, self._comm)
        return {
            array.name: self._copy(bound, plan, array, exported and array.name in bound.nest.written)
            for array in bound.arrays
        }

    def _copy(self, bound: BoundNest, plan: Plan, array: ArrayType, exported: bool) -> LocalArray:
        rank, stores = self._comm.Get_rank(), stores_of(bound, plan, array, self._comm.Get_size())
        own = stores[rank]
        local = agree(self._comm, lambda: allocate(array, own.box, exported, own.shear))
        if any(store.shear for store in stores):
            key = (array.name, tuple(stores))
            if key not in self._sheared:
                kept = agree(self._comm, lambda: allocate(array, own.box, shear=own.shear))
                source = self._sources[array.name]
                if isinstance(source, DistributedArray):
                    take_stores(bound, stores, source, kept)
                else:
                    scatter_stores(bound, stores, source, kept, self._comm)
                self._sheared[key] = kept
            local.values[...] = self._sheared[key].values
            return local
        self._bring(array, [store.box for store in stores])
        for box in self._kept[array.name][rank]:
            if (common := intersection(box, own.box)) is not None:
                values = LocalArray(array, box, self._values[array.name, box])
                local.view(common)[...] = values.view(common)
        return local

    def _bring(self, array: ArrayType, needed: list[Box]) -> None:
        """Send every rank what it needs and does not keep yet. Collective."""
        kept = self._kept[array.name]
        missing = [difference(box, kept[rank]) for rank, box in enumerate(needed)]
        none = nothing(array)
        for turn in range(max(map(len, missing))):
            boxes = [lacking[turn] if turn < len(lacking) else none for lacking in missing]
            own, source = boxes[self._comm.Get_rank()], self._sources[array.name]
            if isinstance(source, DistributedArray):
                local = source.part(boxes)
            else:
                local = agree(self._comm, lambda own=own: allocate(array, own))  # type: ignore[misc]
                scatter(source, boxes, local, self._comm)
            if own != none:
                self._values[array.name, own] = local.values
        for rank, lacking in enumerate(missing):
            kept[rank] += lacking
