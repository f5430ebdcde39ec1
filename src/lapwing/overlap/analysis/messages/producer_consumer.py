"""The minimal region from a communication's producer to its consumer (P2, figure 4).

From a call, control flow is followed backwards to the nearest statements that write what it sends (or access what it receives
into), and forwards to the nearest that use what it receives (or write what it sends): on every path, around enclosing loops,
into procedures called on the way, and out to callers.

The distance is P2's getDistance, in statements; a loop that is passed counts as more than any straight-line code.
"""

from __future__ import annotations

import bisect
import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.mod_ref import MemoryReference, ModRef, dies
from lapwing.overlap.analysis.messages.completions import Completions, Piece, everywhere
from lapwing.overlap.analysis.messages.sites import Site
from lapwing.overlap.dataflow.call_graph import CallSite
from lapwing.overlap.dataflow.control_flow import ENTRY, EXIT, Edge, Flow, Node, Part, Way
from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import If, Loop, Statement, While

_PASSING = 1000
# Enough to say where the region ends, and bounds each search in a huge procedure.
_MOST_STOPS = 8
_MOST_NODES = 2000
_FAR = {True: frozenset({Way.ENTER, Way.SKIP}), False: frozenset({Way.LEAVE, Way.SKIP})}


@dataclass(frozen=True)
class Step:
    """A node on the way, and the edge to the next one of the same procedure in the search's direction."""

    procedure: str
    node: int
    way: Way | None = None


@dataclass(frozen=True)
class Stop:
    """A statement that a search found. ``path``: from the call to it, both included."""

    procedure: Procedure
    statement: Statement
    distance: int
    path: tuple[Step, ...]


@dataclass(frozen=True)
class Nearest:
    """The nearest statements on every path (the first few), nearest first. ``end``: where paths without any end, in words."""

    stops: tuple[Stop, ...]
    end: str

    @property
    def first(self) -> Stop | None:
        return self.stops[0] if self.stops else None


@dataclass(frozen=True)
class Region:
    """``producers`` and ``consumers`` of what the site communicates. Both are empty for calls without data."""

    site: Site
    producers: Nearest
    consumers: Nearest


_NONE = Nearest((), "")


class Regions:
    """Finds regions; searches share memoised results."""

    def __init__(self, program: Program, mod_ref: ModRef, sites: Sequence[Site], completions: Completions) -> None:
        self.program = program
        self._sites = {id(site.statement): site for site in sites}
        self.mod_ref = mod_ref
        self.graph = mod_ref.graph
        self.completions = completions
        self._flows: dict[str, Flow] = {}
        self._conditions: dict[tuple[str, Expression], bool] = {}
        self._called: dict[str, dict[int, CallSite]] = {}
        self._reaching: dict[frozenset[str], frozenset[str]] = {}
        self._inner: dict[tuple[object, ...], tuple[tuple[Stop, ...], int | None]] = {}
        self._outer: dict[tuple[object, ...], Nearest] = {}

    def of(self, site: Site) -> Region:
        moved = self.completions.pieces_of(site) if site.message.buffers else self.completions.delivered(site)
        if not moved:
            return Region(site, _NONE, _NONE)
        # A send's producer writes its buffer; a receive's buffer is free after its last use, whether read or write.
        before = tuple(replace(piece.reference, writes=not piece.sent) for piece in moved)
        after = tuple(replace(piece.reference, writes=piece.received) for piece in moved)
        producing: _Wanted = _Accessing(self, before, site, moved)
        if site.message.kind is mpi.Kind.COMPLETION:
            producing = self._starts(site)
        consuming = _Accessing(self, after, site, moved)
        return Region(site, self._search(site, producing, backward=True), self._search(site, consuming, backward=False))

    def flow(self, procedure: Procedure) -> Flow:
        if procedure.key not in self._flows:
            self._flows[procedure.key] = Flow.of(procedure)
        return self._flows[procedure.key]

    def site_of(self, statement: Statement) -> Site | None:
        return self._sites.get(id(statement))

    def _starts(self, completion: Site) -> _Wanted:
        starts = self.completions.starts_of(completion)
        again = [
            other
            for start in starts
            if start.message.kind is mpi.Kind.PERSISTENT
            for other in self.completions.completions_of(start)
            if other.message.kind is mpi.Kind.PERSISTENT
        ]
        sites = tuple(dict.fromkeys((*starts, *again)))
        keys = frozenset(site.procedure.key for site in sites)
        if keys not in self._reaching:
            self._reaching[keys] = self._callers_of(keys)
        return _Statements(frozenset(id(site.statement) for site in sites), self._reaching[keys])

    def _callers_of(self, keys: frozenset[str]) -> frozenset[str]:
        """These procedures, and all that may call them, directly or not."""
        found, waiting = set(keys), list(keys)
        while waiting:
            for caller in self.graph.callers(waiting.pop()) - found:
                found.add(caller)
                waiting.append(caller)
        return frozenset(found)

    # ---- searching ----------------------------------------------------------------------------------------------------

    def _search(self, site: Site, wanted: _Wanted, *, backward: bool) -> Nearest:
        start = self.flow(site.procedure).node_of(site.statement).number
        return self._from(site.procedure, start, wanted, backward, inside=frozenset())

    def _from(
        self, procedure: Procedure, start: int, wanted: _Wanted, backward: bool, inside: frozenset[str]
    ) -> Nearest:
        stops, left, distance = self._within(procedure, start, wanted, backward)
        if stops or left is None:
            return Nearest(tuple(stops), "" if stops else "none is near")
        outer = self._outside(procedure, wanted, backward, inside)
        joined = (Stop(s.procedure, s.statement, s.distance + distance, (*left, *s.path)) for s in outer.stops)
        return Nearest(tuple(joined), outer.end)

    def _within(
        self, procedure: Procedure, start: int, wanted: _Wanted, backward: bool
    ) -> tuple[list[Stop], tuple[Step, ...] | None, int]:
        """The stops reached inside the procedure, and the path to its entry (or exit) with its length, if that is reached."""
        flow = self.flow(procedure)
        edges = flow.predecessors if backward else flow.successors
        goal = ENTRY if backward else EXIT
        guards = self._lasting(procedure, flow.nodes[start].guards)
        came: dict[int, tuple[int, Way]] = {}
        waiting: list[tuple[int, int]] = []
        best: dict[int, int] = {}
        stops: list[Stop] = []

        def push(node: int, distance: int) -> None:
            for edge in edges[node]:
                if guards and _impossible(flow.nodes[edge.node if backward else node], edge.way, guards):
                    continue
                length = distance + self._length(edge, backward)
                if length < best.get(edge.node, length + 1):
                    best[edge.node] = length
                    came[edge.node] = (node, edge.way)
                    heapq.heappush(waiting, (length, edge.node))

        push(start, 0)
        left: tuple[Step, ...] | None = None
        arrived = 0
        while waiting and len(stops) < _MOST_STOPS and len(best) < _MOST_NODES:
            distance, number = heapq.heappop(waiting)
            if distance > best[number]:
                continue
            if number == goal:
                left, arrived = _way(procedure, came, start, number), distance
                continue
            node = flow.nodes[number]
            if node.statement is None or node.part is Part.TOP:
                push(number, distance)
                continue
            found, passes = self._at(procedure, node.statement, wanted, backward)
            if found:
                path = _way(procedure, came, start, number)
                stops += [replace(s, distance=distance + s.distance, path=(*path, *s.path)) for s in found]
            if passes is not None:
                push(number, distance + passes)
        return sorted(stops, key=lambda stop: stop.distance), left, arrived

    def _lasting(
        self, procedure: Procedure, guards: tuple[tuple[Expression, bool], ...]
    ) -> tuple[tuple[Expression, bool], ...]:
        """The conditions that are invariant in the procedure."""
        return tuple((condition, holds) for condition, holds in guards if self._lasts(procedure, condition))

    def _lasts(self, procedure: Procedure, condition: Expression) -> bool:
        question = (procedure.key, condition)
        if question not in self._conditions:
            read = self.mod_ref.of_expression(condition, procedure)
            self._conditions[question] = not any(
                reference.writes and self.mod_ref.may_overlap(reference, value)
                for statement in procedure.body.walk()
                for reference in self.mod_ref.of(statement, procedure)
                for value in read
            ) and not any(value.writes for value in read)
        return self._conditions[question]

    @staticmethod
    def _length(edge: Edge, backward: bool) -> int:
        return _PASSING if edge.way in _FAR[backward] else 1

    def _at(
        self, procedure: Procedure, statement: Statement, wanted: _Wanted, backward: bool
    ) -> tuple[tuple[Stop, ...], int | None]:
        """What is found at a statement, with paths that begin in it; and the length of the path past it, if there is one."""
        site = self._call_at(procedure, statement)
        if site is not None and site.callee is not None:
            callee = self.program.procedures[site.callee]
            inner = wanted.entering(site, procedure, callee)
            found, passes = ((), None) if inner is None else self._inside(callee, inner, backward)
            if (found or passes is not None) and not wanted.here(statement, procedure, itself=True):
                return found, passes
        if wanted.here(statement, procedure):
            return (Stop(procedure, statement, 0, ()),), None
        return (), 0

    def _inside(self, callee: Procedure, wanted: _Wanted, backward: bool) -> tuple[tuple[Stop, ...], int | None]:
        question = (callee.key, wanted.key(), backward)
        if question not in self._inner:
            self._inner[question] = ((), 0)  # for recursion: the outer call covers it
            start = EXIT if backward else ENTRY
            stops, left, distance = self._within(callee, start, wanted, backward)
            self._inner[question] = (tuple(stops), None if left is None else distance)
        return self._inner[question]

    def _outside(self, procedure: Procedure, wanted: _Wanted, backward: bool, inside: frozenset[str]) -> Nearest:
        """The same search in the procedure's callers."""
        if not wanted.outlives(procedure):
            return Nearest((), f"what it communicates does not outlive {procedure.name}")
        calls = self.graph.calls_of(procedure.key)
        if not calls:
            main = procedure.kind == "program" or procedure.name == "main"
            what = "the program begins" if backward else "the program ends"
            return Nearest((), what if main else f"nobody in the sources calls {procedure.name}")
        if procedure.key in inside:
            return Nearest((), f"{procedure.name} calls itself")
        question = (procedure.key, wanted.key(), backward)
        if question not in self._outer:
            self._outer[question] = Nearest((), "")
            results = [self._from_call(site, wanted, backward, inside | {procedure.key}) for site in calls]
            stops = sorted((s for result in results for s in result.stops), key=lambda stop: stop.distance)
            ends = dict.fromkeys(result.end for result in results if result.end)
            self._outer[question] = Nearest(tuple(stops), next(iter(ends), ""))
        return self._outer[question]

    def _from_call(self, site: CallSite, wanted: _Wanted, backward: bool, inside: frozenset[str]) -> Nearest:
        caller = self.program.procedures[site.procedure]
        outer = wanted.leaving(site, self.program.procedures[site.callee or ""], caller)
        if outer is None:
            return Nearest((), f"what it communicates does not outlive {site.callee}")
        start = self.flow(caller).node_of(site.statement).number
        found = self._from(caller, start, outer, backward, inside)
        return found

    def _call_at(self, procedure: Procedure, statement: Statement) -> CallSite | None:
        """The call of a procedure of the program that a statement makes."""
        if procedure.key not in self._called:
            self._called[procedure.key] = {
                id(site.statement): site for site in self.graph.sites[procedure.key] if site.callee is not None
            }
        return self._called[procedure.key].get(id(statement))


def _impossible(node: Node, way: Way, guards: tuple[tuple[Expression, bool], ...]) -> bool:
    """Whether an If at ``node`` cannot branch this way where the guards hold."""
    if way not in (Way.THEN, Way.ELSE) or not isinstance(node.statement, If):
        return False
    return (node.statement.condition, way is Way.ELSE) in guards


def _way(procedure: Procedure, came: dict[int, tuple[int, Way]], start: int, end: int) -> tuple[Step, ...]:
    steps = [Step(procedure.key, end)]
    number = end
    while True:
        number, way = came[number]
        steps.append(Step(procedure.key, number, way))
        if number == start:
            return tuple(reversed(steps))


# ---- what is searched for ---------------------------------------------------------------------------------------------


class _Wanted(ABC):
    """What a search looks for, in terms of one procedure."""

    @abstractmethod
    def key(self) -> object:
        """Equal for equal questions."""

    @abstractmethod
    def here(self, statement: Statement, procedure: Procedure, *, itself: bool = False) -> bool:
        """Whether the statement is one that is searched for, its blocks (and if ``itself``, its calls) not included."""

    @abstractmethod
    def entering(self, site: CallSite, caller: Procedure, callee: Procedure) -> _Wanted | None:
        """The same in terms of a callee; None if nothing is to be found there."""

    @abstractmethod
    def leaving(self, site: CallSite, callee: Procedure, caller: Procedure) -> _Wanted | None:
        """The same in terms of a caller; None if it means nothing there."""

    @abstractmethod
    def outlives(self, procedure: Procedure) -> bool: ...


@dataclass(frozen=True)
class _Accessing(_Wanted):
    """Statements that conflict with memory references: those that write the memory, and for references that write also those
    that read it."""

    regions: Regions
    mod_ref: tuple[MemoryReference, ...]
    origin: Site
    moved: tuple[Piece, ...]

    def key(self) -> object:
        return ("touches", self.mod_ref)

    def here(self, statement: Statement, procedure: Procedure, *, itself: bool = False) -> bool:
        mod_ref = self.regions.mod_ref
        found = mod_ref.itself(statement, procedure) if itself else mod_ref.of(statement, procedure)
        site = self.regions.site_of(statement)
        if site is not None:
            found = (*(t for t in found if t not in self._other_parts(site)), *self._delivered(site))
        return any(self._concerns(mine, theirs) for theirs in found for mine in self.mod_ref)

    def _other_parts(self, site: Site) -> frozenset[MemoryReference]:
        """References of another call's buffers that start elsewhere in the same array: correct programs do not receive twice
        into one place, or into what is being sent, under two different names."""
        if site is self.origin or site.procedure.key != self.origin.procedure.key:
            return frozenset()
        apart = [
            piece.reference
            for piece in self.regions.completions.pieces_of(site)
            if (own := [mine.argument for mine in self.moved if mine.reference.symbol == piece.reference.symbol])
            and piece.argument not in own
        ]
        return frozenset(replace(reference, writes=writes) for reference in apart for writes in (False, True))

    def _delivered(self, site: Site) -> list[MemoryReference]:
        """What a completion delivers from calls other than the one whose region is searched."""
        starts = self.regions.completions.starts_of(site)
        own = (self.origin, *self.regions.completions.starts_of(self.origin))
        if self.origin.message.kind is mpi.Kind.COMPLETION or any(start in own for start in starts):
            return []
        mod_ref = self.regions.mod_ref
        brought = (
            piece.reference
            for start in starts
            for piece in self.regions.completions.pieces_of(start)
            if piece.received and piece.reference not in self._other_parts(start)
        )
        return [everywhere(reference, mod_ref) for reference in brought]

    def _concerns(self, mine: MemoryReference, theirs: MemoryReference) -> bool:
        return (mine.writes or theirs.writes) and self.regions.mod_ref.may_overlap(mine, theirs)

    def entering(self, site: CallSite, caller: Procedure, callee: Procedure) -> _Wanted | None:
        mod_ref = self.regions.mod_ref
        statement = mod_ref.of(site.statement, caller)
        if not any(self._concerns(mine, theirs) for theirs in statement for mine in self.mod_ref):
            return None
        inner = (t for mine in self.mod_ref for t in mod_ref.inside(mine, site.call, callee, caller))
        return replace(self, mod_ref=tuple(dict.fromkeys(inner)))

    def leaving(self, site: CallSite, callee: Procedure, caller: Procedure) -> _Wanted | None:
        outer = [
            self.regions.mod_ref.translated(t, site.call, callee, caller) for t in self.mod_ref if not dies(t, callee)
        ]
        kept = tuple(dict.fromkeys(t for t in outer if t is not None))
        return replace(self, mod_ref=kept) if kept else None

    def outlives(self, procedure: Procedure) -> bool:
        return any(not dies(t, procedure) for t in self.mod_ref)


@dataclass(frozen=True)
class _Statements(_Wanted):
    """Certain calls, by their statements' ids. ``reaching``: the procedures in which, or in whose callees, they are."""

    statements: frozenset[int]
    reaching: frozenset[str]

    def key(self) -> object:
        return ("statements", self.statements)

    def here(self, statement: Statement, procedure: Procedure, *, itself: bool = False) -> bool:
        return id(statement) in self.statements

    def entering(self, site: CallSite, caller: Procedure, callee: Procedure) -> _Wanted | None:
        return self if callee.key in self.reaching else None

    def leaving(self, site: CallSite, callee: Procedure, caller: Procedure) -> _Wanted | None:
        return self

    def outlives(self, procedure: Procedure) -> bool:
        return True


# ---- what lies between ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stretch:
    """What a path passes: ``loops`` and calls of procedures that compute, whole ones only; the loops whose back edge it takes;
    how often it enters or leaves a procedure."""

    loops: int
    calls: int
    around: tuple[Statement, ...]
    crossings: int

    @property
    def works(self) -> bool:
        return self.loops + self.calls > 0


class Stretches:
    """Measures the paths of regions."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._spots: dict[str, tuple[list[tuple[int, int]], list[tuple[int, int]]]] = {}
        self._working: dict[str, bool] = {}

    def of(self, path: Sequence[Step], *, backward: bool) -> Stretch:
        """What a search's path passes, its ends not included."""
        flows = [self._regions.flow(self._regions.program.procedures[step.procedure]) for step in path]
        nodes = [flow.nodes[step.node] for flow, step in zip(flows, path, strict=True)]
        ways = [step.way for step in path]
        if backward:
            flows, nodes, ways = flows[::-1], nodes[::-1], [*ways[-2::-1], None]
        loops = calls = crossings = 0
        around: dict[int, Statement] = {}
        begin = 0
        for number, way in enumerate(ways):
            here = nodes[number]
            last = number == len(nodes) - 1
            crossing = not last and flows[number] is not flows[number + 1]
            if way is Way.BACK and here.statement is not None:
                around[id(here.statement)] = here.statement
            if last or crossing or way is Way.BACK:
                more = self._between(flows[number].procedure, nodes[begin], here)
                loops, calls = loops + more[0], calls + more[1]
                begin = number + 1
            crossings += crossing
        return Stretch(loops, calls, tuple(around.values()), crossings)

    def _between(self, procedure: Procedure, first: Node, last: Node) -> tuple[int, int]:
        start, end = _point(first, procedure, after=True), _point(last, procedure, after=False)
        loops, calls = self._of(procedure)
        return _count(loops, start, end), _count(calls, start, end)

    def _of(self, procedure: Procedure) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        if procedure.key not in self._spots:
            statements = list(procedure.body.walk())
            loops = [(s.span.start, s.span.end) for s in statements if isinstance(s, Loop | While)]
            calls = [
                (site.statement.span.start, site.statement.span.end)
                for site in self._regions.graph.sites[procedure.key]
                if site.callee is not None and self._works(site.callee)
            ]
            self._spots[procedure.key] = (sorted(loops), sorted(calls))
        return self._spots[procedure.key]

    def _works(self, key: str) -> bool:
        if key not in self._working:
            self._working[key] = False  # for recursion
            body = self._regions.program.procedures[key].body
            self._working[key] = any(isinstance(s, Loop | While) for s in body.walk()) or any(
                self._works(callee) for callee in self._regions.graph.callees(key)
            )
        return self._working[key]


def _point(node: Node, procedure: Procedure, *, after: bool) -> int:
    """The position in the text after (or before) a node."""
    statement = node.statement
    if statement is None:
        return procedure.body.span.start if node.number == ENTRY else procedure.body.span.end
    if isinstance(statement, Loop | While) and node.part is not Part.HEAD:
        return statement.body.span.start if node.part is Part.TOP else statement.body.span.end
    return statement.span.end if after and not statement.blocks() else statement.span.start


def _count(spots: list[tuple[int, int]], start: int, end: int) -> int:
    first = bisect.bisect_left(spots, (start, 0))
    return sum(1 for spot in spots[first : bisect.bisect_left(spots, (end, 0))] if spot[1] <= end)
