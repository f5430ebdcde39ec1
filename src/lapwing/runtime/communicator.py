"""The MPI of this run: whether there is one, loaded as late as possible and through the user's own library."""

from __future__ import annotations

import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from lapwing.codegen.cache import build_shared_library
from lapwing.codegen.toolchain import find_mpi
from lapwing.errors import LapwingError, RunError
from lapwing.runtime import native

# What launchers tell the processes they start.
_LAUNCHER_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_NRANKS", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE")
Result = TypeVar("Result")

_ROUND_TRIPS = 10
_ABORT_SECONDS = 3
_READING_SECONDS = 0.2  # that launchers get to read why a rank ends: what they have not read when it does is lost
_LAUNCHER_MARKS = ("PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_PORT")


def launched() -> bool:
    """Whether this process is one of several of an MPI run: by the MPI that is initialised, or by the launcher's word."""
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is not None and mpi4py.Is_initialized() and not mpi4py.Is_finalized():
        return bool(mpi4py.COMM_WORLD.Get_size() > 1)
    return _launched_by_its_word()


@cache
def _launched_by_its_word() -> bool:
    """What the launcher's variables say; asked once, since they are those the process was started with."""
    size = _launched_size()
    return size > 1 if size is not None else any(name in os.environ for name in _LAUNCHER_MARKS)


@cache
def world() -> Any:
    """A communicator of Lapwing's own over all ranks (mpi4py); loads and initialises MPI on first use.

    Raises RunError where mpi4py and the runtime would use different MPI libraries, or the launcher is another MPI's.
    """
    if "mpi4py.MPI" not in sys.modules:
        os.environ.setdefault("MPI4PY_LIBMPI", str(_mpi_library()))
    from mpi4py import MPI

    ours = native.library_version(native.mpi_runtime(announcer(launcher_rank() == 0)))
    theirs = MPI.Get_library_version().rstrip("\0")
    if ours[: len(theirs)].strip() != theirs.strip():
        raise RunError(
            f"mpi4py uses {_first_line(theirs)}, but mpicxx belongs to {_first_line(ours)}. "
            "Put the MPI that mpi4py was built for first on PATH, or set LAPWING_MPICXX to its mpicxx."
        )
    wanted = _launched_size()
    if wanted is not None and wanted != MPI.COMM_WORLD.Get_size():
        raise RunError(
            f"the launcher started {wanted} processes but MPI sees {MPI.COMM_WORLD.Get_size()}: mpiexec and the MPI library "
            f"({_first_line(theirs)}) do not belong together. Start with the mpiexec beside {find_mpi().mpicxx.command[0]}."
        )
    _end_all_on_error(MPI)
    return MPI.COMM_WORLD.Dup()


def agree(comm: Any, action: Callable[[], Result]) -> Result:
    """Do something on every rank; if any rank fails, raise its error on all of them, so that none waits for ever."""
    error: LapwingError | None = None
    result: Result | None = None
    try:
        result = action()
    except LapwingError as caught:
        error = caught
    failed = [e for e in comm.allgather(error) if e is not None]
    if failed:
        raise failed[0]
    return cast(Result, result)


def meet(comm: Any) -> None:
    """A barrier that takes no core from the others where a rank is late. Collective."""
    done = comm.Ibarrier()
    patient_from = time.monotonic() + 1e-3
    while not done.Test():
        if time.monotonic() > patient_from:
            time.sleep(0.002)  # MPI would wait by spinning


@cache
def ranks_of_node() -> frozenset[int]:
    """The ranks that share memory with this one, itself included. Collective on the first call."""
    from mpi4py import MPI

    comm = world()
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    ranks = frozenset(node.allgather(comm.Get_rank()))
    node.Free()
    return ranks


@cache
def clock_offset() -> float:
    """Seconds to add to this rank's clock so that it agrees with rank 0's. Collective on the first call.

    Ranks of one machine share a clock. Between machines the offset is taken from the quickest of several round trips.
    """

    comm = world()
    clock = native.mpi_runtime(None).lw_clock
    if len(ranks_of_node()) == comm.Get_size():
        return 0.0
    offset = 0.0
    for rank in range(1, comm.Get_size()):
        if comm.Get_rank() == 0:
            for _ in range(_ROUND_TRIPS):
                comm.recv(source=rank)
                comm.send(clock(), dest=rank)
        elif comm.Get_rank() == rank:
            trips = []
            for _ in range(_ROUND_TRIPS):
                start = clock()
                comm.send(None, dest=0)
                theirs = comm.recv(source=0)
                end = clock()
                trips.append((end - start, theirs - (start + end) / 2))
            offset = min(trips)[1]
    return offset


def abort(comm: Any) -> None:
    """End all ranks of comm (mpi4py), this one within seconds in any case."""
    # MPI_Abort waits for messages under way, for ever where the network is gone. No thread could end that wait: mpi4py
    # holds the interpreter meanwhile.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_ABORT_SECONDS)
    comm.Abort(1)


def host() -> str:
    """The name of this machine."""
    return platform.node()


def announcer(enabled: bool) -> Callable[[str], None] | None:
    """Where one line about a build goes: standard error, of one rank only."""
    return _announce if enabled else None


def _announce(text: str) -> None:
    print(f"lapwing: {text}", file=sys.stderr, flush=True)


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


def _launched_size() -> int | None:
    return next((int(os.environ[n]) for n in _LAUNCHER_SIZES if os.environ.get(n, "").isdigit()), None)


def launcher_rank() -> int:
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PALS_RANKID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _first_line(text: str) -> str:
    return " ".join(text.split("\n")[0].split())


def _end_all_on_error(mpi: Any) -> None:
    """An uncaught error on one rank ends all ranks: the others would wait for its messages for ever."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        previous(kind, value, trace)
        if mpi.COMM_WORLD.Get_size() > 1 and not mpi.Is_finalized():
            sys.stderr.flush()
            sys.stdout.flush()
            time.sleep(_READING_SECONDS)
            abort(mpi.COMM_WORLD)

    sys.excepthook = hook
