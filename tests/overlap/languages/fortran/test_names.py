"""Fortran: what is added can be named where it is called, whatever IMPLICIT, USE, PRIVATE, BIND and interfaces say."""

from __future__ import annotations

from pathlib import Path

import pytest
from _building import write
from _transformed import transformed
from everyday import everyday

from lapwing.overlap.ir.expressions import Invocation, Unread
from lapwing.overlap.ir.statements import Call
from lapwing.overlap.languages.fortran.reading import read_fortran

EXCHANGE = """\
  subroutine exchange(u, g, n)@bind@
    @use@
    integer, intent(in) :: n
    double precision, intent(in)@optional@ :: u(n)
    double precision, intent(inout) :: g(n)
    integer :: me, np, error
    call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
    call MPI_Comm_size(MPI_COMM_WORLD, np, error)
    call MPI_Sendrecv(u, n, MPI_DOUBLE_PRECISION, mod(me + 1, np), 2, g, n, MPI_DOUBLE_PRECISION, &
                      mod(me + np - 1, np), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
"""
MODULE = f"""\
module halo
  use @mpi@
  implicit none @none@
  @private@
contains
{EXCHANGE}
end module
"""
PROGRAM = """\
program main
  use @mpi@
  @uses@
  implicit none @none@
  @interface@
  double precision :: u(1000), g(1000), w(1000)
  integer :: me, np, i, step, error@names@
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, np, error)
  u = me
  g = 0
  w = 1
  do step = 1, 3
    call exchange(u, g, 1000)
    do i = 1, 1000
      w(i) = 0.5d0 * w(i) + i
    end do
    do i = 1, 1000
      u(i) = w(i) + 0.25d0 * g(i)
    end do
  end do
  call MPI_Bcast(w, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
  call MPI_Bcast(g, 1000, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, error)
  print *, me, np, sum(u), sum(w), sum(g)
  call MPI_Finalize(error)
end program
"""
INTERFACE = f"""\
interface
{EXCHANGE.partition("    integer :: me")[0]}
  end subroutine
end interface
"""

# What is filled in: (for @uses@ and the like, whether the procedure is divided)
HALO = {"parts": MODULE + PROGRAM, "uses": "use halo"}
CASES: dict[str, tuple[dict[str, str], bool]] = {
    "module": (HALO, True),
    "external procedures must be declared": ({**HALO, "mpi": "mpi_f08", "none": "(type, external)"}, True),
    "module used in part": ({**HALO, "uses": "use halo, only: exchange"}, False),
    "module used with another name": (
        {**HALO, "parts": HALO["parts"].replace("call exchange", "call swap"), "uses": "use halo, swap => exchange"},
        True,
    ),
    "private module": ({**HALO, "private": "private\n  public :: exchange"}, False),
    "name for the linker": ({**HALO, "bind": " bind(c, name='exchange')"}, False),
    "names that variables have": ({**HALO, "names": ", exchange_first"}, True),
    "name that is almost too long": (
        {
            **HALO,
            "parts": HALO["parts"].replace("exchange", "exchange_of_all_that_lies_beside_the_part_of_this_processor"),
        },
        True,
    ),
    "external procedure": ({"parts": EXCHANGE + PROGRAM, "use": "use @mpi@"}, True),
    "external procedure, others must be declared": (
        {
            "parts": EXCHANGE + PROGRAM,
            "use": "use @mpi@",
            "mpi": "mpi_f08",
            "none": "(type, external)",
            "interface": "external :: exchange",
        },
        False,
    ),
    "external procedure that needs its interface": (
        {"parts": EXCHANGE + PROGRAM, "use": "use @mpi@", "interface": INTERFACE, "optional": ", optional"},
        False,
    ),
}


def filled(values: dict[str, str]) -> str:
    text = values["parts"]
    defaults = {
        "mpi": "mpi",
        "optional": "",
        "none": "",
        "private": "",
        "uses": "",
        "interface": "",
        "names": "",
        "bind": "",
        "use": "",
    }
    for _ in range(3):  # an interface has parts of its own, and those name the module of MPI
        for name, default in defaults.items():
            text = text.replace(f"@{name}@", values.get(name, default))
    return text


RUN = (
    "module",
    "module used with another name",
    "external procedure that needs its interface",
)


@pytest.mark.mpi
@pytest.mark.parametrize("name", everyday(CASES, RUN))
def test_compiles_and_behaves_as_before(name: str, tmp_path: Path, thorough: bool) -> None:
    values, divided = CASES[name]
    result = transformed(filled(values), "program.f90", tmp_path)
    assert ("_last(" in result.text.partition("what overlapped")[0]) == divided
    assert result.outcome.changes
    result.assert_behaves_as_before(thorough, 2)


@pytest.mark.mpi
@pytest.mark.parametrize(
    "name",
    [
        "the_program_that_tells_in_its_name_all_that_it_does_for_those_who_use_it.f90",
        "copy.f90",
        pytest.param("slot.f90", marks=pytest.mark.long),
        pytest.param("copy_out.f90", marks=pytest.mark.long),
    ],
)
def test_file_names(name: str, tmp_path: Path, thorough: bool) -> None:
    result = transformed(filled(HALO), name, tmp_path)
    assert result.outcome.changes
    result.assert_behaves_as_before(thorough, 2)


@pytest.mark.parametrize("name", ["module used in part", "private module"])
def test_says_that_parts_cannot_be_named(name: str, tmp_path: Path) -> None:
    result = transformed(filled(CASES[name][0]), "program.f90", tmp_path)
    assert any("can be named" in reason for reason in result.refused("call MPI_Sendrecv", "start-earlier"))


def test_two_interfaces_in_a_file(tmp_path: Path) -> None:
    other = EXCHANGE.replace("exchange", "older").replace("MPI_STATUS_IGNORE, error)", "MPI_STATUS_IGNORE, np)")
    text = filled({**HALO, "mpi": "mpi_f08", "parts": MODULE + PROGRAM + other, "use": "use mpi"})
    result = transformed(text, "program.f90", tmp_path)
    assert not result.outcome.changes
    assert any("one interface" in reason for reason in result.refused("call MPI_Bcast(w"))


# ---- names of procedures that are in no source -------------------------------------------------------------------------

OUTSIDE = """\
module wrappers
  interface
    real(8) function fraction(x)
      real(8) :: x
    end function
  end interface
contains
  subroutine second(t)
    real(8) :: t
    t = 0
  end subroutine
end module

module other
contains
  subroutine inside(x)
    real(8) :: x
    x = 1
  end subroutine
end module

subroutine s(x)
  @use@
  implicit none
  real(8) :: x
  @declare@
  @call@
contains
  subroutine own(y)
    real(8) :: y
    y = 2
  end subroutine
end subroutine
"""
CALLS = {
    # What stands in the specification part, a call, and what it is said to be of.
    "intrinsic": ("", "", "x = scale(x, 1)", "scale"),
    "typed intrinsic": ("", "real(8) :: scale", "x = scale(x, 1)", "scale"),
    "external": ("", "real(8), external :: scale", "x = scale(1d0)", "external scale"),
    "external subroutine": ("", "external :: cpu_time", "call cpu_time(x)", "external cpu_time"),
    "library": ("", "real(8), external :: omp_get_wtime", "x = omp_get_wtime()", "omp_get_wtime"),
    "interface": ("", "interface\nsubroutine cpu_time(t)\nreal(8) :: t\nend subroutine\nend interface", "call cpu_time(x)",
                  "external cpu_time"),
    "interface of a module": ("use wrappers", "", "x = fraction(x)", "external fraction"),
    "interface not used": ("use wrappers, only: second", "", "x = fraction(x)", "fraction"),
    "missing module": ("use missing, only: cpu_time", "", "call cpu_time(x)", "external cpu_time"),
    "missing module's other name": ("use missing, only: cpu_time => f", "", "call cpu_time(x)", "external cpu_time"),
    "unmistakable": ("use missing", "", "x = sqrt(x)", "sqrt"),
    "of a module": ("use wrappers", "", "call second(x)", "second"),
    "of a module that is not used": ("", "", "call inside(x)", "external inside"),
    "of the compiler's, with a namesake": ("", "", "call second(x)", "external second"),
    "renamed to a namesake of its own": ("use other, only: f => inside", "", "call f(x)", "inside"),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_call_is_of_what_its_scope_says(case: str, tmp_path: Path) -> None:
    use, declare, call, expected = CALLS[case]
    text = OUTSIDE.replace("@use@", use).replace("@declare@", declare).replace("@call@", call)
    (path,) = write({"a.f90": text}, tmp_path / "a")
    (statement,) = read_fortran([path]).procedures["s"].body.statements
    found = [e.name for e in (statement, *statement.every_expression()) if isinstance(e, Call | Invocation)]
    assert found == [expected]


def test_a_missing_module_may_hold_what_looks_like_an_intrinsic(tmp_path: Path) -> None:
    text = OUTSIDE.replace("@use@", "use missing").replace("@declare@", "").replace("@call@", "x = x + index(3)")
    (path,) = write({"a.f90": text}, tmp_path / "a")
    (statement,) = read_fortran([path]).procedures["s"].body.statements
    assert any(isinstance(e, Unread) for e in statement.every_expression())


def test_of_namesakes_the_one_that_is_used_is_called(tmp_path: Path) -> None:
    text = (
        OUTSIDE.replace("@use@", "use other, only: f => inside").replace("@declare@", "").replace("@call@", "call f(x)")
    )
    (path,) = write({"a.f90": text.replace("own", "inside")}, tmp_path / "a")
    program = read_fortran([path])
    procedure = program.procedures["s"]
    (statement,) = procedure.body.statements
    assert isinstance(statement, Call)
    resolved = program.resolve(statement.name, procedure)
    assert resolved is not None
    assert resolved.key == "module other::inside"
