"""Whether a loop carries a dependence, or its iterations may be reordered.

Obligation: no iteration conflicts with another. Privatisable arrays and scalars (those that every iteration writes before it
reads, and that are dead after the loop) do not count; nor do reductions, whose order does not matter (reductions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.affine.affine import Affine, Condition
from lapwing.affine.intersection import covers
from lapwing.affine.sections import Section
from lapwing.overlap.analysis.dependence import conflict
from lapwing.overlap.analysis.effects.effects import Effects
from lapwing.overlap.analysis.effects.value_numbering import Terms
from lapwing.overlap.analysis.liveness import Liveness, only_counted
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.ir.accesses import Access
from lapwing.overlap.ir.expressions import Name, Number, Storage, Symbol
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.statements import Block, Compound, If, Loop, Statement


def carries_no_dependence(
    analysis: Analysis,
    loop: Loop,
    procedure: Procedure,
    body: Sequence[Statement],
    ones: Sequence[Statement],
    others: Sequence[Statement],
    *,
    backwards: bool = False,
    accumulated: frozenset[str] = frozenset(),
) -> bool:
    """Whether ``ones`` of one iteration never conflict with ``others`` of another (``backwards``: of a later one).

    ``body``: all statements of an iteration, in order. ``accumulated``: keys of reduction scalars, whose order does not matter.
    """
    terms = analysis.terms
    here = terms.of_variable(loop.variable)
    there = f"{here}_there"
    by_statement = dict(zip(map(id, body), analysis.effects_of(body, procedure), strict=True))
    private = _private(analysis, loop, procedure) | accumulated
    a, b = Affine.of(here), Affine.of(there)
    varying = analysis.written(loop.body, procedure)[0] | {loop.variable.key}
    later: Condition = (((b - a - 1, ">="),),)
    earlier: Condition = (((a - b - 1, ">="),),)
    context: Condition = (*later, *earlier)
    if backwards and isinstance(loop.step, Number):
        context = later if loop.step.value > 0 else earlier
    moved = [_renamed(by_statement[id(y)], terms, varying) for y in others]
    return not any(
        conflict(by_statement[id(x)], y, analysis.aliases, private=private, context=context) is not None
        for x in ones
        for y in moved
    )


def _renamed(effects: Effects, terms: Terms, varying: frozenset[str]) -> Effects:
    """The same effects in another iteration, where whatever depends on these variables may differ."""

    def elsewhere(section: Section) -> Section:
        names = (n for n in section.names if terms.origin.get(n, frozenset()) & varying)
        return section.without_lookups(varying).substitute({n: Affine.of(f"{n}_there") for n in names})

    def in_other_iteration(access: Access) -> Access:
        anchored = access.anchor.forms() if access.anchor is not None else ()
        if access.section is None or any(terms.origin.get(n, frozenset()) & varying for e in anchored for n in e.names):
            return replace(access, section=None, anchor=None)
        return replace(access, section=elsewhere(access.section))

    return replace(effects, accesses=tuple(in_other_iteration(a) for a in effects.accesses))


def _private(analysis: Analysis, loop: Loop, procedure: Procedure) -> frozenset[str]:
    """Privatisable variables: written in every iteration before they are read, and dead after the loop."""
    liveness = analysis.liveness(procedure)
    if liveness.everything:
        return counters(liveness, procedure)
    after = liveness.after(loop)
    written_later = after if after is not None else liveness.followed
    scalars = {s.key for s in procedure.symbols.values() if s.dimensions is None and s.key in liveness.followed}
    inside = _exposed_in_order(liveness, loop.body)
    arrays = {
        s.key
        for s in procedure.symbols.values()
        if s.dimensions is not None
        and s.storage is Storage.LOCAL
        and not (s.target or s.pointer or s.overlay)
        and s.key not in analysis.shared(procedure) | liveness.hosts
        and _only_in(loop, procedure, s)
        and written_first(analysis, loop.body, procedure, s)
    }
    return frozenset((scalars - inside) - written_later) | frozenset(arrays)


def _exposed_in_order(liveness: Liveness, body: Block) -> frozenset[str]:
    """Scalars with upward-exposed reads in an iteration."""
    return liveness.exposed(Compound(body, span=body.span))


def _only_in(loop: Loop, procedure: Procedure, symbol: Symbol) -> bool:
    """Whether the variable is named only in the loop."""
    inside = {id(s) for s in loop.walk()}
    return not any(_names(s, symbol) for s in procedure.body.walk() if id(s) not in inside)


def _names(statement: Statement, symbol: Symbol) -> bool:
    return any(isinstance(e, Name) and e.symbol == symbol for e in statement.every_expression())


def written_first(analysis: Analysis, block: Block, procedure: Procedure, symbol: Symbol) -> bool:
    """Whether every element that the block reads was written before, in the same statement list."""
    referenced = [s for s in block.statements if any(_names(i, symbol) for i in s.walk())]
    if len(referenced) == 1 and not _names(referenced[0], symbol):
        match referenced[0]:
            case Loop(body=inner) | If(then=inner, otherwise=None):
                return written_first(analysis, inner, procedure, symbol)
    written: list[Section] = []
    for effects in analysis.effects_of(block.statements, procedure):
        mine = [a for a in effects.accesses if a.symbol == symbol]
        for access in mine:
            if not access.writes and (access.section is None or not any(covers(w, access.section) for w in written)):
                return False
        written += [a.section for a in mine if a.writes and a.must and a.section is not None]
    return True


def written_in(analysis: Analysis, procedure: Procedure, statements: Sequence[Statement]) -> frozenset[str]:
    """Keys of the variables and the memory that the statements write."""
    return frozenset[str]().union(*(analysis.plain(s, procedure).written_keys for s in statements))


def counters(liveness: Liveness, procedure: Procedure) -> frozenset[str]:
    """Local variables that only count loops."""
    return only_counted([procedure.body]) & liveness.followed - liveness.hosts
