"""Direct messages: those that need no copy after all, once code motion is done.

before:  post a copy of b ; work ; arrive: from the copy to b
after:   post b ; work ; arrive                                         (nothing in between accesses b)

before:  post (of MPI_Recv) ; work ; arrive                             before:  send a copy of b (of MPI_Send)
after:   post unless it is short ; work ; arrive, or receive            after:   send b if it is short, else a copy of it;
                                                                                 the call itself if that is known

Obligations. Buffers: the receive has one start and one end, in one procedure, the end after the start in the same statement
list (or in conditionals of it), and nothing between them accesses the buffer or changes its address.

Short messages: MPI libraries buffer them (eager protocol), so a blocking call gains as much, and costs less. The original
program has that very blocking call. A send: no transformation moved it, or a call of its procedure, before other
communications. A receive: its start and end are as above, and no other receive or probe between them may match the same
message. A rank that waits in such a call then waits where the original program would, and what it waits for starts no later
than in the original: if that does not deadlock even without buffering, neither does this.

Both, in Fortran: the buffer is an array, and not a section with gaps; a scalar's copy costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import data_conflict, message_conflict
from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.expressions import Constant
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, rewrite
from lapwing.overlap.ir.split_phase import SHORT_MESSAGE, Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Block, Call, Compound, Evaluate, If, Statement
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.split_phase.blocking_calls import is_array_memory, too_small


@dataclass
class DirectMessages:
    """``refuse``: notes why a call is left unchanged. ``blocking``: the identities of the program's own MPI_Recv and MPI_Send;
    ``moved``: source and slot of all operations moved before other communications; ``spread``: of receives with operations in
    several procedures."""

    analysis: Analysis
    refuse: Callable[[Call, str, str, str], None]
    blocking: set[int]
    moved: frozenset[tuple[int, int]]
    spread: frozenset[tuple[int, int]]

    def change(self, procedure: Procedure) -> Procedure:
        """The procedure with messages made direct, or blocking if they are short, where possible; itself if there are none."""
        receives = dict(self._receives(procedure))

        def change(statement: Statement) -> Sequence[Statement]:
            if not isinstance(statement, SplitPhaseOperation):
                return (statement,)
            copies, plain = receives.get(statement.slot, (statement.copies, False))
            if statement.part is Part.SEND:
                plain = self._may_be_plain(statement, procedure)
            if statement.part is Part.SEND and plain and self._is_short(statement, procedure):
                return (statement.call,)
            if (copies, plain) == (statement.copies, statement.plain_if_short):
                return (statement,)
            return (replace(statement, copies=copies, plain_if_short=plain),)

        body = rewrite(procedure.body, change)
        return procedure if body is procedure.body else replace(procedure, body=body)

    def _receives(self, procedure: Procedure) -> Iterable[tuple[int, tuple[bool, bool]]]:
        """Slots of receives that may change: whether copies are still needed, and whether short messages may be received at the
        end."""
        for start, end in _pairs(procedure):
            if (procedure.source, start.slot) in self.spread or not self._is_array(start, procedure):
                continue
            between = _between(procedure.body, start, end)
            if between is None:
                continue
            lent, *others = self.analysis.effects_of([replace(start, copies=False), *between], procedure)
            if any(effects.barrier is not None or effects.leaves is not None for effects in others):
                continue
            copies = any(data_conflict(lent, effects, self.analysis.aliases) is not None for effects in others)
            alone = all(message_conflict(lent, _receiving(effects)) is None for effects in others)
            yield start.slot, (copies, alone and self._may_be_plain(start, procedure))

    def _may_be_plain(self, operation: SplitPhaseOperation, procedure: Procedure) -> bool:
        own = operation.wait is None and id(operation.call) in self.blocking
        is_invariant = operation.part is not Part.SEND or (procedure.source, operation.slot) not in self.moved
        if not own or not is_invariant or not self._is_array(operation, procedure):
            return False
        size = self._bytes(operation, procedure)
        return size is None or size <= SHORT_MESSAGE

    def _is_short(self, send: SplitPhaseOperation, procedure: Procedure) -> bool:
        """Whether MPI certainly buffers the message: then the call may stay blocking."""
        size = self._bytes(send, procedure)
        if size is None or size > SHORT_MESSAGE:
            return False
        self.refuse(send.call, *too_small(f"{size} bytes"))
        return True

    def _bytes(self, operation: SplitPhaseOperation, procedure: Procedure) -> int | None:
        """The length of the message, if it is known."""
        count, kind = (argument_of(operation.call, role) for role in (mpi.Role.COUNT, mpi.Role.TYPE))
        size = mpi.TYPE_SIZES[kind.name][2] if isinstance(kind, Constant) and kind.name in mpi.TYPE_SIZES else None
        if count is None or size is None:
            return None
        ((_, values),) = self.analysis.effects_with_values([operation], procedure)
        elements = values.affine(count)
        return elements.constant * size if elements is not None and not elements.terms else None

    def _is_array(self, operation: SplitPhaseOperation, procedure: Procedure) -> bool:
        """Whether the buffer is an array's own memory, where the language distinguishes."""
        buffer = argument_of(operation.call, mpi.Role.RECV_BUFFER, mpi.Role.SEND_BUFFER)
        return buffer is not None and is_array_memory(buffer, language_of_procedure(self.analysis.program, procedure))


def _receiving(effects: Effects) -> Effects:
    """The effects reduced to the operations that a pending receive could interfere with."""
    sends = (mpi.Kind.SEND, mpi.Kind.COMPLETION, mpi.Kind.COLLECTIVE, mpi.Kind.BARRIER)
    return Effects(operations=tuple(o for o in effects.operations if o.call.kind not in sends))


def _pairs(procedure: Procedure) -> Iterable[tuple[SplitPhaseOperation, SplitPhaseOperation]]:
    """The start and end of each copied receive that has one of each."""
    parts: dict[int, list[SplitPhaseOperation]] = {}
    for statement in procedure.body.walk():
        if isinstance(statement, SplitPhaseOperation) and statement.copies and statement.part is not Part.SEND:
            parts.setdefault(statement.slot, []).append(statement)
    for operations in parts.values():
        if [operation.part for operation in operations] == [Part.POST, Part.ARRIVE]:
            yield operations[0], operations[1]


def _between(block: Block, start: SplitPhaseOperation, end: SplitPhaseOperation) -> tuple[Statement, ...] | None:
    """The statements from the start of a receive to its end, conditions of enclosing conditionals included; None if they are
    not in sequence in one list."""
    first, last = (next((n for n, s in enumerate(block.statements) if _holds(s, part)), None) for part in (start, end))
    if first is None or last is None:
        return None
    if first == last:
        found = (_between(inner, start, end) for inner in block.statements[first].blocks())
        return next((statements for statements in found if statements is not None), None)
    after, before = _after(block.statements[first], start), _before(block.statements[last], end)
    if after is None or before is None:
        return None
    return (*after, *block.statements[first + 1 : last], *before)


def _after(statement: Statement, start: SplitPhaseOperation) -> tuple[Statement, ...] | None:
    """The part of a statement that runs after the start in it."""
    path = _branch(statement, start)
    if path is None:
        return () if statement is start else None
    place, block = path
    inner = _after(block.statements[place], start)
    return None if inner is None else (*inner, *block.statements[place + 1 :])


def _before(statement: Statement, end: SplitPhaseOperation) -> tuple[Statement, ...] | None:
    """The part of a statement that runs before the end in it."""
    path = _branch(statement, end)
    if path is None:
        return () if statement is end else None
    place, block = path
    inner = _before(block.statements[place], end)
    asked = (Evaluate(statement.condition, span=statement.span),) if isinstance(statement, If) else ()
    return None if inner is None else (*asked, *block.statements[:place], *inner)


def _branch(statement: Statement, operation: SplitPhaseOperation) -> tuple[int, Block] | None:
    """The branch of a conditional that contains the operation, and the position in it."""
    if not isinstance(statement, If | Compound):
        return None
    for block in statement.blocks():
        for place, inner in enumerate(block.statements):
            if _holds(inner, operation):
                return place, block
    return None


def _holds(statement: Statement, operation: SplitPhaseOperation) -> bool:
    return any(inner is operation for inner in statement.walk())
