"""Converts an exchange with an array of requests that makes up a procedure, so that the procedure can be split.

before:  MPI_Irecv(a, …, &r[0]) ; MPI_Isend(b, …, &r[1]) ; MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
after:   post a ; start b ; end of a ; end of b                        each with a slot's request, visible in all procedures

Local requests could not be waited for in another procedure; those of slots can. Where no caller makes use of that, the original
calls are restored (transforms/revert_unprofitable.py).

Obligation: the array is local and used only by these calls: at the top level of the procedure a start for each request that
MPI_Waitall names, with a constant subscript, and then MPI_Waitall, whose statuses are unused; nothing after it runs a loop
(else the procedure has computation of its own to hide the exchange). The calls' results are unused; receives name source and
tag; in Fortran, buffers are arrays and not sections with gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Constant,
    Element,
    Expression,
    Name,
    Number,
    Storage,
    Symbol,
    without_casts,
)
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, is_hosts, message_of, rewrite, works
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Block, Call, Statement
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.context import Context, is_repeatable
from lapwing.overlap.transforms.split_phase.blocking_calls import is_array_memory, is_written_out

TRANSFORMATION = "wait-later"


def take_over_array(context: Context, procedure: Procedure) -> Block:
    """The procedure's body with such an exchange as split-phase operations; itself if there is none."""
    program = context.analysis.program
    if not context.allowed(TRANSFORMATION) or procedure.kind == "program" or procedure.name == "main":
        return procedure.body
    statements = procedure.body.statements
    waits = [n for n, s in enumerate(statements) if _is(s, "MPI_Waitall")]
    if len(waits) != 1 or works(statements[waits[0] + 1 :], program, procedure):
        return procedure.body
    wait = statements[waits[0]]
    assert isinstance(wait, Call)
    starts = _starts(context, procedure, statements[: waits[0]], wait)
    if starts is None:
        return procedure.body
    firsts: dict[int, SplitPhaseOperation] = {}
    lasts: list[SplitPhaseOperation] = []
    for start in starts:
        slot = context.next_slot(procedure.source)
        parts = (Part.POST, Part.ARRIVE) if _is(start, "MPI_Irecv") else (Part.START, Part.END)
        firsts[id(start)] = SplitPhaseOperation(parts[0], start, slot, wait=wait, span=start.span)
        lasts.append(SplitPhaseOperation(parts[1], start, slot, wait=wait, span=wait.span))

    def change(statement: Statement) -> Sequence[Statement]:
        return tuple(lasts) if statement is wait else (firsts.get(id(statement), statement),)

    return rewrite(procedure.body, change)


def _starts(context: Context, procedure: Procedure, before: Sequence[Statement], wait: Call) -> tuple[Call, ...] | None:
    """The calls that MPI_Waitall completes, if all are certain."""
    array = _array(argument_of(wait, mpi.Role.REQUESTS), procedure)
    count = argument_of(wait, mpi.Role.COUNT)
    statuses = argument_of(wait, mpi.Role.STATUSES)
    if (
        array is None
        or not isinstance(count, Number)
        or wait.result is not None
        or wait.keywords
        or wait.label is not None
    ):
        return None
    if statuses is None or not _is_unread(procedure, statuses):
        return None
    elsewhere = context.analysis.named_elsewhere(procedure)
    named = {e.symbol.key for e in statuses.walk() if isinstance(e, Name)}
    if elsewhere & {array.key, *named}:
        return None
    language = language_of_procedure(context.analysis.program, procedure)
    places: dict[int, Call] = {}
    for statement in before:
        place = _place(statement, array)
        if place is not None and isinstance(statement, Call):
            if place in places or not _may_be_taken_over(context, statement, language):
                return None
            places[place] = statement
    first = language.index_base
    if sorted(places) != list(range(first, first + int(count.value))) or _uses(procedure, array) != len(places) + 1:
        return None
    return tuple(places.values())


def _may_be_taken_over(context: Context, call: Call, language: Language) -> bool:
    buffer = argument_of(call, mpi.Role.RECV_BUFFER, mpi.Role.SEND_BUFFER)
    if buffer is None or call.keywords or call.result is not None or call.label is not None or context.wildcard(call):
        return False
    if not is_repeatable(call, language) or not is_written_out(call):
        return False
    return is_array_memory(buffer, language)


def _is(statement: Statement, name: str) -> bool:
    message = message_of(statement)
    return message is not None and message.name == name


def _place(statement: Statement, array: Symbol) -> int | None:
    """Which of the array's requests an MPI_Irecv or MPI_Isend starts."""
    if not isinstance(statement, Call) or not (_is(statement, "MPI_Irecv") or _is(statement, "MPI_Isend")):
        return None
    request = argument_of(statement, mpi.Role.REQUEST)
    if isinstance(request, AddressOf):
        request = request.object
    if not isinstance(request, Element) or request.base != Name(array) or len(request.indices) != 1:
        return None
    index = request.indices[0]
    return int(index.value) if isinstance(index, Number) else None


def _array(argument: Expression | None, procedure: Procedure) -> Symbol | None:
    """The local array that a call is passed from its first element on."""
    argument = None if argument is None else without_casts(argument)
    if not isinstance(argument, Name):
        return None
    symbol = argument.symbol
    return symbol if _is_own(symbol, procedure) and len(symbol.dimensions or ()) == 1 else None


def _is_unread(procedure: Procedure, statuses: Expression) -> bool:
    """Whether the statuses are unused: there are none, or they go to an array that is named nowhere else."""
    if isinstance(statuses, Constant):
        return statuses.name == "MPI_STATUSES_IGNORE"
    array = without_casts(statuses)
    return isinstance(array, Name) and _is_own(array.symbol, procedure) and _uses(procedure, array.symbol) == 1


def _is_own(symbol: Symbol, procedure: Procedure) -> bool:
    """Whether it is a local array that other procedures cannot access."""
    if is_hosts(symbol, procedure):
        return False
    plain = symbol.storage is Storage.LOCAL and not symbol.pointer and not symbol.allocatable and symbol.overlay is None
    return plain and symbol.dimensions is not None


def _uses(procedure: Procedure, symbol: Symbol) -> int:
    """How many times the procedure names the variable."""
    return sum(1 for statement in procedure.body.walk() for name in _names(statement) if name == symbol)


def _names(statement: Statement) -> Iterable[Symbol]:
    for inner in statement.every_expression():
        if isinstance(inner, Name):
            yield inner.symbol
