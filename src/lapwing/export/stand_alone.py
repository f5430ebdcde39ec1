"""Writes a nest as a stand-alone C++ program: sources, tables, arrays, and how to build them, in a directory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing import __version__
from lapwing.codegen.tile import tile_source
from lapwing.errors import BuildError, LapwingError, RefusedError
from lapwing.export.description import nest_source
from lapwing.export.tables import program_bytes
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.loopnest.binding.promotion import PARTS
from lapwing.loopnest.binding.typed import numpy_loops
from lapwing.planner.plan import Plan
from lapwing.runtime.binding import native
from lapwing.tiling.faces import faces_of
from lapwing.tiling.skewing import skewed_nest

_TEMPLATES = Path(__file__).parent / "program"
_CODEGEN = Path(__file__).parent.parent / "codegen"
_RUNTIME = Path(__file__).parent.parent / "runtime" / "cpp"
_BUILD_FILES = ("Makefile", "CMakeLists.txt")
_SERIAL = "serial.cpp"  # of no use with an MPI


def sources(bound: BoundNest, plan: Plan) -> dict[str, str]:
    """The program's text by relative path; it depends on the nest's types and structure, never on sizes.

    Raises RefusedError for a nest that needs Python as it runs.
    """
    check_stands_alone(bound)
    texts = {
        f"src/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_RUNTIME.iterdir()) if _is_source(path)
    }
    texts |= {
        f"src/{path.name}": path.read_text(encoding="utf-8")
        for path in sorted(_TEMPLATES.iterdir())
        if _is_source(path)
    }
    texts["src/support.h"] = (_CODEGEN / "support.h").read_text(encoding="utf-8")
    in_plan = skewed_nest(bound, plan.skew)
    texts["src/tile.c"] = tile_source(in_plan, faces_of(in_plan), plan.inner.form)
    texts["src/nest.c"] = nest_source(bound)
    for name in _BUILD_FILES:
        texts[name] = _filled(name, _build_words(bound, _tile_flags(texts["src/tile.c"])))
    return texts


def export(
    directory: Path,
    bound: BoundNest,
    plan: Plan,
    arrays: Mapping[str, npt.NDArray[Any]] | None,
    report: Callable[[float], None] | None = None,
) -> None:
    """Write the program for a plan into a new or empty directory.

    arrays: of one run, by name; None leaves ``data`` empty. report: told the fraction done.
    Raises RefusedError for a directory that holds something, cannot be written, or is on a disk without room, and where the
    nest has nothing to do.
    """
    check_directory(directory)
    check_not_empty(bound)
    texts = sources(bound, plan)
    texts["README.md"] = _filled("README.md", _readme_words(bound, plan))
    program = program_bytes(bound, plan, report)
    total = sum(len(text) for text in texts.values()) + len(program) + sum(a.nbytes for a in (arrays or {}).values())
    _check_room(directory, total)
    try:
        for name, text in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (directory / "program.bin").write_bytes(program)
        (directory / "data").mkdir()
        for name, values in (arrays or {}).items():
            np.save(directory / "data" / f"{name}.npy", np.ascontiguousarray(values), allow_pickle=False)
    except OSError as error:
        raise LapwingError(f"{directory}: cannot be written: {error.strerror}.") from error


def check_not_empty(bound: BoundNest) -> None:
    """Raise RefusedError where the nest has no iterations."""
    if bound.domain.is_empty:
        raise RefusedError(
            f"{bound.nest.where(bound.nest.line)}: {bound.nest.name} has no iterations for these sizes: a program would have "
            "nothing to do."
        )


def check_stands_alone(bound: BoundNest) -> None:
    """Raises RefusedError for a nest that calls NumPy's own code, which is not there without Python."""
    if not (loops := numpy_loops(bound.body)):
        return
    name, dtype = loops[0]
    other = f"math.{name.replace('arc', 'a').replace('power', 'pow')}"
    advice = "write math.sqrt(x * x + y * y)" if name == "hypot" else f"write {other}, of C's math library"
    if dtype in PARTS:
        advice = _OF_COMPLEX_NUMBERS.get(name, "write it out for z.real and z.imag, with functions of math")
    raise RefusedError(
        f"{bound.nest.where(bound.nest.line)}: {bound.nest.name} calls numpy.{name}, whose bits only NumPy's own code gives, and "
        f"an exported program runs without it: {advice}"
    )


_OF_COMPLEX_NUMBERS = {
    "multiply": "write numpy.complex128(x) * z, where x is a real number of NumPy's",
    "absolute": "write abs(z)",
    "power": "write products, as z * z * z",
}


def check_directory(directory: Path) -> None:
    """Raise RefusedError unless the directory is new or empty, and can be written."""
    try:
        if directory.exists() and not directory.is_dir():
            raise RefusedError(f"{directory} is a file, expected a directory. Name another.")
        if directory.is_dir() and any(directory.iterdir()):
            raise RefusedError(f"{directory} is not empty. Name a new directory, or empty it first.")
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(f"{directory}: cannot be made: {error.strerror}. Name another directory.") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RefusedError(f"{directory}: no permission to write there. Name another directory.")


def _check_room(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise RefusedError(
            f"{directory}: the program and its arrays take {needed:,} bytes, but {free:,} are free there. "
            "Name a directory elsewhere, or leave the arrays out: --no-data."
        )


def _is_source(path: Path) -> bool:
    return path.suffix in (".h", ".hpp", ".cpp") and path.name != _SERIAL


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _tile_flags(tile: str) -> tuple[str, ...]:
    """What the tile is compiled with; where there is no compiler to ask, what usually does."""
    try:
        return native.exact_tile_flags(tile, None)
    except BuildError:
        return native.TILE_FLAGS


def _build_words(bound: BoundNest, flags: Sequence[str]) -> dict[str, str]:
    libraries = [flag for flag in flags if flag.startswith("-l")]
    tile = [flag for flag in flags if flag not in libraries]
    return {
        "NAME": bound.nest.name,
        "TILE_FLAGS": " ".join(tile),
        "RUNTIME_FLAGS": " ".join(native.RUNTIME_FLAGS),
        "LIBRARIES": " ".join(libraries),
        "TILE_OPTIONS": ";".join(tile),
        "RUNTIME_OPTIONS": ";".join(native.RUNTIME_FLAGS),
        "LIBRARY_OPTIONS": " ".join(libraries),
    }


def _readme_words(bound: BoundNest, plan: Plan) -> dict[str, str]:
    arrays = [
        f"- `data/{a.name}.npy`: {a.dtype}, shape {a.shape}"
        + (f"; `out/{a.name}.npy` is what becomes of it" if a.name in bound.nest.written else "")
        for a in bound.arrays
    ]
    scalars = [f"- `{name}` = {value}" for name, value in bound.parameters.items()]
    return {
        "NAME": bound.nest.name,
        "VERSION": __version__,
        "SOURCE": bound.nest.where(bound.nest.line),
        "RANKS": str(plan.ranks),
        "ENGINE": plan.engine,
        "PLAN": "\n".join("    " + line for line in str(plan).splitlines()),
        "ARRAYS": "\n".join(arrays),
        "SCALARS": "\n".join(scalars) or "None.",
    }
