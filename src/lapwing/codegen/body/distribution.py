"""A loop as several loops one after the other (loop distribution, with scalars expanded into arrays:
Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 5), between which functions are called that compilers
do not vectorise.

    for j:                                       for j:  argument[j] = u[j] - v[j]
        w[j] = a * (u[j] - v[j]) ** 2      →     square = squares of argument
                                                 for j:  w[j] = a * square[j]

What is computed before its turn is computed in every iteration anyway; where it may raise, that is noted when its turn comes, for
which it is computed again. It reads nothing that an earlier
statement of its iteration stores; where iterations depend on each other, nothing that any statement does: so every value is the
one that it was. Where arguments lie one after the other in an array, they are taken from there, and u[j]**2 and u[j + 1]**2 once.

A function that is called where a condition holds takes the arguments of those iterations, packed (stream compaction: Blelloch,
Prefix Sums and Their Applications, 1990), so that it takes as long as they are many and meets no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lapwing.codegen.body.expression import is_scan, scan_of, strip_arguments, strip_function
from lapwing.loopnest.binding import typed as t
from lapwing.tiling.invariants import is_invariant

MARGIN = 8  # LW_STRIP_MARGIN of strips.h


@dataclass(frozen=True)
class StripCall:
    """A function that is called for many iterations at once; its arguments are locals, or elements of an array from the one of
    the first iteration on. ``results``: what it gives, and how far behind the iteration's own argument that is; ``where``: the
    iterations that call it, if not all do."""

    operation: t.Operation
    results: tuple[tuple[t.Local, int], ...]
    where: t.Local | None = None

    @property
    def further(self) -> int:
        """How many arguments it takes beyond those of the iterations."""
        return max(behind for _, behind in self.results)


@dataclass(frozen=True)
class Part:
    """One of the loops that a loop is distributed over, with the calls that follow it. ``incoming``: locals that loops or calls
    before it set; ``outgoing``: those it sets that are read after it; ``sums``: exact ones to which each of its iterations adds
    one term; ``is_last``: whether it is that with all that is not computed before its turn, or one with terms of sums behind it.
    """

    statements: tuple[t.TypedStatement, ...]
    calls: tuple[StripCall, ...]
    incoming: tuple[t.Local, ...]
    outgoing: tuple[t.Local, ...]
    sums: tuple[str, ...] = ()
    is_last: bool = True


def distributed(
    body: Sequence[t.TypedStatement],
    index: str,
    independent: bool,
    invariants: Collection[t.Typed] = (),
    number: int = 1,
    sums: Collection[str] = (),
) -> tuple[Part, ...]:
    """The loops over parts of a loop's body; none where there is nothing to call in between, and no sum.

    index: of the loop, where it counts up by ones; independent: whether its iterations are; invariants: what is computed before
    the loop; number: of the loop, of which new locals are versions; sums: accumulators of exact ones.
    """
    if any(isinstance(s, t.TypedJump) for s in t.all_statements(body)):
        return ()  # what follows it may be left out
    stored = set[str]() if independent else _stored(body)
    found = _Distribution(number, index, frozenset(_set_in(body)), frozenset(invariants), stored)
    last = [found.rewritten(statement) for statement in body]
    summed = _with_a_term_each(body, sums)
    last, behind = found.sums_behind(last, summed)
    if not found.calls and not summed:
        return ()
    loops = found.loops(last)
    if behind:
        loops[-1][1].extend(found.calls_behind)
        loops.append((behind, []))
    return tuple(_joined(loops, len(loops) - 2 if behind else len(loops) - 1, summed))


def calls_left(body: Sequence[t.TypedStatement], index: str, independent: bool) -> list[t.Local]:
    """Locals with what functions give that are called where a condition holds, if that is not done between the loops that a loop
    with this body is distributed over."""
    parts = distributed(body, index, independent)
    left = [s for part in parts for s in part.statements] if parts else body
    return [s.local for s in left if isinstance(s, t.TypedLocal) and any(map(_is_where, t.walk(s.value)))]


def without_unread(body: Sequence[t.TypedStatement], copies: Collection[t.Local] = ()) -> list[t.TypedStatement]:
    """Without locals that nobody reads, and that raise nothing. copies: of what is computed elsewhere, where it raises."""
    read, kept = set[t.Local](), list[t.TypedStatement]()
    for statement in reversed(body):
        if (
            isinstance(statement, t.TypedLocal)
            and statement.local not in read
            and (statement.local in copies or not may_raise(statement))
        ):
            continue
        read |= set(_read((statement,)))
        kept.append(statement)
    return kept[::-1]


def calls_where(value: t.Typed) -> Iterator[t.Operation]:
    """The functions that an expression calls where a condition holds."""
    for node in t.walk(value):
        if isinstance(node, t.Operation) and node.operator == "where" and isinstance(node.operands[0], t.Operation):
            yield node.operands[0]


def _is_where(node: t.Typed) -> bool:
    return isinstance(node, t.Operation) and node.operator == "where"


def _with_a_term_each(body: Sequence[t.TypedStatement], sums: Collection[str]) -> frozenset[str]:
    """The sums to which every iteration adds one term."""
    names = [s.name for s in t.all_statements(body) if isinstance(s, t.TypedAccumulate)]
    own = [s.name for s in body if isinstance(s, t.TypedAccumulate)]
    return frozenset(name for name in sums if names.count(name) == own.count(name) == 1)


@dataclass
class _Call:
    """``turn``: after how many loops it is called; ``results``: by how far its argument is along the loop."""

    operation: t.Operation
    turn: int
    where: t.Local | None = None
    results: dict[int, t.Local] = field(default_factory=dict)

    def finished(self) -> StripCall:
        lowest = min(self.results)
        operands = (_moved(o, lowest) if isinstance(o, t.Load) else o for o in self.operation.operands)
        results = tuple((local, at - lowest) for at, local in sorted(self.results.items()))
        return StripCall(replace(self.operation, operands=tuple(operands)), results, self.where)


@dataclass
class _Distribution:
    """What statements compute, by the turn of the loop that can do it first; 0 is the first loop's."""

    number: int
    index: str
    own: frozenset[t.Local]  # set in the loop
    invariants: frozenset[t.Typed]
    stored: set[str]  # arrays that may have changed where the statement stands that is looked at
    calls: list[_Call] = field(default_factory=list)
    _arguments: dict[t.Typed, tuple[t.Local, int]] = field(default_factory=dict)
    _turns: dict[t.Typed, int] = field(default_factory=dict)  # of locals that need not wait for the last loop

    _raising: set[t.Local] = field(default_factory=set)  # of these, those that may raise where they are computed
    calls_behind: list[_Call] = field(
        default_factory=list
    )  # those that follow the loop with all that is done in its turn

    def rewritten(self, statement: t.TypedStatement) -> t.TypedStatement:
        """The statement with calls replaced by their results; from here on what it sets is known."""
        if isinstance(statement, t.SimpleStatement):
            value, turn = self._visited(statement.value)
            statement = replace(statement, value=value)
            if isinstance(statement, t.TypedLocal) and turn is not None:
                self._turns[statement.local] = turn
                if _may_raise(value, self._raising):
                    self._raising.add(statement.local)
        self.stored |= _stored((statement,))
        return statement

    def sums_behind(
        self, statements: Sequence[t.TypedStatement], sums: Collection[str]
    ) -> tuple[list[t.TypedStatement], list[t.TypedStatement]]:
        """The statements without the terms of sums for which something has to be called that is not known before their turn, but
        with what these are computed from; and those terms, which a loop behind adds: nothing else waits for them."""
        last: list[t.TypedStatement] = []
        behind: list[t.TypedStatement] = []
        for statement in statements:
            if (
                isinstance(statement, t.TypedAccumulate)
                and statement.name in sums
                and self._calls_always(statement.value)
            ):
                behind.append(replace(statement, value=self._cut(statement.value, last)))
            else:
                last.append(statement)
        return last, behind

    def _cut(self, node: t.Typed, before: list[t.TypedStatement]) -> t.Typed:
        """The expression over locals alone, which are set by statements that are added to those before it, and over results of
        calls."""
        if node in self.invariants or is_invariant(node):
            return node
        if not self._calls(node):
            return self._held(node, before)
        if isinstance(node, t.Operation) and strip_function(node) and not any(map(self._calls, node.operands)):
            taken = strip_arguments(node)
            others = node.operands[len(taken) :]
            arguments = [self._held(argument, before) for argument in taken]
            result = t.Local(node.dtype, f"{_short_name(node)} behind {len(self.calls_behind) + 1}", self.number)
            operation = replace(node, operands=(*arguments, *others), trap=None)
            self.calls_behind.append(_Call(operation, 0, results={0: result}))
            if node.trap is None:
                return result
            return replace(node, operator="checked", operands=(result, *arguments, *others))
        return _with_children(node, [self._cut(child, before) for child, _ in _evaluated(node)])

    def _calls(self, node: t.Typed) -> bool:
        """Whether something is called that is not known before the loop."""
        if node in self.invariants or is_invariant(node):
            return False
        if isinstance(node, t.Operation) and strip_function(node) is not None:
            return True
        return any(map(self._calls, t.children(node)))

    def _calls_always(self, node: t.Typed) -> bool:
        """Whether something is called wherever the expression is evaluated, and nothing where it need not be."""
        if (
            isinstance(node, t.Operation)
            and strip_function(node) is not None
            and not any(map(self._calls, node.operands))
        ):
            return self._calls(node)
        parts = [(child, always) for child, always in _evaluated(node) if self._calls(child)]
        return bool(parts) and all(always and self._calls_always(child) for child, always in parts)

    def _held(self, node: t.Typed, before: list[t.TypedStatement]) -> t.Local:
        count = sum(isinstance(s, t.TypedLocal) and s.local.name.startswith(_HELD) for s in before)
        local = t.Local(node.dtype, f"{_HELD} {count + 1}", self.number)
        before.append(t.TypedLocal(0, "", local, node))
        return local

    def loops(self, statements: Sequence[t.TypedStatement]) -> list[tuple[list[t.TypedStatement], list[_Call]]]:
        """What each loop does, and is followed by. Locals are set as soon as they can be where a call waits for them; those that
        are computed from indices alone again in every loop, where compilers see how they change."""
        count = max((call.turn for call in self.calls), default=0) + 1
        loops: list[tuple[list[t.TypedStatement], list[_Call]]] = [([], []) for _ in range(count)]
        awaited, again = self._awaited(statements), _of_indices(statements)
        for statement in statements:
            turns: Iterable[int] = (count - 1,)
            if isinstance(statement, t.TypedLocal) and statement.local in awaited:
                turns = range(count) if statement.local in again else (self._turns[statement.local],)
                if statement.local in self._raising:
                    turns = dict.fromkeys((*turns, count - 1))
            for turn in turns:
                loops[turn][0].append(statement)
        for value, (local, turn) in self._arguments.items():
            for each in range(count) if _is_of_indices(value, again) else (turn,):
                loops[each][0].append(t.TypedLocal(0, "", local, value))
        for call in self.calls:
            loops[call.turn - 1][1].append(call)
        return loops

    def _awaited(self, statements: Sequence[t.TypedStatement]) -> set[t.Local]:
        """Locals that arguments of calls are computed from."""
        values = {s.local: s.value for s in statements if isinstance(s, t.TypedLocal)}
        pending = [*self._arguments, *_operands(self.calls)]
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
        if node in self.invariants:
            return node, 0
        if is_invariant(node):
            return node, 0
        if isinstance(node, t.Local):
            return node, self._turns.get(node) if node in self.own else 0
        if _is_where(node):
            return self._called_where(node)
        parts = [self._visited(child, always and is_always) for child, is_always in _evaluated(node)]
        turns = [turn for _, turn in parts]
        node = _with_children(node, [part for part, _ in parts])
        if isinstance(node, t.Load) and node.array in self.stored:
            return node, None
        known = [turn for turn in turns if turn is not None]
        if len(known) < len(turns):
            return node, None
        turn = max(known, default=0)
        if always and isinstance(node, t.Operation) and strip_function(node) is not None:
            return self._called(node, known), turn + 1
        return node, turn

    def _called_where(self, node: t.Typed) -> tuple[t.Typed, int | None]:
        """The same of a function that is called where a condition holds."""
        assert isinstance(node, t.Operation)
        call, condition = node.operands
        if call in self.invariants or is_invariant(call):
            return call, 0
        assert isinstance(call, t.Operation)
        parts = [self._visited(part) for part in (condition, *call.operands)]
        turns = [turn for _, turn in parts if turn is not None]
        (test, _), *operands = parts
        call = replace(call, operands=tuple(operand for operand, _ in operands))
        if len(turns) < len(parts):
            return replace(node, operands=(call, test)), None
        where = self._argument(test, turns[0])
        assert isinstance(where, t.Local)
        return self._called(call, turns[1:], where, turns[0]), max(turns) + 1

    def _called(
        self, node: t.Operation, turns: Sequence[int], where: t.Local | None = None, where_turn: int = 0
    ) -> t.Typed:
        """The result of a call, whose operands' turns are these. where: the iterations that call it, if not all do."""
        taken = strip_arguments(node)
        arguments = [self._argument(argument, turn) for argument, turn in zip(taken, turns, strict=False)]
        at = 0
        if len(taken) == 1 and isinstance(arguments[0], t.Load) and where is None:
            at = _constant(arguments[0])
            arguments = [_moved(arguments[0], -at)]
        others = node.operands[len(taken) :]
        operation = replace(node, operands=(*arguments, *others), trap=None)
        wanted = [at]
        if is_scan(operation):
            operation, at = scan_of(operation)
            wanted = [0, at]  # the one before the first iteration's comes first
        call = self._call(operation, at, max(*turns, where_turn), where)
        for each in wanted:
            if each not in call.results:
                name = _short_name(operation)
                count = sum(len(call.results) for call in self.calls) + 1
                call.results[each] = t.Local(node.dtype, f"{name} {count}", self.number)
                self._turns[call.results[each]] = call.turn
        if node.trap is not None:
            return replace(node, operator="checked", operands=(call.results[at], *taken, *others))
        result: t.Typed = call.results[at]
        for argument in taken:
            if _may_raise(argument, ()):
                result = t.Operation(node.dtype, "after", (result, argument))
        return result

    def _call(self, operation: t.Operation, at: int, turn: int, where: t.Local | None) -> _Call:
        """One that there is already for arguments near by, or another."""
        for call in self.calls:
            reach = {at, *call.results}
            if call.operation == operation and call.where == where and max(reach) - min(reach) <= MARGIN:
                return call
        self.calls.append(_Call(operation, turn + 1, where))
        return self.calls[-1]

    def _argument(self, argument: t.Typed, turn: int) -> t.Typed:
        """A local with the value of an argument, or an element of an array where the next iteration's is the next one."""
        if argument in self._turns or (isinstance(argument, t.Load) and t.is_contiguous(argument, self.index)):
            return argument
        if argument not in self._arguments:
            self._arguments[argument] = (
                t.Local(argument.dtype, f"argument {len(self._arguments) + 1}", self.number),
                turn,
            )
        return self._arguments[argument][0]


_HELD = "held"


def _short_name(node: t.Operation) -> str:
    if is_scan(node):
        return "scan"
    return node.operator.removeprefix("math.").removeprefix("numpy.").replace("**", "power")


def _constant(load: t.Load) -> int:
    last = load.subscripts[-1]
    assert isinstance(last, t.AffineSubscript)
    return last.affine.constant + last.wrap


def _moved(load: t.Load, by: int) -> t.Load:
    """An element so many further."""
    *others, last = load.subscripts
    assert isinstance(last, t.AffineSubscript)
    return replace(load, subscripts=(*others, t.AffineSubscript(last.affine + (last.wrap + by))))


def _joined(
    loops: Sequence[tuple[Sequence[t.TypedStatement], Sequence[_Call]]], last: int, summed: Collection[str]
) -> Iterator[Part]:
    """The loops with what goes between them. last: the place of the first one that is done in its turn."""
    statements = [tuple(_wanted(statements, calls)) for statements, calls in loops]
    own = [{s.local: None for s in block if isinstance(s, t.TypedLocal)} for block in statements]
    incoming = [
        tuple(v for v in dict.fromkeys(_read(block)) if v not in its_own and v in known)
        for block, its_own, known in zip(statements, own, _known(own, loops), strict=True)
    ]
    for position, (_, calls) in enumerate(loops):
        later = set().union(*(_operands(its_calls) for _, its_calls in loops[position:]), *incoming[position + 1 :])
        outgoing = tuple(v for v in own[position] if v in later)
        sums = [s.name for s in statements[position] if isinstance(s, t.TypedAccumulate) and s.name in summed]
        called = tuple(call.finished() for call in calls)
        yield Part(statements[position], called, incoming[position], outgoing, tuple(sums), position >= last)


def _known(
    own: Sequence[Collection[t.Local]], loops: Sequence[tuple[Sequence[t.TypedStatement], Sequence[_Call]]]
) -> Iterator[set[t.Local]]:
    """The locals that are set before each loop."""
    known: set[t.Local] = set()
    for its_own, (_, calls) in zip(own, loops, strict=True):
        yield set(known)
        known |= {*its_own, *(local for call in calls for local in call.results.values())}


def _wanted(statements: Sequence[t.TypedStatement], calls: Sequence[_Call]) -> list[t.TypedStatement]:
    """Without locals of indices that this loop does not need."""
    read, kept, again = set(_operands(calls)), [], _of_indices(statements)
    for statement in reversed(statements):
        if not isinstance(statement, t.TypedLocal) or statement.local in read or statement.local not in again:
            read |= set(_read((statement,)))
            kept.append(statement)
    return kept[::-1]


def _read(statements: Sequence[t.TypedStatement]) -> Iterator[t.Local]:
    for statement in t.all_statements(statements):
        for value in t.own_values(statement):
            yield from _locals(value)


def _set_in(statements: Sequence[t.TypedStatement]) -> Iterator[t.Local]:
    for statement in t.all_statements(statements):
        if isinstance(statement, t.TypedLocal | t.TypedVariable | t.TypedAssign | t.TypedRounded):
            yield statement.local


def _stored(statements: Sequence[t.TypedStatement]) -> set[str]:
    return {s.target.array for s in t.all_statements(statements) if isinstance(s, t.TypedStore)}


def _operands(calls: Sequence[_Call]) -> Iterator[t.Local]:
    for call in calls:
        yield from _locals(call.operation)
        yield from () if call.where is None else (call.where,)


def _locals(node: t.Typed) -> Iterator[t.Local]:
    return (part for part in t.walk(node) if isinstance(part, t.Local))


def _of_indices(statements: Sequence[t.TypedStatement]) -> set[t.Local]:
    """The locals that are computed from indices alone."""
    found = set[t.Local]()
    for statement in statements:
        if isinstance(statement, t.TypedLocal) and _is_of_indices(statement.value, found):
            found.add(statement.local)
    return found


def _is_of_indices(node: t.Typed, known: Collection[t.Local]) -> bool:
    """Whether an expression is over indices, arguments and known locals alone."""
    return not any(isinstance(part, t.Load | t.Local) and part not in known for part in t.walk(node))


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


def may_raise(statement: t.TypedStatement) -> bool:
    return any(_may_raise(value, ()) for value in t.own_values(statement))


def _may_raise(node: t.Typed, raising: Collection[t.Typed]) -> bool:
    """Whether computing an expression may raise, or computing a local that is in it."""
    return any(part in raising or _raises(part) for part in t.walk(node))


def _raises(node: t.Typed) -> bool:
    if getattr(node, "trap", None) is not None:
        return True
    return isinstance(node, t.Load) and any(getattr(s, "trap", None) is not None for s in node.subscripts)
