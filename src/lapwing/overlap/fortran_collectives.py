"""Fortran: what a changed file needs to start and end its collectives.

Each start and end is a call of an external procedure that is given the buffers, so that the compiler must assume they are
read and written there, whatever it makes of the code in between (MPI 3.1, 17.1.17). There is one procedure for each collective
and kinds of buffers: Fortran wants all calls of a procedure without interface to pass the same kinds of arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lapwing.overlap import mpi
from lapwing.overlap.phases import Part, Phase
from lapwing.overlap.program import Cast, Constant, Element, Expression, Name, Type

_BUFFERS = frozenset({mpi.Role.SEND_BUFFER, mpi.Role.RECV_BUFFER, mpi.Role.BOTH_BUFFER})
_IN_PLACE = "MPI_IN_PLACE"
_HANDLES = {mpi.Role.TYPE: "$kind", mpi.Role.OP: "$op", mpi.Role.COMM: "$comm"}


def declared_type(buffer: Expression) -> str | None:
    """How a procedure of another scope declares what this buffer's elements are; None if it cannot."""
    symbol = _symbol(buffer)
    return None if symbol is None else _spelled(symbol.type)


def _symbol(buffer: Expression):  # noqa: ANN202
    while isinstance(buffer, Cast):
        buffer = buffer.value
    base = buffer.base if isinstance(buffer, Element) else buffer
    return base.symbol if isinstance(base, Name) else None
