"""Waiting until every rank has come to a collective call, or on in it, and saying who has not."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lapwing.runtime.mpi.ending import abort, say_and_abort
from lapwing.runtime.mpi.patience import MEETING_SECONDS, RUN_SECONDS, patience_seconds
from lapwing.runtime.mpi.place import at_place

NOTICE_SECONDS = 5.0  # after which ranks that wait say so
_SPINNING_SECONDS = 1e-3  # before a rank that waits lets others have its core
_FIRST_LOOKS = 50  # before a rank that waits for work to end asks how long it may
_NAP_SECONDS = 0.002
_ROLL_SECONDS = 1.0  # for an answer of every rank that waits
_OTHERS_SECONDS = 5.0  # for the rank that speaks to end all

LOST = "all ranks have come there, and MPI has lost a message between them"


class Roll:
    """Which ranks of a communicator wait in a meeting: they tell each other when one of them has waited for long.

    number: of the meeting, ascending. heard: by rank, the last meeting in which it was heard to wait. private: nobody else
    receives on this communicator (mpi4py), so that waiting ranks may tell each other without ending the run. since: the first
    meeting whose ranks count as waiting; None is this one.
    """

    def __init__(
        self, comm: Any, tag: int, number: int, heard: dict[int, int], private: bool, since: int | None = None
    ) -> None:
        self.comm, self.tag, self.number, self.heard, self.private = comm, tag, number, heard, private
        self.since = number if since is None else since
        self._sent: list[Any] = []

    def listen(self) -> bool:
        """Take what has come; whether some rank has spoken in this meeting."""
        from mpi4py import MPI

        status, text = MPI.Status(), np.empty(1, np.int64)
        while self.comm.Iprobe(MPI.ANY_SOURCE, self.tag, status):
            source = status.Get_source()
            self.comm.Recv(text, source=source, tag=self.tag)
            self.heard[source] = max(int(text[0]), self.heard.get(source, 0))
        return bool(self._others())

    def speak(self) -> None:
        """Tell all other ranks, once, that this one waits."""
        if not self._sent:
            others = (r for r in range(self.comm.Get_size()) if r != self.comm.Get_rank())
            self._text = np.array([self.number], np.int64)
            self._sent = [self.comm.Isend(self._text, dest=other, tag=self.tag) for other in others]

    def waiting(self) -> list[int]:
        return sorted({self.comm.Get_rank(), *self._others()})

    def missing(self) -> list[int]:
        waiting = self.waiting()
        return [rank for rank in range(self.comm.Get_size()) if rank not in waiting]

    def _others(self) -> list[int]:
        return [rank for rank, number in self.heard.items() if number >= self.since]


class _Stopwatch:
    """Counts a rank's waiting. One that was suspended, or is debugged, has not waited: no look counts for more than a second."""

    def __init__(self) -> None:
        self._counted, self._last = 0.0, time.monotonic()

    def seconds(self) -> float:
        look = time.monotonic()
        self._counted += min(look - self._last, 1.0)
        self._last = look
        return self._counted


def wait_for_all(request: Any, roll: Roll, what: str) -> None:
    """Wait for a collective request of all ranks (mpi4py), for as long as patience_seconds says; then end the run.

    what: the call, for the message.
    """
    if _is_soon_done(request.Test):
        return
    patience = patience_seconds(MEETING_SECONDS)
    stopwatch, noticed = _Stopwatch(), False
    while not request.Test():
        time.sleep(_NAP_SECONDS)  # MPI would wait by spinning
        waited = stopwatch.seconds()
        if roll.listen() or (roll.private and waited > NOTICE_SECONDS):
            roll.speak()
        if not noticed and waited > NOTICE_SECONDS + _ROLL_SECONDS:
            noticed = True
            _notice(roll, what, patience)
        if patience and waited > patience and _call_roll(request.Test, roll):
            _end(roll, what, patience)


def wait_in_call(test: Callable[[], bool], roll: Roll, awaited: int | None = None, naps: bool = False) -> None:
    """Wait for ranks that have come to this call, too, until ``test`` is true; end the run where one stands still.

    They may be at work, with no time to answer, and are given as long as in mid-run. awaited: the rank that is waited for,
    which has time as long as it answers; None where it is all that are missing. naps: leave the core to others, where
    what is waited for is not on its way yet.
    """
    if _is_soon_done(test):
        return
    patience = patience_seconds(RUN_SECONDS)
    stopwatch = _Stopwatch()
    while not test():
        if naps:
            time.sleep(_NAP_SECONDS)
        else:
            os.sched_yield()
        if roll.listen():
            roll.speak()
        if stopwatch.seconds() > patience > 0:
            if _call_roll(test, roll) and (awaited is None or awaited in roll.missing()):
                if awaited is None and roll.comm.Get_rank() != roll.waiting()[0]:
                    time.sleep(_OTHERS_SECONDS)
                    abort(roll.comm)
                _end_in_call(roll, patience, roll.missing() if awaited is None else [awaited])
            stopwatch = _Stopwatch()


def wait_for_work(test: Callable[[], bool], roll: Roll) -> None:
    """Wait until ``test`` is true for ranks that may be at work for as long as they like.

    Ends the run where all of them wait here, or after it, and nothing comes: messages can be lost between them.
    """
    if any(test() for _ in range(_FIRST_LOOKS)):
        return
    patience = patience_seconds(RUN_SECONDS)
    stopwatch = _Stopwatch()
    while not test():
        os.sched_yield()
        if roll.listen():
            roll.speak()
        if stopwatch.seconds() > patience > 0:
            if all_wait(test, roll):
                if roll.comm.Get_rank() != 0:
                    time.sleep(_OTHERS_SECONDS)
                say_and_abort(
                    f"rank {roll.comm.Get_rank()}: waited {patience:g} s at the end of the run: {LOST}. "
                    "LAPWING_PATIENCE=SECONDS allows longer waits",
                    roll.comm,
                )
            stopwatch = _Stopwatch()


def all_wait(test: Callable[[], bool], roll: Roll) -> bool:
    """Whether all ranks wait in one call, or after it, for ``test`` to be true, and it is not."""
    return not _call_roll(test, roll) and not test()


def _is_soon_done(test: Callable[[], bool]) -> bool:
    if test():
        return True
    spin_until = time.monotonic() + _SPINNING_SECONDS
    while time.monotonic() < spin_until:
        if test():
            return True
    return False


def _call_roll(test: Callable[[], bool], roll: Roll) -> bool:
    """Ask who waits. Whether somebody is missing still."""
    roll.speak()
    until = time.monotonic() + _ROLL_SECONDS
    while time.monotonic() < until:
        roll.listen()
        if test():
            return False
        time.sleep(_NAP_SECONDS)
    return bool(roll.missing())


def _end_in_call(roll: Roll, patience: float, missing: Sequence[int]) -> None:
    say_and_abort(
        f"rank {roll.comm.Get_rank()}: waited {patience:g} s for {ranks_text(missing)} outside of the run: "
        f"{'that rank' if len(missing) == 1 else 'these ranks'} or the network between stands still. "
        "LAPWING_PATIENCE=SECONDS allows longer waits",
        roll.comm,
    )


def _notice(roll: Roll, what: str, patience: float) -> None:
    # Where ranks cannot tell each other the first two speak, one of which may be late.
    if roll.comm.Get_rank() in (roll.waiting()[:1] if roll.private else (0, 1)):
        missing = ranks_text(roll.missing()) if roll.private else "other ranks"
        limit = f"; the run ends after {patience:g} s (LAPWING_PATIENCE)" if patience else ""
        print(f"lapwing: {_who(roll, what)}: waiting for {missing} to arrive{limit}", file=sys.stderr, flush=True)


def _end(roll: Roll, what: str, patience: float) -> None:
    if roll.comm.Get_rank() != roll.waiting()[0]:
        time.sleep(_OTHERS_SECONDS)
        abort(roll.comm)
    missing = roll.missing()
    has = "has" if len(missing) == 1 else "have"
    say_and_abort(
        f"{_who(roll, what)}: {ranks_text(missing)} {has} not arrived after {patience:g} s. Every rank of a communicator "
        "makes the same calls in the same order; a rank that is missing has failed, has ended or is at work elsewhere. "
        "LAPWING_PATIENCE=SECONDS allows longer waits, 0 endless ones; comm=lw.SELF is for calls of one rank alone.",
        roll.comm,
    )


def _who(roll: Roll, what: str) -> str:
    waiting = roll.waiting()
    return f"{ranks_text(waiting)} at {at_place(what)}"


def ranks_text(ranks: Sequence[int]) -> str:
    """``rank 3``, or ``ranks 0 to 2, 5``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts: list[str] = []
    for run in runs:
        texts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(texts)}"
