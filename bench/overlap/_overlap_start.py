"""Starting the ranks of bench/overlap/overlap.py, on this machine or in the lab, and summing up what they bring back."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _pipelines import WIRE, Case, Contender, Job
from _ranks import run_worker
from _report import say, summary

from lapwing.launch.lab import Lab
from lapwing.trace.metrics import hidden

WORKER = Path(__file__).with_name("_overlap_worker.py")
RANKS = 2
LIMIT_SECONDS = 3600  # after which a race counts as hung

Run = dict[str, Any]


@dataclass(frozen=True)
class Race:
    """What came of a job: runs by contender, in the order of the rounds, so that equal positions were run together."""

    job: Job
    place: str
    plan: dict[str, Any]
    runs: dict[str, list[Run]]

    def seconds(self, name: str) -> list[float]:
        """Of one rank's start to its end, the longest of the ranks."""
        return [max(times["total"] for times in run["ranks"]) for run in self.runs[name]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds(name))

    def ratios(self, name: str, other: str) -> dict[str, float]:
        """Taken within each round, so that a slow phase of the machine cancels."""
        pairs = zip(self.seconds(name), self.seconds(other), strict=True)
        return summary([a / b for a, b in pairs])

    def most(self, name: str, *phases: str) -> dict[str, float]:
        """Seconds in some phases together, of the rank that spent most there."""
        return summary([max(sum(times[p] for p in phases) for times in run["ranks"]) for run in self.runs[name]])

    def hidden(self, name: str) -> dict[str, float] | None:
        """1 − exposed / transfer, with the wire's time in the same round."""
        exposed = [max(times["exposed"] for times in run["ranks"]) for run in self.runs[name]]
        shares = [hidden(e, t) for e, t in zip(exposed, self.seconds(WIRE.name), strict=True)]
        known = [share for share in shares if share is not None]
        return summary(known) if len(known) == len(shares) else None

    @property
    def steps(self) -> int:
        """Of the whole run: plans that pipeline a space loop count those of one sweep."""
        steps: int = self.plan["steps"]
        return steps if self.plan["mapping"] == "t" else steps * self.job.case.sweeps

    def to_json(self) -> dict[str, Any]:
        return {"job": asdict(self.job), "place": self.place, "plan": self.plan, "runs": self.runs}


@dataclass(frozen=True)
class Place:
    """Where two ranks run: on this machine, or each on a host of the lab."""

    lab: Lab | None = None

    @property
    def name(self) -> str:
        return "node" if self.lab is None else "lab"

    def rate(self) -> float | None:
        """Bytes a second that a link of the lab lets through; None where there is no limit, or it cannot be told."""
        if self.lab is None:
            return None
        command = ["tc", "-j", "-n", self.lab.hosts[0], "qdisc", "show", "dev", "eth0"]
        try:
            found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        except (OSError, ValueError, subprocess.CalledProcessError):
            return None
        return next((float(q["options"]["rate"]) for q in found if "rate" in q.get("options", {})), None)

    def race(self, case: Case, contenders: Sequence[Contender], repeat: int) -> Race:
        """Exits with a message where a rank fails; it has said why on standard error."""
        job = Job(case, tuple(contenders), repeat)
        what = f"overlap: {case.nest} {'x'.join(map(str, case.shape))}, tile {case.tile}, {self.name}"
        say(f"{what}: {', '.join(c.name for c in contenders)}")
        found = run_worker(what, WORKER, asdict(job), RANKS, self.lab, LIMIT_SECONDS)
        return Race(job, self.name, found["plan"], found["runs"])
