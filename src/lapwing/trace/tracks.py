"""A rank's events on tracks, so that no two events of a track overlap."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from lapwing.trace.events import ACTIVITIES, UNDER_WAY, RankTrace
from lapwing.trace.messages import COMPUTE, Indices

# In the order in which they are shown.
KINDS = ("compute", "communication", "helper thread", "messages on their way", "reads", "writes")


@dataclass(frozen=True)
class Track:
    """Events of one kind, as indices into the rank's events, by when they began. Overlapping ones are on other lanes."""

    kind: str
    lane: int
    events: Indices = field(repr=False)


def tracks_of(rank: RankTrace) -> tuple[Track, ...]:
    """All events of a rank; computing and communication of the computing thread even where there are none."""
    activity, thread = rank.events["activity"], rank.events["thread"]
    by_name = {name: activity == ACTIVITIES.index(name) for name in UNDER_WAY}
    on_way = np.any(list(by_name.values()), axis=0)
    chosen = (
        (thread == 0) & (activity == COMPUTE),
        (thread == 0) & (activity != COMPUTE) & ~on_way,
        (thread != 0) & ~on_way,
        *by_name.values(),
    )
    tracks: list[Track] = []
    for kind, mask in zip(KINDS, chosen, strict=True):
        found = [Track(kind, lane, events) for lane, events in enumerate(_lanes(rank, np.flatnonzero(mask)))]
        if not found and kind in KINDS[:2]:
            found = [Track(kind, 0, np.empty(0, dtype=np.int64))]
        tracks += found
    return tuple(tracks)


def _lanes(rank: RankTrace, events: Indices) -> Iterator[Indices]:
    """The events by beginning, each on the first lane that is free by then."""
    begins, ends = rank.events["begin"][events], rank.events["end"][events]
    order = np.lexsort((ends, begins))
    if len(events) and (begins[order][1:] >= ends[order][:-1]).all():
        yield events[order]
        return
    lanes = np.zeros(len(events), dtype=np.int64)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for k, begin, end in zip(order.tolist(), begins[order].tolist(), ends[order].tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        lanes[k] = lane
        heapq.heappush(busy, (end, lane))
    for lane in range(int(lanes.max()) + 1 if len(lanes) else 0):
        yield events[order[lanes[order] == lane]]
