"""The description of an MPI call: its kind, its parameters and their roles, its buffers."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What a call is for. LOCAL calls communicate with no other rank; OTHER is for calls that no other kind covers."""

    SEND = enum.auto()
    RECV = enum.auto()
    SENDRECV = enum.auto()
    COLLECTIVE = enum.auto()
    BARRIER = enum.auto()
    COMPLETION = enum.auto()
    PROBE = enum.auto()
    SETUP = enum.auto()
    LOCAL = enum.auto()
    ONE_SIDED = enum.auto()
    IO = enum.auto()
    PERSISTENT = enum.auto()
    ABORT = enum.auto()
    OTHER = enum.auto()


class Role(enum.Enum):
    """What a parameter is to its call.

    MEMORY is memory whose address MPI keeps or returns: it may be accessed after the call, by calls that do not name it.
    PROCEDURE is one of the program's own procedures, which MPI calls later. VALUE_IN and VALUE_OUT are all the rest.
    """

    SEND_BUFFER = enum.auto()
    RECV_BUFFER = enum.auto()
    BOTH_BUFFER = enum.auto()
    COUNT = enum.auto()
    COUNTS = enum.auto()
    DISPLACEMENTS = enum.auto()
    TYPE = enum.auto()
    TYPES = enum.auto()
    NEW_TYPE = enum.auto()
    DEST = enum.auto()
    SOURCE = enum.auto()
    TARGET = enum.auto()
    ROOT = enum.auto()
    SEND_TAG = enum.auto()
    RECV_TAG = enum.auto()
    OP = enum.auto()
    COMM = enum.auto()
    NEW_COMM = enum.auto()
    WINDOW = enum.auto()
    FILE = enum.auto()
    MESSAGE = enum.auto()
    INFO = enum.auto()
    REQUEST = enum.auto()
    REQUESTS = enum.auto()
    STATUS = enum.auto()
    STATUSES = enum.auto()
    FLAG = enum.auto()
    INDEX = enum.auto()
    INDICES = enum.auto()
    IERROR = enum.auto()
    MEMORY = enum.auto()
    PROCEDURE = enum.auto()
    VALUE_IN = enum.auto()
    VALUE_OUT = enum.auto()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a call.

    `reads` and `writes` are the call's effect on the actual argument, in C on what a pointer argument points to. A write may be
    partial, or (for a flag that is false) not happen.
    """

    name: str
    role: Role
    reads: bool
    writes: bool
    c_only: bool = False


@dataclass(frozen=True)
class Buffer:
    """Data that a call sends or receives, as places in the parameter list.

    The buffer holds `count` elements of `type`; a single one if neither `count` nor `counts` is given
    (MPI_Fetch_and_op). Not all of them need be written: a message may be shorter, or come from MPI_PROC_NULL.
    Collectives write all, but for MPI_Exscan (nothing on the first rank), MPI_Bcast (nothing at the root) and those of
    neighbours (nothing from MPI_PROC_NULL). Gaps of derived types are not accessed.

    `per_rank`: as many elements for every rank of the communicator (between communicators: of the other group), with
    `counts` and `displacements` an entry each; without `displacements` one rank's elements follow another's. Where
    `counts` is given and `per_rank` is not, the buffer holds this rank's entry alone (MPI_Reduce_scatter).
    `per_neighbour` (then `per_rank`, too): for every neighbour instead, which may be more than there are ranks.
    `root_only`: other ranks pass anything; there the buffer is not accessed, nor its counts and types.
    `type` is the place of an array of types, an entry for each rank, in the calls that end with w.
    """

    argument: int
    count: int | None
    counts: int | None
    displacements: int | None
    type: int
    reads: bool
    writes: bool
    per_rank: bool
    root_only: bool
    per_neighbour: bool = False


@dataclass(frozen=True)
class MpiCall:
    """One of MPI's procedures.

    `blocking`: may wait for other ranks (or for a disk) before it returns. Buffers of a call of another kind than LOCAL that is
    not blocking are in use until something completes it. `parameters`: in C's order, without IERROR. Buffers that have no type
    of their own (MPI_Unpack's input, MPI_File_read_all_end's) are among the parameters, but not in `buffers`. `nonblocking`:
    the call with the same parameters without a status and with a request last, if MPI 3.1 has it (later ones, such as
    MPI_Isendrecv, are missing from many libraries). `synchronises`: MPI promises an order between ranks beyond that of the data
    the call delivers, or the call starts or ends MPI: communication may not be moved across it. Collectives but the barrier are
    not among these: a program that relies on their order is erroneous (MPI 3.1, section 5.1). `collective`: every rank of the
    communicator, window or file must call it, in the same order as its other collective calls there, nonblocking ones included.
    `ierror`: Fortran's form ends with IERROR; it is absent from functions.
    """

    name: str
    kind: Kind
    blocking: bool
    parameters: tuple[Parameter, ...]
    buffers: tuple[Buffer, ...]
    nonblocking: str | None
    synchronises: bool
    collective: bool = False
    ierror: bool = True
