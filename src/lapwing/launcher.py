"""What the launcher of an MPI run tells the processes it starts, known before there is any MPI."""

from __future__ import annotations

import os
from functools import cache

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PALS_NRANKS", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE")
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PALS_RANKID")
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
_LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "MV2_COMM_WORLD_LOCAL_RANK")
_MARKS = ("PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_PORT")


def launched_size() -> int | None:
    """How many processes were started together, where the launcher says so."""
    return _number(_SIZES)


@cache
def launched_together() -> bool:
    """Whether this process is, by the launcher's word, one of several. Asked once: every call of a nest wants to know."""
    size = launched_size()
    return size > 1 if size is not None else any(name in os.environ for name in _MARKS)


def is_rank() -> bool:
    """Whether an MPI launcher started this process."""
    return any(name in os.environ for name in _RANKS)


def launcher_rank() -> int:
    """This process's number among those started together; 0 where the launcher does not say."""
    return _number(_RANKS) or 0


def local_place() -> tuple[int, int] | None:
    """This process's number among those started on this node, and how many these are."""
    number, size = _number(_LOCAL_RANKS), _number(_LOCAL_SIZES)
    return None if number is None or size is None else (number, size)


def _number(names: tuple[str, ...]) -> int | None:
    return next((int(os.environ[n]) for n in names if os.environ.get(n, "").isdigit()), None)
