"""Numbers between memory and their places in a file, with little memory besides.

Files are read and written, not mapped: what a disk refuses is an error with words, not a signal.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RunError

Array = npt.NDArray[Any]

BUFFER_BYTES = 4 << 20
# Elements apart are read with what lies between them where that is little: up to this many bytes of the file …
_NEAR_BYTES = 1 << 16
# … or so many times what is wanted.
_NEAR_TIMES = 8


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Inside the block an error of the system is a RunError. what: "u.npy cannot be read"."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{what}: {error.strerror or error}.") from error


def read_into(descriptor: int, offset: int, strides: Sequence[int], kind: np.dtype[Any], out: Array) -> None:
    """Read the elements of ``out``, of any memory layout, from a file where they lie ``strides`` (bytes, none negative) apart.

    kind: their type on file, which may be big-endian. Raises OSError, and EOFError where the file ends too soon.
    """
    order = sorted(range(out.ndim), key=lambda axis: -strides[axis])
    _read(descriptor, offset, [strides[axis] for axis in order], kind, out.transpose(order))


def _read(descriptor: int, offset: int, strides: list[int], kind: np.dtype[Any], out: Array) -> None:
    if out.size == 0:
        return
    span = kind.itemsize + sum((n - 1) * stride for n, stride in zip(out.shape, strides, strict=True))
    wanted = out.size * kind.itemsize
    if span == wanted and kind == out.dtype and out.flags.c_contiguous and _is_dense(out.shape, strides, kind.itemsize):
        read_bytes(descriptor, offset, out.reshape(-1).view(np.uint8))
    elif span <= BUFFER_BYTES and (span <= _NEAR_BYTES or span <= _NEAR_TIMES * wanted):
        raw = np.empty(span, np.uint8)
        read_bytes(descriptor, offset, raw)
        out[...] = np.ndarray(out.shape, kind, raw, 0, strides)
    else:
        axis = next(axis for axis, n in enumerate(out.shape) if n > 1)
        half = out.shape[axis] // 2
        before = (slice(None),) * axis
        _read(descriptor, offset, strides, kind, out[(*before, slice(half))])
        _read(descriptor, offset + half * strides[axis], strides, kind, out[(*before, slice(half, None))])


def write_from(descriptor: int, offset: int, strides: Sequence[int], kind: np.dtype[Any], values: Array) -> None:
    """Write elements to a file where they lie ``strides`` (bytes, none negative) apart; nothing between them is touched.

    So other processes may write their own elements of the same file meanwhile. Raises OSError.
    """
    order = sorted(range(values.ndim), key=lambda axis: -strides[axis])
    _write(descriptor, offset, [strides[axis] for axis in order], kind, values.transpose(order))


def _write(descriptor: int, offset: int, strides: list[int], kind: np.dtype[Any], values: Array) -> None:
    if values.size == 0:
        return
    dense = _is_dense(values.shape, strides, kind.itemsize)
    if dense and values.size * kind.itemsize <= BUFFER_BYTES:
        write_bytes(descriptor, offset, np.ascontiguousarray(values, kind).reshape(-1).view(np.uint8))
        return
    axis = next(axis for axis, n in enumerate(values.shape) if n > 1)
    n, before = values.shape[axis], (slice(None),) * axis
    parts = 2 if dense else n
    for part in range(parts):
        low, high = n * part // parts, n * (part + 1) // parts
        _write(descriptor, offset + low * strides[axis], strides, kind, values[(*before, slice(low, high))])


def _is_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether the elements lie in order with nothing between them."""
    expected = itemsize
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n > 1 and stride != expected:
            return False
        expected *= n
    return True


def read_bytes(descriptor: int, offset: int, out: npt.NDArray[np.uint8]) -> None:
    """Fill contiguous memory from a file. Raises OSError, and EOFError where the file ends too soon."""
    rest = out.data
    while rest:
        count = os.preadv(descriptor, [rest], offset)
        if count == 0:
            raise EOFError
        rest, offset = rest[count:], offset + count


def write_bytes(descriptor: int, offset: int, values: npt.NDArray[np.uint8]) -> None:
    """Write contiguous memory to a file. Raises OSError."""
    rest = values.data
    while rest:
        count = os.pwritev(descriptor, [rest], offset)
        rest, offset = rest[count:], offset + count


def write_repeated(descriptor: int, offset: int, element: npt.NDArray[Any], count: int) -> None:
    """Write one element ``count`` times. Raises OSError."""
    at_once = max(1, BUFFER_BYTES // element.dtype.itemsize)
    buffer = np.full(min(count, at_once), element).view(np.uint8)
    for first in range(0, count, at_once):
        part = buffer[: min(at_once, count - first) * element.dtype.itemsize]
        write_bytes(descriptor, offset + first * element.dtype.itemsize, part)


def element_strides(shape: Sequence[int], itemsize: int, column_major: bool = False) -> tuple[int, ...]:
    """From one element to the next along each axis, in bytes, where they lie in order with nothing between them."""
    if column_major:
        return tuple(itemsize * math.prod(shape[:axis]) for axis in range(len(shape)))
    return tuple(itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
