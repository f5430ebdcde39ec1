"""What is foreseen of several phases: parts that add up, and many sweeps from some."""

from __future__ import annotations

import numpy as np
import pytest

from lapwing.planner import prediction
from lapwing.planner.prediction import predict_phases
from lapwing.schedule.phased import PhasedPipeline, Route, RoutedMessage, phased_timeline
from lapwing.schedule.pipeline import Engine


def two_ranks(sweeps: int, wire: float = 0.5, engine: Engine = "overlap") -> PhasedPipeline:
    """Each sends the other what its second step of the next sweep needs."""
    message = RoutedMessage(made=0, needed=0, pack=0.1, send=0.1, receive=0.1, unpack=0.1, wire=wire)
    routes = (Route(0, 1, 1, 4, (message,)), Route(1, 0, 1, 4, (message,)))
    return PhasedPipeline((np.array([1.0, 2.0]),) * 2, ((0,),) * 2, sweeps, routes, engine)


@pytest.mark.parametrize("engine", ["overlap", "helper"])
@pytest.mark.parametrize("wire", [0.0, 0.5, 9.0])
def test_parts_add_up(wire: float, engine: Engine) -> None:
    found = predict_phases(two_ranks(6, wire, engine))
    assert found.seconds == pytest.approx(found.compute + found.messages + found.exposed + found.fill)
    assert found.seconds == pytest.approx(phased_timeline(two_ranks(6, wire, engine)).makespan)
    assert (found.compute, found.transfer) == (18.0, 6 * wire)
    assert (found.exposed > 1) == (wire > 5)


def test_many_sweeps_take_as_long_as_followed_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = predict_phases(two_ranks(500, 9.0))
    monkeypatch.setattr(prediction, "_MOST_STEPS", 100)
    assert predict_phases(two_ranks(500, 9.0)).seconds == pytest.approx(exact.seconds, rel=1e-3)
