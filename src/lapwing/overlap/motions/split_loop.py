"""A loop of which a part does not need what a communication brings: that part is done during the transfer.

before:  arrive halo ; do i = 2, n-1 ; u(i) = r(i-1) + r(i+1) ; end do
after:   do i = 3, n-2 ; … ; end do ; arrive halo ; do i = 2, n-1, the others ; … ; end do

The same for nests: the interior of the box, then its shell.

before:  arrive halo ; do c = 1, m ; a(c) = halo(c) ; b(c) = f(c) ; end do
after:   do c = 1, m ; b(c) = f(c) ; end do ; arrive halo ; do c = 1, m ; a(c) = halo(c) ; end do

Obligations. What is done early conflicts with nothing that comes last. Turns that change places (the interior with the boundary;
one statement's turns with another's earlier ones) do not conflict with each other, where arrays that every turn writes before it
reads, and that nobody needs afterwards, do not count. Bounds do not change in the loop, no turn ends it, and none does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap.analysis import Analysis
from lapwing.overlap.arrange import Halves
from lapwing.overlap.conflicts import Conflict, conflict
from lapwing.overlap.effects import Access, Effects
from lapwing.overlap.emit import c_ends
from lapwing.overlap.environment import Environment, Terms
from lapwing.overlap.liveness import Liveness
from lapwing.overlap.phases import NOWHERE, Level, PartialLoop
from lapwing.overlap.program import (
    Block,
    Compound,
    Declare,
    Expression,
    If,
    Jump,
    Loop,
    Name,
    Number,
    Opaque,
    Operation,
    Procedure,
    Statement,
    Storage,
    Symbol,
    Unread,
)
from lapwing.overlap.sections import Condition, Linear, Section, covers
from lapwing.overlap.tree import works

MOTION = "split-loop"
_SIGNED = frozenset("const static register volatile signed short int long".split())
_WIDEST = 3  # planes left for the boundary on each side
_LEAST = 2  # of a loop of a known number of turns at most one in so many is boundary

# Whether a statement, put where the loop stands, could be done before everything that comes last.
Early = Callable[[Statement], bool]


def split_loop(analysis: Analysis, loop: Loop, procedure: Procedure, early: Early) -> Halves | None:
    """The loop's early part and the rest; None if there is none."""
    if isinstance(loop, PartialLoop) or not may_be_split(analysis, loop, procedure):
        return None
    parts = interior(analysis, loop, procedure, early)
    if isinstance(parts, Parts):
        return Halves((parts.inside,), (parts.shell,))
    return _distributed(analysis, loop, procedure, early) if loop.body.form == "lines" else None


def may_be_split(analysis: Analysis, loop: Loop, procedure: Procedure) -> bool:
    """Whether its turns may be divided at all: bounds stay, no turn ends it, and none communicates or does I/O."""
    # A label cannot stand in both parts.
    if any(isinstance(s, Jump) or s.label is not None for s in loop.walk()):
        return False
    effects = analysis.plain(loop, procedure)
    if effects.barrier or effects.io or effects.states - {"clock"} or effects.operations or effects.leaves:
        return False
    bounds = {e.symbol.key for top in loop.expressions() for e in top.walk() if isinstance(e, Name)}
    written, everything = analysis.written(loop.body, procedure)
    return not everything and not bounds & (written | {loop.variable.key})


# ---- interior and boundary ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Between which values of a loop's variable its interior may be sought."""

    low: Expression
    high: Expression


@dataclass(frozen=True)
class Parts:
    """A nest's interior, and its other turns."""

    inside: PartialLoop
    shell: PartialLoop


def interior(
    analysis: Analysis, loop: Loop, procedure: Procedure, apart: Early, limits: Sequence[Sequence[Limits]] = ()
) -> Parts | Conflict | None:
    """The largest interior of the nest of which ``apart`` is true, if it and the rest may change places; otherwise why not, or
    None if there is none.

    It lies a few turns away from the loops' own ends or, of one loop, within limits. Each sequence of ``limits`` goes from the
    smallest interior to the largest.
    """
    nest = _nest(analysis, loop, procedure)
    box = (_from_the_ends(analysis, nest, apart) or _within(analysis, nest, apart, limits)) if nest else None
    if box is None or not any(level.divides for level in box):
        return None  # nothing, or all of it
    # What the last turn leaves in its scalars must not matter. Of arrays, turns that do not conflict leave what they did.
    needed = _needed_after(analysis, loop, procedure)
    written = needed & _written(analysis, procedure, loop.body.statements)
    names = sorted(s.name for s in procedure.symbols.values() if s.key in written and s.dimensions is None)
    if box[-1].low is not None:
        # A shell in two loops (render.py) may leave another number in their variables.
        followed = analysis.liveness(procedure).followed
        counting = (level.loop.variable for level in box)
        names += [v.name for v in counting if v.key in needed or v.key not in followed]
    if names:
        return Conflict("turns", f"{', '.join(names)} may be needed after the loop", loop.span)
    for b in box:
        if not _turns_commute(analysis, b.loop, procedure, b.loop.body.statements, b.loop.body.statements):
            return Conflict("turns", f"turns of the loop over {b.loop.variable.name} depend on each other", b.loop.span)
    outer = PartialLoop(
        loop.variable, loop.lower, loop.upper, loop.step, loop.body, inside=False, box=box, whole=loop, span=loop.span
    )
    return Parts(_inner(box), outer)


def _needed_after(analysis: Analysis, loop: Loop, procedure: Procedure) -> frozenset[str]:
    """Local variables whose values may be needed after the loop."""
    liveness = analysis.liveness(procedure)
    after = liveness.after(loop)
    return liveness.followed - _counters(liveness, procedure) if after is None else after


def _counters(liveness: Liveness, procedure: Procedure) -> frozenset[str]:
    """Local variables that only count loops: nobody reads them but in a loop that counts with them, whatever jumps there are."""
    counted: set[str] = set()
    elsewhere: set[str] = set()

    def look(block: Block, counting: frozenset[str]) -> None:
        for statement in block.statements:
            if isinstance(statement, Opaque):
                elsewhere.update(liveness.followed)
            if statement.label is not None:
                elsewhere.update(counting)  # someone may jump into the loop
            inner = counting
            if isinstance(statement, Loop):
                counted.add(statement.variable.key)
                inner = counting | {statement.variable.key}
            for expression in (e for top in statement.expressions() for e in top.walk()):
                if isinstance(expression, Unread):
                    elsewhere.update(liveness.followed)
                if isinstance(expression, Name) and expression.symbol.key not in counting:
                    elsewhere.add(expression.symbol.key)
            for body in statement.blocks():
                look(body, inner)

    look(procedure.body, frozenset())
    return frozenset(counted - elsewhere) & liveness.followed


def _nest(analysis: Analysis, loop: Loop, procedure: Procedure) -> list[Loop]:
    """The loops of a perfect nest, from the outermost in, as far as their turns can be counted from both ends."""
    nest: list[Loop] = []
    if not analysis.is_as_read(loop, procedure):
        return nest  # both parts take the text of the whole
    c = analysis.program.sources[procedure.source].language != "fortran"
    while loop.step in (Number(1), Number(-1)) and loop.label is None and loop.body.form in ("lines", "single"):
        if c and _may_wrap(loop):
            break
        if nest and not may_be_split(analysis, loop, procedure):
            break
        source = analysis.program.sources[procedure.source]
        if source.language != "fortran" and c_ends(source, loop) is None:
            break
        nest.append(loop)
        if len(loop.body.statements) != 1 or not isinstance(loop.body.statements[0], Loop):
            break
        loop = loop.body.statements[0]
    return nest


def _widest(analysis: Analysis, loop: Loop) -> int:
    """Planes that may be left for the boundary on each side: of few turns, fewer, or the interior might be nothing."""
    turns = _turns(analysis, loop)
    return _WIDEST if turns is None else min(_WIDEST, turns // (2 * _LEAST))


def _turns(analysis: Analysis, loop: Loop) -> int | None:
    """How many turns the loop has, if that is known."""
    values = Environment(analysis.terms)
    lower, upper = values.linear(loop.lower), values.linear(loop.upper)
    between = None if lower is None or upper is None else upper.plus(lower, -1)
    return None if between is None or between.terms else abs(between.constant) + 1


def _may_wrap(loop: Loop) -> bool:
    """Whether a bound less a plane or two may be a huge number, as unsigned ones are below zero."""
    names = [e.symbol for top in loop.expressions() for e in top.walk() if isinstance(e, Name)]
    counted = [s for s in (loop.variable, *names) if s.storage is not Storage.CONSTANT and s.dimensions is None]
    return any(not _SIGNED.issuperset(symbol.type.text.split()) for symbol in counted)


def _from_the_ends(analysis: Analysis, nest: Sequence[Loop], apart: Early) -> tuple[Level, ...] | None:
    widest = [Level(loop, width, width) for loop in nest for width in (_widest(analysis, loop),)]
    return _narrowed(widest, apart) if apart(_inner(widest)) else None


def _within(
    analysis: Analysis, nest: Sequence[Loop], apart: Early, limits: Sequence[Sequence[Limits]]
) -> tuple[Level, ...] | None:
    for number, loop in enumerate(nest):
        if _turns(analysis, loop) is not None or not _counts_plainly(loop):
            continue
        for growing in limits:
            boxes = [(*map(Level, nest[:number]), Level(loop, low=limit.low, high=limit.high)) for limit in growing]
            if boxes and apart(_inner(boxes[0])):
                return next(box for box in reversed(boxes) if apart(_inner(box)))
    return None


def _counts_plainly(loop: Loop) -> bool:
    """Whether its ends are default integers, as those that they are compared with: Fortran's max and min take no others."""
    parts = [loop.variable, *(e.symbol for end in (loop.lower, loop.upper) for e in end.walk() if isinstance(e, Name))]
    plain = all(s.type.base == "integer" and s.type.bytes == 4 for s in parts)
    return plain and all(
        isinstance(e, Name | Number | Operation) for end in (loop.lower, loop.upper) for e in end.walk()
    )


def _narrowed(box: list[Level], early: Early) -> tuple[Level, ...]:
    """The thinnest boundary that leaves the interior early; levels inside the last one that has any are left out."""
    for number, level in enumerate(box):
        pairs = ((a, b) for a in range(level.below + 1) for b in range(level.above + 1))
        for below, above in sorted(pairs, key=lambda w: (sum(w), abs(w[0] - w[1]))):
            trial = [*box[:number], Level(level.loop, below, above), *box[number + 1 :]]
            if early(_inner(trial)):
                box = trial
                break
    while len(box) > 1 and box[-1].below + box[-1].above == 0:
        box = box[:-1]
    return tuple(box)


def _inner(box: Sequence[Level]) -> PartialLoop:
    """The interior; what a loop counts from is its lower end whichever way it runs."""
    level = box[0]
    loop, forwards = level.loop, level.loop.step == Number(1)
    first, last = (level.below, level.above) if forwards else (level.above, level.below)
    sign = ("+", "-") if forwards else ("-", "+")
    lower = Operation(sign[0], (loop.lower, Number(first))) if first else loop.lower
    upper = Operation(sign[1], (loop.upper, Number(last))) if last else loop.upper
    body = loop.body if len(box) == 1 else replace(loop.body, statements=(_inner(box[1:]),))
    for operator, end in ((">=", level.low), ("<=", level.high)):
        if end is not None:
            test = Operation(operator, (Name(loop.variable), end))
            body = replace(loop.body, statements=(If(test, body, span=NOWHERE),))
    return PartialLoop(
        loop.variable,
        lower,
        upper,
        loop.step,
        body,
        loop.declares,
        inside=True,
        box=tuple(box),
        whole=loop,
        span=NOWHERE,
    )


# ---- distribution -------------------------------------------------------------------------------------------------------


def _distributed(analysis: Analysis, loop: Loop, procedure: Procedure, early: Early) -> Halves | None:
    """The statements of the body that can be early, in a loop of their own."""
    first: list[Statement] = []
    last: list[Statement] = []
    if len(loop.body.statements) < 2 or any(isinstance(s, Declare) for s in loop.body.statements):
        return None  # nothing to divide, or variables that both parts would need
    for statement in loop.body.statements:
        alone = replace(loop, body=replace(loop.body, statements=(statement,)))
        effects = analysis.walk([*last, statement], procedure)
        private = _scalars(analysis, procedure, last, statement)
        follows = any(conflict(e, effects[-1], analysis.aliases, private=private) for e in effects[:-1])
        if not follows and works([statement], analysis.program, procedure) and early(alone):
            first.append(statement)
        else:
            last.append(statement)
    if not first or not last or not _turns_commute(analysis, loop, procedure, last, first, backwards=True):
        return None
    if not _carries_nothing(analysis, procedure, loop, first, last):
        return None
    one = replace(loop, body=replace(loop.body, statements=tuple(first)))
    two = replace(loop, body=replace(loop.body, statements=tuple(last)))
    return Halves((one,), (two,))


def _carries_nothing(
    analysis: Analysis, procedure: Procedure, loop: Loop, first: Sequence[Statement], last: Sequence[Statement]
) -> bool:
    """No local variable takes a value from one part of a turn to the other, or out of the loop."""
    liveness = analysis.liveness(procedure)
    if liveness.everything:
        return False
    written = _written(analysis, procedure, first)
    needed = frozenset().union(*(liveness.exposed(s) for s in last))
    after = liveness.after(loop)
    gone = written & (needed | (after if after is not None else liveness.followed))
    back = _written(analysis, procedure, last) & frozenset().union(*(liveness.exposed(s) for s in first))
    return not (gone | back) & (liveness.followed - {loop.variable.key})


def _written(analysis: Analysis, procedure: Procedure, statements: Sequence[Statement]) -> frozenset[str]:
    keys = set()
    for statement in statements:
        keys |= {
            a.symbol.key for a in analysis.plain(statement, procedure).accesses if a.writes and a.symbol is not None
        }
    return frozenset(keys)


def _scalars(
    analysis: Analysis, procedure: Procedure, others: Sequence[Statement], statement: Statement
) -> frozenset[str]:
    """Local variables that all of these write before they read."""
    liveness = analysis.liveness(procedure)
    free = liveness.followed - liveness.exposed(statement)
    for other in others:
        free -= liveness.exposed(other)
    return free


# ---- turns --------------------------------------------------------------------------------------------------------------


def _turns_commute(
    analysis: Analysis,
    loop: Loop,
    procedure: Procedure,
    ones: Sequence[Statement],
    others: Sequence[Statement],
    *,
    backwards: bool = False,
) -> bool:
    """Whether ``ones`` of one turn conflict with ``others`` of another turn (``backwards``: of a later turn) in nothing."""
    terms = analysis.terms
    here = terms.of_variable(loop.variable)
    there = f"{here}_there"
    effects = analysis.walk(loop.body.statements, procedure)
    by_statement = dict(zip(map(id, loop.body.statements), effects, strict=True))
    private = _private(analysis, loop, procedure)
    a, b = Linear.term(here), Linear.term(there)
    varying = analysis.written(loop.body, procedure)[0] | {loop.variable.key}
    one = Linear.number(1)
    later: Condition = (((b.plus(a, -1).plus(one, -1), ">="),),)
    earlier: Condition = (((a.plus(b, -1).plus(one, -1), ">="),),)
    context: Condition = (*later, *earlier)
    if backwards and isinstance(loop.step, Number):
        context = later if loop.step.value > 0 else earlier
    for x in ones:
        for y in others:
            moved = _renamed(by_statement[id(y)], terms, varying)
            if conflict(by_statement[id(x)], moved, analysis.aliases, private=private, context=context) is not None:
                return False
    return True


def _renamed(effects: Effects, terms: Terms, varying: frozenset[str]) -> Effects:
    """The same of another turn: what depends on these variables may be worth something else there."""

    def elsewhere(section: Section) -> Section:
        names = (n for n in section.names() if terms.origin.get(n, frozenset()) & varying)
        return section.substitute({n: Linear.term(f"{n}_there") for n in names})

    def turned(access: Access) -> Access:
        anchored = access.anchor.linears() if access.anchor is not None else ()
        if access.section is None or any(
            terms.origin.get(n, frozenset()) & varying for e in anchored for n in e.names()
        ):
            return replace(access, section=None, anchor=None)
        return replace(access, section=elsewhere(access.section))

    return replace(effects, accesses=tuple(turned(a) for a in effects.accesses))


def _private(analysis: Analysis, loop: Loop, procedure: Procedure) -> frozenset[str]:
    """Variables that every turn writes before it reads them, and whose last values nobody needs."""
    liveness = analysis.liveness(procedure)
    if liveness.everything:
        return _counters(liveness, procedure)
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
        and _only_in(loop, procedure, s)
        and written_first(analysis, loop.body, procedure, s)
    }
    return frozenset((scalars - inside) - written_later) | frozenset(arrays)


def _exposed_in_order(liveness: Liveness, body: Block) -> frozenset[str]:
    """Scalars a turn may read before it writes them."""
    return liveness.exposed(Compound(body, span=body.span))


def _only_in(loop: Loop, procedure: Procedure, symbol: Symbol) -> bool:
    """Whether nothing outside the loop names the variable."""
    inside = {id(s) for s in loop.walk()}
    return not any(_names(s, symbol) for s in procedure.body.walk() if id(s) not in inside)


def _names(statement: Statement, symbol: Symbol) -> bool:
    return any(isinstance(e, Name) and e.symbol == symbol for top in statement.expressions() for e in top.walk())


def written_first(analysis: Analysis, block: Block, procedure: Procedure, symbol: Symbol) -> bool:
    """Whether every element that the block reads was written, in the same list of statements, before."""
    touching = [s for s in block.statements if any(_names(i, symbol) for i in s.walk())]
    if len(touching) == 1 and isinstance(touching[0], Loop) and not _names(touching[0], symbol):
        return written_first(analysis, touching[0].body, procedure, symbol)
    written: list[Section] = []
    for effects in analysis.walk(block.statements, procedure):
        mine = [a for a in effects.accesses if a.symbol == symbol]
        for access in mine:
            if not access.writes and (access.section is None or not any(covers(w, access.section) for w in written)):
                return False
        written += [a.section for a in mine if a.writes and a.must and a.section is not None]
    return True
