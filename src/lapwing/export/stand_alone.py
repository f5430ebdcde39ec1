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
_RUNTIME = Path(__file__).parent.parent / "runtime" / "cpp"
_BUILD_FILES = ("Makefile", "CMakeLists.txt")
_SERIAL = "serial.cpp"  # of no use with an MPI


def sources(bound: BoundNest, plan: Plan) -> dict[str, str]:
    """The program's text by relative path; it depends on the nest's types and structure, never on sizes.

    Raises RefusedError for a nest that needs Python as it runs.
    """
    check_stands_alone(bound)
    texts = common_sources()
    in_plan = skewed_nest(bound, plan.skew)
    texts["src/tile.c"] = tile_source(in_plan, faces_of(in_plan), plan.inner.form, stores_all=True)
    texts["src/nest.c"] = nest_source(bound)
    return texts | build_files(bound.nest.name, "nest", {"tile": texts["src/tile.c"]})


def common_sources() -> dict[str, str]:
    """What all programs have in common: the runtime, and what reads and writes files."""
    folders = [*sorted(_RUNTIME.iterdir()), *sorted(_TEMPLATES.iterdir()), *native.HEADERS]
    return {f"src/{path.name}": path.read_text(encoding="utf-8") for path in folders if _is_source(path)}


def build_files(name: str, description: str, tiles: Mapping[str, str]) -> dict[str, str]:
    """How a program of that name is built. description: the C file that names what it works on; tiles: the text of the others,
    by the name of their files."""
    words = _build_words(name, _tile_flags(list(tiles.values())))
    words |= {
        "DESCRIPTION": description,
        "TILES": " ".join(f"build/{tile}.o" for tile in tiles),
        "TILE_SOURCES": " ".join(f"src/{tile}.c" for tile in tiles),
    }
    return {file: filled(file, words) for file in _BUILD_FILES}


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
    texts["README.md"] = filled("README.md", _readme_words(bound, plan))
    write_program(directory, texts, program_bytes(bound, plan, report), arrays or {})


def write_program(
    directory: Path, texts: Mapping[str, str], program: bytes, arrays: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write sources, tables and arrays into a directory. Raises as ``export`` does."""
    total = sum(len(text) for text in texts.values()) + len(program) + sum(a.nbytes for a in arrays.values())
    _check_room(directory, total)
    try:
        for name, text in texts.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (directory / "program.bin").write_bytes(program)
        (directory / "data").mkdir()
        for name, values in arrays.items():
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


def filled(template: str, words: Mapping[str, str]) -> str:
    """A file of export/program with these words in the places of their names."""
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text


def _tile_flags(tiles: Sequence[str]) -> tuple[str, ...]:
    """What tiles are compiled with; where there is no compiler to ask, what usually does."""
    try:
        return tuple(dict.fromkeys(flag for tile in tiles for flag in native.exact_tile_flags(tile, None)))
    except BuildError:
        return native.TILE_FLAGS


def _build_words(name: str, flags: Sequence[str]) -> dict[str, str]:
    libraries = [flag for flag in flags if flag.startswith("-l")]
    tile = [flag for flag in flags if flag not in libraries]
    return {
        "NAME": name,
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
