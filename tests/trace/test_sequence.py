"""Runs one after the other as one: events on one time axis, sums of figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from made_traces import event, out_of_core, pipeline, rank_of, run_of, two_ranks

from lapwing.trace.events import PhaseSteps, RunTrace
from lapwing.trace.metrics import metrics
from lapwing.trace.sequence import RunSequence
from lapwing.trace.timeline import timeline_page


def later(run: RunTrace, seconds: float, **changes: object) -> RunTrace:
    """The same some time later."""
    ranks = []
    for rank in run.ranks:
        events = rank.events.copy()
        events["begin"] += seconds
        events["end"] += seconds
        ranks.append(replace(rank, begin=rank.begin + seconds, events=events))
    return replace(run, ranks=tuple(ranks), **changes)  # type: ignore[arg-type]


def test_one_run_is_itself() -> None:
    run = two_ranks()
    sequence = RunSequence("smooth")
    sequence.add(run)
    assert sequence.metrics(run.seconds) == metrics(run)
    found = sequence.trace(run.seconds)
    assert (found.engine, found.grid, found.tile, found.transfer_seconds) == (run.engine, run.grid, run.tile, 1.0)
    for one, other in zip(found.ranks, run.ranks, strict=True):
        assert one.events.tobytes() == other.events.tobytes()


def test_figures_of_several_runs_are_their_sums() -> None:
    run = pipeline("blocking")
    sequence = RunSequence("steps")
    sequence.add(run)
    sequence.add(later(run, 10.0))
    one, both = metrics(run), sequence.metrics(17.0)
    assert one.exposed_seconds
    assert one.transfer_seconds
    assert both.exposed_seconds == pytest.approx(2 * one.exposed_seconds)
    assert (both.seconds, both.messages) == (17.0, 2 * one.messages)
    assert both.transfer_seconds == pytest.approx(2 * one.transfer_seconds)
    assert both.hidden == pytest.approx(one.hidden)
    assert both.shares == pytest.approx(one.shares)
    assert both.efficiencies.by_name() == pytest.approx(one.efficiencies.by_name())


def test_a_transfer_that_nobody_measured_is_not_known() -> None:
    sequence = RunSequence("steps")
    sequence.add(two_ranks())
    sequence.add(replace(later(two_ranks(), 10.0), transfer_seconds=None))
    assert sequence.metrics(17.0).transfer_seconds is None


def test_what_is_read_and_written_adds_up() -> None:
    sequence = RunSequence("steps")
    sequence.add(out_of_core())
    sequence.add(later(out_of_core(), 20.0))
    disk, one = sequence.metrics(29.0).disk, metrics(out_of_core()).disk
    assert disk is not None
    assert one is not None
    assert (disk.read_bytes, disk.hidden) == (2 * one.read_bytes, one.hidden)


def test_sweeps_are_counted_on_and_regions_are_phases() -> None:
    def call(name: str, begin: float, sweeps: int) -> RunTrace:
        events = [event("compute", begin + k, begin + k + 1, sweep=k, step=3) for k in range(sweeps)]
        return run_of([rank_of(0, events, total=sweeps, begin=begin)], nest=name)

    sequence = RunSequence("steps")
    for run in (call("forward", 0, 2), call("backward", 5, 1), call("forward", 10, 2)):
        sequence.add(run)
    (rank,) = sequence.trace(12.0).ranks
    assert rank.phase_names == ("forward", "backward")
    assert [rank.phase_names[phase] for phase in rank.events["phase"]] == ["forward"] * 2 + ["backward"] + [
        "forward"
    ] * 2
    assert rank.events["sweep"].tolist() == [0, 1, 0, 2, 3]
    assert (rank.begin, rank.times["total"], rank.times["compute"]) == (0.0, 12.0, 5.0)
    assert "forward" in timeline_page([sequence.trace(12.0)], [sequence.metrics(12.0)])


def test_steps_are_counted_from_the_first_of_their_phase() -> None:
    rank = rank_of(0, [event("compute", 0, 1, step=1), event("compute", 1, 2, step=4, phase=1)], total=2)
    rank = replace(rank, phases=(PhaseSteps("one", 0), PhaseSteps("other", 3)))
    sequence = RunSequence("steps")
    sequence.add(run_of([rank_of(0, [event("compute", -2, -1)], total=1, begin=-2.0)]))
    sequence.add(run_of([rank], nest="sweep"))
    (found,) = sequence.trace(4.0).ranks
    assert found.phase_names == ("smooth", "one", "other")
    assert found.steps_of_phases(found.events).tolist() == [0, 1, 1]


def test_time_that_went_into_measuring_is_left_out() -> None:
    sequence = RunSequence("steps")
    sequence.add(replace(two_ranks(), measuring_seconds=2.0))
    sequence.add(later(two_ranks(), 10.0))
    last = sequence.trace(15.0).ranks[1]
    assert last.times["total"] == pytest.approx(8.0 + 7.0)
    assert np.max(last.events["end"]) == pytest.approx(8.0 + 6.5)
    assert np.max(last.events["begin"]) == pytest.approx(8.0 + 3.5)


def test_runs_on_different_grids_have_none_together() -> None:
    sequence = RunSequence("steps")
    sequence.add(two_ranks())
    sequence.add(later(replace(two_ranks(), grid=(1, 2), engine="blocking"), 10.0))
    found = sequence.trace(17.0)
    assert (found.grid, found.engine) == ((), "blocking, overlap")
    assert "grid" not in timeline_page([found], [sequence.metrics(17.0)]).split("<table")[0].split("</h1>")[1]
