"""The prologue: which statements of a procedure could run while its previous call still waits for a transfer.

The statements before the transfer are partitioned into *early* ones, whose only effect is what they compute, and the others,
which stay (messages, timers, output, and what depends on them).

Obligation: no early statement conflicts with one it passes, and no local variable carries a value from the early ones to those
that stay, since the two become different procedures. Both may need initialised declarations. Collective calls may be early,
too, if no other communication is between the transfer and their original place: every rank then starts its collectives in the
original order, which is all that MPI requires (MPI 3.1, 5.12).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap import mpi
from lapwing.overlap.analysis.dependence import conflict
from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.analysis.effects.value_numbering import Environment
from lapwing.overlap.analysis.liveness import Liveness
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.expressions import Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import message_of, rewrite, works
from lapwing.overlap.ir.statements import Call, Compound, Declare, Evaluate, Loop, Nothing, Statement, While


def _has_fixed_size(symbol: Symbol) -> bool:
    return symbol.storage is Storage.LOCAL and all(isinstance(d.upper, Number) for d in symbol.dimensions or ())


def _with_beginning(statement: Statement) -> Sequence[Statement]:
    """The first part of a loop's header as a statement before the loop, since it is certainly executed first."""
    if isinstance(statement, While) and len(statement.parts) > 1:
        first, *others = statement.parts
        return (Evaluate(first, span=statement.span), replace(statement, parts=tuple(others)))
    return (statement,)


@dataclass(frozen=True)
class Prologue:
    """``early`` and ``staying``: the statements of ``before`` that may be early and those that stay, in order; declarations are
    in either or both. ``effects``: of the early statements, one after the other."""

    procedure: Procedure
    early: tuple[Statement, ...]
    staying: tuple[Statement, ...]
    effects: tuple[Effects, ...]

    def has_work(self, analysis: Analysis) -> bool:
        """Whether there is enough computation to be worth the change; loops of unknown length may be long, those with one
        iteration per rank are not."""
        if not works(self.early, analysis.program, self.procedure):
            return False
        iterations = [_trip_count(s, analysis) for s in self.early if message_of(s) is None]
        calls = any(isinstance(inner, Call) and message_of(inner) is None for s in self.early for inner in s.walk())
        return calls or sum(t if t is not None else _LEAST_ITERATIONS for t in iterations) >= _LEAST_ITERATIONS

    @property
    def collectives(self) -> tuple[Call, ...]:
        """The early collective calls."""
        return tuple(s for s in self.early if isinstance(s, Call) and message_of(s) is not None)


def _is_collective(statement: Statement) -> bool:
    """Whether it is a blocking collective call that moves data."""
    message = message_of(statement)
    return message is not None and message.kind is mpi.Kind.COLLECTIVE and message.blocking and bool(message.buffers)


# A thousand iterations of a small loop take about as long as a message of a fast network does.
_LEAST_ITERATIONS = 1000
_RANKS = 64


def _trip_count(statement: Statement, analysis: Analysis) -> int | None:
    """How often the innermost statements of a loop nest run; None where that is not known."""
    inside = [_trip_count(s, analysis) for block in statement.blocks() for s in block.statements]
    if isinstance(statement, While) or None in inside:
        return None
    total = max(1, sum(iterations or 0 for iterations in inside))
    if not isinstance(statement, Loop):
        return total if inside else 0
    if any(isinstance(e, Name) and e.symbol in analysis.rank_counts for e in statement.upper.walk()):
        return _RANKS * total
    (lower, upper), step = Environment(analysis.terms).ends(statement), analysis.on_entry(statement.step)
    if lower is None or upper is None or step is None or step.terms or step.constant == 0:
        return None
    length = upper - lower
    return None if length.terms else max(0, length.constant // step.constant + 1) * total


def mentioned(statements: Iterable[Statement]) -> frozenset[str]:
    return frozenset(
        e.symbol.key for s in statements for inner in s.walk() for e in inner.every_expression() if isinstance(e, Name)
    ) | frozenset(
        v.key
        for s in statements
        for inner in s.walk()
        for v in [getattr(inner, "variable", None)]
        if isinstance(v, Symbol)
    )


def unused(statements: Sequence[Statement]) -> tuple[str, ...]:
    """Names of variables that the statements declare but do not use: a declaration may declare several."""
    declared = [v for s in statements if isinstance(s, Declare) for v, _ in s.variables]
    used = mentioned(s for s in statements if not isinstance(s, Declare))
    used |= mentioned(Evaluate(e, span=s.span) for s in statements if isinstance(s, Declare) for e in s.expressions())
    return tuple(v.name for v in declared if v.key not in used)


class PrologueFinder:
    """Partitions the statements before ``transfer``, which is in the procedure's top-level list. ``collectives``: whether
    collective calls may be early."""

    def __init__(self, analysis: Analysis, procedure: Procedure, transfer: Call, *, collectives: bool) -> None:
        self._analysis = analysis
        self._procedure = procedure
        self._collectives = collectives
        statements = procedure.body.statements
        place = next(n for n, s in enumerate(statements) if s is transfer)
        self._before = statements[:place]
        self._after = statements[place:]
        self._effects = analysis.effects_of(self._before, procedure)
        liveness = Liveness(procedure, lambda s: analysis.plain(s, procedure), analysis.shared(procedure))
        self._followed = liveness.followed
        self._exposed = [liveness.exposed(s) for s in self._before]
        self._own = {s.key for s in procedure.symbols.values() if s.storage in (Storage.LOCAL, Storage.ARGUMENT)}

    def find(self, without: frozenset[int]) -> Prologue:
        """The early statements, except those with places in ``without``."""
        banned = set(without)
        while True:
            early = self._chosen(banned)
            carried = self._carrying(early) or self._idle(early)
            if not carried:
                return self._work(early)
            banned |= carried

    def place_of(self, statement: Statement) -> int:
        return next(n for n, s in enumerate(self._before) if s is statement)

    def _chosen(self, banned: set[int]) -> list[int]:
        early: list[int] = []
        staying: list[Effects] = []
        for number, (statement, effects) in enumerate(zip(self._before, self._effects, strict=True)):
            movable = number not in banned and self._is_movable(statement, effects)
            movable = movable and not self._lacks(statement, early)
            movable = movable and not (effects.operations and any(other.operations for other in staying))
            private = self._followed - self._exposed[number]
            if movable and all(
                conflict(other, effects, self._analysis.aliases, private=private) is None for other in staying
            ):
                early.append(number)
                if isinstance(statement, Declare):
                    staying.append(replace(effects, accesses=tuple(effects.reads())))
            elif not isinstance(statement, Nothing):
                staying.append(effects)
        return early

    def _lacks(self, statement: Statement, early: Sequence[int]) -> bool:
        """Whether it names a variable whose declaration beside it is not early."""
        declared = {
            symbol.key
            for n, other in enumerate(self._before)
            if isinstance(other, Declare) and n not in early and other is not statement
            for symbol, _ in other.variables
        }
        return bool(declared & mentioned([statement]))

    def _is_movable(self, statement: Statement, effects: Effects) -> bool:
        """Whether it only computes, in variables that another procedure can name or declare."""
        if isinstance(statement, Nothing) or effects.io or effects.states:
            return False
        if effects.operations and not (self._collectives and _is_collective(statement)):
            return False
        if effects.barrier is not None or effects.leaves is not None:
            return False
        if isinstance(statement, Declare) and not all(_has_fixed_size(symbol) for symbol, _ in statement.variables):
            return False
        for access in effects.accesses:
            symbol = access.symbol
            if symbol is None:
                continue
            if symbol.volatile or symbol.storage is Storage.SAVED:
                return False
            own = access.writes and symbol.key in self._own and not access.through
            if own and (symbol.target or symbol.storage is Storage.ARGUMENT):
                return False
        return True

    def _carrying(self, early: Sequence[int]) -> set[int]:
        """Early statements that assign a local variable which statements that stay need."""
        chosen = set(early)
        declared = tuple(s for s in self._before if isinstance(s, Declare))
        rest = [s for n, s in enumerate(self._before) if n not in chosen and not isinstance(s, Declare)]
        # A copied tree, since liveness identifies statements by identity.
        body = rewrite(replace(self._procedure.body, statements=(*declared, *rest, *self._after)), _with_beginning)
        liveness = Liveness(
            replace(self._procedure, body=body),
            lambda s: self._analysis.plain(s, self._procedure),
            self._analysis.shared(self._procedure),
        )
        without = tuple(s for s in body.statements if all(s is not d for d in declared))
        whole = Compound(replace(body, statements=without), span=self._procedure.span)
        needed = liveness.exposed(whole)
        if liveness.everything:
            needed = mentioned((*rest, *self._after))
        return {
            n
            for n in early
            if not isinstance(self._before[n], Declare)
            and any(
                a.writes and a.symbol is not None and not a.through and a.symbol.key in self._own & needed
                for a in self._effects[n].accesses
            )
        }

    def _idle(self, early: Sequence[int]) -> set[int]:
        """Early statements from after a communication that are neither computation nor needed by any."""
        first = next((n for n, e in enumerate(self._effects) if e.operations), len(self._before))
        needed: list[Effects] = []
        idle = set()
        for number in reversed(early):
            statement, effects = self._before[number], self._effects[number]
            if (
                number < first
                or isinstance(statement, Declare)
                or effects.operations
                or works([statement], self._analysis.program, self._procedure)
                or any(conflict(effects, other, self._analysis.aliases) is not None for other in needed)
            ):
                needed.append(effects)
            else:
                idle.add(number)
        return idle

    def _work(self, early: Sequence[int]) -> Prologue:
        chosen = set(early)
        needed = mentioned(self._before[n] for n in early if not isinstance(self._before[n], Declare))
        kept: list[int] = []
        for number in reversed(early):
            statement = self._before[number]
            if isinstance(statement, Declare):
                if not any(symbol.key in needed for symbol, _ in statement.variables):
                    continue
                needed |= mentioned([statement])
            kept.append(number)
        kept.reverse()
        staying = tuple(s for n, s in enumerate(self._before) if n not in chosen or isinstance(s, Declare))
        return Prologue(
            self._procedure,
            tuple(self._before[n] for n in kept),
            self._without_unused(staying),
            tuple(self._effects[n] for n in kept),
        )

    def _without_unused(self, staying: Sequence[Statement]) -> tuple[Statement, ...]:
        """The statements without declarations of variables that only early statements use."""
        used = set(mentioned((*(s for s in staying if not isinstance(s, Declare)), *self._after)))
        kept: list[Statement] = []
        for statement in reversed(staying):
            if isinstance(statement, Declare):
                effects = self._effects[self.place_of(statement)]
                if self._is_movable(statement, effects) and not any(v.key in used for v, _ in statement.variables):
                    continue
                used |= mentioned([statement])
            kept.append(statement)
        return tuple(reversed(kept))
