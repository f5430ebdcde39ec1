"""Whether others than the user can change what is loaded from a directory: then nothing is.

Whoever can write to a directory of compiled code, to one above it, or to a symbolic link on the way, can have this user run
what they like. As root does, whose word holds anyway, only the user may.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from lapwing.errors import BuildError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # on the way to a file, as the kernel has it
_WAY_OUT = "set LAPWING_CACHE to a directory of your own"


def check_directory(directory: Path) -> None:
    """Raise BuildError where a directory, as far as it exists, belongs to another user or can be changed by one.

    directory: an absolute path. Where it is sticky, others can add to it but change nothing: what is there is to be checked
    file by file.
    """
    *above, last = _passed(directory)
    for path, found in above:
        _check_above(directory, path, found)
    path, found = last
    if path != os.path.realpath(directory):  # it does not exist yet
        _check_above(directory, path, found)
        return
    _check(f"the cache directory {directory}", str(directory), found)


def check_file(path: Path) -> None:
    """Raise BuildError where a file in a cache directory belongs to another user or can be changed by one.

    Raises OSError where there is no such file.
    """
    found = path.lstat()
    what = f"{path}, in the cache directory,"
    if not stat.S_ISREG(found.st_mode):
        raise BuildError(f"{what} is not a plain file. Remove it, or {_WAY_OUT}.")
    _check(what, str(path), found)


def _check(what: str, path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise BuildError(
            f"{what} belongs to {_user(found.st_uid)}, and you are {_user(os.geteuid())}: nothing is loaded from it. "
            f"Remove it, or {_WAY_OUT}."
        )
    if _others_write(found):
        raise BuildError(
            f"{what} can be written by others ({stat.filemode(found.st_mode)}): nothing is loaded from it. "
            f"`chmod -R go-w {path}` if you trust what is there, else remove it; or {_WAY_OUT}."
        )


def _check_above(directory: Path, path: str, found: os.stat_result) -> None:
    """Check a directory or a symbolic link on the way."""
    what = f"the cache directory {directory} is not safe from other users: {path}"
    if found.st_uid not in (os.geteuid(), 0) and not _is_unmapped(found.st_uid):
        raise BuildError(f"{what} belongs to {_user(found.st_uid)}. {_WAY_OUT[0].upper()}{_WAY_OUT[1:]}.")
    if _others_write(found) and not _is_own_group(found):
        raise BuildError(
            f"{what} can be written by others ({stat.filemode(found.st_mode)}). `chmod go-w {path}`, or {_WAY_OUT}."
        )


def _others_write(found: os.stat_result) -> bool:
    """Whether others can change what is there; in a sticky directory they can only add to it."""
    mode = found.st_mode
    sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX
    return bool(mode & _OTHERS_WRITE) and not stat.S_ISLNK(mode) and not sticky


def _passed(path: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The directories and symbolic links on the way to a path, itself included, as far as they exist."""
    at, links = "/", 0
    yield at, os.lstat(at)
    rest = list(reversed(path.parts[1:]))
    while rest:
        name = rest.pop()
        if name == "..":
            at = os.path.dirname(at)
            continue
        step = os.path.join(at, name)
        try:
            found = os.lstat(step)
            target = os.readlink(step) if stat.S_ISLNK(found.st_mode) else None
        except OSError:
            return
        yield step, found
        if target is None:
            at = step
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        at = "/" if target.startswith("/") else at
        rest += reversed([part for part in target.split("/") if part not in ("", ".")])


def _is_own_group(found: os.stat_result) -> bool:
    """Whether the others that can write are a group with nobody else in it, as many systems give every user."""
    if found.st_mode & stat.S_IWOTH:
        return False
    with contextlib.suppress(KeyError):
        me, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(found.st_gid)
        return group.gr_name in (me.pw_name, "root") and set(group.gr_mem) <= {me.pw_name, "root"}
    return False


def _is_unmapped(uid: int) -> bool:
    """Whether a user namespace, as of a container without privileges, shows the owner as nobody: root of the host, mostly."""
    try:
        nobody = int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
        mapped = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return False
    return uid == nobody and mapped != ["0", "0", "4294967295"]


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (user {uid})"
    except KeyError:
        return f"user {uid}"
