"""The harness sees wrong rewrites: programs broken on purpose must not pass for equal."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _building import write
from _programs import random_program
from _running import PLAIN, SLOWLY, STRICTLY, Reference, first_difference, required
from everyday import everyday
from limits import scaled

pytestmark = pytest.mark.mpi
DEADLOCKED = scaled(3)  # seconds after which a run that has not ended is taken for one that never will

C = """\
#include <mpi.h>
#include <stdio.h>
#define N 2000

static double out[N], in[N], other[N], line[N];
static int counts[4], starts[4], give[16], take[16];

int main(int argc, char **argv) {
  int rank, size, i, step, total = 0, sum = 0;
  MPI_Request request, second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size, prev = (rank + size - 1) % size;
  for (i = 0; i < N; i++) line[i] = i * 0.01 + rank;
  for (step = 1; step <= 3; step++) {
    for (i = 0; i < N; i++) line[i] += 0.125 * in[i];
    MPI_Irecv(in, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, &request);
    for (i = 0; i < N; i++) out[i] = line[i] + step;
    MPI_Isend(out, N - rank, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &second);
    for (i = 0; i < N; i++) other[i] = 0.5 * line[i];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) line[i] = 0.5 * in[i] + other[i];
    MPI_Wait(&second, MPI_STATUS_IGNORE);
    for (i = 0; i < N; i++) out[i] = -1.0;
    total += step * (rank + 1);
    MPI_Iallreduce(&total, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    for (i = 0; i < N; i++) other[i] += 1.0;
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* sum */
    line[0] += sum;
    for (i = 0; i < size; i++) counts[i] = 1 + i % 2, starts[i] = 3 * i, give[i] = rank + step;
    MPI_Iallgatherv(give, 1 + rank % 2, MPI_INT, take, counts, starts, MPI_INT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* take */
    for (i = 0; i < size; i++) counts[i] = 0;
    MPI_Bcast(other, N, MPI_DOUBLE, step % size, MPI_COMM_WORLD);
    if (rank % 2) MPI_Recv(in, N, MPI_DOUBLE, prev, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(line, N, MPI_DOUBLE, next, 2, MPI_COMM_WORLD);
    if (rank % 2 == 0) MPI_Recv(in, N, MPI_DOUBLE, prev, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (i = 0; i < N; i += 97) printf("%a %a %a %a\\n", line[i], in[i], out[i], other[i]);
  printf("%a\\n", line[N - 1]);
  for (i = 0; i < 16; i++) printf("%d\\n", take[i]);
  MPI_Finalize();
  return 0;
}
"""

F08 = """\
program ring
  use mpi_f08
  implicit none
  integer, parameter :: n = 2000
  double precision :: out(n), in(n), line(n)
  integer :: rank, size, next, prev, step
  type(MPI_Request) :: request, second
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  next = mod(rank + 1, size)
  prev = mod(rank + size - 1, size)
  line = rank + 0.25d0
  in = 0
  do step = 1, 3
    call MPI_Irecv(in, n, MPI_DOUBLE_PRECISION, prev, 1, MPI_COMM_WORLD, request)
    out = line + step
    call MPI_Isend(out, n - rank, MPI_DOUBLE_PRECISION, next, 1, MPI_COMM_WORLD, second)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    line = 0.5d0 * in + 0.25d0 * line
    call MPI_Wait(second, MPI_STATUS_IGNORE)
    out = -1
    call MPI_Bcast(line, n, MPI_DOUBLE_PRECISION, mod(step, size), MPI_COMM_WORLD)
  end do
  print *, sum(line), sum(in), sum(out), in(n)
  call MPI_Finalize()
end program ring
"""

MPIF = (
    F08.replace("use mpi_f08", "use mpi")
    .replace("MPI_STATUS_IGNORE)", "MPI_STATUS_IGNORE, error)")
    .replace("request)", "request, error)")
    .replace("second)\n", "second, error)\n")
    .replace("MPI_COMM_WORLD)", "MPI_COMM_WORLD, error)")
    .replace("rank)", "rank, error)")
    .replace(", size)\n  next", ", size, error)\n  next")
    .replace("MPI_Init()", "MPI_Init(error)")
    .replace("MPI_Finalize()", "MPI_Finalize(error)")
    .replace("type(MPI_Request) ::", "integer :: error,")
)

WAIT = "    MPI_Wait(&request, MPI_STATUS_IGNORE);\n"
SECOND = "    MPI_Wait(&second, MPI_STATUS_IGNORE);\n"
USE = "    for (i = 0; i < N; i++) line[i] = 0.5 * in[i] + other[i];\n"
LAST_USE = "    for (i = 0; i < N; i++) line[i] += 0.125 * in[i];\n"
START = "    MPI_Irecv(in, N, MPI_DOUBLE, prev, 1, MPI_COMM_WORLD, &request);\n"
FILL = "    for (i = 0; i < N; i++) out[i] = line[i] + step;\n"
SEND = "    MPI_Isend(out, N - rank, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &second);\n"
REUSE = "    for (i = 0; i < N; i++) out[i] = -1.0;\n"
IN_FORTRAN = "    call MPI_Wait(request, MPI_STATUS_IGNORE)\n"
OUT_FORTRAN = "    call MPI_Wait(second, MPI_STATUS_IGNORE)\n"

# What is wrong: (text that is replaced, its replacement)
WRONG_C = {
    "receive never waited for": (WAIT, ""),
    "send never waited for": (SECOND, ""),
    "receive waited for after its use": (WAIT + USE, USE + WAIT),
    "send waited for after its buffer is used again": (SECOND + REUSE, REUSE + SECOND),
    "receive started before its buffer's last use": (
        LAST_USE + START,
        START + LAST_USE,
    ),
    "send started before its buffer is complete": (FILL + SEND, SEND + FILL),
    "reduction waited for after its result is used": (
        "    MPI_Wait(&request, MPI_STATUS_IGNORE); /* sum */\n    line[0] += sum;\n",
        "    line[0] += sum;\n    MPI_Wait(&request, MPI_STATUS_IGNORE);\n",
    ),
    "contribution changed while it is reduced": (
        "    for (i = 0; i < N; i++) other[i] += 1.0;\n",
        "    for (i = 0; i < N; i++) other[i] += 1.0;\n    total += 1;\n",
    ),
    "counts changed while they are in use": (
        "    MPI_Wait(&request, MPI_STATUS_IGNORE); /* take */\n    for (i = 0; i < size; i++) counts[i] = 0;\n",
        "    for (i = 0; i < size; i++) counts[i] = 0;\n    MPI_Wait(&request, MPI_STATUS_IGNORE);\n",
    ),
    "request used again too early": ("MPI_COMM_WORLD, &second);", "MPI_COMM_WORLD, &request);"),
    "broadcast blocking on one rank, nonblocking on the others": (
        "    MPI_Bcast(other, N, MPI_DOUBLE, step % size, MPI_COMM_WORLD);\n",
        "    if (rank == 0) MPI_Bcast(other, N, MPI_DOUBLE, step % size, MPI_COMM_WORLD);\n"
        "    else {\n      MPI_Ibcast(other, N, MPI_DOUBLE, step % size, MPI_COMM_WORLD, &request);\n"
        "      MPI_Wait(&request, MPI_STATUS_IGNORE);\n    }\n",
    ),
    "sent before it is received everywhere": ("    if (rank % 2) MPI_Recv(in", "    if (rank > 90) MPI_Recv(in"),
    "nonblocking send never completed": (
        "    MPI_Send(line, N, MPI_DOUBLE, next, 2, MPI_COMM_WORLD);\n",
        "    MPI_Isend(line, N, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, &second);\n",
    ),
    "old contents of the buffer lost": ("    MPI_Irecv(in,", "    in[N - 1] = 1.0;\n    MPI_Irecv(in,"),
    "messages of one tag swapped": ("MPI_Irecv(in, N, MPI_DOUBLE, prev, 1", "MPI_Irecv(in, N, MPI_DOUBLE, prev, 2"),
    "name that does not exist": (WAIT, "    MPI_Wait(&requset, MPI_STATUS_IGNORE);\n"),
}
WRONG_FORTRAN = {
    "receive never waited for": (IN_FORTRAN, ""),
    "send never waited for": (OUT_FORTRAN, ""),
    "receive waited for after its use": (
        IN_FORTRAN + "    line = 0.5d0 * in + 0.25d0 * line\n",
        "    line = 0.5d0 * in + 0.25d0 * line\n" + IN_FORTRAN,
    ),
    "send waited for after its buffer is used again": (OUT_FORTRAN + "    out = -1\n", "    out = -1\n" + OUT_FORTRAN),
    "name that does not exist": ("call MPI_Bcast", "call MPI_Bcats"),
}
# What shows in no other way is waited for, and ranks that wait keep all cores busy: one such case is enough every day.
DEADLOCKS = ("broadcast blocking on one rank, nonblocking on the others", "messages of one tag swapped")
WRONG_EVERYDAY = [name for name in WRONG_C if name not in DEADLOCKS][::2]
SHOWN_IN_FORTRAN = ("receive waited for after its use", "send never waited for", "name that does not exist")
CASES = [
    *(pytest.param("c", name, marks=() if name in WRONG_EVERYDAY else pytest.mark.long) for name in WRONG_C),
    *(pytest.param("mpi", name, marks=() if name in SHOWN_IN_FORTRAN else pytest.mark.long) for name in WRONG_FORTRAN),
    # Its modules take long to compile.
    *(pytest.param("mpi_f08", name, marks=pytest.mark.long) for name in WRONG_FORTRAN),
]


def right_program(form: str) -> tuple[str, str]:
    """Its file's name and its text."""
    if form == "c":
        return "ring.c", C
    return "ring.f90", F08 if form == "mpi_f08" else MPIF


def broken(form: str, name: str) -> str:
    _, text = right_program(form)
    old, new = (WRONG_C if form == "c" else WRONG_FORTRAN)[name]
    if form == "mpi":
        old, new = (part.replace("MPI_STATUS_IGNORE)", "MPI_STATUS_IGNORE, error)") for part in (old, new))
    assert text.count(old) == 1, f"{old!r} must stand once in the program"
    return text.replace(old, new)


def needs(form: str) -> None:
    language = "c" if form == "c" else "fortran"
    required(language)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    """The right program of a form, built once for all that is held against it."""

    @functools.cache
    def reference(form: str) -> Reference:
        needs(form)
        file, text = right_program(form)
        directory = tmp_path_factory.mktemp(form)
        return Reference(write({file: text}, directory / "right"))

    return reference


@pytest.mark.parametrize(("form", "name"), CASES)
def test_wrong_rewrite_is_seen(form: str, name: str, right: Callable[[str], Reference], tmp_path: Path) -> None:
    original = right(form)
    file, _ = right_program(form)
    wrong = write({file: broken(form, name)}, tmp_path / "wrong")
    assert original.differences(wrong, ranks=(2,), schedules=(STRICTLY,), seconds=DEADLOCKED)


@pytest.mark.parametrize("form", everyday(["c", "mpi", "mpi_f08"], ["c", "mpi"]))
def test_right_program_passes(form: str, right: Callable[[str], Reference], tmp_path: Path, thorough: bool) -> None:
    original = right(form)
    file, text = right_program(form)
    for schedule in (PLAIN, STRICTLY, SLOWLY):
        for ranks in (2, 3) if thorough else (2,):
            outcome = original.outcome(ranks, schedule)
            assert outcome.ended_well, outcome.failure()
            assert first_difference(original.outcome(ranks, PLAIN), outcome) is None
    harmless = text.replace("step = 1", "step =  1")
    assert harmless != text
    assert original.differences(write({file: harmless}, tmp_path / "same"), ranks=(2,)) == []


def without_one_wait(text: str) -> Iterator[str]:
    """The program without one of its waits, each in turn."""
    for match in re.finditer(r"^.*?((call )?MPI_Wait(all)?\(.*\);?)$", text, re.MULTILINE):
        start, end = match.span(1)
        yield text[:start] + (";" if match[1].endswith(";") else "continue") + text[end:]


@pytest.mark.parametrize("form", everyday(["c", "fixed", "flat", "mpi", "mpi_f08"], ["c"]))
def test_missing_waits_of_a_random_program_are_seen(form: str, tmp_path: Path) -> None:
    needs(form)
    programs = (random_program(seed, form) for seed in range(3, 40))
    program, wrongs = next((p, w) for p in programs if len(w := list(without_one_wait(p.main))) > 1)
    original = Reference(write(program.files, tmp_path / "right"))
    name = original.sources[0].name
    for number, wrong in enumerate(wrongs[:2]):
        changed = write({**program.files, name: wrong}, tmp_path / f"wrong{number}")
        assert original.differences(changed, ranks=(2,), schedules=(STRICTLY,), seconds=DEADLOCKED), (
            f"wait {number} of {form}"
        )
