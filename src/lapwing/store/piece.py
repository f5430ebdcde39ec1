"""A part of an array that lies in one file, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from lapwing.store.boxes import Box


@dataclass(frozen=True)
class Piece:
    """Elements of an array and where they lie on disk.

    file: absolute path. offset: of the first element, in bytes from the file's beginning. box: the elements, in indices of
    the whole array. strides: from one element to the next along each axis, in bytes. exists: whether there is such a file;
    where there is none the elements have the array's fill value.
    """

    file: str
    offset: int
    box: Box
    strides: tuple[int, ...]
    exists: bool
