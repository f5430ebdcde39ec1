"""Which of a process's threads may make collective calls: as many as MPI was initialised for, on a communicator each."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lapwing.errors import RefusedError

_lock = threading.Lock()
_ANY = -1  # in the place of a communicator where MPI takes one call at a time
_under_way: dict[int, int] = {}  # by communicator, the thread that is in a call on it


@contextmanager
def one_call(comm: Any, what: str) -> Iterator[None]:
    """For the time of a collective call on comm (mpi4py). Calls inside it, of the same thread, are part of it.

    Raises RefusedError where MPI was initialised for fewer threads, or another thread is in a call on the same communicator.
    """
    mpi = sys.modules["mpi4py.MPI"]
    level = mpi.Query_thread()
    _check_level(mpi, level, what)
    key, thread = (comm.py2f() if level == mpi.THREAD_MULTIPLE else _ANY), threading.get_ident()
    with _lock:
        holder = _under_way.get(key)
        if holder is None:
            _under_way[key] = thread
    if holder not in (None, thread):
        raise RefusedError(_busy(what, key))
    try:
        yield
    finally:
        if holder is None:
            del _under_way[key]


def _check_level(mpi: Any, level: int, what: str) -> None:
    if level < mpi.THREAD_SERIALIZED and not mpi.Is_thread_main():
        name = "MPI_THREAD_SINGLE" if level == mpi.THREAD_SINGLE else "MPI_THREAD_FUNNELED"
        raise RefusedError(
            f"{what}: called by another thread than MPI's main one, but MPI was initialised with {name}. Initialise it with "
            "MPI_THREAD_MULTIPLE, as mpi4py does by default, or make the call in the main thread."
        )


def _busy(what: str, key: int) -> str:
    if key == _ANY:
        return (
            f"{what}: another thread of this rank is in a call of Lapwing, but MPI was initialised with MPI_THREAD_SERIALIZED. "
            "Initialise it with MPI_THREAD_MULTIPLE, as mpi4py does by default, or make one call after the other."
        )
    return (
        f"{what}: another thread of this rank is in a call on the same communicator, and ranks could not tell the two apart. "
        "Give each thread a communicator of its own, made before the threads start: comm.Dup(), and comm= in the calls."
    )
