"""Loop fission: the part of a loop that does not need what a communication delivers runs during the transfer.

before:  arrive halo ; do i = 2, n-1 ; u(i) = r(i-1) + r(i+1) ; end do
after:   do i = 3, n-2 ; … ; end do ; arrive halo ; do i = 2, n-1, the others ; … ; end do

The same for nests: the interior, then the boundary (interior.py).

before:  arrive halo ; do c = 1, m ; a(c) = halo(c) ; b(c) = f(c) ; end do
after:   do c = 1, m ; b(c) = f(c) ; end do ; arrive halo ; do c = 1, m ; a(c) = halo(c) ; end do

The same for loops that contain nests, which may need the results of earlier ones: each interior avoids the boundaries of the
nests before.

Obligations. The early part conflicts with nothing that comes last. No dependence connects iterations that are interchanged
(interior and boundary; one statement's iterations and another's earlier ones; analysis/iteration_order.py). The bounds are
invariant in the loop, and no iteration leaves it or does I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lapwing.affine.sections import Chosen
from lapwing.overlap.analysis.dependence import Conflict, conflict
from lapwing.overlap.analysis.iteration_order import carries_no_dependence, written_in
from lapwing.overlap.analysis.manager import Analysis
from lapwing.overlap.analysis.reductions import reductions
from lapwing.overlap.ir.program import Procedure
from lapwing.overlap.ir.rewriter import works
from lapwing.overlap.ir.split_phase import PartialLoop
from lapwing.overlap.ir.statements import Declare, Loop, Statement
from lapwing.overlap.transforms.code_motion import Independent, Split
from lapwing.overlap.transforms.index_set_splitting.interior import Edges, Parts, in_the_way, interior

TRANSFORMATION = "split-loop"
_FEW = 2  # computing statements: with fewer, there is nothing to separate


def split_loop(
    analysis: Analysis,
    loop: Loop,
    procedure: Procedure,
    early: Independent,
    edges: Edges,
    *,
    limited: bool = False,
) -> Split | Conflict | None:
    """The loop's early part and the rest; None, or why, if there is none. Without the edges' limits, only simple splits: an
    interior a few iterations inside the loops' own ends, or whole statements.
    """
    if isinstance(loop, PartialLoop):
        return None
    reason = in_the_way(analysis, loop, procedure)
    if reason is not None:
        return reason
    parts = interior(analysis, loop, procedure, early, edges, limited=limited)
    if isinstance(parts, Parts):
        return Split((parts.inside,), (parts.boundary,))
    independent = _distributed(analysis, loop, procedure, early, edges) if loop.body.form == "lines" else None
    return independent or parts


def _distributed(
    analysis: Analysis, loop: Loop, procedure: Procedure, early: Independent, edges: Edges
) -> Split | None:
    """Fission: the statements of the body that can be early, or parts of them, in a loop of their own."""
    first: list[Statement] = []
    last: list[Statement] = []
    if any(isinstance(s, Declare) for s in loop.body.statements):
        return None  # declares variables that both parts would need
    if _are_tied(analysis, loop, procedure):
        return None

    alone: dict[int, tuple[Statement, Loop]] = {}

    def within(statement: Statement, chosen: Chosen | None = ()) -> bool:
        """Whether it may precede everything that comes last, in this iteration and before the loop."""
        if last and _blocked(analysis, procedure, last, statement, chosen):
            return False
        if id(statement) not in alone:
            alone[id(statement)] = statement, replace(loop, body=replace(loop.body, statements=(statement,)))
        return early(alone[id(statement)][1], chosen)

    pieces: list[Statement] = []
    for statement in loop.body.statements:
        if not works([statement], analysis.program, procedure):
            split: Split | Conflict | None = None
        elif len(loop.body.statements) > 1 and within(statement):  # alone, it is the whole loop
            split = Split((statement,), ())
        elif isinstance(statement, Loop) and edges.limits and not edges.spent:
            split = split_loop(analysis, statement, procedure, within, edges, limited=True)
        else:
            split = None
        split = split if isinstance(split, Split) else Split((), (statement,))
        first += split.first
        last += split.last
        pieces += [*split.first, *split.last]
    if not first or not last:
        return None
    summed = reductions(analysis, loop, procedure).keys
    if not carries_no_dependence(analysis, loop, procedure, pieces, last, first, backwards=True, accumulated=summed):
        return None
    if not _carries_nothing(analysis, procedure, loop, first, last, summed):
        return None
    one = replace(loop, body=replace(loop.body, statements=tuple(first)))
    two = replace(loop, body=replace(loop.body, statements=tuple(last)))
    return Split((one,), (two,))


def _are_tied(analysis: Analysis, loop: Loop, procedure: Procedure) -> bool:
    """Whether all computation of the body uses the same scratch array, of which every iteration writes the same elements. Then
    all of it is early or none: a cheap test, as finding a part's conflicts takes far longer."""
    works_at = [n for n, s in enumerate(loop.body.statements) if works([s], analysis.program, procedure)]
    if len(works_at) < _FEW:
        return False
    effects = analysis.effects_of(loop.body.statements, procedure)
    origin = analysis.terms.origin
    scratch = {
        access.symbol.key
        for number in works_at
        for access in effects[number].writes()
        if access.symbol is not None and access.section is not None and access.symbol.dimensions is not None
        if not any(loop.variable.key in origin.get(name, frozenset()) for name in access.section.names)
    }
    groups: list[set[str]] = []
    for number in works_at:
        used = {a.symbol.key for a in effects[number].accesses if a.symbol is not None} & scratch
        if not used:
            return False
        referenced = [g for g in groups if g & used]
        groups = [g for g in groups if not g & used] + [used.union(*referenced)]
    return len(groups) == 1


def _blocked(
    analysis: Analysis, procedure: Procedure, last: Sequence[Statement], statement: Statement, chosen: Chosen | None
) -> bool:
    """Whether the statement may not run before these, which precede it."""
    *before, own = analysis.effects_of([*last, statement], procedure)
    private = _scalars(analysis, procedure, last, statement)
    return any(conflict(e, own, analysis.aliases, private=private, chosen=chosen) is not None for e in before)


def _carries_nothing(
    analysis: Analysis,
    procedure: Procedure,
    loop: Loop,
    first: Sequence[Statement],
    last: Sequence[Statement],
    summed: frozenset[str],
) -> bool:
    """Whether no local variable carries a value from one part of an iteration to the other, or out of the loop, reductions
    aside."""
    liveness = analysis.liveness(procedure)
    if liveness.everything:
        return False
    written = written_in(analysis, procedure, first)
    needed = frozenset().union(*(liveness.exposed(s) for s in last))
    after = liveness.after(loop)
    gone = written & (needed | (after if after is not None else liveness.followed))
    back = written_in(analysis, procedure, last) & frozenset().union(*(liveness.exposed(s) for s in first))
    return not (gone | back) & (liveness.followed - summed - {loop.variable.key})


def _scalars(
    analysis: Analysis, procedure: Procedure, others: Sequence[Statement], statement: Statement
) -> frozenset[str]:
    """Local variables that each of these writes before it reads them."""
    liveness = analysis.liveness(procedure)
    free = liveness.followed - liveness.exposed(statement)
    for other in others:
        free -= liveness.exposed(other)
    return free
