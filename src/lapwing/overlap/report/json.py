"""The report for scripts.

::

    {"schema": 1,                      changes only when a field is removed or means something else
     "version": "0.1.0",               of lapwing
     "folder": "/home/me/heat",        what relative paths are relative to; files outside it have absolute paths
     "seconds": 0.31,                  reading, analysis and transformations
     "counts": {"communications": 3, "rewritten": 2, "left": 1, "files_changed": 1,
                "motions": {"nonblocking": 2},          how often each transformation was made
                "progress_calls": 3,                   loops that let MPI go on with what is in flight
                "obligations": {"…": 1}},              how often each failed where nothing was done
     "communications": [
       {"path": "heat.c", "line": 40, "text": "MPI_Send(…);",
        "call": "MPI_Send", "procedure": "exchange", "rewritten": true, "region": "lines 31–52 of heat.c, 2 loops inside",
        "producer": {"path": "heat.c", "line": 31, "text": "…"},       or null, as consumer
        "consumer": null,
        "matches": [{"path", "line", "text"}],
        "actions": [{"motion", "description", "place": {"path", "line", "text"}}],
        "refusals": [{"motion", "obligation", "found", "place": {…} or null, "advice"}],
        "note": null}],
     "changes": [{"path": "heat.c", "added": 4, "removed": 2}],
     "problems": [{"path", "line", "message"}],        line 0: the whole file
     "undefined": ["DEBUG"],                           macros that were taken as undefined
     "without_source": ["dgemm_"],                     procedures that are called, and were not read
     "verification": null}                             with --verify what verify/verdict.py says of it
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lapwing import __version__
from lapwing.overlap.report.outcome import Communication, Outcome, Place, shown
from lapwing.overlap.source.patch import FileChange, count_lines

SCHEMA = 1


def report_json(outcome: Outcome, base: Path, verification: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document; paths are relative to ``base``."""
    total = len(outcome.communications)
    return {
        "schema": SCHEMA,
        "version": __version__,
        "folder": shown(base, Path("/nowhere")),
        "seconds": outcome.seconds,
        "counts": {
            "communications": total,
            "rewritten": outcome.rewritten,
            "left": total - outcome.rewritten,
            "files_changed": len(outcome.changes),
            "motions": outcome.made(),
            "progress_calls": outcome.progress_calls,
            "obligations": outcome.failed(),
        },
        "communications": [_communication(communication, base) for communication in outcome.communications],
        "changes": [_change(change, base) for change in outcome.changes],
        "problems": [
            {"path": shown(problem.path, base), "line": problem.line, "message": problem.message}
            for problem in outcome.problems
        ],
        "undefined": list(outcome.undefined),
        "without_source": list(outcome.without_source),
        "verification": verification,
    }


def _communication(communication: Communication, base: Path) -> dict[str, Any]:
    return {
        **_known(communication.place, base),
        "call": communication.call,
        "procedure": communication.procedure,
        "rewritten": communication.rewritten,
        "region": communication.region,
        "producer": _place(communication.producer, base),
        "consumer": _place(communication.consumer, base),
        "matches": [_known(match, base) for match in communication.matches],
        "actions": [
            {"motion": action.transformation, "description": action.description, "place": _known(action.place, base)}
            for action in communication.actions
        ],
        "refusals": [
            {
                "motion": refusal.transformation,
                "obligation": refusal.obligation,
                "found": refusal.found,
                "place": _place(refusal.place, base),
                "advice": refusal.advice,
            }
            for refusal in communication.refusals
        ],
        "note": communication.note,
    }


def _change(change: FileChange, base: Path) -> dict[str, Any]:
    added, removed = count_lines(change)
    return {"path": shown(change.path, base), "added": added, "removed": removed}


def _place(place: Place | None, base: Path) -> dict[str, Any] | None:
    return None if place is None else _known(place, base)


def _known(place: Place, base: Path) -> dict[str, Any]:
    return {"path": shown(place.path, base), "line": place.line, "text": place.text}
