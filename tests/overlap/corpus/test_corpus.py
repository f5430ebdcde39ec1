"""The corpus: programs that the tool rewrote wrongly once, or that were written to make it do so.

Each is in the folder of what it tests: a module of the compiler, or a folder of them, by name. So ``pytest -k reductions`` runs
the programs of ``reductions/``. ``expected.toml`` beside them says what each guards against, and what becomes of it (Expected).
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _building import language_of
from _running import Reference, Rewritten, overlap, required
from everyday import everyday

import lapwing

HERE = Path(__file__).parent
STARTS = re.compile(r"lapwing: MPI_Recv starts here \((\d+)\)")
ARRIVES = re.compile(r"lapwing: what MPI_Recv brings must be here now \((\d+)\)")
SUFFIXES = {".c", ".cpp", ".f", ".f90", ".F90"}


@dataclass(frozen=True)
class Expected:
    """What is expected of a program.

    ``against``: the mistake that would show in it. ``rewritten``: of how many communications something is made. ``reason``: words
    that the report says of one that is left, where none is rewritten. ``changed``: whether the text is another; if not said,
    where something is rewritten. ``made``: the transformations of the communication on the first line that holds a piece.

    Of the text that comes out, ``holds`` and ``lacks``: pieces that are somewhere, and nowhere. ``waits``: statements that stand
    nowhere while a receive is in flight. ``waits_at_last``: those whose last does not. ``in_order``: pairs of which no second
    piece stands before the first.

    ``options``: of the compiler. ``everyday``: one of five is run every day, as its mistake would show in no piece of the text:
    it would not compile, outlined parts would share what they should not, messages would come in another order.
    """

    against: str
    rewritten: int
    reason: str = ""
    changed: bool | None = None
    made: dict[str, list[str]] = field(default_factory=dict)
    holds: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    waits_at_last: list[str] = field(default_factory=list)
    in_order: list[tuple[str, str]] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    everyday: bool = False

    @property
    def changes(self) -> bool:
        return self.rewritten > 0 if self.changed is None else self.changed

    @property
    def in_text(self) -> bool:
        """Whether anything is said of the text."""
        return any((self.holds, self.lacks, self.waits, self.waits_at_last, self.in_order))


def read_corpus() -> dict[str, Expected]:
    """What is expected of each program, by the folder and the name of its file."""
    tables = {path: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*/expected.toml"))}
    return {
        f"{path.parent.name}/{name}": Expected(**said) for path, table in tables.items() for name, said in table.items()
    }


PROGRAMS = read_corpus()
CHANGED = [name for name, expected in PROGRAMS.items() if expected.changes]


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Rewritten]:
    """The tool's work on a program of the corpus, done once."""

    @functools.cache
    def rewrite(name: str) -> Rewritten:
        directory = tmp_path_factory.mktemp("corpus")
        source = directory / "sources" / Path(name).name
        source.parent.mkdir()
        shutil.copy(HERE / name, source)
        result = overlap([source], directory / "rewritten")
        assert result.status == 0, result.messages
        return result

    return rewrite


# ---- what is in the corpus ----------------------------------------------------------------------------------------------


def test_every_program_is_expected() -> None:
    assert {
        f"{path.parent.name}/{path.name}" for path in HERE.glob("*/*") if path.suffix in SUFFIXES
    } == PROGRAMS.keys()


def test_folders_are_named_like_modules() -> None:
    package = Path(lapwing.__file__).parent
    modules = [*package.glob("affine/*.py"), *package.glob("overlap/**/")]
    modules += package.glob("overlap/**/*.py")
    assert {path.parent.name for path in HERE.glob("*/expected.toml")} <= {module.stem for module in modules}


# ---- what becomes of it -------------------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    return path.read_text(encoding="latin-1")


def reasons(communication: dict[str, Any]) -> list[str]:
    """What the report says of a communication that is left, or of what could not be made of it."""
    refusals = [f"{r['obligation']}: {r['found']}" for r in communication["refusals"]]
    return [*refusals, communication["note"] or ""]


def at(name: str, piece: str) -> int:
    """The first line of a program that holds this piece."""
    return next(n for n, line in enumerate(text_of(HERE / name).splitlines(), 1) if piece in line)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rewritten(name: str, rewritten: Callable[[str], Rewritten]) -> None:
    expected, found = PROGRAMS[name], rewritten(name)
    communications = json.loads(found.report)["communications"]
    said = [reason for communication in communications for reason in reasons(communication)]
    assert sum(bool(communication["actions"]) for communication in communications) == expected.rewritten, said
    assert found.changed == expected.changes
    assert bool(expected.reason) == (expected.rewritten == 0), "what is left is left for a reason"
    assert any(expected.reason in reason for reason in said), said
    made = {
        piece: [a["motion"] for c in communications if c["line"] == at(name, piece) for a in c["actions"]]
        for piece in expected.made
    }
    assert made == expected.made


def in_flight(text: str) -> set[str]:
    """The receives that this beginning of a text starts and does not wait for."""
    return {m[1] for m in STARTS.finditer(text)} - {m[1] for m in ARRIVES.finditer(text)}


def places(piece: str, text: str) -> list[int]:
    return [m.start() for m in re.finditer(re.escape(piece), text)]


def wrong(expected: Expected, text: str) -> list[str]:
    """What the text of a rewritten program should not be like."""
    found = [
        f"{piece} while a message travels"
        for piece in expected.waits
        if any(in_flight(text[:p]) for p in places(piece, text))
    ]
    found += [
        f"{piece} done before its message" for piece in expected.waits_at_last if in_flight(text[: text.rindex(piece)])
    ]
    found += [f"{piece} is there" for piece in expected.lacks if piece in text]
    found += [f"{piece} is not there" for piece in expected.holds if piece not in text]
    found += [f"{second} before {first}" for first, second in expected.in_order if second in text[: text.rindex(first)]]
    return found


@pytest.mark.parametrize("name", [name for name, expected in PROGRAMS.items() if expected.in_text])
def test_text_that_comes_out(name: str, rewritten: Callable[[str], Rewritten]) -> None:
    expected, before = PROGRAMS[name], text_of(HERE / name)
    for piece in (*expected.waits, *expected.waits_at_last, *(first for first, _ in expected.in_order)):
        assert piece in before
    assert wrong(expected, text_of(rewritten(name).sources[0])) == []


@pytest.mark.parametrize("name", ["sections/negative_stride.f90", "printer/macro_bound.c"])
def test_messages_in_flight_are_seen(name: str, rewritten: Callable[[str], Rewritten]) -> None:
    text = text_of(rewritten(name).sources[0])
    started = [bool(in_flight(text[: p.start()])) for p in re.finditer("\n", text)]
    assert any(started)
    assert not started[-1]


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(CHANGED, [name for name in CHANGED if PROGRAMS[name].everyday][::5]))
def test_behaves_as_before(name: str, rewritten: Callable[[str], Rewritten], thorough: bool) -> None:
    required(language_of(name))
    options = [*PROGRAMS[name].options, *(["-lstdc++"] if name.endswith(".cpp") else [])]
    original = Reference(rewritten(name).originals, options)
    original.assert_unchanged_by(rewritten(name).sources, thorough, 2)


IN_TURN = "! lapwing: MPI_Recv starts here (1)\nwork\n! lapwing: what MPI_Recv brings must be here now (1)\n"


@pytest.mark.parametrize(
    "broken",
    [
        {"holds": ["rest"]},
        {"lacks": ["work"]},
        {"waits": ["work"]},
        {"waits_at_last": ["work"]},
        {"in_order": [("must be here", "work")]},
    ],
)
def test_texts_that_are_wrong_are_seen(broken: dict[str, Any]) -> None:
    assert len(wrong(Expected("", 1, **broken), IN_TURN)) == 1
