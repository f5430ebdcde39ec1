"""Code that is not the program's own: libraries, MPI's headers, files with errors, and procedures without source."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from _building import write
from limits import scaled

from lapwing.overlap.dataflow.call_graph import CallGraph
from lapwing.overlap.ir.statements import Opaque
from lapwing.overlap.languages.c.reading import read_c, read_c_text, stub, trial, units
from lapwing.overlap.pipeline import rewrite
from lapwing.overlap.report.outcome import Options
from lapwing.overlap.report.text import report_text, summary_lines

CALLS = """\
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>
static void add(void *a, void *b, int *n, MPI_Datatype *t) { MPI_Barrier(MPI_COMM_WORLD); }
void (*kept)(void *, void *, int *, MPI_Datatype *) = add;
static void bye(void) {}
void asks(char *name) { nice(1); }
void other(char *name) { nobodys(name); }
"""


def test_what_the_system_declares_calls_nothing_back() -> None:
    graph = CallGraph.of(read_c_text(CALLS))
    (add,) = graph.address_taken
    assert graph.callees("asks") == frozenset()
    assert graph.callees("other") == {add}


def test_but_what_it_was_given() -> None:
    graph = CallGraph.of(read_c_text(CALLS + "void first(void) { atexit(bye); }\n"))
    assert graph.callees("asks") == graph.address_taken
    assert len(graph.address_taken) == 2


def test_mpis_headers_are_the_systems_in_any_folder(tmp_path: Path) -> None:
    (tmp_path / "mpi.h").write_text(f'{stub.header()}#include "more.h"\n')
    (tmp_path / "more.h").write_text("#define MORE MPI_ANY_SOURCE\nstatic inline int of_mpis(void) { return 0; }\n")
    program = read_c_text("#include <mpi.h>\nvoid f(void) { MPI_Barrier(MPI_COMM_WORLD); }\n", include_dirs=[tmp_path])
    assert program.included == ()
    assert list(program.procedures) == ["f"]


def test_a_file_that_libclang_does_not_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "survives", lambda _: False)
    program = read_c_text("int f(unknown_t a) { return a; }\nvoid g(void) { MPI_Barrier(0); }\n")
    assert any("does not survive" in problem.message for problem in program.problems)
    assert isinstance(program.procedures["g"].body.statements[0], Opaque)
    # Without errors there is nothing to try.
    assert not read_c_text("void g(void) {}\n").problems


def test_a_process_that_dies_is_replaced() -> None:
    reader = trial._Reader()
    try:
        assert not reader.survives(b"what kills it\n")
        request = (
            b'{"path": "a.c", "include_dirs": [], "defines": {}, "undefines": [], "command": null, "text": "int f("}\n'
        )
        assert reader.survives(request)
    finally:
        reader.end()


def test_a_process_does_not_outlive_the_one_that_started_it() -> None:
    """Not even where its input stays open: a fork of the parent's holds it, too."""
    code = (
        "import os, signal, sys, time; from lapwing.overlap.languages.c.reading import trial; reader = trial._Reader();"
        "assert reader.survives(sys.argv[1].encode() + b'\\n'); fork = os.fork();"
        "fork or (os.close(1), time.sleep(float(sys.argv[2])), os._exit(0));"
        "print(reader._process.pid, fork, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    request = json.dumps(asdict(trial.Trial("a.c", (), {}, (), None, "int f(")))
    limit = scaled(30)
    done = subprocess.run([sys.executable, "-c", code, request, str(limit)], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    reader, fork = map(int, done.stdout.split())
    try:
        deadline = time.monotonic() + limit
        while _runs(reader) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert _runs(fork)
        assert not _runs(reader)
    finally:
        os.kill(fork, signal.SIGKILL)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


CYCLE = """\
extern double grid[200][200], in[40000];
void exchange(void);
double cycle(int n)
{
    double sum = 0;
    exchange();
    for (int k = 0; k < n; k++)
        for (int i = 1; i < n; i++)
            for (int j = 1; j < n; j++) grid[i][j] = 0.5 * grid[i][j] + 0.25 * grid[i - 1][j];
    for (int i = 0; i < n; i++) sum += in[i];
    return sum;
}
"""
EXCHANGE = """\
#include <mpi.h>
double grid[200][200], in[40000], out[40000];
double cycle(int n);
void exchange(void)
{
    MPI_Sendrecv(out, 40000, MPI_DOUBLE, 0, 0, in, 40000, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    cycle(199);
    MPI_Finalize();
    return 0;
}
"""


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_a_file_without_mpi_calls_what_another_has(suffix: str, tmp_path: Path) -> None:
    paths = write({f"cycle.{suffix}": CYCLE, f"a.{suffix}": EXCHANGE}, tmp_path / "sources")
    changes = {change.path.stem: change.after.decode() for change in rewrite(read_c(paths), Options()).changes}
    assert "lapwing_a_progress();" in changes["cycle"]
    assert "MPI" not in changes["cycle"]


def test_the_first_line_names_what_has_no_source() -> None:
    program = read_c_text(
        "#include <mpi.h>\nvoid f(int n) { tune(n); MPI_Barrier(MPI_COMM_WORLD); tune(1); solve(n); }\n"
    )
    outcome = rewrite(program, Options())
    assert summary_lines(outcome)[0] == "Called without source, and so taken to do anything: tune, solve."
    assert report_text(outcome, Path()).startswith("Called without source")


def test_what_is_inserted_is_indented_as_its_file() -> None:
    text = EXCHANGE.replace("    ", "\t") + CYCLE.replace("    ", "\t").split(";\n", 2)[2]
    (change,) = rewrite(read_c_text(text), Options()).changes
    added = set(change.after.decode().splitlines()) - set(text.splitlines())
    assert any(line.startswith("\t") for line in added)
    assert not [line for line in added if line.startswith("  ") and not line.strip().startswith(("int", "lw_"))]
