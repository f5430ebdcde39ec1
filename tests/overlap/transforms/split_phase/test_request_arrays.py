"""Exchanges with an array of requests that are a procedure of their own: divided, so that callers' work hides them."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import Transformed, transformed
from everyday import everyday

from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#include <stdio.h>
#define N 60
static double u[N + 2][N + 2], v[N + 2][N + 2];
static int up, down;

static void exchange(void)
{
    MPI_Request r[4];
    MPI_Irecv(&u[0][1], N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(&u[N + 1][1], N, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(&u[1][1], N, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(&u[N][1], N, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void relax(void)
{
    int i, j;
    for (i = 1; i <= N; i++)
        for (j = 1; j <= N; j++) v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
}

static void copy_back(void)
{
    int i, j;
    for (i = 1; i <= N; i++)
        for (j = 1; j <= N; j++) u[i][j] = v[i][j];
}

int main(int argc, char **argv)
{
    int rank, size, i, j, step;
    double sum = 0.0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    for (i = 0; i < N + 2; i++)
        for (j = 0; j < N + 2; j++) u[i][j] = rank + i * j % 17;
    for (step = 0; step < 10; step++) {
        exchange();
        relax();
        copy_back();
    }
    for (i = 1; i <= N; i++)
        for (j = 1; j <= N; j++) sum = 0.5 * sum + u[i][j];
    printf("%d %a\\n", rank, sum);
    MPI_Finalize();
    return 0;
}
"""
FORTRAN = """\
module field
  implicit none
  integer, parameter :: n = 50
  double precision :: u(n, 0:n+1), v(n, 0:n+1)
  integer :: left, right
end module field

subroutine exchange
  @USE@
  use field
  implicit none
  @INCLUDE@
  @REQUESTS@ :: r(4)
  integer :: ierr
  call MPI_Irecv(u(1, 0), n, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, r(1), ierr)
  call MPI_Irecv(u(1, n + 1), n, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, r(2), ierr)
  call MPI_Isend(u(1, 1), n, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, r(3), ierr)
  call MPI_Isend(u(1, n), n, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, r(4), ierr)
  call MPI_Waitall(4, r, MPI_STATUSES_IGNORE, ierr)
end subroutine exchange

subroutine relax
  use field
  implicit none
  integer :: i, j
  do j = 1, n
    do i = 2, n - 1
      v(i, j) = 0.25d0 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
    end do
  end do
end subroutine relax

program p
  @USE@
  use field
  implicit none
  @INCLUDE@
  integer :: rank, size, i, j, step, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  left = MPI_PROC_NULL
  right = MPI_PROC_NULL
  if (rank > 0) left = rank - 1
  if (rank < size - 1) right = rank + 1
  do j = 0, n + 1
    do i = 1, n
      u(i, j) = rank + mod(i * j, 17)
      v(i, j) = u(i, j)
    end do
  end do
  do step = 1, 8
    call exchange
    call relax
    do j = 1, n
      do i = 1, n
        u(i, j) = v(i, j)
      end do
    end do
  end do
  print '(i3,z17.16)', rank, sum(u(:, 1:n))
  call MPI_Finalize(ierr)
end program p
"""


def divided(result: Transformed) -> bool:
    return "exchange_last" in result.text


@pytest.mark.mpi
def test_c(tmp_path: Path, thorough: bool) -> None:
    result = transformed(C, "a.c", tmp_path, Options(progress_calls=False))
    loop = result.text[result.text.index("step < 10") :]
    order = [loop.index(f"{call}();") for call in ("exchange_first", "relax_first", "exchange_last", "relax_last")]
    assert order == sorted(order)
    assert "split-loop" in result.made("MPI_Irecv(&u[0][1]")
    result.assert_behaves_as_before(thorough)


@pytest.mark.mpi
@pytest.mark.parametrize("interface", everyday(["mpif.h", "mpi", "mpi_f08"], ["mpi"]))
def test_fortran(interface: str, tmp_path: Path, thorough: bool) -> None:
    text = FORTRAN.replace("@USE@", "" if interface == "mpif.h" else f"use {interface}")
    text = text.replace("@INCLUDE@", "include 'mpif.h'" if interface == "mpif.h" else "")
    text = text.replace("@REQUESTS@", "type(MPI_Request)" if interface == "mpi_f08" else "integer")
    result = transformed(text, "a.f90", tmp_path)
    loop = result.text[result.text.index("do step = 1, 8") :]
    assert loop.index("call exchange_first") < loop.index("call relax_first") < loop.index("call exchange_last")
    result.assert_behaves_as_before(thorough)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("&r[3]", "&r[2]"),  # a request twice
        ("MPI_Waitall(4", "MPI_Waitall(3"),  # one is not waited for
        ("MPI_STATUSES_IGNORE", "statuses"),  # somebody may look at them
        ("    MPI_Waitall(4", "    seen += r[0] != r[1];\n    MPI_Waitall(4"),  # another use
        ("    MPI_Isend(&u[1][1]", "    if (up >= 0) MPI_Isend(&u[1][1]"),  # started under a condition
        ("    MPI_Request r[4];\n", "    static MPI_Request r[4];\n"),  # others could wait for them in the next call
        ("u[0][1], N, MPI_DOUBLE, up", "u[0][1], N, MPI_DOUBLE, MPI_ANY_SOURCE"),
        ("    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);\n", "    up += MPI_Waitall(4, r, MPI_STATUSES_IGNORE);\n"),
    ],
)  # fmt: skip
def test_refused(old: str, new: str, tmp_path: Path) -> None:
    assert C.count(old) == 1 or old == "MPI_STATUSES_IGNORE"
    text = C.replace(old, new, 1).replace(
        "static int up, down;", "static int up, down, seen;\nstatic MPI_Status statuses[4];"
    )
    assert not divided(transformed(text, "a.c", tmp_path))


FOUND = (
    ("    MPI_Request r[4];\n", "    MPI_Request r[4];\n    MPI_Status found[4];\n"),
    ("MPI_STATUSES_IGNORE", "found"),
)


@pytest.mark.parametrize(("use", "unread"), [("", True), ("    down += found[0].MPI_ERROR;\n", False)])
def test_statuses_that_nobody_looks_at(use: str, unread: bool, tmp_path: Path) -> None:
    text = C
    for old, new in (*FOUND, ("r, found);\n", f"r, found);\n{use}")):
        text = text.replace(old, new, 1)
    assert divided(transformed(text, "a.c", tmp_path)) == unread


def test_calls_go_back_where_no_work_can_hide_them(tmp_path: Path) -> None:
    text = C.replace("        relax();\n", "        relax();\n".replace("relax", "copy_back"))
    result = transformed(text.replace("u[i][j] = v[i][j]", "u[i][j] = u[i - 1][j] + u[i + 1][j]"), "a.c", tmp_path)
    assert result.text[result.text.index("static void exchange") : result.text.index("static void relax")] in text


@pytest.mark.mpi
def test_static_functions_that_nobody_calls_any_more_go(tmp_path: Path, thorough: bool) -> None:
    result = transformed(C, "a.c", tmp_path)
    assert "static void exchange(void)\n{" not in result.text
    assert "static void relax(void)\n{" not in result.text
    kept = transformed(C.replace("static int up", "static void relax(void);\nstatic int up"), "b.c", tmp_path / "kept")
    assert "static void relax(void)\n{" in kept.text
    kept.assert_behaves_as_before(thorough, 2)
