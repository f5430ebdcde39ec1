"""Splits blocking collectives into a start and an end, in the same place; transforms/code_motion.py then moves these.

before:  MPI_Allreduce(a, b, n, type, op, comm)
after:   start a, b ; end a, b

MPI works on the program's own buffers: from the start to the end nothing may write what is sent, or access what is received.

Obligations. A nonblocking collective never matches a blocking one (MPI 3.1, 5.12), so every call that may match this one has to
change with it: all ranks of the communicator execute this very call uniformly (ranks/uniformity.py), and likewise all other
calls of the same collective on what may be the same communicator. The result does not depend on the order in which
contributions are combined: MPI may choose another order than for the blocking call, and floating-point sums would round
differently. In Fortran the buffers are variables, not sections that the compiler might pass as temporaries. A few elements
transferred once, say at the start of the program, are not worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.overlap import mpi
from lapwing.overlap.analysis.ranks.uniformity import Divergence, Site, Uniformity
from lapwing.overlap.ir.expressions import Constant, Expression, Name, Number, Storage, without_casts
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import argument_of, message_of
from lapwing.overlap.ir.split_phase import NOWHERE, Part, SplitPhaseOperation
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.languages.language import Language
from lapwing.overlap.languages.registry import language_of_procedure
from lapwing.overlap.transforms.context import Context, is_repeatable
from lapwing.overlap.transforms.split_phase.blocking_calls import (
    LABELLED,
    NOT_REPEATABLE,
    NOT_WRITTEN_OUT,
    is_contiguous,
    is_written_out,
)

TRANSFORMATION = "nonblocking"
KINDS = frozenset(
    f"MPI_{name}"
    for name in """Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Reduce Allreduce Reduce_scatter
    Reduce_scatter_block Scan Exscan Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall Neighbor_alltoallv""".split()
)


@dataclass
class Collectives:
    """Splits the collectives of a program. ``uniformity``: of the program as it was read."""

    context: Context
    uniformity: Uniformity
    _apart: dict[str, tuple[Site, ...]] = field(default_factory=dict)

    def split(self, call: Statement, procedure: Procedure) -> Sequence[Statement]:
        """Start and end in place of a collective that may be split; otherwise the statement."""
        return _InProcedure(self, procedure).change(call)

    def hindrance(self, call: Call, procedure: Procedure) -> tuple[Site, Divergence] | None:
        """A call that may match this one, or this one itself, that not all ranks execute uniformly; and why they do not."""
        message = message_of(call)
        assert message is not None
        if message.name not in self._apart:
            self._apart[message.name] = self.uniformity.divergent_sites(message.name)
        own = self.uniformity.site(call, procedure)
        if own is not None and own.divergence is not None:
            return own, own.divergence
        for other in self._apart[message.name]:
            if other.divergence is not None and (own is None or self.uniformity.may_match(own, other)):
                return other, other.divergence
        return None


@dataclass
class _InProcedure:
    """The same for one procedure."""

    whole: Collectives
    procedure: Procedure

    def change(self, statement: Statement) -> Sequence[Statement]:
        message = message_of(statement)
        if message is None or message.name not in KINDS or not isinstance(statement, Call):
            return (statement,)
        if not self.whole.context.allowed(TRANSFORMATION) or not self._may_be_split(statement):
            return (statement,)
        slot = self.whole.context.next_slot(self.procedure.source)
        return (
            SplitPhaseOperation(Part.START, statement, slot, span=NOWHERE),
            SplitPhaseOperation(Part.END, statement, slot, span=statement.span),
        )

    # ---- obligations --------------------------------------------------------------------------------------------------

    def _may_be_split(self, call: Call) -> bool:
        if call.keywords:
            self._refuse(call, "its arguments are in MPI's order", "keyword arguments", "write the arguments in order")
            return False
        if call.label is not None:
            self._refuse(call, *LABELLED)
            return False
        if not is_repeatable(call, self._language()):
            self._refuse(call, *NOT_REPEATABLE)
            return False
        if not is_written_out(call):
            self._refuse(call, *NOT_WRITTEN_OUT)
            return False
        if not all(self._is_memory(b) for b in _buffers_of(call)):
            self._refuse(
                call,
                "its buffer is contiguous memory",
                "an array section, an expression, or a type that cannot be declared elsewhere",
                "pass the first element of a contiguous array of a basic type",
            )
            return False
        return self._is_worth_it(call) and self._is_exact(call) and self._matches_itself(call)

    def _is_worth_it(self, call: Call) -> bool:
        count = argument_of(call, mpi.Role.COUNT)
        graph = self.whole.context.analysis.graph
        if not isinstance(count, Number) or count.value > _FEW or not graph.runs_once(call, self.procedure):
            return True
        self._refuse(
            call, "a transfer is worth it", f"{count.value} elements, once", "nothing: there is little to gain"
        )
        return False

    def _is_memory(self, buffer: Expression) -> bool:
        inner = without_casts(buffer)
        if isinstance(inner, Constant):
            return inner.name == "MPI_IN_PLACE"
        if isinstance(inner, Name) and inner.symbol.storage is Storage.CONSTANT:
            return False
        return is_contiguous(buffer, self._language())

    def _is_exact(self, call: Call) -> bool:
        """Whether the result does not depend on the order in which the ranks' contributions are combined."""
        operation = argument_of(call, mpi.Role.OP)
        if operation is None:
            return True
        operation = without_casts(operation)
        if not isinstance(operation, Constant) or operation.name not in {*_OF_NUMBERS, *_ORDERLESS}:
            self._refuse(
                call,
                "what the reduction does is known",
                "an operation of the program's own, or one that is not known",
                "use one of MPI's operations",
            )
            return False
        if operation.name in _ORDERLESS or self.whole.context.options.reassociate:
            return True
        kind = argument_of(call, mpi.Role.TYPE)
        types = None if kind is None else self.whole.context.basic_type(kind)
        if types is not None and types <= _WHOLE_NUMBERS:
            return True
        what = (
            "numbers whose type is not known"
            if types is None
            else f"floating-point numbers ({', '.join(sorted(types))})"
        )
        self._refuse(
            call,
            "the reduction's result does not depend on its order",
            f"{operation.name} of {what}: a nonblocking reduction may combine in another order, {_OF_NUMBERS[operation.name]}",
            "use --reassociate if that may change",
        )
        return False

    def _matches_itself(self, call: Call) -> bool:
        found = self.whole.hindrance(call, self.procedure)
        if found is None:
            return True
        site, divergence = found
        source = self.whole.context.analysis.program.sources[site.span.source]
        place = f"{source.path.name}:{source.line_of(site.span.start)}"
        name = call.name if site.span == call.span else f"{site.name or 'what may call it'} in {place}"
        self.whole.context.refuse(
            call.span,
            TRANSFORMATION,
            "every call that may match it changes, too",
            f"{name} is not executed uniformly by all ranks: {divergence.what}",
            "call it at one place that all ranks come to, under conditions that do not depend on the rank",
            divergence.where,
        )
        return False

    def _refuse(self, call: Call, obligation: str, found: str, advice: str) -> None:
        self.whole.context.refuse(call.span, TRANSFORMATION, obligation, found, advice)

    def _language(self) -> Language:
        return language_of_procedure(self.whole.context.analysis.program, self.procedure)


def _buffers_of(call: Call) -> list[Expression]:
    message = mpi.lookup(call.name or "")
    assert message is not None
    return [call.arguments[b.argument] for b in message.buffers if b.argument < len(call.arguments)]


_FEW = 8  # elements
_ORDERLESS = frozenset("MPI_LAND MPI_BAND MPI_LOR MPI_BOR MPI_LXOR MPI_BXOR".split())
_ROUNDED, _EQUAL = "and round differently", "and find the other one of +0.0 and -0.0"
# What the order changes for floating-point numbers.
_OF_NUMBERS = {"MPI_SUM": _ROUNDED, "MPI_PROD": _ROUNDED} | dict.fromkeys(
    ("MPI_MAX", "MPI_MIN", "MPI_MAXLOC", "MPI_MINLOC"), _EQUAL
)
_WHOLE_NUMBERS = frozenset(
    """MPI_BYTE MPI_CHAR MPI_SIGNED_CHAR MPI_UNSIGNED_CHAR MPI_SHORT MPI_UNSIGNED_SHORT MPI_INT MPI_UNSIGNED MPI_LONG
    MPI_UNSIGNED_LONG MPI_LONG_LONG MPI_LONG_LONG_INT MPI_UNSIGNED_LONG_LONG MPI_INT8_T MPI_INT16_T MPI_INT32_T MPI_INT64_T
    MPI_UINT8_T MPI_UINT16_T MPI_UINT32_T MPI_UINT64_T MPI_AINT MPI_OFFSET MPI_COUNT MPI_INTEGER MPI_INTEGER1 MPI_INTEGER2
    MPI_INTEGER4 MPI_INTEGER8 MPI_INTEGER16 MPI_2INT MPI_SHORT_INT MPI_LONG_INT MPI_2INTEGER""".split()
)
