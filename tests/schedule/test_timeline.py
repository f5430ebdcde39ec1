"""The timeline's invariants, the papers' closed forms, what is refused, and the window for many ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lapwing.errors import RefusedError
from lapwing.schedule.pipeline import Channel, Engine, Pipeline
from lapwing.schedule.timeline import completion_seconds, long_timeline, timeline, without_network

COSTS = {"pack": 1.0, "send": 0.5, "receive": 0.25, "unpack": 2.0, "wire": 6.0, "latency": 3.0}


def chain(ranks: int, steps: int, compute: float, engine: Engine = "overlap", **costs: float) -> Pipeline:
    return Pipeline((ranks,), steps, 1, np.array([compute]), (Channel((1,), **costs),), engine)


@pytest.mark.parametrize(("ranks", "steps"), [(1, 5), (2, 7), (4, 3), (5, 20)])
def test_blocking_is_equation_3(ranks: int, steps: int) -> None:
    # P0 eq. 3: P(g) (t_comp + t_comm), where P(g) = steps + ranks - 1 planes of Pi = [1 … 1]. A synchronous transfer takes
    # the time of both ranks: one that receives and sends does so one after the other, so t_comm is both of its transfers,
    # and the first and the last rank, which have one neighbour each, save what a middle one takes.
    compute, wire = 10.0, 3.0
    middle = max(0, min(ranks - 1, 2))  # transfers a step of a rank with most neighbours
    exact = timeline(chain(ranks, steps, compute, "blocking", wire=wire)).makespan
    planes = steps + ranks - 1
    assert exact <= planes * (compute + middle * wire) + 1e-9
    assert exact == pytest.approx(steps * (compute + middle * wire) + (ranks - 1) * (compute + wire) - middle * wire)


@pytest.mark.parametrize(("ranks", "steps"), [(1, 5), (2, 7), (4, 3), (5, 20)])
def test_overlap_is_equation_4(ranks: int, steps: int) -> None:
    # P0 eq. 4 where communication hides behind computation: P(g) max(A1 + A2 + A3, B1 + …) with Pi = [2 … 2 1]: a step
    # of the CPU each, and a plane more between neighbours, in which the message travels.
    compute, wire = 10.0, 10.0
    exact = timeline(chain(ranks, steps, compute, wire=wire)).makespan
    assert exact == pytest.approx((steps + 2 * (ranks - 1)) * max(compute, wire))


def test_nothing_is_waited_for_where_nothing_is_sent() -> None:
    pipeline = Pipeline((3, 2), 4, 3, np.array([2.0]), (), step_overhead=0.5)
    exact = timeline(pipeline)
    assert exact.makespan == pytest.approx(30.0)
    assert not exact.waits.any()
    assert not exact.exposed.any()


@pytest.mark.parametrize("engine", ["blocking", "overlap", "onesided", "helper"])
def test_a_step_starts_after_what_it_needs(engine: Engine) -> None:
    compute = np.random.default_rng(1).random((3, 4, 6))
    down = Channel((-1, 0), lag=1, depth=6, **COSTS)
    channels = (Channel((1, 0), **COSTS), Channel((0, 1), **COSTS), down)
    exact = timeline(Pipeline((3, 4), 6, 3, compute, channels, engine))
    assert (exact.start[..., 1:] >= exact.end[..., :-1] - 1e-12).all()
    assert (exact.start[1:] >= exact.start[:-1] + compute[:-1].repeat(1, axis=-1).min()).all()
    sweep = exact.start.reshape(3, 4, 3, 6)
    assert (sweep[:-1, :, 1:] >= sweep[1:, :, :-1] + compute[1:].min()).all()  # old values come from the next row
    assert (exact.waits >= -1e-9).all()
    assert (exact.exposed <= exact.makespan).all()


def test_overlap_is_not_slower_than_blocking_and_a_free_network_not_slower_than_either() -> None:
    blocking = chain(4, 30, 8.0, "blocking", **COSTS)
    overlap = replace(blocking, engine="overlap")
    free = timeline(without_network(overlap)).makespan
    assert free < timeline(overlap).makespan < timeline(blocking).makespan


def test_a_slow_receiver_holds_its_sender_back_by_depth_steps() -> None:
    compute = np.array([[1.0], [10.0]])
    pipeline = Pipeline((2,), 20, 1, compute, (Channel((1,), depth=3),))
    end, start = timeline(pipeline).end, timeline(pipeline).start
    # Message n is packed when the receiver takes message n - 3, which it does when it begins that step.
    np.testing.assert_allclose(end[0, 3:], np.maximum(start[1, :-3], end[0, 2:-1] + 1))


@pytest.mark.parametrize("grid", [(40,), (6, 50), (3, 4, 5)])
@pytest.mark.parametrize("by_rank", [False, True])
@pytest.mark.parametrize("depth", [2, 5])
def test_a_long_timeline_is_the_timeline(grid: tuple[int, ...], by_rank: bool, depth: int) -> None:
    steps, axes = 9, len(grid)
    compute = np.random.default_rng(2).random((*grid, 1)) if by_rank else np.array([1.0] * (steps - 1) + [0.3])
    offsets = [tuple(int(a == b) for b in range(axes)) for a in range(axes)]
    channels = tuple(Channel(o, depth=depth, **{k: v / 10 for k, v in COSTS.items()}) for o in offsets)
    pipeline = Pipeline(grid, steps, 1, compute, channels)
    middle = tuple(g // 2 for g in grid)
    exact, long = timeline(pipeline), long_timeline(pipeline, [middle])
    assert long.makespan == pytest.approx(exact.makespan, abs=1e-9)
    np.testing.assert_allclose(long.first, exact.fill, atol=1e-9)
    np.testing.assert_allclose(long.end, exact.end[..., -1], atol=1e-9)
    np.testing.assert_allclose(long.waits, exact.waits, atol=1e-9)
    np.testing.assert_allclose(long.asked[middle], [exact.start[middle], exact.end[middle]], atol=1e-9)


def test_many_bands_and_planes_agree_with_the_timeline() -> None:
    compute = np.random.default_rng(3).random((200, 200, 1))
    channels = (Channel((1, 0), **COSTS), Channel((0, 1), **COSTS))
    pipeline = Pipeline((200, 200), 100, 1, compute, channels)
    long = long_timeline(pipeline)
    assert long.makespan == pytest.approx(timeline(pipeline).makespan, rel=1e-12)


def test_repeated_steps_are_left_out_of_long_runs() -> None:
    pipeline = chain(6, 4000, 20.0, **COSTS)
    assert completion_seconds(pipeline) == pytest.approx(timeline(pipeline).makespan, rel=1e-11)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grid": (0,)}, "at least one rank"),
        ({"steps": 0}, "0 steps"),
        ({"engine": "magic"}, "expected one of blocking"),
        ({"compute": np.ones((5, 5, 5))}, "expected one that broadcasts"),
        ({"compute": np.array([-1.0])}, "negative"),
        ({"poll": float("nan")}, "poll is nan"),
        ({"channels": (Channel((1, 1)),)}, "with 1 axes"),
        ({"channels": (Channel((0,)),)}, "other than 0"),
        ({"channels": (Channel((-1,)),)}, "no axis may be negative"),
        ({"channels": (Channel((1,), lag=2),)}, "lag 2"),
        ({"channels": (Channel((-1,), lag=1, depth=2),)}, "expected at least 4"),
        ({"channels": (Channel((1,), depth=0),)}, "expected at least 1"),
        ({"channels": (Channel((1,), wire=-1.0),)}, "wire of the channel"),
    ],
)
def test_numbers_without_meaning_are_refused(change: dict[str, object], says: str) -> None:
    fields: dict[str, object] = {"grid": (3,), "steps": 4, "sweeps": 1, "compute": np.array([1.0]), "channels": ()}
    with pytest.raises(RefusedError, match=says):
        Pipeline(**{**fields, **change})  # type: ignore[arg-type]


def test_a_timeline_beyond_memory_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"long_timeline\(\)"):
        timeline(chain(1_000_000, 1000, 1.0))


def test_a_long_timeline_of_another_kind_is_refused() -> None:
    with pytest.raises(RefusedError, match="engine blocking"):
        long_timeline(chain(4, 5, 1.0, "blocking"))
    with pytest.raises(RefusedError, match="expected a place in a grid of 4"):
        long_timeline(chain(4, 5, 1.0), [(9,)])
