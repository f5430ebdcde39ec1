"""Zarr arrays whose chunks are compressed, sharded or otherwise encoded: read through zarr."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lapwing.errors import RunError
from lapwing.store.boxes import Box, sides, slices, text
from lapwing.store.chunking import blocks, grouped

if TYPE_CHECKING:
    import zarr


@dataclass(frozen=True)
class EncodedChunks:
    """An array that zarr decodes. chunks: what it decodes at a time. dtype: of the numbers, which may be big-endian."""

    root: str
    array: zarr.Array[Any]
    dtype: np.dtype[Any]
    fill_value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def chunks(self) -> tuple[int, ...]:
        return tuple(max(1, side) for side in self.array.chunks)

    def read(self, box: Box, out: npt.NDArray[Any]) -> None:
        """Fill ``out`` with the elements of a box, several chunks at a time. Raises RunError where zarr cannot decode them."""
        origin = [low for low, _ in box]
        for part in blocks(box, grouped(self.chunks, sides(box), self.dtype.itemsize)):
            try:
                out[slices(part, origin)] = self.array[slices(part)]
            # Each codec has errors of its own.
            except Exception as error:
                raise RunError(
                    f"{self.root}: {text(part)} cannot be read: {reason(error)}. A chunk may be damaged."
                ) from error


def reason(error: Exception) -> str:
    """What zarr or one of its codecs complains of, as part of a sentence."""
    words = str(error).strip().partition("\n")[0].rstrip(". ")
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
