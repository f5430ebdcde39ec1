"""The memory that an MPI's ranks share, which outlives them in /dev/shm where they are killed.

MPICH 5 gives it a name in MPI_Init and takes the name away in MPI_Finalize, to which a rank that is killed never comes.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_SHARED = Path("/dev/shm")
_PREFIX = "mpich_shm_"
_YOUNG_SECONDS = 5.0  # a name may be there for a moment before the memory is mapped


def unname_mapped() -> None:
    """Take away the names of what this process has mapped. To be called when all ranks have: it then goes with the last."""
    for path in _mapped("self"):
        with contextlib.suppress(OSError):  # another rank was faster
            os.unlink(path)


def remove_abandoned_segments() -> None:
    """Remove this user's memory that no process has mapped any more: of ranks that were killed in MPI_Init."""
    old = {str(path) for path in _SHARED.glob(f"{_PREFIX}*") if _is_own_and_old(path)}
    if not old:
        return
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended, or is another user's or the system's: no rank of this user's
            old -= _mapped(process)
    for path in old:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _mapped(process: str) -> set[str]:
    """The named shared memory of an MPI that a process has mapped."""
    if not _SHARED.is_dir():
        return set()
    lines = Path(f"/proc/{process}/maps").read_bytes().splitlines()
    paths = (os.fsdecode(fields[5]) for fields in (line.split(None, 5) for line in lines) if len(fields) > 5)
    return {path for path in paths if path.startswith(f"{_SHARED}/{_PREFIX}") and not path.endswith(" (deleted)")}


def _is_own_and_old(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return found.st_uid == os.geteuid() and time.time() - found.st_ctime > _YOUNG_SECONDS
