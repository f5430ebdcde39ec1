"""What the ranks of a run did, and when: the events the runtime recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

# In the order of lw_activity in lapwing.h. "transfer" is a message on its way: from when its sender sent it to when this rank
# saw that it had arrived, "read" and "write" are slabs of arrays on their way from the disk and to it. The others are what
# the rank itself did: "disk" is a wait for it.
ACTIVITIES = ("compute", "pack", "unpack", "post", "wait", "poll", "transfer", "disk", "read", "write")
UNDER_WAY = ("transfer", "read", "write")  # activities that are not the rank's own time

# lw_event of lapwing.h. begin and end are seconds of one clock for all ranks. seconds is the time spent: less than
# end - begin where a step's slices and polls alternate. thread is 0 for the computing thread, 1 for the helper. peer is the
# other rank or -1, phase the number of the nest that step, counted through all of a sweep, belongs to. exposed is the part of a
# wait, in seconds, in which a message was on its way (what of it communication is to blame for is another question: exposure.py).
EVENT = np.dtype(
    [
        ("begin", np.float64),
        ("end", np.float64),
        ("seconds", np.float64),
        ("exposed", np.float64),
        ("sweep", np.int64),
        ("step", np.int64),
        ("bytes", np.int64),
        ("activity", np.int32),
        ("thread", np.int32),
        ("peer", np.int32),
        ("phase", np.int32),
    ]
)


@dataclass(frozen=True)
class PhaseSteps:
    """A nest of a program by name, and the first of its steps in a sweep of one rank."""

    name: str
    first_step: int


@dataclass(frozen=True)
class RankTrace:
    """One rank of one run.

    ``events`` has dtype EVENT, in order of their ends; ``dropped`` says how many more there were than room.
    ``times`` are the seconds of lw_times by name (total, compute, pack, unpack, post, wait, poll, disk, fill, drain, exposed,
    disk_busy, cpu_lost), messages and bytes sent, and bytes read and written; they count every event, dropped ones too.
    ``begin`` is when the run began on this rank. ``phases`` are those of every sweep, where they are known.
    """

    rank: int
    host: str
    begin: float
    times: dict[str, float]
    events: npt.NDArray[Any] = field(repr=False)
    dropped: int = 0
    phases: tuple[PhaseSteps, ...] = ()

    @property
    def phase_names(self) -> tuple[str, ...]:
        """Where there are several phases, what they are called."""
        return tuple(phase.name for phase in self.phases) if len(self.phases) > 1 else ()

    def steps_of_phases(self, events: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The steps of some events of the rank, counted from the first of their phase."""
        first = np.array([phase.first_step for phase in self.phases] or [0], np.int64)
        steps: npt.NDArray[np.int64] = events["step"] - first[np.minimum(events["phase"], len(first) - 1)]
        return steps


@dataclass(frozen=True)
class RunTrace:
    """All ranks of one run, by rank.

    ``transfer_seconds`` is how long the same messages take with nothing else going on (None: not measured).
    ``predicted``, if a model made one, has the same form as ``ranks``. ``measuring_seconds`` is how long the ranks were at that
    afterwards, and at bringing events together.
    """

    nest: str
    engine: str
    tile: int
    grid: tuple[int, ...]
    seconds: float
    transfer_seconds: float | None
    ranks: tuple[RankTrace, ...]
    predicted: tuple[RankTrace, ...] | None = None
    measuring_seconds: float = 0.0

    def without_events(self) -> RunTrace:
        """The same run's totals alone."""
        return replace(self, ranks=tuple(replace(rank, events=rank.events[:0]) for rank in self.ranks))
