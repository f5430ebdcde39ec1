"""What a traced program's threads spent in MPI is never more than the time they had, however many call it at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.cli.tables.trace import show
from lapwing.trace.pmpi.exposure import Summary, summarise
from lapwing.trace.pmpi.gathering import gather
from lapwing.trace.pmpi.recording import CALL, RECEIVE, RECORD, SEND, STATES, TOTALS, Address, Recording

SITES = (
    Address("MPI_Send", "block", "none", 16, "f", ""),
    Address("MPI_Irecv", "start", "none", 32, "f", ""),
    Address("MPI_Wait", "wait", "none", 48, "f", ""),
)


def random_recording(rank: int, rng: np.random.Generator, threads: int, dropped: bool) -> Recording:
    """Threads that compute and call MPI for random times; some operations start in one call and finish in a later one."""
    rows = []
    begin, end = 100.0, 100.0
    totals = np.zeros(len(SITES), TOTALS)
    for thread in range(threads):
        clock = begin + (rng.random() if thread else 0.0)
        last_start = -1
        for _ in range(int(rng.integers(0 if thread == 0 else 1, 12))):
            clock += rng.exponential(0.2)
            seconds = float(rng.exponential(0.3))
            site = int(rng.integers(0, 3))
            call = len(rows)
            totals[site]["calls"] += 1
            totals[site]["seconds"] += seconds
            rows.append((clock, clock + seconds, seconds, 0, CALL, thread, 0, site, -1, -1, 0, 0, 1, -1))
            if site == 0:
                rows.append((clock, clock + seconds, 0.0, 80, SEND, thread, 0, site, 1 - rank, 0, 1, 0, call, call))
            elif site == 1:
                last_start = len(rows)
                rows.append((clock, 0.0, 0.0, 80, RECEIVE, thread, 0, site, 1 - rank, 0, 1, 0, call, -1))
            elif last_start >= 0:
                rows[last_start] = (*rows[last_start][:-1], call)
                last_start = -1
            clock += seconds
        end = max(end, clock)
    records = np.array(rows, RECORD) if rows else np.zeros(0, RECORD)
    more = 0
    if dropped and len(records):
        more = 3
        totals[0]["calls"] += more
        totals[0]["seconds"] += rng.random() * 5
    return Recording(
        rank,
        2,
        STATES[2],
        f"host{rank}",
        1,
        "MPICH",
        "program",
        begin,
        end + rng.random(),
        more,
        SITES,
        totals,
        records,
    )


def random_summary(seed: int, most_threads: int) -> Summary:
    rng = np.random.default_rng(seed)
    threads = [int(rng.integers(1, most_threads + 1)) for _ in range(2)]
    dropped = bool(rng.random() < 0.2)
    return summarise(gather([random_recording(k, rng, t, dropped) for k, t in enumerate(threads)], 200.0), 5)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_nothing_is_more_than_all(seed: int) -> None:
    found = random_summary(seed, most_threads=5)
    for rank in found.ranks:
        assert rank.threads == len(rank.computation_by_thread)
        assert 0 <= rank.exposed <= rank.mpi + 1e-9
        assert rank.mpi + rank.computation == pytest.approx(rank.seconds)
        assert 0 <= rank.overlapped <= rank.computation + 1e-9 or found.dropped
        assert 0 <= rank.could_overlap <= rank.exposed + 1e-9
        assert max(rank.computation_by_thread) <= found.seconds + 1e-9
    for part in (found.hidden, found.load_balance, found.communication_efficiency, found.parallel_efficiency):
        assert 0 <= part <= 1 + 1e-9
    assert found.parallel_efficiency == pytest.approx(found.load_balance * found.communication_efficiency)
    for site in found.sites:
        assert site.late_partner + site.transfer + site.unknown == pytest.approx(site.exposed)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_of_one_thread_it_is_the_whole_time_of_the_rank(seed: int) -> None:
    found = random_summary(seed, most_threads=1)
    for rank in found.ranks:
        assert rank.threads == 1
        assert rank.seconds <= found.seconds + 1e-9 or found.dropped
        assert rank.computation_by_thread == (rank.computation,)


def test_the_table_says_that_there_are_threads(capsys: pytest.CaptureFixture[str]) -> None:
    show(random_summary(3, most_threads=1), 5)
    assert "threads" not in capsys.readouterr().out
    show(next(s for s in (random_summary(seed, 4) for seed in range(20)) if s.ranks[0].threads > 1), 5)
    said = capsys.readouterr().out
    assert "threads)" in said
    assert "of the threads' time" in said
