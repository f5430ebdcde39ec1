"""Which procedures called while communication is in flight may contain progress calls, and of which file.

before:  start … ; call work ; end          work: do i … ; do j … ; end do
after:   the same                           work: do i … ; do j … ; progress ; end do

Obligations. Only the program's one thread runs the procedure, and never from within MPI: it is no callback (as of an MPI
operation or qsort), and is not called from files outside the sources. The language permits it to call procedures with side
effects. If its file does not use MPI itself, it calls the progress procedure of a file in the same folder that does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from lapwing.overlap.dataflow.call_graph import Target
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.statements import Loop, While
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.source.spans import Source, Span
from lapwing.overlap.transforms.context import Context
from lapwing.overlap.transforms.progress.in_flight import InFlight

TRANSFORMATION = "progress-calls"
Found = tuple[str, str, str]
"""A failed obligation, what was found instead, and advice."""


@dataclass
class CalledMeanwhile:
    """``left``: sources that are left unchanged. ``short``: for each transfer, procedures called meanwhile that are too short
    to help."""

    context: Context
    left: frozenset[int]
    short: dict[Span, dict[str, Procedure]] = field(default_factory=dict)

    def may_help(self, procedure: Procedure, in_flight: InFlight) -> bool:
        """Whether the procedure may contain progress calls; if it computes, and may not, notes why."""
        found = self._in_the_way(procedure, in_flight)
        if found is not None and _has_loops(procedure):
            for site in _sites(in_flight):
                self.context.refuse(site, TRANSFORMATION, *found, procedure.span)
        return found is None

    def is_short(self, procedure: Procedure, in_flight: InFlight) -> None:
        """Records that none of the procedure's loops is long enough."""
        for site in _sites(in_flight) if _has_loops(procedure) else ():
            self.short.setdefault(site, {})[procedure.key] = procedure

    def say_short(self) -> None:
        """Notes the transfers that no progress call helps."""
        helped = {note.site for note in self.context.notes if note.made and note.transformation == TRANSFORMATION}
        for site in [site for site in self.short if site not in helped]:
            for procedure in self.short[site].values():
                self.context.refuse(
                    site,
                    TRANSFORMATION,
                    "long loops hold other loops",
                    f"{procedure.name} has none that does",
                    "nothing, if it is soon over; else inline the work where it is called",
                    procedure.span,
                )

    def uses_mpi(self, procedure: Procedure) -> bool:
        """Whether the procedure's file calls MPI itself, and so can have its own progress procedure."""
        return procedure.source in self._communicating

    def lender(self, procedure: Procedure, in_flight: InFlight) -> int | None:
        """The file whose progress procedure is called, where the procedure's own does not use MPI; None if none can help."""
        sources = self.context.analysis.program.sources
        own = sources[procedure.source]
        found = {site.source for site in _sites(in_flight)} - self.left
        # A file in another folder may also belong to other programs.
        near = (n for n in found if sources[n].path.parent == own.path.parent)
        return min((n for n in near if language_of(sources[n]).linkage == language_of(own).linkage), default=None)

    def refuse_lending(self, procedure: Procedure, in_flight: InFlight) -> None:
        """Notes that no file with MPI is near the procedure's own, which does not use MPI."""
        for site in _sites(in_flight):
            self.context.refuse(site, TRANSFORMATION, *_nobody_lends(procedure), procedure.span)

    @cached_property
    def _communicating(self) -> frozenset[int]:
        """Numbers of the sources that call MPI, where it is declared."""
        graph = self.context.analysis.graph
        return frozenset(
            graph.program.procedures[key].source
            for key, sites in graph.sites.items()
            if any(site.target is Target.MPI for site in sites)
        )

    @cached_property
    def _called_without_name(self) -> frozenset[str]:
        """Procedures that a threaded region may call without naming them: through operators and assignments, a type, or a
        macro; with their callees."""
        program = self.context.analysis.program
        named: dict[str, set[str]] = defaultdict(set)
        for source in program.sources:
            language = language_of(source)
            pieces = language.called_without_name(source)
            named[language.linkage].update(word.lower() for piece in pieces for word in _WORD.findall(piece))
        return self.context.analysis.graph.with_callees(
            key
            for key, procedure in program.procedures.items()
            if procedure.name.lower() in named[language_of(program.sources[procedure.source]).linkage]
        )

    def _in_the_way(self, procedure: Procedure, in_flight: InFlight) -> Found | None:
        analysis, name = self.context.analysis, procedure.name
        source = analysis.program.sources[procedure.source]
        if procedure.source in self.left or language_of(source).is_header(source.path):
            return ("its file is compiled by itself, and changed", f"{name} stands in one that stays", "move it")
        if language_of(source).is_pure(procedure, source):
            return ("its procedure may call MPI", f"{name} is PURE or the like", "make it an ordinary procedure")
        others = analysis.graph.in_threads | analysis.graph.from_elsewhere | self._called_without_name
        if procedure.key in others or _is_tied(procedure, source):
            return (
                "one thread runs its procedure, outside of MPI's calls",
                f"{name} may be called by others, or in a region that threads run",
                "name all sources; give the work that hides messages a procedure of its own",
            )
        if not self.uses_mpi(procedure) and self.lender(procedure, in_flight) is None:
            return _nobody_lends(procedure)
        return None


def _nobody_lends(procedure: Procedure) -> Found:
    found = f"none in its folder that could help {procedure.name}"
    return ("a file that uses MPI is changed", found, "move it to such a file or its folder")


def _sites(in_flight: InFlight) -> list[Span]:
    return [site for sites in in_flight.values() for site in sites]


def _has_loops(procedure: Procedure) -> bool:
    return any(isinstance(s, Loop | While) for s in procedure.body.walk())


def _is_tied(procedure: Procedure, source: Source) -> bool:
    """Whether other languages or devices may run the procedure, or its definitions in several files must be identical."""
    head = source.text(Span(procedure.source, procedure.span.start, procedure.body.span.start))
    return _FOR_DEVICES.search(source.data) is not None or language_of(source).is_shared(head)


_WORD = re.compile(r"\w+")
_FOR_DEVICES = re.compile(rb"(?i)\bomp\s+declare\b|\bacc\s+routine\b|\b__(?:global|device)__\b")
