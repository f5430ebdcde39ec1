"""Pieces: whoever reads files at their offsets and strides finds the elements of the box."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from randomness import wanted

import lapwing as lw
from lapwing.store.boxes import Box, sides, slices, whole
from lapwing.store.piece import Piece


def elements(piece: Piece, dtype: np.dtype[Any]) -> Any:
    """One element after the other, by plain reads."""
    out = np.empty(sides(piece.box), dtype)
    content = Path(piece.file).read_bytes()
    for index in np.ndindex(out.shape):
        place = piece.offset + sum(i * stride for i, stride in zip(index, piece.strides, strict=True))
        out[index] = np.frombuffer(content, dtype, 1, place)[0]
    return out


def gathered(stored: lw.StoredArray, box: Box, folder: str | None = None) -> tuple[Any, Any]:
    out, times = np.full(stored.shape, stored.fill_value), np.zeros(stored.shape, int)
    for piece in stored.pieces(box, folder):
        assert os.path.isabs(piece.file)
        assert piece.exists == os.path.exists(piece.file)
        times[slices(piece.box)] += 1
        if piece.exists:
            out[slices(piece.box)] = elements(piece, stored.dtype)
    return out[slices(box)], times


@settings(max_examples=wanted(50), deadline=None)
@given(st.data(), st.booleans())
def test_pieces_are_the_elements_of_the_box(data: st.DataObject, npy: bool) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, 7)) for _ in shape)
    first, second = (
        tuple(tuple(sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))) for n in shape) for _ in "ab"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "u.npy" if npy else "u.zarr")
        stored = lw.create(path, shape, "int32", chunks=None if npy else chunks, fill_value=-1)
        stored.write(first, np.arange(np.prod(sides(first)), dtype="int32").reshape(sides(first)))
        found, times = gathered(stored, second)
        assert (found == stored.read(second)).all()
        expected = np.zeros(shape, int)
        expected[slices(second)] = 1
        assert (times == expected).all()


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_pieces_of_a_new_generation(tmp_path: Path, name: str) -> None:
    stored = lw.create(tmp_path / name, (5, 6), "int16", fill_value=3)
    stored.write(whole(stored.shape), 1)
    folder = tmp_path / name / "new" if name.endswith(".zarr") else tmp_path / "new"
    box = ((1, 4), (2, 6))
    assert not any(piece.exists for piece in stored.pieces(box, folder))
    stored.prepare(folder)
    assert all(Path(piece.file).is_relative_to(folder) for piece in stored.pieces(box, folder))
    found, _ = gathered(stored, box, str(folder))
    assert (found == stored.fill_value).all()
    assert stored.fill_value == (3 if name.endswith(".zarr") else 0)  # a .npy file has no place for it
    (here,), (there,) = stored.pieces(box), stored.pieces(box, folder)
    assert (here.offset, here.strides, here.box) == (there.offset, there.strides, there.box)
    assert (stored.numpy() == 1).all()
