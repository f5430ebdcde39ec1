"""Progress calls: in long loops that run while something is in flight, and nowhere else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from _transformed import transformed
from everyday import everyday

from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#include <stdio.h>

#define N 400

static double grid[N][N], moved[9], out[N * N], in[N * N], sum;
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
    for (i = 0; i < 9; i++) moved[i] = i; /* a reason to wait later */
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
def test_a_long_loop_lets_mpi_work(tmp_path: Path, thorough: bool) -> None:
    result = transformed(C.replace("WORK", NEST), "a.c", tmp_path)
    main = result.text.split("int main")[1]
    assert main.count(CALL) == 1
    assert main.index("MPI_Isend") < main.index(CALL) < main.index("MPI_Waitall")
    assert "progress-calls" in result.made("MPI_Irecv")
    assert "progress-calls" in result.made("MPI_Isend")
    result.assert_behaves_as_before(thorough)


def test_what_stays_as_it_is_gets_no_help(tmp_path: Path) -> None:
    text = C.replace("WORK", NEST)
    untouched = text.replace("moved[i] = i;", "moved[i] = in[i];")
    result = transformed(untouched, "a.c", tmp_path)
    assert result.text == untouched
    assert result.outcome.rewritten == 0
    # Where something moves, loops are counted apart from what was changed.
    outcome = transformed(text, "a.c", tmp_path / "moved").outcome
    assert (outcome.rewritten, outcome.progress_calls) == (3, 1)
    assert "progress-calls" not in outcome.made()


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


def test_of_few_outer_iterations_the_loop_inside_calls(tmp_path: Path) -> None:
    work = "for (k = 0; k < 3; k++)\n        for (i = 1; i < n; i++)\n            for (j = 1; j < n; j++) grid[i][j] *= 0.5;"
    body = changed(work, tmp_path)
    assert body.index("for (j = 1; j < n; j++) grid[i][j] *= 0.5;") < body.index(CALL)
    assert body[body.index(CALL) :].count("}") >= 2


@pytest.mark.parametrize(
    ("work", "before"),
    [
        ("for (i = 1; i < n; i++) grid[i][0] = 0.5 * grid[i - 1][0];", ""),  # vectorised, and over at once
        ("for (i = 0; i < n; i++)\n        for (j = 0; j < 3; j++) grid[i][j] *= 0.5;", ""),  # iterations that are too short
        (f"#pragma omp parallel for\n    {NEST}", ""),  # other threads would call MPI
        (f"MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    {NEST.replace('0.5 *', 'in[j] +')}", ""),  # nothing is in flight
        ("for (i = 1; i < n; i++) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n        MPI_Test(requests, &k, "
         "MPI_STATUS_IGNORE);\n    }", ""),  # it calls MPI already
        ("for (i = 1; i < n; i++) {\n        for (j = 1; j < n; j++) grid[i][j] *= 0.5;\n        unseen();\n    }",
         "void unseen(void);"),
    ],
)  # fmt: skip
def test_where_not(work: str, before: str, tmp_path: Path) -> None:
    assert CALL not in changed(work, tmp_path, before)


def test_only_while_something_is_in_flight(tmp_path: Path) -> None:
    deep = "for (k = 0; k < n; k++)\n    for (i = 0; i < n; i++)\n        for (j = 0; j < n; j++) in[i * n + j] += grid[i][j];"
    text = C.replace("WORK", NEST)
    for place in ("    MPI_Irecv", '    printf("'):
        text = text.replace(place, f"    {deep}\n{place}")
    body = transformed(text, "a.c", tmp_path).text.split("int main")[1]
    assert CALL in body
    assert CALL not in body[: body.index("MPI_Irecv")]
    assert CALL not in body[body.index("MPI_Waitall") :]


@pytest.mark.parametrize(
    "options", [Options(progress_calls=False), Options(transformations=frozenset({"nonblocking"}))]
)
def test_switched_off(options: Options, tmp_path: Path) -> None:
    assert CALL not in changed(NEST, tmp_path, options=options)


def test_between_the_parts_of_a_call_that_was_taken_apart(tmp_path: Path) -> None:
    text = C.replace("WORK", f"MPI_Bcast(out, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);\n    {NEST}\n    sum += out[0];")
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
  real(8) :: moved(9)
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
  do i = 1, 9
    moved(i) = i ! a reason to wait later
  end do
  print '(i3,z17.16)', rank, sum(grid) + sum(in)
  call MPI_Finalize(ierr)
end program p
"""


@pytest.mark.mpi
@pytest.mark.parametrize("interface", everyday(["mpif.h", "mpi", "mpi_f08"], ["mpif.h", "mpi"]))
def test_fortran(interface: str, tmp_path: Path, thorough: bool) -> None:
    text = FORTRAN.replace("USE", "" if interface == "mpif.h" else f"use {interface}")
    text = text.replace("INCLUDE", "include 'mpif.h'" if interface == "mpif.h" else "")
    text = text.replace(
        "REQUESTS", "type(MPI_Request) :: one, two" if interface == "mpi_f08" else "integer :: one, two"
    )
    result = transformed(text, "a.f90", tmp_path)
    main = result.text.split("end program")[0]
    assert main.count("call lapwing_a_progress()") == 1
    assert main.index("call lapwing_a_progress()") < main.index("10 continue")
    result.assert_behaves_as_before(thorough)


@pytest.mark.mpi
@pytest.mark.parametrize(("last", "calls"), [("   10 continue", 1), ("   10 grid(1, i) = i", 0)])
def test_a_labelled_statement_ends_a_loop(last: str, calls: int, tmp_path: Path, thorough: bool) -> None:
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
    result.assert_behaves_as_before(thorough, 2)


@pytest.mark.mpi
def test_the_interior_of_a_nest_lets_mpi_work(tmp_path: Path, thorough: bool) -> None:
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
    result.assert_behaves_as_before(thorough)


def test_a_procedure_that_is_called_meanwhile_lets_mpi_work(tmp_path: Path) -> None:
    """The exchange starts in one procedure, the work that hides it is a part of another."""
    text = (Path(__file__).parents[2] / "examples" / "stencil_3d.c").read_text()
    after = transformed(text, "a.c", tmp_path).text
    halves = [after[after.index(f"static void relax_{half}(void) {{") :] for half in ("first", "last")]
    first, last = (half[: half.index("\n}\n")] for half in halves)
    assert CALL in first
    assert CALL not in last


def test_a_loop_of_several_lines_stays_where_it_was(tmp_path: Path) -> None:
    """Compilers warn of what stands behind a loop without braces as if it belonged to it."""
    work = "for (k = 0; k < n; k++)\n        for (i = 0; i < n; i++)\n            for (j = 0; j < n; j++)\n"
    work += "                grid[i][j] += 1;"
    text = transformed(C.replace("WORK", work), "program.c", tmp_path).text
    assert "        {\n        for (i = 0; i < n; i++)\n            for (j" in text
    assert "\n        lapwing_program_progress();\n        }\n" in text


# ---- strips -----------------------------------------------------------------------------------------------------------

STRIPPED = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double moved[9], *out, *in, *a, sum;
static int rank, size, n, m;
static long far;
/* before main */

int main(int argc, char **argv)
{
    int i, j, k;
    unsigned u;
    long l;
    size_t z;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 9 ? 5 : 20000;
    m = n / 2;
    far = n;
    k = 0;
    a = (double *)malloc(n * sizeof *a);
    in = (double *)malloc(n * sizeof *a);
    out = (double *)malloc(n * sizeof *a);
    for (i = 0; i < n; i++) a[i] = in[i] = out[i] = i * rank;
    i = j = l = z = u = 7;
    MPI_Irecv(in, n, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, n, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
    WORK
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (i = 0; i < 9; i++) moved[i] = i; /* a reason to wait later */
    for (i = 0; i < n; i++) sum = 0.9 * sum + in[i] + a[i];
    printf("%d %d %d %a\\n", rank, j, k, sum);
    MPI_Finalize();
    return 0;
}
"""


def stripped(work: str, folder: Path, before: str = "") -> str:
    text = STRIPPED.replace("WORK", work).replace("/* before main */", before)
    return transformed(text, "a.c", folder).text.split("int main")[1]


def a_loop(chance: random.Random) -> str:
    """A loop of C whose iterations and last value can be seen in what it leaves."""
    variable = chance.choice(["i", "i", "l", "z", "u"])
    first = chance.choice(["0", "1", "m", "n", "k % 3", "n + 3"])
    bound = chance.choice(["n", "m", "n - 1", "far", "4096", "8193", "n - m", "4096 + m", "3 * 4096", "2 * m + k % 2"])
    step = chance.choice([f"{variable}++", f"++{variable}", f"{variable} += 1", f"{variable} += 3"])
    compared = chance.choice(["<", "<="])
    visit = f"k = (k * 31 + (int){variable}) % 65521"
    body = chance.choice(
        [
            f"\n        {visit};",
            f" {{ {visit}; }}",
            f"\n    {{\n        /* a turn */\n        {visit};\n    }}",
            f" {{ // a turn\n        if ({variable} % 5 == 2) continue;\n        {visit};\n    }}",
        ]
    )
    head = f"for ({variable} = {first}; {variable} {compared} {bound}; {step})"
    return f"{head}{body}\n    j = (j * 17 + (int){variable}) % 65521;"


@pytest.mark.mpi
def test_strips_take_the_same_iterations(tmp_path: Path, thorough: bool) -> None:
    chance = random.Random(5)
    result = transformed(STRIPPED.replace("WORK", "\n    ".join(a_loop(chance) for _ in range(60))), "a.c", tmp_path)
    assert result.text.split("int main")[1].count(CALL) >= 40
    result.assert_behaves_as_before(thorough, 2)


@pytest.mark.parametrize(
    "work",
    [
        "for (i = 1; i < n; i++) a[i] += 0.5 * a[i - 1];",
        "for (int t = 1; t <= n - 1; t += 2) {\n        a[t] *= 0.5;\n    }",
        "if (n > 7)\n        for (i = 0; i < n; i++) sum += a[i];",
        "for (k = 0; k < 3; k++)\n        for (i = 0; i < n; i++) sum += a[i];",
    ],
)
def test_a_long_innermost_loop_runs_in_strips(work: str, tmp_path: Path) -> None:
    body = stripped(work, tmp_path)
    assert body.count(CALL) == 1
    assert body.count("lw_end") == 2


@pytest.mark.parametrize(
    ("work", "before"),
    [
        ("for (i = 0; i < 8000; i++) sum += a[i];", ""),  # soon over
        ("for (i = 0; i < n; i++) sum += row[i];", "static double row[8000];"),
        ("for (i = 0; i < n; i++) sum += grid[i][3];", "static double grid[20000][8];"),  # a row of a grid
        ("for (i = 0; i < size; i++) sum += a[i];", ""),  # an iteration a rank
        ("for (i = n - 1; i > 0; i--) sum += a[i];", ""),  # downwards
        ("for (i = 0; i < n; i++) {\n        if (a[i] > 3e9) break;\n        sum += a[i];\n    }", ""),
        ("for (i = 0; i < n; i++) {\n        if (a[i] > 3e9) return 3;\n        sum += a[i];\n    }", ""),
        ("for (i = 0; i < n; i++) {\n        if (i == m) n--;\n        sum += a[i];\n    }", ""),  # the bound changes
        ("for (i = 0; i < *p; i++) a[i] = 1;", "static int *p = &n;"),
        ("for (i = 0; i < v; i++) sum += a[i];", "static volatile int v = 20000;"),
        ("for (i = 0, j = 1; i < n; i++) sum += a[i];", ""),  # forms that are not known
        ("for (i = 0; i < n; i++, j++) sum += a[i];", ""),
        ("for (i = 0; i < (n > 3 ? n : 3); i++) sum += a[i];", ""),
        ("for (i = 0; i < n && j; i++) sum += a[i];", ""),
        ("for (i = 0; i < x; i++) sum += a[i];", "static double x = 9000.5;"),  # the last iteration is not the one before x
        ("for (i = 0; i < n \\\n; i++) sum += a[i];", ""),
        ("for (i = 0; i < n; i++) sum += lw_end;", "static double lw_end = 3;"),
        ("LOOP sum += a[i];", "#define LOOP for (i = 0; i < n; i++)"),
        ("#pragma GCC ivdep\n    for (i = 0; i < n; i++) a[i] *= 2;", ""),
        ("for (i = 0; i < n; i++) {\n        again: a[i] *= 2;\n        if (a[i] < 0.5 && a[i] > 0) goto again;\n    }", ""),
    ],
)  # fmt: skip
def test_no_strips(work: str, before: str, tmp_path: Path) -> None:
    assert "in strips" not in stripped(work, tmp_path, before)


@pytest.mark.mpi
def test_a_macro_for_more_than_a_name_bounds_the_strips(tmp_path: Path, thorough: bool) -> None:
    text = STRIPPED.replace("WORK", "for (i = 0; i < TOP; i++) k = (k * 31 + i) % 65521;\n    j = i;")
    result = transformed(text.replace("/* before main */", "#define TOP m + 1 << 1"), "a.c", tmp_path)
    assert CALL in result.text.split("int main")[1]
    result.assert_behaves_as_before(thorough, 2)


def test_no_strips_for_what_needs_no_help(tmp_path: Path) -> None:
    text = STRIPPED.replace("WORK", "for (i = 1; i < n; i++) a[i] += 0.5 * a[i - 1];")
    assert "lw_end" in transformed(text, "a.c", tmp_path / "long").text
    short = text.replace("in, n, MPI_DOUBLE", "in, 4, MPI_DOUBLE").replace("out, n, MPI_DOUBLE", "out, 4, MPI_DOUBLE")
    assert "lw_end" not in transformed(short, "a.c", tmp_path / "short").text


FORTRAN_LOOPS = """\
  do i = 1, n
    a(i) = a(i) + i
    k = mod(31 * k + i, 65521)
  end do
  k = mod(31 * k + i, 65521)
  do i = 2, &
     n - 1, 3 ! every third
    if (mod(i, 5) == 2) cycle
    a(i) = 0.5d0 * a(i - 1) + k
  enddo
  k = mod(31 * k + i, 65521)
  do i = n, m
    a(i) = 1
  end do
  k = mod(31 * k + i, 65521)
  do i = m, 2 * m
    k = mod(31 * k + i, 65521)
  end do
  k = mod(31 * k + i, 65521)
"""
FORTRAN_KEPT = """\
  do 20 i = 1, n
    a(i) = a(i) + i
20 continue
  named: do i = 1, n
    a(i) = a(i) + i
  end do named
  do i = n, 1, -1
    a(i) = a(i) + i
  end do
  do i = 1, n
    if (a(i) < -1) exit
    a(i) = a(i) + i
  end do
  do i8 = 1, n
    a(i8) = a(i8) + 1
  end do
  do i = 1, n
    if (i == 9) n = n - 1
    a(i) = a(i) + i
  end do
  do concurrent (i = 1:n)
    a(i) = a(i) + i
  end do
"""


def fortran_strips(loops: str) -> str:
    """Free form, with loops between the start of two messages and their end."""
    text = FORTRAN.replace("USE", "use mpi").replace("INCLUDE", "").replace("REQUESTS", "integer :: one, two, k, m, n")
    text = text.replace("integer, parameter :: n = 300", "integer(8) :: i8")
    text = text.replace("grid(n, n), out(n), in(n)", "grid(300, 300), out(20000), in(20000), a(30000)")
    text = text.replace(
        "  do i = 1, n\n", "  n = 20000 + rank\n  n = n - rank\n  m = n / 2\n  k = 0\n  a = rank\n  do i = 1, 300\n"
    )
    nest = text[text.index("  do 10") : text.index("10 continue\n") + len("10 continue\n")]
    text = text.replace("out(i) = i * rank", "out = i * rank").replace("sum(in)", "sum(in) + sum(a) + k")
    return text.replace(nest, loops)


@pytest.mark.mpi
@pytest.mark.parametrize("form", everyday(["free", "fixed"], ["fixed"]))
def test_strips_in_fortran(form: str, tmp_path: Path, thorough: bool) -> None:
    text = fortran_strips(FORTRAN_LOOPS)
    if form == "fixed":
        text = "\n".join("      " + line.split("!")[0].strip() for line in text.splitlines()) + "\n"
        text = text.replace("2, &\n      n", "2,\n     & n").replace(", mod(", ",\n     & mod(")
    result = transformed(text, "a.f90" if form == "free" else "a.f", tmp_path)
    assert result.text.split("end program")[0].count("call lapwing_a_progress()") == 4
    result.assert_behaves_as_before(thorough, 2)


def test_no_strips_in_fortran(tmp_path: Path) -> None:
    result = transformed(fortran_strips(FORTRAN_KEPT), "a.f90", tmp_path)
    assert "lapwing_a_progress" not in result.text


@pytest.mark.parametrize(
    ("loop", "declarations"),
    [
        ("do i = 1, i + 15000", ""),  # the bound is made of the variable's old value
        ("do i = 1, 2 * n - i", ""),
        ("do i = 1, nn", "integer :: nn, mm\n  equivalence (nn, mm)"),  # others may write what DO has read once
        ("do i = 1, nn", "integer, pointer :: nn"),
        ("do i = m, 15000_8", ""),  # MIN of two kinds
        ("do i = 1, 1.5e4", ""),
        ("do i = 1, n", "integer :: min(5, 5)"),
        ("!GCC$ unroll 4\n  do i = 1, n", ""),  # must stand right above its loop
        ("!dir$ ivdep\n  ! as said above\n\n  do i = 1, n", ""),
    ],
)
def test_no_strips_where_fortran_would_differ(loop: str, declarations: str, tmp_path: Path) -> None:
    text = fortran_strips(f"  {loop}\n    k = mod(31 * k + i, 65521)\n  end do\n")
    result = transformed(text.replace("integer(8) :: i8", declarations or "integer(8) :: i8"), "a.f90", tmp_path)
    assert "end program" in result.text
    assert "do while" not in result.text


def test_early_work_runs_in_strips(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "examples" / "bucket_sort.c").read_text()
    text = re.sub(r"(KEYS =? ?)\d+", r"\g<1>20000", text, count=1)
    after = transformed(text, "a.c", tmp_path).text
    assert "lw_end" in after
