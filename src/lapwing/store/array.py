"""An array on disk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError, RunError
from lapwing.html import table
from lapwing.store.boxes import Box, checked, sides, whole
from lapwing.store.chunk_files import ChunkFiles
from lapwing.store.chunking import number_of_blocks
from lapwing.store.encoded import EncodedChunks
from lapwing.store.files.direct import explained
from lapwing.store.generations import is_inside, replace_file, replace_folder
from lapwing.store.numbers import as_element, native
from lapwing.store.piece import Piece
from lapwing.units import size

Folder = str | os.PathLike[str]


class StoredArray:
    """An array on disk, of which parts come into memory when they are asked for. ``lw.open`` and ``lw.create`` give one.

    path: absolute, without symbolic links. shape, dtype: of the array. chunks: the shape of the parts it is stored in.
    fill_value: a NumPy scalar, of elements that have not been written. is_raw: whether its chunks are files of plain
    numbers, so that it has ``pieces`` and can be written; others are compressed, sharded or encoded in another way.
    writable: whether this user may write to it.

    Several processes may read it, and write different elements, at the same time. A box is ``((low, high), ...)``, half-open,
    a pair for every axis.
    """

    def __init__(self, path: str, content: ChunkFiles | EncodedChunks) -> None:
        self._content = content
        self.path = path
        self.shape: tuple[int, ...] = content.shape
        self.dtype: np.dtype[Any] = native(content.dtype)
        self.chunks: tuple[int, ...] = content.chunks
        self.fill_value: Any = content.fill_value

    def __repr__(self) -> str:
        return f"<StoredArray {self.path}: {self.dtype} of shape {self.shape}, {self._stored()}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [
            ("path", self.path),
            ("dtype", str(self.dtype)),
            ("shape", " × ".join(map(str, self.shape))),
            ("stored as", self._stored()),
            ("size", size(self.nbytes)),
        ]
        return table("StoredArray", rows)

    def _stored(self) -> str:
        if isinstance(self._content, ChunkFiles) and self._content.single is not None:
            return "one .npy file"
        count = number_of_blocks(whole(self.shape), self.chunks)
        how = "" if self.is_raw else ", encoded"
        return f"{count:,} chunk{'s' * (count != 1)} of {' × '.join(map(str, self.chunks))}{how}"

    @property
    def content(self) -> ChunkFiles | EncodedChunks:
        """How it is stored; for this package."""
        return self._content

    @property
    def identity(self) -> str:
        """In words that tell it from other arrays."""
        return repr(self)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements, in memory."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_raw(self) -> bool:
        content = self._content
        return isinstance(content, ChunkFiles) and content.dtype == self.dtype and not content.column_major

    @property
    def writable(self) -> bool:
        if not self.is_raw or not isinstance(self._content, ChunkFiles):
            return False
        places = [self._content.folder, self._content.root]
        return all(os.access(place, os.W_OK) for place in places if os.path.exists(place))

    def read(self, box: Box, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """The elements of a box, in a new array or in ``out``, which has the box's shape and the array's dtype.

        Takes no more memory than the box, and a few MiB (of an encoded array, a few chunks). Raises RefusedError where the box or
        ``out`` does not fit, RunError where the files cannot be read or are damaged.
        """
        part = checked(box, self.shape, self.path)
        if out is None:
            out = self._empty(sides(part))
        elif out.shape != sides(part) or out.dtype != self.dtype or not out.flags.writeable:
            raise RefusedError(
                f"{self.path}: out is {out.dtype} of shape {out.shape}{'' if out.flags.writeable else ', read-only'}; "
                f"expected {self.dtype} of shape {sides(part)} that can be written."
            )
        self._content.read(part, out)
        return out

    def write(self, box: Box, values: npt.ArrayLike) -> None:
        """Write values to the elements of a box. values: of the box's shape, or what broadcasts to it.

        Chunks that are missing are made. Returns when the system has the values; they may reach the disk later. Raises
        RefusedError where box or values do not fit or the array is not ``writable``, RunError where the system cannot write.
        """
        content = self._raw("be written")
        part = checked(box, self.shape, self.path)
        found = np.asarray(values)
        if found.ndim == 0:
            found = np.asarray(as_element(found, self.dtype, f"{self.path}: the value"))
        elif not np.can_cast(found.dtype, self.dtype, "same_kind"):
            raise RefusedError(
                f"{self.path}: the values are {found.dtype}, and the array is {self.dtype}: they could change. Convert them with "
                "astype."
            )
        try:
            spread = np.broadcast_to(found, sides(part))
        except ValueError:
            raise RefusedError(
                f"{self.path}: the values have shape {found.shape}; expected {sides(part)}, or what broadcasts to it."
            ) from None
        content.write(part, spread)

    def numpy(self) -> npt.NDArray[Any]:
        """The whole array in memory. Errors as of ``read``."""
        return self.read(whole(self.shape))

    def pieces(self, box: Box, folder: Folder | None = None) -> Iterator[Piece]:
        """How a box lies on file: one piece for each chunk that it meets, in row-major order of the chunks.

        folder: with chunk files of the same names, of a new generation, instead of the array's own. A .npy file is one chunk.
        Raises RefusedError where the array is not ``is_raw`` or the box does not fit; RunError, at a file that is damaged.
        """
        content = self._raw("be read in pieces")
        return content.pieces(checked(box, self.shape, self.path), _absolute(folder))

    def prepare(self, folder: Folder | None = None, box: Box | None = None) -> None:
        """Make all chunk files (or those of a box) at full size, of the fill value, with room for them on the disk.

        folder: where, instead of in the array; it is made if it is not there. Files that are there stay as they are. A full
        disk is an error now, and not when values are written. Several processes may do so at the same time. Raises
        RefusedError as ``write``, RunError where there is no room or the system cannot write.
        """
        content = self._raw("be prepared")
        content.prepare(_absolute(folder), None if box is None else checked(box, self.shape, self.path))

    def replace_chunks(self, folder: Folder) -> None:
        """Make a folder's chunk files the array's in one step, and remove the old ones. One process does so, for all.

        folder: holds all chunk files, as ``prepare(folder)`` makes them, in the folder of the Zarr array or, for a .npy file,
        on the same file system. It is gone afterwards. Whoever looks, at any moment or after the machine has stopped, finds
        all old chunks or all new ones; a ``read`` that is under way meanwhile may get some of each. Raises RefusedError where
        files are missing or the folder is elsewhere, RunError where the system cannot write; the array then has all old
        chunks, or all new ones where only the last wait for the disk failed.
        """
        content = self._raw("be written")
        new = _absolute(folder)
        assert new is not None
        if content.single is None:
            root = os.path.dirname(content.folder)
            if not is_inside(new, root) or is_inside(content.folder, new) or is_inside(new, content.folder):
                raise RefusedError(f"{new}: expected a folder in {root}, beside its chunks.")
        if os.path.realpath(new) == os.path.realpath(content.folder):
            raise RefusedError(f"{new}: are the chunks that the array has. Expected a folder with new ones.")
        names = list(content.names(whole(self.shape)))
        for name in names:
            content.check_new(os.path.join(new, name))
        with explained(f"{self.path}: its chunks cannot be replaced"):
            if content.single is None:
                replace_folder(content.folder, new, names)
            else:
                replace_file(content.root, new)

    def _raw(self, what: str) -> ChunkFiles:
        """The chunk files, where they are plain numbers. what: is to be done, for messages."""
        if not self.is_raw or not isinstance(self._content, ChunkFiles):
            raise RefusedError(
                f"{self.path}: cannot {what}: its chunks are not files of plain numbers. `lapwing convert {self.path} NEW.zarr` "
                "makes an array of such."
            )
        return self._content

    def _empty(self, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        try:
            return np.empty(shape, self.dtype)
        except MemoryError:
            needed = size(math.prod(shape) * self.dtype.itemsize)
            raise RunError(f"{self.path}: no memory for {needed}. Read it a box at a time.") from None


def _absolute(folder: Folder | None) -> str | None:
    return None if folder is None else os.path.abspath(os.fspath(folder))
