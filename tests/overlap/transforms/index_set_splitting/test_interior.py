"""Loops that follow one another in rows, each of which takes what those before it make: what of them is done early."""

from __future__ import annotations

from pathlib import Path

import pytest
from _transformed import Transformed, transformed

from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS, CELLS = ((EXAMPLES / name).read_text() for name in ("nests_in_rows.f90", "cells.f90"))
IN_C = (EXAMPLES / "nests_in_rows.c").read_text()
EARLY = "turns that need nothing from other ranks"
OPTIONS = Options(progress_calls=False)


def divided(text: str, name: str, folder: Path, *changes: tuple[str, str]) -> Transformed:
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return transformed(text, name, folder, OPTIONS)


def interiors(found: Transformed) -> list[str]:
    """The heads of the loops that are done early."""
    lines = [line.strip() for line in found.text.splitlines()]
    after = [lines[number + 1 :] for number, line in enumerate(lines) if EARLY in line]
    return [next(line for line in rest if "min(" in line or "(first" in line) for rest in after]


def test_each_loop_keeps_away_from_what_the_one_before_leaves(tmp_path: Path) -> None:
    found = divided(ROWS, "a.f90", tmp_path)
    assert interiors(found) == [
        "do i = max(from, 1), min(to, nx)",
        "do i = max(first, 2), min(last, nx - 1)",
        "do i = max(first, 3), min(last, nx - 2)",
        "do i = max(first, 3), min(last, nx - 2)",
    ]
    first = found.text.index("do i = max(from, 1)")
    assert found.text.index("from = 0") < first < found.text.index("call exchange_last", first)


# Nests of which one after the first cannot be divided: it needs its own neighbour, or a value is handed on.
RECURRENCE = ("(f(m, i + 1, j) - f(m, i - 1, j))", "(f(m, i + 1, j) - r(m, i - 1, j))")
HANDED_ON = (
    "    do j = 1, rows\n      do i = from, to\n",
    "    do j = 1, rows\n      r(1, 2, j) = slope\n      do i = from, to\n",
)


def test_iterations_that_need_each_other_stay_in_order(tmp_path: Path) -> None:
    assert interiors(divided(ROWS, "a.f90", tmp_path, RECURRENCE)) == ["do i = max(from, 1), min(to, nx)"]


def test_a_value_that_the_next_row_takes_holds_the_rows_together(tmp_path: Path) -> None:
    assert not interiors(divided(ROWS, "a.f90", tmp_path, HANDED_ON))


LAST_NEST = "      end do\n    end do\n    do j = 1, rows\n      do i = first, last\n"
COUNTED = (LAST_NEST, LAST_NEST.replace("    do j", "    r(1, 1, 1) = i\n    do j"))


def test_a_counter_that_is_read_after_its_loop_has_its_last_value(tmp_path: Path) -> None:
    found = divided(ROWS, "a.f90", tmp_path, COUNTED)
    assert "do i = max(first, 3), min(last, nx - 2)" not in found.text


LABELLED = (
    "    from = 0\n",
    "    to = 0\n 10 from = 0\n    to = to + 1\n    if (to < 3) goto 10\n",
)


def test_where_somebody_jumps_to_nothing_moves_away(tmp_path: Path) -> None:
    found = divided(ROWS, "a.f90", tmp_path, LABELLED)
    assert found.text.index("call exchange") < found.text.index("10 from = 0")


def test_what_runs_once_is_not_written_twice(tmp_path: Path) -> None:
    assert not interiors(
        divided(ROWS, "a.f90", tmp_path, ("  do step = 1, 4\n", "  step = 1\n"), ("  end do\n  write", "  write"))
    )


def test_each_cell_has_an_interior_of_its_own(tmp_path: Path) -> None:
    assert interiors(divided(CELLS, "a.f90", tmp_path)) == [
        "do j = 0, min(size(2, c) + 1, size(2, c))",
        "do j = begin(c), min(size(2, c), size(2, c) - 1)",
    ]


# Where a cell ends is another number when its halo arrives than when its nests run.
RESIZED = (
    "    call advance()\n",
    "    size(2, :) = size(2, :) - 1\n    call advance()\n    size(2, :) = size(2, :) + 1\n",
)
BETWEEN_NESTS = (
    "      do j = begin(c), size(2, c)\n",
    "      size(2, c) = size(2, c) - 1\n      do j = begin(c), size(2, c)\n",
)


def test_cells_that_change_are_left_alone(tmp_path: Path) -> None:
    assert not interiors(divided(CELLS, "a.f90", tmp_path, RESIZED))


def test_of_cells_that_change_between_nests_the_first_nest_is_divided(tmp_path: Path) -> None:
    assert interiors(divided(CELLS, "a.f90", tmp_path, BETWEEN_NESTS)) == ["do j = 0, min(size(2, c) + 1, size(2, c))"]


def test_other_cells_are_other_memory(tmp_path: Path) -> None:
    """Neighbouring cells: what one writes another reads."""
    change = ("s(i, j + 1, c) - u(i, j, c))", "s(i, j + 1, mod(c, count) + 1) - u(i, j, c))")
    found = divided(CELLS, "a.f90", tmp_path, change)
    assert len(interiors(found)) <= 1


def test_rows_are_not_divided_themselves(tmp_path: Path) -> None:
    """Of rows of a few iterations the boundary would be as dear as the whole."""
    assert not interiors(divided(ROWS, "a.f90", tmp_path, ("wide = 9", "wide = 5")))


def test_c_skips_the_interior_at_once(tmp_path: Path) -> None:
    found = divided(IN_C, "a.c", tmp_path)
    assert "for (int i = (first > 3 ? first : 3); i <= last; i++) {" in interiors(found)
    assert "if (i >= 3) { i = last; continue; }" in found.text


# A procedure whose nest fills lines of its own in every iteration.
SCRATCH = """\
module lines
  use mpi
  implicit none
  integer, parameter :: n = 12
  integer :: below, above
contains
  subroutine exchange(u)
    double precision :: u(n, 0:n + 1)
    integer :: ierr
    call MPI_Sendrecv(u(1, n), n, MPI_DOUBLE_PRECISION, above, 1, u(1, 0), n, MPI_DOUBLE_PRECISION, below, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  end subroutine exchange
  subroutine smooth(u, r)
    double precision :: u(n, 0:n + 1), r(n, n), line(n)
    integer :: i, j
    do j = 1, n
      do i = 1, n
        line(i) = u(i, j - 1) + u(i, j)
      end do
      do i = 2, n
        r(i, j) = 0.5d0 * r(i, j) + 0.25d0 * (line(i) - line(i - 1))
      end do
    end do
  end subroutine smooth
end module lines
program main
  use lines
  implicit none
  double precision :: u(n, 0:n + 1), r(n, n)
  integer :: me, np, ierr, i, j, step
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  below = mod(me + np - 1, np)
  above = mod(me + 1, np)
  do j = 0, n + 1
    do i = 1, n
      u(i, j) = mod(3 * i + 5 * j + me, 11)
    end do
  end do
  r = 0
  do step = 1, 3
    call exchange(u)
    call smooth(u, r)
    u(:, 1:n) = u(:, 1:n) + 0.5d0 * r
  end do
  write (*, '(i4,z17.16)') me, sum(r)
  call MPI_Finalize(ierr)
end program main
"""


@pytest.mark.mpi
def test_lines_that_each_iteration_fills_do_not_hold_a_procedure_together(tmp_path: Path, thorough: bool) -> None:
    found = divided(SCRATCH, "a.f90", tmp_path)
    assert "call smooth_first(u, r)" in found.text
    found.assert_behaves_as_before(thorough)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("text", "name", "change"),
    [
        (ROWS, "a.f90", RECURRENCE),
        pytest.param(ROWS, "a.f90", HANDED_ON, marks=pytest.mark.long),
        (ROWS, "a.f90", COUNTED),
        pytest.param(ROWS, "a.f90", LABELLED, marks=pytest.mark.long),
        pytest.param(
            ROWS, "a.f90", ("integer, parameter :: most = 24", "integer, parameter :: most = 9"), marks=pytest.mark.long
        ),
        pytest.param(
            ROWS,
            "a.f90",
            ("      do i = from, to\n        do m", "      do i = to, from, -1\n        do m"),
            marks=pytest.mark.long,
        ),
        (CELLS, "a.f90", BETWEEN_NESTS),
        pytest.param(CELLS, "a.f90", RESIZED, marks=pytest.mark.long),
        pytest.param(
            CELLS, "a.f90", ("    size(2, c) = most - 2 * c\n", "    size(2, c) = 1 + c\n"), marks=pytest.mark.long
        ),
        pytest.param(
            CELLS,
            "a.f90",
            ("      do j = 0, size(2, c) + 1\n", "      do j = size(2, c) + 1, 0, -1\n"),
            marks=pytest.mark.long,
        ),
        pytest.param(IN_C, "a.c", ("#define MOST 30", "#define MOST 8"), marks=pytest.mark.long),
        (IN_C, "a.c", ("for (int i = first; i < n; i++)", "for (int i = n - 1; i >= first; i--)")),
    ],
)
def test_behaves_as_before(text: str, name: str, change: tuple[str, str], tmp_path: Path, thorough: bool) -> None:
    """Interiors that are small or nothing, loops that count down, and what is left whole."""
    divided(text, name, tmp_path, change).assert_behaves_as_before(thorough)
