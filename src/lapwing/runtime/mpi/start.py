"""Starting MPI: as late as possible, and through the user's own library."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from lapwing.codegen.compilation.cache import build_shared_library
from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import RunError
from lapwing.launcher import launched_size, launcher_rank
from lapwing.notices import say
from lapwing.runtime.binding import native
from lapwing.runtime.mpi.patience import MEETING_SECONDS, patience_seconds
from lapwing.runtime.mpi.place import at_place


def start_mpi(what: str = "") -> None:
    """Load and initialise MPI. Raises RunError as ``world`` does."""
    with _starting:
        if not _starts:
            _start_mpi(what)
            _starts.append(True)


_starting = threading.Lock()
_starts: list[bool] = []


def _start_mpi(what: str) -> None:
    runtime = native.mpi_runtime(say if launcher_rank() == 0 else None)
    if "mpi4py.MPI" not in sys.modules:
        os.environ.setdefault("MPI4PY_LIBMPI", str(_mpi_library()))
        patience = patience_seconds(MEETING_SECONDS)
        # MPI starts on all ranks together, in a call that no signal handler and no thread of Python's can end.
        text = (
            f"lapwing: rank {launcher_rank()} at {at_place(what)}: MPI has not started after {patience:g} s: some rank has not "
            "arrived at its first call of MPI, or has ended before. LAPWING_PATIENCE=SECONDS allows longer waits.\n"
        )
        runtime.lw_watch(patience, text.encode())
        try:
            from mpi4py import MPI
        finally:
            runtime.lw_unwatch()
    from mpi4py import MPI

    ours = native.library_version(runtime)
    theirs = MPI.Get_library_version().rstrip("\0")
    if ours[: len(theirs)].strip() != theirs.strip():
        raise RunError(
            f"mpi4py uses {_first_line(theirs)}, but mpicxx belongs to {_first_line(ours)}. "
            "Put the MPI that mpi4py was built for first on PATH, or set LAPWING_MPICXX to its mpicxx."
        )
    wanted = launched_size()
    if wanted is not None and wanted != MPI.COMM_WORLD.Get_size():
        raise RunError(
            f"the launcher started {wanted} processes but MPI sees {MPI.COMM_WORLD.Get_size()}: mpiexec and the MPI library "
            f"({_first_line(theirs)}) do not belong together. Start with the mpiexec beside {find_mpi().mpicxx.command[0]}."
        )


def _mpi_library() -> Any:
    """The MPI library for mpi4py: the one the runtime is linked with, under the name mpi4py's wheel looks for.

    Debian's MPICH is called libmpich.so.12 where mpi4py's wheel needs a libmpi.so.12: an empty library of that name
    that pulls in the real one stands in.
    """
    mpi = find_mpi()
    if mpi.library is None or mpi.library.name != "libmpich.so.12":
        return mpi.library or "libmpi.so"
    return build_shared_library(
        name="libmpi-shim", sources={"shim.cpp": "\n"}, main=["shim.cpp"], compiler=mpi.mpicxx,
        flags=["-Wl,-soname,libmpi.so.12", "-Wl,--no-as-needed"], announce=None,
    )  # fmt: skip


def _first_line(text: str) -> str:
    return " ".join(text.split("\n")[0].split())
