"""Macros that nothing defines are taken as undefined: their lines are carried along, and compilers check that they stay out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _running import required
from _transformed import transformed

from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.c.parsing.text import Text, conditional_definitions
from lapwing.overlap.languages.c.reading import read_c_text
from lapwing.overlap.languages.fortran.parsing.condition import UNKNOWN, evaluate
from lapwing.overlap.languages.fortran.reading import read_text
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.json import report_json
from lapwing.overlap.report.outcome import Options, Outcome
from lapwing.overlap.report.text import summary_lines

C = """\
#include <mpi.h>
#include <stdio.h>
#define N 400
static double u[N][N], v[N][N], above[N], below[N];

static void step(int up, int down)
{
    MPI_Request r[4];
    MPI_Irecv(below, N, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(above, N, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(u[0], N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(u[N - 1], N, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
/* between */
    for (int i = 1; i < N - 1; i++)
        for (int j = 1; j < N - 1; j++) v[i][j] = 0.5 * (u[i - 1][j] + u[i + 1][j]);
    for (int j = 1; j < N - 1; j++) v[0][j] = above[j] + below[j];
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    step(0, 0);
    printf("%g\\n", v[3][4] + v[0][5]);
    MPI_Finalize();
    return 0;
}
"""
TRACED = '#if defined(TRACE) && LEVEL > 1\n    printf("halo %g\\n", below[0]);\n#endif'
FORTRAN = """\
module sizes
  implicit none
  integer, parameter :: &
#ifdef SMALL
    n = 10
#else
    n = 400
#endif
end module sizes
program heat
  use mpi
  use sizes
  implicit none
  double precision :: u(n, n), v(n, n), above(n)
  integer :: i, j, ierr, r(2)
  call MPI_Init(ierr)
  u = 1
  call MPI_Irecv(above, n, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD, r(1), ierr)
  call MPI_Isend(u(1, 1), n, MPI_DOUBLE_PRECISION, 0, 2, MPI_COMM_WORLD, r(2), ierr)
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierr)
#ifdef TRACE
  print *, above(1)
#endif
  do j = 2, n - 1
    do i = 2, n - 1
      v(i, j) = 0.25d0 * (u(i - 1, j) + u(i + 1, j))
    end do
  end do
  print *, above(3), v(3, 4)
  call MPI_Finalize(ierr)
end program heat
"""


def of_c(between: str, **given: object) -> tuple[str, Outcome]:
    return changed(read_c_text(C.replace("/* between */", between), **given))  # type: ignore[arg-type]


def changed(program: Program) -> tuple[str, Outcome]:
    outcome = rewrite(program, Options())
    return "".join(change.after.decode() for change in outcome.changes), outcome


def test_lines_that_are_left_out_are_carried_along() -> None:
    text, outcome = of_c(TRACED)
    assert text.index(TRACED) < text.index("MPI_Waitall(") > text.index("v[i][j] = ")
    assert text.count(TRACED) == 1
    assert outcome.rewritten == 5
    assert outcome.undefined == ("LEVEL", "TRACE")
    assert "Taken as undefined (-D NAME, or -U NAME if that is right): LEVEL, TRACE." in summary_lines(outcome)
    assert report_json(outcome, Path())["undefined"] == ["LEVEL", "TRACE"]


def test_compilers_check_it(tmp_path: Path) -> None:
    required("c")
    (tmp_path / "a.c").write_text(of_c(TRACED)[0])
    command = ["mpicc", "-fsyntax-only", str(tmp_path / "a.c")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    stopped = subprocess.run([*command, "-DTRACE"], capture_output=True, text=True, check=False)
    assert stopped.returncode != 0
    assert "took LEVEL, TRACE as undefined" in stopped.stderr


def test_what_is_said_not_to_be_defined_is_not_checked() -> None:
    text, outcome = of_c(TRACED, undefines=["TRACE", "LEVEL"])
    assert "#error" not in text
    assert outcome.rewritten == 5
    assert not outcome.undefined


def test_what_is_defined_is_compiled() -> None:
    text, outcome = of_c(TRACED, defines={"TRACE": None, "LEVEL": "2"})
    assert not text
    assert not outcome.undefined


def test_what_the_text_defines_is_checked_before_it_does() -> None:
    defined = C.replace("#define N 400", "#define N 400\n#define LOUD 0")
    text, _ = changed(read_c_text(defined.replace("/* between */", '#if LOUD\n    printf("halo");\n#endif')))
    assert text.startswith("#if defined(LOUD)\n#error ")


def test_what_a_definition_rests_on_is_checked_too() -> None:
    defined = "#ifdef ALL\n#define LEVEL 9\n#else\n#define LEVEL 1\n#endif\n"
    text = C.replace("/* between */", TRACED.replace("defined(TRACE) && ", ""))
    assert changed(read_c_text(defined + text))[1].undefined == ("ALL", "LEVEL")
    guarded = f"#ifndef A_H\n#define A_H\n{defined}#endif\n"
    assert conditional_definitions(Text(guarded.encode())) == {"LEVEL": frozenset({"ALL"})}
    fortran = FORTRAN.replace("#ifdef TRACE", "#if LEVEL > 5")
    assert changed(read_text(defined + fortran, "a.F90"))[1].undefined == ("ALL", "SMALL")


@pytest.mark.parametrize("condition", ["MPI_VERSION < 2", "__GNUC__ < 2"])
def test_what_another_machine_may_decide_otherwise_stays_in_the_way(condition: str) -> None:
    assert not of_c(f"#if {condition}\n    v[0][0] = below[0];\n#endif")[0]


def test_messages_that_are_left_out_are_told() -> None:
    _, outcome = of_c("#ifdef LATE\n    MPI_Barrier(MPI_COMM_WORLD);\n#endif")
    (barrier,) = (c for c in outcome.communications if c.call == "MPI_Barrier")
    assert not barrier.rewritten
    assert "-D" in (barrier.note or "")


def test_what_is_compiled_only_without_a_macro_is_checked_too() -> None:
    """With -DFAR the work would read what is received: n is known to be 0 only without."""
    alone = "    int n = up;\n#ifndef FAR\n    n = 0;\n#endif\n    for (int i = 1; i < N; i++) v[1][i] = u[n][i];"
    assert changed(read_c_text(C.replace("/* between */", alone)))[1].undefined == ("FAR",)
    inside = "    v[0][0] = 1\n#ifndef FAR\n    + 1\n#endif\n    ;"
    assert changed(read_c_text(C.replace("/* between */", inside)))[1].undefined == ("FAR",)
    text, outcome = changed(read_text(f"#ifndef FAR\n#define LEVEL 1\n#endif\n{FORTRAN}", "a.F90"))
    assert outcome.undefined == ("FAR", "SMALL", "TRACE")
    assert text.startswith("#if defined(FAR) || defined(SMALL) || defined(TRACE)\n#error ")


def test_what_decides_outside_of_functions_is_checked(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#ifndef SIZES_H\n#define SIZES_H\n#ifndef N\n#define N 400\n#endif\n#endif\n")
    cpp = '#ifdef __cplusplus\nextern "C"\n#endif\nvoid other(void);\n#ifdef _OPENMP\n#include <omp.h>\n#endif\n'
    text, outcome = of_c("", include_dirs=[tmp_path])
    assert not outcome.undefined
    headed = C.replace("#define N 400", f'#include "sizes.h"\n{cpp}')
    text, outcome = changed(read_c_text(headed, include_dirs=[tmp_path]))
    assert outcome.undefined == ("N",)
    assert text.startswith("#if defined(N)\n#error ")  # before the text's own definition


@pytest.mark.parametrize("name", ["__GFORTRAN__", "_OPENMP", "__INTEL_COMPILER"])
def test_what_compilers_define_is_taken_for_nothing_in_fortran(name: str) -> None:
    text, outcome = changed(read_text(FORTRAN.replace("TRACE", name), "a.F90"))
    assert outcome.undefined == ("SMALL",)
    assert name not in text.partition("#endif")[0]


def test_only_what_decides_counts() -> None:
    inner = '#ifdef SHORT /* not the LONG one */\n    printf("short\\n");\n#else\n    v[1][1] = 0;\n#endif'
    program = read_c_text(C.replace("/* between */", f"#ifndef ALONE // as ever\n{inner}\n#endif"))
    assert list(program.undefined) == ["ALONE", "SHORT"]
    (one,) = (one for one in program.left_out if one.pieces)
    assert [program.sources[0].text(piece).strip() for piece in one.pieces] == ['printf("short\\n");']


def test_nothing_passes_lines_around_what_is_compiled() -> None:
    text, _ = of_c('#ifdef TRACE\n    printf("traced\\n");\n#else\n    v[1][1] = 0;\n#endif')
    assert not text


def test_fortran_and_a_statement_that_goes_on_behind_a_condition() -> None:
    text, outcome = changed(read_text(FORTRAN, "a.F90"))
    assert text.startswith("#if defined(SMALL) || defined(TRACE)\n#error ")
    assert text.index("#ifdef TRACE\n  print") < text.index("call MPI_Waitall(") > text.index("v(i, j) = ")
    assert not outcome.problems


def test_a_fortran_file_without_lines_for_the_preprocessor_gets_none(tmp_path: Path) -> None:
    sizes, main = FORTRAN.split("program heat", 1)
    main = "program heat" + main.replace("#ifdef TRACE\n  print *, above(1)\n#endif\n", "")
    from lapwing.overlap.languages.fortran.reading import read_fortran

    paths = [tmp_path / "sizes.F90", tmp_path / "a.f90"]
    for path, text in zip(paths, (sizes, main), strict=True):
        path.write_text(text)
    changes = {change.path.name: change.after.decode() for change in rewrite(read_fortran(paths), Options()).changes}
    assert "#" not in changes["a.f90"]
    assert changes["sizes.F90"] == f"{changes['sizes.F90'].split('module', 1)[0]}{sizes}"
    assert "#error" in changes["sizes.F90"]


def test_a_module_that_cannot_be_read_is_named_as_such() -> None:
    text = "module broken\n integer, parameter :: n = = 3\n((\nend module\nsubroutine s\n use broken\nend\n"
    program = read_text(text)
    messages = [problem.message for problem in program.problems if "the module broken" in problem.message]
    assert not any("not among the files" in message for message in messages)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("defined(A) && !defined(B)", 1),
        ("A > 1 || B", 1),
        ("B + 1 == 1 && (A - 2) * 3 == 0", 1),
        ("defined A && C", None),
        ("defined(B) && C", 0),
        ("A / 0", None),
        ("LOOP", None),
        ("A(1)", None),
        ("A >", None),
    ],
)
def test_conditions(condition: str, value: int | None) -> None:
    known = {"A": "2", "C": UNKNOWN, "LOOP": "LOOP + 1"}
    assert evaluate(condition, known.get) == value


@pytest.mark.mpi
def test_the_result_is_the_same(tmp_path: Path) -> None:
    result = transformed(C.replace("/* between */", TRACED), "a.c", tmp_path)
    assert "wait-later" in result.made("MPI_Waitall")
    assert "wait-later" in result.made("MPI_Irecv")
    result.assert_behaves_as_before(False, 1)  # a program for one rank, which is its own neighbour
