"""Runs of a program's regions, one after the other, as one run: its events on one time axis, and the figures of all of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lapwing.trace.events import EVENT, PhaseSteps, RankTrace, RunTrace
from lapwing.trace.exposure import exposed_by_rank
from lapwing.trace.metrics import Metrics, elapsed_seconds, figures, ideal_seconds
from lapwing.trace.replay import replay


@dataclass
class _Rank:
    """One rank so far: when its first run began and its last one ended, the sums of its times, and the events that were kept."""

    host: str
    begin: float
    end: float = 0.0
    times: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    events: list[npt.NDArray[np.void]] = field(default_factory=list)
    dropped: int = 0
    exposed: float = 0.0


class RunSequence:
    """What is added, run after run, counts as one run. Sweeps of runs of the same nest are counted on from run to run.

    Time that went into measuring between runs is left out, as if they had followed each other without.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs = 0
        self.measuring_seconds = 0.0
        self._ranks: dict[int, _Rank] = {}
        self._phases: dict[str, int] = {}
        self._sweeps: dict[str, int] = defaultdict(int)
        self._engines: set[str] = set()
        self._cuts: set[tuple[tuple[int, ...], int]] = set()
        self._transfer: float | None = 0.0
        self._ideal: float | None = 0.0
        self._elapsed = 0.0

    def add(self, run: RunTrace) -> None:
        """run: with its events, where they are to be shown; its ``measuring_seconds`` follow it."""
        replayed = replay(run.ranks)
        exposed = exposed_by_rank(run, replayed)
        self.runs += 1
        self._engines.add(run.engine)
        self._cuts.add((run.grid, run.tile))
        self._elapsed += elapsed_seconds(run.ranks)
        if run.ranks:
            self._ideal = _sum(self._ideal, ideal_seconds(run.ranks, replayed))
        if any(rank.times["messages"] for rank in run.ranks):
            self._transfer = _sum(self._transfer, run.transfer_seconds)
        first_sweep = self._sweeps[run.nest]
        for rank, lost in zip(run.ranks, exposed, strict=True):
            self._add_rank(rank, run.nest, first_sweep, lost)
            if len(rank.events):
                self._sweeps[run.nest] = max(self._sweeps[run.nest], first_sweep + 1 + int(rank.events["sweep"].max()))
        self.measuring_seconds += run.measuring_seconds

    def _add_rank(self, rank: RankTrace, nest: str, first_sweep: int, exposed: float) -> None:
        begin = rank.begin - self.measuring_seconds
        found = self._ranks.setdefault(rank.rank, _Rank(rank.host, begin))
        found.end = max(found.end, begin + rank.times["total"])
        found.dropped += rank.dropped
        found.exposed += exposed
        for name, seconds in rank.times.items():
            found.times[name] += seconds
        if len(rank.events) == 0:
            return
        events = rank.events.copy()
        events["step"] = rank.steps_of_phases(events)
        events["sweep"] += first_sweep
        names = [phase.name for phase in rank.phases] or [nest]
        numbers = np.array([self._phases.setdefault(name, len(self._phases)) for name in names])
        events["phase"] = numbers[np.minimum(events["phase"], len(numbers) - 1)]
        events["begin"] -= self.measuring_seconds
        events["end"] -= self.measuring_seconds
        found.events.append(events)

    @property
    def engine(self) -> str:
        """That of all runs, or all of them."""
        return ", ".join(sorted(self._engines)) or "Python"

    def trace(self, seconds: float) -> RunTrace:
        """All of it, which took so many seconds. It has no grid and tile where runs had different ones."""
        phases = tuple(PhaseSteps(name, 0) for name in self._phases)
        ranks = tuple(
            RankTrace(
                number,
                rank.host,
                rank.begin,
                {**rank.times, "total": rank.end - rank.begin},
                np.concatenate(rank.events) if rank.events else np.empty(0, EVENT),
                rank.dropped,
                phases,
            )
            for number, rank in sorted(self._ranks.items())
        )
        grid, tile = next(iter(self._cuts)) if len(self._cuts) == 1 else ((), 0)
        return RunTrace(self.name, self.engine, tile, grid, seconds, self._transfer, ranks)

    def metrics(self, seconds: float) -> Metrics:
        """The figures of all of it, which took so many seconds; shares and efficiencies are of the time in which regions ran."""
        ranks = [self._ranks[number] for number in sorted(self._ranks)]
        return figures(
            self.engine,
            seconds,
            [rank.times for rank in ranks],
            tuple(rank.exposed for rank in ranks),
            self._transfer,
            self._elapsed,
            self._ideal,
            sum(rank.dropped for rank in ranks),
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
