"""What a run on arrays on disk has finished, for another run to go on from: a manifest, and a file of every rank.

Generation g of an array is what it is after g passes of a run; generation 0 is the array itself. While a pass writes
generation g + 1, generation g stays as it is: whatever ends the run, the last generation that all ranks have finished is whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import xxhash

from lapwing.errors import RefusedError, RunError
from lapwing.store.files.renaming import sync_folder

VERSION = 1
_MODULUS = 1 << 64  # of checksums
MANIFEST = "manifest.json"
_LOCK, _RANKS = "lock", "ranks-"

Words = Sequence[Sequence[int]]  # of reductions: a row for every rank that has added to them


@dataclass(frozen=True)
class Checksums:
    """Of what a rank read in a pass and of what it wrote (checksum.hpp). Those of all ranks add up, modulo 2^64, to that of all
    arrays, however many ranks there are.
    """

    read: int
    written: int


@dataclass(frozen=True)
class State:
    """What is done: the generation that is whole, the sweeps it has had, what reductions were then, and its checksum (None: not
    known, of the arrays as they were given).

    complete: whether all is done, and the generation only has to take the arrays' places. inodes: of what takes them, by array,
    for once it has, what was there before lies where it was.
    """

    generation: int = 0
    sweeps: int = 0
    words: Words = ()
    checksum: int | None = None
    complete: bool = False
    inodes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """A run: what it computes (``task``, the same for a run that may go on from it), on how many ranks, from what."""

    task: str
    ranks: int
    start: State
    run: str = field(default_factory=lambda: secrets.token_hex(8))

    def write(self, folder: str) -> None:
        """Raises RunError where the system cannot."""
        document = {
            "format": "lapwing run", "version": VERSION, "task": self.task, "ranks": self.ranks, "run": self.run,
            "generation": self.start.generation, "sweeps": self.start.sweeps,
            "words": [list(row) for row in self.start.words], "checksum": self.start.checksum,
            "complete": self.start.complete, "inodes": dict(self.start.inodes),
        }  # fmt: skip
        _write(os.path.join(folder, MANIFEST), document)

    @property
    def ranks_folder(self) -> str:
        """The name of the folder with the files of its ranks."""
        return f"{_RANKS}{self.run}"


def read_manifest(folder: str) -> Manifest | None:
    """The manifest of a run that did not come to its end; None where there is none. Raises RefusedError for what is none."""
    path = os.path.join(folder, MANIFEST)
    try:
        document, is_whole = _read(path)
        if document["format"] != "lapwing run":
            raise ValueError
        if document["version"] > VERSION:
            raise RefusedError(
                f"{path}: version {document['version']} of a newer Lapwing; this one reads version {VERSION}. Go on with that "
                "one, or run without --resume, which begins anew."
            )
        if not is_whole:
            raise ValueError
        start = State(
            generation=int(document["generation"]),
            sweeps=int(document["sweeps"]),
            words=[[int(w) for w in row] for row in document["words"]],
            checksum=None if document["checksum"] is None else int(document["checksum"]),
            complete=bool(document["complete"]),
            inodes={str(name): int(inode) for name, inode in document["inodes"].items()},
        )
        return Manifest(str(document["task"]), int(document["ranks"]), start, str(document["run"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(
            f"{path}: is no manifest of a run ({type(error).__name__}). Run without --resume, which begins anew."
        ) from error


def reached(folder: str, manifest: Manifest) -> State:
    """How far all ranks of a run have come."""
    if manifest.start.complete:
        return manifest.start
    files = [_read_rank(folder, manifest, rank) for rank in range(manifest.ranks)]
    found = [_ends(file) for file in files]
    last = [max(generations, default=manifest.start.generation) for generations in found]
    generation = min(last)
    if generation <= manifest.start.generation:
        return manifest.start
    ends = [generations.get(generation) for generations in found]
    if any(end is None for end in ends):
        raise RefusedError(f"{folder}: the ranks' files do not fit together. Run without --resume, which begins anew.")
    rows = [list(end["words"]) for end in ends if end is not None]
    checksum = _total(files, generation, "written")
    return State(generation, int(ends[0]["sweeps"]) if ends[0] else 0, [*manifest.start.words, *rows], checksum)


def changed_generation(folder: str, manifest: Manifest) -> int | None:
    """The first generation that was read as another than it was written, by all ranks together; None if there is none. For a run
    all of whose ranks have finished the same generation.
    """
    files = [_read_rank(folder, manifest, rank) for rank in range(manifest.ranks)]
    before, generation = manifest.start.checksum, manifest.start.generation
    while all(str(generation + 1) in file["checksums"] for file in files):
        if before is not None and _total(files, generation + 1, "read") != before:
            return generation
        generation += 1
        before = _total(files, generation, "written")
    return None


def _total(files: Sequence[Mapping[str, Any]], generation: int, which: str) -> int:
    return sum(int(file["checksums"][str(generation)][which]) for file in files) % _MODULUS


def _ends(file: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {int(generation): end for generation, end in file["generations"].items()}


def _read_rank(folder: str, manifest: Manifest, rank: int) -> Mapping[str, Any]:
    path = os.path.join(folder, manifest.ranks_folder, f"{rank}.json")
    try:
        file, is_whole = _read(path)
        if not is_whole:
            raise ValueError
        return file
    except FileNotFoundError:
        return {"generations": {}, "checksums": {}}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(f"{path}: is no rank's file. Run without --resume, which begins anew.") from error


class RankFile:
    """The file in which a rank says which generations it has finished: the last two, for others may be one behind."""

    def __init__(self, folder: str, manifest: Manifest, rank: int) -> None:
        self._folder = os.path.join(folder, manifest.ranks_folder)
        self._manifest, self._rank = manifest, rank
        self._ends: dict[int, dict[str, Any]] = {}
        self._checksums: dict[int, dict[str, int]] = {}
        self._all_at = manifest.start.generation

    def finished(self, generation: int, sweeps: int, words: Sequence[int], checksums: Checksums) -> None:
        """Raises RunError where the system cannot write."""
        self._ends = {g: end for g, end in self._ends.items() if g == generation - 1}
        self._ends[generation] = {"sweeps": sweeps, "words": list(words)}
        self._checksums[generation] = vars(checksums)
        document = {"generations": self._ends, "checksums": self._checksums}
        _write(os.path.join(self._folder, f"{self._rank}.json"), document)

    def all_have(self, generation: int) -> bool:
        """Whether all ranks have finished a generation."""
        if generation > self._all_at:
            parent = os.path.dirname(self._folder)
            found = [_ends(_read_rank(parent, self._manifest, rank)) for rank in range(self._manifest.ranks)]
            self._all_at = min(max(ends, default=self._manifest.start.generation) for ends in found)
        return generation <= self._all_at


class Claim:
    """That a run is at work in a folder: its first process claims it, the others share the claim.

    The system takes claims back when processes end, so that a run whose first process was killed is at work as long as one of the
    others is still writing.
    """

    def __init__(self, folder: str, what: str, shared: bool = False) -> None:
        """Raises RefusedError where another run is at work. what: is worked on, for the message."""
        os.makedirs(folder, exist_ok=True)
        self._file = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._lock(fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            self.release()
            raise RefusedError(f"{what}: another run is at work on it. Wait for its end, or run on a copy.")

    def share(self) -> None:
        """Let the other processes of this run in."""
        self._lock(fcntl.LOCK_SH)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _lock(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True


def make_ranks_folder(folder: str, manifest: Manifest) -> None:
    os.makedirs(os.path.join(folder, manifest.ranks_folder), exist_ok=True)


def old_ranks_folders(folder: str, manifest: Manifest) -> list[str]:
    """Those of earlier runs."""
    return [
        os.path.join(folder, name)
        for name in os.listdir(folder)
        if name.startswith(_RANKS) and name != manifest.ranks_folder
    ]


def _digest(text: str) -> str:
    return xxhash.xxh3_64_hexdigest(text.encode())


def _read(path: str) -> tuple[dict[str, Any], bool]:
    """A file that ``_write`` has written, and whether it is as it was."""
    with open(path, encoding="utf-8") as stream:
        text, _, digest = stream.read().partition("\n")
    return json.loads(text), digest == _digest(text)


def _write(path: str, document: Mapping[str, Any]) -> None:
    """In one step: whoever reads finds the old file or the new one. JSON, and a line with its digest."""
    beside = f"{path}.new"
    try:
        with open(beside, "w", encoding="utf-8") as stream:
            text = json.dumps(document)
            stream.write(f"{text}\n{_digest(text)}")
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside)
        raise RunError(f"{path}: cannot be written: {error.strerror}.") from error
