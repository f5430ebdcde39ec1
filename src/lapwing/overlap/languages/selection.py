"""Which files `lapwing overlap` reads: those that are named, and the sources in folders that are."""

from __future__ import annotations

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import RefusedError
from lapwing.overlap.languages.registry import FAMILIES
from lapwing.overlap.source.patch import holds_output
from lapwing.overlap.source.spans import Problem

_ENDINGS = frozenset[str]().union(*(family.endings for family in FAMILIES))
_BUILD_FOLDERS = frozenset({"build", "_build", "builddir", "CMakeFiles", "node_modules", "__pycache__"})
# A folder with any of these was made by a build system.
_BUILD_MARKS = ("CMakeCache.txt", "build.ninja", "meson-info")


@dataclass(frozen=True)
class Sources:
    """``files`` can be read; ``problems`` are of those that cannot."""

    files: tuple[Path, ...]
    problems: tuple[Problem, ...]


def find_sources(named: Sequence[Path], output: Path | None = None) -> Sources:
    """Every source once, in the order of the command line; folders are searched, except hidden ones, builds and ``output``,
    into which changed files will be written.

    Raises RefusedError if a named file does not exist, or nothing can be read.
    """
    files: dict[str, Path] = {}
    problems: list[Problem] = []
    for path in _every(named, output, problems):
        reason = _hindrance(path)
        if reason is not None:
            problems.append(Problem(path, 0, f"it was not read: {reason}"))
        else:
            files.setdefault(os.path.realpath(path), path)
    if not files:
        shown = ", ".join(str(path) for path in named[:5])
        expected = ", ".join(f"{family.title} ({_listed(family.endings)})" for family in FAMILIES)
        reasons = "".join(f"\n  {problem.path}: {problem.message}" for problem in problems)
        raise RefusedError(
            f"{shown}: no source that can be read. Expected {expected} files, or folders that hold some.{reasons}"
        )
    return Sources(tuple(files.values()), tuple(problems))


def _every(named: Iterable[Path], output: Path | None, problems: list[Problem]) -> Iterator[Path]:
    for path in named:
        if os.path.isdir(path):
            yield from _search(path, output, problems)
        elif os.path.lexists(path):
            yield path
        else:
            raise RefusedError(f"{path}: there is no such file or folder.")


def _search(folder: Path, output: Path | None, problems: list[Problem]) -> Iterator[Path]:
    def left_out(error: OSError) -> None:
        problems.append(Problem(Path(error.filename), 0, f"it was not searched for sources: {error.strerror}"))

    for root, folders, names in os.walk(folder, onerror=left_out):
        inner = [Path(root, name) for name in sorted(folders) if not name.startswith(".")]
        others = [path for path in inner if output is None or os.path.realpath(path) != os.path.realpath(output)]
        written = [path for path in others if holds_output(path)]
        problems += (Problem(path, 0, "it was not searched for sources: -o wrote into it") for path in written)
        folders[:] = [path.name for path in others if path not in written and not is_build(path)]
        for name in sorted(names):
            if not name.startswith(".") and _is_source(name):
                yield Path(root, name)


def is_build(folder: Path) -> bool:
    """Whether a folder contains build products: its files are copies, or not the user's."""
    named = folder.name in _BUILD_FOLDERS or folder.name.startswith("cmake-build-")
    return named or holds_a_build(folder)


def holds_a_build(folder: Path) -> bool:
    """Whether CMake, Meson or Ninja configured a folder: it then contains its own absolute path."""
    # Not by Path.exists(), which raises where the folder may not be entered.
    return any(os.path.exists(folder / mark) for mark in _BUILD_MARKS)


def _is_source(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in _ENDINGS


def _hindrance(path: Path) -> str | None:
    """Why a file cannot be read, if it cannot."""
    if not _is_source(path.name):
        return f"its name ends in none of {_listed(_ENDINGS)}"
    if os.path.exists(path) and not os.path.isfile(path):
        return "it is not a file"
    try:
        with open(path, "rb") as stream:
            start = stream.read(2)
    except OSError as error:
        return str(error.strerror)
    return (
        "it is UTF-16. Convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
        if start in (BOM_UTF16_LE, BOM_UTF16_BE)
        else None
    )


def _listed(endings: frozenset[str]) -> str:
    return " ".join(sorted(endings))
