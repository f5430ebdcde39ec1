"""The minimal region from producer to consumer (P2, figure 4), in one procedure, across procedures and around loops."""

from __future__ import annotations

import pytest
from _surveyed import ACROSS, FIGURE_1, PIPELINE, Surveyed

pytestmark = pytest.mark.usefixtures("own_header")


def test_figure_1() -> None:
    program = Surveyed(FIGURE_1)
    assert program.producers("MPI_SEND") == [program.line("dum(1, j) =")]
    assert program.consumers("MPI_RECV") == [program.line("= dum(1, jst)")]
    assert program.stretch("MPI_SEND", backward=True).loops == 0
    assert program.stretch("MPI_RECV", backward=False).loops == 1
    # What was sent is only read afterwards: nothing waits for the send.
    assert program.consumers("MPI_SEND") == []


def test_a_send_waits_for_nobody_but_the_next_writer() -> None:
    program = Surveyed(
        """\
void f(double *u, double *v, int n, MPI_Comm comm);
#include <mpi.h>
void f(double *u, double *v, int n, MPI_Comm comm)
{
  for (int i = 0; i < n; i++)
    u[i] = i;
  for (int i = 0; i < n; i++)
    v[i] = i;
  MPI_Send(u, n, MPI_DOUBLE, 1, 0, comm);
  for (int i = 0; i < n; i++)
    v[i] += u[i];
  u[0] = 1;
}
""",
        "a.c",
    )
    writer, last = program.where("u[i] = i", "u[0] = 1")
    # u and v may be the same array.
    assert program.producers("MPI_Send")[-1] == writer
    assert program.consumers("MPI_Send")[-1] == last


ARRAYS = """\
#include <mpi.h>
static double u[100], v[100];
void f(int n, MPI_Comm comm)
{
BODY
}
"""


def c(body: str, head: str = "") -> Surveyed:
    return Surveyed(ARRAYS.replace("BODY", body).replace("void f", f"{head}\nvoid f"), "a.c")


def test_every_path_has_its_own_nearest_statement() -> None:
    program = c(
        """  u[0] = 1;
  if (n > 3)
    u[1] = 2;
  else if (n > 2)
    v[1] = 3;
  else
    u[2] = 4;
  MPI_Send(u, n, MPI_DOUBLE, 1, 0, comm);"""
    )
    assert set(program.producers("MPI_Send")) == set(program.where("u[1] = 2", "u[2] = 4", "u[0] = 1"))


def test_a_loop_that_may_take_no_iteration_is_passed_at_a_price() -> None:
    program = c(
        """  u[0] = 1;
  for (int i = 0; i < n; i++)
    u[i] = 2;
  MPI_Send(u, n, MPI_DOUBLE, 1, 0, comm);"""
    )
    assert program.producers("MPI_Send") == program.where("u[i] = 2", "u[0] = 1")


def test_conditions_that_stay_the_same_are_followed() -> None:
    body = """  if (n > 0)
    MPI_Recv(u, n, MPI_DOUBLE, 1, 0, comm, MPI_STATUS_IGNORE);
CHANGE
  if (n > 0)
    v[0] = u[0];
  v[1] = u[1];"""
    assert c(body.replace("CHANGE", "")).consumers("MPI_Recv") == [c(body).line("v[0] = u[0]") - 0]
    changed = c(body.replace("CHANGE", "  n--;"))
    assert set(changed.consumers("MPI_Recv")) == set(changed.where("v[0] = u[0]", "v[1] = u[1]"))


def test_producers_and_consumers_of_other_iterations() -> None:
    program = Surveyed(PIPELINE, "a.c")
    assert program.producers("MPI_Sendrecv") == program.where("u[t] = v[t]", "u[0] = 0")
    assert program.consumers("MPI_Sendrecv") == program.where("u[t] = v[t]")


def test_the_consumer_stands_earlier_in_the_next_iteration() -> None:
    program = Surveyed(PIPELINE.replace("    u[t] = v[t];\n", "    v[0] += v[t];\n"), "a.c")
    assert program.consumers("MPI_Sendrecv")[0] == program.line("v[t] = u[3]")
    stretch = program.stretch("MPI_Sendrecv", backward=False)
    assert [program.program.sources[0].line_of(loop.span.start) for loop in stretch.around] == [6]
    assert stretch.loops == 1


def test_producers_and_consumers_in_other_procedures() -> None:
    program = Surveyed(ACROSS)
    assert program.producers("MPI_BCAST") == [program.line("a(i) = i")]
    assert program.consumers("MPI_BCAST") == [program.line("s = s + b(i)")]
    before = program.stretch("MPI_BCAST", backward=True)
    after = program.stretch("MPI_BCAST", backward=False)
    assert before.crossings == after.crossings == 2
    assert before.calls == 1  # fill(w, n)
    assert after.calls == 2  # other(n) and use_it(w, n)


def test_a_module_variable_is_found_where_it_is_named() -> None:
    program = Surveyed(ACROSS.replace("call send(x, n)", "call send(w, n)"))
    assert program.consumers("MPI_BCAST")[0] == program.line("w(i) = i")


def test_the_next_call_of_the_same_procedure_is_a_consumer() -> None:
    program = Surveyed(
        """\
subroutine exchange(g, n)
  use mpi
  integer n, ierr
  double precision g(n)
  double precision, save :: buffer(100)
  buffer(1:n) = g
  call MPI_SEND(buffer, n, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, ierr)
end subroutine
program main
  double precision g(100)
  integer step
  g = 0
  do step = 1, 10
    call exchange(g, 100)
  end do
end program
"""
    )
    assert program.consumers("MPI_SEND") == [program.line("buffer(1:n) = g")]
    around = program.stretch("MPI_SEND", backward=False).around
    assert [program.program.sources[0].line_of(loop.span.start) for loop in around] == [program.line("do step")]


def test_a_local_array_dies_with_its_procedure() -> None:
    program = Surveyed(
        ACROSS.replace("  double precision c(n)\n", "  double precision c(n), d(100)\n").replace("(c, n, M", "(d, n, M")
    )
    region = program.region("MPI_BCAST")
    assert region.consumers.stops == ()
    assert region.consumers.end == "what it communicates does not outlive send"


WAITS = """  MPI_Request r[2];
  MPI_Irecv(v, n, MPI_DOUBLE, 1, 0, comm, &r[0]);
  MPI_Isend(u, n, MPI_DOUBLE, 1, 0, comm, &r[1]);
  for (int i = 0; i < n; i++)
    n = n * 2;
  MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
  for (int i = 0; i < n; i++)
    n = n * 3;
  v[0] += 1;
  u[0] += 1;"""


def test_a_wait_lies_between_the_start_and_the_use() -> None:
    program = c(WAITS)
    assert program.consumers("MPI_Irecv") == [program.line("v[0] += 1")]
    assert program.consumers("MPI_Isend") == [program.line("u[0] += 1")]
    assert program.producers("MPI_Waitall")[0] == program.line("MPI_Isend")
    assert program.consumers("MPI_Waitall") == [program.line("v[0] += 1")]
    assert program.stretch("MPI_Irecv", backward=False).loops == 2


def test_what_a_wait_brought_is_produced_by_the_wait() -> None:
    program = c(WAITS + "\n  MPI_Bcast(v, n, MPI_DOUBLE, 0, comm);".replace("v[0]", "w[0]"))
    assert program.producers("MPI_Bcast") == [program.line("v[0] += 1")]
    program = c(WAITS.replace("  v[0] += 1;\n", "") + "\n  MPI_Bcast(v, n, MPI_DOUBLE, 0, comm);")
    assert program.producers("MPI_Bcast")[0] == program.line("MPI_Waitall")


def test_start_and_wait_in_different_procedures() -> None:
    program = c(
        "  start(n, comm);\n  v[1] = 1;\n  finish();\n  v[0] = u[0];",
        """static MPI_Request request;
static void start(int n, MPI_Comm comm)
{
  MPI_Irecv(u, n, MPI_DOUBLE, 1, 0, comm, &request);
}
static void finish(void)
{
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
""",
    )
    assert program.producers("MPI_Wait") == [program.line("MPI_Irecv")]
    assert program.consumers("MPI_Irecv") == [program.line("v[0] = u[0]")]
    assert program.stretch("MPI_Wait", backward=True).crossings == 2


def test_a_request_and_a_buffer_that_are_arguments() -> None:
    program = Surveyed(
        """\
subroutine start(a, n, request)
  use mpi
  integer n, request, ierr
  double precision a(n)
  call MPI_IRECV(a, n, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD, request, ierr)
end subroutine
subroutine finish(handle)
  use mpi
  integer handle, ierr
  call MPI_WAIT(handle, MPI_STATUS_IGNORE, ierr)
end subroutine
program main
  double precision x(10), y(10)
  integer r
  call start(x, 10, r)
  y = 2
  call finish(r)
  y(2) = y(1)
  y(1) = x(1)
end program
"""
    )
    assert program.producers("MPI_WAIT") == [program.line("MPI_IRECV")]
    assert program.consumers("MPI_WAIT") == program.consumers("MPI_IRECV") == [program.line("y(1) = x(1)")]


def test_persistent_requests_are_started_again() -> None:
    program = c(
        """  MPI_Request r;
  MPI_Recv_init(u, n, MPI_DOUBLE, 1, 0, comm, &r);
  for (int t = 0; t < n; t++) {
    MPI_Start(&r);
    v[t] = 0;
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    v[t] += u[t];
  }"""
    )
    assert program.producers("MPI_Wait")[0] == program.line("MPI_Start")
    assert program.consumers("MPI_Start") == [program.line("v[t] += u[t]")]


def test_a_pointer_is_what_it_may_point_to() -> None:
    program = c(
        """  double *p = n > 3 ? u : v;
  p[0] = 1;
  MPI_Send(u, n, MPI_DOUBLE, 1, 0, comm);"""
    )
    assert program.producers("MPI_Send") == [program.line("p[0] = 1")]


def test_what_could_not_be_read_may_access_everything() -> None:
    program = c(
        """  u[0] = 1;
  asm("nop");
  MPI_Send(u, n, MPI_DOUBLE, 1, 0, comm);"""
    )
    assert program.producers("MPI_Send") == [program.line("asm")]


def test_a_function_in_no_source_does_not_reach_a_static_array() -> None:
    body = "  u[0] = 1;\n  helper(n);\n  MPI_Send({}, n, MPI_DOUBLE, 1, 0, comm);"
    assert c(body.format("u"), "void helper(int);").producers("MPI_Send") == [c(body).line("u[0] = 1")]
    shared = c(body.replace("u[0]", "shared[0]").format("shared"), "extern double shared[100];\nvoid helper(int);")
    assert shared.producers("MPI_Send") == [shared.line("helper(n);")]


def test_parts_of_one_array_are_told_apart_between_calls() -> None:
    program = c(
        """  u[1] = 1;
  MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, 1, 0, &u[0], 1, MPI_DOUBLE, 1, 0, comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&u[n - 2], 1, MPI_DOUBLE, 1, 1, &u[n - 1], 1, MPI_DOUBLE, 1, 1, comm, MPI_STATUS_IGNORE);
  v[0] = u[0];"""
    )
    assert program.producers("&u[n - 2]") == [program.line("u[1] = 1")]
    assert program.consumers("&u[1]") == [program.line("v[0] = u[0]")]


@pytest.mark.parametrize("call", ["MPI_Barrier(comm);", "MPI_Probe(1, 0, comm, MPI_STATUS_IGNORE);"])
def test_calls_without_data_have_no_region(call: str) -> None:
    program = c(f"  u[0] = 1;\n  {call}\n  v[0] = u[0];")
    assert program.producers(call) == program.consumers(call) == []


def test_recursion_ends() -> None:
    program = Surveyed(
        """\
recursive subroutine halve(a, n)
  use mpi
  integer n, ierr
  double precision a(n)
  if (n > 1) call halve(a, n / 2)
  call MPI_BCAST(a, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
end subroutine
"""
    )
    assert program.consumers("MPI_BCAST") == [program.line("MPI_BCAST")]
