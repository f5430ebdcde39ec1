"""The verdict of a verification: for people on standard error, and for --json."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from lapwing.overlap.report.text import clean
from lapwing.overlap.verify.outputs import Comparison, Difference
from lapwing.overlap.verify.sites import SiteChange, show, totals
from lapwing.trace.pmpi.exposure import Summary
from lapwing.units import in_seconds

_PIPED_WIDTH = 132  # characters, where there is no terminal to ask
_MOST_DIFFERENCES = 10
_MOST_EXCUSED = 3


@dataclass(frozen=True)
class Verification:
    """``same``: the transformed program ended as the original did and printed the same. ``failure``: what it did instead of
    ending well, or why what ran was not the transformed program. ``changes`` is None, and ``untraced`` says why, where exposed
    communication is not known."""

    command: str
    project: Path
    same: bool
    failure: str | None
    comparison: Comparison | None
    original_seconds: tuple[float, ...]
    transformed_seconds: tuple[float, ...]
    before: Summary | None = None
    after: Summary | None = None
    changes: tuple[SiteChange, ...] | None = None
    untraced: str | None = None


def verification_json(verification: Verification) -> dict[str, Any]:
    """The part "verification" of --json.

    ``same`` and ``failure``; ``lines`` of output, ``differences`` between expected and found lines, ``excused`` lines
    (numbers that vary, or are times), ``moved`` lines; seconds of the runs; ``exposed``: null (``untraced`` says why) or
    figures before and after, and ``call_sites`` with the fields of sites.SiteChange.
    """
    comparison, before, after = verification.comparison, verification.before, verification.after
    return {
        "command": verification.command,
        "project": os.fsencode(verification.project).decode("utf-8", "replace"),
        "same": verification.same,
        "failure": verification.failure,
        "lines": None if comparison is None else comparison.lines,
        "differences": [] if comparison is None else [_printable(asdict(one)) for one in comparison.differences],
        "excused": [] if comparison is None else [_text(line) for line in comparison.excused],
        "moved": 0 if comparison is None else comparison.moved,
        "original_seconds": list(verification.original_seconds),
        "transformed_seconds": list(verification.transformed_seconds),
        "exposed": None
        if before is None or after is None
        else {
            "before": totals(before),
            "after": totals(after),
            "call_sites": [asdict(change) for change in verification.changes or ()],
        },
        "untraced": verification.untraced,
    }


def _text(text: str) -> str:
    """A line of a program's output, whatever bytes it holds, as text."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _printable(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _text(value) if isinstance(value, str) else value for name, value in values.items()}


def show_verification(verification: Verification) -> None:
    """Say whether the outputs are the same, and if so show exposed communication before and after."""
    for line in _lines(verification):
        print(f"lapwing: {line}", file=sys.stderr)
    if verification.before is not None and verification.after is not None:
        console = Console(stderr=True) if sys.stderr.isatty() else Console(stderr=True, width=_PIPED_WIDTH)
        show(verification.before, verification.after, verification.changes or (), console)


def _lines(verification: Verification) -> Iterator[str]:
    comparison = verification.comparison
    if verification.failure is not None and comparison is not None and comparison.same:
        yield f"NOT verified, though the output is the same: {verification.failure}"
    elif verification.failure is not None:
        yield f"verification FAILED: {verification.failure}"
    elif comparison is not None and not comparison.same:
        yield f"verification FAILED: the transformed program prints something else ({_runs(verification)}):"
        for difference in comparison.differences[:_MOST_DIFFERENCES]:
            yield from _difference(difference)
        if len(comparison.differences) > _MOST_DIFFERENCES:
            yield f"{len(comparison.differences) - _MOST_DIFFERENCES} more differences (--json)."
    elif comparison is not None:
        yield f"verified: the same output, {comparison.lines} line{'s' * (comparison.lines != 1)} ({_runs(verification)})."
        yield from _excuses(comparison)
    if verification.untraced is not None:
        yield f"exposed communication is not known: {verification.untraced}"


def _runs(verification: Verification) -> str:
    before, after = (
        " and ".join(map(in_seconds, runs))
        for runs in (verification.original_seconds, verification.transformed_seconds)
    )
    return f"original {before} s, transformed {after} s, each with its build"


def _difference(difference: Difference) -> Iterator[str]:
    if difference.expected is not None:
        yield f"  original, line {difference.expected_line}:    {_shown(difference.expected)}"
    if difference.found is not None:
        yield f"  transformed, line {difference.found_line}: {_shown(difference.found)}"
    if difference.found is None:
        yield "  transformed: no such line"
    if difference.expected is None:
        yield "  original: no such line"


def _excuses(comparison: Comparison) -> Iterator[str]:
    if comparison.excused:
        examples = "; ".join(_shown(line.strip()) for line in comparison.excused[:_MOST_EXCUSED])
        more = "; …" if len(comparison.excused) > _MOST_EXCUSED else ""
        yield (
            f"numbers that are times, or differ between runs of the original, were not compared in {len(comparison.excused)} "
            f"of them: {examples}{more}"
        )
    if comparison.moved:
        yield f"{comparison.moved} lines come in no fixed order, in the original neither."


def _shown(line: str) -> str:
    return clean(_text(line))
