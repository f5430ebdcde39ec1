"""The outcome of `lapwing run` as a person reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lapwing.units import NOT_KNOWN, in_seconds, share, size

PIPED_WIDTH = 120  # characters, where there is no terminal to ask
DISK_TITLES = ("disk hidden", "read", "written")
DIGITS = 4  # more say nothing: they are the noise of any machine


def show(document: Mapping[str, Any]) -> None:
    """Print a table with a line per engine and grid, which of several grids was best, warnings, and then the nest's results."""
    runs = document["runs"]
    repeats = len(runs[0]["seconds"])
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("engine")
    table.add_column("tile", justify="right")
    table.add_column("grid", justify="right")
    table.add_column("seconds" if repeats == 1 else f"seconds (median of {repeats})", justify="right")
    table.add_column("predicted", justify="right")
    table.add_column("communication hidden", justify="right")
    on_disk = any(run["disk"] is not None for run in runs)
    if on_disk:
        for title in DISK_TITLES:
            table.add_column(title, justify="right")
    table.add_column("identical")
    for run in runs:
        table.add_row(
            run["engine"],
            str(run["tile"]),
            "x".join(map(str, run["grid"])),
            in_seconds(run["median"], DIGITS),
            in_seconds(run["predicted"], DIGITS),
            share(run["hidden"]),
            *(disk_cells(run["disk"]) if on_disk else ()),
            verdict(run["identical"]),
        )
    console = Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)
    console.print(table)
    if len({tuple(run["grid"]) for run in runs}) > 1:
        best = min(runs, key=lambda run: run["median"])
        grid = "x".join(map(str, best["grid"]))
        console.print(
            f"best: {best['engine']} on {grid}, {in_seconds(best['median'], DIGITS)} s", markup=False, highlight=False
        )
    for text in document["warnings"]:
        console.print(text, markup=False, highlight=False)
    for name, value in runs[-1]["results"].items():
        console.print(f"{name} = {value}", markup=False, highlight=False, soft_wrap=True)


def disk_cells(figures: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """The part of reading and writing that was hidden, and how much was read and written."""
    if figures is None:
        return NOT_KNOWN, NOT_KNOWN, NOT_KNOWN
    return share(figures["hidden"]), size(figures["read_bytes"]), size(figures["written_bytes"])


def verdict(identical: bool | None) -> Text:
    """Whether results are the plain loop's, in a word."""
    if identical is None:
        return Text("–")
    return Text("yes", "green") if identical else Text("no", "bold red")
