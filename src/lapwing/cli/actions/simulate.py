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


def add_smpi(document: dict[str, Any], nest: Nest, arguments: Mapping[str, Any], machine: str | None) -> None:
    """Add what the exported program takes in SimGrid's SMPI. Raises RefusedError as exporting does."""
    from lapwing.export.driver.partial_evaluation.specialisation import specialise
    from lapwing.export.driver.simulation import simulate_program
    from lapwing.export.smpi import check_engine
    from lapwing.launch.progress import ProgressBar
    from lapwing.runtime.arrays.creation import whole_arrays
    from lapwing.store.array import StoredArray

    whole = whole_arrays(arguments)
    in_memory = {name: value.numpy() if isinstance(value, StoredArray) else value for name, value in whole.items()}
    progress = ProgressBar()
    try:
        for run in document["runs"]:
            engine: Any = "overlap" if run["engine"] == "planned" else run["engine"]
            progress.update(f"simulating {engine} on {document['ranks']} ranks", None)
            say = lambda text: progress.write(f"lapwing: {text}\n")  # noqa: E731
            check_engine(engine)  # before what takes time
            driver = specialise(nest.using(engine=engine), in_memory, document["ranks"], machine)
            run["smpi"] = simulate_program(driver, engine, machine, say)
    finally:
        progress.close()


def _run(engine: Any, found: ProgramForecast, alone: ProgramForecast, blocking: ProgramForecast) -> dict[str, Any]:
    seconds = found.seconds
    return {
        "engine": engine or "planned",
        "seconds": seconds,
        "parts": {name: found.total(name) for name in PARTS},
        "speedup": alone.seconds / seconds if seconds else None,
        "of_blocking": seconds / blocking.seconds if blocking.seconds else None,
        "regions": [_region(part) for part in found.parts],
        "smpi": None,
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
