"""Writes one .npy file from the parts of an array that ranks own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from lapwing.errors import RunError
from lapwing.loopnest.binding.bound_nest import ArrayType
from lapwing.runtime.arrays.shear import Box
from lapwing.runtime.arrays.transfer import pieces, slices

_WRITTEN_AT_ONCE = 4 << 20  # bytes: functions of indices take several times as much to make them


class SavedFile:
    """A file on its way: all ranks ``begin``, ``write`` and ``end``, in step. Each raises RunError where the system does; then,
    or when another rank has failed, ``abandon``.

    It lies beside its place, called ``NAME.part``, until it is complete. box: the elements this rank writes, of which
    ``values`` gives those of a part.
    """

    def __init__(
        self, name: str, first: bool, array: ArrayType, box: Box, values: Callable[[Box], npt.NDArray[Any]]
    ) -> None:
        self._name, self._first, self._array, self._box, self._values = name, first, array, box, values
        self._beside = f"{os.path.realpath(name)}.part"

    def begin(self) -> None:
        if self._first:
            with self._saying():
                array = self._array
                if 0 in array.shape:
                    with open(self._beside, "wb") as stream:
                        np.save(stream, np.empty(array.shape, array.dtype))
                else:
                    open_memmap(self._beside, "w+", array.dtype, array.shape)
                    with open(self._beside, "r+b") as stream:  # a full disk is an error here, not a signal later
                        os.posix_fallocate(stream.fileno(), 0, os.path.getsize(self._beside))

    def write(self) -> None:
        with self._saying():
            for piece in pieces(self._box, self._array.itemsize, _WRITTEN_AT_ONCE):
                file = open_memmap(self._beside, "r+")  # anew, so that what is written leaves this process's memory
                file[slices(piece)] = self._values(piece)
                file.flush()

    def end(self) -> None:
        if self._first:
            with self._saying():
                os.replace(self._beside, os.path.realpath(self._name))

    def abandon(self) -> None:
        if self._first:
            with suppress(OSError):
                os.unlink(self._beside)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"{self._name} cannot be written: {error.strerror or error}.") from error
