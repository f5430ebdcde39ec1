"""Exposed communication is a part of the transfer whatever a trace holds, and everything that shows it shows the same."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Event, event, pipeline, rank_of, run_of

from lapwing.trace.events import RunTrace
from lapwing.trace.exposure import exposed_by_rank, exposed_seconds
from lapwing.trace.metrics import metrics
from lapwing.trace.perfetto import perfetto_json
from lapwing.trace.replay import replay
from lapwing.trace.timeline import timeline_page
from lapwing.units import duration, share


def random_trace(seed: int) -> RunTrace:
    """Ranks in a ring that compute, wait and send for random times, held up at random as by a scheduler."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    clocks = rng.random(count) * 1e-3
    sent = [0.0] * count
    events: list[list[Event]] = [[] for _ in range(count)]

    def some(mean: float) -> float:
        held_up = 4e-3 if rng.random() < 0.1 else 0.0
        return float(rng.exponential(mean)) + held_up

    def add(rank: int, activity: str, seconds: float, step: int, **more: float) -> None:
        begin = float(clocks[rank])
        events[rank].append(event(activity, begin, begin + seconds, step=step, **more))
        clocks[rank] += seconds

    for step in range(int(rng.integers(1, 12))):
        for rank in range(count):
            before, after = (rank - 1) % count, (rank + 1) % count
            size = int(rng.integers(0, 5000))
            if sent[before] and rng.random() < 0.8:
                waited = some(3e-4)
                way = max(0.0, float(clocks[rank]) + waited - sent[before])
                add(rank, "wait", waited, step, peer=before, bytes=size, exposed=min(waited, way))
                arrived = float(clocks[rank])
                way_begin = min(sent[before], arrived)
                events[rank].append(event("transfer", way_begin, arrived, step=step, peer=before, bytes=size))
                add(rank, "unpack", some(1e-5), step, peer=before, bytes=size)
            if rng.random() < 0.9:
                add(rank, "compute", some(5e-4), step)
            if rng.random() < 0.9:
                add(rank, "pack", some(1e-5), step, peer=after, bytes=size)
                sent[rank] = float(clocks[rank])
                add(rank, "post", some(1e-5), step, peer=after, bytes=size)
                if rng.random() < 0.3:
                    add(rank, "wait", some(2e-4), step, peer=after, bytes=size)
    dropped = 5 if rng.random() < 0.1 else 0
    ranks = [rank_of(k, found, total=float(clocks[k]), dropped=dropped) for k, found in enumerate(events)]
    transfer = float(rng.choice([0.0, 1e-6, 1e-3, 5e-3, 0.1]))
    return run_of(ranks, "overlap", transfer_seconds=transfer)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_exposed_is_a_part_of_the_transfer_and_of_what_was_lost(seed: int) -> None:
    run = random_trace(seed)
    found = metrics(run)
    if not found.messages:
        assert found.hidden is found.exposed_seconds is found.transfer_seconds is None
        return
    assert found.exposed_seconds is not None
    assert found.transfer_seconds is not None
    assert 0 <= found.exposed_seconds <= found.transfer_seconds
    assert found.exposed_seconds == max(found.exposed_by_rank) == exposed_seconds(run)
    assert found.hidden is None or 0 <= found.hidden <= 1
    assert 0 <= found.exposed_share <= found.shares["wait"] + 1e-12
    replayed = replay(run.ranks)
    if replayed is not None:
        exposed = exposed_by_rank(run, replayed)
        assert all(0 <= one <= lost for one, lost in zip(exposed, replayed.lost, strict=True))


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_text_page_and_perfetto_say_the_same(seed: int) -> None:
    run = random_trace(seed)
    found = metrics(run)
    document = json.loads(perfetto_json([run]))
    assert document["otherData"]["runs"] == [json.loads(json.dumps(found.to_json()))]
    labels = {e["args"]["labels"].partition("; ")[0] for e in document["traceEvents"] if e["name"] == "process_labels"}
    assert labels == {found.hidden_text()}
    page = timeline_page([run])
    assert found.hidden_text() in str(found)
    for text in (share(found.hidden), duration(found.exposed_seconds), found.shares_text()):
        assert text in page


def test_a_rank_that_gets_no_core_while_it_waits_is_not_exposed_for_as_long() -> None:
    """Forty steps; the receiver waits for messages of 0.1 ms, and ten times it is kept from its core for 20 ms meanwhile."""
    sender, receiver, clock = [], [], 1e-3
    for step in range(40):
        sent = 1e-3 * (step + 1)
        sender += [event("compute", sent - 1e-3, sent, step=step), event("post", sent, sent, peer=1)]
        arrived = clock + (20e-3 if step % 4 == 0 else 1e-4)
        receiver += [
            event("wait", clock, arrived, step=step, peer=0, bytes=8, exposed=arrived - clock),
            event("transfer", sent, arrived, step=step, peer=0, bytes=8),
            event("compute", arrived, arrived + 1e-3, step=step),
        ]
        clock = arrived + 1e-3
    ranks = [rank_of(0, sender, clock), rank_of(1, receiver, clock)]
    replayed = replay(ranks)
    assert replayed is not None
    assert max(replayed.lost) > 0.15
    found = metrics(run_of(ranks, transfer_seconds=40 * 1e-4))
    assert found.exposed_seconds == pytest.approx(39 * 1e-4)  # the first wait is the pipeline's filling


def test_a_sender_held_back_by_a_slow_receiver_is_not_exposed() -> None:
    """The receiver computes three times as long; the sender waits for room: load imbalance, not communication."""
    sender, receiver = [], []
    for step in range(20):
        begin = 3e-3 * step
        sender += [
            event("compute", begin, begin + 1e-3, step=step),
            event("post", begin + 1e-3, begin + 1e-3, step=step, peer=1),
            event("wait", begin + 1e-3, begin + 3e-3, step=step, peer=1),
        ]
        receiver += [
            event("transfer", begin + 1e-3, begin + 1.2e-3, step=step, peer=0, bytes=8),
            event("compute", begin + 2e-3, begin + 5e-3, step=step),
        ]
    found = metrics(run_of([rank_of(0, sender, 60e-3), rank_of(1, receiver, 62e-3)], transfer_seconds=4e-3))
    assert found.exposed_seconds == 0
    assert found.hidden == 1


def test_a_synchronous_send_is_exposed_for_as_long_as_its_message_takes() -> None:
    """The receiver comes later than the message, and so does not wait for it; the sender does, for both."""
    sender, receiver = [], []
    for step in range(20):
        begin, message = 3e-3 * step, {"step": step, "peer": 1, "bytes": 8}
        sender += [
            event("compute", begin, begin + 1e-3, step=step),
            event("post", begin + 1e-3, begin + 1e-3, **message),
            event("wait", begin + 1e-3, begin + 3e-3, **message),
        ]
        receiver += [
            event("transfer", begin + 1e-3, begin + 3e-3, step=step, peer=0, bytes=8),
            event("compute", begin + 3e-3, begin + 6e-3, step=step),
        ]
    found = metrics(run_of([rank_of(0, sender, 60e-3), rank_of(1, receiver, 63e-3)], transfer_seconds=20 * 2e-4))
    assert found.exposed_seconds == pytest.approx(19 * 2e-4)  # the last one ends after the last computation


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_blocking_hides_nothing_and_overlap_all(ranks: int) -> None:
    assert metrics(pipeline("blocking", ranks, steps=60)).hidden == pytest.approx(0, abs=0.05)
    assert metrics(pipeline("overlap", ranks, steps=60)).hidden == pytest.approx(1)
