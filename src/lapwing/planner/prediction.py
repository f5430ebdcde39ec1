"""What a run will take, and where its time will go, from the exact timeline of its pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from lapwing.schedule.estimate import nearly_completion_seconds
from lapwing.schedule.pipeline import Pipeline
from lapwing.schedule.timeline import without_network
from lapwing.units import duration


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
