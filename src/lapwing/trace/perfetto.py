"""Traces in the Trace Event Format, which https://ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lapwing.trace.events import ACTIVITIES, RankTrace, RunTrace
from lapwing.trace.messages import TRANSFER, sent_by
from lapwing.trace.metrics import Metrics, metrics
from lapwing.trace.tracks import Track, tracks_of

_Place = tuple[int, int]  # process and thread


def perfetto_json(runs: Sequence[RunTrace], figures: Sequence[Metrics] | None = None) -> str:
    """A JSON document: a process for every rank of every run, predicted ranks too, and a thread for every track.

    figures: those of metrics() for every run, where they are known already. All of them are in ``otherData``, and what was
    hidden is in every rank's label.

    Times are microseconds since the run began, with nanosecond digits. Arrows lead from where a message was sent to the
    message on its way.
    """
    figures = figures if figures is not None else [metrics(run) for run in runs]
    others = _json({"runs": [one.to_json() for one in figures]})
    lines = ",\n".join(_lines(runs, figures))
    return f'{{"displayTimeUnit":"ns","otherData":{others},"traceEvents":[\n{lines}\n]}}\n'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(runs: Sequence[RunTrace], figures: Sequence[Metrics]) -> Iterator[str]:
    process = 1  # viewers take 0 for the idle process
    for run, one in zip(runs, figures, strict=True):
        groups = [("", run.ranks)] if run.predicted is None else [("", run.ranks), (", predicted", run.predicted)]
        for suffix, ranks in groups:
            prefix = f"{run.engine}{suffix}: " if len(runs) > 1 or suffix else ""
            said = "" if suffix else one.hidden_text()
            for line in _Group(ranks, prefix, process, said).events():
                yield _json(line)
            process += len(ranks)


class _Group:
    """The ranks of one run, as consecutive processes; ``said`` of each."""

    def __init__(self, ranks: Sequence[RankTrace], prefix: str, first_process: int, said: str) -> None:
        self.ranks, self.prefix, self.first_process, self.said = ranks, prefix, first_process, said
        self.origin = min((rank.begin for rank in ranks), default=0.0)
        self.tracks = [tracks_of(rank) for rank in ranks]
        self.senders = sent_by(ranks)
        self.positions = {rank.rank: k for k, rank in enumerate(ranks)}

    def events(self) -> Iterator[dict[str, Any]]:
        for k, rank in enumerate(self.ranks):
            yield from self._names(k, rank)
            for number, track in enumerate(self.tracks[k]):
                yield from self._slices(rank, track, (self._process(k), self._thread(k, number)))
        yield from self._arrows()

    def _process(self, k: int) -> int:
        return self.first_process + k

    def _thread(self, k: int, number: int) -> int:
        # Unique over all processes, which some viewers rely on.
        return self._process(k) * 1000 + number + 1

    def _names(self, k: int, rank: RankTrace) -> Iterator[dict[str, Any]]:
        process = self._process(k)
        name = f"{self.prefix}rank {rank.rank} on {rank.host}"
        yield _metadata("process_name", process, name=name)
        yield _metadata("process_sort_index", process, sort_index=process)
        dropped = f"{rank.dropped} later events were not kept" if rank.dropped else ""
        if labels := "; ".join(filter(None, [self.said, dropped])):
            yield _metadata("process_labels", process, labels=labels)
        for number, track in enumerate(self.tracks[k]):
            thread = self._thread(k, number)
            label = track.kind if track.lane == 0 else f"{track.kind} ({track.lane + 1})"
            yield _metadata("thread_name", process, thread, name=label)
            yield _metadata("thread_sort_index", process, thread, sort_index=number)

    def _slices(self, rank: RankTrace, track: Track, place: _Place) -> Iterator[dict[str, Any]]:
        for event in rank.events[track.events]:
            begin, end = self._nanoseconds(event["begin"]), self._nanoseconds(event["end"])
            yield {
                "ph": "X",
                "name": _name(rank, event),
                "cat": ACTIVITIES[event["activity"]],
                **_placed(place, begin),
                "dur": (end - begin) / 1000,
                "args": _arguments(rank, event),
            }

    def _arrows(self) -> Iterator[dict[str, Any]]:
        places = [self._places(k) for k in range(len(self.ranks))]
        for k, (rank, senders) in enumerate(zip(self.ranks, self.senders, strict=True)):
            for transfer in (senders >= 0).nonzero()[0].tolist():
                sender = self.positions[int(rank.events["peer"][transfer])]
                source = int(senders[transfer])
                arrow = {"name": "message", "cat": "message", "id": f"{self._process(k)}.{transfer}"}
                left = self._nanoseconds(self.ranks[sender].events["begin"][source])
                arrived = self._nanoseconds(rank.events["end"][transfer])
                yield {"ph": "s", **arrow, **_placed(places[sender][source], left)}
                yield {"ph": "f", "bp": "e", **arrow, **_placed(places[k][transfer], arrived)}

    def _places(self, k: int) -> dict[int, _Place]:
        return {
            event: (self._process(k), self._thread(k, number))
            for number, track in enumerate(self.tracks[k])
            for event in track.events.tolist()
        }

    def _nanoseconds(self, time: float) -> int:
        return round((float(time) - self.origin) * 1e9)


def _placed(place: _Place, nanoseconds: int) -> dict[str, Any]:
    return {"pid": place[0], "tid": place[1], "ts": nanoseconds / 1000}


def _metadata(kind: str, process: int, thread: int = 0, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": arguments}


def _name(rank: RankTrace, event: Any) -> str:
    """What is done, and of a program with several phases in which of them."""
    phase = f" in {rank.phase_names[event['phase']]}" if rank.phase_names else ""
    return ACTIVITIES[event["activity"]] + phase


def _arguments(rank: RankTrace, event: Any) -> dict[str, Any]:
    arguments: dict[str, int | float] = {"sweep": int(event["sweep"]), "step": int(rank.steps_of_phases(event))}
    if event["seconds"] < event["end"] - event["begin"] - 1e-9:
        arguments["spent us"] = round(float(event["seconds"]) * 1e6, 3)
    if event["exposed"] > 0:
        arguments["message on its way us"] = round(float(event["exposed"]) * 1e6, 3)
    if event["bytes"] > 0:
        arguments["bytes"] = int(event["bytes"])
    if event["peer"] >= 0:
        arguments["from rank" if event["activity"] == TRANSFER else "other rank"] = int(event["peer"])
    return arguments
