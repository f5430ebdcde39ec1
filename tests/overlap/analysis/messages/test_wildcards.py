"""Wildcards under other names: where the program has any, and which of its receives may be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.messages.wildcards import Wildcards
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.rewriter import argument_of
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.languages.c.reading import read_c
from lapwing.overlap.languages.fortran.reading import read_fortran
from lapwing.overlap.mpi import Role

C = """\
#include <mpi.h>
#include "names.h"
BEFORE
int main(int argc, char **argv)
{
    int x[4], left = 1, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Recv(x, 4, MPI_INT, @source, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(x, 4, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(x, 4, MPI_INT, (rank + 1) % 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
"""
FORTRAN = """\
program p
  USE
  implicit none
  BEFORE
  integer :: x(4), error
  call MPI_Recv(x, 4, MPI_INTEGER, @source, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
end program
"""


def wildcards(program: Program) -> Wildcards:
    return Analysis(program).wildcards


def receives(program: Program) -> list[Call]:
    statements = (s for procedure in program.procedures.values() for s in procedure.body.walk())
    return [s for s in statements if isinstance(s, Call) and argument_of(s, Role.SOURCE) is not None]


def in_c(
    folder: Path, before: str, source: str, header: str = "", defines: dict[str, str | None] | None = None
) -> Program:
    (folder / "names.h").write_text(header)
    (folder / "a.c").write_text(C.replace("BEFORE", before).replace("@source", source))
    return read_c([folder / "a.c"], [folder], defines)


@pytest.mark.parametrize(
    ("before", "source", "header"),
    [
        ("", "MPI_ANY_SOURCE", ""),
        ("enum { ANYBODY = MPI_ANY_SOURCE };", "ANYBODY", ""),
        ("", "ANYBODY", "enum { ANYBODY = MPI_ANY_SOURCE };\n"),
        ("static const int names[2] = {MPI_ANY_SOURCE, 1};", "names[0]", ""),
        ("#define ANY(x) MPI_ANY_##x\nstatic int anybody = ANY(SOURCE);", "anybody", ""),
        ("static int anybody = MPI_ANY_\\\nSOURCE;", "anybody", ""),
        ("", "-2", ""),
    ],
)
def test_c(before: str, source: str, header: str, tmp_path: Path) -> None:
    program = in_c(tmp_path, before, source, header)
    found = wildcards(program)
    first, second, reckoned = receives(program)
    assert found.any
    assert found.of(first) is not None
    assert (found.of(second) is None) == (source in ("MPI_ANY_SOURCE", "-2"))
    assert found.of(reckoned) is None


@pytest.mark.parametrize("before", ["", "/* not MPI_ANY_SOURCE */", 'static const char *text = "MPI_ANY_TAG";'])
def test_c_has_none(before: str, tmp_path: Path) -> None:
    program = in_c(tmp_path, before, "1")
    assert not wildcards(program).any
    assert all(wildcards(program).of(receive) is None for receive in receives(program))


def test_c_macro_from_outside(tmp_path: Path) -> None:
    assert wildcards(in_c(tmp_path, "", "ANYBODY", defines={"ANYBODY": "MPI_ANY_SOURCE"})).any


def test_the_status_of_no_request_has_wildcards(tmp_path: Path) -> None:
    assert wildcards(in_c(tmp_path, "MPI_Status none;", "none.MPI_SOURCE")).any


def in_fortran(folder: Path, use: str, before: str, source: str, defines: dict[str, str] | None = None) -> Program:
    (folder / "a.F90").write_text(FORTRAN.replace("USE", use).replace("BEFORE", before).replace("@source", source))
    return read_fortran([folder / "a.F90"], [folder], defines)


@pytest.mark.parametrize(
    ("use", "before", "source"),
    [
        ("use mpi", "", "MPI_ANY_SOURCE"),
        ("use mpi", "integer, parameter :: anyone = MPI_ANY_SOURCE", "anyone"),
        ("use mpi", "integer, parameter :: anyone = MPI_ANY_&\n    &SOURCE", "anyone"),
        ("use mpi", "integer :: anyone\n  data anyone /MPI_ANY_SOURCE/", "anyone"),
        ("use mpi, anyone => MPI_ANY_SOURCE", "", "anyone"),
        (
            "use mpi, only: MPI_INTEGER, MPI_COMM_WORLD, &\n    MPI_STATUS_IGNORE, anyone => MPI_ANY_SOURCE",
            "",
            "anyone",
        ),
        ("use names", "include 'mpif.h'", "anyone"),
    ],
)
def test_fortran(use: str, before: str, source: str, tmp_path: Path) -> None:
    program = in_fortran(tmp_path, use, before, source)
    assert wildcards(program).any
    assert all(wildcards(program).of(receive) is not None for receive in receives(program))


@pytest.mark.parametrize(
    ("use", "before"),
    [
        ("use mpi", "! not MPI_ANY_SOURCE"),
        ("use mpi, only: MPI_INTEGER, MPI_COMM_WORLD, &\n    MPI_STATUS_IGNORE, MPI_ANY_SOURCE", ""),
    ],
)
def test_fortran_has_none(use: str, before: str, tmp_path: Path) -> None:
    program = in_fortran(tmp_path, use, f"{before}\n  integer :: left = 1", "left")
    assert not wildcards(program).any
    assert all(wildcards(program).of(receive) is None for receive in receives(program))


def test_fortran_macro_from_outside(tmp_path: Path) -> None:
    assert wildcards(in_fortran(tmp_path, "use mpi", "", "ANYONE", {"ANYONE": "MPI_ANY_SOURCE"})).any


def test_fixed_form_on_two_lines(tmp_path: Path) -> None:
    lines = (
        "      program p",
        "      include 'mpif.h'",
        "      parameter (many = MPI_ANY_",
        "     &SOURCE)",
        "      end",
    )
    (tmp_path / "a.f").write_text("\n".join(lines) + "\n")
    assert wildcards(read_fortran([tmp_path / "a.f"])).any
