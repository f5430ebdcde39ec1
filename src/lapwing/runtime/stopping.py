"""A rank that meets an error of the plain loop tells the others in mid-run, so that all come to an end soon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_TAG = 78  # transports use the first few


class StopSignal:
    """The signal between the ranks of comm (mpi4py) during one run."""

    def __init__(self, comm: Any, helper_thread: bool) -> None:
        from mpi4py import MPI

        # With a helper thread two threads would be in MPI at a time.
        self._works = not helper_thread or MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._comm = comm
        self._sent: list[Any] = []
        self._nothing = np.empty(0, np.uint8)

    def tell(self) -> None:
        """Tell all other ranks that this one has stopped computing."""
        if self._works:
            others = (r for r in range(self._comm.Get_size()) if r != self._comm.Get_rank())
            self._sent = [self._comm.Isend(self._nothing, dest=other, tag=_TAG) for other in others]

    def heard(self) -> bool:
        """Whether another rank has told so."""
        return self._works and bool(self._comm.Iprobe(tag=_TAG))

    def settle(self, told: Sequence[int]) -> None:
        """After the run: take what these ranks, the same on every rank, have told, so that the next run hears nothing of it."""
        from mpi4py import MPI

        if not self._works:
            return
        for rank in told:
            if rank != self._comm.Get_rank():
                self._comm.Recv(self._nothing, source=rank, tag=_TAG)
        MPI.Request.Waitall(self._sent)
