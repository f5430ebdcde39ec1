"""Which calls may be at the other end: possible unless proved impossible."""

from __future__ import annotations

import pytest
from _surveyed import Surveyed

pytestmark = pytest.mark.usefixtures("own_header")

C = """\
#include <mpi.h>
#define N 100
static double a[N], b[N];
int main(int argc, char **argv)
{
  int rank, size, tag = 7, left, right;
  MPI_Comm own, split;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &split);
  left = rank - 1;
  right = rank + 1;
  if (size < 2) tag = 8;
  BODY
  MPI_Finalize();
  return 0;
}
"""
SEND = "MPI_Send({buffer}, {count}, {type}, {to}, {tag}, {comm});"
RECV = "MPI_Recv({buffer}, {count}, {type}, {of}, {tag}, {comm}, MPI_STATUS_IGNORE);"
PLAIN = {"buffer": "a", "count": "N", "type": "MPI_DOUBLE", "to": "1", "of": "0", "tag": "5", "comm": "MPI_COMM_WORLD"}


def pair(send: dict[str, str], receive: dict[str, str], before: str = "", between: str = "", after: str = "") -> bool:
    """Whether a send and a receive that differ from PLAIN like this may match."""
    one = SEND.format(**(PLAIN | send))
    two = RECV.format(**(PLAIN | {"buffer": "b"} | receive))
    program = Surveyed(C.replace("BODY", f"{before}\n  {one}\n  {between}\n  {two}\n  {after}"), "a.c")
    sends, receives = program.line("MPI_Send("), program.line("MPI_Recv(")
    matches = program.matches("MPI_Send(")
    assert program.matches("MPI_Recv(") == ([sends] if matches else [])
    assert matches in ([], [receives])
    return bool(matches)


def test_a_send_matches_a_receive() -> None:
    assert pair({}, {})


@pytest.mark.parametrize(
    ("send", "receive"),
    [
        ({"tag": "5"}, {"tag": "6"}),
        ({"tag": "tag"}, {"tag": "6"}),  # 7 or 8
        ({"comm": "MPI_COMM_WORLD"}, {"comm": "MPI_COMM_SELF"}),
        ({"comm": "own"}, {"comm": "MPI_COMM_WORLD"}),
        ({"comm": "own"}, {"comm": "split"}),
        ({"type": "MPI_DOUBLE"}, {"type": "MPI_INT"}),
        ({"to": "MPI_PROC_NULL"}, {}),
        ({}, {"of": "MPI_PROC_NULL"}),
        ({"to": "right"}, {"of": "right"}),
        ({"to": "rank + 1"}, {"of": "rank - 2"}),
    ],
)
def test_what_is_certainly_different_does_not_match(send: dict[str, str], receive: dict[str, str]) -> None:
    assert not pair(send, receive)


@pytest.mark.parametrize(
    ("send", "receive"),
    [
        ({"tag": "tag"}, {"tag": "8"}),
        ({"tag": "rank"}, {"tag": "6"}),
        ({"tag": "6"}, {"tag": "MPI_ANY_TAG"}),
        ({"to": "3"}, {"of": "MPI_ANY_SOURCE"}),
        ({"to": "3"}, {"of": "4"}),  # who is who is not said
        ({"comm": "own"}, {"comm": "own"}),
        ({"type": "MPI_BYTE"}, {"type": "MPI_DOUBLE"}),
        ({"type": "MPI_UNSIGNED"}, {"type": "MPI_INT"}),
        ({"to": "right"}, {"of": "left"}),
        ({"to": "right"}, {"of": "(rank + size - 1) % size"}),
        ({"to": "right", "comm": "own"}, {"of": "right", "comm": "own"}),  # ranks there are not followed
    ],
)
def test_what_may_be_the_same_matches(send: dict[str, str], receive: dict[str, str]) -> None:
    assert pair(send, receive)


def test_the_rank_that_a_condition_names_is_the_peer() -> None:
    branches = {"before": "if (rank == 0) {", "between": "} else if (rank == 1) {", "after": "}"}
    assert pair({"to": "1"}, {"of": "0"}, **branches)
    assert not pair({"to": "2"}, {"of": "0"}, **branches)
    assert not pair({"to": "1"}, {"of": "3"}, **branches)
    assert pair({"to": "1", "comm": "split"}, {"of": "3", "comm": "split"}, **branches)


def test_a_variable_whose_address_is_handed_out_may_be_anything() -> None:
    assert not pair({"tag": "tag"}, {"tag": "6"})
    assert pair({"tag": "tag"}, {"tag": "6"}, before="change(&tag);")


def test_a_variable_that_is_counted_up_may_be_anything() -> None:
    assert pair({"tag": "tag"}, {"tag": "6"}, before="tag++;")
    assert pair({"tag": "tag"}, {"tag": "6"}, before="if (tag-- > 0) tag = 7;")
    assert pair({"tag": "tag"}, {"tag": "6"}, before="tag = tag + 1;")
    assert pair({"tag": "tag"}, {"tag": "6"}, before="int next = tag + 1; tag = next;")
    assert not pair({"tag": "tag"}, {"tag": "6"}, before="int next = tag; tag = next; tag = 4 + 5;")


@pytest.mark.parametrize(
    ("declaration", "may"),
    [
        ("static int kept = 4;", False),
        ("static int kept;", False),
        ("static int kept = 6;", True),
        ("int kept;", False),
    ],
)
def test_variables_of_the_file_begin_with_what_is_written_there(declaration: str, may: bool) -> None:
    text = C.replace("static double", f"{declaration}\nstatic double").replace(
        "BODY",
        """if (rank > 1) kept = 5;
  MPI_Send(a, N, MPI_DOUBLE, 1, kept, own);
  MPI_Recv(b, N, MPI_DOUBLE, 1, 6, own, MPI_STATUS_IGNORE);
  MPI_Recv(b, N, MPI_DOUBLE, 1, 5, own, MPI_STATUS_IGNORE);""",
    )
    program = Surveyed(text, "a.c")
    six, five = program.where("DOUBLE, 1, 6", "DOUBLE, 1, 5")
    assert program.matches("MPI_Send(") == ([six, five] if may else [five])


def test_a_sendrecv_is_a_send_and_a_receive() -> None:
    program = Surveyed(
        C.replace(
            "BODY",
            """MPI_Sendrecv(a, N, MPI_DOUBLE, right, 1,
    b, N, MPI_DOUBLE, left, 1, own, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(a, N, MPI_DOUBLE, right, 2, left, 2, own, MPI_STATUS_IGNORE);
  MPI_Send(a, N, MPI_DOUBLE, right, 1, own);""",
        ),
        "a.c",
    )
    exchange, replacing, send = program.where("MPI_Sendrecv(", "MPI_Sendrecv_replace(", "MPI_Send(")
    assert program.matches("MPI_Sendrecv(") == [exchange, send]
    assert program.matches("MPI_Sendrecv_replace(") == [replacing]
    assert program.matches("MPI_Send(") == [exchange]


def test_collectives_match_the_same_collective() -> None:
    program = Surveyed(
        C.replace(
            "BODY",
            """if (rank == 0)
    MPI_Bcast(a, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(b, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Bcast(a, N, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Bcast(a, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Bcast(a, N, MPI_DOUBLE, 0, own);
  MPI_Allreduce(a, b, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);""",
        ),
        "a.c",
    )
    one, two = program.line("MPI_Bcast(a, N, MPI_DOUBLE, 0, MPI_COMM_WORLD)"), program.line("MPI_Bcast(b")
    assert program.matches("MPI_Bcast(a, N, MPI_DOUBLE, 0, MPI_COMM_WORLD)") == [two]
    assert program.matches("MPI_Bcast(b") == [one]
    for alone in ("DOUBLE, 1, MPI", "MPI_Bcast(a, 2", "0, own", "MPI_Allreduce(", "MPI_Barrier("):
        assert program.matches(alone) == []


FORTRAN = """\
module data
  use mpi
  integer kind_of, spare
  integer, parameter :: from_south = 1, from_north = 2
end module
subroutine start
  use data
  kind_of = MPI_DOUBLE_PRECISION
  call pick(spare)
end subroutine
subroutine pick(which)
  use data
  integer which
  which = MPI_INTEGER
end subroutine
subroutine one(a, n, peer)
  use data
  integer n, peer, ierr
  double precision a(n)
  call MPI_SEND(a, n, kind_of, peer, from_south, MPI_COMM_WORLD, ierr)
  call MPI_SEND(a, n, spare, peer, from_north, MPI_COMM_WORLD, ierr)
end subroutine
subroutine two(a, n, peer)
  use data
  integer n, peer, ierr, request
  double precision a(n)
  call MPI_IRECV(a, n, MPI_DOUBLE_PRECISION, peer, from_south, MPI_COMM_WORLD, request, ierr)
  call MPI_RECV(a, n, MPI_DOUBLE_PRECISION, peer, from_north, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_RECV(a, n, MPI_INTEGER, peer, from_north, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
end subroutine
program main
  use data
  double precision a(10)
  call start
  call one(a, 10, 1)
  call two(a, 10, 1)
end program
"""


def test_fortran_parameters_and_module_variables_are_followed() -> None:
    # Of the same tags only the type tells one receive from the other.
    program = Surveyed(FORTRAN.replace("from_north = 2", "from_north = 1"))
    irecv, send = program.where("MPI_IRECV", "n, kind_of")
    receive = program.line("call MPI_RECV(a, n, MPI_DOUBLE")
    assert program.matches("n, kind_of") == [irecv, receive]
    assert program.matches("MPI_IRECV") == [send]


def test_what_a_procedure_gives_its_argument_is_followed() -> None:
    program = Surveyed(FORTRAN)
    assert program.matches("n, spare") == [program.line("a, n, MPI_INTEGER")]
    assert program.matches("call MPI_RECV(a, n, MPI_DOUBLE") == []


def test_a_declaration_that_gives_a_value_is_not_followed() -> None:
    program = Surveyed(FORTRAN.replace("integer kind_of, spare", "integer kind_of\n  integer :: spare = 3"))
    receives = program.where("call MPI_RECV(a, n, MPI_DOUBLE", "a, n, MPI_INTEGER")
    assert program.matches("n, spare") == receives


def test_nonblocking_collectives_match_no_blocking_ones() -> None:
    program = Surveyed(
        C.replace(
            "BODY",
            "MPI_Request r;\n  MPI_Ibcast(a, N, MPI_DOUBLE, 0, own, &r);\n  MPI_Bcast(b, N, MPI_DOUBLE, 0, own);",
        ),
        "a.c",
    )
    assert program.matches("MPI_Ibcast") == []
