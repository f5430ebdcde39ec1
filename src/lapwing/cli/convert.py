"""`lapwing convert`: an array on disk in another format."""

from __future__ import annotations

import re
from pathlib import Path

import click

_HELP = """Copy the array in IN to a new file or folder OUT, in the format that nests can work on from disk.

IN is a .npy file or the folder of a Zarr array, version 2 or 3, in any encoding that zarr reads: compressed, sharded,
big-endian; .npy files also in Fortran order. OUT is a Zarr v3 array of plain numbers if it ends in .zarr, a .npy file if it
ends in .npy. Every element keeps its bits. A Zarr array's attributes and names of axes go to another Zarr array; a .npy file
has no place for them.

Arrays may be larger than memory: each of the -n processes holds a few blocks of 8 MiB (of a compressed array, at least one of
its chunks). OUT is written beside its place and gets its name when it is complete; if something goes wrong nothing is left of
it. IN is only read.
"""
_EXAMPLES = """\b
Examples:
  lapwing convert u.npy u.zarr
  lapwing convert era5.zarr/t2m t2m.zarr -n 4
  lapwing convert u.zarr u.npy --force
Then, in Python: u = lw.open("u.zarr").
"""


def _chunks(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """``1024x512`` as (1024, 512)."""
    if value is None:
        return None
    if not re.fullmatch(r"[1-9]\d*([xX×][1-9]\d*)*", value, re.ASCII):
        raise click.BadParameter(f"{value!r}: expected lengths joined by x, such as 1024x1024.", ctx, parameter)
    return tuple(int(part) for part in re.split("[xX×]", value))


@click.command(help=_HELP, epilog=_EXAMPLES)
@click.argument("source", metavar="IN")
@click.argument("path", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--chunks",
    callback=_chunks,
    metavar="AxB",
    help="The chunks of a .zarr OUT, a length for every axis. Default: whole rows of together about 8 MiB.",
)
@click.option(
    "-n",
    "--ranks",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="RANKS",
    help="Number of processes that copy.",
)
@click.option("--force", is_flag=True, help="Replace OUT if it is there; until the new one is complete it stays.")
def command(source: str, path: Path, chunks: tuple[int, ...] | None, ranks: int, force: bool) -> None:
    from lapwing.cli.actions.convert import convert
    from lapwing.store.conversion import FORMATS

    if path.suffix not in FORMATS:
        raise click.BadParameter(f"{path}: expected a name that ends in {' or '.join(FORMATS)}.", param_hint="OUT")
    if chunks is not None and path.suffix == ".npy":
        raise click.BadParameter(f"{path}: a .npy file has no chunks.", param_hint="--chunks")
    click.echo(convert(source, path, chunks, ranks, force))
