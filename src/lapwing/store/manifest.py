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

from lapwing.errors import RefusedError, RunError
from lapwing.store.renaming import sync_folder

VERSION = 1
MANIFEST = "manifest.json"
_LOCK, _RANKS = "lock", "ranks-"

Words = Sequence[Sequence[int]]  # of reductions: a row for every rank that has added to them


@dataclass(frozen=True)
class State:
    """What is done: the generation that is whole, the sweeps it has had, and what reductions were then.

    complete: whether all is done, and the generation only has to take the arrays' places. inodes: of what takes them, by array,
    for once it has, what was there before lies where it was.
    """

    generation: int = 0
    sweeps: int = 0
    words: Words = ()
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
            "words": [list(row) for row in self.start.words], "complete": self.start.complete,
            "inodes": dict(self.start.inodes),
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
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        if document["format"] != "lapwing run":
            raise ValueError
        if document["version"] > VERSION:
            raise RefusedError(
                f"{path}: version {document['version']} of a newer Lapwing; this one reads version {VERSION}. Go on with that "
                "one, or run without --resume, which begins anew."
            )
        start = State(
            int(document["generation"]), int(document["sweeps"]), [[int(w) for w in row] for row in document["words"]],
            bool(document["complete"]), {str(name): int(inode) for name, inode in document["inodes"].items()},
        )  # fmt: skip
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
    found = [_read_rank(folder, manifest, rank) for rank in range(manifest.ranks)]
    last = [max(generations, default=manifest.start.generation) for generations in found]
    generation = min(last)
    if generation <= manifest.start.generation:
        return manifest.start
    ends = [generations.get(generation) for generations in found]
    if any(end is None for end in ends):
        raise RefusedError(f"{folder}: the ranks' files do not fit together. Run without --resume, which begins anew.")
    rows = [list(end["words"]) for end in ends if end is not None]
    return State(generation, int(ends[0]["sweeps"]) if ends[0] else 0, [*manifest.start.words, *rows])


def _read_rank(folder: str, manifest: Manifest, rank: int) -> dict[int, dict[str, Any]]:
    path = os.path.join(folder, manifest.ranks_folder, f"{rank}.json")
    try:
        with open(path, encoding="utf-8") as stream:
            return {int(g): end for g, end in json.load(stream)["generations"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RefusedError(f"{path}: is no rank's file. Run without --resume, which begins anew.") from error


class RankFile:
    """The file in which a rank says which generations it has finished: the last two, for others may be one behind."""

    def __init__(self, folder: str, manifest: Manifest, rank: int) -> None:
        self._folder = os.path.join(folder, manifest.ranks_folder)
        self._manifest, self._rank = manifest, rank
        self._ends: dict[int, dict[str, Any]] = {}
        self._all_at = manifest.start.generation

    def finished(self, generation: int, sweeps: int, words: Sequence[int]) -> None:
        """Raises RunError where the system cannot write."""
        self._ends = {g: end for g, end in self._ends.items() if g == generation - 1}
        self._ends[generation] = {"sweeps": sweeps, "words": list(words)}
        _write(os.path.join(self._folder, f"{self._rank}.json"), {"generations": self._ends})

    def all_have(self, generation: int) -> bool:
        """Whether all ranks have finished a generation."""
        if generation > self._all_at:
            parent = os.path.dirname(self._folder)
            found = [_read_rank(parent, self._manifest, rank) for rank in range(self._manifest.ranks)]
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


def _write(path: str, document: Mapping[str, Any]) -> None:
    """In one step: whoever reads finds the old file or the new one."""
    beside = f"{path}.new"
    try:
        with open(beside, "w", encoding="utf-8") as stream:
            json.dump(document, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside)
        raise RunError(f"{path}: cannot be written: {error.strerror}.") from error
