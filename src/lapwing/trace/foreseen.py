"""What a plan foresees, in the form of a trace: the exact timeline of its pipeline as events of every rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lapwing.schedule.disk_ring import DiskPipeline, RankTimeline, Span, disk_timeline
from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.timeline import timeline
from lapwing.trace.events import ACTIVITIES, EVENT, UNDER_WAY, RankTrace

_OF_A_STEP = ("wait", "unpack", "compute", "pack")


def foreseen(pipeline: Pipeline, directions: Sequence[int], most_events: int) -> tuple[RankTrace, ...] | None:
    """The ranks of a pipeline as their traces should look; None where that would be more events.

    A step waits, unpacks (with receiving), computes and packs (with sending), one after the other; what a step waits for in
    its midst counts as waiting before it.
    directions: 1 or -1 along each axis, -1 where ranks are numbered against the loop (Partition.steps).
    """
    if pipeline.ranks * pipeline.total_steps * len(_OF_A_STEP) > most_events:
        return None
    exact = timeline(pipeline)
    compute = np.broadcast_to(pipeline.compute, (*pipeline.grid, pipeline.steps))
    ranks = []
    for number in range(pipeline.ranks):
        coordinates = np.unravel_index(number, pipeline.grid)
        place = tuple(
            int(c) if direction == 1 else parts - 1 - int(c)
            for c, direction, parts in zip(coordinates, directions, pipeline.grid, strict=True)
        )
        work = np.tile(compute[place], pipeline.sweeps) + pipeline.step_overhead
        received, sent = _handling(pipeline, place)
        ranks.append(_rank(number, exact.start[place], exact.end[place], work, received, sent))
    return tuple(ranks)


def _handling(pipeline: Pipeline, place: tuple[int, ...]) -> tuple[float, float]:
    """CPU seconds a step for what comes and for what goes."""
    received = sent = 0.0
    if pipeline.engine == "helper":
        return received, sent
    for channel in pipeline.channels:
        before = [p - o for p, o in zip(place, channel.offset, strict=True)]
        after = [p + o for p, o in zip(place, channel.offset, strict=True)]
        if all(0 <= b < parts for b, parts in zip(before, pipeline.grid, strict=True)):
            received += channel.receive + channel.unpack
        if all(0 <= a < parts for a, parts in zip(after, pipeline.grid, strict=True)):
            sent += channel.pack + channel.send
    return received, sent


def _rank(
    number: int,
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    work: npt.NDArray[np.float64],
    received: float,
    sent: float,
) -> RankTrace:
    # Waiting in the midst of a step is put before it, so that what is left fills the step's end.
    packed = end - sent
    computed = packed - work
    unpacked = computed - received
    last = np.concatenate([[0.0], end[:-1]])
    edges = np.stack([last, np.maximum(last, unpacked), np.maximum(last, computed), np.maximum(last, packed), end])
    begins, ends = edges[:-1].T.ravel(), edges[1:].T.ravel()
    activities = np.tile([ACTIVITIES.index(name) for name in _OF_A_STEP], len(start))
    happens = ends > begins
    events = np.zeros(int(happens.sum()), EVENT)
    events["begin"], events["end"], events["activity"] = begins[happens], ends[happens], activities[happens]
    events["seconds"] = events["end"] - events["begin"]
    events["step"] = np.repeat(np.arange(len(start)), len(_OF_A_STEP))[happens]
    events["peer"] = -1
    times = _times(events, total=float(end[-1]), fill=float(start[0]))
    return RankTrace(number, "", 0.0, times, events)


def foreseen_on_disk(pipeline: DiskPipeline, most_events: int) -> tuple[RankTrace, ...] | None:
    """The same of a run out of core: steps, waits for the disk and for other ranks, slabs that are read and written."""
    slabs = pipeline.passes * pipeline.slabs
    if pipeline.ranks * (3 * pipeline.total_steps + 2 * slabs) > most_events:
        return None
    ranks = disk_timeline(pipeline).ranks
    return tuple(_rank_on_disk(pipeline, number, rank) for number, rank in enumerate(ranks))


def _rank_on_disk(pipeline: DiskPipeline, number: int, rank: RankTimeline) -> RankTrace:
    spans: list[tuple[str, Span]] = []
    last = 0.0
    for span, on_disk in zip(rank.steps, rank.disk, strict=True):
        sweep, step = span.at
        at = (sweep - pipeline.opening, step)
        spans += [
            ("disk", Span(at, last, last + on_disk)),
            ("wait", Span(at, last + on_disk, span.begin)),
            ("compute", Span(at, span.begin, span.end)),
        ]
        last = span.end
    spans.append(("disk", Span(spans[-1][1].at, last, rank.end)))
    for activity, moved in (("read", rank.reads), ("write", rank.writes)):
        spans += [(activity, Span((span.at[0] * pipeline.pass_sweeps, span.at[1]), *span[1:])) for span in moved]
    happens = sorted((one for one in spans if one[1].end > one[1].begin), key=lambda one: one[1].end)
    events = np.zeros(len(happens), EVENT)
    events["activity"] = [ACTIVITIES.index(activity) for activity, _ in happens]
    for name, values in (
        ("begin", [span.begin for _, span in happens]),
        ("end", [span.end for _, span in happens]),
        ("sweep", [span.at[0] for _, span in happens]),
        ("step", [span.at[1] for _, span in happens]),
    ):
        events[name] = values
    events["seconds"] = events["end"] - events["begin"]
    events["peer"] = -1
    busy = sum(span.end - span.begin for span in (*rank.reads, *rank.writes))
    computing = [span for span in rank.steps if span.at[0] >= pipeline.opening]
    drain = rank.end - computing[-1].end
    return RankTrace(
        number, "", 0.0, _times(events, total=rank.end, fill=computing[0].begin, drain=drain, disk_busy=busy), events
    )


def _times(events: npt.NDArray[np.void], **known: float) -> dict[str, float]:
    """The times of a rank by its events; those that models do not have are 0."""
    spent = {
        name: float(events["seconds"][events["activity"] == ACTIVITIES.index(name)].sum())
        for name in ACTIVITIES
        if name not in UNDER_WAY
    }
    nothing = dict.fromkeys(
        ("drain", "exposed", "disk_busy", "cpu_lost", "messages", "bytes", "read_bytes", "written_bytes"), 0.0
    )
    return {**nothing, **spent, **known}
