"""gfortran reads the same statements as the front end does: its own dump of the parsed program is the oracle."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from needs import GFORTRAN

from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Assign, Call, Jump, Loop
from lapwing.overlap.languages.fortran.reading import read_fortran

pytestmark = pytest.mark.skipif(not GFORTRAN.is_here, reason=GFORTRAN.reason)

FIXED = """\
      subroutine s(a, b, n)
      implicit double precision (a-h, o-z)
      dimension a(n, n), b(*)
      character*40 text
      external f
      logical l
      data l /.true./
      sf(x) = 2*x
      do 10 i = 1, n
      do 10 j = 1, n
   10 a(i, j) = sf(b(j))  +
c     a comment
     &  1.0d0
      do 20 i = 1, n
        if (a(i, i) . gt . 0) go to 20
        text = 'it''s one literal over two lines; with marks ! and & in
     1 it'
        b(i) = -a(i, 1)**2**3 - 1; b(i+1) = 0
   20 continue
      if (l) call f(text)
      if (n - 1) 30, 40, 40
   30 call g(b(2))
      return
   40 continue
      end
"""

FREE = """\
module m
  implicit none
  real, allocatable :: w(:,:)
contains
  recursive subroutine s(n, b)
    integer, intent(in) :: n
    real b(n) ; integer :: i, j
    allocate(w(0:n, 2)) ! with bounds
    outer: do i = 1, n
      do j = 1, &
        ! between
        & n
        if (b(j) > 1) cycle outer
        w(i, :) = [b(j), 2.0]
      end do
    end do outer
    select case (n)
    case (:3) ; b = 1
    case default
      call s(n - 1, b) ; return
    end select
    if (n == 1) then ; b(1) = 3 ; else if (n > 2) then
      b(2) = 4
    else
      call inner
    end if
  contains
    subroutine inner
      b(1) = b(n)
    end subroutine inner
  end subroutine s
end module m
"""


@pytest.mark.parametrize(("name", "text"), [("a.f", FIXED), ("a.f90", FREE)])
def test_statements_are_those_gfortran_sees(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    dump = subprocess.run(
        ["gfortran", "-fsyntax-only", "-fdump-fortran-original", "-std=legacy", "-w", str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    found = Counter(re.findall(r"(?m)^(?:\s*\d+)?\s+(ASSIGN|CALL|DO|RETURN|CYCLE)\b", dump))
    program = read_fortran([path])
    assert not program.problems
    assert statements(program) == found


def statements(program: Program) -> Counter[str]:
    read: Counter[str] = Counter()
    for procedure in program.procedures.values():
        for statement in procedure.body.walk():
            match statement:
                case Assign():
                    read["ASSIGN"] += 1
                case Call():
                    read["CALL"] += 1
                case Loop():
                    read["DO"] += 1
                case Jump(kind="return"):
                    read["RETURN"] += 1
                case Jump(kind="continue"):
                    read["CYCLE"] += 1
    return read
