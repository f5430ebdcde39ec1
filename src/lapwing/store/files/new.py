"""Files that come into being complete: whoever finds one finds all of it, whichever process made it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def make_file(name: str, size: int, fill: Callable[[int], None], permissions: int | None = None) -> None:
    """Make a file of ``size`` bytes that the disk has room for, unless there is one by now; its folder, too.

    fill: called with the file's descriptor, to write what is not zero. permissions: None for those that new files have.
    Raises OSError: no room is an error here, not when something is written.
    """
    os.makedirs(os.path.dirname(name), exist_ok=True)
    beside = f"{name}.{secrets.token_hex(6)}.part"
    descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
    try:
        try:
            if permissions is not None:
                os.fchmod(descriptor, permissions)
            reserve(descriptor, size)
            fill(descriptor)
        finally:
            os.close(descriptor)
        _give_name(beside, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)


def reserve(descriptor: int, size: int) -> None:
    """Have the disk set room for so many bytes aside, which read as zero until they are written. Raises OSError."""
    if size == 0:
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        os.ftruncate(descriptor, max(size, os.fstat(descriptor).st_size))


def _give_name(beside: str, name: str) -> None:
    """Name a file. Of two processes that do so the first wins: the other may write to that file already."""
    try:
        with contextlib.suppress(FileExistsError):
            os.link(beside, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not os.path.exists(name):
            os.rename(beside, name)
