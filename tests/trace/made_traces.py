"""Traces made by hand: of a few events, and of whole pipelines with the times of blocking and overlapping runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lapwing.trace.events import ACTIVITIES, EVENT, UNDER_WAY, RankTrace, RunTrace

Event = dict[str, Any]


def event(activity: str, begin: float, end: float, **more: Any) -> Event:
    """One event; seconds are all of it, peer is nobody and bytes are none unless said otherwise."""
    return {"activity": activity, "begin": begin, "end": end, "seconds": end - begin, "peer": -1, **more}


def rank_of(number: int, events: Iterable[Event], total: float, begin: float = 0.0, **more: Any) -> RankTrace:
    """A rank whose times are those of its events; fill and drain are what lies around its computations."""
    listed = sorted(events, key=lambda e: e["end"])
    array = np.zeros(len(listed), dtype=EVENT)
    for k, given in enumerate(listed):
        for name, value in given.items():
            array[k][name] = ACTIVITIES.index(value) if name == "activity" else value
    spent = {p: sum(e["seconds"] for e in listed if e["activity"] == p) for p in ACTIVITIES if p not in UNDER_WAY}
    computed = [e for e in listed if e["activity"] == "compute"]
    first = min((e["begin"] for e in computed), default=begin)
    last = max((e["end"] for e in computed), default=begin)
    steady = [e for e in listed if first <= e["begin"] and e["end"] <= last]
    arrived = [e for e in listed if e["activity"] == "transfer"]
    times = {
        "total": total, "cpu_lost": 0.0, **spent, "fill": first - begin, "drain": begin + total - last if computed else 0.0,
        "exposed": sum(e.get("exposed", 0.0) for e in steady),
        "messages": len(arrived), "bytes": sum(e.get("bytes", 0) for e in arrived),
        "read_bytes": sum(e.get("bytes", 0) for e in listed if e["activity"] == "read"),
        "written_bytes": sum(e.get("bytes", 0) for e in listed if e["activity"] == "write"),
        "disk_busy": 0.0,
    }  # fmt: skip
    dropped = more.pop("dropped", 0)
    times.update(more)
    return RankTrace(number, f"host{number}", begin, times, array, dropped)


def run_of(ranks: Sequence[RankTrace], engine: str = "overlap", **more: Any) -> RunTrace:
    seconds = max((rank.times["total"] for rank in ranks), default=0.0)
    fields: dict[str, Any] = {"nest": "smooth", "tile": 64, "grid": (len(ranks),), "seconds": seconds, **more}
    return RunTrace(engine=engine, transfer_seconds=fields.pop("transfer_seconds", None), ranks=tuple(ranks), **fields)


def out_of_core() -> RunTrace:
    """One rank, two slabs: the first is waited for, the second read while the first is computed on; writing is waited for."""
    events = [
        event("disk", 0, 2), event("read", 0, 2, bytes=100), event("read", 1, 3, bytes=100, step=1),
        event("compute", 2, 6), event("compute", 6, 8, step=1), event("write", 6, 7, bytes=100),
        event("write", 8, 9, bytes=100, step=1), event("disk", 8, 9),
    ]  # fmt: skip
    return run_of([rank_of(0, events, total=9, disk_busy=5.0)])


def pipeline(
    engine: str, ranks: int = 2, steps: int = 20, compute: float = 1e-3, transfer: float = 8e-4, uneven: float = 0.0
) -> RunTrace:
    """Ranks in a row, each step needing a message from the rank before: as blocking or overlapping runs have it.

    uneven: by this part steps alternate between longer and shorter.
    """
    made = [_Rank(k, ranks, compute, uneven) for k in range(ranks)]
    for rank in made:
        before = made[rank.number - 1] if rank.number > 0 else None
        for step in range(steps):
            arrival = None if before is None else before.sent[step] + transfer
            if engine == "blocking":
                rank.blocking_step(step, before, transfer)
            else:
                rank.overlap_step(step, before, arrival)
    traces = [rank_of(rank.number, rank.events, rank.clock) for rank in made]
    return run_of(traces, engine, transfer_seconds=steps * transfer)


class _Rank:
    """A rank of a pipeline, and what it has done so far."""

    SMALL = 2e-5  # seconds of every pack, unpack and post
    BYTES = 4096

    def __init__(self, number: int, ranks: int, compute: float, uneven: float) -> None:
        self.number, self.compute, self.uneven = number, compute, uneven
        self.has_next = number + 1 < ranks
        self.clock = 0.0
        self.sent: list[float] = []
        self.events: list[Event] = []

    def blocking_step(self, step: int, before: _Rank | None, transfer: float) -> None:
        if before is not None:
            self._receive(step, before, before.sent[step] + transfer)
        self._compute(step, polls=False)
        if self.has_next:
            self._post(step)
            self._add("wait", step, transfer, exposed=transfer, peer=self.number + 1, bytes=self.BYTES)

    def overlap_step(self, step: int, before: _Rank | None, arrival: float | None) -> None:
        if before is not None and arrival is not None:
            self._receive(step, before, arrival)
        self._compute(step, polls=True)
        if self.has_next:
            self._post(step)

    def _receive(self, step: int, before: _Rank, arrival: float) -> None:
        sent = before.sent[step]
        if arrival > self.clock:
            waited = arrival - self.clock
            exposed = min(waited, arrival - sent)
            self._add("wait", step, waited, exposed=exposed, peer=before.number, bytes=self.BYTES)
        self.events.append(
            event("transfer", sent, arrival, peer=before.number, bytes=self.BYTES, step=max(0, step - 1))
        )
        self._add("unpack", step, self.SMALL, peer=before.number, bytes=self.BYTES)

    def _compute(self, step: int, polls: bool) -> None:
        length = self.compute * (1 + self.uneven * (-1) ** (step + self.number))
        begin = self.clock
        self._add("compute", step, length)
        if polls:
            polled = 0.02 * length
            self.events[-1]["seconds"] = length - polled
            poll = event("poll", begin + 0.1 * length, begin + 0.95 * length, step=step)
            self.events.append({**poll, "seconds": polled})

    def _post(self, step: int) -> None:
        self._add("pack", step, self.SMALL, peer=self.number + 1, bytes=self.BYTES)
        self.sent.append(self.clock)
        self._add("post", step, self.SMALL, peer=self.number + 1, bytes=self.BYTES)

    def _add(self, activity: str, step: int, length: float, **more: Any) -> None:
        self.events.append(event(activity, self.clock, self.clock + length, step=step, **more))
        self.clock += length


def two_ranks() -> RunTrace:
    """Rank 0 computes 2 s and sends; rank 1 waits 3 s, of which 1 s for the transfer, and computes 3 s."""
    first = rank_of(
        0,
        [event("compute", 0, 2), event("pack", 2, 2.25, peer=1), event("post", 2.25, 2.5, peer=1)],
        total=2.5,
    )
    second = rank_of(
        1,
        [
            event("wait", 0, 3.25, peer=0, exposed=1.0),
            event("transfer", 2.25, 3.25, peer=0, bytes=80),
            event("unpack", 3.25, 3.5, peer=0, bytes=80),
            event("compute", 3.5, 6.5),
        ],
        total=7,
    )
    return run_of([first, second], transfer_seconds=1.0)


def many_events(count: int) -> RunTrace:
    """Steps of irregular lengths, as measured ones are."""
    lengths = np.random.default_rng(3).exponential(2e-6, count)
    events = np.zeros(count, dtype=EVENT)
    events["end"] = np.cumsum(lengths)
    events["begin"] = events["end"] - lengths
    events["seconds"] = lengths
    events["activity"] = np.arange(count) % 2 * ACTIVITIES.index("post")
    events["step"] = np.arange(count) // 2
    events["peer"] = 1
    whole = rank_of(0, [], total=float(events["end"][-1]))
    return run_of([RankTrace(0, "host", 0.0, whole.times, events)])
