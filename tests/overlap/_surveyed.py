"""Small programs read, with what the survey and the analyses under it say of their lines."""

from __future__ import annotations

from pathlib import Path

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.analysis.memory.mod_ref import ModRef
from lapwing.overlap.analysis.memory.scalar_values import Values
from lapwing.overlap.analysis.messages.completions import Completions
from lapwing.overlap.analysis.messages.matching import Matching
from lapwing.overlap.analysis.messages.producer_consumer import Nearest, Region, Regions, Stretch, Stretches
from lapwing.overlap.analysis.messages.sites import Site, sites_of
from lapwing.overlap.dataflow.call_graph import CallGraph
from lapwing.overlap.ir.program import Program
from lapwing.overlap.languages.c.reading import read_c_text
from lapwing.overlap.languages.fortran.reading import read_text
from lapwing.overlap.report.outcome import Communication, Options
from lapwing.overlap.survey import survey
from lapwing.overlap.transforms.context import Context

# P2, figure 1.
FIGURE_1 = """\
subroutine exchange(dum, g, rank, north, south, jst, jend, k, nx)
  use mpi
  integer rank, north, south, jst, jend, j, k, nx, ierror
  double precision dum(5, 100), g(5, 100, 100, 100)
  if (rank == 0) then
    do j = jst, jend
      dum(1, j) = g(1, nx, j, k)
      g(2, nx, j, k) = 0
    end do
    call MPI_SEND(dum(1, jst), 5*(jend-jst+1), MPI_DOUBLE_PRECISION, south, 1, MPI_COMM_WORLD, ierror)
  else
    call MPI_RECV(dum(1, jst), 5*(jend-jst+1), MPI_DOUBLE_PRECISION, north, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    do j = jst, jend
      g(3, nx, j, k) = 1
    end do
  end if
  g(1, 1, 1, 1) = dum(1, jst)
end subroutine
"""

PIPELINE = """\
#include <mpi.h>
static double u[100], v[100];
void steps(int n, MPI_Comm comm)
{
  u[0] = 0;
  for (int t = 0; t < n; t++) {
    v[t] = u[3];
    MPI_Sendrecv_replace(u, n, MPI_DOUBLE, 1, 0, 1, 0, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
      v[i] = v[i] / 2;
    u[t] = v[t];
  }
}
"""

ACROSS = """\
module fields
  double precision :: u(100), w(100)
end module
subroutine fill(a, n)
  integer n, i
  double precision a(n)
  do i = 1, n
    a(i) = i
  end do
end subroutine
subroutine use_it(b, n)
  integer n, i
  double precision b(n), s
  s = 0
  do i = 1, n
    s = s + b(i)
  end do
  print *, s
end subroutine
subroutine other(n)
  use fields
  integer n, i
  do i = 1, n
    w(i) = i
  end do
end subroutine
subroutine send(c, n)
  use mpi
  integer n, ierr
  double precision c(n)
  call MPI_BCAST(c, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
end subroutine
program main
  use fields
  double precision :: x(100)
  integer n
  n = 100
  call fill(x, n)
  call fill(w, n)
  call send(x, n)
  call other(n)
  call use_it(w, n)
  call use_it(x, n)
end program
"""


def read(text: str, name: str) -> Program:
    """Read C or Fortran, by the name's suffix."""
    return read_c_text(text, name=name) if Path(name).suffix == ".c" else read_text(text, name=name)


class Surveyed:
    """One program. Lines are named by a piece of their text that no other line before them holds."""

    def __init__(self, text: str, name: str = "a.f90") -> None:
        self.text = text
        self.program = read(text, name)
        graph = CallGraph.of(self.program)
        mod_ref = ModRef(self.program, graph, Aliases.of(self.program, graph))
        self.sites = list(sites_of(self.program, graph))
        completions = Completions(self.sites, mod_ref)
        self.regions = Regions(self.program, mod_ref, self.sites, completions)
        self.matching = Matching(self.sites, Values(mod_ref))

    def line(self, piece: str) -> int:
        lines = self.text.splitlines()
        return next(number for number, line in enumerate(lines, 1) if piece in line)

    def site(self, piece: str) -> Site:
        return next(site for site in self.sites if self._line_of(site) == self.line(piece))

    def _line_of(self, site: Site) -> int:
        return self.program.sources[site.span.source].line_of(site.span.start)

    def region(self, piece: str) -> Region:
        return self.regions.of(self.site(piece))

    def lines(self, nearest: Nearest) -> list[int]:
        """The lines of what was found, nearest first."""
        found = (stop.statement.span for stop in nearest.stops)
        return list(dict.fromkeys(self.program.sources[span.source].line_of(span.start) for span in found))

    def producers(self, piece: str) -> list[int]:
        return self.lines(self.region(piece).producers)

    def consumers(self, piece: str) -> list[int]:
        return self.lines(self.region(piece).consumers)

    def stretch(self, piece: str, *, backward: bool) -> Stretch:
        region = self.region(piece)
        stop = (region.producers if backward else region.consumers).first
        assert stop is not None
        return Stretches(self.regions).of(stop.path, backward=backward)

    def matches(self, piece: str) -> list[int]:
        return sorted(self._line_of(site) for site in self.matching.of(self.site(piece)))

    def where(self, *pieces: str) -> list[int]:
        return [self.line(piece) for piece in pieces]


def surveyed(program: Program, context: Context | None = None) -> dict[int, Communication]:
    """The survey's entries by line."""
    context = context or Context(Analysis(program), Options())
    return {communication.place.line: communication for communication in survey(program, context)}
