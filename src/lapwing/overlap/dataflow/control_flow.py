"""The control-flow graph of a procedure, and of a whole program with communication edges (P2's MPI-CFG).

A loop has three nodes: its head, executed once; its top, where every iteration begins; and its latch, where every iteration ends:

    head → top → body → latch → what follows
      ↓     ↑_____________|         ↑
      |_____________________________|   (no iteration at all)
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lapwing.overlap.ir.expressions import Expression
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.statements import Block, Compound, If, Jump, Loop, Opaque, Select, Statement, While

ENTRY, EXIT = 0, 1


class Part(enum.Enum):
    """Which part of its statement a node stands for. WHOLE of a statement with blocks is its condition."""

    WHOLE = enum.auto()
    HEAD = enum.auto()
    TOP = enum.auto()
    LATCH = enum.auto()


class Way(enum.Enum):
    """How control gets from one node to the next."""

    ON = enum.auto()
    ENTER = enum.auto()  # from a loop's head into its first iteration
    BACK = enum.auto()  # from the end of an iteration to the next, or a goto that goes back
    LEAVE = enum.auto()  # from the end of the last iteration
    SKIP = enum.auto()  # past a loop without iterations
    THEN = enum.auto()  # an If's condition holds
    ELSE = enum.auto()  # it does not


@dataclass(frozen=True, eq=False)
class Node:
    """``guards``: the conditions of the Ifs it is in, with whether they hold there."""

    number: int
    statement: Statement | None
    part: Part
    guards: tuple[tuple[Expression, bool], ...] = ()


@dataclass(frozen=True)
class Edge:
    """To a node, or (among predecessors) from it."""

    node: int
    way: Way


@dataclass(frozen=True, eq=False)
class Flow:
    """``nodes[0]`` is the entry and ``nodes[1]`` the exit, which STOP does not reach. ``number_of``: a statement's node (a loop's
    head) by the statement's id."""

    procedure: Procedure
    nodes: tuple[Node, ...]
    successors: tuple[tuple[Edge, ...], ...]
    predecessors: tuple[tuple[Edge, ...], ...]
    number_of: dict[int, int]

    @staticmethod
    def of(procedure: Procedure) -> Flow:
        return _Builder(procedure).flow()

    def node_of(self, statement: Statement) -> Node:
        return self.nodes[self.number_of[id(statement)]]


@dataclass(frozen=True)
class MessageEdge:
    """A message may go from one call to another. Both ends: the key of a procedure, and the number of a node in its flow."""

    sender: tuple[str, int]
    receiver: tuple[str, int]


@dataclass(frozen=True, eq=False)
class MessageFlow:
    """P2's MPI-CFG (after Shires et al.): control-flow graphs joined by communication edges.

    ``of`` takes the pairs that matching.py finds: a sending and a receiving call, each with the key of its procedure.
    """

    flows: dict[str, Flow]
    edges: tuple[MessageEdge, ...]

    @staticmethod
    def of(
        procedures: Iterable[Procedure], pairs: Iterable[tuple[tuple[str, Statement], tuple[str, Statement]]]
    ) -> MessageFlow:
        flows = {procedure.key: Flow.of(procedure) for procedure in procedures}

        def end(key: str, statement: Statement) -> tuple[str, int]:
            return key, flows[key].node_of(statement).number

        return MessageFlow(flows, tuple(MessageEdge(end(*sender), end(*receiver)) for sender, receiver in pairs))

    def received_from(self, key: str, number: int) -> tuple[tuple[str, int], ...]:
        """Where a message that arrives at a node may come from."""
        return tuple(edge.sender for edge in self.edges if edge.receiver == (key, number))


# ---- building ---------------------------------------------------------------------------------------------------------

# Edges whose end does not exist yet.
_Loose = list[tuple[int, Way]]


@dataclass
class _Enclosing:
    """An enclosing loop, while its body is read: the open ends of its breaks and continues."""

    loop: Statement
    breaks: _Loose = field(default_factory=list)
    continues: _Loose = field(default_factory=list)


class _Builder:
    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self._nodes: list[Node] = []
        self._edges: list[tuple[int, int, Way]] = []
        self._loops: list[_Enclosing] = []
        self._guards: list[tuple[Expression, bool]] = []
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str | None]] = []
        self._number_of: dict[int, int] = {}
        self._returns: _Loose = []

    def flow(self) -> Flow:
        self._node(None, Part.WHOLE)
        self._node(None, Part.WHOLE)
        ends = self._block(self._procedure.body, [(ENTRY, Way.ON)])
        self._join([*ends, *self._returns], EXIT)
        self._resolve_jumps()
        successors: list[list[Edge]] = [[] for _ in self._nodes]
        predecessors: list[list[Edge]] = [[] for _ in self._nodes]
        for start, end, way in dict.fromkeys(self._edges):
            successors[start].append(Edge(end, way))
            predecessors[end].append(Edge(start, way))
        return Flow(
            self._procedure,
            tuple(self._nodes),
            tuple(tuple(edges) for edges in successors),
            tuple(tuple(edges) for edges in predecessors),
            self._number_of,
        )

    def _node(self, statement: Statement | None, part: Part) -> int:
        number = len(self._nodes)
        self._nodes.append(Node(number, statement, part, tuple(self._guards)))
        if statement is not None and part in (Part.WHOLE, Part.HEAD):
            self._number_of[id(statement)] = number
            if statement.label is not None:
                self._labels.setdefault(statement.label, number)
        return number

    def _join(self, loose: Sequence[tuple[int, Way]], to: int) -> None:
        self._edges += [(start, to, way) for start, way in loose]

    def _block(self, block: Block, ends: _Loose) -> _Loose:
        for statement in block.statements:
            ends = self._statement(statement, ends)
        return ends

    def _statement(self, statement: Statement, ends: _Loose) -> _Loose:
        if isinstance(statement, Loop | While):
            return self._loop(statement, ends)
        node = self._node(statement, Part.WHOLE)
        self._join(ends, node)
        here: _Loose = [(node, Way.ON)]
        match statement:
            case If():
                return self._branches(statement, node)
            case Select(cases=cases):
                return [end for case in cases for end in self._block(case, here)] + here
            case Compound(body=body):
                return self._block(body, here)
            case Jump():
                self._jump(statement, node)
                return []
            case Opaque():
                # It may contain a jump to anywhere.
                self._returns += here
                self._jumps.append((node, None))
        return here

    def _branches(self, statement: If, node: int) -> _Loose:
        ends: _Loose = []
        for block, way in ((statement.then, Way.THEN), (statement.otherwise, Way.ELSE)):
            loose: _Loose = [(node, way)]
            if block is not None:
                self._guards.append((statement.condition, way is Way.THEN))
                loose = self._block(block, loose)
                self._guards.pop()
            ends += loose
        return ends

    def _loop(self, loop: Loop | While, ends: _Loose) -> _Loose:
        head = self._node(loop, Part.HEAD)
        self._join(ends, head)
        loop_exits = _Enclosing(loop)
        self._loops.append(loop_exits)
        top = self._node(loop, Part.TOP)
        self._edges.append((head, top, Way.ENTER))
        body = self._block(loop.body, [(top, Way.ON)])
        latch = self._node(loop, Part.LATCH)
        self._join([*body, *loop_exits.continues], latch)
        self._loops.pop()
        self._edges.append((latch, top, Way.BACK))
        return [(head, Way.SKIP), (latch, Way.LEAVE), *loop_exits.breaks]

    def _jump(self, jump: Jump, node: int) -> None:
        match jump.kind:
            case "return":
                self._returns.append((node, Way.ON))
            case "goto":
                self._jumps.append((node, jump.to))
            case "break" | "continue":
                loop_exits = self._enclosing_loop(jump.to)
                if loop_exits is None:
                    self._jumps.append((node, jump.to))
                elif jump.kind == "break":
                    loop_exits.breaks.append((node, Way.LEAVE))
                else:
                    loop_exits.continues.append((node, Way.ON))

    def _enclosing_loop(self, name: str | None) -> _Enclosing | None:
        if name is None:
            return self._loops[-1] if self._loops else None
        return next((loop_exits for loop_exits in reversed(self._loops) if loop_exits.loop.label == name), None)

    def _resolve_jumps(self) -> None:
        unread = [node.number for node in self._nodes if isinstance(node.statement, Opaque)]
        for start, label in self._jumps:
            if label is not None and label in self._labels:
                targets: Iterable[int] = (self._labels[label],)
            else:
                # A missing label is in text that could not be read.
                targets = [*self._labels.values(), *(number for number in unread if number != start)]
            for target in targets:
                self._edges.append((start, target, Way.BACK if target <= start else Way.ON))
