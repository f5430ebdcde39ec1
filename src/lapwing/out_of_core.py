"""Running a nest on arrays on disk: alone, or collectively on the ranks of an MPI run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lapwing.decide import Decider
from lapwing.errors import RefusedError
from lapwing.loopnest.binding import BoundNest
from lapwing.memory import available_bytes
from lapwing.planner.plan import Plan
from lapwing.planner.streaming import StreamingWishes
from lapwing.runtime.shear import Box
from lapwing.runtime.streaming import DiskTables, StreamedArray, disk_tables, streamed_array
from lapwing.runtime.transfer import slices
from lapwing.store.array import StoredArray
from lapwing.tiling.faces import Faces
from lapwing.tiling.slabs import slabs_of

if TYPE_CHECKING:
    from lapwing.api import Nest

_WORK = ".lapwing"  # beside the chunks: generations that are being written
_SHARE = 2  # without a limit a run takes this part of the memory that is available


@dataclass(frozen=True)
class _Generation:
    """An array on disk as it is before a pass or after it. folder: of its chunk files; None is the array's own."""

    stored: StoredArray
    folder: str | None

    def pieces(self, box: Box) -> Any:
        return self.stored.pieces(box, self.folder)

    def read(self, box: Box) -> npt.NDArray[Any]:
        return self.stored.read(box)

    def values(self) -> npt.NDArray[Any]:
        """All of it in memory."""
        found = np.empty(self.stored.shape, self.stored.dtype)
        for piece in self.pieces(tuple((0, n) for n in self.stored.shape)):
            part = found[slices(piece.box)]
            file = np.memmap(piece.file, np.uint8, "r")
            part[...] = np.ndarray(part.shape, found.dtype, file, piece.offset, piece.strides)
        return found


def stored_arrays(arguments: Mapping[str, Any]) -> dict[str, StoredArray]:
    """The arguments that are arrays on disk, by name."""
    return {name: value for name, value in arguments.items() if isinstance(value, StoredArray)}


def loaded_arrays(plan: Plan, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by name; those on disk that do not stream are read."""
    streamed = plan.streaming.arrays if plan.streaming is not None else ()
    return {
        name: array.numpy() if isinstance(array, StoredArray) and name not in streamed else array
        for name, array in arrays.items()
        if name not in streamed
    }


def streaming_wishes(nest: Nest) -> StreamingWishes:
    """What was asked for, with a limit in any case."""
    memory = available_bytes() // _SHARE if nest.memory is None else nest.memory
    return StreamingWishes(memory, nest.pass_sweeps, nest.ring)


def out_of_core_plan(nest: Nest, decide: Decider, stored: Mapping[str, StoredArray]) -> Plan:
    """The plan of a run on these arrays. Raises RefusedError."""
    for name, array in stored.items():
        _check(decide.bound, name, array)
    return decide.streaming(nest.wishes(), streaming_wishes(nest), {n: array.chunks for n, array in stored.items()})


def _check(bound: BoundNest, name: str, array: StoredArray) -> None:
    where = bound.nest.where(bound.nest.line)
    if not array.is_raw:
        raise RefusedError(
            f"{where}: {name}: {array.path}: its chunks are not files of plain numbers. `lapwing convert {array.path} NEW.zarr` "
            "makes an array of such."
        )
    if name in bound.nest.written and not array.writable:
        raise RefusedError(
            f"{where}: {name} is written, and {array.path} cannot be: expected a file or folder that this user may write to."
        )


def check_different(bound: BoundNest, stored: Mapping[str, StoredArray]) -> None:
    """Written arrays on disk are not given twice. Raises RefusedError."""
    names = list(stored)
    for k, name in enumerate(names):
        for other in names[k + 1 :]:
            if stored[name].path == stored[other].path and {name, other} & set(bound.nest.written):
                raise RefusedError(
                    f"{bound.nest.where(bound.nest.line)}: {name} and {other} are the same array on disk, "
                    f"{stored[name].path}, and it is written. Pass two arrays."
                )


@dataclass(frozen=True)
class Ending:
    """What becomes of what a run wrote. keep: whether it takes the place of what the arrays were; examine: is given it before,
    by name, on the first rank."""

    keep: bool = True
    examine: Callable[[Mapping[str, npt.NDArray[Any]]], None] | None = None


class WorkOnDisk:
    """The arrays on disk of one run: the generations its passes read and write, and what each rank has of them in memory.

    ``begin`` and ``end`` are for one process, for all ranks; the others wait meanwhile.
    """

    def __init__(
        self, bound: BoundNest, plan: Plan, stored: Mapping[str, StoredArray], ending: Ending | None = None
    ) -> None:
        assert plan.streaming is not None
        self._ending = ending or Ending()
        self._bound, self._plan, self._streaming = bound, plan, plan.streaming
        self._stored = {name: stored[name] for name in self._streaming.arrays}
        self.written = [name for name in self._stored if name in bound.nest.written]
        self._faces = Faces(bound, plan.partition, plan.mapping, plan.tile, plan.buffers)

    def begin(self) -> None:
        """Make room on the disk. Raises RunError where there is none."""
        try:
            for name, array in self._stored.items():
                if array.writable:
                    array.prepare()
                if name in self.written:
                    for folder in self._folders(name):
                        shutil.rmtree(folder, ignore_errors=True)
                        array.prepare(folder)
        except BaseException:
            self.give_up()
            raise

    def end(self) -> None:
        """What the last pass wrote takes the place of the arrays' chunks."""
        last = {name: self._generation(name, self._streaming.passes) for name in self.written}
        if self._ending.examine is not None:
            self._ending.examine({name: generation.values() for name, generation in last.items()})
        for generation in last.values() if self._ending.keep else ():
            assert generation.folder is not None
            generation.stored.replace_chunks(generation.folder)
        self.give_up()

    def give_up(self) -> None:
        """Remove what was written."""
        for name in self.written:
            shutil.rmtree(self._work(name), ignore_errors=True)

    def arrays(self, rank: int) -> dict[str, StreamedArray]:
        """What a rank has of the arrays."""
        return {a.array.name: a for a in self._arrays(rank)}

    def tables(self, rank: int) -> DiskTables:
        """For the runtime. Reads frontiers."""
        arrays = self._arrays(rank)
        passes = []
        for number in range(self._streaming.passes):
            read = [self._generation(a.array.name, number) for a in arrays]
            written = [
                self._generation(a.array.name, number + 1) if a.array.name in self.written else None for a in arrays
            ]
            passes.append((read, written))
        slabs, slots = self._slabs(rank)
        return disk_tables(self._bound, slabs, arrays, slots, passes)

    def _slabs(self, rank: int) -> tuple[Any, int]:
        slabs = slabs_of(self._faces, rank, list(self._stored))
        least = slabs.least_slots(self._streaming.pass_sweeps, self._faces.sweep_skew)
        return slabs, least + self._streaming.ring - 1

    def _arrays(self, rank: int) -> list[StreamedArray]:
        slabs, slots = self._slabs(rank)
        ranks = self._plan.ranks
        return [streamed_array(self._bound, self._faces, rank, ranks, rows, slots) for rows in slabs.arrays]

    @cached_property
    def _generations(self) -> dict[tuple[str, str | None], _Generation]:
        return {}

    def _generation(self, name: str, number: int) -> _Generation:
        folder = self._folder(name, number)
        return self._generations.setdefault((name, folder), _Generation(self._stored[name], folder))

    def _folder(self, name: str, number: int) -> str | None:
        """Where an array's chunks are after so many passes: the first are its own, then two folders take turns."""
        if number == 0 or name not in self.written:
            return None
        return os.path.join(self._work(name), "even" if number % 2 == 0 else "odd")

    def _folders(self, name: str) -> list[str]:
        return [f for k in range(1, min(2, self._streaming.passes) + 1) if (f := self._folder(name, k)) is not None]

    def _work(self, name: str) -> str:
        path = self._stored[name].path
        return os.path.join(path, _WORK) if os.path.isdir(path) else f"{path}{_WORK}"
