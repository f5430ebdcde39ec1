"""What `lapwing overlap` does: have the program rewritten, verify it if asked to, then print or write what came of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from lapwing.files import STANDARD_OUTPUT, check_writable, write_json, write_text
from lapwing.overlap import driver
from lapwing.overlap.driver import Request
from lapwing.overlap.report.json import report_json
from lapwing.overlap.report.outcome import Outcome, find_near, shown
from lapwing.overlap.report.sarif import report_sarif
from lapwing.overlap.report.text import communication_text, problem_lines, report_text, summary_lines
from lapwing.overlap.source.patch import FileChange, common_folder, unified_diff, write_in_place, write_to
from lapwing.overlap.source.spans import Problem

_MOST_PROBLEMS = 10


@dataclass(frozen=True)
class Wishes:
    """The options of the command line that are about its output. A patch is printed if none of the first three is given, and no
    other one is on standard output."""

    folder: Path | None
    in_place: bool
    explain: tuple[Path, int] | None
    report: Path | None
    json_path: Path | None
    sarif: Path | None
    verify: str | None
    project: Path | None
    timeout: float


def overlap(request: Request, unread: Sequence[Problem], wishes: Wishes) -> int:
    """Do what the command line asks for; returns the exit status: 1 where verification found a difference.

    Raises RefusedError where files must not be written or a line is not known, LapwingError where writing fails.
    """
    for option, path in (("--report", wishes.report), ("--json", wishes.json_path), ("--sarif", wishes.sarif)):
        if path is not None:
            check_writable(path, option)
    here = Path.cwd()
    outcome = driver.transform(request, unread)
    _summarise(outcome, here)
    if wishes.explain is not None:
        _explain(outcome, wishes.explain, here)
    same, verification = _verify(outcome, request, wishes)
    if wishes.report is not None:
        write_text(wishes.report, report_text(outcome, here), "--report")
    if wishes.json_path is not None:
        write_json(wishes.json_path, report_json(outcome, here, verification))
    if wishes.sarif is not None:
        write_json(wishes.sarif, report_sarif(outcome, here))
    if wishes.explain is None:
        _deliver(outcome.changes, request.files, wishes, here, same)
    return 0 if same else 1


def _say(text: str) -> None:
    print(f"lapwing: {text}", file=sys.stderr, flush=True)


def _summarise(outcome: Outcome, here: Path) -> None:
    for line in list(problem_lines(outcome.problems, here))[:_MOST_PROBLEMS]:
        _say(line)
    if len(outcome.problems) > _MOST_PROBLEMS:
        _say(f"{len(outcome.problems) - _MOST_PROBLEMS} more problems in the sources (--report).")
    for line in summary_lines(outcome):
        _say(line)


def _explain(outcome: Outcome, where: tuple[Path, int], here: Path) -> None:
    for communication in find_near(outcome.communications, *where):
        click.echo(communication_text(communication, here))


def _verify(outcome: Outcome, request: Request, wishes: Wishes) -> tuple[bool, dict[str, Any] | None]:
    """Whether nothing speaks against the transformed program, and what --json says of it."""
    if wishes.verify is None:
        return True, None
    if not outcome.changes:
        _say("nothing was changed, so there is nothing to verify.")
        return True, None
    from lapwing.overlap.verify.runs import verify
    from lapwing.overlap.verify.verdict import show_verification, verification_json

    verification = verify(wishes.verify, outcome.changes, request.files, wishes.project, wishes.timeout)
    show_verification(verification)
    return verification.same, verification_json(verification)


def _deliver(changes: Sequence[FileChange], files: Sequence[Path], wishes: Wishes, here: Path, same: bool) -> None:
    if wishes.in_place or wishes.folder is not None:
        if not same:
            _say("nothing was written.")
        elif wishes.folder is not None:
            # Include files that change need not be among those that were named.
            every = [*files, *(change.path for change in changes)]
            for path in write_to(wishes.folder, changes, every, common_folder(every, here)):
                _say(f"wrote {shown(path, here)}")
        else:
            write_in_place(changes)
            for change in changes:
                _say(f"changed {shown(change.path, here)}")
    elif changes and STANDARD_OUTPUT not in (wishes.report, wishes.json_path, wishes.sarif):
        base = common_folder([change.path for change in changes], here)
        # Bytes as they are: sources need not be UTF-8.
        sys.stdout.buffer.write(unified_diff(changes, base))
        sys.stdout.buffer.flush()
        if base != here:
            _say(f"the patch is for the folder {base}: patch -d {base} -p1")
