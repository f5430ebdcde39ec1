"""An array on disk in another format, copied a block at a time, by any number of processes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lapwing.errors import RefusedError
from lapwing.store.array import StoredArray
from lapwing.store.boxes import Box, whole
from lapwing.store.chunk_files import ChunkFiles
from lapwing.store.chunking import blocks, default_chunks, grouped, number_of_blocks
from lapwing.store.encoded import EncodedChunks
from lapwing.store.opening import create_array, open_for_conversion
from lapwing.store.zarr_format import names_and_attributes, opened

BLOCK_BYTES = 8 << 20  # what a process copies at a time; while zarr decodes, it takes a few times as much
FORMATS = (".npy", ".zarr")


def create_like(source: StoredArray, path: str, chunks: Sequence[int] | None = None) -> StoredArray:
    """A new array of the source's shape and numbers, of the format that the path ends in, with room for all of them.

    chunks: as for ``lw.create``. A Zarr array takes over the names of axes and the attributes of another. Its elements are
    anything, yet. Raises as ``create_array``, and RunError where the disk has no room.
    """
    if not path.endswith(FORMATS):
        raise RefusedError(f"{path}: expected a name that ends in {' or '.join(FORMATS)}.")
    names, attributes = None, None
    if isinstance(source.content, EncodedChunks):
        names, attributes = names_and_attributes(source.content.array)
    elif source.content.single is None:
        names, attributes = names_and_attributes(opened(source.path))
    made = create_array(
        path,
        source.shape,
        source.dtype,
        chunks=chunks,
        fill_value=source.fill_value,
        filled=False,
        dimension_names=names,
        attributes=attributes,
    )
    assert isinstance(made.content, ChunkFiles)
    made.content.prepare(filled=False)
    return made


def block_of(source: StoredArray, made: StoredArray) -> tuple[int, ...]:
    """The shape of what is copied at a time, so that nothing is decoded twice and little is written in small parts.

    Blocks are whole chunks: of an encoded source, which can be decoded only whole; otherwise of what is written, or parts of
    them where they are large. From Fortran to C order they are squares, which neither side has in very small parts.
    """
    itemsize = source.dtype.itemsize
    if isinstance(source.content, EncodedChunks):
        return grouped(source.chunks, source.shape, itemsize, BLOCK_BYTES)
    if source.content.column_major:
        side = math.isqrt(BLOCK_BYTES // itemsize)
        ends = (0, source.ndim - 1)
        square = [max(1, min(side, n)) if axis in ends else 1 for axis, n in enumerate(source.shape)]
        return grouped(square, source.shape, itemsize, BLOCK_BYTES)
    return grouped(default_chunks(made.chunks, itemsize, BLOCK_BYTES), source.shape, itemsize, BLOCK_BYTES)


def boxes_of(source: StoredArray, block: Sequence[int]) -> Iterator[Box]:
    """What is to be copied, each element once; processes may copy different boxes at the same time."""
    return blocks(whole(source.shape), block)


def number_of_boxes(source: StoredArray, block: Sequence[int]) -> int:
    """How many ``boxes_of`` gives."""
    return number_of_blocks(whole(source.shape), block)


def copy(source: str, made: str, box: Box) -> int:
    """Copy a box from one array to the other; the number of its bytes. Raises RunError where the system cannot."""
    values = _opened(source).read(box)
    _opened(made).write(box, values)
    return values.nbytes


@lru_cache(maxsize=2)
def _opened(path: str) -> StoredArray:
    return open_for_conversion(path)


def forget() -> None:
    """Hold no array open that was copied."""
    _opened.cache_clear()


def check_apart(source: str, path: str) -> None:
    """Raises RefusedError where an array and one to be written in its stead share files, whatever links lead to them."""
    one, other = os.path.realpath(source), os.path.realpath(path)
    same = os.path.exists(other) and os.path.samefile(one, other)
    if same or f"{one}{os.sep}".startswith(f"{other}{os.sep}") or f"{other}{os.sep}".startswith(f"{one}{os.sep}"):
        raise RefusedError(
            f"{path}: is, or lies in, what is to be read, {source}. Name another place for the new array."
        )
