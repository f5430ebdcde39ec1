"""Which local variables are live across the cut between a procedure's two outlined parts, which cannot share them.

A variable without aliases is live across the cut if the first part may write it and the second may read it before writing it.
Any other is if the first part may write it and the second accesses it in any way, or if the second may access it through
something the first left behind: a pointer, or a communication in flight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lapwing.overlap.analysis.iteration_order import written_first
from lapwing.overlap.analysis.liveness import Liveness
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.accesses import Memory
from lapwing.overlap.ir.expressions import Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import variables_of
from lapwing.overlap.ir.statements import Compound, Declare, Statement, is_unread


def own_variables(analysis: Analysis, procedure: Procedure) -> dict[str, Symbol]:
    """The variables of which each call of the procedure has its own instance, and its dummy arguments, by key."""
    prefix = f"procedure {analysis.origin(procedure).key}::"
    kinds = (Storage.LOCAL, Storage.ARGUMENT)
    return {s.key: s for s in procedure.symbols.values() if s.storage in kinds and s.key.startswith(prefix)}


def is_local(symbol: Symbol) -> bool:
    """Of a procedure's own variables, whether each call has its own instance: it is not a dummy argument that denotes the
    caller's."""
    return symbol.storage is Storage.LOCAL or symbol.by_value


def live_across_cut(
    analysis: Analysis,
    procedure: Procedure,
    own: Mapping[str, Symbol],
    declared: Sequence[Declare],
    first: Sequence[Statement],
    last: Sequence[Statement],
) -> frozenset[str] | None:
    """Keys of the variables that are live across the cut from ``first`` to ``last``, which has the declarations ``declared``,
    too; None if that is unknown."""
    local = {key: s for key, s in own.items() if is_local(s)}
    changing = [statement for statement in first if not any(statement is d for d in declared)]
    undeclared = replace(procedure.body, statements=tuple(last))
    last = (*declared, *last)
    rest = replace(procedure.body, statements=last)
    liveness = Liveness(
        replace(procedure, body=rest),
        lambda s: analysis.plain(s, procedure),
        analysis.shared(procedure),
    )
    if liveness.everything:
        return None
    split = _Parts(analysis, procedure, local)
    written = split.written(first)
    # A repeated declaration restores its variables' initial values, but not values assigned after it.
    needed = written & local.keys() & liveness.exposed(Compound(rest, span=procedure.span))
    needed |= split.written(changing) & local.keys() & liveness.exposed(Compound(undeclared, span=procedure.span))
    needed -= {
        key for key in needed if _is_fixed_array(local[key]) and written_first(analysis, rest, procedure, local[key])
    }
    unseen = local.keys() - liveness.followed
    left_behind = split.accessed(first) & split.reached(last)
    return frozenset(needed | (unseen & written & split.accessed(last)) | left_behind)


class _Parts:
    """How the procedure's parts use its local variables."""

    def __init__(self, analysis: Analysis, procedure: Procedure, local: Mapping[str, Symbol]) -> None:
        self._analysis = analysis
        self._procedure = procedure
        self._local = local
        shared = analysis.shared(procedure)
        # Variables that code outside the sources, or unread code, may know.
        self._known = {k for k, s in local.items() if k in shared or analysis.aliases.escaped(Memory(k, s))}

    def written(self, statements: Sequence[Statement]) -> set[str]:
        """The local variables that the statements may write."""
        found = set[str]()
        for statement, effects in zip(statements, self._analysis.effects_of(statements, self._procedure), strict=True):
            found |= effects.written_keys
            if effects.barrier is not None:
                found |= self._known | {s.key for s in variables_of(statement)}
                found |= self._local.keys() if any(map(is_unread, statement.walk())) else set()
        return self._with_overlays(found)

    def accessed(self, statements: Sequence[Statement]) -> set[str]:
        """The local variables that the statements name, or may read or write, declarations aside."""
        found = {symbol.key for statement in statements for symbol in variables_of(statement)}
        for statement, effects in zip(statements, self._analysis.effects_of(statements, self._procedure), strict=True):
            found |= effects.read_keys
            found |= set() if isinstance(statement, Declare) else effects.written_keys
            found |= self._known if effects.barrier is not None else set()
        return self._with_overlays(found)

    def reached(self, statements: Sequence[Statement]) -> set[str]:
        """The local variables that the statements may read or write other than by name."""
        found = set[str]()
        for effects in self._analysis.effects_of(statements, self._procedure):
            found |= self._known if effects.barrier is not None else set()
            for access in effects.accesses:
                found |= {m.key for m in access.memory if m.symbol != access.symbol}
        return found & self._local.keys()

    def _with_overlays(self, keys: set[str]) -> set[str]:
        """The local variables among the keys, and those that share storage with them."""
        overlays = {s.overlay for k, s in self._local.items() if k in keys} - {None}
        return {k for k, s in self._local.items() if k in keys or s.overlay in overlays}


def _is_fixed_array(symbol: Symbol) -> bool:
    return symbol.dimensions is not None and not (symbol.allocatable or symbol.pointer)
