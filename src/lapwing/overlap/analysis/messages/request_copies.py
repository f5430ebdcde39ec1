"""Whether a program copies request handles. If so, a variable does not identify what a completion completes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.aliases import Aliases
from lapwing.overlap.dataflow.call_graph import CallGraph, Target
from lapwing.overlap.ir.accesses import Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Cast,
    Deref,
    Element,
    Expression,
    Invocation,
    Member,
    Name,
    Operation,
    Symbol,
    Type,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Assign, Call, Statement
from lapwing.overlap.ir.value_kinds import shape_of
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure

MemoryOf = Callable[[Expression, Procedure], frozenset[Memory]]
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_REQUESTS = (mpi.Role.REQUEST, mpi.Role.REQUESTS)


def are_copied(program: Program, graph: CallGraph, aliases: Aliases, memory_of: MemoryOf) -> bool:
    """Whether a request that an MPI call makes may reach another variable: by an assignment, as an argument passed by value, as
    a function's result, or in text that cannot be read. ``memory_of``: all memory that an argument of MPI's may be."""
    return _Copies(program, graph, aliases, memory_of).found()


class _Copies:
    def __init__(self, program: Program, graph: CallGraph, aliases: Aliases, memory_of: MemoryOf) -> None:
        self.program = program
        self.graph = graph
        self.aliases = aliases
        self.memory_of = memory_of
        self.requests = frozenset(
            memory for call, procedure in self._starts() for memory in self._made(call, procedure)
        )
        self.fields = frozenset(self._find_fields()) if self.requests else frozenset()
        self._are_requests: dict[frozenset[Memory], bool] = {}

    def found(self) -> bool:
        return bool(self.requests) and any(map(self._copies, self.program.procedures.values()))

    def _language(self, procedure: Procedure) -> Language:
        return language_of_procedure(self.program, procedure)

    # ---- requests -------------------------------------------------------------------------------------------------------

    def _starts(self) -> Iterator[tuple[Call | Invocation, Procedure]]:
        for key, sites in self.graph.sites.items():
            for site in sites:
                message = mpi.lookup(site.name or "") if site.target is Target.MPI else None
                if message is not None and message.buffers and mpi.index_of(message, mpi.Role.REQUEST) is not None:
                    yield site.call, self.program.procedures[key]

    def _made(self, call: Call | Invocation, procedure: Procedure) -> Iterator[Memory]:
        for argument in _request_arguments(call):
            yield from self.memory_of(argument, procedure)

    def _find_fields(self) -> Iterator[str]:
        """Components that may be or contain requests: those passed to MPI, and those whose address is passed on."""
        for key, sites in self.graph.sites.items():
            procedure = self.program.procedures[key]
            for site in sites:
                if site.target is Target.MPI:
                    yield from (f for argument in _request_arguments(site.call) for f in _fields_of(argument))
                elif site.target is Target.PROCEDURE or self._language(procedure).by_reference:
                    yield from self._fields_passed(site.call, self._parameters(site.callee))
            for statement in procedure.body.walk():
                if not isinstance(statement, Call):
                    addresses = (e for e in statement.every_expression() if isinstance(e, AddressOf))
                    yield from (field for address in addresses for field in _fields_of(address))

    @staticmethod
    def _fields_passed(call: Call | Invocation, parameters: Sequence[Symbol]) -> Iterator[str]:
        for number, argument in enumerate(_all_arguments(call)):
            if number >= len(parameters) or _may_hold_request(parameters[number].type):
                yield from _fields_of(argument)

    def _parameters(self, callee: str | None) -> tuple[Symbol, ...]:
        return () if callee is None else self.program.procedures[callee].parameters

    # ---- copies ---------------------------------------------------------------------------------------------------------

    def _copies(self, procedure: Procedure) -> bool:
        if procedure.result is not None and self._is_request(Name(procedure.result), procedure):
            return True
        unread = (symbol for part in self.graph.hidden[procedure.key] for symbol in part.symbols)
        if any(self._is_request(Name(symbol), procedure) for symbol in unread):
            return True
        return any(
            self._is_request(place, procedure)
            for statement in procedure.body.walk()
            for place in self._read_in(statement, procedure)
        )

    def _is_request(self, place: Expression, procedure: Procedure) -> bool:
        """Whether the place may hold a request, or a variable that contains one."""
        inner = place
        while isinstance(inner, Element):
            inner = inner.base
        if isinstance(inner, Member) and inner.field_name not in self.fields and inner.field_name.lower() != "mpi_val":
            return False
        type_ = _type_of(place)
        if type_ is not None and not _may_hold_request(type_):
            return False
        memory = self.aliases.objects(place, procedure)
        if memory not in self._are_requests:
            self._are_requests[memory] = self.aliases.may_overlap(memory, self.requests)
        return self._are_requests[memory]

    def _read_in(self, statement: Statement, procedure: Procedure) -> Iterator[Expression]:
        """The places whose values a statement reads, except to pass them to MPI as requests or to compare them."""
        if isinstance(statement, Assign):
            yield from self._read_to_find(statement.target, procedure)
            yield from self._read(statement.value, procedure)
        elif isinstance(statement, Call):
            yield from self._read_by_call(statement, procedure)
        else:
            for expression in statement.expressions():
                yield from self._read(expression, procedure)

    def _read(self, expression: Expression, procedure: Procedure) -> Iterator[Expression]:
        match expression:
            case Name(symbol=symbol) if symbol.dimensions is not None and self._language(procedure).has_addresses:
                return  # an array's address
            case Name() | Element() | Member() | Deref():
                yield expression
                yield from self._read_to_find(expression, procedure)
            case AddressOf(object=inner):
                yield from self._read_to_find(inner, procedure)
            case Assignment(target=target, value=value):
                yield from self._read_to_find(target, procedure)
                yield from self._read(value, procedure)
            case Invocation():
                yield from self._read_by_call(expression, procedure)
            case Operation(operator=operator, arguments=arguments) if operator in _COMPARISONS:
                for part in arguments:
                    yield from self._read_to_find(part, procedure)
            case _:
                for part in expression.operands():
                    yield from self._read(part, procedure)

    def _read_to_find(self, place: Expression, procedure: Procedure) -> Iterator[Expression]:
        """The reads needed to compute a place's address; a pointer on the way is no request."""
        match without_casts(place):
            case Element(base=base, indices=indices):
                for index in indices:
                    yield from self._read(index, procedure)
                yield from self._read_to_find(base, procedure)
            case Member(base=inner) | Deref(pointer=inner):
                yield from self._read_to_find(inner, procedure)
            case Name():
                return
            case other:
                yield from self._read(other, procedure)

    def _read_by_call(self, call: Call | Invocation, procedure: Procedure) -> Iterator[Expression]:
        target, callee, _ = self.graph.resolve(call.name, procedure)
        language = self._language(procedure)
        requests = {id(argument) for argument in (_request_arguments(call) if target is Target.MPI else ())}
        library = language.library(call.name or "") if target is Target.LIBRARY else None
        parameters = self._parameters(callee)
        looked_at = () if library is None or not language.has_addresses else library.arguments_read(call.arguments)
        for number, argument in enumerate(_all_arguments(call)):
            by_reference = number < len(parameters) and _is_by_reference(parameters[number])
            if id(argument) in requests or by_reference or (library is not None and library.inquiry):
                yield from self._read_to_find(argument, procedure)
            else:
                yield from self._read(argument, procedure)
            if language.has_addresses and (target is Target.UNKNOWN or number in looked_at):
                yield from _pointee(argument)


def _pointee(argument: Expression) -> Iterator[Expression]:
    """C: what a function that is passed an address reads."""
    match without_casts(argument):
        case AddressOf(object=inner):
            yield inner
        case Name() | Element() | Member() | Deref() | Operation() as pointer:
            if not shape_of(pointer).plain:
                yield Deref(pointer)


def _is_by_reference(parameter: Symbol) -> bool:
    """Whether it denotes the caller's variable, or is its address. (MPI_Request itself may be a pointer's type.)"""
    return not parameter.by_value or parameter.dimensions is not None or "*" in parameter.type.text


def _type_of(place: Expression) -> Type | None:
    """The type of a variable, or of what it points to; None where unknown."""
    while isinstance(place, Element | Deref):
        place = place.base if isinstance(place, Element) else without_casts(place.pointer)
    return place.symbol.type if isinstance(place, Name) else None


def _may_hold_request(type_: Type) -> bool:
    """Whether a variable of this type, or what it points to, may be or contain a request."""
    while type_.target is not None:
        type_ = type_.target
    return type_.base not in ("real", "complex", "logical", "character")


def _fields_of(place: Expression) -> Iterator[str]:
    """The components on the way to a place, from the variable or the last pointer on."""
    while isinstance(place, AddressOf | Cast | Element | Member):
        match place:
            case AddressOf(object=inner) | Cast(value=inner) | Element(base=inner) | Member(base=inner):
                if isinstance(place, Member):
                    yield place.field_name
                place = inner


def _request_arguments(call: Call | Invocation) -> list[Expression]:
    """The request arguments of an MPI call."""
    message = mpi.lookup(call.name or "")
    if message is None or message.name == "MPI_Request_c2f":
        return []
    places = [place for place in (mpi.index_of(message, role) for role in _REQUESTS) if place is not None]
    named = [value for word, value in call.keywords if "request" in word] if isinstance(call, Call) else []
    return [*(call.arguments[place] for place in places if place < len(call.arguments)), *named]


def _all_arguments(call: Call | Invocation) -> tuple[Expression, ...]:
    return (*call.arguments, *(value for _, value in call.keywords)) if isinstance(call, Call) else call.arguments
