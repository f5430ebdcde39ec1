"""A new generation of all chunks in the place of the old one: readers find all of one, or all of the other.

Two folders change places, which Linux does in one step. Where the system cannot, they are renamed one after the other, and a
marker in the array's folder tells ``finish_replacement`` what is left to do should the process end in between.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable

from lapwing.errors import RefusedError
from lapwing.store.files.renaming import exchange, sync_folder

MARKER = ".lapwing-replacing"
_OLD = ".lapwing-old-"


def replace_folder(chunks: str, folder: str, names: Iterable[str]) -> None:
    """Make ``folder`` the folder called ``chunks``, and remove the old one. names: the files in it, which reach the disk
    before. Raises OSError, when all chunks are old or all are new."""
    _sync_files(folder, names)
    root = os.path.dirname(chunks)
    with contextlib.suppress(FileExistsError):
        os.mkdir(chunks)  # as long as no chunk has been written there is none
    if not exchange(folder, chunks):
        _rename_in_turn(chunks, folder)
    for changed in {root, os.path.dirname(folder)}:
        sync_folder(changed)
    _remove_old(root, folder)


def replace_file(path: str, folder: str) -> None:
    """Put the file of the same name from ``folder`` in a file's place, and remove the folder. Raises OSError."""
    name = os.path.basename(path)
    _sync_files(folder, [name])
    os.replace(os.path.join(folder, name), path)
    sync_folder(os.path.dirname(path))
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def finish_replacement(root: str) -> None:
    """Do what is left of a replacement that was interrupted between its two renamings. Raises RefusedError where it cannot."""
    marker = os.path.join(root, MARKER)
    if not os.path.lexists(marker):
        return
    try:
        chunks, new, old = _told(marker, root)
        if os.path.exists(chunks):  # it has not begun, or is done
            if not os.path.exists(new):
                with contextlib.suppress(OSError):
                    os.unlink(marker)
            return
        with contextlib.suppress(FileNotFoundError):  # another process finishes it, too
            os.rename(new, chunks)
        sync_folder(root)
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(marker)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(
            f"{root}: its chunks were being replaced when that was interrupted, and that cannot be finished: {error}. "
            "Open it once where it may be written."
        ) from error


def _told(marker: str, root: str) -> tuple[str, str, str]:
    """The folders a marker names: of the chunks, the new and the old generation. Raises ValueError and others where it is
    none that ``_rename_in_turn`` wrote: arrays come from elsewhere, and must not lead to other folders of the user's."""
    with open(marker, encoding="utf-8") as stream:
        told = json.load(stream)
    chunks, new, old = (str(told[key]) for key in ("chunks", "new", "old"))
    if (
        os.path.basename(chunks) != chunks
        or not re.fullmatch(re.escape(_OLD) + "[0-9a-f]{12}", old)
        or not is_inside(os.path.join(root, new), root)
    ):
        raise ValueError(f"{MARKER} names folders that it cannot mean")
    return os.path.join(root, chunks), os.path.join(root, new), os.path.join(root, old)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path leads to something in a folder, whatever links are on the way."""
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))


def _sync_files(folder: str, names: Iterable[str]) -> None:
    folders = {folder}
    for name in names:
        file = os.path.join(folder, name)
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        inside = os.path.dirname(file)
        while inside not in folders:
            folders.add(inside)
            inside = os.path.dirname(inside)
    for inside in sorted(folders, key=len, reverse=True):
        sync_folder(inside)


def _rename_in_turn(chunks: str, folder: str) -> None:
    root = os.path.dirname(chunks)
    old = os.path.join(root, _OLD + secrets.token_hex(6))
    marker = os.path.join(root, MARKER)
    told = {"chunks": os.path.basename(chunks), "new": os.path.relpath(folder, root), "old": os.path.basename(old)}
    with open(f"{marker}.part", "w", encoding="utf-8") as stream:
        json.dump(told, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(f"{marker}.part", marker)
    sync_folder(root)
    os.rename(chunks, old)
    try:
        os.rename(folder, chunks)
    except OSError:
        os.rename(old, chunks)
        raise
    sync_folder(root)
    os.unlink(marker)


def _remove_old(root: str, folder: str) -> None:
    """Remove the old generation, and others that were left because a process ended. Nobody needs them: errors are passed by."""
    with contextlib.suppress(OSError):
        if os.path.isdir(folder):  # the folders have changed places
            os.rename(folder, os.path.join(root, _OLD + secrets.token_hex(6)))
        for name in os.listdir(root):
            if name.startswith(_OLD):
                shutil.rmtree(os.path.join(root, name), ignore_errors=True)
