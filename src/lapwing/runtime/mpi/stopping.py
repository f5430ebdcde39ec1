"""A rank that meets an error of the plain loop tells the others in mid-run, so that all come to an end soon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_TAG = 78  # transports use the first few


class StopSignal:
    """The signal between the ranks of comm (mpi4py) during one run.

    A place is where a rank stands in the order of the plain loop: sweep, phase, and the block of this rank in the order of the
    phase's loops; ``numbers`` of them on every rank.
    """

    def __init__(self, comm: Any, helper_thread: bool, numbers: int) -> None:
        from mpi4py import MPI

        # With a helper thread two threads would be in MPI at a time.
        self._works = not helper_thread or MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._comm, self._numbers = comm, numbers
        self._sent: list[Any] = []
        self._heard: dict[int, tuple[int, ...]] = {}

    def tell(self, place: tuple[int, ...]) -> None:
        """Tell all other ranks that this one has stopped computing at that place."""
        if self._works:
            told = np.array(place, np.int64)
            others = (r for r in range(self._comm.Get_size()) if r != self._comm.Get_rank())
            self._sent = [self._comm.Isend(told, dest=other, tag=_TAG) for other in others]

    def stop_before(self, place: tuple[int, ...]) -> tuple[int, ...] | None:
        """The first place where another rank has stopped, if it comes before a place of this rank's: nothing there counts.

        What comes before must still be computed: it may hold the first error, and must not make one up.
        """
        while self._works and self._comm.Iprobe(tag=_TAG, status=(status := _status())):
            self._receive(status.Get_source())
        first = min(self._heard.values(), default=place)
        return first if first < place else None

    def drain(self, told: Sequence[int]) -> None:
        """After the run: take what these ranks, the same on every rank, have told, so that the next run hears nothing of it."""
        from mpi4py import MPI

        if not self._works:
            return
        for rank in told:
            if rank != self._comm.Get_rank() and rank not in self._heard:
                self._receive(rank)
        MPI.Request.Waitall(self._sent)

    def _receive(self, rank: int) -> None:
        place = np.empty(self._numbers, np.int64)
        self._comm.Recv(place, source=rank, tag=_TAG)
        self._heard[rank] = tuple(map(int, place))


def _status() -> Any:
    from mpi4py import MPI

    return MPI.Status()
