"""Mod/ref analysis: which memory a statement may modify and reference, whatever the values of its variables.

effects/transfer.py is more precise, and slower: surveying a whole program for its report needs no array sections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.dataflow.call_graph import CallGraph, Target, arguments_of
from lapwing.overlap.ir.accesses import UNKNOWN, Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Cast,
    Constant,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    Text,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.rewriter import done_on_entry
from lapwing.overlap.ir.statements import Allocate, Assign, Call, Declare, InputOutput, Loop, Opaque, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.libraries.summaries import LibrarySummary


@dataclass(frozen=True)
class MemoryReference:
    """One modification (``writes``) or reference. ``through``: of what the pointer ``symbol`` points to. ``symbol`` is None
    where only the memory is known."""

    symbol: Symbol | None
    through: bool
    memory: frozenset[Memory]
    writes: bool


_ANYTHING = MemoryReference(None, False, frozenset({UNKNOWN}), True)


class ModRef:
    """The mod/ref sets of a program's statements and procedures, computed on demand."""

    def __init__(self, program: Program, graph: CallGraph, aliases: Aliases) -> None:
        self.program = program
        self.graph = graph
        self.aliases = aliases
        self._statements: dict[int, tuple[MemoryReference, ...]] = {}
        self._summaries: dict[str, tuple[MemoryReference, ...]] = {}
        self._open: set[str] = set()

    def of(self, statement: Statement, procedure: Procedure) -> tuple[MemoryReference, ...]:
        """The mod/ref set of the statement, without its blocks."""
        if id(statement) not in self._statements:
            self._statements[id(statement)] = tuple(dict.fromkeys(_Reader(self, procedure).statement(statement)))
        return self._statements[id(statement)]

    def itself(self, statement: Statement, procedure: Procedure) -> tuple[MemoryReference, ...]:
        """The same without the callees' mod/ref sets."""
        return tuple(dict.fromkeys(_Reader(self, procedure, calls=False).statement(statement)))

    def of_expression(self, expression: Expression, procedure: Procedure) -> tuple[MemoryReference, ...]:
        """The mod/ref set of evaluating an expression."""
        return tuple(dict.fromkeys(_Reader(self, procedure).expression(expression)))

    def summary(self, procedure: Procedure) -> tuple[MemoryReference, ...]:
        """The summary of a procedure: the mod/ref set of a call, on its arguments and on memory that outlives it."""
        key = procedure.key
        if key in self._open:
            return ()  # the outer call covers a recursive one
        if key not in self._summaries:
            self._open.add(key)
            found: dict[MemoryReference, None] = {}
            on_entry = language_of_procedure(self.program, procedure).declares_on_entry
            for statement in done_on_entry(procedure) if on_entry else ():
                found |= dict.fromkeys(_Reader(self, procedure).statement(statement))
            for statement in procedure.body.walk():
                found |= dict.fromkeys(self.of(statement, procedure))
            found = {reference: None for reference in found if not dies(reference, procedure)}
            self._open.discard(key)
            self._summaries[key] = tuple(found)
        return self._summaries[key]

    def handed(self, argument: Expression, procedure: Procedure, *, writes: bool) -> MemoryReference | None:
        """The memory that an argument passes to the callee to read or write; None if it is none."""
        inner = bare(argument)
        if isinstance(inner, Constant | Number | Text):
            return None
        if language_of_procedure(self.program, procedure).by_reference:
            base = base_of(inner)
            memory = self._objects(inner, procedure)
            return MemoryReference(base, False, memory, writes) if memory else None
        if isinstance(inner, AddressOf):
            base = base_of(inner.object)
            through = base is not None and base.pointer and not isinstance(inner.object, Name)
        else:
            names = [e.symbol for e in _pointer_names(inner)]
            base = names[0] if len(names) == 1 else None
            through = base is not None and base.pointer
        memory = self.aliases.pointees(argument, procedure)
        return MemoryReference(base, through, memory, writes) if memory else None

    def _objects(self, place: Expression, procedure: Procedure) -> frozenset[Memory]:
        if isinstance(place, Name) and not place.symbol.target and not place.symbol.pointer:
            return frozenset({Memory(place.symbol.key, place.symbol)})
        return self.aliases.objects(place, procedure)

    def may_overlap(self, one: MemoryReference, other: MemoryReference) -> bool:
        """Whether both may refer to the same memory."""
        a, b = one.symbol, other.symbol
        if a is not None and b is not None:
            if a == b and one.through == other.through:
                return True
            if a != b and not one.through and not other.through and _plain(a) and _plain(b):
                return False
        return self.aliases.may_overlap(one.memory, other.memory)

    def translated(
        self, reference: MemoryReference, call: Call | Invocation, callee: Procedure, caller: Procedure
    ) -> MemoryReference | None:
        """A callee's memory reference in terms of its caller."""
        for dummy, argument in arguments_of(call, callee):
            if reference.symbol == dummy:
                if dummy.by_value and not reference.through:
                    return None
                return self.handed(argument, caller, writes=reference.writes)
        return reference

    def inside(
        self, reference: MemoryReference, call: Call | Invocation, callee: Procedure, caller: Procedure
    ) -> tuple[MemoryReference, ...]:
        """A caller's memory reference in terms of a callee: as it is, and as each dummy argument that it is passed as."""
        found = [reference]
        for dummy, argument in arguments_of(call, callee):
            handed = self.handed(argument, caller, writes=reference.writes)
            if handed is not None and self.may_overlap(handed, reference):
                through = dummy.by_value or (
                    dummy.pointer and language_of_procedure(self.program, callee).has_addresses
                )
                found.append(
                    MemoryReference(dummy, through, handed.memory | {Memory(dummy.key, dummy)}, reference.writes)
                )
        return tuple(found)


def dies(reference: MemoryReference, procedure: Procedure) -> bool:
    """Whether the referenced memory ends with the procedure's call."""
    symbol = reference.symbol
    if symbol is None or reference.through or symbol.key.startswith(("common ", "module ")):
        return False
    own = procedure.symbols.get(symbol.name) == symbol or symbol in procedure.parameters
    return own and (symbol.storage is Storage.LOCAL or (symbol.storage is Storage.ARGUMENT and symbol.by_value))


def base_of(place: Expression) -> Symbol | None:
    """The variable that a place lies in, if no pointer but its own is dereferenced on the way."""
    while isinstance(place, Element | Member):
        place = place.base
    return place.symbol if isinstance(place, Name) else None


def bare(argument: Expression) -> Expression:
    """The expression without casts."""
    argument = without_casts(argument)
    return argument


def _pointer_names(expression: Expression) -> Iterable[Name]:
    """The pointers and arrays that an address is computed from: ``a`` in ``a + i``."""
    match expression:
        case Name(symbol=symbol):
            return (expression,) if symbol.pointer or symbol.dimensions is not None else ()
        case Operation(arguments=arguments):
            return tuple(name for argument in arguments for name in _pointer_names(argument))
        case Cast(value=value):
            return _pointer_names(value)
        case Element(base=base):
            return _pointer_names(base)
    return ()


def _plain(symbol: Symbol) -> bool:
    own = (Storage.LOCAL, Storage.SAVED, Storage.GLOBAL)
    return symbol.storage in own and symbol.overlay is None and not symbol.pointer and not symbol.target


class _Reader:
    """Collects the mod/ref set of one statement."""

    def __init__(self, mod_ref: ModRef, procedure: Procedure, *, calls: bool = True) -> None:
        self._mod_ref = mod_ref
        self._calls = calls
        self._procedure = procedure
        self._language = language_of_procedure(mod_ref.program, procedure)
        self._found: list[MemoryReference] = []

    def statement(self, statement: Statement) -> list[MemoryReference]:
        match statement:
            case Assign(target=target, value=value, operator=operator):
                self._assign(target, value, operator)
            case Call(name=name, result=result):
                named = tuple(value for _, value in statement.keywords)
                self._call(name, (*statement.arguments, *named), statement)
                if result is not None:
                    self._write(result)
            case Declare(variables=variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self._read(initial)
                        self._write(Name(symbol))
            case InputOutput(reads=reads, writes=writes):
                self._all(reads, writes)
            case Allocate(objects=objects):
                allocated = (o.base if isinstance(o, Element) else o for o in objects)
                self._all(statement.reads, (*statement.writes, *allocated))
            case Loop(variable=variable):
                self._all(statement.expressions(), (Name(variable),))
            case Opaque():
                self._unread(statement)
            case _:
                self._all(statement.expressions(), ())
        return self._found

    def expression(self, expression: Expression) -> list[MemoryReference]:
        self._read(expression)
        return self._found

    def _all(self, reads: Sequence[Expression], writes: Sequence[Expression]) -> None:
        for part in reads:
            self._read(part)
        for part in writes:
            self._write(part)

    def _unread(self, statement: Opaque) -> None:
        self._found.append(_ANYTHING)
        text = self._mod_ref.program.sources[statement.span.source].text(statement.span)
        words = set(_words(text if self._language.case_sensitive else text.lower()))
        for name, symbol in self._procedure.symbols.items():
            if name in words:
                self._reference(Name(symbol), writes=True)
                if symbol.pointer and self._language.has_addresses:
                    self._hand(Name(symbol), writes=True)

    # ---- expressions --------------------------------------------------------------------------------------------------

    def _reference(self, place: Expression, *, writes: bool) -> None:
        symbol = place.symbol if isinstance(place, Name) else base_of(place)
        through = symbol is not None and not isinstance(place, Name) and symbol.pointer and self._language.has_addresses
        self._found.append(MemoryReference(symbol, through, self._mod_ref._objects(place, self._procedure), writes))

    def _hand(self, argument: Expression, *, writes: bool) -> None:
        reference = self._mod_ref.handed(argument, self._procedure, writes=writes)
        if reference is not None:
            self._found.append(reference)

    def _assign(self, target: Expression, value: Expression, operator: str | None) -> None:
        self._read(value)
        if operator is not None:
            self._read(target)
        self._write(target)

    def _write(self, place: Expression) -> None:
        place = bare(place)
        self._way_to(place)
        if isinstance(place, Name | Element | Member | Deref):
            self._reference(place, writes=True)

    def _way_to(self, place: Expression) -> None:
        """The references needed to compute a place's address."""
        match place:
            case Element(base=base, indices=indices):
                for index in indices:
                    self._read(index)
                self._way_to(base)
            case Member(base=base):
                self._way_to(base)
            case Deref(pointer=pointer):
                self._read(pointer)
            case Name(symbol=symbol):
                if symbol.pointer and self._language.has_addresses:
                    self._reference(place, writes=False)
            case _:
                self._read(place)

    def _read(self, expression: Expression) -> None:
        match expression:
            case Name(symbol=symbol):
                address = symbol.dimensions is not None and not symbol.pointer and self._language.has_addresses
                if symbol.storage is not Storage.CONSTANT and not address:
                    self._reference(expression, writes=False)
            case Element() | Member() | Deref():
                self._way_to(expression)
                self._reference(expression, writes=False)
            case AddressOf(object=inner):
                self._way_to(inner)
            case Assignment(target=target, operator=operator, value=value):
                self._assign(target, value, operator)
            case Invocation(name=name, arguments=arguments):
                self._call(name, arguments, expression)
            case Unread(mentions=mentions):
                self._found.append(_ANYTHING)
                for part in mentions:
                    self._read(part)
                    self._write(part)
            case _:
                for part in expression.operands():
                    self._read(part)

    # ---- calls --------------------------------------------------------------------------------------------------------

    def _call(self, name: str | None, arguments: Sequence[Expression], call: Call | Invocation) -> None:
        mod_ref = self._mod_ref
        target, key, _ = mod_ref.graph.resolve(name, self._procedure)
        callee = mod_ref.program.procedures[key] if target is Target.PROCEDURE and key is not None else None
        values = {id(a) for dummy, a in arguments_of(call, callee) if dummy.by_value} if callee is not None else set()
        for argument in arguments:
            if id(argument) in values and self._language.by_reference:
                self._read(argument)
            else:
                self._argument(argument)
        if callee is not None:
            for reference in mod_ref.summary(callee) if self._calls else ():
                mine = mod_ref.translated(reference, call, callee, self._procedure)
                if mine is not None:
                    self._found.append(mine)
            return
        message = mpi.lookup(name) if target is Target.MPI and name is not None else None
        if message is not None:
            self._message(message, arguments)
            return
        library = self._language.library(name) if name is not None else None
        if target is Target.LIBRARY and library is not None:
            self._library(library, arguments)
            return
        self._found.append(_ANYTHING)
        for argument in arguments:
            self._hand(argument, writes=True)

    def _argument(self, argument: Expression) -> None:
        """An argument's own value; in Fortran, passing a variable does not read it."""
        inner = bare(argument)
        if self._language.by_reference and isinstance(inner, Name | Element | Member):
            self._way_to(inner)
        else:
            self._read(inner)

    def _message(self, message: mpi.MpiCall, arguments: Sequence[Expression]) -> None:
        parameters = self._language.parameters(message)
        for argument, parameter in zip(arguments, parameters, strict=False):
            if self._language.by_reference or _is_address(bare(argument)):
                if parameter.reads:
                    self._hand(argument, writes=False)
                if parameter.writes:
                    self._hand(argument, writes=True)

    def _library(self, library: LibrarySummary, arguments: Sequence[Expression]) -> None:
        reads, writes = library.arguments_read(arguments), library.arguments_written(arguments)
        for number, argument in enumerate(arguments):
            if self._language.by_reference:
                if number in writes:
                    self._hand(argument, writes=True)
                elif not library.reads_nothing_of(bare(argument)):
                    self._read(bare(argument))
                continue
            if number in reads:
                self._hand(argument, writes=False)
            if number in writes:
                self._hand(argument, writes=True)


def _is_address(expression: Expression) -> bool:
    """C: whether an argument's value may be an address, and not just a number."""
    match expression:
        case Name(symbol=symbol):
            return symbol.pointer or symbol.dimensions is not None
        case AddressOf() | Element() | Member() | Deref() | Invocation():
            return True
        case Operation(arguments=arguments):
            return any(_is_address(bare(a)) for a in arguments)
    return False


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
