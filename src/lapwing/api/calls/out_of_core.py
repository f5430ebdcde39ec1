"""Running a nest on arrays on disk: alone, or collectively on the ranks of an MPI run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from lapwing.api.calls.decide import Decider
from lapwing.api.calls.planned import PlannedNest
from lapwing.errors import RefusedError, RunError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.memory import available_bytes
from lapwing.planner.plan import Plan, Streaming
from lapwing.planner.streaming import StreamingWishes
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.storage import LocalArray
from lapwing.runtime.binding import native
from lapwing.runtime.streaming import DiskTables, StreamedArray, brought_boxes, disk_tables, streamed_array
from lapwing.runtime.workspace import Reductions
from lapwing.store.array import StoredArray
from lapwing.store.manifest import (
    MANIFEST,
    Checksums,
    Claim,
    Manifest,
    RankFile,
    State,
    changed_generation,
    make_ranks_folder,
    old_ranks_folders,
    reached,
    read_manifest,
)
from lapwing.tiling.slabs import Slabs, slabs_of

_WORK = ".lapwing"  # beside the chunks: generations that are being written
_SHARE = 2  # without a limit a run takes this part of the memory that is available


@dataclass(frozen=True)
class _Generation:
    """An array on disk as it is before a pass or after it. folder: of its chunk files; None is the array's own."""

    name: str
    stored: StoredArray
    folder: str | None

    def pieces(self, box: Box) -> Any:
        return self.stored.pieces(box, self.folder)

    def read(self, box: Box) -> npt.NDArray[Any]:
        if self.folder is None:
            return self.stored.read(box)
        found = np.empty([high - low for low, high in box], self.stored.dtype)
        whole = LocalArray(ArrayType("", self.stored.dtype.name, self.stored.shape), box, found)
        for piece in self.pieces(box):
            part = whole.view(piece.box)
            file = np.memmap(piece.file, np.uint8, "r")
            part[...] = np.ndarray(part.shape, found.dtype, file, piece.offset, piece.strides)
        return found

    def key(self, file: str) -> int:
        """For checksums: a hash of the array's name and of the chunk's."""
        chunk = os.path.join(*file.split(os.sep)[-len(self.stored.shape) :]) if os.path.isdir(self.stored.path) else ""
        return xxhash.xxh3_64_intdigest(f"{self.name}\0{chunk}".encode())

    @property
    def inode(self) -> int | None:
        """Of what takes the place of the array's chunks; None where there is nothing."""
        assert self.folder is not None
        path = self.stored.path
        try:
            return os.stat(
                self.folder if os.path.isdir(path) else os.path.join(self.folder, os.path.basename(path))
            ).st_ino
        except FileNotFoundError:
            return None

    def values(self) -> npt.NDArray[Any]:
        """All of it in memory."""
        return self.read(tuple((0, n) for n in self.stored.shape))


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


def streaming_wishes(nest: PlannedNest) -> StreamingWishes:
    """What was asked for, with a limit in any case."""
    memory = available_bytes() // _SHARE if nest.memory is None else nest.memory
    return StreamingWishes(memory, nest.pass_sweeps, nest.ring)


def out_of_core_plan(nest: PlannedNest, decide: Decider, stored: Mapping[str, StoredArray]) -> Plan:
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


def task_of(nest: PlannedNest, bound: BoundNest, stored: Mapping[str, StoredArray]) -> str:
    """What tells a run from those that compute something else: nest, scalars, and which arrays there are."""
    arrays = [(a.name, a.dtype, a.shape, stored[a.name].path if a.name in stored else None) for a in bound.arrays]
    text = repr((nest.source.lines, sorted(bound.parameters.items()), arrays))
    return xxhash.xxh3_128_hexdigest(text.encode())


def state_of_earlier(nest: PlannedNest, bound: BoundNest, plan: Plan, stored: Mapping[str, StoredArray]) -> State:
    """How far an earlier run of the same task has come, where ``nest.resume`` asks for that; else the beginning.

    Raises RefusedError where there is a run of something else, or one that cannot be told.
    """
    places = _places(bound, plan, stored)
    if not nest.resume or not places:
        return State()
    folder = next(iter(places.values()))
    manifest = read_manifest(folder)
    if manifest is None:
        return State()
    if manifest.task != task_of(nest, bound, stored):
        raise RefusedError(
            f"{folder}: is of a run of another nest, or with other arguments: there is nothing to go on from. Run without "
            "--resume, which begins anew."
        )
    if kept := [name for name in bound.nest.written if name not in places]:
        raise RefusedError(
            f"{bound.nest.where(bound.nest.line)}: {bound.nest.name} writes {', '.join(kept)}, which the earlier run had in "
            "memory: it cannot be resumed. Run without --resume, which begins anew."
        )
    return reached(folder, manifest)


def _places(bound: BoundNest, plan: Plan, stored: Mapping[str, StoredArray]) -> dict[str, str]:
    """Where new generations of written arrays are, by name."""
    streamed = plan.streaming.arrays if plan.streaming is not None else ()
    return {
        name: os.path.join(stored[name].path, _WORK) if os.path.isdir(stored[name].path) else stored[name].path + _WORK
        for name in streamed
        if name in bound.nest.written
    }


class WorkOnDisk:
    """The arrays on disk of one run: the generations its passes read and write, and what each rank has of them in memory.

    ``begin`` and ``end`` are for one process, for all ranks; the others wait meanwhile. state: what an earlier run has done.
    """

    def __init__(
        self,
        bound: BoundNest,
        plan: Plan,
        stored: Mapping[str, StoredArray],
        task: str,
        state: State,
        ending: Ending | None = None,
    ) -> None:
        assert plan.streaming is not None
        self._ending = ending or Ending()
        self._bound, self._plan, self._streaming = bound, plan, plan.streaming
        self._stored = {name: stored[name] for name in self._streaming.arrays}
        self._places = _places(bound, plan, stored)
        self._faces = plan.faces(bound)
        self.state = state
        self._task = task
        left = max(0, self._streaming.sweeps - state.sweeps)
        self._passes = -(-left // self._streaming.pass_sweeps)
        self._known_slabs: dict[int, tuple[Slabs, int]] = {}
        self._claims: list[Claim] = []
        self._manifest: Manifest | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the earlier run has done all sweeps."""
        return self._passes == 0 or self.state.complete

    @property
    def results(self) -> dict[str, Any]:
        """The reductions, of a run that is complete."""
        return Reductions(self._bound).merged(self._earlier_words)

    @property
    def _earlier_words(self) -> list[npt.NDArray[np.int64]]:
        return [np.array(row, np.int64) for row in self.state.words]

    def finish(self) -> None:
        """What is left of a run that is complete."""
        self.begin()
        self.end()

    def begin(self) -> None:
        """Make room on the disk. Raises RunError where there is none, RefusedError where another run is at work."""
        try:
            for name, place in self._places.items():
                self._claims.append(Claim(place, self._stored[name].path))
            if self.is_complete:
                return
            for claim in self._claims:
                claim.share()
            for array in self._stored.values():
                if array.writable:
                    array.prepare()
            for name in self._places:
                for number in (1, 2)[: self._passes]:
                    folder = self._folder(name, self.state.generation + number)
                    assert folder is not None
                    if folder == self._folder(name, self.state.generation):
                        continue  # it is read first
                    shutil.rmtree(folder, ignore_errors=True)
                    self._stored[name].prepare(folder)
            if self._main is not None:
                self._manifest = Manifest(self._task, self._plan.ranks, self.state)
                make_ranks_folder(self._main, self._manifest)
                self._manifest.write(self._main)
                for old in old_ranks_folders(self._main, self._manifest):
                    shutil.rmtree(old, ignore_errors=True)
        except BaseException:
            self.leave()
            raise

    def end(self) -> None:
        """What the last pass wrote takes the place of the arrays' chunks."""
        number = self.state.generation + self._passes
        last = {name: self._generation(name, number) for name in self._places}
        if self._ending.examine is not None:
            self._ending.examine({name: generation.values() for name, generation in last.items()})
        if not self._ending.keep or self._main is None:
            self.give_up()
            return
        if self._manifest is not None and (changed := changed_generation(self._main, self._manifest)) is not None:
            self.give_up()
            raise RunError(
                f"{self._main}: what pass {changed + 1} has read is not what was written before: the disk has failed, or "
                "another program has changed files there. The arrays are as they were. Check the disk, and run again."
            )
        if not self.state.complete:
            words = self.state.words if self._manifest is None else reached(self._main, self._manifest).words
            inodes = {name: inode for name, generation in last.items() if (inode := generation.inode) is not None}
            self.state = State(number, self._streaming.sweeps, words, complete=True, inodes=inodes)
            Manifest(self._task, self._plan.ranks, self.state).write(self._main)
        for name, generation in last.items():
            # Of a run that was ended here some arrays may have been replaced.
            if generation.folder is not None and generation.inode == self.state.inodes.get(name, -1):
                generation.stored.replace_chunks(generation.folder)
        # The manifest stays: to go on from a run that is complete is to do nothing.
        self._remove(keep=(MANIFEST,))

    def give_up(self) -> None:
        """Remove what was written."""
        self._remove()

    def _remove(self, keep: Sequence[str] = ()) -> None:
        for place in self._places.values():
            for name in os.listdir(place) if keep and place == self._main else ():
                if name not in keep:
                    path = os.path.join(place, name)
                    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            if not keep or place != self._main:
                shutil.rmtree(place, ignore_errors=True)
        self._release()

    def leave(self) -> None:
        """Keep what was finished, for another run to go on from."""
        manifest = None if self._main is None else read_manifest(self._main)
        if manifest is None or self._main is None or reached(self._main, manifest).generation == 0:
            self.give_up()
        self._release()

    def _release(self) -> None:
        for claim in self._claims:
            claim.release()
        self._claims = []

    @property
    def _main(self) -> str | None:
        """Where the manifest is; None where no array on disk is written."""
        return next(iter(self._places.values()), None)

    def arrays(self, rank: int) -> dict[str, StreamedArray]:
        """What a rank has of the arrays."""
        return {a.array.name: a for a in self._arrays(rank)}

    def tables(self, rank: int) -> DiskTables:
        """For the runtime. Reads frontiers."""
        if rank > 0:
            self._claims = [Claim(place, self._stored[name].path, shared=True) for name, place in self._places.items()]
        arrays = self._arrays(rank)
        passes = []
        for number in range(self.state.generation, self.state.generation + self._passes):
            read = [self._generation(a.array.name, number) for a in arrays]
            written = [
                self._generation(a.array.name, number + 1) if a.array.name in self._places else None for a in arrays
            ]
            passes.append((read, written))
        slabs, slots = self._slabs(rank)
        brought = brought_boxes(self._bound, self._faces, rank) if self._streaming.opening_sweeps else {}
        tables = disk_tables(self._bound, slabs, arrays, slots, passes, brought)
        tables.first_sweep, tables.earlier_words = self.state.sweeps, self._earlier_words
        if self._main is not None and (manifest := read_manifest(self._main)) is not None:
            file = RankFile(self._main, manifest, rank)
            tables.log = PassLog(file, self.state, self._streaming, tables.written_files)
        return tables

    def _slabs(self, rank: int) -> tuple[Slabs, int]:
        if rank not in self._known_slabs:  # with many steps they take a while
            slabs = slabs_of(self._faces, rank, list(self._stored))
            places = self._streaming.opening_sweeps + self._streaming.pass_sweeps
            least = slabs.least_slots(places, self._faces.sweep_skew)
            self._known_slabs[rank] = slabs, least + self._streaming.ring - 1
        return self._known_slabs[rank]

    def _arrays(self, rank: int) -> list[StreamedArray]:
        slabs, slots = self._slabs(rank)
        ranks = self._plan.ranks
        return [streamed_array(self._bound, self._faces, rank, ranks, rows, slots) for rows in slabs.arrays]

    @cached_property
    def _generations(self) -> dict[tuple[str, str | None], _Generation]:
        return {}

    def _generation(self, name: str, number: int) -> _Generation:
        folder = self._folder(name, number)
        return self._generations.setdefault((name, folder), _Generation(name, self._stored[name], folder))

    def _folder(self, name: str, number: int) -> str | None:
        """Where an array's chunks are after so many passes: the first are its own, then two folders take turns."""
        if number == 0 or name not in self._places:
            return None
        return os.path.join(self._places[name], "even" if number % 2 == 0 else "odd")


class PassLog:
    """Says in a rank's file which passes are finished, and looks there whether others have finished theirs.

    Called by the runtime with an event of a pass and the words of reductions. What a pass has written is on the disk before it
    counts as finished; a thread waits for that.
    """

    def __init__(
        self, file: RankFile, state: State, streaming: Streaming, written_files: Sequence[Sequence[str]]
    ) -> None:
        self._file, self._state, self._streaming, self._written_files = file, state, streaming, written_files
        self._computed: dict[int, tuple[list[int], int]] = {}  # words of reductions, and the checksum of what was read
        self._thread = ThreadPoolExecutor(1)
        self._finishing: list[Future[None]] = []

    def __call__(self, event: int, number: int, words: npt.NDArray[np.int64], checksum: int) -> int:
        """Whether a pass may be written; for other events it does not matter. Raises RunError where the system cannot write."""
        generation = self._state.generation + number + 1  # that the pass writes
        if event == native.PASS_COMPUTED:
            self._computed[number] = (words.tolist(), checksum)
        elif event == native.PASS_WRITTEN:
            self._finishing.append(self._thread.submit(self._finish, number, checksum))
        else:
            self._check()
            # It takes the place of the one before the last, which other ranks may still have to go on from.
            return int(generation <= 2 or self._file.all_have(generation - 1))
        return 1

    def close(self) -> None:
        """Wait until all is written. Raises RunError."""
        self._thread.shutdown()
        self._check()

    def _check(self) -> None:
        while self._finishing and self._finishing[0].done():
            self._finishing.pop(0).result()

    def _finish(self, number: int, written: int) -> None:
        for name in self._written_files[number]:
            try:
                with open(name, "rb") as stream:
                    os.fdatasync(stream.fileno())
            except OSError as error:
                raise RunError(f"{name}: cannot be brought to the disk: {error.strerror}.") from error
        sweeps = min(self._state.sweeps + (number + 1) * self._streaming.pass_sweeps, self._streaming.sweeps)
        words, read = self._computed.pop(number)
        self._file.finished(self._state.generation + number + 1, sweeps, words, Checksums(read, written))
