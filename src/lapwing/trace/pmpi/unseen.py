"""Why the recording library saw nothing of an MPI program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


def why_unseen(words: Sequence[str], directory: Path) -> str | None:
    """Why an MPI program may have run that was not recorded; None where nothing says that one did."""
    other = directory / "other-mpi"
    if other.exists():
        found, path, own = os.fsdecode(other.read_bytes()).strip().split("\t")
        return (
            f"the program was not run: it uses {found} ({path or 'library not found'}), and mpicxx on PATH belongs to "
            f"{own}. Set LAPWING_MPICXX to the mpicxx of the program's MPI, and use that MPI's mpiexec."
        )
    if any(directory.glob("rank-*")):
        return "nothing was recorded: the recordings could not be created (see above)."
    programs = [path for path in map(shutil.which, words) if path is not None and _is_elf(path)]
    static = [path for path in programs if _has_static_mpi(path)]
    if static:
        return (
            f"nothing was recorded: {static[0]} is linked statically with MPI, which a preloaded library cannot see. "
            "Link it with the shared library (without -static)."
        )
    return None


def _is_elf(path: str) -> bool:
    with open(path, "rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _has_static_mpi(path: str) -> bool:
    data = Path(path).read_bytes()
    return b"PMPI_Init\0" in data and b"libmpi" not in data
