"""What `lapwing simulate` does with a program: its regions in sequence, for one engine after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lapwing.api.nest import Nest
from lapwing.api.program_forecast import Part, ProgramForecast

PARTS = ("compute", "messages", "exposed", "fill")


def simulated(
    nest: Nest, arguments: Mapping[str, Any], ranks: int, engines: Sequence[Any], machine: str | None, iterations: int
) -> dict[str, Any]:
    """The document of ``--json``. nest: a program, with the other choices made. Raises RefusedError as planning does."""
    program = nest.program
    assert program is not None

    def on(ranks: int, engine: Any) -> ProgramForecast:
        return program.forecast(nest.using(engine=engine), arguments, ranks, machine, iterations)

    forecasts = {engine: on(ranks, engine) for engine in engines or (None,)}
    first = next(iter(forecasts.values()))
    alone = on(1, None) if ranks > 1 else first
    blocking = forecasts.get("blocking") or on(ranks, "blocking")
    return {
        "nest": nest.name,
        "ranks": ranks,
        "machine": first.machine.name,
        "iterations": iterations,
        "uncounted": list(first.uncounted),
        "unknown": list(first.unknown),
        "one_rank": alone.seconds,
        "blocking": blocking.seconds,
        "runs": [_run(engine, found, alone, blocking) for engine, found in forecasts.items()],
    }


def _run(engine: Any, found: ProgramForecast, alone: ProgramForecast, blocking: ProgramForecast) -> dict[str, Any]:
    seconds = found.seconds
    return {
        "engine": engine or "planned",
        "seconds": seconds,
        "parts": {name: found.total(name) for name in PARTS},
        "speedup": alone.seconds / seconds if seconds else None,
        "of_blocking": seconds / blocking.seconds if blocking.seconds else None,
        "regions": [_region(part) for part in found.parts],
    }


def _region(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "line": part.line,
        "calls": part.calls,
        "seconds": part.seconds,
        "parts": {name: part.calls * getattr(part.prediction, name) for name in PARTS},
        "engine": part.plan.engine,
        "tile": part.plan.tile,
        "grid": list(part.plan.grid),
    }
