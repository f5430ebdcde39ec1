"""Small programs read, with what the survey and the analyses under it say of their lines."""

from __future__ import annotations

from pathlib import Path

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.analysis.memory.mod_ref import ModRef
from lapwing.overlap.analysis.memory.scalar_values import Values
from lapwing.overlap.analysis.messages.completions import Started
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


def read(text: str, name: str) -> Program:
    """Read C or Fortran, by the name's suffix."""
    return read_c_text(text, name=name) if Path(name).suffix == ".c" else read_text(text, name=name)


class Surveyed:
    """One program. Lines are named by a piece of their text that no other line before them holds."""

    def __init__(self, text: str, name: str = "a.f90") -> None:
        self.text = text
        self.program = read(text, name)
        graph = CallGraph.of(self.program)
        touches = ModRef(self.program, graph, Aliases.of(self.program, graph))
        self.sites = list(sites_of(self.program, graph))
        started = Started(self.sites, touches)
        self.regions = Regions(self.program, touches, self.sites, started)
        self.matching = Matching(self.sites, Values(touches))

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
