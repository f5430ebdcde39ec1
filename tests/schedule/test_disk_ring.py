"""The exact timeline of a run out of core: what is known in closed form, and what no run may break."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.schedule.disk_ring import DiskPipeline, disk_timeline
from lapwing.trace.events import ACTIVITIES
from lapwing.trace.foreseen import foreseen_on_disk

ONE = DiskPipeline(
    grid=(1, 1), slabs=10, sweeps=1, pass_sweeps=1, opening=0, skew=0, ahead=0, slots=3, compute=1.0, read=1.0, write=1.0,
    ranks_a_node=1,
)  # fmt: skip


def makespan(**changes: object) -> float:
    return disk_timeline(replace(ONE, **changes)).makespan  # type: ignore[arg-type]


def test_one_slab_at_a_time() -> None:
    assert makespan(slots=1) == pytest.approx(30)


def test_where_computing_takes_longer_the_disk_is_hidden() -> None:
    assert makespan(compute=5.0) == pytest.approx(1 + 50 + 1)


def test_where_the_disk_takes_longer_computing_is_hidden() -> None:
    assert makespan(compute=0.5) == pytest.approx(20)


def test_sweeps_of_one_pass_cost_the_disk_once() -> None:
    one_a_pass = makespan(sweeps=4, compute=0.1)
    together = makespan(sweeps=4, pass_sweeps=4, skew=1, ahead=1, slots=7, compute=0.1)
    assert one_a_pass == pytest.approx(4 * 20, rel=0.01)
    assert together == pytest.approx(20, rel=0.06)


def test_ranks_share_a_disk_or_have_their_own() -> None:
    assert makespan(grid=(1, 2), ranks_a_node=2, compute=0.1) == pytest.approx(40, rel=0.05)
    assert makespan(grid=(1, 2), ranks_a_node=1, compute=0.1) == pytest.approx(20, rel=0.1)


@st.composite
def pipelines(draw: st.DrawFn) -> DiskPipeline:
    skew, together = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    grid = draw(st.sampled_from([(1,), (2,), (1, 3), (2, 2)]))
    opening = int(len(grid) > 1 or grid[0] > 1)
    ahead = draw(st.integers(0, 1))
    return DiskPipeline(
        grid=grid,
        slabs=draw(st.integers(1, 12)),
        sweeps=draw(st.integers(1, 5)),
        pass_sweeps=together,
        opening=opening,
        skew=skew,
        ahead=ahead,
        slots=1 + ahead + skew * (opening + together - 1) + draw(st.integers(0, 2)),
        compute=draw(st.floats(0.1, 3)),
        read=draw(st.floats(0.1, 3)),
        write=draw(st.floats(0, 3)),
        ranks_a_node=draw(st.integers(1, 4)),
    )


@given(pipelines())
def test_what_no_run_may_break(pipeline: DiskPipeline) -> None:
    timeline = disk_timeline(pipeline)
    slabs = pipeline.slabs
    ends = [{span.at: span.end for span in rank.steps} for rank in timeline.ranks]
    for rank, own in zip(timeline.ranks, ends, strict=True):
        assert len(own) == pipeline.total_steps
        loaded = {number * slabs + at: span.end for span in rank.reads for number, at in [span.at]}
        stored = {number * slabs + at: span for span in rank.writes for number, at in [span.at]}
        assert len(loaded) == len(stored) == pipeline.passes * slabs
        begins = {span.at: span.begin for span in rank.steps}
        for step in pipeline.order():
            slab = step.number * slabs + step.step
            assert loaded[slab] <= begins[step.sweep, step.step]
            assert own[step.sweep, step.step] <= stored[slab].begin
        for slab, span in stored.items():
            following = slab + min(pipeline.slots, slabs)
            assert following not in loaded or span.end <= loaded[following] - pipeline.read + 1e-9
    for first in range(0, pipeline.ranks, pipeline.ranks_a_node):
        node = timeline.ranks[first : first + pipeline.ranks_a_node]
        moves = sorted((span for rank in node for span in (*rank.reads, *rank.writes)), key=lambda span: span[1:])
        assert all(one.end <= after.begin + 1e-9 for one, after in itertools.pairwise(moves))
    work = pipeline.sweeps * slabs * pipeline.compute
    assert timeline.makespan >= pipeline.read + work + pipeline.write - 1e-9


@given(pipelines())
def test_as_a_trace(pipeline: DiskPipeline) -> None:
    traces = foreseen_on_disk(pipeline, 10**6)
    assert traces is not None
    assert foreseen_on_disk(pipeline, 1) is None
    makespan = disk_timeline(pipeline).makespan
    assert max(trace.times["total"] for trace in traces) == pytest.approx(makespan)
    for trace in traces:
        own = [trace.times[name] for name in ("compute", "wait", "disk")]
        assert sum(own) == pytest.approx(trace.times["total"])
        reads = trace.events[trace.events["activity"] == ACTIVITIES.index("read")]
        assert len(reads) == pipeline.passes * pipeline.slabs
        assert trace.times["compute"] == pytest.approx(pipeline.sweeps * pipeline.slabs * pipeline.compute)
