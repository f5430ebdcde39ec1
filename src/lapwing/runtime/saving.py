"""Writes one .npy file from the parts of an array that ranks own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from numpy.lib.format import open_memmap

from lapwing.errors import RunError
from lapwing.runtime.storage import LocalArray
from lapwing.runtime.transfer import pieces, slices

_WRITTEN_AT_ONCE = 16 << 20  # bytes


class SavedFile:
    """A file on its way: all ranks ``begin``, ``write`` and ``end``, in step. Each raises RunError where the system does.

    It lies beside its place, called ``NAME.part``, until it is complete. part: the elements this rank writes.
    """

    def __init__(self, name: str, first: bool, part: LocalArray) -> None:
        self._name, self._first, self._part = name, first, part
        self._beside = f"{os.path.realpath(name)}.part"

    def begin(self) -> None:
        if self._first:
            with self._saying():
                array = self._part.array
                if 0 in array.shape:
                    with open(self._beside, "wb") as stream:
                        np.save(stream, np.empty(array.shape, array.dtype))
                else:
                    open_memmap(self._beside, "w+", array.dtype, array.shape)
                    with open(self._beside, "r+b") as stream:  # a full disk is an error here, not a signal later
                        os.posix_fallocate(stream.fileno(), 0, os.path.getsize(self._beside))

    def write(self) -> None:
        with self._saying():
            for piece in pieces(self._part.box, self._part.array.itemsize, _WRITTEN_AT_ONCE):
                file = open_memmap(self._beside, "r+")  # anew, so that what is written leaves this process's memory
                file[slices(piece)] = self._part.view(piece)
                file.flush()

    def end(self) -> None:
        if self._first:
            with self._saying():
                os.replace(self._beside, os.path.realpath(self._name))

    @contextmanager
    def _saying(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._first:
                with suppress(OSError):
                    os.unlink(self._beside)
            raise RunError(f"{self._name} cannot be written: {error.strerror or error}.") from error
