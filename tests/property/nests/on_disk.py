"""Arrays of random nests on disk, in any chunks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from random_nests import Case, fitting_grids

import lapwing as lw


@dataclass(frozen=True)
class OnDisk:
    """Which arrays are on disk, each with the shape of its chunks, or None for a .npy file; how they are streamed.

    ``first_alone``: the first rank passes them, others None.
    """

    chunks: tuple[tuple[str, tuple[int, ...] | None], ...]
    memory: int | None
    pass_sweeps: int | None
    ring: int | None
    first_alone: bool

    @property
    def wishes(self) -> dict[str, Any]:
        return {"memory": self.memory, "pass_sweeps": self.pass_sweeps, "ring": self.ring}

    def store(self, directory: Path, arguments: dict[str, object]) -> dict[str, str]:
        """Write the arrays to a new directory; their paths by name."""
        directory.mkdir()
        paths = {}
        for name, chunks in self.chunks:
            values = arguments[name]
            assert isinstance(values, np.ndarray)
            path = directory / f"{name}.{'npy' if chunks is None else 'zarr'}"
            array = lw.create(path, values.shape, values.dtype, chunks=chunks)
            array.write(tuple((0, n) for n in values.shape), values)
            paths[name] = str(path)
        return paths


@st.composite
def layouts(draw: st.DrawFn, case: Case) -> OnDisk:
    """Arrays on disk, one that is written among them. Mostly all that are written."""
    written = [a for a in case.arrays if a.name in "uvw"]
    others = [a for a in case.arrays if a not in written]
    on_disk = written
    if draw(st.integers(0, 4)) == 4:
        on_disk = draw(st.lists(st.sampled_from(written), min_size=1, unique=True))
    if others:
        on_disk = [*on_disk, *draw(st.lists(st.sampled_from(others), unique=True))]
    chunks: list[tuple[str, tuple[int, ...] | None]] = []
    for array in on_disk:
        most = 7 if len(array.shape) < 3 else 3  # chunks along an axis: each is a file
        shape = draw(st.tuples(*(st.integers(-(-max(1, n) // most), max(1, n) + 1) for n in array.shape)))
        chunks.append((array.name, None if draw(st.integers(0, 4)) == 4 else shape))
    digits = draw(st.sampled_from([None, None, None, None, 6, 5, 4, 3]))
    memory = None if digits is None else draw(st.integers(10**digits, 10 ** (digits + 1)))
    pass_sweeps = draw(st.one_of(st.none(), st.integers(1, 8)))
    return OnDisk(tuple(chunks), memory, pass_sweeps, draw(st.sampled_from([None, 1, 2, 3])), draw(st.booleans()))


def streaming_grids(case: Case, ranks: int) -> list[tuple[int, ...]]:
    """Grids over all space loops that leave the one whole that is streamed along, and every rank a row."""
    assert case.along is not None
    return [grid for grid in fitting_grids(case, ranks) if grid[case.along] == 1]
