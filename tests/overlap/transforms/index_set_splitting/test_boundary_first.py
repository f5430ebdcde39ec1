"""The loop that makes what is sent, divided: its boundary before the transfer starts, its interior afterwards; or why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _transformed import Transformed, transformed

from lapwing.overlap.report.outcome import TRANSFORMATIONS, Options

pytestmark = pytest.mark.usefixtures("own_header")

TRANSFORMATION = "split-producer"

# first and last are variables of their own, whose relation to n nobody knows.
FORTRAN = """\
module field
  implicit none
  integer :: n, first, last
  real(8) :: u(24, 0:61), d(24, 0:61)
end module

subroutine exchange(left, right)
  use mpi
  use field
  implicit none
  integer, intent(in) :: left, right
  integer :: ierr
  call mpi_sendrecv(u(1, 1), 24, MPI_DOUBLE_PRECISION, left, 1, u(1, n + 1), 24, MPI_DOUBLE_PRECISION, right, 1, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call mpi_sendrecv(u(1, n), 24, MPI_DOUBLE_PRECISION, right, 2, u(1, 0), 24, MPI_DOUBLE_PRECISION, left, 2, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end subroutine

program update
  use mpi
  use field
  implicit none
  integer :: rank, size, left, right, step, i, j, ierr
  real(8) :: s, t(24)
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < size - 1)
  n = 30
  first = merge(1, 2, rank > 0)
  last = merge(n, n - 1, rank < size - 1)
  s = 0
  t = 0
  do j = 0, n + 1
    do i = 1, 24
      u(i, j) = mod(i * 7 + j * 11 + rank, 37)
      d(i, j) = 0
    end do
  end do
  do step = 1, 4
    do j = first, last
      do i = 1, 24
        u(i, j) = u(i, j) + 0.25d0 * d(i, j)
      end do
    end do
    call exchange(left, right)
    do j = 1, n
      do i = 1, 24
        d(i, j) = u(i, j - 1) - 2 * u(i, j) + u(i, j + 1)
      end do
    end do
    if (abs(d(1, 1)) > 1d6) go to 100
  end do
100 continue
  do j = 0, n + 1
    do i = 1, 24
      s = s + u(i, j) * (i + 2 * j) + t(i)
    end do
  end do
  write (*, "(i4,z17.16)") rank, s
  call mpi_finalize(ierr)
end program
"""
UPDATE = "        u(i, j) = u(i, j) + 0.25d0 * d(i, j)\n"
CALL = "call mpi_sendrecv(u(1, 1)"


def divided(text: str, folder: Path, options: Options | None = None) -> Transformed:
    return transformed(text, "update.f90", folder, options or Options(progress_calls=False))


def replaced(old: str, new: str) -> str:
    assert FORTRAN.count(old) == 1
    return FORTRAN.replace(old, new)


def test_the_boundary_is_made_before_the_start_and_the_interior_after_it(tmp_path: Path) -> None:
    found = divided(FORTRAN, tmp_path)
    assert TRANSFORMATION in found.made(CALL)
    text = found.text
    shell = text.index("do j = first, min(last, 1)\n")
    assert text.index("do j = max(first, n, 2), last\n") > shell
    interior = text.index("do j = max(first, 2), min(last, n - 1)")
    assert shell < text.index("call exchange_first(left, right)", shell) < interior
    assert interior < text.index("call exchange_last(left, right)", interior)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "text",
    [
        FORTRAN,
        pytest.param(replaced("    do j = first, last\n", "    do j = last, first, -1\n"), marks=pytest.mark.long),
        pytest.param(replaced("  n = 30\n", "  n = 2\n"), marks=pytest.mark.long),
        replaced("  n = 30\n", "  n = 1\n"),
    ],
    ids=["upwards", "downwards", "no interior", "one plane"],
)
def test_it_behaves_as_before(text: str, tmp_path: Path, thorough: bool) -> None:
    found = divided(text, tmp_path)
    assert TRANSFORMATION in found.made(CALL)
    found.assert_behaves_as_before(thorough)


def test_it_can_be_left_out(tmp_path: Path) -> None:
    found = divided(
        FORTRAN,
        tmp_path,
        Options(progress_calls=False, transformations=frozenset(TRANSFORMATIONS.keys() - {TRANSFORMATION})),
    )
    assert TRANSFORMATION not in found.made(CALL)
    assert "max(first" not in found.text


def not_divided(text: str, folder: Path) -> Transformed:
    found = divided(text, folder)
    assert TRANSFORMATION not in found.made(CALL)
    assert "max(first" not in found.text
    return found


def test_iterations_that_depend_on_each_other_stay(tmp_path: Path) -> None:
    found = not_divided(replaced(UPDATE, UPDATE.replace("* d(i, j)", "* (d(i, j) + u(i, j - 1))")), tmp_path)
    assert any("the loop over j may carry a dependence" in r for r in found.refused(CALL, TRANSFORMATION))


def test_iterations_that_hand_on_a_variable_stay(tmp_path: Path) -> None:
    found = not_divided(replaced(UPDATE, UPDATE + "        t(i) = t(i) + u(i, j)\n"), tmp_path)
    assert any("may carry a dependence" in r or "needed after" in r for r in found.refused(CALL, TRANSFORMATION))


def test_a_counter_that_is_read_afterwards_stays(tmp_path: Path) -> None:
    text = replaced("    call exchange(left, right)\n", "    call exchange(left, right)\n    s = s + i\n")
    found = not_divided(text, tmp_path)
    assert any("i may be needed after the loop" in r for r in found.refused(CALL, TRANSFORMATION))


def test_a_counter_that_is_read_afterwards_stays_without_any_goto(tmp_path: Path) -> None:
    text = replaced("    call exchange(left, right)\n", "    call exchange(left, right)\n    s = s + i\n")
    text = text.replace("    if (abs(d(1, 1)) > 1d6) go to 100\n", "").replace("100 continue\n", "")
    found = not_divided(text, tmp_path)
    assert any("i may be needed after the loop" in r for r in found.refused(CALL, TRANSFORMATION))


def test_what_is_sent_as_a_whole_is_made_before(tmp_path: Path) -> None:
    # How many planes go is not known: the interior may be among them.
    not_divided(replaced("call mpi_sendrecv(u(1, 1), 24,", "call mpi_sendrecv(u(1, 1), n,"), tmp_path)


def test_a_limit_that_the_exchange_changes_is_none(tmp_path: Path) -> None:
    text = replaced(
        "  integer :: ierr\n  call mpi_sendrecv(u(1, 1)", "  integer :: ierr\n  n = 30\n  call mpi_sendrecv(u(1, 1)"
    )
    not_divided(text, tmp_path)


def test_a_loop_that_prints_stays(tmp_path: Path) -> None:
    not_divided(replaced(UPDATE, UPDATE + '        if (u(i, j) > 1d9) print *, "large"\n'), tmp_path)


def test_a_loop_that_may_end_early_stays(tmp_path: Path) -> None:
    not_divided(replaced(UPDATE, UPDATE + "        if (u(i, j) > 1d9) exit\n"), tmp_path)


def test_limits_of_another_kind_of_integer_are_not_compared(tmp_path: Path) -> None:
    text = replaced("  integer :: n, first, last\n", "  integer :: n\n  integer(8) :: first, last\n")
    not_divided(text, tmp_path)


# ---- loops of few iterations ----------------------------------------------------------------------------------------------

FEW = """\
program few
  use mpi
  implicit none
  integer :: i, m, ierr
  real(8) :: h(5), u(5, 40)
  call mpi_init(ierr)
  u = 1
  h = 0
  call mpi_recv(h, 5, MPI_DOUBLE_PRECISION, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  do i = 1, 40
    do m = 1, 5
      u(m, i) = u(m, i) + h(m)
    end do
  end do
  print *, u(1, 1)
  call mpi_finalize(ierr)
end program
"""


def test_a_loop_of_few_iterations_has_no_empty_interior(tmp_path: Path) -> None:
    # All iterations need what is received; only of an empty interior that would not be so.
    assert "do m = 2" not in transformed(FEW, "few.f90", tmp_path, Options(progress_calls=False)).text


def test_a_loop_that_fills_a_local_array_is_divided(tmp_path: Path) -> None:
    text = FEW.replace("h(5)", "h(0:40)").replace("mpi_recv(h, 5,", "mpi_recv(h(0), 1,").replace("+ h(m)", "+ h(i - 1)")
    assert "do i = 2, 40\n" in transformed(text, "few.f90", tmp_path, Options(progress_calls=False)).text


# ---- outlined parts -------------------------------------------------------------------------------------------------------


def test_the_first_part_of_a_procedure_is_no_more_than_what_starts(tmp_path: Path, thorough: bool) -> None:
    """Work of the procedure that needs the loop's interior would keep the start behind the loop."""
    work = """\
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end subroutine

subroutine whole(left, right)
  use field
  implicit none
  integer, intent(in) :: left, right
  integer :: i, j
  do j = 1, n
    do i = 1, 24
      w(i, j) = 2 * u(i, j)
    end do
  end do
  call exchange(left, right)
  do j = 1, n
    do i = 1, 24
      d(i, j) = w(i, j) + u(i, j - 1)
    end do
  end do
end subroutine

program"""
    text = re.sub(r" +MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr\)\nend subroutine\n\nprogram", work, FORTRAN)
    text = text.replace("d(24, 0:61)", "d(24, 0:61), w(24, 0:61)").replace("    call exchange(", "    call whole(")
    found = divided(text, tmp_path)
    first = found.text[found.text.index("subroutine whole_first") : found.text.index("subroutine whole_last")]
    assert "exchange_first" in first
    assert "w(i, j)" not in first
    assert TRANSFORMATION in found.made(CALL)
    found.assert_behaves_as_before(thorough)
