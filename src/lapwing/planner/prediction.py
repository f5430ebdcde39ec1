"""What a run will take, and where its time will go, from the exact timeline of its pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from lapwing.schedule.estimate import nearly_completion_seconds
from lapwing.schedule.phased import PhasedPipeline, phased_timeline
from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.timeline import without_network
from lapwing.units import duration

_MOST_STEPS = 100_000  # that are followed exactly of several phases: about a second
_FEWEST_SWEEPS = 8


@dataclass(frozen=True)
class Prediction:
    """Seconds of a run and their parts, as the last rank to end sees them: seconds = compute + messages + exposed + fill +
    setup.

    ``compute``: inside tiles, of the rank that computes most. ``messages``: its CPU time for packing, sending, receiving,
    unpacking. ``exposed``: what a network that takes no time would save. ``fill``: waiting for the pipeline to fill and
    drain, and for ranks with more to do. ``setup``: channels are made and closed. ``transfer``: how long its messages occupy
    links. ``limit`` says what keeps the run from being faster.
    """

    seconds: float
    compute: float
    messages: float
    exposed: float
    fill: float
    setup: float
    transfer: float

    @property
    def limit(self) -> str:
        parts = {
            "computing": self.compute,
            "handling messages": self.messages,
            "transfers": self.exposed,
            "filling the pipeline": self.fill,
            "setting up": self.setup,
        }
        return max(parts, key=lambda name: parts[name])

    def to_json(self) -> dict[str, float | str]:
        return {**asdict(self), "limit": self.limit}

    def __str__(self) -> str:
        names = ("compute", "messages", "exposed", "fill", "setup")
        parts = {name: getattr(self, name) for name in names}
        shown = ", ".join(f"{name} {duration(value)}" for name, value in parts.items() if value >= 0.001 * self.seconds)
        return f"{duration(self.seconds)}: {shown}; limited by {self.limit}"


def predict(
    pipeline: Pipeline, setup: float = 0.0, completion: Callable[[Pipeline], float] = nearly_completion_seconds
) -> Prediction:
    """The timeline's completion time with that of setting up, and what it is made of.

    completion: tells the time; nearly, as planners need it, or exactly (schedule.timeline.completion_seconds).
    """
    seconds = completion(pipeline)
    free = completion(without_network(pipeline)) if pipeline.channels else seconds
    steps = pipeline.steps * pipeline.sweeps
    compute = float(pipeline.compute.sum(axis=-1).max()) * pipeline.sweeps
    cpu = sum(c.pack + c.send + c.receive + c.unpack for c in pipeline.channels)
    if pipeline.engine == "helper":
        cpu = 0.0
    messages = (
        min(steps * _handled(pipeline) + steps * pipeline.step_overhead, max(0.0, free - compute)) if cpu else 0.0
    )
    return Prediction(
        seconds=setup + seconds,
        compute=compute,
        messages=messages,
        exposed=max(0.0, seconds - free),
        fill=max(0.0, free - compute - messages),
        setup=setup,
        transfer=steps * sum(c.wire for c in pipeline.channels),
    )


def predict_phases(pipeline: PhasedPipeline) -> Prediction:
    """The same of several phases. Of many sweeps the first ones are followed exactly, and the others take as long as those at the
    end of these."""
    seconds, free = _phased_seconds(pipeline), _phased_seconds(_without_network(pipeline))
    ranks, sweeps = range(len(pipeline.compute)), pipeline.sweeps
    compute = max(float(of_rank.sum()) for of_rank in pipeline.compute) * sweeps
    handled, wires = [0.0 for _ in ranks], [0.0 for _ in ranks]
    for route in pipeline.routes:
        for message in route.messages:
            handled[route.source] += message.pack + message.send
            handled[route.target] += message.receive + message.unpack
            wires[route.source] += message.wire
    cpu = 0.0 if pipeline.engine == "helper" else sweeps * max(handled, default=0.0)
    messages = min(cpu, max(0.0, free - compute))
    return Prediction(
        seconds=seconds,
        compute=compute,
        messages=messages,
        exposed=max(0.0, seconds - free),
        fill=max(0.0, free - compute - messages),
        setup=0.0,
        transfer=sweeps * max(wires, default=0.0),
    )


def _phased_seconds(pipeline: PhasedPipeline) -> float:
    steps = sum(map(len, pipeline.compute))
    followed = max(_FEWEST_SWEEPS, _MOST_STEPS // max(1, steps))
    if pipeline.sweeps <= followed:
        return phased_timeline(pipeline).makespan
    half, whole = (phased_timeline(replace(pipeline, sweeps=n)).makespan for n in (followed // 2, followed))
    return whole + (pipeline.sweeps - followed) * (whole - half) / (followed - followed // 2)


def _without_network(pipeline: PhasedPipeline) -> PhasedPipeline:
    """The same where messages take no time on their way."""
    routes = (
        replace(route, latency=0.0, messages=tuple(replace(message, wire=0.0) for message in route.messages))
        for route in pipeline.routes
    )
    return replace(pipeline, routes=tuple(routes))


def _handled(pipeline: Pipeline) -> float:
    """CPU seconds a step of the rank in the middle of the grid, which has all neighbours there are."""
    sent = sum(c.pack + c.send for c in pipeline.channels if _has(pipeline, c.offset, 1))
    taken = sum(c.receive + c.unpack for c in pipeline.channels if _has(pipeline, c.offset, -1))
    return sent + taken


def _has(pipeline: Pipeline, offset: tuple[int, ...], direction: int) -> bool:
    """Whether the middle rank has a neighbour in a direction."""
    middle = [(parts - 1) // 2 for parts in pipeline.grid]
    there = [m + direction * o for m, o in zip(middle, offset, strict=True)]
    return all(0 <= t < parts for t, parts in zip(there, pipeline.grid, strict=True))
