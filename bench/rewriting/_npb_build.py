"""NPB built for the simulator or for a real MPI: as it is, and as `lapwing overlap` rewrites it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lapwing.errors import BuildError

TOOLS = ("make", "gcc")  # gcc: of NPB's own setparams
SHARED = ("config", "sys", "common")  # folders of NPB that every benchmark is built with
_BUILT = shutil.ignore_patterns("*.o", "*.mod", "*.x", "npbparams.h", "setparams", "make.def")
_SHOWN_LINES = 20

# NPB's randi8 has a hexadecimal constant in a form that gfortran only takes when told.
_MAKE_DEF = """\
MPIFC = {fortran}
FLINK = {fortran_linker}
FFLAGS = -O3 -fallow-argument-mismatch -fallow-invalid-boz -w
FLINKFLAGS = -O3
MPICC = {c}
CLINK = {c}
CFLAGS = -O3
CLINKFLAGS = -O3
CC = gcc
BINDIR = ../bin
RAND = randi8
"""

# smpif90 makes the main program the subroutine that the simulator starts in .f90 files only, and forgets .o names of others.
_FORTRAN = """\
#!/bin/sh
# smpif90 for FILE.f, the last argument: the main program becomes the subroutine that the simulator calls.
for source; do :; done
name=$(basename "$source" .f)
sed 's/^\\( *\\)\\(end *\\)\\{0,1\\}program  *[a-z0-9_]* *$/\\1\\2subroutine user_main/I' "$source" > "$name.smpi.f" || exit 1
set -- "$@" "$name.smpi.f" -o "$name.o"
for argument; do
    shift
    [ "$argument" = "$source" ] || set -- "$@" "$argument"
done
exec smpif90 "$@"
"""


@dataclass(frozen=True)
class Compilers:
    """The MPI's compilers, as NPB's makefiles are to call them; fortran: for sources that are not linked yet."""

    c: str
    fortran: str
    fortran_linker: str


SIMULATED = Compilers(c="smpicc", fortran="../config/smpif77", fortran_linker="smpif90")


@dataclass(frozen=True)
class Overlapped:
    """What the tool did: its own seconds, the sources as it left them, its JSON, and whether it changed any of them."""

    seconds: float
    texts: dict[str, bytes]
    outcome: dict[str, Any]
    changed: bool


def missing_tools(*more: str) -> list[str]:
    return [tool for tool in (*TOOLS, *more) if shutil.which(tool) is None]


def find_npb(path: Path) -> Path | None:
    """The folder of NPB-MPI that ``path`` is, or holds; the newest if several."""
    folders = [path, *sorted(path.glob("NPB*-MPI"), reverse=True)]
    return next((f for f in folders if all((f / part).is_dir() for part in SHARED)), None)


def copy_tree(npb: Path, benchmark: str, tree: Path, compilers: Compilers) -> Path:
    """Copy what the benchmark needs, and say how it is compiled; returns the benchmark's folder.

    Raises BuildError where NPB lacks it.
    """
    if not (npb / benchmark).is_dir():
        raise BuildError(f"{npb}: no folder {benchmark}. Give the path of an NPB with its MPI benchmarks.")
    for part in (*SHARED, benchmark):
        shutil.copytree(npb / part, tree / part, ignore=_BUILT)
    (tree / "bin").mkdir()
    (tree / "config" / "make.def").write_text(_MAKE_DEF.format(**asdict(compilers)))
    compiler = tree / "config" / "smpif77"
    compiler.write_text(_FORTRAN)
    compiler.chmod(0o755)
    return tree / benchmark


def build(folder: Path, class_: str) -> Path:
    """Build the benchmark in its folder; the program. Raises BuildError with the compiler's words."""
    tree = folder.parent
    for made in (*folder.glob("*.o"), *folder.glob("*.mod"), *(tree / "common").glob("*.o")):
        made.unlink()
    command = ["make", "-C", str(folder), f"CLASS={class_}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    program = tree / "bin" / f"{folder.name.lower()}.{class_}.x"
    if done.returncode != 0 or not program.is_file():
        raise BuildError(f"{folder.name} class {class_} could not be built:\n{_tail(done.stdout + done.stderr)}")
    return program


def compiled_sources(folder: Path) -> list[Path]:
    """The sources of all objects that the last build made."""
    objects = [*folder.glob("*.o"), *(folder.parent / "common").glob("*.o")]
    sources = (o.with_suffix(suffix) for o in sorted(objects) for suffix in (".f", ".f90", ".c"))
    return [source for source in sources if source.is_file()]


def overlap(folder: Path, progress_calls: bool) -> Overlapped:
    """Let the tool rewrite the built benchmark's sources in place, given nothing but their names.

    progress_calls: as the tool does by default; a simulator moves messages without being called, and charges for calls.
    Raises BuildError where it fails.
    """
    sources = compiled_sources(folder)
    before = _texts(sources)
    report = folder.parent / "overlap.json"
    command = [
        sys.executable, "-m", "lapwing", "overlap", *(os.path.relpath(source, folder) for source in sources),
        "-I", ".", "-I", "../common", "--in-place", "--json", str(report),
        *(() if progress_calls else ("--no-progress-calls",)),
    ]  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0 or not report.is_file():
        raise BuildError(f"lapwing overlap failed on {folder.name}:\n{_tail(done.stdout + done.stderr)}")
    after = _texts(sources)
    return Overlapped(seconds, after, json.loads(report.read_text()), before != after)


def _texts(sources: Sequence[Path]) -> dict[str, bytes]:
    return {f"{source.parent.name}/{source.name}": source.read_bytes() for source in sources}


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_SHOWN_LINES:])
