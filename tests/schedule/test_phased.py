"""The exact timeline of programs of several phases: the same as that of a uniform pipeline where there is one phase, and worked
out by hand where there are more."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_pipelines import pipelines
from randomness import wanted

from lapwing.errors import RefusedError
from lapwing.schedule.phased import PhasedPipeline, Route, RoutedMessage, phased_timeline
from lapwing.schedule.pipeline import ENGINES, Engine, Pipeline
from lapwing.schedule.timeline import timeline

COSTS = ("pack", "send", "receive", "unpack", "wire")


def as_phase(pipeline: Pipeline) -> PhasedPipeline:
    """A uniform pipeline as a program of one phase."""
    places = list(itertools.product(*(range(g) for g in pipeline.grid)))
    compute = np.broadcast_to(pipeline.compute, (*pipeline.grid, pipeline.steps))
    routes = []
    for channel in pipeline.channels:
        messages = []
        for step in range(pipeline.steps):
            earlier, before = divmod(step - channel.depth, pipeline.steps)
            free = None
            if channel.held is not None:
                last = min(pipeline.needed_step(channel, before) + channel.held, pipeline.steps - 1)
                free = (earlier + channel.lag) * pipeline.steps + last + 1
            costs = {name: getattr(channel, name) for name in COSTS}
            messages.append(RoutedMessage(step, pipeline.needed_step(channel, step), free, **costs))
        for number, place in enumerate(places):
            there = tuple(p + o for p, o in zip(place, channel.offset, strict=True))
            if there in places:
                exchange = 0 if channel.lag else None
                target = places.index(there)
                routes.append(
                    Route(number, target, channel.lag, channel.depth, tuple(messages), exchange, channel.latency)
                )
    return PhasedPipeline(
        compute=tuple(compute[place] for place in places),
        first_steps=((0,),) * len(places),
        sweeps=pipeline.sweeps,
        routes=tuple(routes),
        engine=pipeline.engine,
        step_overhead=pipeline.step_overhead,
        synchronisation=pipeline.synchronisation,
        poll=pipeline.poll,
    )


@settings(max_examples=wanted(100), deadline=None)
@given(pipelines())
def test_of_one_phase_it_is_that_of_the_uniform_pipeline(pipeline: Pipeline) -> None:
    # Faces stored straight into halos wait for readers in the first sweep as well, which uniform pipelines leave out.
    channels = tuple(replace(c, held=None) if c.lag else c for c in pipeline.channels)
    pipeline = replace(pipeline, node=1, apart=True, channels=channels)
    exact, found = timeline(pipeline), phased_timeline(as_phase(pipeline))
    shape = (pipeline.ranks, pipeline.total_steps)
    np.testing.assert_allclose(np.array(found.start), exact.start.reshape(shape), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.array(found.end), exact.end.reshape(shape), rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.array(found.last), exact.last.reshape(-1), rtol=0, atol=1e-9)


def in_turns(engine: Engine, split: bool, sweeps: int = 10) -> PhasedPipeline:
    """Two ranks with two phases, each of which needs what the other rank made in the one before: a message of 3 seconds.

    A phase takes 4 seconds, with ``split`` one for the boundary and then three for the interior.
    """
    a_phase = 2 if split else 1
    compute = np.array([1.0, 3.0] * 2 if split else [4.0] * 2)
    message = {"wire": 2.0, "pack": 0.0}
    routes = []
    for source, target in ((0, 1), (1, 0)):
        for lag in (0, 1):
            made, needed = (0, a_phase) if lag == 0 else (a_phase, 0)
            routes.append(
                Route(source, target, lag, 2, (RoutedMessage(made, needed, **message),), 1 - lag, latency=1.0)
            )
    return PhasedPipeline((compute,) * 2, ((0, a_phase),) * 2, sweeps, tuple(routes), engine)


@pytest.mark.parametrize("engine", ["overlap", "onesided", "helper"])
def test_messages_travel_while_interiors_are_computed(engine: Engine) -> None:
    """The boundary's message is there after 1 + 3 seconds, when the interior is over."""
    assert phased_timeline(in_turns(engine, split=True)).makespan == pytest.approx(20 * 4.0)
    # Without a boundary of its own every phase but the first waits for three seconds.
    assert phased_timeline(in_turns(engine, split=False)).makespan == pytest.approx(20 * 4.0 + 19 * 3.0)


def test_blocking_exchanges_before_every_phase() -> None:
    """So it gains nothing from boundaries."""
    for split in (True, False):
        assert phased_timeline(in_turns("blocking", split)).makespan == pytest.approx(20 * 4.0 + 19 * 3.0)


def test_stored_faces_wait_for_the_last_reader() -> None:
    """The receiver's second step reads what was there before until it ends, at 11."""
    message = RoutedMessage(made=0, needed=0, free=2)
    pipeline = PhasedPipeline(
        (np.array([1.0]), np.array([1.0, 10.0])), ((0,), (0,)), 2, (Route(0, 1, 1, 1, (message,)),), "onesided"
    )
    assert phased_timeline(pipeline).end[0][0] == 11.0


def test_the_helper_waits_where_a_phase_rewrites_what_it_packs() -> None:
    message = RoutedMessage(made=0, needed=1, pack=5.0)
    pipeline = PhasedPipeline(
        (np.array([1.0, 1.0]), np.array([1.0, 1.0])), ((0, 1), (0, 1)), 1, (Route(0, 1, 0, 1, (message,)),), "helper"
    )
    assert phased_timeline(pipeline).start[0][1] == 1.0
    careful = replace(pipeline, rewrites=(frozenset({1}), frozenset()))
    assert phased_timeline(careful).start[0][1] == 6.0


def test_ranks_that_wait_for_ever_are_refused() -> None:
    routes = tuple(Route(a, 1 - a, 0, 1, (RoutedMessage(0, 0),)) for a in (0, 1))
    for engine in ENGINES:
        with pytest.raises(RefusedError, match="for ever"):
            phased_timeline(PhasedPipeline((np.ones(1),) * 2, ((0,),) * 2, 1, routes, engine))
