"""What is added to a Fortran file compiles beside the program's own calls of the same MPI procedures with other types.

A compiler that sees a procedure without interface wants all its calls in a file to pass the same types. Some wrappers switch
that off, which hides the fault: here the wrapper's compiler is asked with the check on.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest
from _running import PLAIN, Reference, required
from _transformed import transformed
from everyday import everyday

from lapwing.overlap.report.outcome import Options

INTERFACES = ("include 'mpif.h'", "use mpi", "use mpi_f08")
WORLD = "MPI_COMM_WORLD"
# Lines that both forms understand: none is longer than 72 columns, or continued.
PROGRAM = """\
      program p
      @interface
      double precision a(1000), b(1000), x(1000), y, total
      complex z(40), w(40)
      logical l(20), m(20)
      character(len=30) c, d(2)
      integer r, n, i, t, k(100), kk, left, right, ierr
      @requests
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, r, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      left = mod(r + n - 1, n)
      right = mod(r + 1, n)
      a = r
      x = r
      y = 0
      z = cmplx(r, 1)
      w = 0
      k = r
      kk = r
      l = r .eq. 0
      m = .false.
      c = 'nothing yet'
      d = 'travels'
      call MPI_IRECV(b, 9, @real, left, 9, @world, q(1), ierr)
      call MPI_ISEND(a, 9, @real, right, 9, @world, q(2), ierr)
      call MPI_WAIT(q(2), MPI_STATUS_IGNORE, ierr)
      call MPI_WAIT(q(1), MPI_STATUS_IGNORE, ierr)
      call MPI_IBCAST(b, 9, @real, 0, @world, q(1), ierr)
      call MPI_WAIT(q(1), MPI_STATUS_IGNORE, ierr)
      total = 0
      do t = 1, 3
@calls
      do i = 1, 1000
      x(i) = x(i) * 0.5d0 + i
      end do
      total = total + x(7) + b(3) + real(sum(w)) + sum(k) + kk + y
      if (m(2)) total = total + 1
      print *, r, t, total, c, d(2)
      z = z + t
      end do
      call MPI_FINALIZE(ierr)
      end program
"""


def _message(sent: str, got: str, kind: str, count: str, received: str | None = None) -> str:
    status = "MPI_STATUS_IGNORE"
    return (
        f"      call MPI_SEND({sent}, {count}, {kind}, right, 1, {WORLD}, ierr)\n"
        f"      call MPI_RECV({got}, {received or count}, {kind}, left, 1, {WORLD}, {status}, ierr)\n"
    )


CALLS = {
    "complex": _message("z", "w", "MPI_COMPLEX", "40"),
    "logical": _message("l", "m", "MPI_LOGICAL", "20"),
    "character": _message("d(1)", "c", "MPI_CHARACTER", "30"),
    "scalar": _message("k(1)", "kk", "MPI_INTEGER", "1"),
    "empty": _message("k", "k", "MPI_INTEGER", "0 * t"),
    "broadcast": f"      call MPI_BCAST(k, 100, MPI_INTEGER, 0, {WORLD}, ierr)\n",
    "broadcast scalar": f"      call MPI_BCAST(kk, 1, MPI_INTEGER, 0, {WORLD}, ierr)\n",
    "broadcast text": f"      call MPI_BCAST(c, 30, MPI_CHARACTER, 0, {WORLD}, ierr)\n",
    "reduce in place": f"      call MPI_ALLREDUCE(MPI_IN_PLACE, k, 100, MPI_INTEGER, MPI_MAX, {WORLD}, ierr)\n",
    "reduce to scalar": f"      call MPI_ALLREDUCE(a, y, 1, MPI_DOUBLE_PRECISION, MPI_MAX, {WORLD}, ierr)\n",
}
PROGRAMS = {**CALLS, "two types": CALLS["broadcast"] + CALLS["reduce to scalar"]}


def often(name: str, interface: str, form: str) -> bool:
    """What is compiled every day: some programs with the module, some with the include file, and one with mpi_f08, which takes
    long."""
    if interface == "use mpi_f08":
        return name == "two types" and form == "free"
    if interface == "use mpi":
        return form == "free" and name in ("scalar", "complex", "character", "broadcast text", "two types")
    return form == "fixed" and name in ("empty", "reduce in place", "two types")


def _program(interface: str, calls: str, form: str) -> str:
    requests = "type(MPI_Request) q(2)" if interface.endswith("f08") else "integer q(2)"
    text = PROGRAM.replace("@interface", interface).replace("@requests", requests).replace("@calls\n", calls)
    text = text.replace("@real", "MPI_DOUBLE_PRECISION").replace("@world", WORLD)
    return "\n".join(_in_form(line, form) for line in text.splitlines()) + "\n"


def _in_form(line: str, form: str) -> str:
    if form == "free" or len(line) <= 72:
        return line
    at = line.rindex(", ", 0, 71) + 1
    return f"{line[:at]}\n     &{line[at:]}"


def _strict_compiler() -> list[str]:
    """The compiler behind the wrapper, which refuses calls that pass different types; skips where there is none."""
    tools = required("fortran")
    shown = subprocess.run([tools.compile[0], "-show"], capture_output=True, text=True, check=False)
    words = shown.stdout.split()
    if shown.returncode != 0 or not words or "gfortran" not in words[0]:
        pytest.skip("the Fortran MPI's compiler is not gfortran")
    return [word for word in words if word != "-fallow-argument-mismatch"]


def _compile(source: Path, *options: str) -> str:
    """What the compiler says of errors."""
    command = [*_strict_compiler(), *options, "-Wall", "-c", str(source), "-o", str(source.with_suffix(".o"))]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    ("calls", "interface", "form"),
    [
        pytest.param(calls, *file, id="-".join((name, *file)), marks=() if often(name, *file) else pytest.mark.long)
        for (name, calls), *file in itertools.product(PROGRAMS.items(), INTERFACES, ("free", "fixed"))
    ],
)
def test_compiles_where_the_original_does(calls: str, interface: str, form: str, tmp_path: Path) -> None:
    name = "p.f90" if form == "free" else "p.f"
    result = transformed(_program(interface, calls, form), name, tmp_path, Options(reassociate=True))
    if _compile(result.before, "-fsyntax-only"):
        pytest.skip(f"{interface}: not with this MPI and compiler")
    assert "lapwing_p_" in result.text
    assert form == "free" or all(len(line) <= 72 for line in result.text.splitlines() if line[:1] != "!")
    for options in ((), ("-fallow-argument-mismatch", "-fsyntax-only")):
        assert not _compile(result.after, *options)


@pytest.mark.parametrize("name", everyday(PROGRAMS, ("complex", "broadcast text", "reduce in place")))
def test_behaves_as_before(name: str, tmp_path: Path) -> None:
    result = transformed(_program("use mpi", PROGRAMS[name], "free"), "p.f90", tmp_path, Options(reassociate=True))
    assert re.search(r"call lapwing_p_\w+\(", result.text)
    required("fortran")
    # Not with the strict MPI: in it the original's sends wait for receives that come later.
    original = Reference([result.before])
    assert original.outcome(2, PLAIN).ended_well
    assert not original.differences([result.after], (2,), (PLAIN,))
