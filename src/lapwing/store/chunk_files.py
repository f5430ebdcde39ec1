"""Chunks as files of plain numbers, each chunk contiguous in a file of its own; a .npy file is one such chunk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError, RunError
from lapwing.store.boxes import Box, intersection, slices, whole
from lapwing.store.chunking import chunk_box, chunk_indices
from lapwing.store.files.direct import (
    element_strides,
    explained,
    read_bytes,
    read_into,
    write_bytes,
    write_from,
    write_repeated,
)
from lapwing.store.files.new import make_file, reserve
from lapwing.store.piece import Piece

_SECTOR = 512  # bytes, in which the system counts what a file occupies


@dataclass(frozen=True)
class ChunkFiles:
    """Where the chunks of an array lie.

    root: the file that is there as long as the array is. folder: that holds the chunks. single: the name of the only
    chunk's file; None where files are named by the chunk's index, as "0/3". header: the bytes before the numbers, the same
    in each file. dtype: of the numbers on file. column_major: whether the first index runs fastest.
    """

    root: str
    folder: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any
    single: str | None = None
    header: bytes = b""
    column_major: bool = False

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """From one element of a chunk to the next along each axis, in bytes."""
        return element_strides(self.chunks, self.dtype.itemsize, self.column_major)

    @property
    def file_bytes(self) -> int:
        """The size of each file: chunks at the array's edge are whole ones, too."""
        return len(self.header) + math.prod(self.chunks) * self.dtype.itemsize

    def names(self, box: Box) -> Iterator[str]:
        """The files that hold the elements of a box, relative to the folder."""
        if self.single is not None:
            yield self.single
            return
        for index in chunk_indices(box, self.chunks):
            yield "/".join(map(str, index))

    def pieces(self, box: Box, folder: str | None = None) -> Iterator[Piece]:
        """How the elements of a box lie on file, a piece a chunk, in row-major order of the chunks.

        folder: another one with files of the same names. Raises RunError where a file has not the size of a chunk, or the
        array is gone.
        """
        for index in chunk_indices(box, self.chunks):
            of_chunk = chunk_box(index, self.chunks)
            part = intersection(box, of_chunk)
            file = os.path.join(folder or self.folder, self.single or "/".join(map(str, index)))
            first = sum(
                (low - start) * stride
                for (low, _), (start, _), stride in zip(part, of_chunk, self.strides, strict=True)
            )
            exists = self._exists(file, in_place=folder is None)
            yield Piece(file, len(self.header) + first, part, self.strides, exists)

    def read(self, box: Box, out: npt.NDArray[Any]) -> None:
        """Fill ``out`` with the elements of a box. Raises RunError where the files cannot be read or are damaged."""
        for piece in self.pieces(box):
            there = out[slices(piece.box, [low for low, _ in box])]
            if not piece.exists:
                there[...] = self.fill_value
                continue
            with self._opened(piece.file, os.O_RDONLY, "read") as descriptor:
                read_into(descriptor, piece.offset, piece.strides, self.dtype, there)

    def write(self, box: Box, values: npt.NDArray[Any]) -> None:
        """Write the elements of a box; chunks that are missing are made. Raises RunError where that fails."""
        for piece in self.pieces(box):
            if not piece.exists:
                # What is written in a moment need not be filled before.
                index = [low // side for (low, _), side in zip(piece.box, self.chunks, strict=True)]
                complete = piece.box == intersection(chunk_box(index, self.chunks), whole(self.shape))
                self._make(piece.file, filled=not complete)
            with self._opened(piece.file, os.O_RDWR, "written") as descriptor:
                here = values[slices(piece.box, [low for low, _ in box])]
                write_from(descriptor, piece.offset, piece.strides, self.dtype, here)

    def prepare(self, folder: str | None = None, box: Box | None = None, filled: bool = True) -> None:
        """Make the files of a box (None: all) at full size, with room on the disk; those that are there stay as they are.

        filled: with the fill value, otherwise with anything. Raises RunError where that fails.
        """
        for name in self.names(whole(self.shape) if box is None else box):
            file = os.path.join(folder or self.folder, name)
            if self._exists(file, in_place=folder is None):
                self._reserve(file)
            else:
                self._make(file, filled)

    def make_root(self, filled: bool) -> None:
        """Make the array's only file, which is not there yet. Raises RunError where that fails."""
        self._make(self.root, filled)

    def check_new(self, file: str) -> None:
        """Raises RefusedError where a chunk of a new generation is missing, RunError where it is not whole."""
        if not self._exists(file, in_place=False):
            raise RefusedError(
                f"{file}: is missing. Expected all chunks of the new generation; prepare(folder) makes them."
            )
        with self._opened(file, os.O_RDONLY, "read"):
            pass

    def _make(self, file: str, filled: bool) -> None:
        element = np.asarray(self.fill_value, self.dtype)

        def fill(descriptor: int) -> None:
            if self.header:
                write_bytes(descriptor, 0, np.frombuffer(self.header, np.uint8).copy())
            if filled and any(element.tobytes()):
                write_repeated(descriptor, len(self.header), element, math.prod(self.chunks))

        with explained(f"{file} cannot be written"):
            # What replaces a file may be read by those who could read that one.
            permissions = None
            if self.single is not None and file != self.root:
                permissions = os.stat(self.root).st_mode & 0o777
            make_file(file, self.file_bytes, fill, permissions)

    def _reserve(self, file: str) -> None:
        """See that there is room for all of a file: what was written with holes would need more later."""
        with explained(f"{file} cannot be written"):
            if os.stat(file).st_blocks * _SECTOR < self.file_bytes:
                descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
                try:
                    reserve(descriptor, self.file_bytes)
                finally:
                    os.close(descriptor)

    def _exists(self, file: str, in_place: bool) -> bool:
        """Whether there is such a chunk. Raises RunError where it is damaged, or missing because the array is gone."""
        with explained(f"{file} cannot be read"):
            try:
                found = os.stat(file).st_size
            except FileNotFoundError:
                if in_place and not os.path.exists(self.root):
                    raise RunError(f"{self.root}: is gone. It was there when the array was opened.") from None
                return False
        if found != self.file_bytes:
            raise RunError(
                f"{file}: holds {found:,} bytes, expected {self.file_bytes:,}. It is damaged, or another program is "
                "writing it."
            )
        return True

    @contextmanager
    def _opened(self, file: str, flags: int, verb: str) -> Iterator[int]:
        with explained(f"{file} cannot be {verb}"):
            descriptor = os.open(file, flags | os.O_CLOEXEC)
            try:
                self._check_header(descriptor, file)
                yield descriptor
            except EOFError:
                raise RunError(f"{file}: ends too soon. Another program is writing it.") from None
            finally:
                os.close(descriptor)

    def _check_header(self, descriptor: int, file: str) -> None:
        """The numbers of another array, that has taken this one's place, would be read as if they were its own."""
        if self.header:
            found = np.empty(len(self.header), np.uint8)
            read_bytes(descriptor, 0, found)
            if found.tobytes() != self.header:
                raise RunError(f"{file}: holds another array than when it was opened. Open it again.")
