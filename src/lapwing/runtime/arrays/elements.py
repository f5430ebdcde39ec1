"""A DistributedArray among NumPy's: its elements and what NumPy computes with them, brought together on every rank.

What comes out are NumPy arrays and scalars, the same on all ranks; slices are copies that cannot be written to. All of it is
collective: every rank of the array does the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin


class Elements(NDArrayOperatorsMixin):
    """Indexing, arithmetic and NumPy's functions for an array that tells how to bring it together."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    __hash__ = object.__hash__  # that of the object: its elements come and go

    @abstractmethod
    def together(self) -> npt.NDArray[Any]:
        """All elements, on every rank: not to be written to. Collective."""

    @abstractmethod
    def replace(self, values: npt.NDArray[Any]) -> None:
        """Take these elements, of the array's dtype and shape, the same on every rank, in the place of its own. Collective."""

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        found = _fixed(self.together())
        return found.astype(dtype) if dtype is not None and np.dtype(dtype) != found.dtype else found

    def __getitem__(self, index: Any) -> Any:
        found = self.together()[_plain(index)]
        return _fixed(found.copy()) if isinstance(found, np.ndarray) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        values = self.together().copy()
        values[_plain(index)] = _plain(value)
        self.replace(values)

    def copy(self) -> npt.NDArray[Any]:
        """The elements as a NumPy array of this rank's own."""
        return self.together().copy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        call = getattr(ufunc, method)
        if out is None:
            return call(*map(_plain, inputs), **{name: _plain(value) for name, value in kwargs.items()})
        targets = [one.together().copy() if isinstance(one, Elements) else one for one in out]
        # No name for what it computes with: that is out of use when the result takes its place.
        call(*map(_plain, inputs), out=tuple(targets), **{name: _plain(value) for name, value in kwargs.items()})
        for one, values in zip(out, targets, strict=True):
            if isinstance(one, Elements):
                one.replace(values)
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Callable[..., Any], kinds: Any, args: Any, kwargs: Any) -> Any:
        return function(*map(_plain, args), **{name: _plain(value) for name, value in kwargs.items()})

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return self.together().max(*args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return self.together().min(*args, **kwargs)

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return self.together().sum(*args, **kwargs)

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """As of a NumPy array."""
        return self.together().mean(*args, **kwargs)


def _fixed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written to: nothing would come of it."""
    view = values.view()
    view.flags.writeable = False
    return view


def _plain(value: Any) -> Any:
    """With NumPy arrays in the place of distributed ones."""
    if isinstance(value, Elements):
        return _fixed(value.together())
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value
