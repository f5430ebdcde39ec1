"""The files that change, as a unified diff, in place, or in another folder. Everything is bytes: encodings and line ends stay."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import LapwingError, RefusedError
from lapwing.overlap.source.edits import Edit, find_edits

_CONTEXT = 3  # lines around a change, as diff and git have it
# In the folder of -o: what an earlier run wrote there, and may be replaced.
_RECORD = ".lapwing-overlap.json"


# ---- the diff -----------------------------------------------------------------------------------------------------------


def unified_diff(changes: Sequence[FileChange], base: Path) -> bytes:
    """A patch for `git apply` or `patch -p1` in the folder ``base``, which all files lie in."""
    return b"".join(_file_diff(change, os.fsencode(relative(change.path, base))) for change in changes)


def count_lines(change: FileChange) -> tuple[int, int]:
    """How many lines are added and removed."""
    edits = find_edits(_lines(change.before), _lines(change.after))
    return sum(edit.new_end - edit.new_start for edit in edits), sum(edit.end - edit.start for edit in edits)


def common_folder(paths: Sequence[Path], folder: Path) -> Path:
    """``folder`` if all files lie in it, else the deepest folder they all lie in."""
    real = [_real(path) for path in paths]
    if all(path.is_relative_to(folder) for path in real):
        return folder
    return Path(os.path.commonpath([path.parent for path in real]))


def relative(path: Path, base: Path) -> Path:
    return _real(path).relative_to(base)


def _real(path: Path) -> Path:
    # The file itself may be a link and keeps its name.
    return Path(os.path.realpath(path.parent), path.name)


def _file_diff(change: FileChange, name: bytes) -> bytes:
    old, new = _lines(change.before), _lines(change.after)
    hunks = b"".join(_hunks(old, new))
    return b"--- " + _quoted(b"a/" + name) + b"\n+++ " + _quoted(b"b/" + name) + b"\n" + hunks if hunks else b""


def _quoted(name: bytes) -> bytes:
    """A name as git and patch read it."""
    special = {ord("\n"): b"\\n", ord("\t"): b"\\t", ord('"'): b'\\"', ord("\\"): b"\\\\"}
    if any(byte < 32 or byte == 127 or byte in special for byte in name):
        return b'"' + b"".join(special.get(b, b"\\%03o" % b if b < 32 or b == 127 else bytes([b])) for b in name) + b'"'
    # The tab says where a name with spaces ends.
    return name + b"\t" if b" " in name else name


def with_line_ends(before: bytes, after: bytes) -> bytes:
    """``after`` with added lines that end as most of ``before`` do, where that is with CR and LF."""
    if 2 * before.count(b"\r\n") <= before.count(b"\n"):
        return after
    lines = _lines(after)
    for edit in find_edits(_lines(before), lines):
        for n in range(edit.new_start, edit.new_end):
            if lines[n].endswith(b"\n") and not lines[n].endswith(b"\r\n"):
                lines[n] = lines[n][:-1] + b"\r\n"
    return b"".join(lines)


def _lines(data: bytes) -> list[bytes]:
    """The lines with their ends; only a line feed ends one, whatever precedes it belongs to the line."""
    *whole, last = data.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[bytes]:
    for edits in _near(find_edits(old, new)):
        first, last = edits[0], edits[-1]
        before = min(_CONTEXT, first.start)
        after = min(_CONTEXT, len(old) - last.end)
        ranges = (
            _range(first.start - before, last.end + after),
            _range(first.new_start - before, last.new_end + after),
        )
        yield b"@@ -%s +%s @@\n" % ranges
        at = first.start - before
        for edit in edits:
            yield from (_marked(b" ", line) for line in old[at : edit.start])
            yield from (_marked(b"-", line) for line in old[edit.start : edit.end])
            yield from (_marked(b"+", line) for line in new[edit.new_start : edit.new_end])
            at = edit.end
        yield from (_marked(b" ", line) for line in old[at : at + after])


def _near(edits: Sequence[Edit]) -> Iterator[list[Edit]]:
    """The edits in groups whose context lines would touch."""
    group: list[Edit] = []
    for edit in edits:
        if group and edit.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _range(start: int, end: int) -> bytes:
    # An empty range names the line before it.
    return b"%d" % (start + 1) if end - start == 1 else b"%d,%d" % (start + (end > start), end - start)


def _marked(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"


# ---- writing ------------------------------------------------------------------------------------------------------------


def write_in_place(changes: Sequence[FileChange]) -> None:
    """Replace the sources: all of them, or none where one cannot be. Each is whole at any moment and keeps its mode.

    Raises LapwingError where a file cannot be written, or is no longer what was read.
    """
    with contextlib.ExitStack() as undo:
        ready = []
        for change in changes:
            # A link stays one; what it points to is replaced.
            target = Path(os.path.realpath(change.path))
            try:
                _check_unchanged(target, change)
                name = _write_beside(target, change.after)
                undo.callback(_remove, name)
                _dress_as(target, name)
            except OSError as error:
                raise LapwingError(
                    f"{change.path}: cannot be written: {error.strerror}. No file was changed."
                ) from error
            ready.append((name, target))
        for name, target in ready:
            os.replace(name, target)


def write_to(folder: Path, changes: Sequence[FileChange], sources: Sequence[Path], base: Path) -> tuple[Path, ...]:
    """Write the changed files into ``folder``, each where it lies below ``base``; returns their paths.

    Files of an earlier run are replaced, and removed where their source (one of ``sources``) is not changed any more. Raises
    RefusedError where a source, or a file that no run wrote, would be overwritten; LapwingError where writing fails.
    """
    try:
        record = _read_record(folder)
        wanted = {str(relative(change.path, base)): change for change in changes}
        real = {os.path.realpath(path) for path in sources}
        for name, change in wanted.items():
            _check_free(folder / name, real, record.get(name), change.after)
        for name in {str(relative(path, base)) for path in sources} - wanted.keys():
            if name in record and _digest_of(folder / name) == record.pop(name):
                (folder / name).unlink()
        for name, change in wanted.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = _write_beside(path, change.after)
            _dress_as(change.path, temporary)
            os.replace(temporary, path)
            record[name] = _digest(change.after)
        if folder.exists():
            (folder / _RECORD).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise LapwingError(f"-o {folder}: {error.filename or folder}: cannot be written: {error.strerror}.") from error
    return tuple(folder / name for name in wanted)


def holds_output(folder: Path) -> bool:
    """Whether ``write_to`` has written into a folder."""
    return os.path.exists(folder / _RECORD)


def _check_unchanged(target: Path, change: FileChange) -> None:
    if target.read_bytes() != change.before:
        raise LapwingError(f"{change.path}: it was changed while it was being read. No file was changed; run again.")
    if not os.access(target, os.W_OK):
        raise LapwingError(f"{change.path}: it may not be written (chmod u+w). No file was changed.")


def _check_free(path: Path, sources: set[str], digest: str | None, data: bytes) -> None:
    if os.path.realpath(path) in sources:
        raise RefusedError(f"-o: {path} is a source. Name another folder, or use --in-place.")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RefusedError(f"-o: {path} is there and is not a file. Name another folder.")
    if path.exists() and _digest_of(path) not in (digest, _digest(data)):
        raise RefusedError(
            f"-o: {path} is there, and lapwing did not write it as it is now. Name another folder, or remove it."
        )


def _read_record(folder: Path) -> dict[str, str]:
    """The digests of the files that earlier runs wrote, by name."""
    try:
        record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return {str(name): str(digest) for name, digest in record.items()} if isinstance(record, dict) else {}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(path.read_bytes())
    except FileNotFoundError:
        return None


def _write_beside(path: Path, data: bytes) -> str:
    """A new temporary file in the folder of ``path``, so that it can take its place in one step."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
    except BaseException:
        _remove(name)
        raise
    return name


def _dress_as(model: Path, name: str) -> None:
    """Mode and owner of another file; the time is now, so that make notices."""
    status = model.stat()
    with contextlib.suppress(PermissionError):  # only root can give files away
        os.chown(name, status.st_uid, status.st_gid)
    os.chmod(name, stat.S_IMODE(status.st_mode))


def _remove(name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name)


@dataclass(frozen=True)
class FileChange:
    """A file's bytes as they were read, and as they are to be."""

    path: Path
    before: bytes
    after: bytes
