"""Converts the program's own pairs of Irecv and Wait, so that both ends can be moved.

before:  call MPI_IRECV(b, …, mid, …) … call MPI_WAIT(mid, STATUS, …)      (mid used again for the next message)
after:   post b … arrive b, STATUS

Obligations. The request is a local scalar, not the host's, used by nothing else; its calls come in pairs, each pair under the
same conditions, which are invariant in between, and any loop around one contains the whole pair. Otherwise the calls are left
unchanged, and their effects (effects/transfer.py) decide what may move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import data_conflict
from lapwing.overlap.analysis.effects.effects import is_only_read
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.expressions import AddressOf, Expression, Name, Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, is_hosts, message_of, rewrite, with_blocks, with_statements
from lapwing.overlap.ir.split_phase import Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Block, Call, Evaluate, If, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.context import Context, is_repeatable
from lapwing.overlap.transforms.split_phase.blocking_calls import is_written_out, may_be_copied

TRANSFORMATION = "wait-later"


@dataclass(frozen=True)
class _Use:
    """One call that names the request; ``guards``: the conditions around it; ``home``: the block outside these; ``position``:
    in that block.
    """

    call: Call
    guards: tuple[tuple[Expression, bool], ...]
    home: int
    position: int


def take_over(context: Context, procedure: Procedure) -> Block:
    """The procedure's body with its certain pairs of Irecv and Wait as split-phase operations."""
    if not context.allowed(TRANSFORMATION) or not context.allowed("clone-buffer"):
        return procedure.body
    language = language_of_procedure(context.analysis.program, procedure)
    uses: dict[Symbol, list[_Use]] = {}
    foreign: set[str] = set()
    _collect(procedure.body, (), procedure.body, None, uses, foreign)
    foreign |= context.analysis.named_elsewhere(procedure)
    operations: dict[int, SplitPhaseOperation] = {}
    for symbol, calls in uses.items():
        seen = symbol.key in foreign or symbol.storage is not Storage.LOCAL or is_hosts(symbol, procedure)
        if seen or symbol.dimensions is not None:
            continue
        if symbol.overlay is not None or (symbol.target and not language.has_addresses):
            continue  # it has aliases
        for receive, wait in _pairs(calls):
            if _provable(context, procedure, receive, wait):
                slot = context.next_slot(procedure.source)
                status = argument_of(wait.call, mpi.Role.STATUS)
                common = {"copies": True, "wait": wait.call, "status": status}
                operations[id(receive.call)] = SplitPhaseOperation(
                    Part.POST,
                    receive.call,
                    slot,
                    span=receive.call.span,
                    **common,  # type: ignore[arg-type]
                )
                operations[id(wait.call)] = SplitPhaseOperation(
                    Part.ARRIVE,
                    receive.call,
                    slot,
                    span=wait.call.span,
                    **common,  # type: ignore[arg-type]
                )
    if not operations:
        return procedure.body

    def change(statement: Statement) -> Sequence[Statement]:
        return (operations.get(id(statement), statement),)

    return rewrite(procedure.body, change)


def _collect(
    block: Block,
    guards: tuple[tuple[Expression, bool], ...],
    home: Block,
    position: int | None,
    uses: dict[Symbol, list[_Use]],
    foreign: set[str],
) -> None:
    """The calls that name each request, with their guards; and the variables named by anything else."""
    for number, statement in enumerate(block.statements):
        place = number if position is None else position
        message = message_of(statement)
        request: Symbol | None = None
        if isinstance(statement, Call) and message is not None and message.name in ("MPI_Irecv", "MPI_Wait"):
            request = _symbol(argument_of(statement, mpi.Role.REQUEST))
        if request is not None and isinstance(statement, Call):
            uses.setdefault(request, []).append(_Use(statement, guards, id(home), place))
        for inner in statement.every_expression():
            if isinstance(inner, Name) and inner.symbol != request:
                foreign.add(inner.symbol.key)
        if isinstance(statement, If):
            _collect(statement.then, (*guards, (statement.condition, True)), home, place, uses, foreign)
            if statement.otherwise is not None:
                _collect(statement.otherwise, (*guards, (statement.condition, False)), home, place, uses, foreign)
        else:
            for inner_block in statement.blocks():
                _collect(inner_block, (), inner_block, None, uses, foreign)


def _symbol(argument: Expression | None) -> Symbol | None:
    if isinstance(argument, AddressOf):
        argument = argument.object
    return argument.symbol if isinstance(argument, Name) else None


def _pairs(uses: Sequence[_Use]) -> list[tuple[_Use, _Use]]:
    """The pairs of receive and wait; empty if the calls do not alternate."""
    if len(uses) % 2:
        return []
    pairs = list(zip(uses[::2], uses[1::2], strict=True))
    right = all(
        (a.call.name or "").lower() == "mpi_irecv" and (b.call.name or "").lower() == "mpi_wait" and a.home == b.home
        for a, b in pairs
    )
    return pairs if right else []


def _provable(context: Context, procedure: Procedure, receive: _Use, wait: _Use) -> bool:
    call = receive.call
    kind, buffer = argument_of(call, mpi.Role.TYPE), argument_of(call, mpi.Role.RECV_BUFFER)
    language = language_of_procedure(context.analysis.program, procedure)
    if call.label is not None or wait.call.label is not None:
        return False
    if call.keywords or wait.call.keywords or receive.guards != wait.guards or context.wildcard(call):
        return False
    if not all(is_repeatable(c, language) and is_written_out(c) for c in (call, wait.call)):
        return False
    if kind is None or buffer is None or context.basic_type(kind) is None or not may_be_copied(buffer, language):
        return False
    return _are_lasting(
        [condition for condition, _ in receive.guards], context.analysis, procedure, receive.call, wait.call
    )


def _are_lasting(
    conditions: Sequence[Expression], analysis: Analysis, procedure: Procedure, first: Call, second: Call
) -> bool:
    """Whether the conditions are invariant between the calls: nothing that runs between writes what they read."""
    asked = [analysis.plain(Evaluate(condition, span=first.span), procedure) for condition in conditions]
    if not all(map(is_only_read, asked)):
        return False
    between = [analysis.plain(s, procedure) for s in _between(procedure, first, second)] if asked else []
    return not any(e.barrier or data_conflict(e, one, analysis.aliases) for e in between for one in asked)


def _between(procedure: Procedure, first: Call, second: Call) -> Iterator[Statement]:
    """The statements from one call to the other (in source order); of compound ones, only the heads."""
    inside = False
    for statement in procedure.body.walk():
        inside = inside or statement is first
        if inside:
            yield with_blocks(statement, [with_statements(block, ()) for block in statement.blocks()])
        if statement is second:
            return
