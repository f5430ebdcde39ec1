"""`lapwing convert`: from .npy to Zarr and back, what it refuses, and that nothing is lost or left."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import scaled
from processes import default_signals
from randomness import wanted

import lapwing as lw
from lapwing.cli.actions import convert as action
from lapwing.cli.main import main
from lapwing.store import conversion
from lapwing.store.boxes import slices
from lapwing.store.opening import open_for_conversion

VALUES = np.random.default_rng(3).standard_normal((50, 40))


def convert(folder: Path, *arguments: str) -> tuple[int, str]:
    """The status and the words of one command line, in this process."""
    words = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(words),
        contextlib.redirect_stderr(words),
        pytest.raises(SystemExit) as ended,
    ):
        main(["convert", *arguments])
    assert "Traceback" not in words.getvalue()
    assert isinstance(ended.value.code, int)
    return ended.value.code, words.getvalue()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything in a folder, with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def test_from_npy_to_zarr_and_back(tmp_path: Path) -> None:
    np.save(tmp_path / "u.npy", VALUES)
    status, words = convert(tmp_path, "u.npy", "u.zarr", "--chunks", "16x40")
    assert status == 0
    assert words.startswith("u.zarr: float64 of shape (50, 40), 4 chunks of 16 × 40; 15.6 KiB in ")
    stored = lw.open(tmp_path / "u.zarr")
    assert stored.is_raw
    assert stored.chunks == (16, 40)
    assert stored.numpy().tobytes() == VALUES.tobytes()
    assert np.asarray(zarr.open_array(tmp_path / "u.zarr", mode="r")[...]).tobytes() == VALUES.tobytes()
    assert convert(tmp_path, "u.zarr", "v.npy")[0] == 0
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "u.npy").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["u.npy", "u.zarr", "v.npy"]


@pytest.mark.parametrize(
    "options",
    [
        dict(chunks=(7, 9)),
        dict(chunks=(5, 4), shards=(25, 20)),
        dict(chunks=(7, 9), zarr_format=2),
        dict(chunks=(7, 9), zarr_format=2, dtype=">f8"),
        dict(chunks=(7, 9), compressors=None, serializer=zarr.codecs.BytesCodec(endian="big")),
    ],
    ids=["zstd", "shards", "v2", "v2 big-endian", "big-endian"],
)
@pytest.mark.parametrize("name", ["new.zarr", "new.npy"])
def test_from_any_zarr(tmp_path: Path, options: dict[str, Any], name: str) -> None:
    made = zarr.create_array(tmp_path / "u.zarr", shape=(50, 40), fill_value=7, **{"dtype": "f8", **options})
    made[:30] = VALUES[:30]
    before = contents(tmp_path / "u.zarr")
    assert convert(tmp_path, "u.zarr", name)[0] == 0
    stored = lw.open(tmp_path / name)
    assert stored.is_raw
    assert stored.dtype == np.dtype("<f8")
    assert stored.fill_value == (7 if name.endswith(".zarr") else 0)
    assert stored.read(((0, 30), (0, 40))).tobytes() == VALUES[:30].tobytes()
    assert (stored.read(((30, 50), (0, 40))) == 7).all()
    assert contents(tmp_path / "u.zarr") == before


def test_from_any_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "fortran.npy", np.asfortranarray(VALUES))
    np.save(tmp_path / "big.npy", VALUES.astype(">f8"))
    for name in ("fortran", "big"):
        for ending in ("zarr", "npy"):
            assert convert(tmp_path, f"{name}.npy", f"new_{name}.{ending}")[0] == 0
            assert lw.open(tmp_path / f"new_{name}.{ending}").numpy().tobytes() == VALUES.tobytes()


def test_names_and_attributes_are_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = dict(shape=(2, 3), dtype="f4")
    zarr.create_array(tmp_path / "3.zarr", dimension_names=["y", "x"], attributes={"units": "K"}, **options)
    attributes = {"units": "K", "_ARRAY_DIMENSIONS": ["y", "x"]}
    zarr.create_array(tmp_path / "2.zarr", zarr_format=2, attributes=attributes, **options)
    lw.create(tmp_path / "0.zarr", (2, 3))
    for name, dimensions, units in (("3", ("y", "x"), "K"), ("2", ("y", "x"), "K"), ("0", ("dim_0", "dim_1"), None)):
        assert convert(tmp_path, f"{name}.zarr", f"new{name}.zarr")[0] == 0
        made = zarr.open_array(tmp_path / f"new{name}.zarr", mode="r")
        assert made.metadata.dimension_names == dimensions
        assert dict(made.attrs) == ({"units": units} if units else {})
        assert convert(tmp_path, f"new{name}.zarr", f"newer{name}.zarr")[0] == 0
        assert zarr.open_array(tmp_path / f"newer{name}.zarr", mode="r").metadata.dimension_names == dimensions


@settings(max_examples=wanted(25), deadline=None)
@given(st.data())
def test_every_element_is_copied_once(data: st.DataObject) -> None:
    """Blocks of a few bytes, so that small arrays go all ways of large ones."""
    shape = tuple(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
    cuts = [tuple(data.draw(st.integers(1, 9)) for _ in shape) for _ in "ab"]
    kind = data.draw(st.sampled_from(["npy", "fortran", "zarr", "raw"]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-100, 100, shape).astype("int16")
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(conversion, "BLOCK_BYTES", data.draw(st.sampled_from([2, 16, 100, 1 << 20])))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = folder / ("u.zarr" if kind in ("zarr", "raw") else "u.npy")
        if kind == "zarr":
            zarr.create_array(source, shape=shape, dtype="int16", chunks=cuts[0])[...] = values
        elif kind == "raw":
            lw.create(source, shape, "int16", chunks=cuts[0]).write(tuple((0, n) for n in shape), values)
        else:
            np.save(source, np.asfortranarray(values) if kind == "fortran" else values)
        array = open_for_conversion(source)
        for path, chunks in (("new.zarr", cuts[1]), ("new.npy", None)):
            made = conversion.create_like(array, str(folder / path), chunks)
            block = conversion.block_of(array, made)
            times = np.zeros(shape, int)
            boxes = list(conversion.boxes_of(array, block))
            assert len(boxes) == conversion.number_of_boxes(array, block)
            for box in boxes:
                times[slices(box)] += 1
                conversion.copy(array.path, made.path, box)
            conversion.forget()
            assert (times == 1).all()
            assert lw.open(folder / path).numpy().tobytes() == values.tobytes()


def test_blocks_are_bounded() -> None:
    for shape, chunks in (((10**5, 10**5), (10**4, 10**5)), ((10**12,), (10**6,)), ((3, 10**9), (1, 10))):
        block = conversion.grouped(
            conversion.default_chunks(chunks, 8, conversion.BLOCK_BYTES), shape, 8, conversion.BLOCK_BYTES
        )
        assert 1 << 20 < 8 * np.prod(block) <= conversion.BLOCK_BYTES


def test_several_processes(tmp_path: Path) -> None:
    values = np.random.default_rng(4).integers(0, 255, (500, 50_000), "uint8")  # several blocks
    np.save(tmp_path / "u.npy", values)
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", "convert", "u.npy", "u.zarr", "-n", "2", "--chunks", "150x30000"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=scaled(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert (lw.open(tmp_path / "u.zarr").numpy() == values).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["u.npy", "u.zarr"]


# -- wrong use, and trouble ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With u.npy, there.zarr and there.npy; afterwards all of it is as it was, and nothing has come to it."""
    np.save(tmp_path / "u.npy", VALUES)
    np.save(tmp_path / "there.npy", VALUES[:3])
    lw.create(tmp_path / "there.zarr", 3).prepare()
    (tmp_path / "link.npy").symlink_to("u.npy")
    (tmp_path / "hard.npy").hardlink_to(tmp_path / "u.npy")
    zarr.create_group(tmp_path / "group.zarr").create_array("u", shape=3, dtype="f8")
    before = contents(tmp_path)
    yield tmp_path
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("u.npy",), "Missing argument 'OUT'"),
        (("u.npy", "u.npz"), "u.npz: expected a name that ends in .npy or .zarr."),
        (("u.npy", "new.zarr", "--chunks", "3,4"), "'3,4': expected lengths joined by x, such as 1024x1024."),
        (("u.npy", "new.zarr", "--chunks", "0x4"), "'0x4': expected lengths joined by x"),
        (
            ("u.npy", "new.zarr", "--chunks", "3x4x5"),
            "chunks (3, 4, 5): expected a length of 1 or more for each of the 2 axes",
        ),
        (("u.npy", "new.npy", "--chunks", "3x4"), "new.npy: a .npy file has no chunks."),
        (("u.npy", "new.zarr", "-n", "0"), "Invalid value for '-n'"),
        (("none.npy", "new.zarr"), "none.npy: there is no such file or folder."),
        (("u.npy", "there.zarr"), "there.zarr: is there already. Name another, or replace it with --force."),
        (("u.npy", "none/new.zarr"), "none/new.zarr: there is no folder none. Make it, or name another."),
        (("u.npy", "u.npy", "--force"), "u.npy: is, or lies in, what is to be read"),
        (("u.npy", "link.npy", "--force"), "link.npy: is, or lies in, what is to be read"),
        (("u.npy", "hard.npy", "--force"), "hard.npy: is, or lies in, what is to be read"),
        (("group.zarr/u", "group.zarr", "--force"), "group.zarr: is, or lies in, what is to be read"),
        (("there.zarr", "there.zarr", "--force"), "is, or lies in, what is to be read"),
        (("there.zarr", "there.zarr/new.zarr"), "is, or lies in, what is to be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_use(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    status, said = convert(folder, *arguments)
    assert status == 2
    assert words in said


def test_force_replaces_arrays_only(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        (folder / "photos.zarr").mkdir()
        stack.callback(shutil.rmtree, folder / "photos.zarr")
        (folder / "photos.zarr/holiday").touch()
        (folder / "text.npy").write_text("notes")
        stack.callback((folder / "text.npy").unlink)
        before = contents(folder)
        for name in ("group.zarr", "photos.zarr", "text.npy"):
            status, said = convert(folder, "u.npy", name, "--force")
            assert status == 2
            assert f"{name}: --force replaces arrays only, and that is none: " in said
        assert contents(folder) == before


@pytest.mark.parametrize("name", ["new.zarr", "new.npy"])
def test_what_has_come_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    np.save(tmp_path / "u.npy", VALUES)
    real = action._copy

    def copy(*arguments: Any) -> None:
        real(*arguments)
        (tmp_path / name).write_text("somebody's")

    monkeypatch.setattr(action, "_copy", copy)
    status, said = convert(tmp_path, "u.npy", name)
    assert status == 1
    assert f"{name} cannot be written: File exists." in said
    assert (tmp_path / name).read_text() == "somebody's"
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, "u.npy"]


@pytest.mark.parametrize("exchanges", [True, False])
def test_force_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool) -> None:
    if not exchanges:
        monkeypatch.setattr(action, "exchange", lambda one, other: False)
    np.save(tmp_path / "u.npy", VALUES)
    lw.create(tmp_path / "new.zarr", 3, chunks=1).prepare()
    np.save(tmp_path / "new.npy", VALUES[:3])
    for name in ("new.zarr", "new.npy", "first.npy"):  # the last one is not there
        assert convert(tmp_path, "u.npy", name, "--force")[0] == 0
        assert (lw.open(tmp_path / name).numpy() == VALUES).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.npy", "new.npy", "new.zarr", "u.npy"]


@pytest.mark.parametrize("name", ["new.zarr", "new.npy"])
def test_a_full_disk(folder: Path, name: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, before[1]))
    try:
        status, said = convert(folder, "u.npy", name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 1
    assert "cannot be written: File too large." in said


def test_a_source_that_cannot_be_decoded(folder: Path) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder / "damaged.zarr")
        zarr.create_array(folder / "damaged.zarr", shape=(4, 4), dtype="f8")[...] = 1
        (folder / "damaged.zarr/c/0/0").write_bytes(b"no zstd")
        status, said = convert(folder, "damaged.zarr", "new.zarr")
        assert status == 1
        assert "A chunk may be damaged." in said


@pytest.mark.parametrize(
    ("number", "status", "ranks"), [(signal.SIGINT, 130, "2"), (signal.SIGTERM, 128 + signal.SIGTERM, "1")]
)
def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path, number: int, status: int, ranks: str) -> None:
    zarr.create_array(
        tmp_path / "u.zarr", shape=(1 << 12, 1 << 14), dtype="f8", chunks=(64, 1 << 14)
    )  # 512 MiB of zeros
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing", "convert", "u.zarr", "new.npy", "-n", ranks],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=default_signals,
    )
    deadline = time.monotonic() + scaled(30)
    while not list(tmp_path.glob("lapwing-convert-*/new.npy")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)  # as a terminal does
    _, said = process.communicate(timeout=scaled(30))
    assert process.returncode == status, said
    assert "Traceback" not in said
    assert [p.name for p in tmp_path.iterdir()] == ["u.zarr"]


def test_ctrl_c_waits_until_processes_have_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise those that are half started would complain, and it would be lost where it is ignored meanwhile."""
    np.save(tmp_path / "u.npy", VALUES)
    array = open_for_conversion(tmp_path / "u.npy")
    made = conversion.create_like(array, str(tmp_path / "new.zarr"))
    submit, started = ProcessPoolExecutor.submit, []

    def interrupted(pool: Any, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        started.append(submit(pool, *arguments))
        return started[0]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(action._copied_by(2)(array.path, made.path, conversion.boxes_of(array, (10, 40))))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(started) == 1
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_help_teaches(tmp_path: Path) -> None:
    status, words = convert(tmp_path, "--help")
    assert status == 0
    assert "Examples:" in words
    assert words.count("lapwing convert ") >= 3
