"""Writing statements, comments, declarations and names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _fortran import body, short, subroutine
from hypothesis import given
from hypothesis import strategies as st
from needs import GFORTRAN

from lapwing.errors import RefusedError
from lapwing.overlap.ir.expressions import Number, Unread
from lapwing.overlap.ir.statements import Assign
from lapwing.overlap.languages.fortran.writing.printer import (
    comment_line,
    declaration,
    expression_text,
    fresh_name,
    statement_lines,
)

WIDTH = {"fixed": 72, "free": 132}
LONG = (
    "call mpi_sendrecv("
    + ", ".join(f"argument{number}(1:n, {number}.5d-3)" for number in range(14))
    + ", 'it''s (a, b)')"
)
TOKENS = ["a", "long_name_of_a_variable", "1.5d-3", "'it''s, ; ! &'", "(x + y)", "b(i, j)", ".not. l", "2**n"]


@pytest.mark.parametrize("form", ["fixed", "free"])
@pytest.mark.parametrize("indent", [0, 6, 10, 60, 200])
def test_lines_fit_and_say_the_same(form: str, indent: int) -> None:
    written = statement_lines(LONG, indent, form)
    assert max(map(len, written.splitlines())) <= WIDTH[form]
    name = "a.f" if form == "fixed" else "a.f90"
    assert body(written, name=name) == body(LONG)


@given(parts=st.lists(st.sampled_from(TOKENS), min_size=1, max_size=40), indent=st.integers(0, 80), fixed=st.booleans())
def test_any_statement_survives_splitting(parts: list[str], indent: int, fixed: bool) -> None:
    text = "call f(" + ", ".join(parts) + ")"
    form = "fixed" if fixed else "free"
    written = statement_lines(text, indent, form)
    assert max(map(len, written.splitlines())) <= WIDTH[form]
    _, procedure = subroutine(written, "      dimension b(9, 9)", "a.f" if fixed else "a.f90")
    assert short(procedure.body) == body(text, "      dimension b(9, 9)")


def test_a_short_statement_stays_as_it_is() -> None:
    assert statement_lines("x = 1", 6, "fixed") == "      x = 1\n"
    assert statement_lines("x = 1", 0, "fixed") == "      x = 1\n"
    assert statement_lines("x = 1", 2, "free") == "  x = 1\n"
    assert statement_lines("continue", 8, "fixed", label="10") == "   10   continue\n"


def test_split_behind_a_comma() -> None:
    text = "call mpi_irecv(buffer, 10*ny*nz, dp_type, north_neighbour, from_n + offset*many, ierror)"
    first, second = statement_lines(text, 8, "fixed").splitlines()
    assert first.endswith("north_neighbour,")
    assert second == "     &       from_n + offset*many, ierror)"


def test_a_literal_longer_than_a_line_is_refused() -> None:
    with pytest.raises(RefusedError, match="does not fit"):
        statement_lines("x = '" + "a" * 80 + "'", 6, "fixed")


def test_comments() -> None:
    assert comment_line("why", 8, "fixed") == "        ! why\n"
    assert comment_line("why", 5, "fixed") == "      ! why\n", "in column 6 it would continue a line"
    assert comment_line("why", 2, "free") == "  ! why\n"
    long = comment_line("word " * 40, 10, "fixed")
    assert all(line.startswith(" " * 10 + "! word") and len(line) <= 72 for line in long.splitlines())
    assert body("      x = 1\n" + long + "      y = 2", name="a.f") == ["x = 1", "y = 2"]


def test_declarations() -> None:
    assert declaration("integer", "request") == "integer :: request"
    assert declaration("double precision", "b", ["5", "0:n"], ["save"]) == "double precision, save :: b(5, 0:n)"


def test_fresh_names() -> None:
    assert fresh_name("request", []) == "request"
    assert fresh_name("request", ["REQUEST", "request_2"]) == "request_3"
    long = fresh_name("a" * 70, ["a" * 63])
    assert len(long) == 63
    assert long.endswith("_2")


@pytest.mark.parametrize(
    "text",
    [
        "a + b*c",
        "(a + b)*c",
        "a - (b - c)",
        "a/(b*c)",
        "(a**b)**c",
        "a**(b**c)",
        "-a + b",
        "a - (-3)",
        "-(a + b)",
        "d(i + 1, 2:n:2)%z",
        "max(a, mod(i, 2))",
        "i == 3 .and. .not. l .or. i /= 4",
        "l .eqv. i < 3",
        "(l .neqv. m) .eqv. n",
        "(/ 1, i /)",
        "MPI_COMM_WORLD",
        "'it''s'",
        ".true.",
    ],
)
def test_expressions_read_the_same_again(text: str) -> None:
    declarations = "      logical l, m, n\n      type t\n      real z\n      end type\n      type(t) d(9, 9)"
    _, procedure = subroutine(f"      x = {text}", declarations)
    statement = procedure.body.statements[0]
    assert isinstance(statement, Assign)
    written = expression_text(statement.value)
    assert body(f"      x = {written}", declarations) == short(procedure.body)


@pytest.mark.parametrize("value", [Number(1.5), Unread("?")])
def test_what_only_the_source_can_spell_is_refused(value: Number | Unread) -> None:
    with pytest.raises(RefusedError, match="cannot be written"):
        expression_text(value)


@pytest.mark.skipif(not GFORTRAN.is_here, reason=GFORTRAN.reason)
@pytest.mark.parametrize(("form", "name"), [("fixed", "a.f"), ("free", "a.f90")])
def test_gfortran_accepts_what_is_written(form: str, name: str, tmp_path: Path) -> None:
    lines = [
        statement_lines("subroutine s(n, a, l)", 6, form),
        statement_lines("implicit none", 6, form),
        statement_lines(declaration("integer", "n"), 6, form),
        statement_lines(declaration("double precision", "a", ["5", "0:n"]), 6, form),
        statement_lines(declaration("logical", "l"), 6, form),
        statement_lines(declaration("double precision", "b", ["5", "10"], ["save"]), 6, form),
        statement_lines(declaration("character*80", "text"), 6, form),
        comment_line("a comment that is so long that it does not fit into one line of any form " * 3, 6, form),
        statement_lines(
            "if (l .and. " + " .and. ".join(f"a(1, {i}) < 1.5d-{i:03}" for i in range(12)) + ") then", 6, form
        ),
        statement_lines("b(1, 1) = " + " + ".join(f"a(1, n - {i})*2.5d+0{i % 9}" for i in range(20)), 40, form),
        statement_lines("write(text, '(a, i5, a)') 'it''s; ! & long', n, 'and, with commas, a long one'", 40, form),
        statement_lines("end if", 6, form),
        statement_lines("continue", 6, form, label="10"),
        statement_lines("end subroutine s", 6, form),
    ]
    path = tmp_path / name
    path.write_text("".join(lines))
    done = subprocess.run(
        ["gfortran", "-fsyntax-only", "-Wall", "-Werror=line-truncation", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
