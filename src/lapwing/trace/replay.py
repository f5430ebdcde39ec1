"""How long a run would have taken on an ideal network, on which every message arrives when it is sent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lapwing.trace.events import RankTrace
from lapwing.trace.messages import COMPUTE, PACK, POST, TRANSFER, UNPACK, WAIT, needed_by, sent_by

_Step = tuple[int, int, int]  # rank, sweep, step
_Event = tuple[int, int]  # rank and event, as positions


@dataclass(frozen=True)
class Replayed:
    """A run as it would have been on an ideal network.

    ``seconds``: of the slowest rank. ``lost``: for every rank, how much longer the time from its first computation's begin to
    its last one's end was than here: what it lost to waiting that an ideal network would have spared it.
    """

    seconds: float
    lost: tuple[float, ...]


def replay(ranks: Sequence[RankTrace]) -> Replayed | None:
    """The run, had messages taken no time and sends always had room; None where events were dropped or there are none.

    The trace is replayed in its own order. All ranks begin together. Every event but a wait takes as long as it took,
    and so does what lies between events; waits take no time of their own. What a message was needed for
    (messages.needed_by) begins no earlier than the message is sent in the replay; where a rank stores straight into
    another's arrays nothing is on its way, and what it packs is needed by the other's next computation. A helper thread
    packs and posts a step after the step is computed, and the step is computed after what the helper unpacked for it;
    in between the helper's idle time is left out.
    """
    if any(rank.dropped for rank in ranks) or not any(len(rank.events) for rank in ranks):
        return None
    replay = _Replay(ranks)
    for rank, event in _in_order(ranks):
        replay.advance(rank, event)
    return Replayed(replay.seconds(), replay.lost())


def _in_order(ranks: Sequence[RankTrace]) -> list[_Event]:
    """All events, by when they began; of two that began together the one that ended first."""
    rank = np.concatenate([np.full(len(r.events), k) for k, r in enumerate(ranks)])
    event = np.concatenate([np.arange(len(r.events)) for r in ranks])
    begin = np.concatenate([r.events["begin"] for r in ranks])
    end = np.concatenate([r.events["end"] for r in ranks])
    order = np.lexsort((end, begin))
    return list(zip(rank[order].tolist(), event[order].tolist(), strict=True))


@dataclass
class _Span:
    """From the begin of a rank's first computation to the end of its last, as it was and in the replay."""

    begin: float
    ideal_begin: float
    end: float = 0.0
    ideal_end: float = 0.0


class _Replay:
    def __init__(self, ranks: Sequence[RankTrace]) -> None:
        self.ranks = ranks
        columns = ("activity", "thread", "sweep", "step", "begin", "end")
        self.events = [list(zip(*(r.events[name].tolist() for name in columns), strict=True)) for r in ranks]
        self.awaits = _awaited_messages(ranks)
        self.clock = [[0.0, 0.0] for _ in ranks]  # of the computing and the helper thread
        self.measured = [rank.begin for rank in ranks]  # up to where the computing thread's time is accounted for
        self.sent: dict[_Event, float] = {}
        self.computed: dict[_Step, float] = {}
        self.unpacked: dict[_Step, float] = {}
        self.spans: dict[int, _Span] = {}

    def advance(self, rank: int, event: int) -> None:
        activity, thread, sweep, step, begin, end = self.events[rank][event]
        if activity == TRANSFER:
            return
        if activity == WAIT:
            if thread == 0:
                self._skip(rank, begin, end)
            return
        at = (rank, sweep, step)
        earliest = max((self.sent.get(message, 0.0) for message in self.awaits.get((rank, event), ())), default=0.0)
        if thread == 0:
            if activity == COMPUTE:
                earliest = max(earliest, self.unpacked.get(at, 0.0))
            start = max(self.clock[rank][0] + begin - self.measured[rank], earliest)
            self.measured[rank] = max(self.measured[rank], end)
        else:
            if activity != UNPACK:
                earliest = max(earliest, self.computed.get(at, 0.0))
            start = max(self.clock[rank][1], earliest)
        finish = start + end - begin
        # A poll lies inside the step it belongs to.
        self.clock[rank][thread] = max(self.clock[rank][thread], finish)
        if activity == COMPUTE:
            self.computed[at] = finish
            self._note_computation(rank, begin, end, finish)
        elif activity == UNPACK and thread == 1:
            self.unpacked[at] = finish
        self.sent[rank, event] = start if activity == POST else finish

    def _skip(self, rank: int, begin: float, end: float) -> None:
        self.clock[rank][0] += max(0.0, begin - self.measured[rank])
        self.measured[rank] = max(self.measured[rank], end)

    def _note_computation(self, rank: int, begin: float, end: float, finish: float) -> None:
        span = self.spans.setdefault(rank, _Span(begin, finish - (end - begin)))
        span.end, span.ideal_end = end, finish

    def lost(self) -> tuple[float, ...]:
        """Per rank, what the time between its first and last computation lost; nothing where it computed nothing."""
        lost = [0.0] * len(self.ranks)
        for rank, span in self.spans.items():
            lost[rank] = max(0.0, (span.end - span.begin) - (span.ideal_end - span.ideal_begin))
        return tuple(lost)

    def seconds(self) -> float:
        ends = []
        for rank, (computing, helping), measured in zip(self.ranks, self.clock, self.measured, strict=True):
            left = max(0.0, rank.begin + rank.times["total"] - measured)
            ends.append(max(computing + left, helping))
        return max(ends, default=0.0)


def _awaited_messages(ranks: Sequence[RankTrace]) -> dict[_Event, list[_Event]]:
    """For events that could not begin without messages, the events that sent those."""
    positions = {rank.rank: k for k, rank in enumerate(ranks)}
    awaited: dict[_Event, list[_Event]] = defaultdict(list)
    for k, (rank, senders) in enumerate(zip(ranks, sent_by(ranks), strict=True)):
        needs = needed_by(rank)
        for transfer in np.flatnonzero((senders >= 0) & (needs >= 0)).tolist():
            sender = positions[int(rank.events["peer"][transfer])]
            awaited[k, int(needs[transfer])].append((sender, int(senders[transfer])))
    for sender, packs in enumerate(ranks):
        for receiver in ranks:
            if not _from(receiver, TRANSFER, packs.rank).any():
                for pack, compute in _stores(packs, receiver):
                    awaited[positions[receiver.rank], compute].append((sender, pack))
    return awaited


def _stores(sender: RankTrace, receiver: RankTrace) -> Iterator[tuple[int, int]]:
    """Packs for a receiver, and its first computation that began after each."""
    packs = np.flatnonzero(_from(sender, PACK, receiver.rank))
    computes = np.flatnonzero(receiver.events["activity"] == COMPUTE)
    following = np.searchsorted(receiver.events["begin"][computes], sender.events["end"][packs])
    for pack, next_compute in zip(packs.tolist(), following.tolist(), strict=True):
        if next_compute < len(computes):
            yield pack, int(computes[next_compute])


def _from(rank: RankTrace, activity: int, peer: int) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (rank.events["activity"] == activity) & (rank.events["peer"] == peer)
    return found
