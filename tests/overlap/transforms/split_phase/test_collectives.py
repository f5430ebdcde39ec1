"""Blocking collectives taken apart: the same results, and refused where they could differ."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from _transformed import transformed

from lapwing.overlap.report.outcome import Options

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#include <stdio.h>

#define N 500
#define RANKS 8

static double field[N], line[N], sums[4], whole[4];
static int largest, all_largest, part[N], parts[N * RANKS], others[N * RANKS], counts[RANKS], starts[RANKS], totals[3];
static int rank, size, error;
MPI_Comm half;
static int *kept;
/* before main */

static void work(int by)
{
    for (int i = 1; i < N; i++) line[i] = 0.5 * line[i] + 0.25 * line[i - 1] + by;
}

static void own(void *a, void *b, int *n, MPI_Datatype *type)
{
    for (int i = 0; i < *n; i++) ((int *)b)[i] += ((int *)a)[i];
}

int main(int argc, char **argv)
{
    MPI_Op plus;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Op_create(own, 1, &plus);
    for (int i = 0; i < N; i++) {
        part[i] = 3 * i + rank;
        field[i] = (i * 37 + rank) % 101;
    }
    for (int r = 0; r < RANKS; r++) {
        counts[r] = 3 + r;
        starts[r] = 20 * r;
    }
    for (int step = 0; step < 3; step++) {
        largest = part[step] % 101;
        sums[step] = rank / 3.0;
        /* first */
        CALL
        work(step);
        /* then */
        double all = all_largest + whole[0] + whole[3] + totals[1] + parts[3] + others[40] + others[1] + error;
        printf("%d %d %a %a\\n", rank, step, all, line[N - 1]);
    }
    MPI_Finalize();
    return 0;
}
"""
ALLREDUCE = "MPI_Allreduce(&largest, &all_largest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);"
CALLS = {
    "Bcast": "MPI_Bcast(parts, N, MPI_INT, step % size, MPI_COMM_WORLD);",
    "Reduce": "MPI_Reduce(counts, totals, 3, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);",
    "Allreduce": ALLREDUCE,
    "in place": "MPI_Allreduce(MPI_IN_PLACE, totals, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);",
    "result": f"error = {ALLREDUCE}",
    "Gather": "MPI_Gather(part, N, MPI_INT, parts, N, MPI_INT, 0, MPI_COMM_WORLD);",
    "Gatherv": "MPI_Gatherv(part, counts[rank], MPI_INT, others, counts, starts, MPI_INT, 0, MPI_COMM_WORLD);",
    "Scatter": "MPI_Scatter(parts, 9, MPI_INT, others, 9, MPI_INT, 0, MPI_COMM_WORLD);",
    "Scatterv": "MPI_Scatterv(parts, counts, starts, MPI_INT, others, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);",
    "Allgather": "MPI_Allgather(part, N, MPI_INT, others, N, MPI_INT, MPI_COMM_WORLD);",
    "Allgatherv": "MPI_Allgatherv(part, counts[rank], MPI_INT, others, counts, starts, MPI_INT, MPI_COMM_WORLD);",
    "Alltoall": "MPI_Alltoall(parts, N, MPI_INT, others, N, MPI_INT, MPI_COMM_WORLD);",
    "Scan": "MPI_Scan(counts, totals, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);",
    "Reduce_scatter": "MPI_Reduce_scatter(part, others, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);",
    "own group": "MPI_Bcast(parts, N, MPI_INT, 0, half);",
}


@pytest.mark.parametrize("name", CALLS)
def test_c_calls_are_taken_apart(name: str, tmp_path: Path) -> None:
    result = transformed(C.replace("CALL", CALLS[name]), "a.c", tmp_path)
    assert "nonblocking" in result.made(CALLS[name]), result.at(CALLS[name]).refusals
    assert result.text.index("work(step)") < result.text.index("MPI_Wait(")


@pytest.mark.mpi
def test_c_results_are_the_same(tmp_path: Path, thorough: bool) -> None:
    calls = "".join(f"        {call}\n        work(step);\n" for call in CALLS.values())
    result = transformed(C.replace("        CALL\n", calls), "a.c", tmp_path)
    assert [name for name, call in CALLS.items() if "nonblocking" not in result.made(call)] == []
    result.assert_behaves_as_before(thorough)


@pytest.mark.parametrize(
    ("call", "obligation"),
    [
        ("MPI_Reduce(sums, whole, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);", "does not depend on its order"),
        ("MPI_Allreduce(sums, whole, 4, MPI_DOUBLE, MPI_PROD, MPI_COMM_WORLD);", "does not depend on its order"),
        ("MPI_Scan(sums, whole, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);", "does not depend on its order"),
        ("MPI_Allreduce(sums, whole, 4, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);", "does not depend on its order"),
        ("MPI_Allreduce(sums, whole, 2, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);", "does not depend on its order"),
        ("MPI_Reduce(counts, totals, 3, MPI_INT, plus, 0, MPI_COMM_WORLD);", "what the reduction does is known"),
        (f"if (rank >= 0) {ALLREDUCE}", "every call that may match it changes"),
        (f"if (field[1] >= 0) {ALLREDUCE}", "every call that may match it changes"),
        (f"for (int k = 0; k < 1 + 0 * rank; k++) {ALLREDUCE}", "every call that may match it changes"),
        (f"if (rank == 99) break; {ALLREDUCE}", "every call that may match it changes"),
    ],
)
def test_c_refused(call: str, obligation: str, tmp_path: Path) -> None:
    result = transformed(C.replace("CALL", call), "a.c", tmp_path)
    assert not result.made("MPI_Reduce(" if "MPI_Reduce(" in call else call)
    assert any(obligation in refusal for refusal in result.refused(call))
    assert "MPI_Wait(" not in result.text


def test_sums_may_be_added_in_another_order_if_the_user_says_so(tmp_path: Path) -> None:
    call = "MPI_Reduce(sums, whole, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);"
    result = transformed(C.replace("CALL", call), "a.c", tmp_path, Options(reassociate=True))
    assert "MPI_Ireduce(" in result.text
    own = "MPI_Reduce(counts, totals, 3, MPI_INT, plus, 0, MPI_COMM_WORLD);"
    result = transformed(C.replace("CALL", own), "a.c", tmp_path / "own", Options(reassociate=True))
    assert "MPI_Ireduce(" not in result.text


OTHERS = {
    "the same kind": ("if (rank == 0) MPI_Bcast(counts, 0, MPI_INT, 0, MPI_COMM_WORLD);", False),
    "another kind": ("if (rank == 0) MPI_Barrier(MPI_COMM_SELF);", True),
    "another communicator": ("if (rank % 2) MPI_Bcast(counts, 3, MPI_INT, 0, half);", True),
    "unseen": ("if (rank == 0) unseen();", False),
    "all see the same unseen": ("unseen();", True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_all_that_may_match_or_none(name: str, tmp_path: Path) -> None:
    """A broadcast at one place stays if one at another may have to match it."""
    other, changes = OTHERS[name]
    text = (
        C.replace("CALL", CALLS["Bcast"])
        .replace("/* then */", other)
        .replace("/* before main */", "void unseen(void);")
    )
    result = transformed(text, "a.c", tmp_path)
    assert ("MPI_Ibcast(" in result.text) == changes
    if not changes:
        assert any("every call that may match it" in refusal for refusal in result.refused(CALLS["Bcast"]))


def test_what_gains_nothing_stays_as_it_is(tmp_path: Path) -> None:
    text = C.replace("CALL", ALLREDUCE).replace("work(step);", "line[1] += all_largest;")
    assert transformed(text, "a.c", tmp_path).text == text


def test_buffers_are_in_use_until_the_end(tmp_path: Path) -> None:
    """Nothing that writes what is sent, reads what is received, or changes counts moves in between."""
    for touch in ("part[3] = step;", "line[0] = others[2];", "counts[1] = 2;", "starts[0] = 1;"):
        folder = tmp_path / touch.split("[")[0]
        text = C.replace("CALL", CALLS["Allgatherv"]).replace("work(step);", f"{touch} work(step);")
        text = text.replace("line[i - 1] + by", "line[i - 1] + by + line[0]")
        result = transformed(text, "a.c", folder)
        if "MPI_Wait(" in result.text:
            assert result.text.index("MPI_Wait(&") < result.text.index(touch), touch


@pytest.mark.parametrize(
    "body",
    [
        "int all;\n    MPI_Allreduce(&largest, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);\n    all_largest = all;",
        "int all[3];\n    MPI_Allreduce(part, all, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);",
        "int all;\n    MPI_Allreduce(&largest, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);",
        "int all;\n    kept = &all;\n    MPI_Allreduce(&largest, kept, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);",
        "int mine[2] = {rank, 1};\n    MPI_Allreduce(mine, totals, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);",
    ],
)
def test_a_procedure_with_a_local_buffer_is_not_divided(body: str, tmp_path: Path) -> None:
    text = C.replace("/* before main */", f"static void reduce(void)\n{{\n    {body}\n}}").replace("CALL", "reduce();")
    assert "reduce_first" not in transformed(text, "a.c", tmp_path).text


@pytest.mark.mpi
def test_a_procedure_is_divided_around_its_callers_work(tmp_path: Path, thorough: bool) -> None:
    text = C.replace("/* before main */", f"static void reduce(void)\n{{\n    largest += 1;\n    {ALLREDUCE}\n}}")
    result = transformed(text.replace("CALL", "reduce();"), "a.c", tmp_path)
    assert result.text.index("reduce_first();\n        work(step);") > 0
    result.assert_behaves_as_before(thorough)


FORTRAN = """\
program p
  USE
  implicit none
  INCLUDE
  integer, parameter :: n = 400
  real(8) :: field(n), line(n), big, all_big
  real :: small(3), smallest(3)
  integer :: part(n), others(8 * n), counts(8), starts(8), rank, np, step, i, ierr, totals(3)
  logical :: flag, flags
  complex(8) :: z(2), zs(16)
  character(len=12) :: name
  HANDLE :: comm
  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, np, ierr)
  totals = rank
  others = 0
  smallest = 0
  flags = .false.
  all_big = 0
  zs = 0
  name = 'none'
  do i = 1, 8
    counts(i) = 2 + i
    starts(i) = 20 * (i - 1)
  end do
  do i = 1, n
    part(i) = 3 * i + rank
    field(i) = mod(i * 37 + rank, 101)
    line(i) = field(i)
  end do
  do step = 1, 3
    big = field(step) + rank
    small = [1.0, 2.0, 3.0] + rank
    flag = rank > 1
    z = cmplx(rank, step, 8)
    if (rank == 0) name = 'some name'
    CALL
    do i = 2, n
      line(i) = 0.5d0 * line(i) + 0.25d0 * line(i - 1) + step
    end do
    print '(2i4,2z17.16,4i8,l2,3z9.8,1x,a)', rank, step, all_big, line(n), totals, sum(others), flags, smallest, name
    print '(4z17.16)', real(zs(2)), aimag(zs(2)), field(2), field(3)
  end do
  call MPI_Finalize(ierr)
end program p
"""
FORTRAN_CALLS = {
    "Bcast": "call MPI_Bcast(others, n, MPI_INTEGER, 0, comm, ierr)",
    "scalar": "call MPI_Allreduce(big, all_big, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm, ierr)",
    "reals": "call MPI_Allreduce(small, smallest, 3, MPI_REAL, MPI_MIN, comm, ierr)",
    "in place": "call MPI_Allreduce(MPI_IN_PLACE, totals, 3, MPI_INTEGER, MPI_SUM, comm, ierr)",
    "logical": "call MPI_Allreduce(flag, flags, 1, MPI_LOGICAL, MPI_LOR, comm, ierr)",
    "complex": "call MPI_Allgather(z, 2, MPI_DOUBLE_COMPLEX, zs, 2, MPI_DOUBLE_COMPLEX, comm, ierr)",
    "character": "call MPI_Bcast(name, 12, MPI_CHARACTER, 0, comm, ierr)",
    "element": "call MPI_Bcast(field(2), 2, MPI_DOUBLE_PRECISION, 0, comm, ierr)",
    "another kind of argument": "call MPI_Bcast(all_big, 1, MPI_DOUBLE_PRECISION, 0, comm, ierr)",
    "Gatherv": "call MPI_Gatherv(part, counts(rank + 1), MPI_INTEGER, others, counts, starts, MPI_INTEGER, 0, comm, ierr)",
    "Alltoall": "call MPI_Alltoall(part, 5, MPI_INTEGER, others, 5, MPI_INTEGER, comm, ierr)",
    "Scan": "call MPI_Scan(counts, totals, 3, MPI_INTEGER, MPI_SUM, comm, ierr)",
}
INTERFACES = {
    "mpif.h": ("", "include 'mpif.h'", "integer"),
    "mpi": ("use mpi", "", "integer"),
    "mpi_f08": ("use mpi_f08", "", "type(MPI_Comm)"),
}


def fortran(call: str, interface: str) -> str:
    use, include, handle = INTERFACES[interface]
    return FORTRAN.replace("CALL", call).replace("USE", use).replace("INCLUDE", include).replace("HANDLE", handle)


def fixed(text: str) -> str:
    """The program in fixed form."""
    lines = [textwrap.wrap(line.strip(), 66, break_long_words=False) for line in text.splitlines()]
    return "\n".join("\n     &".join(pieces).join(["      ", ""]) for pieces in lines) + "\n"


@pytest.mark.parametrize("name", FORTRAN_CALLS)
def test_fortran_calls_are_taken_apart(name: str, tmp_path: Path) -> None:
    call = FORTRAN_CALLS[name]
    result = transformed(fortran(call, "mpi"), "a.f90", tmp_path, Options(reassociate=True))
    assert "nonblocking" in result.made(call), result.at(call).refusals
    assert result.text.index("all_big, line(n)") > result.text.index("call lapwing_a_end")


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("interface", "form"),
    [
        ("mpi", "a.f90"),
        pytest.param("mpif.h", "a.f90", marks=pytest.mark.long),
        ("mpif.h", "a.f"),
        pytest.param("mpi_f08", "a.f90", marks=pytest.mark.long),  # takes long to compile
    ],
)
def test_fortran_results_are_the_same(interface: str, form: str, tmp_path: Path, thorough: bool) -> None:
    between = "\n    do i = 2, n\n      line(i) = line(i) + line(i - 1) / 8 + totals(1)\n    end do\n    "
    text = fortran(between.join(FORTRAN_CALLS.values()), interface)
    text = fixed(text) if form == "a.f" else text
    result = transformed(text, form, tmp_path, Options(reassociate=True))
    found = [c for c in result.outcome.communications if any(a.transformation == "nonblocking" for a in c.actions)]
    assert len(found) == len(FORTRAN_CALLS)
    result.assert_behaves_as_before(thorough)


@pytest.mark.mpi
def test_fortran_without_an_error_code(tmp_path: Path, thorough: bool) -> None:
    call = "call MPI_Bcast(others, n, MPI_INTEGER, 0, comm)"
    result = transformed(fortran(call, "mpi_f08"), "a.f90", tmp_path)
    assert "nonblocking" in result.made(call)
    result.assert_behaves_as_before(thorough, 2)


@pytest.mark.parametrize(
    ("call", "obligation"),
    [
        ("call MPI_Bcast(others(1:9:2), 5, MPI_INTEGER, 0, comm, ierr)", "contiguous memory"),
        ("call MPI_Bcast(n, 0, MPI_INTEGER, 0, comm, ierr)", "contiguous memory"),
        (
            "call MPI_Allreduce(big, all_big, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)",
            "does not depend on its order",
        ),
        (
            "call MPI_Allreduce(small, smallest, 3, MPI_REAL, MPI_MIN, comm, ierr)",
            "does not depend on its order",
        ),
        ("if (rank < 99) call MPI_Bcast(others, n, MPI_INTEGER, 0, comm, ierr)", "every call that may match"),
    ],
)
def test_fortran_refused(call: str, obligation: str, tmp_path: Path) -> None:
    result = transformed(fortran(call, "mpi"), "a.f90", tmp_path)
    assert any(obligation in refusal for refusal in result.refused(call))
    assert "MPI_WAIT" not in result.text
