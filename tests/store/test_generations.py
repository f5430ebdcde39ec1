"""A new generation of chunks takes the old one's place in one step."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.store import generations
from lapwing.store.boxes import whole
from lapwing.store.files import renaming


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was to reach the disk and what was renamed, in order. Nothing waits for the disk: how long that takes is up to it."""
    events: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda file: events.append(os.readlink(f"/proc/self/fd/{file}")))
    return events


def new_generation(stored: lw.StoredArray, folder: Path, value: int) -> None:
    """Chunks of one value, written as somebody would who knows nothing but the pieces."""
    stored.prepare(folder)
    for piece in stored.pieces(whole(stored.shape), folder):
        content = np.memmap(piece.file, stored.dtype, "r+", piece.offset)
        content[:] = value
        content.flush()


def array(tmp_path: Path, name: str = "u.zarr") -> tuple[lw.StoredArray, Path]:
    stored = lw.create(tmp_path / name, (7, 5), "int32", chunks=(2, 3) if name.endswith(".zarr") else None)
    stored.write(whole(stored.shape), 1)
    return stored, (tmp_path / name if name.endswith(".zarr") else tmp_path) / "next"


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_the_new_chunks_are_the_arrays(tmp_path: Path, name: str) -> None:
    stored, folder = array(tmp_path, name)
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))
    for value in (2, 3):
        new_generation(stored, folder, value)
        assert (stored.numpy() == value - 1).all()
        stored.replace_chunks(folder)
        assert (stored.numpy() == value).all()
        assert (lw.open(stored.path).numpy() == value).all()
        assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_chunks_where_there_were_none(tmp_path: Path) -> None:
    stored = lw.create(tmp_path / "u.zarr", (4,), "int32")
    new_generation(stored, tmp_path / "u.zarr/next", 5)
    stored.replace_chunks(tmp_path / "u.zarr/next")
    assert stored.numpy().tolist() == [5] * 4


def test_permissions_of_a_npy_file_are_kept(tmp_path: Path) -> None:
    stored, folder = array(tmp_path, "u.npy")
    os.chmod(stored.path, 0o640)
    new_generation(stored, folder, 2)
    stored.replace_chunks(folder)
    assert stat.S_IMODE(os.stat(stored.path).st_mode) == 0o640


def test_readers_find_the_old_or_the_new(tmp_path: Path) -> None:
    """With chunks of a byte each a reader that could find none would, in so many turns."""
    stored = lw.create(tmp_path / "u.zarr", (1,), "uint8", chunks=1, fill_value=0)
    stored.write(((0, 1),), 1)
    found: set[int] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found.add(int((tmp_path / "u.zarr/c/0").read_bytes()[0]))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(25):
            new_generation(stored, tmp_path / "u.zarr/next", 1 + turn % 2)
            stored.replace_chunks(tmp_path / "u.zarr/next")
    finally:
        done.set()
        reader.join()
    assert found == {1, 2}


def test_what_is_incomplete_is_refused(tmp_path: Path) -> None:
    stored, folder = array(tmp_path)
    new_generation(stored, folder, 2)
    (folder / "2/1").unlink()
    with pytest.raises(lw.RefusedError, match=r"next/2/1: is missing\. Expected all chunks"):
        stored.replace_chunks(folder)
    (folder / "2/1").write_bytes(b"short")
    with pytest.raises(lw.RunError, match="holds 5 bytes, expected 24"):
        stored.replace_chunks(folder)
    assert (stored.numpy() == 1).all()


def test_folders_elsewhere_are_refused(tmp_path: Path) -> None:
    stored, _ = array(tmp_path)
    new_generation(stored, tmp_path / "elsewhere", 2)
    for folder in ("elsewhere", "u.zarr", "u.zarr/c/new"):
        with pytest.raises(lw.RefusedError, match="expected a folder in"):
            stored.replace_chunks(tmp_path / folder)
    with pytest.raises(lw.RefusedError, match="are the chunks that the array has"):
        stored.replace_chunks(tmp_path / "u.zarr/c")
    file, _ = array(tmp_path, "u.npy")
    with pytest.raises(lw.RefusedError, match="are the chunks that the array has"):
        file.replace_chunks(tmp_path)
    assert (stored.numpy() == 1).all()


@pytest.fixture
def two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two folders."""
    monkeypatch.setattr(generations, "exchange", lambda one, other: False)


@pytest.mark.usefixtures("two_steps")
def test_where_folders_cannot_be_exchanged(tmp_path: Path) -> None:
    stored, folder = array(tmp_path)
    for value in (2, 3):
        new_generation(stored, folder, value)
        stored.replace_chunks(folder)
        assert (lw.open(stored.path).numpy() == value).all()
        assert sorted(os.listdir(stored.path)) == ["c", "zarr.json"]


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize("moment", range(6))
def test_an_interrupted_replacement_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """The process ends before one of the renamings or removals: the array is all old, or all new."""
    stored, folder = array(tmp_path)
    new_generation(stored, folder, 2)
    counted = 0

    def counting(name: str) -> Any:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal counted
            counted += 1
            if counted > moment:
                raise KeyboardInterrupt  # nothing tidies up after this one
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "unlink"):
            patch.setattr(os, name, counting(name))
        with contextlib.suppress(KeyboardInterrupt):
            stored.replace_chunks(folder)
    again = lw.open(stored.path)
    expected = 1 if moment < 2 else 2
    assert (again.numpy() == expected).all()
    new_generation(again, folder, 3)
    again.replace_chunks(folder)
    assert (again.numpy() == 3).all()
    assert sorted(os.listdir(stored.path)) in (["c", "zarr.json"], [generations.MARKER, "c", "zarr.json"])


@pytest.mark.usefixtures("two_steps")
def test_a_replacement_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, folder = array(tmp_path)
    new_generation(stored, folder, 2)
    real = os.rename

    def fail(old: str, new: str) -> None:
        if os.path.basename(old) == "next":
            raise PermissionError(13, "Permission denied")
        real(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fail)
        with pytest.raises(lw.RunError, match="its chunks cannot be replaced: Permission denied"):
            stored.replace_chunks(folder)
    assert (lw.open(stored.path).numpy() == 1).all()


@pytest.mark.parametrize("name", ["u.zarr", "u.npy"])
def test_all_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: list[str], name: str
) -> None:
    def noting(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            synced.append("changed places")
            return function(*arguments)

        return call

    stored, folder = array(tmp_path, name)
    new_generation(stored, folder, 2)
    expected = {str(p) for p in folder.rglob("*")} | {str(folder)}
    monkeypatch.setattr(generations, "exchange", noting(generations.exchange))
    monkeypatch.setattr(os, "replace", noting(os.replace))
    stored.replace_chunks(folder)
    place = synced.index("changed places")
    assert set(synced[:place]) == expected
    assert str(folder.parent) in synced[place:]


@pytest.mark.parametrize(
    "told",
    [
        dict(chunks="c", new="../precious", old=".lapwing-old-0123456789ab"),
        dict(chunks="c", new="next", old="../precious"),
        dict(chunks="../precious", new="next", old=".lapwing-old-0123456789ab"),
        dict(chunks="c"),
        [],
        None,
    ],
)
def test_markers_lead_nowhere_else(tmp_path: Path, told: Any) -> None:
    """Arrays come from elsewhere: a marker in one must not have other folders moved or removed."""
    stored, folder = array(tmp_path)
    new_generation(stored, folder, 2)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").touch()
    os.rename(tmp_path / "u.zarr/c", tmp_path / "u.zarr/.lapwing-old-0123456789ab")
    (tmp_path / "u.zarr" / generations.MARKER).write_text(json.dumps(told))
    with pytest.raises(lw.RefusedError, match="its chunks were being replaced"):
        lw.open(stored.path)
    assert (tmp_path / "precious/file").exists()
    assert (tmp_path / "u.zarr/next").exists()


def test_renaming_never_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    one, other = str(tmp_path / "a"), str(tmp_path / "b")
    assert renaming.exchange(one, other)
    assert Path(one).read_text() == "b"
    for system in (renaming._rename, lambda *_: False):
        monkeypatch.setattr(renaming, "_rename", system)
        with pytest.raises(FileExistsError):
            renaming.rename_new(one, other)
        renaming.rename_new(one, str(tmp_path / "c"))
        renaming.rename_new(str(tmp_path / "c"), one)
    assert Path(other).read_text() == "a"
