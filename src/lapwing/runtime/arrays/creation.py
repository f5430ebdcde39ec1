"""Arrays that are distributed from the start: every rank makes its own part, and none passes through another.

A rank makes what it needs when a nest first says what that is: until then an array is its shape and the rule for its
elements. Only ``from_local`` holds elements from the start.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError, RunError
from lapwing.runtime.arrays.distributed import DistributedArray, agreement_put_off
from lapwing.runtime.arrays.meeting import Call, agree_on
from lapwing.runtime.arrays.parts import InitialValues, OwnBlock
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.transfer import sides, slices

Result = TypeVar("Result")

_NUMBERS = "biufc"  # kinds of dtypes


def zeros(shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *, comm: Any = None) -> DistributedArray:
    """A DistributedArray of zeros, as numpy.zeros. Arguments and errors are those of ``full``."""
    return full(shape, 0, dtype, comm=comm)


def full(
    shape: int | Sequence[int], value: Any, dtype: npt.DTypeLike | None = None, *, comm: Any = None
) -> DistributedArray:
    """A DistributedArray with the same value everywhere, as numpy.full.

    dtype: None for the value's own. comm: the ranks, as for DistributedArray. Collective over them. Raises RefusedError where
    ranks ask for different arrays or the shape is none.
    """
    found = np.asarray(value)
    if found.ndim:
        raise RefusedError(f"full: the value has shape {found.shape}, expected one number. from_function gives many.")
    element = found.astype(found.dtype if dtype is None else dtype)

    def fill(box: Box) -> npt.NDArray[Any]:
        return np.broadcast_to(element, sides(box))

    return _created(f"full({element.item()!r})", shape, element.dtype, fill, comm)


def from_function(
    function: Callable[..., Any], shape: int | Sequence[int], dtype: npt.DTypeLike = np.float64, *, comm: Any = None
) -> DistributedArray:
    """A DistributedArray whose elements a function gives from their indices, as numpy.fromfunction.

    function: called with an int64 array of indices for every axis, shaped so that they broadcast against each other, for
    parts of the array at a time; it gives the elements there, or what broadcasts to them. It may be called more than once for
    an element, and must give the same then. Collective, comm and errors as for ``full``.
    """
    kind, text = np.dtype(dtype), f"from_function({getattr(function, '__qualname__', type(function).__name__)})"

    def fill(box: Box) -> npt.NDArray[Any]:
        try:
            found = np.asarray(function(*np.ogrid[slices(box)]))
        except Exception as error:
            raise RunError(f"{text}: {type(error).__name__}: {error}.") from error
        if found.dtype.kind not in _NUMBERS or (found.dtype.kind == "c" and kind.kind != "c"):
            raise RefusedError(f"{text}: gave {found.dtype}, expected what fits an array of {kind}.")
        try:
            return np.broadcast_to(found.astype(kind, copy=False), sides(box))
        except ValueError:
            raise RefusedError(
                f"{text}: gave shape {found.shape} for indices that broadcast to {sides(box)}: expected that shape, or one "
                "that broadcasts to it. It is called with arrays of indices, as by numpy.fromfunction."
            ) from None

    return _created(text, shape, kind, fill, comm)


def from_local(block: npt.NDArray[Any], start: Sequence[int] | None = None, *, comm: Any = None) -> DistributedArray:
    """A DistributedArray of blocks, one of every rank, which owns a copy of it from then on.

    block: this rank's, of the same dtype on all ranks. start: the index of its first element in the whole array; the blocks
    are then those of a grid, in any order. Without it they lie behind each other along the first axis, in the order of the
    ranks. Collective, comm as for ``full``. Raises RefusedError, on every rank, where the blocks make up no array.
    """
    if not isinstance(block, np.ndarray) or isinstance(block, np.ma.MaskedArray) or block.ndim == 0:
        raise RefusedError(
            f"from_local: the block is {type(block).__name__}, expected a NumPy array of one or more axes."
        )
    if block.dtype.kind not in _NUMBERS:
        raise RefusedError(f"from_local: the block is of {block.dtype}: expected numbers.")
    try:
        first = None if start is None else tuple(map(operator.index, start))
    except TypeError:
        raise RefusedError(
            f"from_local: start={start!r}: expected an index for every axis, such as (0, 100)."
        ) from None
    return DistributedArray(OwnBlock(block, first), comm=comm)


def load(path: str | os.PathLike[str], *, comm: Any = None) -> DistributedArray:
    """A DistributedArray from a .npy file that every rank can read: each reads its own part, when a nest says which.

    The file must stay as it is until a nest has written to the array. Collective, comm as for ``full``. Raises RefusedError
    where the file is none that can be loaded, also later where it has changed.
    """
    name = os.path.abspath(path)
    values, version = _mapped(name), _version(name)
    shape, dtype = values.shape, values.dtype
    del values

    def fill(box: Box) -> npt.NDArray[Any]:
        part = _mapped(name)[
            slices(box)
        ]  # opened for every part, so that the file does not stay in this process's memory
        if _version(name) != version:
            raise RefusedError(f"load: {name}: has changed since it was loaded, and parts of it are still to be read.")
        return part

    return _created(f"load({os.fspath(path)})", shape, dtype, fill, comm, of_file=True)


def _version(name: str) -> tuple[int, int, int]:
    found = os.stat(name)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _mapped(name: str) -> npt.NDArray[Any]:
    try:
        values = np.load(name, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RefusedError(f"load: {name}: {error}. Expected a .npy file of numbers.") from error
    if not isinstance(values, np.ndarray):
        raise RefusedError(f"load: {name}: holds several arrays. Expected a .npy file.")
    return values


def created_by(action: Callable[[], Result]) -> tuple[Result, list[DistributedArray]]:
    """What an action gives, and the arrays it creates without a word to other ranks: ``agree_on_created`` must follow."""
    with agreement_put_off() as arrays:
        return action(), arrays


def agree_on_created(arrays: Sequence[DistributedArray], arguments: Mapping[str, Any], what: str, comm: Any) -> None:
    """See that all ranks have created the same arrays. Collective. Raises RefusedError as creating them would.

    what: created them, for messages, and gave these arguments.
    """
    given = [
        name for name, value in arguments.items() if isinstance(value, DistributedArray) and value.comm is not None
    ]
    call = Call(
        what, values=(("the number of arrays it creates", str(len(arrays))), ("what is distributed", repr(given)))
    )
    agree_on(call, "Every rank calls it, with the same arguments.", comm)
    for array in arrays:
        array.agree()


def whole_arrays(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with arrays that are whole on the first rank, None elsewhere. Collective."""
    found: dict[int, Any] = {}
    for value in arguments.values():
        if isinstance(value, DistributedArray) and id(value) not in found:
            found[id(value)] = value.numpy()
    return {
        name: found.get(id(value), value) if isinstance(value, DistributedArray) else value
        for name, value in arguments.items()
    }


def _created(
    text: str,
    shape: int | Sequence[int],
    dtype: np.dtype[Any],
    fill: Callable[[Box], npt.NDArray[Any]],
    comm: Any,
    of_file: bool = False,
) -> DistributedArray:
    try:
        extents = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        extents = ()
    if not extents or min(extents) < 0:
        raise RefusedError(f"{text}: shape {shape!r}: expected one or more lengths of axes, none of them negative.")
    if dtype.kind not in _NUMBERS:
        raise RefusedError(f"{text}: dtype {dtype}: expected numbers.")
    return DistributedArray(InitialValues(text, extents, np.dtype(dtype.name), fill, of_file), comm=comm)
