"""Ending all ranks of an MPI run when one of them cannot go on."""

from __future__ import annotations

import signal
import sys
import threading
import time
from functools import cache
from typing import Any

from lapwing.launcher import launched_together

_ABORT_SECONDS = 3
_START_SECONDS = 10  # for MPI to start on a rank that has failed before, so that it can end the others
_READING_SECONDS = 0.2  # that launchers get to read why a rank ends: what they have not read when it does is lost


def abort(comm: Any) -> None:
    """End all ranks of comm (mpi4py), this one within seconds in any case."""
    # MPI_Abort waits for messages in flight, for ever where the network is gone. No thread could end that wait: mpi4py
    # holds the interpreter meanwhile.
    _end_after(_ABORT_SECONDS)
    comm.Abort(1)


def _end_after(seconds: int) -> None:
    if threading.current_thread() is threading.main_thread():  # in no other may Python change what a signal does
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)


def say_and_abort(text: str, comm: Any) -> None:
    """End all ranks of comm (mpi4py) after one line on standard error."""
    print(f"lapwing: {text}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    time.sleep(_READING_SECONDS)
    abort(comm)


@cache
def end_all_on_error() -> None:
    """From now on an uncaught error on this rank ends all ranks: the others would wait for its messages for ever.

    It needs no MPI, and does nothing in a process that was not started together with others.
    """
    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        previous(kind, value, trace)
        sys.stderr.flush()
        sys.stdout.flush()
        if (world := _world()) is not None:
            time.sleep(_READING_SECONDS)
            abort(world)

    sys.excepthook = hook


def _world() -> Any:
    """All ranks; None where there are no others. Where MPI has not started it is started: others may wait for that."""
    if "mpi4py.MPI" not in sys.modules:
        if not launched_together():
            return None
        from lapwing.runtime.mpi.start import start_mpi

        _end_after(_START_SECONDS)
        start_mpi()
    mpi = sys.modules["mpi4py.MPI"]
    if not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.Get_size() == 1:
        return None
    return mpi.COMM_WORLD
