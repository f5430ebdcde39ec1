"""`lapwing trace`: run any MPI program and show, per call site, how much communication is exposed."""

from __future__ import annotations

from pathlib import Path

import click

from lapwing.cli import options

_HELP = """Run COMMAND, which starts an MPI program (C, C++ or Fortran, not recompiled), and show for each place that
calls MPI how long ranks were blocked there, why, and how much of it computation could hide.

COMMAND is what you would type without lapwing: mpiexec, srun, or a script that calls one. Its output passes through;
the report follows on standard output. Compile the program with -g to see files and lines. The library that records is
compiled on first use for the MPI whose mpicxx is on PATH (or LAPWING_MPICXX) and preloaded; a program that is linked
statically with MPI cannot be traced.

\b
The columns, in seconds summed over the ranks:
  exposed        inside calls in which the rank could do nothing else: blocking calls, waits, tests and probes
  late partner   of exposed: the other side had not started its part yet (send, receive, or the last rank
                 or root of a collective)
  transfer       of exposed: both sides were there and the message or collective was in flight
  awaited        exposed time, there or elsewhere, of the operations that were started here
  overlapped     the rank computed while operations started here were in flight: what was hidden at most
  could overlap  of exposed: at most this could hide behind computation the rank does until it comes to the call again,
                 if data dependences allow. Waiting that only makes up for other ranks' larger share of computation
                 is not counted
Where several threads of a rank call MPI, seconds are those of all of them: each from its first call to its last, that of
MPI_Init from there to MPI_Finalize.
What is left of exposed after late partner and transfer is unknown: one-sided synchronisation, or calls after the
first --records of a rank, which are counted but not matched.

\b
Parallel efficiency (POP) = load balance (mean / largest computation of a rank)
                          × communication efficiency (largest computation / run time).

The exit status is that of COMMAND (128 + N if signal N ended it); 2 if nothing was started.
"""
_EXAMPLES = """\b
Examples:
  lapwing trace -- mpiexec -n 4 ./heat 1000
  lapwing trace --top 5 --json out/heat.json --timeline out/heat.trace.json -- srun -n 64 ./heat 1000
Open the timeline at https://ui.perfetto.dev.
"""


@click.command(
    help=_HELP,
    epilog=_EXAMPLES,
    # What follows COMMAND is COMMAND's, `-n` too.
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Call sites in the table."
)
@click.option(
    "--waits", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="Longest waits to list."
)
@click.option(
    "--records",
    type=click.IntRange(min=0, max=1 << 28),
    default=1 << 20,
    metavar="N",
    help="Calls and messages a rank records one by one, 64 bytes each (default: 1048576).",
)
@options.JSON
@click.option(
    "--timeline",
    "timeline_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PATH",
    help="Also write every call of every rank to PATH (.json) for Perfetto.",
)
@click.argument("words", metavar="COMMAND [ARGUMENT]...", nargs=-1, type=click.UNPROCESSED)
def command(
    top: int, waits: int, records: int, json_path: Path | None, timeline_path: Path | None, words: tuple[str, ...]
) -> int:
    from lapwing.cli.actions.trace import Wishes, trace

    if not words:
        raise click.UsageError(
            "no command to trace: expected one after --, such as `lapwing trace -- mpiexec -n 4 ./heat`."
        )
    if timeline_path is not None and timeline_path.suffix != ".json":
        raise click.BadParameter(f"{timeline_path}: expected a name that ends with .json.", param_hint="--timeline")
    return trace(words, Wishes(top, waits, records, json_path, timeline_path))
