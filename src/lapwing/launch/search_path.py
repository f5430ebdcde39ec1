"""Where the user's file finds what it imports: in its own folder first, as with `python FILE`, but for what Lapwing rests on.

A neighbour called select.py or numpy.py must not take the place of the module of that name that Lapwing has yet to import,
so the standard library and the packages below are found where they were before the folder was added.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# What Lapwing imports while a file of the user's is loaded, and what that imports in turn.
_PACKAGES = frozenset("lapwing numpy mpi4py islpy click rich pygments markdown_it mdurl".split())


class _Foundations(MetaPathFinder):
    """Finds the standard library and Lapwing's packages on the search path as it was."""

    def __init__(self, path: Sequence[str]) -> None:
        self._path = path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None or not is_foundation(fullname):
            return None
        return PathFinder.find_spec(fullname, self._path, target)


def is_foundation(name: str) -> bool:
    """Whether a top-level module of this name is the standard library's, or one that Lapwing needs."""
    return name in sys.stdlib_module_names or name in _PACKAGES


def add_folder(folder: Path) -> None:
    """Put a folder first on the module search path."""
    if not any(isinstance(finder, _Foundations) for finder in sys.meta_path):
        path = [entry for entry in sys.path if entry and not _is_one_of(entry, (folder, Path()))]
        at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
        sys.meta_path.insert(at, _Foundations(path))
    sys.path.insert(0, str(folder))


def leave_current_directory() -> None:
    """Take the current directory off the module search path, where `python -m` puts it first."""
    if not sys.flags.safe_path and sys.path and _is_one_of(sys.path[0], (Path(),)):
        del sys.path[0]


def without_current_directory(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which Python does not import from the current directory.

    `python -m` does so first, and an empty entry of PYTHONPATH, which nobody means, as well.
    """
    path = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONSAFEPATH": environment.get("PYTHONSAFEPATH") or _SAFE,
    }


_SAFE = "lapwing"  # any text would do; this one is not the user's


def forget_environment() -> None:
    """What this process starts finds modules as ever."""
    if os.environ.get("PYTHONSAFEPATH") == _SAFE:
        del os.environ["PYTHONSAFEPATH"]


def hidden_neighbour(error: BaseException, folder: Path) -> str | None:
    """The neighbour of the user's file that was meant, perhaps, where an import found another module of that name."""
    if isinstance(error, ImportError):
        name = error.name or ""
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        name = error.obj.__name__
    else:
        return None
    top = name.partition(".")[0]
    if not is_foundation(top):
        return None
    return next((found for found in (f"{top}.py", top) if (folder / found).exists()), None)


def _is_one_of(entry: str, folders: Sequence[Path]) -> bool:
    return any(os.path.realpath(entry) == os.path.realpath(folder) for folder in folders)
