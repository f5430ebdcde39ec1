"""Broken sources: what cannot be read is an Opaque and a Problem, the rest is read, nothing is skipped and nothing raises."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from _fortran import opaques, short, subroutine
from randomness import seeds

from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Block, Opaque, Statement
from lapwing.overlap.languages.fortran.parsing.skeleton import Kind, kind_of
from lapwing.overlap.languages.fortran.parsing.view import make_view
from lapwing.overlap.languages.fortran.reading import read_fortran, read_text


def test_one_broken_statement_is_opaque() -> None:
    program, procedure = subroutine("  x = 1\n  y = = 2\n  z = 3")
    assert short(procedure.body) == ["x = 1", "opaque: a statement that cannot be parsed", "z = 3"]
    assert program.sources[0].text(procedure.body.statements[1].span) == "y = = 2"
    assert [problem.line for problem in program.problems] == [4]


def test_a_broken_call_inside_a_loop() -> None:
    _, procedure = subroutine("  do i = 1, 3\n    call f(,\n    x = i\n  end do")
    assert short(procedure.body) == ["do i = 1, 3, 1", "  opaque: a statement that cannot be parsed", "  x = i"]


@pytest.mark.parametrize("header", ["do i = = 1, 3", "if (x then", "do while (", "select case )"])
def test_a_broken_construct_makes_the_whole_body_opaque(header: str) -> None:
    program, procedure = subroutine(f"  x = 1\n  {header}\n    y = 2\n  end do\n  z = 3")
    assert len(procedure.body.statements) == 1
    assert isinstance(procedure.body.statements[0], Opaque)
    span = program.sources[0].text(procedure.body.statements[0].span)
    assert span.startswith("x = 1")
    assert span.endswith("z = 3")


def test_a_construct_without_its_end() -> None:
    text = "subroutine s\n x = 1\n if (l) then\n y = 2\nend\nsubroutine t\n z = 3\nend\n"
    program = read_text(text)
    assert opaques(program.procedures["s"])
    assert short(program.procedures["t"].body) == ["z = 3"]


def test_a_condition_without_its_end_leaves_nothing_out() -> None:
    """No preprocessor takes the file, so that nothing is certain of what follows."""
    program = read_text("subroutine s\n x = 1\nend\n#if X\nsubroutine t\n z = 3\nend\n")
    assert set(program.procedures) == {"s", "t"}


def test_a_broken_declaration_is_a_barrier() -> None:
    program, procedure = subroutine("  x = 1", "  real, dimension( :: a\n  real b")
    assert len(opaques(procedure)) == 1
    assert isinstance(procedure.body.statements[0], Opaque)
    assert short(procedure.body)[1:] == ["x = 1"]
    assert program.problems


def test_names_that_are_keywords() -> None:
    lines = "      class = 'U'\n      if (data .eq. 1) end = 3\n      type(2) = file"
    _, procedure = subroutine(lines, "      character class\n      integer data, end, type(3), file", "a.f")
    assert short(procedure.body) == ["class = 'U'", "if (== data 1)", "  (single)", "  end = 3", "type[2] = file"]


def test_two_procedures_of_one_name() -> None:
    program = read_text("subroutine s\n x = 1\nend\nsubroutine s\n x = 2\nend\nsubroutine t\n call s\nend\n")
    assert opaques(program.procedures["s"]) == ["s is defined twice"]
    assert short(program.procedures["t"].body) == ["call s()"]
    assert [problem.line for problem in program.problems] == [4]


def test_text_that_is_no_fortran() -> None:
    for text in ("", "\n\n", "int main(void) { return 0; }\n", "\0\1\2\xff\n", "((((((\n"):
        program = read_text(text)
        assert all(opaques(procedure) for procedure in program.procedures.values())
        assert bool(program.problems) == bool(text.strip())


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    program = read_fortran([tmp_path / "gone.f90", tmp_path])
    assert len(program.problems) == 2
    assert not program.procedures


def test_statements_outside_of_procedures_are_reported() -> None:
    program = read_text("module m\n integer n\n n = 3\nend module\n")
    assert [problem.line for problem in program.problems] == [3]


def test_modules_that_use_each_other() -> None:
    program = read_text(
        "module a\n use b\n integer i\nend module\nmodule b\n use a\n use b\nend module\nsubroutine s\n use b\n j = k\nend\n"
    )
    assert short(program.procedures["s"].body) == ["j = k"]
    assert len(program.problems) == 2


def test_a_broken_declaration_in_a_module_reaches_its_users() -> None:
    program = read_text("module m\n real, dimension( :: a\nend module\nsubroutine s\n use m\n x = a(1)\nend\n")
    assert short(program.procedures["s"].body)[1:] == ["x = unread{a, 1}"]
    assert len(opaques(program.procedures["s"])) == 1


# ---- random damage --------------------------------------------------------------------------------------------------------

HEALTHY = """\
      module m
      integer, parameter :: n = 10
      real, allocatable :: w(:)
      end module

      subroutine s(a, b)
      use m
      implicit none
      real a(n,n), b(*)
      integer i, j
      common /c/ i
      if (a(1,1) .gt. 2.0) then
        do 10 i = 1, n
          b(i) = a(i, 1)
     &      + 2.0
   10   continue
      else if (a(1,1) .lt. 0) then
        call f(a, b(2))
      else
        do j = 1, n
          if (b(j) .eq. 0) goto 20
          a(j,:) = 1; b(j) = 2
        end do
      end if
c     comment
   20 continue
      select case (i)
      case (1)
        write(*,*) 'one', (b(i), i=1,3)
      case default
        return
      end select
      end subroutine

      program p
      call s(x, y)
      end
"""


@pytest.mark.parametrize("seed", range(60))
def test_damage_never_raises_and_is_never_passed_over(seed: int) -> None:
    damaged = damage(HEALTHY, random.Random(seed))
    check(read_text(damaged, "a.f"))


@pytest.mark.long
def test_much_damage() -> None:
    for seed in seeds(3000):
        check(read_text(damage(HEALTHY, random.Random(seed)), "a.f"))


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("a(j,:) = 1; b(j) = 2", "&a(j,:) = 1; b(j) = 2"),
        ("   20 continue", "      select case (i)\n      end\n   20 continue"),
    ],
)
def test_a_statement_is_read_once_at_most(line: str, damaged: str) -> None:
    check(read_text(HEALTHY.replace(line, damaged), "a.f"))


def damage(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(chance.choice([1, 1, 2, 4])):
        place = chance.randrange(len(lines))
        line = lines[place]
        column = chance.randrange(len(line) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del lines[place]
        elif kind == 1:
            lines.insert(place, chance.choice(lines))
        elif kind == 2:
            lines[place] = line[:column] + chance.choice("'\"()&;!,=x0\x01\xff") + line[column:]
        elif kind == 3:
            lines[place] = line[:column] + line[column + 1 :]
        else:
            added = [
                "      end if",
                "      end do",
                "      else",
                "      do i=1,3",
                "      end",
                "#if X",
                "#endif",
                "c$omp x",
            ]
            lines.insert(place, chance.choice(added))
    return "\n".join(lines)


NOTHING = re.compile(r"[\s\d]*|module")  # or a label alone, or the word that follows END


def check(program: Program) -> None:
    """Spans are nested and in order, and every executable statement is in one, or was reported."""
    source = program.sources[0]
    covered = [span for procedure in program.procedures.values() for span in spans(procedure.body)]
    for procedure in program.procedures.values():
        check_block(procedure.body)
    # What follows a COMMON without a list, which no compiler takes either.
    reported = bool(program.problems) or re.search(rb"(?mi)^ *common */c/ *(!.*)?$", source.data) is not None
    view = make_view(source.data, source.form or "")
    for start, end in zip(view.starts, view.ends, strict=True):
        statement = view.text[start:end].decode("latin-1")
        if program.is_left_out(0, start) or NOTHING.fullmatch(statement):
            continue
        if statement.startswith("b(i) = ") and (start > view.text.rfind(b"program") or b"b(*)" not in view.text):
            continue  # a statement function: b is no array there
        if kind_of(statement) is Kind.EXECUTABLE and "continue" not in statement:
            inside = any(first <= start < last for first, last in covered)
            assert inside or reported, statement


def check_block(block: Block) -> None:
    place = block.span.start
    for statement in block.statements:
        assert block.span.contains(statement.span)
        assert statement.span.start >= place
        place = statement.span.end
        for inner in statement.blocks():
            assert statement.span.contains(inner.span)
            check_block(inner)


def spans(block: Block) -> list[tuple[int, int]]:
    def leaf(statement: Statement) -> bool:
        return all(inner.form == "single" for inner in statement.blocks())

    return [(statement.span.start, statement.span.end) for statement in block.walk() if leaf(statement)]
