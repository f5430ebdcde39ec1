"""What gains nothing by being taken apart stays as it is, also beside something that gains."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import transformed

PROGRAM = """\
program main
  use mpi
  implicit none
  double precision :: a(400), b(400), c(400), d(400)
  integer :: me, np, next, prev, i, step, request, error, status(MPI_STATUS_SIZE)
  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, me, error)
  call mpi_comm_size(MPI_COMM_WORLD, np, error)
  next = mod(me + 1, np)
  prev = mod(me + np - 1, np)
  a = me
  b = 0
  c = 1
  d = 2
  do step = 1, 3
    @at_once@
    do i = 1, 400
      a(i) = 0.5d0 * b(i) + step
    end do
    @later@
  end do
  print *, me, sum(a), sum(b), sum(c), sum(d)
  call mpi_finalize(error)
end program
"""
SENDRECV = """\
call mpi_sendrecv(a, 400, MPI_DOUBLE_PRECISION, next, 1, b, 400, MPI_DOUBLE_PRECISION, prev, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
"""
PAIR = """\
call mpi_irecv(b, 400, MPI_DOUBLE_PRECISION, prev, 2, MPI_COMM_WORLD, request, error)
    call mpi_send(a, 4, MPI_DOUBLE_PRECISION, next, 2, MPI_COMM_WORLD, error)
    call mpi_wait(request, status, error)
"""
GAINS = """\
call mpi_irecv(c, 400, MPI_DOUBLE_PRECISION, prev, 3, MPI_COMM_WORLD, request, error)
    call mpi_send(a, 4, MPI_DOUBLE_PRECISION, next, 3, MPI_COMM_WORLD, error)
    call mpi_wait(request, status, error)
    do i = 1, 400
      d(i) = 0.5d0 * d(i) + i
    end do
    d = d + c
"""


def program(at_once: str, later: str) -> str:
    return PROGRAM.replace("@at_once@", at_once).replace("@later@", later)


def test_exchange_that_is_needed_at_once(tmp_path: Path) -> None:
    result = transformed(program(SENDRECV, ""), "program.f90", tmp_path)
    assert not result.outcome.changes
    assert not result.made("call mpi_sendrecv")


@pytest.mark.mpi
def test_pair_beside_one_that_gains(tmp_path: Path, thorough: bool) -> None:
    result = transformed(program(PAIR, GAINS), "program.f90", tmp_path)
    assert not result.made("call mpi_irecv(b")
    assert "call mpi_irecv(b" in result.text
    assert result.made("call mpi_irecv(c")
    assert "call mpi_irecv(c" not in result.text
    result.assert_behaves_as_before(thorough)
