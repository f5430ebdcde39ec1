"""Caches that others can change are refused before anything is loaded from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lapwing.codegen.compilation import cache, ownership
from lapwing.errors import BuildError

OTHER = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that is as it should be, in folders that are."""
    made = tmp_path / "above" / "cache"
    made.mkdir(parents=True)
    made.chmod(0o700)
    made.parent.chmod(0o755)
    monkeypatch.setenv("LAPWING_CACHE", str(made))
    return made


def test_a_private_cache_is_taken(directory: Path) -> None:
    assert cache.cache_directory() == directory
    directory.parent.chmod(0o1777)  # as /tmp
    assert cache.cache_directory() == directory


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_cache_that_others_write_to_is_refused(directory: Path, mode: int) -> None:
    directory.chmod(mode)
    with pytest.raises(
        BuildError, match=rf"{directory} can be written by others .*`chmod -R go-w {directory}`.*LAPWING_CACHE"
    ):
        cache.cache_directory()


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_above_that_others_write_to_is_refused(directory: Path, exists: bool) -> None:
    directory.parent.chmod(0o777)
    if not exists:
        directory.rmdir()
    with pytest.raises(BuildError, match=rf"{directory.parent} can be written by others.*chmod go-w"):
        cache.cache_directory()


@needs_root
def test_a_cache_of_another_user_is_refused(directory: Path) -> None:
    os.chown(directory, OTHER, -1)
    with pytest.raises(BuildError, match=rf"belongs to user {OTHER}, and you are root \(user 0\).*set LAPWING_CACHE"):
        cache.cache_directory()


@needs_root
@pytest.mark.parametrize("through_link", [True, False])
def test_a_folder_above_of_another_user_is_refused(
    directory: Path, through_link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(directory.parent, OTHER, -1)
    if through_link:
        (tmp_path / "link").symlink_to("above/cache")
        monkeypatch.setenv("LAPWING_CACHE", str(tmp_path / "link"))
    with pytest.raises(BuildError, match=f"{directory.parent} belongs to user {OTHER}"):
        cache.cache_directory()


@needs_root
def test_a_link_of_another_user_is_refused(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    link.symlink_to(directory)
    monkeypatch.setenv("LAPWING_CACHE", str(link))
    assert cache.cache_directory() == link
    os.chown(link, OTHER, -1, follow_symlinks=False)
    with pytest.raises(BuildError, match=f"{link} belongs to user {OTHER}"):
        cache.cache_directory()


def library(directory: Path) -> Path:
    path = directory / "tile.so"
    path.write_bytes(b"code")
    cache._seal(path)
    path.chmod(0o700)
    assert cache._is_intact(path)
    return path


def writable(path: Path) -> None:
    path.chmod(0o775)


def given_away(path: Path) -> None:
    os.chown(path, OTHER, -1)


def linked(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to("tile.real")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (writable, r"can be written by others \(-rwxrwxr-x\)"),
        pytest.param(given_away, "belongs to user", marks=needs_root),
        (linked, "is not a plain file"),
    ],
)
def test_a_library_that_others_can_change_is_refused(
    directory: Path, change: Callable[[Path], None], text: str
) -> None:
    path = library(directory)
    change(path)
    with pytest.raises(BuildError, match=text):
        cache._is_intact(path)


def test_new_directories_are_private_whatever_the_umask(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_CACHE", str(directory / "a" / "b"))
    before = os.umask(0)
    try:
        made = cache.make_cache_directory()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (made, made.parent)] == [0o700, 0o700]
    assert cache.cache_directory() == made


@pytest.mark.parametrize("home", ["", "here"])
def test_a_home_that_is_no_place(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAPWING_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    monkeypatch.setattr(ownership, "check_directory", lambda directory: None)
    assert (
        cache.cache_directory()
        == Path(os.path.expanduser("~root" if os.geteuid() == 0 else "~")) / ".cache" / "lapwing"
    )
