"""Reports of `lapwing overlap`: as text, as JSON, and as SARIF."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from lapwing.errors import RefusedError
from lapwing.overlap.report.json import report_json
from lapwing.overlap.report.outcome import (
    TRANSFORMATIONS,
    Action,
    Communication,
    Outcome,
    Place,
    Refusal,
    find_near,
    shown,
)
from lapwing.overlap.report.sarif import report_sarif
from lapwing.overlap.report.text import communication_text, report_text, summary_lines
from lapwing.overlap.source.patch import FileChange
from lapwing.overlap.source.spans import Problem

BASE = Path("/home/me/heat")
SOURCE = BASE / "src" / "heat flow.c"
ELSEWHERE = Path("/opt/lib/gather.f")


def place(line: int, text: str, path: Path = SOURCE) -> Place:
    return Place(path, line, text)


SEND = Communication(
    place=place(40, "MPI_Send(u + n, 1, MPI_DOUBLE, right, 0, comm);"),
    call="MPI_Send",
    procedure="exchange",
    producer=place(31, "u[n] = u[n - 1];"),
    consumer=place(52, "u[n] = 0.0;"),
    region="lines 31–52 of heat flow.c, 2 loops inside",
    matches=(place(41, "MPI_Recv(u, 1, MPI_DOUBLE, left, 0, comm, MPI_STATUS_IGNORE);"),),
    actions=(
        Action(
            "nonblocking", "MPI_Send became MPI_Isend", place(40, "MPI_Send(u + n, 1, MPI_DOUBLE, right, 0, comm);")
        ),
        Action("wait-later", "MPI_Wait stands before the next write to u[n]", place(51, "for (int i = 0; i < n; ++i)")),
    ),
    refusals=(
        Refusal(
            "pipeline-loop",
            "what moves does not depend on this iteration's transfer",
            "u is read",
            place(36, "v[i] = u[i];"),
            "Compute v from a copy of u.",
        ),
    ),
)
GATHER = Communication(
    place=place(7, "      call MPI_Gather(a, 1, t, b, 1, t, 0, comm, ierr)", ELSEWHERE),
    call="MPI_Gather",
    procedure="collect",
    producer=None,
    consumer=None,
    region="line 7 of gather.f",
    refusals=(
        Refusal("nonblocking", "every call that can match changes, too", "a call through a pointer", None, ""),
        Refusal("start-earlier", "the buffer's producer is known", "none was found", None, "Give its source, too."),
    ),
    note="t is no named datatype",
)
OUTCOME = Outcome(
    (SEND, GATHER),
    (FileChange(SOURCE, b"a\nb\nc\n", b"a\nB\nB\nc\n"),),
    (Problem(ELSEWHERE, 3, "include file 'mpif.h' was not found"), Problem(SOURCE, 0, "its encoding is not known")),
    1.25,
)

TEXT = """\
2 communications in 2 files: 1 rewritten, 1 left as it is.

src/heat flow.c:40  MPI_Send in exchange
              MPI_Send(u + n, 1, MPI_DOUBLE, right, 0, comm);
    region    lines 31–52 of heat flow.c, 2 loops inside
    producer  src/heat flow.c:31  u[n] = u[n - 1];
    consumer  src/heat flow.c:52  u[n] = 0.0;
    matches   src/heat flow.c:41
    done      nonblocking: MPI_Send became MPI_Isend
    done      wait-later: MPI_Wait stands before the next write to u[n] (src/heat flow.c:51)
    left      pipeline-loop: not proved: what moves does not depend on this iteration's transfer. Found: u is
              read (src/heat flow.c:36  v[i] = u[i];)
    advice    Compute v from a copy of u.

/opt/lib/gather.f:7  MPI_Gather in collect
              call MPI_Gather(a, 1, t, b, 1, t, 0, comm, ierr)
    region    line 7 of gather.f
    producer  not found
    consumer  not found
    left      nonblocking: not proved: every call that can match changes, too. Found: a call through a pointer
    left      start-earlier: not proved: the buffer's producer is known. Found: none was found
    advice    Give its source, too.
    note      t is no named datatype

Done: nonblocking 1, wait-later 1.
Left, 1 ×: not proved: every call that can match changes, too.
Left, 1 ×: not proved: the buffer's producer is known.

Problems in the sources:
/opt/lib/gather.f:3: include file 'mpif.h' was not found
src/heat flow.c: its encoding is not known
"""


def test_the_text() -> None:
    assert report_text(OUTCOME, BASE) == TEXT


def test_nothing_found() -> None:
    empty = Outcome((), (), (), 0.0)
    assert report_text(empty, BASE) == "no MPI communication found; nothing to change.\n"
    assert summary_lines(empty) == ("no MPI communication found; nothing to change.",)
    broken = Outcome((), (), OUTCOME.problems, 0.0)
    assert summary_lines(broken) == ("no MPI communication found in what could be read; nothing to change.",)


def test_a_summary_stays_short() -> None:
    refusals = [Refusal("together", f"obligation {k}", "it", None, "") for k in range(9)]
    many = tuple(Communication(SEND.place, "MPI_Send", "f", None, None, "", refusals=(r,)) for r in refusals)
    lines = summary_lines(Outcome(many, (), (), 0.0))
    assert len(lines) == 7
    assert "4 other reasons" in lines[-1]


def test_a_source_cannot_drive_the_terminal() -> None:
    sly = Communication(place(1, "\x1b[2Jsend\u202e"), "MPI_Send", "f", None, None, "x")
    text = communication_text(sly, BASE)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_paths_that_are_no_text_are_shown() -> None:
    strange = BASE / b"\xff.f".decode("utf-8", "surrogateescape")
    assert shown(strange, BASE) == "\ufffd.f"
    json.dumps(report_sarif(Outcome((), (), (Problem(strange, 1, "x"),), 0.0), BASE)).encode()


def test_the_document() -> None:
    document = json.loads(json.dumps(report_json(OUTCOME, BASE, {"same": True})))
    assert document["schema"] == 1
    assert document["folder"] == "/home/me/heat"
    assert document["counts"] == {
        "communications": 2,
        "rewritten": 1,
        "left": 1,
        "files_changed": 1,
        "motions": {"nonblocking": 1, "wait-later": 1},
        "progress_calls": 0,
        # Of the rewritten one nothing counts as left.
        "obligations": {"every call that can match changes, too": 1, "the buffer's producer is known": 1},
    }
    send, gather = document["communications"]
    assert (send["path"], send["line"], send["call"]) == ("src/heat flow.c", 40, "MPI_Send")
    assert send["producer"] == {"path": "src/heat flow.c", "line": 31, "text": "u[n] = u[n - 1];"}
    assert send["actions"][1]["place"]["line"] == 51
    assert send["refusals"][0]["obligation"].startswith("what moves")
    assert (gather["path"], gather["producer"], gather["rewritten"]) == ("/opt/lib/gather.f", None, False)
    assert document["changes"] == [{"path": "src/heat flow.c", "added": 2, "removed": 1}]
    assert document["problems"][1] == {"path": "src/heat flow.c", "line": 0, "message": "its encoding is not known"}
    assert document["verification"] == {"same": True}


# ---- SARIF ------------------------------------------------------------


def check_sarif(document: dict[str, Any]) -> dict[str, Any]:
    """What the specification asks of the parts that are used; returns the run."""
    assert document["version"] == "2.1.0"
    assert document["$schema"].startswith("https://")
    (run,) = document["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert all(base["uri"].endswith("/") for base in run["originalUriBaseIds"].values())
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    for notification in invocation["toolExecutionNotifications"]:
        assert notification["message"]["text"]
        _check_locations(notification["locations"], run)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error")
        assert result["message"]["text"]
        _check_locations(result["locations"], run)
        related = result.get("relatedLocations", [])
        _check_locations(related, run)
        assert len({location["id"] for location in related}) == len(related)
    return dict(run)


def _check_locations(locations: list[dict[str, Any]], run: dict[str, Any]) -> None:
    for location in locations:
        physical = location["physicalLocation"]
        artifact = physical["artifactLocation"]
        assert re.fullmatch(r"[A-Za-z0-9_.~/:%+-]+", artifact["uri"])
        assert artifact["uri"].startswith("file:///") or artifact["uriBaseId"] in run["originalUriBaseIds"]
        assert physical.get("region", {"startLine": 1})["startLine"] >= 1


def test_sarif() -> None:
    run = check_sarif(report_sarif(OUTCOME, BASE))
    rules = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert rules["nonblocking"] == TRANSFORMATIONS["nonblocking"]
    assert "pipeline-loop/what-moves-does-not-depend-on-this-iteration-s-transfer" in rules
    levels = [(result["ruleId"].partition("/")[0], result["level"]) for result in run["results"]]
    assert levels == [
        ("nonblocking", "note"),
        ("wait-later", "note"),
        ("pipeline-loop", "note"),
        ("nonblocking", "warning"),
        ("start-earlier", "warning"),
    ]
    first = run["results"][0]
    physical = first["locations"][0]["physicalLocation"]
    assert unquote(physical["artifactLocation"]["uri"]) == "src/heat flow.c"
    assert physical["region"]["startLine"] == 40
    related = {one["message"]["text"]: one for one in first["relatedLocations"]}
    assert related["producer"]["physicalLocation"]["region"]["startLine"] == 31
    assert related["consumer"]["physicalLocation"]["region"]["startLine"] == 52
    assert related["other end"]["physicalLocation"]["region"]["startLine"] == 41
    assert run["results"][3]["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "file:///opt/lib/gather.f"
    }


def test_sarif_of_nothing() -> None:
    assert check_sarif(report_sarif(Outcome((), (), (), 0.0), BASE))["results"] == []


# ---- finding a call ------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        (SOURCE, 40, SEND),
        (SOURCE, 42, SEND),  # a continuation line of it
        (SOURCE, 30, SEND),
        (Path("heat flow.c"), 40, SEND),
        (Path("src/heat flow.c"), 40, SEND),
        (ELSEWHERE, 1, GATHER),
    ],
)
def test_the_call_at_a_line_or_beside_it(path: Path, line: int, found: Communication) -> None:
    assert find_near(OUTCOME.communications, path, line) == (found,)


def test_of_two_equally_near_the_one_before() -> None:
    later = Communication(place(44, "MPI_Recv(…);"), "MPI_Recv", "exchange", None, None, "")
    assert find_near((later, SEND), SOURCE, 42) == (SEND,)
    assert find_near((later, SEND), SOURCE, 43) == (later,)


@pytest.mark.parametrize(
    ("path", "line", "said"),
    [
        (SOURCE, 51, "the nearest are at /home/me/heat/src/heat flow.c:40"),
        (Path("low.c"), 40, "no communication in low.c; calls are known in /home/me/heat/src/heat flow.c, /opt/lib"),
        (Path("t flow.c"), 40, "no communication in t flow.c"),
    ],
)
def test_no_call_there(path: Path, line: int, said: str) -> None:
    with pytest.raises(RefusedError) as raised:
        find_near(OUTCOME.communications, path, line)
    assert said in str(raised.value)


def test_no_call_anywhere() -> None:
    with pytest.raises(RefusedError, match="no communication is known in any file"):
        find_near((), SOURCE, 1)
