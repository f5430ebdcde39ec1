"""The outcome of `lapwing run` of a program as a person reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lapwing.cli.tables.run import DIGITS, DISK_TITLES, PIPED_WIDTH, disk_cells, verdict
from lapwing.units import NOT_KNOWN, in_seconds, share


def show_program(document: Mapping[str, Any]) -> None:
    """Print a table with a line per engine, one with a line per region of the last run, and the numbers that are returned."""
    runs = document["runs"]
    repeats = len(runs[0]["seconds"])
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("engine")
    table.add_column("seconds" if repeats == 1 else f"seconds (median of {repeats})", justify="right")
    table.add_column("communication hidden", justify="right")
    on_disk = any(run["disk"] is not None for run in runs)
    for title in DISK_TITLES if on_disk else ():
        table.add_column(title, justify="right")
    table.add_column("identical")
    for run in runs:
        disk = disk_cells(run["disk"]) if on_disk else ()
        seconds = in_seconds(run["median"], DIGITS)
        table.add_row(run["engine"], seconds, share(run["hidden"]), *disk, verdict(run["identical"]))
    console = Console() if sys.stdout.isatty() else Console(width=PIPED_WIDTH)
    console.print(table)
    console.print(_regions([*document["regions"], *_sweeps(document, runs[-1])], runs[-1]))
    for name, value in runs[-1]["results"].items():
        console.print(f"{name} = {value}", markup=False, highlight=False, soft_wrap=True)


def _sweeps(document: Mapping[str, Any], run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The loops whose regions have run through one pipeline, as regions."""
    called = {region["name"] for region in run["regions"]}
    return [
        {**loop, "loops": [f"{len(loop['phases'])} phases"]} for loop in document["sweeps"] if loop["name"] in called
    ]


def _regions(regions: list[dict[str, Any]], run: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("region")
    table.add_column("line", justify="right")
    table.add_column("loops")
    for title in ("calls", "seconds", "share", "engine", "tile", "grid"):
        table.add_column(title, justify="right")
    called = {region["name"]: region for region in run["regions"]}
    for region in regions:
        found = called.get(region["name"])
        about = (region["name"], str(region["line"]), ", ".join(region["loops"]))
        if found is None:
            table.add_row(*about, "0")
            continue
        table.add_row(
            *about,
            str(found["calls"]),
            in_seconds(found["seconds"], DIGITS),
            share(found["seconds"] / max(run["median"], 1e-12)),
            found["engine"] or "Python",
            str(found["tile"] or NOT_KNOWN),
            "x".join(map(str, found["grid"] or ())) or NOT_KNOWN,
        )
    return table
