"""Assigned variables of a function: which names surely have a value before a statement, and which may have one.

Two forward analyses in one walk. What surely has a value is what all ways to a statement have assigned (a must-analysis), what
may have one is what some way has (a may-analysis); at a loop's head that is all that the loop assigns, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lapwing.loopnest.program.variables.liveness import NONE, Names
from lapwing.loopnest.program.variables.names import (
    Use,
    bound_names,
    expression_events,
    parameter_names,
    statement_events,
)


@dataclass(frozen=True)
class Assigned:
    """Names that surely have a value at a place, and that may have one."""

    surely: Names
    perhaps: Names

    def also(self, names: Iterable[str]) -> Assigned:
        more = frozenset(names)
        return Assigned(self.surely | more, self.perhaps | more)

    def maybe(self, names: Iterable[str]) -> Assigned:
        return Assigned(self.surely, self.perhaps | frozenset(names))


@dataclass
class Assignments:
    """What is assigned before each statement, by the identity of its node."""

    _before: dict[int, Assigned] = field(default_factory=dict)

    @staticmethod
    def of(function: ast.FunctionDef) -> Assignments:
        found = Assignments()
        found._block(function.body, Assigned(NONE, NONE).also(parameter_names(function.args)))
        return found

    def before(self, statement: ast.stmt) -> Assigned:
        """Before a statement of the body. Those that are never reached have nothing."""
        return self._before.get(id(statement), Assigned(NONE, NONE))

    def _block(self, statements: Sequence[ast.stmt], at: Assigned) -> Assigned | None:
        """What is assigned after statements in a row; None where control never comes there."""
        now: Assigned | None = at
        for statement in statements:
            if now is None:
                return None
            self._before[id(statement)] = now
            now = self._after(statement, now)
        return now

    def _after(self, node: ast.stmt, at: Assigned) -> Assigned | None:
        match node:
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return None
            case ast.If(test=test, body=body, orelse=orelse):
                tested = _through(expression_events(test), at)
                return _join(self._block(body, tested), self._block(orelse, tested))
            case ast.For(target=target) | ast.AsyncFor(target=target):
                return self._loop(node, at, bound_names([target]))
            case ast.While():
                return self._loop(node, at, ())
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return self._block(body, at.also(bound_names(items)))
            case ast.Try() | ast.TryStar():
                return self._try(node, at)
            case ast.Match(cases=cases):
                ended: Assigned | None = at
                for case in cases:
                    ended = _join(ended, self._block(case.body, at.also(bound_names([case.pattern]))))
                return ended
        return _through(statement_events(node), at)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, at: Assigned, target: Iterable[str]) -> Assigned:
        deleted = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
        head = Assigned(at.surely - deleted, at.perhaps | bound_names([node]))
        self._block(node.body, head.also(target))
        return _join(head, self._block(node.orelse, head)) or head

    def _try(self, node: ast.Try | ast.TryStar, at: Assigned) -> Assigned | None:
        caught = at.maybe(bound_names([node]))
        ended = self._block(node.body, at)
        if ended is not None:
            ended = self._block(node.orelse, ended)
        for handler in node.handlers:
            ended = _join(ended, self._block(handler.body, caught.also([handler.name] if handler.name else [])))
        last = self._block(node.finalbody, caught)
        return (
            None
            if ended is None or last is None
            else Assigned(ended.surely | last.surely, ended.perhaps | last.perhaps)
        )


def _through(events: Iterable[tuple[Use, str]], at: Assigned) -> Assigned:
    for use, name in events:
        if use is Use.ASSIGN:
            at = at.also([name])
        elif use is Use.MAY_ASSIGN:
            at = at.maybe([name])
        elif use is Use.DELETE:
            at = Assigned(at.surely - {name}, at.perhaps)
    return at


def _join(a: Assigned | None, b: Assigned | None) -> Assigned | None:
    if a is None or b is None:
        return b if a is None else a
    return Assigned(a.surely & b.surely, a.perhaps | b.perhaps)
