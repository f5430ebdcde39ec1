"""What lw.open takes, and with which words it refuses the rest."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numpy.lib import format as npy_format

import lapwing as lw
from lapwing.store import npy
from lapwing.store.opening import open_for_conversion

VALUES = np.arange(24.0).reshape(4, 6)
NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def test_zarr_is_not_imported_with_lapwing() -> None:
    program = "import lapwing as lw, sys; lw.open; lw.create; print('zarr' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_npy_file_is_one_chunk(tmp_path: Path, dtype: str) -> None:
    values = VALUES.astype(dtype)
    np.save(tmp_path / "u.npy", values)
    stored = lw.open(tmp_path / "u.npy")
    assert (stored.shape, stored.chunks, stored.dtype, stored.is_raw) == ((4, 6), (4, 6), values.dtype, True)
    assert stored.numpy().tobytes() == values.tobytes()
    (piece,) = stored.pieces(((1, 3), (2, 6)))
    assert piece.file == str(tmp_path / "u.npy")
    assert piece.strides == values.strides
    stored.write(((1, 3), (2, 6)), np.ones((2, 4), dtype))
    values[1:3, 2:6] = 1
    assert (np.load(tmp_path / "u.npy") == values).all()


def test_other_versions_of_npy(tmp_path: Path) -> None:
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "u.npy").open("wb") as stream:
            npy_format.write_array(stream, VALUES, version)
        assert (lw.open(tmp_path / "u.npy").numpy() == VALUES).all()
    content = bytearray((tmp_path / "u.npy").read_bytes())
    content[6] = 9
    (tmp_path / "u.npy").write_bytes(content)
    with pytest.raises(lw.RefusedError, match=r"is of version 9\.0 of the \.npy format, expected 1\.0 to 3\.0"):
        lw.open(tmp_path / "u.npy")


def test_links_are_followed(tmp_path: Path) -> None:
    np.save(tmp_path / "u.npy", VALUES)
    (tmp_path / "link.npy").symlink_to("u.npy")
    stored = lw.open(tmp_path / "link.npy")
    assert stored.path == str(tmp_path / "u.npy")
    stored.prepare(tmp_path / "next")
    stored.replace_chunks(tmp_path / "next")
    assert (tmp_path / "link.npy").is_symlink()
    assert (np.load(tmp_path / "link.npy") == 0).all()


@pytest.mark.parametrize(
    ("options", "chunks"),
    [
        (dict(chunks=(3, 4)), (3, 4)),  # compressed, as zarr does by default
        (dict(chunks=(2, 3), shards=(4, 6)), (2, 3)),
        (dict(chunks=(3, 4), zarr_format=2), (3, 4)),
        (dict(chunks=(3, 4), zarr_format=2, compressors=None), (3, 4)),
        (dict(chunks=(3, 4), compressors=None, chunk_key_encoding={"name": "default", "separator": "."}), (3, 4)),
        (dict(chunks=(3, 4), compressors=None, chunk_key_encoding={"name": "v2", "separator": "/"}), (3, 4)),
        (dict(chunks=(3, 4), compressors=None, filters=[zarr.codecs.TransposeCodec(order=(1, 0))]), (3, 4)),
        (dict(chunks=(3, 4), compressors=[zarr.codecs.Crc32cCodec()]), (3, 4)),
    ],
    ids=["zstd", "shards", "v2", "v2 plain", "dots", "v2 names", "transposed", "checksums"],
)
def test_encoded_arrays_are_read(tmp_path: Path, options: dict[str, Any], chunks: tuple[int, ...]) -> None:
    array = zarr.create_array(tmp_path / "u.zarr", shape=(4, 6), dtype="float64", fill_value=-1, **options)
    array[1:, :5] = VALUES[1:, :5]
    expected = np.full((4, 6), -1.0)
    expected[1:, :5] = VALUES[1:, :5]
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    stored = lw.open(tmp_path / "u.zarr")
    assert (stored.is_raw, stored.writable, stored.chunks, stored.fill_value) == (False, False, chunks, -1.0)
    assert "encoded" in repr(stored)
    assert (stored.numpy() == expected).all()
    assert (stored.read(((1, 3), (2, 6))) == expected[1:3, 2:6]).all()
    assert stored.read(((1, 1), (2, 6))).shape == (0, 4)
    calls: list[Callable[[], Any]] = [
        lambda: stored.pieces(((0, 1), (0, 1))),
        lambda: stored.write(((0, 1), (0, 1)), 1),
        lambda: stored.prepare(),
        lambda: stored.replace_chunks(tmp_path / "u.zarr/next"),
    ]
    for call in calls:
        with pytest.raises(
            lw.RefusedError, match=r"are not files of plain numbers\. `lapwing convert .*u\.zarr NEW\.zarr`"
        ):
            call()
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_a_damaged_compressed_chunk_is_an_error(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "u.zarr", shape=(4, 6), dtype="float64", chunks=(4, 6))[:] = VALUES
    (tmp_path / "u.zarr/c/0/0").write_bytes(b"no zstd")
    with pytest.raises(lw.RunError, match=r"u\.zarr: \[0:4, 0:6\] cannot be read: .*A chunk may be damaged"):
        lw.open(tmp_path / "u.zarr").numpy()


# -- what is refused -------------------------------------------------------------------------------------------------


def refused(path: Path) -> str:
    before = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()}
    with pytest.raises(lw.RefusedError) as caught:
        lw.open(path)
    assert str(caught.value).startswith(str(path))
    assert before == {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file()}
    return str(caught.value)


@pytest.mark.parametrize("version", [2, 3])
def test_big_endian_zarr(tmp_path: Path, version: int) -> None:
    options: dict[str, Any] = dict(serializer=zarr.codecs.BytesCodec(endian="big")) if version == 3 else {}
    array = zarr.create_array(tmp_path / "u.zarr", shape=(4, 6), dtype=">f8", zarr_format=version, **options)
    array[:] = VALUES
    text = refused(tmp_path / "u.zarr")
    assert "its numbers are big-endian (>f8), expected little-endian. `lapwing convert" in text
    stored = open_for_conversion(tmp_path / "u.zarr")
    assert stored.dtype == np.dtype("<f8")
    assert not stored.is_raw
    assert (stored.numpy() == VALUES).all()


def test_big_endian_and_fortran_order_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "big.npy", VALUES.astype(">f4"))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(VALUES))
    np.save(tmp_path / "row.npy", np.asfortranarray(VALUES[:1]))
    assert "its numbers are big-endian (>f4)" in refused(tmp_path / "big.npy")
    assert "its first index runs fastest (Fortran order), expected C order. `lapwing" in refused(
        tmp_path / "fortran.npy"
    )
    for name in ("big", "fortran"):
        stored = open_for_conversion(tmp_path / f"{name}.npy")
        assert not stored.is_raw
        assert not stored.writable
        assert stored.dtype.isnative
        assert (stored.read(((1, 4), (2, 5))) == VALUES[1:4, 2:5]).all()
    assert (lw.open(tmp_path / "row.npy").numpy() == VALUES[:1]).all()  # one row lies the same way in both


def test_groups(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "g.zarr")
    assert "is a Zarr group, expected one array. There is no array in it." in refused(tmp_path / "g.zarr")
    for name in "abcdefg":
        group.create_array(name, shape=3, dtype="f8")
    text = refused(tmp_path / "g.zarr")
    assert text.endswith(f"Name one of its members: {', '.join(str(tmp_path / 'g.zarr' / n) for n in 'abcde')}, ….")
    assert lw.open(tmp_path / "g.zarr/b").shape == (3,)


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("dtype", ["U4", "S3", "M8[s]", "m8[s]", "V5", [("a", "i4"), ("b", "f8")]], ids=str)
def test_what_is_no_number(tmp_path: Path, dtype: Any) -> None:
    expected = (
        "records of a, b, expected bool" if isinstance(dtype, list) else "expected bool, an integer of 8 to 64 bits"
    )
    zarr.create_array(tmp_path / "u.zarr", shape=3, dtype=np.dtype(dtype))
    assert expected in refused(tmp_path / "u.zarr")
    np.save(tmp_path / "u.npy", np.zeros(3, np.dtype(dtype)))
    assert expected in refused(tmp_path / "u.npy")


def test_other_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "u.npy"
    np.save(path, np.array([{}, 1], object))
    assert "its elements are Python objects, expected numbers" in refused(path)
    np.save(path, np.float64(3))
    assert "holds a single number, expected an array of one or more axes" in refused(path)
    np.save(path, np.zeros(3, np.longdouble))
    assert "expected bool, an integer of 8 to 64 bits, float16 to float64" in refused(path)
    np.savez(path.open("wb"), u=VALUES)
    assert "is a zip file, as .npz and zipped Zarr arrays are. Unpack it" in refused(path)
    path.write_bytes(b"\x89HDF\r\n\x1a\n")
    assert "is an HDF5 (or NetCDF 4) file. Read it with h5py" in refused(path)
    for content in (b"", b"hello", b"\x93NUM"):
        path.write_bytes(content)
        assert "is no .npy file. Expected a .npy file or the folder of a Zarr array" in refused(path)


def test_damaged_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "whole.npy", VALUES)
    content = (tmp_path / "whole.npy").read_bytes()
    path = tmp_path / "u.npy"
    path.write_bytes(content[:-1])
    assert "holds 319 bytes, but an array of float64 and shape (4, 6) takes 320. It is damaged" in refused(path)
    path.write_bytes(content + b"\0")
    assert "holds 321 bytes" in refused(path)
    for damaged in (
        content[:20],
        content[:7],
        content.replace(b"(4, 6)", b"(4, -6"),
        content.replace(b"(4, 6)", b"(4,'6"),
        content.replace(b"<f8", b"<f7"),
        content.replace(b"'shape'", b"'shapf'"),
        content.replace(b"False", b"Falsh"),
    ):
        path.write_bytes(damaged)
        assert "Expected a .npy file" in refused(path)


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no JSON": lambda d: "{",
    "nothing": lambda d: "",
    "bytes": lambda d: "\udcff",
    "a list": lambda d: "[]",
    "deep": lambda d: "[" * 100_000,
    "newer": lambda d: d.update(zarr_format=4),
    "a new field": lambda d: d.update(new={"must_understand": True}),
    "unknown codec": lambda d: d.update(codecs=[{"name": "fancy", "configuration": {}}]),
    "unknown type": lambda d: d.update(data_type="float7"),
    "unknown grid": lambda d: d.update(chunk_grid={"name": "wild", "configuration": {}}),
    "unknown node": lambda d: d.update(node_type="thing"),
    "transformers": lambda d: d.update(storage_transformers=[{"name": "x"}]),
    "negative shape": lambda d: d.update(shape=[-1, 6]),
    "no shape": lambda d: d.pop("shape") and None,
    "wrong shape": lambda d: d.update(shape="x"),
    "wrong chunks": lambda d: d.update(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4]}}),
    "empty chunks": lambda d: d.update(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 6]}}),
    "wrong fill": lambda d: d.update(fill_value="many"),
    "no codecs": lambda d: d.update(codecs=[]),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_or_unknown_metadata(tmp_path: Path, name: str) -> None:
    lw.create(tmp_path / "u.zarr", (4, 6))
    path = tmp_path / "u.zarr/zarr.json"
    document = json.loads(path.read_text())
    text = DAMAGE[name](document)
    path.write_text(text if isinstance(text, str) else json.dumps(document), errors="surrogateescape")
    found = refused(tmp_path / "u.zarr")
    assert "cannot read its metadata: " in found
    assert "It is damaged, or written by a newer program: then upgrade zarr." in found
    assert "\n" not in found


def test_what_may_be_passed_over_is(tmp_path: Path) -> None:
    lw.create(tmp_path / "u.zarr", (4, 6))
    path = tmp_path / "u.zarr/zarr.json"
    document = json.loads(path.read_text())
    document["new"] = {"must_understand": False}
    path.write_text(json.dumps(document))
    assert lw.open(tmp_path / "u.zarr").is_raw


def test_places_without_an_array(tmp_path: Path) -> None:
    assert "there is no such file or folder. lw.create makes an array" in refused(tmp_path / "u.zarr")
    (tmp_path / "u.zarr").mkdir()
    assert "is a folder without zarr.json or .zarray" in refused(tmp_path / "u.zarr")
    (tmp_path / "u.zarr/zarr.json").mkdir()
    assert "cannot read its metadata" in refused(tmp_path / "u.zarr")
    shutil.rmtree(tmp_path / "u.zarr")
    os.mkfifo(tmp_path / "pipe.npy")
    assert "is no file" in refused(tmp_path / "pipe.npy")


def test_what_may_not_be_read_or_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "u.npy", VALUES)
    stored = lw.open(tmp_path / "u.npy")

    def denied(*arguments: Any, **options: Any) -> Any:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not stored.writable
    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(lw.RunError, match=r"u\.npy cannot be written: Permission denied\."):
        stored.write(((0, 1), (0, 1)), 1)
    monkeypatch.setattr(npy, "open", denied, raising=False)
    with pytest.raises(lw.RefusedError, match=r"u\.npy: cannot be opened: Permission denied\."):
        lw.open(tmp_path / "u.npy")
