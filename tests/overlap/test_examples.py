"""Small programs, one for each transformation and each reason to refuse: what becomes of them, and that they behave as before.

Comments in the programs say what is expected of the call they stand at: "overlap: MOTION" that it is rewritten, and that this
transformation is made there or at a call that belongs to it; "left: reason" that it stays. The whole change is held in
``golden``: ``pytest --refresh-golden`` writes it anew.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _building import language_of
from _running import Reference, Rewritten, overlap, required
from everyday import everyday

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"
GOLDEN = HERE / "golden"
NAMES = sorted(path.name for path in EXAMPLES.iterdir())
MARK = re.compile(r"\b(overlap|left): ([\w-]+)")
# What runs every day: for C and for Fortran one program a transformation and a way to write it. That the rest is rewritten as
# it was when it ran shows in their golden files.
RUN = """
    across_calls.c collections.c flat_arrays_3d.c producer.c
    across_calls.f exchange_in_callee.f90 section_with_gaps.f90
""".split()
COMPILER_OPTIONS = {"threads.c": ("-fopenmp",)}
NEAR = 3


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rewritten]:
    """The tool's work on an example, done once."""

    @functools.cache
    def rewrite(name: str) -> Rewritten:
        directory = tmp_path_factory.mktemp(name.replace(".", "_"))
        source = directory / "sources" / name
        source.parent.mkdir()
        shutil.copy(EXAMPLES / name, source)
        result = overlap([source], directory / "rewritten")
        assert result.status == 0, result.messages
        return result

    return rewrite


def marks(name: str) -> list[tuple[int, str, str]]:
    """(line, "overlap" or "left", the word after it) for every mark of an example."""
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    return [(number, m[1], m[2]) for number, line in enumerate(lines, 1) if (m := MARK.search(line))]


def at_mark(report: dict[str, Any], line: int) -> dict[str, Any]:
    """The communication on the mark's line, or the first after it."""
    found = [c for c in report["communications"] if line <= c["line"] <= line + NEAR]
    assert found, f"no communication reported at line {line}"
    return min(found, key=lambda c: c["line"])


@pytest.mark.parametrize("name", NAMES)
def test_change_is_the_golden_one(
    name: str, rewritten: Callable[[str], Rewritten], request: pytest.FixtureRequest
) -> None:
    before = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    after = rewritten(name).sources[0].read_text(encoding="utf-8").splitlines()
    change = "".join(f"{line}\n" for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", lineterm=""))
    golden = GOLDEN / f"{name}.diff"
    if request.config.getoption("--refresh-golden"):
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(change, encoding="utf-8")
    expected = golden.read_text(encoding="utf-8") if golden.exists() else None
    assert change == expected, "refresh with pytest --refresh-golden if this is meant"


@pytest.mark.parametrize("name", NAMES)
def test_marked_calls(name: str, rewritten: Callable[[str], Rewritten]) -> None:
    report = json.loads(rewritten(name).report)
    for line, kind, word in marks(name):
        communication = at_mark(report, line)
        transformations = [action["motion"] for action in communication["actions"]]
        if kind == "left":
            assert not transformations, f"{name}:{line}: {communication['text']} should be left as it is"
            assert communication["refusals"] or communication["note"], f"{name}:{line}: left without a word"
        else:
            reasons = [f"{r['motion']}: {r['obligation']}: {r['found']}" for r in communication["refusals"]]
            assert transformations, f"{name}:{line}: {communication['text']} is left: {reasons}"
            made = {action["motion"] for c in report["communications"] for action in c["actions"]}
            assert word in made, f"{name}:{line}: {communication['text']}: only {made} made; {reasons}"


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(NAMES, RUN))
def test_behaves_as_before(name: str, rewritten: Callable[[str], Rewritten], thorough: bool) -> None:
    required(language_of(name))
    original = Reference(rewritten(name).originals, COMPILER_OPTIONS.get(name, ()))
    original.assert_unchanged_by(rewritten(name).sources, thorough, 3)


def test_every_golden_file_is_an_example() -> None:
    assert {path.name for path in GOLDEN.glob("*")} == {f"{name}.diff" for name in NAMES}
