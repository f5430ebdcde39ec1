"""A loop of independent iterations as several loops one after the other (loop distribution, with scalars expanded into arrays:
Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 5), between which functions are called that compilers
do not vectorise.

    for j:                                       for j:  argument[j] = u[j] - v[j]
        w[j] = a * (u[j] - v[j]) ** 2      →     square = squares of argument
                                                 for j:  w[j] = a * square[j]

What is computed before its turn is computed in every iteration anyway, raises nothing, and reads nothing that an earlier statement of
its iteration stores; so every value is the one that it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lapwing.codegen.body.expression import strip_arguments, strip_function
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.invariants import is_invariant


@dataclass(frozen=True)
class StripCall:
    """A function of locals, which is called for many iterations at once."""

    operation: t.Operation
    result: t.Local


@dataclass(frozen=True)
class Part:
    """One of the loops that a loop is distributed over, with the calls that follow it. ``incoming``: locals that loops or calls
    before it set; ``outgoing``: those it sets that are read after it."""

    statements: tuple[t.TypedStatement, ...]
    calls: tuple[StripCall, ...]
    incoming: tuple[t.Local, ...]
    outgoing: tuple[t.Local, ...]


def distributed(body: t.TypedBody, invariants: Collection[t.Typed] = ()) -> tuple[Part, ...]:
    """The loops; none where there is nothing to call in between. invariants: what is computed before all of them."""
    if any(isinstance(s, t.TypedJump) for s in t.all_statements(body.statements)):
        return ()  # what follows it may be left out
    found = _Distribution(frozenset(invariants))
    last = [found.rewritten(statement) for statement in body.statements]
    if not found.calls:
        return ()
    return tuple(_joined(found.loops(last)))


@dataclass
class _Call:
    """``turn``: after how many loops it is called."""

    operation: t.Operation
    result: t.Local
    turn: int


@dataclass
class _Distribution:
    """What statements compute, by the turn of the loop that can do it first; 0 is the first loop's."""

    invariants: frozenset[t.Typed]
    calls: dict[t.Operation, _Call] = field(default_factory=dict)
    _arguments: dict[t.Typed, tuple[t.Local, int]] = field(default_factory=dict)
    _turns: dict[t.Local, int] = field(default_factory=dict)  # of locals that need not wait for the last loop
    _stored: set[str] = field(default_factory=set)  # arrays that a statement so far stores to

    def rewritten(self, statement: t.TypedStatement) -> t.TypedStatement:
        """The statement with calls replaced by their results; from here on what it sets is known."""
        if isinstance(statement, t.SimpleStatement):
            value, turn = self._visited(statement.value)
            statement = replace(statement, value=value)
            if isinstance(statement, t.TypedLocal) and turn is not None:
                self._turns[statement.local] = turn
        self._stored |= {s.target.array for s in t.all_statements((statement,)) if isinstance(s, t.TypedStore)}
        return statement

    def loops(self, statements: Sequence[t.TypedStatement]) -> list[tuple[list[t.TypedStatement], list[_Call]]]:
        """What each loop does, and is followed by. Locals are set as soon as they can be where a call waits for them; those that
        are computed from indices alone again in every loop, where compilers see how they change."""
        count = max(call.turn for call in self.calls.values()) + 1
        loops: list[tuple[list[t.TypedStatement], list[_Call]]] = [([], []) for _ in range(count)]
        awaited = self._awaited(statements)
        for statement in statements:
            turns: Iterable[int] = (count - 1,)
            if isinstance(statement, t.TypedLocal) and statement.local in awaited:
                turns = range(count) if _is_of_indices(statement.value) else (self._turns[statement.local],)
            for turn in turns:
                loops[turn][0].append(statement)
        for value, (local, turn) in self._arguments.items():
            loops[turn][0].append(t.TypedLocal(0, "", local, value))
        for call in self.calls.values():
            loops[call.turn - 1][1].append(call)
        return loops

    def _awaited(self, statements: Sequence[t.TypedStatement]) -> set[t.Local]:
        """Locals that arguments of calls are computed from."""
        values = {s.local: s.value for s in statements if isinstance(s, t.TypedLocal)}
        pending = [*self._arguments, *(o for call in self.calls.values() for o in call.operation.operands)]
        awaited: set[t.Local] = set()
        while pending:
            for local in _locals(pending.pop()):
                if local in values and local not in awaited:
                    awaited.add(local)
                    pending.append(values[local])
        return awaited

    def _visited(self, node: t.Typed, always: bool = True) -> tuple[t.Typed, int | None]:
        """The expression with calls replaced, and the turn of the first loop that can compute it: None is the last one alone.
        always: whether every iteration evaluates it."""
        if is_invariant(node) or node in self.invariants:
            return node, 0
        if isinstance(node, t.Local):
            return node, self._turns.get(node)
        parts = [self._visited(child, always and is_always) for child, is_always in _evaluated(node)]
        turns = [turn for _, turn in parts]
        node = _with_children(node, [part for part, _ in parts])
        if isinstance(node, t.Load) and node.array in self._stored:
            return node, None
        turn = None if None in turns else max((turn for turn in turns if turn is not None), default=0)
        if turn is not None and always and isinstance(node, t.Operation) and strip_function(node) is not None:
            node, turn = self._called(node, turn), turn + 1
        return node, None if _raises(node) else turn

    def _called(self, node: t.Operation, turn: int) -> t.Typed:
        count = len(strip_arguments(node))
        operands = (*(self._argument(operand, turn) for operand in node.operands[:count]), *node.operands[count:])
        operation = replace(node, operands=operands, trap=None)
        if operation not in self.calls:
            name = node.operator.removeprefix("math.").removeprefix("numpy.").replace("**", "power")
            result = t.Local(node.dtype, f"{name} {len(self.calls) + 1}", 1)
            self.calls[operation] = _Call(operation, result, turn + 1)
        result = self.calls[operation].result
        return result if node.trap is None else replace(node, operator="checked", operands=(result, *operands))

    def _argument(self, operand: t.Typed, turn: int) -> t.Typed:
        """A local with the value of an operand."""
        if isinstance(operand, t.Local):
            return operand
        if operand not in self._arguments:
            self._arguments[operand] = t.Local(operand.dtype, f"argument {len(self._arguments) + 1}", 1), turn
        return self._arguments[operand][0]


def _joined(loops: Sequence[tuple[Sequence[t.TypedStatement], Sequence[_Call]]]) -> Iterator[Part]:
    """The loops with what goes between them."""
    statements = [tuple(_wanted(statements, calls)) for statements, calls in loops]
    own = [{s.local: None for s in block if isinstance(s, t.TypedLocal)} for block in statements]
    incoming = [
        tuple(v for v in dict.fromkeys(_read(block)) if v not in its_own and v in known)
        for block, its_own, known in zip(statements, own, _known(own, loops), strict=True)
    ]
    for position, (_, calls) in enumerate(loops):
        later = set(_operands(calls)).union(*incoming[position + 1 :])
        outgoing = tuple(v for v in own[position] if v in later)
        done = tuple(StripCall(call.operation, call.result) for call in calls)
        yield Part(statements[position], done, incoming[position], outgoing)


def _known(
    own: Sequence[Collection[t.Local]], loops: Sequence[tuple[Sequence[t.TypedStatement], Sequence[_Call]]]
) -> Iterator[set[t.Local]]:
    """The locals that are set before each loop."""
    known: set[t.Local] = set()
    for its_own, (_, calls) in zip(own, loops, strict=True):
        yield set(known)
        known |= {*its_own, *(call.result for call in calls)}


def _wanted(statements: Sequence[t.TypedStatement], calls: Sequence[_Call]) -> list[t.TypedStatement]:
    """Without locals of indices that this loop does not need."""
    read, kept = set(_operands(calls)), []
    for statement in reversed(statements):
        if not isinstance(statement, t.TypedLocal) or statement.local in read or not _is_of_indices(statement.value):
            read |= set(_read((statement,)))
            kept.append(statement)
    return kept[::-1]


def _read(statements: Sequence[t.TypedStatement]) -> Iterator[t.Local]:
    for statement in t.all_statements(statements):
        for value in t.own_values(statement):
            yield from _locals(value)


def _operands(calls: Sequence[_Call]) -> Iterator[t.Local]:
    for call in calls:
        yield from _locals(call.operation)


def _locals(node: t.Typed) -> Iterator[t.Local]:
    return (part for part in t.walk(node) if isinstance(part, t.Local))


def _is_of_indices(node: t.Typed) -> bool:
    """Whether an expression is over indices and arguments alone."""
    return not any(isinstance(part, t.Load | t.Local) for part in t.walk(node))


def _evaluated(node: t.Typed) -> Iterator[tuple[t.Typed, bool]]:
    """The operands, and whether each is evaluated whenever the expression is."""
    match node:
        case t.Select(test=test, then=then, otherwise=otherwise):
            yield from ((test, True), (then, False), (otherwise, False))
        case t.Operation(operator="&&" | "||", operands=(first, *others)):
            yield from ((first, True), *((other, False) for other in others))
        case _:
            yield from ((child, True) for child in t.children(node))


def _with_children(node: t.Typed, parts: Sequence[t.Typed]) -> t.Typed:
    """The expression with other operands."""
    match node:
        case t.Operation():
            return replace(node, operands=tuple(parts))
        case t.Convert():
            return replace(node, operand=parts[0])
        case t.Select():
            return replace(node, test=parts[0], then=parts[1], otherwise=parts[2])
        case t.Load(subscripts=subscripts):
            indices = iter(parts)
            moved = (replace(s, index=next(indices)) if isinstance(s, t.LookupSubscript) else s for s in subscripts)
            return replace(node, subscripts=tuple(moved))
    return node


def _raises(node: t.Typed) -> bool:
    if getattr(node, "trap", None) is not None:
        return True
    return isinstance(node, t.Load) and any(getattr(s, "trap", None) is not None for s in node.subscripts)
