"""Arrays of which a rank has some slabs in memory and the rest on a disk: where slabs lie, as the tables of lw_disk."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.planner.streaming import DISK_BLOCK, QUEUE_DEPTH, REQUEST_BYTES
from lapwing.runtime.arrays.layout import owner_layout
from lapwing.runtime.arrays.shear import Box, element_box
from lapwing.runtime.arrays.storage import needed_box
from lapwing.runtime.arrays.transfer import slices
from lapwing.runtime.binding import native
from lapwing.tiling.boxes import difference
from lapwing.tiling.faces import Faces, loop_offsets
from lapwing.tiling.partition import Range
from lapwing.tiling.slabs import ArrayRows, Slabs

_LINE = 64
_LONG_ROW = 2048  # bytes, from which rows are padded to whole blocks
_PAGE = 4096


class Piece(Protocol):
    """Elements of ``box`` that lie in a file from byte ``offset`` on, so many bytes apart along every axis."""

    @property
    def file(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def box(self) -> Box: ...
    @property
    def strides(self) -> tuple[int, ...]: ...


class Generation(Protocol):
    """An array on disk, as it is before a pass or after it."""

    def pieces(self, box: Box) -> Iterable[Piece]:
        """Where the elements of a box lie."""
        ...

    def read(self, box: Box) -> npt.NDArray[Any]:
        """The elements of a box."""
        ...

    def key(self, file: str) -> int:
        """What tells a file from the others in checksums, the same in all generations; 64 bits."""
        ...


@dataclass(frozen=True)
class StreamedArray:
    """What one rank has of an array that is read and written slab by slab; in place of a LocalArray.

    ``box``: the elements it touches or owns; ``owned``: those it writes to the disk, and reads from it in every pass. The others
    stay in memory between slabs (P3's frontiers). Memory is that of a ring of ``ring_rows`` rows.
    """

    array: ArrayType
    rows: ArrayRows
    box: Box
    owned: Box
    ring_rows: int

    @property
    def itemsize(self) -> int:
        return self.array.itemsize

    @cached_property
    def byte_strides(self) -> tuple[int, ...]:
        """Of every axis. Rows begin at blocks, an odd number of them apart, so that they do not share cache sets."""
        sides = [high - low for low, high in self.box]
        strides = [self.itemsize]
        if len(sides) == 1:
            return tuple(strides)
        last = max(sides[-1], 1) * self.itemsize
        unit = DISK_BLOCK if last >= _LONG_ROW or len(sides) == 2 else _LINE
        length = self._lead(unit) + last
        for side in (*reversed(sides[1:-1]), None):
            step = unit if side is not None else DISK_BLOCK
            strides.append((-(-length // step) | 1) * step)
            length = strides[-1] * max(side or 1, 1)
        return tuple(reversed(strides))

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""
        return tuple(stride // self.itemsize for stride in self.byte_strides)

    @property
    def row_bytes(self) -> int:
        return self.byte_strides[0]

    @property
    def origin(self) -> int:
        """The address of element (0, …, 0) in a memory where row 0 begins at address 0; the runtime moves it."""
        low = sum(first * stride for (first, _), stride in zip(self.box[1:], self.byte_strides[1:], strict=True))
        return self._shift - low

    @property
    def ring_bytes(self) -> int:
        return self.ring_rows * self.row_bytes

    def column(self, box: Box) -> int:
        """Where the first element of a box lies, in bytes from the beginning of its row."""
        inside = zip(box[1:], self.box[1:], self.byte_strides[1:], strict=True)
        return self._shift + sum((low - first) * stride for (low, _), (first, _), stride in inside)

    @cached_property
    def frontiers(self) -> tuple[Box, ...]:
        """The parts of the box, over all rows, that are not owned."""
        return tuple(difference(self.box, [self.owned]))

    @property
    def _shift(self) -> int:
        """Bytes from the beginning of a row in memory to its first element: owned ones lie at a block then."""
        if len(self.box) == 1:
            return 0
        last = (self.box[-1][1] - self.box[-1][0]) * self.itemsize
        unit = DISK_BLOCK if last >= _LONG_ROW or len(self.box) == 2 else _LINE
        return self._lead(unit)

    def _lead(self, unit: int) -> int:
        before = (self.owned[-1][0] - self.box[-1][0]) * self.itemsize
        return -before % unit


def streamed_array(bound: BoundNest, faces: Faces, rank: int, ranks: int, rows: ArrayRows, slots: int) -> StreamedArray:
    """What a rank has of an array, with room for so many slabs."""
    array = bound.array(rows.name)
    needed = needed_box(bound, rows.name, faces.partition.block(rank))
    if rows.name in bound.nest.written:
        owned = owner_layout(bound, rows.name, faces.partition, ranks).owned[rank]
    else:
        owned = needed
    everything = (0, array.shape[0])
    owned = (everything, *owned[1:])
    box = (
        everything,
        *((min(a, c), max(b, d)) for (a, b), (c, d) in zip(needed[1:], owned[1:], strict=True)),
    )
    whole = StreamedArray(array, rows, box, owned, 1)
    page_rows = _PAGE // math.gcd(_PAGE, whole.row_bytes)
    ring_rows = -(-max(rows.most_rows(slots), 1) // page_rows) * page_rows
    return StreamedArray(array, rows, box, owned, ring_rows)


def brought_boxes(bound: BoundNest, faces: Faces, rank: int) -> dict[str, list[Box]]:
    """The elements that messages of any sweep bring to a rank, as boxes by array.

    Not those of arrays that are indexed by a sweep loop: each sweep's messages bring others.
    """
    targets = {(s.target.array, loop_offsets(bound, s.target)): s.target for s in bound.nest.stores}
    sweep_loops = {loop.name for loop in bound.nest.loops[: bound.nest.sweep_depth]}
    assert faces.mapping is not None
    # Parts of different steps that are behind each other make one box.
    ranges: dict[tuple[int, Box, Box], list[tuple[int, int]]] = {}
    for channel in faces.incoming(rank):
        for part in (part for message in channel.messages for part in message.parts):
            around = (part.box[: faces.mapping], part.box[faces.mapping + 1 :])
            ranges.setdefault((part.face, *around), []).append(part.box[faces.mapping])
    found: dict[str, list[Box]] = {}
    for (number, before, after), along in ranges.items():
        face = faces.faces[number]
        target = targets[face.array, face.offsets]
        if any(affine is not None and sweep_loops & set(affine.names) for affine in target.affine):
            continue
        for low, high in _merged(along):
            box = element_box(bound, target, (*before, (low, high), *after))
            found.setdefault(face.array, []).append(box)
    return found


def _merged(ranges: Sequence[Range]) -> list[Range]:
    """The same indices as ranges that neither meet nor follow one another."""
    found: list[Range] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


class Log(Protocol):
    """Is told what becomes of passes (lw_notice), with the words of reductions and a checksum; closed when the run is over."""

    def __call__(self, event: int, number: int, words: npt.NDArray[np.int64], checksum: int) -> int: ...
    def close(self) -> None: ...


@dataclass
class DiskTables:
    """``c`` points into what ``keep`` holds.

    written_files: by pass. first_sweep: the sweep that the first pass begins with, and earlier_words what reductions were then, a
    row for every rank of the runs before.
    """

    c: native.Disk
    keep: list[Any] = field(repr=False)
    written_files: list[list[str]] = field(repr=False)
    first_sweep: int = 0
    earlier_words: list[npt.NDArray[np.int64]] = field(default_factory=list)
    log: Log | None = None


def disk_tables(
    bound: BoundNest,
    slabs: Slabs,
    arrays: Sequence[StreamedArray],
    slots: int,
    passes: Sequence[tuple[Sequence[Generation], Sequence[Generation | None]]],
    brought: Mapping[str, Sequence[Box]],
    direct: bool = True,
) -> DiskTables:
    """The tables of one rank's disk ring.

    arrays: those of ``slabs``, in order. passes: for each the generations that it reads and writes, by array; None of an array
    that is not written. brought: parts of frontiers that messages of an opening sweep bring, by array; the others are read here,
    before the first pass.
    """
    builder = _Builder(arrays)
    positions = {a.name: k for k, a in enumerate(bound.arrays)}
    streamed = [
        native.Streamed(
            position=positions[a.array.name],
            written=int(a.array.name in bound.nest.written),
            ring_rows=a.ring_rows,
            row_bytes=a.row_bytes,
            turn=a.rows.step * a.array.shape[0],
            origin=a.origin,
            first_rows=builder.numbers([low for low, _ in a.rows.touched]),
        )
        for a in arrays
    ]
    steps = len(slabs.before)
    first = passes[0][0]
    frontiers = builder.frontiers(first, brought)
    known: dict[tuple[int, ...], tuple[native.Generation, list[str]]] = {}

    def generation(sources: Sequence[Generation | None]) -> tuple[native.Generation, list[str]]:
        key = tuple(map(id, sources))
        if key not in known:
            known[key] = builder.generation(sources)
        return known[key]

    reads = [generation(read) for read, _ in passes]
    writes = [generation(written) for _, written in passes]

    c = native.Disk(
        streamed=len(arrays),
        slabs=steps,
        slots=slots,
        arrays=builder.table(native.Streamed, streamed),
        slabs_before=builder.numbers(slabs.before),
        slabs_after=builder.numbers(range(1, steps + 1)),
        frontiers=builder.table(native.Generation, [frontiers]),
        passes=len(passes),
        reads=builder.table(native.Generation, [one for one, _ in reads]),
        writes=builder.table(native.Generation, [one for one, _ in writes]),
        queue_depth=QUEUE_DEPTH,
        request_bytes=REQUEST_BYTES,
        direct=int(direct),
    )
    return DiskTables(c, builder.keep, [files for _, files in writes])


class _Builder:
    """Writes tables down and keeps them alive."""

    def __init__(self, arrays: Sequence[StreamedArray]) -> None:
        self._arrays = arrays
        self.keep: list[Any] = []

    def table(self, kind: Any, items: Sequence[Any]) -> Any:
        """A ctypes array that is never empty, so that its address is always good."""
        made = (kind * max(1, len(items)))(*items)
        self.keep.append(made)
        return made

    def numbers(self, values: Iterable[int]) -> Any:
        return self.table(ctypes.c_int64, list(values))

    def generation(self, sources: Sequence[Generation | None]) -> tuple[native.Generation, list[str]]:
        """The tables of a generation, and its files."""
        files: dict[str, int] = {}
        keys: list[int] = []
        extents: list[list[native.Extent]] = []
        steps = len(self._arrays[0].rows.touched)
        for slab in range(steps):
            extents.append([])
            for number, (array, source) in enumerate(zip(self._arrays, sources, strict=True)):
                box = (array.rows.slab(slab), *array.owned[1:])
                if source is None or any(low >= high for low, high in box):
                    continue
                for piece in source.pieces(box):
                    file = files.setdefault(piece.file, len(files))
                    if file == len(keys):
                        keys.append(source.key(piece.file))
                    extents[-1].append(_extent(array, number, file, piece.offset, piece.box, piece.strides))
        return self._generation(list(files), extents, keys), list(files)

    def frontiers(self, sources: Sequence[Generation], brought: Mapping[str, Sequence[Box]]) -> native.Generation:
        """What stays in memory, as it is before the first pass."""
        steps = len(self._arrays[0].rows.touched)
        extents: list[list[native.Extent]] = [[] for _ in range(steps)]
        for number, (array, source) in enumerate(zip(self._arrays, sources, strict=True)):
            for part in array.frontiers:
                values = np.zeros([high - low for low, high in part], array.array.dtype)
                for missing in difference(part, brought.get(array.array.name, ())):
                    inside = [
                        (low - first, high - first) for (low, high), (first, _) in zip(missing, part, strict=True)
                    ]
                    values[slices(tuple(inside))] = source.read(missing)
                self.keep.append(values)
                for slab in range(steps):
                    low, high = array.rows.slab(slab)
                    if low < high:
                        at = values.ctypes.data + low * values.strides[0]
                        box = ((low, high), *part[1:])
                        extents[slab].append(_extent(array, number, -1, at, box, values.strides))
        return self._generation([], extents, [])

    def _generation(
        self, files: Sequence[str], extents: Sequence[Sequence[native.Extent]], keys: Sequence[int]
    ) -> native.Generation:
        firsts = itertools.accumulate(map(len, extents), initial=0)
        return native.Generation(
            files=self.table(ctypes.c_char_p, [name.encode() for name in files]),
            first_extent=self.numbers(firsts),
            extents=self.table(native.Extent, list(itertools.chain.from_iterable(extents))),
            keys=self.table(ctypes.c_uint64, keys),
        )


def _extent(
    array: StreamedArray, number: int, file: int, offset: int, box: Box, file_strides: Sequence[int]
) -> native.Extent:
    """A box of elements that lie in one file, as runs of bytes that are as long as can be."""
    sides = [high - low for low, high in box]
    run, left = array.itemsize, len(sides)
    while left and file_strides[left - 1] == array.byte_strides[left - 1] == run:
        left -= 1
        run *= sides[left]
    group, length = 1, run
    for axis in reversed(range(left)):
        if file_strides[axis] != length:
            break
        group *= sides[axis]
        length *= sides[axis]
    extent = native.Extent(
        file=file, array=number, offset=offset, row=box[0][0], column=array.column(box), run_bytes=run, group=group,
        dims=left,
    )  # fmt: skip
    for axis in range(left):
        extent.count[axis] = sides[axis]
        extent.file_stride[axis], extent.memory_stride[axis] = file_strides[axis], array.byte_strides[axis]
    return extent
