"""Parses the table of MPI's calls (`calls`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from lapwing.overlap.mpi.calls import TABLE
from lapwing.overlap.mpi.model import Buffer, Kind, MpiCall, Parameter, Role

# What a parameter's name says of its role, where the call only reads it. `tag` depends on the kind of the call.
_ROLES = {
    name: role
    for role, names in {
        Role.COUNT: "count sendcount recvcount incount outcount origin_count result_count target_count",
        Role.COUNTS: "sendcounts recvcounts",
        Role.DISPLACEMENTS: "displs sdispls rdispls",
        Role.TYPE: "datatype sendtype recvtype origin_datatype result_datatype target_datatype oldtype etype filetype",
        Role.TYPES: "sendtypes recvtypes array_of_types",
        Role.DEST: "dest",
        Role.SOURCE: "source",
        Role.TARGET: "target_rank",
        Role.ROOT: "root",
        Role.SEND_TAG: "sendtag",
        Role.RECV_TAG: "recvtag",
        Role.OP: "op",
        Role.COMM: "comm comm_old intercomm local_comm peer_comm",
        Role.WINDOW: "win",
        Role.FILE: "fh file",
        Role.MESSAGE: "message",
        Role.INFO: "info",
        Role.REQUEST: "request",
        Role.REQUESTS: "array_of_requests",
        Role.STATUS: "status",
        Role.STATUSES: "array_of_statuses",
        Role.FLAG: "flag",
        Role.INDEX: "index",
        Role.INDICES: "array_of_indices",
    }.items()
    for name in names.split()
}
# What it says where the call only writes it.
_ROLES_WRITTEN = _ROLES | {
    name: role
    for role, names in {
        Role.NEW_TYPE: "newtype datatype etype filetype",
        Role.NEW_COMM: "newcomm comm_cart comm_graph comm_dist_graph intercomm newintercomm newintracomm",
        Role.VALUE_OUT: "count outcount",
    }.items()
    for name in names.split()
}
_BUFFERS = frozenset("buf buffer sendbuf recvbuf inbuf inoutbuf outbuf origin_addr compare_addr result_addr".split())
BUFFER_ROLES = frozenset({Role.SEND_BUFFER, Role.RECV_BUFFER, Role.BOTH_BUFFER})
_TAGS = {Kind.SEND: Role.SEND_TAG, Kind.RECV: Role.RECV_TAG, Kind.PROBE: Role.RECV_TAG}
_WAITING_KINDS = frozenset(
    {
        Kind.SEND,
        Kind.RECV,
        Kind.SENDRECV,
        Kind.COLLECTIVE,
        Kind.BARRIER,
        Kind.COMPLETION,
        Kind.PROBE,
        Kind.IO,
        Kind.ABORT,
    }
)
_REQUEST = Parameter("request", Role.REQUEST, reads=False, writes=True)
_INFO = Parameter("info", Role.INFO, reads=True, writes=False)
_WORDS = frozenset(
    "nonblocking nonblocking_4 persistent request immediate waits collective synchronises no_ierror".split()
)


@dataclass(frozen=True)
class _Marks:
    """The table's marks of a parameter."""

    parameter: Parameter
    per_rank: bool
    root_only: bool


@cache
def calls() -> dict[str, MpiCall]:
    """Return all calls by their names in capitals."""
    return {call.name.upper(): call for kind, row in table_rows() for call in calls_of_row(kind, row)}


def table_rows() -> Iterator[tuple[Kind, str]]:
    """Yield the table's rows, continuation lines joined, each with the kind its section says."""
    kind = Kind.OTHER
    for row in TABLE.replace("\n ", " ").splitlines():
        if row.startswith("["):
            kind = Kind[row.strip("[]")]
        elif row:
            yield kind, row


def calls_of_row(kind: Kind, row: str) -> Iterator[MpiCall]:
    """Yield the call of a row and its other forms, as marked in the row."""
    left, _, right = row.partition("|")
    stem, *tokens = left.split()
    flags = frozenset(right.split())
    if not flags <= _WORDS:
        raise ValueError(f"mpi.calls: {stem}: unknown words after the bar: {sorted(flags - _WORDS)}")
    marks = [_read_token(kind, token) for token in tokens]
    parameters = tuple(mark.parameter for mark in marks)
    call = MpiCall(
        name=f"MPI_{stem}",
        kind=kind,
        blocking="immediate" not in flags and (kind in _WAITING_KINDS or bool(flags & {"waits", "collective"})),
        parameters=parameters,
        buffers=tuple(_find_buffers(marks, per_neighbour=stem.startswith("Neighbor_"))),
        nonblocking=_nonblocking_name(stem) if "nonblocking" in flags else None,
        synchronises="synchronises" in flags,
        collective="collective" in flags,
        ierror="no_ierror" not in flags,
    )
    yield call
    started = replace(call, blocking=False, nonblocking=None)
    lasting = tuple(parameter for parameter in parameters if parameter.role is not Role.STATUS)
    if flags & {"nonblocking", "nonblocking_4"}:
        yield replace(started, name=_nonblocking_name(stem), parameters=(*lasting, _REQUEST))
    if "request" in flags:
        yield replace(started, name=f"MPI_R{stem[0].lower()}{stem[1:]}", parameters=(*lasting, _REQUEST))
    if "persistent" in flags:
        ending = (_INFO, _REQUEST) if call.collective else (_REQUEST,)
        yield replace(started, name=f"MPI_{stem}_init", kind=Kind.PERSISTENT, parameters=(*lasting, *ending))


def _nonblocking_name(stem: str) -> str:
    """Send → MPI_Isend, Comm_dup → MPI_Comm_idup, File_read_at → MPI_File_iread_at."""
    for prefix in ("Comm_", "File_"):
        if stem.startswith(prefix):
            return f"MPI_{prefix}i{stem.removeprefix(prefix)}"
    return f"MPI_I{stem[0].lower()}{stem[1:]}"


def _read_token(kind: Kind, token: str) -> _Marks:
    """Read one parameter of a row; `calls` explains the marks."""
    c_only, token = token.startswith("C."), token.removeprefix("C.")
    name, _, given_role = token.lstrip("<>&").partition(":")
    effect = token[: token.index(name)]
    reads, writes = {"": (True, False), ">": (False, True), "<>": (True, True), "&": (False, False)}[effect]
    plain = name.rstrip("*@")
    role = Role[given_role] if given_role else _role_of(kind, plain, reads, writes)
    return _Marks(Parameter(plain, role, reads, writes, c_only), per_rank="*" in name, root_only="@" in name)


def _role_of(kind: Kind, name: str, reads: bool, writes: bool) -> Role:
    if name in _BUFFERS:
        return Role.BOTH_BUFFER if reads and writes else Role.RECV_BUFFER if writes else Role.SEND_BUFFER
    if name == "tag" and kind in _TAGS:
        return _TAGS[kind]
    roles = _ROLES_WRITTEN if writes and not reads else _ROLES
    return roles.get(name, Role.VALUE_OUT if writes else Role.VALUE_IN)


def _find_buffers(marks: list[_Marks], per_neighbour: bool) -> Iterator[Buffer]:
    """Yield a buffer for each parameter that is one and has a type.

    Its counts, displacements and type are the next in the list; two buffers in a row share theirs.
    """
    for argument, mark in enumerate(marks):
        parameter = mark.parameter
        if parameter.role not in BUFFER_ROLES:
            continue
        places = _description_after(marks, argument)
        place = places.get(Role.TYPE, places.get(Role.TYPES))
        if place is None:
            continue
        yield Buffer(
            argument=argument,
            count=places.get(Role.COUNT),
            counts=places.get(Role.COUNTS),
            displacements=places.get(Role.DISPLACEMENTS),
            type=place,
            reads=parameter.reads,
            writes=parameter.writes,
            per_rank=mark.per_rank,
            root_only=mark.root_only,
            per_neighbour=per_neighbour and mark.per_rank,
        )


def _description_after(marks: list[_Marks], argument: int) -> dict[Role, int]:
    """Return where the counts, displacements and type that describe this buffer stand."""
    places: dict[Role, int] = {}
    for place in range(argument + 1, len(marks)):
        role = marks[place].parameter.role
        if role in (Role.COUNT, Role.COUNTS, Role.DISPLACEMENTS, Role.TYPE, Role.TYPES):
            places[role] = place
        if role not in (*BUFFER_ROLES, Role.COUNT, Role.COUNTS, Role.DISPLACEMENTS):
            break
    return places
