"""Zarr arrays: their metadata, written and read by the zarr package, and whether their chunks are plain numbers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lapwing.errors import RefusedError, RunError
from lapwing.store.chunk_files import ChunkFiles
from lapwing.store.encoded import EncodedChunks, reason
from lapwing.store.numbers import check_numbers

# zarr takes half a second to import, so functions import it.
if TYPE_CHECKING:
    import zarr

METADATA = ("zarr.json", ".zarray", ".zgroup")  # of version 3; of version 2
_CHUNKS = "c"  # the folder of the chunks in Zarr v3's default naming
_NAMED = 5  # arrays of a group


def is_zarr(path: str) -> bool:
    """Whether a folder is that of a Zarr array or group."""
    return any(os.path.lexists(os.path.join(path, name)) for name in METADATA)


def create_zarr(
    path: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: tuple[int, ...],
    fill_value: Any,
    dimension_names: Sequence[str | None] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Make a Zarr v3 array without chunks, which will be plain little-endian numbers in row-major order, not compressed.

    path: of its folder, which must not exist. dimension_names: dim_0, dim_1, … by default, as xarray has them. Raises
    OSError, and RunError where zarr cannot write it.
    """
    import zarr
    from zarr.codecs import BytesCodec

    os.mkdir(path)
    try:
        zarr.create_array(
            store=path,
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            filters=None,
            compressors=None,
            serializer=BytesCodec(endian="little"),
            chunk_key_encoding={"name": "default", "separator": "/"},
            fill_value=fill_value,
            dimension_names=dimension_names or [f"dim_{axis}" for axis in range(len(shape))],
            attributes=dict(attributes or {}),
            zarr_format=3,
        )
    except Exception as error:
        _remove_what_was_made(path)
        raise RunError(f"{path}: zarr cannot create it: {reason(error)}.") from error


def open_zarr(path: str) -> ChunkFiles | EncodedChunks:
    """The array in a folder. path: without symbolic links. Raises RefusedError where it is none of numbers, or damaged."""
    array = opened(path)
    dtype = _dtype(array)
    check_numbers(dtype, path)
    fill_value = dtype.newbyteorder("=").type(0 if array.fill_value is None else array.fill_value)
    if _is_plain(array):
        return ChunkFiles(
            root=os.path.join(path, METADATA[0]),
            folder=os.path.join(path, _CHUNKS),
            shape=tuple(array.shape),
            chunks=tuple(array.chunks),
            dtype=dtype,
            fill_value=fill_value,
        )
    return EncodedChunks(path, array, dtype, fill_value)


def opened(path: str) -> zarr.Array[Any]:
    """The array as zarr has it, read-only. Raises RefusedError where zarr cannot open it, and for a group."""
    import zarr

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of types that will be refused
            found = zarr.open(path, mode="r")
            if isinstance(found, zarr.Array) and any(side < 1 for side in found.chunks):
                raise ValueError(f"chunks of {found.chunks}")
    # zarr lets through whatever a damaged or unknown document makes of its own code.
    except Exception as error:
        raise RefusedError(
            f"{path}: zarr {zarr.__version__} cannot read its metadata: {reason(error)}. It is damaged, or "
            "written by a newer program: then upgrade zarr."
        ) from error
    if not isinstance(found, zarr.Array):
        raise RefusedError(f"{path}: is a Zarr group, expected one array. {_members(path)}")
    return found


def names_and_attributes(array: zarr.Array[Any]) -> tuple[tuple[str | None, ...] | None, dict[str, Any]]:
    """The names of an array's axes, None where it has none, and its attributes."""
    attributes = dict(array.attrs)
    names = getattr(array.metadata, "dimension_names", None)
    if names is None:  # where xarray keeps them in Zarr v2
        names = attributes.pop("_ARRAY_DIMENSIONS", None)
    if not isinstance(names, list | tuple) or len(names) != array.ndim:
        names = None
    return None if names is None else tuple(names), attributes


def _dtype(array: zarr.Array[Any]) -> np.dtype[Any]:
    """The type of an array's elements in the byte order that its chunks have."""
    from zarr.codecs import BytesCodec

    dtype = np.dtype(array.dtype)
    for codec in getattr(array.metadata, "codecs", ()):
        if isinstance(codec, BytesCodec) and codec.endian is not None and codec.endian.value == "big":
            return dtype.newbyteorder(">")
    return dtype


def _is_plain(array: zarr.Array[Any]) -> bool:
    """Whether every chunk is a file c/0/0, … of little-endian numbers in row-major order."""
    from zarr.codecs import BytesCodec

    metadata = array.metadata
    if metadata.zarr_format != 3 or len(metadata.codecs) != 1 or metadata.storage_transformers:
        return False
    (codec,) = metadata.codecs
    naming = metadata.chunk_key_encoding
    return (
        isinstance(codec, BytesCodec)
        and (codec.endian is None or codec.endian.value == "little")
        and naming.name == "default"
        and getattr(naming, "separator", None) == "/"
    )


def _members(path: str) -> str:
    """What to open instead of a group."""
    try:
        names = sorted(entry.name for entry in os.scandir(path) if entry.is_dir() and is_zarr(entry.path))
    except OSError:
        names = []
    if not names:
        return "There is no array in it."
    more = ", …" if len(names) > _NAMED else ""
    return f"Name one of its members: {', '.join(os.path.join(path, name) for name in names[:_NAMED])}{more}."


def _remove_what_was_made(path: str) -> None:
    for remove, name in ((os.unlink, os.path.join(path, METADATA[0])), (os.rmdir, path)):
        try:
            remove(name)
        except OSError:
            continue
