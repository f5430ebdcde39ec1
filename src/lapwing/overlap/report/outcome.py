"""The outcome for a program: every communication, with the transformations made, or why there were none.

survey.py fills these classes from the transformations' notes; text, json and sarif render them for people and for machines.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import RefusedError
from lapwing.overlap.source.patch import FileChange
from lapwing.overlap.source.spans import Problem

PROGRESS = "progress-calls"
# The transformations by name, with what each does. The names appear in --only, --skip, reports and SARIF rules, and do not
# change.
TRANSFORMATIONS = {
    "nonblocking": "A blocking call becomes a nonblocking one and a wait.",
    "start-earlier": "A transfer starts as soon as its data are there.",
    "wait-later": "A wait moves down to the first use of what it waits for.",
    "together": "Independent exchanges are in flight together.",
    "clone-buffer": "A buffer that is used again too soon gets a copy.",
    "pipeline-loop": "Independent work of a loop's next iteration moves into this iteration's transfer.",
    "split-loop": "A loop nest's interior is computed during the exchange of its boundary.",
    "split-producer": "A loop nest's boundary is computed first, and its interior during the exchange of that boundary.",
    PROGRESS: "A long loop between start and wait calls MPI now and then, so that the transfer goes on.",
}

# A call's continuation lines, and adjacent lines, still denote the call.
_NEAR = 10
_MOST_NAMED = 5


@dataclass(frozen=True)
class Options:
    """What may be done. ``transformations``: names of TRANSFORMATIONS, None for all of them. ``reassociate``: floating-point
    reductions may be reassociated."""

    progress_calls: bool = True
    reassociate: bool = False
    transformations: frozenset[str] | None = None


@dataclass(frozen=True)
class Place:
    """A line of a source file, counted from 1. ``text``: the line, stripped."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True)
class Refusal:
    """A transformation that was tried and refused: which proof obligation failed, what was found and where, and what the user
    could change. ``obligation`` states what must hold independently of the place: refusals are counted by it."""

    transformation: str
    obligation: str
    found: str
    place: Place | None
    advice: str


@dataclass(frozen=True)
class Action:
    """A transformation that was made."""

    transformation: str
    description: str
    place: Place


@dataclass(frozen=True)
class Communication:
    """One MPI call of the program that communicates.

    ``call``: MPI's name of it (MPI_Send). ``producer``, ``consumer``: the nearest statements that write and use what is
    communicated, None where there is none or it is not known. ``region``: what lies between them (P2, figure 4) in words, such as
    "lines 40–71 of f.f, 3 loops inside". ``matches``: the calls at the other end.
    """

    place: Place
    call: str
    procedure: str
    producer: Place | None
    consumer: Place | None
    region: str
    matches: tuple[Place, ...] = ()
    actions: tuple[Action, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    note: str | None = None

    @property
    def rewritten(self) -> bool:
        """Whether the communication was transformed; progress calls in loops alone do not count."""
        return any(action.transformation != PROGRESS for action in self.actions)


@dataclass(frozen=True)
class Outcome:
    """All of a program's communications, the files that change, what could not be read, and the seconds that took.

    ``progress_calls``: the number of loops with progress calls. ``undefined``: macros that were taken as undefined, where that
    excludes text. ``without_source``: called procedures that have neither source nor a library summary, the most frequently
    called first.
    """

    communications: tuple[Communication, ...]
    changes: tuple[FileChange, ...]
    problems: tuple[Problem, ...]
    seconds: float
    progress_calls: int = 0
    undefined: tuple[str, ...] = ()
    without_source: tuple[str, ...] = ()

    @property
    def rewritten(self) -> int:
        """The number of communications that were transformed."""
        return sum(communication.rewritten for communication in self.communications)

    @property
    def files(self) -> int:
        """The number of files with communications."""
        return len({communication.place.path for communication in self.communications})

    def made(self) -> dict[str, int]:
        """How often each transformation was made, the most frequent first; for split loops, the number of loops. Progress calls
        are counted separately."""
        actions = [action for c in self.communications for action in c.actions if action.transformation != PROGRESS]
        made = Counter(action.transformation for action in actions)
        loops = {(action.place.path, action.description) for action in actions if action.transformation == "split-loop"}
        return dict(Counter({**made, **({"split-loop": len(loops)} if loops else {})}).most_common())

    def failed(self) -> dict[str, int]:
        """How often each obligation failed at communications that were left unchanged, the most frequent first."""
        refusals = (refusal.obligation for c in self.communications if not c.rewritten for refusal in c.refusals)
        return dict(Counter(refusals).most_common())


def find_near(communications: Sequence[Communication], path: Path, line: int) -> tuple[Communication, ...]:
    """The communications at a line of a file, or at the line nearest to it within a few.

    ``path`` may be the end of a path, such as heat.c for src/heat.c. Raises RefusedError where there is none, with the
    nearest ones.
    """
    here = [c for c in communications if _same_file(c.place.path, path)]
    if not here:
        files = dict.fromkeys(str(c.place.path) for c in communications)
        known = f"calls are known in {_some(files)}" if files else "no communication is known in any file"
        raise RefusedError(f"--explain {path}:{line}: no communication in {path}; {known}.")
    # A call's later lines mean that call, so of two equally near the one before counts.
    nearest = min((c.place.line for c in here), key=lambda number: (abs(number - line), number))
    if abs(nearest - line) > _NEAR:
        lines = sorted({c.place.line for c in here}, key=lambda number: abs(number - line))
        raise RefusedError(
            f"--explain {path}:{line}: no communication within {_NEAR} lines; the nearest are at "
            f"{_some(f'{path}:{number}' for number in lines)}."
        )
    return tuple(c for c in here if c.place.line == nearest)


def shown(path: Path, base: Path) -> str:
    """A path as reports show it: relative to ``base`` if it lies below, and without undecodable bytes."""
    full = Path(os.path.abspath(path))
    short = full.relative_to(base) if full.is_relative_to(base) else full
    return os.fsencode(short).decode("utf-8", "replace")


def _same_file(path: Path, wanted: Path) -> bool:
    if os.path.realpath(path) == os.path.realpath(wanted):
        return True
    return not wanted.is_absolute() and path.parts[-len(wanted.parts) :] == wanted.parts


def _some(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_MOST_NAMED]) + (", …" if len(every) > _MOST_NAMED else "")
