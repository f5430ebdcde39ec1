"""The position-preserving view of fixed and free form."""

from __future__ import annotations

from pathlib import Path

import pytest
from _fortran import body, short, subroutine

from lapwing.overlap.ir.statements import Assign, Call, Opaque
from lapwing.overlap.languages.fortran.parsing.view import form_of, make_view
from lapwing.overlap.languages.fortran.reading import read_text

FIXED = b"""\
C     a comment; with 'quotes
      x = 1 + ! more
c
     &    2   ; y = 3                                                   SEQ00010
   10 continue
!     call nothing
D     call debug
      t = 'it''s ! no comment and goes on to column seventy-two just lik
     1e this'
\tz = 4
\t1 + 5
"""


def test_every_byte_keeps_its_place() -> None:
    view = make_view(FIXED, "fixed")
    assert len(view.text) == len(FIXED)
    for place, byte in enumerate(view.text):
        assert byte in (0x20, 0x0A) or byte == FIXED[place]


def test_statements_end_to_end() -> None:
    view = make_view(FIXED, "fixed")
    found = [FIXED[start:end] for start, end in zip(view.starts, view.ends, strict=True)]
    assert found[0] == b"x = 1 + ! more\nc\n     &    2   ;"
    assert found[1:3] == [b"y = 3", b"10 continue"]
    assert found[3].startswith(b"t = 'it''s")
    assert found[3].endswith(b"e this'")
    assert found[4] == b"z = 4\n\t1 + 5"
    assert len(found) == 5
    assert not view.unreadable


def test_free_form_continues_over_comments_and_literals() -> None:
    source = b"x = 1 + & ! one\n  ! between\n\n  & 2; y = 'a;! & b&\n   &c' ! two\nz = 3\n"
    view = make_view(source, "free")
    found = [source[start:end] for start, end in zip(view.starts, view.ends, strict=True)]
    assert found == [b"x = 1 + & ! one\n  ! between\n\n  & 2;", b"y = 'a;! & b&\n   &c'", b"z = 3"]
    assert b"one" not in view.text
    assert b"two" not in view.text


@pytest.mark.parametrize(
    ("path", "text", "form"),
    [
        ("a.f", "c comment\n      x = 1\n", "fixed"),
        ("a.F", "   10 x = 1\n     & + 2\n", "fixed"),
        ("a.f", "program p\n  x = 1\nend\n", "free"),
        ("a.f", "\tx = 1\n", "fixed"),
        ("a.f90", "program p\nend\n", "free"),
        ("a.F90", "c     all of it\n      x = 1\n     &  + 2\n      end\n", "fixed"),
        ("a.f90", "c = 3\n", "free"),
        ("a.f90", "      x = 1\n", "free"),
        ("a.f90", "call f(a, &\n     b)\n", "free"),
        ("a.f90", "c     comment\n      call f(a, &\n     b)\n", "free"),
    ],
)
def test_form_by_suffix_and_text(path: str, text: str, form: str) -> None:
    assert form_of(Path(path), text.encode()) == form


def test_text_beyond_column_72_is_not_passed_over() -> None:
    # A compiler told to read longer lines sees another statement than one that is not.
    line = "      x(1) = a + b" + " " * 50 + "+ c + d + e + f"
    program, procedure = subroutine(line, name="a.f")
    assert short(procedure.body) == ["opaque: text beyond column 72"]
    assert program.problems[0].line == 3


def test_sequence_numbers_are_no_text() -> None:
    line = "      x = a + b".ljust(72) + "LU  0010"
    assert body(line, name="a.f") == ["x = (+ a b)"]


def test_comments_may_reach_beyond_column_72() -> None:
    line = "      x = a".ljust(60) + "! a comment that is longer than the line may be"
    assert body(line, name="a.f") == ["x = a"]


def test_an_unclosed_literal_is_opaque() -> None:
    _, procedure = subroutine("x = 'abc\ny = 2")
    statements = procedure.body.statements
    assert isinstance(statements[0], Opaque)
    assert isinstance(statements[1], Assign)


def test_a_word_split_over_lines_is_opaque() -> None:
    _, procedure = subroutine("x = ab&\n  &cd\ny = 2")
    assert short(procedure.body) == ["opaque: a word split over two lines", "y = 2"]


def test_spans_hold_label_continuation_and_semicolon() -> None:
    program, procedure = subroutine("  10  call f(a,\n     &  b) ! why\n      x = 1; y = 2", name="a.f")
    texts = [program.sources[0].text(statement.span) for statement in procedure.body.statements]
    assert texts == ["10  call f(a,\n     &  b)", "x = 1;", "y = 2"]
    assert isinstance(procedure.body.statements[0], Call)
    assert procedure.body.statements[0].label == "10"


def test_windows_line_ends() -> None:
    program, procedure = subroutine("      x = 1 +\r\n     & 2\r\n      y = 3\r", name="a.f")
    assert short(procedure.body) == ["x = (+ 1 2)", "y = 3"]
    assert program.sources[0].text(procedure.body.statements[1].span) == "y = 3"


def test_bytes_of_any_encoding() -> None:
    program, procedure = subroutine("print *, 'caf\xe9' ! \xff\xfe\n x = 1")
    assert short(procedure.body) == ["reads  writes ", "x = 1"]
    assert program.sources[0].text(procedure.body.statements[0].span) == "print *, 'caf\xe9'"


@pytest.mark.parametrize(("name", "indent"), [("a.f90", ""), ("a.f", "      ")])
def test_a_byte_order_mark_is_no_text(name: str, indent: str) -> None:
    program = read_text(b"\xef\xbb\xbf" + f"{indent}subroutine s\n{indent}x = 1\n{indent}end\n".encode(), name)
    assert not program.problems
    assert short(program.procedures["s"].body) == ["x = 1"]
