"""What of a loop body may raise, as statements that look for it and do nothing else (inspector and executor: Saltz, Mirchandaney
and Crowley, IEEE Transactions on Computers 40, 1991).

Indices and divisors are looked at that follow from arguments, loop indices and arrays that the nest does not write. Whatever
else decides whether they are evaluated is taken for either, so that something may be found that is never reached, and nothing is
missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapwing.codegen.body.loop_ends import checked_at_ends, looked_up, mentions_index
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.effects import is_cheap
from lapwing.tiling.invariants import is_invariant, raising_invariants

_MOST_NODES = 60  # of an expression that takes the place of a scalar
_UNTRAPPED = frozenset({"/", "//", "%", "<<", ">>"})  # operators that are printed as they are without a trap
_ASSERTING = frozenset({"not zero", "carried"})  # those that give back their operand


class _Unknown(Exception):
    """What may raise depends on what the nest computes."""


@dataclass(frozen=True)
class _Where:
    """known: what scalars are made of, those that are not there aside. is_certain: whether all holds where something is looked
    at that holds where it stands. is_innermost: whether no loop is beside it in the loop around it."""

    known: Mapping[t.Local, t.Typed]
    is_certain: bool = True
    is_innermost: bool = True


def inspector(body: t.TypedBody, written: Sequence[str]) -> tuple[t.TypedStatement, ...] | None:
    """Statements that check all that may raise in an iteration; None where that depends on what iterations compute. written:
    arrays that the nest writes."""
    if any(isinstance(s, t.TypedJump | t.TypedWhile) for s in t.all_statements(body.statements)):
        return None
    try:
        return tuple(_Slice(frozenset(written)).block(body.statements, _Where({})))
    except _Unknown:
        return None


def without_traps(body: t.TypedBody) -> t.TypedBody:
    """The body where nothing raises, and no index that was looked at counts from the end. What is computed before the loops stays
    as it is."""
    kept = frozenset(raising_invariants(body))

    def untrapped(node: t.Typed) -> t.Typed:
        if node in kept:
            return node
        node = t.mapped(node, untrapped)
        match node:
            case t.Load(subscripts=subscripts):
                return replace(node, subscripts=tuple(map(_inside, subscripts)))
            case t.Operation(operator=operator, operands=(operand,)) if operator in _ASSERTING:
                return operand
            case t.Operation(operator="exact +" | "exact -" | "exact *" as operator):
                return replace(node, operator=operator[-1], trap=None)
            case t.Operation(operator=operator) if operator in _UNTRAPPED or operator.startswith("math."):
                return replace(node, trap=None)
            case t.Convert():
                return replace(node, trap=None)
        return node

    return replace(body, statements=tuple(t.with_values(s, untrapped) for s in body.statements))


def _inside(subscript: t.AffineSubscript | t.LookupSubscript) -> t.AffineSubscript | t.LookupSubscript:
    if isinstance(subscript, t.LookupSubscript) and subscript.trap is not None:
        return replace(subscript, trap=None, counts_from_end=False)
    return subscript


@dataclass(frozen=True)
class _Slice:
    """The part of a nest's statements that decides whether something raises."""

    written: frozenset[str]

    def block(self, statements: Sequence[t.TypedStatement], where: _Where) -> list[t.TypedStatement]:
        where = replace(where, is_innermost=not any(isinstance(s, t.TypedFor) for s in t.all_statements(statements)))
        found: list[t.TypedStatement] = []
        for statement in statements:
            found += self._statement(statement, where)
            if isinstance(statement, t.TypedLocal) and (value := self._value(statement.value, where)) is not None:
                where = replace(where, known={**where.known, statement.local: value})
        return found

    def _statement(self, statement: t.TypedStatement, where: _Where) -> list[t.TypedStatement]:
        found = [check for value in t.own_values(statement) for check in self._checks(value, where, statement)]
        match statement:
            case t.TypedIf(test=test, then=then, otherwise=otherwise):
                found += self._guarded(
                    test, where, statement, lambda inside: [self.block(a, inside) for a in (then, otherwise)]
                )
            case t.TypedFor():
                found += self._loop(statement, where)
        return found

    def _loop(self, loop: t.TypedFor, where: _Where) -> list[t.TypedStatement]:
        name = loop.index.name
        known = {local: value for local, value in where.known.items() if not mentions_index(value, name)}
        inner = self.block(loop.body, replace(where, known=known))
        if not inner:
            return []
        ends = [self._value(value, where) for value in (loop.start, loop.stop, loop.step)]
        if None in ends:
            raise _Unknown
        start, stop, step = (end for end in ends if end is not None)
        return checked_at_ends(replace(loop, start=start, stop=stop, step=step, body=tuple(inner)))

    def _checks(self, node: t.Typed, where: _Where, at: t.TypedStatement) -> Iterator[t.TypedStatement]:
        """Looks at what of an expression may raise, in the order in which it is evaluated."""
        if not any(map(t.may_raise, t.walk(node))):
            return
        match node:
            case t.Select(test=test, then=then, otherwise=otherwise):
                yield from self._checks(test, where, at)
                yield from self._guarded_values(test, then, otherwise, where, at)
                return
            case t.Operation(operator="&&" | "||" as operator, operands=(first, second)):
                yield from self._checks(first, where, at)
                never = t.Literal("bool", False)
                then, otherwise = (second, never) if operator == "&&" else (never, second)
                yield from self._guarded_values(first, then, otherwise, where, at)
                return
        for child in t.children(node):
            yield from self._checks(child, where, at)
        match node:
            case t.Load(array=array, subscripts=subscripts):
                for subscript in subscripts:
                    if isinstance(subscript, t.LookupSubscript) and subscript.trap is not None:
                        yield self._check(subscript.index, where, at, array, subscript.axis)
            case t.Operation(operator="/" | "//" | "%", operands=(dividend, divisor)) if t.may_raise(node):
                yield self._check(replace(node, operands=(t.Literal(dividend.dtype, 1), divisor)), where, at)
            case _ if t.may_raise(node):
                yield self._check(node, where, at)

    def _check(
        self, node: t.Typed, where: _Where, at: t.TypedStatement, array: str | None = None, axis: int = 0
    ) -> t.TypedCheck:
        value = self._value(node, where)
        if value is None or (where.is_innermost and not is_cheap(value) and not is_invariant(value)):
            raise _Unknown
        return t.TypedCheck(at.line, at.text, value, array, axis)

    def _guarded_values(
        self, test: t.Typed, then: t.Typed, otherwise: t.Typed, where: _Where, at: t.TypedStatement
    ) -> list[t.TypedStatement]:
        return self._guarded(
            test, where, at, lambda inside: [list(self._checks(a, inside, at)) for a in (then, otherwise)]
        )

    def _guarded(
        self,
        test: t.Typed,
        where: _Where,
        at: t.TypedStatement,
        arms: Callable[[_Where], list[list[t.TypedStatement]]],
    ) -> list[t.TypedStatement]:
        """What both arms of a condition may raise, under the condition where that is known."""
        known = self._value(test, where)
        then, otherwise = arms(where if known is not None else replace(where, is_certain=False))
        if not then and not otherwise:
            return []
        if known is None:
            return [*then, *otherwise]
        # What is the same for all iterations is not worth a loop over those that reach it.
        alike = [s for s in (*then, *otherwise) if _is_alike(s)]
        arms_left = (tuple(s for s in arm if not _is_alike(s)) for arm in (then, otherwise))
        guarded = t.TypedIf(at.line, at.text, known, *arms_left)
        return [*alike, guarded] if guarded.then or guarded.otherwise else alike

    def _value(self, node: t.Typed, where: _Where) -> t.Typed | None:
        """The expression over arguments, loop indices and elements that are not written; None where it is over others."""
        try:
            value = self._known(node, where)
        except _Unknown:
            return None
        return value if sum(1 for _ in t.walk(value)) <= _MOST_NODES else None

    def _known(self, node: t.Typed, where: _Where) -> t.Typed:
        if isinstance(node, t.Local):
            if node not in where.known:
                raise _Unknown
            return where.known[node]
        if isinstance(node, t.Load) and node.array in self.written:
            raise _Unknown
        node = t.mapped(node, lambda child: self._known(child, where))
        return node if where.is_certain or not isinstance(node, t.Load) else looked_up(node)


def _is_alike(statement: t.TypedStatement) -> bool:
    return isinstance(statement, t.TypedCheck) and is_invariant(statement.value)
