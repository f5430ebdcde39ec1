"""Arrays on disk among NumPy's: what a program's driver sees of them, an element, a row or all of it, as far as memory goes.

What is read is a copy that cannot be written to. In NumPy it would be a view, which changes with its array: so nothing is written
to elements of which a copy is in use.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.runtime.arrays.elements import Elements
from lapwing.runtime.mpi import communicator
from lapwing.store.array import StoredArray
from lapwing.store.boxes import Box, intersection, is_empty, sides, whole
from lapwing.store.chunking import blocks, grouped
from lapwing.units import size


class _NotThere(RefusedError, AttributeError):
    """What NumPy's arrays have and these do not."""


class DiskArray(Elements):
    """stored: where it is. name: for messages. limit: bytes that one look may read. comm: the ranks, all of which do the same
    with it (None: this process alone). make: makes another array on disk of a shape and a dtype."""

    def __init__(
        self,
        stored: StoredArray,
        name: str,
        limit: int,
        comm: Any | None,
        make: Callable[[tuple[int, ...], np.dtype[Any], tuple[int, ...] | None], StoredArray],
    ) -> None:
        self.stored, self.name = stored, name
        self.shape, self.dtype = stored.shape, stored.dtype
        self._limit, self._comm, self._make = limit, comm, make
        self._read: list[tuple[Box, weakref.ref[npt.NDArray[Any]]]] = []

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.stored.nbytes

    @property
    def itemsize(self) -> int:
        return int(self.dtype.itemsize)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise _NotThere(
            f"{self.name}.{name}: {self.name} is on disk, {self.stored.path}, where the driver of a program can index, copy and "
            f"compute with it, and no more. Write numpy.asarray({self.name}).{name}, where it fits in memory."
        )

    # -- reading ---------------------------------------------------------------------------------------------------------

    def together(self) -> npt.NDArray[Any]:
        return self._box(whole(self.shape))

    def __getitem__(self, index: Any) -> Any:
        found = self._found(index)
        if found is None:
            return super().__getitem__(index)
        box, inside = found
        values = self._box(box)[inside]
        if isinstance(values, np.ndarray):
            values.flags.writeable = False
        return values

    def _box(self, box: Box) -> npt.NDArray[Any]:
        """Elements of a box, read from the disk."""
        needed = math.prod(sides(box)) * self.itemsize
        if needed > self._limit:
            raise RefusedError(
                f"{self.name}: a statement of the driver looks at {size(needed)} of it, and it is on disk, {self.stored.path}: "
                f"more than the {size(self._limit)} that there may be in memory. Write that statement as loops over elements; "
                "or allow more memory: using(memory=…)."
            )
        found = self.stored.read(box)
        self._read = [(b, ref) for b, ref in self._read if ref() is not None]
        self._read.append((box, weakref.ref(found)))
        return found

    def _found(self, index: Any) -> tuple[Box, tuple[Any, ...]] | None:
        """The box of elements that an index selects from, and the index inside of it; None where it is not of integers and
        slices. Raises IndexError as NumPy does."""
        given = index if isinstance(index, tuple) else (index,)
        if any(not isinstance(one, int | np.integer | slice) and one is not Ellipsis for one in given) or any(
            isinstance(one, bool) for one in given
        ):
            return None
        if sum(one is Ellipsis for one in given) > 1 or len(given) - (Ellipsis in given) > self.ndim:
            np.empty(self.shape, np.bool)[index]  # raises what NumPy raises
        at = given.index(Ellipsis) if Ellipsis in given else len(given)
        rest = given[at + 1 :]
        full = (*given[:at], *[slice(None)] * (self.ndim - at - len(rest)), *rest)
        box: list[tuple[int, int]] = []
        inside: list[Any] = []
        for axis, (one, n) in enumerate(zip(full, self.shape, strict=True)):
            if isinstance(one, slice):
                chosen = range(n)[one]
                low = min(chosen[0], chosen[-1]) if chosen else 0
                box.append((low, max(chosen[0], chosen[-1]) + 1 if chosen else 0))
                last = chosen.stop - low if chosen.stop - low >= 0 else None
                inside.append(slice(chosen.start - low, last, chosen.step) if chosen else slice(0, 0))
                continue
            number = int(one)
            if not -n <= number < n:
                raise IndexError(f"index {number} is out of bounds for axis {axis} with size {n}")
            number %= n
            box.append((number, number + 1))
            inside.append(0)
        return tuple(box), tuple(inside)

    # -- writing ---------------------------------------------------------------------------------------------------------

    def about_to_write(self, box: Box | None = None) -> None:
        """Before elements of a box are written, or any: no copy of them is in use. Raises RefusedError."""
        box = whole(self.shape) if box is None else box
        for read, ref in self._read:
            if ref() is not None and not is_empty(intersection(read, box)):
                raise RefusedError(
                    f"{self.name}: elements that the driver has read are still in use when {self.name} is written, and would "
                    f"change with it if it were not on disk ({self.stored.path}). Write .copy() behind them where they are read."
                )

    def replace(self, values: npt.NDArray[Any]) -> None:
        self._write(whole(self.shape), values)

    def __setitem__(self, index: Any, value: Any) -> None:
        found = self._found(index)
        if found is None:
            super().__setitem__(index, value)
            return
        box, inside = found
        is_all = box == whole(self.shape) and all(isinstance(one, slice) and one.step == 1 for one in inside)
        if is_all and isinstance(value, DiskArray) and value.shape == self.shape:
            self.about_to_write()
            copy_elements(value.stored, self.stored, self._comm)
            return
        if is_all and not np.ndim(value):
            self.about_to_write()
            element = np.empty((), self.dtype)
            element[...] = value
            _each(self.stored, self._comm, lambda part: self.stored.write(part, element))
            return
        values = self._box(box).copy()
        values[inside] = value
        self._write(box, values)

    def _write(self, box: Box, values: npt.NDArray[Any]) -> None:
        """The ranks have the same values: one writes, when all have read what they are made of."""
        self.about_to_write(box)
        if self._comm is None:
            self.stored.write(box, values)
            return
        first = self._comm.Get_rank() == 0
        self._comm.Barrier()
        communicator.agree(self._comm, lambda: self.stored.write(box, values) if first else None)

    # -- others like it --------------------------------------------------------------------------------------------------

    def copy(self) -> Any:
        """Another array on disk with the same elements."""
        other = self.like()
        copy_elements(self.stored, other.stored, self._comm)
        return other

    def like(self, dtype: Any = None, shape: tuple[int, ...] | None = None) -> DiskArray:
        """Another array on disk, of zeros."""
        alike = shape is None or shape == self.shape
        kind = self.dtype if dtype is None else np.dtype(dtype)
        stored = self._make(self.shape if shape is None else shape, kind, self.stored.chunks if alike else None)
        return DiskArray(stored, f"a copy of {self.name}", self._limit, self._comm, self._make)

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any) -> Any:
        if (made := _LIKE.get(function)) is not None and args and args[0] is self and not kwargs.keys() - {"dtype"}:
            return made(self, *args[1:], **kwargs)
        if function is np.copyto and len(args) == 2 and args[0] is self and not kwargs:
            self[...] = args[1]
            return None
        return super().__array_function__(function, kinds, args, kwargs)


def _filled(like: DiskArray, value: Any, dtype: Any = None) -> DiskArray:
    made = like.like(dtype)
    if value != 0:
        made[...] = value
    return made


_LIKE: dict[Any, Callable[..., Any]] = {
    np.shape: lambda like: like.shape,
    np.ndim: lambda like: like.ndim,
    np.size: lambda like: like.size,
    np.copy: lambda like: like.copy(),
    np.zeros_like: lambda like, dtype=None: _filled(like, 0, dtype),
    np.empty_like: lambda like, dtype=None: _filled(like, 0, dtype),
    np.ones_like: lambda like, dtype=None: _filled(like, 1, dtype),
    np.full_like: lambda like, value, dtype=None: _filled(like, value, dtype),
}


def copy_elements(source: StoredArray, target: StoredArray, comm: Any | None) -> None:
    """From one array on disk to another of its shape. Collective over comm; None: in this process alone."""
    _each(target, comm, lambda part: target.write(part, source.read(part).astype(target.dtype, copy=False)))


def _each(stored: StoredArray, comm: Any | None, write: Callable[[Box], None]) -> None:
    """Do something for every block of an array on disk, each on one of the ranks. Collective."""
    parts = blocks(whole(stored.shape), grouped(stored.chunks, stored.shape, stored.dtype.itemsize))
    if comm is None:
        for part in parts:
            write(part)
        return

    def own() -> None:
        for number, part in enumerate(parts):
            if number % comm.Get_size() == comm.Get_rank():
                write(part)

    comm.Barrier()
    communicator.agree(comm, own)
