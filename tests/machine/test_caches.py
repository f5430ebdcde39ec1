"""Sizes of caches as the system tells them, and which of them is near."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.machine import caches

measured_near_bytes, told_second_bytes = caches.near_bytes, caches.second_bytes  # which tests have fixed


@pytest.fixture(autouse=True)
def _as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "second_bytes", told_second_bytes)


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First-level caches for instructions and data, one of 512 KiB and one of 32 MiB."""
    found = (1, "Data", "32K"), (1, "Instruction", "64K"), (2, "Unified", "512K"), (3, "Unified", "32M")
    for number, values in enumerate(found):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("level", "type", "size"), values, strict=True):
            (folder / name).write_text(f"{value}\n", encoding="ascii")
    (tmp_path / "index9").mkdir()  # of which nothing is told
    monkeypatch.setattr(caches, "_CACHES", tmp_path)


@pytest.mark.usefixtures("described")
def test_sizes_are_those_of_caches_for_data() -> None:
    assert [caches.cache_bytes(level) for level in (1, 2, 3, 4)] == [32 << 10, 512 << 10, 32 << 20, None]
    assert caches.outer_cache_bytes() == 32 << 20


def test_sizes_are_supposed_where_the_system_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "_CACHES", tmp_path / "nothing")
    assert caches.cache_bytes(2) is None
    assert caches.outer_cache_bytes() == 32 << 20
    monkeypatch.setattr(caches, "_seconds_a_byte", lambda size: 1.0 if size <= 2 << 20 else 4.0)
    assert measured_near_bytes.__wrapped__() == 2 << 20


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize(("beyond", "near"), [(1.2, 8 << 20), (1.9, 512 << 10)])
def test_the_outermost_cache_is_near_where_it_is_as_fast(
    beyond: float, near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "_seconds_a_byte", lambda size: 1.0 if size <= 512 << 10 else beyond)
    assert measured_near_bytes.__wrapped__() == near
