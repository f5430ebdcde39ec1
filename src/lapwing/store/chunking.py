"""How an array is cut into chunks, and a box into parts that suit them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from lapwing.errors import RefusedError
from lapwing.store.boxes import Box, intersection, is_empty

CHUNK_BYTES = 8 << 20  # long enough for any disk to be at full speed, short enough for several to be in memory


def default_chunks(shape: Sequence[int], itemsize: int, chunk_bytes: int = CHUNK_BYTES) -> tuple[int, ...]:
    """Chunks of at most ``chunk_bytes``: as many whole rows as fit; where not even one does, a part of a row.

    All are about as long, since the last one takes as much of the disk as the others.
    """
    chunks = []
    for axis, n in enumerate(shape):
        row = itemsize * math.prod(max(1, side) for side in shape[axis + 1 :])
        most = max(1, min(n, chunk_bytes // row))
        count = math.ceil(n / most)
        chunks.append(math.ceil(n / count) if count else 1)
        # Further axes are cut only where one row is more than a chunk.
        if row <= chunk_bytes:
            chunks += [max(1, side) for side in shape[axis + 1 :]]
            break
    return tuple(chunks)


def checked_chunks(chunks: Any, shape: tuple[int, ...], itemsize: int, where: str) -> tuple[int, ...]:
    """Chunks as a caller gave them, none longer than the array; the default for None, one number for all axes.

    Raises RefusedError where they are none.
    """
    if chunks is None:
        return default_chunks(shape, itemsize)
    try:
        given = (
            tuple(map(operator.index, chunks))
            if hasattr(chunks, "__iter__")
            else (operator.index(chunks),) * len(shape)
        )
    except TypeError:
        given = ()
    if len(given) != len(shape) or any(side < 1 for side in given):
        raise RefusedError(
            f"{where}: chunks {chunks!r}: expected a length of 1 or more for each of the {len(shape)} axes, such as "
            f"{default_chunks(shape, itemsize)}."
        )
    return tuple(min(side, max(1, n)) for side, n in zip(given, shape, strict=True))


def chunk_indices(box: Box, chunks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of the chunks that have elements in a box, in row-major order."""
    if is_empty(box):
        return iter(())
    return itertools.product(
        *(range(low // side, (high - 1) // side + 1) for (low, high), side in zip(box, chunks, strict=True))
    )


def chunk_box(index: Sequence[int], chunks: Sequence[int]) -> Box:
    """The elements of a chunk, those beyond the array's edge included."""
    return tuple((i * side, (i + 1) * side) for i, side in zip(index, chunks, strict=True))


def blocks(box: Box, block: Sequence[int]) -> Iterator[Box]:
    """A box in parts, none larger than a block; blocks are counted from the array's first element, as chunks are."""
    return (intersection(box, chunk_box(index, block)) for index in chunk_indices(box, block))


def number_of_blocks(box: Box, block: Sequence[int]) -> int:
    """How many parts ``blocks`` gives."""
    if is_empty(box):
        return 0
    return math.prod((high - 1) // side - low // side + 1 for (low, high), side in zip(box, block, strict=True))


def grouped(chunks: Sequence[int], shape: Sequence[int], itemsize: int, limit: int = CHUNK_BYTES) -> tuple[int, ...]:
    """Blocks of whole chunks: as many neighbours as ``limit`` bytes hold, along the last axes first; at least one chunk."""
    block = list(chunks)
    for axis in reversed(range(len(block))):
        fitting = limit // max(1, itemsize * math.prod(block))
        block[axis] *= max(1, min(fitting, math.ceil(shape[axis] / block[axis])))
    return tuple(block)
