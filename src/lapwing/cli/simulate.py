"""`lapwing simulate`: how long a nest's run would take on a cluster that need not be here."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options
from lapwing.units import NOT_KNOWN, duration, in_seconds, number, share

if TYPE_CHECKING:
    from lapwing.api.nest import Nest
    from lapwing.launch.progress import ProgressBar
    from lapwing.loopnest.binding.bound_nest import BoundNest
    from lapwing.machine.machine import Machine
    from lapwing.planner.plan import Plan
    from lapwing.planner.prediction import Prediction

PARTS = ("compute", "messages", "exposed", "fill")
_PIPED_WIDTH = 132  # characters, where there is no terminal to ask

_HELP = """Simulate the nest NEST of the Python file FILE on RANKS ranks of a machine that need not be here.

The exact timeline follows every step of every rank. It takes the last rank so long to compute (as long as the rank that
computes most), to handle messages, to wait for messages on their way (exposed) and for the pipeline to fill and drain; setting
up channels is not in it. It is compared with one rank of the same machine, with computing alone shared evenly (ideal), and with
the blocking engine. With --smpi the exported program also runs on a virtual cluster, in
SimGrid's SMPI (Debian: apt install libsimgrid-dev), where computing and messages take the times that the machine's description
says: an independent check, since it is the runtime itself that runs there.

Of a program of several nests each region is simulated, as often as it is called, loops whose regions run through one pipeline as
one; what Python does in between takes no time. With --smpi the exported program runs there as it is, and computes, since what it
does next may depend on that.
"""
_EXAMPLES = """\b
Examples:
  lapwing simulate smooth.py -n 1024 --machine cluster.json
  lapwing simulate examples/sqrt3d.py -n 16 --grid 4x4 --tile 256 --machine p0-fastethernet \\
      --engine blocking,overlap --smpi
"""


@click.command(help=_HELP, epilog=_EXAMPLES)
@options.common
@click.option("--engine", "engine", metavar="E[,E...]", help="Engines to simulate. Default: the fastest.")
@options.MACHINE
@click.option("--smpi", is_flag=True, help="Also run the exported program on a virtual cluster, in SimGrid's SMPI.")
@click.option(
    "--iterations",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Of a program: how often loops go round of which only a run can tell, such as `while error > tolerance`.",
)
def command(
    target: str,
    ranks: int,
    settings: tuple[tuple[str, str], ...],
    tile: int | None,
    grid: options.Grid | None,
    json_path: Path | None,
    engine: str | None,
    machine: str | None,
    smpi: bool,
    iterations: int,
) -> None:
    from lapwing.api.calls.decide import Decider
    from lapwing.cli.actions.simulate import add_smpi, simulated
    from lapwing.cli.tables.simulate import show_forecasts
    from lapwing.export.smpi import require_simgrid
    from lapwing.files import check_writable, write_json
    from lapwing.launch.loading import load_nest, problem_arguments
    from lapwing.planner.choose import grids

    names = options.engine_names(engine)
    options.check_grid(grid, ranks)
    if json_path is not None:
        check_writable(json_path)
    nest = load_nest(target)
    if nest.program is not None:
        if grid == "all":
            raise click.BadParameter("all: of a program, expected one grid or none.", param_hint="--grid")
        if smpi:
            require_simgrid()
        wished, arguments = nest.using(tile=tile, grid=grid), problem_arguments(nest, settings)
        document = simulated(wished, arguments, ranks, names, machine, iterations)
        if smpi:
            add_smpi(document, wished, arguments, machine)
        show_forecasts(document)
        if json_path is not None:
            write_json(json_path, document)
        return
    options.check_grid_fits(nest, grid)
    if smpi:
        require_simgrid()
    arguments = problem_arguments(nest, settings)
    bound = nest.bind(arguments)
    decide = Decider.for_machine(bound, bound.analysis.dependences, ranks, machine, arguments)
    simulator = _Simulator(bound, decide.machine, decide.placement.ranks_a_node)
    alone = _one_rank(bound, nest, machine, arguments) if ranks > 1 else None
    runs: list[dict[str, Any]] = []
    for one_grid in grids(bound, bound.analysis.dependences, ranks) if grid == "all" else [grid]:
        plans = [decide(nest.using(engine=n, tile=tile, grid=one_grid).wishes()) for n in names or (None,)]
        blocking = next((plan for plan in plans if plan.engine == "blocking"), None)
        if blocking is None and ranks > 1:
            blocking = decide(nest.using(engine="blocking", tile=tile, grid=one_grid).wishes())
        against = None if blocking is None else _timeline(blocking)
        for plan in plans:
            run = {**plan.to_json(), **_figures(plan, alone, against), "smpi": None}
            if smpi:
                run["smpi"] = simulator.seconds(plan)
            runs.append(run)
    _show(runs, decide.machine.name, alone, smpi)
    if json_path is not None:
        first = runs[0]
        shared = {key: first[key] for key in ("nest", "ranks", "dependences", "skew")}
        write_json(json_path, {**shared, "machine": decide.machine.name, "runs": [_own(run, shared) for run in runs]})


def _timeline(plan: Plan) -> Prediction | None:
    """The exact timeline's completion time and what it consists of; None where nothing is done."""
    from lapwing.planner.prediction import predict
    from lapwing.schedule.timeline import completion_seconds

    return None if plan.pipeline is None else predict(plan.pipeline, completion=completion_seconds)


def _one_rank(bound: BoundNest, nest: Nest, machine: str | None, arguments: Mapping[str, Any]) -> float | None:
    """Seconds of the same nest on one rank of the machine; None where nothing is done."""
    from lapwing.api.calls.decide import Decider

    plan = Decider.for_machine(bound, bound.analysis.dependences, 1, machine, arguments)(
        nest.using(engine=None).wishes()
    )
    found = _timeline(plan)
    return None if found is None else found.seconds


def _figures(plan: Plan, alone: float | None, blocking: Prediction | None) -> dict[str, Any]:
    """The seconds of a plan, their parts, the spread of what ranks compute, and what all that compares with."""
    found = _timeline(plan)
    if found is None or plan.pipeline is None:
        return dict.fromkeys(("seconds", "parts", "compute", "ideal", "one_rank", "speedup", "blocking", "of_blocking"))
    work = plan.pipeline.compute.sum(axis=-1) * plan.pipeline.sweeps
    compute = {"min": float(work.min()), "mean": float(work.mean()), "max": float(work.max())}
    one_rank = found.seconds if plan.ranks == 1 else alone
    return {
        "seconds": found.seconds,
        "parts": {part: getattr(found, part) for part in PARTS},
        "compute": compute,
        "ideal": compute["mean"],
        "one_rank": one_rank,
        "speedup": None if one_rank is None else one_rank / found.seconds,
        "blocking": None if blocking is None else blocking.seconds,
        "of_blocking": None if blocking is None else found.seconds / blocking.seconds,
    }


class _Simulator:
    """Runs the exported program on a virtual cluster, for one plan after the other."""

    def __init__(self, bound: BoundNest, machine: Machine, ranks_a_node: int) -> None:
        self._bound, self._machine, self._ranks_a_node = bound, machine, ranks_a_node
        self._tables: dict[Any, bytes] = {}

    def seconds(self, plan: Plan) -> float:
        from lapwing.export.smpi import build, simulate
        from lapwing.export.stand_alone import check_not_empty, sources
        from lapwing.export.virtual import cluster_of
        from lapwing.launch.progress import ProgressBar

        check_not_empty(self._bound)
        cluster = cluster_of(self._bound, plan, self._machine, self._ranks_a_node)
        progress = ProgressBar()
        try:
            program = build(sources(self._bound, plan), lambda text: progress.write(f"lapwing: {text}\n"))
            tables = self._tables_of(plan, progress)
            progress.update(f"simulating {plan.engine} on {plan.ranks} ranks", None)
            return simulate(program, tables, plan.ranks, plan.engine, cluster)
        finally:
            progress.close()

    def _tables_of(self, plan: Plan, progress: ProgressBar) -> bytes:
        from lapwing.export.tables import program_bytes

        # Engines differ in none of it that a simulation looks at.
        cut = (plan.partition, plan.mapping, plan.tile, plan.buffers, plan.joined)
        if cut not in self._tables:
            report = partial(progress.update, "writing what every rank does")
            self._tables[cut] = program_bytes(self._bound, plan, report)
        return self._tables[cut]


def _own(run: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key not in shared}


def _show(runs: list[dict[str, Any]], machine: str, alone: float | None, smpi: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    several = runs[0]["ranks"] > 1
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("engine")
    compared = ("speed-up", "of ideal", "/ blocking") if several else ()
    for column in ("pipelined", "tile", "grid", "seconds", *PARTS, *compared, *(["SMPI, s"] if smpi else [])):
        table.add_column(column, justify="right")
    for run in runs:
        parts = run["parts"] or dict.fromkeys(PARTS)
        texts = [run["mapping"], str(run["tile"]), "x".join(map(str, run["grid"])), in_seconds(run["seconds"], 4)]
        texts += [duration(parts[part]) for part in PARTS]
        if several:
            known = run["seconds"] is not None
            texts.append(number(run["speedup"]) if run["speedup"] else NOT_KNOWN)
            texts.append(share(run["ideal"] / run["seconds"]) if known else NOT_KNOWN)
            texts.append(f"{run['of_blocking']:.2f}" if run["of_blocking"] else NOT_KNOWN)
        table.add_row(run["engine"], *texts, *([in_seconds(run["smpi"], 4)] if smpi else []))
    first = runs[0]
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    ranks = f"{first['ranks']} rank{'s' * several}"
    console.print(f"{first['nest']} on {ranks} of {machine}, simulated", markup=False, highlight=False)
    console.print(table)
    for text in _legend(first, alone):
        console.print(text, markup=False, highlight=False)


def _legend(first: dict[str, Any], alone: float | None) -> Iterator[str]:
    """What the seconds consist of, and what they are compared with."""
    yield (
        "seconds = compute, of the rank that computes most + messages, its CPU time for packing, sending, receiving and "
        "unpacking + exposed, what a network that takes no time would save + fill, waiting for the pipeline to fill and drain "
        "and for ranks with more to do."
    )
    if alone is None or first["seconds"] is None:
        return
    spread = first["compute"]
    yield (
        f"speed-up: one rank takes {duration(alone)}. of ideal: computing alone, shared evenly, takes {duration(first['ideal'])} "
        f"(of {first['engine']}, ranks compute {duration(spread['min'])} to {duration(spread['max'])}). "
        f"blocking: its best plan takes {duration(first['blocking'])}."
    )
