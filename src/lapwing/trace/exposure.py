"""How much of a run's communication was exposed: the one place that says so for tables, JSON, texts, pages and files.

*Transfer* is how long the same messages take with nothing else going on. *Exposed* is, for a rank between its first and its
last computation, the time that two bounds leave, both of which hold for what a transfer can have cost:

- what an ideal network would have spared the rank (replay.Replayed.lost). A rank that would have had to wait just as long
  for its neighbour to get there has not waited for communication, even if a message was on its way meanwhile.
- what it waited while messages were on their way to it, and of each wait no more than the messages that came in it take by
  themselves; of a wait for a synchronous send to end, which is what a blocking run is made of, no more than that message
  takes. A wait that goes on for longer was for something else: a partner that had no CPU to send with, this rank's own
  turn on a core, a receiver that was late and held its sender back.

So exposed is never more than transfer. Nor can it be: a run is a longest path of computations and messages, and
max (compute + transfer) <= max compute + max transfer, so that communication costs a run at most what it takes by itself.
What a run lost beyond that was lost to load imbalance or to ranks without a core, and is in their shares of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.events import RankTrace, RunTrace
from lapwing.trace.messages import COMPUTE, POLL, POST, TRANSFER, WAIT
from lapwing.trace.replay import Replayed, replay

_CLOCK_SECONDS = 1e-9  # an arrival that ends a wait is noted within it, but for rounding

Floats = npt.NDArray[np.float64]


def exposed_seconds(trace: RunTrace) -> float:
    """What communication cost the rank that it cost most, in steady state; at most the transfer's seconds."""
    return max(exposed_by_rank(trace, replay(trace.ranks)), default=0.0)


def exposed_by_rank(trace: RunTrace, replayed: Replayed | None) -> tuple[float, ...]:
    """The exposed seconds of every rank; replayed: replay(trace.ranks).

    Where events were dropped all that is known is the time that ranks waited with a message on its way, and the transfer.
    """
    most = float("inf") if trace.transfer_seconds is None else trace.transfer_seconds
    if replayed is None:
        return tuple(min(rank.times["exposed"], most) for rank in trace.ranks)
    seconds_a_byte = _seconds_a_byte(trace)
    return tuple(
        min(lost, _waited_for_messages(rank, seconds_a_byte), most)
        for rank, lost in zip(trace.ranks, replayed.lost, strict=True)
    )


def _seconds_a_byte(trace: RunTrace) -> float | None:
    """The transfer's seconds, shared among the bytes of the rank that gets most; None: not measured."""
    if trace.transfer_seconds is None:
        return None
    most = max((_bytes(rank.events[rank.events["activity"] == TRANSFER]).sum() for rank in trace.ranks), default=0.0)
    return trace.transfer_seconds / most if most > 0 else 0.0


def _waited_for_messages(rank: RankTrace, seconds_a_byte: float | None) -> float:
    """Seconds that a rank waited between its first and last computation for messages on their way, of every wait at most what
    its messages take by themselves."""
    events = rank.events
    computations = events[events["activity"] == COMPUTE]
    if len(computations) == 0:
        return 0.0
    steady = (events["begin"] >= computations["begin"].min()) & (events["end"] <= computations["end"].max())
    chosen = (events["activity"] == WAIT) & (events["thread"] == 0) & steady
    waits, sent = events[chosen], _ends_a_send(events)[chosen]
    on_their_way: Floats = np.where(sent, waits["end"] - waits["begin"], waits["exposed"])
    if seconds_a_byte is not None:
        bytes = np.where(sent, _bytes(waits), _arrived_during(waits, events))
        on_their_way = np.minimum(on_their_way, seconds_a_byte * bytes)
    return float(on_their_way.sum())


def _ends_a_send(events: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which events are waits for a synchronous send to end: those that follow a post of the same message."""
    found = np.zeros(len(events), bool)
    own = np.flatnonzero((events["thread"] == 0) & ~np.isin(events["activity"], (TRANSFER, POLL)))
    before, after = events[own[:-1]], events[own[1:]]
    alike = (before["activity"] == POST) & (after["activity"] == WAIT) & (after["bytes"] > 0)
    for name in ("peer", "sweep", "step", "bytes"):
        alike &= before[name] == after[name]
    found[own[1:]] = alike
    return found


def _arrived_during(waits: npt.NDArray[Any], events: npt.NDArray[Any]) -> Floats:
    """For every wait, the bytes of the messages that came in it."""
    arrived = events[events["activity"] == TRANSFER]
    order = np.argsort(arrived["end"], kind="stable")
    ends, before = arrived["end"][order], np.concatenate([[0.0], np.cumsum(_bytes(arrived[order]))])
    first = np.searchsorted(ends, waits["begin"], side="right")
    last = np.searchsorted(ends, waits["end"] + _CLOCK_SECONDS, side="right")
    found: Floats = before[last] - before[np.minimum(first, last)]
    return found


def _bytes(messages: npt.NDArray[Any]) -> Floats:
    """Sizes that messages are weighed by: an empty one takes its time as well."""
    sizes: Floats = np.maximum(messages["bytes"], 1).astype(np.float64)
    return sizes
