"""Arrays on disk, read and written box by box: what NumPy, zarr, Dask and xarray make of the same."""

from __future__ import annotations

import os
import pickle
import resource
import tempfile
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from randomness import wanted

import lapwing as lw
from lapwing.store.boxes import Box, sides, slices, whole
from lapwing.store.chunking import CHUNK_BYTES, blocks, default_chunks, grouped
from lapwing.store.files import direct

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


@st.composite
def boxes(draw: st.DrawFn, shape: tuple[int, ...]) -> Box:
    ends = (sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n)))) for n in shape)
    return tuple((low, high) for low, high in ends)


@st.composite
def stories(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], str, int, list[Box], list[Box], int]:
    """Shape, chunks, dtype, fill value, what is written, what is read, the seed of the values."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    chunks = tuple(draw(st.integers(1, 10)) for _ in shape)
    lists = st.lists(boxes(shape), max_size=4)
    return (
        shape,
        chunks,
        draw(st.sampled_from(TYPES)),
        draw(st.integers(0, 1)),
        draw(lists),
        draw(lists),
        draw(st.integers(0, 99)),
    )


def values_of(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, np.dtype[Any]]:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def same(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@settings(max_examples=wanted(60), deadline=None)
@given(stories(), st.sampled_from([16, 64, 1 << 22]), st.booleans())
def test_boxes_are_those_of_numpy(story: Any, buffer: int, npy: bool) -> None:
    shape, chunks, dtype, fill_value, written, read, seed = story
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct, "BUFFER_BYTES", buffer)  # so that small arrays go all ways of large ones
        patch.setattr(direct, "_NEAR_BYTES", buffer // 2)
        path = os.path.join(folder, "u.npy" if npy else "u.zarr")
        stored = lw.create(path, shape, dtype, chunks=None if npy else chunks, fill_value=fill_value)
        expected = np.full(shape, fill_value, dtype)
        for number, box in enumerate(written):
            values = values_of(sides(box), dtype, seed + number)
            stored.write(box, values.copy(order="F"))
            expected[slices(box)] = values
        for box in [*read, whole(shape)]:
            out = np.empty(sides(box)[::-1], dtype).T
            assert same(stored.read(box), expected[slices(box)])
            assert same(stored.read(box, out), expected[slices(box)])
        again = lw.open(path)
        assert (again.shape, again.dtype, again.is_raw, again.writable) == (shape, np.dtype(dtype), True, True)
        assert same(again.numpy(), expected)
        if npy:
            assert same(np.load(path), expected)
        else:
            there = zarr.open_array(path, mode="r")
            assert there.fill_value == fill_value
            assert same(np.asarray(there[...]), expected)


@settings(max_examples=wanted(25), deadline=None)
@given(stories())
def test_what_zarr_writes_is_read(story: Any) -> None:
    shape, chunks, dtype, fill_value, written, read, seed = story
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "u.zarr")
        stored = lw.create(path, shape, dtype, chunks=chunks, fill_value=fill_value)
        there = zarr.open_array(path, mode="r+")
        for number, box in enumerate(written):
            there[slices(box)] = values_of(sides(box), dtype, seed + number)
        for box in read:
            assert same(stored.read(box), np.asarray(there[slices(box)]))


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_elements_without_values_have_the_fill_value(tmp_path: Path, name: str) -> None:
    stored = lw.create(tmp_path / name, (5, 7), "float32", fill_value=np.nan)
    assert np.isnan(stored.numpy()).all()
    stored.write(((1, 2), (0, 7)), 3)
    assert np.isnan(stored.read(((0, 1), (0, 7)))).all()
    assert (stored.read(((1, 2), (0, 7))) == 3).all()


def test_chunks_at_the_edge_are_whole_files(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (5, 7), "int16", chunks=(3, 4), fill_value=-1)
    stored.prepare()
    assert {(tmp_path / "u.zarr/c" / name).stat().st_size for name in ("0/0", "0/1", "1/0", "1/1")} == {3 * 4 * 2}
    assert sorted(p.name for p in (tmp_path / "u.zarr/c").rglob("*") if p.is_file()) == ["0", "0", "1", "1"]
    assert np.fromfile(tmp_path / "u.zarr/c/1/1", "<i2").tolist() == [-1] * 12
    assert (stored.numpy() == -1).all()


def test_prepare_leaves_what_is_there(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (6,), "int32", chunks=2, fill_value=7)
    stored.write(((0, 1),), 1)
    stored.prepare(box=((1, 3),))
    assert sorted(p.name for p in (tmp_path / "u.zarr/c").iterdir()) == ["0", "1"]
    stored.prepare()
    assert stored.numpy().tolist() == [1, 7, 7, 7, 7, 7]


def test_prepare_takes_room_for_holes(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (1 << 18,), "float64", chunks=1 << 18)
    chunk = tmp_path / "u.zarr/c/0"
    chunk.parent.mkdir()
    with chunk.open("wb") as stream:
        stream.truncate(1 << 21)
    stored.prepare()
    assert chunk.stat().st_blocks * 512 >= 1 << 21


def test_dask_reads_it(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array", reason="no Dask here: pip install 'dask[array]'")
    values = values_of((10, 11), "float64")
    lw.create(tmp_path / "u.zarr", values.shape, chunks=(4, 5)).write(whole(values.shape), values)
    lazily = dask.from_zarr(str(tmp_path / "u.zarr"))
    assert lazily.chunksize == (4, 5)
    assert same(lazily.compute(scheduler="sync"), values)


def test_xarray_reads_it_in_a_group(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="no xarray here: pip install xarray")
    values = values_of((10, 11), "float64")
    zarr.create_group(tmp_path / "all.zarr")
    lw.create(tmp_path / "all.zarr/u", values.shape, chunks=(4, 5)).write(whole(values.shape), values)
    with xarray.open_zarr(str(tmp_path / "all.zarr"), consolidated=False, chunks=None) as found:
        assert found["u"].dims == ("dim_0", "dim_1")
        assert same(found["u"].values, values)


def test_what_xarray_writes_is_read(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray", reason="no xarray here: pip install xarray")
    values = values_of((10, 11), "float32")
    xarray.Dataset({"t": (("y", "x"), values)}).to_zarr(tmp_path / "era.zarr", zarr_format=3, consolidated=False)
    stored = lw.open(tmp_path / "era.zarr/t")
    assert not stored.is_raw
    assert same(stored.numpy(), values)
    with pytest.raises(lw.RefusedError, match=r"is a Zarr group, expected one array\. Name one .*era\.zarr/t\."):
        lw.open(tmp_path / "era.zarr")


@pytest.mark.parametrize(
    "shape", [(1000,), (5000, 3000), (3, 10**7), (2, 3, 10**8), (0, 5), (7, 0), (10**9,), (64,) * 4]
)
@pytest.mark.parametrize("itemsize", [1, 8, 16])
def test_default_chunks(shape: tuple[int, ...], itemsize: int) -> None:
    chunks = default_chunks(shape, itemsize)
    elements = np.prod(chunks, dtype=object)
    assert elements * itemsize <= CHUNK_BYTES
    assert all(1 <= side <= max(1, n) for side, n in zip(chunks, shape, strict=True))
    total = np.prod(shape, dtype=object) * itemsize
    assert total <= CHUNK_BYTES or 2 * elements * itemsize > CHUNK_BYTES // 2
    cut = next((axis for axis, side in enumerate(chunks) if side > 1), len(shape))
    assert all(side == max(1, n) for side, n in zip(chunks[cut + 1 :], shape[cut + 1 :], strict=True))  # rows are whole


@settings(max_examples=wanted(50), deadline=None)
@given(st.data())
def test_blocks_have_every_element_once(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 8), min_size=1, max_size=3)))
    chunks = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    block = grouped(chunks, shape, 1, data.draw(st.integers(1, 60)))
    assert all(side % chunk == 0 for side, chunk in zip(block, chunks, strict=True))
    box = data.draw(boxes(shape))
    count, expected = np.zeros(shape, int), np.zeros(shape, int)
    expected[slices(box)] = 1
    for part in blocks(box, block):
        count[slices(part)] += 1
    assert (count == expected).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(shape=()), r"shape \(\): expected one or more lengths"),
        (dict(shape=(3, -1)), "none of them negative"),
        (dict(shape=(3, 2.5)), "expected one or more lengths"),
        (dict(shape=(1 << 40, 1 << 40)), "is larger than any file can be"),
        (dict(shape=3, dtype="nonsense"), "dtype 'nonsense': expected one of NumPy's"),
        (dict(shape=3, dtype="U4"), "its elements are <U4, expected bool, an integer"),
        (dict(shape=3, dtype=np.longdouble), "expected bool, an integer of 8 to 64 bits, float16 to float64"),
        (dict(shape=3, dtype=[("a", "i4"), ("b", "f8")]), "are records of a, b"),
        (dict(shape=3, chunks=0), "chunks 0: expected a length of 1 or more for each of the 1 axes"),
        (dict(shape=(3, 3), chunks=(3,)), "for each of the 2 axes, such as"),
        (dict(shape=3, chunks="3"), "chunks '3'"),
        (dict(shape=3, dtype="int8", fill_value=1000), "fill_value is 1000: expected a number that int8 has"),
        (dict(shape=3, dtype="int8", fill_value=0.5), "expected a number that int8 has"),
        (dict(shape=3, fill_value=1j), "expected a number that float64 has"),
        (dict(shape=3, fill_value="x"), "expected one number"),
        (dict(shape=3, fill_value=[1, 2]), "expected one number"),
    ],
)
def test_what_is_no_array_is_not_created(tmp_path: Path, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(lw.RefusedError, match=words):
        lw.create(tmp_path / "u.zarr", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_what_is_there_is_not_replaced(tmp_path: Path, name: str) -> None:
    lw.create(tmp_path / name, 3).write(((0, 3),), [1, 2, 3])
    with pytest.raises(lw.RefusedError, match=r"is there already\. Open it with lw\.open"):
        lw.create(tmp_path / name, 3)
    assert lw.open(tmp_path / name).numpy().tolist() == [1, 2, 3]
    with pytest.raises(lw.RunError, match=r"cannot be created|cannot be written"):
        lw.create(tmp_path / name / "below" / name, 3)


def test_a_npy_file_has_no_chunks(tmp_path: Path) -> None:
    with pytest.raises(lw.RefusedError, match=r"a \.npy file has no chunks"):
        lw.create(tmp_path / "u.npy", 3, chunks=2)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (4, 5), "int32")
    box: Any
    for box in [((0, 4),), 3, ((0, 4), (2.0, 3)), None]:
        with pytest.raises(lw.RefusedError, match=r"is none: expected \(low, high\) for each of the 2 axes"):
            stored.read(box)
    for box in [((0, 5), (0, 5)), ((-1, 2), (0, 5)), ((3, 2), (0, 5))]:
        with pytest.raises(lw.RefusedError, match="is not inside the array"):
            stored.write(box, 0)
        with pytest.raises(lw.RefusedError, match="is not inside the array"):
            stored.pieces(box)
    with pytest.raises(lw.RefusedError, match="expected int32 of shape"):
        stored.read(((0, 2), (0, 2)), np.empty((2, 3), "int32"))
    with pytest.raises(lw.RefusedError, match="expected int32 of shape"):
        stored.read(((0, 2), (0, 2)), np.empty((2, 2), "int64"))
    with pytest.raises(lw.RefusedError, match="the values have shape"):
        stored.write(((0, 2), (0, 2)), np.zeros((3, 2), "int32"))
    with pytest.raises(lw.RefusedError, match="the values are float64, and the array is int32"):
        stored.write(((0, 2), (0, 2)), np.ones((2, 2)))
    with pytest.raises(lw.RefusedError, match=r"the value is .*: expected a number that int32 has"):
        stored.write(((0, 2), (0, 2)), 1.5)
    stored.write(((0, 2), (0, 5)), np.arange(5, dtype="int16"))
    assert stored.read(((1, 3), (3, 5))).tolist() == [[3, 4], [0, 0]]


def test_damage_is_an_error(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (4, 4), chunks=(2, 4))
    stored.prepare()
    with (tmp_path / "u.zarr/c/1/0").open("r+b") as stream:
        stream.truncate(10)
    with pytest.raises(lw.RunError, match=r"c/1/0: holds 10 bytes, expected 64\. It is damaged"):
        stored.numpy()
    for use in (stored.prepare, lambda: stored.write(whole((4, 4)), 0), lambda: list(stored.pieces(whole((4, 4))))):
        with pytest.raises(lw.RunError, match="expected 64"):
            use()
    assert (stored.read(((0, 2), (0, 4))) == 0).all()


def test_an_array_that_went_away_is_not_all_fill_value(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", 4)
    (tmp_path / "u.zarr/zarr.json").unlink()
    with pytest.raises(lw.RunError, match="is gone"):
        stored.numpy()
    file = lw.create(tmp_path / "u.npy", 4)
    (tmp_path / "u.npy").unlink()
    with pytest.raises(lw.RunError, match="is gone"):
        file.numpy()


def test_another_array_in_a_files_place_is_noticed(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.npy", (2, 3))
    np.save(tmp_path / "u.npy", np.zeros((3, 2)))
    with pytest.raises(lw.RunError, match="holds another array than when it was opened"):
        stored.numpy()
    with pytest.raises(lw.RunError, match="holds another array than when it was opened"):
        stored.write(((0, 2), (0, 3)), 1)
    assert (np.load(tmp_path / "u.npy") == 0).all()


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_little_memory_besides_the_box(tmp_path: Path, name: str) -> None:
    side, columns, mebibyte = 2048, 12, 1 << 20
    stored = lw.create(tmp_path / name, (side, side))  # 32 MiB
    stored.prepare()
    values = np.zeros((side, side), "float32").T  # converted, and in another order
    tracemalloc.start()
    try:
        stored.write(whole(stored.shape), values)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * direct.BUFFER_BYTES
        tracemalloc.reset_peak()
        assert not stored.read(((0, side), (5, 5 + columns))).any()
        assert tracemalloc.get_traced_memory()[1] < 1.5 * direct.BUFFER_BYTES
        tracemalloc.reset_peak()
        whole_array = stored.numpy()
        assert tracemalloc.get_traced_memory()[1] < whole_array.nbytes + mebibyte
    finally:
        tracemalloc.stop()


def test_several_write_to_a_chunk_that_is_not_there(tmp_path: Path) -> None:
    """Each its own elements: none is lost because another has made the file at the same moment."""
    rows = 4
    for turn in range(30):
        stored = lw.create(tmp_path / f"{turn}.zarr", (rows + 1, 1000), fill_value=9)
        together = threading.Barrier(rows)

        def write(row: int, stored: lw.StoredArray = stored, together: threading.Barrier = together) -> None:
            together.wait()
            stored.write(((row, row + 1), (0, 1000)), row)

        writers = [threading.Thread(target=write, args=(row,)) for row in range(rows)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert (stored.numpy() == np.array([*range(rows), 9])[:, None]).all()
        assert os.listdir(tmp_path / f"{turn}.zarr/c/0") == ["0"]


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (100, 1000), chunks=(10, 1000), fill_value=1)
    with no_file_longer_than(1 << 14):
        with pytest.raises(lw.RunError, match=r"c/0/0 cannot be written: File too large\."):
            stored.prepare()
        with pytest.raises(lw.RunError, match=r"cannot be written: File too large\."):
            stored.write(((0, 1), (0, 1)), 1)
        with pytest.raises(lw.RunError, match=r"cannot be written: File too large\."):
            lw.create(tmp_path / "u.npy", (100, 1000))
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.name != "zarr.json"]


def test_words_for_people(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (50, 60), chunks=(20, 60))
    assert repr(stored) == f"<StoredArray {tmp_path}/u.zarr: float64 of shape (50, 60), 3 chunks of 20 × 60>"
    assert "23.4 KiB" in stored._repr_html_()
    assert repr(lw.create(tmp_path / "u.npy", 3)).endswith("float64 of shape (3,), one .npy file>")
    assert pickle.loads(pickle.dumps(stored)).path == stored.path
