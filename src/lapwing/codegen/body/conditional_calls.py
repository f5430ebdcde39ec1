"""Functions that are called under conditions which stay, as in loops that are chains, called where these hold, but before.

    if r2 < cutoff:                            near = r2 < cutoff
        force += r2**-3.5 * dx         →       power = r2**-3.5 where near
                                               if near:
                                                   force += power * dx

Arms are executed symbolically: what variables are there is known until they depend on what is stored on the way, or on loops
inside. What arguments are computed from is computed before the outermost condition, and where that may raise, or elements need
not exist, under the conditions again; what raises is noted in its turn. ``distribution`` then calls the function for many
iterations at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lapwing.codegen.body.distribution import calls_left, calls_where, without_unread
from lapwing.codegen.body.expression import is_quick_power, strip_function
from lapwing.codegen.body.if_conversion import (
    Exists,
    calls_somewhere,
    elements_that_exist,
    is_called,
    is_free,
    without_branches,
)
from lapwing.loopnest.binding import typed as t
from lapwing.loopnest.binding.bound_nest import BoundNest
from lapwing.tiling.invariants import is_invariant

_MOST_ATTEMPTS = 4

_Path = tuple[tuple[t.Local, bool], ...]  # conditions that hold, or do not, where something stands
_Known = dict[t.Local, t.Local | t.Literal | None]  # what variables are, computed before; None where that cannot be


def for_strips(
    bound: BoundNest, body: t.TypedBody, index: str, independent: bool, exists: Exists = lambda _: False
) -> t.TypedBody:
    """The body of a loop that is gone through in strips: without branches, where its iterations are independent and that can be,
    and with functions called before the conditions that they stand under, where they are called for many iterations at once
    then. bound: its nest; index, independent: see ``distribution``; exists: see ``without_branches``."""
    calls = calls_somewhere(body.statements)
    if independent:
        converted = without_unread(without_branches(bound, body, exists, in_strips=True).statements) if calls else []
        if calls and _pays(converted) and not calls_left(converted, index, independent):
            body = replace(body, statements=tuple(converted))
        else:
            body = without_branches(bound, body, exists)
    if not calls:
        return body
    return replace(
        body, statements=_with_calls_before(body, elements_that_exist(bound, body, exists), index, independent)
    )


def _with_calls_before(
    body: t.TypedBody, exists: Exists, index: str, independent: bool
) -> tuple[t.TypedStatement, ...]:
    excluded: set[int] = set()
    for _ in range(_MOST_ATTEMPTS):
        moving = _Moving(exists, frozenset(excluded))
        moved = without_unread(moving.all_of(body.statements), moving.copies)
        if not moving.numbers or not _pays(moved):
            break
        left = calls_left(moved, index, independent)
        if not left:
            return tuple(moved)
        excluded |= {moving.numbers[local] for local in left if local in moving.numbers}
    return body.statements


def _pays(statements: Sequence[t.TypedStatement]) -> bool:
    """Whether calling functions where a condition holds takes less than calling them one by one, as C's library is called in any
    case."""
    calls = (call for s in t.all_statements(statements) for value in t.own_values(s) for call in calls_where(value))
    own = [is_quick_power(call) or t.is_numpy_loop(call) for call in calls]
    return any(own) or not own


def calls_by_strips(statements: Sequence[t.TypedStatement]) -> bool:
    """Whether statements call functions that take less for many iterations at once."""
    nodes = (node for s in t.all_statements(statements) for value in t.own_values(s) for node in t.walk(value))
    calls = (node for node in nodes if isinstance(node, t.Operation) and strip_function(node) is not None)
    return any((is_quick_power(call) or t.is_numpy_loop(call)) and not is_invariant(call) for call in calls)


class _Unknown(Exception):
    """An expression cannot be computed before."""


@dataclass
class _Moving:
    """excluded: numbers of calls that stay."""

    exists: Exists
    excluded: frozenset[int]
    found: list[t.TypedStatement] = field(default_factory=list)
    known: _Known = field(default_factory=dict)
    numbers: dict[t.Local, int] = field(
        default_factory=dict
    )  # of calls that were moved, by the locals of their results
    copies: set[t.Local] = field(default_factory=set)  # what is computed before, again
    _stored: set[str] = field(default_factory=set)  # in the statement that is looked at
    _conditions: dict[_Path, t.Local] = field(default_factory=dict)
    _count: int = 0  # of calls that were looked at
    _locals: int = 0

    def all_of(self, body: Sequence[t.TypedStatement]) -> list[t.TypedStatement]:
        for statement in body:
            self._stored, self._conditions = set(), {}
            done = self._statement(statement, (), self.known)
            self.found.append(done)
        return self.found

    # -- statements --------------------------------------------------------------------------------------------------

    def _statement(self, statement: t.TypedStatement, path: _Path | None, known: _Known) -> t.TypedStatement:
        """path: None where it cannot be computed before whether the statement is come to."""
        match statement:
            case t.TypedIf():
                return self._condition(statement, path, known)
            case t.TypedStore(target=target, value=value):
                statement = replace(statement, value=self._rewritten(value, path, known))
                self._stored.add(target.array)
                return statement
            case t.TypedLocal(local=local, value=value) | t.TypedAssign(local=local, value=value):
                statement = replace(statement, value=self._rewritten(value, path, known))
                if path != () or isinstance(statement, t.TypedAssign):
                    known[local] = self._before(statement.value, path, known)
                return statement
            case t.TypedAccumulate(value=value):
                return replace(statement, value=self._rewritten(value, path, known))
        inside = list(t.all_statements((statement,)))
        known |= {s.local: None for s in inside if isinstance(s, t.TypedLocal | t.TypedAssign | t.TypedRounded)}
        self._stored |= {s.target.array for s in inside if isinstance(s, t.TypedStore)}
        return statement

    def _condition(self, statement: t.TypedIf, path: _Path | None, known: _Known) -> t.TypedIf:
        test = self._rewritten(statement.test, path, known)
        first = self._before(test, path, known)
        sides = []
        for block, holds in ((statement.then, True), (statement.otherwise, False)):
            its_known, its_path = dict(known), self._further(path, first, holds)
            sides.append((tuple(self._statement(s, its_path, its_known) for s in block), its_known))
        (then, one), (otherwise, other) = sides
        inside = list(t.all_statements((statement,)))
        declared = {s.local for s in inside if isinstance(s, t.TypedVariable)}
        for local in dict.fromkeys(s.local for s in inside if isinstance(s, t.TypedAssign)):
            if local not in declared:
                known[local] = self._joined(first, one.get(local), other.get(local))
        return replace(statement, test=test if path or first is None else first, then=then, otherwise=otherwise)

    @staticmethod
    def _further(path: _Path | None, test: t.Local | t.Literal | None, holds: bool) -> _Path | None:
        return (*path, (test, holds)) if path is not None and isinstance(test, t.Local) else None

    def _joined(
        self, test: t.Local | t.Literal | None, one: t.Local | t.Literal | None, other: t.Local | t.Literal | None
    ) -> t.Local | t.Literal | None:
        if one is None or other is None or test is None:
            return None
        return one if one == other else self._named(t.Select(one.dtype, test, one, other, speculable=True))

    # -- expressions -------------------------------------------------------------------------------------------------

    def _rewritten(self, node: t.Typed, path: _Path | None, known: _Known) -> t.Typed:
        """The expression with results of calls that were moved."""
        if path is None or not any(is_called(part) for part in t.walk(node)):
            return node
        match node:
            case t.Select(test=test, then=then, otherwise=otherwise):
                test = self._rewritten(test, path, known)
                if not any(is_called(part) for arm in (then, otherwise) for part in t.walk(arm)):
                    return replace(node, test=test)
                first = self._before(test, path, known)
                then, otherwise = (
                    self._rewritten(arm, self._further(path, first, holds), known)
                    for arm, holds in ((then, True), (otherwise, False))
                )
                return replace(node, test=test, then=then, otherwise=otherwise)
            case t.Operation(operator="&&" | "||" as operator, operands=(operand, *others)):
                its_path: _Path | None = path
                done = [self._rewritten(operand, path, known)]
                for other in others:
                    its_path = self._further(its_path, self._before(done[-1], its_path, known), operator == "&&")
                    done.append(self._rewritten(other, its_path, known))
                return replace(node, operands=tuple(done))
        node = t.mapped(node, lambda child: self._rewritten(child, path, known))
        if path and isinstance(node, t.Operation) and is_called(node) and not is_invariant(node):
            return self._called(node, path, known)
        return node

    def _called(self, node: t.Operation, path: _Path, known: _Known) -> t.Typed:
        call = replace(node, trap=None)
        if strip_function(call) is None:
            return node
        number, self._count = self._count, self._count + 1
        if number in self.excluded:
            return node
        operands = [self._before(operand, path, known) for operand in node.operands]
        if None in operands:
            return node
        arguments = tuple(operand for operand in operands if operand is not None)
        where = t.Operation(call.dtype, "where", (replace(call, operands=arguments), self._where(path)))
        result: t.Typed = self._named(where)
        assert isinstance(result, t.Local)
        self.numbers[result] = number
        if node.trap is not None:
            return replace(node, operator="checked", operands=(result, *node.operands))
        return result

    def _where(self, path: _Path) -> t.Local:
        """A local that says whether a path is taken."""
        if path not in self._conditions:
            (test, holds), before = path[-1], path[:-1]
            value: t.Typed = test if holds else t.Operation("bool", "not", (test,))
            if before:
                value = t.Operation("bool", "&", (self._where(before), value))
            self._conditions[path] = value if isinstance(value, t.Local) else self._named(value)
        return self._conditions[path]

    def _before(self, node: t.Typed, path: _Path | None, known: _Known) -> t.Local | t.Literal | None:
        """What an expression on a path is, computed before; None where that cannot be."""

        def visit(node: t.Typed) -> t.Typed:
            match node:
                case t.Local() if node in known:
                    value = known[node]
                    if value is None:
                        raise _Unknown
                    return value
                case t.Load(array=array) if array in self._stored:
                    raise _Unknown
                case t.Operation(operator="checked", operands=(result, *_)) if result in self.numbers:
                    return result  # what it raises is noted in its turn
                case t.Operation() if is_called(node) and not is_invariant(node) and path != ():
                    raise _Unknown  # it would be called once more
            return t.mapped(node, visit)

        try:
            value = None if path is None else visit(node)
        except _Unknown:
            return None
        if path is None or value is None:
            return None
        if isinstance(value, t.Local | t.Literal):
            return value
        if path and not is_free(value, self.exists):
            value = t.Select(value.dtype, self._where(path), value, t.Literal(value.dtype, 0))
        return self._named(value)

    def _named(self, value: t.Typed) -> t.Local:
        self._locals += 1
        local = t.Local(value.dtype, " before", self._locals)
        self.copies.add(local)
        self.found.append(t.TypedLocal(0, "", local, value))
        return local
