"""`lapwing calibrate`: measure this machine with the code that will run, for plans to rest on."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapwing.cli import options
from lapwing.cli.hosts import Hosts

if TYPE_CHECKING:
    from lapwing.launch.lab import Lab
    from lapwing.launch.progress import ProgressBar
    from lapwing.machine.machine import Machine

_HELP = """Measure this machine: tiles, messages of every engine, copies, and with --disk a disk.

What is found is kept for `lapwing plan` and `lapwing run` in the user's cache directory, or written to -o FILE, as JSON that
people can read. Runs on an idle machine give the truest figures; how far they varied is said. With FILE[:NEST] that nest's tile
is measured as well. With --hosts the network between hosts is measured after this machine.
"""
_EXAMPLES = """\b
Examples:
  lapwing calibrate
  lapwing calibrate smooth.py -n 4 -p n=4096 --disk /scratch
  lapwing calibrate --hosts lab -o lab.json
"""
# Of the seconds to measure for, where there is more to measure than the node.
_NETWORK_SHARE, _DISK_SHARE = 0.4, 0.2


@click.command(help=_HELP, epilog=_EXAMPLES)
@click.argument("target", metavar="[FILE[:NEST]]", required=False)
@click.option(
    "-n",
    "--ranks",
    type=click.IntRange(min=2),
    default=2,
    show_default=True,
    metavar="RANKS",
    help="Ranks that compute at the same time while tiles are measured; messages go between the first two.",
)
@options.SETTINGS
@click.option(
    "--hosts",
    type=Hosts(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE|lab",
    help="Measure the network as well, between the first two hosts that FILE lists, or of the lab.",
)
@click.option(
    "--disk",
    type=click.Path(file_okay=True, path_type=Path),
    metavar="DIR",
    help="Measure the disk that DIR is on as well, with a file of 256 MiB that is removed again.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1, max=600),
    default=60,
    show_default=True,
    metavar="S",
    help="About how long to measure, compiling apart; less time gives wider intervals.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the machine's description. Default: where plans and runs look for it.",
)
@options.JSON
def command(
    target: str | None,
    ranks: int,
    settings: tuple[tuple[str, str], ...],
    hosts: Path | Lab | None,
    disk: Path | None,
    seconds: float,
    output: Path | None,
    json_path: Path | None,
) -> None:
    from lapwing.cli.tables.calibrate import show
    from lapwing.codegen.compilation.cache import make_cache_directory
    from lapwing.files import check_writable, write_json
    from lapwing.launch.loading import load_nest, problem_settings
    from lapwing.launch.progress import ProgressBar
    from lapwing.machine import stored
    from lapwing.machine.document import to_document

    _refuse_inside_mpi()
    if settings and target is None:
        raise click.BadParameter("there is no nest to set parameters of. Name its file.", param_hint="-p")
    path = stored.own_path(make_cache_directory()) if output is None else output
    check_writable(path, "-o")
    if json_path is not None:
        check_writable(json_path)
    environment = dict(os.environ)  # the user's file may start MPI, and leave traces that a launcher must not see
    if target is not None:
        nest = load_nest(target)
        problem_settings(nest, settings)
    progress = ProgressBar()
    try:
        machine, warnings = _measured(target, settings, ranks, hosts, disk, seconds, progress, environment)
    finally:
        progress.close()
    machine, kept = _joined(machine, path)
    stored.write(machine, path)
    if json_path is not None:
        write_json(json_path, to_document(machine))
    show(machine)
    for text in kept:
        click.echo(text)
    click.echo(f"written to {path}" + ("; plans and runs use it from now on" if output is None else ""))
    for text in warnings:
        click.echo(f"lapwing: warning: {text}", err=True)


def _measured(
    target: str | None,
    settings: tuple[tuple[str, str], ...],
    ranks: int,
    hosts: Path | Lab | None,
    disk: Path | None,
    seconds: float,
    progress: ProgressBar,
    environment: dict[str, str],
) -> tuple[Machine, list[str]]:
    """What was measured, and what is to be said of it. Raises LapwingError; KeyboardInterrupt after Ctrl-C."""
    from lapwing.calibrate.disk import check_directory, measure_disk
    from lapwing.launch.launch import launch
    from lapwing.machine.document import from_document, links_from
    from lapwing.session.calibrate_worker import MODULE, CalibrateJob

    if disk is not None:
        check_directory(disk)  # before minutes are spent

    def emit(kind: str, value: Any) -> None:
        if kind == "progress":
            progress.update(*value)

    network = _NETWORK_SHARE if hosts is not None else 0.0
    storage = _DISK_SHARE if disk is not None else 0.0
    links = {}
    if hosts is not None:  # first: hosts that cannot be reached should cost nobody a minute
        report = launch(CalibrateJob(True, network * seconds), 2, hosts, emit, progress, environment, MODULE)
        links = links_from(report.document["links"], "the ranks' report")
    job = CalibrateJob(False, (1 - network - storage) * seconds, target, settings)
    report = launch(job, ranks, None, emit, progress, environment, MODULE)
    machine = from_document(report.document["machine"], "the ranks' report")
    machine = replace(machine, links={**machine.links, **links})
    if disk is not None:
        measured = measure_disk(disk, storage * seconds, lambda done: progress.update("calibrating: disk", done))
        machine = replace(machine, disk=measured)
    return machine, list(report.document["warnings"])


def _joined(machine: Machine, path: Path) -> tuple[Machine, list[str]]:
    """With what an earlier calibration of the same machine found and this one did not look for, and a line on each."""
    from lapwing.errors import RefusedError
    from lapwing.machine import stored

    if not path.is_file():
        return machine, []
    try:
        before = stored.read(path)
    except RefusedError as error:
        return machine, [f"what was there before is replaced: {error}"]
    if changes := before.fingerprint.changes(machine.fingerprint):
        return machine, [f"what was there before is replaced: {'; '.join(changes)}"]
    return stored.joined(machine, before)


def _refuse_inside_mpi() -> None:
    from lapwing.errors import RefusedError
    from lapwing.runtime.mpi import communicator

    if communicator.launched():
        raise RefusedError(
            "`lapwing calibrate` was started by an MPI launcher, once a rank. It starts the ranks itself: "
            "`lapwing calibrate -n N`, without mpiexec."
        )
