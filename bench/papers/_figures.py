"""What the programs of bench/papers share: options, claims beside what was found, pictures."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import _paths  # noqa: F401
from _report import console, say, table, write_json
from rich.console import Console

from lapwing.errors import LapwingError

Row = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """What a paper says of a figure, what was found here, and whether that agrees: yes, no, in part, or not shown."""

    figure: str
    paper: str
    here: str
    agrees: str


@dataclass(frozen=True)
class Series:
    """A line of a picture. ``dashed`` for what is a formula and no run."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Picture:
    """One or several panels of lines, side by side; file: without suffix."""

    file: str
    x: str
    y: str
    panels: Sequence[tuple[str, Sequence[Series]]]
    log_x: bool = True
    log_y: bool = False
    from_zero: bool = True


@dataclass(frozen=True)
class Found:
    """What a program found: its own figures for --json, claims, and pictures."""

    figures: Row
    claims: Sequence[Claim]
    pictures: Sequence[Picture]


def main(doc: str, work: Callable[[Console, bool, argparse.Namespace], Found], **extra: str) -> int:
    """The main of a program: work(out, quick, options) prints its tables and returns what it found.

    extra: further options that take a value, as name=help.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few points of the smallest case, to see that all works")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write all figures to PATH")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="draw the figures into DIR, as SVG (matplotlib)")
    for name, text in extra.items():
        parser.add_argument(f"--{name}", type=Path, metavar=name.upper(), help=text)
    options = parser.parse_args()
    out = console()
    try:
        _make_room(options.json and options.json.parent, options.pictures)
        found = work(out, options.quick, options)
        for picture in found.pictures if options.pictures else ():
            draw(options.pictures, picture)
    except LapwingError as error:
        say(str(error))
        return 1
    show_claims(out, found.claims)
    if options.quick:
        out.print("Quick: a few points only, the claims are not judged by them.")
    write_json(options.json, {**found.figures, "claims": [asdict(claim) for claim in found.claims]})
    return 0


def _make_room(*folders: Path | None) -> None:
    """The folders that results go to, before minutes are spent on them. Raises LapwingError where one cannot be made."""
    for folder in folders:
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LapwingError(f"{folder}: cannot be made: {error.strerror}. Name another directory.") from None


def show_claims(out: Console, claims: Sequence[Claim]) -> None:
    shown = table("figure", "the paper", "here", "agrees")
    for claim in claims:
        shown.add_row(claim.figure, claim.paper, claim.here, claim.agrees)
    out.print("\nClaims")
    out.print(shown)


def show_rows(out: Console, title: str, rows: Sequence[Row], columns: dict[str, str]) -> None:
    """Rows of figures as a table. columns: heading by key; numbers with four digits, ints and text as they are."""
    shown = table(*columns.values(), numbers=tuple(columns.values()))
    for row in rows:
        shown.add_row(*(_text(row[key]) for key in columns))
    out.print(f"\n{title}")
    out.print(shown)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(folder: Path, picture: Picture) -> Path:
    """Draw into folder; small, and the same bytes for the same figures. Raises LapwingError without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullFormatter
    except ImportError:
        raise LapwingError('The pictures are drawn with matplotlib: pip install "lapwing[examples]"') from None
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lapwing", "font.size": 9}):
        width = 1.6 + 3.2 * len(picture.panels)
        figure = Figure(figsize=(width, 3.2), layout="constrained")
        axes = figure.subplots(1, len(picture.panels), squeeze=False)[0]
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        for axis, (title, lines) in zip(axes, picture.panels, strict=True):
            for number, line in enumerate(lines):
                style = "--" if line.dashed else "-"
                marker = "" if line.dashed else "o"
                axis.plot(line.x, line.y, style, marker=marker, markersize=3, color=f"C{number}", label=line.name)
            if picture.log_x:
                axis.set_xscale("log", base=2)
            if picture.log_y:
                axis.set_yscale("log", base=2)
            elif picture.from_zero:
                axis.set_ylim(bottom=0)
            for one in (axis.xaxis, axis.yaxis):
                one.set_major_formatter(plain)
                one.set_minor_formatter(NullFormatter())
            axis.set_title(title, fontsize=9)
            axis.set_xlabel(picture.x)
            axis.grid(alpha=0.3)
        axes[0].set_ylabel(picture.y)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=7.5)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{picture.file}.svg"
        figure.savefig(path, metadata={"Date": None})
    path.write_text(_smaller(path.read_text()))
    return path


def _smaller(svg: str) -> str:
    """A third of matplotlib's text: what a browser need not know, and digits no eye can see."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", svg)
    svg = re.sub(r"(\d\.\d)\d+", r"\1", svg)
    return "\n".join(line.strip() for line in svg.splitlines()) + "\n"


def best(rows: Sequence[Row], key: str) -> Row:
    """The row with the least value of a key."""
    return min(rows, key=lambda row: float(row[key]))


def yes(holds: bool) -> str:
    return "yes" if holds else "no"


if __name__ == "__main__":
    sys.exit("This is a part of the programs beside it: run p0.py, p1.py, p3.py or p4.py.")
