"""What a stencil's iterations add up, or keep the largest of, in whatever order they come: then the nest is divided."""

from __future__ import annotations

import pytest

from lapwing.overlap.languages.c.reading import read_c_text
from lapwing.overlap.languages.fortran.reading import read_text
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options, Outcome

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <math.h>
#include <mpi.h>
static double u[66][66], v[66][66];
static int w[66], list[5000];
double total(double x) { return x; }
double step(int up, int down, int n) {
  int i, j, count = 0, where = 0;
  short small = 0;
  unsigned many = 0;
  long longer = 0;
  float f = 0;
  double d = 0, e, *p = &d;
  MPI_Request r[2];
  MPI_Irecv(&u[0][1], 64, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &r[0]);
  MPI_Isend(&u[64][1], 64, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &r[1]);
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  for (i = 1; i <= 64; i++)
    for (j = 1; j <= 64; j++) {
      v[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
      BODY
    }
  return d + count + where + small + f + many + longer;
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  step(MPI_PROC_NULL, MPI_PROC_NULL, 64);
  MPI_Finalize();
  return 0;
}
"""

FORTRAN = """\
subroutine step(up, down, d, n)
  use mpi
  integer :: up, down, n, i, j, ierr
  real(8) :: u(0:601, 0:65), v(0:601, 0:65), d, e
  real(4) :: single
  complex(8) :: z
  common /fields/ u, v
  call MPI_Sendrecv(u(1, 64), 600, MPI_DOUBLE_PRECISION, down, 1, u(1, 0), 600, MPI_DOUBLE_PRECISION, up, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  do j = 1, 64
    do i = 1, 600
      v(i, j) = u(i, j - 1) + u(i, j + 1) + u(i - 1, j) + u(i + 1, j)
      BODY
    end do
  end do
  print *, d, n, single
end subroutine
program p
  use mpi
  integer :: ierr, n
  real(8) :: d
  call MPI_Init(ierr)
  call step(MPI_PROC_NULL, MPI_PROC_NULL, d, n)
  call MPI_Finalize(ierr)
end program
"""


def rewritten(body: str, *, reassociate: bool = False) -> Outcome:
    return rewrite(read_c_text(C.replace("BODY", body)), Options(reassociate=reassociate))


def is_split(outcome: Outcome) -> bool:
    return any("the other turns" in change.after.decode() for change in outcome.changes)


@pytest.mark.parametrize(
    "body",
    [
        "count++;",
        "if (v[i][j] > 0.5) --count;",
        "count += 2; count = count + (v[i][j] > 1); count = w[i] + count - 1;",
        "count -= w[i] * 3;",
        "small = small + w[i];",
        "longer += count;",
        "if (w[i] > count) count = w[i];",
        "count = w[j] < count ? w[j] : count;",
        "if (v[i][j] > 0.5) where = 1;",
        "if (v[i][j] > 0.5) d = 0.1; if (i > 50) d = 0.1;",
        "e = fabs(v[i][j] - u[i][j]); if (e > d) d = e;",
        "e = fabs(v[i][j] - u[i][j]); if (i > 3) { if (d <= e) d = e; }",
        "double s = v[i][j] - u[i][j]; double q = s * s + fabs(s); d = q > d ? q : d;",
        "if (fabs(v[i][j] - u[i][j]) > d) d = fabs(v[i][j] - u[i][j]);",
        "if (fabsf(v[i][j]) > f) f = fabsf(v[i][j]);",
        "if (fabsf(v[i][j]) > d) d = fabsf(v[i][j]);",
        "many += w[i];",
    ],
)
def test_in_any_order(body: str) -> None:
    assert is_split(rewritten(body))


@pytest.mark.parametrize(
    "body",
    [
        "d += v[i][j];",
        "count += v[i][j];",
        "count += total(v[i][j]);",
        "count++; w[j] = count;",
        "list[count++] = i;",
        "count += count;",
        "if (count < 5) count++;",
        "if (count > 4) where++; count++;",
        "count++; if (w[i] > count) count = w[i];",
        "where = i;",
        "if (v[i][j] > 0.5) where = 1; else where = 2;",
        "if (i > 50) d = 0.1; if (i < 2) d = 0.1f;",
        "if (w[i] > longer) count = w[i];",
        "if (longer + w[i] > count) count = longer + w[i];",
        "if (many > count) count = many;",
        "e = fabs(v[i][j]); if (e > d) { d = e; where = i; }",
        "e = v[i][j]; if (e > d) d = e;",
        "e = fabs(v[i][j]); e = e - 1; if (e > d) d = e;",
        "e = fabs(v[i][j]); if (w[i]) e = -e; if (e > d) d = e;",
        "e = fabs(v[i][j]); if ((e = v[i][j]) < 4) { if (e > d) d = e; }",
        "e = fabs(v[i][j]); d = d > e ? d : e;",
        "e = fabs(v[i][j]); if (!(e <= d)) d = e;",
        "e = fabs(v[i][j]); if (e > f) f = e;",
        "if (fabs(v[i][j]) > f) f = fabs(v[i][j]);",
        "e = fabs(v[i][j]); if (e > d) d = e; if (e < d) d = e;",
        "e = fabs(v[i][j]); if (e > d) d = e; v[i][j] += d;",
        "e = fabs(v[i][j]); if (e > d) d = e; if (d > 8) break;",
        "e = fabs(v[i][j]); if (e > d) d = e; *p = 3;",
        "e = fabs(v[i][j]); if (e > d) d = e; if (*p > 3) where = 1;",
        "d = fmax(d, v[i][j]);",
        "d = fmax(d, fabs(v[i][j])); if (fabs(v[i][j]) > d) d = fabs(v[i][j]);",
        "f = fmax(f, fabs(v[i][j]));",
    ],
)
def test_in_no_other_order(body: str) -> None:
    assert not is_split(rewritten(body))


def test_bounds_that_are_counted_in_the_nest() -> None:
    text = C.replace("BODY", "count++;")
    assert is_split(rewrite(read_c_text(text), Options()))
    assert not is_split(rewrite(read_c_text(text.replace("j <= 64", "j <= count")), Options()))
    assert not is_split(rewrite(read_c_text(text.replace("v[i][j] =", "v[i][count] =")), Options()))
    assert not is_split(
        rewrite(read_c_text(text.replace("count = 0,", "where = 0; volatile int count = 0; int k,")), Options())
    )


def test_a_maximum_by_function_of_what_is_no_nan_before() -> None:
    text = C.replace("BODY", "d = fmax(d, fabs(v[i][j]));")
    assert not is_split(rewrite(read_c_text(text), Options()))
    numbered = text.replace("  for (i = 1", "  d = 0;\n  for (i = 1")
    assert is_split(rewrite(read_c_text(numbered), Options()))
    assert not is_split(rewrite(read_c_text(numbered.replace("d = 0;\n", "d = 0; p[0] = e;\n")), Options()))
    own = numbered.replace("double total(", "static double fmax(double a, double b) { return a; }\ndouble total(")
    assert not is_split(rewrite(read_c_text(own.replace("#include <math.h>", "double fabs(double);")), Options()))


@pytest.mark.parametrize(
    ("body", "split"),
    [
        ("n = n + 1", True),
        ("n = max(n, i * j)", True),
        ("e = abs(v(i, j) - u(i, j)); if (e > d) d = e", True),
        ("if (d < abs(v(i, j) - u(i, j))) d = abs(v(i, j) - u(i, j))", True),
        ("if (j == 2) d = 0.1d0; if (j == 1) d = 0.1", False),
        ("if (v(i, j) > d) d = v(i, j)", False),
        ("d = max(d, abs(v(i, j)))", False),
        ("d = d + v(i, j)", False),
        ("e = abs(i - j); if (e > d) d = e", False),
        ("if (abs(v(i, j)) > single) single = abs(v(i, j))", False),
        ("e = v(i, j) * v(i, j); if (e > d) d = e", True),
        ("e = z * z; if (e > d) d = e", False),
        ("if (abs(v(i, j) - 1.0d0) > d) d = abs(v(i, j) - 1.0d0)", False),
    ],
)
def test_in_fortran(body: str, split: bool) -> None:
    assert is_split(rewrite(read_text(FORTRAN.replace("BODY", body)), Options())) == split


@pytest.mark.parametrize("body", ["d = max(d, v(i, j))", "d = d + v(i, j)", "if (v(i, j) > d) d = v(i, j)"])
def test_floating_point_with_leave_to_reassociate(body: str) -> None:
    assert is_split(rewrite(read_text(FORTRAN.replace("BODY", body)), Options(reassociate=True)))


@pytest.mark.parametrize(("body", "split"), [("d += v[i][j];", True), ("count += v[i][j];", False)])
def test_only_what_rounds_is_reassociated(body: str, split: bool) -> None:
    assert is_split(rewritten(body, reassociate=True)) == split


@pytest.mark.parametrize(("body", "split"), [("if (e > d) d = e;", True), ("d += e;", False)])
def test_what_is_sent_is_made_first(body: str, split: bool) -> None:
    exchange = C[C.index("  MPI_Request r[2]") : C.index("  for (i = 1")]
    work = C[C.index("  for (i = 1") : C.index("  return d")]
    sent = exchange.replace("u[0]", "v[0]").replace("u[64]", "v[64]")
    text = C.replace(exchange + work, "MPI_Request r[2];\n" + work + sent.replace("MPI_Request r[2];", ""))
    text = text.replace("BODY", "e = fabs(v[i][j] - u[i][j]); " + body)
    outcome = rewrite(read_c_text(text), Options())
    transformations = {
        action.transformation for communication in outcome.communications for action in communication.actions
    }
    assert ("split-producer" in transformations) == split
    refusals = [refusal for communication in outcome.communications for refusal in communication.refusals]
    assert split or any("d += e;" in refusal.found and "--reassociate" in refusal.advice for refusal in refusals)
