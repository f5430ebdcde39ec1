"""Splits blocking calls into a start and a wait, in the same place; transforms/code_motion.py then moves these.

before:  MPI_Recv(b, n, type, source, tag, comm, status)
after:   post b ; arrive b, status

before:  MPI_Send(b, n, type, dest, tag, comm)
after:   send a copy of b, which is complete before the same call's next

before:  MPI_Sendrecv(a, …, dest, …, b, …, source, …)
after:   post b ; send a copy of a ; arrive b

Obligations. The type is basic (so that a copy is well defined) and, in Fortran, the buffer is a variable, an array, a section
of an array, or an element of a contiguous one. Receives: no wildcard, and the buffer does not overlap status or count. Sends:
standard mode; MPI lets such a send return before the message has left (MPI 3.1, 3.4), so no correct program can tell the
difference. The copy is in flight while the program goes on; its own buffers hold what they would have held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.ir.expressions import Constant, Expression, Name, Number, Operation, without_casts
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.split_phase import NOWHERE, Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.context import Context, is_repeatable

TRANSFORMATION = "nonblocking"


@dataclass
class BlockingCalls:
    """Splits the blocking calls of one procedure; ``change`` is an argument of rewriter.rewrite."""

    context: Context
    procedure: Procedure

    def change(self, statement: Statement) -> Sequence[Statement]:
        message = message_of(statement)
        if message is None or not isinstance(statement, Call):
            return (statement,)
        split_collective = {"MPI_Recv": self._receive, "MPI_Send": self._send, "MPI_Sendrecv": self._exchange}.get(
            message.name
        )
        if (
            split_collective is None
            or not self.context.allowed(TRANSFORMATION)
            or not self.context.allowed("clone-buffer")
        ):
            return (statement,)
        if statement.label is not None:
            self._refuse(statement, *LABELLED)
            return (statement,)
        return split_collective(statement)

    def _receive(self, call: Call) -> Sequence[Statement]:
        if not self._may_be_copied(call, mpi.Role.RECV_BUFFER, mpi.Role.TYPE) or self._has_wildcard(call):
            return (call,)
        slot = self.context.next_slot(self.procedure.source)
        status = argument_of(call, mpi.Role.STATUS)
        post = SplitPhaseOperation(Part.POST, call, slot, copies=True, span=NOWHERE)
        arrive = SplitPhaseOperation(Part.ARRIVE, call, slot, copies=True, status=status, span=call.span)
        return (post, arrive)

    def _send(self, call: Call) -> Sequence[Statement]:
        if not self._can_be_drained(call):
            return (call,)
        count = argument_of(call, mpi.Role.COUNT)
        if isinstance(count, Number) and count.value <= 8:
            self._refuse(call, *too_small(f"{count.value} elements"))
            return (call,)
        if not self._may_be_copied(call, mpi.Role.SEND_BUFFER, mpi.Role.TYPE):
            return (call,)
        slot = self.context.next_slot(self.procedure.source)
        return (SplitPhaseOperation(Part.SEND, call, slot, copies=True, span=call.span),)

    def _exchange(self, call: Call) -> Sequence[Statement]:
        parts = _sendrecv_parts(call)
        if parts is None or self._has_wildcard(call) or not self._can_be_drained(call):
            return (call,)
        receive, send = parts
        for part, role in ((receive, mpi.Role.RECV_BUFFER), (send, mpi.Role.SEND_BUFFER)):
            if not self._may_be_copied(part, role, mpi.Role.TYPE):
                return (call,)
        status = argument_of(call, mpi.Role.STATUS)
        one = self.context.next_slot(self.procedure.source)
        two = self.context.next_slot(self.procedure.source)
        return (
            SplitPhaseOperation(Part.POST, receive, one, copies=True, span=NOWHERE),
            SplitPhaseOperation(Part.SEND, replace(send, result=None), two, copies=True, span=NOWHERE),
            SplitPhaseOperation(Part.ARRIVE, receive, one, copies=True, status=status, span=call.span),
        )

    # ---- obligations --------------------------------------------------------------------------------------------------

    def _may_be_copied(self, call: Call, buffer_role: mpi.Role, type_role: mpi.Role) -> bool:
        if call.keywords:
            self._refuse(call, "its arguments are in MPI's order", "keyword arguments", "write the arguments in order")
            return False
        if not is_repeatable(call, self._language()):
            self._refuse(call, *NOT_REPEATABLE)
            return False
        if not is_written_out(call):
            self._refuse(call, *NOT_WRITTEN_OUT)
            return False
        buffer, kind = argument_of(call, buffer_role), argument_of(call, type_role)
        if buffer is None or kind is None:
            return False
        if self.context.basic_type(kind) is None:
            self._refuse(
                call,
                "the type of its elements is a basic one",
                "a type that is made at run time, or not known",
                "pass a basic MPI type, or start the transfer with a nonblocking call yourself",
            )
            return False
        if not self._language().can_declare(buffer):
            self._refuse(
                call,
                "its buffer's type can be declared elsewhere",
                "a type of the program's own, or a kind that is not known",
                "pass an array of a basic type, and give the sources of its modules",
            )
            return False
        if not may_be_copied(buffer, self._language()):
            self._refuse(
                call,
                "its buffer is contiguous memory",
                "an expression, or an element of what may have gaps",
                "pass an array, a section of one, or the first element of a contiguous array",
            )
            return False
        return True

    def _can_be_drained(self, call: Call) -> bool:
        if self.context.analysis.disconnects:
            self._refuse(
                call,
                "its message can be waited for where the program ends MPI",
                "MPI_Comm_disconnect or MPI_Session_finalize needs it complete before",
                "free the communicator by MPI_Comm_free",
            )
        elif not self.context.can_drain:
            self._refuse(
                call,
                "its message can be waited for where the program ends MPI",
                "MPI_Finalize is in no statement of its own, has a label, or is not in these sources",
                "call MPI_Finalize in a statement of its own without a label, and give its source, too",
            )
        return self.context.can_drain

    def _has_wildcard(self, call: Call) -> bool:
        name = self.context.wildcard(call)
        if name is not None:
            self._refuse(
                call, "it says from whom it receives, and what", name, f"name the source and the tag instead of {name}"
            )
        return name is not None

    def _refuse(self, call: Call, obligation: str, found: str, advice: str) -> None:
        self.context.refuse(call.span, TRANSFORMATION, obligation, found, advice)

    def _language(self) -> Language:
        return language_of_procedure(self.context.analysis.program, self.procedure)


LABELLED = (
    "no label stands before it",
    "a label, which could stand before one part only",
    "put the label on a statement that does nothing, before the call",
)
NOT_WRITTEN_OUT = (
    "its arguments can be written somewhere else",
    "an argument that is put together by a macro",
    "write the call without the macro",
)
NOT_REPEATABLE = (
    "its arguments are the same whenever they are computed",
    "a call or an assignment in an argument",
    "compute it before, and pass the variable",
)


def too_small(found: str) -> tuple[str, str, str]:
    """A refusal because the message, of the size found, is too small."""
    return "a message is worth it", found, "nothing: so small a message is gone at once"


def is_written_out(call: Call) -> bool:
    """Whether every argument has source text, or is so simple that text can be generated: arguments may come from macros."""

    def plain(expression: Expression) -> bool:
        if expression.span is not None or isinstance(expression, Number | Name | Constant):
            return True
        simple = isinstance(expression, Operation) and len(expression.arguments) == 2
        return simple and all(plain(e) for e in expression.operands())

    return all(plain(e) for e in call.expressions())


def is_contiguous(buffer: Expression, language: Language) -> bool:
    """Whether the argument is certainly contiguous memory from its first element on, no temporary, and of a type that other
    procedures can declare if necessary."""
    buffer = without_casts(buffer)
    # Not MPI_IN_PLACE, nor MPI_BOTTOM.
    return not isinstance(buffer, Constant) and language.is_contiguous(buffer)


def is_array_memory(buffer: Expression, language: Language) -> bool:
    """Whether the argument is contiguous, and an array where support procedures take one."""
    return is_contiguous(buffer, language) and language.is_array(buffer)


def may_be_copied(buffer: Expression, language: Language) -> bool:
    """Whether a message can be copied from or to the argument. A temporary, which Fortran compilers may pass for a section, is
    harmless: it exists during the call that copies."""
    return is_contiguous(buffer, language) or language.may_be_copied(buffer)


def _sendrecv_parts(call: Call) -> tuple[Call, Call] | None:
    """The receive and the send that make up an MPI_Sendrecv (sendbuf, n, type, dest, tag, recvbuf, n, type, source, tag, comm,
    status).
    """
    if len(call.arguments) < 12:
        return None
    a = call.arguments
    rest = a[12:]  # Fortran's IERROR
    send = Call("MPI_Send", (*a[0:5], a[10], *rest), call.result, span=call.span)
    receive = Call("MPI_Recv", (*a[5:10], a[10], a[11], *rest), call.result, span=call.span)
    return receive, send
