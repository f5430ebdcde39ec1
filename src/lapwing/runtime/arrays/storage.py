"""A rank's part of each array: which elements, where they lie in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import ArrayType, BoundNest
from lapwing.runtime.arrays.segments import Segment, export_segment
from lapwing.runtime.arrays.shear import Box, Shear, shear_of, skewed_box
from lapwing.tiling.needed import touched_box
from lapwing.tiling.partition import Range

_LINE = 64  # bytes of a cache line
_SETS = 64  # cache sets of a first-level cache, a line each


@dataclass(frozen=True)
class LocalArray:
    """The elements of ``box`` (half-open, in indices of the whole array); ``values`` has the shape of the box.

    Rows lie in order and the last axis is contiguous; other strides are free, so rows may be padded. ``segment`` is the
    memory they lie in if other ranks of the node can map it. With a ``shear`` box and values are in sheared indices.
    """

    array: ArrayType
    box: Box
    values: npt.NDArray[Any]
    segment: Segment | None = None
    shear: Shear | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Of the user's indices, in elements."""
        strides = tuple(s // self.array.itemsize for s in self.values.strides)
        return strides if self.shear is None else self.shear.strides(strides)

    @cached_property
    def origin(self) -> int:
        """The address element (0, …, 0) of the whole array would have."""
        steps = zip(self.box, self.values.strides, strict=True)
        return int(self.values.ctypes.data) - sum(low * stride for (low, _), stride in steps)

    def view(self, box: Box) -> npt.NDArray[Any]:
        """A part of the elements, over the same memory."""
        inside = zip(box, self.box, strict=True)
        return self.values[tuple(slice(low - first, high - first) for (low, high), (first, _) in inside)]


def needed_box(bound: BoundNest, name: str, block: Sequence[Range]) -> Box:
    """The elements of an array that iterations of a block (space loops, in the domain's coordinates) can touch.

    Of an array that a skewed nest writes it holds what messages carry as well: boxes around what is touched.
    """
    array = bound.array(name)
    if bound.skew is not None and name in bound.nest.written:
        everything = tuple((0, n) for n in array.shape)
        return shear_of(bound, name).around(skewed_box(bound, name, block), everything)
    ranges = (*bound.domain.box[: bound.nest.sweep_depth], *block)
    return touched_box(bound, name, dict(zip(bound.nest.loop_names, ranges, strict=True)))


@dataclass(frozen=True)
class Storage:
    """What a rank keeps of an array: a box of elements, or of sheared ones."""

    box: Box
    shear: Shear | None = None


def storage_of(bound: BoundNest, name: str, block: Sequence[Range]) -> Storage:
    """What a rank with this block keeps of an array: of a skewed nest's written array, what takes less memory."""
    if bound.skew is None or name not in bound.nest.written:
        return Storage(needed_box(bound, name, block))
    everything = tuple((0, n) for n in bound.array(name).shape)
    return smaller_storage(shear_of(bound, name), skewed_box(bound, name, block), everything)


def smaller_storage(shear: Shear, sheared: Box, limits: Box) -> Storage:
    """Memory for the elements of ``limits`` in a sheared box: that box, or one of elements where it takes no more."""
    box = shear.around(sheared, limits)
    # The tile asks for contiguous last axes, in the user's indices as well.
    smaller = _volume(sheared) < _volume(box) and not shear.moves_with(len(box) - 1)
    return Storage(sheared, shear) if smaller else Storage(box)


def _volume(box: Box) -> int:
    return math.prod(high - low for low, high in box)


def allocate(array: ArrayType, box: Box, exported: bool = False, shear: Shear | None = None) -> LocalArray:
    """Padded memory for a box of an array, not initialised; ``exported``: in a segment, if the system has one to give.

    With a ``shear`` the box is in sheared indices. Raises RunError where there is not enough.
    """
    sides = [high - low for low, high in box]
    strides = padded_strides(sides, array.itemsize)
    count = max(1, sides[0]) * strides[0] * array.itemsize + 2 * _LINE
    segment = export_segment(count) if exported else None
    try:
        raw = np.empty(count, np.uint8) if segment is None else segment.memory
    except MemoryError:
        raise RunError(f"no memory for {count:,} bytes of an array of shape {array.shape}. Use more ranks.") from None
    offset = -raw.ctypes.data % _LINE
    values = np.ndarray(sides, array.dtype, raw, offset, [s * array.itemsize for s in strides])
    return LocalArray(array, box, values, segment, shear)


def attach(array: ArrayType, values: npt.NDArray[Any]) -> LocalArray | None:
    """The whole array where it lies, without a copy; None where its layout does not allow that."""
    if values.size == 0 or values.strides[-1] != array.itemsize:
        return None
    if any(s <= 0 or s % array.itemsize for s in values.strides):
        return None
    return LocalArray(array, tuple((0, n) for n in array.shape), values)


def copied_as_it_lies(array: ArrayType, values: npt.NDArray[Any], box: Box) -> LocalArray:
    """A box of an array that can be attached, in memory of its own with the same strides."""
    part = values[tuple(slice(low, high) for low, high in box)]
    size = array.itemsize + sum(stride * (extent - 1) for stride, extent in zip(part.strides, part.shape, strict=True))
    copy = np.ndarray(part.shape, array.dtype, np.empty(size, np.uint8), strides=part.strides)
    copy[...] = part
    return LocalArray(array, box, copy)


def is_crowded(local: LocalArray) -> bool:
    """Whether the points of one step of a tile with lanes, one a row, share so few cache sets that they evict each other.

    A padded copy is then several times faster (docs/performance/kernels.md).
    """
    rows = 16
    for stride in local.values.strides[:-1]:
        lines = {row * (stride - local.array.itemsize) // _LINE for row in range(rows)}
        if len({line % _SETS for line in lines}) < len(lines) // 2:
            return True
    return False


def crowded_arrays(arrays: Sequence[ArrayType], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of those that a tile with lanes is better off with a padded copy of, by ``is_crowded``."""
    return tuple(array.name for array in arrays if _lies_crowded(array, arguments.get(array.name)))


def _lies_crowded(array: ArrayType, values: Any) -> bool:
    if not isinstance(values, np.ndarray) or values.shape != array.shape:
        return False
    place = attach(array, values)
    return place is not None and is_crowded(place)


def padded_strides(sides: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Row-major strides in elements, each (but the last) an odd number of cache lines.

    Rows a power of two apart share few cache sets and cost up to twice the time; an odd number of lines never does.
    """
    per_line = _LINE // itemsize
    strides = [1]
    for side in reversed(sides[1:]):
        lines = math.ceil(max(side, 1) * strides[-1] / per_line)
        strides.append((lines | 1) * per_line)
    return tuple(reversed(strides))
