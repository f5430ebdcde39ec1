"""What the report says of every communication, found or not understood, moved or left."""

from __future__ import annotations

from pathlib import Path

import pytest
from _surveyed import ACROSS, FIGURE_1, PIPELINE, read, surveyed

from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.program import Program
from lapwing.overlap.ir.statements import Call, Statement
from lapwing.overlap.report.outcome import Communication, Options
from lapwing.overlap.transforms.context import Context

pytestmark = pytest.mark.usefixtures("own_header")


def line(text: str, piece: str) -> int:
    return next(number for number, found in enumerate(text.splitlines(), 1) if piece in found)


def of(text: str, piece: str, name: str = "a.f90") -> Communication:
    return surveyed(read(text, name))[line(text, piece)]


def call(program: Program, name: str) -> Statement:
    return next(
        s
        for procedure in program.procedures.values()
        for s in procedure.body.walk()
        if isinstance(s, Call) and (s.name or "").lower() == name.lower()
    )


def test_figure_1_of_p2() -> None:
    send, receive = of(FIGURE_1, "MPI_SEND"), of(FIGURE_1, "MPI_RECV")
    assert (send.call, receive.call, send.procedure) == ("MPI_Send", "MPI_Recv", "exchange")
    assert send.producer is not None
    assert send.producer.text == "dum(1, j) = g(1, nx, j, k)"
    assert send.matches == (receive.place,)
    assert receive.matches == (send.place,)
    assert receive.consumer is not None
    assert receive.consumer.text == "g(1, 1, 1, 1) = dum(1, jst)"
    assert receive.region.startswith("lines 12–17 of a.f90, 1 loop inside")
    assert receive.place.path == Path("a.f90")


def test_a_region_around_a_loop_in_words() -> None:
    text = PIPELINE.replace("    u[t] = v[t];\n", "    v[0] += v[t];\n")
    found = of(text, "MPI_Sendrecv", "a.c")
    assert found.region == "from line 5 to line 7 of a.c, around the loop of line 6, 1 loop inside"


def test_a_region_across_procedures_in_words() -> None:
    found = of(ACROSS, "MPI_BCAST")
    assert found.region == "from line 8 to line 16 of a.f90, 3 working calls inside, across 4 calls"


def test_notes_become_actions_and_refusals_of_their_call() -> None:
    program = read(FIGURE_1, "a.f90")
    context = Context(Analysis(program), Options())
    send, receive = call(program, "MPI_SEND"), call(program, "MPI_RECV")
    context.made(send.span, "nonblocking", "a copy is sent")
    context.refuse(receive.span, "nonblocking", "it is so", "it is not", "make it so", send.span)
    context.refuse(receive.span, "start-earlier", "it is so", "it is not", "")
    found = surveyed(program, context)
    (action,) = found[10].actions
    assert (action.transformation, action.description, action.place) == (
        "nonblocking",
        "a copy is sent",
        found[10].place,
    )
    one, two = found[12].refusals
    assert (one.transformation, one.obligation, one.found, one.advice) == (
        "nonblocking",
        "it is so",
        "it is not",
        "make it so",
    )
    assert one.place == found[10].place
    assert (two.transformation, two.place) == ("start-earlier", None)
    assert found[10].refusals == found[12].actions == ()
    assert found[10].note is found[12].note is None


def test_a_note_about_a_procedures_call_belongs_to_what_communicates_in_it() -> None:
    program = read(ACROSS, "a.f90")
    context = Context(Analysis(program), Options())
    context.made(call(program, "send").span, "start-earlier", "its first half is called before line 36")
    (found,) = surveyed(program, context).values()
    assert [action.place.line for action in found.actions] == [line(ACROSS, "call send(x")]


C = """\
#include <mpi.h>
#define CHECK(call) if ((call) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1)
#define SHARE MPI_Bcast(u, 100, MPI_DOUBLE, 0, MPI_COMM_WORLD)
static double u[100];
void f(int n, MPI_Comm comm)
{
  MPI_Request r;
BODY
}
"""


@pytest.mark.parametrize(
    ("body", "call_name", "note"),
    [
        ("MPI_Barrier(comm);", "MPI_Barrier", "a barrier is there to wait"),
        ("MPI_Probe(0, 0, comm, MPI_STATUS_IGNORE);", "MPI_Probe", "a probe says what there is now"),
        ("CHECK(MPI_Recv(u, n, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));", "MPI_Recv", "a macro writes this block"),
        ("SHARE;", "MPI_Bcast", "the call stands in a macro"),
        ("u[0] = 1; SHARE; u[0] = 2;", "MPI_Bcast", "no computation between producer (line 8) and consumer (line 8)"),
        ("u[0] = 1; SHARE;", "MPI_Bcast", "there only from line 8 on"),
        ('asm("nop" : : "r"(MPI_Barrier(comm))); ', "MPI_Barrier", "could not be read"),
    ],
)
def test_why_nothing_was_tried(body: str, call_name: str, note: str) -> None:
    (found,) = surveyed(read(C.replace("BODY", body), "a.c")).values()
    assert found.call == call_name
    assert found.note is not None
    assert note in found.note


def test_used_at_once() -> None:
    text = C.replace("BODY", "for (int i = 0; i < n; i++) u[i] = i;\nn++;\nSHARE;\nu[0] = 2;").replace("n++", "n = 2")
    found = of(text.replace("for", "u[n] = 0;\nfor").replace("u[i] = i", "n += i"), "SHARE;", "a.c")
    assert found.note is not None
    assert found.note.startswith("used at once by line 12")


def test_iterations_of_the_loop_that_uses_it_may_be_independent() -> None:
    loop = "u[0] = 1;\nSHARE;\nfor (int i = 0; i < n; i++)\n  n += u[i];"
    found = of(C.replace("BODY", loop), "SHARE;", "a.c")
    assert found.note is not None
    assert found.note.startswith(
        "no computation between producer (line 8) and consumer (line 11), but for iterations of the loop of line 10 that may"
    )


def test_what_lies_in_other_procedures_may_be_independent() -> None:
    text = """\
#include <mpi.h>
static double u[100], v[100], w[100];
static void work(const double *p) { for (int i = 0; i < 100; i++) w[i] += p[i]; }
void f(int n, double *mine, double *theirs)
{
  for (int i = 0; i < n; i++) {
    MPI_Sendrecv(mine, 100, MPI_DOUBLE, 1, 0, theirs, 100, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    work(mine);
    double *t = mine; mine = theirs; theirs = t;
  }
}
void g(void) { f(3, u, v); }
"""
    found = of(text, "MPI_Sendrecv", "a.c")
    assert found.note is not None
    assert found.note.startswith(
        "no computation that is known to be independent of it between line 3, which may produce it"
    )


def test_calls_that_could_not_be_read_are_found_by_name() -> None:
    text = C.replace(
        "BODY",
        """#pragma omp parallel
  {
    /* MPI_Send(0) */
    MPI_Recv(u, n, MPI_DOUBLE, 0, 0, comm, MPI_STATUS_IGNORE);
    puts("MPI_Ssend(1)");
    MPI_Comm_rank(comm, &n);
  }""",
    )
    (found,) = surveyed(read(text, "a.c")).values()
    assert (found.call, found.place.line, found.procedure) == ("MPI_Recv", line(text, "MPI_Recv"), "f")
    assert found.note is not None
    assert "could not be read" in found.note


def test_comments_of_fixed_form_are_no_calls() -> None:
    text = """\
      subroutine f(a, n)
      include 'missing.h'
      double precision a(n)
      if (n .gt. 1) then
c     call MPI_SEND(a)
      call MPI_RECV(a, n)
      end
"""
    assert [found.call for found in surveyed(read(text, "a.f")).values()] == ["MPI_Recv"]


def test_calls_through_pointers_are_reported_where_mpi_may_be_meant() -> None:
    text = C.replace("void f(", "typedef int (*sender)(const void *, int, MPI_Datatype, int, int, MPI_Comm);\nvoid f(")
    text = text.replace("BODY", "  sender s = n > 3 ? MPI_Send : MPI_Ssend;\n  s(u, n, MPI_DOUBLE, 0, 0, comm);")
    (found,) = surveyed(read(text, "a.c")).values()
    assert found.place.line == line(text, "s(u, n")
    assert found.note == "a call through a pointer, which may be MPI_Send or MPI_Ssend: left as it is"
    assert surveyed(read(text.replace("MPI_Send :", "0 :").replace("MPI_Ssend", "0"), "a.c")) == {}


def test_many_matches_are_cut_short() -> None:
    body = "\n".join(f"  MPI_Bcast(u, n, MPI_DOUBLE, 0, comm); // {number}" for number in range(15))
    found = of(C.replace("BODY", body), "// 3", "a.c")
    assert len(found.matches) == 10
    assert found.note is not None
    assert found.note.endswith("4 more calls may match")


def test_a_program_without_mpi_and_one_that_is_broken() -> None:
    assert surveyed(read("program p\n  print *, 1\nend program\n", "a.f90")) == {}
    assert surveyed(read("subroutine (((\n  call MPI_\n", "a.f90")) == {}


def test_entries_are_in_the_order_of_the_files() -> None:
    text = C.replace("BODY", "MPI_Barrier(comm);\n#pragma omp parallel\n MPI_Barrier(comm);\n MPI_Barrier(comm);")
    assert list(surveyed(read(text, "a.c"))) == [8, 10, 11]
