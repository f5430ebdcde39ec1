"""Arguments and options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from lapwing.files import may_be_standard_output

if TYPE_CHECKING:
    from lapwing.api.nest import Nest
    from lapwing.schedule.pipeline import Engine


Grid = tuple[int, ...] | Literal["all"]


def _grid(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Grid | None:
    """``2x3`` as (2, 3); a single number is a grid along one loop; ``all`` stays what it is."""
    if value is None:
        return None
    if value == "all":
        return "all"
    if not re.fullmatch(r"\d+([xX×]\d+)*", value, re.ASCII):
        raise click.BadParameter(
            f"{value!r}: expected numbers of parts joined by x, such as 4 or 2x2, or all.", ctx, parameter
        )
    return tuple(int(part) for part in re.split("[xX×]", value))


def _settings(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Every ``KEY=VALUE`` as two texts."""
    settings = []
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key.isidentifier():
            raise click.BadParameter(f"{value!r}: expected KEY=VALUE, such as n=4096.", ctx, parameter)
        settings.append((key, text))
    return tuple(settings)


TARGET = click.argument("target", metavar="FILE[:NEST]")
RANKS = click.option(
    "-n", "--ranks", type=click.IntRange(min=1), default=1, show_default=True, metavar="RANKS", help="Number of ranks."
)
SETTINGS = click.option(
    "-p",
    "--parameter",
    "settings",
    callback=_settings,
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a parameter of the nest's problem; may be repeated.",
)
TILE = click.option(
    "--tile",
    type=click.IntRange(min=1),
    metavar="Z",
    help="Tile height, in iterations of the pipelined loop; where time is pipelined, in sweeps.",
)
GRID = click.option(
    "--grid",
    callback=_grid,
    metavar="AxB|all",
    help="Process grid: parts along each space loop but the pipelined one, in their order; or along all of them, which asks "
    "for time to be pipelined where that is legal. all: every grid for this number of ranks.",
)


def _memory(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    from lapwing.errors import RefusedError
    from lapwing.units import parsed_size

    try:
        return None if text is None else parsed_size(text)
    except RefusedError as error:
        raise click.BadParameter(str(error), ctx, parameter) from None


MEMORY = click.option(
    "--memory",
    callback=_memory,
    metavar="SIZE",
    help="Memory for arrays, such as 4GB or 512MiB, of all ranks of a node together. A problem that takes more runs out of "
    "core: its arrays are on disk, and parts of them come into memory while others are computed on.",
)
PASS_SWEEPS = click.option(
    "--pass-sweeps",
    type=click.IntRange(min=1),
    metavar="T",
    help="Out of core: how many sweeps are done each time the data is read and written. Default: what the model says.",
)
RING = click.option(
    "--ring",
    type=click.IntRange(min=1, max=3),
    metavar="1|2|3",
    help="Out of core: 3 (the default) reads a slab and writes another while computing, 2 does one of both, 1 nothing at the "
    "same time.",
)
JSON = click.option(
    "--json",
    "json_path",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    callback=may_be_standard_output,
    metavar="PATH",
    help="Also write the outcome to PATH as JSON (-: to standard output).",
)


MACHINE = click.option(
    "--machine",
    metavar="FILE|NAME",
    help="The machine to plan for: a file of `lapwing calibrate`, or a known cluster. Default: this machine, as it was "
    "calibrated.",
)


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """FILE[:NEST], -n, -p, --tile, --grid and --json."""
    for decorate in (JSON, GRID, TILE, SETTINGS, RANKS, TARGET):
        function = decorate(function)
    return function


def engine_names(text: str | None) -> tuple[Engine, ...]:
    """``--engine blocking,overlap`` as names, each once; () where it is not given."""
    from lapwing.planner.plan import ENGINES

    if text is None:
        return ()
    known = {str(engine): engine for engine in ENGINES}
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r}: expected some of {', '.join(ENGINES)}.", param_hint="--engine")
    return tuple(known[name] for name in names)


def check_grid(grid: Grid | None, ranks: int) -> None:
    """Refuse a grid that is not for this number of ranks."""
    if grid is not None and grid != "all" and math.prod(grid) != ranks:
        text = "x".join(map(str, grid))
        raise click.BadParameter(
            f"{text} is for {math.prod(grid)} ranks, but there are {ranks} (-n).", param_hint="--grid"
        )


def check_grid_fits(nest: Nest, grid: Grid | None) -> None:
    """Refuse a grid with a number of parts that the nest's loops do not have, before its problem is made."""
    loops = [loop.name for loop in nest.loops.space_loops]
    if grid is not None and grid != "all" and len(grid) not in (len(loops), max(1, len(loops) - 1)):
        expected = f"{len(loops) - 1} (all but the pipelined one) or {len(loops)}" if len(loops) > 1 else "1"
        text = "x".join(map(str, grid))
        raise click.BadParameter(
            f"{text} has {len(grid)} entries; the space loops of {nest.name} are {', '.join(loops)}: "
            f"expected {expected}.",
            param_hint="--grid",
        )
