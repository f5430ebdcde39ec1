"""Translates a callee's summary into its caller's terms: the actual–formal mapping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine
from lapwing.affine.sections import Section
from lapwing.overlap.analysis.effects.callee import Called, terms_in
from lapwing.overlap.analysis.effects.effects import Effects, MessageOperation
from lapwing.overlap.analysis.effects.state import State
from lapwing.overlap.analysis.effects.value_numbering import INT, canonical_text
from lapwing.overlap.ir.accesses import UNKNOWN, Access, Anchor, Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Deref,
    Element,
    Expression,
    Member,
    Name,
    Storage,
    Symbol,
    Type,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.source.spans import Span

_QUALIFIERS = frozenset({"const", "struct"})


def call_effects(state: State, callee: Procedure, arguments: Sequence[Expression], where: Span | None) -> Called:
    """The effects of a call in the current state. Memoised: most statement lists are analysed repeatedly, and few differ in
    what the call depends on."""
    analysis = state.analysis
    summary = analysis.summary(callee)
    asked = analysis.asked_by(callee, arguments)
    here = state.environment.of(asked.pointers) if state.sectionless else state.environment.of(asked.keys, asked.whole)
    key = (callee.key, id(summary), id(arguments), where, state.sectionless, here)
    entry = analysis.calls.get(key)
    if entry is None:
        # The entry keeps the objects that its key identifies, so that their ids cannot be reused.
        entry = analysis.calls[key] = summary, arguments, _called(state, callee, summary, arguments, where)
    return entry[-1]


def _called(
    state: State, callee: Procedure, summary: Effects, arguments: Sequence[Expression], where: Span | None
) -> Called:
    bindings = ActualFormalMapping(state, callee, arguments)
    if state.sectionless:
        translated = map(bindings.coarse, summary.without_sections)
    else:
        translated = map(bindings.access, summary.accesses)
    accesses = tuple(access.at(where) for access in translated if access is not None)
    written: set[str] = set()
    everything = False
    for access in accesses:
        if access.writes:
            written |= {m.key for m in access.memory}
            everything = everything or UNKNOWN in access.memory
            if access.symbol is not None and not access.through:
                written.add(access.symbol.key)
    operations = tuple(
        replace(o, communicator=None, peer=None, tag=None) if state.sectionless else bindings.operation(o)
        for o in summary.operations
    )
    return Called(accesses, operations, frozenset(written), everything)


class ActualFormalMapping:
    """Maps a callee's dummy arguments, and the terms of its summary, to its caller's."""

    def __init__(self, state: State, callee: Procedure, arguments: Sequence[Expression]) -> None:
        self.state = state
        self.callee = callee
        self.actual = {dummy.key: argument for dummy, argument in zip(callee.parameters, arguments, strict=False)}
        self._values: dict[str, Affine] = {}
        self._unknown: set[str] = set()
        self._sections: dict[Section, Section] = {}  # many accesses have the same section

    def access(self, access: Access) -> Access | None:
        section = None if access.section is None else self._translated(access.section)
        must = access.must and (access.section is None or (section is not None and not self._lossy(access.section)))
        symbol = access.symbol
        access = self._with_memory_here(access)
        if access.anchor is not None:
            anchor = self._anchor_here(access.anchor)
            access = replace(access, anchor=anchor)
            section, must = (None, False) if anchor is None else (section, False)
        if symbol is None or symbol.key not in self.actual:
            stale = symbol is not None and access.through and symbol.key in self.state.environment.changed
            must = must and (section is None or self.state.runs_through(section))
            section, must = (None, False) if stale else (section, must)
            if section is access.section and must == access.must and not stale:
                return access
            stale = stale or access.stale
            return Access(
                symbol, section, access.writes, must, access.through, access.memory, anchor=access.anchor, stale=stale
            )
        return self._through_dummy(access, section, must)

    def coarse(self, access: Access) -> Access | None:
        symbol = access.symbol
        if symbol is not None and symbol.key in self.actual:
            return self._through_dummy(access, None, False)
        return self._with_memory_here(access)

    def _with_memory_here(self, access: Access) -> Access:
        """The same access in the caller's memory: a part of a dummy argument, such as a component, may be accessed without
        naming it."""
        if all(m.key not in self.actual for m in access.memory):
            return access  # most accesses are to globals, which are the same for all callers
        state = self.state
        procedure = state.analysis.origin(state.procedure)
        memory: set[Memory] = set()
        for item in access.memory:
            actual = self.actual.get(item.key)
            if actual is None:
                memory.add(item)
            elif item.symbol is None or not item.symbol.by_value:  # an argument passed by value is the callee's own
                memory |= state.analysis.aliases.objects(actual, procedure)
        return access.in_memory(frozenset(memory))

    def _through_dummy(self, access: Access, section: Section | None, must: bool) -> Access | None:
        assert access.symbol is not None
        dummy, actual = access.symbol, self.actual[access.symbol.key]
        inner = actual
        inner = without_casts(inner)
        analysis = self.state.analysis
        procedure, aliases = analysis.origin(self.state.procedure), analysis.aliases
        if dummy.by_value and not access.through:
            return None
        if dummy.by_value or access.through:
            memory = aliases.pointees(actual, procedure)
            if isinstance(inner, Name) and (inner.symbol.pointer or inner.symbol.dimensions is not None):
                changed = inner.symbol.pointer and inner.symbol.key in self.state.environment.changed
                same = self._same_shape(dummy, inner.symbol) and _same_elements(dummy, inner.symbol)
                kept = section if same and not changed else None
                stale = changed or access.stale
                must = must and kept is not None
                return Access(inner.symbol, kept, access.writes, must, inner.symbol.pointer, memory, stale=stale)
            if isinstance(inner, AddressOf):
                place = inner.object
                base = place.base if isinstance(place, Element) else place
                symbol = base.symbol if isinstance(base, Name) else None
                return Access(symbol, None, access.writes, False, symbol is not None and symbol.pointer, memory)
            return Access(None, None, access.writes, False, False, memory)
        if not is_place(actual):
            return None  # the value of an expression: no memory of the caller's
        memory = aliases.objects(actual, procedure)
        base = actual.base if isinstance(actual, Element) else actual
        if not isinstance(base, Name):
            return Access(None, None, access.writes, False, False, memory)
        if dummy.dimensions is None and isinstance(actual, Element):
            element = self.state.section(actual)
            return Access(base.symbol, element, access.writes, must and self.state.is_exact(element), False, memory)
        if not _same_elements(dummy, base.symbol):
            section = None
        if section is not None and _empty(section):
            return None
        if section is not None and access.anchor is not None:
            if isinstance(actual, Name) and self._is_same(dummy, base.symbol):
                # A section of the whole array: the same section of the caller's.
                return Access(base.symbol, section, access.writes, False, False, memory, anchor=access.anchor)
        elif section is not None:
            offsets = self._offsets(dummy, base.symbol) if isinstance(actual, Name) else None
            if offsets is not None:
                shifted = self.state.bound(section.shifted(offsets))
                must = must and self.state.runs_through(shifted)
                return Access(base.symbol, shifted, access.writes, must, False, memory)
            anchor = self._anchor(dummy, actual)
            if anchor is not None:
                return Access(base.symbol, section, access.writes, False, False, memory, anchor=anchor)
        return Access(base.symbol, None, access.writes, must and dummy.dimensions is None, False, memory)

    def _anchor(self, dummy: Symbol, actual: Expression) -> Anchor | None:
        """Equal for two arguments only if the dummy arrays occupy the same memory with the same shape."""
        if dummy.dimensions is None:
            return None
        environment = self.state.environment
        indices = actual.indices if isinstance(actual, Element) else ()
        place = [environment.affine(index) for index in indices]
        bounds = []
        for number, dimension in enumerate(dummy.dimensions):
            lower = self._bound_value(dimension.lower, callee=True)
            last = number == len(dummy.dimensions) - 1
            upper = Affine() if last else self._bound_value(dimension.upper, callee=True)
            if lower is None or upper is None:
                return None
            bounds.append((lower, upper))
        return (
            self._certain(Anchor(tuple(p for p in place if p is not None), tuple(bounds)))
            if None not in place
            else None
        )

    def _certain(self, anchor: Anchor) -> Anchor | None:
        """None if it contains terms that are bound later."""
        defined = self.state.environment.terms.defined.keys()
        return None if any(form.names & defined for form in anchor.forms()) else anchor

    def _anchor_here(self, anchor: Anchor) -> Anchor | None:
        """A callee's anchor in terms of values at the caller's beginning."""
        names = frozenset[str]().union(*(form.names for form in anchor.forms()))
        self._learn(names)
        return None if names & self._unknown else self._certain(anchor.substitute(self._values))

    def _is_same(self, dummy: Symbol, actual: Symbol) -> bool:
        """Whether equal subscripts select the same elements."""
        offsets = self._offsets(dummy, actual)
        return offsets is not None and all(offset == Affine() for offset in offsets)

    def _same_shape(self, dummy: Symbol, actual: Symbol) -> bool:
        """C: whether equal subscripts select the same elements."""
        inner, outer = dummy.index_space or (), actual.index_space or ()
        return len(inner) == len(outer) and all(
            self._same_value(here.upper, there.upper) for here, there in zip(inner[1:], outer[1:], strict=True)
        )

    def _same_value(self, callees: Expression | None, own: Expression | None) -> bool:
        value = self._bound_value(callees, callee=True)
        return value is not None and value == self._bound_value(own, callee=False)

    def _offsets(self, dummy: Symbol, actual: Symbol) -> tuple[Affine, ...] | None:
        """The differences of the lower bounds where the extents agree (those of the last, slowest dimension may differ)."""
        if dummy.dimensions is None or actual.dimensions is None or len(dummy.dimensions) != len(actual.dimensions):
            return None
        language = self.state.language()
        pairs = list(zip(dummy.dimensions, actual.dimensions, strict=True))
        offsets = []
        for number, (inner, outer) in enumerate(pairs):
            if dummy.allocatable or (dummy.pointer and not language.has_addresses):
                offsets.append(Affine())  # it has the bounds of its actual argument
                continue
            low_in = self._bound_value(inner.lower, callee=True)
            low_out = self._bound_value(outer.lower, callee=False)
            if low_in is None and inner.lower is None and language.has_assumed_shape:
                low_in = Affine(language.index_base)  # an assumed shape's default
            if low_in is None or low_out is None:
                return None
            last = number == (len(pairs) - 1 if language.column_major else 0)
            if not last:
                high_in = self._bound_value(inner.upper, callee=True)
                high_out = self._bound_value(outer.upper, callee=False)
                assumed_shape = inner.upper is None and language.has_assumed_shape
                if not assumed_shape and (
                    high_in is None or high_out is None or high_in - low_in != high_out - low_out
                ):
                    return None
            offsets.append(low_out - low_in)
        return tuple(offsets)

    def _bound_value(self, bound: Expression | None, *, callee: bool) -> Affine | None:
        if bound is None:
            return None
        if not callee:
            return self.state.declared(bound)
        value = self.state.analysis.on_entry(bound)
        if value is None:
            return None
        self._learn(value.names)
        return None if value.names & self._unknown else value.substitute(self._values)

    def operation(self, operation: MessageOperation) -> MessageOperation:
        # Texts are in terms of values at the callee's beginning; only those without terms hold for the caller.
        return replace(
            operation,
            communicator=self._text(operation.communicator),
            peer=self._text(operation.peer),
            tag=self._text(operation.tag),
        )

    def _text(self, text: str | None) -> str | None:
        if text is None or not text.startswith("["):
            return text if text is not None and text.startswith("'") else None
        names = terms_in(text, self.state.environment.terms)
        self._learn(names)
        if names & self._unknown:
            return None
        return text if not any(name in self._values for name in names) else self._rewritten(text, names)

    def _rewritten(self, text: str, names: frozenset[str]) -> str | None:
        if len(names) == 1 and text == canonical_text(Affine.of(next(iter(names)))):
            value = self._values[next(iter(names))]
            if value.names & self.state.environment.terms.defined.keys():
                return None
            return canonical_text(value)
        return None

    # ---- terms --------------------------------------------------------------------------------------------------------

    def _translated(self, section: Section) -> Section:
        if section not in self._sections:
            self._learn(section.names)
            known = section.substitute(self._values, self._unknown)
            if known.lookups:
                environment = self.state.environment
                arrays = {lookup.array for lookup in known.lookups}
                known = known.without_lookups(arrays if environment.lost else self.actual.keys() | environment.changed)
            self._sections[section] = self.state.bound(known)
        return self._sections[section]

    def _lossy(self, section: Section) -> bool:
        return bool(section.names & self._unknown)

    def _learn(self, names: frozenset[str]) -> None:
        for name in names:
            if name in self._values or name in self._unknown:
                continue
            value = self._at_call(name)
            if value is None:
                self._unknown.add(name)
            elif value != Affine.of(name):
                self._values[name] = value

    def _at_call(self, name: str) -> Affine | None:
        """A term of the callee's beginning, expressed in the caller's terms."""
        environment = self.state.environment
        terms = environment.terms
        key = terms.variable.get(name)
        if name in terms.members and self._is_in_argument(terms.members[name]):
            place = self._place_here(terms.members[name])
            return None if place is None else environment.affine(place)
        if key is None:  # an expression that is not affine: the same if nothing it depends on is another's or changed
            depends = terms.origin.get(name, frozenset())
            theirs = self.actual.keys() | terms.invariants.keys()
            if environment.lost or depends & environment.changed or depends & theirs:
                return None
            return Affine.of(name)
        if key in self.actual:
            value = environment.affine(self.actual[key])
            return value if value is not None and self._takes(key, name, value) else None
        if key in terms.invariants:
            return None  # local to this call
        if key in environment.values:
            return environment.values[key]
        if environment.lost or key in environment.changed:
            return None
        return Affine.of(name)

    def _is_in_argument(self, member: Member) -> bool:
        return member.type is not None and any(
            isinstance(e, Name) and e.symbol.key in self.actual for e in member.walk()
        )

    def _place_here(self, member: Member) -> Member | None:
        """The caller's name for a member of the struct that a dummy argument is or points to."""
        match member.base:
            case Deref(Name(dummy)):
                actual = self.actual[dummy.key]
                match actual:
                    case AddressOf(Name(given) as base) if _same_struct(dummy.type.target, given.type):
                        return replace(member, base=base)
                    case Name(given) if _same_struct(dummy.type.target, given.type.target):
                        return replace(member, base=Deref(actual))
            case Name(dummy):
                actual = self.actual[dummy.key]
                if isinstance(actual, Name) and _same_struct(dummy.type, actual.symbol.type):
                    return replace(member, base=actual)
        return None

    def _takes(self, key: str, name: str, value: Affine) -> bool:
        """Whether a dummy argument has the value of its actual argument: an unsigned one does not if that is negative."""
        dummy = next(s for s in self.callee.parameters if s.key == key)
        terms = self.state.environment.terms
        matters = dummy.type.unsigned and (dummy.type.bytes == INT or name in terms.relied)
        return not matters or terms.is_natural(value)


def _empty(section: Section) -> bool:
    """Whether the section is certainly empty: the substituted terms contradict a condition."""

    def false(form: Affine, op: str) -> bool:
        return not form.terms and (form.constant != 0 if op == "=" else form.constant < 0)

    return any(all(any(false(e, op) for e, op in part) for part in condition) for condition in section.conditions)


def is_place(expression: Expression) -> bool:
    return isinstance(expression, Name | Element | Member | Deref) and not (
        isinstance(expression, Name) and expression.symbol.storage is Storage.CONSTANT
    )


def _same_struct(one: Type | None, other: Type | None) -> bool:
    """Whether both are certainly the same struct: a member of its base class may have the same name."""
    words = [None if kind is None else [w for w in kind.text.split() if w not in _QUALIFIERS] for kind in (one, other)]
    return words[0] is not None and words[0] == words[1]


def _same_elements(dummy: Symbol, actual: Symbol) -> bool:
    """Whether the element types agree: an array may be passed as an array of another type."""
    one, other = dummy.element, actual.element
    return one.text == other.text if one.bytes is None or other.bytes is None else one.bytes == other.bytes
