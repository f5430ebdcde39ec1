"""`lapwing run`: run a nest here or across ranks, time it, and compare it with the plain loop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options
from lapwing.cli.hosts import Hosts

if TYPE_CHECKING:
    from lapwing.launch.job import Job, Report
    from lapwing.launch.lab import Lab

_HELP = """Run the nest NEST of the Python file FILE on the arguments its problem gives, and time it.

NEST can be left out where only one nest of the file has a problem. With -n 1 the nest runs in this process and needs
no MPI; with more, lapwing starts the ranks itself. Prints the plan, a table and what the nest returns.
"""
_EXAMPLES = """\b
Examples:
  lapwing run smooth.py -p n=4096 -n 4 --check
  lapwing run waves.py:step -n 2 --engine blocking,overlap --repeat 5 --json out/waves.json
  lapwing run waves.py:step -n 8 --grid all --repeat 3
  lapwing run smooth.py -n 4 -p n=65536 --memory 4GB --scratch /scratch
"""


def _timeline(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix not in (".html", ".json"):
        raise click.BadParameter(
            f"{str(path)!r}: expected a name that ends in .html (a page for any browser) or .json (for ui.perfetto.dev).",
            ctx,
            parameter,
        )
    return path


def _helper_cpu(ctx: click.Context, parameter: click.Parameter, text: str) -> str:
    from lapwing.runtime.tuning import helper_cpus

    try:
        helper_cpus(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}: expected auto, none or CPUs, such as 1,3.", ctx, parameter) from None
    return text


@click.command(help=_HELP, epilog=_EXAMPLES)
@options.common
@click.option(
    "--engine",
    "engines",
    metavar="E[,E...]",
    help="Engines to run: blocking, overlap, onesided, helper. Several take turns.",
)
@click.option(
    "--hosts",
    type=Hosts(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE|lab",
    help="Start the ranks on the hosts that FILE lists, as your mpiexec reads it; or on those of the lab, a cluster in "
    "this machine (`make lab-up`), in blocks of consecutive ranks: -n 4 on 2 hosts puts ranks 0 and 1 on the first. The network "
    "between hosts that are new is measured first, in about three seconds.",
)
@click.option(
    "--helper-cpu",
    callback=_helper_cpu,
    default="auto",
    show_default=True,
    metavar="auto|none|CPU,...",
    help="Where engine helper's communicating threads run: on the SMT sibling of the core a rank computes on, where there is "
    "one; wherever the system puts them; or on these CPUs, one for each rank of a host.",
)
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, metavar="R", help="Runs of each engine."
)
@click.option(
    "--check", is_flag=True, help="Compare every element with the plain loop; the status is 1 if any bit differs."
)
@options.MEMORY
@options.PASS_SWEEPS
@options.RING
@click.option(
    "--resume",
    is_flag=True,
    help="Out of core: go on from the last finished pass of a run of the same that was ended before its end, by whatever. "
    "Without one, begin.",
)
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="Out of core: the folder, on a disk that all ranks see, for arrays that the problem makes in memory. They are removed "
    "at the end. Default: the current folder.",
)
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_timeline,
    metavar="PATH",
    help="Also write what every rank did when, and say how much communication was hidden: PATH.html is a page for any "
    "browser, PATH.json is for ui.perfetto.dev. Of several runs of an engine the median one is shown.",
)
def command(
    target: str,
    ranks: int,
    settings: tuple[tuple[str, str], ...],
    tile: int | None,
    grid: options.Grid | None,
    json_path: Path | None,
    engines: str | None,
    hosts: Path | Lab | None,
    helper_cpu: str,
    repeat: int,
    check: bool,
    memory: int | None,
    pass_sweeps: int | None,
    ring: int | None,
    resume: bool,
    scratch: Path | None,
    timeline: Path | None,
) -> int:
    from lapwing.launch.job import Job

    _refuse_inside_mpi()
    names = options.engine_names(engines)
    options.check_grid(grid, ranks)
    if timeline is not None and json_path is not None and os.path.abspath(json_path) == os.path.abspath(timeline):
        raise click.BadParameter(f"{timeline} is what --json names, too. Name another file.", param_hint="--timeline")
    # The first rank writes it, wherever that is started.
    drawing = None if timeline is None else os.path.abspath(timeline)
    if resume and (repeat > 1 or len(names) > 1 or grid == "all"):
        raise click.BadParameter(
            "there is one run to go on with: no --repeat, one engine and grid.", param_hint="--resume"
        )
    job = Job(
        target, settings, names, tile, grid, repeat, check, drawing, helper_cpu, memory, pass_sweeps, ring,
        None if scratch is None else os.path.abspath(scratch), resume,
    )  # fmt: skip
    return _run(job, ranks, hosts, json_path)


def _run(job: Job, ranks: int, hosts: Path | Lab | None, json_path: Path | None) -> int:
    from lapwing.cli.tables.program import show_program
    from lapwing.cli.tables.run import show
    from lapwing.files import check_writable, write_json
    from lapwing.temporary import remove_abandoned

    if json_path is not None:
        check_writable(json_path)
    if job.timeline is not None:
        check_writable(Path(job.timeline), "--timeline")
    said: list[str] = []
    scratch = Path(job.scratch or ".")
    remove_abandoned(scratch)
    try:
        report = _report(job, ranks, hosts, said)
    finally:
        remove_abandoned(scratch)  # of ranks that were ended
    if json_path is not None:
        write_json(json_path, report.document)
    if "regions" in report.document:
        show_program(report.document)
    else:
        show(report.document)
    for text in said:
        click.echo(text)
    if job.timeline is not None:
        click.echo(f"timeline: {os.path.relpath(job.timeline)}")
    for text in report.differences:
        click.echo(f"lapwing: not identical: {text}.", err=True)
    return 1 if report.differences else 0


def _report(job: Job, ranks: int, hosts: Path | Lab | None, said: list[str]) -> Report:
    """Run a job; what is to be said of it after the table is added to ``said``."""
    from lapwing.launch.loading import load_nest, problem_settings
    from lapwing.launch.progress import ProgressBar

    # The user's file may start MPI by itself, and leave traces that a launcher must not see.
    environment = dict(os.environ)
    nest = load_nest(job.target)
    problem_settings(nest, job.settings)
    if nest.program is not None:
        from lapwing.session.programs import check_options

        check_options(job, nest)
    else:
        _ = nest.skew  # refuses what cannot be tiled
        options.check_grid_fits(nest, job.grid)
    progress = ProgressBar()

    def emit(kind: str, value: Any) -> None:
        if kind == "plan":
            click.echo(value)
        elif kind == "metrics":
            said.append(value)
        elif kind == "progress":
            progress.update(*value)

    if ranks > 1 or hosts is not None:
        from lapwing.launch.launch import launch

        return launch(job, ranks, hosts, emit, progress, environment)
    from lapwing.session.session import run_session

    try:
        report = run_session(job, nest, None, emit)
    finally:
        progress.close()
    assert report is not None
    return report


def _refuse_inside_mpi() -> None:
    from lapwing.errors import RefusedError
    from lapwing.runtime.mpi import communicator

    if communicator.launched():
        raise RefusedError(
            "`lapwing run` was started by an MPI launcher, once a rank. It starts the ranks itself: "
            "`lapwing run FILE -n N`, without mpiexec. A program of your own that calls nests does run under mpiexec."
        )
