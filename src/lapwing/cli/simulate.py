"""`lapwing simulate`: how long a nest's run would take on a cluster that need not be here."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options

if TYPE_CHECKING:
    from lapwing.cli.progress import ProgressBar
    from lapwing.loopnest.binding import BoundNest
    from lapwing.machine.machine import Machine
    from lapwing.planner.plan import Plan

_HELP = """Simulate the nest NEST of the Python file FILE on RANKS ranks of a machine that need not be here.

The exact timeline follows every step of every rank. With --smpi the exported program also runs on a virtual cluster, in
SimGrid's SMPI (Debian: apt install libsimgrid-dev), where computing and messages take the times that the machine's description
says: an independent check, since it is the runtime itself that runs there.
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
) -> None:
    from lapwing.cli.files import check_writable, write_json
    from lapwing.cli.loading import load_nest, problem_arguments
    from lapwing.decide import Decider
    from lapwing.export.smpi import require_simgrid
    from lapwing.planner.choose import grids

    names = options.engine_names(engine)
    options.check_grid(grid, ranks)
    if json_path is not None:
        check_writable(json_path)
    nest = load_nest(target)
    options.check_grid_fits(nest, grid)
    if smpi:
        require_simgrid()
    arguments = problem_arguments(nest, settings)
    bound = nest.bind(arguments)
    decide = Decider.for_machine(bound, nest.dependences, ranks, machine, arguments)
    simulator = _Simulator(bound, decide.machine, decide.placement.ranks_a_node)
    runs: list[dict[str, Any]] = []
    for one_grid in grids(bound, nest.dependences, ranks) if grid == "all" else [grid]:
        for name in names or (None,):
            plan = decide(nest.using(engine=name, tile=tile, grid=one_grid).wishes())
            run = {**plan.to_json(), "seconds": _timeline_seconds(plan), "smpi": None}
            if smpi:
                run["smpi"] = simulator.seconds(plan)
            runs.append(run)
    _show(runs, decide.machine.name, smpi)
    if json_path is not None:
        first = runs[0]
        shared = {key: first[key] for key in ("nest", "ranks", "dependences", "skew")}
        write_json(json_path, {**shared, "machine": decide.machine.name, "runs": [_own(run, shared) for run in runs]})


def _timeline_seconds(plan: Plan) -> float | None:
    """The exact timeline's completion time; None where nothing is done."""
    from lapwing.schedule.timeline import completion_seconds

    return None if plan.pipeline is None else completion_seconds(plan.pipeline)


class _Simulator:
    """Runs the exported program on a virtual cluster, for one plan after the other."""

    def __init__(self, bound: BoundNest, machine: Machine, ranks_a_node: int) -> None:
        self._bound, self._machine, self._ranks_a_node = bound, machine, ranks_a_node
        self._tables: dict[Any, bytes] = {}

    def seconds(self, plan: Plan) -> float:
        from lapwing.cli.progress import ProgressBar
        from lapwing.export.smpi import build, simulate
        from lapwing.export.stand_alone import check_not_empty, sources
        from lapwing.export.virtual import cluster_of

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
        cut = (plan.partition, plan.mapping, plan.tile, plan.buffers)
        if cut not in self._tables:
            report = partial(progress.update, "writing what every rank does")
            self._tables[cut] = program_bytes(self._bound, plan, report)
        return self._tables[cut]


def _own(run: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in run.items() if key not in shared}


def _show(runs: list[dict[str, Any]], machine: str, smpi: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("engine")
    for column in ("pipelined", "tile", "grid", "timeline, s", *(["SMPI, s"] if smpi else [])):
        table.add_column(column, justify="right")
    for run in runs:
        texts = [run["mapping"], str(run["tile"]), "x".join(map(str, run["grid"])), _seconds(run["seconds"])]
        table.add_row(run["engine"], *texts, *([_seconds(run["smpi"])] if smpi else []))
    first = runs[0]
    console = Console()
    console.print(f"{first['nest']} on {first['ranks']} ranks of {machine}, simulated", markup=False, highlight=False)
    console.print(table)


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
