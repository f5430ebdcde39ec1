"""Arrays whose contents nobody wants after a call, so that nests need not store what only they themselves read.

They are plain NumPy arrays. That they are scratch is known of the object alone: views and copies are arrays like any other.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

_known: dict[int, weakref.ref[Any]] = {}  # by identity
_wanted: ContextVar[bool] = ContextVar("scratch arrays are wanted", default=False)


def scratch(shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """An array of zeros for a nest or a program to work in, as numpy.zeros, of which nobody reads afterwards what it wrote.

        h = lw.scratch((n + 1, m + 1), np.int32)
        best = align(h, a, b)

    After a call of a nest or a program, one that raises too, the elements that its loops may write are unspecified. What they do
    not write, as a border of zeros, stays as it was, so that the same array can be passed again. Lapwing then keeps what only a
    few later iterations read in buffers, and does not bring such an array together from the ranks. Under MPI all ranks pass a
    scratch array, or none; of arrays on disk, and in exported programs, everything is stored.

    It is a plain ``numpy.ndarray``, in pages that the operating system provides when they are first touched, and plain Python
    runs on it as on any other. Its views and copies are no scratch arrays. A nest whose text says ``del h`` after its loops
    treats every array passed for h so.
    """
    return _marked(np.zeros(shape, dtype))


def copy_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy in the same order in memory, which is a scratch array if the other is."""
    copy = np.array(values, copy=True, order="K")
    return _marked(copy) if is_scratch(values) else copy


def _marked(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    key = id(values)
    _known[key] = weakref.ref(values, lambda _: _known.pop(key, None))
    return values


def is_scratch(value: Any) -> bool:
    """Whether an array was made by ``scratch``, and nobody wants what the call at hand leaves in it."""
    if not _known or (found := _known.get(id(value))) is None:
        return False
    return found() is value and not _wanted.get()


class _Wanted:
    """A class, since generators take four times as long: every call of a program goes through it."""

    def __enter__(self) -> None:
        self._before = _wanted.set(True)

    def __exit__(self, *_: object) -> None:
        _wanted.reset(self._before)


def wanted() -> AbstractContextManager[None]:
    """In this block calls leave in scratch arrays what they wrote: what one of them writes another may read."""
    return _Wanted()
