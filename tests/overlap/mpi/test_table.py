"""What Lapwing knows of MPI's calls: compared with an mpi.h, and where that says nothing, with the standard."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from lapwing.overlap import mpi
from lapwing.overlap.mpi import Kind, Role, table
from lapwing.overlap.mpi.calls import TABLE

# What mpi.h declares and the table leaves out on purpose; lookup says None, and callers expect the worst.
LEFT_OUT = re.compile(
    "MPI_T_.*|MPI_Session_.*|MPI_P(send|recv)_init|MPI_P(ready|arrived).*|MPI_DUP_FN"
    "|MPI_Abi_.*|MPI_.*_(toint|fromint)|MPI_(Comm|Buffer)_(attach_buffer|detach_buffer|i?flush_buffer|i?flush)(_c)?"
    "|MPI_(Comm_create|Group)_from_.*|MPI_Intercomm_create_from_groups|MPI_Comm_idup_with_info"
    "|MPI_Info_(create_env|get_string)|MPI_Get_hw_resource_info|MPI_Remove_error_.*|MPI_Request_get_status_.*"
    "|MPI_Status_[gs]et_(error|source|tag)|MPI_Type_get_value_index"
)
FORTRAN_ONLY = {"MPI_Sizeof", "MPI_F_sync_reg"}
OF_MPI_4 = {"MPI_Isendrecv", "MPI_Isendrecv_replace", "MPI_Comm_idup_with_info"}
REMOVED_IN_MPI_3 = set(
    """
    MPI_Address MPI_Errhandler_create MPI_Errhandler_get MPI_Errhandler_set MPI_Type_extent MPI_Type_hindexed
    MPI_Type_hvector MPI_Type_lb MPI_Type_struct MPI_Type_ub
    """.split()
)
# Their pointers are no buffers of the call's own, or mpi.h says less than the standard does ("IN ranges").
CONSTNESS_SAYS_NOTHING = {
    ("MPI_Get_address", "location"),
    ("MPI_Address", "location"),
    ("MPI_Win_detach", "base"),
    ("MPI_Group_range_incl", "ranges"),
    ("MPI_Group_range_excl", "ranges"),
    ("MPI_Comm_spawn", "argv"),
    ("MPI_Comm_spawn_multiple", "array_of_commands"),
    ("MPI_Comm_spawn_multiple", "array_of_argv"),
    ("MPI_Type_hindexed", "array_of_blocklengths"),
    ("MPI_Type_hindexed", "array_of_displacements"),
    ("MPI_Type_struct", "array_of_blocklengths"),
    ("MPI_Type_struct", "array_of_displacements"),
    ("MPI_Type_struct", "array_of_types"),
}
PLAIN_NAMES = {"indx": "index"}


@dataclass(frozen=True)
class Declared:
    """A parameter as mpi.h has it."""

    name: str
    pointer: bool
    constant: bool
    procedure: bool
    untyped: bool


@functools.cache
def header() -> str:
    """Return the text of mpi.h and of what it includes, without comments, or skip."""
    compiler = shutil.which("mpicc")
    if compiler is None:
        pytest.skip("no mpicc on PATH: no mpi.h to compare with")
    for option in ("-show", "--showme:compile"):
        shown = subprocess.run([compiler, option], capture_output=True, text=True)
        for folder in re.findall(r"-I\s*(\S+)", shown.stdout):
            if (Path(folder) / "mpi.h").is_file():
                files = [Path(folder) / name for name in ("mpi.h", "mpi_proto.h", "mpio.h")]
                text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
                return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    pytest.skip("mpicc names no folder with an mpi.h")


@functools.cache
def prototypes() -> dict[str, tuple[Declared, ...]]:
    """Return the parameters of every MPI function that mpi.h declares; macros stand for none."""
    text = "\n".join(line for line in header().splitlines() if not line.startswith("#"))
    text = re.sub(r"\b\w*(?:ATTR|ATTRIBUTE|DEPRECATED|REMOVED)\w*\s*\((?:[^()]|\([^()]*\))*\)", "", text)
    functions = re.findall(r"\b(?:int|double|MPI_\w+)\s+(MPI_\w+)\s*\(([^;{}]*?)\)[^;(){}]*;", text)
    # Open MPI declares what MPI 3.0 removed inside a macro that repeats the name.
    plain = [(name, inside) for name, inside in functions if name not in inside]
    found = {name: tuple(map(declared, filter(None, split(inside)))) for name, inside in plain}
    if len(found) < 300:
        pytest.skip("this mpi.h is not written as plain prototypes")
    return found


def split(parameters: str) -> list[str]:
    texts = [" ".join(text.split()) for text in parameters.split(",")]
    return [] if texts == ["void"] else texts


def declared(text: str) -> Declared:
    words = re.findall(r"\w+", text.split("[")[0])
    procedure = "function" in text
    return Declared(
        PLAIN_NAMES.get(words[-1], words[-1]) if words else text,
        pointer=("*" in text or "[" in text) and not procedure,
        constant="const" in words,
        procedure=procedure,
        untyped="void" in words,
    )


def is_mpich() -> bool:
    """MPICH generates its mpi.h from the standard; others rename parameters and iteration functions into macros."""
    return "MPICH_VERSION" in header()


def known() -> dict[str, mpi.MpiCall]:
    return {call.name: call for call in table.calls().values()}


def test_every_function_of_mpi_h_is_known_or_left_out_on_purpose() -> None:
    unknown = {name for name in prototypes() if mpi.lookup(name) is None and not LEFT_OUT.fullmatch(name)}
    assert unknown - {"MPI_Type_get_envelope_c", "MPI_Type_get_contents_c"} == set()


def test_every_known_call_is_in_mpi_h() -> None:
    if not is_mpich():
        pytest.skip("only MPICH's mpi.h declares all that is old")
    names = prototypes().keys() | set(re.findall(r"#\s*define\s+(MPI_\w+)\(", header()))
    new = {name for name, call in known().items() if call.kind is Kind.PERSISTENT} | OF_MPI_4
    assert known().keys() - names - FORTRAN_ONLY - REMOVED_IN_MPI_3 - new - {"MPI_Keyval_create"} == set()


def test_parameters_are_those_of_mpi_h_under_the_standards_names() -> None:
    different = {}
    for name, there in prototypes().items():
        call = mpi.lookup(name)
        expected = [parameter.name for parameter in there if parameter.name != "..."]
        found = [parameter.name for parameter in call.parameters] if call else expected
        if len(found) != len(expected) or (is_mpich() and found != expected):
            different[name] = (expected, found)
    assert different == {}


def test_pointers_to_const_are_not_written_and_others_are() -> None:
    wrong = []
    for name, there in prototypes().items():
        call = mpi.lookup(name)
        for parameter, prototype in zip(call.parameters if call else (), there, strict=False):
            writes = prototype.pointer and not prototype.constant
            if parameter.writes != writes and (name, parameter.name) not in CONSTNESS_SAYS_NOTHING:
                wrong.append((name, parameter.name))
    assert wrong == []


def test_the_exceptions_to_constness_are_still_needed() -> None:
    names = {(call.name, parameter.name) for call in known().values() for parameter in call.parameters}
    assert names >= CONSTNESS_SAYS_NOTHING


def test_the_programs_own_procedures_are_those_of_mpi_h() -> None:
    for name, there in prototypes().items():
        call = mpi.lookup(name)
        for parameter, prototype in zip(call.parameters if call else (), there, strict=False):
            assert (parameter.role is Role.PROCEDURE) == prototype.procedure, (name, parameter.name)


def test_memory_without_a_type_is_a_buffer_or_outlives_the_call_or_is_a_result() -> None:
    memory_or_buffer = table.BUFFER_ROLES | {Role.MEMORY}
    others = set()
    for name, there in prototypes().items():
        call = mpi.lookup(name)
        for parameter, prototype in zip(call.parameters if call else (), there, strict=False):
            if prototype.untyped and parameter.role not in memory_or_buffer:
                assert parameter.writes
                others.add(parameter.name)
    assert others == {"attribute_val", "baseptr", "buffer_addr"}


def test_memory_that_outlives_the_call() -> None:
    found: dict[str, set[str]] = {}
    for call in known().values():
        for parameter in call.parameters:
            if parameter.role is Role.MEMORY:
                effect = ("reads " if parameter.reads else "") + ("writes" if parameter.writes else "")
                found.setdefault(effect, set()).add(f"{call.name.removeprefix('MPI_')} {parameter.name}")
    assert found.keys() == {"", "reads writes"}
    assert found[""] == {"Address location", "Get_address location", "Win_detach base"}
    kept = {name for name in found["reads writes"] if not name.endswith(("extra_state", "attribute_val"))}
    assert kept == {"Win_create base", "Win_attach base", "Free_mem base", "F_sync_reg buf", "Buffer_attach buffer"}


def test_what_is_freed_is_read_and_overwritten() -> None:
    freeing = {name: call for name, call in known().items() if re.search(r"_free(_keyval)?$|_close$|_commit$", name)}
    assert len(freeing) > 12
    for name, call in freeing.items():
        if name != "MPI_Close_port":
            assert [(parameter.reads, parameter.writes) for parameter in call.parameters] == [(True, True)], name


def test_what_is_read_and_written() -> None:
    """To mpi.h these are pointers like those to results."""
    changed = set()
    for name, call in known().items():
        for parameter in call.parameters:
            if parameter.reads and parameter.writes and parameter.role is not Role.MEMORY and "_free" not in name:
                changed.add(f"{name.removeprefix('MPI_')} {parameter.name}")
    several = "Waitall Waitany Waitsome Testall Testany Testsome Startall"
    one = """
        Wait request, Test request, Start request, Cancel request, Mrecv message, Imrecv message,
        Bcast buffer, Ibcast buffer, Bcast_init buffer, Sendrecv_replace buf, Isendrecv_replace buf,
        Pack outbuf, Pack position, Pack_external outbuf, Pack_external position, Unpack position,
        Unpack_external position, Reduce_local inoutbuf, Dims_create dims, Type_commit datatype,
        Comm_disconnect comm, File_close fh, Init argc, Init argv, Init_thread argc, Init_thread argv,
        Status_set_cancelled status, Status_set_elements status, Status_set_elements_x status
    """
    assert changed == {f"{name} array_of_requests" for name in several.split()} | set(" ".join(one.split()).split(", "))


def test_functions_have_no_ierror() -> None:
    text = " ".join(line for line in header().splitlines() if not line.startswith("#"))
    results = {name: kind for kind, name in re.findall(r"\b(int|double|MPI_\w+)\s+(MPI_\w+)\s*\(", text)}
    for name, kind in results.items():
        call = mpi.lookup(name)
        if call is not None and name != "MPI_Pcontrol":
            assert call.ierror == (kind == "int"), name
    for name in set(re.findall(r"#\s*define\s+(MPI_\w+(?:c2f|f2c))\(", header())):
        call = mpi.lookup(name)
        assert call is None or not call.ierror, name
    for name in ("MPI_Pcontrol", "MPI_F_sync_reg"):
        call = mpi.lookup(name)
        assert call is not None
        assert not call.ierror


@pytest.mark.parametrize("call", [call for call in known().values() if call.nonblocking], ids=lambda call: call.name)
def test_nonblocking_counterparts(call: mpi.MpiCall) -> None:
    assert call.blocking
    assert call.nonblocking is not None
    counterpart = mpi.lookup(call.nonblocking)
    assert counterpart is not None
    assert (counterpart.name, counterpart.kind, counterpart.blocking) == (call.nonblocking, call.kind, False)
    kept = [parameter for parameter in call.parameters if parameter.role is not Role.STATUS]
    assert list(counterpart.parameters[:-1]) == kept
    assert counterpart.parameters[-1] == mpi.Parameter("request", Role.REQUEST, reads=False, writes=True)
    assert counterpart.buffers == call.buffers
    if call.nonblocking not in OF_MPI_4:
        assert len(prototypes()[call.nonblocking]) == len(kept) + 1


def test_calls_that_wait_for_no_one_have_no_nonblocking_counterpart() -> None:
    named = {call.nonblocking for call in known().values() if call.nonblocking}
    derived = {name for name in prototypes() if re.fullmatch(r"MPI_(I(?!n[fit]|s_)|Comm_i|File_i)[a-z_]+", name)}
    assert {name for name in derived if name in known()} - named - OF_MPI_4 == {"MPI_Iprobe", "MPI_Improbe"}


def test_large_counts_are_known_by_their_plain_form() -> None:
    call = mpi.lookup("PMPI_Alltoallv_c")
    plain = mpi.lookup("MPI_Alltoallv")
    assert call is not None
    assert plain is not None
    assert (call.name, call.nonblocking) == ("MPI_Alltoallv_c", "MPI_Ialltoallv_c")
    assert (call.parameters, call.buffers) == (plain.parameters, plain.buffers)
    assert mpi.lookup("MPI_Type_get_contents_c") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MPI_Send", "MPI_Send"),
        ("mpi_send", "MPI_Send"),
        ("PMPI_SEND", "MPI_Send"),
        ("Mpi_File_Iread_At_All", "MPI_File_iread_at_all"),
        ("mpi_ineighbor_alltoallw", "MPI_Ineighbor_alltoallw"),
        ("MPI_Rget_accumulate", "MPI_Rget_accumulate"),
        ("MPI_Reduce_scatter_block_init", "MPI_Reduce_scatter_block_init"),
    ],
)
def test_lookup_takes_any_case_and_the_profiling_names(name: str, expected: str) -> None:
    call = mpi.lookup(name)
    assert call is not None
    assert call.name == expected


@pytest.mark.parametrize(
    "name", ["MPI_Sendd", "send", "", "MPI_", "MPI_COMM_WORLD", "MPI_T_init_thread", "_c", "MPI__c"]
)
def test_unknown_names(name: str) -> None:
    assert mpi.lookup(name) is None


def test_mpi_names() -> None:
    assert all(map(mpi.is_mpi_name, ["MPI_Send", "mpi_send", "PMPI_Send", "MPI_Nonsense", "MPIX_Comm_shrink"]))
    assert not any(map(mpi.is_mpi_name, ["send", "mpi", "mympi_send", "", "MPISend"]))


def buffers(name: str) -> list[str]:
    """Return a call's buffers as text, with names for places: "buffer count/counts displacements type"."""
    call = mpi.lookup(name)
    assert call is not None
    return [
        " ".join(
            call.parameters[place].name
            for place in (buffer.argument, buffer.count, buffer.counts, buffer.displacements, buffer.type)
            if place is not None
        )
        for buffer in call.buffers
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MPI_Recv", ["buf count datatype"]),
        ("MPI_Allreduce", ["sendbuf count datatype", "recvbuf count datatype"]),
        ("MPI_Sendrecv", ["sendbuf sendcount sendtype", "recvbuf recvcount recvtype"]),
        ("MPI_Gatherv", ["sendbuf sendcount sendtype", "recvbuf recvcounts displs recvtype"]),
        ("MPI_Iscatterv", ["sendbuf sendcounts displs sendtype", "recvbuf recvcount recvtype"]),
        ("MPI_Alltoallw", ["sendbuf sendcounts sdispls sendtypes", "recvbuf recvcounts rdispls recvtypes"]),
        ("MPI_Reduce_scatter", ["sendbuf recvcounts datatype", "recvbuf recvcounts datatype"]),
        ("MPI_Unpack", ["outbuf outcount datatype"]),
        ("MPI_Fetch_and_op", ["origin_addr datatype", "result_addr datatype"]),
        ("MPI_File_write_at", ["buf count datatype"]),
        ("MPI_File_read_all_end", []),
        ("MPI_Barrier", []),
    ],
)
def test_buffers_find_what_describes_them(name: str, expected: list[str]) -> None:
    assert buffers(name) == expected


def test_every_collective_buffer_is_described() -> None:
    communicating = {Kind.SEND, Kind.RECV, Kind.SENDRECV, Kind.COLLECTIVE}
    for call in known().values():
        if call.kind in communicating:
            roles = [parameter.role for parameter in call.parameters]
            assert len(call.buffers) == sum(roles.count(role) for role in table.BUFFER_ROLES)
            for buffer in call.buffers:
                assert (buffer.count is None) != (buffer.counts is None)
                assert buffer.reads or buffer.writes


PER_RANK = {  # (send, receive): the standard's chapter 5, "sent to each process", "received from any process"
    "MPI_Bcast": (False,),
    "MPI_Gather": (False, True),
    "MPI_Gatherv": (False, True),
    "MPI_Scatter": (True, False),
    "MPI_Scatterv": (True, False),
    "MPI_Allgather": (False, True),
    "MPI_Allgatherv": (False, True),
    "MPI_Alltoall": (True, True),
    "MPI_Alltoallv": (True, True),
    "MPI_Alltoallw": (True, True),
    "MPI_Reduce": (False, False),
    "MPI_Allreduce": (False, False),
    "MPI_Reduce_scatter": (True, False),
    "MPI_Reduce_scatter_block": (True, False),
    "MPI_Scan": (False, False),
    "MPI_Exscan": (False, False),
    "MPI_Neighbor_allgather": (False, True),
    "MPI_Neighbor_allgatherv": (False, True),
    "MPI_Neighbor_alltoall": (True, True),
    "MPI_Neighbor_alltoallv": (True, True),
    "MPI_Neighbor_alltoallw": (True, True),
}
ROOT_ONLY = {
    "MPI_Gather": (False, True),
    "MPI_Gatherv": (False, True),
    "MPI_Scatter": (True, False),
    "MPI_Scatterv": (True, False),
    "MPI_Reduce": (False, True),
}


def test_what_a_buffer_holds_for_each_rank_and_only_at_the_root() -> None:
    blocking = {name: call for name, call in known().items() if call.kind is Kind.COLLECTIVE and call.blocking}
    assert {name: tuple(b.per_rank for b in call.buffers) for name, call in blocking.items()} == PER_RANK
    found = {name: tuple(b.root_only for b in call.buffers) for name, call in blocking.items()}
    assert {name: marks for name, marks in found.items() if any(marks)} == ROOT_ONLY
    for name, call in blocking.items():
        for buffer in call.buffers:
            assert buffer.per_neighbour == (name.startswith("MPI_Neighbor_") and buffer.per_rank)


def test_in_place() -> None:
    allreduce, scatter = mpi.lookup("MPI_Allreduce"), mpi.lookup("MPI_Scatter")
    assert allreduce is not None
    assert scatter is not None
    (kept,) = mpi.buffers_in_place(allreduce, 0)
    assert (kept.argument, kept.reads, kept.writes) == (1, True, True)
    (kept,) = mpi.buffers_in_place(scatter, 3)
    assert (kept.argument, kept.reads, kept.writes) == (0, True, False)


@pytest.mark.parametrize(
    ("name", "role", "place"),
    [
        ("MPI_Send", Role.SEND_TAG, 4),
        ("MPI_Irecv", Role.RECV_TAG, 4),
        ("MPI_Irecv", Role.REQUEST, 6),
        ("MPI_Irecv", Role.STATUS, None),
        ("MPI_Iprobe", Role.RECV_TAG, 1),
        ("MPI_Sendrecv", Role.RECV_TAG, 9),
        ("MPI_Bcast", Role.BOTH_BUFFER, 0),
        ("MPI_Reduce", Role.OP, 4),
        ("MPI_Comm_split", Role.COMM, 0),
        ("MPI_Comm_split", Role.NEW_COMM, 3),
        ("MPI_Type_vector", Role.NEW_TYPE, 4),
        ("MPI_Get_count", Role.COUNT, None),
        ("MPI_Waitany", Role.INDEX, 2),
        ("MPI_Graph_create", Role.INDEX, None),
        ("MPI_Graph_get", Role.INDEX, None),
        ("MPI_Graph_map", Role.INDEX, None),
        ("MPI_File_set_atomicity", Role.FLAG, None),
        ("MPI_Status_set_cancelled", Role.FLAG, None),
        ("MPI_Comm_compare", Role.COMM, 0),
        ("MPI_Comm_get_parent", Role.NEW_COMM, 0),
        ("MPI_Topo_test", Role.STATUS, None),
        ("MPI_Op_create", Role.PROCEDURE, 0),
        ("MPI_Op_create", Role.OP, None),
        ("MPI_Put", Role.TARGET, 3),
        ("MPI_Win_create", Role.MEMORY, 0),
    ],
)
def test_roles(name: str, role: Role, place: int | None) -> None:
    call = mpi.lookup(name)
    assert call is not None
    assert mpi.index_of(call, role) == place


def test_fortran_adds_ierror_and_leaves_out_what_c_alone_has() -> None:
    def names(name: str) -> list[str]:
        call = mpi.lookup(name)
        assert call is not None
        return [parameter.name for parameter in mpi.fortran_parameters(call)]

    assert names("MPI_Init") == ["ierror"]
    assert names("MPI_Init_thread") == ["required", "provided", "ierror"]
    assert names("MPI_Comm_rank") == ["comm", "rank", "ierror"]
    assert names("MPI_Wtime") == []
    assert names("MPI_Sizeof") == ["x", "size", "ierror"]
    assert names("MPI_F_sync_reg") == ["buf"]
    assert names("MPI_Comm_spawn")[1] == "argv"


def test_what_waits_and_what_orders_ranks() -> None:
    def facts(name: str) -> tuple[Kind, bool, bool, bool]:
        call = mpi.lookup(name)
        assert call is not None
        return call.kind, call.blocking, call.collective, call.synchronises

    assert facts("MPI_Barrier") == (Kind.BARRIER, True, True, True)
    assert facts("MPI_Ibarrier") == (Kind.BARRIER, False, True, True)
    assert facts("MPI_Ssend") == (Kind.SEND, True, False, True)
    assert facts("MPI_Alltoall") == (Kind.COLLECTIVE, True, True, False)
    assert facts("MPI_Ialltoall") == (Kind.COLLECTIVE, False, True, False)
    assert facts("MPI_Comm_dup") == (Kind.SETUP, True, True, False)
    assert facts("MPI_Comm_rank") == (Kind.SETUP, False, False, False)
    assert facts("MPI_Waitall") == (Kind.COMPLETION, True, False, False)
    assert facts("MPI_Testall") == (Kind.COMPLETION, False, False, False)
    assert facts("MPI_Win_fence") == (Kind.ONE_SIDED, True, True, True)
    assert facts("MPI_Put") == (Kind.ONE_SIDED, False, False, False)
    assert facts("MPI_Send_init") == (Kind.PERSISTENT, False, False, False)
    assert facts("MPI_Wtime") == (Kind.LOCAL, False, False, False)


def test_what_every_rank_must_call_together() -> None:
    """Making and freeing communicators and windows, shared files, and a few more."""
    expected = {f"MPI_{name}" for name in "Init Init_thread Finalize Comm_set_info Win_set_info Win_fence".split()}
    for name, call in known().items():
        roles = {parameter.role: parameter for parameter in call.parameters}
        makes = Role.NEW_COMM in roles and roles.keys() & {Role.COMM}
        shared = re.fullmatch(
            "MPI_File_(open|close|sync|preallocate|seek_shared|set_(size|view|info|atomicity)|.*_(all|ordered)(_.*)?)",
            name,
        )
        handles = [roles[role] for role in (Role.COMM, Role.WINDOW) if role in roles]
        if call.kind in (Kind.COLLECTIVE, Kind.BARRIER) or makes or shared or any(handle.writes for handle in handles):
            expected.add(name)
    persistent = {name for name in known() if name.endswith("_init") and not re.search("([Ss]end|[Rr]ecv)_init", name)}
    assert {name for name, call in known().items() if call.collective} == expected | persistent


def test_what_returns_before_others_are_heard_of() -> None:
    """Among calls whose kind or being collective says the opposite, and what waits against its kind's habit."""
    waiting = {Kind.SEND, Kind.RECV, Kind.SENDRECV, Kind.COLLECTIVE, Kind.BARRIER, Kind.COMPLETION, Kind.PROBE, Kind.IO}
    started = {call.nonblocking for call in known().values()} | OF_MPI_4
    found = {name for name, call in known().items() if call.kind in waiting and not call.blocking} - started
    parts = {f"File_{way}_{part}_begin" for way in ("read", "write") for part in ("all", "at_all", "ordered")}
    assert {name.removeprefix("MPI_") for name in found} == parts | set(
        "Iprobe Improbe Test Testall Testany Testsome".split()
    )
    habit = {
        name for name, call in known().items() if call.kind not in waiting and call.blocking and not call.collective
    }
    epochs = "start complete wait lock lock_all unlock unlock_all flush flush_all flush_local flush_local_all"
    assert {name.removeprefix("MPI_") for name in habit} == {f"Win_{name}" for name in epochs.split()} | set(
        "Abort Buffer_detach Comm_join".split()
    )


def test_what_orders_ranks() -> None:
    found = {name.removeprefix("MPI_") for name, call in known().items() if call.synchronises}
    epochs = "fence start complete post wait test lock lock_all unlock unlock_all flush flush_all sync free"
    assert found == {f"Win_{name}" for name in epochs.split()} | set(
        """
        Barrier Ibarrier Barrier_init Ssend Issend Ssend_init File_close File_sync Init Init_thread Finalize Abort
        """.split()
    )


def test_a_call_of_kind_local_neither_waits_nor_names_a_peer() -> None:
    peers = {Role.DEST, Role.SOURCE, Role.ROOT, Role.TARGET, Role.REQUEST, Role.REQUESTS}
    for call in known().values():
        if call.kind is Kind.LOCAL and call.name not in {"MPI_Request_c2f", "MPI_Request_f2c"}:
            assert not call.blocking
            assert not call.collective
            assert not peers & {parameter.role for parameter in call.parameters}


def test_the_table_has_each_call_once() -> None:
    names = [call.name for kind, row in table.table_rows() for call in table.calls_of_row(kind, row)]
    assert len(names) == len(set(names))
    assert len(names) > 400
    assert all(len(line) <= 120 for line in TABLE.splitlines())


def test_a_misspelt_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Send.*colective"):
        list(table.calls_of_row(Kind.SEND, "Send buf | colective"))
    with pytest.raises(KeyError):
        list(table.calls_of_row(Kind.SEND, "Send buf:NO_ROLE"))


def test_sizes_are_those_of_mpi_h() -> None:
    """MPICH's handles hold a basic datatype's size in their second byte."""
    encoded = dict(re.findall(r"#\s*define\s+(MPI_\w+)\s+\(\(MPI_Datatype\)0x4c00(\w\w)\w\w\)", header()))
    if not encoded:
        pytest.skip("this MPI does not write sizes into mpi.h")
    sizes = {name: int(size, 16) for name, size in encoded.items() if name not in {"MPI_LB", "MPI_UB"}}
    ours = {name: mpi.TYPE_SIZES[name][2] for name in sizes}
    assert {name: size for name, size in ours.items() if size not in (None, sizes[name])} == {}


def test_sizes_are_those_of_numpy() -> None:
    """NumPy's names of C's types say the same of the compiler that built it."""
    numpy = pytest.importorskip("numpy")
    for name, there in {"MPI_SHORT": "short", "MPI_INT": "intc", "MPI_FLOAT": "single", "MPI_DOUBLE": "double",
                        "MPI_LONG_LONG": "longlong", "MPI_C_DOUBLE_COMPLEX": "cdouble"}.items():  # fmt: skip
        assert mpi.TYPE_SIZES[name][2] == numpy.dtype(there).itemsize


def test_every_constant_of_mpi_h_is_known() -> None:
    text = header()
    defined = set(re.findall(r"#\s*define\s+(MPI_[A-Z0-9_]+)\s+\S", text))
    listed = set(re.findall(r"^\s*(MPI_[A-Z0-9_]+)\s*=", text, re.MULTILINE))
    unknown = (defined | listed) - mpi.CONSTANTS
    internal = re.compile("MPI_T_.*|MPI_H|MPI_.*(INCLUDED|DEFINED|_FMT_..._SPEC)")
    assert {name for name in unknown if not internal.fullmatch(name)} == set()


def test_kinds_of_constants() -> None:
    assert mpi.WILDCARDS < mpi.CONSTANTS
    assert mpi.NULLS < mpi.CONSTANTS
    assert mpi.TYPE_SIZES.keys() < mpi.CONSTANTS
    assert not mpi.WILDCARDS & mpi.NULLS
    # With it a call may touch anything, so it must not pass for "nothing".
    assert "MPI_BOTTOM" not in mpi.NULLS
