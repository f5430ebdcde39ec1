"""The ranks of this run: whether there are several, their communicators, and what is known of each of these.

MPI is loaded as late as possible, through the user's own library.
"""

from __future__ import annotations

import pickle
import platform
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from lapwing.errors import LapwingError, RefusedError, RunError
from lapwing.launcher import launched_together
from lapwing.notices import say
from lapwing.runtime.binding import native
from lapwing.runtime.mpi.arrival import Roll, all_wait, wait_for_all, wait_for_work, wait_in_call
from lapwing.runtime.mpi.ending import end_all_on_error
from lapwing.runtime.mpi.memory import unname_mapped
from lapwing.runtime.mpi.start import start_mpi
from lapwing.runtime.mpi.threads import one_call

Result = TypeVar("Result")

_ROUND_TRIPS = 10
# Of waiting ranks' words to each other: on a communicator of Lapwing's own, and on a user's, where it is only used when
# the run ends. Transports use the first few.
_ROLL_TAG, _LAST_TAG = 77, 32_767


class Self:
    """Stands for this rank alone, without MPI: see ``SELF``."""

    def __repr__(self) -> str:
        return "lw.SELF"


SELF = Self()


@dataclass(eq=False)
class Known:
    """What is known of a communicator, kept with it as an MPI attribute. ``comm``: Lapwing's own duplicate of it.

    ``meetings`` is how many there have been on this rank, ``heard`` what ranks said in them (Roll), ``calls`` how many ranks
    have told each other of, the same on all of them, ``arrays`` how many distributed arrays were made. ``moved`` counts how often
    whole arrays went to or came from single ranks (``scattered``, ``gathered``), how often ranks exchanged parts (``exchanged``),
    and the ``bytes`` this one sent in that; all outside of runs.
    """

    comm: Any
    meetings: int = 0
    heard: dict[int, int] = field(default_factory=dict)
    calls: int = 0
    arrays: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    values: dict[Any, Any] = field(default_factory=dict)


def launched() -> bool:
    """Whether this process is one of several of an MPI run: by the MPI that is initialised, or by the launcher's word."""
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is not None and mpi4py.Is_initialized() and not mpi4py.Is_finalized():
        return bool(mpi4py.COMM_WORLD.Get_size() > 1)
    return launched_together()


def is_alone(comm: Any) -> bool:
    """Whether ranks, given as for ``ranks_for``, are this one alone. False for what is refused there."""
    if comm is None:
        return not launched()
    if comm is SELF:
        return True
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(comm, mpi.Intracomm) and comm != mpi.COMM_NULL and comm.Get_size() == 1


def ranks_for(comm: Any, what: str) -> Any | None:
    """Lapwing's own communicator for the ranks a call is for; None where that is this rank alone.

    comm: an mpi4py communicator, ``SELF``, or None for all ranks of the run. Collective over them on first use; what: the
    call, for messages. Raises RefusedError for anything else, RunError as ``world`` does.
    """
    if is_alone(comm):
        return None
    if comm is None:
        return world(what)
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        raise RefusedError(
            f"{what}: comm={comm!r}: expected an mpi4py communicator, lw.SELF for this rank alone, or None for all ranks."
        )
    if comm == mpi.COMM_NULL:
        raise RefusedError(
            f"{what}: comm is MPI.COMM_NULL: this rank is no member of it. Call it on its members alone."
        )
    if comm.Is_inter():
        raise RefusedError(f"{what}: comm is an intercommunicator, expected an intracommunicator. Pass comm.Merge().")
    start_mpi(what)
    end_all_on_error()
    return _own(comm, what)


def described(comm: Any | None) -> str:
    """A communicator as ``ranks_for`` gives it, in words."""
    if comm is None:
        return "this rank alone"
    everyone = comm.Get_size() == sys.modules["mpi4py.MPI"].COMM_WORLD.Get_size()
    return "all ranks" if everyone else f"a communicator of {comm.Get_size()} ranks"


def world(what: str = "a call of Lapwing") -> Any:
    """A communicator of Lapwing's own over all ranks (mpi4py); loads and initialises MPI on first use. Collective then.

    what: the call, for messages. Raises RunError where mpi4py and the runtime would use different MPI libraries, or the
    launcher is another MPI's.
    """
    start_mpi(what)
    end_all_on_error()
    return _own(sys.modules["mpi4py.MPI"].COMM_WORLD, what)


def known(comm: Any) -> Known:
    """What is known of a communicator (mpi4py)."""
    quick = _known_by_object.get(id(comm))
    if quick is not None and quick.comm is comm:
        return quick
    found: Known | None = comm.Get_attr(_attribute())
    if found is None:
        found = Known(comm)
        comm.Set_attr(_attribute(), found)
    if found.comm is comm:
        _known_by_object[id(comm)] = found
    return found


_known_by_object: dict[int, Known] = {}  # MPI takes longer to tell: it is asked several times a call


def _own(comm: Any, what: str) -> Any:
    """Lapwing's own duplicate of a communicator, so that its messages meet no others. Collective on first use."""
    found: Known | None = comm.Get_attr(_attribute())
    if found is not None:
        return found.comm
    with one_call(comm, what):
        duplicate, request = comm.Idup()
        wait_for_all(request, Roll(comm, _LAST_TAG, 1, {}, private=False), what)
    if comm.Get_size() == sys.modules["mpi4py.MPI"].COMM_WORLD.Get_size() > 1:
        unname_mapped()  # all have come through MPI_Init, and so have mapped what they share
    found = Known(duplicate)
    comm.Set_attr(_attribute(), found)
    duplicate.Set_attr(_attribute(), found)
    return duplicate


_making_attribute = threading.Lock()


@cache
def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def _attribute() -> int:
    with _making_attribute:  # two threads would each make one
        return _made_attribute()


@cache
def _made_attribute() -> int:
    from mpi4py import MPI

    def forget(comm: Any, _: int, found: Known) -> None:
        if comm != found.comm:  # the user's is freed, and with it Lapwing's
            _known_by_object.pop(id(found.comm), None)
            for part in found.values.values():
                if isinstance(part, MPI.Comm) and part not in (MPI.COMM_NULL, found.comm):
                    part.Free()
            found.comm.Free()

    return MPI.Comm.Create_keyval(delete_fn=forget)


def meeting_roll(comm: Any, in_call: bool = False) -> Roll:
    """The roll of the next meeting on a communicator of Lapwing's own.

    in_call: ranks that still exchange messages on their way to it wait as well.
    """
    found = known(comm)
    found.meetings += 1
    number = 2 * found.meetings
    return Roll(comm, _ROLL_TAG, number, found.heard, private=True, since=number - in_call)


def send(values: Any, comm: Any, dest: int) -> None:
    """Send a buffer on a communicator of Lapwing's own outside of a run. Ends the run where the receiver stands still."""
    wait_in_call(comm.Isend(values, dest=dest).Test, _roll_between_meetings(comm), dest)


def receive(values: Any, comm: Any, source: int) -> None:
    """Receive what ``send`` sends. Ends the run where the sender stands still."""
    wait_in_call(comm.Irecv(values, source=source).Test, _roll_between_meetings(comm), source)


def finish(requests: list[Any], comm: Any) -> None:
    """Wait for messages between ranks of Lapwing's own communicator, outside of a run. Ends the run where one stands still."""
    test_all = _mpi().Request.Testall
    if not test_all(requests):
        wait_in_call(lambda: bool(test_all(requests)), _roll_between_meetings(comm))


def _roll_between_meetings(comm: Any) -> Roll:
    """For ranks that wait on their way to the next meeting: others may be there already."""
    found = known(comm)
    return Roll(comm, _ROLL_TAG, 2 * found.meetings + 1, found.heard, private=True)


def first_ranks(comm: Any, number: int) -> Any | None:
    """The communicator of so many first ranks; None on the others. Collective on the first call for a number."""
    if number == comm.Get_size():
        return comm
    values = known(comm).values
    if number not in values:
        from mpi4py import MPI

        part = comm.Split(0 if comm.Get_rank() < number else MPI.UNDEFINED, comm.Get_rank())
        values[number] = part
    part = values[number]
    return part if part else None


def agree(comm: Any, action: Callable[[], Result]) -> Result:
    """Do something on every rank; if any rank fails, raise its error on all of them, so that none waits for ever.

    An error that nobody foresees, as where memory is short, is raised as it is on its own rank and as RunError on others.
    """
    error: LapwingError | None = None
    unexpected: Exception | None = None
    result: Result | None = None
    try:
        result = action()
    except LapwingError as caught:
        error = caught
    except Exception as caught:
        unexpected = caught
        error = RunError(f"rank {comm.Get_rank()} could not prepare the run: {type(caught).__name__}: {caught}")
    fails = np.empty(comm.Get_size(), np.uint8)
    own = np.array([error is not None], np.uint8)
    wait_in_call(comm.Iallgather(own, fails).Test, meeting_roll(comm, in_call=True), naps=True)
    failed = [e for e in comm.allgather(error) if e is not None] if fails.any() else []
    if unexpected is not None:
        raise unexpected
    if failed:
        raise failed[0]
    return cast(Result, result)


def join(comm: Any, naps: bool = True) -> None:
    """A barrier of ranks in one call, outside of a run. Ends the run where one stands still. Collective.

    naps: as for ``wait_in_call``.
    """
    wait_in_call(comm.Ibarrier().Test, meeting_roll(comm, in_call=True), naps=naps)


def allgather(value: Result, comm: Any, wait: Callable[[Callable[[], bool]], None]) -> list[Result]:
    """The values of all ranks, by rank. Collective. ``wait`` is given a test for the arrival of each of two messages."""
    packed = np.frombuffer(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), np.uint8)
    sizes = np.empty(comm.Get_size(), np.int64)
    wait(comm.Iallgather(np.array([len(packed)], np.int64), sizes).Test)
    everything = np.empty(sizes.sum(), np.uint8)
    wait(comm.Iallgatherv(packed, (everything, sizes)).Test)
    return [pickle.loads(part.data) for part in np.split(everything, sizes.cumsum()[:-1])]


def largest(value: float, comm: Any) -> float:
    """The largest of the ranks' numbers. Collective.

    To reduce Python's objects mpi4py duplicates the communicator first, and holds the interpreter's lock meanwhile: threads on
    communicators of their own would wait for each other for ever.
    """
    from mpi4py import MPI

    found = np.array([value], np.float64)
    comm.Allreduce(MPI.IN_PLACE, found, MPI.MAX)
    return float(found[0])


def on_any_rank(condition: bool, comm: Any) -> bool:
    """Whether it holds on any of the ranks. Collective."""
    return largest(condition, comm) > 0


def all_rows(own: npt.NDArray[np.int64], comm: Any, is_at_work: bool) -> npt.NDArray[np.int64]:
    """The rows of all ranks, by rank, at the end of a run. Collective. is_at_work: False lets others have this rank's core."""
    rows = np.empty((comm.Get_size(), len(own)), np.int64)
    arrived, roll = comm.Iallgather(own, rows).Test, meeting_roll(comm, in_call=True)
    if is_at_work:
        wait_for_work(arrived, roll)
    else:
        _wait_asleep(arrived)
    return rows


def finish_work(arrived: Callable[[], bool], comm: Any) -> None:
    """Wait in a call that all ranks make at a run's end: they may be at work before for as long as they like. Collective.

    Ends the run where all have come and MPI still does not finish the call.
    """
    wait_for_work(arrived, meeting_roll(comm, in_call=True))


def all_finished(arrived: Callable[[], bool], comm: Any) -> bool:
    """Whether all ranks have come to the call at a run's end and MPI still does not finish it; takes up to a second."""
    return all_wait(arrived, meeting_roll(comm, in_call=True))


def meet(comm: Any) -> None:
    """A barrier that takes no core from the others where a rank is late, for ranks known to be at work. Collective.

    They may be at work for as long as they like.
    """
    _wait_asleep(comm.Ibarrier().Test)


def _wait_asleep(arrived: Callable[[], bool]) -> None:
    patient_from = time.monotonic() + 1e-3
    while not arrived():
        if time.monotonic() > patient_from:
            time.sleep(0.002)  # MPI would wait by spinning


def ranks_of_node(comm: Any) -> frozenset[int]:
    """The ranks that share memory with this one, itself included. Collective on the first call."""
    from mpi4py import MPI

    values = known(comm).values
    if "node" not in values:
        node = comm.Split_type(MPI.COMM_TYPE_SHARED)
        values["node"] = frozenset(node.allgather(comm.Get_rank()))
        node.Free()
    found: frozenset[int] = values["node"]
    return found


def clock_offset(comm: Any) -> float:
    """Seconds to add to this rank's clock so that it agrees with rank 0's. Collective on the first call.

    Ranks of one machine share a clock. Between machines the offset is taken from the quickest of several round trips.
    """
    values = known(comm).values
    if "clock" not in values:
        values["clock"] = _clock_offset(comm)
    found: float = values["clock"]
    return found


def _clock_offset(comm: Any) -> float:
    clock = native.mpi_runtime(None).lw_clock
    if len(ranks_of_node(comm)) == comm.Get_size():
        return 0.0
    offset = 0.0
    for rank in range(1, comm.Get_size()):
        if comm.Get_rank() == 0:
            for _ in range(_ROUND_TRIPS):
                comm.recv(source=rank)
                comm.send(clock(), dest=rank)
        elif comm.Get_rank() == rank:
            trips = []
            for _ in range(_ROUND_TRIPS):
                start = clock()
                comm.send(None, dest=0)
                theirs = comm.recv(source=0)
                end = clock()
                trips.append((end - start, theirs - (start + end) / 2))
            offset = min(trips)[1]
    return offset


def host() -> str:
    """The name of this machine."""
    return platform.node()


def announcer(enabled: bool) -> Callable[[str], None] | None:
    """Who is told of a build, a line each: one rank only."""
    return say if enabled else None
