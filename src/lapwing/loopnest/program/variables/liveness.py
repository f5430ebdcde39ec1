"""Live variables of a function: which names may be read before they are assigned again (a backward may-analysis).

The lattice is the sets of names under union; a statement's transfer function takes away what it assigns and adds what it
reads; loops are iterated to the least fixed point.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lapwing.loopnest.program.variables.names import Event, Use, bound_names, expression_events, statement_events

Names = frozenset[str]
NONE: Names = frozenset()


@dataclass(frozen=True)
class _Exits:
    """What is live where control goes on after break, continue and return, and wherever an error may be caught."""

    after_break: Names = NONE
    after_continue: Names = NONE
    after_return: Names = NONE
    in_handlers: Names = NONE


@dataclass
class Liveness:
    """What is live after each statement, by the identity of its node."""

    _after: dict[int, Names] = field(default_factory=dict)

    @staticmethod
    def of(statements: Sequence[ast.stmt]) -> Liveness:
        """Of a function's body: nothing is live at its end."""
        found = Liveness()
        found._block(statements, NONE, _Exits())
        return found

    def after(self, statement: ast.stmt) -> Names:
        """The names that may be read after a statement of the body. Those in statements that are never reached have none."""
        return self._after.get(id(statement), NONE)

    def _block(self, statements: Iterable[ast.stmt], after: Names, exits: _Exits) -> Names:
        for statement in reversed([*statements]):
            known = self._after.get(id(statement), NONE)
            self._after[id(statement)] = known | after | exits.in_handlers
            after = self._before(statement, after, exits) | exits.in_handlers
        return after

    def _before(self, node: ast.stmt, after: Names, exits: _Exits) -> Names:
        match node:
            case ast.Return(value=value):
                return _through(expression_events(value), exits.after_return)
            case ast.Raise():
                return _through(statement_events(node), exits.in_handlers)
            case ast.Break():
                return exits.after_break
            case ast.Continue():
                return exits.after_continue
            case ast.If(test=test, body=body, orelse=orelse):
                branches = self._block(body, after, exits) | self._block(orelse, after, exits)
                return _through(expression_events(test), branches)
            case ast.While(test=test):
                return self._loop(node, [*expression_events(test)], (), after, exits)
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                head = self._loop(node, [], [*expression_events(target)], after, exits)
                return _through(expression_events(iterated), head)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                # A context manager may swallow an error in the midst of the body.
                inner = self._block(body, after, replace(exits, in_handlers=exits.in_handlers | after))
                events = [e for item in items for part in (item.context_expr, item.optional_vars)
                          for e in expression_events(part)]  # fmt: skip
                return _through(events, inner)
            case ast.Try() | ast.TryStar():
                return self._try(node, after, exits)
            case ast.Match(subject=subject, cases=cases):
                branches = after
                for case in cases:
                    branches |= _through(_reads(case.pattern, case.guard), self._block(case.body, after, exits))
                return _through(expression_events(subject), branches)
        return _through(statement_events(node), after)

    def _loop(
        self,
        node: ast.While | ast.For | ast.AsyncFor,
        test: Sequence[Event],
        target: Sequence[Event],
        after: Names,
        exits: _Exits,
    ) -> Names:
        """What is live where the loop decides whether to go on."""
        ended = self._block(node.orelse, after, exits)
        head = _through(test, ended)
        while True:
            inner = replace(exits, after_break=after, after_continue=head)
            again = head | _through(test, ended | _through(target, self._block(node.body, head, inner)))
            if again == head:
                return head
            head = again

    def _try(self, node: ast.Try | ast.TryStar, after: Names, exits: _Exits) -> Names:
        def at_last(then: Names) -> Names:
            return self._block(node.finalbody, then, exits)

        ended = at_last(after)
        left = _Exits(*map(at_last, (exits.after_break, exits.after_continue, exits.after_return, exits.in_handlers)))
        handled = left.in_handlers
        for handler in node.handlers:
            inner = self._block(handler.body, ended, left) - {handler.name or ""}
            handled |= _through(expression_events(handler.type), inner)
        orelse = self._block(node.orelse, ended, left)
        return self._block(node.body, orelse, replace(left, in_handlers=handled)) | handled


def live_before(statements: Sequence[ast.stmt], after: Names) -> Names:
    """The names that may be read, by statements or after them, before the statements have assigned them."""
    return Liveness()._block(statements, after, _Exits())


def exposed_reads(statements: Sequence[ast.stmt]) -> Names:
    """The names that statements may read before they have assigned them."""
    return live_before(statements, NONE)


def _through(events: Iterable[Event], live: Names) -> Names:
    """What is live before some events, from what is after them."""
    names = set(live)
    for use, name in reversed([*events]):
        if use is Use.READ:
            names.add(name)
        elif use in (Use.ASSIGN, Use.DELETE):
            names.discard(name)
    return frozenset(names)


def _reads(*nodes: ast.AST | None) -> list[Event]:
    """What patterns and guards read; the names that a pattern captures may not be assigned."""
    found = [event for node in nodes for event in expression_events(node)]
    return [(use, name) for use, name in found if use is Use.READ]


def first_reads(loop: ast.For | ast.While) -> Names:
    """The names that the first iteration of a loop, if it has one, surely reads before it assigns them."""
    read: set[str] = set()
    assigned: set[str] = set()

    def note(events: Iterable[Event]) -> None:
        for use, name in events:
            if use is Use.READ and name not in assigned:
                read.add(name)
            assigned.add(name)

    def visit(node: ast.stmt) -> bool:
        """Whether control surely goes on after it."""
        match node:
            case ast.For(target=target, iter=iterated, body=body):
                note(expression_events(iterated))
                note(expression_events(target))
                return all(map(visit, body))
            case ast.While(test=test, body=body):
                note(expression_events(test))
                return all(map(visit, body))
            case ast.If(test=test):
                note(expression_events(test))
                assigned.update(bound_names([node]))
                return not any(isinstance(n, ast.Break | ast.Continue | ast.Return | ast.Raise) for n in ast.walk(node))
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr():
                note(statement_events(node))
                return True
        return False

    visit(loop)
    return frozenset(read)
