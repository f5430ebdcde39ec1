"""Where a program communicates: every MPI call that does, with the procedure and the statement it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lapwing.overlap import mpi
from lapwing.overlap.dataflow.call_graph import CallGraph, Target
from lapwing.overlap.ir.expressions import Constant, Expression, Invocation
from lapwing.overlap.ir.program import Procedure, Program
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.source.spans import Span

COMMUNICATING = frozenset(
    {
        mpi.Kind.SEND,
        mpi.Kind.RECV,
        mpi.Kind.SENDRECV,
        mpi.Kind.COLLECTIVE,
        mpi.Kind.BARRIER,
        mpi.Kind.COMPLETION,
        mpi.Kind.PROBE,
        mpi.Kind.PERSISTENT,
        mpi.Kind.ONE_SIDED,
    }
)


@dataclass(frozen=True, eq=False)
class Site:
    """One MPI call. ``call`` is ``statement`` itself, or an expression in it."""

    procedure: Procedure
    statement: Statement
    call: Call | Invocation
    message: mpi.MpiCall

    @property
    def span(self) -> Span:
        return self.call.span or self.statement.span

    def argument(self, *roles: mpi.Role) -> Expression | None:
        """The argument that plays the first of these roles the call has."""
        for role in roles:
            place = mpi.index_of(self.message, role)
            if place is not None and place < len(self.call.arguments):
                return self.call.arguments[place]
        return None

    def buffers(self) -> tuple[mpi.Buffer, ...]:
        """The call's buffers, MPI_IN_PLACE understood."""
        buffers = self.message.buffers
        for buffer in buffers:
            if buffer.argument < len(self.call.arguments):
                argument = self.call.arguments[buffer.argument]
                if isinstance(argument, Constant) and argument.name == "MPI_IN_PLACE":
                    return mpi.buffers_in_place(self.message, buffer.argument)
        return buffers


def sites_of(program: Program, graph: CallGraph) -> Iterator[Site]:
    """Every communicating call that could be read, procedure by procedure, in the order of the source."""
    for key, calls in graph.sites.items():
        for site in calls:
            message = mpi.lookup(site.name) if site.target is Target.MPI and site.name is not None else None
            if message is not None and message.kind in COMMUNICATING:
                yield Site(program.procedures[key], site.statement, site.call, message)
