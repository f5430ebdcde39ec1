"""`lapwing export`: a nest, or a program of several, as a stand-alone C++ program."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options

if TYPE_CHECKING:
    from lapwing.api.nest import Nest

_HELP = """Write the nest or program NEST of the Python file FILE as a C++ program that needs MPI and no Python.

DIR gets the generated tile, the runtime's sources, a main, a Makefile and a CMakeLists.txt, what every rank does
(program.bin), and the arrays of the nest's problem (data/*.npy). The program computes the very bits of the plain loop
and writes DIR/out/*.npy. Ranks, grid and tile are chosen here; the engine is this one unless the program is told another.

Of a program of several nests, what stands around them is translated as well, for these arguments: loops, conditions, numbers,
names that change places, arrays that it makes. What cannot be is refused, with its line.
"""
_EXAMPLES = """\b
Examples:
  lapwing export smooth.py -n 4 -o smooth
  make -C smooth && cd smooth && mpiexec -n 4 build/smooth
  lapwing export waves.py:step -n 64 -p n=65536 --no-data -o waves
"""


@click.command(help=_HELP, epilog=_EXAMPLES)
@options.TARGET
@options.RANKS
@options.SETTINGS
@options.TILE
@options.GRID
@click.option("--engine", "engine", metavar="E", help="Engine: blocking, overlap, onesided or helper.")
@options.MACHINE
@click.option(
    "-o", "directory", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty directory."
)
@click.option("--data/--no-data", default=True, help="Write the problem's arrays too (the default), or only all else.")
def command(
    target: str,
    ranks: int,
    settings: tuple[tuple[str, str], ...],
    tile: int | None,
    grid: options.Grid | None,
    engine: str | None,
    machine: str | None,
    directory: Path,
    data: bool,
) -> None:
    from lapwing.api.calls.decide import Decider
    from lapwing.api.calls.run import check_aliases
    from lapwing.errors import RefusedError
    from lapwing.export.stand_alone import check_directory, export
    from lapwing.launch.loading import load_nest, problem_arguments
    from lapwing.launch.progress import ProgressBar
    from lapwing.loopnest.binding.bound_nest import global_values
    from lapwing.runtime.arrays.creation import whole_arrays
    from lapwing.store.array import StoredArray

    names = options.engine_names(engine)
    if len(names) > 1:
        raise click.BadParameter(f"{engine}: expected one engine; the program takes others.", param_hint="--engine")
    if grid == "all":
        raise click.BadParameter("all: expected one grid, such as 2x2; a program is for one.", param_hint="--grid")
    options.check_grid(grid, ranks)
    nest = load_nest(target)
    if nest.program is None:
        options.check_grid_fits(nest, grid)
    check_directory(directory)
    nest = nest.using(engine=names[0] if names else None, tile=tile, grid=grid)
    given = whole_arrays(problem_arguments(nest, settings))
    arguments = {name: value.numpy() if isinstance(value, StoredArray) else value for name, value in given.items()}
    if nest.program is not None:
        _export_program(directory, nest, ranks, machine, arguments, data)
        return
    bound = nest.bind(arguments)
    values = {**global_values(nest.python), **arguments}
    check_aliases(bound, values)
    plan = Decider.for_machine(bound, bound.analysis.dependences, ranks, machine, arguments)(nest.wishes())
    if plan.idle:
        raise RefusedError(
            f"{plan.idle} of {ranks} ranks would have nothing to do, and a program is for ranks that work: give -n {plan.ranks}."
        )
    arrays = {a.name: values[a.name] for a in bound.arrays} if data else None
    progress = ProgressBar()
    try:
        export(directory, bound, plan, arrays, partial(progress.update, "writing what every rank does"))
    finally:
        progress.close()
    click.echo(str(plan))
    click.echo(f"\nmake -C {directory} && cd {directory} && mpiexec -n {ranks} build/{bound.nest.name}")


def _export_program(
    directory: Path, nest: Nest, ranks: int, machine: str | None, arguments: dict[str, Any], data: bool
) -> None:
    from lapwing.export.driver.partial_evaluation.specialisation import specialise
    from lapwing.export.driver.program import export_driver
    from lapwing.launch.progress import ProgressBar

    driver = specialise(nest, arguments, ranks, machine)
    progress = ProgressBar()
    try:
        report = partial(progress.update, "writing what every rank does")
        export_driver(directory, driver, nest.engine or "overlap", arguments, data, report)
    finally:
        progress.close()
    assert nest.program is not None
    click.echo(f"{nest.name}: {nest.program.program}, {len(driver.blocks)} blocks of its driver, on {ranks} ranks")
    click.echo(f"\nmake -C {directory} && cd {directory} && mpiexec -n {ranks} build/{nest.name}")
