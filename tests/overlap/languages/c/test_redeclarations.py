"""Divided C functions that another file calls: it declares the outlined parts by its own words, or they are not divided."""

from __future__ import annotations

from pathlib import Path

import pytest
from _building import write
from _running import Reference, required
from everyday import everyday

from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

CALLER = """\
#include <mpi.h>
#include <stdio.h>
%s
#define N 600
double u[N], w[N], s[N], h[N];
int rank, size, up, down;
int main(int argc, char **argv)
{
    int i, step;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    up = (rank + size - 1) %% size, down = (rank + 1) %% size;
    for (i = 0; i < N; i++) u[i] = (i * 5 + rank) %% 31;
    for (step = 0; step < 4; step++) {
        exchange(u, 0.7);
        for (i = 0; i < N; i++) s[i] = 0.5 * s[i] + i;
        for (i = 0; i < N; i++) u[i] = 0.5 * (u[i] + h[i]) + s[i];
    }
    for (i = 0; i < N; i++) sum += u[i] * (i + 1);
    printf("%%a\\n", sum);
    MPI_Finalize();
    return 0;
}
"""
CALLEE = """\
#include <mpi.h>
%s
extern int up, down;
extern double h[600];
void exchange(%s)
{
    MPI_Sendrecv(a, 600, MPI_DOUBLE, down, 1, h, 600, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    h[3] += n;
}
"""
# What the caller's file and the callee's have before their functions, the callee's parameters, and a header.
ONE_HALF = {
    "a type of another meaning": (
        "typedef float real;\nvoid exchange(double *a, double n);",
        "typedef double real;",
        "double *a, real n",
        "",
    ),
    "a macro of another meaning": (
        "#define KIND int\nvoid exchange(double *a, double n);",
        "#define KIND double",
        "KIND *a, KIND n",
        "",
    ),
    "an enumerator": (
        "void exchange(double *, double);",
        "enum { COLUMNS = 600 };",
        "double a[COLUMNS], double n",
        "",
    ),
    "a parameter's name": (
        "#define n 0x\nvoid exchange(double *, double);",
        "",
        "double *a, double n",
        "",
    ),
    "a header": (
        '#include "x.h"',
        '#include "x.h"',
        "real *a, real n",
        "typedef double real;\nvoid exchange(real *a, real n);\n",
    ),
}
WHOLE = {
    "a macro that is gone": (
        '#include "x.h"\ntypedef float real;',
        '#include "x.h"',
        "double *a, double n",
        "#define real double\nvoid exchange(real *a, real n);\n#undef real\n",
    ),
    "a parameter's name, which a header makes a macro": (
        'void exchange(double *a, double count);\n#include "x.h"',
        "",
        "double *a, double n",
        "#define count 0x7\n",
    ),
    "a macro that is another": (
        '#define real double\n#include "x.h"\n#undef real\ntypedef float real;',
        '#define real double\n#include "x.h"',
        "real *a, real n",
        "void exchange(real *a, real n);\n",
    ),
}
CASES = ONE_HALF | WHOLE
RUN = ("a type of another meaning", "a parameter's name", "a header", "a macro that is gone")  # every day


def program(case: str, folder: Path) -> list[Path]:
    caller, callee, parameters, header = CASES[case]
    files = {"a.c": CALLER % caller, "b.c": CALLEE % (callee, parameters), "x.h": header}
    return write(files, folder)


def rewritten(case: str, folder: Path) -> tuple[list[Path], list[Path]]:
    before, after = program(case, folder / "before")[:2], program(case, folder / "after")[:2]
    for change in rewrite(read_c(before), Options()).changes:
        (folder / "after" / change.path.name).write_bytes(change.after)
    return before, after


@pytest.mark.parametrize("case", CASES)
def test_text(case: str, tmp_path: Path) -> None:
    _, (caller, _) = rewritten(case, tmp_path)
    assert ("exchange_first(u, 0.7);" in caller.read_text()) == (case in ONE_HALF)


@pytest.mark.mpi
@pytest.mark.parametrize("case", everyday(CASES, RUN))
def test_behaves_as_before(case: str, tmp_path: Path, thorough: bool) -> None:
    required("c")
    before, after = rewritten(case, tmp_path)
    Reference(before).assert_unchanged_by(after, thorough, 2)
