"""NumPy arrays of which every rank has a copy, while nests work on parts: copies are brought up to date when they are needed.

A copy and its parts are kept coherent as caches are. A nest makes the parts the newest and leaves the copies behind; looking at a
copy first brings the parts together in it on every rank, and then lets go of them, for whoever looks may write.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.runtime.arrays.distributed import DistributedArray
from lapwing.runtime.arrays.meeting import is_plain, share_memory

Array = npt.NDArray[Any]

_WITHOUT_ARRAYS = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.generic,
    slice,
    range,
    types.ModuleType,
    np.ufunc,
    DistributedArray,
)
_MOST_KNOWN = 64
_MOST_LOOKED_THROUGH = 1000  # elements of a list or tuple


class _Copy:
    """A NumPy array, and the parts of it that ranks may hold. ``is_behind``: the parts are newer."""

    def __init__(self, values: Array, comm: Any) -> None:
        self.owner = _owner(values)
        self.values = values[...]  # no object of the program's, so that _is_forgotten can count
        self.place = _place(values)
        self.parts = DistributedArray.everywhere(self.values, comm)
        self.is_behind = False

    def meets(self, values: Array) -> bool:
        """Whether they have elements in common."""
        return share_memory(self.values, values)


class _Known:
    """An array, of which nothing is kept alive, and its copy."""

    def __init__(self, values: Array, copy: _Copy) -> None:
        self._array, self.copy = weakref.ref(values), copy
        self._shape, self._strides, self._dtype = values.shape, values.strides, values.dtype

    def holds(self, values: Array) -> bool:
        """Whether it is this array, as it was: shape and dtype can be assigned to."""
        if self._array() is not values:
            return False
        return self._shape == values.shape and self._strides == values.strides and self._dtype is values.dtype


@dataclass(frozen=True)
class _View:
    """A copy of elements of a DistributedArray, for one nest: a view of an array of its shape."""

    array: DistributedArray
    index: Any
    whole: Array
    values: Array


class Coherence:
    """The arrays of one program on the ranks of comm (mpi4py, Lapwing's own), all of which do the same with them."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._copies: list[_Copy] = []
        self._known: dict[int, _Known] = {}  # by identity, arrays whose copy is among these
        self._views: list[_View] = []

    @property
    def behind(self) -> int:
        """How many arrays are behind."""
        return sum(copy.is_behind for copy in self._copies)

    def parts(self, arguments: Mapping[str, Any], written: Iterable[str]) -> dict[str, Any]:
        """The arguments of a nest with DistributedArrays in the place of NumPy arrays. written: those it writes. Collective."""
        self._forget()
        copies = {name: self._copy_of(value) for name, value in arguments.items() if is_plain(value)}
        for name in copies.keys() & set(written):
            copies[name].is_behind = True
        return {name: copies[name].parts if name in copies else value for name, value in arguments.items()}

    def look(self, *values: Any) -> None:
        """Before the program looks at these, or writes to them: bring up to date what of them is behind. Collective."""
        for value in values:
            if isinstance(value, np.ndarray):
                self._look_at(value)
            elif isinstance(value, tuple | list) and len(value) <= _MOST_LOOKED_THROUGH:
                self.look(*value)
            elif isinstance(value, types.BuiltinFunctionType):
                self.look(value.__self__)  # a module, or what it is a method of
            elif not (isinstance(value, _WITHOUT_ARRAYS) or _comes_with_python(value)):
                self.look_at_all()  # what it may reach is not known

    def look_at_all(self) -> None:
        """The same for all there is. Collective."""
        for copy in self._copies:
            self._bring(copy)
        self._copies.clear()
        self._known.clear()

    def drop(self, values: Array) -> None:
        """Nobody wants the elements of an array any more: its copy stays as it is."""
        known = self._known.get(id(values))
        if known is not None and known.holds(values):
            known.copy.is_behind = False

    def item(self, values: Any, index: Any) -> Any:
        """``values[index]``; a view is made without looking at the elements. Collective."""
        self.look(index)
        if isinstance(values, np.ndarray):
            found = values[index]
            if isinstance(found, np.ndarray) and _owner(found) is _owner(values):
                return found
        if not isinstance(values, list | tuple | dict):
            self.look(values)
        found = values[index]
        if isinstance(values, DistributedArray) and isinstance(found, np.ndarray):
            raise RefusedError(
                f"a view of a DistributedArray of shape {values.shape} gets a name, and would not change with it. Pass a NumPy "
                "array in its place, the same on every rank; or write .copy() behind the view."
            )
        return found

    def view(self, values: Any, index: Any) -> Any:
        """``values[index]`` as an argument of a nest; of a DistributedArray it is a copy until ``put_views``. Collective."""
        if not isinstance(values, DistributedArray):
            return values[index]
        elements = values[index]
        if not isinstance(elements, np.ndarray):
            return elements
        # Views of one array meet as they would in it; what none of them is of takes no memory.
        whole = next((view.whole for view in self._views if view.array is values), None)
        whole = np.empty(values.shape, values.dtype) if whole is None else whole
        found = whole[index]
        if not (isinstance(found, np.ndarray) and share_memory(found, whole)):
            return elements
        found[...] = elements
        self._views.append(_View(values, index, whole, found))
        return found

    def check_views(self, arguments: Mapping[str, Any]) -> None:
        """Raise RefusedError where a nest is passed an array and such a copy of some of its elements."""
        for view in self._views:
            for name, value in arguments.items():
                if value is view.array:
                    raise RefusedError(
                        f"a view of a DistributedArray of shape {value.shape} is passed with the array itself, as {name}, and "
                        "would not change with it. Pass a NumPy array in its place, the same on every rank."
                    )

    def put_views(self, arguments: Mapping[str, Any], written: Iterable[str]) -> None:
        """After a nest, put what it has written to such copies in their places. Collective."""
        names = set(written)
        for view in self._views:
            if any(value is view.values for name, value in arguments.items() if name in names):
                self.look(view.values)
                view.array[view.index] = view.values

    def forget_views(self) -> None:
        """After a nest, however it has ended."""
        self._views.clear()

    def _copy_of(self, values: Array) -> _Copy:
        """The array's copy. No two of those that are kept have elements in common."""
        known = self._known.get(id(values))
        if known is not None and known.holds(values):
            return known.copy
        found = self._copy_at(values)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[id(values)] = _Known(values, found)
        return found

    def _copy_at(self, values: Array) -> _Copy:
        place = _place(values)
        for copy in self._copies:
            if copy.place == place:
                return copy
        self._look_at(values)
        self._copies.append(_Copy(values, self._comm))
        return self._copies[-1]

    def _look_at(self, values: Array) -> None:
        met = [copy for copy in self._copies if copy.meets(values)]
        for copy in met:
            self._bring(copy)
            self._copies.remove(copy)
        if met:
            self._known.clear()

    def _bring(self, copy: _Copy) -> None:
        if copy.is_behind:
            copy.parts.bring_everywhere(copy.values)
            copy.is_behind = False

    def _forget(self) -> None:
        """Let go of arrays that the program has let go of."""
        kept = []
        for copy in self._copies:
            own = sum(other.owner is copy.owner for other in self._copies)
            # Of a copy: its owner and the base of its view; and what asks for the count.
            if sys.getrefcount(copy.owner) > 2 * own + 1:
                kept.append(copy)
        if len(kept) < len(self._copies):
            self._known.clear()
        self._copies = kept


def _owner(values: Array) -> Array:
    """The array whose memory this is."""
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values


def _place(values: Array) -> tuple[Any, ...]:
    """Where an array lies, and as what."""
    return values.__array_interface__["data"][0], values.shape, values.strides, values.dtype


def _comes_with_python(value: Any) -> bool:
    """Functions and types of Python's and NumPy's, which reach no arrays but their arguments."""
    if not (isinstance(value, type | types.FunctionType) or type(value).__name__ == "_ArrayFunctionDispatcher"):
        return False
    return str(value.__module__).split(".")[0] in ("builtins", "math", "numpy")
