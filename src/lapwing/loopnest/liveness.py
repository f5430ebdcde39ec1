"""Which scalars are read later, before they are assigned again: liveness, found backwards through structured statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lapwing.loopnest import ir

Names = frozenset[str]


@dataclass(frozen=True)
class Liveness:
    """Names that are live after a statement, and at the head of a loop, where each of its iterations begins and it ends."""

    _after: dict[int, Names] = field(
        default_factory=dict
    )  # by the statement's identity: equal ones stand in several places
    _heads: dict[int, Names] = field(default_factory=dict)

    def after(self, statement: ir.Statement) -> Names:
        return self._after.get(id(statement), frozenset())

    def head(self, loop: ir.Statement) -> Names:
        return self._heads.get(id(loop), frozenset())

    def note_after(self, statement: ir.Statement, names: Names) -> None:
        self._after[id(statement)] = self.after(statement) | names

    def note_head(self, loop: ir.Statement, names: Names) -> None:
        self._heads[id(loop)] = self.head(loop) | names


@dataclass(frozen=True)
class _Targets:
    """What is live where a break and a continue lead."""

    at_break: Names
    at_continue: Names


def liveness(body: Sequence[ir.Statement], at_end: Collection[str] = ()) -> Liveness:
    """Of the statements of a body, at whose end some names are read."""
    found, last = Liveness(), frozenset(at_end)
    _block(body, last, _Targets(last, last), found)
    return found


def _block(statements: Sequence[ir.Statement], live: Names, targets: _Targets, found: Liveness) -> Names:
    """What is live before statements in a row."""
    for statement in reversed(statements):
        found.note_after(statement, live)
        live = _before(statement, live, targets, found)
    return live


def _before(statement: ir.Statement, live: Names, targets: _Targets, found: Liveness) -> Names:
    match statement:
        case ir.Break():
            return targets.at_break
        case ir.Continue():
            return targets.at_continue
        case ir.SetTemporary(name=name):
            live -= {name}
        case ir.If(then=then, otherwise=otherwise):
            live = _block(then, live, targets, found) | _block(otherwise, live, targets, found)
        case ir.For(body=body):
            live = _head(statement, body, frozenset(), live, found)
        case ir.While(test=test, body=body):
            live = _head(statement, body, temporaries(test), live, found)
    return live.union(*map(temporaries, ir.own_expressions(statement)))


def _head(loop: ir.Statement, body: Sequence[ir.Statement], test: Names, after: Names, found: Liveness) -> Names:
    """What is live at a loop's head: control comes back to it until nothing is added."""
    head = after | test
    while True:
        more = head | _block(body, head, _Targets(after, head), found)
        if more == head:
            found.note_head(loop, head)
            return head
        head = more


def temporaries(expression: ir.Expression) -> Names:
    """The scalars that an expression reads."""
    own = frozenset({expression.name}) if isinstance(expression, ir.Temporary) else frozenset()
    return own.union(*map(temporaries, ir.children(expression)))
