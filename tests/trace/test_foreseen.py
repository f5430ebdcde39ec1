"""A plan's timeline as a trace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lapwing.schedule.pipeline import Channel, Engine, Pipeline
from lapwing.schedule.timeline import timeline
from lapwing.trace.events import ACTIVITIES
from lapwing.trace.foreseen import foreseen


def relay(engine: Engine = "overlap", ranks: int = 3) -> Pipeline:
    channel = Channel((1,), pack=2e-6, send=1e-6, receive=1e-6, unpack=2e-6, wire=4e-5, latency=1e-5)
    compute = np.linspace(1e-4, 2e-4, ranks).reshape(ranks, 1)
    return Pipeline((ranks,), 10, 2, compute, (channel,), engine)


@pytest.mark.parametrize("engine", ["blocking", "overlap"])
def test_events_follow_each_other_and_end_with_the_timeline(engine: Engine) -> None:
    pipeline = relay(engine)
    exact = timeline(pipeline)
    ranks = foreseen(pipeline, (1,), 10_000)
    assert ranks is not None
    for number, rank in enumerate(ranks):
        events = rank.events
        assert rank.rank == number
        assert np.allclose(events["begin"][1:], events["end"][:-1])
        assert events["end"][-1] == exact.end[number, -1] == rank.times["total"]
        assert rank.times["compute"] == pytest.approx(pipeline.compute[number, 0] * 20)
        assert events["seconds"].sum() == pytest.approx(rank.times["total"])
        waited = events[events["activity"] == ACTIVITIES.index("wait")]
        if engine == "overlap":
            assert waited["seconds"].sum() == pytest.approx(exact.waits[number])


def test_ranks_are_numbered_against_a_descending_loop() -> None:
    ahead, behind = foreseen(relay(), (1,), 10_000), foreseen(relay(), (-1,), 10_000)
    assert ahead is not None
    assert behind is not None
    assert [r.times["compute"] for r in behind] == [r.times["compute"] for r in reversed(ahead)]


def test_more_events_than_there_is_room_for_are_not_made() -> None:
    assert foreseen(relay(), (1,), 239) is None
    assert foreseen(relay(), (1,), 240) is not None


def test_a_helper_takes_the_handling_of_messages() -> None:
    ranks = foreseen(replace(relay(), engine="helper"), (1,), 10_000)
    assert ranks is not None
    assert all(rank.times["pack"] == rank.times["unpack"] == 0 for rank in ranks)
