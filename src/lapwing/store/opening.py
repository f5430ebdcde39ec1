"""``lw.open`` and ``lw.create``."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RefusedError
from lapwing.store.array import StoredArray
from lapwing.store.chunk_files import ChunkFiles
from lapwing.store.chunking import checked_chunks
from lapwing.store.files.direct import explained
from lapwing.store.generations import finish_replacement
from lapwing.store.npy import create_npy, open_npy
from lapwing.store.numbers import as_element, check_numbers, native
from lapwing.store.zarr_format import create_zarr, is_zarr, open_zarr

Path = str | os.PathLike[str]
_MOST = (1 << 63) - 1  # bytes of a file, and of all that NumPy counts


def open(path: Path) -> StoredArray:
    """An array on disk: the folder of a Zarr array (v3 or v2), or a .npy file. Nothing is read but what describes it.

    Zarr arrays that are compressed, sharded or encoded otherwise can be read, a box at a time, but not written. Raises
    RefusedError for what is no array of numbers in this machine's byte order and row-major order, and says what to do.
    """
    found = open_for_conversion(path)
    where = found.path
    way_out = f"`lapwing convert {where} NEW.zarr` makes an array of such numbers."
    content = found.content
    if content.dtype != found.dtype:
        raise RefusedError(
            f"{where}: its numbers are big-endian ({content.dtype.str}), expected little-endian. {way_out}"
        )
    if isinstance(content, ChunkFiles) and content.column_major:
        raise RefusedError(f"{where}: its first index runs fastest (Fortran order), expected C order. {way_out}")
    return found


def open_for_conversion(path: Path) -> StoredArray:
    """As ``open``, also where numbers are big-endian, and in .npy files in Fortran order: these can only be read."""
    given = os.fspath(path)
    where = os.path.realpath(given)
    try:
        content = _content(given, where)
    except OSError as error:
        raise RefusedError(f"{given}: cannot be opened: {error.strerror or error}.") from error
    if not content.shape:
        raise RefusedError(f"{given}: holds a single number, expected an array of one or more axes.")
    return StoredArray(where, content)


def create(
    path: Path,
    shape: int | Sequence[int],
    dtype: npt.DTypeLike = "float64",
    *,
    chunks: int | Sequence[int] | None = None,
    fill_value: Any = 0,
) -> StoredArray:
    """A new array on disk: a Zarr v3 array, not compressed; where the path ends in .npy, such a file.

    path: must not exist. chunks: their shape; one number is for all axes; by default whole rows of together about 8 MiB, or
    less than a row where one is longer. fill_value: of all elements until they are written. A Zarr array takes no room on
    the disk until then (``prepare`` takes it). A .npy file takes all of it, and does not record the value: to it, and where
    ``prepare`` makes another one, it is 0 from then on.

    One process creates it, others open it. xarray, Dask and zarr read it, too. Raises RefusedError where something is there
    already or the arguments describe no array, RunError where the system cannot write.
    """
    return create_array(path, shape, dtype, chunks=chunks, fill_value=fill_value)


def create_array(
    path: Path,
    shape: int | Sequence[int],
    dtype: npt.DTypeLike,
    *,
    chunks: int | Sequence[int] | None = None,
    fill_value: Any = 0,
    filled: bool = True,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> StoredArray:
    """As ``create``. filled: see ``create_npy``. dimension_names, attributes: see ``create_zarr``; a .npy file has none."""
    given = os.fspath(path)
    where = os.path.realpath(given)
    extents = _extents(shape, given)
    try:
        kind = native(np.dtype(dtype))
    except TypeError:
        raise RefusedError(f"{given}: dtype {dtype!r}: expected one of NumPy's, such as float64.") from None
    check_numbers(kind, given)
    element = as_element(fill_value, kind, f"{given}: fill_value")
    if math.prod(extents) * kind.itemsize > _MOST:
        raise RefusedError(f"{given}: an array of {kind} and shape {extents} is larger than any file can be.")
    if os.path.lexists(given):
        raise RefusedError(f"{given}: is there already. Open it with lw.open, remove it, or name another.")
    with explained(f"{given} cannot be created"):
        if where.endswith(".npy"):
            if chunks is not None:
                raise RefusedError(f"{given}: a .npy file has no chunks. Leave them out, or let the name end in .zarr.")
            create_npy(where, extents, kind, element, filled)
        else:
            cut = checked_chunks(chunks, extents, kind.itemsize, given)
            create_zarr(where, extents, kind, cut, element, dimension_names, attributes)
    return open_for_conversion(where)


def _content(given: str, where: str) -> Any:
    if not os.path.exists(where):
        raise RefusedError(f"{given}: there is no such file or folder. lw.create makes an array.")
    if not os.path.isdir(where):
        if not os.path.isfile(where):
            raise RefusedError(f"{given}: is no file. Expected a .npy file or the folder of a Zarr array.")
        return open_npy(where)
    if not is_zarr(where):
        raise RefusedError(f"{given}: is a folder without zarr.json or .zarray. Expected that of a Zarr array.")
    finish_replacement(where)
    return open_zarr(where)


def _extents(shape: int | Sequence[int], where: str) -> tuple[int, ...]:
    try:
        extents = tuple(map(operator.index, shape)) if isinstance(shape, Sequence) else (operator.index(shape),)
    except TypeError:
        extents = ()
    if not extents or min(extents) < 0:
        raise RefusedError(f"{where}: shape {shape!r}: expected one or more lengths of axes, none of them negative.")
    return extents
