"""Progress calls in procedures that are called while something is in flight, and in no others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from _building import language_of, write
from _running import Reference, overlap, required
from _transformed import Transformed, transformed

from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define N 200
double moved[9], grid[N][N], other[N][N], out[N * N], in[N * N];
int rank, size, n = N;
/* procedures */
int main(int argc, char **argv)
{
    double sum = 0;
    /* first */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) grid[i][j] = other[i][j] = out[i * n + j] = in[i * n + j] = i + j * rank;
    /* before */
    MPI_Sendrecv(out, N * N, MPI_DOUBLE, (rank + 1) % size, 0, in, N * N, MPI_DOUBLE, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum += in[i * n + j] * grid[j][i] + other[i][j];
    printf("%d %a\\n", rank, sum);
    /* after */
    MPI_Finalize();
    /* last */
    return 0;
}
"""
WORK = """\
void work(int m)
{
    for (int i = 1; i < m; i++)
        for (int j = 1; j < m; j++) grid[i][j] = 0.5 * grid[i][j] + 0.25 * grid[i - 1][j];
}
"""
CALLED = re.compile(r"\blapwing_\w+_progress\(\);")


def program(**places: str) -> str:
    text = C
    for place, written in places.items():
        text = text.replace(f"/* {place} */", written)
    return text


def body(text: str, name: str = "work") -> str:
    """A procedure's text."""
    begins = re.search(rf"(?m)^[^\n;]*\b{name}\([^;\n]*\)\n\{{", text)
    assert begins is not None
    return text[begins.start() : text.index("\n}", begins.end())]


def why(result: Transformed) -> list[str]:
    return result.refused("MPI_Sendrecv(out", "progress-calls")


@pytest.mark.mpi
def test_work_that_is_called_lets_mpi_go_on(tmp_path: Path, thorough: bool) -> None:
    result = transformed(program(procedures=WORK, before="work(n);"), "a.c", tmp_path)
    assert len(CALLED.findall(body(result.text))) == 1
    assert body(result.text).index("grid[i - 1][j]") < body(result.text).index("_progress();")
    assert "progress-calls" in result.made("MPI_Sendrecv(out")
    assert not why(result)
    result.assert_behaves_as_before(thorough)


@pytest.mark.mpi
def test_before_and_after_mpi(tmp_path: Path, thorough: bool) -> None:
    text = program(procedures=WORK, first="work(n);", before="work(n);", last='work(n); printf("%a\\n", grid[7][9]);')
    result = transformed(text, "a.c", tmp_path)
    assert CALLED.search(body(result.text))
    result.assert_behaves_as_before(thorough, 2)


def test_through_another_procedure(tmp_path: Path) -> None:
    outer = "static double all(int m) { work(m); return grid[2][3]; }\n"
    text = transformed(program(procedures=WORK + outer, before="sum = all(n);"), "a.c", tmp_path).text
    assert len(CALLED.findall(body(text))) == 1


OP = """
static void add(void *a, void *b, int *k, MPI_Datatype *t)
{
    work(*k);
    for (int i = 0; i < *k; i++) ((double *)b)[i] += ((double *)a)[i];
}
"""
REDUCE = """
    MPI_Op op;
    double one = rank;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
    sum += one;
"""
COMPARE = "static int before(const void *a, const void *b) { work(3); return *(int *)a - *(int *)b; }\n"
SORT = "    int order[3] = {3, 1, 2};\n    qsort(order, 3, sizeof(int), before);\n"
MACRO = '#define ALL(k) _Pragma("omp parallel for") \\\n    for (int i = 0; i < k; i++) work(k)\n'


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("procedures", "more", "reason"),
    [
        (WORK + OP, {"after": REDUCE}, "may be called by others"),
        (WORK + COMPARE, {"after": SORT}, "may be called by others"),
        (WORK, {"after": "#pragma omp parallel for\n    for (int k = 0; k < 1; k++) work(3);"}, "threads run"),
        (f"{MACRO}static {WORK}", {"after": "ALL(2);"}, "threads run"),
        (f"inline {WORK}extern void work(int m);\n", {}, "may be called by others"),
        (f"__attribute__((const)) {WORK}", {}, "PURE"),
        (f"#pragma omp declare simd\n{WORK}", {}, "threads run"),
    ],
)
def test_where_not(procedures: str, more: dict[str, str], reason: str, tmp_path: Path, thorough: bool) -> None:
    result = transformed(program(procedures=procedures, before="work(n);", **more), "a.c", tmp_path)
    assert result.made("MPI_Sendrecv(out")
    assert not CALLED.search(body(result.text))
    assert reason in why(result)[0]
    if thorough or COMPARE in procedures:
        result.assert_behaves_as_before(thorough, 2)


RAW = """\
    MPI_Request r[2];
    MPI_Irecv(in, N * N, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, N * N, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &r[1]);
    work(n);
    for (int k = 0; k < 2; k++) MPI_Wait(&r[k], MPI_STATUS_IGNORE);
    for (int k = 0; k < 9; k++) moved[k] = k; /* a reason to wait later */
"""


def test_what_is_too_short(tmp_path: Path) -> None:
    short = "void work(int m)\n{\n    for (int i = 1; i < m; i++) grid[i][3] += 0.25 * grid[i - 1][3];\n}\n"
    result = transformed(program(procedures=short, after=RAW), "a.c", tmp_path)
    assert not CALLED.search(body(result.text))
    assert result.refused("MPI_Irecv", "progress-calls") == ["long loops hold other loops: work has none that does"]


def test_requests_of_an_array_are_waited_for_one_after_the_other(tmp_path: Path) -> None:
    later = WORK.replace("work", "later").replace("0.5 * grid[i][j]", "in[i * N + j]")
    text = transformed(program(procedures=WORK + later, after=f"{RAW}    later(n);"), "a.c", tmp_path).text
    assert CALLED.search(body(text))
    assert not CALLED.search(body(text, "later"))


def test_only_procedures_that_are_called_meanwhile(tmp_path: Path) -> None:
    idle = WORK.replace("work", "idle").replace("0.5 * grid[i][j]", "in[i * N + j]")
    text = program(procedures=WORK + idle, before="work(n);", after="idle(n);")
    text = transformed(text, "a.c", tmp_path).text
    assert CALLED.search(body(text))
    assert not CALLED.search(body(text, "idle"))


def test_of_a_program_that_others_may_call(tmp_path: Path) -> None:
    text = program(procedures=WORK, before="work(n);").replace(
        "int main(int argc, char **argv)", "int go(int argc, char **argv)"
    )
    result = transformed(text, "a.c", tmp_path)
    assert not CALLED.search(body(result.text))
    assert CALLED.search(body(transformed(text.replace("void work", "static void work"), "a.c", tmp_path / "own").text))


# ---- in other files -----------------------------------------------------------------------------------------------------

DECLARED = "extern double grid[200][200];\n"
MODULE = """\
module shapes
  implicit none (type, external)
  integer, parameter :: n = 200
  double precision :: grid(n, n)
contains
  subroutine work(m)
    integer, intent(in) :: m
    integer :: i, j
    do i = 2, m
      do j = 2, m
        grid(j, i) = 0.5d0 * grid(j, i) + 0.25d0 * grid(j, i - 1)
      end do
    end do
  end subroutine work
end module shapes
"""
FORTRAN = """\
program a
  use mpi
  use shapes
  implicit none
  double precision :: moved(9), sent(n * n), found(n * n)
  integer :: rank, ranks, ierr, m
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  m = n
  grid = rank + 1
  sent = 3 * rank
  call work(m)
  call MPI_Sendrecv(sent, n * n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 0, found, n * n, MPI_DOUBLE_PRECISION, &
                    mod(rank + ranks - 1, ranks), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  print '(i3,z17.16)', rank, sum(grid) + sum(found)
  call MPI_Finalize(ierr)
end program a
"""
MAIN = program(procedures="void work(int m);", before="work(n);")
LINKED = {
    "c": {"work.c": DECLARED + WORK, "a.c": MAIN},
    "c++": {"work.cpp": f"namespace {{ int unused; }}\n{DECLARED}{WORK}", "a.cpp": MAIN},
    "fortran": {"shapes.f90": MODULE, "a.f90": FORTRAN},
}


def test_in_another_folder(tmp_path: Path) -> None:
    sources = write({"work.c": DECLARED + WORK, "a.c": MAIN}, tmp_path / "before")
    common = tmp_path / "common"
    common.mkdir()
    shared = sources[0].rename(common / "work.c")
    outcome = rewrite(read_c([shared, sources[1]]), Options())
    assert [change.path for change in outcome.changes] == [sources[1]]


@pytest.mark.mpi
@pytest.mark.parametrize("language", LINKED)
def test_in_another_file(language: str, tmp_path: Path, thorough: bool) -> None:
    sources = write(LINKED[language], tmp_path / "before")
    required(language_of(sources[0]))
    result = overlap(sources, tmp_path / "after")
    assert result.status == 0, result.messages
    text = result.sources[0].read_text()
    called = text.index("lapwing_a_progress()", text.index("grid", text.index("work(")))
    assert "MPI" not in text
    assert "progress" not in text[called + 30 :]
    actions = [a["motion"] for c in json.loads(result.report)["communications"] for a in c["actions"]]
    assert "progress-calls" in actions
    original = Reference(sources, ("-lstdc++",) if language == "c++" else ())
    original.assert_unchanged_by(result.sources, thorough, 2)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "head", [pytest.param("recursive subroutine work(m)", marks=pytest.mark.long), "subroutine work(m) bind(c)"]
)
def test_fortran(head: str, tmp_path: Path, thorough: bool) -> None:
    module = MODULE.replace("  subroutine work(m)", f"  {head}", 1)
    result = transformed(module.replace(" (type, external)", "") + FORTRAN, "a.f90", tmp_path)
    helped = "call lapwing_a_progress()" in result.text.split("end module")[0]
    assert helped == ("bind" not in head)
    result.assert_behaves_as_before(thorough, 2)


PURE = """\
  double precision pure &  ! a function
  function work(m) result(total)
    integer, intent(in) :: m
    integer :: i, j
    total = 0
    do i = 1, m
      do j = 1, m
        total = 0.5d0 * total + grid(j, i)
      end do
    end do
  end function work
"""
EXCHANGE = """\
  call MPI_Irecv(found, n * n, MPI_DOUBLE_PRECISION, mod(rank + ranks - 1, ranks), 1, MPI_COMM_WORLD, request, ierr)
  call MPI_Send(sent, n * n, MPI_DOUBLE_PRECISION, mod(rank + 1, ranks), 1, MPI_COMM_WORLD, ierr)
  total = work(m)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  moved = 1 ! a reason to wait later
"""


@pytest.mark.mpi
def test_a_pure_function(tmp_path: Path, thorough: bool) -> None:
    module = f"{MODULE[: MODULE.index('  subroutine')]}{PURE}end module shapes\n".replace(" (type, external)", "")
    main = FORTRAN.replace("  call work(m)\n", "").replace("sum(found)", "sum(found) + total")
    main = main.replace("ierr, m\n", "ierr, m, request\n  double precision :: total\n")
    main = main.replace("  print", f"{EXCHANGE}  print")
    result = transformed(module + main, "a.f90", tmp_path)
    assert "call lapwing_a_progress()" not in result.text
    assert "PURE" in result.refused("call MPI_Irecv", "progress-calls")[0]
    result.assert_behaves_as_before(thorough, 2)


OPERATION = """\
contains
  subroutine add(a, b, length, kind)
    integer :: length, kind
    double precision :: a(length), b(length)
    call work(length)
    b = b + a
  end subroutine add
"""


@pytest.mark.mpi
def test_an_operations_function_in_fortran(tmp_path: Path, thorough: bool) -> None:
    main = FORTRAN.replace("end program", f"{OPERATION}end program").replace("ierr, m\n", "ierr, m, op\n")
    reduced = "  call MPI_Op_create(add, .true., op, ierr)\n"
    reduced += "  call MPI_Allreduce(MPI_IN_PLACE, sent, 3, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD, ierr)\n"
    main = main.replace("  print", f"{reduced}  print").replace("sum(found)", "sum(found) + sum(sent)")
    result = transformed(MODULE.replace(" (type, external)", "") + main, "a.f90", tmp_path)
    assert "call lapwing_a_progress()" not in result.text.split("end module")[0]
    result.assert_behaves_as_before(thorough, 2)


OPERATOR = """\
  interface operator(.smoothed.)
    module procedure &
      smooth
  end interface
contains
  function smooth(a, b) result(c)
    double precision, intent(in) :: a(:, :), b
    double precision :: c(n, n)
    integer :: i, j, m
    m = size(a, 1)
    do j = 1, m
      do i = 1, m
        c(i, j) = b * a(i, j)
      end do
    end do
  end function smooth
"""
REGION = """\
  !$omp parallel do private(found)
  do m = 1, 4
    grid(:, m) = sum(grid .smoothed. 0.5d0)
  end do
"""


def test_a_region_for_threads_calls_an_operators_function(tmp_path: Path) -> None:
    module = MODULE.replace("contains\n", OPERATOR, 1).replace(" (type, external)", "")
    main = FORTRAN.replace("  call work(m)\n", "").replace("ierr, m\n", "ierr, m, request\n")
    exchange = EXCHANGE.replace("total = work(m)", "grid = smooth(grid, 0.25d0)")
    text = module + main.replace("  print", f"{exchange}{REGION}  print")
    result = transformed(text, "a.f90", tmp_path)
    assert "smooth may be called by others" in result.refused("call MPI_Irecv", "progress-calls")[0]
    without = transformed(
        text.replace("interface operator(.smoothed.)", "interface other").replace(REGION, ""), "a.f90", tmp_path / "n"
    )
    assert "call lapwing_a_progress()" in without.text.split("end module")[0]
