"""Inclusion constraints between sets of memory objects, and their least solution (Andersen 1994).

Solved in waves (Pereira and Berlin, "Wave propagation and deep propagation for pointer analysis", CGO 2009): merge the cycles,
push what is new through the graph in topological order, add the edges that loads and stores ask for, and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

UNKNOWN_NODE = 0
"""Memory outside the program, or known to code outside the program.

Objects in its set have escaped: their contents may become anything that has escaped, and have escaped themselves.
"""


class Constraints:
    """A node is a variable, an object, or both: an object's set is what the pointers stored in it may point to.

    Sets are bit masks in integers: a few thousand objects in as many sets are usual, and most sets are equal.
    """

    def __init__(self) -> None:
        self._sets: list[int] = []
        self._edges: list[set[int]] = []
        self._merged: list[int] = []
        self._loads: dict[int, list[int]] = {}
        self._stores: dict[int, list[int]] = {}
        self._bits: dict[int, int] = {}  # the bit of an object, by its node
        self._objects: list[int] = []  # the node of an object, by its bit
        self._read: dict[int, frozenset[int]] = {}
        self.node()
        self.point(UNKNOWN_NODE, UNKNOWN_NODE)

    def node(self) -> int:
        number = len(self._sets)
        self._sets.append(0)
        self._edges.append(set())
        self._merged.append(number)
        return number

    def point(self, node: int, target: int) -> None:
        """node ∋ target"""
        if target not in self._bits:
            self._bits[target] = len(self._objects)
            self._objects.append(target)
        self._sets[node] |= 1 << self._bits[target]

    def copy(self, to: int, origin: int) -> None:
        """to ⊇ origin"""
        if origin == UNKNOWN_NODE:
            self.point(to, UNKNOWN_NODE)
        elif to != origin:
            self._edges[origin].add(to)

    def load(self, to: int, pointer: int) -> None:
        """to ⊇ the contents of everything in pointer"""
        self._loads.setdefault(pointer, []).append(to)

    def store(self, pointer: int, value: int) -> None:
        """the contents of everything in pointer ⊇ value"""
        self._stores.setdefault(pointer, []).append(value)

    def escape(self, node: int) -> None:
        self.copy(UNKNOWN_NODE, node)

    def targets(self, node: int) -> frozenset[int]:
        """A node's set in the solution."""
        return self._nodes(self._sets[self._find(node)])

    def contents(self, nodes: Iterable[int]) -> frozenset[int]:
        """What the pointers in any of these objects may point to, in the solution."""
        found = 0
        for root in {self._find(node) for node in nodes}:
            found |= self._sets[root] if root != UNKNOWN_NODE else 1 << self._bits[UNKNOWN_NODE]
        return self._nodes(found)

    def _nodes(self, bits: int) -> frozenset[int]:
        if bits not in self._read:
            self._read[bits] = frozenset(self._members(bits))
        return self._read[bits]

    def _members(self, bits: int) -> Iterator[int]:
        # By bytes first: clearing one bit of a long integer costs time proportional to its length.
        for position, byte in enumerate(bits.to_bytes((bits.bit_length() + 7) // 8, "little")):
            while byte:
                lowest = byte & -byte
                yield self._objects[8 * position + lowest.bit_length() - 1]
                byte ^= lowest

    def solve(self) -> None:
        pushed: dict[int, int] = {}
        done: dict[int, int] = {}
        while True:
            self._push(self._merge_cycles(pushed), pushed)
            if not self._add_edges(done):
                return

    def _find(self, node: int) -> int:
        root = node
        while self._merged[root] != root:
            root = self._merged[root]
        while self._merged[node] != root:
            self._merged[node], node = root, self._merged[node]
        return root

    def _push(self, order: Iterable[int], pushed: dict[int, int]) -> None:
        for node in order:
            before = pushed.get(node, 0)
            new = self._sets[node] & ~before
            if new:
                pushed[node] = before | new
                for to in self._edges[node]:
                    self._sets[self._find(to)] |= new

    def _add_edges(self, done: dict[int, int]) -> bool:
        changed = False
        for node in {*self._loads, *self._stores}:
            bits = self._sets[self._find(node)]
            new = bits & ~done.get(node, 0)
            if new:
                done[node] = bits
                changed |= self._connect_all(node, {self._find(target) for target in self._members(new)})
        return self._escape_contents(done) or changed

    def _connect_all(self, node: int, targets: set[int]) -> bool:
        changed = False
        for to in {self._find(to) for to in self._loads.get(node, ())}:
            for target in targets:
                changed |= self._connect(target, to)
        for value in {self._find(value) for value in self._stores.get(node, ())}:
            for target in targets:
                changed |= self._connect(value, target)
        return changed

    def _escape_contents(self, done: dict[int, int]) -> bool:
        unknown = 1 << self._bits[UNKNOWN_NODE]
        new = self._sets[UNKNOWN_NODE] & ~done.get(UNKNOWN_NODE, unknown)
        done[UNKNOWN_NODE] = self._sets[UNKNOWN_NODE]
        for target in {self._find(target) for target in self._members(new)}:
            self._sets[target] |= unknown
            self._connect(target, UNKNOWN_NODE)
        return bool(new)

    def _connect(self, origin: int, to: int) -> bool:
        if origin == UNKNOWN_NODE:
            before = self._sets[to]
            self.point(to, UNKNOWN_NODE)
            return self._sets[to] != before
        if origin == to or to in self._edges[origin]:
            return False
        self._edges[origin].add(to)
        self._sets[to] |= self._sets[origin]
        return True

    def _merge_cycles(self, pushed: dict[int, int]) -> list[int]:
        """Make each cycle of copies one node; returns the remaining nodes, origins first (Tarjan 1972, with a stack of its
        own)."""
        number: dict[int, int] = {}
        low: dict[int, int] = {}
        stack: list[int] = []
        waiting: set[int] = set()
        order: list[list[int]] = []
        for start in range(len(self._sets)):
            if self._merged[start] != start or start in number or not self._edges[start]:
                continue
            work = [(start, iter(self._edges[start]))]
            number[start] = low[start] = len(number)
            stack.append(start)
            waiting.add(start)
            while work:
                node, rest = work[-1]
                for edge in rest:
                    to = self._find(edge)
                    if to not in number:
                        number[to] = low[to] = len(number)
                        stack.append(to)
                        waiting.add(to)
                        work.append((to, iter(self._edges[to])))
                        break
                    if to in waiting:
                        low[node] = min(low[node], number[to])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == number[node]:
                        members: list[int] = []
                        while not members or members[-1] != node:
                            members.append(stack.pop())
                        waiting.difference_update(members)
                        order.append(members)
        for members in order:
            if len(members) > 1:
                self._merge(members)
                # What one member has pushed has not gone along the other members' edges.
                pushed.pop(members[-1], None)
        return [members[-1] for members in reversed(order)]

    def _merge(self, members: list[int]) -> None:
        root = members[-1]
        for node in members[:-1]:
            self._merged[node] = root
            self._sets[root] |= self._sets[node]
            self._edges[root] |= self._edges[node]
            self._sets[node] = 0
            self._edges[node] = set()
        self._edges[root] = {self._find(to) for to in self._edges[root]} - {root}
