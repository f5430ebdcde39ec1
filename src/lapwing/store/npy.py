"""Files of NumPy's .npy format, as an array of one chunk."""

from __future__ import annotations

import io
import math
import os
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from lapwing.errors import RefusedError
from lapwing.store.chunk_files import ChunkFiles
from lapwing.store.numbers import check_numbers

# How other files begin that people may take for one.
_OTHERS = {
    b"PK\x03\x04": "a zip file, as .npz and zipped Zarr arrays are. Unpack it",
    b"\x89HDF": "an HDF5 (or NetCDF 4) file. Read it with h5py and save its arrays with numpy.save",
    b"CDF": "a NetCDF file. Read it with xarray and save its arrays with numpy.save",
}


def open_npy(path: str) -> ChunkFiles:
    """The array in a .npy file, big-endian and column-major ones included. path: without symbolic links.

    Raises RefusedError where it is none, or not whole; OSError where it cannot be read.
    """
    with open(path, "rb") as stream:
        start = stream.read(8)
        if not start.startswith(npy_format.MAGIC_PREFIX):
            other = next((text for mark, text in _OTHERS.items() if start.startswith(mark)), "no .npy file")
            raise RefusedError(f"{path}: is {other}. Expected a .npy file or the folder of a Zarr array.")
        stream.seek(0)
        shape, column_major, dtype = _header(stream, path)
        offset = stream.tell()
        stream.seek(0)
        header = stream.read(offset)
        found = os.fstat(stream.fileno()).st_size
    if dtype.hasobject:
        raise RefusedError(f"{path}: its elements are Python objects, expected numbers.")
    check_numbers(dtype, path)
    expected = offset + math.prod(shape) * dtype.itemsize
    if found != expected:
        raise RefusedError(
            f"{path}: holds {found:,} bytes, but an array of {dtype} and shape {shape} takes {expected:,}. It is damaged, or "
            "another program is writing it."
        )
    return _chunk_files(path, shape, dtype, header, column_major)


def create_npy(path: str, shape: tuple[int, ...], dtype: np.dtype[Any], fill_value: Any, filled: bool = True) -> None:
    """Make a .npy file of the fill value; unless ``filled`` its numbers are anything. Raises RunError where that fails."""
    stream = io.BytesIO()
    npy_format.write_array_header_1_0(
        stream, {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    files = _chunk_files(path, shape, dtype, stream.getvalue(), False, fill_value)
    files.make_root(filled)


def _header(stream: io.BufferedReader, path: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy_format.read_magic(stream)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise RefusedError(
                f"{path}: is of version {version[0]}.{version[1]} of the .npy format, expected 1.0 to 3.0. A newer program "
                "wrote it: save it again with numpy.save."
            )
        # Version 3.0 differs from 2.0 in the letters that names of fields may have.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, column_major, dtype = read(stream)
    except RefusedError:
        raise
    # NumPy hands the header to Python's tokenizer and parser, which complain of a damaged one in many ways.
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise RefusedError(f"{path}: its header is damaged: {reason}. Expected a .npy file.") from error
    if not all(isinstance(n, int) and n >= 0 for n in shape):
        raise RefusedError(f"{path}: its header is damaged: the shape is {shape}. Expected a .npy file.")
    return shape, column_major, dtype


def _chunk_files(
    path: str, shape: tuple[int, ...], dtype: np.dtype[Any], header: bytes, column_major: bool, fill_value: Any = 0
) -> ChunkFiles:
    return ChunkFiles(
        root=path,
        folder=os.path.dirname(path),
        shape=shape,
        chunks=shape,
        dtype=dtype,
        fill_value=dtype.type(fill_value),
        single=os.path.basename(path),
        header=header,
        column_major=column_major and len(shape) > 1,
    )
