"""Runs of a program that are watched: what the calls of its regions took, and what every rank did when."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lapwing.api.calls.run import run
from lapwing.display import show_page
from lapwing.errors import RefusedError
from lapwing.html import table
from lapwing.loopnest.binding.bound_nest import signature
from lapwing.planner.phased import PhasedPlan
from lapwing.planner.plan import Plan
from lapwing.runtime.execute import Measure, Outcome
from lapwing.runtime.phased import PhasedOutcome
from lapwing.trace.events import RunTrace
from lapwing.trace.metrics import Metrics
from lapwing.trace.sequence import RunSequence
from lapwing.trace.timeline import timeline_page
from lapwing.units import duration

Report = Callable[[str, float], None]


@dataclass
class RegionCalls:
    """What the calls of one region took. plan: of its last call; None where Python has run it."""

    calls: int = 0
    seconds: float = 0.0
    plan: Plan | PhasedPlan | None = None


@dataclass
class ProgramOutcome:
    """What a run of a program gives: what the function returned, seconds from the call to its end (those that measuring took are
    left out), and what its regions took, by name.

    ``figures`` say how much communication was hidden in all of them, and ``trace`` has what every rank did when, one region
    after the other; on ranks that are not the first, without events.
    """

    name: str
    ranks: int
    returned: Any
    seconds: float
    regions: dict[str, RegionCalls]
    figures: Metrics
    trace: RunTrace = field(repr=False)

    @property
    def hidden(self) -> float | None:
        """The part of the communication that was hidden, 0 to 1; None where there is too little to tell."""
        return self.figures.hidden

    def __repr__(self) -> str:
        ranks = "one rank" if self.ranks == 1 else f"{self.ranks} ranks"
        return f"<run of {self.name}: {duration(self.seconds)} on {ranks}, {self.trace.engine}>"

    def _repr_html_(self) -> str:
        """For notebooks: the time, what was hidden, and a line for every region."""
        rows = [("time", duration(self.seconds)), ("ranks", str(self.ranks))]
        rows += [("communication", self.figures.hidden_text())]
        for name, of_region in self.regions.items():
            calls = "1 call" if of_region.calls == 1 else f"{of_region.calls} calls"
            rows.append((name, f"{duration(of_region.seconds)} in {calls}"))
        return table(f"run of {self.name}", rows)

    def timeline(self, path: str | Path | None = None) -> Path | None:
        """What every rank did when, through all regions; see Outcome.timeline."""
        if not any(len(rank.events) for rank in self.trace.ranks):
            return None
        page = timeline_page([self.trace], [self.figures])
        return show_page(page, f"timeline of {self.name}", path, f"{self.name}-timeline.html")


class WatchedCalls:
    """Makes the calls of a program's regions, and notes what they take.

    name: the program's. comm: the ranks, None for this process alone. events: how many of them to keep on this rank; without
    any, calls in one process go the shorter way that they go when nobody watches. report: told how far a call has come.
    """

    def __init__(self, name: str, comm: Any | None, events: int, report: Report | None = None) -> None:
        self.found: dict[str, RegionCalls] = {}
        self.sequence = RunSequence(name)
        self._comm, self._events, self._report = comm, events, report
        self._transfers: dict[Any, float | None] = {}

    def __call__(self, region: Any, arguments: Mapping[str, Any]) -> Any:
        """Call a region with its arguments by name; what it returns."""
        noted = self.found.setdefault(region.name, RegionCalls())
        noted.calls += 1
        try:
            region = region.for_arguments(arguments)
        except RefusedError as refused:
            if not region.is_left_to_python(refused):
                raise
            return self._timed(noted, region.interpreted(refused), arguments)
        if self._comm is None and not self._events:
            if noted.plan is None:
                noted.plan = region.planned(region.bind(arguments), 1, 1, 1, arguments).plan
            return self._timed(noted, region, arguments)
        outcome = run(region, arguments, self.report(region.name), self.measure(region.name, arguments))
        self._note(noted, outcome, (region.name, signature(arguments, {})))
        return region.loops.returned(outcome.results)

    def report(self, name: str) -> Callable[[float], None] | None:
        """Who is told how far a call of so called regions has come."""
        if self._report is None:
            return None
        report = self._report
        return lambda fraction: report(name, fraction)

    def measure(self, name: str, arguments: Mapping[str, Any]) -> Measure:
        """What to find out in a call. Of calls that are alike the transfer is measured in the first."""
        unknown = (name, signature(arguments, {})) not in self._transfers
        # One event at the least, so that ranks which have kept different numbers of them do the same.
        return Measure(transfer=self._comm is not None and unknown, events=max(1, self._events))

    def note_sweeps(self, name: str, arguments: Mapping[str, Any], outcome: PhasedOutcome) -> None:
        """A loop's regions have run through one pipeline."""
        noted = self.found.setdefault(name, RegionCalls())
        noted.calls += 1
        self._note(noted, outcome, (name, signature(arguments, {})))

    def _timed(self, noted: RegionCalls, call: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        start = time.perf_counter()
        returned = call(**arguments)
        noted.seconds += time.perf_counter() - start
        return returned

    def _note(self, noted: RegionCalls, outcome: Outcome | PhasedOutcome, alike: Any) -> None:
        start = time.perf_counter()
        noted.seconds += outcome.seconds
        noted.plan = outcome.plan
        trace = outcome.trace
        transfer = self._transfers.setdefault(alike, trace.transfer_seconds)
        if self._comm is None or self._comm.Get_rank() == 0:
            self._events -= max((len(rank.events) for rank in trace.ranks), default=0)
        self.sequence.add(replace(trace, transfer_seconds=transfer))
        self.sequence.measuring_seconds += time.perf_counter() - start

    def outcome(self, returned: Any, seconds: float) -> ProgramOutcome:
        """Of a run that took so many seconds, with those of measuring. Collective over the ranks: the first one's count."""
        sequence, ranks = self.sequence, 1
        seconds = max(0.0, seconds - sequence.measuring_seconds)
        figures = sequence.metrics(seconds)
        if self._comm is not None:
            ranks = self._comm.Get_size()
            seconds, figures = self._comm.bcast((seconds, figures), root=0)
        return ProgramOutcome(sequence.name, ranks, returned, seconds, self.found, figures, sequence.trace(seconds))
