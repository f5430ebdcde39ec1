"""`lapwing plan`: how a nest would be cut and run, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options

if TYPE_CHECKING:
    from lapwing.api.nest import Nest
    from lapwing.planner.plan import Plan

_HELP = """Show how the nest NEST of the Python file FILE would run: tiles, process grid, engine, and the reasons.

Tiles, grid and engine are those that the model of the machine predicts to be fastest, with the predicted time and its
parts, and the runner-up. Every dependence is listed with the two accesses that cause it. The nest's problem is called for
its sizes, and for this machine the speed of a few tiles is measured in less than a second; the nest is not run, and no MPI
is needed.
"""
_EXAMPLES = """\b
Examples:
  lapwing plan smooth.py -n 16
  lapwing plan waves.py:step -n 4 -p n=4096 --grid 2x2 --json plan.json
  lapwing plan waves.py:step -n 16 --grid all
  lapwing plan waves.py:step -n 1024 --machine cluster-100gbit
  lapwing plan smooth.py -n 2 -p n=60000 --memory 4GB
"""


@click.command(help=_HELP, epilog=_EXAMPLES)
@options.common
@click.option(
    "--engine", "engine", metavar="E", help="Engine: blocking, overlap, onesided or helper. Default: the fastest."
)
@options.MEMORY
@options.PASS_SWEEPS
@options.RING
@options.MACHINE
def command(
    target: str,
    ranks: int,
    settings: tuple[tuple[str, str], ...],
    tile: int | None,
    grid: options.Grid | None,
    json_path: Path | None,
    engine: str | None,
    memory: int | None,
    pass_sweeps: int | None,
    ring: int | None,
    machine: str | None,
) -> None:
    from lapwing.api.calls.decide import Decider
    from lapwing.api.calls.out_of_core import out_of_core_plan, stored_arrays
    from lapwing.files import check_writable, write_json
    from lapwing.launch.loading import load_nest, problem_arguments
    from lapwing.launch.progress import ProgressBar
    from lapwing.planner.choose import grids
    from lapwing.session.spilling import is_too_much, shapes_in_memory, spilled_plan

    names = options.engine_names(engine)
    if len(names) > 1:
        raise click.BadParameter(f"{engine}: expected one engine; a plan is for one.", param_hint="--engine")
    options.check_grid(grid, ranks)
    if json_path is not None:
        check_writable(json_path)
    nest = load_nest(target)
    nest = nest.using(
        engine=names[0] if names else None,
        tile=tile,
        grid=None if grid == "all" else grid,
        memory=memory,
        pass_sweeps=pass_sweeps,
        ring=ring,
    )
    arguments = problem_arguments(nest, settings)
    if nest.program is not None:
        _plan_program(nest, arguments, ranks, grid, machine, json_path)
        return
    nest = nest.for_arguments(arguments)
    bound = nest.bind(arguments)
    progress = ProgressBar()
    decide = Decider.for_machine(bound, bound.analysis.dependences, ranks, machine, arguments, progress.say)
    stored, shapes = stored_arrays(arguments), shapes_in_memory(nest, arguments)
    out_of_core = bool(stored) or is_too_much(nest, shapes)
    if out_of_core and grid == "all":
        raise click.BadParameter("all: out of core, expected one grid or none.", param_hint="--grid")
    try:
        if stored:
            plan = out_of_core_plan(nest, decide, stored)
        elif out_of_core:
            plan = spilled_plan(nest, decide, shapes)
        else:
            plan = decide.explained(decide.limited(decide(nest.wishes())))
    finally:
        progress.close()
    document = {**plan.to_json(), "causes": [vars(dependence) for dependence in plan.dependences]}
    click.echo(str(plan))
    if grid == "all":
        tried = [nest.using(grid=one).wishes() for one in grids(bound, bound.analysis.dependences, ranks)]
        try:
            plans = [decide(wishes) for wishes in tried]
        finally:
            progress.close()
        document["grids"] = [one.to_json() for one in plans]
        _show_grids(plans, chosen=plan)
    if json_path is not None:
        write_json(json_path, document)
    if plan.dependences:
        click.echo("\ndependences, and the accesses that cause them:")
    for dependence in plan.dependences:
        click.echo(f"  {dependence}")


def _plan_program(
    nest: Nest,
    arguments: Mapping[str, Any],
    ranks: int,
    grid: options.Grid | None,
    machine: str | None,
    json_path: Path | None,
) -> None:
    """A program: its regions, each with its plan where its arguments are known without a run."""
    from lapwing.api.calls.decide import Decider
    from lapwing.files import write_json
    from lapwing.launch.progress import ProgressBar

    if grid == "all":
        raise click.BadParameter("all: of a program, expected one grid or none.", param_hint="--grid")
    program = nest.program
    assert program is not None
    progress = ProgressBar()

    def planned(region: Nest, values: Mapping[str, Any]) -> Plan:
        region = region.for_arguments(values)
        bound = region.bind(values)
        decide = Decider.for_machine(bound, bound.analysis.dependences, ranks, machine, values, progress.say)
        decide = replace(decide, measures=False)  # of arrays there are only shapes
        return decide.explained(decide(region.wishes()))

    try:
        plan = program.plan(nest, arguments, ranks, planned)
    finally:
        progress.close()
    click.echo(str(plan))
    if json_path is not None:
        write_json(json_path, plan.to_json())


def _show_grids(plans: Sequence[Plan], chosen: Plan) -> None:
    """A line for every grid; the chosen one is marked."""
    click.echo("\nall grids:")
    width = max(len("x".join(map(str, plan.grid))) for plan in plans)
    for plan in plans:
        mark = "*" if (plan.mapping, plan.partition) == (chosen.mapping, chosen.partition) else " "
        grid = "x".join(map(str, plan.grid))
        click.echo(f"{mark} {grid:<{width}}{plan.in_short()}, messages of about {plan.message_bytes} bytes")
