"""Lookahead: whether a pipelined loop's next transfer may start as soon as this iteration's is complete, before the rest of the
iteration.

before:  transfer; rest; (next iteration) transfer         after:  transfer; start of the next; rest; (next iteration) end of it

The early work has run by then, so the next transfer's data is in its second buffer. It is received into a second receive
buffer, which is then swapped with the first; elements that a transfer does not deliver are equal in both (lookahead_text.py).

Obligations. Nothing but the early work communicates from one transfer to the next (checked by pipeline_loop.py). The transfer
sends from a second buffer, and its other arguments are known by then: constants, variables that are not written in the loop,
and rows of counts with double buffers. Only the transfer writes the receive buffer in the loop, and only one pointer points to
it: elsewhere the program uses that to name elements, or passes it to MPI or to free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.accesses import Access, Memory
from lapwing.overlap.ir.expressions import (
    AddressOf,
    Assignment,
    Constant,
    Element,
    Expression,
    Member,
    Name,
    Operation,
    Storage,
    Symbol,
    without_casts,
)
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.statements import Assign, Call, Statement
from lapwing.overlap.transforms.software_pipelining.double_buffers import (
    Allocation,
    DoubleBuffer,
    allocation_of,
    not_global_numbers,
)
from lapwing.overlap.transforms.software_pipelining.prologue import Prologue


@dataclass(frozen=True)
class Lookahead:
    """``received``: the pointer to the transfer's receive buffer; ``rows``: double buffers of its counts and displacements;
    ``only``: only the transfer writes the buffer in the whole program."""

    received: Symbol
    allocation: Allocation
    rows: tuple[DoubleBuffer, ...]
    only: bool


def find_lookahead(
    analysis: Analysis, work: Prologue, double_buffers: Sequence[DoubleBuffer], transfer: Call, rest: Sequence[Access]
) -> Lookahead | str | None:
    """How the transfer can start an iteration ahead; why not, or None if the early work does not even contain what it sends.

    ``rest``: all accesses of an iteration but those of the transfer and the early work.
    """
    if not any(double_buffer.sent for double_buffer in double_buffers):
        return None
    buffer = argument_of(transfer, mpi.Role.RECV_BUFFER)
    if not isinstance(buffer, Name) or not buffer.symbol.pointer:
        return "what is received into is no allocated memory"
    received = buffer.symbol
    why = not_global_numbers(received)
    if why is not None:
        return f"{received.name}: {why}"
    allocation = allocation_of(analysis, received, work.procedure.source)
    if allocation is None:
        return f"{received.name}: its memory does not come from one malloc in the same file"
    if not _leads_alone(analysis, received, allocation):
        return f"{received.name}: its memory may be reached in other ways than by its elements"
    memory = analysis.aliases.pointees(buffer, work.procedure)
    for access in rest:
        if access.writes and access.symbol == received and not access.through:
            return f"{received.name} is changed in the loop"
        # Communication in flight throughout (without symbol) has the address.
        if (access.writes or access.symbol is None) and analysis.aliases.may_overlap(access.memory, memory):
            return f"{received.name} is written in the loop by others, too"
    rows = _rows(analysis, work, double_buffers, transfer, rest)
    if isinstance(rows, str):
        return rows
    return Lookahead(received, allocation, rows, not _written_by_others(analysis, received, transfer))


def _rows(
    analysis: Analysis, work: Prologue, double_buffers: Sequence[DoubleBuffer], transfer: Call, rest: Sequence[Access]
) -> tuple[DoubleBuffer, ...] | str:
    """The double-buffered variables among the transfer's arguments, if the others are invariant in the loop; or why not."""
    message = message_of(transfer)
    assert message is not None
    written = [a for a in (*rest, *(a for e in work.effects for a in e.accesses)) if a.writes]
    by_symbol = {double_buffer.symbol: double_buffer for double_buffer in double_buffers}
    rows: dict[Symbol, DoubleBuffer] = {}
    for argument, parameter in zip(transfer.arguments, message.parameters, strict=True):
        if parameter.role in (mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER) or isinstance(argument, Constant):
            continue
        if parameter.role is mpi.Role.TYPE:
            return "a type of the program's own, which may have gaps"
        if not isinstance(argument, Name) or argument.symbol.storage is not Storage.GLOBAL:
            return f"an argument of {message.name} is not known an iteration ahead"
        double_buffer = by_symbol.get(argument.symbol)
        if double_buffer is not None and double_buffer.ranges is None:
            rows[argument.symbol] = double_buffer
            continue
        memory: frozenset[Memory] = analysis.aliases.objects(argument, work.procedure)
        memory |= analysis.aliases.pointees(argument, work.procedure)
        if any(analysis.aliases.may_overlap(access.memory, memory) for access in written):
            return f"{argument.symbol.name} is written in the loop"
    return tuple(rows.values())


def _leads_alone(analysis: Analysis, pointer: Symbol, allocation: Allocation) -> bool:
    """Whether the program uses the pointer only for elements of its memory, messages, and tests of malloc's result."""
    memory = analysis.aliases.pointees(Name(pointer), allocation.procedure)
    if any(analysis.aliases.escaped(m) for m in memory):
        return False
    for procedure in analysis.program.procedures.values():
        for statement in procedure.body.walk():
            if statement is allocation.statement:
                continue
            harmless = {id(e) for e in _harmless(statement)}
            if any(e == Name(pointer) and id(e) not in harmless for e in statement.every_expression()):
                return False
    return True


def _written_by_others(analysis: Analysis, pointer: Symbol, transfer: Call) -> bool:
    """Whether something else writes what the pointer, which has no aliases, points to."""
    for procedure in analysis.program.procedures.values():
        for statement in procedure.body.walk():
            if statement is transfer:
                continue
            parts = statement.every_expression()
            targets = [e.target for e in parts if isinstance(e, Assignment)]
            if isinstance(statement, Assign):
                targets.append(statement.target)
            if isinstance(statement, Call):
                targets += [statement.result] if statement.result is not None else []
            if any(target != Name(pointer) and _base(target) == Name(pointer) for target in targets):
                return True
            if message_of(statement) is not None and Name(pointer) in parts:
                return True
    return False


def _base(place: Expression) -> Expression:
    """The variable of which a place is an element, or part of one."""
    while isinstance(place, Element | Member):
        place = place.base
    return place


def _harmless(statement: Statement) -> Iterator[Expression]:
    """Names whose use does not pass on the address they denote."""
    parts = statement.every_expression()
    ends = isinstance(statement, Call) and (statement.name == "free" or message_of(statement) is not None)
    if ends and isinstance(statement, Call):
        yield from map(_bare, statement.arguments)
    addressed = {id(e.object) for e in parts if isinstance(e, AddressOf) and not ends}
    for e in parts:
        if isinstance(e, Element) and id(e) not in addressed:
            yield e.base
        elif isinstance(e, Operation) and e.operator in _TESTS:
            yield from map(_bare, e.arguments)


def _bare(argument: Expression) -> Expression:
    found = without_casts(argument)
    assert found is not None
    return found


_TESTS = frozenset({"!", "&&", "||", "==", "!="})
