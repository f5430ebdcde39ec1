"""Code motion: orders statements so that communication starts early and waits come late, to hide as much as possible.

A statement list is split in two: *first*, everything that can run before the first wait, and *last*, the waits and all that
depends on them. A communication that follows a wait still starts in *first* if nothing it needs depends on the wait. A
statement that contains both (a conditional, a call of the program's own procedure, a loop) is split itself.

before: post a; send b; arrive a; use a; post c; send d; arrive c; use c
after:  post a; send b; post c; send d; arrive a; use a; arrive c; use c

Obligation: no statement that moves up conflicts (analysis/dependence.py) with one it passes; and computation does not pass a
communication's start, since ranks waiting for it would wait longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Protocol

from lapwing.affine.sections import Chosen
from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import Conflict, conflict
from lapwing.overlap.analysis.effects.effects import Effects, is_only_read
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.analysis.liveness import Liveness
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.motion_barriers import MotionBarriers
from lapwing.overlap.ir.expressions import Name, Number, Operation, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import (
    declared_in,
    hidden_name,
    is_for_its_block,
    substitute_block,
    variables_of,
    with_blocks,
    with_statements,
    works,
)
from lapwing.overlap.ir.split_phase import NOWHERE, home
from lapwing.overlap.ir.statements import Assign, Block, Call, Compound, Evaluate, If, Jump, Loop, Opaque, Statement


@dataclass(frozen=True)
class Split:
    """A split statement: ``first ; last`` is equivalent to it."""

    first: tuple[Statement, ...]
    last: tuple[Statement, ...]


@dataclass(eq=False)
class Item:
    """One statement of the expanded list, compared by identity, as others may be equal. ``late``: the second part of a split
    one."""

    statement: Statement
    effects: Effects = field(default_factory=Effects)
    values: Environment | None = None  # before it
    late: bool = False
    early: bool = False  # the first part of a split one
    whole: Statement | None = None  # the split one
    behind_barrier: bool = False  # a motion barrier precedes it
    work: bool | None = None  # whether it is computation worth hiding behind; computed on demand
    unexposed: frozenset[str] = frozenset()  # local variables without upward-exposed reads in it


# Splits a call of the program's own procedure; see outlining/split_procedure.py.
SplitCall = Callable[[Call, Procedure, Environment], Split | None]


@dataclass(frozen=True)
class Ends:
    """What computation would have to pass: the effects, the statements, and the environment at the computation's place."""

    effects: Sequence[Effects]
    statements: Sequence[Statement]
    values: Environment


class Independent(Protocol):
    """Whether a statement is independent of what it would pass, or be passed by. ``chosen``: values of terms in it, or None to
    ask whether some part of it may be independent."""

    def __call__(self, statement: Statement, chosen: Chosen | None = (), /) -> bool: ...


# Splits computation that conflicts with what it would pass, or says why not: index_set_splitting/loop_fission.py and
# outlining/split_procedure.py.
SplitAgainst = Callable[[Statement, Ends, Procedure], Split | Conflict | None]
# Splits computation of which a start needs only a part: that part, and the rest, for which the callable is true; or says why
# not. See index_set_splitting/boundary_first.py.
SplitProducer = Callable[[Statement, Procedure, Ends, Independent], Split | Conflict | None]
Refused = Callable[[Statement, Conflict], None]
# Reports for a wait why computation after it could not be split.
RefusedWork = Callable[[Statement, Conflict], None]


@dataclass(frozen=True)
class Move:
    """``statement`` now stands before ``past``; ``transformation``: by its name in reports."""

    transformation: str
    statement: Statement
    past: Statement


@dataclass
class CodeMotion:
    """Code motion in the statement lists of one procedure. ``lean``: first parts contain only what starts communication, and
    what that needs. ``moved``: what was moved up, and the wait it now precedes.
    """

    analysis: Analysis
    procedure: Procedure
    split_call: SplitCall
    split_against: SplitAgainst
    split_work_before: SplitProducer
    refused: Refused
    refused_work: RefusedWork
    barriers: MotionBarriers
    allowed: Callable[[str], bool]  # transformations, by name
    lean: bool = True
    moved: list[Move] = field(default_factory=list)
    _body: Block | None = None
    # Computation that could not be split: itself and what it would have had to pass, by their ids.
    _whole: dict[tuple[int, ...], tuple[Statement, Ends]] = field(default_factory=dict)

    def body(self) -> Block:
        """The procedure's body after code motion in every list, inner ones first."""
        return self._with_code_moved(self.procedure.body, lambda body: body)

    def _with_code_moved(self, block: Block, around: Callable[[Block], Block]) -> Block:
        """``around``: the procedure's current body, with a block in place of this one."""
        if not any(self.analysis.communicates(s, self.procedure) for s in block.statements):
            return block
        new = block
        for place, statement in enumerate(block.statements):
            for branch, inner in enumerate(statement.blocks()):
                within = partial(_with_branch, new, place, branch)
                new = within(self._with_code_moved(inner, _composed(around, within)))
        if block.form == "chain":
            return new
        self._body = around(new)
        split = self.split(new)
        return new if split is None else replace(new, statements=(*split.first, *split.last))

    # ---- one list -----------------------------------------------------------------------------------------------------

    def split(self, block: Block, *, must_split: bool = False) -> Split | None:
        """The two parts of the block's list; None if nothing is gained. ``must_split``: even if nothing in the list itself moves,
        because the enclosing list is to insert something between the parts."""
        parts = self._expanded(block)
        private = self._private(block, parts)
        order: list[Item] = []
        changed = False
        for part in parts:
            if part.late or part.statement.label is not None:
                moved = False  # a jump there must find the same statements after it
            elif _waits(part.effects):
                moved = self._head_placed(part, order, private)
            elif _starts(part.effects):
                moved = self._start_placed(part, order, private) or self._head_placed(part, order, private)
            else:
                moved = self._is_work(part) and self._work_placed(part, order, private)
            changed |= moved
            if not moved:
                order.append(part)
        cut = _cut(order) if must_split else None
        if cut is None and (must_split or not changed):
            return None
        cut = len(order) if cut is None else cut
        first, last = order[:cut], order[cut:]
        if must_split and self.lean and not any(_waits(p.effects) and not p.early for p in first):
            first, rest = self._leaned(first, private)
            last = [*rest, *last]
        split = Split(_joined(first), _joined(last))
        if must_split and any(isinstance(statement, Opaque) for statement in split.first):
            return None  # it may declare objects that are destroyed at the list's end
        return split

    def _leaned(self, items: Sequence[Item], private: dict[int, frozenset[str]]) -> tuple[list[Item], list[Item]]:
        """What starts communications, with what that needs; and the rest. The fewer statements start them, the further up they
        can move."""
        needed: list[Item] = []
        others: list[Item] = []
        for item in reversed(items):
            is_invariant = _starts(item.effects) or any(self._conflict(item, n, private) is not None for n in needed)
            (needed if is_invariant else others).insert(0, item)
        return needed, others

    def _start_placed(self, part: Item, order: list[Item], private: dict[int, frozenset[str]]) -> bool:
        """Moves a communication's start up as far as it may go, but past no wait once there is computation to hide it.

        Successive exchanges are better than simultaneous ones: the first to be needed has the network to itself.
        """
        sending = _sends(part.effects)
        group, passed = [part], list[Item]()
        produced: tuple[Item, Item] | None = None
        worked = False
        for other in reversed(order):
            reason = next((r for g in group if (r := self._conflict(other, g, private)) is not None), None)
            if reason is not None and self._comes_along(other):
                group.insert(0, other)  # a small statement that it needs
                continue
            if reason is not None:
                found = self._producer_split(other, group, private) if sending else None
                if isinstance(found, Conflict):
                    self.refused(part.statement, found)
                elif found is not None:
                    produced = found
                elif not passed:
                    self.refused(part.statement, reason)
                break
            if worked and _waits(other.effects):
                break
            worked = worked or self._is_passed_work(other, sending)
            passed.insert(0, other)
        if produced is not None:
            place = order.index(other)
            order[place : place + 1] = produced
            passed.insert(0, produced[1])
        # It need not go further up than past what it gains by passing.
        while passed and not (_waits(passed[0].effects) or self._is_passed_work(passed[0], sending)):
            passed.pop(0)
        if not passed:
            return False
        transformation = "start-earlier" if any(self._is_passed_work(p, sending) for p in passed) else "together"
        if not self.allowed(transformation):
            return False
        transformation = transformation if produced is None else "split-producer"
        # Small statements that were collected only for this part, and that nothing passed needs, may stay.
        place = order.index(passed[0])
        kept = [g for g in group if g is part or order.index(g) > place]
        for item in kept[:-1]:
            order.remove(item)
        order[place:place] = kept
        self.moved.append(Move(transformation, part.statement, passed[0].statement))
        return True

    def _producer_split(
        self, producer: Item, group: Sequence[Item], private: dict[int, frozenset[str]]
    ) -> tuple[Item, Item] | Conflict | None:
        """Splits computation of which a start needs only a part: that part, which precedes the start, and the rest, which may
        follow it; or says why not."""
        if producer.early or producer.late or producer.behind_barrier or producer.values is None:
            return None
        if not (self.allowed("split-producer") and self.allowed("start-earlier")):
            return None
        values = producer.values

        def item(statement: Statement) -> Item:
            effects = self.analysis.after(values, [statement], self.procedure)[0]
            return Item(statement, effects, values, unexposed=producer.unexposed)

        probes: dict[int, Item] = {}

        def independent(statement: Statement, chosen: Chosen | None = ()) -> bool:
            if id(statement) not in probes:
                probes[id(statement)] = item(statement)
            probe = probes[id(statement)]
            return all(self._conflict(probe, g, private, chosen) is None for g in group)

        start = Ends([g.effects for g in group], [g.statement for g in group], values)
        split = self.split_work_before(producer.statement, self.procedure, start, independent)
        if not isinstance(split, Split):
            return split
        boundary, inside = item(split.first[0]), item(split.last[0])
        private[id(boundary)] = private[id(inside)] = private[id(producer)]
        return boundary, inside

    def _is_passed_work(self, other: Item, sending: bool) -> bool:
        """Whether it is computation that hides a transfer started before it: for a receive also what produces the message that
        is sent."""
        return self._is_work(other) and not (sending and _sends(other.effects))

    def _comes_along(self, other: Item) -> bool:
        small = not self._is_work(other) and other.statement.label is None
        return small and not (other.late or _waits(other.effects) or other.effects.operations)

    def _work_placed(self, part: Item, order: list[Item], private: dict[int, frozenset[str]]) -> bool:
        """Moves computation independent of a communication, or the part of it that is, into the time the communication is in
        flight."""
        passed = self._back_to_an_end(order)
        if passed is None or not self.allowed("wait-later"):
            return False
        along, passed = self._coming_along(part, passed, private)
        if self._blocking(part, passed, private):
            return self._head_placed(part, order, private)
        self._move_up([*along, part], order, passed[0], "wait-later")
        return True

    def _head_placed(self, part: Item, order: list[Item], private: dict[int, frozenset[str]]) -> bool:
        """Moves the part of a statement that is independent of a communication into the time the communication is in flight."""
        passed = self._back_to_an_end(order)
        if passed is None or part.behind_barrier or not self._is_work(part) or not self.allowed("split-loop"):
            return False
        along, passed = self._coming_along(part, passed, private)
        found = self._split_work(part, passed, private)
        if isinstance(found, Conflict):
            for other, reason in self._blocking(part, passed, private):
                if reason.kind == "data" and _waits(other.effects):
                    self.refused_work(other.statement, found)
        if not isinstance(found, tuple):
            return False
        self._move_up([*along, found[0]], order, passed[0], "split-loop")
        order.append(found[1])
        return True

    def _coming_along(
        self, part: Item, passed: Sequence[Item], private: dict[int, frozenset[str]]
    ) -> tuple[list[Item], list[Item]]:
        """The small statements that the computation needs and that may move with it, such as those that set its loops' bounds;
        and the others."""
        along: list[Item] = []
        for other in reversed(passed):
            # Clocks read around a wait stay around it.
            plain = self._comes_along(other) and not (other.effects.states or other.effects.io)
            if plain and any(self._conflict(other, i, private) is not None for i in (part, *along)):
                along.insert(0, other)
        others: list[Item] = []
        for item in passed:
            if item not in along:
                others.append(item)
            elif self._blocking(item, others, private):
                return [], list(passed)
        return along, others

    def _move_up(self, items: Sequence[Item], order: list[Item], past: Item, transformation: str) -> None:
        """Moves computation (the last item), with the small statements it needs, before ``past``."""
        self.moved.append(Move(transformation, items[-1].statement, past.statement))
        for item in items[:-1]:
            order.remove(item)
        place = order.index(past)
        order[place:place] = items

    @staticmethod
    def _back_to_an_end(order: Sequence[Item]) -> list[Item] | None:
        """The items from the nearest wait for something already in flight; None if other ranks would wait for what is in
        between."""
        passed: list[Item] = []
        for other in reversed(order):
            if other.behind_barrier:
                break
            ends = other.late or (_waits(other.effects) and not _starts(other.effects))
            starts = _sends_messages(other.effects) if other.late else _starts(other.effects)
            if not ends and passed and passed[0].late:
                break
            if starts or (ends and not (other.late or _completes(other.effects))):
                break
            passed.insert(0, other)
        while passed and not (passed[0].late or _completes(passed[0].effects)):
            passed.pop(0)
        return passed or None

    def _expanded(self, block: Block) -> list[Item]:
        parts: list[Item] = []
        prefix = self.analysis.beginning(self.procedure)
        seen = {NOWHERE}
        for statement in block.statements:
            effects = self.analysis.step(prefix, statement, self.procedure).effects
            split = self._split_itself(statement, prefix.values) if effects.operations else None
            if split is None:
                items = [Item(statement)]
            else:
                items = [Item(s, early=True, whole=statement) for s in split.first]
                items += [Item(s, late=True, whole=statement) for s in split.last]
            for item in items:
                before, prefix = prefix, self.analysis.step(prefix, item.statement, self.procedure)
                item.effects, item.values = prefix.effects, before.values
                place = home(item.whole or item.statement)
                # Of a split statement only the first part follows the barrier.
                item.behind_barrier = place not in seen and self.barriers.before(place)
                seen.add(place)
            parts += items
        return parts

    def _split_itself(self, statement: Statement, values: Environment) -> Split | None:
        """Splits a statement that both starts communications and waits, between the two."""
        if self.barriers.inside(statement):
            return None
        if isinstance(statement, Call):
            return self.split_call(statement, self.procedure, values)
        if isinstance(statement, If):
            return self._split_if(statement)
        if isinstance(statement, Loop):
            return self._split_last_iteration(statement, values)
        return None

    def _split_last_iteration(self, loop: Loop, values: Environment) -> Split | None:
        """Splits a loop with a known trip count before the last iteration's waits.

        before:  do x = 1, 3 ; post ; arrive ; end do
        after:   do x = 1, 3 ; post ; if (x /= 3) arrive ; end do   |   x = 3 ; arrive
        """
        bounds = [*values.ends(loop), values.affine(loop.step)]
        if any(b is None or b.terms for b in bounds) or loop.declares or loop.body.form != "lines":
            return None
        lower, upper, step = (b.constant for b in bounds if b is not None)
        if step == 0 or (upper - lower) // step < 0 or self._bounds_change(loop):
            return None
        if any(s.label is not None for s in loop.walk()):
            return None  # a label cannot be in both parts
        final = lower + (upper - lower) // step * step
        split = self.split(loop.body, must_split=True)
        if split is None or any(isinstance(s, Jump) for s in loop.body.walk()) or _hands_on_declared(split):
            return None
        variable = Name(loop.variable)
        test = Operation("!=", (variable, Number(final)))
        again = If(test, replace(loop.body, statements=split.last), span=NOWHERE)
        first = replace(loop, body=replace(loop.body, statements=(*split.first, again)))
        before, after = (Assign(variable, Number(value), span=NOWHERE) for value in (final, final + step))
        ending = (before, *split.last, *((after,) if self._needed_after(loop) else ()))
        last = Compound(replace(loop.body, statements=ending), span=NOWHERE)
        return Split((first,), (last,))

    def _bounds_change(self, loop: Loop) -> bool:
        """Whether the body may write the bounds' operands: C evaluates them again in every iteration."""
        written, everything = self.analysis.written(loop.body, self.procedure)
        names = {e.symbol.key for e in loop.every_expression() if isinstance(e, Name)}
        return everything or bool(names & written)

    def _needed_after(self, loop: Loop) -> bool:
        """Whether the loop's variable is live after the loop."""
        liveness = self.analysis.liveness(self.procedure)
        after = liveness.after(loop)
        return after is None or loop.variable.key in after or loop.variable.key not in liveness.followed

    def _split_if(self, statement: If) -> Split | None:
        split = [self._split_branch(block) for block in statement.blocks() if statement.label is None]
        if not any(split) or any(h is not None and _hands_on_declared(h) for h in split):
            return None
        first_blocks, last_blocks = [], []
        for block, part in zip(statement.blocks(), split, strict=True):
            effects = self.analysis.effects_of(block.statements, self.procedure)
            if part is not None:
                first_blocks.append(replace(block, statements=part.first))
                last_blocks.append(replace(block, statements=part.last))
            elif any(_waits(e) for e in effects):
                first_blocks.append(_emptied(block))
                last_blocks.append(block)
            else:
                first_blocks.append(block)
                last_blocks.append(_emptied(block))
        first = with_blocks(statement, first_blocks)
        last = with_blocks(statement, last_blocks)
        condition = Evaluate(statement.condition, span=statement.span)
        test, before = self.analysis.effects_of([condition, first], self.procedure)
        if not is_only_read(test) or conflict(test, before, self.analysis.aliases) is not None:
            return None
        return Split((first,), (last,))

    def _split_branch(self, block: Block) -> Split | None:
        if block.form != "chain":
            return self.split(block, must_split=True)
        inner = block.statements[0]
        return self._split_if(inner) if isinstance(inner, If) else None

    def _private(self, block: Block, parts: Sequence[Item]) -> dict[int, frozenset[str]]:
        """For every part, its private variables: local ones that carry no value into or out of it."""
        body = self._body if self._body is not None else self.procedure.body
        expanded = replace(block, statements=tuple(p.statement for p in parts))
        whole = substitute_block(body, block, expanded)
        if whole is body:  # variables that the other part of a split statement needs would be missed
            return {id(part): frozenset[str]() for part in parts}
        procedure = replace(self.procedure, body=whole)
        shared = self.analysis.shared(self.procedure)
        counting = self.analysis.counting(self.procedure)
        liveness = Liveness(procedure, lambda s: self.analysis.plain(s, self.procedure), shared, counting)
        result = {}
        for part in parts:
            after = liveness.after(part.statement)
            gone = frozenset() if after is None else liveness.followed - after
            part.unexposed = liveness.followed - liveness.exposed(part.statement)
            result[id(part)] = gone & part.unexposed
        return result

    def _blocking(
        self, part: Item, last: Sequence[Item], private: dict[int, frozenset[str]]
    ) -> list[tuple[Item, Conflict]]:
        found = []
        for other in last:
            reason = self._conflict(other, part, private)
            if reason is not None:
                found.append((other, reason))
        return found

    def _conflict(
        self, earlier: Item, later: Item, private: dict[int, frozenset[str]], chosen: Chosen | None = ()
    ) -> Conflict | None:
        if earlier.behind_barrier or later.behind_barrier:
            return Conflict("unknown", "a line for the preprocessor stands between", later.effects.where)
        name = hidden_name(earlier.statement, later.statement)
        if name is not None:
            return Conflict("data", f"{name} is declared here", earlier.effects.where, name)
        own = private[id(later)] & earlier.unexposed
        return conflict(earlier.effects, later.effects, self.analysis.aliases, private=own, chosen=chosen)

    def _split_work(
        self, part: Item, passed: Sequence[Item], private: dict[int, frozenset[str]]
    ) -> tuple[Item, Item] | Conflict | None:
        """Splits computation of which a part is independent of what it would pass; or says why none is."""
        assert part.values is not None
        ends = Ends([p.effects for p in passed], [p.statement for p in passed], part.values)
        # A list is processed once for itself and once more in each list around it, with the same objects.
        asked = tuple(map(id, (part.statement, ends.values, *ends.effects, *ends.statements)))
        if asked in self._whole:
            return None
        split = self.split_against(part.statement, ends, self.procedure)
        if not isinstance(split, Split):
            self._whole[asked] = part.statement, ends
            return split
        one, two = Item(split.first[0], values=part.values), Item(split.last[0], late=True)
        one.effects, two.effects = self.analysis.after(part.values, [one.statement, two.statement], self.procedure)
        private[id(one)] = private[id(two)] = private[id(part)]
        one.unexposed = two.unexposed = part.unexposed
        if self._blocking(one, passed, private):
            return None
        return one, two

    def _is_work(self, part: Item) -> bool:
        if part.work is None:
            part.work = works([part.statement], self.analysis.program, self.procedure)
        return part.work


def _composed(outer: Callable[[Block], Block], inner: Callable[[Block], Block]) -> Callable[[Block], Block]:
    return lambda block: outer(inner(block))


def _with_branch(block: Block, place: int, branch: int, inner: Block) -> Block:
    """The block with ``inner`` as block number ``branch`` of its statement number ``place``."""
    statements = list(block.statements)
    blocks = list(statements[place].blocks())
    blocks[branch] = inner
    statements[place] = with_blocks(statements[place], blocks)
    return with_statements(block, statements)


def _cut(order: Sequence[Item]) -> int | None:
    """Where to split the list: before its first wait, if something starts before that; else before its last one, if nothing
    starts after it.
    """
    waits = [n for n, p in enumerate(order) if p.late or (_waits(p.effects) and not p.early)]
    if not waits:
        return None
    if waits[0] > 0 and any(_starts(p.effects) for p in order[: waits[0]]):
        return waits[0]
    ends = waits[-1]
    alone = not any(_starts_messages(p.effects) for p in order[ends:])
    return ends if alone and ends > 0 else None


def _joined(order: Sequence[Item]) -> tuple[Statement, ...]:
    """The statements, with adjacent parts of a split one joined again."""
    statements: list[Statement] = []
    skip = False
    for item, following in zip_longest(order, order[1:]):
        if skip:
            skip = False
            continue
        together = following is not None and item.early and following.late and item.whole is following.whole
        skip = together and item.whole is not None
        statements.append(item.whole if skip and item.whole is not None else item.statement)
    return tuple(statements)


def _hands_on_declared(split: Split) -> bool:
    """Whether the second part may need declarations of the first, which would be out of scope in a block of its own."""
    if any(map(is_for_its_block, split.first)):
        return True
    declared = frozenset[Symbol]().union(*(declared_in(s) for s in split.first))
    return any(declared & variables_of(s) for s in split.last)


def _emptied(block: Block) -> Block:
    """The branch without statements; an ``else if`` keeps its head."""
    inner = block.statements[0] if block.statements else None
    if block.form == "chain" and isinstance(inner, If):
        return replace(block, statements=(with_blocks(inner, [_emptied(b) for b in inner.blocks()]),))
    return replace(block, statements=())


def _waits(effects: Effects) -> bool:
    """Whether it may have to wait for other ranks."""
    return any(o.call.kind is mpi.Kind.COMPLETION or o.call.blocking for o in effects.operations)


def _sends_messages(effects: Effects) -> bool:
    return any(o.call.kind is mpi.Kind.SEND for o in effects.operations)


def _starts_messages(effects: Effects) -> bool:
    return any(o.call.kind in (mpi.Kind.SEND, mpi.Kind.RECV) for o in effects.operations)


def _completes(effects: Effects) -> bool:
    """Whether it waits only for what was started before."""
    kinds = [o.call.kind for o in effects.operations if o.call.blocking or o.call.kind is mpi.Kind.COMPLETION]
    return bool(kinds) and all(kind is mpi.Kind.COMPLETION for kind in kinds)


def _starts(effects: Effects) -> bool:
    """Whether it starts communications that other ranks wait for, or that receive something, without waiting itself."""
    kinds = (mpi.Kind.SEND, mpi.Kind.RECV, mpi.Kind.COLLECTIVE)
    return any(o.call.kind in kinds and not o.call.blocking for o in effects.operations)


def _sends(effects: Effects) -> bool:
    kinds = (mpi.Kind.SEND, mpi.Kind.COLLECTIVE)
    return any(o.call.kind in kinds and not o.call.blocking for o in effects.operations) and not _waits(effects)
