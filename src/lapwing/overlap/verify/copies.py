"""Copies of the user's project, in which commands are run so that the project itself stays as it is."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import LapwingError, RefusedError
from lapwing.overlap.languages.selection import holds_a_build
from lapwing.overlap.source.patch import FileChange


@dataclass(frozen=True)
class Project:
    """The folder that is copied, and the folder inside it, relative to it, in which commands run."""

    root: Path
    inside: Path


def find_project(sources: Sequence[Path], folder: Path, given: Path | None) -> Project:
    """The project of some sources: ``given``, or the Git work tree that holds them, or the deepest folder that holds them and
    ``folder``, which is where commands run if it lies inside.

    Raises RefusedError where that is no folder to copy, or not all sources lie in it.
    """
    real = [Path(os.path.realpath(source)) for source in sources]
    folder = Path(os.path.realpath(folder))
    shared = Path(os.path.commonpath([path.parent for path in real]))
    if given is not None:
        root = Path(os.path.realpath(given))
    else:
        root = _work_tree(shared) or Path(os.path.commonpath([shared, folder]))
    if root in (Path("/"), Path.home(), Path("/tmp")) and given is None:
        raise RefusedError(f"--verify would have to copy all of {root}. Say what the program needs with --project DIR.")
    outside = [path for path in real if not path.is_relative_to(root)]
    if outside:
        raise RefusedError(f"{outside[0]} is not in {root}, of which --verify makes copies. Name another --project.")
    if holds_a_build(root):
        raise RefusedError(
            f"--verify: {root} was configured by a build system that notes where it lies, so a copy would build this "
            "folder. Keep sources and build folder apart, and let the command configure anew."
        )
    return Project(root, folder.relative_to(root) if folder.is_relative_to(root) else Path("."))


def copy_project(project: Project, copy: Path) -> None:
    """Copy a project, without Git's data and without build folders that name the place they lie in.

    Raises LapwingError where that fails.
    """
    try:
        shutil.copytree(project.root, copy, symlinks=True, ignore=_left_out)
    except shutil.Error as error:
        source, _, reason = error.args[0][0]
        raise LapwingError(f"--verify: {source} cannot be copied: {reason}.") from None
    except OSError as error:
        raise LapwingError(f"--verify: {project.root} cannot be copied to {copy}: {error.strerror}.") from error
    _turn_links(project.root, copy)


def put(changes: Sequence[FileChange], project: Project, copy: Path, *, transformed: bool) -> None:
    """Write the files that change into a copy, before or after. In both, so that make has the same to do in both."""
    for change in changes:
        target = copy / Path(os.path.realpath(change.path)).relative_to(project.root)
        target.chmod(target.stat().st_mode | stat.S_IWUSR)
        target.write_bytes(change.after if transformed else change.before)


def _work_tree(folder: Path) -> Path | None:
    for candidate in (folder, *folder.parents):
        if (candidate / ".git").exists():
            return candidate
    return None


def _left_out(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if name == ".git" or _is_odd(Path(folder, name))}


def _is_odd(path: Path) -> bool:
    """Pipes, sockets and devices, and what CMake, Meson or Ninja configured."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return holds_a_build(path)
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def _turn_links(root: Path, copy: Path) -> None:
    """Links into the project lead into the copy, so that nothing in the project is written; others lead where they led."""
    for folder, folders, names in os.walk(copy):
        for name in (*folders, *names):
            link = Path(folder, name)
            if not link.is_symlink():
                continue
            target = os.readlink(link)
            place = root / Path(folder).relative_to(copy)
            meant = Path(os.path.normpath(place / target))
            turned = copy / meant.relative_to(root) if meant.is_relative_to(root) else meant
            if turned != Path(os.path.normpath(Path(folder) / target)):
                link.unlink()
                link.symlink_to(turned)
