"""Progress calls: in long loops that run while something is under way, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import transformed

from lapwing.overlap.report import Options

C = """\
#include <mpi.h>
#include <stdio.h>

#define N 400

static double grid[N][N], out[N * N], in[N * N], sum;
static int rank, size, n = N;
/* before main */

int main(int argc, char **argv)
{
    int i, j, k;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 9 ? 5 : N;
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) grid[i][j] = out[i * n + j] = in[i * n + j] = i + j * rank;
    MPI_Irecv(in, N * N, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, N * N, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    WORK
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < n; i++)
        for (j = 0; j < n; j++) sum += in[i * n + j] * grid[j][i];
    printf("%d %a\\n", rank, sum);
    MPI_Finalize();
    return 0;
}
"""
NEST = "for (i = 1; i < n; i++)\n        for (j = 1; j < n; j++) grid[i][j] = 0.5 * grid[i][j] + 0.25 * grid[i - 1][j];"
CALL = "lapwing_a_progress();"


def changed(work: str, folder: Path, before: str = "", options: Options | None = None) -> str:
    """The body of main."""
    text = C.replace("WORK", work).replace("/* before main */", before)
    return transformed(text, "a.c", folder, options).text.split("int main")[1]


@pytest.mark.mpi
def test_a_long_loop_lets_mpi_work(tmp_path: Path) -> None:
    result = transformed(C.replace("WORK", NEST), "a.c", tmp_path)
    main = result.text.split("int main")[1]
    assert main.count(CALL) == 1
    assert main.index("MPI_Isend") < main.index(CALL) < main.index("MPI_Waitall")
    assert "progress-calls" in result.made("MPI_Irecv")
    assert "progress-calls" in result.made("MPI_Isend")
    result.assert_behaves_as_before(tmp_path)


@pytest.mark.parametrize(
    ("work", "before"),
    [
        # Loops in braces, without, of any kind, and with work that is called.
        ("for (i = 1; i < n; i++) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n    }", ""),
        ("i = 0;\n    while (i < n) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n        i++;\n    }", ""),
        (
            "for (i = 0; i < n; i++) row(i);",
            "static void row(int i) { for (int j = 0; j < N; j++) grid[i][j] *= 0.5; }",
        ),
        (
            "for (k = 0; k < 3; k++)\n        for (i = 1; i < n; i++)\n            for (j = 1; j < n; j++) grid[i][j] *= 0.5;",
            "",
        ),
        (f"if (size > 1) {{\n    {NEST}\n    }}", ""),
    ],
)
def test_where(work: str, before: str, tmp_path: Path) -> None:
    assert changed(work, tmp_path, before).count(CALL) == 1


def test_of_few_outer_turns_the_loop_inside_calls(tmp_path: Path) -> None:
    work = "for (k = 0; k < 3; k++)\n        for (i = 1; i < n; i++)\n            for (j = 1; j < n; j++) grid[i][j] *= 0.5;"
    body = changed(work, tmp_path)
    assert body.index("for (j = 1; j < n; j++) grid[i][j] *= 0.5;") < body.index(CALL)
    assert body[body.index(CALL) :].count("}") >= 2


@pytest.mark.parametrize(
    ("work", "before"),
    [
        ("for (i = 1; i < n; i++) grid[i][0] = 0.5 * grid[i - 1][0];", ""),  # vectorised, and over at once
        ("for (i = 0; i < n; i++)\n        for (j = 0; j < 3; j++) grid[i][j] *= 0.5;", ""),  # turns that are too short
        (f"#pragma omp parallel for\n    {NEST}", ""),  # other threads would call MPI
        (f"MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    {NEST.replace('0.5 *', 'in[j] +')}", ""),  # nothing is under way
        ("for (i = 1; i < n; i++) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n        MPI_Test(requests, &k, "
         "MPI_STATUS_IGNORE);\n    }", ""),  # it calls MPI already
        ("for (i = 1; i < n; i++) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n        unseen();\n    }",
         "void unseen(void);"),
    ],
)  # fmt: skip
def test_where_not(work: str, before: str, tmp_path: Path) -> None:
    assert CALL not in changed(work, tmp_path, before)


def test_only_while_something_is_under_way(tmp_path: Path) -> None:
    deep = "for (k = 0; k < n; k++)\n    for (i = 0; i < n; i++)\n        for (j = 0; j < n; j++) in[i * n + j] += grid[i][j];"
    text = C.replace("WORK", NEST)
    for place in ("    MPI_Irecv", '    printf("'):
        text = text.replace(place, f"    {deep}\n{place}")
    body = transformed(text, "a.c", tmp_path).text.split("int main")[1]
    assert CALL in body
    assert CALL not in body[: body.index("MPI_Irecv")]
    assert CALL not in body[body.index("MPI_Waitall") :]


@pytest.mark.parametrize("options", [Options(progress_calls=False), Options(motions=frozenset({"nonblocking"}))])
def test_switched_off(options: Options, tmp_path: Path) -> None:
    assert CALL not in changed(NEST, tmp_path, options=options)


def test_between_the_parts_of_a_call_that_was_taken_apart(tmp_path: Path) -> None:
    text = C.replace("WORK", f"MPI_Bcast(out, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);\n    {NEST}\n    sum += out[0];")
    for call in ("MPI_Irecv", "MPI_Isend", "MPI_Waitall"):
        text = "\n".join(line for line in text.splitlines() if call not in line) + "\n"
    result = transformed(text, "a.c", tmp_path)
    body = result.text.split("int main")[1]
    assert body.index("MPI_Ibcast") < body.index(CALL) < body.index("MPI_Wait(")
    assert "progress-calls" in result.made("MPI_Bcast")


FORTRAN = """\
program p
  USE
  implicit none
  INCLUDE
  integer, parameter :: n = 300
  real(8) :: grid(n, n), out(n), in(n)
  integer :: rank, np, i, j, ierr
  REQUESTS
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  do i = 1, n
    grid(:, i) = i + rank
    out(i) = i * rank
  end do
  call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, mod(rank + np - 1, np), 0, MPI_COMM_WORLD, one, ierr)
  call MPI_Isend(out, n, MPI_DOUBLE_PRECISION, mod(rank + 1, np), 0, MPI_COMM_WORLD, two, ierr)
  do 10 i = 2, n
    do j = 2, n
      grid(j, i) = 0.5d0 * grid(j, i) + 0.25d0 * grid(j - 1, i - 1)
    end do
10 continue
  call MPI_Wait(one, MPI_STATUS_IGNORE, ierr)
  call MPI_Wait(two, MPI_STATUS_IGNORE, ierr)
  print '(i3,z17.16)', rank, sum(grid) + sum(in)
  call MPI_Finalize(ierr)
end program p
"""


@pytest.mark.mpi
@pytest.mark.parametrize("interface", ["mpif.h", "mpi", "mpi_f08"])
def test_fortran(interface: str, tmp_path: Path) -> None:
    text = FORTRAN.replace("USE", "" if interface == "mpif.h" else f"use {interface}")
    text = text.replace("INCLUDE", "include 'mpif.h'" if interface == "mpif.h" else "")
    text = text.replace(
        "REQUESTS", "type(MPI_Request) :: one, two" if interface == "mpi_f08" else "integer :: one, two"
    )
    result = transformed(text, "a.f90", tmp_path)
    main = result.text.split("end program")[0]
    assert main.count("call lapwing_a_progress()") == 1
    assert main.index("call lapwing_a_progress()") < main.index("10 continue")
    result.assert_behaves_as_before(tmp_path, (2, 3))


@pytest.mark.mpi
@pytest.mark.parametrize(("last", "calls"), [("   10 continue", 1), ("   10 grid(1, i) = i", 0)])
def test_a_labelled_statement_ends_a_loop(last: str, calls: int, tmp_path: Path) -> None:
    text = FORTRAN.replace("USE", "").replace("INCLUDE", "include 'mpif.h'").replace("REQUESTS", "integer :: one, two")
    lines = [line if line.startswith("10") else f"      {line.strip()}" for line in text.splitlines()]
    text = "\n".join(last if line.startswith("10") else line for line in lines) + "\n"
    text = text.replace(", mod(rank + np - 1", ",\n     & mod(rank + np - 1").replace(
        ", mod(rank + 1", ",\n     & mod(rank + 1"
    )
    result = transformed(text, "a.f", tmp_path)
    main = result.text.split("end program")[0]
    assert main.count("call lapwing_a_progress()") == calls
    assert "call lapwing_a_progress()" not in main[main.index(last) :]
    result.assert_behaves_as_before(tmp_path, (2,))


@pytest.mark.mpi
def test_the_interior_of_a_nest_lets_mpi_work(tmp_path: Path) -> None:
    text = (
        C.replace("    WORK\n", "")
        .replace("MPI_Irecv(in", "MPI_Irecv(grid[0]")
        .replace("N * N, MPI_DOUBLE", "N, MPI_DOUBLE")
    )
    waits = "    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n"
    nest = "    for (i = 0; i < N; i++)\n        for (j = 0; j < N; j++) next[i][j] = 0.5 * grid[i][j];\n    sum = next[0][7];\n"
    text = text.replace("/* before main */", "static double next[N][N];")
    result = transformed(text.replace(waits, waits + nest), "a.c", tmp_path)
    main = result.text.split("int main")[1]
    assert main.index("need nothing from other ranks") < main.index(CALL) < main.index("MPI_Waitall")
    result.assert_behaves_as_before(tmp_path, (2, 3))


def test_a_procedure_that_is_called_meanwhile_lets_mpi_work(tmp_path: Path) -> None:
    """The exchange starts in one procedure, the work that hides it is half of another."""
    text = (Path(__file__).parent / "examples" / "stencil_3d.c").read_text()
    after = transformed(text, "a.c", tmp_path).text
    half = after[after.index("static void relax_first(void) {") :]
    assert CALL in half[: half.index("\n}\n")]
    assert CALL not in half[half.index("\n}\n") :]


def test_a_loop_of_several_lines_stays_where_it_was(tmp_path: Path) -> None:
    """Compilers warn of what stands behind a loop without braces as if it belonged to it."""
    work = "for (k = 0; k < n; k++)\n        for (i = 0; i < n; i++)\n            for (j = 0; j < n; j++)\n"
    work += "                grid[i][j] += 1;"
    text = transformed(C.replace("WORK", work), "program.c", tmp_path).text
    assert "        {\n        for (i = 0; i < n; i++)\n            for (j" in text
    assert "\n        lapwing_program_progress();\n        }\n" in text
