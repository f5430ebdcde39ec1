"""Renaming in one step, where what is renamed and what is there both matter."""

from __future__ import annotations

import ctypes
import errno
import os

_AT_FDCWD = -100
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
# That the system, or the file system, has no such call.
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def exchange(one: str, other: str) -> bool:
    """Have two files or folders change places; False where the system cannot do that in one step. Raises OSError."""
    return _rename(one, other, _RENAME_EXCHANGE)


def rename_new(old: str, new: str) -> None:
    """Rename, if nothing is called ``new`` yet. Raises FileExistsError, and OSError."""
    if _rename(old, new, _RENAME_NOREPLACE):
        return
    if os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    os.rename(old, new)


def sync_folder(path: str) -> None:
    """Wait until what a folder holds, by name, is on the disk, if the file system can do that. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _MISSING:
            raise
    finally:
        os.close(descriptor)


def _rename(old: str, new: str, flag: int) -> bool:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), ctypes.c_uint(flag)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _MISSING:
        return False
    raise OSError(number, os.strerror(number), old, None, new)
