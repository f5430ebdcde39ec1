"""Liveness: which local variables are live before and after a statement.

Only local scalars and arrays whose address is not taken are tracked; everything else is always live. In a procedure with goto,
or jumps out of several loops, everything is live everywhere. In a contained procedure the host's variables are tracked, too:
they are live at its end, and at every unknown call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.ir.expressions import Name, Storage, Unread
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import is_hosts
from lapwing.overlap.ir.statements import (
    Assign,
    Block,
    Call,
    Compound,
    Evaluate,
    If,
    Jump,
    Loop,
    Opaque,
    Select,
    Statement,
    While,
)

Keys = frozenset[str]
EffectsOf = Callable[[Statement], Effects]


class Liveness:
    """``effects``: of a statement by itself (sections do not matter). ``shared``: variables that other procedures can name.
    ``counting``: the host's variables that are only loop counters, in all procedures that name them."""

    def __init__(self, procedure: Procedure, effects: EffectsOf, shared: Keys, counting: Keys = frozenset()) -> None:
        self._effects = effects
        self.followed: Keys = frozenset(
            s.key
            for s in procedure.symbols.values()
            if s.storage is Storage.LOCAL and not s.target and s.overlay is None and not s.volatile
        ) | frozenset(
            s.key for s in procedure.symbols.values() if s.storage is Storage.ARGUMENT and s.by_value and not s.target
        )
        self.followed -= shared
        self.hosts: Keys = (
            self.followed & {s.key for s in procedure.symbols.values() if is_hosts(s, procedure)} - counting
        )
        self._after: dict[int, Keys] = {}
        self._after_place: dict[tuple[int, int], Keys] = {}
        self._exposed: dict[int, Keys] = {}
        self._kept: list[Statement] = []  # keeps their ids from being reused
        self.everything = any(
            (isinstance(s, Jump) and s.to is not None) or isinstance(s, Opaque) for s in procedure.body.walk()
        )
        if not self.everything:
            result = frozenset({procedure.result.key}) if procedure.result is not None else frozenset()
            self._exit = result | self.hosts
            self._block(procedure.body, self._exit)

    def after(self, statement: Statement) -> Keys | None:
        """The tracked variables that may be live after the statement (or what it was made from); None: all of them."""
        if self.everything:
            return None
        return self._after.get(id(statement), self._after_place.get((statement.span.start, statement.span.end)))

    def exposed(self, statement: Statement) -> Keys:
        """The tracked variables that the statement may read before it writes them."""
        if id(statement) not in self._exposed:
            self._exposed[id(statement)] = self._before(statement, frozenset())
            self._kept.append(statement)
        return self._exposed[id(statement)]

    def _block(self, block: Block, after: Keys, breaks: Keys = frozenset(), continues: Keys = frozenset()) -> Keys:
        for statement in reversed(block.statements):
            self._after[id(statement)] = self._after.get(id(statement), frozenset()) | after
            self._kept.append(statement)
            if statement.span.source >= 0:
                place = (statement.span.start, statement.span.end)
                self._after_place[place] = self._after_place.get(place, frozenset()) | after
            after = self._before(statement, after, breaks, continues)
        return after

    def _before(
        self, statement: Statement, after: Keys, breaks: Keys = frozenset(), continues: Keys = frozenset()
    ) -> Keys:
        match statement:
            case If(then=then, otherwise=otherwise):
                one = self._block(then, after, breaks, continues)
                two = after if otherwise is None else self._block(otherwise, after, breaks, continues)
                return one | two | self._read_by(statement)
            case Loop(variable=variable, body=body):
                inner = after
                while True:
                    before = self._block(body, inner, after, inner) - {variable.key}
                    if before <= inner:
                        break
                    inner |= before
                killed = {variable.key} if variable.key in self.followed else set()
                return (inner - frozenset(killed)) | self._read_by(statement)
            case While(body=body):
                inner = after
                while True:
                    before = self._block(body, inner, after, inner) | self._read_by(statement)
                    if before <= inner:
                        return inner
                    inner |= before
            case Select(cases=cases):
                return after.union(*(self._block(c, after, breaks, continues) for c in cases)) | self._read_by(
                    statement
                )
            case Compound(body=body):
                return self._block(body, after, breaks, continues)
            case Jump(kind="return" | "stop"):
                return (self._exit if not self.everything else self.followed) | self._read_by(statement)
            case Jump(kind="break"):
                return breaks
            case Jump(kind="continue"):
                return continues
        effects = self._effects(statement)
        # An assignment reads before it writes; everything else is conservatively taken to do so, too.
        return (after - effects.set_keys) | self._reads(effects, statement)

    def _reads(self, effects: Effects, statement: Statement) -> Keys:
        if effects.barrier is not None:
            # Whatever it does, it can access variables without a taken address only by their names.
            unread = any(isinstance(e, Unread) for e in statement.every_expression())
            if unread or not isinstance(statement, Call | Evaluate | Assign):
                return self.followed
        named = self._read_by(statement) | self.hosts if effects.barrier is not None else frozenset()
        return named | effects.read_keys & self.followed

    def _read_by(self, statement: Statement) -> Keys:
        """The variables read by the statement's own expressions, not by its blocks."""
        symbols = {e.symbol.key for e in statement.every_expression() if isinstance(e, Name)}
        return frozenset(symbols) & self.followed


def only_counted(bodies: Iterable[Block]) -> Keys:
    """Variables that are only loop counters: read nowhere but in a loop that counts with them, whatever jumps there are."""
    counted: set[str] = set()
    elsewhere: set[str] = set()
    unread = False

    def look(block: Block, counting: Keys) -> None:
        nonlocal unread
        for statement in block.statements:
            unread = unread or isinstance(statement, Opaque)
            if statement.label is not None:
                elsewhere.update(counting)  # a jump may enter the loop
            inner = counting
            if isinstance(statement, Loop):
                counted.add(statement.variable.key)
                inner = counting | {statement.variable.key}
            for expression in (e for e in statement.every_expression()):
                unread = unread or isinstance(expression, Unread)
                if isinstance(expression, Name) and expression.symbol.key not in counting:
                    elsewhere.add(expression.symbol.key)
            for body in statement.blocks():
                look(body, inner)

    for body in bodies:
        look(body, frozenset())
    return frozenset() if unread else frozenset(counted - elsewhere)
