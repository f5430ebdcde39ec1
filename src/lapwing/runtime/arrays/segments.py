"""Memory that ranks of one node export and import (P1): a neighbour stores faces straight into it.

A segment has no name in any file system: it lives as long as somebody maps it, so nothing is left behind however a run ends.
Linux only; elsewhere, and between containers that do not see each other's processes, there are no segments and
messages go through buffers.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Segment:
    """``memory``: the bytes (uint8), mapped here. Process ``pid`` holds it open as descriptor ``fd``."""

    pid: int
    fd: int
    memory: npt.NDArray[np.uint8] = field(repr=False, compare=False)
    keeper: Any = field(default=None, repr=False, compare=False)

    @property
    def address(self) -> int:
        return int(self.memory.ctypes.data)


class _Descriptor:
    """Closes the descriptor when the segment is gone."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


def export_segment(size: int) -> Segment | None:
    """Memory of ``size`` bytes that other processes of this node can import; None where the system has none to give."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        fd = os.memfd_create("lapwing")
    except OSError:
        return None
    keeper = _Descriptor(fd)
    try:
        # Reserved now: a page that is missing later would kill the process.
        os.posix_fallocate(fd, 0, size)
        return Segment(os.getpid(), fd, _mapped(fd, size), keeper)
    except OSError:
        return None


def import_segment(pid: int, fd: int, size: int) -> npt.NDArray[np.uint8] | None:
    """The bytes of another process's segment, mapped here; None where that process cannot be reached."""
    try:
        opened = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
    except OSError:
        return None
    try:
        return _mapped(opened, size)
    except OSError:
        return None
    finally:
        os.close(opened)


def _mapped(fd: int, size: int) -> npt.NDArray[np.uint8]:
    mapping = mmap.mmap(fd, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Not offered for shared memory by every system.
        with contextlib.suppress(OSError):
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapping, np.uint8)
