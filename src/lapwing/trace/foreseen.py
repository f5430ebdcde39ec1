"""What a plan foresees, in the form of a trace: the exact timeline of its pipeline as events of every rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.timeline import timeline
from lapwing.trace.events import EVENT, PHASES, UNDER_WAY, RankTrace

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
    phases = np.tile([PHASES.index(name) for name in _OF_A_STEP], len(start))
    happens = ends > begins
    events = np.zeros(int(happens.sum()), EVENT)
    events["begin"], events["end"], events["phase"] = begins[happens], ends[happens], phases[happens]
    events["seconds"] = events["end"] - events["begin"]
    events["step"] = np.repeat(np.arange(len(start)), len(_OF_A_STEP))[happens]
    events["peer"] = -1
    spent = {
        name: float(events["seconds"][events["phase"] == PHASES.index(name)].sum())
        for name in PHASES
        if name not in UNDER_WAY
    }
    nothing = dict.fromkeys(
        ("drain", "exposed", "disk_busy", "cpu_lost", "messages", "bytes", "read_bytes", "written_bytes"), 0
    )
    times = {"total": float(end[-1]), **spent, "fill": float(start[0]), **nothing}
    return RankTrace(number, "", 0.0, times, events)
