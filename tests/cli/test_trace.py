"""`lapwing trace`: small MPI programs whose waits are known, run as a user runs them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from everyday import everyday
from limits import scaled
from needs import ADDR2LINE, FORTRAN_MPI
from processes import default_signals

from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError

LIMIT = scaled(100)  # seconds for one command, the library's build included
NAP = 0.2  # seconds that programs sleep
SEEN = NAP / 2  # what must be seen of it: the rank that waits may come late itself

C_HEAD = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define N 1000
static void nap(void) { usleep(200000); }
int main(int argc, char **argv) {
    int rank, size, out[4 * N] = {0}, in[4 * N] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
"""
C_TAIL = """
    MPI_Finalize();
    return 0;
}
"""


def _mpi_tools() -> tuple[str, str] | None:
    """mpicc and mpiexec of the MPI that lapwing finds."""
    try:
        mpi = find_mpi()
    except BuildError:
        return None
    wrapper = Path(mpi.mpicxx.command[0])
    mpicc = wrapper.with_name(wrapper.name.replace("mpicxx", "mpicc"))
    return (str(mpicc), str(mpi.mpiexec)) if mpicc.exists() else None


TOOLS = _mpi_tools()
pytestmark = pytest.mark.mpi
needs_mpi = pytest.mark.skipif(TOOLS is None, reason="no MPI with mpicc here")
needs_lines = pytest.mark.skipif(not ADDR2LINE.is_here, reason=ADDR2LINE.reason)


@dataclass(frozen=True)
class Traced:
    """A traced command: what it printed, its status, and its JSON document (empty where there is none)."""

    status: int
    output: str
    errors: str
    document: dict[str, Any]
    source: str = ""

    def line(self, mark: str) -> int:
        """The number of the one source line that contains ``mark``."""
        lines = [k for k, line in enumerate(self.source.splitlines(), 1) if mark in line]
        assert len(lines) == 1
        return lines[0]

    def site(self, mark: str, function: str | None = None) -> dict[str, Any]:
        """The call site on the line that contains ``mark``."""
        line = self.line(mark)
        found = [s for s in self.document["call_sites"] if s["line"] == line and function in (None, s["function"])]
        assert len(found) == 1, self.document["call_sites"]
        site: dict[str, Any] = found[0]
        return site


def lapwing_trace(folder: Path, *arguments: str, variables: dict[str, str] | None = None) -> Traced:
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", "trace", "--json", "trace.json", *arguments],
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert not list(folder.glob(".lapwing-trace-*")), "recordings were left behind"
    path = folder / "trace.json"
    document = json.loads(path.read_text()) if path.exists() else {}
    return Traced(done.returncode, done.stdout, done.stderr, document)


def compile_c(folder: Path, body: str, name: str = "program", flags: str = "-g") -> str:
    """Compile a main function's body; returns the source."""
    assert TOOLS is not None
    source = C_HEAD + body + C_TAIL
    (folder / f"{name}.c").write_text(source)
    subprocess.run([TOOLS[0], *flags.split(), f"{name}.c", "-o", name], cwd=folder, check=True, timeout=LIMIT)
    return source


def trace_c(folder: Path, body: str, *options: str, ranks: int = 2, variables: dict[str, str] | None = None) -> Traced:
    assert TOOLS is not None
    source = compile_c(folder, body)
    done = lapwing_trace(folder, *options, "--", TOOLS[1], "-n", str(ranks), "./program", variables=variables)
    return Traced(done.status, done.output, done.errors, done.document, source)


# --- causes of waits ---------------------------------------------------------------


@needs_mpi
@needs_lines
def test_a_late_sender_is_named(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    if (rank == 0) {
        nap();
        MPI_Send(out, N, MPI_INT, 1, 7, MPI_COMM_WORLD); // sends
    } else {
        MPI_Recv(in, 2 * N, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // receives
    }
    printf("rank %d is done\\n", rank);
""",
    )
    assert traced.status == 0, traced.errors
    assert "rank 0 is done" in traced.output
    assert f"MPI_Recv program.c:{traced.line('// receives')}" in traced.output
    receive, send = traced.site("// receives"), traced.site("// sends")
    assert receive["bytes"] == send["bytes"] == 4000  # what came, not what there was room for
    assert receive["exposed"] >= receive["late_partner"] >= SEEN
    assert send["late_partner"] == 0
    # All of it is that rank 0 computes more: no overlap could remove it.
    assert receive["could_overlap"] < SEEN
    worst = traced.document["longest_waits"][0]
    assert (worst["why"], worst["rank"], worst["partner"]) == ("late sender", 1, 0)
    assert worst["partner_site"]["line"] == traced.line("// sends")


@needs_mpi
@needs_lines
def test_a_late_receiver_is_named(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    if (rank == 0) {
        MPI_Ssend(out, N, MPI_INT, 1, 7, MPI_COMM_WORLD); // sends
    } else {
        nap();
        MPI_Recv(in, N, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
""",
    )
    assert traced.site("// sends")["late_partner"] >= SEEN
    worst = traced.document["longest_waits"][0]
    assert (worst["why"], worst["rank"], worst["partner"]) == ("late receiver", 0, 1)


@needs_mpi
@needs_lines
def test_an_eager_send_waits_for_no_receiver(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    if (rank == 0) {
        MPI_Send(out, 1, MPI_INT, 1, 7, MPI_COMM_WORLD); // sends
    } else {
        nap();
        MPI_Recv(in, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // receives
    }
""",
    )
    assert traced.site("// sends")["late_partner"] < SEEN
    assert traced.site("// receives")["late_partner"] == 0


@needs_mpi
@needs_lines
def test_who_collectives_wait_for(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    if (rank == 1) nap();
    MPI_Barrier(MPI_COMM_WORLD); // barrier
    if (rank == 0) nap();
    MPI_Bcast(out, N, MPI_INT, 0, MPI_COMM_WORLD); // broadcast
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) nap();
    MPI_Reduce(out, in, N, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); // reduce
    MPI_Allreduce(MPI_IN_PLACE, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // allreduce
    MPI_Gather(out, 10, MPI_INT, in, 10, MPI_INT, 1, MPI_COMM_WORLD); // gather
    MPI_Alltoall(out, N, MPI_INT, in, N, MPI_INT, MPI_COMM_WORLD); // alltoall
    if (rank == 0) nap();
    MPI_Scan(out, in, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // scan
""",
    )
    for mark, size in (
        ("broadcast", 8000),
        ("reduce", 8000),
        ("allreduce", 8000),
        ("gather", 120),
        ("alltoall", 16000),
    ):
        assert traced.site(f"// {mark}")["bytes"] == size
    for mark in ("barrier", "broadcast", "reduce", "scan"):
        assert traced.site(f"// {mark}")["late_partner"] >= SEEN
    waits = {(w["site"]["line"], w["rank"], w["partner"], w["why"]) for w in traced.document["longest_waits"]}
    assert (traced.line("// barrier"), 0, 1, "last to enter") in waits
    assert (traced.line("// broadcast"), 1, 0, "last to enter") in waits
    assert (traced.line("// reduce"), 0, 1, "last to enter") in waits


# --- overlap -------------------------------------------------------------------------

EXCHANGE = """
    MPI_Request requests[2];
    int other = 1 - rank;
    for (int step = 0; step < 3; ++step) {
        MPI_Irecv(in, N, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]); // receives
        MPI_Isend(out, N, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]); // sends
        %s
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); // waits
        %s
    }
"""


@needs_mpi
@needs_lines
def test_computation_between_start_and_wait_is_overlap(tmp_path: Path) -> None:
    traced = trace_c(tmp_path, EXCHANGE % ("usleep(50000);", ""))
    for mark in ("// receives", "// sends"):
        site = traced.site(mark)
        assert (site["calls"], site["bytes"], site["exposed"]) == (6, 24000, 0)
        assert site["overlapped"] >= 6 * 0.05
    total = sum(rank["overlapped"] for rank in traced.document["ranks"])
    assert total < traced.site("// receives")["overlapped"] + traced.site("// sends")["overlapped"]  # counted once
    assert traced.document["hidden"] > 0.5


@needs_mpi
@needs_lines
def test_an_immediate_wait_overlaps_nothing(tmp_path: Path) -> None:
    traced = trace_c(tmp_path, EXCHANGE % ("", "usleep(50000);"))
    assert traced.site("// receives")["overlapped"] < 0.05
    wait = traced.site("// waits")
    assert wait["exposed"] > 0
    # It is also said of those that started what was waited for.
    awaited = traced.site("// receives")["awaited"] + traced.site("// sends")["awaited"]
    assert awaited == pytest.approx(wait["exposed"], rel=0.2)


@needs_mpi
@needs_lines
def test_alternating_waits_could_overlap(tmp_path: Path) -> None:
    """Each rank computes while the other waits: nobody computes more, so computing at once would hide it."""
    traced = trace_c(
        tmp_path,
        """
    int other = 1 - rank;
    for (int step = 0; step < 4; ++step) {
        if (step % 2 == rank) {
            usleep(50000);
            MPI_Send(out, N, MPI_INT, other, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, N, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // receives
        }
    }
""",
    )
    site = traced.site("// receives")
    assert site["late_partner"] >= 0.1
    assert site["could_overlap"] >= 0.05


# --- kinds of operations ---------------------------------------------------------------


@needs_mpi
@needs_lines
def test_messages_are_matched_whatever_their_kind(tmp_path: Path) -> None:
    """Rank 0 is late for each; persistent, probed, replaced, tested, in a communicator whose ranks are reversed."""
    traced = trace_c(
        tmp_path,
        """
    MPI_Comm turned, twin;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_dup(turned, &twin);
    int me, other, flag = 0;
    MPI_Comm_rank(turned, &me);
    other = 1 - me;
    MPI_Request request;
    MPI_Status status;
    if (rank == 1) MPI_Recv_init(in, N, MPI_INT, other, 1, turned, &request);
    if (rank == 0) MPI_Send_init(out, N, MPI_INT, other, 1, turned, &request);
    for (int step = 0; step < 2; ++step) {
        if (rank == 0) usleep(100000);
        MPI_Start(&request); // starts
        MPI_Wait(&request, MPI_STATUS_IGNORE); // waits
    }
    MPI_Request_free(&request);
    if (rank == 0) nap();
    MPI_Sendrecv(out, N, MPI_INT, other, 2, in, N, MPI_INT, other, 2, twin, MPI_STATUS_IGNORE); // exchanges
    if (rank == 0) nap();
    MPI_Sendrecv_replace(out, N, MPI_INT, other, 3, other, 3, twin, &status); // replaces
    if (rank == 0) {
        nap();
        MPI_Send(out, 10, MPI_INT, other, 4, twin);
        nap();
        MPI_Send(out, 10, MPI_INT, other, 5, twin); // tested
    } else {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, twin, &status); // probes
        MPI_Recv(in, N, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, twin, &status);
        MPI_Irecv(in, N, MPI_INT, MPI_ANY_SOURCE, 5, twin, &request); // wildcard
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&turned);
""",
        "--waits",
        "30",
    )
    assert traced.status == 0, traced.errors
    for mark in ("// waits", "// exchanges", "// replaces", "// probes"):
        assert traced.site(mark)["late_partner"] >= SEEN, mark
    assert traced.site("// starts")["calls"] == 4
    assert traced.site("// starts")["bytes"] == 2 * 2 * 4000
    assert traced.site("// exchanges")["bytes"] == 2 * 2 * 4000
    assert traced.site("// wildcard")["bytes"] == 40
    named = {(wait["site"]["line"], wait["partner"]) for wait in traced.document["longest_waits"] if wait["rank"] == 1}
    for mark in ("// waits", "// exchanges", "// replaces", "// probes"):
        assert (traced.line(mark), 0) in named


@needs_mpi
@needs_lines
def test_sub_communicators_and_nonblocking_collectives(tmp_path: Path) -> None:
    """Two pairs of ranks: the late one of a pair is waited for by the other one of that pair alone."""
    traced = trace_c(
        tmp_path,
        """
    MPI_Comm pair;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    if (rank == 3) nap();
    MPI_Iallreduce(out, in, N, MPI_INT, MPI_SUM, pair, &request); // starts
    MPI_Wait(&request, MPI_STATUS_IGNORE); // waits
""",
        ranks=4,
    )
    waits = [w for w in traced.document["longest_waits"] if w["site"]["line"] == traced.line("// waits")]
    assert [(w["rank"], w["partner"], w["why"]) for w in waits if w["late"] >= SEEN] == [(2, 3, "last to enter")]
    assert traced.site("// starts")["awaited"] >= SEEN


@needs_mpi
@needs_lines
def test_one_sided_bytes_and_fences(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    MPI_Win window;
    MPI_Win_create(in, sizeof in, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    if (rank == 0) {
        MPI_Put(out, N, MPI_INT, 1, 0, N, MPI_INT, window); // puts
        nap();
    }
    MPI_Win_fence(0, window); // fence
    MPI_Win_free(&window);
""",
    )
    assert traced.site("// puts")["bytes"] == 4000
    assert traced.site("// puts")["overlapped"] >= NAP
    assert traced.site("// fence")["late_partner"] >= SEEN


@needs_mpi
@needs_lines
def test_clocks_of_other_hosts_are_put_right(tmp_path: Path) -> None:
    """Each rank is told that its clock is its own; one clock runs half a second ahead."""
    assert TOOLS is not None
    (tmp_path / "each").write_text(
        '#!/bin/sh\nrank=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}\nLAPWING_TRACE_CLOCK="$rank $((rank * 500))" exec "$@"\n'
    )
    (tmp_path / "each").chmod(0o755)
    source = compile_c(
        tmp_path,
        """
    if (rank == 0) {
        nap();
        MPI_Send(out, N, MPI_INT, 1, 7, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, N, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // receives
    }
""",
    )
    done = lapwing_trace(tmp_path, "--", TOOLS[1], "-n", "2", "./each", "./program")
    late = Traced(0, "", "", done.document, source).site("// receives")["late_partner"]
    assert SEEN < late < 2 * NAP


FORTRAN = """
program late
{use}
  implicit none
{include}
  integer :: rank, code, values(1000)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  values = rank
  if (rank == 0) then
    call sleep(1)
    call MPI_Send(values, 1000, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, code) ! sends
  else
    call MPI_Recv(values, 1000, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code) ! receives
  end if
  call MPI_Finalize(code)
end program
"""


def _fortran_tools() -> tuple[str, str] | None:
    wrapper = shutil.which("mpifort")
    if wrapper is None or shutil.which("gfortran") is None:
        return None
    launcher = Path(wrapper).with_name("mpiexec")
    return (wrapper, str(launcher)) if launcher.exists() else None


@needs_mpi
@needs_lines
@pytest.mark.parametrize("binding", everyday(["mpif.h", "mpi", "mpi_f08"], ["mpi_f08"]))
def test_fortran(tmp_path: Path, binding: str) -> None:
    tools = _fortran_tools()
    if tools is None:
        pytest.skip(FORTRAN_MPI.reason)
    source = FORTRAN.format(
        use="" if binding == "mpif.h" else f"  use {binding}",
        include="  include 'mpif.h'" if binding == "mpif.h" else "",
    )
    (tmp_path / "late.f90").write_text(source)
    built = subprocess.run([tools[0], "-g", "-O0", "late.f90", "-o", "late"], cwd=tmp_path, timeout=LIMIT, check=False)
    if built.returncode:
        pytest.skip(f"this MPI has no {binding}")
    done = lapwing_trace(tmp_path, "--", tools[1], "-n", "2", "./late")
    if "Set LAPWING_MPICXX" in done.errors:
        pytest.skip("mpifort and mpicxx belong to different MPIs")
    traced = Traced(done.status, done.output, done.errors, done.document, source)
    assert traced.status == 0, traced.errors
    assert traced.site("! receives")["bytes"] == traced.site("! sends")["bytes"] == 4000
    assert traced.site("! receives")["late_partner"] >= 0.9


# --- the record's limits, and the report -----------------------------------------------


@needs_mpi
@needs_lines
def test_beyond_the_cap_everything_is_still_counted(tmp_path: Path) -> None:
    body = "for (int k = 0; k < 100; ++k)\n MPI_Allreduce(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); // sums\n"
    traced = trace_c(tmp_path, body, "--records", "40")
    site = traced.site("// sums")
    assert (site["calls"], site["bytes"]) == (200, 800)
    assert site["unknown"] > 0
    assert traced.document["dropped"] == 200 - 2 * 20  # a call and its collective are a record each
    assert "--records" in traced.errors


@needs_mpi
def test_without_debug_information_functions_are_named(tmp_path: Path) -> None:
    assert TOOLS is not None
    compile_c(tmp_path, "MPI_Barrier(MPI_COMM_WORLD);", flags="-O1 -g0")
    done = lapwing_trace(tmp_path, "--", TOOLS[1], "-n", "2", "./program")
    (site,) = done.document["call_sites"]
    assert (site["file"], site["line"]) == ("", 0)
    assert "program+0x" in site["inside"]
    assert site["inside"] in done.output


@needs_mpi
def test_the_timeline_holds_every_call(tmp_path: Path) -> None:
    traced = trace_c(tmp_path, EXCHANGE % ("", ""), "--timeline", "out/calls.json", "--top", "1", "--waits", "0")
    events = json.loads((tmp_path / "out/calls.json").read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in calls} == {0, 1}
    assert [sum(event["name"] == name for event in calls) for name in ("MPI_Irecv", "MPI_Isend", "MPI_Waitall")] == [
        6
    ] * 3
    begun, ended = ([event for event in events if event["ph"] == phase] for phase in "be")
    assert len(begun) == len(ended) == 12
    assert all(event["args"]["bytes"] == 4000 for event in begun)
    assert "2 more call sites" in traced.output
    assert "longest waits" not in traced.output


# --- programs that end otherwise -----------------------------------------------------------


@needs_mpi
@needs_lines
def test_an_abort_leaves_what_was_recorded(tmp_path: Path) -> None:
    traced = trace_c(
        tmp_path,
        """
    if (rank == 0) {
        nap();
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    MPI_Recv(in, N, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE); // stuck
""",
    )
    assert traced.status == 7
    assert "rank 0 called MPI_Abort" in traced.errors
    assert f"rank 1 was still in MPI_Recv program.c:{traced.line('// stuck')}" in traced.errors
    assert traced.site("// stuck")["exposed"] >= SEEN


@needs_mpi
def test_a_killed_rank_leaves_what_was_recorded(tmp_path: Path) -> None:
    traced = trace_c(tmp_path, "MPI_Barrier(MPI_COMM_WORLD); if (rank == 1) raise(9); MPI_Barrier(MPI_COMM_WORLD);")
    assert traced.status != 0
    assert "ended without MPI_Finalize" in traced.errors
    assert f"the command ended with status {traced.status}" in traced.errors
    assert len(traced.document["ranks"]) == 2


@needs_mpi
def test_the_status_is_the_programs(tmp_path: Path) -> None:
    traced = trace_c(tmp_path, "MPI_Finalize(); return 5;", ranks=1)
    assert traced.status == 5
    assert traced.document["status"] == 5


@needs_mpi
def test_a_program_without_mpi(tmp_path: Path) -> None:
    done = lapwing_trace(tmp_path, "--", "sh", "-c", "echo hello; exit 3")
    assert done.status == 3
    assert done.output == "hello\n"
    assert "nothing was recorded" in done.errors
    assert done.document == {}


@needs_mpi
def test_a_program_with_another_mpi_is_not_run(tmp_path: Path) -> None:
    """What Open MPI's library is known by stands in a library of that name (or nothing, where Open MPI is ours)."""
    kind = "" if "openmpi" in str(find_mpi().library) or "open-mpi" in str(find_mpi().library) else "1"
    (tmp_path / "other.c").write_text(
        (f"int ompi_mpi_comm_world = {kind};" if kind else "") + "int PMPI_Init(int *a, char ***b) { return 0; }"
        "int MPI_Init(int *a, char ***b) { return 0; }"
    )
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\nint MPI_Init(int *, char ***);\nint main(void) { MPI_Init(0, 0); puts("ran"); return 0; }'
    )
    for words in ("-shared -fPIC other.c -o libmpi.so.77", "main.c ./libmpi.so.77 -o program"):
        subprocess.run(["cc", *words.split()], cwd=tmp_path, check=True, timeout=LIMIT)
    done = lapwing_trace(tmp_path, "--", "./program")
    assert done.status == 1
    assert "ran" not in done.output
    assert "the program was not run" in done.errors
    assert "libmpi.so.77" in done.errors
    assert "LAPWING_MPICXX" in done.errors


@needs_mpi
def test_static_linking_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(
        "int PMPI_Init(int *a, char ***b) { return 0; }\nint main(void) { return PMPI_Init(0, 0); }"
    )
    subprocess.run(["cc", "main.c", "-o", "program"], cwd=tmp_path, check=True, timeout=LIMIT)
    done = lapwing_trace(tmp_path, "--", "./program")
    assert done.status == 0
    assert "program is linked statically with MPI" in done.errors


@needs_mpi
def test_an_interrupt_still_gives_the_report(tmp_path: Path) -> None:
    assert TOOLS is not None
    compile_c(tmp_path, 'if (rank == 0) { puts("ready"); fflush(stdout); } MPI_Barrier(MPI_COMM_WORLD); sleep(60);')
    words = [sys.executable, "-m", "lapwing", "trace", "--", TOOLS[1], "-n", "2", "./program"]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=default_signals,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    assert "MPI_Barrier" in output
    assert "ended without MPI_Finalize" in errors


@needs_mpi
def test_a_signal_that_ends_the_command(tmp_path: Path) -> None:
    done = lapwing_trace(tmp_path, "--", "sh", "-c", "kill -TERM $$")
    assert done.status == 128 + signal.SIGTERM


# --- wrong usage ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "no command to trace"),
        ("--", "no command to trace"),
        ("-- ./no-such-program", "./no-such-program: cannot be started"),
        ("-- .", "it is a directory"),
        ("-- ./plain.txt", "not executable"),
        ("--top 0 -- true", "--top"),
        ("--bogus -- true", "--bogus"),
        ("--timeline out.html -- true", ".json"),
        ("--json /dev/null/x -- true", "/dev/null/x"),
    ],
)
def test_wrong_usage_starts_nothing(tmp_path: Path, arguments: str, said: str) -> None:
    (tmp_path / "plain.txt").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", "trace", *shlex.split(arguments)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_help_teaches() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lapwing", "trace", "--help"], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0
    for word in (
        "Examples:",
        "lapwing trace -- mpiexec -n 4",
        "late partner",
        "could overlap",
        "load balance",
        "exit status",
    ):
        assert word in done.stdout
