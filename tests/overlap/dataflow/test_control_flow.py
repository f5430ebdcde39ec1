"""Control-flow graphs: which statement may follow which."""

from __future__ import annotations

import pytest
from _surveyed import Surveyed, read

from lapwing.overlap.dataflow.control_flow import ENTRY, EXIT, Flow, MessageFlow, Way


class Graph:
    """The flow of a program's first procedure, asked by lines."""

    def __init__(self, text: str, name: str = "a.f90") -> None:
        self.program = read(text, name)
        self.procedure = next(iter(self.program.procedures.values()))
        self.flow = Flow.of(self.procedure)

    def _line(self, number: int) -> int | str:
        if number in (ENTRY, EXIT):
            return "entry" if number == ENTRY else "exit"
        statement = self.flow.nodes[number].statement
        assert statement is not None
        return self.program.sources[0].line_of(statement.span.start)

    def edges(self) -> set[tuple[int | str, int | str]]:
        """Pairs of lines; a loop's nodes all have its line."""
        pairs = ((number, edge.node) for number, edges in enumerate(self.flow.successors) for edge in edges)
        return {(self._line(start), self._line(end)) for start, end in pairs}

    def ways(self, start: int, end: int) -> set[Way]:
        return {
            edge.way
            for number, edges in enumerate(self.flow.successors)
            for edge in edges
            if (self._line(number), self._line(edge.node)) == (start, end)
        }


BRANCHES = """\
subroutine s(a, b)
  integer a, b
  if (a == 1) then
    b = 1
  else if (a == 2) then
    b = 2
  end if
  a = 0
end subroutine
"""


def test_branches_join_after_the_if() -> None:
    graph = Graph(BRANCHES)
    assert graph.edges() == {("entry", 3), (3, 4), (3, 5), (4, 8), (5, 6), (5, 8), (6, 8), (8, "exit")}
    assert graph.ways(3, 4) == {Way.THEN}
    assert graph.ways(5, 8) == {Way.ELSE}


def test_guards_are_the_conditions_of_the_ifs_around() -> None:
    graph = Graph(BRANCHES)
    inner = next(node for node in graph.flow.nodes if node.statement and graph._line(node.number) == 6)
    assert [holds for _, holds in inner.guards] == [False, True]


LOOP = """\
void f(int n, int *a)
{
  for (int i = 0; i < n; i++) {
    if (a[i] < 0)
      continue;
    if (a[i] == 0)
      break;
    a[i] = 1;
  }
  a[0] = 2;
}
"""


def test_a_loop_is_entered_turned_left_and_skipped() -> None:
    graph = Graph(LOOP, "a.c")
    assert {(3, 4), (4, 5), (5, 3), (4, 6), (6, 7), (7, 10), (6, 8), (8, 3), (3, 10)} <= graph.edges()
    assert (5, 6) not in graph.edges()  # continue
    assert (7, 8) not in graph.edges()  # break
    assert graph.ways(3, 3) == {Way.ENTER, Way.BACK}
    assert graph.ways(3, 10) == {Way.SKIP, Way.LEAVE}


def test_exit_and_cycle_of_a_named_loop() -> None:
    graph = Graph(
        """\
subroutine s(a, n)
  integer n, a(n), i, j
  outer: do i = 1, n
    do j = 1, n
      if (a(j) == 0) cycle outer
      if (a(j) == 1) exit outer
      a(j) = 5
    end do
    a(i) = 6
  end do outer
  n = 0
end subroutine
"""
    )
    cycle = next(
        n for n in graph.flow.nodes if n.statement is not None and getattr(n.statement, "kind", "") == "continue"
    )
    (edge,) = graph.flow.successors[cycle.number]
    assert graph._line(edge.node) == 3
    leaving = next(
        n for n in graph.flow.nodes if n.statement is not None and getattr(n.statement, "kind", "") == "break"
    )
    (edge,) = graph.flow.successors[leaving.number]
    assert graph._line(edge.node) == 11


def test_goto_return_and_stop() -> None:
    graph = Graph(
        """\
subroutine s(a)
  integer a
  if (a == 0) return
  if (a == 1) stop
  if (a == 2) goto 10
  a = 3
10 a = 4
end subroutine
"""
    )
    edges = graph.edges()
    assert (3, "exit") in edges
    assert (4, "exit") not in edges
    assert (5, 7) in edges
    assert (6, 7) in edges


def test_a_goto_back_is_marked_as_such() -> None:
    graph = Graph(
        """\
subroutine s(a)
  integer a
10 a = a + 1
  if (a < 5) then
    goto 10
  end if
end subroutine
"""
    )
    assert graph.ways(5, 3) == {Way.BACK}


def test_predecessors_mirror_successors() -> None:
    flow = Graph(LOOP, "a.c").flow
    forward = {(n, e.node, e.way) for n, edges in enumerate(flow.successors) for e in edges}
    backward = {(e.node, n, e.way) for n, edges in enumerate(flow.predecessors) for e in edges}
    assert forward == backward


@pytest.mark.parametrize("label", ["10", "20"])
def test_a_jump_to_what_is_not_seen_may_go_anywhere_unread(label: str) -> None:
    graph = Graph(f"subroutine s(a)\n  integer a\n  if (a == 0) goto {label}\n  a = 1\n10 a = 2\nend subroutine\n")
    jump = next(n for n in graph.flow.nodes if n.statement is not None and getattr(n.statement, "kind", "") == "goto")
    assert [graph._line(edge.node) for edge in graph.flow.successors[jump.number]] == [5]


def test_communication_edges_join_sends_to_receives() -> None:
    # P2, figures 1 and 2.
    program = Surveyed(
        """\
subroutine exchange(dum, g, rank, north, south, jst, jend)
  use mpi
  integer rank, north, south, jst, jend, j, ierror
  double precision dum(5, 100), g(100)
  if (rank == 0) then
    do j = jst, jend
      dum(1, j) = g(j)
    end do
    call MPI_SEND(dum(1, jst), 5*(jend-jst+1), MPI_DOUBLE_PRECISION, south, 1, MPI_COMM_WORLD, ierror)
  else
    call MPI_RECV(dum(1, jst), 5*(jend-jst+1), MPI_DOUBLE_PRECISION, north, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  end if
  g(1) = dum(1, jst)
end subroutine
"""
    )
    pairs = [((a.procedure.key, a.statement), (b.procedure.key, b.statement)) for a, b in program.matching.pairs()]
    flow = MessageFlow.of(program.program.procedures.values(), pairs)
    send, receive = (flow.flows["exchange"].node_of(site.statement).number for site in program.sites)
    assert [(edge.sender, edge.receiver) for edge in flow.edges] == [(("exchange", send), ("exchange", receive))]
    assert flow.received_from("exchange", receive) == (("exchange", send),)
    assert flow.received_from("exchange", send) == ()
