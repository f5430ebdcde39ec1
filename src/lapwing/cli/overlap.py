"""`lapwing overlap`: rewrite an existing MPI program so that its communication overlaps with computation."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from lapwing.cli import options
from lapwing.files import STANDARD_OUTPUT, may_be_standard_output

_HELP = """Rewrite an MPI program in Fortran, C or C++ so that its communication overlaps with computation.

SOURCEs are files, or folders that are searched for them (not hidden and build folders, nor what -o writes or has written
into). For every MPI call that
communicates, lapwing finds what its data depend on and what depends on them, and moves the transfer's start up and its wait
down as far as it can prove that nothing changes but the time. What it cannot prove it leaves as it is, and says why.

The sources themselves are changed with --in-place only. Otherwise a patch goes to standard output, a summary to standard
error:

\b
  lapwing overlap heat.f90 > overlap.patch && patch -p1 < overlap.patch

--verify COMMAND builds and runs the program in copies of its project (the Git work tree, or the folder that holds the
sources and this one; --project), original and transformed program twice each, and compares exit status and standard output,
numbers to the last digit. Numbers that differ between runs of the original, or that a label or unit calls a time or a
rate, are not compared. What the program writes to files is compared if COMMAND prints it (`… && cat result.dat`). Then both
run once more with the library of `lapwing trace`, and a table shows for each call site how long ranks were blocked before
and after (compile with -g to see lines). The copies lie in TMPDIR, and COMMAND runs in the folder of a copy that is this one
in the project, else in its topmost; it has to build the program there. If the transformed program differs, or is not what
ran, nothing is written with -o and --in-place.

Exit status: 0 done, also where nothing could be changed; 1 failed, or --verify found a difference or did not see the
transformed program run; 2 wrong usage, nothing that can be read, sources with several main programs, or sources that have
been rewritten already.
"""
_EXAMPLES = """\b
Examples:
  lapwing overlap src -I include -D N=512 -U DEBUG --report overlap.txt > overlap.patch
  lapwing overlap heat.c --explain heat.c:120
  lapwing overlap src --in-place --verify "make -s && mpiexec -n 4 ./heat 100"
"""


def _defines(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Every ``NAME[=VALUE]`` as two texts; a name alone is 1, as compilers have it."""
    defines = []
    for value in values:
        name, equals, text = value.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*(\([\w, .]*\))?", name):
            raise click.BadParameter(f"{value!r}: expected NAME or NAME=VALUE, such as N=512.", ctx, parameter)
        defines.append((name, text if equals else "1"))
    return tuple(defines)


def _undefines(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not re.fullmatch(r"[A-Za-z_]\w*", value):
            raise click.BadParameter(f"{value!r}: expected the name of a macro, such as DEBUG.", ctx, parameter)
    return values


def _line(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Path, int] | None:
    if value is None:
        return None
    file, _, line = value.rpartition(":")
    if not file or not re.fullmatch(r"[1-9]\d*", line, re.ASCII):
        raise click.BadParameter(f"{value!r}: expected FILE:LINE, such as heat.c:120.", ctx, parameter)
    return Path(file), int(line)


def _transformations(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    from lapwing.overlap.report.outcome import TRANSFORMATIONS

    for value in values:
        if value not in TRANSFORMATIONS:
            raise click.BadParameter(f"{value!r}: expected one of {', '.join(TRANSFORMATIONS)}.", ctx, parameter)
    return values


class _Named(click.Path):
    """A path that is not the empty word, which would mean the current folder: a variable that was not set."""

    def convert(self, value: Any, parameter: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("an empty name; expected a file or a folder.", parameter, ctx)
        return super().convert(value, parameter, ctx)


def _path(**settings: bool) -> click.Path:
    return _Named(path_type=Path, **settings)


@click.command(help=_HELP, epilog=_EXAMPLES)
@click.option(
    "-I", "includes", type=_path(), multiple=True, metavar="DIR", help="A folder of include files or modules."
)
@click.option(
    "-D", "defines", callback=_defines, multiple=True, metavar="NAME[=VALUE]", help="A macro, as for the compiler."
)
@click.option(
    "-U",
    "undefines",
    callback=_undefines,
    multiple=True,
    metavar="NAME",
    help="A macro that is not defined, as for the compiler; of others that are not, the result is checked when it is compiled.",
)
@click.option(
    "-p",
    "--compile-commands",
    type=_path(exists=True),
    metavar="FILE",
    help="compile_commands.json (or its folder): each file's own -I and -D.",
)
@click.option("--diff", "diff", is_flag=True, help="Print a unified diff (the default).")
@click.option(
    "-o", "folder", type=_path(file_okay=False), metavar="DIR", help="Write the files that change into DIR instead."
)
@click.option("--in-place", is_flag=True, help="Change the sources themselves instead.")
@click.option("--explain", callback=_line, metavar="FILE:LINE", help="Only print all about the call at that line.")
@click.option(
    "--report",
    type=_path(dir_okay=False, allow_dash=True),
    callback=may_be_standard_output,
    metavar="PATH",
    help="Also write all about every call to PATH, as text (-: to standard output).",
)
@options.JSON
@click.option(
    "--sarif",
    type=_path(dir_okay=False, allow_dash=True),
    callback=may_be_standard_output,
    metavar="PATH",
    help="Also write that as SARIF 2.1.0, for editors and code hosts (-: to standard output).",
)
@click.option("--verify", metavar="COMMAND", help="Run original and transformed program by bash, and compare them.")
@click.option(
    "--project", type=_path(exists=True, file_okay=False), metavar="DIR", help="The folder that --verify copies."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest that one run of --verify may take.",
)
@click.option("--no-progress-calls", is_flag=True, help="Insert no calls of MPI into long loops.")
@click.option(
    "--reassociate",
    is_flag=True,
    help="Overlap floating-point reductions, too, and split loops with sums: last digits may change.",
)
@click.option(
    "--only",
    callback=_transformations,
    multiple=True,
    metavar="TRANSFORMATION",
    help="Make this transformation only; may be repeated.",
)
@click.option(
    "--skip",
    callback=_transformations,
    multiple=True,
    metavar="TRANSFORMATION",
    help="Do without this transformation; may be repeated.",
)
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=_path())
def command(
    includes: tuple[Path, ...],
    defines: tuple[tuple[str, str], ...],
    undefines: tuple[str, ...],
    compile_commands: Path | None,
    diff: bool,
    folder: Path | None,
    in_place: bool,
    explain: tuple[Path, int] | None,
    report: Path | None,
    json_path: Path | None,
    sarif: Path | None,
    verify: str | None,
    project: Path | None,
    timeout: float,
    no_progress_calls: bool,
    reassociate: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    sources: tuple[Path, ...],
) -> int:
    from lapwing.cli.actions.overlap import Wishes, overlap
    from lapwing.overlap.driver import Request
    from lapwing.overlap.languages.selection import find_sources
    from lapwing.overlap.report.outcome import TRANSFORMATIONS, Options

    outputs = {"--diff": diff, "-o": folder is not None, "--in-place": in_place, "--explain": explain is not None}
    chosen = [name for name, wanted in outputs.items() if wanted]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other: name one.")
    documents = {"--report -": report, "--json -": json_path, "--sarif -": sarif}
    printed = [name for name in chosen if name in ("--diff", "--explain")]
    printed += [name for name, path in documents.items() if path == STANDARD_OUTPUT]
    if len(printed) > 1:
        raise click.UsageError(f"{' and '.join(printed)} would both be on standard output: name one.")
    transformations = (frozenset(only) or frozenset(TRANSFORMATIONS)) - frozenset(skip)
    if not transformations:
        raise click.UsageError("--only and --skip leave no transformation to make.")
    if compile_commands is not None and compile_commands.is_dir():
        compile_commands = compile_commands / "compile_commands.json"
    found = find_sources(sources, folder)
    wanted = Options(
        progress_calls=not no_progress_calls,
        reassociate=reassociate,
        transformations=transformations if only or skip else None,
    )
    both = sorted({name.partition("(")[0] for name, _ in defines}.intersection(undefines))
    if both:
        raise click.UsageError(f"-D and -U both name {', '.join(both)}: leave one out.")
    request = Request(found.files, includes, defines, compile_commands, wanted, undefines)
    wishes = Wishes(folder, in_place, explain, report, json_path, sarif, verify, project, timeout)
    return overlap(request, found.problems, wishes)
