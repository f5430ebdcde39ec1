"""What the first rank of an MPI run does and knows for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lapwing.errors import LapwingError, RunError
from lapwing.runtime.mpi import communicator


def from_first(comm: Any | None, value: Callable[[], Any]) -> Any:
    """A value that the first rank knows, on all ranks."""
    if comm is None:
        return value()
    return comm.bcast(value() if comm.Get_rank() == 0 else None, root=0)


def on_first(comm: Any | None, action: Callable[[], Any]) -> Any:
    """Do something on the first rank while the others wait idly; its LapwingError is raised on all. None elsewhere."""
    if comm is None:
        return action()
    result, failure = None, None
    if comm.Get_rank() == 0:
        try:
            result = action()
        except LapwingError as error:
            failure = error
        except MemoryError as error:
            failure = RunError(f"not enough memory ({error or 'no details'}). Use a smaller problem.")
    communicator.meet(comm)
    failure = comm.bcast(failure, root=0)
    if failure is not None:
        raise failure
    return result
