"""Descriptions of MPI's calls, for C and Fortran at once (MPI: A Message-Passing Interface Standard, 3.1).

The calls are a table in `calls`, which `table` parses into the classes of `model`; other names are in `names`. C and Fortran
share names and order of parameters; Fortran adds IERROR at the end (`fortran_parameters`).
"""

from __future__ import annotations

from dataclasses import replace

from lapwing.overlap.mpi.model import Buffer, Kind, MpiCall, Parameter, Role
from lapwing.overlap.mpi.names import CONSTANTS, NULLS, TYPE_SIZES, WILDCARDS
from lapwing.overlap.mpi.table import calls

__all__ = [
    "CONSTANTS",
    "NULLS",
    "TYPE_SIZES",
    "WILDCARDS",
    "Buffer",
    "Kind",
    "MpiCall",
    "Parameter",
    "Role",
    "buffers_in_place",
    "fortran_parameters",
    "index_of",
    "is_mpi_name",
    "lookup",
]


def is_mpi_name(name: str) -> bool:
    """Return whether a name is reserved for MPI, in either language.

    Programs break this rule, in Fortran above all: look for a procedure of the program's own first.
    """
    return name.upper().startswith(("MPI_", "PMPI_", "MPIX_", "PMPIX_"))


def lookup(name: str) -> MpiCall | None:
    """Return the description of a procedure by its name in any case, or None: it may do anything that MPI can do.

    MPI_X and PMPI_X are the same call, with MPI_X for its name. Calls with large counts (MPI_Send_c, MPI 4) are known
    where they differ from the others by the types of their parameters alone. Not known are MPI's tool interface
    (MPI_T_) and MPI 4's sessions and partitioned communication.
    """
    upper = name.upper()
    if upper.startswith("PMPI_"):
        upper = upper[1:]
    call = calls().get(upper)
    if call is None and upper.endswith("_C"):
        return _large_count(upper.removesuffix("_C"))
    return call


def index_of(call: MpiCall, role: Role) -> int | None:
    """Return the place of the first parameter with this role."""
    return next((place for place, parameter in enumerate(call.parameters) if parameter.role is role), None)


def fortran_parameters(call: MpiCall) -> tuple[Parameter, ...]:
    """Return the parameters of the Fortran form, IERROR (which `use mpi_f08` makes optional) included."""
    shared = tuple(parameter for parameter in call.parameters if not parameter.c_only)
    return (*shared, Parameter("ierror", Role.IERROR, reads=False, writes=True)) if call.ierror else shared


def buffers_in_place(call: MpiCall, argument: int) -> tuple[Buffer, ...]:
    """Return the buffers of a collective call whose argument at this place is MPI_IN_PLACE.

    The named buffer is dropped. If it was the send buffer, this rank's contribution comes from the receive buffer; if it was
    the receive buffer (MPI_Scatter's at the root), nothing else changes.
    """
    sends = any(buffer.argument == argument and buffer.reads for buffer in call.buffers)
    return tuple(replace(buffer, reads=buffer.reads or sends) for buffer in call.buffers if buffer.argument != argument)


# Their large-count forms have more parameters.
_OTHER_LARGE_COUNTS = frozenset({"MPI_TYPE_GET_ENVELOPE", "MPI_TYPE_GET_CONTENTS"})


def _large_count(upper: str) -> MpiCall | None:
    call = calls().get(upper)
    if call is None or upper in _OTHER_LARGE_COUNTS:
        return None
    return replace(call, name=f"{call.name}_c", nonblocking=f"{call.nonblocking}_c" if call.nonblocking else None)
