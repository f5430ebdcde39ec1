"""Programs that were once rewritten wrongly: each behaves as it did, or is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from _building import write
from _running import Reference, overlap, required
from _transformed import transformed

pytestmark = pytest.mark.mpi

C = """\
#include <mpi.h>
#include <stdio.h>
#define N 1200
static double a[N], b[N], c[N], d[N], e[N];
static int rank, size, next, prev, step, calls;
static void put(double *x) { double h = 0; int i; for (i = 0; i < N; i++) h = h * 0.5 + x[i] * (1 + i % 7); printf("%a\\n", h); }
@functions@
int main(int argc, char **argv) {
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  next = (rank + 1) % size; prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) { a[i] = i + rank; b[i] = 2 * i; c[i] = 3 * i; d[i] = 4 * i; e[i] = 5 * i; }
  for (step = 1; step <= 3; step++) {
@body@
  }
  put(a); put(b); put(c); put(d); put(e); printf("%d\\n", calls);
  MPI_Finalize();
  return 0;
}
"""
EXCHANGE = "MPI_Sendrecv(a, N, MPI_DOUBLE, next, 1, b, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
IN_STEPS = """\
MPI_Request rq;
MPI_Isend(a, N, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &rq);
MPI_Recv(b, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
MPI_Wait(&rq, MPI_STATUS_IGNORE);
"""
WORK = """\
for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + e[i];
for (i = 0; i < N; i++) e[i] = 0.5 * d[i] + c[i];
"""
IN_PROCEDURE = f"""
static int count(void) {{ calls++; return calls % 5; }}
static void exchange(double *x, int m) {{
  int i;
  double f = calls + 0.5;
  @first@
  {EXCHANGE}
  for (i = 0; i < N - m; i++) x[i] = f * b[i + m];
}}
"""

# The first statement of the nest goes ahead of the wait; when the caller's start is moved, the rest is looked at once more.
IN_PARTS = """
static double u[60][22], v[60][22];
static void exchange(double *x, double *y) {
  int i, j;
  MPI_Request rq;
  MPI_Irecv(y, 60, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, &rq);
  MPI_Send(x, 60, MPI_DOUBLE, next, 1, MPI_COMM_WORLD);
  MPI_Wait(&rq, MPI_STATUS_IGNORE);
  for (j = 0; j < 60; j++)
    u[j][0] = y[j];
  for (j = 0; j < 60; j++) {
    for (i = 1; i <= 20; i++)
      u[j][i] = 0.5 * u[j][i] + i;
    for (i = 0; i <= 20; i++)
      v[j][i] = 0.5 * v[j][i] + 0.25 * u[j][i];
  }
}
"""

# Counters that are read when their loops have been divided.
COUNTED = """
static double u[62][400], v[62][400];
static int rows = 60, from = 1, to = 60;
static void advance(void) {
  MPI_Request rq[4];
  int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  int i, j;
  if (rank == 0) from = 2;
  if (rank == size - 1) to = 50;
  @first@
  MPI_Irecv(u[0], 400, MPI_DOUBLE, up, 5, MPI_COMM_WORLD, &rq[0]);
  MPI_Irecv(u[rows + 1], 400, MPI_DOUBLE, down, 6, MPI_COMM_WORLD, &rq[1]);
  MPI_Isend(u[rows], 400, MPI_DOUBLE, down, 5, MPI_COMM_WORLD, &rq[2]);
  MPI_Isend(u[1], 400, MPI_DOUBLE, up, 6, MPI_COMM_WORLD, &rq[3]);
  MPI_Waitall(4, rq, MPI_STATUSES_IGNORE);
  @last@
}
"""
MADE = "for (i = 1; i <= rows; i++)\n for (j = 0; j < 400; j++) u[i][j] = 0.5 * u[i][j] + 0.25 * v[i][j] + j;\n"
USED = "for (i = from; i <= to; i++)\n for (j = 0; j < 400; j++) v[i][j] = 0.5 * u[i - 1][j] + 0.25 * u[i + 1][j];\n"
COUNT = "calls += i;\n"

# What was wrong: (the program's main part, its functions)
PROGRAMS = {
    "a nest of which a part was divided off before": (
        f"{WORK}exchange(a, b);\nput(&u[0][0]); put(&v[0][0]);\n",
        IN_PARTS,
    ),
    "a counter that is read after a loop whose end is nearer than the interior's": (
        "advance();\nput(&u[0][0]); put(&v[0][0]);\n",
        COUNTED.replace("@first@", "").replace("@last@", f"{USED}{COUNT}"),
    ),
    "a counter that is read after a loop whose interior comes last": (
        "advance();\nput(&u[0][0]); put(&v[0][0]);\n",
        COUNTED.replace("@first@", MADE).replace("@last@", f"{COUNT}{USED}"),
    ),
    "declared in a branch, used in its second half": (
        f"if (size > 1) {{ int m = N / 2; double f = 2.5;\n{IN_STEPS}for (i = 0; i < m; i++) c[i] = f * b[i]; }}\n{WORK}",
        "",
    ),
    "declared after the receive": (
        f"{IN_STEPS}int k;\nfor (k = 0; k < N; k++) c[k] = 0.5 * c[k] + d[k];\n"
        "for (k = 0; k < N; k++) a[k] = 0.5 * b[k] + c[k];\n",
        "",
    ),
    "declared in the body of a divided loop": (
        f"int k;\nfor (k = 1; k <= 2; k++) {{\ndouble f = 0.5 * k;\n{IN_STEPS}"
        f"for (i = 0; i < N; i++) c[i] = f * b[i] + c[i] * 0.5;\n}}\n{WORK}",
        "",
    ),
    "loop variable used after a divided loop": (
        f"int k;\nfor (k = 1; k <= 2; k++) {{\n{IN_STEPS}"
        f"for (i = 0; i < N; i++) c[i] = 0.5 * b[i] + c[i] * 0.5;\n}}\n{WORK}calls += k;\n",
        "",
    ),
    "send of an exchange moves without its receive": (
        "int m = 0;\nfor (i = 0; i < 900; i++) { m = m + (e[i] >= 0); d[i] = 0.5 * d[i] + 1; }\n"
        "MPI_Sendrecv(a, 900, MPI_DOUBLE, next, 1, b, m, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "for (i = 0; i < N; i++) c[i] = 0.5 * b[i] + c[i];\n",
        "",
    ),
    "sends change places that are received with any tag": (
        """\
if (rank == 1) {
  for (i = 0; i < N; i++) d[i] = d[i] * 0.5 + a[i];
  MPI_Send(d, N, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
  MPI_Send(a, N, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD);
} else if (rank == 0) {
  MPI_Recv(b, N, MPI_DOUBLE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (i = 0; i < N; i++) c[i] = c[i] * 0.5 + b[i];
  MPI_Recv(b, N, MPI_DOUBLE, 1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (i = 0; i < N; i++) c[i] = c[i] * 0.5 + b[i];
}
""",
        "",
    ),
    "argument with an effect, of a procedure that could be divided": (
        f"exchange(c, count());\n{WORK}",
        IN_PROCEDURE.replace("@first@", ""),
    ),
    "argument that the first half changes": (
        f"calls = 3;\nexchange(c, calls);\n{WORK}",
        IN_PROCEDURE.replace("@first@", "calls = 1;"),
    ),
    "initial value that the first half changes": (
        f"exchange(c, 1);\n{WORK}",
        IN_PROCEDURE.replace("@first@", "calls = calls + 1;"),
    ),
    "one element of two is written, nobody knows which": (
        f"int k = step > 1 ? 1 : 2;\ndouble w[4];\nfor (i = 0; i < 4; i++) w[i] = a[i];\n{EXCHANGE}"
        "for (i = 0; i < N; i++) { w[k] = c[i]; d[i] = b[i] + w[1] + w[2]; }\n",
        "",
    ),
    "other turns' elements, by the remainder of the turn": (
        f"{EXCHANGE}for (i = 1; i < N; i++) {{ a[i % 2] = c[i] * 0.5; d[i] = a[1 - i % 2] + d[i]; e[i] = b[i]; }}\n",
        "",
    ),
    "the same memory by a pointer that every turn sets": (
        f"double *p;\nint k;\n{EXCHANGE}for (k = 0; k < N; k++) {{ p = c + k; p[0] = 0.5 * b[k]; }}\n"
        "for (k = 0; k < N; k++) { p = c + k; d[k] = p[0] + e[k]; }\n",
        "",
    ),
    "what the second half of a conditional needs is written by what its first half passes": (
        """\
int tag;
if (rank == step % 2) { tag = rank + 1; MPI_Send(d, 4, MPI_DOUBLE, MPI_PROC_NULL, tag, MPI_COMM_WORLD); }
if (size > 1) {
  tag = 2010;
  if (rank + 1 == size) MPI_Send(a, 4, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(b, 4, MPI_DOUBLE, size - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    c[0] = b[0] + tag;
  }
}
""",
        "",
    ),
    "procedure that two callers divide differently": (
        "left(); right();\n",
        "static void work(void) { int i; for (i = 0; i < N; i++) d[i] = 0.5 * d[i] + a[i];\n"
        "  for (i = 0; i < N; i++) e[i] = 0.5 * e[i] + b[i]; }\n"
        "static void left(void) { int i; for (i = 0; i < N; i++) c[i] = d[i] + 1;\n"
        f"  {EXCHANGE.replace('(a,', '(c,')}  work(); }}\n"
        "static void right(void) { int i; for (i = 0; i < N; i++) c[i] = e[i] + 1;\n"
        f"  {EXCHANGE.replace('(a,', '(c,').replace('b, N', 'a, N')}  work(); }}\n",
    ),
}

# A status that is ignored in one receive and used in the other; a label that ends a loop; names of more than 72 columns.
FIXED = """\
      program main
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1200)
      double precision a(n), b(n), c(n), d(n)
      common /all/ a, b, c, d
      integer ierr, me, np, next, prev, i, step, got
      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
      next = mod(me + 1, np)
      prev = mod(me + np - 1, np)
      do 10 i = 1, n
        a(i) = i + me
        b(i) = 2 * i
        c(i) = 3 * i
   10   d(i) = 4 * i
      do 40 step = 1, 3
        call exchange_of_the_neighbours_values(next, prev, me, got)
        do 20 i = 2, n - 1
          c(i) = 0.5d0 * c(i) + a(i)
   20   continue
        do 30 i = 2, n - 1
          d(i) = 0.25d0 * (c(i - 1) + c(i + 1)) + 0.5d0 * b(i) + got
   30   continue
   40 continue
      write(*, '(Z16.16)') (transfer(d(i), 0_8), i = 1, n, 7)
      call mpi_finalize(ierr)
      end

      subroutine exchange_of_the_neighbours_values(next, prev, me, g)
      implicit none
      include 'mpif.h'
      integer n, next, prev, me, g, ierr, status(MPI_STATUS_SIZE)
      parameter (n = 1200)
      double precision a(n), b(n), c(n), d(n)
      common /all/ a, b, c, d
      if (mod(me, 2) .eq. 0) then
        call mpi_send(a, n, MPI_DOUBLE_PRECISION, next, 1,
     &                MPI_COMM_WORLD, ierr)
        call mpi_recv(b, n, MPI_DOUBLE_PRECISION, prev, 1,
     &                MPI_COMM_WORLD, status, ierr)
        call mpi_get_count(status, MPI_DOUBLE_PRECISION, g, ierr)
      else
        call mpi_recv(b, n, MPI_DOUBLE_PRECISION, prev, 1,
     &                MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        call mpi_send(a, n, MPI_DOUBLE_PRECISION, next, 1,
     &                MPI_COMM_WORLD, ierr)
        g = n
      end if
      end
"""

# A collective whose buffer is a temporary: the dummy argument has gaps.
GAPS = """\
program main
  use mpi
  implicit none
  integer, parameter :: n = 1200
  double precision :: d(n), e(n)
  integer :: ierr, me, i, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  d = [(4 * i + me, i = 1, n)]
  e = [(5 * i, i = 1, n)]
  do step = 1, 3
    call largest(d(1:n:2), (n + 1) / 2)
    do i = 1, n
      e(i) = 0.5d0 * e(i) + step
    end do
    do i = 1, n
      e(i) = 0.5d0 * e(i) + d(i)
    end do
    d = 0.5d0 * d + me
  end do
  write(*, '(Z16.16)') (transfer(e(i), 0_8), i = 1, n, 7)
  call mpi_finalize(ierr)
contains
  subroutine largest(x, m)
    integer :: m, error
    double precision :: x(:)
    call mpi_allreduce(MPI_IN_PLACE, x, m, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  end subroutine
end program
"""

# A conditional whose halves share a variable that is assigned before it, too.
SHARED = """\
program main
  use mpi
  implicit none
  integer :: me, np, ierr, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
  do step = 1, 3
    call ring(mod(step, np))
  end do
  call mpi_finalize(ierr)
contains
  subroutine ring(first)
    integer, intent(in) :: first
    integer :: tag, error, value, got
    value = me + first
    got = 0
    if (me == first) then
      tag = me + 1
      call mpi_send(value, 1, MPI_INTEGER, MPI_PROC_NULL, tag, MPI_COMM_WORLD, error)
    end if
    if (np > 1) then
      tag = 2010
      if (me + 1 == np) then
        call mpi_send(value, 1, MPI_INTEGER, 0, tag, MPI_COMM_WORLD, error)
      end if
      if (me == 0) then
        call mpi_recv(got, 1, MPI_INTEGER, np - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
        got = got + tag
      end if
    end if
    if (me == 0) print *, first, got
  end subroutine
end program
"""

# A loop after a receive that not only its own end ends.
WAYS_OUT = """\
module all
  use mpi
  implicit none
  integer, parameter :: n = 1200
  double precision :: a(n), b(n), c(n), d(n)
  integer :: me, np, next, prev
contains
  subroutine turn(step)
    integer, intent(in) :: step
    integer :: i, j, error
    outer: do j = 1, 2
      call mpi_sendrecv(a, n, MPI_DOUBLE_PRECISION, next, 1, b, n, MPI_DOUBLE_PRECISION, prev, 1, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      do i = 1, n
        @ways@
        d(i) = 0.5d0 * d(i) + i
      end do
      c = 0.5d0 * c + b
    end do outer
  end subroutine
end module
program main
  use all
  implicit none
  integer :: ierr, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
  next = mod(me + 1, np)
  prev = mod(me + np - 1, np)
  a = me + 1
  b = 2
  c = 3
  d = 4
  do step = 1, 3
    call turn(step)
    a = 0.5d0 * a + 0.25d0 * c + 0.125d0 * b
  end do
  write(*, '(i3, 4(1x, z16.16))') me, sum(a), sum(b), sum(c), sum(d)
  call mpi_finalize(ierr)
end program
"""
TO_THE_OUTER = WAYS_OUT.replace("@ways@", "if (i == 200 .and. step == 3) cycle outer")
EXIT_AND_RETURN = WAYS_OUT.replace("@ways@", "if (d(i) > 1d9) exit\n        if (i == 200 .and. step == 3) return")


def check(files: dict[str, str], directory: Path, thorough: bool) -> None:
    original = Reference(write(files, directory / "sources"))
    rewritten = overlap(original.sources, directory / "rewritten")
    assert rewritten.status == 0, rewritten.messages
    if rewritten.changed:
        original.assert_unchanged_by(rewritten.sources, thorough, 2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_c(name: str, tmp_path: Path, thorough: bool) -> None:
    required("c")
    body, functions = PROGRAMS[name]
    check({"program.c": C.replace("@functions@", functions).replace("@body@", body)}, tmp_path, thorough)


FORTRAN = {
    "labels.f": FIXED,
    "gaps.f90": GAPS,
    "shared.f90": SHARED,
    "to_the_outer.f90": TO_THE_OUTER,
    "exit_and_return.f90": EXIT_AND_RETURN,
}


@pytest.mark.parametrize("name", FORTRAN)
def test_fortran(name: str, tmp_path: Path, thorough: bool) -> None:
    required("fortran")
    check({name: FORTRAN[name]}, tmp_path, thorough)


def test_an_argument_with_a_shape_of_its_own_is_not_asked_for_another(tmp_path: Path) -> None:
    """A procedure that touches nothing of an allocatable array keeps nobody from writing it, if it could not see its shape."""
    text = """\
program p
  use mpi
  implicit none
  integer, parameter :: n = 4000
  double precision, allocatable :: u(:), v(:)
  integer :: rank, ranks, error, t
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (u(n), v(n))
  u = rank
  v = 0
  do t = 1, 3
    call exchange(u, v, n)
    call fill(v(2), n - 1)
    u(2) = u(1) + v(2)
  end do
  print *, u(1), u(2), sum(v)
  call MPI_Finalize(error)
contains
  subroutine exchange(u, v, n)
    integer, intent(in) :: n
    double precision :: u(n), v(*)
    call MPI_Sendrecv(u(n - 1), 1, MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), 1, u(1), 1, MPI_DOUBLE_PRECISION, &
                      modulo(rank - 1, ranks), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
  subroutine fill(v, n)
    integer, intent(in) :: n
    double precision :: v(n)
    integer :: i, k
    do k = 1, n
      do i = 1, n
        v(1 + mod(i * k, n)) = 0.5d0 * v(i) + i
      end do
    end do
  end subroutine
end program
"""
    result = transformed(text, "p.f90", tmp_path).text
    assert result.index("call fill") < result.index("call exchange_last")
