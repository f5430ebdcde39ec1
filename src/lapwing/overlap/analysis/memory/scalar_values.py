"""The values that a scalar may have anywhere in the program: of tags, ranks, communicators and datatypes, to tell messages apart.

Flow-insensitive: a variable may have any value that any statement assigns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.memory.mod_ref import ModRef
from lapwing.overlap.dataflow.call_graph import arguments_of
from lapwing.overlap.ir.accesses import Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Cast,
    Constant,
    Expression,
    Invocation,
    Name,
    Number,
    Operation,
    Storage,
    Symbol,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.statements import Assign, Call, Declare, Statement
from lapwing.overlap.languages.registry import language_of, language_of_procedure

_MOST = 16
_MOST_DEEP = 50
_MADE = frozenset({mpi.Role.NEW_COMM, mpi.Role.NEW_TYPE})
_KEPT = frozenset({Storage.GLOBAL, Storage.SAVED})
_INITIALISED = re.compile(rb"\w+\s*(\([^)\n]*\))?\s*(\[[^\]\n]*\]\s*)*=(?!=)")


@dataclass(frozen=True)
class Value:
    """``base`` + ``offset``. ``base``: "" for a number, the name of a constant, "rank in COMM", or the call of MPI that made
    it."""

    base: str
    offset: int = 0


@dataclass(frozen=True)
class _RankIn:
    """The result of MPI_Comm_rank."""

    communicator: Expression


_Definition = Expression | Value | _RankIn


class Values:
    """The values of every scalar of a program."""

    def __init__(self, mod_ref: ModRef) -> None:
        self._mod_ref = mod_ref
        self._program = mod_ref.program
        self._given: dict[str, list[_Definition]] = {key: [value] for key, value in mod_ref.program.initial.items()}
        self._lost: set[str] = set()
        self._known: dict[str, frozenset[Value] | None] = {}
        for procedure in self._program.procedures.values():
            if procedure.key in mod_ref.graph.entries:
                self._lost |= {symbol.key for symbol in procedure.parameters}
            for statement in procedure.body.walk():
                self._statement(statement, procedure)

    def of(self, expression: Expression | None) -> frozenset[Value] | None:
        """All values that the expression may have; None: any."""
        return None if expression is None else self._of(expression, frozenset())

    def _of(self, expression: _Definition, asked: frozenset[str]) -> frozenset[Value] | None:
        match expression:
            case Value():
                return frozenset({expression})
            case _RankIn(communicator=communicator):
                found = self._of(communicator, asked)
                if found is None or len(found) != 1:
                    return None
                return frozenset({Value(f"rank in {next(iter(found)).base}")})
            case Number(value=int(value)):
                return frozenset({Value("", value)})
            case Constant(name=name):
                return frozenset({Value(name)})
            case Cast(value=inner):
                return self._of(inner, asked)
            case Name(symbol=symbol):
                return self._of_symbol(symbol, asked)
            case Operation(operator="neg", arguments=(only,)):
                return _combined(frozenset({Value("", 0)}), self._of(only, asked), -1)
            case Operation(operator="+" | "-" as sign, arguments=(left, right)):
                return _combined(self._of(left, asked), self._of(right, asked), 1 if sign == "+" else -1)
        return None

    def _of_symbol(self, symbol: Symbol, asked: frozenset[str]) -> frozenset[Value] | None:
        if symbol.storage is Storage.CONSTANT:
            return None if symbol.value is None else self._of(symbol.value, asked)
        if symbol.key in asked or len(asked) > _MOST_DEEP:
            return None  # a cyclic definition
        if symbol.key not in self._known:
            found = self._find(symbol, asked)
            if found is None and asked:
                return None  # this may be due to the cycle
            self._known[symbol.key] = found
        return self._known[symbol.key]

    def _find(self, symbol: Symbol, asked: frozenset[str]) -> frozenset[Value] | None:
        """The values assigned to the variable, and to those it is a copy of."""
        found: set[Value] = set()
        seen, waiting = {symbol.key}, [symbol]
        while waiting:
            copied = waiting.pop()
            if copied.key in self._lost or not self._followed(copied):
                return None
            for item in self._given.get(copied.key) or (None,):
                source = _copied(item)
                if source is not None:
                    if source.key not in seen:
                        seen.add(source.key)
                        waiting.append(source)
                    continue
                values = None if item is None else self._of(item, asked | seen)
                if values is None or len(found) > _MOST:
                    return None
                found |= values
            if self._begins_with_zero(copied):
                found.add(Value("", 0))
        return frozenset(found)

    def _followed(self, symbol: Symbol) -> bool:
        if symbol.dimensions is not None or symbol.overlay is not None or symbol.volatile:
            return False
        if self._mod_ref.aliases.escaped(Memory(symbol.key, symbol)):
            return False
        return symbol.storage not in _KEPT or symbol.key in self._program.initial or not self._initialised(symbol)

    def _begins_with_zero(self, symbol: Symbol) -> bool:
        """C's static variables start at zero; Fortran's are undefined."""
        given = symbol.storage not in _KEPT or symbol.key in self._program.initial
        return not given and symbol.type.base == "integer" and self._has_initial_value(symbol)

    def _initialised(self, symbol: Symbol) -> bool:
        """Whether the declaration may initialise it, which the program model does not show."""
        if symbol.where is None:
            return True
        if not self._has_initial_value(symbol) and symbol.storage is Storage.SAVED:
            return True
        data = self._program.sources[symbol.where.source].data
        return _INITIALISED.match(data, symbol.where.start) is not None

    def _has_initial_value(self, symbol: Symbol) -> bool:
        """Whether the model, if no declaration, gives the initial value of a static variable."""
        where = symbol.where
        return where is None or language_of(self._program.sources[where.source]).models_initial_values

    # ---- reading ------------------------------------------------------------------------------------------------------

    def _statement(self, statement: Statement, procedure: Procedure) -> None:
        understood: set[str] = set()
        match statement:
            case Assign(target=Name(symbol=symbol), value=value, operator=None):
                self._define(symbol, value)
                understood.add(symbol.key)
            case Declare(variables=variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self._define(symbol, initial)
                    understood.add(symbol.key)
            case Call():
                understood |= self._call(statement, procedure)
        for call in _invocations(statement):
            understood |= self._call(call, procedure)
        # A callee's assignments are read in the callee.
        for reference in self._mod_ref.itself(statement, procedure):
            if reference.writes:
                self._lost |= {memory.key for memory in reference.memory} - understood

    def _define(self, symbol: Symbol, value: _Definition) -> None:
        self._given.setdefault(symbol.key, []).append(value)

    def _call(self, call: Call | Invocation, procedure: Procedure) -> set[str]:
        """Records the values that a call assigns; returns the variables for which that is complete."""
        _, key, _ = self._mod_ref.graph.resolve(call.name, procedure)
        if key is not None:
            return self._bind(call, self._program.procedures[key])
        message = mpi.lookup(call.name) if call.name is not None and mpi.is_mpi_name(call.name) else None
        if message is None:
            return set()
        understood: set[str] = set()
        for number, (argument, parameter) in enumerate(zip(call.arguments, message.parameters, strict=False)):
            symbol = _variable(argument)
            if symbol is None:
                continue
            if parameter.role in _MADE:
                where = call.span or procedure.span
                self._define(symbol, Value(f"made at {where.source}:{where.start}"))
                understood.add(symbol.key)
            elif message.name == "MPI_Comm_rank" and number == 1:
                self._define(symbol, _RankIn(call.arguments[0]))
                understood.add(symbol.key)
        return understood

    def _bind(self, call: Call | Invocation, callee: Procedure) -> set[str]:
        understood: set[str] = set()
        by_reference = language_of_procedure(self._program, callee).by_reference
        for dummy, argument in arguments_of(call, callee):
            self._define(dummy, argument)
            if by_reference and isinstance(argument, Name) and not dummy.by_value:
                # What the callee assigns to its dummy argument, it assigns to the variable.
                self._define(argument.symbol, Name(dummy))
                understood.add(argument.symbol.key)
        return understood


def _variable(argument: Expression) -> Symbol | None:
    if isinstance(argument, AddressOf):
        argument = argument.object
    return argument.symbol if isinstance(argument, Name) else None


def _copied(item: _Definition | None) -> Symbol | None:
    """The variable that a value is a copy of."""
    item = without_casts(item)
    return item.symbol if isinstance(item, Name) and item.symbol.storage is not Storage.CONSTANT else None


def _invocations(statement: Statement) -> Iterable[Invocation]:
    for part in statement.every_expression():
        if isinstance(part, Invocation):
            yield part


def _combined(left: frozenset[Value] | None, right: frozenset[Value] | None, sign: int) -> frozenset[Value] | None:
    """Sums or differences, where at most one of the two is not a number."""
    if left is None or right is None or len(left) * len(right) > _MOST:
        return None
    found = set()
    for one in left:
        for other in right:
            if other.base and (one.base or sign < 0):
                return None
            base = replace(other, offset=0) if other.base else one
            found.add(Value(base.base, one.offset + sign * other.offset))
    return frozenset(found)
