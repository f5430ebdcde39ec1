"""What is said while something is built or a call is long, and where it goes."""

from __future__ import annotations

import io
import logging
import sys

import numpy as np
import pytest

import lapwing as lw
from lapwing import notices
from lapwing.runtime import runner


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def _library_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under no launcher, and not quiet."""
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PALS_RANKID", "LAPWING_QUIET"):
        monkeypatch.delenv(name, raising=False)


def stderr(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> io.StringIO:
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_terminal_shows_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = stderr(monkeypatch, Terminal())
    notices.say("building")
    assert shown.getvalue() == "lapwing: building\n"


def test_a_notebook_shows_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class OutStream(io.StringIO):
        __module__ = "ipykernel.iostream"

    shown = stderr(monkeypatch, OutStream())
    notices.say("building")
    assert shown.getvalue() == "lapwing: building\n"


@pytest.mark.parametrize("where", ["command", "launcher"])
def test_commands_and_ranks_show_it_though_no_terminal_is_seen(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "command":
        notices.speak_in_command()
    else:
        monkeypatch.setenv("PMI_RANK", "0")
    shown = stderr(monkeypatch, io.StringIO())
    notices.say("building")
    assert shown.getvalue() == "lapwing: building\n"


@pytest.mark.parametrize("quiet", ["", "1"])
def test_otherwise_it_is_logged(quiet: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("LAPWING_QUIET", quiet)
    shown = stderr(monkeypatch, Terminal() if quiet else io.StringIO())
    with caplog.at_level(logging.INFO, "lapwing"):
        notices.say("building")
    assert shown.getvalue() == ""
    assert [record.message for record in caplog.records] == ["building"]


def follow(monkeypatch: pytest.MonkeyPatch, seconds: list[float], fractions: list[float]) -> str:
    """What a progress line writes when it is told of fractions at these times; it begins at 0."""
    shown = sys.stderr
    assert isinstance(shown, io.StringIO)
    clock = iter([0.0, *seconds])
    monkeypatch.setattr(notices.time, "monotonic", lambda: next(clock))
    line = notices.ProgressLine("smooth")
    for fraction in fractions:
        line(fraction)
    line.close()
    return shown.getvalue()


def bar(full: int) -> str:
    return "━" * full + "╌" * (24 - full)


def test_a_bar_is_of_characters_that_the_terminal_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old(Terminal):
        encoding = "latin-1"

    stderr(monkeypatch, Old())
    assert "lapwing: smooth ############............ 50 %" in follow(monkeypatch, [30.0], [0.5])


def test_a_short_call_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr(monkeypatch, Terminal())
    assert follow(monkeypatch, [0.1, 1.0, 1.9], [0.1, 0.5, 0.9]) == ""


def test_a_long_call_shows_how_far_it_is_and_wipes_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr(monkeypatch, Terminal())
    said = follow(monkeypatch, [0.1, 30.0, 30.1, 60.0, 90.0], [0.0, 0.25, 0.26, 0.5, 0.75]).split("\r")
    first, second, third = said[1:4]
    assert first == f"lapwing: smooth {bar(6)} 25 % after 30 s, 1 min 30 s left"
    assert second == f"lapwing: smooth {bar(12)} 50 % after 1 min 0 s, 1 min 0 s left"
    assert third.strip() == f"lapwing: smooth {bar(18)} 75 % after 1 min 30 s, 30 s left"
    assert said[4].strip() == ""
    assert len(said[4]) >= len(third.rstrip())
    assert said[5] == ""


@pytest.mark.parametrize("why", ["no terminal", "quiet", "closed"])
def test_nothing_is_shown_and_nothing_raised(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = stderr(monkeypatch, {"no terminal": io.StringIO(), "quiet": Terminal(), "closed": Closed()}[why])
    monkeypatch.setenv("LAPWING_QUIET", "1" if why == "quiet" else "")
    follow(monkeypatch, [10.0, 20.0], [0.1, 0.2])
    assert shown.getvalue() == ""


def test_a_loop_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_at_once(monkeypatch)
    monkeypatch.setattr(notices, "_BETWEEN_SECONDS", 0.0)
    assert list(notices.followed(range(9, 1, -2), "steps")) == [9, 7, 5, 3]
    assert [part.split()[3:5] for part in shown.getvalue().split("\r")[1:5]] == [[f"{k}", "%"] for k in (0, 25, 50, 75)]
    assert shown.getvalue().endswith("\r")


def test_what_is_no_range_is_left_alone() -> None:
    assert notices.followed(values := [1, 2], "steps") is values


@lw.nest
def steps(u, v, n):
    for t in range(n):
        u[0] += 1.0
        for i in range(1, u.shape[0]):
            for j in range(1, u.shape[1]):
                v[i, j] = 0.5 * u[i - 1, j] + u[i, j - 1]
        u, v = v, u
    return t


def test_a_program_shows_how_far_its_loop_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_at_once(monkeypatch)
    monkeypatch.setattr(notices, "_BETWEEN_SECONDS", 0.0)
    assert steps(np.ones((4, 5)), np.ones((4, 5)), 3) == 2
    assert "lapwing: steps" in shown.getvalue()
    assert " 67 % after" in shown.getvalue()


@lw.nest
def halve(u, sweeps):
    for t in range(sweeps):
        for i in range(1, u.shape[0]):
            u[i] = 0.5 * u[i - 1]


def call_for_some_tenths_of_a_second() -> None:
    halve(np.ones(100_000), 20_000)


def shown_at_once(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr(notices, "_PATIENCE_SECONDS", 0.0)
    return stderr(monkeypatch, Terminal())


def test_a_call_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_at_once(monkeypatch)
    call_for_some_tenths_of_a_second()
    assert "lapwing: halve " in shown.getvalue()
    assert shown.getvalue().endswith("\r")


def test_the_line_goes_also_when_the_call_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = shown_at_once(monkeypatch)

    class Interrupted(notices.ProgressLine):
        def __call__(self, fraction: float) -> None:
            super().__call__(fraction)
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "ProgressLine", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_for_some_tenths_of_a_second()
    assert shown.getvalue().endswith("\r")
