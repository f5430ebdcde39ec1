"""What is refused, and how: every message names the place, what was found and a way out, and no array is touched."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from limits import scaled
from refusal_cases import HEADING, Refusal, copies, define_and_use, load
from refused import ALL

import lapwing as lw


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Messages show paths below the current folder without it; keep the files of the tests outside."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_refused_with_place_finding_and_way_out(case: Refusal, tmp_path: Path) -> None:
    path = tmp_path / "their.py"
    arguments = case.arguments()
    before = copies(arguments)
    options = case.options
    with pytest.raises(lw.RefusedError) as refusal:
        define_and_use(case, path, arguments)
    message = str(refusal.value)
    if not options.get("nowhere"):
        lines = (HEADING + case.source).splitlines()
        mark = "def f(" if options.get("def_line") else "for i in" if options.get("loop_line") else "# <-"
        marked = next(number for number, line in enumerate(lines, 1) if mark in line)
        assert message.startswith(f"{path}:{marked}: "), message
    assert case.found in message
    assert case.way_out in message[message.index(case.found) + len(case.found) :]
    assert "\n" not in message
    assert copies(arguments) == before


def test_names_in_the_table_differ() -> None:
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names)


def test_paths_are_relative_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lw.RefusedError, match=re.escape("their.py:10: no for loop")):
        load("@lw.nest\ndef f(u):\n    pass\n", tmp_path / "their.py").f(None)


def test_typed_at_a_prompt() -> None:
    typed = "import lapwing as lw\n@lw.nest\ndef f(u):\n    for i in range(5):\n        u[i] = 1.0\n\nf(None)\n"
    done = subprocess.run(
        [sys.executable, "-i"], input=typed, capture_output=True, text=True, timeout=scaled(120), check=False
    )
    assert "RefusedError: " in done.stderr
    assert "the source of f cannot be read" in done.stderr
    assert "Define the function in a file or a notebook cell" in done.stderr
