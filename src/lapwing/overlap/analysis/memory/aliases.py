"""Points-to analysis: which memory an expression may denote in any statement (flow-insensitive, whole-program).

C: inclusion constraints (Andersen, "Program Analysis and Specialization for the C Programming Language", 1994) between
variables and allocation sites. Code outside the sources is one more object, ``UNKNOWN``, which points to all that has escaped
to it. Fortran: a variable is its own memory; a dummy argument stands for what callers pass; a POINTER may point to every
TARGET, and to all that was allocated through a POINTER, of a compatible type.

Two expressions with the same Memory need not denote the same location: an allocation site may run many times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.inclusion import UNKNOWN_NODE, Constraints
from lapwing.overlap.analysis.memory.no_alias import NoAlias
from lapwing.overlap.dataflow.call_graph import CallGraph, CallSite, Hidden, Target, arguments_of, is_static
from lapwing.overlap.ir.accesses import ANYTHING, UNKNOWN, Memory
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
    Type,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Allocate, Assign, Call, Declare, Jump, Statement
from lapwing.overlap.ir.value_kinds import Kind, Shape, shape_of, shape_of_symbol
from lapwing.overlap.languages.registry import language_of_procedure, language_outside
from lapwing.overlap.libraries.summaries import LibrarySummary
from lapwing.overlap.source.spans import Span

_LOST = frozenset({UNKNOWN, ANYTHING})


class Aliases:
    """The solution for one program. Queries take expressions as they occur in a procedure; generated ones work, too."""

    def __init__(self, model: _Model) -> None:
        self._model = model
        self._escaped = model.constraints.targets(UNKNOWN_NODE)
        self._sets: dict[frozenset[int], frozenset[Memory]] = {}
        self._no_alias = NoAlias(model.program, model.callgraph, self)

    @staticmethod
    def of(program: Program, callgraph: CallGraph) -> Aliases:
        model = _Model(program, callgraph)
        _Collector(model).collect()
        model.constraints.solve()
        return Aliases(model)

    def objects(self, expression: Expression, procedure: Procedure) -> frozenset[Memory]:
        """The memory that a variable, element, member or ``*p`` lies in; empty if the expression is not an lvalue."""
        found = self._memories(self._reader(procedure).objects(expression))
        return _LOST if not found and isinstance(expression, Element | Deref | Member) else found

    def pointees(self, expression: Expression, procedure: Procedure) -> frozenset[Memory]:
        """The memory that a pointer's value, or an argument, may point to. In Fortran an argument's memory is its ``objects``."""
        found = self._memories(self._reader(procedure).value(expression, pointer=True))
        return _LOST if not found and _holds_pointer(expression) else found

    def actuals(self, dummy: Symbol) -> frozenset[Memory]:
        """All memory of direct and indirect callers that a Fortran dummy argument or a C++ reference may stand for."""
        node = self._model.references.get(dummy.key)
        return self._memories(self._model.constraints.targets(node)) if node is not None else frozenset()

    def everywhere(self, memory: frozenset[Memory]) -> frozenset[Memory]:
        """The memory, with that of callers which dummy arguments among it stand for."""
        dummies = (m.symbol for m in memory if m.symbol is not None and m.symbol.storage is Storage.ARGUMENT)
        return memory.union(*map(self.actuals, dummies))

    def may_alias(self, one: Memory, two: Memory) -> bool:
        """Whether two objects may share bytes, for code of one procedure.

        Within a procedure a Fortran dummy argument has no alias, or the program may not write it (Fortran 2018, 15.5.2.13).
        Across procedures use ``actuals``.
        """
        keys = one.key, two.key
        if one.key == two.key or ANYTHING.key in keys:
            return True
        if UNKNOWN.key in keys:
            return self.escaped(two if one == UNKNOWN else one)
        if one.symbol is None or two.symbol is None:
            return False
        if one.symbol.overlay is not None and one.symbol.overlay == two.symbol.overlay:
            return True
        dummies = self._model.dummies
        if one.key in dummies or two.key in dummies:
            return _reachable(one.symbol) and _reachable(two.symbol) and _may_share(one.symbol.type, two.symbol.type)
        return False

    def may_overlap(self, ones: Iterable[Memory], others: Iterable[Memory]) -> bool:
        """Whether any of one set may alias any of another."""
        others = tuple(others)
        return any(self.may_alias(one, other) for one in ones for other in others)

    def escaped(self, memory: Memory) -> bool:
        """Whether code outside the sources may know its address, and read and write it whenever it runs."""
        return memory in (UNKNOWN, ANYTHING) or self._model.objects.get(memory.key) in self._escaped

    def only_definition(self, symbol: Symbol) -> Expression | None:
        """The only definition of a C pointer or a Fortran ALLOCATABLE, null aside; None if there may be others.

        For Fortran that is the ALLOCATE's object with its bounds. The statement may run more than once, and its operands may
        change.
        """
        return self._model.single_value(symbol)

    def never_alias(self, one: Symbol, two: Symbol, *, later: bool) -> bool:
        """Whether two pointers of a C procedure never alias. ``later``: either may have pointed elsewhere in the meantime."""
        if later and (self.exchanged(one) or self.exchanged(two)):
            return False
        return self._no_alias.never_alias(one, two)

    def exchanged(self, pointer: Symbol) -> tuple[Symbol, ...]:
        """The pointers that swap memory with this one, itself included; empty if it keeps its own."""
        return self._no_alias.exchanged(pointer)

    def _reader(self, procedure: Procedure) -> _Reader:
        return _Reader(self._model, procedure)

    def _memories(self, nodes: frozenset[int]) -> frozenset[Memory]:
        if nodes not in self._sets:
            self._sets[nodes] = frozenset(self._model.memories[node] for node in nodes)
        return self._sets[nodes]


def _holds_pointer(expression: Expression) -> bool:
    """Whether an expression's value is, or is computed from, a pointer variable."""
    if isinstance(expression, Cast):
        return _holds_pointer(expression.value)
    if isinstance(expression, Operation):
        return any(_holds_pointer(argument) for argument in expression.arguments)
    stored = isinstance(expression, Name | Element | Deref | Member)
    return stored and shape_of(expression).kind in (Kind.POINTER, Kind.UNKNOWN)


def _reachable(symbol: Symbol) -> bool:
    return symbol.target or symbol.pointer


def _may_share(one: Type, two: Type) -> bool:
    """Whether a Fortran pointer to one type may point into a target of the other, or the other way round."""
    loose = ("struct", "other", "complex")
    return one.base == two.base or one.base in loose or two.base in loose


# ---- variables, objects and nodes -------------------------------------------------------------------------------------


class _Model:
    """Nodes of the constraints by what they stand for.

    ``references``: what each Fortran dummy argument or C++ reference stands for; ``dummies``: keys of Fortran's.
    """

    def __init__(self, program: Program, callgraph: CallGraph) -> None:
        self.program = program
        self.callgraph = callgraph
        self.constraints = Constraints()
        self.objects: dict[str, int] = {UNKNOWN.key: UNKNOWN_NODE}
        self.memories: dict[int, Memory] = {UNKNOWN_NODE: UNKNOWN}
        self.references: dict[str, int] = {}
        self.returned: dict[str, int] = {}
        self.languages = {key: language_of_procedure(program, p) for key, p in program.procedures.items()}
        self.mixed = len({language.linkage for language in self.languages.values()}) > 1
        self.dummies: frozenset[str] = frozenset(
            symbol.key
            for key, procedure in program.procedures.items()
            if self.languages[key].by_reference
            for symbol in procedure.parameters
        )
        self.definitions: dict[str, list[Expression]] = {}  # values assigned to a variable by its name
        self.changeable: set[str] = set()  # variables whose address is taken
        self._targets = self._find_targets()
        self.lost = self.object(ANYTHING)
        for target in (self.lost, UNKNOWN_NODE):
            self.constraints.point(self.lost, target)

    def object(self, memory: Memory) -> int:
        if memory.key not in self.objects:
            self.objects[memory.key] = self.constraints.node()
            self.memories[self.objects[memory.key]] = memory
        return self.objects[memory.key]

    def variable(self, symbol: Symbol) -> int:
        node = self.objects.get(symbol.key)
        return self.object(Memory(symbol.key, symbol)) if node is None else node

    def reference(self, symbol: Symbol) -> int:
        if symbol.key not in self.references:
            self.references[symbol.key] = self.constraints.node()
        return self.references[symbol.key]

    def result(self, key: str) -> int:
        if key not in self.returned:
            self.returned[key] = self.constraints.node()
        return self.returned[key]

    def heap(self, span: Span | None, procedure: Procedure | None) -> int:
        if span is not None:
            return self.object(Memory(f"heap {span.source}:{span.start}", heap=span))
        return self.object(Memory(f"heap in {procedure.key if procedure is not None else 'initial values'}"))

    def targets(self, type_: Type | None) -> frozenset[int]:
        """What a Fortran pointer to this type may point to; without a type: a component that may be a pointer."""
        found = {self.variable(s) for s in self._targets if type_ is None or _may_share(s.type, type_)}
        bases = self._pointer_bases if type_ is None else {type_.base, *(self._pointer_bases & {"struct", "other"})}
        found |= {self.object(Memory(f"allocated through pointers to {base}")) for base in bases}
        if self._pointer_bases and (self.mixed or self.callgraph.external_code):
            found.add(UNKNOWN_NODE)
        return frozenset(found)

    def _find_targets(self) -> list[Symbol]:
        symbols: dict[str, Symbol] = {}
        for key, procedure in self.program.procedures.items():
            if not self.languages[key].has_addresses:
                symbols |= {symbol.key: symbol for symbol in (*procedure.symbols.values(), *procedure.parameters)}
        self._pointer_bases = {symbol.type.base for symbol in symbols.values() if symbol.pointer}
        self.without_addresses = symbols
        return [symbol for symbol in symbols.values() if symbol.target and not symbol.pointer]

    def visible_outside(self, symbol: Symbol) -> bool:
        """Whether code in other files can name a variable: true of all globals but C's static ones."""
        return symbol.storage is Storage.GLOBAL and not is_static(symbol.key)

    def single_value(self, symbol: Symbol) -> Expression | None:
        values = self.definitions.get(symbol.key, [])
        if len(values) != 1 or not (symbol.pointer or symbol.allocatable):
            return None
        if symbol.storage is Storage.ARGUMENT or symbol.overlay is not None:
            return None
        outside = self.callgraph.external_code and self.visible_outside(symbol)
        return None if outside or symbol.key in self.changeable else values[0]


# ---- what expressions denote ------------------------------------------------------------------------------------------

V = TypeVar("V")


def _is_reference(symbol: Symbol) -> bool:
    """Whether a variable of a C++ function is an argument by reference. (Other references are modelled as pointers.)"""
    return symbol.storage is Storage.ARGUMENT and not symbol.by_value


class _Denotation(ABC, Generic[V]):
    """Sets of objects as a ``V``: constraint nodes while constraints are collected, plain sets in the solution."""

    def __init__(self, model: _Model, procedure: Procedure | None) -> None:
        self.model = model
        self.procedure = procedure
        self.language = language_outside(model.program) if procedure is None else model.languages[procedure.key]

    @abstractmethod
    def constant(self, objects: Iterable[int]) -> V:
        """The set of these objects."""

    @abstractmethod
    def contents_of(self, node: int) -> V:
        """The union of what a node's pointers point to."""

    @abstractmethod
    def contents(self, pointers: V) -> V:
        """What the pointers stored in any of these objects point to."""

    @abstractmethod
    def union(self, *values: V) -> V: ...

    @abstractmethod
    def is_empty(self, value: V) -> bool: ...

    def objects(self, expression: Expression) -> V:
        return self._objects(expression) if self.language.has_addresses else self._named(expression)

    def value(self, expression: Expression, *, pointer: bool) -> V:
        """What an expression's value may point to. ``pointer``: it is used as a pointer, regardless of its type."""
        return self._value(expression, pointer) if self.language.has_addresses else self._named(expression)

    def pointer(self, expression: Expression) -> V:
        """What the value of a C expression that is certainly a pointer may point to; ANYTHING if not modelled."""
        found = self._value(expression, True)
        if self.is_empty(found) and not self._leads_nowhere(expression):
            return self.constant([self.model.lost])
        return found

    def _leads_nowhere(self, expression: Expression) -> bool:
        """Whether a pointer is null, a string literal's, a function's or an MPI handle: nothing is written through these."""
        expression = without_casts(expression)
        if isinstance(expression, Invocation):
            return self.model.callgraph.resolve(expression.name, self.procedure)[0] is Target.MPI
        return isinstance(expression, Number | Text | Constant)

    # where names mean the memory itself

    def _named(self, expression: Expression) -> V:
        match expression:
            case Name(symbol):
                if symbol.pointer:
                    return self.constant(self.model.targets(symbol.type))
                return self.constant([self.model.variable(symbol)])
            case Element(base, _):
                return self._named(base)
            case Member(base, _):
                return self.union(self._named(base), self.constant(self.model.targets(None)))
            case Unread():
                return self._unread(expression)
            case Invocation(name, _):
                return self._named_result(name)
        return self.constant(())

    def _named_result(self, name: str | None) -> V:
        target, callee, _ = self.model.callgraph.resolve(name, self.procedure)
        if target is Target.UNKNOWN:
            return self.constant((UNKNOWN_NODE,))
        result = self.model.program.procedures[callee].result if callee is not None else None
        if result is not None and result.pointer:
            return self.constant(self.model.targets(result.type))
        return self.constant(())

    # where values are addresses

    def _objects(self, expression: Expression) -> V:
        match expression:
            case Name(symbol):
                if _is_reference(symbol):
                    return self.contents_of(self.model.reference(symbol))
                return self.constant([self.model.variable(symbol)])
            case Element(base, indices):
                return self._indexed(base, len(indices))
            case Deref(pointer):
                return self._value(pointer, True)
            case Member(base, _):
                return self._objects(base)
            case Cast(_, value):
                return self._objects(value)
            case Assignment(target, _, _, _):
                return self._objects(target)
            case Operation("?:" | ",", arguments):
                return self.union(*(self._objects(argument) for argument in arguments))
            case Invocation():
                return self._returned(expression, self._objects)
            case Unread():
                return self._unread(expression)
        return self.constant(())

    def _indexed(self, base: Expression, count: int) -> V:
        shape = shape_of(base)
        found = self._value(base, True)
        for _ in range(count - 1):
            shape = shape.step()
            found = self._stepped(found, shape)
        return found

    def _stepped(self, objects: V, shape: Shape) -> V:
        """The objects behind an index into something of this shape that lies in ``objects``."""
        if shape.kind is Kind.ARRAY or shape.plain:
            return objects
        if shape.kind is Kind.POINTER:
            return self.contents(objects)
        return self.union(objects, self.contents(objects))

    def _value(self, expression: Expression, pointer: bool) -> V:
        match expression:
            case Name() | Element() | Deref() | Member():
                return self._stored(expression, pointer)
            case AddressOf(inner):
                return self._objects(inner)
            case Cast(_, value):
                return self._value(value, pointer)
            case Assignment(target, _, _, _):
                return self._value(target, pointer)
            case Operation("{}", arguments) if pointer:  # a compound literal
                memory = self.constant([self.model.heap(expression.span, self.procedure)])
                return self.union(memory, *(self._value(argument, False) for argument in arguments))
            case Operation(operator, arguments):
                return self._operation(operator, arguments, pointer)
            case Invocation():
                return self.result(expression)
            case Unread():
                return self._unread(expression)
            case Constant("MPI_BOTTOM"):
                return self.constant((UNKNOWN_NODE,))
        return self.constant(())

    def _stored(self, expression: Expression, pointer: bool) -> V:
        shape = shape_of(expression)
        if shape.kind is Kind.NUMBER and not pointer:
            return self.constant(())
        objects = self._objects(expression)
        if shape.kind is Kind.ARRAY:
            return objects
        if isinstance(expression, Name) and not _is_reference(expression.symbol):
            return self.contents_of(self.model.variable(expression.symbol))
        if shape.kind is Kind.UNKNOWN or (shape.plain and pointer):
            # It may turn out to be an array, which then decays.
            return self.union(objects, self.contents(objects))
        return self.contents(objects)

    def _operation(self, operator: str, arguments: tuple[Expression, ...], pointer: bool) -> V:
        if operator == ",":
            return self._value(arguments[-1], pointer)
        if operator == "?:":
            if any(shape_of(argument).kind in (Kind.POINTER, Kind.ARRAY) for argument in arguments[1:]):
                return self.union(*map(self.pointer, arguments[1:]))
            return self.union(*(self._value(argument, pointer) for argument in arguments[1:]))
        if operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!"):
            return self.constant(())
        bases = tuple(argument for argument in arguments if shape_of(argument).kind in (Kind.POINTER, Kind.ARRAY))
        if operator != "{}" and any(not isinstance(without_casts(base), Number) for base in bases):
            # A pointer and a number: the number is an offset.
            arguments = tuple(argument for argument in arguments if not shape_of(argument).plain)
        return self.union(*(self._value(argument, False) for argument in arguments))

    def result(self, call: Call | Invocation) -> V:
        """What the value of a C call may point to."""
        return self._returned(call, lambda argument: self._value(argument, True))

    def _returned(self, call: Call | Invocation, chosen: Callable[[Expression], V]) -> V:
        """What a C call's value may point to, or the memory of the object it returns; ``chosen`` gives the same for an
        argument."""
        target, callee, _ = self.model.callgraph.resolve(call.name, self.procedure)
        if callee is not None:
            return self.contents_of(self.model.result(callee))
        if target is Target.UNKNOWN:
            return self.constant((UNKNOWN_NODE,))
        function = self.language.library(call.name) if target is Target.LIBRARY and call.name is not None else None
        return self._library_result(function, call, chosen) if function is not None else self.constant(())

    def _library_result(
        self, function: LibrarySummary, call: Call | Invocation, chosen: Callable[[Expression], V]
    ) -> V:
        parts = [chosen(call.arguments[number]) for number in function.chooses if number < len(call.arguments)]
        if function.returns is not None and function.returns < len(call.arguments):
            parts.append(self._value(call.arguments[function.returns], True))
        if function.allocates and function.fills is None:
            parts.append(self.constant([self.model.heap(call.span, self.procedure)]))
        if function.lends:
            parts.append(self.constant([self.model.object(Memory(f"library's: {function.name}"))]))
        return self.union(*parts)

    def _unread(self, expression: Unread) -> V:
        mentioned = (self.objects(mention) for mention in expression.mentions)
        return self.union(self.constant((UNKNOWN_NODE,)), *mentioned)


class _Reader(_Denotation[frozenset[int]]):
    """Evaluates expressions in the solution."""

    def constant(self, objects: Iterable[int]) -> frozenset[int]:
        return frozenset(objects)

    def contents_of(self, node: int) -> frozenset[int]:
        return self.model.constraints.targets(node)

    def contents(self, pointers: frozenset[int]) -> frozenset[int]:
        return self.model.constraints.contents(pointers)

    def union(self, *values: frozenset[int]) -> frozenset[int]:
        return values[0] if len(values) == 1 else frozenset().union(*values)

    def is_empty(self, value: frozenset[int]) -> bool:
        return not value


class _Writer(_Denotation["int | None"]):
    """Evaluates expressions into constraints: a node whose set is, or will be, these objects; None for the empty set."""

    def constant(self, objects: Iterable[int]) -> int | None:
        members = list(objects)
        if not members:
            return None
        node = self.model.constraints.node()
        for member in members:
            self.model.constraints.point(node, member)
        return node

    def contents_of(self, node: int) -> int | None:
        return node

    def contents(self, pointers: int | None) -> int | None:
        if pointers is None:
            return None
        node = self.model.constraints.node()
        self.model.constraints.load(node, pointers)
        return node

    def union(self, *values: int | None) -> int | None:
        parts = {value for value in values if value is not None}
        if len(parts) < 2:
            return next(iter(parts), None)
        node = self.model.constraints.node()
        for part in parts:
            self.model.constraints.copy(node, part)
        return node

    def is_empty(self, value: int | None) -> bool:
        return value is None

    def definitions(self, shape: Shape, value: Expression) -> int | None:
        """What an object of this shape may point to after the value is assigned to it."""
        return self.pointer(value) if shape.kind is Kind.POINTER else self.value(value, pointer=False)


# ---- collecting constraints -------------------------------------------------------------------------------------------

_POINTERS_FROM_MPI = {
    "MPI_ALLOC_MEM": 2,
    "MPI_WIN_ALLOCATE": 4,
    "MPI_WIN_ALLOCATE_SHARED": 4,
    "MPI_WIN_SHARED_QUERY": 4,
}
_POINTERS_FROM_MPI |= {"MPI_COMM_GET_ATTR": 2, "MPI_WIN_GET_ATTR": 2, "MPI_TYPE_GET_ATTR": 2, "MPI_ATTR_GET": 2}
_POINTERS_FROM_MPI |= {"MPI_BUFFER_DETACH": 0}
_FORGOTTEN_BY_MPI = {"MPI_FREE_MEM", "MPI_WIN_DETACH", "MPI_F_SYNC_REG"}


class _Collector:
    """Collects the constraints of every statement in one pass over a program."""

    def __init__(self, model: _Model) -> None:
        self.model = model
        self.graph = model.callgraph
        self.constraints = model.constraints

    def collect(self) -> None:
        self._outside()
        for key, procedure in self.model.program.procedures.items():
            writer = _Writer(self.model, procedure)
            for statement in procedure.body.walk():
                self._statement(statement, writer)
            for site in self.graph.sites[key]:
                self._call(site, writer)
            for hidden in self.graph.hidden[key]:
                self._hidden(hidden, procedure)
        self._initial_values()

    def _initial_values(self) -> None:
        if not self.model.program.initial:
            return
        writer = _Writer(self.model, None)
        for symbol in self._outlasting():
            value = self.model.program.initial.get(symbol.key)
            if value is not None:
                self._assign(Name(symbol), value, writer)
                for part in value.walk():
                    self._part(part, writer)

    def _outside(self) -> None:
        """What code outside the sources may do at any time."""
        for key in self.graph.entries:
            self._called_from_outside(self.model.program.procedures[key])
        if self.graph.external_code:
            for symbol in self._outlasting():
                if self.model.visible_outside(symbol):
                    self._escape_variable(symbol)
        if self.model.mixed:
            for symbol in self.model.without_addresses.values():
                if symbol.target:
                    self._escape_variable(symbol)

    def _outlasting(self) -> Iterator[Symbol]:
        """Every variable with static lifetime."""
        symbols = dict(self.model.program.globals)
        for procedure in self.model.program.procedures.values():
            symbols |= {s.key: s for s in procedure.symbols.values() if s.storage in (Storage.GLOBAL, Storage.SAVED)}
        yield from symbols.values()

    def _called_from_outside(self, procedure: Procedure) -> None:
        has_addresses = self.model.languages[procedure.key].has_addresses
        for dummy in procedure.parameters:
            if _is_reference(dummy) if has_addresses else not dummy.by_value:
                self.constraints.point(self.model.reference(dummy), UNKNOWN_NODE)
            if has_addresses and not shape_of_symbol(dummy).plain:
                self.constraints.point(self.model.variable(dummy), UNKNOWN_NODE)
        self.constraints.escape(self.model.result(procedure.key))

    def _escape_variable(self, symbol: Symbol) -> None:
        self.constraints.point(UNKNOWN_NODE, self.model.variable(symbol))
        self.model.changeable.add(symbol.key)
        if symbol.key in self.model.dummies or symbol.key in self.model.references:
            self.constraints.escape(self.model.reference(symbol))

    def _hidden(self, hidden: Hidden, procedure: Procedure) -> None:
        for symbol in procedure.symbols.values() if hidden.unknown else hidden.symbols:
            if symbol.storage is not Storage.CONSTANT:
                self._escape_variable(symbol)

    # statements

    def _statement(self, statement: Statement, writer: _Writer) -> None:
        match statement:
            case Assign(target, value, operator):
                self._assign(target, value, writer, operator)
            case Declare(variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self._declare(symbol, initial, writer)
            case Jump("return", _, value) if value is not None and writer.procedure is not None:
                self._return(value, writer, writer.procedure)
            case Allocate(objects, frees) if not frees:
                for item in objects:
                    if isinstance(item, Element) and isinstance(item.base, Name):
                        self.model.definitions.setdefault(item.base.symbol.key, []).append(item)
        for part in statement.every_expression():
            self._part(part, writer)

    def _part(self, part: Expression, writer: _Writer) -> None:
        match part:
            case Assignment(target, operator, value, _):
                self._assign(target, value, writer, operator)
            case AddressOf(Name(symbol)):
                self.model.changeable.add(symbol.key)
            case Unread(_, mentions):
                for mention in mentions:
                    self._escape(writer.objects(mention))
                    self._changeable(mention)
                    self._escape_dummies(mention)

    def _declare(self, symbol: Symbol, initial: Expression, writer: _Writer) -> None:
        self._assign(Name(symbol), initial, writer)

    def _return(self, value: Expression, writer: _Writer, procedure: Procedure) -> None:
        result = self.model.result(procedure.key)
        self._copy(result, writer.value(value, pointer=False))
        if writer.language.has_references:
            # The function may return a reference.
            self._copy(result, writer.objects(value))

    def _assign(self, target: Expression, value: Expression, writer: _Writer, operator: str | None = None) -> None:
        if isinstance(target, Name) and not (_leaves_allocation(value) and operator is None):
            self.model.definitions.setdefault(target.symbol.key, []).append(value)
        if not writer.language.has_addresses or operator not in (None, "+", "-", "&", "|", "^"):
            return
        shape = shape_of(target)
        if shape.kind is not Kind.NUMBER and not (operator is not None and shape_of(value).plain):
            self._store(target, writer.definitions(shape, value), writer)

    def _store(self, target: Expression, value: int | None, writer: _Writer) -> None:
        if isinstance(target, Name) and not _is_reference(target.symbol):
            self._copy(self.model.variable(target.symbol), value)
        else:
            self._store_behind(writer.objects(target), value)

    def _store_behind(self, pointer: int | None, value: int | None) -> None:
        if pointer is not None and value is not None:
            self.constraints.store(pointer, value)

    def _copy(self, to: int, origin: int | None) -> None:
        if origin is not None:
            self.constraints.copy(to, origin)

    def _escape(self, value: int | None) -> None:
        if value is not None:
            self.constraints.escape(value)

    def _changeable(self, expression: Expression) -> None:
        if isinstance(expression, Name):
            self.model.changeable.add(expression.symbol.key)

    # calls

    def _call(self, site: CallSite, writer: _Writer) -> None:
        call = site.call
        if isinstance(call, Call) and call.result is not None and writer.language.has_addresses:
            value = Invocation(call.name, call.arguments, span=call.span)
            if isinstance(call.result, Name):
                self.model.definitions.setdefault(call.result.symbol.key, []).append(value)
            shape = shape_of(call.result)
            if shape.kind is not Kind.NUMBER:
                self._store(call.result, writer.definitions(shape, value), writer)
        if site.callee is not None:
            self._bind(call, self.model.program.procedures[site.callee], writer)
        elif site.target is Target.UNKNOWN:
            self._hand_over(_all_arguments(call), writer)
        elif site.target is Target.MPI:
            self._call_mpi(call, writer)
        else:
            self._call_library(call, writer)

    def _bind(self, call: Call | Invocation, callee: Procedure, writer: _Writer) -> None:
        by_reference = self.model.languages[callee.key].by_reference
        for dummy, argument in arguments_of(call, callee):
            if by_reference:
                self._bind_by_reference(dummy, argument, writer)
            elif writer.language.by_reference:
                self._bind_other_language(dummy, argument, writer)
            elif _is_reference(dummy):
                self._copy(self.model.reference(dummy), writer.objects(argument))
                self._changeable(argument)
            else:
                shape = shape_of_symbol(dummy)
                if shape.kind is not Kind.NUMBER:
                    self._copy(self.model.variable(dummy), writer.definitions(shape, argument))
        self._hand_over(call.arguments[len(callee.parameters) :], writer)

    def _bind_by_reference(self, dummy: Symbol, argument: Expression, writer: _Writer) -> None:
        if dummy.by_value:
            return
        stands_for = self.model.reference(dummy)
        self._copy(stands_for, writer.value(argument, pointer=True))
        if writer.language.by_reference:
            for symbol in _dummies_in(argument, self.model):
                self.constraints.copy(stands_for, self.model.reference(symbol))
        if dummy.allocatable or dummy.pointer:
            self._changeable(argument)

    def _bind_other_language(self, dummy: Symbol, argument: Expression, writer: _Writer) -> None:
        # By reference, or by value a C_PTR, which may point to any TARGET: those have escaped.
        self._hand_over((argument,), writer)
        node = self.model.reference(dummy) if _is_reference(dummy) else self.model.variable(dummy)
        self._copy(node, writer.objects(argument))
        self.constraints.point(node, UNKNOWN_NODE)
        for symbol in _dummies_in(argument, self.model):
            self.constraints.copy(node, self.model.reference(symbol))

    def _hand_over(self, arguments: Iterable[Expression], writer: _Writer) -> None:
        """Arguments passed to code outside the sources escape."""
        for argument in arguments:
            self._escape(writer.value(argument, pointer=False))
            if writer.language.by_reference or writer.language.has_references:
                self._escape(writer.objects(argument))  # by reference
                self._changeable(argument)
            self._escape_dummies(argument)

    def _escape_dummies(self, argument: Expression) -> None:
        for symbol in _dummies_in(argument, self.model):
            self.constraints.escape(self.model.reference(symbol))

    def _call_mpi(self, call: Call | Invocation, writer: _Writer) -> None:
        name = (call.name or "").upper().removeprefix("P")
        function = mpi.lookup(name)
        if function is None:
            self._hand_over(_all_arguments(call), writer)
            return
        pairs = list(zip(function.parameters, call.arguments, strict=False))
        for parameter, argument in pairs:
            if parameter.role is mpi.Role.MEMORY and name not in _FORGOTTEN_BY_MPI:
                self._hand_over((argument,), writer)
        definitions = _POINTERS_FROM_MPI.get(name)
        if definitions is not None and definitions < len(call.arguments) and writer.language.has_addresses:
            fresh = [self.model.heap(call.span, writer.procedure)] if name == "MPI_ALLOC_MEM" else [UNKNOWN_NODE]
            self._store_behind(writer.value(call.arguments[definitions], pointer=True), writer.constant(fresh))

    def _call_library(self, call: Call | Invocation, writer: _Writer) -> None:
        function = writer.language.library(call.name or "")
        if function is None:
            return
        if not writer.language.has_addresses:
            self._reshape(call, function)
            return
        arguments = call.arguments
        for to, origin in function.copies:
            if max(to, origin) < len(arguments):
                pointers = [writer.value(arguments[place], pointer=True) for place in (to, origin)]
                self._store_behind(pointers[0], writer.contents(pointers[1]))
        for to, origin in function.stores:
            if max(to, origin) < len(arguments):
                value = writer.value(arguments[origin], pointer=True)
                self._store_behind(writer.value(arguments[to], pointer=True), value)
        if function.fills is not None and function.fills < len(arguments):
            fresh = writer.constant([self.model.heap(call.span, writer.procedure)])
            self._store_behind(writer.value(arguments[function.fills], pointer=True), fresh)
        if function.calls:
            self._hand_over(arguments, writer)

    def _reshape(self, call: Call | Invocation, function: LibrarySummary) -> None:
        """A library procedure's arguments are what it allocates or frees."""
        if function.state == "heap":
            for argument in _all_arguments(call):
                self._changeable(argument)


def _all_arguments(call: Call | Invocation) -> tuple[Expression, ...]:
    return (*call.arguments, *(value for _, value in call.keywords)) if isinstance(call, Call) else call.arguments


def _dummies_in(argument: Expression, model: _Model) -> Iterator[Symbol]:
    """The Fortran dummy argument that an argument is, or is part of."""
    while isinstance(argument, Element | Member):
        argument = argument.base
    if isinstance(argument, Name) and argument.symbol.key in model.dummies:
        yield argument.symbol


def _leaves_allocation(value: Expression) -> bool:
    """C: a null pointer. Fortran: a scalar, which is assigned to an array without reallocation."""
    value = without_casts(value)
    return isinstance(value, Number) or (isinstance(value, Constant) and value.name in ("NULL", "nullptr"))
