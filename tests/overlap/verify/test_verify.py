"""`lapwing overlap --verify`: outputs compared, copies, and small MPI programs run before and after."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from _running import ON_ONE_MACHINE
from everyday import everyday
from limits import scaled
from needs import MAKE

from lapwing.codegen.compilation.toolchain import find_mpi
from lapwing.errors import BuildError, RefusedError, RunError
from lapwing.overlap.source.patch import FileChange
from lapwing.overlap.verify import runs
from lapwing.overlap.verify.copies import Project, copy_project, find_project, put
from lapwing.overlap.verify.outputs import Comparison, by_rank, compare
from lapwing.overlap.verify.programs import Programs, not_run
from lapwing.overlap.verify.runs import verify
from lapwing.overlap.verify.sites import match_sites
from lapwing.overlap.verify.verdict import show_verification, verification_json
from lapwing.trace.pmpi.callsites import CallSite
from lapwing.trace.pmpi.exposure import SiteMetrics, Summary

LIMIT = scaled(200)  # seconds for one command, the recording library's build included


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
needs_mpi = pytest.mark.skipif(TOOLS is None, reason="no MPI with mpicc here")
needs_make = pytest.mark.skipif(not MAKE.is_here, reason=MAKE.reason)


# ---- outputs ------------------------------------------------------------


def outputs(*originals: str, now: str) -> Comparison:
    return compare([text.encode() for text in originals], now.encode())


PLAIN = "start\n step 1 residual 1.25E-03\n step 2 residual 1.50E-04\nTime in seconds = 12.5\nend\n"


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (PLAIN, True),
        (PLAIN.replace("1.50E-04", "1.51E-04"), False),
        (PLAIN.replace("1.50E-04", "1.5E-04"), False),  # the same value, but not the same digits
        (PLAIN.replace("1.50E-04", "-1.50E-04"), False),
        (PLAIN.replace("1.50E-04", "NaN"), False),
        (PLAIN.replace("step 2", "step  2"), False),
        (PLAIN.replace("end", "END"), False),
        (PLAIN.replace("end\n", ""), False),
        (PLAIN + "more\n", False),
        (PLAIN.replace("start\n", "start\nstart\n"), False),
        ("", False),
        (PLAIN.replace("12.5", "3.75"), True),
        (PLAIN.replace("12.5", " 3.75"), True),
        (PLAIN.replace("= 12.5", "= none"), False),
    ],
)
def test_one_output(now: str, same: bool) -> None:
    assert outputs(PLAIN, PLAIN, now=now).same is same


def test_lines_that_change_places() -> None:
    lines = PLAIN.splitlines(keepends=True)
    assert not outputs(PLAIN, PLAIN, now="".join([lines[0], lines[2], lines[1], *lines[3:]])).same
    assert not outputs(PLAIN, PLAIN, now="".join([*lines[1:], lines[0]])).same


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        (" Time in seconds =                     0.12", True),
        (" Mop/s total     =                    12.34", True),
        ("elapsed: 12.5", True),
        ("took 12.5 s", True),
        ("took 3ms in all", True),
        ("12 GFLOPS", True),
        ("bandwidth 120 MB/s", True),
        ("Wall clock time = 3", True),
        ("time step 7", False),
        ("sum 12.5 for x", False),
        ("12 steps", False),
        ("mean 12 min 3", False),
        ("iterations: 12", False),
        ("u(5) = 12.5", False),
    ],
)
def test_what_is_a_time(text: str, is_time: bool) -> None:
    now = text.replace("5", "6").replace("12", "13").replace("3ms", "4ms").replace("= 3", "= 9").replace("7", "8")
    assert now != text
    comparison = outputs(text + "\n", text + "\n", now=now + "\n")
    assert comparison.same is is_time
    assert comparison.excused == ((now,) if is_time else ())


def test_numbers_that_vary_in_the_original_are_excused_and_no_others() -> None:
    comparison = outputs("pid 17 sum 1.5\n", "pid 23 sum 1.5\n", now="pid 99 sum 1.5\n")
    assert comparison.same
    assert comparison.excused == ("pid 99 sum 1.5",)
    assert not outputs("pid 17 sum 1.5\n", "pid 23 sum 1.5\n", now="pid 99 sum 1.6\n").same
    # In one line only.
    assert not outputs("x 1\nx 2\n", "x 1\nx 3\n", now="x 4\nx 2\n").same


def test_ranks_in_another_order() -> None:
    ranks = ["rank 0 sum 1.5\n", "rank 1 sum 2.5\n", "rank 2 sum 3.5\n"]
    one, other, now = ("".join(ranks[k] for k in order) for order in ((0, 1, 2), (0, 2, 1), (1, 2, 0)))
    assert outputs(one, other, now=now).same
    comparison = outputs(one, other, now=now.replace("2.5", "2.6"))
    assert [(d.expected, d.found) for d in comparison.differences] == [("rank 1 sum 2.5", "rank 1 sum 2.6")]
    assert not outputs(one, other, now=now.replace("rank 1", "rank 0")).same
    # Times may vary at the same time.
    timed = [text.replace("sum", "took 0.1 s, sum") for text in (one, other, now)]
    assert outputs(timed[0], timed[1], now=timed[2].replace("0.1", "0.2")).same
    assert not outputs(timed[0], timed[1], now=timed[2].replace("3.5", "3.6")).same


def test_lines_that_come_anywhere_in_the_original() -> None:
    one, other = "a\nwarning\nb\nc\n", "a\nb\nc\nwarning\n"
    assert outputs(one, other, now="a\nb\nwarning\nc\n").same
    assert not outputs(one, other, now="a\nb\nc\n").same
    assert not outputs(one, other, now="a\nc\nwarning\nb\n").same


def test_differences_are_told_with_their_lines() -> None:
    (difference,) = outputs(PLAIN, PLAIN, now=PLAIN.replace("1.25", "1.26")).differences
    assert (difference.expected_line, difference.found_line) == (2, 2)
    assert difference.expected == " step 1 residual 1.25E-03"
    assert difference.found == " step 1 residual 1.26E-03"
    (missing,) = outputs(PLAIN, PLAIN, now=PLAIN.replace("end\n", "")).differences
    assert (missing.expected_line, missing.found) == (5, None)
    (surplus,) = outputs(PLAIN, PLAIN, now="new\n" + PLAIN).differences
    assert (surplus.expected, surplus.found_line) == (None, 1)


def test_output_that_is_no_text() -> None:
    assert compare([b"\xff\xfe 1\n\x00"] * 2, b"\xff\xfe 1\n\x00").same
    assert not compare([b"\xff\xfe 1\n\x00"] * 2, b"\xff\xff 1\n\x00").same


@pytest.mark.parametrize(
    "tags",
    [(b"[0] ", b"[1] "), (b"[1,0]<stdout>:", b"[1,1]<stdout>:"), (b"0: ", b"1: ")],
    ids=["hydra", "open", "slurm"],
)
def test_lines_by_rank(tags: tuple[bytes, bytes]) -> None:
    zero, one = tags
    mixed = b"make\n" + one + b"x\n" + zero + b"b\n" + zero + b"a\n"
    assert by_rank(mixed, b"make\nb\nx\na\n") == b"make\n" + zero + b"b\n" + zero + b"a\n" + one + b"x\n"


def test_what_the_program_prints_is_no_rank() -> None:
    assert by_rank(b"2: two\n1: one\n", b"1: one\n2: two\n") is None
    assert by_rank(b"b\na\n", b"a\nb\n") is None


# ---- copies ------------------------------------------------------------


def made(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_which_folder_is_copied(tmp_path: Path) -> None:
    made(tmp_path, top__app__src__a_c="", top__app__lib__b_c="", elsewhere__c_c="")
    app = tmp_path / "top" / "app"
    sources = [app / "src/a.c", app / "lib/b.c"]
    assert find_project(sources, app, None) == Project(app, Path("."))
    assert find_project(sources[:1], app, None) == Project(app, Path("."))
    assert find_project(sources[:1], app / "src", None) == Project(app / "src", Path("."))
    assert find_project(sources, app / "src", tmp_path / "top") == Project(tmp_path / "top", Path("app/src"))
    assert find_project(sources, tmp_path / "elsewhere", app) == Project(app, Path("."))
    (tmp_path / "top" / ".git").mkdir()
    assert find_project(sources[:1], app, None) == Project(tmp_path / "top", Path("app"))
    with pytest.raises(RefusedError, match="is not in"):
        find_project([*sources, tmp_path / "elsewhere/c.c"], app, app)
    (tmp_path / "top" / ".git").rmdir()
    with pytest.raises(RefusedError, match=r"copy all of /\. Say what"):
        find_project(sources, Path("/"), None)
    made(app, CMakeCache_txt="")
    with pytest.raises(RefusedError, match="notes where it lies"):
        find_project(sources, app, app)


def test_a_copy_leaves_the_project_alone(tmp_path: Path) -> None:
    root = made(tmp_path / "app", a_c="old", data__in_txt="in", _git__config="x", out__CMakeCache_txt="x")
    outside = made(tmp_path / "shared", x_h="x")
    (root / "absolute").symlink_to(root / "data")
    (root / "relative").symlink_to("data")
    (root / "away").symlink_to("../shared")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    (root / "a.c").chmod(0o444)
    project, copy = Project(root, Path(".")), tmp_path / "far" / "away" / "copy"
    copy_project(project, copy)
    put([FileChange(root / "a.c", b"old", b"new")], project, copy, transformed=True)
    assert sorted(os.listdir(copy)) == ["a.c", "absolute", "away", "broken", "data", "relative"]
    assert (copy / "a.c").read_text() == "new"
    (copy / "absolute" / "in.txt").write_text("written")
    (copy / "relative" / "in2.txt").write_text("written")
    assert (copy / "away").resolve() == outside
    assert (root / "a.c").read_text() == "old"
    assert (root / "data" / "in.txt").read_text() == "in"
    assert os.listdir(root / "data") == ["in.txt"]


# ---- commands without MPI ------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = made(tmp_path / "project", main_c="before 1\n", Makefile="all:\n\t@cat main.c\n")
    monkeypatch.chdir(root)
    return root


def changed(root: Path, after: str, name: str = "main.c") -> FileChange:
    return FileChange(root / name, (root / name).read_bytes(), after.encode())


@pytest.mark.parametrize("command", everyday(["grep -c . main.c", "true", ""], ["grep -c . main.c"]))
def test_a_command_that_runs_no_mpi_program_verifies_nothing(
    project: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    change = changed(project, "after\n")
    verification = verify(command, [change], [change.path])
    assert not verification.same
    assert verification.failure is not None
    assert "came through MPI_Init" in verification.failure
    show_verification(verification)
    errors = capfd.readouterr().err
    assert "NOT verified, though the output is the same: no process of" in errors
    assert (project / "main.c").read_text() == "before 1\n"


def same_output(command: str, change: FileChange) -> bool:
    """Of commands that run no MPI program."""
    comparison = verify(command, [change], [change.path]).comparison
    return comparison is not None and comparison.same


def test_another_output(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change = changed(project, "after 1\n")
    verification = verify("cat main.c; echo $PWD", [change], [change.path])
    assert not verification.same
    assert verification.failure is None
    show_verification(verification)
    errors = capfd.readouterr().err
    assert "verification FAILED: the transformed program prints something else" in errors
    assert "original, line 1:    before 1" in errors
    assert "transformed, line 1: after 1" in errors
    document = json.loads(json.dumps(verification_json(verification)))
    assert document["same"] is False
    # The copies' own paths are no difference.
    assert [(d["expected"], d["found"]) for d in document["differences"]] == [("before 1", "after 1")]


def test_a_difference_that_comes_and_goes(project: Path) -> None:
    """The first run of the transformed program goes well."""
    (project.parent / "count").write_text("")
    change = changed(project, "after 1\n")
    count = f"{project.parent}/count"
    flaky = f"grep -q before main.c || echo run >> {count}; test $(wc -l < {count}) -lt 2 && echo 1.5 || echo 1.6"
    verification = verify(flaky, [change], [change.path])
    assert not verification.same
    assert len(verification.transformed_seconds) == 2


def test_another_status(project: Path) -> None:
    change = changed(project, "after 1\n")
    verification = verify("grep before main.c >/dev/null || { echo oh dear >&2; exit 7; }", [change], [change.path])
    assert not verification.same
    assert verification.failure is not None
    assert "status 7" in verification.failure
    assert "oh dear" in verification.failure


def test_an_original_that_fails_proves_nothing(project: Path) -> None:
    change = changed(project, "after 1\n")
    with pytest.raises(RunError, match=r"original ended with status 3 .*nothing to compare with(.|\n)*no data"):
        verify("echo no data >&2; exit 3", [change], [change.path])


def test_a_transformed_program_that_hangs(project: Path) -> None:
    change = changed(project, "after 1\n")
    begin = time.monotonic()
    verification = verify("grep -q before main.c || sleep 1000", [change], [change.path], limit=2.0)
    assert verification.failure is not None
    assert "did not end within 2 s" in verification.failure
    assert time.monotonic() - begin < LIMIT


def test_an_original_that_takes_too_long(project: Path) -> None:
    change = changed(project, "after 1\n")
    with pytest.raises(RunError, match=r"did not end within 0\.5 s\. Give it longer with --timeout"):
        verify("sleep 1000", [change], [change.path], limit=0.5)


def test_the_command_runs_in_the_folder_that_is_current(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").mkdir()
    made(project, sub__x_c="x")
    monkeypatch.chdir(project / "sub")
    change = changed(project, "before 1\n\n")
    assert same_output("cat x.c ../main.c | head -1 && test ! -e ../.git", change)


def test_ranks_whose_lines_mix_are_told_apart_by_the_launcher(project: Path) -> None:
    """A launcher that says ranks where Slurm's variable asks for it, and whose ranks' order is another one now."""
    (project / "launch").write_text(
        "rank() { [ -z $SLURM_LABELIO ] || printf '%s: ' $1; echo $2; }\n"
        "if grep -q before main.c; then rank 0 one; rank 0 $1; rank 1 three; else rank 1 three; rank 0 one; rank 0 $2; fi\n"
    )
    change = changed(project, "after 1\n")
    assert same_output("bash launch two two", change)
    verification = verify("bash launch two drei", [change], [change.path])
    assert verification.comparison is not None
    assert [(d.expected, d.found) for d in verification.comparison.differences] == [("0: two", "0: drei")]


def test_what_a_command_leaves_running_is_ended(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(runs, "_PATIENCE", 0.5)  # it does not end by itself, however long it is given
    change = changed(project, "after 1\n")
    verify("setsid sleep 1000 >/dev/null 2>&1 & echo started", [change], [change.path])
    assert not _running_in(str(tmp_path / "lapwing-verify-"))


@needs_make
def test_make_has_the_same_to_do_in_all_copies(project: Path) -> None:
    """The original was built already; in its copy make would have nothing to do and say so."""
    (project / "Makefile").write_text("all: main.o\n\tcat main.o\nmain.o: main.c\n\ttr -d x < main.c > main.o\n")
    subprocess.run(["make"], cwd=project, check=True, capture_output=True, timeout=LIMIT)
    change = changed(project, "before 1x\n")
    assert same_output("make", change)


# ---- call sites ------------------------------------------------------------


def site(
    call: str, line: int, exposed: float = 0.0, awaited: float = 0.0, where: str = "f", **values: Any
) -> SiteMetrics:
    role = "wait" if "Wait" in call else "start" if call.startswith("MPI_I") else "block"
    return SiteMetrics(
        site=CallSite(call, role, "none", values.get("file", "/copy/a.c"), line, where),
        ranks=2, calls=4, bytes=8, seconds=exposed, exposed=exposed, late_partner=0.0, transfer=0.0, unknown=0.0,
        awaited=awaited, overlapped=values.get("overlapped", 0.0), could_overlap=0.0,
    )  # fmt: skip


def pairs(before: list[SiteMetrics], after: list[SiteMetrics]) -> list[tuple[Any, ...]]:
    old, new = (Summary(1.0, (), tuple(sites), (), 0) for sites in (before, after))
    root = Path("/copy")
    return [(c.call, c.line, c.sites, c.exposed_before, c.exposed_after) for c in match_sites(old, new, root, root)]


def test_a_call_that_became_nonblocking() -> None:
    before = [site("MPI_Send", 10, exposed=3.0), site("MPI_Alltoallv", 20, exposed=5.0)]
    after = [
        site("MPI_Isend", 9, awaited=1.0),
        site("MPI_Wait", 15, exposed=1.0),
        site("MPI_Ialltoallv", 21, awaited=2.0),
        site("MPI_Wait", 30, exposed=2.0),
    ]
    # What the waits are exposed for is said of the calls that start.
    assert pairs(before, after) == [("MPI_Alltoallv", 20, 1, 5.0, 2.0), ("MPI_Send", 10, 1, 3.0, 1.0)]


def test_several_calls_are_paired_in_their_order() -> None:
    before = [site("MPI_Send", 30, exposed=1.0), site("MPI_Send", 10, exposed=3.0)]
    after = [site("MPI_Isend", 12, awaited=0.5), site("MPI_Send", 32, exposed=0.25)]
    assert pairs(before, after) == [("MPI_Send", 10, 1, 3.0, 0.5), ("MPI_Send", 30, 1, 1.0, 0.25)]


def test_as_many_as_there_were_or_all_together() -> None:
    before = [site("MPI_Send", 30, exposed=1.0), site("MPI_Send", 10, exposed=3.0)]
    after = [site("MPI_Isend", line, awaited=0.5) for line in (10, 12, 14)]
    assert pairs(before, after) == [("MPI_Send", 10, 2, 4.0, 1.5)]


def test_an_exchange_that_was_split() -> None:
    before = [site("MPI_Sendrecv", 10, exposed=4.0), site("MPI_Recv", 40, exposed=1.0, where="g")]
    after = [
        site("MPI_Irecv", 10, awaited=1.0),
        site("MPI_Isend", 11, awaited=0.5),
        site("MPI_Recv", 43, exposed=1.0, where="g"),
    ]
    assert pairs(before, after) == [("MPI_Sendrecv", 10, 1, 4.0, 1.5), ("MPI_Recv", 40, 1, 1.0, 1.0)]


def test_a_start_that_moved_into_the_caller() -> None:
    assert pairs([site("MPI_Recv", 10, exposed=4.0)], [site("MPI_Irecv", 50, awaited=1.0, where="caller")]) == [
        ("MPI_Recv", 10, 1, 4.0, 1.0)
    ]


def test_calls_through_a_helper() -> None:
    before = [site("MPI_Recv", line, exposed=1.0) for line in (10, 20, 30)] + [
        site("MPI_Recv", 50, exposed=1.0, where="g")
    ]
    after = [
        site("MPI_Recv", 12, exposed=0.5),
        site("MPI_Irecv", 90, awaited=0.25, where="lapwing_post"),
        site("MPI_Recv", 55, exposed=2.0, where="g"),
    ]
    # Which two of f's three go through the helper is not known; g's is not among them.
    assert pairs(before, after) == [("MPI_Recv", 10, 3, 3.0, 0.75), ("MPI_Recv", 50, 1, 1.0, 2.0)]


def test_exchanges_and_sends_through_helpers() -> None:
    before = [site("MPI_Sendrecv", 10, exposed=4.0), site("MPI_Send", 20, exposed=1.0)]
    after = [
        site("MPI_Isend", 80, awaited=1.0, where="lapwing_send"),
        site("MPI_Irecv", 90, awaited=2.0, where="lapwing_post"),
    ]
    assert pairs(before, after) == [("MPI_Sendrecv", 10, 2, 5.0, 3.0)]


def test_sites_of_one_program_only() -> None:
    after = [site("MPI_Iprobe", 7, awaited=0.0), site("MPI_Bcast", 9, exposed=1.0)]
    assert pairs([site("MPI_Recv", 10, exposed=4.0)], after) == [
        ("MPI_Recv", 10, 1, 4.0, None),
        ("MPI_Bcast", 9, 1, None, 1.0),
    ]


def test_programs_without_lines() -> None:
    before = [
        site("MPI_Recv", 0, exposed=4.0, file="", where="f (app+0x10)"),
        site("MPI_Recv", 0, exposed=1.0, file="", where="g"),
    ]
    after = [
        site("MPI_Irecv", 0, awaited=2.0, file="", where="f (app+0x77)"),
        site("MPI_Recv", 0, exposed=1.0, file="", where="g"),
    ]
    assert pairs(before, after) == [("MPI_Recv", 0, 1, 4.0, 2.0), ("MPI_Recv", 0, 1, 1.0, 1.0)]


# ---- MPI programs ------------------------------------------------------------

BEFORE = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#define N 100000
static double in[N], out[N];
static double work(int rank) {
    usleep(40000);
    return rank / 3.0;
}
static double exchange(int rank, int other) {
    double sum;
    MPI_Sendrecv(out, N, MPI_DOUBLE, other, 0, in, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum = work(rank);
    return sum + in[N - 1];
}
int main(int argc, char **argv) {
    int rank;
    double sum = 0, begin;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    begin = MPI_Wtime();
    for (int step = 0; step < 3; ++step) {
        out[N - 1] = step + rank;
        if (rank == 0) usleep(60000);
        sum += exchange(rank, 1 - rank);
    }
    printf("rank %d: sum %.17g\\n", rank, sum);
    if (rank == 0) printf("Time in seconds = %.6f\\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
"""
EXCHANGE, WORK = BEFORE.split("double sum;\n")[1].split("    return sum + in")[0].rsplit("    sum = ", 1)
OVERLAPPED = BEFORE.replace(
    EXCHANGE + "    sum = " + WORK,
    """    MPI_Request requests[2];
    MPI_Irecv(in, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, &requests[1]);
    sum = work(rank);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
""",
)
TOO_EARLY = OVERLAPPED.replace("    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n", "").replace(
    "return sum + in[N - 1];",
    "sum += in[N - 1];\n    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);\n    return sum;",
)
DEADLOCK = BEFORE.replace(EXCHANGE, "    MPI_Recv(in, N, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n")


def hurried(text: str) -> str:
    """The program without its pauses, for what does not depend on them."""
    return text.replace("usleep(40000)", "usleep(0)").replace("usleep(60000)", "usleep(0)")


@pytest.fixture
def heat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert TOOLS is not None
    root = made(
        tmp_path / "heat", heat_c=BEFORE, Makefile=f"heat: heat.c\n\t{TOOLS[0]} -g -O0 $(FLAGS) heat.c -o heat\n"
    )
    monkeypatch.chdir(root)
    for name, value in ON_ONE_MACHINE.items():
        monkeypatch.setenv(name, value)
    return root


def command() -> str:
    assert TOOLS is not None
    return f"make && {TOOLS[1]} -n 2 ./heat"


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_an_overlapped_program_prints_the_same(heat: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change = changed(heat, OVERLAPPED, "heat.c")
    verification = verify(command(), [change], [change.path])
    assert verification.same, verification
    assert verification.untraced is None
    assert sorted(os.listdir(heat)) == ["Makefile", "heat.c"]
    document = json.loads(json.dumps(verification_json(verification)))
    exposed = document["exposed"]
    sites = {site["call"]: site for site in exposed["call_sites"]}
    site = sites["MPI_Sendrecv"]
    assert (site["file"], site["procedure"]) == ("heat.c", "exchange")
    assert site["calls_before"] == 6
    assert site["calls_after"] == 12  # a send and a receive each
    # Rank 1 waits 60 ms a step for rank 0.
    assert site["exposed_before"] > 0.1
    assert site["overlapped_before"] == 0
    assert site["overlapped_after"] > 0.1
    assert exposed["before"]["overlapped"] < exposed["after"]["overlapped"]
    show_verification(verification)
    errors = capfd.readouterr().err
    assert "verified: the same output" in errors
    assert "MPI_Sendrecv heat.c:" in errors
    assert "exposed before" in errors


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_a_wait_that_comes_too_late_is_found(heat: Path) -> None:
    change = changed(heat, TOO_EARLY, "heat.c")
    verification = verify(command(), [change], [change.path])
    assert not verification.same
    assert verification.failure is None
    assert verification.comparison is not None
    assert all("rank" in (d.expected or "") for d in verification.comparison.differences)
    assert verification.before is None


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_a_deadlock_is_found_and_nothing_is_left_running(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    change = changed(heat, DEADLOCK, "heat.c")
    # As long as the original and a second: ranks that wait for nothing keep all cores busy.
    monkeypatch.setattr(runs, "_TIMES_LONGER", 1)
    monkeypatch.setattr(runs, "_SECONDS_LONGER", 1.0)
    verification = verify(command(), [change], [change.path])
    assert verification.failure is not None
    assert "did not end within" in verification.failure
    assert not _running_in(str(tmp_path / "lapwing-verify-"))


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_a_transformed_program_that_does_not_compile(heat: Path) -> None:
    change = changed(heat, OVERLAPPED.replace("MPI_Request requests[2];", ""), "heat.c")
    verification = verify(command(), [change], [change.path])
    assert verification.failure is not None
    assert "requests" in verification.failure


@needs_mpi
@needs_make
@pytest.mark.mpi
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # Where the linker puts a path depends on the path.
        pytest.param("-g", "byte for byte the same|not its copy", marks=pytest.mark.long),
        ("-g0", "byte for byte the same"),
        pytest.param("-g3 -DBUILD=$$$$", "not its copy", marks=pytest.mark.long),
    ],
)
def test_a_build_that_names_the_project_is_found(heat: Path, lines: str, said: str) -> None:
    makefile = (heat / "Makefile").read_text().replace("heat.c -o", f"{heat}/heat.c -o").replace("-g ", f"{lines} ")
    (heat / "Makefile").write_text(makefile)
    (heat / "heat.c").write_text(hurried(BEFORE))
    change = changed(heat, hurried(TOO_EARLY), "heat.c")
    verification = verify(command(), [change], [change.path])
    assert not verification.same
    assert re.search(said, verification.failure or "")


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_a_program_that_was_built_before_is_found(heat: Path) -> None:
    (heat / "heat.c").write_text(hurried(BEFORE))
    subprocess.run(["make"], cwd=heat, check=True, capture_output=True, timeout=LIMIT)
    change = changed(heat, hurried(OVERLAPPED), "heat.c")
    assert TOOLS is not None
    run = f"{TOOLS[1]} -n 2"
    for program, said in (("./heat", "heat is byte for byte the same"), (f"{heat}/heat", "lies outside the copy")):
        verification = verify(f"{run} {program}", [change], [change.path])
        assert not verification.same
        assert said in (verification.failure or "")
        assert verification.before is None
    # A second program of the command is looked at, too, and one that is gone when it has run.
    assert verify(f"cp heat old && make && {run} ./old && {run} ./heat && rm heat", [change], [change.path]).same


@needs_mpi
@pytest.mark.mpi
@pytest.mark.long
def test_a_program_whose_library_changes(heat: Path) -> None:
    """As with Python: what is started stays, and what it loads is another one."""
    assert TOOLS is not None
    (heat / "heat.c").write_text(hurried(BEFORE).replace("int main(", "int real_main("))
    made(heat, main_c="int real_main(int, char **); int main(int argc, char **argv) { return real_main(argc, argv); }")
    run = f"{TOOLS[0]} -fPIC -shared heat.c -o libheat.so && {TOOLS[1]} -n 2 ./main"
    built = f"{TOOLS[0]} -fPIC -shared heat.c -o libheat.so && {TOOLS[0]} main.c -L. -lheat -Wl,-rpath,. -o main"
    subprocess.run(["bash", "-c", built], cwd=heat, check=True, capture_output=True, timeout=LIMIT)
    change = changed(heat, hurried(OVERLAPPED).replace("int main(", "int real_main("), "heat.c")
    assert verify(run, [change], [change.path]).same
    verification = verify(f"{TOOLS[1]} -n 2 ./main", [change], [change.path])
    assert "byte for byte the same program" in (verification.failure or "")


def test_what_ran() -> None:
    project, python, bindings = Path("/home/me/p"), Path("/usr/bin/python3"), Path("/usr/lib/mpi4py/MPI.so")

    def ran(executable: Path, caller: Path, **inside: str | None) -> Programs:
        return Programs(frozenset([executable]), frozenset([caller]), {Path(name): d for name, d in inside.items()})

    interpreted = ran(python, bindings)
    assert not_run(interpreted, interpreted, project) is None
    assert not_run(ran(python, bindings, lib="1"), ran(python, bindings, lib="2"), project) is None
    assert "lib is byte for byte" in (
        not_run(ran(python, bindings, lib="1"), ran(python, bindings, lib="1"), project) or ""
    )
    for path in (project / "app", Path("/opt/app")):
        assert f"{path}, which lies outside" in (not_run(ran(path, path), ran(path, path), project) or "")
    assert "/opt/new, which lies outside" in (not_run(interpreted, ran(Path("/opt/new"), bindings), project) or "")
    assert "outside" in (
        not_run(ran(project / "env/python", bindings), ran(project / "env/python", bindings), project) or ""
    )


@needs_mpi
@needs_make
@pytest.mark.mpi
def test_ctrl_c_leaves_nothing_behind(heat: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (heat / "heat.c").write_text(BEFORE.replace("usleep(40000)", "usleep(40000000)"))
    code = (
        "import sys; from pathlib import Path; from lapwing.overlap.verify.runs import verify;"
        "from lapwing.overlap.report.outcome import FileChange; p = Path('heat.c');"
        "verify(sys.argv[1], [FileChange(p, p.read_bytes(), p.read_bytes() + b'\\n')], [p])"
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [sys.executable, "-c", code, command()],
            cwd=heat,
            env={**os.environ, "TMPDIR": str(temporary)},
            stderr=subprocess.DEVNULL,
            process_group=0,
            # Ctrl-C works in a run that nohup started, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:
            deadline = time.monotonic() + LIMIT
            while not _running_in(str(temporary), "./heat") and time.monotonic() < deadline:
                time.sleep(0.05)
            os.killpg(process.pid, number)
            process.wait(LIMIT)
        assert process.returncode != 0
        assert not _running_in(str(temporary))
        assert os.listdir(temporary) == []


def _running_in(part: str, program: str = "") -> list[str]:
    """Command lines of processes whose current folder has ``part`` in its path."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and part in os.readlink(entry / "cwd"):
                words = (entry / "cmdline").read_text().replace("\0", " ")
                if words.startswith(program):
                    found.append(words)
        except OSError:
            continue
    return found
