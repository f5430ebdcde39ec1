"""What rewritten programs look like: no declarations that nothing needs, braces in the file's style, bounds in one number."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from _running import required
from _transformed import transformed
from limits import scaled

from lapwing.overlap.languages.fortran.writing.unused_declarations import without_unused
from lapwing.overlap.source.spans import Source

pytestmark = pytest.mark.usefixtures("own_header")

PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static double u[62][600], v[62][600];
static int rank, size, n = 60;

static void exchange(void)
{
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, here = rank; /* a neighbour */
    int down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Request r[4]; MPI_Status st[4];
    MPI_Irecv(u[0], 600, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(u[here - here + n + 1], 600, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(u[1], 600, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(u[n], 600, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, st);
}

int main(int argc, char **argv)
{
    double sum = 0.0, *copy = malloc(600 * sizeof(double));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 600; i++) u[1][i] = u[n][i] = copy[i] = rank + i;
    exchange();
    for (int i = 1; i <= n; i++)
        for (int j = 1; j < 599; j++) v[i][j] = u[i - 1][j] + u[i + 1][j] + copy[j];
    for (int i = 1; i <= n; i++) sum += v[i][3];
    printf("%d %a\\n", rank, sum);
    free(copy);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return transformed(PROGRAM, "program.c", tmp_path_factory.mktemp("readable")).text


def test_outlined_parts_declare_what_they_name(text: str) -> None:
    first, last = text.split("static void exchange_last(void)")
    assert "r[4]" not in text
    assert "st[4]" not in text
    assert "int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, here = rank; /* a neighbour */\n    int down" in first
    assert last.startswith("\n{\n    /* lapwing: ")


def test_nothing_is_declared_or_included_twice(text: str) -> None:
    assert "exchange_first(void);" not in text
    assert text.count("#include <stdlib.h>") == 1


def test_loop_gets_braces_and_whole_bounds(text: str) -> None:
    assert "    for (int i = 2; i <= n - 1; i++) {\n        for (int j = 1; j < 599; j++) v" in text
    assert "    for (int i = 1; i <= n; i++) {\n        if (i >= 2 && i <= n - 1) { i = n - 1; continue; }\n" in text
    assert "\n    {\n" not in text


def test_braces_on_lines_of_their_own(tmp_path: Path) -> None:
    alone = PROGRAM.replace("i < 600; i++)", "i < 600; i++)\n    {\n       ").replace("rank + i;", "rank + i;\n    }")
    text = transformed(alone, "program.c", tmp_path).text
    assert "    for (int i = 2; i <= n - 1; i++)\n    {\n        for (int j = 1; j < 599; j++) v" in text


def test_loops_are_counted(tmp_path: Path) -> None:
    assert transformed(PROGRAM, "program.c", tmp_path).outcome.made()["split-loop"] == 1


SENDRECV = """\
    MPI_Sendrecv(u[1], 600, MPI_DOUBLE, up, 2, u[n + 1], 600, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
"""


@pytest.mark.mpi
@pytest.mark.parametrize("blocking", [False, True])
def test_compilers_have_nothing_to_say(tmp_path: Path, blocking: bool, thorough: bool) -> None:
    found = required("c")
    body = PROGRAM[PROGRAM.index("    MPI_Request r[4]") : PROGRAM.index("}\n\nint main")]
    program = PROGRAM.replace(body, SENDRECV).replace(", here = rank", "") if blocking else PROGRAM
    result = transformed(program, "program.c", tmp_path)
    assert "exchange_last" in result.text
    assert ("_drain(void)" in result.text) is blocking
    strict = ("-Wall", "-Wextra", "-Wredundant-decls", "-Wmissing-prototypes", "-Werror")
    command = [*found.compile, *strict, "-c", str(result.after), "-o", str(tmp_path / "program.o")]
    subprocess.run(command, check=True, timeout=scaled(60))
    result.assert_behaves_as_before(thorough)


EFFECTS = """\
    int third = 3, fourth = third;
    volatile int seen = 1;
"""


def test_declarations_that_do_something_stay(tmp_path: Path) -> None:
    more = PROGRAM.replace("    MPI_Request r[4]", f"{EFFECTS}    MPI_Request r[4]")
    text = transformed(more, "program.c", tmp_path).text
    assert "volatile int seen = 1;" in text
    assert "third" not in text


def test_what_a_macro_names_stays(tmp_path: Path) -> None:
    more = PROGRAM.replace("static double u", "#define PEER (here + 0 > 0 ? up : up)\nstatic double u")
    more = more.replace("u[here - here + n + 1]", "u[n + 1]").replace("MPI_DOUBLE, up, 1,", "MPI_DOUBLE, PEER, 1,")
    first = transformed(more, "program.c", tmp_path).text.split("static void exchange_last(void)")[0]
    assert "here = rank; /* a neighbour */" in first


@pytest.mark.parametrize("macro", ["#define LENGTH sizeof(here)", "#define NAMED(x) he##x"])
def test_what_a_macro_may_name_stays(macro: str, tmp_path: Path) -> None:
    text = transformed(PROGRAM.replace("static double u", f"{macro}\nstatic double u"), "program.c", tmp_path).text
    for half in ("first", "last"):
        assert "here = rank; /* a neighbour */" in text.split(f"static void exchange_{half}(void)")[1].split("\n}")[0]


def test_own_requests_that_became_slots_go(tmp_path: Path) -> None:
    calls = PROGRAM[PROGRAM.index("    MPI_Irecv(u[0]") : PROGRAM.index("}\n\nint main")]
    own = """\
    MPI_Request r1, s1;
    MPI_Irecv(u[0], 600, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &r1);
    MPI_Isend(u[n], 600, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, &s1);
    MPI_Wait(&r1, MPI_STATUS_IGNORE);
    MPI_Wait(&s1, MPI_STATUS_IGNORE);
"""
    program = PROGRAM.replace(calls, "").replace("    exchange();\n", own)
    text = transformed(program, "program.c", tmp_path).text
    assert "lapwing_post(" in text
    assert "    MPI_Request s1;\n" in text
    assert "here = rank;" in text  # nothing is made of a function that did not change


FORTRAN = """\
subroutine halo_last(x, n)
{declared}
  x(n) = i
end subroutine
"""


@pytest.mark.parametrize(
    ("declared", "left"),
    [
        ("  integer :: i, j ! turns\n  real(8) :: x(n)", "  integer :: i ! turns\n  real(8) :: x(n)"),
        ("  integer st(3, size(x)), i", "  integer i"),
        ("  integer :: m\n  real, dimension(m) :: w", ""),
        ("  integer, save :: j", None),
        ("  integer :: j = 3", None),
        ("  integer :: i, &\n    j", None),
        ("  include 'shapes.h'\n  integer :: j", None),
        ("  type(grid) :: g\n  external f", "  external f"),
        ("  type pair\n  integer :: a\n  end type\n  type(pair) :: x(4)", None),
        ("  type, bind(c) :: pair\n  integer :: a\n  end type\n  type(pair) :: x(4)", None),
    ],
)
def test_fortran_declarations(declared: str, left: str | None) -> None:
    text = FORTRAN.format(declared=declared)
    expected = text if left is None else FORTRAN.format(declared=left).replace("\n\n", "\n")
    assert without_unused(text, Source(Path("a.f90"), text.encode(), "fortran", "free")) == expected


ERRORS = """\
program swap
  use mpi
  integer :: n, up, down, i, ierr, st(MPI_STATUS_SIZE)
  double precision :: a(500), b(500), c(500), d(500), e(500)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, n, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, i, ierr)
  up = mod(n + 1, i)
  down = mod(n + i - 1, i)
  a = n
  c = n + i
  n = 500
  call mpi_sendrecv(a, n, MPI_DOUBLE_PRECISION, up, 1, b, n, MPI_DOUBLE_PRECISION, down, 1, MPI_COMM_WORLD, st, ierr)
  call mpi_sendrecv(c, n, MPI_DOUBLE_PRECISION, up, 2, d, n, MPI_DOUBLE_PRECISION, down, 2, MPI_COMM_WORLD, st, ierr)
  do i = 1, 500
    e(i) = 3 * i
  end do
  print *, up, sum(b + d + e)
  call mpi_finalize(ierr)
end program
"""


def test_error_code_is_set_once(tmp_path: Path) -> None:
    lines = transformed(ERRORS, "swap.f90", tmp_path).text.splitlines()
    places = [n for n, line in enumerate(lines) if line.strip() == "ierr = 0"]
    assert places
    assert all("lapwing" not in lines[n + 1] for n in places)
