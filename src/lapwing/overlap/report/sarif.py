"""The report as SARIF 2.1.0, which editors and code hosts show beside the code.

A rule is a transformation ("nonblocking"), or a failed obligation of one ("clone-buffer/the-buffer-is-…"). A transformation
that was made is a note; a refusal is a warning if nothing else was done for that communication, else a note.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from lapwing import __version__
from lapwing.overlap.report.outcome import TRANSFORMATIONS, Communication, Outcome, Place
from lapwing.overlap.source.spans import Problem

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"


def report_sarif(outcome: Outcome, base: Path) -> dict[str, Any]:
    """The document; files below ``base`` are given relative to it."""
    rules: dict[str, str] = {}
    results = [result for c in outcome.communications for result in _results(c, rules, base)]
    number = {rule: index for index, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = number[result["ruleId"]]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "lapwing overlap",
                        "version": __version__,
                        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()],
                    }
                },
                "originalUriBaseIds": {_ROOT: {"uri": _uri(base) + "/"}},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [_notification(problem, base) for problem in outcome.problems],
                    }
                ],
                "results": results,
            }
        ],
    }


def _results(communication: Communication, rules: dict[str, str], base: Path) -> list[dict[str, Any]]:
    results = []
    for action in communication.actions:
        rules.setdefault(action.transformation, TRANSFORMATIONS.get(action.transformation, action.transformation))
        text = f"{communication.call}: {action.description}"
        results.append(_result(action.transformation, "note", text, communication, None, base))
    for refusal in communication.refusals:
        rule = f"{refusal.transformation}/{_slug(refusal.obligation)}"
        rules.setdefault(rule, f"{refusal.transformation} needs proof: {refusal.obligation}.")
        text = " ".join(
            part
            for part in (
                f"{communication.call}: {refusal.transformation}: not proved: {refusal.obligation}.",
                f"Found: {refusal.found}.",
                refusal.advice,
            )
            if part
        )
        level = "note" if communication.rewritten else "warning"
        results.append(_result(rule, level, text, communication, refusal.place, base))
    return results


def _result(
    rule: str, level: str, text: str, communication: Communication, found: Place | None, base: Path
) -> dict[str, Any]:
    others = (
        ("producer", communication.producer),
        ("consumer", communication.consumer),
        ("found here", found),
        *(("other end", match) for match in communication.matches),
    )
    related = [(name, place) for name, place in others if place is not None]
    result: dict[str, Any] = {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [
            {
                **_location(communication.place, base),
                "logicalLocations": [{"name": communication.procedure, "kind": "function"}],
            }
        ],
        "properties": {"region": communication.region},
    }
    if related:
        result["relatedLocations"] = [
            {"id": index, **_location(place, base), "message": {"text": name}}
            for index, (name, place) in enumerate(related)
        ]
    return result


def _location(place: Place, base: Path) -> dict[str, Any]:
    region = {"startLine": place.line, "snippet": {"text": place.text}}
    return {"physicalLocation": {"artifactLocation": _artifact(place.path, base), "region": region}}


def _notification(problem: Problem, base: Path) -> dict[str, Any]:
    where: dict[str, Any] = {"artifactLocation": _artifact(problem.path, base)}
    if problem.line > 0:
        where["region"] = {"startLine": problem.line}
    return {"level": "warning", "message": {"text": problem.message}, "locations": [{"physicalLocation": where}]}


def _artifact(path: Path, base: Path) -> dict[str, str]:
    full = Path(os.path.abspath(path))
    if full.is_relative_to(base):
        return {"uri": quote(os.fsencode(full.relative_to(base))), "uriBaseId": _ROOT}
    return {"uri": _uri(full)}


def _uri(path: Path) -> str:
    return "file://" + quote(os.fsencode(path))


def _slug(text: str) -> str:
    """A text as part of an identifier, the same in every run."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
