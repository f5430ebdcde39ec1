"""Programs that the tests compile: what was built before is found again, and nothing else is taken for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import _building
import pytest
from _building import Build, cache, cached, keep, write
from _running import required


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.cache_clear()
    yield tmp_path / "lapwing-tests"
    cache.cache_clear()


def test_what_was_kept_is_found(own_cache: Path) -> None:
    assert cached("a") is None
    assert keep("a", b"program") == cached("a") == own_cache / "a"
    assert keep("a", b"another").read_bytes() == b"another"
    assert os.access(own_cache / "a", os.X_OK)
    assert os.listdir(own_cache) == ["a"]


def test_the_least_used_go(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate("abc"):
        os.utime(keep(name, b""), (number, number))
    cached("a")
    monkeypatch.setattr(_building, "KEPT", 2)
    cache.cache_clear()
    cache()
    assert sorted(os.listdir(own_cache)) == ["a", "c"]


FILES = {"a.c": '#include "a.h"\nint main(void) { return N; }\n', "a.h": "#define N 0\n"}


def test_a_program_is_known_by_all_that_it_is_built_from(tmp_path: Path) -> None:
    required("c")

    def key(folder: str, strict: bool = True, *options: str, **changed: str) -> str:
        texts = {
            changed.get("name", "a.c"): changed.get("program", FILES["a.c"]),
            "a.h": changed.get("header", FILES["a.h"]),
        }
        return Build(write(texts, tmp_path / folder), options).key(strict)

    first = key("first")
    assert key("elsewhere") == first
    others = [
        key("plain", False),
        key("optimised", True, "-O3"),
        key("program", program=FILES["a.c"] + "\n"),
        key("header", header="#define N 1\n"),
        key("renamed", name="a.cpp"),
    ]
    assert len({first, *others}) == 1 + len(others)


@pytest.mark.mpi
def test_a_header_that_changes_is_another_program(tmp_path: Path) -> None:
    required("c")
    sources = write(FILES, tmp_path / "a")
    first = Build(sources).executable(strict=False)
    assert Build(sources).executable(strict=False) == first
    (tmp_path / "a" / "a.h").write_text("#define N 1\n")
    assert Build(sources).executable(strict=False).read_bytes() != first.read_bytes()
