"""Surveys every communication of a program as it was read, with its outcome.

For each: its place, the nearest statements that produce and consume its data and what lies between them
(messages/producer_consumer.py), the calls at its other end (messages/matching.py), what the transformations did or refused, and
if none applied, why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.analysis.memory.mod_ref import ModRef
from lapwing.overlap.analysis.memory.scalar_values import Values
from lapwing.overlap.analysis.messages.completions import Completions
from lapwing.overlap.analysis.messages.matching import Matching
from lapwing.overlap.analysis.messages.producer_consumer import Region, Regions, Stop, Stretch, Stretches
from lapwing.overlap.analysis.messages.sites import COMMUNICATING, Site, sites_of
from lapwing.overlap.dataflow.call_graph import CallGraph, Target
from lapwing.overlap.ir.expressions import Constant, Unread
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Loop, Opaque, Statement, While
from lapwing.overlap.languages.registry import language_of
from lapwing.overlap.report.outcome import Action, Communication, Place, Refusal
from lapwing.overlap.source.spans import Source, Span
from lapwing.overlap.transforms.context import Context, Note

_MOST_MATCHES = 10


def survey(program: Program, context: Context) -> tuple[Communication, ...]:
    """One entry for each MPI call of ``program`` that communicates; ``context`` holds the transformations' notes."""
    surveyor = _Surveyor(program, context)
    found = [*surveyor.read(), *surveyor.unread(), *surveyor.through_pointers()]
    return tuple(sorted(found, key=lambda c: (str(c.place.path), c.place.line)))


def without_source(graph: CallGraph) -> tuple[str, ...]:
    """Unknown procedures that are called by name, those with the most calls first."""
    called = Counter(site.name for site in graph.unknown_calls() if site.name is not None and not site.pointer)
    return tuple(name for name, _ in sorted(called.items(), key=lambda one: (-one[1], one[0])))


class Places:
    """Lines of a program's sources."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def line(self, source: int, offset: int) -> int:
        return self._sources[source].line_of(offset)

    def at(self, span: Span) -> Place:
        source = self._sources[span.source]
        line = self.line(span.source, span.start)
        begin = source.line_starts[line - 1]
        end = source.data.find(b"\n", begin)
        text = source.data[begin : end if end >= 0 else len(source.data)]
        return Place(source.path, line, text.decode("latin-1").strip())

    def of_stop(self, stop: Stop | None) -> Place | None:
        return None if stop is None else self.at(stop.statement.span)


class _Surveyor:
    def __init__(self, program: Program, context: Context) -> None:
        self._program = program
        analysis = context.analysis
        same = analysis.graph.program is program
        self._graph = analysis.graph if same else CallGraph.of(program)
        mod_ref = ModRef(program, self._graph, analysis.aliases if same else Aliases.of(program, self._graph))
        self._sites = list(sites_of(program, self._graph))
        completions = Completions(self._sites, mod_ref)
        self._matching = Matching(self._sites, Values(mod_ref))
        self._regions = Regions(program, mod_ref, self._sites, completions)
        self._stretches = Stretches(self._regions)
        self._places = Places(program.sources)
        self._notes: dict[Span, list[Note]] = {}
        self._notes_of: dict[str, list[Note]] = {}
        self._sort(context.notes)

    def _sort(self, notes: Iterable[Note]) -> None:
        """Sorts notes by the MPI calls, or by the procedures, that they are about."""
        called = {
            (site.call.span or site.statement.span): site.callee
            for sites in self._graph.sites.values()
            for site in sites
            if site.callee is not None
        }
        for note in notes:
            callee = called.get(note.site)
            if callee is None:
                self._notes.setdefault(note.site, []).append(note)
                continue
            for key in self._reached(callee):
                self._notes_of.setdefault(key, []).append(note)

    def _reached(self, key: str) -> set[str]:
        found, waiting = {key}, [key]
        while waiting:
            for callee in self._graph.callees(waiting.pop()) - found:
                found.add(callee)
                waiting.append(callee)
        return found

    # ---- calls that were read -----------------------------------------------------------------------------------------

    def read(self) -> Iterator[Communication]:
        for site in self._sites:
            yield self._communication(site)

    def _communication(self, site: Site) -> Communication:
        place = self._places.at(site.span)
        region = self._regions.of(site)
        before, after = (
            self._stretch(region.producers.first, backward=True),
            self._stretch(region.consumers.first, backward=False),
        )
        notes = [*self._notes.get(site.statement.span, ()), *self._notes_of.get(site.procedure.key, ())]
        matches = self._matching.of(site)
        remarks = []
        if not notes:
            remarks.append(_reason(site, region, before, after, self._places))
        if not self._written_out(site):
            remarks.append("the call stands in a macro")
        if len(matches) > _MOST_MATCHES:
            remarks.append(f"{len(matches) - _MOST_MATCHES} more calls may match")
        return Communication(
            place,
            site.message.name,
            site.procedure.name,
            self._places.of_stop(region.producers.first),
            self._places.of_stop(region.consumers.first),
            self._words(site, region, before, after),
            tuple(self._places.at(match.span) for match in self._near(site, matches)),
            self._actions(notes),
            self._refusals(notes),
            "; ".join(remarks) or None,
        )

    def _stretch(self, stop: Stop | None, *, backward: bool) -> Stretch:
        return self._stretches.of(stop.path, backward=backward) if stop is not None else Stretch(0, 0, (), 0)

    def _written_out(self, site: Site) -> bool:
        """Whether the call's name is written at its place."""
        text = self._program.sources[site.span.source].text(site.span).lower()
        return (site.call.name or "").lower() in text

    def _near(self, site: Site, matches: Sequence[Site]) -> Sequence[Site]:
        """The first few matches, of the same procedure and file before others."""

        def distance(other: Site) -> tuple[bool, bool]:
            return other.procedure.key != site.procedure.key, other.span.source != site.span.source

        return sorted(matches, key=distance)[:_MOST_MATCHES]

    def _actions(self, notes: Iterable[Note]) -> tuple[Action, ...]:
        return tuple(Action(note.transformation, note.text, self._places.at(note.site)) for note in notes if note.made)

    def _refusals(self, notes: Iterable[Note]) -> tuple[Refusal, ...]:
        return tuple(
            Refusal(note.transformation, note.obligation, note.text, self._where(note.where), note.advice)
            for note in notes
            if not note.made
        )

    def _where(self, span: Span | None) -> Place | None:
        return self._places.at(span) if span is not None and span.source >= 0 else None

    def _words(self, site: Site, region: Region, before: Stretch, after: Stretch) -> str:
        """The region in words."""
        here = self._places.at(site.span)
        producer, consumer = region.producers.first, region.consumers.first
        first, last = self._places.of_stop(producer) or here, self._places.of_stop(consumer) or here
        parts = [_lines(first, last, straight=_is_straight(before, after))]
        around = {id(loop): loop for loop in (*before.around, *after.around)}
        parts += [f"around the loop of {self._loop(loop, last)}" for loop in around.values()]
        inside = [
            f"{count} {noun}{'s' * (count != 1)}"
            for count, noun in ((before.loops + after.loops, "loop"), (before.calls + after.calls, "working call"))
            if count
        ]
        if inside:
            parts.append(" and ".join(inside) + " inside")
        crossings = before.crossings + after.crossings
        if crossings:
            parts.append(f"across {crossings} call{'s' * (crossings != 1)}")
        if producer is None and region.producers.end:
            parts.append(f"no producer before ({region.producers.end})")
        if consumer is None and region.consumers.end:
            parts.append(f"no consumer after ({region.consumers.end})")
        return ", ".join(parts)

    def _loop(self, loop: Statement, near: Place) -> str:
        place = self._places.at(loop.span)
        return f"line {place.line}" + (f" of {place.path.name}" if place.path != near.path else "")

    # ---- calls that were not read -------------------------------------------------------------------------------------

    def unread(self) -> Iterator[Communication]:
        """Calls in statements and expressions that could not be read."""
        for procedure in self._program.procedures.values():
            for statement in procedure.body.walk():
                if isinstance(statement, Opaque):
                    yield from self._tokens(statement.span, procedure, statement.reason)
                for part in statement.every_expression():
                    if isinstance(part, Unread):
                        span = part.span or statement.span
                        yield from self._tokens(span, procedure, "an expression that is not understood")
        for one in self._program.left_out:
            around = self._around(one.span)
            names = ", ".join(sorted(one.macros)) or "what is given"
            note = (
                f"conditional compilation leaves it out, by {names}: -D NAME, as the compiler has it, may bring it in"
            )
            for piece in one.pieces:
                yield from self._tokens(piece, around, note)

    def _around(self, span: Span) -> Procedure | None:
        """The innermost procedure that holds the place."""
        found = [p for p in self._program.procedures.values() if p.span.contains(span)]
        return min(found, key=lambda p: p.span.end - p.span.start, default=None)

    def _tokens(self, span: Span, procedure: Procedure | None, reason: str) -> Iterator[Communication]:
        if procedure is None:
            return
        source = self._program.sources[span.source]
        for name, offset in _names(source, span):
            message = mpi.lookup(name)
            if message is None or message.kind not in COMMUNICATING:
                continue
            place = self._places.at(Span(span.source, offset, offset + len(name)))
            yield _unknown(place, message.name, procedure, f"it stands in what could not be read: {reason}")

    def through_pointers(self) -> Iterator[Communication]:
        """Calls through pointers, if pointers may point to MPI's calls."""
        names = sorted(self._pointed_to())
        for site in self._graph.unknown_calls() if names else ():
            if site.pointer:
                place = self._places.at(site.call.span or site.statement.span)
                note = f"a call through a pointer, which may be {_listed(names)}: left as it is"
                yield _unknown(place, names[0], self._program.procedures[site.procedure], note)

    def _pointed_to(self) -> Iterator[str]:
        """The communicating calls whose address the program takes."""
        values: set[str] = set()
        for procedure in self._program.procedures.values():
            called = {id(site.call) for site in self._graph.sites[procedure.key] if site.target is Target.MPI}
            for statement in procedure.body.walk():
                if id(statement) in called:
                    continue
                values |= {part.name for part in statement.every_expression() if isinstance(part, Constant)}
        for name in values:
            message = mpi.lookup(name) if mpi.is_mpi_name(name) else None
            if message is not None and message.kind in COMMUNICATING:
                yield message.name


def _unknown(place: Place, call: str, procedure: Procedure, note: str) -> Communication:
    return Communication(place, call, procedure.name, None, None, f"line {place.line} of {place.path.name}", note=note)


def _is_straight(*stretches: Stretch) -> bool:
    """Whether the paths run straight down the text of one procedure."""
    return not any(stretch.around or stretch.crossings for stretch in stretches)


def _lines(first: Place, last: Place, *, straight: bool) -> str:
    if first == last and straight:
        return f"line {first.line} of {first.path.name}"
    if first.path == last.path and straight and first.line < last.line:
        return f"lines {first.line}–{last.line} of {first.path.name}"
    other = "" if first.path == last.path else f" of {first.path.name}"
    return f"from line {first.line}{other} to line {last.line} of {last.path.name}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" or {names[-1]}"


def _reason(site: Site, region: Region, before: Stretch, after: Stretch, places: Places) -> str:
    """Why no transformation was tried."""
    kind = site.message.kind
    if kind is mpi.Kind.BARRIER:
        return "a barrier is there to wait"
    if kind is mpi.Kind.PROBE:
        return "a probe says what there is now, and is left where it is"
    if kind is mpi.Kind.ONE_SIDED:
        return "one-sided communication is left as it is"
    if site.call is not site.statement:
        return "the call is part of an expression"
    producer, consumer = region.producers.first, region.consumers.first
    first = None if producer is None else places.at(producer.statement.span).line
    last = None if consumer is None else places.at(consumer.statement.span).line
    if first is not None and last is not None and not before.works and not after.works:
        if before.crossings or after.crossings:  # the procedures may also compute something independent
            between = f"line {first}, which may produce it, and line {last}, which may use it"
            return f"no computation that is known to be independent of it between {between}"
        return f"no computation between producer (line {first}) and consumer (line {last}){_loop_of(consumer, site, places)}"
    if last is not None and not after.works:
        by = f"by line {last}{_loop_of(consumer, site, places)}"
        return f"may be used at once {by}" if after.crossings else f"used at once {by}"
    if first is not None and last is None and not before.works:
        return f"what it sends is there only from line {first} on, and nothing waits for it after"
    if kind is mpi.Kind.COMPLETION:
        return "it stays where it is"
    return "no transformation applies to this call"


def _loop_of(consumer: Stop | None, site: Site, places: Places) -> str:
    """For a consumer in a loop around which the call is not: that some iterations may not consume."""
    statements = () if consumer is None else consumer.procedure.body.walk()
    for loop in (s for s in statements if isinstance(s, Loop | While)):
        if consumer is not None and loop.span.contains(consumer.statement.span) and not loop.span.contains(site.span):
            line = places.at(loop.span).line
            return f", but for iterations of the loop of line {line} that may not need it"
    return ""


_NAME = re.compile(r"\bP?MPI_\w+(?=\s*\()", re.IGNORECASE)


def _names(source: Source, span: Span) -> Iterator[tuple[str, int]]:
    """The MPI names called in a piece of source, outside comments and strings, with their offsets."""

    begin = source.data.rfind(b"\n", 0, span.start) + 1
    text = source.data[begin : span.end].decode("latin-1")
    text = language_of(source).blanked(text, source.form)
    for match in _NAME.finditer(text):
        if begin + match.start() >= span.start:
            yield match[0], begin + match.start()
