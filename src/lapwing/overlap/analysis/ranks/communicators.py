"""Which communicator an argument denotes, as far as the source shows, and which groups contain which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.dataflow.call_graph import is_static
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Constant,
    Expression,
    Invocation,
    Name,
    Storage,
    Symbol,
    Unread,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import message_of
from lapwing.overlap.ir.statements import Assign, Call, Declare, Opaque, Statement
from lapwing.overlap.languages.registry import language_of_procedure

WORLD, SELF = "MPI_COMM_WORLD", "MPI_COMM_SELF"
_MOST_CALLERS = 8


@dataclass(frozen=True)
class Communicator:
    """``name``: a constant's, or the key of the only variable it was created in.

    ``group``: equal for communicators of the same ranks; ``parents``: names of groups that contain this one.
    """

    name: str
    group: str
    parents: tuple[str, ...] = ()


_CONSTANTS = {WORLD: Communicator(WORLD, WORLD), SELF: Communicator(SELF, SELF, (WORLD,))}


def same_values(sent: Communicator | None, among: str, parents: tuple[str, ...]) -> bool:
    """Whether what all ranks of ``sent`` share is also shared by all ranks of each group ``among``, which ``parents`` contain."""
    return sent is not None and (sent.group == among or sent.group in parents or sent.group == WORLD)


class Communicators:
    """Answers for one program."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis, self._program = analysis, analysis.program
        self._values: dict[str, list[tuple[Expression | Call, Procedure]]] = {}
        self._handed: dict[str, list[tuple[Call | Invocation | None, Expression, Procedure]]] = {}
        self._lost: set[str] = set()
        self._found: dict[str, Communicator | None] = {}
        for procedure in analysis.program.procedures.values():
            for statement in procedure.body.walk():
                self._read(statement, procedure)

    def of(self, argument: Expression | None, procedure: Procedure, depth: int = 0) -> Communicator | None:
        """The communicator that an argument denotes; None if it may be one of several, or is unknown."""
        argument = without_casts(argument)
        if isinstance(argument, Constant):
            return _CONSTANTS.get(argument.name)
        if not isinstance(argument, Name):
            return None
        symbol = argument.symbol
        if symbol.storage is Storage.CONSTANT:
            return (
                self.of(symbol.value, procedure, depth + 1)
                if symbol.value is not None and depth < _MOST_CALLERS
                else None
            )
        if symbol.key not in self._found:
            self._found[symbol.key] = None  # for one created from itself
            self._found[symbol.key] = self._variable(symbol, procedure, depth)
        return self._found[symbol.key]

    def _variable(self, symbol: Symbol, procedure: Procedure, depth: int) -> Communicator | None:
        for call, handed, home in self._handed.pop(symbol.key, []):
            self._hand_on(call, handed, home)
        outside = symbol.storage is Storage.GLOBAL and not is_static(symbol.key) and self._analysis.graph.external_code
        if (
            outside
            or symbol.key in self._lost
            or symbol.overlay is not None
            or symbol.dimensions is not None
            or symbol.pointer
        ):
            return None
        if symbol.storage is Storage.ARGUMENT:
            return None if self._values.get(symbol.key) else self._argument(symbol, procedure, depth)
        values = self._values.get(symbol.key, [])
        if len(values) == 1 and isinstance(values[0][0], Call):
            return self._made(symbol, values[0][0], values[0][1], depth)
        found = {self.of(value, home, depth) for value, home in values if not isinstance(value, Call)}
        if len(found) != 1 or any(isinstance(value, Call) for value, _ in values):
            return None
        return found.pop()

    def _argument(self, symbol: Symbol, procedure: Procedure, depth: int) -> Communicator | None:
        graph, program = self._analysis.graph, self._program
        places = [n for n, p in enumerate(procedure.parameters) if p == symbol]
        if depth > _MOST_CALLERS or procedure.key in graph.entries or not places:
            return None
        found: set[Communicator | None] = set()
        for site in graph.calls_of(procedure.key):
            arguments = site.call.arguments
            keywords = isinstance(site.call, Call) and bool(site.call.keywords)
            if keywords or places[0] >= len(arguments):
                return None
            found.add(self.of(arguments[places[0]], program.procedures[site.procedure], depth + 1))
        return found.pop() if len(found) == 1 else None

    def _made(self, symbol: Symbol, call: Call, procedure: Procedure, depth: int) -> Communicator | None:
        """A communicator that exactly one call creates."""
        message = message_of(call)
        assert message is not None
        if message.name in _BETWEEN_PROGRAMS:
            return None
        place = mpi.index_of(message, mpi.Role.COMM)
        origin = None if place is None else self.of(call.arguments[place], procedure, depth + 1)
        if origin is None:
            return Communicator(symbol.key, symbol.key)
        if message.name in ("MPI_Comm_dup", "MPI_Comm_dup_with_info"):
            return Communicator(symbol.key, origin.group, origin.parents)
        return Communicator(symbol.key, symbol.key, (origin.group, *origin.parents))

    # ---- what variables are given -------------------------------------------------------------------------------------

    def _read(self, statement: Statement, procedure: Procedure) -> None:
        match statement:
            case Assign(target=Name(symbol=symbol), value=value):
                self._values.setdefault(symbol.key, []).append((value, procedure))
            case Declare(variables=variables):
                for symbol, initial in variables:
                    if initial is not None:
                        self._values.setdefault(symbol.key, []).append((initial, procedure))
            case Opaque():
                self._lost |= {s.key for s in procedure.symbols.values()}
        others = [e.target for e in statement.every_expression() if isinstance(e, Assignment)]
        others += [statement.result] if isinstance(statement, Call) and statement.result is not None else []
        self._lost |= {other.symbol.key for other in others if isinstance(other, Name)}
        made = self._made_by(statement)
        place = made.object if isinstance(made, AddressOf) else made
        if isinstance(place, Name) and isinstance(statement, Call):
            self._values.setdefault(place.symbol.key, []).append((statement, procedure))
        for call, handed in _handed_on(statement):
            if made is None or handed is not made:
                name = handed.object if isinstance(handed, AddressOf) else handed
                assert isinstance(name, Name)
                self._handed.setdefault(name.symbol.key, []).append((call, handed, procedure))

    @staticmethod
    def _made_by(statement: Statement) -> Expression | None:
        """The argument in which a call creates a communicator."""
        message = message_of(statement)
        if message is None or not isinstance(statement, Call):
            return None
        place = mpi.index_of(message, mpi.Role.NEW_COMM)
        return None if place is None or place >= len(statement.arguments) else statement.arguments[place]

    def _hand_on(self, call: Call | Invocation | None, handed: Expression, procedure: Procedure) -> None:
        """A variable itself, or its value, is passed on."""
        name = handed.object if isinstance(handed, AddressOf) else handed
        assert isinstance(name, Name)
        by_reference = language_of_procedure(self._program, procedure).by_reference
        callee = None if call is None else self._program.resolve(call.name, procedure)
        if callee is not None and call is not None:
            summary = self._analysis.summary(callee)
            written = {a.symbol.key for a in summary.writes() if a.symbol is not None}
            for number, argument in enumerate(call.arguments):
                dummy = callee.parameters[number] if number < len(callee.parameters) else None
                by_value = dummy is not None and dummy.by_value and not isinstance(argument, AddressOf)
                safe = dummy is not None and dummy.key not in written and summary.barrier is None
                if argument is handed and not by_value and not safe:
                    self._lost.add(name.symbol.key)
        elif (isinstance(handed, AddressOf) or (by_reference and call is not None)) and not _harmless(call, handed):
            self._lost.add(name.symbol.key)


def _handed_on(statement: Statement) -> Iterator[tuple[Call | Invocation | None, Expression]]:
    """The variables, and addresses of variables, that occur in a statement, with the call whose argument they are."""
    tops: list[tuple[Call | Invocation | None, Expression]] = [(None, e) for e in statement.expressions()]
    if isinstance(statement, Call):
        tops = [(statement, e) for e in statement.arguments] + [(None, v) for _, v in statement.keywords]
    while tops:
        call, expression = tops.pop()
        if isinstance(expression, Name) or (isinstance(expression, AddressOf) and isinstance(expression.object, Name)):
            yield call, expression
        elif isinstance(expression, Invocation):
            tops += [(expression, a) for a in expression.arguments]
        elif isinstance(expression, Unread):
            tops += [(None, AddressOf(m) if isinstance(m, Name) else m) for m in expression.mentions]
        else:
            tops += [(None, e) for e in expression.operands()]


def _harmless(call: Call | Invocation | None, handed: Expression) -> bool:
    """Whether a call of a procedure outside the program leaves the variable unchanged."""
    message = (
        mpi.lookup(call.name) if call is not None and call.name is not None and mpi.is_mpi_name(call.name) else None
    )
    if call is None or message is None:
        return False
    places = [number for number, argument in enumerate(call.arguments) if argument is handed]
    writes = any(n < len(message.parameters) and message.parameters[n].writes for n in places)
    return not writes or message.name == "MPI_Comm_free"


_BETWEEN_PROGRAMS = frozenset(
    """MPI_Comm_spawn MPI_Comm_spawn_multiple MPI_Comm_connect MPI_Comm_accept MPI_Comm_join MPI_Comm_get_parent
    MPI_Intercomm_create""".split()
)
