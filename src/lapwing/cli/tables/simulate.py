"""What `lapwing simulate` found of a program, as a person reads it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from lapwing.units import NOT_KNOWN, duration, in_seconds, number

_PIPED_WIDTH = 132  # characters, where there is no terminal to ask


def show_forecasts(document: Mapping[str, Any]) -> None:
    """Print a table with a line for every region and engine and for the whole, what is not in it, and what it compares with."""
    console = Console() if sys.stdout.isatty() else Console(width=_PIPED_WIDTH)
    ranks = document["ranks"]
    heading = f"{document['nest']} on {ranks} rank{'s' * (ranks > 1)} of {document['machine']}, simulated"
    console.print(heading, markup=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    parts = list(document["runs"][0]["parts"])
    for title in ("engine", "region"):
        table.add_column(title)
    in_smpi = any(run["smpi"] is not None for run in document["runs"])
    for title in ("line", "calls", "tile", "grid", "seconds", *parts, "speed-up", "/ blocking", *["SMPI, s"] * in_smpi):
        table.add_column(title, justify="right")
    for run in document["runs"]:
        for region in run["regions"]:
            table.add_row(
                region["engine"], region["name"], str(region["line"]), str(region["calls"]), str(region["tile"]),
                "x".join(map(str, region["grid"])) or "1", *_times(region, parts),
            )  # fmt: skip
        speedup = number(run["speedup"]) if run["speedup"] else NOT_KNOWN
        against = f"{run['of_blocking']:.2f}" if run["of_blocking"] else NOT_KNOWN
        smpi = [in_seconds(run["smpi"], 4)] if in_smpi else []
        table.add_row(run["engine"], "all of it", "", "", "", "", *_times(run, parts), speedup, against, *smpi)
    console.print(table)
    for text in _legend(document):
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _times(of: Mapping[str, Any], parts: list[str]) -> list[str]:
    return [in_seconds(of["seconds"], 4), *(duration(of["parts"][part]) for part in parts)]


def _legend(document: Mapping[str, Any]) -> list[str]:
    texts = ["Python's own statements and what changes between two distributions take no time here."]
    times = "once" if document["iterations"] == 1 else f"{document['iterations']} times"
    texts += [f"{heading}: taken to go round {times} (--iterations)." for heading in document["uncounted"]]
    texts += [f"not in it: {text}." for text in document["unknown"]]
    if document["ranks"] > 1:
        texts.append(f"speed-up: one rank takes {duration(document['one_rank'])}.")
    return texts
