"""What a trace proves: how much communication was hidden, and where the rest of the time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lapwing.trace.events import RankTrace, RunTrace
from lapwing.trace.exposure import exposed_by_rank
from lapwing.trace.replay import Replayed, replay
from lapwing.units import duration, share, size

# Below this much transfer a single interruption decides what was hidden: it is one time slice of Linux's scheduler,
# which is what a rank loses when another process gets its core.
NOISE_SECONDS = 3e-3

SHARES = ("compute", "pack", "unpack", "post", "wait", "poll", "disk")

# One line for people on each figure.
MEANINGS = {
    "hidden": "1 − exposed / transfer: the part of the communication that cost no time, because ranks computed meanwhile",
    "exposed": "how long a rank could do nothing, between its first and its last computation, but wait for messages on their "
    "way: never more than they take by themselves, nor than an ideal network would have saved",
    "transfer": "how long the same messages take with nothing else going on",
    "disk hidden": "1 − exposed / busy: the part of reading and writing that cost no time; exposed is how long a rank could do "
    "nothing but wait for its disk, busy how long any of its bytes were on their way from the disk or to it",
    "fill": "the longest a rank waited before its first computation",
    "drain": "the longest a rank went on after its last computation",
    "parallel efficiency": "POP: load balance × communication efficiency; the mean time in computation over the run time",
    "load balance": "POP: the mean over the longest time any rank spent computing",
    "communication efficiency": "POP: serialisation efficiency × transfer efficiency; the longest time any rank computed "
    "over the run time",
    "serialisation efficiency": "POP: the longest time any rank computed over the run time on a network that takes no time: "
    "what is lost here goes to waiting for each other and to packing and posting",
    "transfer efficiency": "POP: the run time on a network that takes no time over the real one: what is lost here goes to "
    "messages on their way, and to whatever else kept a rank waiting for one",
    "CPU lost": "the part of the ranks' time in which something else had their cores: other programs, or each other",
}


@dataclass(frozen=True)
class Spread:
    """A quantity over the ranks."""

    min: float
    mean: float
    max: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        return Spread(min(values), sum(values) / len(values), max(values)) if values else Spread(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DiskFigures:
    """Reading and writing of a run out of core.

    ``read_bytes`` and ``written_bytes`` are of all ranks. Of the rank that waited longest ``exposed_seconds`` are what it waited,
    the first read and the last write included, and ``busy_seconds`` those in which bytes were on their way;
    ``hidden`` = 1 − exposed / busy (None: too little to tell).
    """

    read_bytes: int
    written_bytes: int
    busy_seconds: float
    exposed_seconds: float
    hidden: float | None

    @staticmethod
    def of(times: Sequence[Mapping[str, float]]) -> DiskFigures | None:
        """Of the times of every rank; None where nothing was read or written."""
        read, written = (int(sum(t[name] for t in times)) for name in ("read_bytes", "written_bytes"))
        if read + written == 0:
            return None
        worst = max(times, key=lambda t: t["disk"])
        return DiskFigures(read, written, worst["disk_busy"], worst["disk"], hidden(worst["disk"], worst["disk_busy"]))

    def __str__(self) -> str:
        moved = f"{size(self.read_bytes)} read, {size(self.written_bytes)} written"
        exposed = f"{duration(self.exposed_seconds)} exposed of {duration(self.busy_seconds)}"
        if self.hidden is None:
            return f"{moved}: {exposed}, too little to tell what was hidden"
        return f"{share(self.hidden)} hidden: {exposed}; {moved}"


@dataclass(frozen=True)
class Efficiencies:
    """The POP Centre of Excellence's standard metrics (pop-coe.eu), each between 0 and 1.

    With c a rank's seconds in generated computation (packing and unpacking are not useful work), T the seconds of the
    slowest rank and T0 those on an ideal network (replay.Replayed; never less than max c nor more than T):

    - load_balance = mean c / max c
    - serialisation = max c / T0: lost because ranks wait for each other, and to packing, posting and polling
    - transfer = T0 / T: lost because messages take time
    - communication = serialisation × transfer = max c / T
    - parallel = load_balance × communication = mean c / T

    None where it cannot be told: nothing computed, or events dropped for those that need T0.
    """

    parallel: float | None
    load_balance: float | None
    communication: float | None
    serialisation: float | None
    transfer: float | None

    def by_name(self) -> dict[str, float | None]:
        """Under their POP names."""
        return {
            "parallel efficiency": self.parallel,
            "load balance": self.load_balance,
            "communication efficiency": self.communication,
            "serialisation efficiency": self.serialisation,
            "transfer efficiency": self.transfer,
        }


@dataclass(frozen=True)
class Metrics:
    """Figures of one run; seconds unless said otherwise.

    ``hidden`` = 1 − exposed / transfer in steady state (None: nothing was transferred, or too little to tell).
    ``exposed_seconds`` is what communication cost the rank that it cost most, ``exposed_by_rank`` each of them (exposure.py);
    ``transfer_seconds`` what the same messages take with nothing else going on (None: not measured).
    ``fill_seconds`` and ``drain_seconds`` are the longest time before a rank's first and after its last computation.
    ``compute_seconds`` is the spread over ranks and ``load_imbalance`` its max / mean − 1.
    ``shares`` are parts of the ranks' time in each activity: with a helper thread they can add up to more than 1, and what is
    left to 1 is the runtime's own. ``exposed_share`` is the part of their time in which ranks were exposed, and
    ``cpu_lost_share`` that in which something else had their cores (``cpu_lost_by_rank``, in seconds). ``dropped`` events are
    missing from the trace: without them exposed is what is known to be its most, and efficiencies that need a replay are None.
    ``disk`` is None where all was in memory.
    """

    engine: str
    seconds: float
    hidden: float | None
    exposed_seconds: float | None
    transfer_seconds: float | None
    fill_seconds: float
    drain_seconds: float
    compute_seconds: Spread
    load_imbalance: float
    shares: dict[str, float]
    exposed_share: float
    exposed_by_rank: tuple[float, ...]
    cpu_lost_share: float
    cpu_lost_by_rank: tuple[float, ...]
    messages: int
    bytes: int
    efficiencies: Efficiencies
    dropped: int
    disk: DiskFigures | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        pop = {name: share(value) for name, value in self.efficiencies.by_name().items()}
        lost = f", CPU lost {share(self.cpu_lost_share)}" if self.cpu_lost_share >= 0.0005 else ""
        disk = [] if self.disk is None else [f"  disk         {self.disk}"]
        return "\n".join(
            [
                f"{self.engine}: {self.hidden_text()}",
                *disk,
                f"  ranks' time  {self.shares_text() or 'nothing traced'}; "
                f"fill {duration(self.fill_seconds)}, drain {duration(self.drain_seconds)}{lost}",
                f"  POP          parallel efficiency {pop['parallel efficiency']} = load balance {pop['load balance']} "
                f"× communication efficiency {pop['communication efficiency']} "
                f"(serialisation {pop['serialisation efficiency']} × transfer {pop['transfer efficiency']})",
            ]
        )

    def shares_text(self) -> str:
        """Where the ranks' time went, in the order of SHARES."""
        texts = {name: f"{name} {share(part)}" for name, part in self.shares.items() if part >= 0.0005}
        if self.exposed_share >= 0.0005 and "wait" in texts:
            texts["wait"] += f" (exposed {share(self.exposed_share)})"
        return ", ".join(texts.values())

    def hidden_text(self) -> str:
        """What was hidden, and what that rests on."""
        if self.exposed_seconds is None:
            return "nothing to communicate"
        exposed = f"{duration(self.exposed_seconds)} exposed"
        if self.transfer_seconds is None:
            return exposed
        if self.hidden is None:
            return f"{exposed} of {duration(self.transfer_seconds)} of transfer, too little to tell what was hidden"
        return f"{share(self.hidden)} of the communication hidden: {exposed} of {duration(self.transfer_seconds)}"


def metrics(trace: RunTrace) -> Metrics:
    """The figures of a run. Where nothing was sent, exposed and hidden are None."""
    replayed = replay(trace.ranks)
    return figures(
        trace.engine,
        trace.seconds,
        [rank.times for rank in trace.ranks],
        exposed_by_rank(trace, replayed),
        trace.transfer_seconds,
        elapsed_seconds(trace.ranks),
        ideal_seconds(trace.ranks, replayed),
        sum(rank.dropped for rank in trace.ranks),
    )


def figures(
    engine: str,
    seconds: float,
    times: Sequence[Mapping[str, float]],
    exposed: tuple[float, ...],
    transfer: float | None,
    elapsed: float,
    ideal: float | None,
    dropped: int,
) -> Metrics:
    """The figures of what is known of every rank: its times, and its exposed seconds. elapsed, ideal: seconds of the slowest
    rank, and on an ideal network (None: not known)."""
    total = sum(t["total"] for t in times)
    compute = Spread.of([t["compute"] for t in times])
    messages = int(sum(t["messages"] for t in times))
    if not messages:
        exposed, transfer = (), None
    worst = max(exposed, default=None)
    lost = tuple(t["cpu_lost"] for t in times)
    return Metrics(
        engine=engine,
        seconds=seconds,
        hidden=hidden(worst, transfer),
        exposed_seconds=worst,
        transfer_seconds=transfer,
        fill_seconds=max((t["fill"] for t in times), default=0.0),
        drain_seconds=max((t["drain"] for t in times), default=0.0),
        compute_seconds=compute,
        load_imbalance=compute.max / compute.mean - 1 if compute.mean > 0 else 0.0,
        shares={name: sum(t[name] for t in times) / total if total > 0 else 0.0 for name in SHARES},
        exposed_share=sum(exposed) / total if total > 0 else 0.0,
        exposed_by_rank=exposed,
        cpu_lost_share=sum(lost) / total if total > 0 else 0.0,
        cpu_lost_by_rank=lost,
        messages=messages,
        bytes=int(sum(t["bytes"] for t in times)),
        efficiencies=_efficiencies(compute, elapsed, ideal),
        dropped=dropped,
        disk=DiskFigures.of(times),
    )


def hidden(exposed: float | None, transfer: float | None) -> float | None:
    """The part of the transfer that was hidden, 0 to 1; None where there is too little to tell."""
    if exposed is None or transfer is None or transfer < NOISE_SECONDS:
        return None
    return min(1.0, max(0.0, 1 - exposed / transfer))


def elapsed_seconds(ranks: Sequence[RankTrace]) -> float:
    """Of the slowest rank."""
    return max((rank.times["total"] for rank in ranks), default=0.0)


def ideal_seconds(ranks: Sequence[RankTrace], replayed: Replayed | None) -> float | None:
    """The same on an ideal network: never less than a rank computes, nor more than it took. None where that is not known."""
    if replayed is None:
        return None
    computing = max(rank.times["compute"] for rank in ranks)
    return min(max(replayed.seconds, computing), elapsed_seconds(ranks))


def _efficiencies(compute: Spread, elapsed: float, ideal: float | None) -> Efficiencies:
    if compute.max <= 0 or elapsed <= 0:
        return Efficiencies(None, None, None, None, None)
    return Efficiencies(
        parallel=compute.mean / elapsed,
        load_balance=compute.mean / compute.max,
        communication=compute.max / elapsed,
        serialisation=None if ideal is None else compute.max / ideal,
        transfer=None if ideal is None else ideal / elapsed,
    )
