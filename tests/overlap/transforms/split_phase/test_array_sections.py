"""Fortran: messages whose buffers are array sections, or arrays that may have gaps."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import transformed

pytestmark = pytest.mark.usefixtures("own_header")

PROGRAM = """\
program main
  use @mpi@
  implicit none
  integer, parameter :: nx = 24, ny = 20
  double precision, allocatable :: u(:, :), v(:, :)
  integer :: me, np, left, right, i, j, step, n, order(nx + 2)
  call MPI_Init(i)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, i)
  call MPI_Comm_size(MPI_COMM_WORLD, np, i)
  left = merge(me - 1, MPI_PROC_NULL, me > 0)
  right = merge(me + 1, MPI_PROC_NULL, me < np - 1)
  allocate(u(0:nx + 1, 0:ny + 1), v(0:nx + 1, 0:ny + 1))
  n = ny
  order = [(nx + 1 - i, i = 0, nx + 1)]
  do j = 0, ny + 1
    do i = 0, nx + 1
      u(i, j) = mod(i * 7 + j * 11 + me, 37)
    end do
  end do
  v = u
  do step = 1, 5
    call turn(u)
  end do
  print *, me, sum(u), sum(v)
  call MPI_Finalize(i)
contains
  subroutine turn(u)
    double precision@attribute@ :: u(0:, 0:)
    integer :: error, i, j
    call MPI_Sendrecv(@first@, @count@, MPI_DOUBLE_PRECISION, left, 1, &
                      @above@, @count@, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Sendrecv(@last@, @count@, MPI_DOUBLE_PRECISION, right, 2, &
                      @below@, @count@, MPI_DOUBLE_PRECISION, left, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    do j = 1, n
      do i = 1, nx
        v(i, j) = 0.25d0 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
      end do
    end do
    do j = 1, n
      do i = 1, nx
        u(i, j) = v(i, j)
      end do
    end do
  end subroutine
end program
"""
# What is filled in: (the count, what is sent and received, first to the left)
BUFFERS = {
    "columns": ("nx + 2", "u(:, 1)", "u(:, n + 1)", "u(:, n)", "u(:, 0)"),
    "rows": ("ny", "u(1, 1:n)", "u(nx + 1, 1:n)", "u(nx, 1:n)", "u(0, 1:n)"),
    "blocks": ("2 * nx", "u(1:nx, 1:2)", "u(1:nx, n:n + 1)", "u(1:nx, n - 1:n)", "u(1:nx, 0:1)"),
    "every other element": ("n / 2", "u(1, 1:n:2)", "u(nx + 1, 1:n:2)", "u(nx, 2:n:2)", "u(0, 2:n:2)"),
    "more room than comes": ("n / 2", "u(1, 1:n)", "u(nx + 1, 1:n)", "u(nx, 1:n)", "u(0, 1:n)"),
}
VECTOR = ("n", "u(order(1:n), 1)", "u(:, n + 1)", "u(:, n)", "u(:, 0)")


def program(buffers: tuple[str, ...], attribute: str = "", interface: str = "mpi") -> str:
    text = PROGRAM.replace("@mpi@", interface).replace("@attribute@", attribute)
    for name, value in zip(("count", "first", "above", "last", "below"), buffers, strict=True):
        text = text.replace(f"@{name}@", value)
    return text


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("name", "interface"),
    [
        *((name, "mpi") for name in ("columns", "every other element")),
        *(pytest.param(name, "mpi", marks=pytest.mark.long) for name in ("rows", "blocks", "more room than comes")),
        *(pytest.param(name, "mpi_f08", marks=pytest.mark.long) for name in BUFFERS),
    ],
)
def test_travel_in_copies(name: str, interface: str, tmp_path: Path, thorough: bool) -> None:
    result = transformed(program(BUFFERS[name], interface=interface), "program.f90", tmp_path)
    for line in ("MPI_Sendrecv(" + BUFFERS[name][1], "MPI_Sendrecv(" + BUFFERS[name][3]):
        assert "nonblocking" in result.made(line)
    result.assert_behaves_as_before(thorough)


def test_interior_does_not_wait_for_the_columns(tmp_path: Path) -> None:
    result = transformed(program(BUFFERS["columns"]), "program.f90", tmp_path)
    assert "split-loop" in result.made("MPI_Sendrecv(u(:, 1)")


@pytest.mark.parametrize(("buffers", "attribute"), [(VECTOR, ""), (BUFFERS["columns"], ", pointer")])
def test_stay(buffers: tuple[str, ...], attribute: str, tmp_path: Path) -> None:
    shape = "u(:, :)" if attribute else "u(0:, 0:)"
    text = program(buffers, attribute).replace("u(0:, 0:)", shape)
    result = transformed(text, "program.f90", tmp_path)
    assert any("contiguous memory" in reason for reason in result.refused("MPI_Sendrecv(" + buffers[1]))
