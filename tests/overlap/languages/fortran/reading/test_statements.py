"""Executable statements: what they become, and where their blocks are."""

from __future__ import annotations

import pytest
from _fortran import body, opaques, short, subroutine

from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Block, If, Loop
from lapwing.overlap.languages.fortran.reading import read_text


def lines_of(program: Program, block: Block) -> str:
    return program.sources[0].text(block.span)


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("x = y", ["x = y"]),
        ("a(:, 1) = b", ["a[:, 1] = b"]),
        ("a = 0", ["a = 0"]),
        ("call f", ["call f()"]),
        ("CALL MPI_Send(a(1,2), (n), MPI_REAL, ierr=i)", ["call mpi_send(a[1, 2], (() n), @MPI_REAL, ierr=i)"]),
        ("if (l) call t(x)", ["if l", "  (single)", "  call t(x)"]),
        ("if (l) goto 9\n9 continue", ["if l", "  (single)", "  goto 9", "9: nothing"]),
        ("go to 09\n009 continue", ["goto 9", "9: nothing"]),
        ("do i = 1, n\nx = 1\nend do", ["do i = 1, n, 1", "  x = 1"]),
        ("do i = n, 1, -2\nenddo", ["do i = n, 1, -2"]),
        ("do while (l)\ncycle\nexit\nend do", ["while l", "  continue", "  break"]),
        ("do\nend do", ["while"]),
        ("if (l) 1, 2, 3\n1 continue\n2 continue\n3 continue", None),
        ("stop 'now'", ["stop"]),
        ("error stop", ["stop"]),
        ("return", ["return"]),
        ("continue", ["nothing"]),
        ("10 format (a, 'x')", ["10: nothing"]),
        ("where (b > 1) b = 2", ["if (> b 1)", "  (single)", "  b = 2"]),
        ("forall (i=1:n, b(i)>0) b(i) = 1", ["while 1, n, i = 1, (> b[i] 0)", "  (single)", "  b[i] = 1"]),
        ("block\nx = 1\nend block", ["compound", "  x = 1"]),
        ("p => b", ["unread{p, b}"]),
        ("nullify(p)", ["unread{p}"]),
        ("deallocate(w)", ["free w reads  writes "]),
        (
            "allocate(w(n, 0:3), stat=i, source=a)",
            ["allocate w[1:n, 0:3] reads a writes i"],
        ),
        ("call o%go(x)", ["call None(o, x)"]),
        ("call dummy(x)", ["call dummy(x)"]),
    ],
)
def test_statement(lines: str, read: list[str] | None) -> None:
    declarations = (
        "  integer i, n\n  logical l\n  real a(5,5), b(5)\n  real, allocatable :: w(:,:)\n"
        "  real, pointer :: p(:)\n  type t\n    integer k\n  end type\n  type(t) o"
    )
    found = body(lines, declarations)
    if read is not None:
        assert found == read


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("print *, x, (b(i), i=1,n)", "reads x, b[1:n:1], n writes i"),
        ("write(*, '(a)') x", "reads x writes "),
        ("write(6, 100) f(x)\n100 format(a)", "reads 6, f<x> writes "),
        ("write(s, '(i5)') i", "reads i writes s"),
        ("write(unit=s, fmt='(i5)') i", "reads i writes s"),
        ("read(s, *) x, b(n)", "reads s writes x, b[n]"),
        ("read(5, *, iostat=i) ((a(i,j), i=1,2), j=1,3)", "reads 5 writes i, a[1:2:1, 1:3:1], j, i"),
        ("read *, x", "reads  writes x"),
        ("open(unit=10, file=s, iostat=i)", "reads 10, s writes i"),
        ("inquire(file=s, exist=l)", "reads s writes l"),
        ("close(10)", "reads 10 writes "),
        ("rewind 10", "reads 10 writes "),
    ],
)
def test_input_and_output(lines: str, read: str) -> None:
    declarations = "  integer i, n\n  logical l\n  real a(5,5), b(5)\n  character*8 s"
    assert body(lines, declarations)[0] == read


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("read(5, *, end=9) x\n9 continue", "END="),
        ("open(1, err=9)\n9 continue", "ERR="),
        ("goto (8, 9), i\n8 continue\n9 continue", "GO TO"),
        ("assign 9 to i\n9 continue", "assign"),
        ("read(5, nml=nl)", "NAMELIST"),
        ("read(5, nl)", "NAMELIST"),
        ("associate (y => x)\ny = 1\nend associate", "associate"),
        ("block\ninteger k\nk = 1\nend block", "BLOCK"),
        ("entry other(x)", "entry"),
        ("do x = 1.0, 2.0\nend do", "not an integer"),
        ("return 1", "return"),
        ("include 'more.h'", "include"),
        ("pause", "PAUSE"),
        ("do concurrent (i=1:3, j=1:3)\nend do", "CONCURRENT"),
        ("do concurrent (i=1:3)\nend do", "CONCURRENT"),
    ],
)
def test_what_is_not_understood_is_opaque_and_reported(lines: str, reason: str) -> None:
    program, procedure = subroutine(f"x = 1\n{lines}\nx = 2", "namelist /nl/ x")
    found = short(procedure.body)
    assert found[0] == "x = 1"
    assert found[-1] == "x = 2"
    assert any(reason in text for text in opaques(procedure))
    assert any(reason in problem.message for problem in program.problems)
    assert all(problem.line >= 3 for problem in program.problems)


# ---- branches and their blocks --------------------------------------------------------------------------------------------

BRANCHES = """\
if (a) then ! first
  x = 1
  ! last of then
else if (b) then
  x = 2

else
  ! only else
  x = 3
end if
"""


def test_if_chain() -> None:
    program, procedure = subroutine(BRANCHES)
    assert short(procedure.body) == [
        "if a",
        "  x = 1",
        "  (chain)",
        "  if b",
        "    x = 2",
        "    (lines)",
        "    x = 3",
    ]
    outer = procedure.body.statements[0]
    assert isinstance(outer, If)
    assert outer.otherwise is not None
    inner = outer.otherwise.statements[0]
    assert isinstance(inner, If)
    assert inner.otherwise is not None
    assert lines_of(program, outer.then) == "  x = 1\n  ! last of then\n"
    assert lines_of(program, inner.then) == "  x = 2\n\n"
    assert lines_of(program, inner.otherwise) == "  ! only else\n  x = 3\n"
    assert program.sources[0].text(outer.span) == BRANCHES.rstrip()


def test_select_case() -> None:
    lines = "select case (i)\ncase (1)\n  x = 1\ncase (2:3, 5) ! some\n  x = 2\ncase default\n  x = 3\nend select"
    program, procedure = subroutine(lines)
    assert short(procedure.body) == ["select i", "  x = 1", "  (lines)", "  x = 2", "  (lines)", "  x = 3"]
    blocks = procedure.body.statements[0].blocks()
    assert [lines_of(program, block) for block in blocks] == ["  x = 1\n", "  x = 2\n", "  x = 3\n"]


def test_where_with_elsewhere() -> None:
    lines = "where (b > 1)\n  b = 2\nelsewhere\n  b = 3\nend where"
    found = body(lines, "  real b(3)")
    assert found == ["if (> b 1)", "  (chain)", "  b = 2", "  (chain)", "  b = 3"]


def test_nothing_can_be_put_into_a_block_on_one_line() -> None:
    assert body("do i = 1, 3; x = i; end do") == ["do i = 1, 3, 1", "  (chain)", "  x = i"]


# ---- loops ----------------------------------------------------------------------------------------------------------------


def test_labelled_loop_ends_before_its_continue() -> None:
    lines = "      do 10 i = 1, n\n        if (l) goto 10\n        x = i\n   10 continue\n      y = 1"
    program, procedure = subroutine(lines, "      logical l", "a.f")
    assert short(procedure.body) == [
        "do i = 1, n, 1",
        "  if l",
        "    (single)",
        "    goto 10",
        "  x = i",
        "  10: nothing",
        "y = 1",
    ]
    loop = procedure.body.statements[0]
    assert isinstance(loop, Loop)
    assert lines_of(program, loop.body).endswith("        x = i\n")
    assert program.sources[0].text(loop.span).endswith("10 continue")


def test_loops_that_share_their_end_take_nothing_between_the_ends() -> None:
    lines = "      do 10 i = 1, n\n      do 10 j = 1, n\n      x = j\n   10 a(i,j) = x"
    found = body(lines, "      real a(9,9)", "a.f")
    assert found == [
        "do i = 1, n, 1",
        "  (chain)",
        "  do j = 1, n, 1",
        "    (chain)",
        "    x = j",
        "    10: a[i, j] = x",
    ]


def test_three_loops_that_share_a_continue() -> None:
    lines = "      do 1 i=1,2\n      do 1 j=1,2\n      do 1 k=1,2\n      x = k\n    1 continue\n      y = 1"
    found = body(lines, name="a.f")
    assert [line.strip() for line in found if not line.strip().startswith("(")] == [
        "do i = 1, 2, 1",
        "do j = 1, 2, 1",
        "do k = 1, 2, 1",
        "x = k",
        "1: nothing",
        "y = 1",
    ]


def test_exit_of_a_named_loop() -> None:
    lines = "outer: do i = 1, 3\n  exit outer\n  do\n    exit outer\n    cycle\n  end do\nend do outer"
    assert body(lines) == [
        "outer: do i = 1, 3, 1",
        "  break",
        "  while",
        "    break outer",
        "    continue",
    ]


def test_label_on_end_do() -> None:
    assert body("do i = 1, 3\n  goto 5\n5 end do") == ["do i = 1, 3, 1", "  goto 5", "  5: nothing"]


# ---- calls ----------------------------------------------------------------------------------------------------------------

MODULE = """\
module m
  interface one
    module procedure first
  end interface
  interface many
    module procedure first, second
  end interface
contains
  subroutine first(a, b, c)
    optional c
  end subroutine
  subroutine second(i)
  end subroutine
end module
subroutine s(dummy)
  use m, renamed => second
  external dummy
  call first(b=x, a=y)
  call first(b=x, c=z, a=(y))
  call first(y, c=z)
  call one(x, y)
  call many(x)
  call renamed(i)
  call dummy(i)
  call first(first, dummy, external)
end subroutine
"""


def test_callees_and_keywords() -> None:
    procedure = read_text(MODULE).procedures["s"]
    assert short(procedure.body) == [
        "call first(y, x)",
        "call first((() y), x, z)",
        "call first(y, c=z)",
        "call first(x, y)",
        "call None(x)",
        "call second(i)",
        "call None(i)",
        "call first(@first, dummy, external)",
    ]


# ---- preprocessor and directives --------------------------------------------------------------------------------------------


def test_conditional_compilation_among_statements() -> None:
    # What a macro with arguments is worth is not known.
    lines = "x = 1\n#if DEBUG(1)\ndo i = 1, 3\n#else\ndo i = 1, 4\n  call f\nend do\n#endif\nx = 2"
    program, procedure = subroutine(lines)
    assert short(procedure.body) == ["x = 1", "opaque: conditional compilation", "x = 2"]
    assert program.sources[0].text(procedure.body.statements[1].span).startswith("#if DEBUG(1)\n")
    assert program.sources[0].text(procedure.body.statements[1].span).endswith("#endif")


def test_code_that_is_switched_off_is_a_comment() -> None:
    assert body("x = 1\n#if 0\ndo i = 1, 3\n#endif\nx = 2") == ["x = 1", "x = 2"]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("#ifdef A", "first"),
        ("#ifndef A", "second"),
        ("#if defined(A)", "first"),
        ("#if !defined(A)", "second"),
        ("#if LEVEL", "first"),
        ("#if ZERO", "second"),
        ("#if 1", "first"),
        ("# if 0", "second"),
        ("#ifdef B", "second"),
        ("#if LEVEL > 1", "first"),
        ("#if defined(A) && defined(B)", "second"),
        ("#if B(2)", None),
    ],
)
def test_what_is_given_decides_conditions(condition: str, taken: str | None) -> None:
    lines = f"{condition}\n do i = 1, 3\n call first\n#else\n do i = 1, 2\n call second\n#endif\n end do"
    program = read_text(f"subroutine s\n{lines}\nend\n", defines={"A": "", "LEVEL": "2", "ZERO": "0"})
    found = short(program.procedures["s"].body)
    if taken is None:
        assert opaques(program.procedures["s"])
    else:
        assert found == [f"do i = 1, {3 if taken == 'first' else 2}, 1", f"  call {taken}()"]
        assert not program.problems


def test_conditions_inside_conditions() -> None:
    lines = "#ifdef A\n#ifdef B\n x = 1\n#endif\n x = 2\n#elif C\n x = 3\n#endif\n x = 4"
    program = read_text(f"subroutine s\n{lines}\nend\n", defines={"A": "1"})
    assert short(program.procedures["s"].body) == ["x = 2", "x = 4"]


def test_an_if_without_its_end() -> None:
    program = read_text("subroutine s\n x = 1\nend\nsubroutine t\n#ifdef A\n x = 2\nend\n")
    assert short(program.procedures["s"].body) == ["x = 1"]
    assert "t" not in program.procedures
    assert program.problems


def test_declarations_under_a_condition_that_is_not_certain_are_all_read() -> None:
    program = read_text("subroutine s\n#if A(1)\n  real a(2)\n#endif\n  a(1) = 1\nend\n")
    procedure = program.procedures["s"]
    assert short(procedure.body) == ["a[1] = 1"]
    assert program.sources[0].data[: procedure.declarations_end].endswith(b"#endif\n")


def test_macros() -> None:
    text = "#define N 10\n#define F(x) x\n#define G H\nsubroutine s\n  x = N\n  x = F(1)\n  x = G\n  call G\nend\n"
    procedure = read_text(text).procedures["s"]
    found = short(procedure.body)
    assert found[0] == "x = 10"
    assert all(line.startswith("opaque: the macro") for line in found[1:])
    assert len(found) == 4


def test_directives_for_threads_make_the_next_statement_opaque() -> None:
    lines = "x = 1\n!$omp parallel do\ndo i = 1, 3\n  a(i) = 1\nend do\nx = 2\n!$ x = 3"
    _, procedure = subroutine(lines, "  real a(3)")
    assert short(procedure.body) == [
        "x = 1",
        "opaque: a directive for threads",
        "x = 2",
        "opaque: a directive for threads",
    ]


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("!$omp parallel do\ndo i=1,3\nend do\n!$omp end parallel do\ncall f", ["opaque", "opaque", "call f()"]),
        (
            "!$omp parallel private(i)\ncall f\n!$omp do\ndo i=1,3\nend do\n!$omp end parallel\ncall g",
            ["opaque", "call g()"],
        ),
        ("!$omp barrier\ncall f", ["opaque", "call f()"]),
        ("!$acc update host(a)\ncall f", ["opaque", "call f()"]),
        (
            "!$acc data copy(a)\ncall f\n!$acc kernels\na = 1\n!$acc end kernels\n!$acc end data\ncall g",
            ["opaque", "call g()"],
        ),
        ("!$omp critical\ncall f", ["opaque"]),
        ("!$omp parallel do &\n!$omp& private(j)\ndo i=1,3\nend do\ncall g", ["opaque", "call g()"]),
        ("if (x > 1) then\n!$omp atomic\na = a + 1\nend if", ["if (> x 1)", "  opaque"]),
        ("!dir$ ivdep\ncall f", ["call f()"]),
    ],
)
def test_directives_govern_a_statement_or_all_up_to_their_end(lines: str, read: list[str]) -> None:
    _, procedure = subroutine(lines)
    assert [line.split(":")[0] for line in short(procedure.body)] == read
