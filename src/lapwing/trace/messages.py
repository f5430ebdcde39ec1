"""Where a message on its way came from, and what it was needed for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.events import ACTIVITIES, RankTrace

COMPUTE, PACK, UNPACK, POST, WAIT, POLL, TRANSFER, DISK, READ, WRITE = range(len(ACTIVITIES))

_CLOCK_SECONDS = 1e-6  # by so much may a sender's and a receiver's record of the same moment differ

Indices = npt.NDArray[np.int64]


def sent_by(ranks: Sequence[RankTrace]) -> list[Indices]:
    """For each rank an index per event: of a transfer, the event of its ``peer`` that sent it; -1 where unknown.

    That is the post whose time the message carries, or, where nothing is posted (one-sided, between ranks of a node), the
    pack before it. Between two ranks messages travel in order: as many transfers as posts belong together one by one;
    otherwise the clock tells.
    """
    by_number = {rank.rank: rank for rank in ranks}
    result = []
    for receiver in ranks:
        found = np.full(len(receiver.events), -1, dtype=np.int64)
        for peer, transfers in _by_peer(receiver.events, TRANSFER):
            if peer in by_number:
                found[transfers] = _senders(by_number[peer].events, receiver, transfers)
        result.append(found)
    return result


def needed_by(rank: RankTrace) -> Indices:
    """An index per event of a rank: of a transfer, the event that could not begin without the message; -1 for none.

    That is the unpack in the same place of the order, where there are as many as messages; else the first computation
    that began after the message was there.
    """
    found = np.full(len(rank.events), -1, dtype=np.int64)
    for peer, transfers in _by_peer(rank.events, TRANSFER):
        unpacks = np.flatnonzero((rank.events["activity"] == UNPACK) & (rank.events["peer"] == peer))
        if len(unpacks) == len(transfers):
            found[transfers] = unpacks
        else:
            computes = np.flatnonzero(rank.events["activity"] == COMPUTE)
            begins = rank.events["begin"][computes]
            found[transfers] = _pick(computes, np.searchsorted(begins, rank.events["end"][transfers] - _CLOCK_SECONDS))
    return found


def _senders(events: npt.NDArray[Any], receiver: RankTrace, transfers: Indices) -> Indices:
    to_receiver = events["peer"] == receiver.rank
    posts = np.flatnonzero(to_receiver & (events["activity"] == POST))
    if len(posts) == len(transfers):
        return posts
    packs = np.flatnonzero(to_receiver & (events["activity"] == PACK))
    candidates, moments = (posts, events["begin"][posts]) if len(posts) else (packs, events["end"][packs])
    sent = receiver.events["begin"][transfers] + _CLOCK_SECONDS
    return _pick(candidates, np.searchsorted(moments, sent, side="right") - 1)


def _pick(candidates: Indices, positions: Indices) -> Indices:
    """The candidates at the positions; -1 at positions outside."""
    inside = (positions >= 0) & (positions < len(candidates))
    result = np.full(len(positions), -1, dtype=np.int64)
    result[inside] = candidates[positions[inside]]
    return result


def _by_peer(events: npt.NDArray[Any], activity: int) -> Iterator[tuple[int, Indices]]:
    chosen = np.flatnonzero(events["activity"] == activity)
    for peer in np.unique(events["peer"][chosen]):
        yield int(peer), chosen[events["peer"][chosen] == peer]
