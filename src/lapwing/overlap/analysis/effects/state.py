"""The state of the transfer function within a statement: the environment, and the effects found so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Section
from lapwing.overlap.analysis.effects.effects import MessageOperation
from lapwing.overlap.analysis.effects.facts import Facts
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.ir.accesses import UNKNOWN, Access, Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Cast,
    Deref,
    Element,
    Expression,
    Member,
    Name,
    Number,
    Slice,
    Storage,
    Symbol,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.source.spans import Span

_VOLATILE = "volatile variables"


class State(ABC):
    """``depth``: the nesting depth of the statement. ``sectionless``: accesses get no sections."""

    def __init__(
        self, analysis: Facts, procedure: Procedure, environment: Environment, *, sectionless: bool = False
    ) -> None:
        self.analysis = analysis
        self.procedure = procedure
        self.environment = environment
        self.sectionless = sectionless
        self.depth = 0  # nesting depth
        # The effects of the current statement.
        self.where: Span | None = None
        self.found: list[Access] = []
        self.operations: list[MessageOperation] = []
        self.states: set[str] = set()
        self.barrier: str | None = None
        self._io = False
        # Found already in this statement: most reads are subscripts, which recur.
        self._scalars: set[tuple[int, bool]] = set()

    def language(self) -> Language:
        return language_of_procedure(self.analysis.program, self.procedure)

    def section(self, element: Element) -> Section | None:
        if self.sectionless or not isinstance(element.base, Name):
            return None
        symbol = element.base.symbol
        if symbol.pointer and self.environment.is_changed(symbol):
            return None
        return self.bound(Section(tuple(map(self.environment.subscript, element.indices))))

    def declared(self, bound: Expression | None) -> Affine | None:
        """The value of an array's declared bound, where nothing has changed it since the procedure began."""
        if bound is None or (self.sectionless and not isinstance(bound, Number)):
            return None
        return self.environment.affine(bound) if self.analysis.is_invariant(bound, self.procedure) else None

    def bound(self, section: Section) -> Section:
        bound, conditions, origins = self.environment.terms.needed(section.names)
        return section.constrained(bound, conditions, origins) if bound or origins else section

    def is_exact(self, section: Section | None) -> bool:
        """Whether every subscript is expressed by values at the beginning and by loops that certainly run all their
        iterations."""
        return section is not None and None not in section.subscripts and self.runs_through(section)

    def runs_through(self, section: Section) -> bool:
        """Whether the section's bound terms take all of their values, rather than an unknown one of them."""
        return self.environment.terms.iterations.issuperset(section.bound)

    def subexpressions(self, place: Expression) -> None:
        """The reads needed to compute a place's address, without the place itself."""
        match place:
            case Element(base=base, indices=indices):
                for index in indices:
                    self.value(index)
                if isinstance(base, Name):
                    if base.symbol.pointer:
                        self.value(base)
                else:
                    self.subexpressions(base)
            case Member(base=base):
                self.subexpressions(base)
            case Deref(pointer=pointer):
                self.value(pointer)
            case Name():
                return
            case _:
                self.value(place)

    def target(self, place: Expression, *, must: bool, value: Affine | None = None) -> None:
        """The place is written."""
        match place:
            case Name(symbol=symbol) if symbol.dimensions is None or symbol.pointer:
                self.access_scalar(symbol, writes=True)
                self.environment.assign(symbol, value if symbol.type.base == "integer" else None)
            case Name() | Element():
                self.subexpressions(place)
                self._forget_requests_in(place)
                section = self.section(place) if isinstance(place, Element) else None
                exact = self.is_exact(section) and not _leaves_gaps(place)
                self.access(place, section, writes=True, must=must and exact)
            case Member() | Deref():
                self.subexpressions(place)
                self.access(place, None, writes=True, must=False)
            case Cast(value=inner):
                self.target(inner, must=False)
            case _:
                self.barrier = self.barrier or "an assignment to something that is not understood"
                self.environment.forget(set(), everything=True)

    def _forget_requests_in(self, place: Name | Element) -> None:
        """The written place may hold requests; a constant subscript selects one of them."""
        base = place.base if isinstance(place, Element) else place
        if not isinstance(base, Name):
            self.environment.forget_requests()
            return
        index = self.environment.subscript(place.indices[0]) if isinstance(place, Element) else None
        if isinstance(place, Element) and len(place.indices) == 1 and isinstance(index, Affine) and not index.terms:
            self.environment.forget_request((base.symbol.key, index.constant))
        else:
            self.environment.forget_requests({base.symbol.key})

    def access_scalar(self, symbol: Symbol, *, writes: bool) -> None:
        if (id(symbol), writes) in self._scalars:
            return
        self._scalars.add((id(symbol), writes))
        if symbol.target or symbol.pointer or (symbol.storage is Storage.ARGUMENT and not symbol.by_value):
            memory = self.objects(Name(symbol))
            self.found.append(Access(symbol, None, writes, writes, False, memory, self.where))
        else:
            self.found.append(self.analysis.scalar(symbol, writes=writes).at(self.where))
        if symbol.volatile:
            self.states.add(_VOLATILE)

    def access(self, place: Expression, section: Section | None, *, writes: bool, must: bool) -> None:
        base = place.base if isinstance(place, Element) else place
        symbol = base.symbol if isinstance(base, Name) else None
        through = symbol is not None and symbol.pointer and symbol.type.base == "pointer"
        memory = self.objects(place)
        stale = through and symbol is not None and self.environment.is_changed(symbol)
        self.found.append(Access(symbol, section, writes, must, through, memory, self.where, stale=stale))
        if any(s is not None and s.volatile for s in (symbol, *(m.symbol for m in memory))):
            self.states.add(_VOLATILE)
        if writes:
            self.environment.changed |= {m.key for m in memory}
            if symbol is not None:
                # For a pointer it is the pointee that changes.
                self.environment.changed |= set() if through else {symbol.key}
            self.forget_scalars(memory)

    def objects(self, place: Expression) -> frozenset[Memory]:
        return self.analysis.aliases.objects(place, self.analysis.origin(self.procedure))

    def pointee(self, argument: Expression, *, writes: bool) -> None:
        """C: an unknown part of an argument's pointee is accessed."""
        if isinstance(argument, AddressOf) and isinstance(argument.object, Name):
            target = argument.object
            if target.symbol.dimensions is None and not writes:
                self.access(target, None, writes=False, must=False)
                return
        memory = self.analysis.aliases.pointees(argument, self.analysis.origin(self.procedure))
        symbol, through = None, False
        inner, addressed = without_casts(argument), False
        if isinstance(inner, AddressOf):
            inner, addressed = inner.object, True
            if isinstance(inner, Element):
                inner, addressed = inner.base, False
        if isinstance(inner, Name):
            symbol, through = inner.symbol, inner.symbol.pointer and not addressed
        stale = through and symbol is not None and self.environment.is_changed(symbol)
        self.found.append(Access(symbol, None, writes, False, through, memory, self.where, stale=stale))
        if writes:
            self.environment.changed |= {m.key for m in memory}
            self.forget_scalars(memory)

    def value_of_pointer(self, argument: Expression) -> None:
        if isinstance(argument, Name) and argument.symbol.dimensions is not None and not argument.symbol.pointer:
            return  # an array's address, not its elements
        self.value(argument)

    def forget_scalars(self, memory: Iterable[Memory]) -> None:
        """Scalars written through a pointer, or by unknown code, lose their values."""
        environment = self.environment
        for item in memory:
            if item == UNKNOWN:
                environment.forget({k for k in environment.values}, everything=True)
            elif item.symbol is not None and item.symbol.dimensions is None:
                environment.forget({item.symbol.key})

    @abstractmethod
    def value(self, expression: Expression) -> None:
        """The expression is read."""


def _leaves_gaps(place: Expression) -> bool:
    """Whether an array section in the place has a stride."""
    return any(isinstance(e, Slice) and e.step not in (None, Number(1), Number(-1)) for e in place.walk())
