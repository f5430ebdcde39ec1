"""Exposed and overlapped communication of a traced MPI program, per call site.

All quantities are seconds summed over the ranks, between MPI_Init and MPI_Finalize:

- exposed: inside calls in which the rank can do nothing else: blocking calls, waits, and tests and probes.
- late partner: the part of exposed before the partner had started its part: the sender its send, the receiver (where the
  send ended only after that) its receive, the last rank or the root a collective. POP and Scalasca call it waiting.
- transfer: the rest of exposed, where the partner is known: the message or collective was under way. unknown: the rest
  where it is not (one-sided synchronisation, records beyond the cap, ranks without a recording).
- awaited: the exposed time, wherever it is, of the operations that a site started.
- overlapped: outside MPI while an operation of the site was under way, from the end of the call that started it to the
  beginning of the call that found it finished. It is what was hidden at most: nobody saw the message move.
- could overlap: what of exposed could at most be hidden, were all data dependences in favour. A wait can hide behind the
  computation the rank does before it comes to the same call again (or did since it last left it, if that is longer).
  Time lost because other ranks compute more than this one cannot be hidden: a rank that computes C seconds where the
  busiest computes C_max has at least C_max − C of waiting for late partners left.

Threads that call MPI at the same time are blocked, and compute, each by itself: seconds of a rank are those of all its threads
that call MPI, the thread of MPI_Init's from there to MPI_Finalize and another's from its first call to its last. So what is
exposed, overlapped or computed is never more than all the time there was.

Efficiencies are POP's: parallel efficiency = mean C / T is load balance (mean C / max C) times communication efficiency
(max C / T), for T seconds of run and C of computation on a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapwing.trace.pmpi.callsites import CallSite, resolve
from lapwing.trace.pmpi.gathering import Run
from lapwing.trace.pmpi.matching import group_numbers
from lapwing.trace.pmpi.recording import CALL, COLLECTIVE, RECEIVE, SEND, Recording

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SiteMetrics:
    """One call site; seconds summed over ranks, see the module's docstring. seconds is all time inside the calls."""

    site: CallSite
    ranks: int
    calls: int
    bytes: int
    seconds: float
    exposed: float
    late_partner: float
    transfer: float
    unknown: float
    awaited: float
    overlapped: float
    could_overlap: float

    @property
    def hidden(self) -> float | None:
        """The share hidden at most: overlapped / (overlapped + awaited); None for a site that starts nothing."""
        both = self.overlapped + self.awaited
        return self.overlapped / both if both > 0 else None


@dataclass(frozen=True)
class Wait:
    """One exposed call. why is late sender, late receiver, last to enter, transfer or unknown; late the seconds before
    the partner was there. partner is a rank or None, partner_site where it was. ended is False for a call that had not
    returned when the program ended."""

    rank: int
    site: CallSite
    begin: float
    seconds: float
    late: float
    why: str
    partner: int | None
    partner_site: CallSite | None
    bytes: int
    ended: bool


@dataclass(frozen=True)
class RankMetrics:
    """One rank: seconds from MPI_Init to MPI_Finalize, outside MPI, inside, and the sums over its call sites.

    All are of its ``threads`` together; ``computation_by_thread`` has the seconds outside MPI of each.
    """

    rank: int
    host: str
    state: str
    threads: int
    seconds: float
    computation_by_thread: tuple[float, ...]
    computation: float
    mpi: float
    exposed: float
    overlapped: float
    could_overlap: float


@dataclass(frozen=True)
class Summary:
    """A traced run. seconds is from the first rank's MPI_Init to the last one's MPI_Finalize."""

    seconds: float
    ranks: tuple[RankMetrics, ...]
    sites: tuple[SiteMetrics, ...]
    waits: tuple[Wait, ...]
    dropped: int

    @property
    def hidden(self) -> float:
        """overlapped / (overlapped + exposed) of all ranks: at most this share of communication was hidden."""
        overlapped = sum(rank.overlapped for rank in self.ranks)
        exposed = sum(rank.exposed for rank in self.ranks)
        return overlapped / (overlapped + exposed) if overlapped + exposed > 0 else 0.0

    @property
    def load_balance(self) -> float:
        return _ratio(self._mean_computation, self._most_computation)

    @property
    def communication_efficiency(self) -> float:
        return _ratio(self._most_computation, self.seconds)

    @property
    def parallel_efficiency(self) -> float:
        return _ratio(self._mean_computation, self.seconds)

    @property
    def _mean_computation(self) -> float:
        return sum(rank.computation for rank in self.ranks) / sum(rank.threads for rank in self.ranks)

    @property
    def _most_computation(self) -> float:
        return max(max(rank.computation_by_thread) for rank in self.ranks)


def summarise(run: Run, longest: int) -> Summary:
    """The metrics of a run, with its ``longest`` longest waits."""
    late, cause = _late(run)
    blocking = np.array([site.role != "start" for site in run.sites] or [False])[run.site]
    exposed = np.where((run.records["kind"] == CALL) & blocking, run.records["seconds"], 0.0)
    late = np.minimum(late, exposed)
    transfer = np.where(_is_known(run), exposed - late, 0.0)
    awaited = _awaited(run, exposed, late, cause)
    overlapped = _overlapped(run)
    total = _totals(run)
    ranks = _ranks(run, total, exposed, late, overlapped)
    could = _could_overlap(run, transfer, late, ranks)
    return Summary(
        seconds=float(run.ends[[r.rank for r in run.recordings]].max() - run.origin),
        ranks=tuple(_with_could(rank, could[run.rank == rank.rank].sum()) for rank in ranks),
        sites=_sites(run, total, late, transfer, awaited, overlapped, could),
        waits=_longest(run, exposed, late, cause, longest),
        dropped=sum(recording.dropped for recording in run.recordings),
    )


def _late(run: Run) -> tuple[Array, Array]:
    """For every call the seconds before its partner was there, and the operation that was waited for, or -1."""
    records = run.records
    late, cause = np.zeros(len(records)), np.full(len(records), -1)
    kind, finish, partner = records["kind"], records["finish"], run.partners.operation
    probed = (kind == CALL) & (partner >= 0)
    # A send says less: it may have ended with nobody there. So receives and collectives go last and overwrite.
    for operations in (
        np.flatnonzero((kind == SEND) & (finish >= 0) & (partner >= 0)),
        np.flatnonzero(np.isin(kind, (RECEIVE, COLLECTIVE)) & (finish >= 0) & (partner >= 0)),
        np.flatnonzero(probed),
    ):
        call = np.where(kind[operations] == CALL, operations, finish[operations])
        ready = records["begin"][partner[operations]]
        seconds = ready - records["begin"][call]
        counts = (seconds > 0) & ((kind[operations] != SEND) | (ready <= records["end"][call]))
        operations, call, seconds = operations[counts], call[counts], seconds[counts]
        latest = np.argsort(seconds, kind="stable")
        late[call[latest]], cause[call[latest]] = seconds[latest], operations[latest]
    return late, cause


def _is_known(run: Run) -> Array:
    """Calls all of whose operations have found their partners."""
    records = run.records
    operations = np.flatnonzero((records["kind"] != CALL) & (records["finish"] >= 0))
    known, some = run.partners.known.copy(), run.partners.known.copy()
    some[records["finish"][operations]] = True
    known[:] = some
    known[records["finish"][operations][~run.partners.known[operations]]] = False
    return known


def _awaited(run: Run, exposed: Array, late: Array, cause: Array) -> Array:
    """The exposed seconds of every operation: a late partner's for the one that was waited for, the rest by bytes."""
    records = run.records
    awaited = np.zeros(len(records))
    operations = np.flatnonzero((records["kind"] != CALL) & (records["finish"] >= 0))
    call = records["finish"][operations]
    weight = records["bytes"][operations] + 1.0
    share = weight / np.bincount(call, weight, len(records))[call]
    awaited[operations] = share * (exposed - late)[call]
    waiting = np.flatnonzero((cause >= 0) & (late > 0))
    np.add.at(awaited, cause[waiting], late[waiting])
    return awaited


def _ahead(run: Run) -> Array:
    """Operations that were started in another call than the one they finished in."""
    records = run.records
    return np.flatnonzero(
        (records["kind"] != CALL) & (records["finish"] >= 0) & (records["start"] != records["finish"])
    )


def _windows(run: Run) -> tuple[Array, Array, Array]:
    """Operations that finish in another call of the same thread, and the computation before and after their windows."""
    records = run.records
    operations = _ahead(run)
    start, finish = records["start"][operations], records["finish"][operations]
    apart = (start >= 0) & (records["thread"][start] == records["thread"][finish])
    operations, start, finish = operations[apart], start[apart], finish[apart]
    return operations, run.computed_after[start], run.computed_before[finish]


def _overlapped(run: Run) -> dict[tuple[int, int], float]:
    """Seconds by rank and site, and by rank for all sites (-1), without counting concurrent windows twice."""
    operations, low, high = _windows(run)
    result: dict[tuple[int, int], float] = {}
    rank, thread = run.rank[operations], run.records["thread"][operations].astype(np.int64)
    for site in (run.site[operations], np.full(len(operations), -1)):
        group = group_numbers(rank, thread, site)
        for key, seconds in zip(zip(rank, site, strict=True), _union(group, low, high), strict=True):
            where = (int(key[0]), int(key[1]))
            result[where] = result.get(where, 0.0) + float(seconds)
    return result


def _union(group: Array, low: Array, high: Array) -> Array:
    """What each interval adds to the union of its group."""
    added = np.zeros(len(group))
    if len(group) == 0:
        return added
    order = np.lexsort((low, group))
    # Groups are put one after the other on the line.
    offset = group[order] * (2.0 * (high.max() - low.min()) + 1.0)
    ends = np.maximum.accumulate(high[order] + offset)
    reached = np.r_[-np.inf, ends[:-1]]
    added[order] = np.maximum(0.0, high[order] + offset - np.maximum(low[order] + offset, reached))
    return added


def _could_overlap(run: Run, transfer: Array, late: Array, ranks: list[RankMetrics]) -> Array:
    """For every call the seconds of it that could hide behind computation."""
    calls = np.flatnonzero(run.records["kind"] == CALL)
    order = calls[np.lexsort((calls, run.site[calls], run.records["thread"][calls], run.rank[calls]))]
    same = np.zeros(len(order), bool)
    same[1:] = (
        (run.rank[order][1:] == run.rank[order][:-1])
        & (run.site[order][1:] == run.site[order][:-1])
        & (run.records["thread"][order][1:] == run.records["thread"][order][:-1])
    )
    most = max(max(rank.computation_by_thread) for rank in ranks)
    all_of_it, hideable = np.zeros(len(run.records)), np.zeros(len(run.records))
    for rank in ranks:
        for own, computation in zip(_by_thread(run, rank.rank), rank.computation_by_thread, strict=True):
            all_of_it[own] = computation
            waited = late[own].sum()
            hideable[own] = max(0.0, 1.0 - (most - computation) / waited) if waited > 0 else 0.0
    since, until = np.zeros(len(order)), np.zeros(len(order))
    since[:] = run.computed_before[order] - np.where(same, np.r_[0.0, run.computed_after[order][:-1]], 0.0)
    following = np.r_[same[1:], False]
    until[:] = np.where(following, np.r_[run.computed_before[order][1:], 0.0], all_of_it[order])
    until -= run.computed_after[order]
    could = np.zeros(len(run.records))
    wanted = transfer[order] + late[order] * hideable[order]
    could[order] = np.minimum(wanted, np.maximum(0.0, np.maximum(since, until)))
    return could


@dataclass(frozen=True)
class _Total:
    ranks: int = 0
    calls: int = 0
    bytes: int = 0
    seconds: float = 0.0


def _totals(run: Run) -> dict[tuple[int, int], _Total]:
    """Calls, bytes and seconds by rank and site: those of the recordings' tables, and of calls that never returned."""
    number = {site: k for k, site in enumerate(run.sites)}
    resolved = resolve(address for recording in run.recordings for address in recording.sites)
    total: dict[tuple[int, int], _Total] = {}

    def add(rank: int, site: int, calls: int, size: int, seconds: float) -> None:
        old = total.get((rank, site), _Total())
        total[rank, site] = _Total(1, old.calls + calls, old.bytes + size, old.seconds + seconds)

    for recording in run.recordings:
        for address, row in zip(recording.sites, recording.totals, strict=True):
            add(recording.rank, number[resolved[address]], int(row["calls"]), int(row["bytes"]), float(row["seconds"]))
    for index in np.flatnonzero(run.open):
        add(int(run.rank[index]), int(run.site[index]), 1, 0, float(run.records["seconds"][index]))
    return total


def _ranks(
    run: Run,
    total: dict[tuple[int, int], _Total],
    exposed: Array,
    late: Array,
    overlapped: dict[tuple[int, int], float],
) -> list[RankMetrics]:
    metrics = []
    for recording in run.recordings:
        own = [(run.sites[site], t) for (rank, site), t in total.items() if rank == recording.rank]
        inside = sum(t.seconds for _, t in own)
        computation = _computation_by_thread(run, recording, inside)
        metrics.append(
            RankMetrics(
                rank=recording.rank,
                host=recording.host,
                state=recording.state,
                threads=len(computation),
                seconds=sum(computation) + inside,
                computation_by_thread=computation,
                computation=sum(computation),
                mpi=inside,
                exposed=sum(t.seconds for site, t in own if site.role != "start"),
                overlapped=overlapped.get((recording.rank, -1), 0.0),
                could_overlap=0.0,
            )
        )
    return metrics


def _by_thread(run: Run, rank: int) -> list[Array]:
    """The records of each thread of a rank that calls MPI, as indices; that of MPI_Init's comes first, and is always there."""
    own = np.flatnonzero(run.rank == rank)
    threads = run.records["thread"][own]
    others = np.unique(threads[(run.records["kind"][own] == CALL) & (threads != 0)])
    return [own[threads == number] for number in (0, *others)]


def _computation_by_thread(run: Run, recording: Recording, inside: float) -> tuple[float, ...]:
    """Seconds outside MPI of each thread of a rank; inside: all its threads' in MPI, those of calls beyond the cap too."""
    end = float(run.ends[recording.rank])
    computation = []
    recorded = 0.0
    for number, own in enumerate(_by_thread(run, recording.rank)):
        calls = run.records[own][run.records["kind"][own] == CALL]
        begin = recording.begin if number == 0 else float(calls["begin"].min())
        # Of calls beyond the cap nobody knows which thread made them.
        last = end if number == 0 or recording.dropped else float(calls["end"].max())
        in_calls = float(calls["seconds"].sum())
        recorded += in_calls
        computation.append(max(0.0, last - begin - in_calls))
    everything = sum(computation)
    left = max(0.0, everything - max(0.0, inside - recorded))
    return tuple(one * left / everything if everything > 0 else 0.0 for one in computation)


def _with_could(rank: RankMetrics, seconds: float) -> RankMetrics:
    return RankMetrics(**{**rank.__dict__, "could_overlap": float(seconds)})


def _sites(
    run: Run,
    total: dict[tuple[int, int], _Total],
    late: Array,
    transfer: Array,
    awaited: Array,
    overlapped: dict[tuple[int, int], float],
    could: Array,
) -> tuple[SiteMetrics, ...]:
    def by_site(values: Array) -> Array:
        return np.bincount(run.site, values, len(run.sites))

    sums = [by_site(values) for values in (late, transfer, awaited, could)]
    metrics = []
    for k, site in enumerate(run.sites):
        own = [t for (_, number), t in total.items() if number == k]
        seconds = sum(t.seconds for t in own)
        exposed = seconds if site.role != "start" else 0.0
        late_here, transfer_here, awaited_here, could_here = (float(values[k]) for values in sums)
        metrics.append(
            SiteMetrics(
                site=site,
                ranks=len(own),
                calls=sum(t.calls for t in own),
                bytes=sum(t.bytes for t in own),
                seconds=seconds,
                exposed=exposed,
                late_partner=late_here,
                transfer=transfer_here,
                unknown=max(0.0, exposed - late_here - transfer_here),
                awaited=awaited_here,
                overlapped=sum(seconds for (_, number), seconds in overlapped.items() if number == k),
                could_overlap=could_here,
            )
        )
    return tuple(sorted(metrics, key=lambda m: (-m.exposed, -m.awaited, str(m.site))))


def _longest(run: Run, exposed: Array, late: Array, cause: Array, count: int) -> tuple[Wait, ...]:
    order = np.argsort(-exposed, kind="stable")[:count]
    return tuple(_wait(run, int(k), exposed, late, cause) for k in order if exposed[k] > 0)


def _wait(run: Run, call: int, exposed: Array, late: Array, cause: Array) -> Wait:
    records = run.records
    operations = np.flatnonzero((records["finish"] == call) & (records["kind"] != CALL))
    # A call that never returned has not been linked with the operations it waits for, unless it started them itself.
    waited_for = int(cause[call])
    if waited_for < 0 and len(operations):
        waited_for = int(operations[np.argmax(records["bytes"][operations])])
    partner = int(run.partners.operation[waited_for]) if waited_for >= 0 else -1
    peer = int(run.rank[partner]) if partner >= 0 else int(records["peer"][waited_for]) if waited_for >= 0 else -1
    return Wait(
        rank=int(run.rank[call]),
        site=run.sites[run.site[call]],
        begin=float(records["begin"][call] - run.origin),
        seconds=float(exposed[call]),
        late=float(late[call]),
        why=_why(run, call, waited_for, 2 * late[call] >= exposed[call] > 0),
        partner=peer if peer >= 0 else None,
        partner_site=run.sites[run.site[partner]] if partner >= 0 else None,
        bytes=int(records["bytes"][operations].sum()),
        ended=not bool(run.open[call]),
    )


def _why(run: Run, call: int, waited_for: int, was_late: bool) -> str:
    if waited_for < 0 or not (run.partners.known[waited_for] or was_late):
        return "unknown"
    if not was_late:
        return "transfer"
    kind = int(run.records["kind"][waited_for])
    return {SEND: "late receiver", COLLECTIVE: "last to enter"}.get(kind, "late sender")


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 1.0
